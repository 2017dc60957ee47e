//! Problems and runs that the tests of the order-parameter equations share.
#![allow(dead_code, unreachable_pub)] // every test file uses its own part

use didact_families::Family;
use didact_families::committee::Committee;
use didact_math::linalg::Mat;
use didact_math::random::{RngAddress, Stream};
use didact_model::start::Given;
use didact_model::{Clock, Engine, NoMonitor, Overlaps, Problem, Record, Spectrum, Training, observable};
use didact_theory::OrderParameterOde;
use std::sync::Arc;

/// A committee in infinite dimension that starts from given Gram matrices, one per eigenspace.
pub fn problem(spec: &Committee, spectrum: Spectrum, training: Training, blocks: Vec<Mat>) -> Problem {
    let rule = spec.rule().unwrap();
    let start = Overlaps::new(rule.shape(), blocks, spec.starting_scalars(), spectrum.len()).unwrap();
    Problem {
        rule,
        about: spec.about(),
        spectrum,
        dimension: None,
        training,
        start: Arc::new(Given(start)),
        clock: Clock::Alpha,
    }
}

/// A random Gram of rows that have length `scale` on average.
pub fn random_gram(rows: usize, scale: f64, seed: u64) -> Mat {
    let mut stream = Stream::at(RngAddress { seed, replica: 0, step: 0, lane: 0 });
    let width = 2 * rows;
    Mat::from_fn(rows, width, |_, _| scale * stream.normal() / (width as f64).sqrt()).gram()
}

/// The state at one time.
pub fn state_at(engine: &OrderParameterOde, problem: &Problem, time: f64) -> Overlaps {
    let record = Record::new(vec![time], Vec::new());
    engine.run_with_end_states(problem, &record, &NoMonitor).unwrap().1.remove(0).overlaps
}

/// Columns over time of the only replica.
pub fn columns(
    engine: &OrderParameterOde,
    problem: &Problem,
    times: &[f64],
    names: &[&str],
) -> Vec<Vec<f64>> {
    let observables = names.iter().flat_map(|n| observable::parse(n, problem).unwrap()).collect();
    let run = engine.run(problem, &Record::new(times.to_vec(), observables), &NoMonitor).unwrap();
    run.columns.into_iter().map(|mut column| column.curves.swap_remove(0)).collect()
}

/// The loss over time.
pub fn losses(engine: &OrderParameterOde, problem: &Problem, times: &[f64]) -> Vec<f64> {
    columns(engine, problem, times, &["loss"]).swap_remove(0)
}

/// Largest difference of two matrices.
pub fn distance(a: &Mat, b: &Mat) -> f64 {
    let mut difference = a.clone();
    difference.add_scaled(-1.0, b);
    difference.max_abs()
}

/// Entries of two lists agree; local errors of 1e-9 add up to less than this over a run.
pub fn assert_close(a: &[f64], b: &[f64], tolerance: f64, what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() <= tolerance * (1.0 + y.abs()), "{what}: {a:?} and {b:?}");
    }
}
