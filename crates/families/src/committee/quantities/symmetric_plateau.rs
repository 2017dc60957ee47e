//! Closed forms for K = M erf committees: the symmetric plateau, the way out of it, and the specialised phase.
//!
//! docs/derivations/power-law-spectra.md#s6 and docs/derivations/power-law-spectra.md#s7, for output weights
//! 1/√M on both sides (`scaled`). All-ones weights (`soft`) multiply the loss and every kick by M: heights are M times
//! larger, and rates as if η were M η.

use didact_model::quantity::{Answer, Arguments, Input, Kind, Quantity, QuantityError};
use didact_model::rule::Law;
use serde_json::json;
use std::f64::consts::PI;

use crate::Family;
use crate::committee::predictions::specialised;
use crate::committee::predictions::teacher::growth_coefficient;
use crate::committee::{Committee, Output};

const WIDTH: Input =
    Input { name: "M", kind: Kind::Count, default: None, about: "hidden units of student and teacher" };
const OUTPUT: Input = Input {
    name: "output",
    kind: Kind::Text,
    default: Some("\"soft\""),
    about: "output weights: soft (1) or scaled (1/sqrt M)",
};
const RATE: Input = Input { name: "eta", kind: Kind::Number, default: None, about: "learning rate" };

const fn optional(name: &'static str, default: &'static str, about: &'static str) -> Input {
    Input { name, kind: Kind::Number, default: Some(default), about }
}

pub(super) const QUANTITIES: &[Quantity] = &[
    Quantity {
        name: "plateau",
        summary: "symmetric plateau of erf units, K = M, small learning rate: overlaps and loss",
        inputs: &[
            WIDTH,
            optional("T", "1", "teacher norm, the diagonal of T"),
            optional("D", "0", "row sum of the off-diagonal of T"),
            OUTPUT,
        ],
        outputs: &["R", "Q", "loss"],
        compute: plateau,
    },
    Quantity {
        name: "escape",
        summary: "escape from the symmetric plateau of erf units: rate of growth of the overlaps and its inverse",
        inputs: &[
            WIDTH,
            RATE,
            optional("T", "1", "diagonal of T^(1)"),
            optional("D", "0", "row sum of the off-diagonal of T^(1)"),
            optional("T2", "1", "diagonal of T^(2)"),
            optional("D2", "0", "row sum of the off-diagonal of T^(2)"),
            OUTPUT,
        ],
        outputs: &["rate", "tau", "tau-loss", "growth", "coefficient"],
        compute: escape,
    },
    Quantity {
        name: "critical-rate",
        summary: "largest learning rate at which the specialised phase of erf units is stable (T = 1)",
        inputs: &[WIDTH, OUTPUT],
        outputs: &["eta"],
        compute: critical_rate,
    },
    Quantity {
        name: "loss",
        summary: "generalisation error at a given covariance of the fields (students first), any activation",
        inputs: &[
            Input { name: "K", kind: Kind::Count, default: None, about: "hidden units of the student" },
            WIDTH,
            Input {
                name: "C",
                kind: Kind::Matrix,
                default: None,
                about: "covariance of the fields, (K+M) x (K+M)",
            },
            Input {
                name: "activation",
                kind: Kind::Text,
                default: Some("\"erf(z/sqrt2)\""),
                about: "any activation",
            },
            OUTPUT,
        ],
        outputs: &["loss"],
        compute: loss,
    },
];

/// M for all-ones output weights, 1 for scaled ones.
fn gain(arguments: &Arguments) -> Result<f64, QuantityError> {
    match arguments.text("output") {
        "soft" => Ok(arguments.number("M")),
        "scaled" => Ok(1.0),
        other => Err(QuantityError::Domain(format!("output is `{other}`; use soft or scaled"))),
    }
}

/// Q* = S/(A − S), R* = S/√(M(A − S)), with S = T + D and A = M(1 + T)
/// (docs/derivations/power-law-spectra.md#eq-42, docs/derivations/power-law-spectra.md#eq-43).
fn plateau(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (m, t, d) = (arguments.number("M"), arguments.number("T"), arguments.number("D"));
    let (s, a) = (t + d, m * (1.0 + t));
    if t <= 0.0 || s <= 0.0 || s >= a || (m == 1.0 && d != 0.0) {
        return Err(QuantityError::Domain(format!("no teachers have T = {t}, D = {d} at M = {m}")));
    }
    let off = if m > 1.0 { (m - 1.0) * (d / ((m - 1.0) * (1.0 + t))).asin() } else { 0.0 };
    let height = ((t / (1.0 + t)).asin() + off - m * (s / a).asin()) / PI;
    Ok(vec![
        ("R", json!(s / (m * (a - s)).sqrt())),
        ("Q", json!(s / (a - s))),
        ("loss", json!(gain(arguments)? * height)),
    ])
}

/// 1/τ = η g_r λ_r, λ_r = T2 − D2/(M−1). The loss leaves twice as fast: ε* − ε = coefficient r² ~ exp(2α/τ).
fn escape(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (m, t, d) = (arguments.number("M"), arguments.number("T"), arguments.number("D"));
    if m < 2.0 {
        return Err(QuantityError::Domain(
            "one unit has no symmetric plateau to escape from; use M >= 2".into(),
        ));
    }
    if t <= 0.0 || t + d <= 0.0 || t + d >= m * (1.0 + t) {
        return Err(QuantityError::Domain(format!("no teachers have T = {t}, D = {d} at M = {m}")));
    }
    let growth = growth_coefficient(m, t, d);
    let signal = arguments.number("T2") - arguments.number("D2") / (m - 1.0);
    let rate = arguments.number("eta") * gain(arguments)? * growth * signal;
    if rate.is_nan() || rate <= 0.0 {
        return Err(QuantityError::Domain(format!(
            "the rate is {rate}: these teachers do not break the symmetry"
        )));
    }
    Ok(vec![
        ("rate", json!(rate)),
        ("tau", json!(1.0 / rate)),
        ("tau-loss", json!(0.5 / rate)),
        ("growth", json!(growth)),
        ("coefficient", json!(growth * m * m / (2.0 * (m - 1.0)) * gain(arguments)?)),
    ])
}

/// η_c of the specialised phase (docs/derivations/power-law-spectra.md#eq-54).
fn critical_rate(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let rate = specialised::critical_rate(arguments.number("M"));
    Ok(vec![("eta", json!(rate / gain(arguments)?))])
}

fn loss(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (k, m, covariance) = (arguments.count("K"), arguments.count("M"), arguments.matrix("C"));
    if covariance.rows() != k + m {
        let message = format!("C is {0} x {0}, expected {1} x {1}", covariance.rows(), k + m);
        return Err(QuantityError::Domain(message));
    }
    if !didact_math::linalg::is_psd(&covariance) {
        return Err(QuantityError::Domain(
            "C is not a covariance: not symmetric, or with a negative direction".into(),
        ));
    }
    let output = if gain(arguments)? == 1.0 && m != 1 { Output::Scaled } else { Output::Soft };
    let spec = Committee { output, ..Committee::soft(k, m, arguments.text("activation")) };
    let rule = spec.rule().map_err(|e| QuantityError::Domain(e.to_string()))?;
    let law = Law { covariance: &covariance, scalars: &[], label_noise: 0.0 };
    Ok(vec![("loss", json!(rule.risk(&law)))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, Value};

    fn compute(name: &str, inputs: Value) -> Vec<f64> {
        let given: Map<String, Value> = inputs.as_object().unwrap().clone();
        let quantity = QUANTITIES.iter().find(|q| q.name == name).unwrap();
        quantity.evaluate(&given).unwrap().iter().map(|(_, v)| v.as_f64().unwrap()).collect()
    }

    #[test]
    fn plateau_heights_are_those_of_the_spec() {
        // 1/6 − (M/π) asin(1/2M): docs/derivations/power-law-spectra.md#eq-43.
        for (m, height) in [(2, 0.0058054), (3, 0.0067655), (4, 0.0070943), (6, 0.0073269), (8, 0.0074079)] {
            let got = compute("plateau", json!({"M": m, "output": "scaled"}))[2];
            assert!((got - height).abs() < 5e-8, "{m}: {got}");
            let soft = compute("plateau", json!({"M": m}))[2];
            assert!((soft - f64::from(m) * got).abs() < 1e-14);
        }
    }

    #[test]
    fn critical_rates_are_those_of_the_spec() {
        for (m, rate) in
            [(1, 4.05578), (2, 4.61366), (3, 4.86202), (4, 4.99757), (10, 5.25824), (40, 5.39507)]
        {
            let got = compute("critical-rate", json!({"M": m, "output": "scaled"}))[0];
            assert!((got - rate).abs() < 6e-6, "{m}: {got}");
        }
    }

    #[test]
    fn escape_time_is_that_of_the_figure() {
        // tau_esc = 304 for K = M = 2, eta = 0.1, one eigenvalue (docs/derivations/power-law-spectra.md#f1).
        let tau = compute("escape", json!({"M": 2, "eta": 0.1, "output": "scaled"}))[1];
        assert!((tau - 304.0).abs() < 0.5, "{tau}");
    }
}
