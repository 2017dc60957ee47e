//! Direct and reduced simulation have the same law at sizes where every 1/d effect is large.

use didact_families::Family;
use didact_families::committee::{Committee, Output};
use didact_math::linalg::Mat;
use didact_math::random::statistics::{Moments, two_sample};
use didact_model::constraint::{Constraint, Retraction};
use didact_model::observable;
use didact_model::start::Given;
use didact_model::{Clock, Engine, NoMonitor, Overlaps, Problem, Record, Spectrum, Training};
use didact_simulate::{Direct, Reduced};
use std::sync::Arc;

const REPLICAS: u32 = 20_000;

fn problem(
    spec: &Committee,
    spectrum: Spectrum,
    dimension: u64,
    training: Training,
    q: &Mat,
    r: &Mat,
) -> Problem {
    let rule = spec.rule().unwrap();
    let t = Mat::identity(spec.teachers);
    let start = Overlaps::spread(rule.shape(), &spectrum, (q, r, &t), spec.starting_scalars()).unwrap();
    Problem {
        rule,
        about: spec.about(),
        spectrum,
        dimension: Some(dimension),
        training,
        start: Arc::new(Given(start)),
        clock: Clock::Steps,
    }
}

/// Kurtosis-aware standard error of a variance: Var(s²) ≈ (m₄ − s⁴)/n.
fn variance_and_error(values: &[f64]) -> (f64, f64) {
    let mut moments = Moments::default();
    values.iter().for_each(|&v| moments.push(v));
    let mut squares = Moments::default();
    values.iter().for_each(|&v| squares.push((v - moments.mean()).powi(2)));
    (moments.variance(), squares.standard_error())
}

fn assert_same_law(problem: &Problem, steps: f64, names: &[&str]) {
    let observables: Vec<_> = names.iter().flat_map(|n| observable::parse(n, problem).unwrap()).collect();
    let mut record = Record::new(vec![steps], observables);
    record.replicas = REPLICAS;
    record.seed = 1;
    let direct = Direct.run(problem, &record, &NoMonitor).unwrap();
    record.seed = 2;
    let reduced = Reduced.run(problem, &record, &NoMonitor).unwrap();
    for name in direct.column_names() {
        let values = |t: &didact_model::Trajectory| -> Vec<f64> {
            t.curves(name).unwrap().iter().map(|curve| curve[0]).collect()
        };
        let (mut a, mut b) = (values(&direct), values(&reduced));
        let (ma, mb) = (&direct.mean(name).unwrap()[0], &reduced.mean(name).unwrap()[0]);
        if ma.deviation.max(mb.deviation) < 1e-13 * ma.value.abs() {
            // What a constraint makes deterministic agrees to rounding.
            assert!(
                (ma.value - mb.value).abs() < 1e-13 * ma.value.abs(),
                "{name}: {} and {}",
                ma.value,
                mb.value
            );
            continue;
        }
        let z = (ma.value - mb.value) / ma.error.hypot(mb.error);
        assert!(z.abs() < 4.0, "{name}: means {} and {}, z = {z}", ma.value, mb.value);
        let ((va, ea), (vb, eb)) = (variance_and_error(&a), variance_and_error(&b));
        let z = (va - vb) / ea.hypot(eb);
        assert!(z.abs() < 4.0, "{name}: variances {va} and {vb}, z = {z}");
        let p = two_sample(&mut a, &mut b).p_value;
        // |z| < 4 in terms of a p-value.
        assert!(p > 6.3e-5, "{name}: Kolmogorov-Smirnov p = {p}");
    }
}

#[test]
fn one_eigenspace_batch_one() {
    let spec = Committee::soft(2, 1, "erf(z/sqrt2)");
    let (q, r) = (
        Mat::from_rows(&[vec![0.5, 0.1], vec![0.1, 0.3]]).unwrap(),
        Mat::from_fn(2, 1, |i, _| 0.2 - 0.3 * i as f64),
    );
    let problem = problem(&spec, Spectrum::isotropic(), 12, Training::online(3.0), &q, &r);
    assert_same_law(&problem, 30.0, &["loss", "Q[0,0]", "Q[0,1]", "Q[1,1]", "R[0,0]", "R[1,0]"]);
}

#[test]
fn two_eigenspaces_batch_three_with_label_noise() {
    let spec = Committee { output: Output::Scaled, ..Committee::soft(2, 2, "relu") };
    let spectrum = Spectrum::new(vec![1.8, 0.4], vec![7.0 / 18.0, 11.0 / 18.0]).unwrap();
    let (q, r) = (Mat::identity(2).scaled(0.5), Mat::from_fn(2, 2, |i, j| 0.3 - 0.2 * (i + 2 * j) as f64));
    let training = Training { batch: 3, label_noise: 0.3, ..Training::online(4.0) };
    let problem = problem(&spec, spectrum, 18, training, &q, &r);
    assert_same_law(&problem, 25.0, &["loss", "Q[0,0]", "Q0[0,1]", "Q2[1,1]", "R[0,0]", "R0[1,1]"]);
}

#[test]
fn spherical_rows_with_trained_scalars_and_a_singular_gram() {
    let spec = Committee {
        train_output: true,
        student_weights: Some(vec![0.3, 0.9]),
        ..Committee::soft(2, 2, "tanh(x) + 0.2*x")
    };
    // Two equal students: the Gram of the rows is singular, and stays so until their kicks differ.
    let (q, r) = (Mat::from_fn(2, 2, |_, _| 1.0), Mat::from_fn(2, 2, |_, j| 0.3 + 0.2 * j as f64));
    for sphere in [Retraction::Euclidean, Retraction::Tangent] {
        let constraint = Constraint { sphere: Some(sphere), ..Constraint::none() };
        let training = Training { constraint, scalar_ratio: 0.5, ..Training::online(3.0) };
        let problem = problem(&spec, Spectrum::isotropic(), 14, training, &q, &r);
        assert_same_law(&problem, 30.0, &["Q[0,1]", "R[0,0]", "R[1,1]", "scalar[0]", "scalar[1]"]);
    }
}

#[test]
fn rows_kept_off_the_teachers_with_decay_in_a_batch() {
    let spec = Committee::soft(2, 1, "erf(z)");
    let spectrum = Spectrum::new(vec![1.5, 0.5], vec![0.5, 0.5]).unwrap();
    let (q, r) = (
        Mat::from_rows(&[vec![0.5, 0.1], vec![0.1, 0.3]]).unwrap(),
        Mat::from_fn(2, 1, |i, _| 0.2 + 0.1 * i as f64),
    );
    for batch in [1, 4] {
        let constraint = Constraint { off_frozen: true, weight_decay: 0.2, ..Constraint::none() };
        let training = Training { constraint, batch, ..Training::online(2.0) };
        let problem = problem(&spec, spectrum.clone(), 16, training, &q, &r);
        assert_same_law(&problem, 20.0, &["Q[0,0]", "Q[0,1]", "Q0[1,1]", "R[0,0]", "R0[1,0]"]);
    }
}

#[test]
fn eigenspaces_smaller_than_the_number_of_rows() {
    let spec = Committee::soft(2, 1, "erf(z/sqrt2)");
    // Three rows in eigenspaces of two, three and nine dimensions; rows that live where they fit.
    let spectrum = Spectrum::new(vec![2.0, 1.0, 0.7], vec![2.0 / 14.0, 3.0 / 14.0, 9.0 / 14.0]).unwrap();
    let rule = spec.rule().unwrap();
    let plane = Mat::from_rows(&[vec![0.4, 0.1], vec![-0.2, 0.3], vec![0.5, 0.0]]).unwrap().gram();
    let space =
        Mat::from_rows(&[vec![0.4, 0.0, 0.1], vec![0.1, 0.3, 0.0], vec![0.2, 0.1, 0.6]]).unwrap().gram();
    let start = Overlaps::new(rule.shape(), vec![plane, space.clone(), space], vec![], 3).unwrap();
    for batch in [1, 2] {
        let problem = Problem {
            rule: rule.clone(),
            about: spec.about(),
            spectrum: spectrum.clone(),
            dimension: Some(14),
            training: Training { batch, ..Training::online(3.0) },
            start: Arc::new(Given(start.clone())),
            clock: Clock::Steps,
        };
        assert_same_law(&problem, 25.0, &["loss", "Q[0,0]", "Q[0,1]", "R[1,0]", "Q0[1,1]"]);
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let spec = Committee::soft(2, 2, "erf(z/sqrt2)");
    let (q, r) = (Mat::identity(2).scaled(0.2), Mat::from_fn(2, 2, |i, j| 0.05 * (1 + i + j) as f64));
    let training = Training { batch: 2, ..Training::online(1.0) };
    let problem = problem(&spec, Spectrum::isotropic(), 40, training, &q, &r);
    let mut record = Record::new(vec![10.0, 200.0], observable::parse("R[*,*]", &problem).unwrap());
    record.replicas = 7;
    for engine in [&Direct as &dyn Engine, &Reduced] {
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let run = pool.install(|| engine.run(&problem, &record, &NoMonitor).unwrap());
            run.columns
        };
        assert_eq!(with(1), with(2));
    }
}

#[test]
fn divergence_is_an_outcome_with_its_time() {
    let spec = Committee::soft(1, 1, "quadratic");
    let (q, r) = (Mat::identity(1).scaled(4.0), Mat::zeros(1, 1));
    let problem = problem(&spec, Spectrum::isotropic(), 20, Training::online(20.0), &q, &r);
    let mut record = Record::new(vec![0.0, 10.0, 1000.0], observable::parse("loss", &problem).unwrap());
    record.replicas = 4;
    for engine in [&Direct as &dyn Engine, &Reduced] {
        let run = engine.run(&problem, &record, &NoMonitor).unwrap();
        for (outcome, losses) in run.outcomes.iter().zip(&run.columns[0].curves) {
            assert!(matches!(outcome, didact_model::Outcome::Diverged { at } if *at > 0.0 && *at < 1000.0));
            assert!(losses.len() < 3);
        }
    }
}
