//! Symmetries of the order-parameter equations: items 2 to 5 of docs/derivations/power-law-spectra.md#s13.

use crate::common::{assert_close, distance, losses, problem, random_gram, state_at};
use didact_families::committee::{Committee, Output};
use didact_math::linalg::Mat;
use didact_model::{Averages, Law, Needed, Overlaps, Problem, Spectrum, Training};
use didact_theory::OrderParameterOde;

/// Two integrations with local errors of 1e-9, stretched by the instability of the plateau.
const TOLERANCE: f64 = 1e-7;
const TIMES: [f64; 4] = [0.5, 3.0, 10.0, 30.0];

fn committee() -> Committee {
    Committee { output: Output::Scaled, ..Committee::soft(2, 2, "erf(z/sqrt2)") }
}

fn two_levels() -> Problem {
    let spectrum = Spectrum::new(vec![1.5, 0.5], vec![0.4, 0.6]).unwrap();
    problem(
        &committee(),
        spectrum,
        Training::online(0.8),
        vec![random_gram(4, 0.7, 1), random_gram(4, 0.6, 2)],
    )
}

fn start(problem: &Problem) -> Overlaps {
    state_at(&OrderParameterOde::default(), problem, 0.0)
}

#[test]
fn splitting_an_eigenvalue_changes_nothing() {
    let whole = two_levels();
    let blocks = start(&whole).blocks;
    // Parts that are no multiples of each other, and weights unrelated to them.
    let part = random_gram(4, 0.2, 3);
    let mut rest = random_gram(4, 0.3, 4);
    let mut first = part.clone();
    first.add_scaled(1.0, &rest);
    let joined =
        problem(&committee(), whole.spectrum.clone(), whole.training.clone(), vec![first, blocks[1].clone()]);
    let spectrum = Spectrum::new(vec![1.5, 0.5, 1.5], vec![0.1, 0.6, 0.3]).unwrap();
    let split =
        problem(&committee(), spectrum, whole.training.clone(), vec![part, blocks[1].clone(), rest.clone()]);
    let engine = OrderParameterOde::default();
    assert_close(&losses(&engine, &split, &TIMES), &losses(&engine, &joined, &TIMES), TOLERANCE, "losses");
    let (a, b) = (state_at(&engine, &split, 10.0), state_at(&engine, &joined, 10.0));
    rest.fill(0.0);
    rest.add_scaled(1.0, &a.blocks[0]);
    rest.add_scaled(1.0, &a.blocks[2]);
    assert!(distance(&rest, &b.blocks[0]) < TOLERANCE && distance(&a.blocks[1], &b.blocks[1]) < TOLERANCE);
}

#[test]
fn permuting_eigenspaces_commutes_with_the_flow() {
    let there = two_levels();
    let blocks = start(&there).blocks;
    let spectrum = Spectrum::new(vec![0.5, 1.5], vec![0.6, 0.4]).unwrap();
    let back =
        problem(&committee(), spectrum, there.training.clone(), vec![blocks[1].clone(), blocks[0].clone()]);
    let engine = OrderParameterOde::default();
    let (a, b) = (state_at(&engine, &there, 10.0), state_at(&engine, &back, 10.0));
    assert!(
        distance(&a.blocks[0], &b.blocks[1]) < TOLERANCE && distance(&a.blocks[1], &b.blocks[0]) < TOLERANCE
    );
}

#[test]
fn permuting_hidden_units_commutes_with_the_flow() {
    let exchanged = |g: &Mat| Mat::from_fn(4, 4, |i, j| g[([1, 0, 2, 3][i], [1, 0, 2, 3][j])]);
    let there = two_levels();
    let blocks = start(&there).blocks.iter().map(exchanged).collect();
    let back = problem(&committee(), there.spectrum.clone(), there.training.clone(), blocks);
    let engine = OrderParameterOde::default();
    let (a, b) = (state_at(&engine, &there, 10.0), state_at(&engine, &back, 10.0));
    for (a, b) in a.blocks.iter().zip(&b.blocks) {
        assert!(distance(&exchanged(a), b) < TOLERANCE);
    }
}

#[test]
fn scaling_of_inputs_is_a_change_of_rate_and_rows() {
    // λ → cλ, η → η/c, g → g/c.
    let c = 3.7;
    let plain = two_levels();
    let blocks = start(&plain).blocks.iter().map(|g| g.scaled(1.0 / c)).collect();
    let eigenvalues = plain.spectrum.eigenvalues().iter().map(|l| c * l).collect();
    let spectrum = Spectrum::new(eigenvalues, plain.spectrum.weights().to_vec()).unwrap();
    let scaled = problem(&committee(), spectrum, Training::online(0.8 / c), blocks);
    let engine = OrderParameterOde::default();
    assert_close(&losses(&engine, &scaled, &TIMES), &losses(&engine, &plain, &TIMES), TOLERANCE, "losses");
}

#[test]
fn only_rate_times_alpha_matters_in_gradient_flow() {
    let (slow, mut fast) = (two_levels(), two_levels());
    fast.training.learning_rate *= 5.0;
    let sooner = TIMES.map(|t| t / 5.0);
    let flow = OrderParameterOde::gradient_flow();
    assert_close(&losses(&flow, &fast, &sooner), &losses(&flow, &slow, &TIMES), TOLERANCE, "gradient flow");
    let full = OrderParameterOde::default();
    let (a, b) = (losses(&full, &fast, &sooner), losses(&full, &slow, &TIMES));
    assert!((a[2] - b[2]).abs() > 1e-3, "with the quadratic term the rate matters: {a:?} {b:?}");
}

#[test]
fn a_perfect_student_stays() {
    for activation in ["erf(z/sqrt2)", "relu", "tanh", "He3", "x*sigmoid(x)"] {
        let teachers = Mat::from_rows(&[vec![1.0, 0.3], vec![0.3, 0.8]]).unwrap();
        let gram = Mat::from_fn(4, 4, |i, j| teachers[(i % 2, j % 2)]);
        let spec = Committee::soft(2, 2, activation);
        let at_rest = problem(&spec, Spectrum::isotropic(), Training::online(1.0), vec![gram]);
        let derivative = OrderParameterOde::default().initial_derivative(&at_rest).unwrap();
        // Sums of a few terms of size 1 (He3: 10) that cancel.
        assert!(derivative.blocks[0].max_abs() < 2e-13, "{activation}: {derivative:?}");
        assert!(losses(&OrderParameterOde::default(), &at_rest, &[0.0])[0].abs() < 1e-13, "{activation}");
    }
}

/// dε/dt = −Σ_b λ_b² Tr(A g_b Aᵀ) − (s_a/s) |E ∂loss/∂a|², against a difference of ε along the flow
/// (docs/derivations/power-law-spectra.md#eq-7).
#[test]
fn the_loss_falls_at_the_rate_of_its_squared_gradient() {
    for (activation, train_output) in [
        ("erf(z/sqrt2)", false),
        ("erf(z)", true),
        ("relu", true),
        ("tanh", false),
        ("gelu", true),
        ("He3", false),
    ] {
        let spec = Committee { train_output, ..Committee::soft(2, 3, activation) };
        let spectrum = Spectrum::new(vec![1.5, 0.5], vec![0.4, 0.6]).unwrap();
        let training = Training { scalar_ratio: 0.7, ..Training::online(0.8) };
        let blocks = vec![random_gram(5, 0.6, 5), random_gram(5, 0.5, 6)];
        let problem = problem(&spec, spectrum, training, blocks);
        let now = start(&problem);
        let moving = OrderParameterOde::gradient_flow().initial_derivative(&problem).unwrap();
        let loss = |by: f64| {
            let mut moved = now.clone();
            moved.blocks.iter_mut().zip(&moving.blocks).for_each(|(g, d)| g.add_scaled(by, d));
            moved.scalars.iter_mut().zip(&moving.scalars).for_each(|(a, d)| *a += by * d);
            let covariance = moved.covariance(&problem.spectrum);
            problem.rule.risk(&Law { covariance: &covariance, scalars: &moved.scalars, label_noise: 0.0 })
        };
        // Fourth order: error h⁴ and rounding 1e-15/h.
        let h = 1e-3;
        let difference = (8.0 * (loss(h) - loss(-h)) - (loss(2.0 * h) - loss(-2.0 * h))) / (12.0 * h);
        let covariance = now.covariance(&problem.spectrum);
        let law = Law { covariance: &covariance, scalars: &now.scalars, label_noise: 0.0 };
        let mut averages = Averages::new(problem.rule.shape());
        problem.rule.averages(&law, Needed::Drift, &mut averages);
        let rows: f64 = now
            .blocks
            .iter()
            .zip(problem.spectrum.eigenvalues())
            .map(|(g, lambda)| {
                lambda * lambda * averages.drift.times(g).times(&averages.drift.transpose()).trace()
            })
            .sum();
        let scalars: f64 = averages.scalars.iter().map(|s| s * s).sum();
        let expected = -0.8 * (rows + 0.7 * scalars);
        assert!(expected < 0.0);
        assert!(
            (difference - expected).abs() < 1e-9 * (1.0 + expected.abs()),
            "{activation}: {difference} {expected}"
        );
    }
}
