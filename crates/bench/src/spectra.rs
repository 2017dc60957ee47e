//! Committees on power-law spectra: time of a right-hand side of the order-parameter equations against the number L of
//! eigenvalues and against the width, and time of whole solutions.

use crate::harness::{best_of, best_of_3};
use didact_families::Family;
use didact_families::committee::predictions::symmetric::{SymmetricFlow, SymmetricState};
use didact_families::committee::{Committee, Output};
use didact_math::linalg::Mat;
use didact_math::ode::{Method, Options, Saving};
use didact_model::observable::Risk;
use didact_model::start::{FrozenRows, Given, RandomRows, RowLaw, Start};
use didact_model::{Clock, Engine, Needed, NoMonitor, Overlaps, Problem, Record, Spectrum, Training};
use didact_theory::{Numerical, OrderParameterOde};
use serde_json::json;
use std::sync::Arc;

/// Exponent β (`beta`) of the spectrum.
const BETA: f64 = 0.5;

fn problem(units: usize, levels: usize, start: Option<Arc<dyn Start>>) -> Problem {
    let spec = Committee { output: Output::Scaled, ..Committee::soft(units, units, "erf(z/sqrt2)") };
    let rule = spec.rule().expect("a committee");
    let spectrum = Spectrum::power_law(levels, BETA).expect("a spectrum");
    let start = start.unwrap_or_else(|| {
        let small = Mat::from_fn(units, units, |i, j| 0.001 * (1 + (i + 2 * j) % 3) as f64);
        let blocks = (&Mat::identity(units).scaled(0.01), &small, &Mat::identity(units));
        let overlaps = Overlaps::spread(rule.shape(), &spectrum, blocks, vec![]).expect("overlaps");
        Arc::new(Given(overlaps))
    });
    Problem {
        rule,
        about: spec.about(),
        spectrum,
        dimension: Some(levels as u64),
        training: Training::online(0.01),
        start,
        clock: Clock::Alpha,
    }
}

fn sampled() -> Arc<dyn Start> {
    Arc::new(RandomRows {
        trained: RowLaw::Gaussian { deviation: 1e-6 },
        frozen: FrozenRows::Sampled,
        scalars: vec![],
    })
}

/// Processor seconds of a solution (its start included) and evaluations in it.
fn solve(problem: &Problem, needed: Needed, method: Method, end: f64) -> (f64, f64) {
    let options =
        Options { method, relative: 1e-5, absolute: 1e-8, saving: Saving::Landing, ..Options::default() };
    let engine = OrderParameterOde { options, needed, numerical: Numerical::Precise };
    let record = Record::new(vec![end], vec![Arc::new(Risk)]);
    let (times, run) = best_of(2, || engine.run(problem, &record, &NoMonitor).expect("a solution"));
    (times.cpu.unwrap_or(times.wall), run.statistics[0].evaluations as f64)
}

/// Microseconds per evaluation, from the difference between a long and a short solution, which removes the cost of the initial
/// state.
fn micros(problem: &Problem, needed: Needed) -> f64 {
    let (short, long) =
        (solve(problem, needed, Method::Dopri5, 1.0), solve(problem, needed, Method::Dopri5, 60.0));
    (long.0 - short.0) / (long.1 - short.1) * 1e6
}

/// Prints the time of a right-hand side against L at fixed width, and against the width at fixed L, with and without the
/// quadratic term, for overlaps and for rows.
pub(crate) fn right_hand_sides() {
    let line = |what: &str, units: usize, levels: usize, needed: Needed, start: Option<Arc<dyn Start>>| {
        let problem = problem(units, levels, start);
        let micros = micros(&problem, needed);
        let noise = needed == Needed::DriftAndNoise;
        println!(
            "{}",
            json!({"cost": what, "K": units, "M": units, "L": levels, "noise": noise, "us": micros,
                   "us_per_level": micros / levels as f64})
        );
    };
    for levels in [10, 100, 1000, 10_000] {
        line("rhs overlaps", 2, levels, Needed::DriftAndNoise, None);
    }
    for units in [2, 4, 8, 16] {
        line("rhs overlaps", units, 100, Needed::Drift, None);
        line("rhs overlaps", units, 100, Needed::DriftAndNoise, None);
    }
    for units in [2, 4, 8, 16, 40] {
        line("rhs rows, L = N", units, 512, Needed::Drift, Some(sampled()));
    }
}

/// Prints the time of whole solutions to alpha = 1000 against L. The ratio of the largest to the smallest rate, L^{1+beta}, makes
/// them stiff at large L.
pub(crate) fn solutions() {
    for levels in [10, 100, 1000, 10_000] {
        let problem = problem(2, levels, None);
        for (name, method) in [("explicit", Method::Dop853), ("stabilised", Method::Stabilised)] {
            if name == "explicit" && levels > 1000 {
                continue;
            }
            let (seconds, count) = solve(&problem, Needed::Drift, method, 1000.0);
            println!(
                "{}",
                json!({"cost": "solution to alpha = 1000", "method": name, "K": 2, "L": levels,
                       "seconds": seconds, "evaluations": count})
            );
        }
        let spectrum = Spectrum::power_law(levels, BETA).expect("a spectrum");
        let start = SymmetricState::small(2, &spectrum, 1e-4, 1e-3);
        let (times, _) = best_of_3(|| {
            let mut flow = SymmetricFlow::new(2, &spectrum, 0.01, Needed::Drift);
            flow.solve(&start, &[1000.0], 1e-5, Method::Stabilised).expect("a solution")
        });
        println!(
            "{}",
            json!({"cost": "symmetric solution to alpha = 1000", "K": 2, "L": levels,
                   "seconds": times.cpu.unwrap_or(times.wall)})
        );
    }
}

/// Prints the time of the largest figure, K = M = 40 and L = N = 512, up to alpha = 1000 of its 50000.
pub(crate) fn largest() {
    let problem = problem(40, 512, Some(sampled()));
    let (seconds, count) = solve(&problem, Needed::Drift, Method::Stabilised, 1000.0);
    println!(
        "{}",
        json!({"cost": "K = M = 40, L = N = 512 to alpha = 1000", "seconds": seconds, "evaluations": count,
               "ms_per_evaluation": seconds / count * 1e3})
    );
}
