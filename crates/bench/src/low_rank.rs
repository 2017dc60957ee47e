//! Frozen rank-one fine-tuning: many frozen rows, one trained one.

use crate::harness::seconds_per_reduced_step;
use didact_families::Family;
use didact_families::low_rank::{LowRank, StartLaw};
use didact_model::constraint::{Constraint, Retraction};
use didact_model::{Clock, Problem, Spectrum, Training};
use serde_json::json;

const STEPS: u32 = 50_000;

fn problem(spec: &LowRank, dimension: u64) -> Problem {
    let constraint = Constraint { sphere: Some(Retraction::Tangent), off_own: true, ..Constraint::none() };
    Problem {
        rule: spec.rule().expect("a rule"),
        about: spec.about(),
        spectrum: Spectrum::isotropic(),
        dimension: Some(dimension),
        training: Training { constraint, ..Training::online(1e-3) },
        start: spec.start().expect("a start").expect("this family has one"),
        clock: Clock::Steps,
    }
}

/// Microseconds per step (relu, orthonormal base, batch 1) against k, at d = 10³ and 10⁹; the goal is 0.3 + 0.015 k.
pub(crate) fn reduced_steps() {
    for units in [8, 16, 32, 64, 128, 256] {
        let spec = LowRank { start: StartLaw::Overlap(0.1), ..LowRank::new("relu", units, 1.0) };
        let micros = |d, replicas| 1e6 * seconds_per_reduced_step(&problem(&spec, d), replicas, STEPS);
        let (near, far, abreast) = (micros(1_000, 1), micros(1_000_000_000, 1), micros(1_000, 8));
        let goal = 0.3 + 0.015 * units as f64;
        let line = json!({"cost": "frozen rank-one step", "k": units, "us_at_d_1e3": near, "us_at_d_1e9": far,
                          "us_in_company_of_8": abreast, "goal_us": goal, "ok": near.max(far) <= goal});
        println!("{line}");
    }
}
