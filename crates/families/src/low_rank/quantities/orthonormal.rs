//! Orthonormal base: closed form, zeros, flow, condition 3.

use super::super::basins::{Basin, basins};
use super::super::orthonormal::condition_probability;
use super::inputs::{
    ACTIVATION, OVERLAP, OVERLAPS, PRODUCT, THETA, UNITS, activation, domain, like, needed, orthonormal,
    overlaps, theta,
};
use didact_model::quantity::{Answer, Arguments, Input, Kind, Quantity, QuantityError};
use serde_json::{Value, json};

const FROM: Input = needed("m0", Kind::Number, "overlap at the start");

pub(super) const SIGNAL: Quantity = Quantity {
    name: "signal-orthonormal",
    summary: "h(m) for an orthonormal base and lambda = 1, from (k, BB, O, theta)",
    inputs: &[ACTIVATION, UNITS, PRODUCT, OVERLAP, THETA, OVERLAPS],
    outputs: &["h"],
    compute: |a| {
        let sigma = activation(a)?;
        let signal = orthonormal(a, &*sigma)?;
        let values: Vec<f64> = overlaps(a, "m")?.iter().map(|&m| signal.at(m)).collect();
        Ok(vec![("h", like(a.value("m"), &values))])
    },
};

pub(super) const ZEROS: Quantity = Quantity {
    name: "signal-zeros",
    summary: "zeros of h in (-1, 1): separatrices and spurious attractors, double ones included",
    inputs: &[ACTIVATION, UNITS, PRODUCT, OVERLAP, THETA],
    outputs: &["zeros"],
    compute: |a| {
        let sigma = activation(a)?;
        Ok(vec![("zeros", json!(orthonormal(a, &*sigma)?.zeros()))])
    },
};

pub(super) const BASINS: Quantity = Quantity {
    name: "basins",
    summary: "where the population flow ends: intervals of starting overlaps (from, to) and the overlap each leads to",
    inputs: &[ACTIVATION, UNITS, PRODUCT, OVERLAP, THETA],
    outputs: &["from", "to", "limit"],
    compute: |a| {
        let sigma = activation(a)?;
        let found = basins(&orthonormal(a, &*sigma)?);
        let list = |of: fn(&Basin) -> f64| json!(found.iter().map(of).collect::<Vec<f64>>());
        Ok(vec![("from", list(|b| b.from)), ("to", list(|b| b.to)), ("limit", list(|b| b.limit))])
    },
};

pub(super) const FLOW_TIME: Quantity = Quantity {
    name: "flow-time",
    summary: "time tau = eta t of the population flow from m0 to m1, or why it is unreachable",
    inputs: &[
        ACTIVATION,
        UNITS,
        PRODUCT,
        OVERLAP,
        THETA,
        FROM,
        needed("m1", Kind::Number, "overlap to reach"),
    ],
    outputs: &["tau", "reachable", "reason"],
    compute: flow_time,
};

fn flow_time(a: &Arguments) -> Result<Answer, QuantityError> {
    let sigma = activation(a)?;
    let signal = orthonormal(a, &*sigma)?;
    let (from, to) = (overlaps(a, "m0")?[0], overlaps(a, "m1")?[0]);
    Ok(match signal.flow_time(from, to) {
        Ok(tau) => vec![("tau", json!(tau)), ("reachable", json!(true))],
        Err(reason) => {
            vec![("tau", Value::Null), ("reachable", json!(false)), ("reason", json!(reason.to_string()))]
        }
    })
}

pub(super) const FLOW: Quantity = Quantity {
    name: "flow",
    summary: "m(tau) of the population flow dm/dtau = h (1 - m^2)",
    inputs: &[
        ACTIVATION,
        UNITS,
        PRODUCT,
        OVERLAP,
        THETA,
        FROM,
        needed("tau", Kind::Numbers, "ascending times"),
    ],
    outputs: &["m", "tau"],
    compute: |a| {
        let sigma = activation(a)?;
        let times = ascending(a, "tau")?;
        let m = orthonormal(a, &*sigma)?.flow(overlaps(a, "m0")?[0], &times);
        reached(&m, &times)?;
        Ok(vec![("m", like(a.value("tau"), &m)), ("tau", a.value("tau").clone())])
    },
};

/// A flow that was followed to its last time.
pub(super) fn reached(m: &[f64], times: &[f64]) -> Result<(), QuantityError> {
    match times.get(m.len()) {
        None => Ok(()),
        Some(time) => {
            Err(domain(format!("the flow cannot be followed to the time {time:e}; ask for earlier times")))
        }
    }
}

pub(super) fn ascending(a: &Arguments, name: &'static str) -> Result<Vec<f64>, QuantityError> {
    let times = a.numbers(name);
    let right = times.first().is_none_or(|t| *t >= 0.0) && times.windows(2).all(|w| w[0] < w[1]);
    if right { Ok(times) } else { Err(domain(format!("{name} must be ascending times from 0 on"))) }
}

pub(super) const CONDITION: Quantity = Quantity {
    name: "condition-probability",
    summary: "probability over uniform signs that the signal never falls below half its value at zero (condition 3)",
    inputs: &[ACTIVATION, UNITS, THETA],
    outputs: &["holds", "zero-signal"],
    compute: |a| {
        let got = condition_probability(&*activation(a)?, a.count_up_to("k", 200)?, theta(a)?);
        Ok(vec![("holds", json!(got.holds)), ("zero-signal", json!(got.zero))])
    },
};
