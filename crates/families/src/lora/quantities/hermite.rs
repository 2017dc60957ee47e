//! Hermite units and Hermite coefficients, as quantities.

use super::{ACTIVATION, MU, NO_GROWTH, domain, number, required};
use crate::lora::hermite::{
    LARGEST_ORDER, drift, mean, singular_alignments, stable_overlap, variance_slope_coefficients,
};
use crate::lora::search_phase::Rates;
use didact_model::quantity::{Answer, Arguments, Input, Kind, Quantity, QuantityError, explained};
use serde_json::json;

const ORDER: Input = required("k", Kind::Count, "order of He_k, up to 60");

pub(super) const RATES: Quantity = Quantity {
    name: "hermite-rates",
    summary: "A, B and tau of matched He_k in the rescaled time delta = 1/(k k!), to all digits at any k",
    inputs: &[ORDER, MU],
    outputs: &["A", "B", "tau", "lambda-plus"],
    compute: rates,
};

pub(super) const SINGULAR: Quantity = Quantity {
    name: "singular-alignments",
    summary: "for each k, all mu in (0, 1) at which matched He_k never escapes (A = 0)",
    inputs: &[required("k", Kind::Numbers, "orders of He_k, one or several")],
    outputs: &["mu", "stable-below", "first", "last", "count"],
    compute: singular,
};

pub(super) const POLYNOMIAL: Quantity = Quantity {
    name: "variance-polynomial",
    summary: "coefficients of D_k(r) = d/dr E[He_k(sqrt(r) z)^2]/(k k!), powers 0 to k-1",
    inputs: &[ORDER],
    outputs: &["coefficients"],
    compute: |arguments| Ok(vec![("coefficients", json!(variance_slope_coefficients(order(arguments)?)))]),
};

pub(super) const MEAN: Quantity = Quantity {
    name: "hermite-mean",
    summary: "E[He_k(s)] for s of variance r",
    inputs: &[ORDER, required("r", Kind::Number, "variance")],
    outputs: &["mean"],
    compute: |arguments| Ok(vec![("mean", json!(mean(order(arguments)?, variance(arguments)?)))]),
};

pub(super) const COEFFICIENTS: Quantity = Quantity {
    name: "hermite-coefficients",
    summary: "b_k(r) = E[sigma(sqrt(r) z) He_k(z)]/sqrt(k!), the first of them",
    inputs: &[
        ACTIVATION,
        required("r", Kind::Number, "variance"),
        required("terms", Kind::Count, "how many"),
    ],
    outputs: &["b"],
    compute: coefficients,
};

fn order(arguments: &Arguments) -> Result<usize, QuantityError> {
    check(arguments.number("k"))
}

fn check(k: f64) -> Result<usize, QuantityError> {
    if k < 1.0 || k.fract() != 0.0 {
        return Err(domain(format!("k is {k}; the order of He_k is a whole number, at least 1")));
    }
    if k > LARGEST_ORDER as f64 {
        return Err(domain(format!("k is {k}; Hermite units go up to order {LARGEST_ORDER}")));
    }
    Ok(k as usize)
}

fn variance(arguments: &Arguments) -> Result<f64, QuantityError> {
    let r = arguments.number("r");
    if r >= 0.0 { Ok(r) } else { Err(domain(format!("r is {r}; a variance is not negative"))) }
}

fn rates(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let mu = arguments.number("mu");
    if !(mu > 0.0 && mu < 1.0) {
        return Err(domain(format!("mu is {mu}; pre-training strengths lie strictly between 0 and 1")));
    }
    let (a, b) = drift(order(arguments)?, mu);
    let rates = Rates::from_coefficients(a, 0.0, b, 0.0);
    let answer = vec![
        ("A", json!(a)),
        ("B", json!(b)),
        ("tau", number(rates.escape_time())),
        ("lambda-plus", json!(rates.growth)),
    ];
    Ok(explained(answer, &[("tau", NO_GROWTH)]))
}

fn singular(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let orders: Vec<usize> = arguments.numbers("k").into_iter().map(check).collect::<Result<_, _>>()?;
    let zeros: Vec<Vec<f64>> = orders.iter().map(|&k| singular_alignments(k)).collect();
    let stable: Vec<Vec<Option<f64>>> = orders
        .iter()
        .zip(&zeros)
        .map(|(&k, zeros)| zeros.iter().map(|&mu| stable_overlap(k, mu)).collect())
        .collect();
    let first = zeros.first().and_then(|z| z.first());
    let last = zeros.first().and_then(|z| z.last());
    let answer = vec![
        ("mu", json!(zeros)),
        ("stable-below", json!(stable)),
        ("first", json!(first)),
        ("last", json!(last)),
        ("count", json!(zeros.first().map_or(0, Vec::len))),
    ];
    let none = "the first order has no singular alignment";
    let unstable = "null where no overlap is stable";
    Ok(explained(answer, &[("first", none), ("last", none), ("stable-below", unstable)]))
}

fn coefficients(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let unit =
        didact_math::activation::parse(arguments.text("activation")).map_err(|e| domain(e.to_string()))?;
    let r = variance(arguments)?;
    let list: Vec<f64> = (0..arguments.count_up_to("terms", 200)?).map(|k| unit.hermite(k, r)).collect();
    Ok(vec![("b", json!(list))])
}
