//! A progress bar on a terminal, silence elsewhere, and Ctrl-C as the wish to stop.

use didact_model::Monitor;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

/// From now on Ctrl-C asks running work to stop; a second one ends the process.
pub(crate) fn listen() {
    let _ = ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::SeqCst) {
            std::process::exit(2);
        }
    });
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
        let style = ProgressStyle::with_template("{msg} [{bar:30}] {percent:>3}% {elapsed} (eta {eta})");
        bar.set_style(style.expect("a valid template").progress_chars("=> "));
        bar.set_message(title.chars().take(48).collect::<String>());
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
    fn cancelled(&self) -> bool {
        STOP.load(Ordering::SeqCst)
    }
}
