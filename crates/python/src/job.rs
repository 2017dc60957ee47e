//! Work that is under way.

use crate::description::claims;
use crate::errors::run_error;
use crate::plain::{python_of, table};
use crate::task::{Task, Waited};
use didact::experiment::sweep::work::TaskOutcome;
use didact::experiment::{Diagnostic, Failure, Finished};
use didact::model::Trajectory;
use pyo3::exceptions::{PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::time::Duration;

/// An experiment that runs.
#[pyclass(frozen, module = "didact._core")]
pub(crate) struct Job {
    task: Task<Result<Finished, Failure>>,
}

impl Job {
    pub(crate) fn new(task: Task<Result<Finished, Failure>>) -> Self {
        Self { task }
    }
}

#[pymethods]
impl Job {
    /// The fraction of the work that is done, between 0 and 1.
    #[getter]
    fn progress(&self) -> f64 {
        self.task.fraction()
    }

    /// True when the work has ended, in whatever way.
    #[getter]
    fn done(&self) -> bool {
        self.task.is_done()
    }

    /// Asks the work to end. Tables that are finished are kept.
    fn cancel(&self) {
        self.task.cancel();
    }

    /// Waits, and returns what the experiment found. `report` is called with the fraction that is done.
    #[pyo3(signature = (timeout = None, report = None))]
    fn wait<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
        report: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        match waited(py, &self.task, timeout, report)? {
            Ok(done) => finished(py, &done),
            Err(failure) => Err(run_error(py, &failure)),
        }
    }
}

/// One run in memory.
#[pyclass(frozen, module = "didact._core")]
pub(crate) struct SolveJob {
    task: Task<Result<Trajectory, String>>,
}

impl SolveJob {
    pub(crate) fn new(task: Task<Result<Trajectory, String>>) -> Self {
        Self { task }
    }
}

#[pymethods]
impl SolveJob {
    /// Waits, and returns the table. `report` is called with the fraction that is done.
    #[pyo3(signature = (report = None))]
    fn wait<'py>(&self, py: Python<'py>, report: Option<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyDict>> {
        match waited(py, &self.task, None, report)? {
            Ok(trajectory) => table(py, &trajectory),
            Err(text) => Err(run_error(py, &Failure::Error(Diagnostic::new(text)))),
        }
    }
}

/// One share of an experiment.
#[pyclass(frozen, module = "didact._core")]
pub(crate) struct ShareJob {
    task: Task<Result<TaskOutcome, Diagnostic>>,
}

impl ShareJob {
    pub(crate) fn new(task: Task<Result<TaskOutcome, Diagnostic>>) -> Self {
        Self { task }
    }
}

#[pymethods]
impl ShareJob {
    /// Waits, and returns how many pieces of the share failed, and how many were not done.
    fn wait(&self, py: Python<'_>) -> PyResult<(usize, usize)> {
        match waited(py, &self.task, None, None)? {
            Ok(outcome) => Ok((outcome.failed, outcome.left)),
            Err(error) => Err(run_error(py, &Failure::Error(error))),
        }
    }
}

fn waited<T: Send + 'static>(
    py: Python<'_>,
    task: &Task<T>,
    timeout: Option<f64>,
    report: Option<Bound<'_, PyAny>>,
) -> PyResult<T> {
    let limit = match timeout.map(Duration::try_from_secs_f64) {
        None => None,
        Some(Ok(limit)) => Some(limit),
        Some(Err(_)) => {
            return Err(PyValueError::new_err("the timeout must be a number of seconds, not negative"));
        }
    };
    let tell = |fraction: f64| report.as_ref().map_or(Ok(()), |report| report.call1((fraction,)).map(|_| ()));
    match task.wait(py, limit, tell)? {
        Waited::Done(result) => Ok(result),
        Waited::TimedOut => Err(PyTimeoutError::new_err("the job has not ended yet")),
    }
}

/// A finished experiment as plain data.
pub(crate) fn finished<'py>(py: Python<'py>, done: &Finished) -> PyResult<Bound<'py, PyDict>> {
    let made = PyDict::new(py);
    made.set_item("folder", &done.folder)?;
    made.set_item("reused", done.reused)?;
    made.set_item("taken_over", done.taken_over)?;
    made.set_item("healed", done.healed.iter().map(|damage| damage.file.clone()).collect::<Vec<_>>())?;
    made.set_item("claims", claims(py, &done.claims)?)?;
    made.set_item("failures", &done.failures)?;
    made.set_item("measures", python_of(py, &serde_json::to_value(&done.measured).expect("plain data"))?)?;
    Ok(made)
}
