//! Kinds about losses, gradients, gradient descent and its mean-field theory.

use crate::compare::Answer;
use crate::inputs::Inputs;
use didact_math::activation;
use didact_math::linalg::Mat;
use didact_model::families::Family;
use didact_model::families::multi_index::MultiIndex;
use didact_model::residual_loss::ResidualLoss;
use didact_model::{LocalRule, Overlaps, Sample};
use didact_theory::dmft::{Equations, LinearDescent, Process, Sampling, estimate};
use serde_json::{Value, json};
use std::sync::Arc;

pub fn answer(kind: &str, inputs: &Inputs) -> Option<Answer> {
    Some(match kind {
        "gelu" => {
            let unit = activation::parse("gelu").expect("a unit");
            let z = inputs.list("z");
            let values = z.iter().map(|z| unit.value(*z));
            let slopes = z.iter().map(|z| unit.slope(*z));
            let curvatures = z.iter().map(|z| unit.curvature(*z));
            Answer::exact(values.chain(slopes).chain(curvatures).collect::<Vec<f64>>())
        }
        "hessian-weight" => {
            let (z, y) = (inputs.list("z"), inputs.list("y"));
            let loss = ResidualLoss::PseudoHuber { kappa: inputs.number("kappa") };
            let weights = ["gelu", "quadratic"].into_iter().flat_map(|unit| {
                // The label itself is the latent projection.
                let rule = rule(inputs, MultiIndex::single(unit, "z", loss));
                let weight = |(z, y): (&f64, &f64)| {
                    rule.row_weight(&Sample { fields: &[*z, *y], scalars: &[], noise: 0.0 }, 0)
                };
                z.iter().zip(&y).map(weight).collect::<Vec<f64>>()
            });
            Answer::exact(weights.collect::<Vec<f64>>())
        }
        "linear-dmft" => {
            let law = LinearDescent {
                ratio: inputs.number("delta"),
                step: inputs.number("eta"),
                noise_variance: inputs.number("noise_var"),
                start_length: inputs.number_or("norm0", 1.0),
            };
            let t = inputs.count("t");
            let state = law.at(t);
            let mut values = vec![state.overlap, state.squared_length, state.test, state.train];
            values.extend((1..=4).map(|back| law.response(t, t - back)));
            Answer::exact(values)
        }
        _ => return None,
    })
}

/// The loss of a case.
pub fn loss(inputs: &Inputs) -> ResidualLoss {
    match inputs.0["loss"].as_str() {
        Some("square") => ResidualLoss::Square,
        Some("logcosh") => ResidualLoss::LogCosh,
        Some("huber") => ResidualLoss::Huber { kappa: inputs.number("kappa") },
        Some("pseudo_huber") => ResidualLoss::PseudoHuber { kappa: inputs.number("kappa") },
        other => panic!("loss {other:?}"),
    }
}

/// The student and target of a case; one unit and phase retrieval unless it says otherwise.
pub fn model(inputs: &Inputs) -> MultiIndex {
    let text = |key: &str, default: &str| inputs.0[key].as_str().unwrap_or(default).to_string();
    MultiIndex::single(&text("activation", "gelu"), &text("link", "z^2"), loss(inputs))
}

/// The rule with the output weights and biases of the case.
pub fn rule(inputs: &Inputs, spec: MultiIndex) -> Arc<dyn LocalRule> {
    let list = |key: &str| inputs.has(key).then(|| inputs.list(key));
    let (weights, biases) = (list("a"), list("b"));
    let students = weights.as_ref().or(biases.as_ref()).map_or(1, Vec::len);
    MultiIndex { students, weights, biases, ..spec }.rule().expect("a rule")
}
