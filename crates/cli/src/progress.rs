//! A progress bar on a terminal, silence elsewhere, and signals as the wish to stop.

use crate::exit;
use didact_experiment::source::printable;
use didact_model::Monitor;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

static STOP: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// How long running work has to stop by itself after a signal. A step of a large integrator, one quadrature or one point of a
/// scan can take longer; nothing is lost by ending the process there, since files are whole or not there at all.
const GRACE: Duration = Duration::from_millis(150);

/// How often the program looks for a signal.
const LOOK: Duration = Duration::from_millis(20);

/// From now on Ctrl-C, the SIGTERM of a batch system and a terminal that closes ask running work to stop, so that what is
/// done is kept; work that does not stop within a moment is ended. A second signal ends the process at once, with the code that
/// shells give it (130, 143, 129).
pub(crate) fn listen() {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order: the first signal must find the flag still down. A signal that cannot be heard keeps its meaning.
        let _ = signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&STOP));
        let _ = signal_hook::flag::register(signal, Arc::clone(&STOP));
    }
    std::thread::spawn(|| {
        while !STOP.load(Ordering::SeqCst) {
            std::thread::sleep(LOOK);
        }
        std::thread::sleep(GRACE);
        complain!("error: interrupted\nhint: what was done is kept; the same command goes on from there");
        std::process::exit(i32::from(exit::ERROR));
    });
}

/// How long a task of a sweep has to stop by itself: batch systems give half a minute.
const TASK_GRACE: Duration = Duration::from_secs(8);

/// The same for a task of a sweep: SIGUSR1 is a signal of batch systems too, the end of stdin says the same, and the exit code is
/// that of work that can go on.
pub(crate) fn listen_as_task() {
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGUSR1] {
        let _ = signal_hook::flag::register(signal, Arc::clone(&STOP));
    }
    std::thread::spawn(|| {
        let (mut stdin, mut piece) = (std::io::stdin().lock(), [0; 64]);
        while stdin.read(&mut piece).is_ok_and(|length| length > 0) {}
        STOP.store(true, Ordering::SeqCst);
    });
    std::thread::spawn(|| {
        while !STOP.load(Ordering::SeqCst) {
            std::thread::sleep(LOOK);
        }
        std::thread::sleep(TASK_GRACE);
        std::process::exit(i32::from(exit::TRY_AGAIN));
    });
}

/// A monitor that only hears the wish to stop.
pub(crate) struct Silent;

impl Monitor for Silent {
    fn advance(&self, _fraction: f64) {}
    fn cancelled(&self) -> bool {
        STOP.load(Ordering::SeqCst)
    }
}

const TICKS: f64 = 1000.0;

/// The bar of one experiment.
pub(crate) struct Progress {
    bar: ProgressBar,
    done: Mutex<f64>,
}

impl Progress {
    pub(crate) fn new(title: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(TICKS as u64), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template(
            "{prefix} [{bar:30}] {percent:>3}% {elapsed} (eta {eta}) {wide_msg}",
        );
        bar.set_style(style.expect("a valid template").progress_chars("=> "));
        bar.set_prefix(printable(title).chars().take(48).collect::<String>());
        Self { bar, done: Mutex::new(0.0) }
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Monitor for Progress {
    fn advance(&self, fraction: f64) {
        let mut done = self.done.lock().expect("no thread panics while it holds the lock");
        *done += fraction;
        self.bar.set_position((*done * TICKS).clamp(0.0, TICKS) as u64);
    }
    fn describe(&self, line: &str) {
        self.bar.set_message(line.to_string());
    }
    fn cancelled(&self) -> bool {
        STOP.load(Ordering::SeqCst)
    }
}
