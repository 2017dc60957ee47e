//! Work that runs on threads of its own while the calling thread waits for it, and for Ctrl-C.

use crate::pool;
use didact::experiment::frontend::SharedMonitor;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// How often the calling thread looks for signals and reports progress.
const SLICE: Duration = Duration::from_millis(100);

/// Work that has been started.
pub(crate) struct Task<T> {
    shared: Arc<Shared<T>>,
    process: u32,
}

struct Shared<T> {
    monitor: SharedMonitor,
    result: Mutex<Slot<T>>,
    changed: Condvar,
}

/// The result of the work.
enum Slot<T> {
    Running,
    Done(T),
    Panicked(String),
    Taken,
}

/// How a wait ended.
pub(crate) enum Waited<T> {
    Done(T),
    TimedOut,
}

impl<T: Send + 'static> Task<T> {
    /// Starts work on a pool of its own. Nothing of Python may be inside.
    pub(crate) fn start(
        threads: usize,
        work: impl FnOnce(&SharedMonitor) -> T + Send + 'static,
    ) -> PyResult<Self> {
        let pool = pool::take(threads)?;
        let shared = Arc::new(Shared {
            monitor: SharedMonitor::default(),
            result: Mutex::new(Slot::Running),
            changed: Condvar::new(),
        });
        let (inside, own) = (Arc::clone(&shared), Arc::clone(&pool));
        pool.spawn(move || {
            let result = catch_unwind(AssertUnwindSafe(|| work(&inside.monitor)));
            pool::put_back(own);
            inside.set(match result {
                Ok(result) => Slot::Done(result),
                Err(panic) => Slot::Panicked(words(panic.as_ref())),
            });
        });
        Ok(Self { shared, process: std::process::id() })
    }

    /// The fraction that is done.
    pub(crate) fn fraction(&self) -> f64 {
        self.shared.monitor.fraction()
    }

    /// Asks the work to end.
    pub(crate) fn cancel(&self) {
        self.shared.monitor.cancel();
    }

    /// True when the work has ended.
    pub(crate) fn is_done(&self) -> bool {
        !matches!(*self.shared.lock(), Slot::Running)
    }

    /// Waits with the interpreter released. Every tenth of a second signals are looked for and `report` hears the fraction
    /// that is done. Ctrl-C asks the work to end, waits until it has (a second one does not), and is raised.
    pub(crate) fn wait(
        &self,
        py: Python<'_>,
        timeout: Option<Duration>,
        mut report: impl FnMut(f64) -> PyResult<()>,
    ) -> PyResult<Waited<T>> {
        if self.process != std::process::id() {
            return Err(PyRuntimeError::new_err(
                "this job runs in the process that started it, from which this one was forked",
            ));
        }
        let end = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if py.detach(|| self.shared.ended_within(left.map_or(SLICE, |left| left.min(SLICE)))) {
                report(1.0)?;
                return self.take().map(Waited::Done);
            }
            if let Err(interrupt) = py.check_signals().and_then(|()| report(self.fraction())) {
                self.cancel();
                while !py.detach(|| self.shared.ended_within(SLICE)) {
                    py.check_signals()?;
                }
                return Err(interrupt);
            }
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(Waited::TimedOut);
            }
        }
    }

    /// Waits to the end without a report.
    pub(crate) fn finish(&self, py: Python<'_>) -> PyResult<T> {
        match self.wait(py, None, |_| Ok(()))? {
            Waited::Done(result) => Ok(result),
            Waited::TimedOut => Err(PyRuntimeError::new_err("a wait without end has ended")),
        }
    }

    fn take(&self) -> PyResult<T> {
        match std::mem::replace(&mut *self.shared.lock(), Slot::Taken) {
            Slot::Done(result) => Ok(result),
            Slot::Panicked(text) => Err(PyRuntimeError::new_err(format!(
                "didact failed by a mistake of its own: {text}\nhint: please report this with the description"
            ))),
            Slot::Running | Slot::Taken => {
                Err(PyRuntimeError::new_err("the result of this job has been taken"))
            }
        }
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> std::sync::MutexGuard<'_, Slot<T>> {
        self.result.lock().expect("no thread panics while it holds the lock")
    }

    fn set(&self, slot: Slot<T>) {
        *self.lock() = slot;
        self.changed.notify_all();
    }

    fn ended_within(&self, time: Duration) -> bool {
        let running = |slot: &mut Slot<T>| matches!(slot, Slot::Running);
        let (slot, _) =
            self.changed.wait_timeout_while(self.lock(), time, running).expect("no thread panics");
        !matches!(*slot, Slot::Running)
    }
}

/// A job that nobody waits for any more is asked to end.
impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.shared.monitor.cancel();
    }
}

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without words".into())
}
