//! Kinds of training sets: mean-field theory and simulation.

use super::training;
use crate::compare::Answer;
use crate::inputs::Inputs;
use didact_families::Family;
use didact_families::multi_index::MultiIndex;
use didact_math::linalg::Mat;
use didact_math::random::statistics::SampleMean;
use didact_model::loss::Loss;
use didact_model::start::{FrozenRows, RandomRows, RowLaw};
use didact_model::training::Training;
use didact_model::{Clock, Engine, NoMonitor, Problem, Record, Spectrum, observable};
use didact_simulate::FullBatch;
use didact_theory::dmft::{self, Points, Process, Sampling};
use std::sync::Arc;

pub fn answer(kind: &str, inputs: &Inputs) -> Option<Answer> {
    Some(match kind {
        "gd-batches" => mean_field(&problem(inputs, None), inputs, false),
        "gd-dmft" => mean_field(&problem(inputs, None), inputs, true),
        "gd-simulation" => simulation(inputs),
        _ => return None,
    })
}

/// One unit that learns from one direction.
fn problem(inputs: &Inputs, dimension: Option<u64>) -> Problem {
    let text = |key: &str, default: &str| inputs.0[key].as_str().unwrap_or(default).to_string();
    let loss = match inputs.0["loss"].as_str() {
        None | Some("square") => Loss::HALF_SQUARE,
        Some("logcosh") => Loss::LogCosh,
        Some("huber") => Loss::Huber { kappa: inputs.number("kappa") },
        _ => Loss::PseudoHuber { kappa: inputs.number("kappa") },
    };
    let family = MultiIndex::single(&text("activation", "linear"), &text("link", "z"), loss);
    let label_noise = inputs.number_or("noise", inputs.number_or("noise_var", 0.0).sqrt());
    let base = Training { label_noise, ..Training::full_batch(inputs.number("eta"), inputs.number("delta")) };
    Problem {
        rule: family.rule().expect("a rule"),
        about: family.about(),
        spectrum: Spectrum::isotropic(),
        dimension,
        training: training(inputs, base),
        start: Arc::new(RandomRows {
            trained: RowLaw::Sphere { radius: inputs.number_or("norm0", 1.0) },
            frozen: FrozenRows::Gram(Mat::identity(1)),
            scalars: Vec::new(),
        }),
        clock: Clock::Steps,
    }
}

/// Samples per scramble, and scrambles.
const SAMPLES: usize = 1 << 16;
const SCRAMBLES: u32 = 4;

fn mean_field(problem: &Problem, inputs: &Inputs, response: bool) -> Answer {
    let t = inputs.count("T");
    let (equations, _) = dmft::equations(problem, t).expect("equations");
    let sampling = Sampling { samples: SAMPLES, ..Sampling::default() };
    let (shape, mut found) = (problem.rule.shape(), Vec::new());
    for scramble in 0..SCRAMBLES {
        let mut points = Points::sobol(&sampling, scramble, shape.frozen, shape.trained, t + 1);
        let mut process = Process::new(&equations, &mut points);
        (0..=t).for_each(|_| assert!(process.advance(), "the process diverges"));
        let (train, test) = process.losses();
        let kernels = &process.kernels;
        let (own, star, first) =
            (kernels.weights[t][t][(0, 0)], kernels.weights_frozen[t][(0, 0)], kernels.weights[t][0][(0, 0)]);
        found.push(if response {
            vec![train, test, own, star, first, kernels.weights_response[t][0][(0, 0)]]
        } else {
            vec![star, own, first, test, train]
        });
    }
    let mean = |entry: usize| SampleMean::of(found.iter().map(|f| f[entry])).value;
    Answer::exact((0..found[0].len()).map(mean).collect::<Vec<f64>>())
}

/// Training sets that are simulated.
const SETS: u32 = 16;

fn simulation(inputs: &Inputs) -> Answer {
    let problem = problem(inputs, Some(inputs.count("d") as u64));
    let names = ["train_loss", "Q[0,0]", "R[0,0]"];
    let observables = names.iter().flat_map(|name| observable::parse(name, &problem).expect("a name"));
    let at = |time: f64| Record { replicas: SETS, ..Record::new(vec![time], observables.clone().collect()) };
    let engine = FullBatch::default();
    let (_, before) = engine.run_with_end_states(&problem, &at(0.0), &NoMonitor).expect("a start");
    let (run, after) =
        engine.run_with_end_states(&problem, &at(inputs.number("T")), &NoMonitor).expect("a run");
    let overlap = before.iter().zip(&after).map(|(before, after)| {
        let row = |end: &didact_model::EndState| end.weights.as_ref().expect("rows").row(0).to_vec();
        didact_math::linalg::dot(&row(before), &row(after))
    });
    let columns = names.iter().map(|name| run.mean(name).expect("a column")[0]);
    let means: Vec<SampleMean> = columns.chain(std::iter::once(SampleMean::of(overlap))).collect();
    let (values, errors): (Vec<f64>, Vec<f64>) = means.iter().map(|m| (m.value, m.error)).unzip();
    Answer::sampled(&values, &errors)
}
