//! `didact sweep work`: one share, computed here.

use super::Target;
use crate::SizeOptions;
use crate::exit::Ending;
use crate::progress::{self, Silent};
use crate::slurm;
use crate::supervise::Supervisor;
use clap::Args;
use didact_experiment::Diagnostic;
use didact_experiment::sweep::plan::{MOST_TASKS, TaskCount};
use didact_experiment::sweep::{Job, Plan, TaskEnd, TaskEvent, WorkLimits, Worker};
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[derive(Debug, Args)]
pub(crate) struct WorkArguments {
    /// Description (TOML or JSON); not with --plan
    #[arg(required_unless_present = "plan", conflicts_with = "plan")]
    file: Option<PathBuf>,
    /// Plan of a submission
    #[arg(long)]
    plan: Option<PathBuf>,
    /// Share `i/n`, i from 0 to n - 1; with --plan the number of the task [default: `SLURM_ARRAY_TASK_ID`]
    #[arg(long)]
    shard: Option<String>,
    #[command(flatten)]
    size: SizeOptions,
    /// Where run folders go; all shares must see the same folder
    #[arg(long, default_value = "runs")]
    out: PathBuf,
    /// Seed, in place of the description's
    #[arg(long)]
    seed: Option<u64>,
    /// Threads [default: `SLURM_CPUS_PER_TASK`, or the cores that this process may use]
    #[arg(long)]
    threads: Option<usize>,
    /// Seconds until the time is over: nothing is begun that does not fit [default: what Slurm says]
    #[arg(long)]
    seconds_left: Option<f64>,
    /// End at the first failure
    #[arg(long)]
    fail_fast: bool,
    /// Try again what failed before
    #[arg(long)]
    retry_failed: bool,
    /// How often a Slurm task whose time is over goes back into the queue
    #[arg(long, default_value_t = 0)]
    requeues: u32,
    /// For the program itself: compute, and report to the process that watches over it
    #[arg(long, hide = true, requires = "plan")]
    compute: bool,
    /// For the program itself: only these pieces, one at a time
    #[arg(long, hide = true, requires = "compute")]
    alone: Option<String>,
}

pub(crate) fn work(arguments: &WorkArguments) -> Result<Ending, Diagnostic> {
    if let Some(seconds) = arguments.seconds_left.filter(|s| !(s.is_finite() && *s >= 0.0)) {
        return Err(Diagnostic::new(format!("{seconds} seconds are no time that can be left")));
    }
    if arguments.threads == Some(0) {
        return Err(Diagnostic::new("0 threads compute nothing").hint("leave out --threads for all cores"));
    }
    if arguments.compute {
        return compute(arguments);
    }
    let (plan, task) = share(arguments)?;
    let threads = arguments
        .threads
        .or_else(slurm::cores)
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let mut flags = Vec::new();
    flags.extend(arguments.fail_fast.then_some("--fail-fast"));
    flags.extend(arguments.retry_failed.then_some("--retry-failed"));
    let supervisor = Supervisor {
        plan,
        task,
        root: arguments.out.clone(),
        threads,
        seconds_left: arguments.seconds_left.or_else(slurm::seconds_left),
        requeues: arguments.requeues,
        flags,
    };
    supervisor.run()
}

/// The plan and the number of the task in it.
fn share(arguments: &WorkArguments) -> Result<(PathBuf, usize), Diagnostic> {
    let of_slurm = || std::env::var("SLURM_ARRAY_TASK_ID").ok();
    let no_share = || {
        Diagnostic::new("which share is to be computed?")
            .hint("give --shard i/n, or start it as a task of a Slurm array")
    };
    let Some(file) = &arguments.file else {
        let path = arguments.plan.clone().expect("clap asks for one of both");
        let text = arguments.shard.clone().or_else(of_slurm).ok_or_else(no_share)?;
        let number = text.split('/').next().unwrap_or_default();
        let task: usize =
            number.parse().map_err(|_| Diagnostic::new(format!("`{text}` is no number of a task")))?;
        // Nothing is written for a plan that is none.
        let tasks = Plan::read(&path)?.tasks.len();
        if task >= tasks {
            return Err(Diagnostic::new(format!("the plan has {tasks} tasks; there is no task {task}")));
        }
        return Ok((path, task));
    };
    let (index, count) = match (&arguments.shard, of_slurm(), std::env::var("SLURM_ARRAY_TASK_COUNT").ok()) {
        (Some(text), ..) => text
            .split_once('/')
            .and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)))
            .ok_or_else(|| {
                Diagnostic::new(format!("`{text}` is no share"))
                    .hint("give i/n, such as 3/64: the shares of 64 are 0 to 63")
            })?,
        (None, Some(index), Some(count)) => {
            (index.parse().map_err(|_| no_share())?, count.parse().map_err(|_| no_share())?)
        }
        _ => return Err(no_share()),
    };
    let (index, count): (usize, usize) = (index, count);
    if index >= count || count > MOST_TASKS {
        let message = format!("there is no share {index} of {count}");
        return Err(Diagnostic::new(message)
            .hint(format!("shares are counted from 0, and there are at most {MOST_TASKS}")));
    }
    let target =
        Target { file: file.clone(), size: arguments.size, out: arguments.out.clone(), seed: arguments.seed };
    let experiment = target.experiment()?;
    let asked = target.asked(1, TaskCount::Tasks(count), MOST_TASKS);
    Ok((Plan::of_shards(&experiment, &asked, &arguments.out)?.1, index))
}

/// Computes, and reports every event as a line of JSON on stdout.
fn compute(arguments: &WorkArguments) -> Result<Ending, Diagnostic> {
    progress::listen_as_task();
    let begun = Instant::now();
    let path = arguments.plan.as_ref().expect("clap asks for it");
    let task: usize = arguments
        .shard
        .as_deref()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| Diagnostic::new("the number of the task is missing"))?;
    let plan = Plan::read(path)?;
    let experiment = plan.experiment()?;
    let alone: Option<Vec<Job>> = match &arguments.alone {
        Some(text) => Some(serde_json::from_str(text).map_err(Diagnostic::new)?),
        None => None,
    };
    let limits = WorkLimits {
        threads: arguments.threads.unwrap_or(0),
        memory: slurm::memory_given(),
        deadline: arguments.seconds_left.map(|seconds| begun + Duration::from_secs_f64(seconds)),
        fail_fast: arguments.fail_fast,
        retry_failed: arguments.retry_failed,
        alone,
    };
    let report =
        |event: TaskEvent| say!("{}", serde_json::to_string(&event).expect("an event is plain data"));
    let worker =
        Worker { experiment: &experiment, plan: &plan, plan_path: path, task, root: &arguments.out, limits };
    let outcome = worker.work(&Silent, &report)?;
    report(TaskEvent::End { end: outcome.end, left: outcome.left });
    Ok(match outcome.end {
        TaskEnd::Finished if outcome.failed == 0 => Ending::Done,
        TaskEnd::Finished | TaskEnd::FailFast => Ending::FailedJobs,
        TaskEnd::Time | TaskEnd::Signal | TaskEnd::Killed => Ending::TryAgain,
    })
}
