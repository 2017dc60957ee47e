//! Linear units, where everything is known exactly (docs/derivations/power-law-spectra.md#s4-3,
//! docs/derivations/power-law-spectra.md#s4-4).

use crate::common::{losses, problem, random_gram};
use didact_families::committee::Committee;
use didact_math::linalg::{Mat, dot, symmetric_eigen};
use didact_model::{Engine, NoMonitor, Outcome, Problem, Record, Spectrum, Training};
use didact_theory::OrderParameterOde;

fn linear(spectrum: &Spectrum, training: Training) -> Problem {
    let blocks = (0..spectrum.len()).map(|b| random_gram(2, 0.8, 20 + b as u64)).collect();
    problem(&Committee::soft(1, 1, "linear"), spectrum.clone(), training, blocks)
}

/// ε(α) = ½ v·exp(αS) h, S = −2η diag(λ) + η² v vᵀ, v_a = λ_a √w_a, h_a(0) = e_a/√w_a, e = t − 2r + q.
fn exact_loss(problem: &Problem, alpha: f64) -> f64 {
    let (lambda, w) = (problem.spectrum.eigenvalues(), problem.spectrum.weights());
    let n = lambda.len();
    let eta = problem.training.learning_rate;
    let start = crate::common::state_at(&OrderParameterOde::default(), problem, 0.0).blocks;
    let v: Vec<f64> = (0..n).map(|a| lambda[a] * w[a].sqrt()).collect();
    let h: Vec<f64> = (0..n)
        .map(|a| (start[a][(1, 1)] - 2.0 * start[a][(0, 1)] + start[a][(0, 0)]) / w[a].sqrt())
        .collect();
    let s =
        Mat::from_fn(n, n, |a, b| eta * eta * v[a] * v[b] - if a == b { 2.0 * eta * lambda[a] } else { 0.0 });
    let eigen = symmetric_eigen(&s);
    let column = |k: usize| -> Vec<f64> { (0..n).map(|a| eigen.vectors[(a, k)]).collect() };
    (0..n).map(|k| 0.5 * dot(&v, &column(k)) * dot(&h, &column(k)) * (eigen.values[k] * alpha).exp()).sum()
}

#[test]
fn the_loss_is_the_exact_sum_of_exponentials() {
    let times = [0.0, 0.3, 1.0, 4.0, 15.0, 60.0];
    for spectrum in [Spectrum::isotropic(), Spectrum::power_law(5, 1.0).unwrap()] {
        for eta in [0.1, 1.0, 1.9] {
            let problem = linear(&spectrum, Training::online(eta));
            for (got, &t) in losses(&OrderParameterOde::default(), &problem, &times).iter().zip(&times) {
                let exact = exact_loss(&problem, t);
                // Cancellation of q, r, t of size 1 where local errors are 1e-9.
                assert!((got - exact).abs() < 1e-8, "eta = {eta}, alpha = {t}: {got} and {exact}");
            }
        }
    }
}

#[test]
fn label_noise_leaves_the_known_floor() {
    for (spectrum, eta) in
        [(Spectrum::isotropic(), 0.5), (Spectrum::new(vec![1.8, 0.6], vec![0.4, 0.6]).unwrap(), 1.2)]
    {
        let problem = linear(&spectrum, Training { label_noise: 0.4, ..Training::online(eta) });
        let rate = eta * spectrum.moment(1);
        let floor = 0.5 * rate * 0.16 / (2.0 - rate);
        let last = losses(&OrderParameterOde::default(), &problem, &[100.0])[0];
        assert!((last / floor - 1.0).abs() < 1e-7, "{last} and {floor}");
    }
}

#[test]
fn above_the_critical_rate_learning_diverges() {
    for spectrum in [Spectrum::isotropic(), Spectrum::power_law(4, 1.0).unwrap()] {
        let outcome = |eta: f64| {
            let problem = linear(&spectrum, Training::online(eta));
            let run = OrderParameterOde::default().run(
                &problem,
                &Record::new(vec![1.0, 2000.0], vec![]),
                &NoMonitor,
            );
            run.unwrap().outcomes[0].clone()
        };
        // η_c = 2/ν₁ = 2 for every spectrum of unit trace.
        assert!(matches!(outcome(2.5), Outcome::Diverged { at } if at > 1.0 && at < 2000.0));
        assert_eq!(outcome(1.95), Outcome::Completed);
    }
}
