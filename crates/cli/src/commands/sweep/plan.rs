//! `didact sweep plan`: how it would be shared out.

use super::{CountOptions, Target};
use crate::exit::Ending;
use crate::units::{bytes, duration};
use clap::Args;
use didact_experiment::store::Places;
use didact_experiment::sweep::plan::MOST_TASKS;
use didact_experiment::sweep::{Job, Kept, Plan};
use didact_experiment::{Diagnostic, Experiment};
use serde_json::json;

/// Tasks that the table shows, at either end.
const SHOWN: usize = 5;

#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    count: CountOptions,
    /// Cores of a task
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    cpus: u32,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn plan(arguments: &PlanArguments) -> Result<Ending, Diagnostic> {
    let count = arguments.count.count()?;
    let experiment = arguments.target.experiment()?;
    let kept = kept(&experiment, &arguments.target);
    let asked = arguments.target.asked(arguments.cpus as usize, count, MOST_TASKS);
    let plan = Plan::new(&experiment, &asked, &kept);
    if arguments.json {
        let tasks: Vec<_> = (0..plan.tasks.len())
            .map(|task| json!({"pieces": plan.tasks[task].len(), "seconds": plan.task_seconds(task)}))
            .collect();
        say!(
            "{:#}",
            json!({"experiment": plan.experiment, "core-seconds": plan.seconds(), "cores": plan.cores, "tasks": tasks})
        );
    } else {
        show(&experiment, &plan);
        say!(
            "nothing was submitted; `didact sweep submit` does, `didact sweep work --shard i/n` computes one share here"
        );
    }
    Ok(Ending::Done)
}

/// What is kept already.
pub(crate) fn kept(experiment: &Experiment, target: &Target) -> Kept {
    let mut kept = Kept::new(Places::of(&target.out, experiment.folder_name()));
    kept.refresh(experiment);
    kept
}

/// Prints a plan as a table.
pub(crate) fn show(experiment: &Experiment, plan: &Plan) {
    let runs = plan.pieces().filter(|piece| matches!(piece.job, Job::Run(..))).count();
    let points: usize = plan
        .pieces()
        .filter(|piece| matches!(piece.job, Job::Scan(..)))
        .map(|piece| piece.job.points())
        .sum();
    let all = experiment.runs.len() + experiment.scan_points();
    let divided = plan
        .pieces()
        .filter(|piece| matches!(piece.job, Job::Run(run, first, end) if (first, end) != (0, experiment.runs[run].schedule.replicas())))
        .count();
    let mut about = format!("{}: {runs} runs", plan.experiment);
    if divided > 0 {
        about += &format!(" ({divided} of them parts of the replicas of a run)");
    }
    if points > 0 {
        about += &format!(" and {points} points of scans");
    }
    say!("{about}, of {all} jobs in all; about {} of one core", duration(plan.seconds()));
    let longest = plan.pieces().map(|piece| piece.seconds).fold(0.0, f64::max);
    let memory = plan.pieces().map(|piece| piece.memory).fold(0.0, f64::max);
    say!(
        "longest piece {}, largest {}; {} tasks of {} cores:",
        duration(longest),
        bytes(memory),
        plan.tasks.len(),
        plan.cores
    );
    say!("  {:>6} {:>8} {:>10}   first piece", "task", "pieces", "time");
    let count = plan.tasks.len();
    for task in (0..count).filter(|task| *task < SHOWN || *task + SHOWN >= count) {
        if task + SHOWN == count && count > 2 * SHOWN {
            say!("  {:>6}", "…");
        }
        let first = plan.tasks[task].first().map_or("–".into(), |piece| piece.job.label(experiment));
        say!("  {task:>6} {:>8} {:>10}   {first}", plan.tasks[task].len(), duration(plan.task_seconds(task)));
    }
}
