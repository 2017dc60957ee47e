//! Predictions that are not trajectories: named, with typed inputs, registered by their family.

use didact_math::linalg::Mat;
use serde_json::{Map, Value};

/// The type of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A real number.
    Number,
    /// A whole number, at least 1.
    Count,
    /// A word.
    Text,
    /// A square matrix, as nested lists.
    Matrix,
}

/// An input of a quantity.
#[derive(Debug, Clone, Copy)]
pub struct Input {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Its value unless given, as JSON; `None` makes it required.
    pub default: Option<&'static str>,
    /// What it is.
    pub about: &'static str,
}

/// A prediction.
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    /// Its name within the family.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What it depends on.
    pub inputs: &'static [Input],
    /// Named entries of the answer.
    pub compute: fn(&Arguments) -> Result<Answer, QuantityError>,
}

/// Named numbers (or lists), in order.
pub type Answer = Vec<(&'static str, Value)>;

/// Why a quantity has no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum QuantityError {
    /// Input not given.
    #[error("input `{name}` is missing: {about}")]
    Missing {
        /// Which.
        name: &'static str,
        /// What it is.
        about: &'static str,
    },
    /// Unknown input.
    #[error("unknown input `{name}`\n\nhint: inputs are {known}")]
    Unknown {
        /// Which.
        name: String,
        /// The known ones.
        known: String,
    },
    /// Wrong type.
    #[error("input `{name}` is {value}; expected {expected}")]
    Type {
        /// Which.
        name: String,
        /// What was given.
        value: String,
        /// What was expected.
        expected: &'static str,
    },
    /// Out of the domain of the formula.
    #[error("{0}")]
    Domain(String),
}

/// Inputs, checked against their declaration.
#[derive(Debug, Clone)]
pub struct Arguments(Map<String, Value>);

impl Quantity {
    /// Checks the inputs and computes.
    pub fn evaluate(&self, given: &Map<String, Value>) -> Result<Answer, QuantityError> {
        if let Some(name) = given.keys().find(|k| self.inputs.iter().all(|i| i.name != k.as_str())) {
            let known = self.inputs.iter().map(|i| i.name).collect::<Vec<_>>().join(", ");
            return Err(QuantityError::Unknown { name: name.clone(), known });
        }
        let mut checked = Map::new();
        for input in self.inputs {
            let value = match (given.get(input.name), input.default) {
                (Some(value), _) => value.clone(),
                (None, Some(default)) => serde_json::from_str(default).expect("a default is JSON"),
                (None, None) => return Err(QuantityError::Missing { name: input.name, about: input.about }),
            };
            check(input, &value)?;
            checked.insert(input.name.into(), value);
        }
        (self.compute)(&Arguments(checked))
    }
}

fn check(input: &Input, value: &Value) -> Result<(), QuantityError> {
    let (right, expected) = match input.kind {
        Kind::Number => (value.as_f64().is_some_and(f64::is_finite), "a finite number"),
        Kind::Count => (value.as_f64().is_some_and(|v| v >= 1.0 && v.fract() == 0.0), "a whole number, at least 1"),
        Kind::Text => (value.is_string(), "a word"),
        Kind::Matrix => (matrix(value).is_some(), "a square matrix such as [[1, 0], [0, 1]]"),
    };
    if right {
        return Ok(());
    }
    Err(QuantityError::Type { name: input.name.into(), value: value.to_string(), expected })
}

fn matrix(value: &Value) -> Option<Mat> {
    let rows: Vec<Vec<f64>> = serde_json::from_value(value.clone()).ok()?;
    Mat::from_rows(&rows).filter(|m| m.rows() == m.cols() && m.rows() > 0)
}

impl Arguments {
    /// A number.
    pub fn number(&self, name: &str) -> f64 {
        self.0[name].as_f64().expect("checked")
    }

    /// A whole number.
    pub fn count(&self, name: &str) -> usize {
        self.number(name) as usize
    }

    /// A word.
    pub fn text(&self, name: &str) -> &str {
        self.0[name].as_str().expect("checked")
    }

    /// A matrix.
    pub fn matrix(&self, name: &str) -> Mat {
        matrix(&self.0[name]).expect("checked")
    }
}
