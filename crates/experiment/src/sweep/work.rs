//! What a task executes: those of its pieces that are neither kept nor failed, by its lanes (`lanes.rs`).

use super::lanes::Lanes;
use super::log::{FailureKind, HEARTBEAT, TaskEnd, TaskEvent, reports_of_task};
use super::pieces::{Job, Kept, Piece, SCAN_POINT_SECONDS};
use super::plan::Plan;
use super::status::Ages;
use crate::execute::refuse_link;
use crate::experiment::Experiment;
use crate::source::Diagnostic;
use crate::store::Places;
use crate::store::places::partial_folder;
use didact_model::Monitor;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// After so many tasks that were gone without a word while they computed a piece, the piece is taken to be the reason.
const MOST_LOSSES: usize = 3;

/// What a task has at its disposal.
#[derive(Debug, Clone, Default)]
pub struct WorkLimits {
    /// Cores; all of the machine if 0.
    pub threads: usize,
    /// Bytes of memory; what the machine has unless given.
    pub memory: Option<f64>,
    /// When its time is over.
    pub deadline: Option<Instant>,
    /// End at the first failure.
    pub fail_fast: bool,
    /// Try pieces again that failed before in the same plan.
    pub retry_failed: bool,
    /// Only these of its pieces, one at a time: one of them ended a process, and it is not known which.
    pub alone: Option<Vec<Job>>,
}

/// A task of a plan.
pub struct Worker<'a> {
    /// The experiment of the plan.
    pub experiment: &'a Experiment,
    /// The plan.
    pub plan: &'a Plan,
    /// Its file, beside which reports lie.
    pub plan_path: &'a Path,
    /// Which task.
    pub task: usize,
    /// Where run folders are.
    pub root: &'a Path,
    /// What it may use.
    pub limits: WorkLimits,
}

/// How a task ended, and what it leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskOutcome {
    /// How.
    pub end: TaskEnd,
    /// Pieces that failed, now or in an earlier attempt.
    pub failed: usize,
    /// Pieces that are neither done nor failed.
    pub left: usize,
}

impl Worker<'_> {
    /// Does what is left of the task. `report` is called from several threads.
    pub fn work(
        &self,
        monitor: &dyn Monitor,
        report: &(dyn Fn(TaskEvent) + Sync),
    ) -> Result<TaskOutcome, Diagnostic> {
        let pieces = self.plan.tasks.get(self.task).ok_or_else(|| {
            Diagnostic::new(format!(
                "the plan has {} tasks; there is no task {}",
                self.plan.tasks.len(),
                self.task
            ))
        })?;
        refuse_link(&partial_folder(self.root, self.experiment.folder_name()))?;
        let chosen =
            |piece: &&Piece| self.limits.alone.as_ref().is_none_or(|alone| alone.contains(&piece.job));
        let pieces: Vec<&Piece> = pieces.iter().filter(chosen).collect();
        let jobs: Vec<Job> = pieces.iter().map(|piece| piece.job.clone()).collect();
        let mut kept = Kept::new(Places::of(self.root, self.experiment.folder_name()));
        kept.refresh_for(self.experiment, &jobs);
        let before = Before::of(self.plan_path, self.task);
        let (mut queue, mut failed) = (Vec::new(), 0);
        for piece in pieces.into_iter().filter(|piece| !kept.has(self.experiment, &piece.job)) {
            if before.failed.contains(&piece.job) && !self.limits.retry_failed {
                failed += 1;
            } else if let Some(why) = self.hopeless(piece, &before) {
                let (kind, why) = why;
                report(TaskEvent::Failed { job: piece.job.clone(), kind, why });
                failed += 1;
            } else {
                queue.push(piece.clone());
            }
        }
        Lanes::new(self, &kept, queue, failed, (monitor, report)).run()
    }

    /// Why a piece is not even begun: the least of it that can be kept takes longer than a whole task has, or tasks died of it.
    fn hopeless(&self, piece: &Piece, before: &Before) -> Option<(FailureKind, String)> {
        if before.losses.get(&piece.job).is_some_and(|losses| *losses >= MOST_LOSSES)
            && !self.limits.retry_failed
        {
            let why = format!(
                "{MOST_LOSSES} tasks were gone without a word while they computed it; perhaps it needs more memory than they had"
            );
            return Some((FailureKind::Lost, why));
        }
        let left = self.seconds_left()?;
        let needed = self.least(piece);
        let why = format!("it takes about {needed:.0} s, and a task has {left:.0} s");
        (needed > left).then_some((FailureKind::TooLong, why))
    }

    /// Estimated seconds of the least of a piece that can be kept: one replica, one point of a scan.
    pub(super) fn least(&self, piece: &Piece) -> f64 {
        match piece.job {
            Job::Run(run, first, end) if self.experiment.runs[run].schedule.splits() => {
                piece.seconds / f64::from(end - first)
            }
            Job::Run(..) => piece.seconds,
            Job::Scan(..) => SCAN_POINT_SECONDS,
        }
    }

    /// Seconds until the time is over.
    pub(super) fn seconds_left(&self) -> Option<f64> {
        self.limits.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()).as_secs_f64())
    }
}

/// What earlier attempts of a task report.
struct Before {
    failed: Vec<Job>,
    /// How many tasks were gone without a word while they computed a piece.
    losses: BTreeMap<Job, usize>,
}

impl Before {
    fn of(plan: &Path, task: usize) -> Self {
        let mut before = Self { failed: Vec::new(), losses: BTreeMap::new() };
        let ages = Ages::of(&plan.with_extension(""));
        // One that was heard of a moment ago may be another worker on the same share.
        let silent = |path: &Path| ages.of_file(path) > Duration::from_secs(4 * HEARTBEAT);
        for report in reports_of_task(plan, task) {
            before.failed.extend(report.failed().into_iter().map(|(job, ..)| job));
            if report.end().is_none() && silent(&report.path) {
                for job in report.open() {
                    *before.losses.entry(job).or_default() += 1;
                }
            }
        }
        before
    }
}
