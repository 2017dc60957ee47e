//! LoRA: the exact law of the overlaps is that of d-dimensional SGD, at dimensions where every 1/d effect is large, and its
//! one-step mean is the population gradient (docs/derivations/lora.md#s9).

use didact_families::Family;
use didact_families::lora::flow::Flow;
use didact_families::lora::landscape::AdapterState;
use didact_families::lora::{LoraSingleIndex, LoraTwoLayer, Misalignment};
use didact_math::linalg::Mat;
use didact_math::random::statistics::{Moments, two_sample};
use didact_model::constraint::{Constraint, Retraction};
use didact_model::problem::StepScaling;
use didact_model::start::Given;
use didact_model::{Clock, Engine, NoMonitor, Overlaps, Problem, Record, Spectrum, Training, observable};
use didact_simulate::{Direct, Reduced};
use std::sync::Arc;

fn problem(
    spec: &impl Family,
    dimension: u64,
    (batch, rate, sphere): (usize, f64, Retraction),
    (q, r, t): (&Mat, &Mat, &Mat),
    scalars: Vec<f64>,
) -> Problem {
    let (rule, spectrum) = (spec.rule().unwrap(), Spectrum::isotropic());
    let start = Overlaps::spread(rule.shape(), &spectrum, (q, r, t), scalars).unwrap();
    Problem {
        rule,
        about: spec.about(),
        spectrum,
        dimension: Some(dimension),
        training: Training {
            scaling: StepScaling::Plain,
            batch,
            constraint: Constraint { sphere: Some(sphere), ..Constraint::none() },
            ..Training::online(rate)
        },
        start: Arc::new(Given(start)),
        clock: Clock::Steps,
    }
}

fn single(spec: &LoraSingleIndex, d: u64, how: (usize, f64, Retraction)) -> Problem {
    let one = Mat::identity(1);
    let m = Mat::from_fn(1, 1, |_, _| 0.2);
    problem(spec, d, how, (&one, &m, &one), vec![0.15])
}

/// |z| < 4 for means and variances (of a product: for the covariance), and the same in terms of the Kolmogorov-Smirnov p-value.
fn assert_same_law(problem: &Problem, steps: f64, names: &[&str], what: &str) {
    let observables = names.iter().flat_map(|n| observable::parse(n, problem).unwrap()).collect();
    let mut record = Record::new(vec![steps], observables);
    (record.replicas, record.seed) = (4000, 1);
    let direct = Direct.run(problem, &record, &NoMonitor).unwrap();
    record.seed = 2;
    let reduced = Reduced.run(problem, &record, &NoMonitor).unwrap();
    for name in names {
        let values = |t: &didact_model::Trajectory| -> Vec<f64> {
            t.curves(name).unwrap().iter().map(|r| r[0]).collect()
        };
        let (mut a, mut b) = (values(&direct), values(&reduced));
        let moments = |v: &[f64]| -> (Moments, Moments) {
            let first: Moments = v.iter().copied().collect();
            let second = v.iter().map(|x| (x - first.mean()).powi(2)).collect();
            (first, second)
        };
        for (x, y) in [(moments(&a).0, moments(&b).0), (moments(&a).1, moments(&b).1)] {
            let z = (x.mean() - y.mean()) / x.standard_error().hypot(y.standard_error());
            assert!(z.abs() < 4.0, "{what}, {name}: {} and {}, z = {z}", x.mean(), y.mean());
        }
        let p = two_sample(&mut a, &mut b).p_value;
        assert!(p > 6.3e-5, "{what}, {name}: Kolmogorov-Smirnov p = {p}");
    }
}

#[test]
fn reduced_and_direct_agree_in_law_from_two_dimensions_on() {
    use Retraction::{Euclidean, Tangent};
    for (name, labels, d, how) in [
        ("linear", "plain", 2, (3, 0.2, Euclidean)),
        ("erf(z)", "plain", 3, (4, 0.5, Euclidean)),
        ("relu", "squared", 10, (10, 0.2, Tangent)),
        ("He3", "plain", 30, (20, 0.004, Tangent)),
    ] {
        let spec = LoraSingleIndex { labels: labels.into(), ..LoraSingleIndex::matched(0.3, name) };
        assert_same_law(
            &single(&spec, d, how),
            30.0,
            &["u", "m", "u*m"],
            &format!("{name} {labels}, d = {d}"),
        );
    }
}

#[test]
fn misaligned_and_two_layer_chains_agree_in_law() {
    let spec = LoraSingleIndex {
        misalignment: Some(Misalignment::Weight(0.6)),
        ..LoraSingleIndex::matched(0.4, "erf(z)")
    };
    let teachers = Mat::from_rows(&[vec![1.0, 0.2], vec![0.2, 1.0]]).unwrap();
    let r = Mat::from_rows(&[vec![0.3, -0.1]]).unwrap();
    let how = (5, 0.4, Retraction::Euclidean);
    let misaligned = problem(&spec, 12, how, (&Mat::identity(1), &r, &teachers), vec![0.2]);
    assert_same_law(&misaligned, 30.0, &["u", "m", "q"], "misaligned");

    let spec = LoraTwoLayer::uniform(3, 2, 0.5, "h2");
    let q = Mat::from_rows(&[vec![1.0, 0.2], vec![0.2, 1.0]]).unwrap();
    let r = Mat::from_fn(2, 3, |i, k| 0.2 - 0.15 * (i + k) as f64);
    let scalars = vec![0.2, -0.1, 0.1, 0.3, -0.2, 0.1];
    let two = problem(&spec, 12, (30, 0.1, Retraction::Euclidean), (&q, &r, &Mat::identity(3)), scalars);
    assert_same_law(&two, 20.0, &["R[0,0]", "R[1,2]", "Q[0,1]", "scalar[0]", "scalar[3]"], "two-layer");
}

#[test]
fn runs_approach_the_flow_in_proportion_to_the_step() {
    // At fixed time the mean of runs is off by a multiple of η (step and gradient noise both), the flow being its limit.
    let spec = LoraSingleIndex::matched(0.5, "linear");
    let landscape = spec.landscape().unwrap();
    let flow = Flow { landscape: &landscape, delta: 1.0 };
    let limit = flow.states(AdapterState::aligned(0.15, 0.2), &[5.0]).unwrap()[0];
    // Whole numbers of steps.
    let errors = [0.2, 0.1, 0.05].map(|rate| {
        let problem = single(&spec, 200, (20_000, rate, Retraction::Euclidean));
        let mut record = Record::new(vec![5.0 / rate], observable::parse("m", &problem).unwrap());
        (record.replicas, record.seed) = (64, 6);
        let run = Reduced.run(&problem, &record, &NoMonitor).unwrap();
        let mean = &run.mean("m").unwrap()[0];
        (mean.value - limit.overlap, mean.error)
    });
    for pair in errors.windows(2) {
        let [(coarse, _), (fine, error)] = pair else { panic!("windows of two") };
        // Half the step, half the error, up to its next order (an eighth of it) and sampling.
        assert!((fine - 0.5 * coarse).abs() < 4.0 * error + 0.15 * coarse.abs(), "{errors:?}");
        assert!(coarse.abs() > 10.0 * error, "nothing to see: {errors:?}");
    }
}

#[test]
fn the_mean_of_one_step_is_the_population_gradient() {
    let spec = LoraSingleIndex::matched(0.4, "erf(z)");
    let landscape = spec.landscape().unwrap();
    // A small step, so that m moves by η times its velocity up to η².
    let rate = 1e-3;
    let problem = single(&spec, 50, (2000, rate, Retraction::Tangent));
    let observables = ["u", "m"].iter().flat_map(|n| observable::parse(n, &problem).unwrap()).collect();
    let mut record = Record::new(vec![1.0], observables);
    (record.replicas, record.seed) = (2000, 3);
    let run = Reduced.run(&problem, &record, &NoMonitor).unwrap();
    let velocity = landscape.velocity(AdapterState::aligned(0.15, 0.2));
    for (name, before, rate_of_change) in [("u", 0.15, velocity.amplitude), ("m", 0.2, velocity.overlap)] {
        let mean = &run.mean(name).unwrap()[0];
        let (got, error) = ((mean.value - before) / rate, mean.error / rate);
        assert!(
            (got - rate_of_change).abs() < 4.0 * error + 1e-3 * rate_of_change.abs(),
            "{name}: {got} {rate_of_change} {error}"
        );
    }
}
