//! Kinds that need no engine.

use super::{momentum, schedule, training};
use crate::compare::Answer;
use crate::inputs::Inputs;
use didact_families::Family;
use didact_families::committee::Committee;
use didact_model::training::{Momentum, TimedNumber, TrainedAverages, Training};
use didact_model::{Averages, Law, Needed};
use didact_theory::dmft::{LinearTraining, MultiPass, SteadyTracking};

pub fn answer(kind: &str, inputs: &Inputs) -> Option<Answer> {
    Some(match kind {
        "schedule-value" => {
            let schedule = schedule(inputs, "schedule");
            Answer::exact(inputs.list("t").into_iter().map(|t| schedule.value(t)).collect::<Vec<f64>>())
        }
        "averages" => {
            let family = Committee::soft(inputs.count("K"), inputs.count("M"), "erf(z/sqrt2)");
            let rule = family.rule().expect("a committee");
            let covariance = inputs.matrix("C");
            let label_noise = inputs.number_or("noise_var", 0.0).sqrt();
            let law = Law { covariance: &covariance, scalars: &[], label_noise };
            let mut out = Averages::new(rule.shape());
            let mut trained = TrainedAverages::new(&rule, &training(inputs, Training::online(1.0)));
            trained.fill(&law, 1.0, Needed::DriftAndNoise, &mut out);
            Answer::exact([out.drift.as_slice(), out.noise.as_slice()].concat())
        }
        "drift-steady" => {
            let tracking = SteadyTracking {
                rate: inputs.number("eta"),
                noise_variance: inputs.number_or("noise_var", 0.0),
            };
            let (overlap, loss) = if inputs.has("rotation") {
                tracking.rotation(inputs.number("rotation"))
            } else {
                tracking.diffusion(inputs.number("drift"))
            };
            Answer::exact(vec![overlap, loss])
        }
        "gd-linear" => {
            let state = linear(inputs).at(inputs.count("T"));
            let parts = [state.overlap, state.squared_length, state.start_overlap, state.test, state.train];
            Answer::exact(parts.to_vec())
        }
        "gd-response" => {
            let (t, linear) = (inputs.count("T"), linear(inputs));
            let back = 1..=inputs.count("count");
            Answer::exact(back.map(|back| linear.response(t, t - back)).collect::<Vec<f64>>())
        }
        "multipass-linear" => {
            let multi = MultiPass {
                ratio: inputs.number("delta"),
                rate: inputs.number("eta"),
                noise_variance: inputs.number_or("noise_var", 0.0),
                start_length: inputs.number_or("norm0", 1.0),
            };
            let states = multi.at(&inputs.list("alpha")).expect("a solution");
            let numbers = states.iter().flat_map(|s| [s.overlap, s.squared_length, s.test, s.train]);
            Answer::exact(numbers.collect::<Vec<f64>>())
        }
        _ => return None,
    })
}

fn linear(inputs: &Inputs) -> LinearTraining {
    let momentum = momentum(inputs);
    LinearTraining {
        schedule: schedule(inputs, "schedule"),
        noise_variance: inputs.number_or("noise_var", 0.0),
        start_length: inputs.number_or("norm0", 1.0),
        nesterov: momentum.as_ref().is_some_and(Momentum::looks_ahead),
        beta: momentum.map_or(TimedNumber::Fixed(0.0), |m| m.value),
        weight_decay: inputs.number_or("weight_decay", 0.0),
        fraction: inputs.number_or("batch_fraction", 1.0),
        ..LinearTraining::new(inputs.number("delta"), inputs.number("eta"))
    }
}
