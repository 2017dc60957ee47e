//! The rule of acceptance: |got − value| ≤ max(abs_tol, rel_tol |value|), elementwise, or n standard errors.

use serde_json::{Value, json};

/// What the library says, with its own standard errors for stochastic cases.
pub struct Answer {
    pub value: Value,
    pub standard_error: Option<Value>,
}

impl Answer {
    pub fn exact(value: impl Into<Value>) -> Self {
        Self { value: value.into(), standard_error: None }
    }

    pub fn sampled(values: &[f64], errors: &[f64]) -> Self {
        Self { value: json!(values), standard_error: Some(json!(errors)) }
    }
}

/// Compares every number of a case.
pub fn verdict(case: &Value, answer: &Answer) -> Result<(), String> {
    let missing = Value::Null;
    let part = |key: &str| case.get(key).unwrap_or(&missing).clone();
    let rule = Rule {
        absolute: part("abs_tol"),
        relative: part("rel_tol"),
        sigmas: case.get("n_sigma").and_then(Value::as_f64),
        theirs: part("standard_error"),
        ours: answer.standard_error.clone().unwrap_or(Value::Null),
    };
    rule.check(&case["value"], &answer.value, "value")
}

struct Rule {
    absolute: Value,
    relative: Value,
    sigmas: Option<f64>,
    theirs: Value,
    ours: Value,
}

/// The entry of an elementwise tolerance, or the one number for all.
fn entry(tolerance: &Value, index: usize) -> Value {
    match tolerance {
        Value::Array(list) => list.get(index).cloned().unwrap_or(Value::Null),
        other => other.clone(),
    }
}

impl Rule {
    fn at(&self, index: usize) -> Self {
        Self {
            absolute: entry(&self.absolute, index),
            relative: entry(&self.relative, index),
            sigmas: self.sigmas,
            theirs: entry(&self.theirs, index),
            ours: entry(&self.ours, index),
        }
    }

    fn check(&self, expected: &Value, got: &Value, path: &str) -> Result<(), String> {
        match (expected, got) {
            (Value::Array(a), Value::Array(b)) => {
                if a.len() != b.len() {
                    return Err(format!("{path} has {} entries, expected {}", b.len(), a.len()));
                }
                for (i, (a, b)) in a.iter().zip(b).enumerate() {
                    self.at(i).check(a, b, &format!("{path}[{i}]"))?;
                }
                Ok(())
            }
            (Value::Object(a), Value::Object(b)) => {
                for (key, a) in a {
                    self.check(a, b.get(key).unwrap_or(&Value::Null), &format!("{path}.{key}"))?;
                }
                Ok(())
            }
            (Value::Number(_), _) => self.number(expected, got, path),
            _ if expected == got => Ok(()),
            _ => Err(format!("{path}: got {got}, expected {expected}")),
        }
    }

    fn number(&self, expected: &Value, got: &Value, path: &str) -> Result<(), String> {
        let (Some(want), Some(have)) = (expected.as_f64(), got.as_f64()) else {
            return Err(format!("{path}: got {got}, expected the number {expected}"));
        };
        let number = |v: &Value| v.as_f64().unwrap_or(0.0);
        let tolerance = match self.sigmas {
            Some(n) => n * number(&self.theirs).hypot(number(&self.ours)),
            None => number(&self.absolute).max(number(&self.relative) * want.abs()),
        };
        if (have - want).abs() <= tolerance {
            return Ok(());
        }
        Err(format!(
            "{path}: got {have}, expected {want}, off by {:.3e}, tolerance {tolerance:.3e}",
            have - want
        ))
    }
}
