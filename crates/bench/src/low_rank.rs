//! Rank-one fine-tuning of a frozen base: many frozen rows and one trained row.

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

/// Prints microseconds per reduced step (relu, orthonormal base, batch 1) against the number k of frozen rows: at d = 10³ and
/// d = 10⁹, and per replica when a group of eight replicas is stepped together. The goal is at most 0.3 + 0.015 k.
pub(crate) fn reduced_steps() {
    for units in [8, 16, 32, 64, 128, 256] {
        let spec = LowRank { start: StartLaw::Overlap(0.1), ..LowRank::new("relu", units, 1.0) };
        let micros = |d, replicas| 1e6 * seconds_per_reduced_step(&problem(&spec, d), replicas, STEPS);
        let (small, large, group) = (micros(1_000, 1), micros(1_000_000_000, 1), micros(1_000, 8));
        let goal = 0.3 + 0.015 * units as f64;
        let line = json!({"cost": "frozen rank-one step", "k": units, "us_at_d_1e3": small, "us_at_d_1e9": large,
                          "us_in_group_of_8": group, "goal_us": goal, "ok": small.max(large) <= goal});
        println!("{line}");
    }
}
