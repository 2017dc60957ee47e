//! The process under test: a run of a description as `didact run` does it, with faults on purpose.

use didact_experiment::store::disk::{self, Change, Faults};
use didact_experiment::{Experiment, Failure, Size, Source};
use didact_model::NoMonitor;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// ENOSPC, "no space left on device", as the operating system numbers it.
const NO_SPACE: i32 = 28;

/// What goes wrong; 0 and empty words stand for nothing.
#[derive(Debug, Default)]
struct Plan {
    /// The k-th change of the disk finds no space.
    fail_at: u64,
    /// All changes from the k-th on find none.
    fail_from: u64,
    /// The process ends before the k-th change, without any order.
    die_at: u64,
    /// Reads give a few bytes at a time and are interrupted, as this number has it.
    short_reads: u64,
    /// Seconds by which the clock jumps.
    jump: u64,
    /// The job that panics, `run sgd` or `scan s`, …
    panic_in: String,
    /// … at its k-th time.
    panic_at: u64,
    changes: AtomicU64,
    reads: AtomicU64,
    jobs: AtomicU64,
}

impl Faults for Plan {
    fn change(&self, _: Change, _: &Path) -> io::Result<()> {
        let number = self.changes.fetch_add(1, Ordering::SeqCst) + 1;
        if number == self.die_at {
            // No destructor and no hook runs.
            std::process::abort();
        }
        if number == self.fail_at || (self.fail_from > 0 && number >= self.fail_from) {
            return Err(io::Error::from_raw_os_error(NO_SPACE));
        }
        Ok(())
    }

    fn read(&self, asked: usize) -> io::Result<usize> {
        if self.short_reads == 0 {
            return Ok(asked);
        }
        let number = self.reads.fetch_add(1, Ordering::Relaxed);
        let mixed = (number ^ self.short_reads).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        if mixed.is_multiple_of(5) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        Ok(1 + mixed as usize % 64)
    }

    fn clock_jump(&self) -> Duration {
        Duration::from_secs(self.jump)
    }

    fn job(&self, name: &str) {
        let is_due = name == self.panic_in && self.jobs.fetch_add(1, Ordering::SeqCst) + 1 == self.panic_at;
        assert!(!is_due, "a panic on purpose in {name}");
    }
}

/// `worker FILE OUT [threads=4] [fresh] [count] [fail-at=7] …`; the exit codes are those of `didact run`.
pub(crate) fn main(arguments: &[String]) -> ExitCode {
    match work(arguments) {
        Ok(code) => ExitCode::from(code),
        Err(why) => {
            let _ = writeln!(io::stderr(), "error: {why}");
            ExitCode::from(2)
        }
    }
}

fn work(arguments: &[String]) -> Result<u8, String> {
    let [file, out, words @ ..] = arguments else { return Err("worker FILE OUT [faults]".into()) };
    let (mut plan, mut threads, mut fresh, mut count) = (Plan::default(), 1, false, false);
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let number = || value.parse::<u64>().map_err(|_| format!("`{word}` has no number"));
        match key {
            "threads" => threads = number()?,
            "fresh" => fresh = true,
            "count" => count = true,
            "fail-at" => plan.fail_at = number()?,
            "fail-from" => plan.fail_from = number()?,
            "die-at" => plan.die_at = number()?,
            "short-reads" => plan.short_reads = number()?,
            "jump" => plan.jump = number()?,
            "panic-in" => plan.panic_in = value.into(),
            "panic-at" => plan.panic_at = number()?,
            _ => return Err(format!("unknown fault `{word}`")),
        }
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads as usize);
    pool.build_global().map_err(|e| e.to_string())?;
    let plan = Arc::new(plan);
    disk::break_on_purpose(Box::new(Shared(Arc::clone(&plan))));
    let source = Source::read(Path::new(file)).map_err(|e| e.to_string())?;
    let experiment = Experiment::new(source, Size::Normal, None).map_err(|e| e.to_string())?;
    let out = Path::new(out);
    let finished =
        if fresh { experiment.execute_fresh(out, &NoMonitor) } else { experiment.execute(out, &NoMonitor) };
    match finished {
        Ok(finished) => {
            if count {
                let _ = writeln!(io::stdout(), "{}", plan.changes.load(Ordering::SeqCst));
            }
            Ok(if finished.failed_jobs > 0 { 3 } else { 0 })
        }
        Err(Failure::Error(diagnostic)) => Err(diagnostic.to_string()),
        Err(Failure::Interrupted(_)) => Err("interrupted".into()),
    }
}

/// The plan, of which the worker itself keeps a copy to read its counts.
struct Shared(Arc<Plan>);

impl Faults for Shared {
    fn change(&self, change: Change, path: &Path) -> io::Result<()> {
        self.0.change(change, path)
    }
    fn read(&self, asked: usize) -> io::Result<usize> {
        self.0.read(asked)
    }
    fn clock_jump(&self) -> Duration {
        self.0.clock_jump()
    }
    fn job(&self, name: &str) {
        self.0.job(name);
    }
}
