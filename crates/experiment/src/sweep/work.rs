//! What a task executes: its pieces, longest first, several at a time, each kept as soon as it is done.
//!
//! The cores of a task are divided into *lanes*. A lane takes one piece after the other and has threads of its own, so that pieces
//! do not wait for each other. Nothing is begun that does not fit into the time that is left.

use super::log::{TaskEvent, FailureKind, HEARTBEAT, TaskEnd, reports_of};
use super::pieces::{Job, Kept, Piece, SCAN_POINT_SECONDS};
use super::plan::Plan;
use crate::compute::{NoPart, compute_answer, compute_part, is_final};
use crate::execute::{refuse_link, unwritable};
use crate::experiment::Experiment;
use crate::source::Diagnostic;
use crate::store::journal::RecordKind;
use crate::store::places::partial_folder;
use crate::store::{Places, Tiling};
use didact_model::engine::available_gigabytes;
use didact_model::{Monitor, Outcome};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Replicas of a long run are kept after about so many seconds of work.
const KEEP_AFTER: f64 = 5.0;
/// Replicas that some engines step together; fewer at a time would waste lanes of vector registers.
const GROUP: u32 = 8;
/// A task looks this often for what others have kept.
const LOOK_AROUND: Duration = Duration::from_secs(10);
/// What was kept is forced to the disk this often.
const SYNC: Duration = Duration::from_secs(2);
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
        let partial = partial_folder(self.root, self.experiment.folder_name());
        refuse_link(&partial)?;
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
        let total: f64 = queue.iter().map(|piece| piece.seconds).sum();
        let shop = Shop {
            worker: self,
            partial,
            kept: &kept,
            queue: Mutex::new(queue),
            pace: Mutex::new(Pace::default()),
            looked: Mutex::new(Instant::now()),
            stop: AtomicBool::new(failed > 0 && self.limits.fail_fast),
            out_of_time: AtomicBool::new(false),
            interrupted: AtomicUsize::new(0),
            failed: AtomicUsize::new(failed),
            trouble: Mutex::new(None),
            total: total.max(f64::MIN_POSITIVE),
            monitor,
            report,
        };
        shop.run()?;
        let left = shop.queue().len() + shop.interrupted.load(Ordering::SeqCst);
        let end = match () {
            () if left == 0 => TaskEnd::Finished,
            () if monitor.cancelled() => TaskEnd::Signal,
            () if shop.out_of_time.load(Ordering::SeqCst) => TaskEnd::Time,
            () => TaskEnd::FailFast,
        };
        Ok(TaskOutcome { end, failed: shop.failed.load(Ordering::SeqCst), left })
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
    fn least(&self, piece: &Piece) -> f64 {
        match piece.job {
            Job::Run(run, first, end) if self.experiment.runs[run].schedule.splits() => {
                piece.seconds / f64::from(end - first)
            }
            Job::Run(..) => piece.seconds,
            Job::Scan(..) => SCAN_POINT_SECONDS,
        }
    }

    /// Seconds until the time is over.
    fn seconds_left(&self) -> Option<f64> {
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
        for report in reports_of(plan).into_iter().filter(|report| report.task == task) {
            before.failed.extend(report.failed().into_iter().map(|(job, ..)| job));
            if report.end().is_none() {
                for job in report.open() {
                    *before.losses.entry(job).or_default() += 1;
                }
            }
        }
        before
    }
}

/// Seconds that were measured against those that were estimated.
#[derive(Debug, Clone, Copy, Default)]
struct Pace {
    measured: f64,
    estimated: f64,
}

impl Pace {
    /// By what an estimate is multiplied.
    fn factor(self) -> f64 {
        if self.estimated > 0.0 { (self.measured / self.estimated).clamp(1e-3, 1e3) } else { 1.0 }
    }
}

/// What the lanes of a task share.
struct Shop<'a> {
    worker: &'a Worker<'a>,
    partial: PathBuf,
    kept: &'a Kept,
    queue: Mutex<Vec<Piece>>,
    pace: Mutex<Pace>,
    looked: Mutex<Instant>,
    /// Begin nothing more.
    stop: AtomicBool,
    out_of_time: AtomicBool,
    /// Pieces that were begun and not finished.
    interrupted: AtomicUsize,
    failed: AtomicUsize,
    /// A disk that does not take results ends the task.
    trouble: Mutex<Option<Diagnostic>>,
    /// Estimated seconds of all pieces.
    total: f64,
    monitor: &'a dyn Monitor,
    report: &'a (dyn Fn(TaskEvent) + Sync),
}

/// A panic is caught inside a job; nothing is left half-changed behind these locks.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How a piece ended.
enum PieceEnd {
    Done {
        diverged: usize,
    },
    /// Another task has done it.
    ThereAlready,
    Failed(FailureKind, String),
    /// The task ends before the piece does.
    Interrupted,
}

impl Shop<'_> {
    fn queue(&self) -> MutexGuard<'_, Vec<Piece>> {
        locked(&self.queue)
    }

    /// Runs all lanes to their end.
    fn run(&self) -> Result<(), Diagnostic> {
        let lanes = self.lanes();
        let working = AtomicUsize::new(lanes.len());
        std::thread::scope(|scope| {
            scope.spawn(|| self.keep_alive(&working));
            for threads in lanes {
                let working = &working;
                scope.spawn(move || {
                    self.lane(threads);
                    working.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        if let Some(trouble) = locked(&self.trouble).take() {
            return Err(trouble);
        }
        self.kept.places.journals().sync().map_err(|error| unwritable(&self.partial, &error))
    }

    /// The threads of every lane: one lane per core, fewer where there are fewer pieces or less memory.
    fn lanes(&self) -> Vec<usize> {
        let queue = self.queue();
        let threads = match self.worker.limits.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let available = self.worker.limits.memory.unwrap_or(1e9 * available_gigabytes());
        let mut memory: Vec<f64> = queue.iter().map(|piece| piece.memory).collect();
        memory.sort_by(|a, b| b.total_cmp(a));
        let mut used = 0.0;
        let fitting = memory.iter().take_while(|bytes| {
            used += **bytes;
            used <= available
        });
        let threads_or_one = if self.worker.limits.alone.is_some() { 1 } else { threads };
        let lanes = fitting.count().clamp(1, threads_or_one).min(queue.len()).max(1);
        (0..lanes).map(|lane| (lane + 1) * threads / lanes - lane * threads / lanes).collect()
    }

    /// Signs of life, and results forced to the disk, while lanes work.
    fn keep_alive(&self, working: &AtomicUsize) {
        let (mut beaten, mut synced) = (Instant::now(), Instant::now());
        while working.load(Ordering::SeqCst) > 0 {
            std::thread::sleep(Duration::from_millis(20));
            if beaten.elapsed().as_secs() >= HEARTBEAT {
                (self.report)(TaskEvent::Beat { memory: memory_in_use() });
                beaten = Instant::now();
            }
            if synced.elapsed() >= SYNC {
                // Where this fails, the sync at the end says so.
                let _ = self.kept.places.journals().sync();
                synced = Instant::now();
            }
        }
    }

    fn lane(&self, threads: usize) {
        let pool = match rayon::ThreadPoolBuilder::new().num_threads(threads).build() {
            Ok(pool) => pool,
            Err(error) => {
                *locked(&self.trouble) =
                    Some(Diagnostic::new(format!("cannot start {threads} threads: {error}")));
                return;
            }
        };
        while let Some(piece) = self.next(threads) {
            let begun = Instant::now();
            (self.report)(TaskEvent::Start { job: piece.job.clone() });
            let end = pool.install(|| self.compute(&piece, threads));
            let seconds = begun.elapsed().as_secs_f64();
            let job = piece.job.clone();
            match end {
                Ok(PieceEnd::Done { diverged }) => {
                    (self.report)(TaskEvent::Done { job, seconds, estimated: piece.seconds, diverged });
                }
                Ok(PieceEnd::ThereAlready) => {
                    (self.report)(TaskEvent::Done { job, seconds: 0.0, estimated: 0.0, diverged: 0 });
                }
                Ok(PieceEnd::Failed(kind, why)) => {
                    self.failed.fetch_add(1, Ordering::SeqCst);
                    (self.report)(TaskEvent::Failed { job, kind, why });
                    if self.worker.limits.fail_fast {
                        self.stop.store(true, Ordering::SeqCst);
                    }
                }
                Ok(PieceEnd::Interrupted) => {
                    self.interrupted.fetch_add(1, Ordering::SeqCst);
                }
                Err(trouble) => {
                    self.interrupted.fetch_add(1, Ordering::SeqCst);
                    self.stop.store(true, Ordering::SeqCst);
                    locked(&self.trouble).get_or_insert(trouble);
                }
            }
        }
    }

    /// Whether there is a reason to begin nothing more.
    fn ends(&self) -> bool {
        self.monitor.cancelled() || self.stop.load(Ordering::SeqCst)
    }

    /// Whether so many estimated seconds of one core fit into the time that is left.
    fn fits(&self, seconds: f64, threads: usize) -> bool {
        let factor = locked(&self.pace).factor();
        self.worker.seconds_left().is_none_or(|left| seconds * factor / threads as f64 <= left)
    }

    /// The longest piece that fits into the time that is left.
    fn next(&self, threads: usize) -> Option<Piece> {
        if self.ends() {
            return None;
        }
        let mut queue = self.queue();
        let fitting = queue.iter().position(|piece| self.fits(self.worker.least(piece), threads));
        if fitting.is_none() && !queue.is_empty() {
            self.out_of_time.store(true, Ordering::SeqCst);
        }
        Some(queue.remove(fitting?))
    }

    fn compute(&self, piece: &Piece, threads: usize) -> Result<PieceEnd, Diagnostic> {
        {
            let mut looked = locked(&self.looked);
            if looked.elapsed() > LOOK_AROUND {
                self.kept.places.journals().refresh();
                *looked = Instant::now();
            }
        }
        match piece.job {
            Job::Run(run, first, end) => self.compute_run(piece, run, first..end, threads),
            Job::Scan(scan, first, end) => self.compute_scan(piece, scan, first..end),
        }
    }

    fn keep(&self, kind: RecordKind, key: &str, payload: &[u8]) -> Result<(), Diagnostic> {
        self.kept
            .places
            .journals()
            .append(kind, key, payload)
            .map_err(|error| unwritable(&self.partial, &error))
    }

    /// Notes how long something took on how many threads, against its estimate.
    fn note_pace(&self, begun: Instant, threads: usize, estimated: f64) {
        let mut pace = locked(&self.pace);
        pace.measured += begun.elapsed().as_secs_f64() * threads as f64;
        pace.estimated += estimated;
        self.monitor.advance(estimated / self.total);
    }

    /// What is missing of some replicas of a run, part by part.
    fn compute_run(
        &self,
        piece: &Piece,
        index: usize,
        replicas: Range<u32>,
        threads: usize,
    ) -> Result<PieceEnd, Diagnostic> {
        let run = &self.worker.experiment.runs[index];
        let places = &self.kept.places;
        if places.has_table(&run.key) {
            return Ok(PieceEnd::ThereAlready);
        }
        let each = piece.seconds / f64::from(replicas.end - replicas.start);
        let missing = if run.schedule.splits() {
            Tiling::of(places.parts(&run.key), run.schedule.replicas()).missing_in(&replicas)
        } else {
            vec![replicas]
        };
        if missing.is_empty() {
            return Ok(PieceEnd::ThereAlready);
        }
        let mut diverged = 0;
        for mut rest in missing {
            while rest.start < rest.end {
                let length = self.part_length(rest.end - rest.start, each, threads, run.schedule.splits());
                let part = rest.start..rest.start + length;
                let estimated = each * f64::from(length);
                if self.ends() {
                    return Ok(PieceEnd::Interrupted);
                }
                if !self.fits(estimated, threads) {
                    self.out_of_time.store(true, Ordering::SeqCst);
                    return Ok(PieceEnd::Interrupted);
                }
                let begun = Instant::now();
                let monitor = Timed { monitor: self.monitor, deadline: self.worker.limits.deadline };
                match compute_part(run, &part, &monitor) {
                    Ok(computed) => {
                        self.keep(computed.kind, &computed.key, &computed.payload)?;
                        let outcomes = &computed.table.outcomes;
                        diverged += outcomes.iter().filter(|o| matches!(o, Outcome::Diverged { .. })).count();
                    }
                    Err(NoPart::Interrupted) => {
                        self.out_of_time.store(true, Ordering::SeqCst);
                        return Ok(PieceEnd::Interrupted);
                    }
                    Err(NoPart::OutOfMemory(why)) => {
                        return Ok(PieceEnd::Failed(FailureKind::OutOfMemory, why));
                    }
                    Err(NoPart::Error(why)) => return Ok(PieceEnd::Failed(FailureKind::Error, why)),
                    Err(NoPart::Panic(why)) => return Ok(PieceEnd::Failed(FailureKind::Panic, why)),
                }
                self.note_pace(begun, threads, estimated);
                rest.start = part.end;
            }
        }
        Ok(PieceEnd::Done { diverged })
    }

    /// How many of the next replicas are computed before they are kept.
    fn part_length(&self, rest: u32, each: f64, threads: usize, splits: bool) -> u32 {
        if !splits {
            return rest;
        }
        let each = each * locked(&self.pace).factor() / threads as f64;
        let left = self.worker.seconds_left().unwrap_or(f64::INFINITY);
        // As many as are worth keeping, whole groups of them, and no more than the time allows.
        let worth = (KEEP_AFTER / each).min(f64::from(u32::MAX)) as u32;
        let groups = worth.max(1).div_ceil(GROUP) * GROUP;
        let wanted = if each * f64::from(GROUP) > 10.0 * KEEP_AFTER { worth.max(1) } else { groups };
        let allowed = (left / each).clamp(1.0, f64::from(u32::MAX)) as u32;
        // A short rest is not worth a record of its own.
        let wanted = if rest < wanted + wanted / 2 { rest } else { wanted };
        wanted.min(allowed).min(rest)
    }

    /// What is missing of some points of a scan, several at a time.
    fn compute_scan(&self, piece: &Piece, scan: usize, points: Range<usize>) -> Result<PieceEnd, Diagnostic> {
        let experiment = self.worker.experiment;
        let (spec, grid) = (&experiment.resolved.scan[scan], &experiment.grids[scan]);
        let each = piece.seconds / points.len() as f64;
        let mut failure = None;
        for point in points {
            let (inputs, key) = experiment.inputs_at(spec, &grid[point]);
            let known = self.kept.missing_points(scan, &(point..point + 1)).is_empty();
            if known || self.kept.places.has_answer(&key) {
                continue;
            }
            if self.ends() {
                return Ok(PieceEnd::Interrupted);
            }
            if !self.fits(each, 1) {
                self.out_of_time.store(true, Ordering::SeqCst);
                return Ok(PieceEnd::Interrupted);
            }
            let begun = Instant::now();
            let answer = compute_answer(spec, &inputs, &grid[point]);
            experiment.files.check_unchanged()?;
            if is_final(&answer) {
                let payload = serde_json::to_vec(&answer).expect("answers are plain data");
                self.keep(RecordKind::Answer, &key, &payload)?;
            } else if let Err(why) = answer {
                failure.get_or_insert(format!("{}: {why}", grid[point].label()));
            }
            self.note_pace(begun, 1, each);
        }
        Ok(match failure {
            None => PieceEnd::Done { diverged: 0 },
            Some(why) => PieceEnd::Failed(FailureKind::Panic, why),
        })
    }
}

/// Passes on the wish to stop, and stops when the time is over. Progress is counted by the piece, not by the step.
struct Timed<'a> {
    monitor: &'a dyn Monitor,
    deadline: Option<Instant>,
}

impl Monitor for Timed<'_> {
    fn advance(&self, _fraction: f64) {}
    fn cancelled(&self) -> bool {
        self.monitor.cancelled() || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// Bytes of memory that this process has, as the system counts them; 0 where it does not say.
fn memory_in_use() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|l| l.split_whitespace().next()).and_then(|n| n.parse::<u64>().ok());
    kilobytes.map_or(0, |k| k * 1024)
}
