//! Diagnostics as exceptions.

use didact::experiment::{Diagnostic, Failure};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A wrong description or a wrong input: `didact.DescriptionError`.
pub(crate) fn description_error(py: Python<'_>, diagnostic: &Diagnostic) -> PyErr {
    exception(py, "DescriptionError", diagnostic).unwrap_or_else(|error| error)
}

/// Work that could not be done: `didact.RunError`.
pub(crate) fn run_error(py: Python<'_>, failure: &Failure) -> PyErr {
    let diagnostic = match failure {
        Failure::Error(diagnostic) => diagnostic.clone(),
        Failure::Interrupted(folder) => {
            let hint =
                format!("what is done is kept in {}; the same call goes on from there", folder.display());
            let made = exception(py, "Interrupted", &Diagnostic::new("the job was cancelled").hint(hint));
            return made.unwrap_or_else(|error| error);
        }
    };
    exception(py, "RunError", &diagnostic).unwrap_or_else(|error| error)
}

/// The exception of this name in `didact._errors`, with the parts of a diagnostic.
pub(crate) fn exception(py: Python<'_>, name: &str, diagnostic: &Diagnostic) -> PyResult<PyErr> {
    let parts = PyDict::new(py);
    parts.set_item("message", &diagnostic.message)?;
    parts.set_item("key", diagnostic.key())?;
    parts.set_item("line", diagnostic.place.as_ref().map(|place| place.line))?;
    parts.set_item("hint", &diagnostic.hint)?;
    let text = diagnostic.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let made = py.import("didact._errors")?.getattr(name)?.call((text,), Some(&parts))?;
    Ok(PyErr::from_value(made))
}
