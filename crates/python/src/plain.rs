//! Python data to JSON and back, tables to arrays.

use crate::errors::description_error;
use didact::experiment::{Diagnostic, frontend};
use didact::model::Trajectory;
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};
use serde_json::{Map, Value};

/// Tables inside of tables: no description is nearly as deep, and data that contains itself has no end.
const DEEPEST: usize = 64;

/// Plain data of a Python object; `path` is the dotted path of its key, for messages. Arrays become lists, and a function of
/// one argument becomes a formula.
pub(crate) fn value_of(object: &Bound<'_, PyAny>, path: &str) -> PyResult<Value> {
    nested(object, path, 0)
}

fn nested(object: &Bound<'_, PyAny>, path: &str, depth: usize) -> PyResult<Value> {
    let py = object.py();
    let refuse = |diagnostic: Diagnostic| description_error(py, &diagnostic);
    let below = |part: &str| if path.is_empty() { part.to_string() } else { format!("{path}.{part}") };
    if depth > DEEPEST {
        return Err(refuse(Diagnostic::new(format!("`{path}` is nested more than {DEEPEST} levels deep"))));
    }
    if object.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(flag) = object.cast::<PyBool>() {
        return Ok(Value::from(flag.is_true()));
    }
    if object.is_instance_of::<PyInt>() {
        let whole =
            object.extract::<i64>().map(Value::from).or_else(|_| object.extract::<u64>().map(Value::from));
        let message = || format!("`{path}` is {object}; whole numbers have at most 64 bits");
        return whole.map_err(|_| refuse(Diagnostic::new(message())));
    }
    if let Ok(number) = object.cast::<PyFloat>() {
        return frontend::number(path, number.value()).map_err(refuse);
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Value::from(text.to_cow()?.as_ref()));
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        let mut list = Vec::new();
        for (index, entry) in object.try_iter()?.enumerate() {
            list.push(nested(&entry?, &below(&index.to_string()), depth + 1)?);
        }
        return Ok(Value::Array(list));
    }
    if let Ok(mapping) = object.cast::<PyMapping>() {
        let mut map = Map::new();
        for item in mapping.items()?.iter() {
            let (key, inner) = item.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
            let Ok(key) = key.cast::<PyString>() else {
                let message = format!("a key of `{path}` is {}; keys are texts", key.repr()?);
                return Err(refuse(Diagnostic::new(message)));
            };
            let key = key.to_cow()?.into_owned();
            let inner = nested(&inner, &below(&key), depth + 1)?;
            map.insert(key, inner);
        }
        return Ok(Value::Object(map));
    }
    // Arrays and numbers of NumPy, and whatever has the same method.
    if object.hasattr("tolist")? {
        return nested(&object.call_method0("tolist")?, path, depth + 1);
    }
    if object.hasattr("__fspath__")? {
        return nested(&object.call_method0("__fspath__")?, path, depth + 1);
    }
    if object.is_callable() {
        let formula = py.import("didact._functions")?.getattr("formula_of")?.call1((object, path))?;
        return nested(&formula, path, depth + 1);
    }
    let message = format!("`{path}` is of type {}; expected plain data", object.get_type().name()?);
    let hint = "use numbers, texts, lists, dicts and arrays, or a function where a formula may stand";
    Err(refuse(Diagnostic::new(message).hint(hint)))
}

/// A table of keys and values.
pub(crate) fn map_of(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Map<String, Value>> {
    match value_of(object, "")? {
        Value::Object(map) => Ok(map),
        other => {
            let message = format!("{what} is {other}; expected a dict of keys and values");
            Err(description_error(object.py(), &Diagnostic::new(message)))
        }
    }
}

/// Plain data as Python objects: dicts, lists, numbers, texts.
pub(crate) fn python_of<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(flag) => flag.into_pyobject(py)?.to_owned().into_any(),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => whole.into_pyobject(py)?.into_any(),
            (_, Some(whole)) => whole.into_pyobject(py)?.into_any(),
            _ => number.as_f64().unwrap_or(f64::NAN).into_pyobject(py)?.into_any(),
        },
        Value::String(text) => text.into_pyobject(py)?.into_any(),
        Value::Array(list) => {
            let entries = list.iter().map(|v| python_of(py, v)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, entries)?.into_any()
        }
        Value::Object(map) => {
            let dict = PyDict::new(py);
            for (key, inner) in map {
                dict.set_item(key, python_of(py, inner)?)?;
            }
            dict.into_any()
        }
    })
}

/// The same, with lists of numbers as arrays: vectors, and matrices whose rows are equally long.
pub(crate) fn arrays_of<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    let Value::Array(list) = value else { return python_of(py, value) };
    let numbers = |list: &[Value]| -> Option<Vec<f64>> {
        let number = |v: &Value| if v.is_null() { Some(f64::NAN) } else { v.as_f64() };
        list.iter().map(number).collect()
    };
    if !list.is_empty()
        && let Some(vector) = numbers(list)
    {
        return Ok(PyArray1::from_vec(py, vector).into_any());
    }
    let rows: Option<Vec<Vec<f64>>> =
        list.iter().map(|row| row.as_array().and_then(|row| numbers(row))).collect();
    match rows {
        Some(rows) if !rows.is_empty() && rows.iter().all(|row| row.len() == rows[0].len()) => {
            Ok(PyArray2::from_vec2(py, &rows)?.into_any())
        }
        _ => python_of(py, value),
    }
}

/// A table for `didact.Table`: one array (replicas x times) per column, NaN after a replica has ended.
pub(crate) fn table<'py>(py: Python<'py>, trajectory: &Trajectory) -> PyResult<Bound<'py, PyDict>> {
    let length = trajectory.times.len();
    let columns = PyDict::new(py);
    for column in &trajectory.columns {
        let padded = |curve: &Vec<f64>| -> Vec<f64> {
            (0..length).map(|time| curve.get(time).copied().unwrap_or(f64::NAN)).collect()
        };
        let rows: Vec<Vec<f64>> = column.curves.iter().map(padded).collect();
        columns.set_item(&column.name, PyArray2::from_vec2(py, &rows)?)?;
    }
    let events = PyDict::new(py);
    for event in &trajectory.events {
        let times = event.times.iter().map(|time| time.unwrap_or(f64::NAN)).collect();
        events.set_item(&event.name, PyArray1::from_vec(py, times))?;
    }
    let json = |value: serde_json::Result<Value>| python_of(py, &value.expect("plain data"));
    let made = PyDict::new(py);
    made.set_item("engine", &trajectory.engine)?;
    made.set_item("clock", trajectory.clock.name())?;
    made.set_item("time", PyArray1::from_slice(py, &trajectory.times))?;
    made.set_item("columns", columns)?;
    made.set_item("events", events)?;
    made.set_item("outcomes", json(serde_json::to_value(&trajectory.outcomes))?)?;
    made.set_item("stats", json(serde_json::to_value(&trajectory.statistics))?)?;
    made.set_item("notes", &trajectory.notes)?;
    Ok(made)
}
