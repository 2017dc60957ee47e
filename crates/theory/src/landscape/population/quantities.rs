//! The population landscape by name: any family at any weights.

use super::stationary::classify;
use super::{self as population, RepeatedEigenvalue, SIZE_LIMIT};
use crate::model_input::{self, MODEL};
use didact_math::linalg::{Mat, is_psd};
use didact_model::quantity::{Answer, Arguments, Input, Kind, Quantity, QuantityError};
use didact_model::rule::LocalRule;
use serde_json::{Value, json};
use std::sync::Arc;

/// Quantities of the group `landscape` that this machinery answers.
pub(crate) const POPULATION: &[Quantity] = &[
    Quantity {
        name: "population-point",
        summary: "population risk, gradient and Hessian at given weights: kind of point, spectrum, null directions told apart",
        inputs: &[
            MODEL,
            Input {
                name: "W",
                kind: Kind::Rows,
                default: None,
                about: "trained rows, each of N numbers of order 1",
            },
            Input {
                name: "frozen",
                kind: Kind::Rows,
                default: Some("null"),
                about: "frozen rows; the first axes unless given",
            },
            Input { name: "limit", kind: Kind::Count, default: Some("4000"), about: "largest dense Hessian" },
        ],
        outputs: &[
            "kind",
            "risk",
            "gradient",
            "spectrum",
            "eigenvalues",
            "multiplicities",
            "negative",
            "null",
            "positive",
            "tangent",
            "flat",
            "smallest",
            "largest",
        ],
        compute: point,
    },
    Quantity {
        name: "population-spectrum",
        summary: "all eigenvalues of the population Hessian with multiplicities, from overlaps alone, at any N",
        inputs: &[
            MODEL,
            Input { name: "Q", kind: Kind::Matrix, default: None, about: "overlaps of the trained rows" },
            Input {
                name: "R",
                kind: Kind::Rows,
                default: None,
                about: "overlaps of trained with frozen rows",
            },
            Input {
                name: "T",
                kind: Kind::Matrix,
                default: Some("null"),
                about: "overlaps of the frozen rows; identity unless given",
            },
            Input { name: "N", kind: Kind::Count, default: None, about: "input dimension" },
        ],
        outputs: &[
            "spectrum",
            "eigenvalues",
            "multiplicities",
            "negative",
            "null",
            "positive",
            "smallest",
            "largest",
        ],
        compute: spectrum,
    },
];

fn domain(message: impl ToString) -> QuantityError {
    QuantityError::Domain(message.to_string())
}

/// The rule and its scalars before training.
fn model(arguments: &Arguments) -> Result<(Arc<dyn LocalRule>, Vec<f64>), QuantityError> {
    let model = model_input::model(arguments)?;
    Ok((model.rule().map_err(domain)?, model.starting_scalars()))
}

fn levels(levels: &[RepeatedEigenvalue]) -> Value {
    levels.iter().map(|l| json!([l.value, l.count])).collect()
}

/// The eigenvalues of the levels, as a list to draw.
fn values(levels: &[RepeatedEigenvalue]) -> Value {
    levels.iter().map(|l| json!(l.value)).collect()
}

/// Their multiplicities, in the same order.
fn counts(levels: &[RepeatedEigenvalue]) -> Value {
    levels.iter().map(|l| json!(l.count)).collect()
}

fn point(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (rule, scalars) = model(arguments)?;
    let (trained, frozen) = (arguments.matrix("W"), rule.shape().frozen);
    let n = trained.cols();
    if frozen > n {
        return Err(domain(format!("{frozen} frozen rows do not fit in N = {n}")));
    }
    let other = if arguments.given("frozen") {
        arguments.matrix("frozen")
    } else {
        Mat::from_fn(frozen, n, |l, i| f64::from(i == l))
    };
    let all: Vec<Vec<f64>> = trained.to_rows().into_iter().chain(other.to_rows()).collect();
    let rows = Mat::from_rows(&all).ok_or_else(|| domain("W and frozen rows have different lengths"))?;
    let limit = if arguments.given("limit") { arguments.count("limit") } else { SIZE_LIMIT };
    let found = classify(&*rule, &rows, &scalars, limit).map_err(domain)?;
    Ok(vec![
        ("kind", json!(found.kind.name())),
        ("risk", json!(found.risk)),
        ("gradient", json!(found.gradient)),
        ("spectrum", levels(&found.spectrum)),
        ("eigenvalues", values(&found.spectrum)),
        ("multiplicities", counts(&found.spectrum)),
        ("negative", json!(found.negative)),
        ("null", json!(found.null)),
        ("positive", json!(found.positive)),
        ("tangent", json!(found.tangent)),
        ("flat", json!(found.flat)),
        ("smallest", json!(found.spectrum.first().map(|l| l.value))),
        ("largest", json!(found.spectrum.last().map(|l| l.value))),
    ])
}

fn spectrum(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (rule, scalars) = model(arguments)?;
    let (q, r) = (arguments.matrix("Q"), arguments.matrix("R"));
    let t = if arguments.given("T") { arguments.matrix("T") } else { Mat::identity(r.cols()) };
    let k = q.rows();
    if r.rows() != k || t.rows() != r.cols() {
        return Err(domain(format!(
            "Q is {k} x {k}, R {} x {}, T {2} x {2}: these are not the overlaps of one set of rows",
            r.rows(),
            r.cols(),
            t.rows()
        )));
    }
    let gram = Mat::from_fn(k + t.rows(), k + t.rows(), |i, j| match (i < k, j < k) {
        (true, true) => q[(i, j)],
        (true, false) => r[(i, j - k)],
        (false, true) => r[(j, i - k)],
        (false, false) => t[(i - k, j - k)],
    });
    if !is_psd(&gram) {
        return Err(domain("no rows have these overlaps: not symmetric, or with a negative direction"));
    }
    let found = population::spectrum(&*rule, &gram, arguments.count("N"), &scalars).map_err(domain)?;
    let count = |keep: &dyn Fn(f64) -> bool| -> usize {
        found.iter().filter(|l| keep(l.value)).map(|l| l.count).sum()
    };
    let zero = 1e-9 * found.iter().map(|l| l.value.abs()).fold(0.0, f64::max);
    Ok(vec![
        ("spectrum", levels(&found)),
        ("eigenvalues", values(&found)),
        ("multiplicities", counts(&found)),
        ("negative", json!(count(&|v| v < -zero))),
        ("null", json!(count(&|v| v.abs() <= zero))),
        ("positive", json!(count(&|v| v > zero))),
        ("smallest", json!(found.first().map(|l| l.value))),
        ("largest", json!(found.last().map(|l| l.value))),
    ])
}
