//! Functions of NumPy as formulas.

use crate::errors::description_error;
use didact::experiment::Diagnostic;
use didact::math::expression::{SampleFitError, fit as fit_samples};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Samples a function on |x| ≤ `reach` and fits it. It is called here and now, with arrays, and never again.
#[pyfunction]
#[pyo3(signature = (function, reach, kinks = None))]
pub(crate) fn fit<'py>(
    py: Python<'py>,
    function: Bound<'py, PyAny>,
    reach: f64,
    kinks: Option<Vec<f64>>,
) -> PyResult<Bound<'py, PyDict>> {
    let checked = py.import("didact._functions")?.getattr("checked_values")?;
    let call = |x: &[f64]| -> PyResult<Vec<f64>> {
        let values = checked.call1((&function, PyArray1::from_slice(py, x)))?;
        let values = values.cast_into::<PyArray1<f64>>()?;
        Ok(values.readonly().as_slice()?.to_vec())
    };
    let fitted = fit_samples(call, reach, kinks.as_deref()).map_err(|error| match error {
        SampleFitError::Function(error) => error,
        other => description_error(py, &Diagnostic::new(other)),
    })?;
    let made = PyDict::new(py);
    made.set_item("name", fitted.name)?;
    made.set_item("kinks", fitted.kinks)?;
    made.set_item("error", fitted.error)?;
    made.set_item("relative_error", fitted.relative_error)?;
    made.set_item("panels", fitted.panels)?;
    made.set_item("samples", fitted.samples)?;
    Ok(made)
}
