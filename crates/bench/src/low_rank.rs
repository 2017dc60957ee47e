//! Frozen rank-one fine-tuning: many frozen rows, one trained one.

use crate::harness::best_of_3;
use didact_model::constraint::{Constraint, Retraction};
use didact_model::families::Family;
use didact_model::families::low_rank::{LowRank, StartLaw};
use didact_model::start::Setting;
use didact_model::{Clock, Problem, Spectrum, Training};
use didact_simulate::chain::{Chain, Seat};
use didact_simulate::reduced::ReducedChain;
use serde_json::json;

const STEPS: usize = 200_000;

fn seconds_per_step(spec: &LowRank, dimension: u64) -> f64 {
    let constraint = Constraint { sphere: Some(Retraction::Tangent), off_own: true, ..Constraint::none() };
    let problem = Problem {
        rule: spec.rule().expect("a rule"),
        spectrum: Spectrum::isotropic(),
        dimension: Some(dimension),
        training: Training { constraint, ..Training::online(1e-3) },
        start: spec.start().expect("a start").expect("this family has one"),
        clock: Clock::Steps,
    };
    let setting = Setting {
        shape: problem.rule.shape(),
        spectrum: &problem.spectrum,
        dimension: problem.dimension,
        seed: 0,
        replica: 0,
    };
    let start = problem.start.draw(&setting).expect("a start");
    let (times, _) = best_of_3(|| {
        let mut chain =
            ReducedChain::new(&problem, &start, Seat { seed: 3, replica: 0, stage: 0 }).expect("a chain");
        for _ in 0..STEPS {
            chain.step();
        }
        chain.overlaps()
    });
    times.cpu.unwrap_or(times.wall) / STEPS as f64
}

/// Microseconds per step (relu, orthonormal base, batch 1) against k, at d = 10³ and 10⁹; the goal is 0.3 + 0.015 k.
pub(crate) fn reduced_steps() {
    for units in [8, 16, 32, 64, 128, 256] {
        let spec = LowRank { start: StartLaw::Overlap(0.1), ..LowRank::new("relu", units, 1.0) };
        let [near, far] = [1_000, 1_000_000_000].map(|d| 1e6 * seconds_per_step(&spec, d));
        let goal = 0.3 + 0.015 * units as f64;
        let line = json!({"cost": "frozen rank-one step", "k": units, "us_at_d_1e3": near, "us_at_d_1e9": far,
                          "goal_us": goal, "ok": near.max(far) <= goal});
        println!("{line}");
    }
}
