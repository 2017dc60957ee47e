//! What there is: quantities, families, engines, the schema; and the command line.

use crate::description::inputs;
use crate::errors::{description_error, run_error};
use crate::plain::{arrays_of, python_of};
use crate::pool::default_threads;
use crate::task::Task;
use didact::experiment::engines::EngineSpec;
use didact::experiment::quantities::NoAnswer;
use didact::experiment::{Diagnostic, Failure, quantities as registry, reference};
use didact::families::Model;
use didact::math::random::statistics::SampleMean;
use numpy::{PyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};
use std::ffi::OsString;

/// The version of the package.
#[pyfunction]
pub(crate) fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// The named entries of a quantity.
#[pyfunction]
pub(crate) fn compute<'py>(
    py: Python<'py>,
    quantity: String,
    given: Bound<'py, PyAny>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    let given = inputs(&given)?;
    let threads = threads.unwrap_or_else(default_threads);
    let task = Task::start(threads, move |_| registry::compute(&quantity, &given))?;
    let answer = task.finish(py)?.map_err(|why| match why {
        NoAnswer::Refused(text) => description_error(py, &Diagnostic::new(text)),
        NoAnswer::Failed(text) => run_error(py, &Failure::Error(Diagnostic::new(text))),
    })?;
    let made = PyDict::new(py);
    for (name, value) in &answer {
        made.set_item(name, arrays_of(py, value)?)?;
    }
    Ok(made)
}

/// Every quantity: path, summary, inputs and outputs.
#[pyfunction]
pub(crate) fn quantities(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let one = |(path, quantity): (String, &didact::model::quantity::Quantity)| {
        let inputs = quantity.inputs.iter().map(|input| {
            json!({"name": input.name, "type": input.kind.words(), "required": input.default.is_none(),
                   "default": input.default.and_then(|d| serde_json::from_str::<Value>(d).ok()), "about": input.about})
        });
        json!({"quantity": path, "summary": quantity.summary, "inputs": inputs.collect::<Vec<_>>(),
               "outputs": quantity.outputs})
    };
    python_of(py, &registry::all().into_iter().map(one).collect())
}

/// Families, engines, activations, functions or observables: names with one line each.
#[pyfunction]
pub(crate) fn lists(what: &str) -> PyResult<Vec<(String, String)>> {
    let owned =
        |list: Vec<(&str, &str)>| list.into_iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
    match what {
        "families" => Ok(owned(Model::catalogue())),
        "engines" => Ok(EngineSpec::catalogue().into_iter().map(|e| (e.name, e.about.into())).collect()),
        "activations" => Ok(owned(didact::math::activation::catalogue())),
        "functions" => Ok(didact::math::expression::catalogue()),
        "observables" => Ok(owned(didact::model::observable::CATALOGUE.to_vec())),
        other => Err(pyo3::exceptions::PyValueError::new_err(format!("nothing to list under `{other}`"))),
    }
}

/// The JSON schema of descriptions.
#[pyfunction]
pub(crate) fn schema(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    python_of(py, &reference::schema())
}

/// Mean over the replicas that reached each time, and its standard error, as figures show them.
#[pyfunction]
pub(crate) fn mean_and_error<'py>(
    py: Python<'py>,
    curves: PyReadonlyArray2<'py, f64>,
) -> (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>) {
    let curves = curves.as_array();
    // A curve ends where its replica ended; a value that is truly NaN in the middle stays.
    let ends: Vec<usize> = curves
        .rows()
        .into_iter()
        .map(|row| row.iter().rposition(|v| !v.is_nan()).map_or(0, |last| last + 1))
        .collect();
    let at = |time: usize| {
        let reached = ends.iter().enumerate().filter(|(_, end)| time < **end);
        SampleMean::of(reached.map(|(replica, _)| curves[[replica, time]]))
    };
    let means: Vec<SampleMean> = (0..curves.ncols()).map(at).collect();
    let column = |get: fn(&SampleMean) -> f64| PyArray1::from_vec(py, means.iter().map(get).collect());
    (column(|m| m.value), column(|m| m.error))
}

/// The program `didact` with these arguments, the first of which is its name; returns the exit code.
#[pyfunction]
pub(crate) fn command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| didact_cli::run(arguments))
}
