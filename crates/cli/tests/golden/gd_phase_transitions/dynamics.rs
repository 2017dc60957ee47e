//! Kinds about losses, gradients, gradient descent and its mean-field theory.

use crate::compare::Answer;
use crate::inputs::Inputs;
use didact_families::Family;
use didact_families::multi_index::MultiIndex;
use didact_math::activation;
use didact_math::linalg::Mat;
use didact_model::loss::Loss;
use didact_model::observable::{self, Snapshot};
use didact_model::record::Crossing;
use didact_model::start::{FrozenRows, RandomRows, RowLaw};
use didact_model::{
    Clock, EndState, Engine, Event, LocalRule, NoMonitor, Outcome, Problem, Record, Sample, Spectrum,
    Training,
};
use didact_simulate::FullBatch;
use didact_theory::dmft::LinearDescent;
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
            let loss = Loss::PseudoHuber { kappa: inputs.number("kappa") };
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
        "success-probability" => Answer::exact(success(inputs)),
        _ => return None,
    })
}

/// The rule with the output weights and biases of the case.
fn rule(inputs: &Inputs, spec: MultiIndex) -> Arc<dyn LocalRule> {
    let list = |key: &str| inputs.has(key).then(|| inputs.list(key));
    let (weights, biases) = (list("a"), list("b"));
    let students = weights.as_ref().or(biases.as_ref()).map_or(1, Vec::len);
    MultiIndex { students, weights, biases, ..spec }.rule().expect("a rule")
}

/// Fractions of seeds whose correlation exceeds 1/2 at the end, per n/d.
fn success(inputs: &Inputs) -> Vec<f64> {
    let kappa = || inputs.number("kappa");
    let loss = match inputs.0["loss"].as_str() {
        Some("square") => Loss::HALF_SQUARE,
        Some("logcosh") => Loss::LogCosh,
        Some("huber") => Loss::Huber { kappa: kappa() },
        _ => Loss::PseudoHuber { kappa: kappa() },
    };
    let text = |key: &str, default: &str| inputs.0[key].as_str().unwrap_or(default).to_string();
    let spec = MultiIndex::single(&text("activation", "gelu"), &text("link", "z^2"), loss);
    let fraction = |delta: f64| {
        let problem = Problem {
            rule: rule(inputs, spec.clone()),
            about: spec.about(),
            spectrum: Spectrum::isotropic(),
            dimension: Some(inputs.count("d") as u64),
            training: Training::full_batch(inputs.number("eta"), delta),
            start: Arc::new(RandomRows {
                trained: RowLaw::Sphere { radius: inputs.number_or("norm0", 1.0) },
                frozen: FrozenRows::Gram(Mat::identity(1)),
                scalars: Vec::new(),
            }),
            clock: Clock::Steps,
        };
        let alignment = observable::parse("abs(alignment[0,0])", &problem).expect("an observable");
        let found = Event {
            name: "found".into(),
            observable: alignment[0].clone(),
            level: 0.75,
            crossing: Crossing::Rises,
            stops: true,
        };
        let record = Record {
            events: vec![found],
            replicas: inputs.count("seeds") as u32,
            watch_every: Some(1.0),
            ..Record::new(vec![inputs.number("T")], alignment.clone())
        };
        let (run, ends) =
            FullBatch::default().run_with_end_states(&problem, &record, &NoMonitor).expect("a run");
        let success = |(outcome, end): &(&Outcome, &EndState)| {
            let diverged = matches!(outcome, Outcome::Diverged { .. });
            !diverged && alignment[0].measure(&Snapshot::new(&end.overlaps, &problem)) > 0.5
        };
        run.outcomes.iter().zip(&ends).filter(success).count() as f64 / ends.len() as f64
    };
    inputs.list("delta").into_iter().map(fraction).collect()
}
