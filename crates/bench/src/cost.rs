//! Times of parts: a reduced step against dimension and width, Gaussian averages against width, normal variables.

use crate::harness::{best_of, seconds_per_reduced_step};
use didact_families::Family;
use didact_families::committee::Committee;
use didact_math::linalg::Mat;
use didact_math::random::{RngAddress, Stream};
use didact_model::start::Given;
use didact_model::{Averages, Clock, Law, Needed, Overlaps, Problem, Spectrum, Training};
use serde_json::json;
use std::hint::black_box;
use std::sync::Arc;

fn problem(units: usize, dimension: u64) -> Problem {
    let spec = Committee::soft(units, units, "erf(z/sqrt2)");
    let rule = spec.rule().expect("a committee");
    let spectrum = Spectrum::isotropic();
    let small = Mat::from_fn(units, units, |i, j| 0.01 * (1 + (i + 2 * j) % 3) as f64);
    let blocks = (&Mat::identity(units).scaled(0.3), &small, &Mat::identity(units));
    let start = Overlaps::spread(rule.shape(), &spectrum, blocks, vec![]).expect("overlaps");
    Problem {
        rule,
        about: spec.about(),
        spectrum,
        dimension: Some(dimension),
        training: Training::online(0.5),
        start: Arc::new(Given(start)),
        clock: Clock::Steps,
    }
}

/// Prints microseconds per reduced step (erf, batch 1) for several widths: at d = 10³ and d = 10⁹, and per replica when a group
/// of eight replicas is stepped together.
pub(crate) fn reduced_steps() {
    const STEPS: u32 = 100_000;
    for units in [1, 2, 4, 8] {
        let micros = |d, replicas| 1e6 * seconds_per_reduced_step(&problem(units, d), replicas, STEPS);
        let (small, large, group) = (micros(1_000, 1), micros(1_000_000_000, 1), micros(1_000, 8));
        let line = json!({"cost": "reduced step", "K": units, "M": units, "us_at_d_1e3": small,
                          "us_at_d_1e9": large, "ratio": large / small, "us_in_group_of_8": group});
        println!("{line}");
    }
}

/// Prints nanoseconds per evaluation of the averages of a right-hand side, and per normal variable.
pub(crate) fn parts() {
    for units in [2, 4, 8, 16] {
        let problem = problem(units, 1000);
        let rule = &problem.rule;
        let p = rule.shape().rows();
        let covariance = Mat::from_fn(p, p, |i, j| if i == j { 1.0 } else { 0.02 * ((i + j) % 4) as f64 });
        let law = Law { covariance: &covariance, scalars: &[], label_noise: 0.0 };
        let mut out = Averages::new(rule.shape());
        let calls = 8000 / (units * units);
        let (times, ()) = best_of(100, || {
            for _ in 0..calls {
                rule.averages(black_box(&law), Needed::DriftAndNoise, &mut out);
            }
        });
        println!(
            "{}",
            json!({"cost": "erf averages", "K": units, "M": units, "ns": times.wall / calls as f64 * 1e9})
        );
    }
    let mut buffer = vec![0.0; 1000];
    let (times, ()) = best_of(100, || {
        for step in 0..500 {
            Stream::at(RngAddress { seed: 1, replica: 0, step, lane: 0 }).fill_normal(&mut buffer);
        }
        black_box(&buffer);
    });
    println!("{}", json!({"cost": "normal (f64)", "ns": times.wall / 5e5 * 1e9}));
}
