//! Descriptions, and experiments that are ready to run.

use crate::errors::description_error;
use crate::job::{Job, ShareJob, SolveJob};
use crate::plain::{map_of, python_of, table, value_of};
use crate::pool::default_threads;
use crate::task::Task;
use didact::experiment::claims::Judged;
use didact::experiment::description::Overrides;
use didact::experiment::frontend::{SharedMonitor, TableReader};
use didact::experiment::measures::Measured;
use didact::experiment::sweep::log::Attempt;
use didact::experiment::sweep::plan::{Asked, MOST_TASKS, TaskCount};
use didact::experiment::sweep::work::TaskOutcome;
use didact::experiment::sweep::{Plan, TaskEvent, TaskLog, WorkLimits, Worker};
use didact::experiment::{Diagnostic, Experiment, Size, Source, execute};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A description and changes to it, checked as a whole.
#[pyclass(frozen, module = "didact._core")]
pub(crate) struct Description {
    source: Source,
    changes: Vec<Overrides>,
    /// The experiment at its normal size.
    checked: Arc<Experiment>,
}

impl Description {
    fn check(py: Python<'_>, source: Source, changes: Vec<Overrides>) -> PyResult<Self> {
        let checked = prepare(py, &source, &changes, Size::Normal, None)?;
        Ok(Self { source, changes, checked })
    }

    fn experiment(&self, py: Python<'_>, size: &str, seed: Option<u64>) -> PyResult<Arc<Experiment>> {
        let size = Size::named(size).map_err(|error| description_error(py, &error))?;
        if size == Size::Normal && seed.is_none() {
            return Ok(Arc::clone(&self.checked));
        }
        prepare(py, &self.source, &self.changes, size, seed)
    }
}

/// Checks a description on threads of this process: a plan asks how many there are, which would start rayon's global pool.
fn prepare(
    py: Python<'_>,
    source: &Source,
    changes: &[Overrides],
    size: Size,
    seed: Option<u64>,
) -> PyResult<Arc<Experiment>> {
    let (source, changes) = (source.clone(), changes.to_vec());
    let task =
        Task::start(default_threads(), move |_| Experiment::with_changes(source, &changes, size, seed))?;
    task.finish(py)?.map(Arc::new).map_err(|error| description_error(py, &error))
}

#[pymethods]
impl Description {
    /// Reads a file.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let source = py.detach(|| Source::read(&path)).map_err(|error| description_error(py, &error))?;
        Self::check(py, source, Vec::new())
    }

    /// Reads a text; the name decides between TOML and JSON and stands in messages.
    #[staticmethod]
    fn of_text(py: Python<'_>, text: String, name: String) -> PyResult<Self> {
        Self::check(py, Source { name, text }, Vec::new())
    }

    /// Takes plain data.
    #[staticmethod]
    fn of_data(py: Python<'_>, data: Bound<'_, PyAny>) -> PyResult<Self> {
        let description = Value::Object(map_of(&data, "the description")?);
        Self::check(py, Source::of_value(&description), Vec::new())
    }

    /// From what `parts` gave.
    #[staticmethod]
    fn of_parts(py: Python<'_>, name: String, text: String, changes: &str) -> PyResult<Self> {
        let changes = serde_json::from_str(changes)
            .map_err(|error| description_error(py, &Diagnostic::new(format!("broken changes: {error}"))))?;
        Self::check(py, Source { name, text }, changes)
    }

    /// Name, text and changes, all as text.
    fn parts(&self) -> (String, String, String) {
        let changes = serde_json::to_string(&self.changes).expect("plain data");
        (self.source.name.clone(), self.source.text.clone(), changes)
    }

    /// The description with other values of some keys, given by their dotted paths.
    fn replace(&self, py: Python<'_>, changes: Bound<'_, PyAny>) -> PyResult<Self> {
        let set: Overrides = map_of(&changes, "the argument of `replace`")?.into_iter().collect();
        let changes = self.changes.iter().cloned().chain([set]).collect();
        Self::check(py, self.source.clone(), changes)
    }

    /// The experiment at a size, ready to run.
    #[pyo3(signature = (size = "normal", seed = None))]
    fn prepare(&self, py: Python<'_>, size: &str, seed: Option<u64>) -> PyResult<Prepared> {
        Ok(Prepared { experiment: self.experiment(py, size, seed)?, tables: TableReader::default() })
    }
}

/// An experiment that has been checked, at one size.
#[pyclass(frozen, module = "didact._core")]
pub(crate) struct Prepared {
    pub(crate) experiment: Arc<Experiment>,
    tables: TableReader,
}

#[pymethods]
impl Prepared {
    /// The title.
    #[getter]
    fn title(&self) -> String {
        self.experiment.resolved.title.clone()
    }

    /// The name of the folder of its results.
    #[getter]
    fn folder_name(&self) -> String {
        self.experiment.folder_name().to_string()
    }

    /// The whole description with every default written out.
    fn resolved<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        python_of(py, &serde_json::to_value(&self.experiment.resolved).expect("plain data"))
    }

    /// The values of the swept keys at every point.
    fn points<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.experiment.points.iter().map(|point| python_of(py, &json!(point.values))).collect()
    }

    /// Every run at every point: name, engine, index of the point and estimated cost.
    fn runs<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let one = |(run, cost): (&didact::experiment::Run, didact::model::Cost)| {
            let row = json!({"run": run.name, "engine": run.schedule.engine.name(), "point": run.point.index,
                             "steps": cost.steps, "memory_bytes": cost.memory, "seconds": cost.seconds});
            python_of(py, &row)
        };
        self.experiment.runs.iter().zip(self.experiment.costs()).map(one).collect()
    }

    /// What models have to say of their runs before they start.
    fn remarks(&self) -> Vec<String> {
        self.experiment.remarks()
    }

    /// Names of the figures and of the scans.
    fn names(&self) -> (Vec<String>, Vec<String>) {
        let resolved = &self.experiment.resolved;
        (
            resolved.figure.iter().map(|f| f.name.clone()).collect(),
            resolved.scan.iter().map(|s| s.name.clone()).collect(),
        )
    }

    /// What to cite: key, citation and where to find it.
    fn references(&self) -> Vec<(String, String, String)> {
        let all = self.experiment.resolved.references();
        all.into_iter().map(|r| (r.key.to_string(), r.citation.to_string(), r.locator.to_string())).collect()
    }

    /// Starts all runs; results go below the folder `out`.
    fn start(&self, out: PathBuf, threads: usize, fresh: bool) -> PyResult<Job> {
        let experiment = Arc::clone(&self.experiment);
        let task = Task::start(threads, move |monitor| {
            if fresh { experiment.execute_fresh(&out, monitor) } else { experiment.execute(&out, monitor) }
        })?;
        Ok(Job::new(task))
    }

    /// Starts one share of the experiment, of which all have the same plan: what `didact sweep work` computes.
    fn work(&self, out: PathBuf, share: usize, shares: usize, threads: usize) -> PyResult<ShareJob> {
        let experiment = Arc::clone(&self.experiment);
        let task =
            Task::start(1, move |monitor| share_of(&experiment, &out, (share, shares), threads, monitor))?;
        Ok(ShareJob::new(task))
    }

    /// The runs of which there is no table below a folder, each with the index of its point.
    fn missing(&self, py: Python<'_>, out: PathBuf) -> Vec<(String, usize)> {
        let missing = py.detach(|| self.experiment.missing_runs(&out));
        missing.into_iter().map(|run| (run.name.clone(), run.point.index)).collect()
    }

    /// Starts the first run; nothing is written.
    fn solve(&self, threads: usize) -> PyResult<SolveJob> {
        let experiment = Arc::clone(&self.experiment);
        let task = Task::start(threads, move |monitor| experiment.first_table(monitor))?;
        Ok(SolveJob::new(task))
    }

    /// What a finished folder says of claims, failures and measures; `None` when it is not finished.
    #[staticmethod]
    fn finished(py: Python<'_>, folder: PathBuf) -> PyResult<Option<Bound<'_, PyDict>>> {
        let found = py.detach(|| execute::finished(&folder)).ok();
        found.map(|finished| crate::job::finished(py, &finished)).transpose()
    }

    /// The table of a run at a point, read from a finished folder.
    fn table<'py>(
        &self,
        py: Python<'py>,
        folder: PathBuf,
        run: &str,
        point: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let asked = self.experiment.runs.iter().find(|r| r.name == run && r.point.index == point);
        let found = asked.and_then(|run| py.detach(|| self.tables.table(&folder, run)));
        match found {
            Some(trajectory) => table(py, &trajectory),
            None => Err(PyKeyError::new_err(format!(
                "{} has no table of `{run}` at point {point}",
                folder.display()
            ))),
        }
    }

    /// The rows of a scan in a finished folder: inputs, entries (or none), and why there are none.
    fn scan<'py>(&self, py: Python<'py>, folder: PathBuf, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let Some(scan) = py.detach(|| self.experiment.scan(&folder, name)) else {
            return Err(PyKeyError::new_err(format!("{} has no scan `{name}`", folder.display())));
        };
        let row = |(point, answer): &(
            didact::experiment::points::Point,
            didact::experiment::quantities::Answered,
        )| match answer {
            Ok(entries) => json!([point.values, entries, null]),
            Err(why) => json!([point.values, null, why.to_string()]),
        };
        python_of(py, &Value::Array(scan.rows.iter().map(row).collect()))
    }

    /// A figure of a finished folder as data.
    fn figure<'py>(&self, py: Python<'py>, folder: PathBuf, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let drawn = py.detach(|| {
            let measured: Vec<Measured> = execute::finished(&folder).map(|f| f.measured).unwrap_or_default();
            self.experiment.figure(&folder, &measured, name)
        });
        match drawn {
            Ok(figure) => python_of(py, &serde_json::to_value(&figure).expect("plain data")),
            Err(why) => Err(PyKeyError::new_err(why)),
        }
    }
}

/// Computes one share, and writes its report as the command line does.
fn share_of(
    experiment: &Experiment,
    root: &Path,
    (share, shares): (usize, usize),
    threads: usize,
    monitor: &SharedMonitor,
) -> Result<TaskOutcome, Diagnostic> {
    let asked = Asked {
        source: PathBuf::from(&experiment.source.name),
        size: experiment.size,
        seed: experiment.resolved.record.is_some().then(|| experiment.resolved.seed()),
        cores: 1,
        count: TaskCount::Tasks(shares),
        most_tasks: MOST_TASKS,
    };
    let (plan, path) = Plan::of_shards(experiment, &asked, root)?;
    let unwritable =
        |error: std::io::Error| Diagnostic::new(format!("cannot write the report of a share: {error}"));
    let log = Mutex::new(TaskLog::create(&path, share).map_err(unwritable)?);
    // A report that cannot be written is no reason to lose results.
    let report = |event: TaskEvent| drop(log.lock().unwrap_or_else(PoisonError::into_inner).add(&event));
    let process = std::process::id();
    report(TaskEvent::Begin { attempt: Attempt { process, threads, ..Attempt::default() } });
    let limits = WorkLimits { threads, ..WorkLimits::default() };
    let outcome = Worker { experiment, plan: &plan, plan_path: &path, task: share, root, limits }
        .work(monitor, &report)?;
    report(TaskEvent::End { end: outcome.end, left: outcome.left });
    Ok(outcome)
}

/// Claims as plain data.
pub(crate) fn claims<'py>(py: Python<'py>, claims: &[Judged]) -> PyResult<Bound<'py, PyAny>> {
    python_of(py, &serde_json::to_value(claims).expect("plain data"))
}

/// Inputs of a quantity.
pub(crate) fn inputs(object: &Bound<'_, PyAny>) -> PyResult<serde_json::Map<String, Value>> {
    match value_of(object, "")? {
        Value::Object(map) => Ok(map),
        _ => Ok(serde_json::Map::new()),
    }
}
