//! Gaussian kernels.

use super::super::network::{Kernel, gaussian_pair, hermite_coefficient, information_exponent};
use super::inputs::{ACTIVATION, activation, domain, like, needed, optional, positive};
use didact_model::quantity::{Answer, Arguments, Input, Kind, Quantity, QuantityError, explained};
use serde_json::{Value, json};

const DEVIATION: Input = optional("R", Kind::Number, "1", "standard deviation of the pre-activation");

pub(super) const HERMITE: Quantity = Quantity {
    name: "hermite-coefficients",
    summary: "Hermite coefficients of sigma(R z), and its information exponent",
    inputs: &[ACTIVATION, DEVIATION, needed("p", Kind::Numbers, "orders")],
    outputs: &["mu", "information-exponent"],
    compute: hermite,
};

fn hermite(a: &Arguments) -> Result<Answer, QuantityError> {
    let (sigma, deviation) = (activation(a)?, positive(a, "R")?);
    let orders = a.numbers("p");
    if orders.iter().any(|p| !(0.0..=200.0).contains(p) || p.fract() != 0.0) {
        return Err(domain("p must hold whole numbers from 0 to 200"));
    }
    let values: Vec<f64> =
        orders.iter().map(|&p| hermite_coefficient(&*sigma, p as usize, deviation)).collect();
    let exponent = information_exponent(&*sigma, deviation).map_or(Value::Null, Value::from);
    let answer = vec![("mu", like(a.value("p"), &values)), ("information-exponent", exponent)];
    Ok(explained(answer, &[("information-exponent", "every coefficient from the first on vanishes")]))
}

pub(super) const KERNEL: Quantity = Quantity {
    name: "kernel",
    summary: "K(rho) = E[sigma(Ra) sigma(Rb)] and its derivative, for unit Gaussians of correlation rho",
    inputs: &[ACTIVATION, DEVIATION, needed("rho", Kind::Numbers, "correlations")],
    outputs: &["K", "slope"],
    compute: kernel,
};

fn kernel(a: &Arguments) -> Result<Answer, QuantityError> {
    let (sigma, correlations) = (activation(a)?, a.numbers("rho"));
    if correlations.iter().any(|r| r.abs() > 1.0) {
        return Err(domain("rho must lie between -1 and 1"));
    }
    let kernel = Kernel::new(&*sigma, positive(a, "R")?);
    let values: Vec<f64> = correlations.iter().map(|&r| kernel.value(r)).collect();
    let slopes: Vec<f64> = correlations.iter().map(|&r| kernel.slope(r)).collect();
    Ok(vec![("K", like(a.value("rho"), &values)), ("slope", like(a.value("rho"), &slopes))])
}

pub(super) const PAIR: Quantity = Quantity {
    name: "gaussian-pair",
    summary: "E[sigma sigma], E[sigma' sigma'] and E[sigma'' sigma] of two Gaussians of given covariance",
    inputs: &[
        ACTIVATION,
        needed("q11", Kind::Number, "variance of the first"),
        needed("q12", Kind::Number, "covariance"),
        needed("q22", Kind::Number, "variance of the second"),
    ],
    outputs: &["value", "slope", "curvature"],
    compute: pair,
};

fn pair(a: &Arguments) -> Result<Answer, QuantityError> {
    let (q11, q12, q22) = (positive(a, "q11")?, a.number("q12"), positive(a, "q22")?);
    if q12 * q12 > q11 * q22 * (1.0 + 1e-12) {
        return Err(domain(format!("no Gaussians have variances {q11}, {q22} and covariance {q12}")));
    }
    let got = gaussian_pair(&*activation(a)?, q11, q12, q22);
    Ok(vec![
        ("value", json!(got.value_value)),
        ("slope", json!(got.slope_slope)),
        ("curvature", json!(got.curvature_value)),
    ])
}
