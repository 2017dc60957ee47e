//! Predictions of the single-index model that are not trajectories, by name.

mod flows;
mod hermite;
mod rates;
pub(super) mod two_layer;

use super::landscape::{AdapterState, Landscape};
use super::population::LossName;
use super::single_index::LoraSingleIndex;
use didact_model::quantity::{Arguments, Input, Kind, Quantity, QuantityError};
use serde_json::{Value, json};

/// Every quantity of the family.
pub(super) const QUANTITIES: &[Quantity] = &[
    rates::RATES,
    rates::LIMITS,
    rates::MISALIGNED,
    rates::DESCENT,
    rates::MECHANICS,
    rates::POTENTIAL,
    rates::ZEROS,
    hermite::RATES,
    hermite::SINGULAR,
    hermite::POLYNOMIAL,
    hermite::MEAN,
    hermite::COEFFICIENTS,
    flows::LOSS,
    flows::NOISE,
    flows::FLOW,
    flows::EXIT,
    flows::OUTCOME,
    flows::OPTIMAL,
    flows::SWITCH,
    flows::LARGE_BATCH,
];

const MU: Input = required("mu", Kind::Number, "strength of pre-training, between 0 and 1");
const ACTIVATION: Input =
    required("activation", Kind::Text, "activation of the student, and of the teacher unless given");
const TEACHER: Input = optional("teacher", Kind::Text, "null", "activation of the teacher, if another");
const LABELS: Input = optional("labels", Kind::Text, "\"plain\"", "plain, squared, or a formula in y");
const LOSS: Input = optional("loss", Kind::Text, "\"half\"", "half ((y-f)^2/2) or correlation (1 - y f)");
const DELTA: Input = optional("delta", Kind::Number, "1", "rescaling of time; 1/(k k!) is natural for He_k");
const U: Input = required("u", Kind::Number, "amplitude of the adapter");
const M: Input = required("m", Kind::Number, "overlap of the adapter with the teacher");
const U0: Input = optional(
    "u0",
    Kind::Number,
    "0.03162277660168379",
    "amplitude at the start; d^-1/2 at d = 1000 unless given",
);
const M0: Input = optional(
    "m0",
    Kind::Number,
    "0.03162277660168379",
    "overlap at the start; d^-1/2 at d = 1000 unless given",
);

const fn required(name: &'static str, kind: Kind, about: &'static str) -> Input {
    Input { name, kind, default: None, about }
}

const fn optional(name: &'static str, kind: Kind, default: &'static str, about: &'static str) -> Input {
    Input { name, kind, default: Some(default), about }
}

fn domain(message: impl Into<String>) -> QuantityError {
    QuantityError::Domain(message.into())
}

/// Far beyond the amplitude of any teacher; powers of it are still numbers.
const LARGEST_AMPLITUDE: f64 = 1000.0;

/// Why an escape time is missing.
const NO_GROWTH: &str = "infinite: nothing grows";

/// A number, or null where it is infinite (JSON has no infinity).
fn number(value: f64) -> Value {
    if value.is_finite() { json!(value) } else { Value::Null }
}

/// The landscape of `activation`, `teacher`, `labels`, `loss` at a given μ.
fn landscape_at(arguments: &Arguments, mu: f64) -> Result<Landscape, QuantityError> {
    let spec = LoraSingleIndex {
        teacher_activation: arguments.given("teacher").then(|| arguments.text("teacher").to_owned()),
        labels: arguments.text("labels").to_owned(),
        loss: match arguments.text("loss") {
            "half" => LossName::Half,
            "correlation" => LossName::Correlation,
            other => return Err(domain(format!("loss is `{other}`; use half or correlation"))),
        },
        ..LoraSingleIndex::matched(mu, arguments.text("activation"))
    };
    spec.landscape().map_err(|e| domain(e.to_string()))
}

/// The landscape at `mu`.
fn landscape(arguments: &Arguments) -> Result<Landscape, QuantityError> {
    landscape_at(arguments, arguments.number("mu"))
}

/// δ > 0.
fn delta(arguments: &Arguments) -> Result<f64, QuantityError> {
    positive(arguments, "delta")
}

fn positive(arguments: &Arguments, name: &str) -> Result<f64, QuantityError> {
    let value = arguments.number(name);
    if value > 0.0 { Ok(value) } else { Err(domain(format!("`{name}` is {value}; it must be positive"))) }
}

/// (u, m) from two inputs, |m| ≤ 1.
fn state(arguments: &Arguments, amplitude: &str, overlap: &str) -> Result<AdapterState, QuantityError> {
    let m = arguments.number(overlap);
    if m.abs() > 1.0 {
        return Err(domain(format!("`{overlap}` is {m}; the overlap of unit vectors is between -1 and 1")));
    }
    let u = arguments.number(amplitude);
    if u.abs() > LARGEST_AMPLITUDE {
        return Err(domain(format!(
            "`{amplitude}` is {u:e}; amplitudes up to {LARGEST_AMPLITUDE} can be computed"
        )));
    }
    Ok(AdapterState::aligned(u, m))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Map;

    fn ask(name: &str, inputs: Value) -> Result<Map<String, Value>, QuantityError> {
        let quantity = QUANTITIES.iter().find(|q| q.name == name).unwrap_or_else(|| panic!("no {name}"));
        let answer = quantity.evaluate(inputs.as_object().unwrap())?;
        Ok(answer.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
    }

    #[test]
    fn an_infinite_escape_time_is_null_and_said_to_diverge() {
        // He_4 labels are orthogonal to a linear student, so that the correlation loss couples nothing: A = B = 0.
        let inputs = json!({"mu": 0.5, "activation": "linear", "teacher": "He4", "loss": "correlation"});
        let answer = ask("rates", inputs).unwrap();
        assert!(answer["tau"].is_null() && answer["diverges"] == json!(true), "{answer:?}");
        // Near the singular alignment of He_3 the time is long but finite.
        let answer = ask("hermite-rates", json!({"mu": 0.325, "k": 3})).unwrap();
        assert!((answer["tau"].as_f64().unwrap() - 42912.82).abs() < 0.01, "{answer:?}");
    }

    #[test]
    fn the_three_methods_of_the_loss_agree() {
        let mut inputs = json!({"mu": 0.4, "u": 0.3, "m": 0.25, "activation": "erf(z)"});
        let closed = ask("loss", inputs.clone()).unwrap();
        for method in ["hermite", "quadrature"] {
            inputs["method"] = json!(method);
            let other = ask("loss", inputs.clone()).unwrap();
            for (name, value) in &closed {
                let difference = value.as_f64().unwrap() - other[name].as_f64().unwrap();
                assert!(difference.abs() < 1e-11, "{method}: {name}");
            }
        }
    }

    #[test]
    fn squared_even_hermite_labels_create_divergences() {
        let answer = ask("zeros", json!({"activation": "He6", "labels": "squared"})).unwrap();
        let list = |name: &str| -> Vec<f64> {
            answer[name].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
        };
        let zeros = list("mu");
        assert_eq!(zeros.len(), 2, "{zeros:?}");
        assert!((zeros[0] - 0.31249456).abs() < 1e-8 && (zeros[1] - 0.59443658).abs() < 1e-8);
        assert!(list("B")[0] < 0.0 && list("B")[1] > 0.0);
        assert_eq!(answer["diverges"], json!([true, false]));
    }

    #[test]
    fn squared_erf_labels_have_their_fastest_escape_inside() {
        let answer =
            ask("optimal-mu", json!({"activation": "erf(z)", "labels": "squared", "points": 6, "time": 1e4}))
                .unwrap();
        assert!((answer["mu-tau"].as_f64().unwrap() - 0.67352).abs() < 1e-4, "{answer:?}");
        assert!((answer["tau"].as_f64().unwrap() - 7.41693552).abs() < 1e-7, "{answer:?}");
        assert!(answer["mu"].is_null(), "an odd student never fits squares: {answer:?}");
    }

    #[test]
    fn bad_inputs_are_refused_with_a_reason() {
        for (name, inputs, word) in [
            ("rates", json!({"mu": 1.2, "activation": "erf(z)"}), "between 0 and 1"),
            ("rates", json!({"mu": 0.5, "activation": "erf"}), "ambiguous"),
            ("rates", json!({"mu": 0.5, "activation": "erf(z)", "delta": -1}), "positive"),
            ("rates", json!({"mu": 0.5, "activation": "erf(z)", "labels": "sign(y)"}), "jump"),
            (
                "rates",
                json!({"mu": 0.5, "activation": "erf(z)", "labels": "squared", "loss": "correlation"}),
                "y^2",
            ),
            ("hermite-rates", json!({"k": 61, "mu": 0.5}), "60"),
            ("singular-alignments", json!({"k": 0}), "whole number"),
            ("loss", json!({"mu": 0.5, "activation": "erf(z)", "u": 0.1, "m": 1.4}), "between -1 and 1"),
            ("loss", json!({"mu": 0.5, "activation": "relu", "u": -0.5, "m": 1.0}), "relu"),
            ("hermite-mean", json!({"k": 2, "r": -1}), "variance"),
            ("mechanics", json!({"mu": 0.5, "activation": "linear", "u": 0.1, "m": 1.0}), "m = 1"),
        ] {
            let error = ask(name, inputs.clone()).unwrap_err().to_string();
            assert!(error.contains(word), "{name} {inputs}: {error}");
        }
    }
}
