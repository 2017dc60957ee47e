//! Quadratic networks at finite N: the overlaps alone have the law of the weights, and the closed forms are right.

use didact_families::quadratic::{OneStep, QuadraticNetworks, State};
use didact_families::{Family, Model};
use didact_math::linalg::Mat;
use didact_math::random::statistics::{Moments, two_sample};
use didact_model::start::{FrozenRows, Given, RandomRows, RowLaw};
use didact_model::{
    Clock, Constraint, Engine, NoMonitor, Outcome, Overlaps, Problem, Record, Spectrum, Training, Trajectory,
    observable,
};
use didact_simulate::{Direct, Reduced};
use serde_json::json;
use std::sync::Arc;

fn problem(start: &State, dimension: u64, learning_rate: f64) -> Problem {
    let spec = QuadraticNetworks::new(start.rho.rows(), start.rho.cols());
    let rule = spec.rule().unwrap();
    let (spectrum, t) = (Spectrum::isotropic(), Mat::identity(start.rho.cols()));
    let overlaps = Overlaps::spread(rule.shape(), &spectrum, (&start.q, &start.rho, &t), vec![]).unwrap();
    Problem {
        rule,
        about: spec.about(),
        spectrum,
        dimension: Some(dimension),
        training: Training::online(learning_rate),
        start: Arc::new(Given(overlaps)),
        clock: Clock::Alpha,
    }
}

fn run(
    engine: &dyn Engine,
    problem: &Problem,
    names: &[&str],
    time: f64,
    replicas: u32,
    seed: u64,
) -> Trajectory {
    let observables = names.iter().flat_map(|n| observable::parse(n, problem).unwrap()).collect();
    let mut record = Record::new(vec![time], observables);
    (record.replicas, record.seed) = (replicas, seed);
    engine.run(problem, &record, &NoMonitor).unwrap()
}

fn assert_same_law(problem: &Problem, time: f64, replicas: u32) {
    let names = ["loss", "R[0,0]", "Q[0,0]", "Q[0,1]"];
    let direct = run(&Direct, problem, &names, time, replicas, 1);
    let reduced = run(&Reduced, problem, &names, time, replicas, 2);
    for name in names {
        let last = |t: &Trajectory| -> Vec<f64> {
            t.curves(name).unwrap().iter().filter_map(|r| r.first().copied()).collect()
        };
        let (mut a, mut b) = (last(&direct), last(&reduced));
        let spread = |v: &[f64]| v.iter().copied().collect::<Moments>().variance().sqrt();
        if spread(&a).max(spread(&b)) < 1e-12 {
            continue; // what the sphere makes deterministic
        }
        // |z| < 4 as a p-value: sixteen comparisons at fixed seeds.
        let p = two_sample(&mut a, &mut b).p_value;
        assert!(p > 6.3e-5, "{name} at N = {:?}: Kolmogorov-Smirnov p = {p}", problem.dimension);
    }
}

fn start() -> State {
    State::orthonormal(Mat::from_rows(&[vec![0.2], vec![-0.1]]).unwrap())
}

#[test]
fn overlaps_alone_have_the_law_of_the_weights() {
    // N = p + p*, where nothing is left outside the rows, and two larger ones.
    for n in [3, 12, 30] {
        assert_same_law(&problem(&start(), n, 0.03), 6.0, 4000);
    }
}

#[test]
fn so_do_spherical_students_and_batches() {
    let mut spherical = problem(&start(), 12, 0.03);
    spherical.training.constraint = Constraint::sphere();
    assert_same_law(&spherical, 6.0, 4000);
    let mut batched = problem(&start(), 20, 0.05);
    (batched.training.batch, batched.training.label_noise) = (3, 0.3);
    assert_same_law(&batched, 6.0, 4000);
}

#[test]
fn one_step_has_its_exact_mean_and_covariance() {
    let state = State {
        rho: Mat::from_rows(&[vec![0.3], vec![-0.2]]).unwrap(),
        q: Mat::from_rows(&[vec![1.0, 0.1], vec![0.1, 0.8]]).unwrap(),
    };
    let (n, eta) = (9_u64, 0.05);
    let mut here = problem(&state, n, eta);
    here.clock = Clock::Steps;
    let names = ["R[0,0]", "R[1,0]", "Q[0,0]", "Q[0,1]", "Q[1,1]"];
    let before = [0.3, -0.2, 1.0, 0.1, 0.8];
    let step = OneStep::new(&state, eta, n as f64);
    let (mean, covariance) = (step.mean(), step.covariance());
    for engine in [&Reduced as &dyn Engine, &Direct] {
        let after = run(engine, &here, &names, 1.0, 200_000, 3);
        let columns: Vec<Vec<f64>> =
            names.iter().map(|c| after.curves(c).unwrap().iter().map(|r| r[0]).collect()).collect();
        for i in 0..5 {
            let change: Moments = columns[i].iter().map(|v| v - before[i]).collect();
            assert!(
                (change.mean() - mean[i]).abs() < 4.5 * change.standard_error(),
                "{} mean {i}",
                engine.name()
            );
            for j in 0..=i {
                let product: Moments = columns[i]
                    .iter()
                    .zip(&columns[j])
                    .map(|(a, b)| (a - before[i] - mean[i]) * (b - before[j] - mean[j]))
                    .collect();
                let difference = product.mean() - covariance[(i, j)];
                assert!(
                    difference.abs() < 4.5 * product.standard_error(),
                    "{} covariance {i} {j}",
                    engine.name()
                );
            }
        }
    }
}

#[test]
fn noise_seeds_the_escape_that_the_equations_never_make() {
    // docs/derivations/quadratic-networks.md#noise-seeded: p = p* = 2, eta = 0.1, N = 2000: N |rho|² = 0.897, 4.05 at
    // alpha = 2, 5 from rho(0) = 0.
    let all = Model::quantities();
    let ask = |name: &str, inputs: serde_json::Value, entry: &str| {
        let (_, q) = all.iter().find(|(f, q)| *f == "quadratic-networks" && q.name == name).unwrap();
        let answer = q.evaluate(inputs.as_object().unwrap()).unwrap();
        answer.iter().find(|(n, _)| *n == entry).unwrap().1.as_f64().unwrap()
    };
    let inputs = json!({"p": 2, "p_star": 2, "eta": 0.1});
    let norm = ask("plateau-finite-rate", inputs, "norm");
    let here = problem(&State { rho: Mat::zeros(2, 2), q: Mat::identity(2).scaled(norm) }, 2000, 0.1);
    let sum = "2000*(R[0,0]^2+R[0,1]^2+R[1,0]^2+R[1,1]^2)";
    let found = run(&Reduced, &here, &[sum], 5.0, 1000, 4).mean(sum).unwrap()[0];
    let predicted =
        ask("noise-seeded-escape", json!({"p": 2, "p_star": 2, "eta": 0.1, "alpha": 5}), "overlap");
    assert!((predicted - 4.05).abs() < 0.01, "{predicted}");
    assert!((found.value - predicted).abs() < 4.0 * found.error, "{} {predicted}", found.value);
}

#[test]
fn a_random_start_is_the_haar_block_and_the_equations_are_the_limit() {
    // From Haar starts at N = 400 and 1600 the mean loss approaches that of larger N: bias 1/N.
    let mean = |n: u64, seed: u64| {
        let mut here = problem(&start(), n, 0.05);
        let frozen = FrozenRows::Gram(Mat::identity(1));
        here.start =
            Arc::new(RandomRows { trained: RowLaw::Orthogonal { radius: 1.0 }, frozen, scalars: vec![] });
        run(&Reduced, &here, &["R[0,0]^2", "loss"], 0.0, 4000, seed)
    };
    for n in [3, 50] {
        let square = mean(n, 5).mean("R[0,0]^2").unwrap()[0];
        assert!((square.value - 1.0 / n as f64).abs() < 4.0 * square.error, "{n}: {}", square.value);
    }
}

#[test]
fn blow_ups_are_outcomes_with_their_known_frequency() {
    // docs/derivations/quadratic-networks.md#s12-runaway: (p, p*, N, eta, alpha) = (1, 2, 6, 0.05, 8) diverges in 6.3%
    // of runs from random starts.
    let mut here = problem(&State::orthonormal(Mat::zeros(1, 2)), 6, 0.05);
    let frozen = FrozenRows::Gram(Mat::identity(2));
    here.start =
        Arc::new(RandomRows { trained: RowLaw::Orthogonal { radius: 1.0 }, frozen, scalars: vec![] });
    let runs = run(&Reduced, &here, &["loss"], 8.0, 4000, 6);
    let lost = runs.outcomes.iter().filter(|o| matches!(o, Outcome::Diverged { .. })).count();
    let fraction = lost as f64 / 4000.0;
    // Binomial error of 4000 runs is 0.004; the reference counts |Q| > 1e6 at other starts.
    assert!((fraction - 0.063).abs() < 0.02, "{fraction}");
}
