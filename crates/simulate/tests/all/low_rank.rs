//! Rank-one fine-tuning and its baselines: the reduced chain against d-dimensional weights, and against the chain of the
//! overlap written out.

use didact_families::Family;
use didact_families::low_rank::dynamics::{Draws, chain_step};
use didact_families::low_rank::network::{Mode, Network};
use didact_families::low_rank::{Base, Loading, LowRank, NamedStart, StartLaw, StudentKind};
use didact_math::linalg::Mat;
use didact_math::random::statistics::two_sample;
use didact_math::random::{RngAddress, Stream};
use didact_model::constraint::{Constraint, Retraction};
use didact_model::problem::StepScaling;
use didact_model::{Clock, Engine, NoMonitor, Problem, Record, Spectrum, Training, observable};
use didact_simulate::{Direct, Reduced};

const REPLICAS: u32 = 6000;

fn gram() -> Vec<Vec<f64>> {
    vec![vec![1.0, 0.4, -0.2], vec![0.4, 1.0, 0.3], vec![-0.2, 0.3, 1.0]]
}

/// Three units on a correlated base in d = 12, large steps.
fn spec(activation: &str) -> LowRank {
    LowRank {
        base: Base::Gram(gram()),
        loading: Loading::Given(vec![0.6, -0.64, 0.48]),
        student_loading: Loading::Given(vec![0.8, 0.0, 0.6]),
        second_layer: Some(vec![1.0, -0.5, 0.8]),
        start: StartLaw::Overlap(0.2),
        ..LowRank::new(activation, 3, 1.7)
    }
}

fn problem(spec: &LowRank, off_own: bool, training: Training) -> Problem {
    let sphere = Some(Retraction::Tangent);
    let scalar_sphere = spec.train_loading.then_some(Retraction::Tangent);
    let constraint = Constraint { sphere, scalar_sphere, off_own, ..training.constraint };
    Problem {
        rule: spec.rule().unwrap(),
        about: spec.about(),
        spectrum: Spectrum::isotropic(),
        dimension: Some(12),
        training: Training { scaling: StepScaling::Plain, constraint, ..training },
        start: spec.start().unwrap().unwrap(),
        clock: Clock::Steps,
    }
}

fn values(engine: &dyn Engine, problem: &Problem, name: &str, seed: u64) -> Vec<f64> {
    let mut record = Record::new(vec![40.0], observable::parse(name, problem).unwrap());
    (record.replicas, record.seed) = (REPLICAS, seed);
    let run = engine.run(problem, &record, &NoMonitor).unwrap();
    run.columns[0].curves.iter().map(|curve| curve[0]).collect()
}

/// Kolmogorov-Smirnov at p > 6.3e-5, which is |z| < 4.
fn assert_same_law(problem: &Problem, names: &[&str], what: &str) {
    for name in names {
        let (mut a, mut b) = (values(&Direct, problem, name, 1), values(&Reduced, problem, name, 2));
        let p = two_sample(&mut a, &mut b).p_value;
        assert!(p > 6.3e-5, "{what}: {name}, p = {p}");
    }
}

#[test]
fn restricted_and_free_students_have_one_law_in_both_engines() {
    for (name, rate) in [("relu", 0.05), ("He3", 0.002), ("quad", 0.01)] {
        let spec = spec(name);
        assert_same_law(&problem(&spec, true, Training::online(rate)), &["m"], name);
    }
    let joint = LowRank { train_loading: true, ..spec("relu") };
    let training = Training { scalar_ratio: 0.7, label_noise: 0.2, ..Training::online(0.05) };
    assert_same_law(&problem(&joint, true, training.clone()), &["m", "omega"], "joint, restricted");
    let inside = LowRank { inside: 0.5, start: StartLaw::Named(NamedStart::Uniform), ..joint };
    assert_same_law(&problem(&inside, false, training), &["m", "omega"], "joint, free, u partly in W");
}

#[test]
fn batches_and_baselines_have_one_law_in_both_engines() {
    let batch = Training { batch: 3, ..Training::online(0.1) };
    assert_same_law(&problem(&spec("relu"), true, batch), &["m"], "batch of 3");
    for (student, off_own, names) in [
        (StudentKind::LazyRankOne, true, &["m"][..]),
        (StudentKind::FromScratch, false, &["matched", "best"]),
        (StudentKind::SingleIndex, false, &["m"]),
    ] {
        let spec = LowRank { student, ..spec("relu") };
        assert_same_law(&problem(&spec, off_own, Training::online(0.05)), names, &format!("{student:?}"));
    }
}

#[test]
fn students_without_a_sphere_have_one_law_in_both_engines() {
    for (student, name) in [
        (StudentKind::LazyFullRank, "loss"),
        (StudentKind::FirstMoment, "m"),
        (StudentKind::SecondLayer, "scalar[1]"),
    ] {
        let spec = LowRank { student, ..spec("relu") };
        let mut problem = problem(&spec, false, Training::online(0.02));
        let off_own = student != StudentKind::SecondLayer;
        problem.training.constraint = Constraint { off_own, ..Constraint::none() };
        assert_same_law(&problem, &[name], &format!("{student:?}"));
    }
}

#[test]
fn the_reduced_chain_is_the_chain_of_the_overlap() {
    for name in ["relu", "quad"] {
        let spec = spec(name);
        let step = if name == "quad" { 0.01 } else { 0.05 };
        let mut reduced = values(&Reduced, &problem(&spec, true, Training::online(step)), "m", 3);
        let mut network = Network::new(
            didact_math::activation::parse(name).unwrap(),
            vec![1.0, -0.5, 0.8],
            1.7,
            Mode::Normalised,
        );
        network.output_scale = 1.0;
        let (c, own) = spec.loadings();
        let lower = didact_math::linalg::cholesky_psd(&Mat::from_rows(&gram()).unwrap()).unwrap();
        let mut written_out: Vec<f64> = (0..REPLICAS)
            .map(|replica| {
                let mut stream = Stream::at(RngAddress { seed: 9, replica, step: 0, lane: 0 });
                let mut m = 0.2;
                for _ in 0..40 {
                    let z: Vec<f64> = (0..3).map(|_| stream.normal()).collect();
                    let base: Vec<f64> =
                        (0..3).map(|i| (0..=i).map(|j| lower[(i, j)] * z[j]).sum()).collect();
                    // d_⊥ = 12 − 3, of which u and û take two.
                    let (along, across, rest) = (stream.normal(), stream.normal(), stream.chi_square(7.0));
                    m = chain_step(
                        &network,
                        (&c, &own),
                        m,
                        step,
                        &Draws { base: &base, along, across, rest },
                    )
                    .0;
                }
                m
            })
            .collect();
        let p = two_sample(&mut reduced, &mut written_out).p_value;
        assert!(p > 6.3e-5, "{name}: p = {p}");
    }
}

#[test]
fn a_billion_dimensions_run_and_results_repeat() {
    let spec = LowRank { start: StartLaw::Scaled { scaled: 1.0 }, ..LowRank::new("relu", 8, 8f64.sqrt()) };
    let mut problem = problem(&spec, true, Training::online(1e-10));
    problem.dimension = Some(1_000_000_000);
    let mut record = Record::new(vec![2000.0], observable::parse("m", &problem).unwrap());
    record.replicas = 2;
    let run = || {
        let run = Reduced.run(&problem, &record, &NoMonitor).unwrap();
        run.columns[0].curves.iter().map(|curve| curve[0]).collect::<Vec<_>>()
    };
    let first = run();
    // 2000 steps of 1e-10 move nothing: m stays at 1/√d_⊥ within the drift of 1e-6.
    assert!(first.iter().all(|m| (m - 1.0 / (1e9f64 - 8.0).sqrt()).abs() < 1e-5), "{first:?}");
    assert_eq!(first, run());
}
