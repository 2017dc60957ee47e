//! How far a sweep is, read from the disk: results by their keys, the rest from the reports of tasks.
//!
//! Whether a task still works is told by the date of its report. That date and the one it is compared with come from the same
//! clock, that of the file system, so that clocks of nodes do not matter.

use super::log::{FailureKind, TaskEnd, TaskEvent, TaskReport, reports_of};
use super::pieces::{Job, Kept};
use super::plan::{Plan, plans_in};
use super::{Submission, sweep_folder};
use crate::experiment::Experiment;
use crate::store::disk;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A task that has reported nothing for so many seconds is taken to be gone: twenty signs of life are missing.
pub const STALE_AFTER: u64 = 300;

/// What became of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskState {
    /// All its pieces are kept.
    Done,
    /// It works.
    Running,
    /// No report says that it was begun.
    Waiting,
    /// It ended before all was done: its time was over, a signal came, or pieces failed.
    Ended,
    /// It was begun, did not end, and has not been heard of for a while, or is not in the queue any more.
    Stale,
    /// It was never begun, and the queue does not have it: it was cancelled.
    Gone,
}

/// One task of the newest plan that has it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct TaskStatus {
    /// The file of the plan.
    pub plan: PathBuf,
    /// Its number there.
    pub task: usize,
    /// What became of it.
    pub state: TaskState,
    /// How its last attempt ended.
    pub ended: Option<TaskEnd>,
    /// Attempts so far.
    pub attempts: usize,
    /// The Slurm job of an attempt that works.
    pub job: Option<String>,
    /// Cores that work.
    pub threads: usize,
}

/// Pieces that failed in one way.
#[derive(Debug, Clone, Serialize)]
pub struct FailedPiece {
    /// What it is.
    pub what: String,
    /// In which way.
    pub kind: FailureKind,
    /// What the engine said.
    pub why: String,
}

/// How far a sweep is.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SweepStatus {
    /// Folder of the experiment.
    pub experiment: String,
    /// Runs at points of the sweep, and points of scans.
    pub jobs: usize,
    /// Of these, kept.
    pub done: usize,
    /// Begun by a task that works.
    pub running: usize,
    /// In the plan of a task that works or waits, and not begun.
    pub waiting: usize,
    /// Failed, and not done since.
    pub failed: usize,
    /// Neither done nor failed, and no task that works or waits has them.
    pub missing: usize,
    /// Replicas that diverged, as far as tasks reported them.
    pub diverged: usize,
    /// Share of the estimated work that is done, between 0 and 1.
    pub share: f64,
    /// Seconds until all is done, as the tasks that work go on; `None` when none works.
    pub seconds_left: Option<f64>,
    /// Failures, one per piece.
    pub failures: Vec<FailedPiece>,
    /// Tasks of all plans that are not superseded.
    pub tasks: Vec<TaskStatus>,
}

/// How long ago files were written, by the clock of their file system.
pub(super) struct Ages {
    now: SystemTime,
}

impl Ages {
    /// The present as the file system of this folder tells it: the date of a file that is written now.
    pub(super) fn of(folder: &Path) -> Self {
        let probe = folder.join(format!(".now-{}", disk::unique()));
        let dated = std::fs::write(&probe, b"").and_then(|()| std::fs::metadata(&probe)?.modified());
        let _ = std::fs::remove_file(&probe);
        // Where nothing can be written the clock of this machine has to do.
        Self { now: dated.unwrap_or_else(|_| SystemTime::now()) }
    }

    pub(super) fn of_file(&self, path: &Path) -> Duration {
        let dated = std::fs::metadata(path).and_then(|about| about.modified());
        dated.ok().and_then(|date| self.now.duration_since(date).ok()).unwrap_or_default()
    }
}

impl SweepStatus {
    /// Looks at the disk. `queued` are Slurm jobs (`123_7`) that the queue is known to have, if it could be asked: a task whose
    /// job is gone does not work any more.
    pub fn of(
        experiment: &Experiment,
        root: &Path,
        kept: &mut Kept,
        queued: Option<&BTreeSet<String>>,
    ) -> Self {
        kept.refresh(experiment);
        let folder = sweep_folder(root, experiment.folder_name());
        let ages = Ages::of(&folder);
        let plans: Vec<(PathBuf, Plan)> = plans_in(&folder)
            .into_iter()
            .filter_map(|path| Plan::read(&path).ok().map(|plan| (path, plan)))
            .filter(|(_, plan)| plan.experiment == experiment.folder_name())
            .filter(|(_, plan)| plan.pieces().all(|piece| piece.job.belongs_to(experiment)))
            .collect();
        let mut view = View::default();
        for (path, plan) in &plans {
            view.add_plan(experiment, (path, plan), kept, (&ages, queued));
        }
        view.status(experiment, kept)
    }
}

/// What all plans together say.
#[derive(Default)]
struct View {
    tasks: Vec<TaskStatus>,
    /// By job, of the newest plan that has it.
    failed: BTreeMap<Job, (FailureKind, String)>,
    open: BTreeSet<Job>,
    promised: BTreeSet<Job>,
    measured: f64,
    estimated: f64,
    diverged: usize,
}

impl View {
    fn add_plan(
        &mut self,
        experiment: &Experiment,
        (path, plan): (&Path, &Plan),
        kept: &Kept,
        (ages, queued): (&Ages, Option<&BTreeSet<String>>),
    ) {
        let mut reports: BTreeMap<usize, Vec<TaskReport>> = BTreeMap::new();
        for report in reports_of(path) {
            reports.entry(report.task).or_default().push(report);
        }
        let begun: BTreeSet<usize> = reports.keys().copied().collect();
        let submitted = Submission::read(path);
        // A task that was requeued waits too, whatever its reports say.
        let waits = |task: usize| match (&submitted, queued) {
            (Some(submission), Some(queued)) => queued.contains(&format!("{}_{task}", submission.job)),
            _ => !begun.contains(&task),
        };
        for (task, pieces) in plan.tasks.iter().enumerate() {
            let mut own = reports.remove(&task).unwrap_or_default();
            own.sort_by_key(|report| std::cmp::Reverse(ages.of_file(&report.path)));
            for report in &own {
                self.add_events(report);
            }
            let left: Vec<&Job> =
                pieces.iter().map(|piece| &piece.job).filter(|job| !kept.has(experiment, job)).collect();
            let gone = |report: &TaskReport| {
                let job = report.attempt().and_then(|attempt| attempt.job.as_ref());
                job.zip(queued).is_some_and(|(job, queued)| !queued.contains(job))
            };
            let fresh = |report: &&TaskReport| {
                report.end().is_none()
                    && !gone(report)
                    && ages.of_file(&report.path) < Duration::from_secs(STALE_AFTER)
            };
            let working: Vec<&TaskReport> = own.iter().filter(fresh).collect();
            let state = match () {
                () if left.is_empty() => TaskState::Done,
                () if !working.is_empty() => TaskState::Running,
                () if waits(task) => TaskState::Waiting,
                () if own.is_empty() => TaskState::Gone,
                () if own.last().is_some_and(|newest| newest.end().is_some()) => TaskState::Ended,
                () => TaskState::Stale,
            };
            match state {
                TaskState::Running => {
                    self.open.extend(working.iter().flat_map(|report| report.open()));
                    self.promised.extend(left.into_iter().cloned());
                }
                TaskState::Waiting => self.promised.extend(left.into_iter().cloned()),
                _ => {}
            }
            let threads = working.iter().filter_map(|r| r.attempt()).map(|a| a.threads).sum();
            let job = working.iter().find_map(|report| report.attempt()?.job.clone());
            let ended = own.iter().filter_map(TaskReport::end).next_back();
            let attempts = own.len();
            self.tasks.push(TaskStatus { plan: path.into(), task, state, ended, attempts, job, threads });
        }
    }

    fn add_events(&mut self, report: &TaskReport) {
        for (job, kind, why) in report.failed() {
            self.failed.insert(job, (kind, why));
        }
        for event in &report.events {
            if let TaskEvent::Done { seconds, estimated, diverged, .. } = event {
                self.measured += seconds;
                self.estimated += estimated;
                self.diverged += diverged;
            }
        }
    }

    fn status(mut self, experiment: &Experiment, kept: &Kept) -> SweepStatus {
        self.failed.retain(|job, _| job.belongs_to(experiment) && !kept.has(experiment, job));
        let mut status = SweepStatus {
            experiment: experiment.folder_name().into(),
            jobs: 0,
            done: 0,
            running: 0,
            waiting: 0,
            failed: 0,
            missing: 0,
            diverged: self.diverged,
            share: 0.0,
            seconds_left: None,
            failures: Vec::new(),
            tasks: Vec::new(),
        };
        let failed: BTreeSet<Job> = self.failed.keys().cloned().collect();
        let (mut all, mut left) = (0.0, 0.0);
        for (job, seconds) in every_job(experiment) {
            let share = kept.share(experiment, &job);
            status.jobs += 1;
            all += seconds;
            left += seconds * (1.0 - share);
            match () {
                () if share >= 1.0 => status.done += 1,
                () if touched(&self.open, &job) => status.running += 1,
                () if touched(&failed, &job) => status.failed += 1,
                () if touched(&self.promised, &job) => status.waiting += 1,
                () => status.missing += 1,
            }
        }
        status.share = if all > 0.0 { 1.0 - left / all } else { 1.0 };
        let threads: usize = self.tasks.iter().map(|task| task.threads).sum();
        if threads > 0 {
            let pace = if self.estimated > 0.0 { self.measured / self.estimated } else { 1.0 };
            status.seconds_left = Some(left * pace / threads as f64);
        }
        let failure = |(job, (kind, why)): (Job, (FailureKind, String))| FailedPiece {
            what: job.label(experiment),
            kind,
            why,
        };
        status.failures = std::mem::take(&mut self.failed).into_iter().map(failure).collect();
        status.tasks = self.tasks;
        status
    }
}

/// Every run at every point, and every point of every scan, with estimated seconds.
fn every_job(experiment: &Experiment) -> impl Iterator<Item = (Job, f64)> + '_ {
    let runs = experiment
        .runs
        .iter()
        .zip(experiment.costs())
        .enumerate()
        .map(|(index, (run, cost))| (Job::Run(index, 0, run.schedule.replicas()), cost.seconds));
    let scans = experiment.grids.iter().enumerate().flat_map(|(scan, grid)| {
        (0..grid.len())
            .map(move |point| (Job::Scan(scan, point, point + 1), super::pieces::SCAN_POINT_SECONDS))
    });
    runs.chain(scans)
}

/// Whether a part of this job is in the set. Jobs are ordered by run or scan first.
fn touched(set: &BTreeSet<Job>, job: &Job) -> bool {
    match *job {
        Job::Run(run, first, end) => {
            let mut own = set.range(Job::Run(run, 0, 0)..Job::Run(run + 1, 0, 0));
            own.any(|other| matches!(*other, Job::Run(_, a, b) if a < end && first < b))
        }
        Job::Scan(scan, first, end) => {
            let mut own = set.range(Job::Scan(scan, 0, 0)..Job::Scan(scan + 1, 0, 0));
            own.any(|other| matches!(*other, Job::Scan(_, a, b) if a < end && first < b))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_touched_by_parts_of_itself_alone() {
        let set: BTreeSet<Job> = [Job::Run(2, 4, 8), Job::Scan(2, 0, 3)].into();
        assert!(touched(&set, &Job::Run(2, 0, 10)) && touched(&set, &Job::Run(2, 7, 8)));
        assert!(!touched(&set, &Job::Run(2, 0, 4)) && !touched(&set, &Job::Run(2, 8, 9)));
        assert!(!touched(&set, &Job::Run(1, 0, 10)) && !touched(&set, &Job::Run(3, 0, 10)));
        assert!(touched(&set, &Job::Scan(2, 2, 3)) && !touched(&set, &Job::Scan(2, 3, 4)));
    }
}
