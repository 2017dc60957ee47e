//! `didact sweep`: an experiment shared out. One file per command; the sharing itself is in `didact_experiment::sweep`.

mod plan;
mod resume;
mod status;
mod submit;
mod work;

use crate::SizeOptions;
use crate::exit::Ending;
use clap::{Args, Subcommand};
use didact_experiment::sweep::plan::{Asked, TaskCount};
use didact_experiment::{Diagnostic, Experiment, Source};
use std::path::PathBuf;

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum SweepCommand {
    /// Say how what is missing would be shared out; nothing is written
    Plan(plan::PlanArguments),
    /// Share out what is missing, and submit it to Slurm as one job array
    Submit(submit::SubmitArguments),
    /// Compute one share: what a task of the array executes, or a loop, GNU parallel, another machine with the folder
    Work(work::WorkArguments),
    /// Say how far it is: done, running, waiting, failed, missing
    Status(status::StatusArguments),
    /// Submit again what is missing or failed
    Resume(resume::ResumeArguments),
}

pub(crate) fn sweep(command: SweepCommand) -> Result<Ending, Diagnostic> {
    match command {
        SweepCommand::Plan(arguments) => plan::plan(&arguments),
        SweepCommand::Submit(arguments) => submit::submit(&arguments),
        SweepCommand::Work(arguments) => work::work(&arguments),
        SweepCommand::Status(arguments) => status::status(&arguments),
        SweepCommand::Resume(arguments) => resume::resume(&arguments),
    }
}

/// Which experiment, and where its results are.
#[derive(Debug, Clone, Args)]
pub(crate) struct Target {
    /// Description (TOML or JSON)
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) size: SizeOptions,
    /// Where run folders go; tasks must see the same folder
    #[arg(long, default_value = "runs")]
    pub(crate) out: PathBuf,
    /// Seed, in place of the description's
    #[arg(long)]
    pub(crate) seed: Option<u64>,
}

impl Target {
    pub(crate) fn experiment(&self) -> Result<Experiment, Diagnostic> {
        Experiment::new(Source::read(&self.file)?, self.size.size(), self.seed)
    }

    /// What a plan is made of.
    pub(crate) fn asked(&self, cores: usize, count: TaskCount, most_tasks: usize) -> Asked {
        Asked { source: self.file.clone(), size: self.size.size(), seed: self.seed, cores, count, most_tasks }
    }
}

/// How many tasks there are.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct CountOptions {
    /// Number of tasks
    #[arg(long, conflicts_with = "minutes", value_parser = clap::value_parser!(u32).range(1..))]
    tasks: Option<u32>,
    /// As many tasks as it takes for each to end after so many minutes [default: 30]
    #[arg(long)]
    minutes: Option<f64>,
}

impl CountOptions {
    /// What the user said.
    pub(crate) fn given(self) -> Result<Option<TaskCount>, Diagnostic> {
        match (self.tasks, self.minutes) {
            (Some(tasks), _) => Ok(Some(TaskCount::Tasks(tasks as usize))),
            (None, Some(minutes)) if !(minutes.is_finite() && minutes > 0.0) => {
                Err(Diagnostic::new(format!("tasks of {minutes} minutes make no sense"))
                    .hint("give --minutes a positive number"))
            }
            (None, minutes) => Ok(minutes.map(TaskCount::Minutes)),
        }
    }

    /// The same, or tasks of half an hour.
    pub(crate) fn count(self) -> Result<TaskCount, Diagnostic> {
        Ok(self.given()?.unwrap_or(TaskCount::Minutes(30.0)))
    }
}
