//! What can be asked about optimal protocols without a description (`optimal-protocols/…`).

use super::{LateTimes, linear_unit};
use crate::model_input::{self, MODEL};
use didact_model::Spectrum;
use didact_model::quantity::{Answer, Arguments, Input, Kind, Quantity, QuantityError};
use serde_json::{Value, json};

/// All of them, with the name of their group.
pub fn quantities() -> Vec<(&'static str, &'static Quantity)> {
    QUANTITIES.iter().map(|q| ("optimal-protocols", q)).collect()
}

static QUANTITIES: &[Quantity] = &[
    Quantity {
        name: "linear-noise",
        summary: "optimal learning rate and loss of a linear unit with label noise after times alpha, from a loss at the start",
        inputs: &[
            Input { name: "loss0", kind: Kind::Number, default: Some("0.5"), about: "loss at the start" },
            Input {
                name: "label_noise",
                kind: Kind::Number,
                default: Some("0"),
                about: "standard deviation of the label noise",
            },
            Input { name: "alpha", kind: Kind::Numbers, default: None, about: "times, steps/d" },
        ],
        outputs: &["learning-rate", "loss"],
        compute: linear_noise,
    },
    Quantity {
        name: "asymptotic-rate",
        summary: "late times of the optimal learning rate with label noise, for as many students as teachers: lim T loss(T), lim T eta(T), lim alpha eta(alpha) before the end",
        inputs: &[
            MODEL,
            Input {
                name: "label_noise",
                kind: Kind::Number,
                default: None,
                about: "standard deviation of the label noise",
            },
            Input {
                name: "spectrum",
                kind: Kind::Any,
                default: Some("null"),
                about: "eigenvalues of the inputs and their weights, { eigenvalues = [...], weights = [...] }; isotropic unless given",
            },
        ],
        outputs: &["loss", "final-rate", "inner-rate"],
        compute: asymptotic_rate,
    },
];

fn domain(text: impl Into<String>) -> QuantityError {
    QuantityError::Domain(text.into())
}

fn linear_noise(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (loss, noise) = (arguments.number("loss0"), arguments.number("label_noise"));
    if loss <= 0.0 {
        return Err(domain(format!("loss0 is {loss}; it must be positive")));
    }
    if noise < 0.0 {
        return Err(domain(format!("label_noise is {noise}; it is a standard deviation, zero or positive")));
    }
    let times = arguments.numbers("alpha");
    if let Some(alpha) = times.iter().find(|alpha| **alpha < 0.0) {
        return Err(domain(format!("alpha is {alpha}; times are zero or positive")));
    }
    let (rates, losses): (Vec<f64>, Vec<f64>) =
        times.iter().map(|alpha| linear_unit(loss, noise, *alpha)).unzip();
    Ok(vec![("learning-rate", json!(rates)), ("loss", json!(losses))])
}

/// A spectrum given as eigenvalues and weights; equal weights unless given.
fn spectrum(given: &Value) -> Result<Spectrum, QuantityError> {
    if given.is_null() {
        return Ok(Spectrum::isotropic());
    }
    let list = |key: &str| -> Result<Option<Vec<f64>>, QuantityError> {
        match given.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Array(entries)) => {
                let numbers: Option<Vec<f64>> = entries.iter().map(Value::as_f64).collect();
                numbers
                    .map(Some)
                    .ok_or_else(|| domain(format!("`{key}` of the spectrum is a list of numbers")))
            }
            Some(_) => Err(domain(format!("`{key}` of the spectrum is a list of numbers"))),
        }
    };
    let eigenvalues =
        list("eigenvalues")?.ok_or_else(|| domain("the spectrum needs `eigenvalues`, a list of numbers"))?;
    let equal = vec![1.0 / eigenvalues.len().max(1) as f64; eigenvalues.len()];
    let weights = list("weights")?.unwrap_or(equal);
    Spectrum::new(eigenvalues, weights).map_err(|e| domain(e.to_string()))
}

fn asymptotic_rate(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let rule = model_input::rule(arguments)?;
    let late =
        LateTimes::of(&*rule, &spectrum(arguments.value("spectrum"))?, arguments.number("label_noise"))
            .map_err(|e| domain(e.to_string()))?;
    Ok(vec![
        ("loss", json!(late.loss)),
        ("final-rate", json!(late.final_rate)),
        ("inner-rate", json!(late.inner_rate)),
    ])
}
