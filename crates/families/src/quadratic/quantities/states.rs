//! Risk, rates of change and the law of one step at a given state.

use super::{DIMENSION, Q, RATE, RHO, domain, optional, rate, rate_or_flow, state};
use crate::quadratic::one_step::OneStep;
use didact_model::quantity::{Answer, Arguments, Kind, Quantity, QuantityError};
use serde_json::json;

pub(super) const RISK: Quantity = Quantity {
    name: "risk",
    summary: "population risk E[(y - yhat)^2] at given overlaps",
    inputs: &[RHO, Q],
    outputs: &["risk"],
    compute: |a| Ok(vec![("risk", json!(state(a, "rho", "Q")?.risk()))]),
};

pub(super) const RATES: Quantity = Quantity {
    name: "rates",
    summary: "drho/dt, dQ/dt and the noise matrix <e^2 lambda lambda^T>; per unit alpha where eta is given",
    inputs: &[
        RHO,
        Q,
        super::OR_FLOW,
        optional("label_noise_variance", Kind::Number, "variance of the noise on labels; needs eta"),
        optional(
            "N",
            Kind::Count,
            "input dimension: N times the mean change of one step; infinite unless given",
        ),
    ],
    outputs: &["rho", "Q", "noise"],
    compute: rates,
};

fn rates(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (state, eta) = (state(arguments, "rho", "Q")?, rate_or_flow(arguments)?);
    let given = |name: &str| arguments.given(name).then(|| arguments.number(name));
    let variance = given("label_noise_variance").unwrap_or(0.0);
    if variance < 0.0 {
        return domain(format!("the label-noise variance is {variance}; a variance is not negative"));
    }
    let q = match eta {
        Some(eta) => state.rate_q(eta, variance, given("N")),
        None => state.flow_q(),
    };
    Ok(vec![
        ("rho", json!(state.flow_rho().scaled(eta.unwrap_or(1.0)).to_rows())),
        ("Q", json!(q.to_rows())),
        ("noise", json!(state.noise().to_rows())),
    ])
}

pub(super) const ONE_STEP: Quantity = Quantity {
    name: "one-step",
    summary: "mean and covariance of the change of (rho, Q) in one SGD step, exact at any N; rho row by row, then Q_ij, i <= j",
    inputs: &[RHO, Q, RATE, DIMENSION],
    outputs: &["mean", "covariance"],
    compute: |a| {
        let step = OneStep::new(&state(a, "rho", "Q")?, rate(a)?, a.number("N"));
        Ok(vec![("mean", json!(step.mean())), ("covariance", json!(step.covariance().to_rows()))])
    },
};
