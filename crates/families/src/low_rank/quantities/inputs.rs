//! Inputs that several quantities share, and how they are read and checked.

use super::super::network::{Mode, Network};
use super::super::orthonormal::{Signal, Sums, sums_are_possible};
use super::super::population::Instance;
use super::super::validate;
use crate::ModelError;
use didact_math::activation::Activation;
use didact_math::linalg::Mat;
use didact_model::quantity::{Arguments, Input, Kind, QuantityError};
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) const fn needed(name: &'static str, kind: Kind, about: &'static str) -> Input {
    Input { name, kind, default: None, about }
}

pub(super) const fn optional(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    about: &'static str,
) -> Input {
    Input { name, kind, default: Some(default), about }
}

pub(super) const ACTIVATION: Input = needed("activation", Kind::Text, "any activation");
pub(super) const GRAM: Input = optional(
    "G",
    Kind::Matrix,
    "null",
    "Gram matrix of the base rows, unit diagonal; orthonormal unless given",
);
pub(super) const SECOND_LAYER: Input =
    optional("lambda", Kind::Numbers, "null", "second layer; ones unless given");
pub(super) const LOADING: Input = needed("c", Kind::Numbers, "loading of the teacher, a unit vector");
pub(super) const STUDENT_LOADING: Input =
    needed("c_hat", Kind::Numbers, "loading of the student, a unit vector");
pub(super) const STRENGTH: Input = needed("xi", Kind::Number, "strength of the perturbation");
pub(super) const MODE: Input = optional(
    "mode",
    Kind::Text,
    "\"normalised\"",
    "normalised, raw or printed: the scale of pre-activations",
);
pub(super) const OUTPUT_SCALE: Input = optional("A", Kind::Number, "1", "output scale");
pub(super) const OVERLAPS: Input = needed("m", Kind::Numbers, "overlaps u·û");
/// Hidden units of a network of which sums over units, or over numbers of units, are computed.
pub(super) const MOST_UNITS: usize = 2048;

/// Overlaps at which averages are computed.
const MOST_OVERLAPS: usize = 1000;

pub(super) const UNITS: Input = needed("k", Kind::Count, "hidden units");
pub(super) const PRODUCT: Input = needed("BB", Kind::Number, "(sum b)(sum b_hat)");
pub(super) const OVERLAP: Input = needed("O", Kind::Number, "sum b b_hat = k omega");
pub(super) const THETA: Input = needed("theta", Kind::Number, "xi^2/(k + xi^2)");
pub(super) const SIGNS: Input = needed("b", Kind::Numbers, "signs of c");
pub(super) const STUDENT_SIGNS: Input = needed("b_hat", Kind::Numbers, "signs of c_hat");
pub(super) const STEP: Input = needed("gamma", Kind::Number, "step size times d_perp");

pub(super) fn domain(message: impl Into<String>) -> QuantityError {
    QuantityError::Domain(message.into())
}

/// A list for a list, a number for a number.
pub(super) fn like(given: &Value, values: &[f64]) -> Value {
    if given.is_array() { json!(values) } else { json!(values[0]) }
}

pub(super) fn activation(a: &Arguments) -> Result<Arc<dyn Activation>, QuantityError> {
    validate::activation(a.text("activation")).map_err(|e: ModelError| domain(e.to_string()))
}

pub(super) fn positive(a: &Arguments, name: &'static str) -> Result<f64, QuantityError> {
    let value = a.number(name);
    if value > 0.0 { Ok(value) } else { Err(domain(format!("{name} is {value}; it must be positive"))) }
}

pub(super) fn overlaps(a: &Arguments, name: &'static str) -> Result<Vec<f64>, QuantityError> {
    let list = a.numbers(name);
    if list.len() > MOST_OVERLAPS {
        return Err(domain(format!(
            "{name} holds {} overlaps; up to {MOST_OVERLAPS} can be computed",
            list.len()
        )));
    }
    match list.iter().find(|m| m.abs() > 1.0) {
        Some(m) => Err(domain(format!("{name} holds {m}; |m| <= 1 is needed"))),
        None => Ok(list),
    }
}

pub(super) fn second_layer(a: &Arguments, units: usize) -> Result<Vec<f64>, QuantityError> {
    let list = if a.given("lambda") { a.numbers("lambda") } else { vec![1.0; units] };
    if list.len() == units {
        return Ok(list);
    }
    Err(domain(format!("lambda has {} entries, expected {units}", list.len())))
}

/// σ, λ, ξ, mode and A of `units` units; mode and A only where they are inputs.
pub(super) fn network(a: &Arguments, units: usize, scales: bool) -> Result<Network, QuantityError> {
    let mode = if scales {
        serde_json::from_value(a.value("mode").clone())
            .map_err(|_| domain(format!("mode is `{}`; use normalised, raw or printed", a.text("mode"))))?
    } else {
        Mode::Normalised
    };
    let mut network = Network::new(activation(a)?, second_layer(a, units)?, positive(a, "xi")?, mode);
    if scales {
        network.output_scale = a.number("A");
    }
    Ok(network)
}

/// G, or the identity of as many rows as the list `like` has entries.
pub(super) fn gram(a: &Arguments, like: &str) -> Result<Mat, QuantityError> {
    if !a.given("G") {
        return Ok(Mat::identity(a.numbers(like).len()));
    }
    let gram = a.matrix("G");
    validate::unit_gram(&gram).map_err(domain)?;
    Ok(gram)
}

pub(super) fn loading(a: &Arguments, name: &'static str, units: usize) -> Result<Vec<f64>, QuantityError> {
    let list = a.numbers(name);
    if list.len() != units {
        return Err(domain(format!("{name} has {} entries, expected {units}", list.len())));
    }
    validate::unit_loading(name, &list).map_err(domain)?;
    Ok(list)
}

/// Loadings ±1/√k, which the formula at hand assumes.
pub(super) fn quantised(name: &str, list: &[f64]) -> Result<(), QuantityError> {
    if validate::is_quantised(list) {
        return Ok(());
    }
    Err(domain(format!(
        "{name} is not quantised: this formula needs entries ±1/√k; `signal` and `loss` do not"
    )))
}

pub(super) fn instance(a: &Arguments, scales: bool) -> Result<Instance, QuantityError> {
    let gram = gram(a, "c")?;
    let units = gram.rows();
    Ok(Instance {
        network: network(a, units, scales)?,
        loading: loading(a, "c", units)?,
        student_loading: loading(a, "c_hat", units)?,
        gram,
    })
}

pub(super) fn theta(a: &Arguments) -> Result<f64, QuantityError> {
    let theta = a.number("theta");
    if theta > 0.0 && theta < 1.0 {
        return Ok(theta);
    }
    Err(domain(format!("theta is {theta}; it lies between 0 (lazy) and 1 (single index)")))
}

/// The closed form of (k, BB, O, θ).
pub(super) fn orthonormal<'a>(
    a: &Arguments,
    activation: &'a dyn Activation,
) -> Result<Signal<'a>, QuantityError> {
    let (k, product, overlap) = (a.count_up_to("k", MOST_UNITS)?, a.number("BB"), a.number("O"));
    let most = (k * k) as f64;
    let whole =
        product.fract() == 0.0 && overlap.fract() == 0.0 && product.abs() <= most && overlap.abs() <= most;
    if !whole || !sums_are_possible(k, product as i64, overlap as i64) {
        return Err(domain(format!(
            "no signs b, b_hat of {k} units have BB = {product} and O = {overlap}: the counts of (+,+), (+,-), (-,+), \
             (-,-) must be whole and not negative"
        )));
    }
    Ok(Signal::new(activation, Sums::plain(k, product, overlap), theta(a)?))
}

pub(super) fn signs(a: &Arguments, name: &'static str, units: usize) -> Result<Vec<f64>, QuantityError> {
    let list = a.numbers(name);
    if list.len() != units {
        return Err(domain(format!("{name} has {} entries, expected {units}", list.len())));
    }
    if list.iter().any(|b| b.abs() != 1.0) {
        return Err(domain(format!("{name} must hold signs, 1 or -1")));
    }
    Ok(list)
}
