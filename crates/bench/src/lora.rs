//! W3: mini-batch SGD of an erf neuron with a LoRA adapter, with weights in d dimensions and with overlaps alone; and the time of
//! a reduced step.

use crate::harness::{Times, best_of, best_of_3, report};
use crate::portable;
use didact_families::Family;
use didact_families::lora::LoraSingleIndex;
use didact_math::linalg::{Mat, dot};
use didact_model::constraint::Constraint;
use didact_model::problem::StepScaling;
use didact_model::start::Given;
use didact_model::{Clock, Overlaps, Problem, Spectrum, Training};
use didact_simulate::chain::{Chain, ReplicaAddress};
use didact_simulate::direct::DirectChain;
use didact_simulate::reduced::ReducedChain;
use serde_json::json;
use std::sync::Arc;

const DIMENSION: usize = 1000;
const BATCH: usize = 5000;
const STEPS: usize = 500;

/// Number of steps, then mean and standard deviation over replicas of the amplitude u, and of the alignment m.
const EXPECTED: [(usize, [f64; 4]); 4] = [
    (50, [0.00638, 0.00088, 0.04412, 0.00056]),
    (100, [0.00787, 0.00108, 0.05485, 0.00100]),
    (250, [0.01523, 0.00103, 0.10564, 0.00236]),
    (500, [0.04834, 0.00158, 0.31715, 0.00713]),
];

fn problem(activation: &str, mu: f64, learning_rate: f64) -> (Problem, Overlaps) {
    let spec = LoraSingleIndex::matched(mu, activation);
    let rule = spec.rule().expect("a neuron");
    let small = (DIMENSION as f64).sqrt().recip();
    let overlap = Mat::from_fn(1, 1, |_, _| small);
    let blocks = (&Mat::identity(1), &overlap, &Mat::identity(1));
    let spectrum = Spectrum::isotropic();
    let start = Overlaps::spread(rule.shape(), &spectrum, blocks, vec![small]).expect("overlaps");
    let problem = Problem {
        rule,
        about: spec.about(),
        spectrum,
        dimension: Some(DIMENSION as u64),
        training: Training {
            scaling: StepScaling::Plain,
            batch: BATCH,
            constraint: Constraint::sphere(),
            ..Training::online(learning_rate)
        },
        start: Arc::new(Given(start.clone())),
        clock: Clock::Steps,
    };
    (problem, start)
}

fn unit(seed: u64) -> Vec<f64> {
    let mut v = portable::normals(seed, DIMENSION);
    let length = dot(&v, &v).sqrt();
    v.iter_mut().for_each(|x| *x /= length);
    v
}

/// The initial rows of the workload: w, with overlap 1/√d, and w* (`w_star`).
fn weights() -> Mat {
    let (teacher, mut other) = (unit(3), unit(33));
    let along = dot(&teacher, &other);
    other.iter_mut().zip(&teacher).for_each(|(e, t)| *e -= along * t);
    let length = dot(&other, &other).sqrt();
    let small = (DIMENSION as f64).sqrt().recip();
    let rest = (1.0 - small * small).sqrt() / length;
    Mat::from_fn(
        2,
        DIMENSION,
        |row, j| if row == 0 { small * teacher[j] + rest * other[j] } else { teacher[j] },
    )
}

/// Runs the chain and returns (u, m) at the steps of [`EXPECTED`].
fn curve(mut chain: impl Chain) -> Vec<(f64, f64)> {
    let mut records = Vec::new();
    for step in 1..=STEPS {
        chain.step();
        if EXPECTED.iter().any(|e| e.0 == step) {
            let now = chain.overlaps();
            records.push((now.scalars[0], now.blocks[0][(0, 1)]));
        }
    }
    records
}

fn report_curve(peer: &str, times: Times, note: &str, records: &[(f64, f64)]) {
    let within = |((_, [u, su, m, sm]), got): (&(usize, [f64; 4]), &(f64, f64))| {
        (got.0 - u).abs() < 5.0 * su && (got.1 - m).abs() < 5.0 * sm
    };
    let ok = records.len() == EXPECTED.len() && EXPECTED.iter().zip(records).all(within);
    let work =
        json!({"d": DIMENSION, "B": BATCH, "steps": STEPS, "precision": "f64", "threads": 1, "note": note});
    let (u, m) = records.last().copied().unwrap_or_default();
    let result = json!({"u_500": u, "m_500": m, "ms_per_step": times.wall / STEPS as f64 * 1e3});
    report("W3", peer, times, &work, result, ok);
}

/// W3 with weights in d dimensions. Drawing the inputs is timed.
pub(crate) fn direct() {
    let (problem, start) = problem("erf(z)", 0.5, 0.2);
    let address = ReplicaAddress { seed: 1, replica: 0, stage: 0 };
    let (times, records) = best_of(1, || {
        curve(
            DirectChain::from_weights(&problem, weights(), start.scalars.clone(), address).expect("a chain"),
        )
    });
    report_curve("didact direct", times, "best of 1", &records);
}

/// W3 with overlaps alone.
pub(crate) fn reduced() {
    let (problem, start) = problem("erf(z)", 0.5, 0.2);
    let address = ReplicaAddress { seed: 1, replica: 0, stage: 0 };
    let (times, records) =
        best_of_3(|| curve(ReducedChain::new(&problem, &start, address).expect("a chain")));
    report_curve("didact reduced", times, "same law, other work", &records);
}

/// Prints microseconds per reduced step at batch size B = 5000 for several activations.
pub(crate) fn steps() {
    for (activation, mu, rate) in
        [("erf(z)", 0.5, 0.2), ("He3", 0.4, 0.01 / 18.0), ("relu", 0.5, 0.2), ("sigmoid", 0.5, 0.2)]
    {
        let (problem, start) = problem(activation, mu, rate);
        let mut chain = ReducedChain::new(&problem, &start, ReplicaAddress { seed: 3, replica: 0, stage: 0 })
            .expect("a chain");
        let (times, ()) = best_of(20, || (0..50).for_each(|_| chain.step()));
        let micros = |seconds: f64| seconds / 50.0 * 1e6;
        let line = json!({"cost": "reduced LoRA step", "activation": activation, "B": BATCH,
                          "us": micros(times.wall), "cpu_us": times.cpu.map(micros)});
        println!("{line}");
    }
}
