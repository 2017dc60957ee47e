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
    /// Named entries of the answer. An entry that has no value is `null`, and [`explained`] says why.
    pub compute: fn(&Arguments) -> Result<Answer, QuantityError>,
}

/// Named numbers (or lists), in order.
pub type Answer = Vec<(&'static str, Value)>;

/// The entry that says why others are `null`. Every quantity may have it.
pub const REASON: &str = "reason";

/// Numbers beyond this magnitude, or below its inverse and not 0, are refused as inputs: products and quotients of three
/// of them are still finite.
pub const LARGEST_NUMBER: f64 = 1e100;

/// Whole numbers beyond this one are refused: up to here every one of them is a 64-bit float.
const LARGEST_COUNT: f64 = 1e15;

/// Numbers of one list or matrix.
const LONGEST_LIST: usize = 1_000_000;

/// The answer with the reason why entries have no value, as far as they have none: `reasons` names entries that may be
/// `null`, or hold it, and says what that means.
pub fn explained(mut answer: Answer, reasons: &[(&str, &str)]) -> Answer {
    let without = |name: &str| answer.iter().any(|(known, value)| *known == name && holds_null(value));
    let said: Vec<String> = reasons
        .iter()
        .filter(|(name, _)| without(name))
        .map(|(name, why)| format!("`{name}`: {why}"))
        .collect();
    if !said.is_empty() {
        answer.push((REASON, Value::from(said.join("; "))));
    }
    answer
}

/// Whether a value is `null` or a list that holds it, at any depth.
fn holds_null(value: &Value) -> bool {
    match value {
        Value::Array(list) => list.iter().any(holds_null),
        other => other.is_null(),
    }
}

/// Whether there is something other than `null` in a value, at any depth.
fn holds_value(value: &Value) -> bool {
    match value {
        Value::Array(list) => list.iter().any(holds_value),
        other => !other.is_null(),
    }
}

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
    /// An entry overflows, or has no limit there.
    #[error(
        "`{entry}` is not a finite number at these inputs\n\nhint: they are at or beyond the edge of where it can be computed"
    )]
    NotFinite {
        /// Which.
        entry: &'static str,
    },
    /// Out of the domain of the formula.
    #[error("{0}")]
    Domain(String),
}

/// Inputs, checked against their declaration.
#[derive(Debug, Clone)]
pub struct Arguments(Map<String, Value>);

impl Quantity {
    /// Whether the inputs are of the kinds and magnitudes that are declared; nothing is computed.
    pub fn admits(&self, given: &Map<String, Value>) -> Result<(), QuantityError> {
        self.arguments(given).map(|_| ())
    }

    /// Checks the inputs and computes.
    pub fn evaluate(&self, given: &Map<String, Value>) -> Result<Answer, QuantityError> {
        let answer = (self.compute)(&self.arguments(given)?)?;
        debug_assert!(
            answer.iter().all(|(name, _)| *name == REASON || self.outputs.contains(name)),
            "`{}` declares the outputs {:?} and gives {answer:?}",
            self.name,
            self.outputs
        );
        self.without_unexplained_gaps(answer)
    }

    /// The inputs with defaults, checked against their declaration.
    fn arguments(&self, given: &Map<String, Value>) -> Result<Arguments, QuantityError> {
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
        Ok(Arguments(checked))
    }

    /// Says of every entry that is not a finite number (`null` in JSON) that it is none, where the quantity does not say what
    /// that means. An answer without any number is refused.
    fn without_unexplained_gaps(&self, mut answer: Answer) -> Result<Answer, QuantityError> {
        let reason = answer.iter().find(|(name, _)| *name == REASON).and_then(|(_, why)| why.as_str());
        let own_reason = self.outputs.contains(&REASON);
        let said = |name: &str| reason.is_some_and(|why| own_reason || why.contains(&format!("`{name}`")));
        let gaps: Vec<&'static str> = answer
            .iter()
            .filter(|(name, value)| holds_null(value) && !said(name))
            .map(|(name, _)| *name)
            .collect();
        let Some(first) = gaps.first() else { return Ok(answer) };
        if !answer.iter().any(|(name, value)| *name != REASON && holds_value(value)) {
            return Err(QuantityError::NotFinite { entry: first });
        }
        let unbounded =
            gaps.iter().map(|name| format!("`{name}`: not a finite number at some of these inputs"));
        let all: Vec<String> = reason.map(String::from).into_iter().chain(unbounded).collect();
        answer.retain(|(name, _)| *name != REASON);
        answer.push((REASON, Value::from(all.join("; "))));
        Ok(answer)
    }
}

fn check(input: &Input, value: &Value) -> Result<(), QuantityError> {
    const MODERATE: &str = "0 or magnitudes from 1e-100 to 1e100, and no more than a million numbers";
    let whole = |v: f64| v >= 1.0 && v.fract() == 0.0;
    let (of_kind, kind, within, limits) = match input.kind {
        Kind::Number => {
            let number = value.as_f64().filter(|v| v.is_finite());
            (number.is_some(), "a finite number", number.is_some_and(moderate), MODERATE)
        }
        Kind::Count => {
            let count = value.as_f64().filter(|v| whole(*v));
            let within = count.is_some_and(|v| v <= LARGEST_COUNT);
            (count.is_some(), "a whole number, at least 1", within, "a whole number up to 1e15")
        }
        Kind::Text => (value.is_string(), "a word", true, ""),
        Kind::File => (value.is_string(), "the path of a file", true, ""),
        Kind::Flag => (value.is_boolean(), "true or false", true, ""),
        Kind::Numbers => {
            let list = numbers(value).filter(|list| !list.is_empty());
            let expected = "a list of finite numbers such as [1, 0.5]";
            (list.is_some(), expected, list.is_some_and(|l| all_moderate(&l)), MODERATE)
        }
        Kind::Matrix => {
            let matrix = rows(value).filter(|m| m.rows() == m.cols());
            let expected = "a square matrix such as [[1, 0], [0, 1]]";
            (matrix.is_some(), expected, matrix.is_some_and(|m| all_moderate(m.as_slice())), MODERATE)
        }
        Kind::Rows => {
            let matrix = rows(value).filter(|m| m.cols() > 0);
            let expected = "rows of equal length such as [[1, 0, 0], [0, 1, 0]]";
            (matrix.is_some(), expected, matrix.is_some_and(|m| all_moderate(m.as_slice())), MODERATE)
        }
        Kind::Any => {
            let mut inside = Vec::new();
            numbers_inside(value, &mut inside);
            (true, "", all_moderate(&inside), MODERATE)
        }
    };
    if of_kind && within {
        return Ok(());
    }
    let expected = if of_kind { limits } else { kind };
    Err(QuantityError::Type { name: input.name.into(), value: shown(value), expected })
}

fn moderate(number: f64) -> bool {
    number == 0.0 || (LARGEST_NUMBER.recip()..=LARGEST_NUMBER).contains(&number.abs())
}

fn all_moderate(list: &[f64]) -> bool {
    list.len() <= LONGEST_LIST && list.iter().all(|x| moderate(*x))
}

/// Every number in a value, at any depth.
fn numbers_inside(value: &Value, found: &mut Vec<f64>) {
    match value {
        Value::Number(number) => found.extend(number.as_f64()),
        Value::Array(list) => list.iter().for_each(|entry| numbers_inside(entry, found)),
        Value::Object(table) => table.values().for_each(|entry| numbers_inside(entry, found)),
        _ => {}
    }
}

/// The beginning of a value, for a message.
fn shown(value: &Value) -> String {
    const SHOWN: usize = 80;
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
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

    /// A whole number that decides how much is computed: refused beyond `largest`.
    pub fn count_up_to(&self, name: &str, largest: usize) -> Result<usize, QuantityError> {
        match self.count(name) {
            count if count <= largest => Ok(count),
            count => Err(QuantityError::Domain(format!(
                "input `{name}` is {count}; numbers up to {largest} can be computed"
            ))),
        }
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
            let mut answer = vec![
                ("sum", json!(a.numbers("list").iter().sum::<f64>())),
                ("flag", json!(a.flag("flag"))),
                ("columns", json!(columns)),
            ];
            if a.given("free") {
                answer.push(("free", a.value("free").clone()));
            }
            Ok(answer)
        },
    };

    fn ask(given: Value) -> Result<Answer, QuantityError> {
        ECHO.evaluate(given.as_object().unwrap())
    }

    #[test]
    fn numbers_inside_a_table_are_moderate_too() {
        let given =
            |number: f64| ask(json!({ "list": [1.0], "free": {"spectrum": {"eigenvalues": [number, 0.5]}} }));
        assert!(given(1e100).is_ok() && given(0.0).is_ok());
        let message = given(1e308).unwrap_err().to_string();
        assert!(message.contains("`free`") && message.contains("1e-100 to 1e100"), "{message}");
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
        for bad in [json!([]), json!(1e101), json!([1, -1e200])] {
            assert!(matches!(ask(json!({ "list": bad })), Err(QuantityError::Type { .. })), "{bad}");
        }
    }

    const GAPS: Quantity = Quantity {
        name: "gaps",
        summary: "the logarithm of a number, and its square root",
        inputs: &[Input { name: "x", kind: Kind::Number, default: None, about: "a number" }],
        outputs: &["log", "root", "list"],
        compute: |a| {
            let x = a.number("x");
            let answer =
                vec![("log", json!(x.ln())), ("root", json!(x.sqrt())), ("list", json!([1.0, x.ln()]))];
            Ok(explained(answer, &[("log", "it has a pole at 0"), ("list", "as the logarithm")]))
        },
    };

    #[test]
    fn an_entry_without_a_value_has_a_reason_or_is_an_error() {
        let at = |x: f64| GAPS.evaluate(json!({ "x": x }).as_object().unwrap());
        assert_eq!(at(1.0).unwrap().len(), 3);
        let reason = at(0.0).unwrap().pop().unwrap();
        assert_eq!(reason, (REASON, json!("`log`: it has a pole at 0; `list`: as the logarithm")));
        let (_, reason) = at(-1.0).unwrap().pop().unwrap();
        assert!(
            reason.as_str().unwrap().ends_with("; `root`: not a finite number at some of these inputs"),
            "{reason}"
        );
        let alone = Quantity { compute: |a| Ok(vec![("root", json!(a.number("x").sqrt()))]), ..GAPS };
        let answer = alone.evaluate(json!({ "x": -1.0 }).as_object().unwrap());
        assert_eq!(
            answer,
            Err(QuantityError::NotFinite { entry: "root" }),
            "an answer without any number is none"
        );
    }
}
