//! W1 and W2: an erf committee with K = M = 4 and η = 0.5 (`eta`), by its order-parameter equations (W1) and by SGD (W2), with
//! weights in d = 1000 dimensions and with overlaps alone.

use crate::harness::{Times, best_of_3, report};
use crate::portable;
use didact_families::Family;
use didact_families::committee::Committee;
use didact_math::linalg::{Mat, cholesky_psd, dot};
use didact_math::ode::{Method, Options, Saving};
use didact_model::observable::{self, Observable, Risk, Snapshot};
use didact_model::start::Given;
use didact_model::{Clock, Engine, Needed, NoMonitor, Overlaps, Problem, Record, Spectrum, Training};
use didact_simulate::chain::{Chain, ReplicaAddress};
use didact_simulate::direct::DirectChain;
use didact_simulate::reduced::ReducedChain;
use didact_theory::{Numerical, OrderParameterOde};
use serde_json::json;
use std::sync::Arc;

/// Initial overlaps of student rows with teacher rows.
const R0: [[f64; 4]; 4] = [
    [0.030, 0.010, -0.020, 0.005],
    [-0.010, 0.025, 0.015, -0.005],
    [0.020, -0.015, 0.035, 0.010],
    [0.005, 0.010, -0.010, 0.040],
];
/// Initial overlaps of student rows.
const Q0: [[f64; 4]; 4] = [
    [0.20, 0.02, 0.01, -0.01],
    [0.02, 0.25, 0.015, 0.005],
    [0.01, 0.015, 0.30, -0.02],
    [-0.01, 0.005, -0.02, 0.35],
];

fn matrix(entries: &[[f64; 4]; 4]) -> Mat {
    Mat::from_fn(4, 4, |i, j| entries[i][j])
}

fn problem(dimension: Option<u64>) -> Problem {
    let spec = Committee::soft(4, 4, "erf(z/sqrt2)");
    let rule = spec.rule().expect("a committee");
    let spectrum = Spectrum::isotropic();
    let blocks = (&matrix(&Q0), &matrix(&R0), &Mat::identity(4));
    let start = Overlaps::spread(rule.shape(), &spectrum, blocks, vec![]).expect("overlaps");
    Problem {
        rule,
        about: spec.about(),
        spectrum,
        dimension,
        training: Training::online(0.5),
        start: Arc::new(Given(start)),
        clock: Clock::Alpha,
    }
}

/// W1: the equations, saved at alpha = 5, 10, …, 1000, with rtol 1e-8 and atol 1e-12. The risk is computed from the saved
/// overlaps and is not timed.
pub(crate) fn ode(name: &str, method: Method) {
    let problem = problem(None);
    let options =
        Options { method, relative: 1e-8, absolute: 1e-12, saving: Saving::Dense, ..Options::default() };
    let engine = OrderParameterOde { options, needed: Needed::DriftAndNoise, numerical: Numerical::Precise };
    let names = ["R[*,*]", "Q[*,*]"];
    let observables: Vec<Arc<dyn Observable>> =
        names.iter().flat_map(|n| observable::parse(n, &problem).expect("observables")).collect();
    let record = Record::new((1..=200).map(|i| 5.0 * f64::from(i)).collect(), observables);
    let (times, run) = best_of_3(|| engine.run(&problem, &record, &NoMonitor).expect("a solution"));
    let loss = |row: &Vec<f64>| {
        let q = Mat::from_fn(4, 4, |i, j| row[16 + 4 * i + j]);
        let r = Mat::from_fn(4, 4, |i, j| row[4 * i + j]);
        let gram = Mat::from_fn(8, 8, |i, j| match (i < 4, j < 4) {
            (true, true) => q[(i, j)],
            (true, false) => r[(i, j - 4)],
            (false, true) => r[(j, i - 4)],
            (false, false) => f64::from(i == j),
        });
        let state = Overlaps::from_engine(problem.rule.shape(), vec![gram], vec![]);
        Risk.measure(&Snapshot::new(&state, &problem))
    };
    let errors: Vec<f64> = run.rows(0).iter().map(loss).collect();
    let (sum, at50, at250) = (errors.iter().sum::<f64>(), errors[9], errors[49]);
    let right = |got: f64, want: f64| (got / want - 1.0).abs() < 1e-5;
    let ok = right(sum, 2.279404642528) && right(at50, 0.057046478565) && right(at250, 0.007482501788);
    let work =
        json!({"rtol": 1e-8, "atol": 1e-12, "saved": 200, "threads": 1, "statistics": run.statistics[0]});
    report(
        "W1",
        &format!("didact ode ({name})"),
        times,
        &work,
        json!({"sum": sum, "eps_50": at50, "eps_250": at250}),
        ok,
    );
}

/// Returns student rows W = R0 B + L E and teacher rows B in d dimensions with exactly the initial overlaps of W1, where L Lᵀ =
/// Q0 − R0 R0ᵀ and the rows of B and E are orthonormal.
fn dense_weights(d: usize) -> Mat {
    let mut basis = Mat::from_fn(8, d, {
        let normals = portable::normals(2, 8 * d);
        move |i, j| normals[i * d + j]
    });
    for i in 0..8 {
        for _ in 0..2 {
            for j in 0..i {
                let other = basis.row(j).to_vec();
                let along = dot(basis.row(i), &other);
                basis.row_mut(i).iter_mut().zip(&other).for_each(|(a, b)| *a -= along * b);
            }
        }
        let length = dot(basis.row(i), basis.row(i)).sqrt();
        basis.row_mut(i).iter_mut().for_each(|a| *a /= length);
    }
    let r = matrix(&R0);
    let mut residual = matrix(&Q0);
    residual.add_scaled(-1.0, &r.gram());
    let lower = cholesky_psd(&residual).expect("a residual Gram");
    let mix = Mat::from_fn(8, 8, |i, j| match (i < 4, j < 4) {
        (true, true) => r[(i, j)],
        (true, false) => lower[(i, j - 4)],
        (false, true) => f64::from(i - 4 == j),
        (false, false) => 0.0,
    });
    mix.times(&basis)
}

/// Steps of W2.
const STEPS: usize = 100_000;
/// Dimension of W2.
const DIMENSION: usize = 1000;

/// Runs 100 000 steps and returns the risk at 101 equidistant times.
fn curve(problem: &Problem, mut chain: impl Chain) -> Vec<f64> {
    let mut records = Vec::with_capacity(101);
    for step in 0..=STEPS {
        if step % 1000 == 0 {
            records.push(chain.overlaps());
        }
        if step < STEPS {
            chain.step();
        }
    }
    records.iter().map(|o| Risk.measure(&Snapshot::new(o, problem))).collect()
}

fn report_curve(peer: &str, times: Times, work: &serde_json::Value, errors: &[f64]) {
    let mean = |from: usize, to: usize| errors[from..=to].iter().sum::<f64>() / (to - from + 1) as f64;
    let (plateau, whole, last) = (mean(20, 50), mean(1, 100), errors[100]);
    let ok = (plateau - 0.05720).abs() < 0.0019
        && (whole - 0.06194).abs() < 0.0016
        && (last - 0.0556).abs() < 0.0070;
    let result = json!({"mean_20_50": plateau, "mean_1_100": whole, "eps_100": last,
                        "us_per_step": times.wall / STEPS as f64 * 1e6});
    report("W2", peer, times, work, result, ok);
}

/// W2 with weights in d = 1000 dimensions and batch 1. Drawing the inputs is timed.
pub(crate) fn direct() {
    let problem = problem(Some(DIMENSION as u64));
    let weights = dense_weights(DIMENSION);
    let address = ReplicaAddress { seed: 1, replica: 0, stage: 0 };
    let (times, errors) = best_of_3(|| {
        let chain = DirectChain::from_weights(&problem, weights.clone(), vec![], address).expect("a chain");
        curve(&problem, chain)
    });
    let work = json!({"N": DIMENSION, "steps": STEPS, "threads": 1, "precision": "f64"});
    report_curve("didact direct", times, &work, &errors);
}

/// W2 with overlaps alone, which have the same law at a different cost.
pub(crate) fn reduced() {
    let problem = problem(Some(DIMENSION as u64));
    let Ok(start) = problem.start.draw(&problem.setting(1, 0)) else { return };
    let (times, errors) = best_of_3(|| {
        let chain = ReducedChain::new(&problem, &start, ReplicaAddress { seed: 1, replica: 0, stage: 0 })
            .expect("a chain");
        curve(&problem, chain)
    });
    let work = json!({"N": DIMENSION, "steps": STEPS, "threads": 1, "precision": "f64", "note": "same law, other work"});
    report_curve("didact reduced", times, &work, &errors);
}
