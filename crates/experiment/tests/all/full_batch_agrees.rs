//! Mean-field theory and gradient descent in finite dimension: the same curves within their errors.

use didact_families::Family;
use didact_families::formula::FormulaModel;
use didact_families::lora::LoraSingleIndex;
use didact_families::multi_index::MultiIndex;
use didact_families::quadratic::QuadraticNetworks;
use didact_math::linalg::Mat;
use didact_model::constraint::{Constraint, Retraction};
use didact_model::loss::Loss;
use didact_model::start::{FrozenRows, RandomRows, RowLaw};
use didact_model::{Clock, Engine, NoMonitor, Problem, Record, Spectrum, Training, Trajectory, observable};
use didact_simulate::FullBatch;
use didact_theory::dmft::Dmft;
use std::sync::Arc;

fn problem(spec: &impl Family, dimension: u64, rate: f64, ratio: f64) -> Problem {
    let rule = spec.rule().unwrap();
    let frozen = FrozenRows::Gram(Mat::identity(rule.shape().frozen));
    // Scalars that start at 0 (a LoRA amplitude) leave the rows without a gradient.
    let (trained, scalars) = (RowLaw::Sphere { radius: 1.0 }, vec![0.5; rule.shape().scalars]);
    Problem {
        rule,
        about: spec.about(),
        spectrum: Spectrum::isotropic(),
        dimension: Some(dimension),
        training: Training::full_batch(rate, ratio),
        start: Arc::new(RandomRows { trained, frozen, scalars }),
        clock: Clock::Steps,
    }
}

fn constrained(mut problem: Problem, constraint: Constraint) -> Problem {
    problem.training.constraint = constraint;
    problem
}

fn three_units() -> MultiIndex {
    MultiIndex {
        students: 3,
        directions: 2,
        weights: Some(vec![1.5, -1.0, 0.7]),
        biases: Some(vec![0.1, -0.3, 0.5]),
        ..MultiIndex::single("gelu", "z1+z2+z1*z2", Loss::PseudoHuber { kappa: 1.0 })
    }
}

/// Largest |z| of the columns over steps 1 to `steps`; the train loss relative to its start, which the labels of a training set move.
fn compare(problem: &Problem, names: &[&str], steps: usize, replicas: u32) {
    let observables = names.iter().flat_map(|name| observable::parse(name, problem).unwrap()).collect();
    let times = (0..=steps).map(|t| t as f64).collect();
    let record = Record { replicas, seed: 8, ..Record::new(times, observables) };
    let theory = Dmft::default().run(problem, &record, &NoMonitor).unwrap();
    let simulation = FullBatch::default().run(problem, &record, &NoMonitor).unwrap();
    for name in names {
        let from_start = |t: &Trajectory| -> Vec<Vec<f64>> {
            let runs = t.curves(name).unwrap();
            runs.iter().map(|r| r.iter().map(|v| v - r[0]).collect()).collect()
        };
        let (a, b) = (from_start(&theory), from_start(&simulation));
        for t in 1..=steps {
            let mean = |runs: &[Vec<f64>]| {
                didact_math::random::statistics::SampleMean::of(runs.iter().map(|r| r[t]))
            };
            let (p, q) = (mean(&a), mean(&b));
            let z = (p.value - q.value) / p.error.hypot(q.error);
            assert!(z.abs() < 5.0, "{name} at step {t}: theory {p:?}, simulation {q:?}, z = {z}");
        }
    }
}

#[test]
fn one_unit_on_phase_retrieval_follows_mean_field_theory() {
    let spec = MultiIndex::single("gelu", "z^2", Loss::PseudoHuber { kappa: 1.0 });
    compare(&problem(&spec, 500, 0.4, 4.0), &["train_loss", "test_loss", "Q[0,0]"], 8, 32);
}

#[test]
fn three_units_with_an_easy_direction_follow_mean_field_theory() {
    let spec = three_units();
    let names = ["train_loss", "Q[0,0]", "Q[0,1]", "R[0,0]", "R[1,1]", "R[0,0] - R[0,1]"];
    compare(&problem(&spec, 500, 1.5, 4.0), &names, 5, 32);
}

#[test]
fn quadratic_students_follow_mean_field_theory() {
    // Labels u²: the teacher is a hard direction for random rows, whichever family says so.
    let spec = QuadraticNetworks::new(2, 1);
    let names = ["train_loss", "Q[0,0]", "Q[0,1]", "R[0,0]"];
    compare(&problem(&spec, 500, 0.02, 8.0), &names, 6, 32);
}

#[test]
fn lora_on_the_sphere_follows_mean_field_theory() {
    // The adapter and its amplitude move; the student reads the pre-trained row.
    let spec = LoraSingleIndex::matched(0.4, "tanh");
    let names = ["train_loss", "R[0,0]", "scalar[0]"];
    for retraction in [Retraction::Euclidean, Retraction::Tangent] {
        let constraint = Constraint { sphere: Some(retraction), ..Constraint::none() };
        compare(&constrained(problem(&spec, 500, 1.0, 4.0), constraint), &names, 6, 32);
    }
}

#[test]
fn decaying_rows_and_barred_directions_follow_mean_field_theory() {
    let names = ["train_loss", "Q[0,0]", "Q[0,1]", "R[0,0]"];
    let decay = Constraint { weight_decay: 0.2, ..Constraint::none() };
    let barred = Constraint { off_frozen: true, ..decay };
    for constraint in [decay, barred] {
        compare(&constrained(problem(&three_units(), 400, 1.5, 4.0), constraint), &names, 4, 24);
    }
}

/// At both sizes: what theory leaves out falls with d.
#[test]
fn units_with_kinks_follow_mean_field_theory() {
    let relu = MultiIndex::single("relu", "z + 0.5z^2", Loss::HALF_SQUARE);
    let two = MultiIndex {
        students: 2,
        weights: Some(vec![2.0, -1.5]),
        biases: Some(vec![0.2, -0.4]),
        ..MultiIndex::single("max(x,0.2*x)", "z", Loss::PseudoHuber { kappa: 1.0 })
    };
    let names = ["train_loss", "test_loss", "Q[0,0]", "R[0,0]"];
    for (dimension, replicas) in [(200, 64), (800, 32)] {
        compare(&problem(&relu, dimension, 0.8, 1.5), &names, 6, replicas);
        compare(&problem(&two, dimension, 1.0, 1.5), &names, 6, replicas);
    }
    // Kinks of a formula are found in it.
    let formula = FormulaModel::new(1, 1, 0, "0.5*(max(h1 - 0.3, 0) - v1 - e)^2");
    compare(&problem(&formula, 500, 0.8, 1.5), &names, 5, 48);
    // An adapter on a unit with a kink: the plane contains the frozen row, and moves with the amplitude.
    let adapter = LoraSingleIndex::matched(0.4, "relu");
    compare(&problem(&adapter, 500, 1.0, 2.0), &["train_loss", "Q[0,0]", "R[0,0]", "scalar[0]"], 5, 48);
}

#[test]
fn trained_output_weights_and_biases_follow_mean_field_theory() {
    let names = ["train_loss", "test_loss", "Q[0,0]", "R[0,0]", "scalar[0]", "scalar[3]"];
    for activation in ["tanh", "relu"] {
        let spec = MultiIndex {
            students: 2,
            train_output: true,
            train_biases: true,
            ..MultiIndex::single(activation, "z + 0.3z^2", Loss::HALF_SQUARE)
        };
        compare(&problem(&spec, 500, 1.0, 2.0), &names, 6, 48);
    }
}
