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
    /// The path of a file; results depend on what it holds, and a description names it relative to itself.
    File,
    /// `true` or `false`.
    Flag,
    /// A list of real numbers; a lone number is a list of one.
    Numbers,
    /// A square matrix, as nested lists.
    Matrix,
    /// Rows of equal length, as nested lists.
    Rows,
    /// Anything: the quantity reads it itself.
    Any,
}

impl Kind {
    /// What a user may write, in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Count => "whole number from 1",
            Self::Text => "word",
            Self::File => "path of a file",
            Self::Flag => "true or false",
            Self::Numbers => "list of numbers",
            Self::Matrix => "square matrix",
            Self::Rows => "rows of numbers",
            Self::Any => "any",
        }
    }
}

/// An input of a quantity.
#[derive(Debug, Clone, Copy)]
pub struct Input {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Its value unless given, as JSON; `None` makes it required, `"null"` makes it optional without a value.
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
    /// Names of the entries that an answer may have; some need an input that is optional.
    pub outputs: &'static [&'static str],
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
            if !value.is_null() {
                check(input, &value)?;
            } else if input.default != Some("null") {
                return Err(QuantityError::Missing { name: input.name, about: input.about });
            }
            checked.insert(input.name.into(), value);
        }
        let answer = (self.compute)(&Arguments(checked))?;
        debug_assert!(
            answer.iter().all(|(name, _)| self.outputs.contains(name)),
            "`{}` declares the outputs {:?} and gives {answer:?}",
            self.name,
            self.outputs
        );
        Ok(answer)
    }
}

fn check(input: &Input, value: &Value) -> Result<(), QuantityError> {
    let (right, expected) = match input.kind {
        Kind::Number => (value.as_f64().is_some_and(f64::is_finite), "a finite number"),
        Kind::Count => {
            (value.as_f64().is_some_and(|v| v >= 1.0 && v.fract() == 0.0), "a whole number, at least 1")
        }
        Kind::Text => (value.is_string(), "a word"),
        Kind::File => (value.is_string(), "the path of a file"),
        Kind::Flag => (value.is_boolean(), "true or false"),
        Kind::Numbers => (numbers(value).is_some(), "a list of finite numbers such as [1, 0.5]"),
        Kind::Matrix => {
            (rows(value).is_some_and(|m| m.rows() == m.cols()), "a square matrix such as [[1, 0], [0, 1]]")
        }
        Kind::Rows => (rows(value).is_some(), "rows of equal length such as [[1, 0, 0], [0, 1, 0]]"),
        Kind::Any => (true, "anything"),
    };
    if right {
        return Ok(());
    }
    Err(QuantityError::Type { name: input.name.into(), value: value.to_string(), expected })
}

fn rows(value: &Value) -> Option<Mat> {
    let rows: Vec<Vec<f64>> = serde_json::from_value(value.clone()).ok()?;
    Mat::from_rows(&rows).filter(|m| m.rows() > 0 && m.as_slice().iter().all(|x| x.is_finite()))
}

fn numbers(value: &Value) -> Option<Vec<f64>> {
    let list = match value {
        Value::Array(list) => list.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>()?,
        other => vec![other.as_f64()?],
    };
    list.iter().all(|x| x.is_finite()).then_some(list)
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

    /// A word, or the path of a file.
    pub fn text(&self, name: &str) -> &str {
        self.0[name].as_str().expect("checked")
    }

    /// Whether an optional input was given.
    pub fn given(&self, name: &str) -> bool {
        !self.0[name].is_null()
    }

    /// A yes or no.
    pub fn flag(&self, name: &str) -> bool {
        self.0[name].as_bool().expect("checked")
    }

    /// A list of numbers.
    pub fn numbers(&self, name: &str) -> Vec<f64> {
        numbers(&self.0[name]).expect("checked")
    }

    /// A matrix, square or not.
    pub fn matrix(&self, name: &str) -> Mat {
        rows(&self.0[name]).expect("checked")
    }

    /// The input as it was given.
    pub fn value(&self, name: &str) -> &Value {
        &self.0[name]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const INPUTS: [Input; 5] = [
        Input { name: "list", kind: Kind::Numbers, default: None, about: "numbers" },
        Input { name: "flag", kind: Kind::Flag, default: Some("true"), about: "a switch" },
        Input { name: "rows", kind: Kind::Rows, default: Some("null"), about: "rows, if any" },
        Input { name: "gram", kind: Kind::Matrix, default: Some("[[1]]"), about: "a Gram matrix" },
        Input { name: "free", kind: Kind::Any, default: Some("null"), about: "anything" },
    ];

    const ECHO: Quantity = Quantity {
        name: "echo",
        summary: "says what it was given",
        inputs: &INPUTS,
        outputs: &["sum", "flag", "columns", "free"],
        compute: |a| {
            let columns = if a.given("rows") { a.matrix("rows").cols() } else { 0 };
            Ok(vec![
                ("sum", json!(a.numbers("list").iter().sum::<f64>())),
                ("flag", json!(a.flag("flag"))),
                ("columns", json!(columns)),
                ("free", a.value("free").clone()),
            ])
        },
    };

    fn ask(given: Value) -> Result<Answer, QuantityError> {
        ECHO.evaluate(given.as_object().unwrap())
    }

    #[test]
    fn every_kind_is_read_and_optional_inputs_may_be_absent() {
        let answer =
            ask(json!({ "list": [1.0, 2.0], "rows": [[1, 2, 3]], "flag": false, "free": {"a": 1} })).unwrap();
        let values: Vec<Value> = answer.into_iter().map(|(_, v)| v).collect();
        assert_eq!(values, vec![json!(3.0), json!(false), json!(3), json!({"a": 1})]);
        let answer = ask(json!({ "list": 4 })).unwrap();
        assert_eq!(answer[0].1, json!(4.0));
        assert_eq!(answer[2].1, json!(0));
    }

    #[test]
    fn wrong_kinds_are_named() {
        for bad in [
            json!({ "list": "x" }),
            json!({ "list": 1, "flag": 1 }),
            json!({ "list": 1, "rows": [[1], [1, 2]] }),
            json!({ "list": 1, "gram": [[1, 2]] }),
        ] {
            assert!(matches!(ask(bad.clone()), Err(QuantityError::Type { .. })), "{bad}");
        }
        assert!(matches!(ask(json!({ "list": null })), Err(QuantityError::Missing { name: "list", .. })));
    }
}
