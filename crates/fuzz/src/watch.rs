//! The input at work, kept in a file, and a thread that looks whether it takes too long or too much memory.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// One input may take so much processor time: on a busy machine the clock says nothing about an input.
const LONGEST: Duration = Duration::from_secs(20);

/// And so long by the clock, which finds an input that waits for something that never comes.
const LONGEST_WAIT: Duration = Duration::from_mins(10);

/// And the process so much memory, in bytes.
const MOST_MEMORY: u64 = 2 << 30;

/// Looks after one run.
pub(crate) struct Watch {
    file: Mutex<File>,
    path: PathBuf,
    /// Microseconds from the start of the run to that of the input at work; 0 when there is none.
    since: Arc<AtomicU64>,
    begun: Instant,
}

impl Watch {
    pub(crate) fn start(target: &str) -> Self {
        // A file system in memory where there is one.
        let memory = PathBuf::from("/dev/shm");
        let folder = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let path = folder.join(format!("didact-fuzz-{target}-{}.input", std::process::id()));
        let file = File::create(&path).unwrap_or_else(|e| panic!("cannot write {}: {e}", path.display()));
        let (since, begun) = (Arc::new(AtomicU64::new(0)), Instant::now());
        let (watched, shown) = (Arc::clone(&since), path.clone());
        std::thread::spawn(move || {
            // The input at work, by the time at which it began, and the processor time of the process when it was first seen.
            let mut seen = (0, Duration::ZERO);
            loop {
                std::thread::sleep(Duration::from_millis(200));
                let input = watched.load(Ordering::Relaxed);
                let waited = begun.elapsed().saturating_sub(Duration::from_micros(input));
                let worked = processor_time().unwrap_or(waited);
                if input != seen.0 {
                    seen = (input, worked);
                }
                let late = input != 0 && (worked.saturating_sub(seen.1) > LONGEST || waited > LONGEST_WAIT);
                let large = resident_bytes() > MOST_MEMORY;
                if late || large {
                    let what =
                        if late { "an input takes too long" } else { "an input takes too much memory" };
                    let _ = writeln!(std::io::stdout().lock(), "{what}: {}", shown.display());
                    std::process::exit(1);
                }
            }
        });
        Self { file: Mutex::new(file), path, since, begun }
    }

    /// Keeps the input and starts its clock.
    pub(crate) fn begin(&self, input: &[u8]) {
        let mut file = self.file.lock().expect("no thread panics while it holds the file");
        let kept = file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(input));
        kept.and_then(|()| file.set_len(input.len() as u64)).expect("the file of the input can be written");
        self.since.store(self.begun.elapsed().as_micros() as u64 + 1, Ordering::Relaxed);
    }

    pub(crate) fn end(&self) {
        self.since.store(0, Ordering::Relaxed);
    }

    /// Ends a run that found something.
    pub(crate) fn report(&self, what: &str) -> ExitCode {
        let _ = writeln!(std::io::stdout().lock(), "{what}\ninput: {}", self.path.display());
        ExitCode::FAILURE
    }

    /// Ends a run that found nothing.
    pub(crate) fn finish(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// What the last panic said, and where.
pub(crate) struct LastPanic(Arc<Mutex<String>>);

impl LastPanic {
    pub(crate) fn text(&self) -> String {
        self.0.lock().map(|text| text.clone()).unwrap_or_default()
    }
}

/// From now on panics are noted and not printed.
pub(crate) fn remember_panics() -> LastPanic {
    let last = Arc::new(Mutex::new(String::new()));
    let noted = Arc::clone(&last);
    std::panic::set_hook(Box::new(move |panic| {
        if let Ok(mut text) = noted.lock() {
            *text = panic.to_string();
        }
    }));
    LastPanic(last)
}

/// Processor time of all threads of the process; nothing where the system does not say.
fn processor_time() -> Option<Duration> {
    // Clock ticks, of which Linux tells programs 100 a second on every machine.
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    let numbers = text.rsplit_once(')')?.1;
    let ticks: u64 = numbers.split_whitespace().skip(11).take(2).map(|n| n.parse().unwrap_or(0)).sum();
    Some(Duration::from_millis(10 * ticks))
}

/// Resident memory of the process; 0 where the system does not say.
pub(crate) fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}
