//! Dynamical mean-field theory against what is known in closed form, and its symmetries.

use didact_math::linalg::{Mat, is_psd};
use didact_model::families::Family;
use didact_model::families::multi_index::MultiIndex;
use didact_model::residual_loss::ResidualLoss;
use didact_model::{LocalRule, Overlaps};
use didact_theory::dmft::{Equations, LinearDescent, Points, Process, Sampling};
use std::sync::Arc;

const HUBER: ResidualLoss = ResidualLoss::PseudoHuber { kappa: 1.0 };

/// Rows of length `length`, orthogonal to each other and to orthonormal frozen rows.
fn start(rule: &Arc<dyn LocalRule>, length: f64) -> Overlaps {
    let shape = rule.shape();
    let entry = |i: usize, j: usize| match i == j {
        true if i < shape.trained => length * length,
        true => 1.0,
        false => 0.0,
    };
    Overlaps::new(shape, vec![Mat::from_fn(shape.rows(), shape.rows(), entry)], vec![], 1).unwrap()
}

fn equations(spec: &MultiIndex, step: f64, ratio: f64) -> Equations {
    let rule = spec.rule().unwrap();
    Equations::new(rule.clone(), step, ratio, &start(&rule, 1.0))
}

fn run<'a>(equations: &'a Equations, points: &'a Points, steps: usize) -> Process<'a> {
    let mut process = Process::new(equations, points);
    for _ in 0..=steps {
        assert!(process.advance());
    }
    process
}

fn points(equations: &Equations, samples: usize, steps: usize, scramble: u32) -> Points {
    let shape = equations.shape();
    let sampling = Sampling { samples, ..Sampling::default() };
    Points::sobol(&sampling, scramble, shape.frozen, shape.trained, steps + 1)
}

/// The multi-neuron example of the specification: m = 3, k = 2, easy (1,1), hard (1,-1).
fn three_units() -> MultiIndex {
    MultiIndex {
        students: 3,
        directions: 2,
        weights: Some(vec![1.5, -1.0, 0.7]),
        biases: Some(vec![0.1, -0.3, 0.5]),
        ..MultiIndex::single("gelu", "z1+z2+z1*z2", HUBER)
    }
}

#[test]
fn a_linear_student_follows_marchenko_and_pastur_at_any_number_of_samples() {
    for (ratio, step, noise) in [(0.5, 0.2, 1.0), (2.0, 0.3, 0.5), (4.0, 0.5, 0.0)] {
        let base = equations(&MultiIndex::single("linear", "z", ResidualLoss::Square), step, ratio);
        let equations = Equations { label_noise: noise, ..base };
        let points = points(&equations, 256, 8, 0);
        let mut process = Process::new(&equations, &points);
        let law = LinearDescent { ratio, step, noise_variance: noise * noise, start_length: 1.0 };
        for t in 0..=8 {
            assert!(process.advance());
            let (expected, (train, test)) = (law.at(t), process.losses());
            let kernels = &process.kernels;
            for (got, expected) in [
                (kernels.weights_frozen[t][(0, 0)], expected.overlap),
                (kernels.weights[t][t][(0, 0)], expected.squared_length),
                (train, expected.train),
                (test, expected.test),
            ] {
                assert!((got - expected).abs() < 1e-9, "delta {ratio}, t {t}: {got} {expected}");
            }
            for s in 0..t {
                let got = kernels.weights_response[t][s][(0, 0)];
                assert!((got - law.response(t, s)).abs() < 1e-9, "{got} {}", law.response(t, s));
            }
        }
    }
}
