//! The lanes of a task: its pieces, longest first, several at a time, each kept as soon as it is done.
//!
//! The cores of a task are divided into *lanes*. A lane takes one piece after the other and has threads of its own, so that pieces
//! do not wait for each other. Nothing is begun that does not fit into the time that is left.

use super::log::{FailureKind, HEARTBEAT, TaskEnd, TaskEvent};
use super::pieces::{Job, Kept, Piece};
use super::work::{TaskOutcome, Worker};
use crate::compute::{NoPart, compute_answer, compute_part, is_final};
use crate::execute::unwritable;
use crate::experiment::Run;
use crate::source::Diagnostic;
use crate::store::Tiling;
use crate::store::journal::RecordKind;
use crate::store::places::partial_folder;
use didact_model::engine::available_gigabytes;
use didact_model::{Monitor, Outcome};
use std::ops::Range;
use std::path::PathBuf;
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
pub(super) struct Lanes<'a> {
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

/// Counts a lane that works, until it is dropped.
struct AtWork<'a>(&'a AtomicUsize);

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
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

impl<'a> Lanes<'a> {
    /// The lanes of a task, with so many pieces that failed before.
    pub(super) fn new(
        worker: &'a Worker<'a>,
        kept: &'a Kept,
        queue: Vec<Piece>,
        failed: usize,
        (monitor, report): (&'a dyn Monitor, &'a (dyn Fn(TaskEvent) + Sync)),
    ) -> Self {
        let total: f64 = queue.iter().map(|piece| piece.seconds).sum();
        Self {
            worker,
            partial: partial_folder(worker.root, worker.experiment.folder_name()),
            kept,
            queue: Mutex::new(queue),
            pace: Mutex::new(Pace::default()),
            looked: Mutex::new(Instant::now()),
            stop: AtomicBool::new(failed > 0 && worker.limits.fail_fast),
            out_of_time: AtomicBool::new(false),
            interrupted: AtomicUsize::new(0),
            failed: AtomicUsize::new(failed),
            trouble: Mutex::new(None),
            total: total.max(f64::MIN_POSITIVE),
            monitor,
            report,
        }
    }

    fn queue(&self) -> MutexGuard<'_, Vec<Piece>> {
        locked(&self.queue)
    }

    /// Runs all lanes to their end.
    pub(super) fn run(&self) -> Result<TaskOutcome, Diagnostic> {
        let lanes = self.threads();
        let working = AtomicUsize::new(lanes.len());
        std::thread::scope(|scope| {
            scope.spawn(|| self.keep_alive(&working));
            for threads in lanes {
                let working = &working;
                scope.spawn(move || {
                    // Also where a lane panics: otherwise nobody would end the signs of life, and the panic would not be seen.
                    let _at_work = AtWork(working);
                    self.lane(threads);
                });
            }
        });
        if let Some(trouble) = locked(&self.trouble).take() {
            return Err(trouble);
        }
        self.kept.places.journals().sync().map_err(|error| unwritable(&self.partial, &error))?;
        let left = self.queue().len() + self.interrupted.load(Ordering::SeqCst);
        let end = match () {
            () if left == 0 => TaskEnd::Finished,
            () if self.monitor.cancelled() => TaskEnd::Signal,
            () if self.out_of_time.load(Ordering::SeqCst) => TaskEnd::Time,
            () => TaskEnd::FailFast,
        };
        Ok(TaskOutcome { end, failed: self.failed.load(Ordering::SeqCst), left })
    }

    /// The threads of every lane: one lane per core, fewer where there are fewer pieces or less memory.
    fn threads(&self) -> Vec<usize> {
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
        // A record that is there may be damaged.
        if places.has_table(&run.key) && places.table(&run.key).is_some() {
            return Ok(PieceEnd::ThereAlready);
        }
        let planned = match self.with_protocol(run)? {
            Ok(planned) => planned,
            Err(why) => return Ok(self.without_part(why)),
        };
        let run = planned.as_ref().unwrap_or(run);
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
                    Err(why) => return Ok(self.without_part(why)),
                }
                self.note_pace(begun, threads, estimated);
                rest.start = part.end;
            }
        }
        Ok(PieceEnd::Done { diverged })
    }

    /// A run that is trained by a protocol, planned with it; `None` for other runs. An optimisation that no task has kept yet is done here:
    /// two tasks may do the same one, and find the same.
    fn with_protocol(&self, run: &Run) -> Result<Result<Option<Run>, NoPart>, Diagnostic> {
        let experiment = self.worker.experiment;
        let Some(optimisation) = experiment.optimisation_of(run) else { return Ok(Ok(None)) };
        let table = if let Some(known) = self.kept.places.table(&optimisation.key) {
            known.result
        } else {
            let monitor = Timed { monitor: self.monitor, deadline: self.worker.limits.deadline };
            match compute_part(optimisation, &(0..1), &monitor) {
                Ok(computed) => {
                    self.keep(computed.kind, &computed.key, &computed.payload)?;
                    computed.table
                }
                Err(why) => return Ok(Err(why)),
            }
        };
        Ok(experiment.planned_with(run, Some(&Ok(table))).map_err(NoPart::Error))
    }

    /// How a piece ends of which a part could not be computed.
    fn without_part(&self, why: NoPart) -> PieceEnd {
        match why {
            NoPart::Interrupted => {
                self.out_of_time.store(true, Ordering::SeqCst);
                PieceEnd::Interrupted
            }
            NoPart::OutOfMemory(why) => PieceEnd::Failed(FailureKind::OutOfMemory, why),
            NoPart::Error(why) => PieceEnd::Failed(FailureKind::Error, why),
            NoPart::Panic(why) => PieceEnd::Failed(FailureKind::Panic, why),
        }
    }

    /// How many of the next replicas are computed before they are kept.
    fn part_length(&self, rest: u32, each: f64, threads: usize, splits: bool) -> u32 {
        if !splits {
            return rest;
        }
        let each = each * locked(&self.pace).factor() / threads as f64;
        let left = self.worker.seconds_left().unwrap_or(f64::INFINITY);
        // As many as are worth keeping, whole groups of them, and no more than the time allows.
        let worth = (KEEP_AFTER / each).min(f64::from(rest)) as u32;
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
            if known || self.kept.places.answer(&key).is_some() {
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
