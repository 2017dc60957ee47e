//! Predictions of the two-layer model that are not trajectories, by name.

use crate::Family;
use crate::lora::two_layer::{LoraTwoLayer, PerUnit, escape_rate, final_loss, initial_loss};
use didact_math::linalg::Mat;
use didact_model::overlaps::Overlaps;
use didact_model::quantity::{Answer, Arguments, Input, Kind, Quantity, QuantityError};
use didact_model::rule::{Averages, Law, Needed};
use didact_model::spectrum::Spectrum;
use serde_json::json;

const ACTIVATION: Input = Input {
    name: "activation",
    kind: Kind::Text,
    default: Some("\"h2\""),
    about: "h2 (He_2/sqrt 2), linear, or any other where no closed form is needed",
};
const HIDDEN: Input = Input { name: "K", kind: Kind::Count, default: None, about: "hidden units" };
const RANK: Input = Input { name: "R", kind: Kind::Count, default: None, about: "adapters" };
const MU: Input = Input {
    name: "mu",
    kind: Kind::Numbers,
    default: None,
    about: "strength of pre-training, one or one per unit",
};
const OUTPUT: Input = Input {
    name: "v",
    kind: Kind::Numbers,
    default: Some("[1]"),
    about: "output weights, one or one per unit",
};
const fn matrix(name: &'static str, kind: Kind, about: &'static str) -> Input {
    Input { name, kind, default: None, about }
}

pub(in crate::lora) const QUANTITIES: &[Quantity] = &[
    Quantity {
        name: "escape-rate",
        summary: "rate and time of the escape of adapters from small U and M, linear and h2",
        inputs: &[
            ACTIVATION,
            Input {
                name: "K",
                kind: Kind::Count,
                default: Some("1"),
                about: "hidden units, when mu and v are single numbers",
            },
            MU,
            OUTPUT,
        ],
        outputs: &["rate", "tau", "distance"],
        compute: escape_rate_quantity,
    },
    Quantity {
        name: "final-loss",
        summary: "population loss after training of h2 units with v = 1 and equal mu, against rank",
        inputs: &[HIDDEN, RANK, Input { kind: Kind::Number, about: "strength of pre-training", ..MU }],
        outputs: &["loss", "initial"],
        compute: final_loss_quantity,
    },
    Quantity {
        name: "averages",
        summary: "loss, gradient of U and gradient noise at given U (K x R), M (K x R), Q (R x R)",
        inputs: &[
            ACTIVATION,
            MU,
            OUTPUT,
            matrix("U", Kind::Rows, "amplitudes, K x R"),
            matrix("M", Kind::Rows, "overlaps of teachers and adapters, K x R"),
            matrix("Q", Kind::Matrix, "overlaps of the adapters, R x R"),
        ],
        outputs: &["loss", "gradient", "noise"],
        compute: averages_quantity,
    },
];

fn domain(message: impl Into<String>) -> QuantityError {
    QuantityError::Domain(message.into())
}

/// A list of K numbers; one number stands for K equal ones.
fn per_unit(arguments: &Arguments, name: &str, units: usize) -> Result<Vec<f64>, QuantityError> {
    let list = arguments.numbers(name);
    match list.len() {
        1 => Ok(vec![list[0]; units]),
        n if n == units => Ok(list),
        n => Err(domain(format!("`{name}` has {n} entries for {units} hidden units"))),
    }
}

fn strengths(arguments: &Arguments, units: usize) -> Result<Vec<f64>, QuantityError> {
    let mu = per_unit(arguments, "mu", units)?;
    match mu.iter().find(|m| !(**m > 0.0 && **m < 1.0)) {
        Some(bad) => Err(domain(format!("mu holds {bad}; strengths lie strictly between 0 and 1"))),
        None => Ok(mu),
    }
}

fn escape_rate_quantity(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let units = arguments
        .count_up_to("K", 2048)?
        .max(arguments.numbers("mu").len())
        .max(arguments.numbers("v").len());
    let (mu, v) = (strengths(arguments, units)?, per_unit(arguments, "v", units)?);
    let activation = arguments.text("activation");
    let rate = escape_rate(activation, &v, &mu).ok_or_else(|| {
        domain(format!("no closed form of the escape rate for `{activation}`; it is known for linear and h2"))
    })?;
    let distance = mu.iter().map(|m| (1.0 - m).powi(2)).sum::<f64>() / units as f64;
    Ok(vec![("rate", json!(rate)), ("tau", json!(1.0 / rate)), ("distance", json!(distance))])
}

fn final_loss_quantity(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (k, r, mu) =
        (arguments.count_up_to("K", 2048)?, arguments.count_up_to("R", 2048)?, arguments.number("mu"));
    if r > k {
        return Err(domain(format!("the closed form needs R <= K, but R = {r} and K = {k}")));
    }
    if !(mu > 0.0 && mu < 1.0) {
        return Err(domain(format!("mu is {mu}; strengths lie strictly between 0 and 1")));
    }
    Ok(vec![("loss", json!(final_loss(k, r, mu))), ("initial", json!(initial_loss(k, mu)))])
}

fn averages_quantity(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (u, m, q) = (arguments.matrix("U"), arguments.matrix("M"), arguments.matrix("Q"));
    let (k, r) = (u.rows(), u.cols());
    if m.rows() != k || m.cols() != r || q.rows() != r {
        return Err(domain(format!("U is {k} x {r}, so M must be {k} x {r} and Q {r} x {r}")));
    }
    if (0..r).any(|i| (q[(i, i)] - 1.0).abs() > 1e-9) {
        return Err(domain("the diagonal of Q must be 1: adapters are unit vectors"));
    }
    let spec = LoraTwoLayer {
        mu: PerUnit::Each(strengths(arguments, k)?),
        output_weights: PerUnit::Each(per_unit(arguments, "v", k)?),
        ..LoraTwoLayer::uniform(k, r, 0.5, arguments.text("activation"))
    };
    let rule = spec.rule().map_err(|e| domain(e.to_string()))?;
    let blocks = (&q, &m.transpose(), &Mat::identity(k));
    let scalars = u.as_slice().to_vec();
    let state = Overlaps::spread(rule.shape(), &Spectrum::isotropic(), blocks, scalars)
        .map_err(|e| domain(format!("impossible M and Q: {e}")))?;
    let law = Law { covariance: &state.blocks[0], scalars: &state.scalars, label_noise: 0.0 };
    let mut out = Averages::new(rule.shape());
    rule.averages(&law, Needed::DriftAndNoise, &mut out);
    let gradient: Vec<&[f64]> = out.scalars.chunks(r).collect();
    Ok(vec![
        ("loss", json!(rule.risk(&law))),
        ("gradient", json!(gradient)),
        ("noise", json!(out.noise.to_rows())),
    ])
}
