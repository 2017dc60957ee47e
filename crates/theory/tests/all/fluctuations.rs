//! Fluctuations against their exact results, invariances and limits (docs/derivations/fluctuations.md#s7).

use didact_families::Model;
use didact_math::linalg::Mat;
use didact_model::constraint::{Constraint, Retraction};
use didact_model::observable::{self, Observable};
use didact_model::start::{FrozenRows, Given, RandomRows, RowLaw};
use didact_model::{Clock, Needed, Overlaps, Problem, Spectrum, Training};
use didact_theory::fluctuations::FluctuationTheory;
use serde_json::{Value, json};
use std::sync::Arc;

const ACCURACY: f64 = 1e-8;

fn two_eigenspaces() -> Spectrum {
    Spectrum::new(vec![2.0, 0.5], vec![0.25, 0.75]).unwrap()
}

/// A committee from given overlaps.
fn problem(model: &Value, spectrum: Spectrum, training: Training, q: &[Vec<f64>], r: &[Vec<f64>]) -> Problem {
    let model: Model = serde_json::from_value(model.clone()).unwrap();
    let rule = model.rule().unwrap();
    let (q, r) = (Mat::from_rows(q).unwrap(), Mat::from_rows(r).unwrap());
    let t = Mat::identity(rule.shape().frozen);
    let scalars = if rule.shape().scalars > 0 { vec![0.8, 0.3] } else { vec![] };
    let start = Overlaps::spread(rule.shape(), &spectrum, (&q, &r, &t), scalars).unwrap();
    Problem {
        rule,
        about: model.about(),
        spectrum,
        dimension: None,
        training,
        start: Arc::new(Given(start)),
        clock: Clock::Alpha,
    }
}

fn unit(activation: &str) -> Value {
    json!({ "family": "committee", "students": 1, "teachers": 1, "activation": activation })
}

fn pair(activation: &str) -> Value {
    json!({ "family": "committee", "students": 2, "teachers": 1, "activation": activation })
}

fn observables(problem: &Problem, names: &[&str]) -> Vec<Arc<dyn Observable>> {
    names.iter().flat_map(|name| observable::parse(name, problem).unwrap()).collect()
}

fn covariances(problem: &Problem, times: &[f64], names: &[&str]) -> Vec<Mat> {
    let theory = FluctuationTheory::new(problem, Needed::DriftAndNoise, ACCURACY).unwrap();
    theory.covariances(times, &observables(problem, names)).unwrap()
}

fn assert_close(got: f64, expected: f64, relative: f64, what: &str) {
    assert!((got - expected).abs() <= relative * expected.abs(), "{what}: {got}, expected {expected}");
}

#[test]
fn the_relative_variance_of_a_linear_unit_grows_linearly() {
    let eta = 0.9;
    let problem =
        problem(&unit("linear"), Spectrum::isotropic(), Training::online(eta), &[vec![0.5]], &[vec![0.2]]);
    let theta = eta * (2.0 - eta);
    let times = [0.5, 2.0, 8.0];
    for (time, found) in times.iter().zip(covariances(&problem, &times, &["loss"])) {
        let loss = 0.5 * (0.5 - 0.4 + 1.0) * (-theta * time).exp();
        assert_close(found[(0, 0)], 2.0 * theta * theta * time * loss * loss, 1e-6, "d Var[loss]");
    }
}

#[test]
fn a_noisy_linear_unit_ends_with_the_stationary_variance() {
    let (eta, noise) = (0.6, 0.7);
    let training = Training { label_noise: noise, ..Training::online(eta) };
    let problem = problem(&unit("linear"), Spectrum::isotropic(), training, &[vec![0.5]], &[vec![0.2]]);
    let (theta, square) = (eta * (2.0 - eta), noise * noise);
    let e = eta * square / (2.0 - eta);
    let diffusion = 2.0 * theta * theta * e * e
        + 4.0 * eta * eta * (1.0 - eta).powi(2) * e * square
        + 2.0 * eta.powi(4) * square * square;
    // The loss is half of epsilon.
    let found = &covariances(&problem, &[40.0], &["loss"])[0];
    assert_close(found[(0, 0)], 0.25 * diffusion / (2.0 * theta), 1e-6, "d Var[loss]");
}

#[test]
fn the_diffusion_of_a_linear_unit_on_eigenspaces_is_its_closed_form() {
    let (eta, noise) = (0.5, 0.3);
    let spectrum = two_eigenspaces();
    let training = Training { label_noise: noise, ..Training::online(eta) };
    let problem = problem(&unit("linear"), spectrum.clone(), training, &[vec![0.8]], &[vec![0.4]]);
    // epsilon_b of both eigenspaces from orders 0 and 1 of the overlaps.
    let names = ["Q0[0,0] - 2*R0[0,0]", "Q[0,0] - 2*R[0,0]"];
    let theory = FluctuationTheory::new(&problem, Needed::DriftAndNoise, ACCURACY).unwrap();
    let found = theory.diffusion(&observables(&problem, &names)).unwrap();
    let (lambda, weights) = (spectrum.eigenvalues(), spectrum.weights());
    let e: Vec<f64> = weights.iter().map(|w| w * (0.8 - 0.8 + 1.0)).collect();
    let l: Vec<f64> = (0..2).map(|b| lambda[b] * e[b]).collect();
    let w: Vec<f64> = (0..2).map(|b| lambda[b] * weights[b]).collect();
    let all = l[0] + l[1] + noise * noise;
    let own = |a: usize, b: usize| {
        let same = if a == b { all * l[a] } else { 0.0 };
        4.0 * eta * eta * (same + l[a] * l[b]) - 4.0 * eta.powi(3) * all * (l[a] * w[b] + w[a] * l[b])
            + 2.0 * eta.powi(4) * all * all * w[a] * w[b]
    };
    for (i, x) in [[1.0, 1.0], [lambda[0], lambda[1]]].iter().enumerate() {
        for (j, y) in [[1.0, 1.0], [lambda[0], lambda[1]]].iter().enumerate() {
            let expected: f64 = (0..2).map(|a| (0..2).map(|b| x[a] * y[b] * own(a, b)).sum::<f64>()).sum();
            assert_close(found[(i, j)], expected, 1e-8, "diffusion");
        }
    }
}

#[test]
fn rows_on_a_sphere_keep_their_length_in_every_replica() {
    for sphere in [Retraction::Euclidean, Retraction::Tangent] {
        let constraint = Constraint { sphere: Some(sphere), ..Constraint::none() };
        let training = Training { constraint, ..Training::online(1.0) };
        let (q, r) = ([vec![0.8, 0.2], vec![0.2, 0.6]], [vec![0.4], vec![-0.3]]);
        let problem = problem(&pair("erf(z/sqrt2)"), two_eigenspaces(), training, &q, &r);
        let found = &covariances(&problem, &[0.5], &["Q0[0,0]", "Q[0,0]", "R[0,0]"])[0];
        for j in 0..3 {
            assert!(found[(0, j)].abs() < 1e-9, "{found:?}");
        }
        assert!(found[(1, 1)] > 1e-3, "other orders of the spectrum fluctuate");
    }
}

#[test]
fn noise_falls_as_the_batch_grows() {
    let variance = |batch: usize| {
        let training = Training { batch, label_noise: 0.2, ..Training::online(1.0) };
        let problem =
            problem(&unit("erf(z/sqrt2)"), Spectrum::isotropic(), training, &[vec![0.5]], &[vec![0.2]]);
        covariances(&problem, &[1.0], &["R[0,0]"])[0][(0, 0)]
    };
    let (large, larger) = (variance(1000), variance(4000));
    assert_close(large / larger, 4.0, 2e-3, "a four times larger batch");
}

#[test]
fn clocks_change_the_time_and_nothing_else() {
    let training = Training::online(0.5);
    let (q, r) = ([vec![0.5]], [vec![0.2]]);
    let alpha = problem(&unit("erf(z/sqrt2)"), Spectrum::isotropic(), training, &q, &r);
    let flow = Problem { clock: Clock::Flow, ..alpha.clone() };
    let a = &covariances(&alpha, &[2.0], &["R[0,0]", "loss"])[0];
    let b = &covariances(&flow, &[1.0], &["R[0,0]", "loss"])[0];
    for i in 0..2 {
        assert_close(b[(i, i)], a[(i, i)], 1e-6, "variance");
    }
}

#[test]
fn steps_of_any_scaling_have_the_covariance_of_their_size() {
    // s = 0.4/d at d = 500 and s = 0.0008 are the same steps.
    let (q, r) = ([vec![0.5]], [vec![0.2]]);
    let per_dimension = problem(&unit("erf(z/sqrt2)"), Spectrum::isotropic(), Training::online(0.4), &q, &r);
    let mut plain = per_dimension.clone();
    plain.dimension = Some(500);
    plain.training =
        Training { scaling: didact_model::problem::StepScaling::Plain, ..Training::online(0.0008) };
    let a = &covariances(&per_dimension, &[2.0], &["R[0,0]", "loss"])[0];
    let b = &covariances(&plain, &[2.0], &["R[0,0]", "loss"])[0];
    for i in 0..2 {
        assert_close(b[(i, i)], a[(i, i)], 1e-9, "variance");
    }
}

#[test]
fn permuted_students_have_permuted_covariances() {
    let training = || Training { label_noise: 0.3, ..Training::online(1.0) };
    let (q, r) = ([vec![0.5, 0.1], vec![0.1, 0.4]], [vec![0.2], vec![-0.1]]);
    let (q_turned, r_turned) = ([vec![0.4, 0.1], vec![0.1, 0.5]], [vec![-0.1], vec![0.2]]);
    let one = problem(&pair("erf(z/sqrt2)"), Spectrum::isotropic(), training(), &q, &r);
    let other = problem(&pair("erf(z/sqrt2)"), Spectrum::isotropic(), training(), &q_turned, &r_turned);
    let a = &covariances(&one, &[1.0], &["R[0,0]", "Q[0,0]", "Q[0,1]"])[0];
    let b = &covariances(&other, &[1.0], &["R[1,0]", "Q[1,1]", "Q[0,1]"])[0];
    for i in 0..3 {
        for j in 0..3 {
            assert!((a[(i, j)] - b[(i, j)]).abs() < 1e-6 * (a[(i, i)] * a[(j, j)]).sqrt());
        }
    }
}

/// Averages by quadrature and derivatives by weights give what closed forms and their differences give.
#[test]
fn a_rule_written_as_a_formula_fluctuates_as_its_closed_form_does() {
    let training = || Training { label_noise: 0.3, ..Training::online(1.0) };
    let (q, r) = ([vec![0.5, 0.1], vec![0.1, 0.4]], [vec![0.2], vec![-0.1]]);
    let formula = json!({
        "family": "formula", "trained": 2, "frozen": 1,
        "loss": "(erf(h1/sqrt(2)) + erf(h2/sqrt(2)) - erf(v1/sqrt(2)) - e)^2/2",
    });
    let closed = problem(&pair("erf(z/sqrt2)"), two_eigenspaces(), training(), &q, &r);
    let summed = problem(&formula, two_eigenspaces(), training(), &q, &r);
    let names = ["R[0,0]", "Q[0,1]", "loss"];
    let variances = |problem: &Problem| {
        let theory = FluctuationTheory::new(problem, Needed::DriftAndNoise, 1e-5).unwrap();
        theory.covariances(&[1.0], &observables(problem, &names)).unwrap().remove(0)
    };
    let (a, b) = (variances(&closed), variances(&summed));
    for i in 0..3 {
        for j in 0..3 {
            let size = (a[(i, i)] * a[(j, j)]).sqrt();
            assert!((a[(i, j)] - b[(i, j)]).abs() < 1e-3 * size, "{i} {j}: {} {}", a[(i, j)], b[(i, j)]);
        }
    }
}

#[test]
fn starts_scatter_by_the_table_of_their_law() {
    // Sampled at d = 400: the exact factors d/(d + 2) and d²/((d − 1)(d + 2)) differ from 1 by less than the errors.
    let spectrum = two_eigenspaces();
    let model: Model = serde_json::from_value(json!({
        "family": "committee", "students": 2, "teachers": 2, "activation": "linear"
    }))
    .unwrap();
    let t = Mat::from_rows(&[vec![1.0, 0.3], vec![0.3, 2.0]]).unwrap();
    let names = ["Q[0,0]", "Q[0,1]", "Q2[0,1]", "R[0,0]", "R[0,1]", "T[0,0]", "T[0,1]"];
    for law in [
        RowLaw::Gaussian { deviation: 0.7 },
        RowLaw::Sphere { radius: 0.7 },
        RowLaw::Orthogonal { radius: 0.7 },
    ] {
        for frozen in [FrozenRows::Gram(t.clone()), FrozenRows::Sampled] {
            let problem = Problem {
                rule: model.rule().unwrap(),
                about: model.about(),
                spectrum: spectrum.clone(),
                dimension: Some(400),
                training: Training::online(1.0),
                start: Arc::new(RandomRows { trained: law, frozen, scalars: vec![] }),
                clock: Clock::Alpha,
            };
            let observables = observables(&problem, &names);
            let theory = FluctuationTheory::new(&problem, Needed::DriftAndNoise, ACCURACY).unwrap();
            let predicted = theory.start_covariance(&observables).unwrap();
            let count = 4000_u32;
            let draws: Vec<Vec<f64>> = (0..count)
                .map(|replica| {
                    let state = problem.start.draw(&problem.setting(3, replica)).unwrap();
                    let snapshot = observable::Snapshot::new(&state, &problem);
                    observables.iter().map(|o| o.measure(&snapshot)).collect()
                })
                .collect();
            let n = f64::from(count);
            let mean = |i: usize| draws.iter().map(|d| d[i]).sum::<f64>() / n;
            let means: Vec<f64> = (0..names.len()).map(mean).collect();
            for i in 0..names.len() {
                for j in 0..=i {
                    let sum: f64 = draws.iter().map(|d| (d[i] - means[i]) * (d[j] - means[j])).sum();
                    let found = 400.0 * sum / (n - 1.0);
                    let own = predicted[(i, i)] * predicted[(j, j)] + predicted[(i, j)].powi(2);
                    let error = (own / n).sqrt() + 1e-9;
                    let z = (found - predicted[(i, j)]) / error;
                    assert!(
                        z.abs() < 5.0,
                        "{law:?} {} {}: {found} {}",
                        names[i],
                        names[j],
                        predicted[(i, j)]
                    );
                }
            }
        }
    }
}

/// Rounding of the derivatives of a student that grows by orders of magnitude beyond its teacher was taken for roughness, and the
/// path went on in panels without end.
#[test]
fn a_run_that_diverges_is_followed_to_its_end() {
    let (q, r) = ([vec![0.5]], [vec![0.2]]);
    for (rate, end) in [(10.0, "diverges"), (1e3, "diverges"), (1e19, "diverges")] {
        let linear = problem(&unit("linear"), Spectrum::isotropic(), Training::online(rate), &q, &r);
        let theory = FluctuationTheory::new(&linear, Needed::DriftAndNoise, 1e-9).unwrap();
        let error = theory.passage(&observables(&linear, &["loss"])[0], 0.3, 10.0).unwrap_err().to_string();
        assert!(error.contains(end), "{rate}: {error}");
    }
}

#[test]
fn questions_without_an_answer_are_refused_in_words() {
    let (q, r) = ([vec![0.5]], [vec![0.2]]);
    let linear = problem(&unit("linear"), Spectrum::isotropic(), Training::online(0.5), &q, &r);
    let theory = FluctuationTheory::new(&linear, Needed::DriftAndNoise, 1e-6).unwrap();
    let one = |name: &str| observables(&linear, &[name]).remove(0);
    let refused =
        |result: Result<f64, didact_theory::fluctuations::FluctuationError>| result.unwrap_err().to_string();
    let never = refused(theory.passage(&one("loss"), 7.0, 10.0).map(|p| p.time));
    assert_eq!(never, "`loss` does not cross 7 before alpha = 10");
    let zero = refused(theory.required_dimension(&one("Q[0,0] - Q[0,0]"), 1.0, 0.1));
    assert_eq!(zero, "`Q[0,0] - Q[0,0]` is 0 at alpha = 1: it has no relative accuracy");
    let moving = refused(theory.seed(&one("R[0,0]")).map(|s| s.rate));
    assert!(moving.starts_with("the start is no fixed point: its drift is "), "{moving}");
    let learned =
        problem(&unit("linear"), Spectrum::isotropic(), Training::online(0.5), &[vec![1.0]], &[vec![1.0]]);
    let at_rest = FluctuationTheory::new(&learned, Needed::DriftAndNoise, 1e-6).unwrap();
    assert_eq!(refused(at_rest.seed(&one("R[0,0]")).map(|s| s.rate)), "no unstable direction");
    let kink = problem(&unit("linear"), Spectrum::isotropic(), Training::online(0.5), &q, &[vec![0.0]]);
    let theory = FluctuationTheory::new(&kink, Needed::DriftAndNoise, 1e-6).unwrap();
    let jump = theory.covariances(&[0.0], &observables(&kink, &["abs(R[0,0])"])).unwrap_err().to_string();
    assert!(jump.starts_with("the gradient of `abs(R[0,0])` jumps at alpha = 0"), "{jump}");
    let square = theory.covariances(&[0.0], &observables(&kink, &["R[0,0]^2"])).unwrap();
    assert_eq!(square[0][(0, 0)], 0.0, "a gradient that vanishes does not jump");
    let relu =
        problem(&unit("relu"), Spectrum::isotropic(), Training::online(0.5), &[vec![1.0]], &[vec![1.0]]);
    let coincide = FluctuationTheory::new(&relu, Needed::DriftAndNoise, 1e-6).unwrap_err().to_string();
    assert_eq!(coincide, "rows 0 and 1 coincide at alpha = 0, where the kick jumps: dA/dC is infinite");
    let many = Spectrum::power_law(300, 1.0).unwrap();
    let many = problem(&unit("erf(z/sqrt2)"), many, Training::online(0.5), &q, &r);
    let large = FluctuationTheory::new(&many, Needed::DriftAndNoise, 1e-6).unwrap_err().to_string();
    assert_eq!(large, "600 numbers in the state; a band has at most 400");
}
