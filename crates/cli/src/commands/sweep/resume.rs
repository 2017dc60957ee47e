//! `didact sweep resume`: what is missing or failed, once more.

use super::submit::send;
use super::{CountOptions, Target, plan};
use crate::exit::Ending;
use crate::slurm;
use clap::Args;
use didact_experiment::Diagnostic;
use didact_experiment::sweep::plan::{TaskCount, plans_in};
use didact_experiment::sweep::status::TaskState;
use didact_experiment::sweep::{Plan, Submission, SweepStatus, folder_of};

#[derive(Debug, Args)]
pub(crate) struct ResumeArguments {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    count: CountOptions,
    /// Memory of a task, times this
    #[arg(long, value_name = "2x", value_parser = slurm::factor)]
    more_memory: Option<f64>,
    /// Time of a task, times this
    #[arg(long, value_name = "2x", value_parser = slurm::factor)]
    more_time: Option<f64>,
    /// Also while tasks still run or wait: what they have left is computed twice
    #[arg(long)]
    anyway: bool,
    /// Show the plan, the script and the command; write and submit nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn resume(arguments: &ResumeArguments) -> Result<Ending, Diagnostic> {
    let target = &arguments.target;
    let experiment = target.experiment()?;
    let folder = folder_of(&target.out, &experiment);
    let submitted =
        plans_in(&folder).into_iter().rev().find_map(|path| Some((Submission::read(&path)?, path)));
    let Some((Submission { mut resources, .. }, path)) = submitted else {
        let message = format!("no sweep of this experiment was submitted from {}", target.out.display());
        return Err(Diagnostic::new(message).hint(
            "submit it with `didact sweep submit`; shares of `didact sweep work` go on when they are started again. An edited \
             description is another experiment",
        ));
    };
    let mut kept = plan::kept(&experiment, target);
    let status = SweepStatus::of(&experiment, &target.out, &mut kept, slurm::queued().as_ref());
    let busy = status
        .tasks
        .iter()
        .filter(|task| matches!(task.state, TaskState::Running | TaskState::Waiting))
        .count();
    if busy > 0 && !arguments.anyway {
        let message = format!("{busy} tasks of this sweep still run or wait");
        return Err(Diagnostic::new(message)
            .hint("wait for them, cancel them with `scancel`, or give --anyway: then what they have left is computed twice"));
    }
    if let Some(factor) = arguments.more_memory {
        let known =
            resources.mem.as_deref().and_then(slurm::memory).ok_or_else(|| unknown("memory", "--mem"))?;
        resources.mem = Some(slurm::memory_of(known * factor));
    }
    if let Some(factor) = arguments.more_time {
        let known =
            resources.time.as_deref().and_then(slurm::seconds).ok_or_else(|| unknown("time", "--time"))?;
        resources.time = Some(slurm::time_of(known * factor));
    }
    // Tasks are as long as those of the last plan unless the user says otherwise.
    let before = Plan::read(&path)?;
    let count = if let Some(count) = arguments.count.given()? {
        count
    } else {
        let longest = (0..before.tasks.len()).map(|task| before.task_seconds(task)).fold(60.0, f64::max);
        TaskCount::Minutes(longest / 60.0)
    };
    send(&experiment, target, &kept, count, &resources, arguments.dry_run)
}

fn unknown(what: &str, option: &str) -> Diagnostic {
    Diagnostic::new(format!("the last submission asked for no {what}, so that there is nothing to multiply"))
        .hint(format!("submit with {option}"))
}
