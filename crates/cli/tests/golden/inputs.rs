//! Typed access to the inputs of a case. A missing input is a fault of the case, so it panics with its name.

use didact_math::linalg::Mat;
use serde_json::Value;

pub struct Inputs<'a>(pub &'a Value, pub &'a Value);

impl Inputs<'_> {
    pub fn has(&self, key: &str) -> bool {
        self.0.get(key).is_some_and(|v| !v.is_null())
    }

    pub fn number(&self, key: &str) -> f64 {
        self.0[key].as_f64().unwrap_or_else(|| panic!("input `{key}` is a number: {}", self.0[key]))
    }

    pub fn number_or(&self, key: &str, default: f64) -> f64 {
        if self.has(key) { self.number(key) } else { default }
    }

    pub fn count(&self, key: &str) -> usize {
        self.number(key) as usize
    }

    pub fn flag_or(&self, key: &str, default: bool) -> bool {
        self.0.get(key).and_then(Value::as_bool).unwrap_or(default)
    }

    /// A list; a lone number is a list of one.
    pub fn list(&self, key: &str) -> Vec<f64> {
        match &self.0[key] {
            Value::Array(list) => list.iter().map(|v| v.as_f64().expect("numbers")).collect(),
            Value::Number(n) => vec![n.as_f64().expect("a number")],
            other => panic!("input `{key}` is a list: {other}"),
        }
    }

    pub fn matrix(&self, key: &str) -> Mat {
        let rows: Vec<Vec<f64>> = serde_json::from_value(self.0[key].clone()).expect("a matrix");
        Mat::from_rows(&rows).expect("rows of equal length")
    }

    /// The tolerance of a stochastic case, entry by entry.
    pub fn absolute_tolerance(&self) -> Vec<f64> {
        match &self.1["abs_tol"] {
            Value::Array(list) => list.iter().map(|v| v.as_f64().expect("numbers")).collect(),
            other => vec![other.as_f64().expect("a number")],
        }
    }
}
