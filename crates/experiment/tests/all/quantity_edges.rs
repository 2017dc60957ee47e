//! Every quantity of the registry at the edges of its inputs: a number, a list, or one sentence; never a panic, and never a
//! gap without its reason.
//!
//! `quantity_inputs.json` has inputs for every quantity where it has an answer. Each input in turn takes hostile values of
//! its kind.

use didact_experiment::quantities;
use didact_model::quantity::{Kind, REASON};
use rayon::prelude::*;
use serde_json::{Map, Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn good_inputs() -> Map<String, Value> {
    serde_json::from_str(include_str!("quantity_inputs.json")).unwrap()
}

/// What an input may be given, right and wrong.
fn edges(kind: Kind) -> Vec<Value> {
    let numbers = [0.0, -1.0, 1.0, 0.5, 1.5, 1e100, -1e100, 1e-100, 1e300, 1e-300, 1e6, 1e15];
    let mut all = vec![json!(null), json!("word"), json!({}), json!([])];
    all.extend(match kind {
        Kind::Number => numbers.map(|x| json!(x)).to_vec(),
        Kind::Count => vec![
            json!(0),
            json!(-1),
            json!(1),
            json!(2.5),
            json!(3),
            json!(30),
            json!(1_000_000_000_u64),
            json!(1e15),
            json!(u64::MAX),
            json!(1e300),
        ],
        Kind::Text | Kind::File => [
            "",
            " ",
            "x",
            "1/x",
            "relu",
            "He3",
            "nan",
            "sin(x)",
            "exp(x)",
            "exp(x^2)",
            "0",
            "1e300*x",
            "((",
            "/dev/zero",
            "/nowhere.csv",
        ]
        .map(Value::from)
        .to_vec(),
        Kind::Flag => vec![json!(true), json!(false), json!(1)],
        Kind::Numbers => vec![
            json!([0]),
            json!([1]),
            json!([-1]),
            json!([0, 0]),
            json!([1, 1, 1]),
            json!([2, 1]),
            json!([1e100]),
            json!([1e-100, 1]),
            json!([-1, 1e100]),
            json!([0.1, 0.2, 0.3, 0.4]),
            json!([null]),
            json!(vec![1.0; 40]),
        ],
        Kind::Matrix | Kind::Rows => vec![
            json!([[]]),
            json!([[0]]),
            json!([[1]]),
            json!([[-1]]),
            json!([[1e100]]),
            json!([[1, 2], [2, 1]]),
            json!([[1, 2], [3]]),
            json!([[0, 0], [0, 0]]),
            json!([[1, 1], [1, 1]]),
            json!([[1, 0, 0]]),
            json!([[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
            json!([[1e-100, 0], [0, 1e-100]]),
        ],
        Kind::Any => vec![
            json!(0),
            json!(-1),
            json!(1e300),
            json!([0]),
            json!([1, 1]),
            json!([2, 1]),
            json!([1e300]),
            json!({"from": 1, "to": 10, "points": 3}),
            json!({"from": 0, "to": 1, "points": 0}),
            json!({"from": 1, "to": 1e9, "points": 1e9, "spacing": "log"}),
            json!({"from": 1, "to": 1e9, "points": 1_000_000_000, "spacing": "log"}),
            json!({"from": -1, "to": 1, "points": 3, "spacing": "log"}),
            json!({"family": "committee", "students": 0, "teachers": 1, "activation": "tanh"}),
            json!({"family": "committee", "students": 1, "teachers": 1, "activation": "1/x"}),
            json!({"family": "quadratic-networks", "students": 2, "teachers": 1}),
            json!({"family": "nobody"}),
        ],
    });
    all
}

/// A value with each of its numbers in turn replaced by hostile ones, at any depth.
fn with_hostile_numbers(value: &Value) -> Vec<Value> {
    match value {
        Value::Number(_) => [0.0, -1.0, 1e100, 1e-100, 1e308].map(|x| json!(x)).to_vec(),
        Value::Array(list) => (0..list.len())
            .flat_map(|at| {
                with_hostile_numbers(&list[at]).into_iter().map(move |changed| {
                    let mut whole = list.clone();
                    whole[at] = changed;
                    Value::from(whole)
                })
            })
            .collect(),
        Value::Object(table) => table
            .iter()
            .flat_map(|(key, entry)| {
                with_hostile_numbers(entry).into_iter().map(move |changed| {
                    let mut whole = table.clone();
                    whole.insert(key.clone(), changed);
                    Value::from(whole)
                })
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn holds_null(value: &Value) -> bool {
    match value {
        Value::Array(list) => list.iter().any(holds_null),
        other => other.is_null(),
    }
}

/// What is wrong with an answer, if anything.
fn wrong(path: &str, inputs: &Map<String, Value>) -> Option<String> {
    let answer = catch_unwind(AssertUnwindSafe(|| quantities::find(path).unwrap().evaluate(inputs)));
    let Ok(answer) = answer else { return Some("panics".into()) };
    let answer = answer.map_err(|error| error.to_string());
    match answer {
        Ok(entries) => {
            let reason = entries.iter().any(|(name, _)| *name == REASON);
            let gap = entries.iter().find(|(_, value)| holds_null(value)).filter(|_| !reason);
            gap.map(|(name, _)| format!("gives `{name}` = null without a reason"))
        }
        Err(message) => {
            let words = ["NaN", "panicked", "unwrap", "struct ", "enum ", "usize", "Some(", "None"];
            let word = words.iter().find(|word| message.contains(*word));
            let long = message.chars().count() > 600;
            match word {
                Some(word) => Some(format!("says `{word}`: {message}")),
                None if message.trim().is_empty() || long => Some(format!("says `{message}`")),
                None => None,
            }
        }
    }
}

#[test]
fn every_quantity_has_an_answer_somewhere() {
    let good = good_inputs();
    for (path, _) in quantities::all() {
        let inputs = good.get(&path).unwrap_or_else(|| panic!("quantity_inputs.json has no `{path}`"));
        let answer = quantities::compute(&path, inputs.as_object().unwrap());
        assert!(answer.as_ref().is_ok_and(|a| !a.is_empty()), "{path}: {answer:?}");
    }
}

/// Limits that protect against hostile inputs once refused the size of a paper.
#[test]
fn limits_leave_room_for_the_sizes_of_papers() {
    let inputs = serde_json::json!({"M": 4, "L": 100000, "eta": 0.01, "beta": 1.0, "alpha": [100, 50000]});
    let answer = quantities::compute("committee/late-law", inputs.as_object().unwrap());
    assert!(answer.is_ok(), "{answer:?}");
}

#[test]
fn at_its_edges_a_quantity_answers_or_says_why_not() {
    let good = good_inputs();
    let mut calls: Vec<(String, &'static str, Value, Map<String, Value>)> = Vec::new();
    for (path, quantity) in quantities::all() {
        let inputs = good[&path].as_object().unwrap();
        for input in quantity.inputs {
            let inside = inputs.get(input.name).filter(|_| matches!(input.kind, Kind::Any));
            for value in
                edges(input.kind).into_iter().chain(inside.map(with_hostile_numbers).unwrap_or_default())
            {
                let mut changed = inputs.clone();
                changed.insert(input.name.into(), value.clone());
                calls.push((path.clone(), input.name, value, changed));
            }
        }
    }
    assert!(calls.len() > 5000, "{} calls", calls.len());
    let faults: Vec<String> = calls
        .par_iter()
        .filter_map(|(path, name, value, inputs)| {
            wrong(path, inputs).map(|fault| format!("{path} at {name} = {value}: {fault}"))
        })
        .collect();
    assert!(faults.is_empty(), "{} of {}:\n{}", faults.len(), calls.len(), faults.join("\n"));
}

#[test]
fn inputs_that_are_missing_or_unknown_are_named() {
    let good = good_inputs();
    for (path, quantity) in quantities::all() {
        let inputs = good[&path].as_object().unwrap();
        for input in quantity.inputs.iter().filter(|i| i.default.is_none()) {
            let mut without = inputs.clone();
            without.remove(input.name);
            let message = quantities::compute(&path, &without).unwrap_err().to_string();
            assert!(message.contains(&format!("`{}`", input.name)), "{path}: {message}");
        }
        let mut more = inputs.clone();
        more.insert("nonsense".into(), json!(1));
        assert!(quantities::compute(&path, &more).unwrap_err().to_string().contains("`nonsense`"), "{path}");
    }
}
