//! `didact sweep status`: how far it is, from the disk.

use super::{Target, plan};
use crate::exit::Ending;
use crate::slurm;
use crate::units::duration;
use clap::Args;
use didact_experiment::Diagnostic;
use didact_experiment::sweep::status::TaskState;
use didact_experiment::sweep::{FailureKind, SweepStatus};
use std::collections::BTreeMap;
use std::time::Duration;

/// How often `--watch` looks.
const EVERY: Duration = Duration::from_secs(10);
/// Failed pieces of a kind that are named.
const NAMED: usize = 3;

#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    #[command(flatten)]
    target: Target,
    /// Look again every ten seconds until nothing runs or waits
    #[arg(long)]
    watch: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn status(arguments: &StatusArguments) -> Result<Ending, Diagnostic> {
    let experiment = arguments.target.experiment()?;
    let mut kept = plan::kept(&experiment, &arguments.target);
    loop {
        let queued = slurm::queued();
        let status = SweepStatus::of(&experiment, &arguments.target.out, &mut kept, queued.as_ref());
        if arguments.json {
            say!("{}", serde_json::to_string_pretty(&status).expect("a status is plain data"));
        } else {
            show(&status, arguments);
        }
        if !arguments.watch || status.running + status.waiting == 0 {
            return Ok(if status.failed > 0 { Ending::FailedJobs } else { Ending::Done });
        }
        std::thread::sleep(EVERY);
    }
}

fn show(status: &SweepStatus, arguments: &StatusArguments) {
    let SweepStatus { jobs, done, running, waiting, failed, missing, .. } = status;
    say!("{}: {done} of {jobs} jobs done, {:.1} % of the work", status.experiment, 100.0 * status.share);
    say!("  jobs:  {done} done, {running} running, {waiting} waiting, {failed} failed, {missing} missing");
    let mut tasks: BTreeMap<TaskState, usize> = BTreeMap::new();
    for task in &status.tasks {
        *tasks.entry(task.state).or_default() += 1;
    }
    let words: Vec<String> = tasks.iter().map(|(state, count)| format!("{count} {}", word(*state))).collect();
    if !words.is_empty() {
        say!("  tasks: {}", words.join(", "));
    }
    if status.diverged > 0 {
        say!("  {} replicas diverged, which is a result", status.diverged);
    }
    let mut kinds: BTreeMap<FailureKind, Vec<String>> = BTreeMap::new();
    for failure in &status.failures {
        let why = failure.why.lines().next().unwrap_or_default();
        kinds.entry(failure.kind).or_default().push(format!("{}: {why}", failure.what));
    }
    for (kind, pieces) in kinds {
        say!("  failed, {}: {}", kind.words(), pieces.len());
        for piece in pieces.iter().take(NAMED) {
            say!("    {piece}");
        }
        if pieces.len() > NAMED {
            say!("    and {} more; --json has all", pieces.len() - NAMED);
        }
    }
    let file = arguments.target.file.display();
    match status.seconds_left {
        _ if done == jobs => say!("  all is there: `didact run {file}` draws and judges"),
        Some(seconds) => say!("  expected to be done in {}", duration(seconds)),
        None if *waiting > 0 => say!("  no task works yet"),
        None => say!(
            "  no task works: `didact sweep resume {file}` submits what is missing or failed, \
                      `didact run {file} --no-compute` draws what is there"
        ),
    }
}

fn word(state: TaskState) -> &'static str {
    match state {
        TaskState::Done => "done",
        TaskState::Running => "running",
        TaskState::Waiting => "waiting",
        TaskState::Ended => "ended early",
        TaskState::Stale => "stale",
        TaskState::Gone => "cancelled before they began",
    }
}
