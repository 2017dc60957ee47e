//! Committees with units of one's own: what theory costs where averages have no closed form, against erf units of the same size, and
//! how far it is from a run as precise as can be.

use crate::harness::best_of_3;
use didact_families::Family;
use didact_families::committee::Committee;
use didact_math::linalg::Mat;
use didact_model::observable::{self, Observable};
use didact_model::start::Given;
use didact_model::{Clock, Engine, NoMonitor, Overlaps, Problem, Record, Spectrum, Training, Trajectory};
use didact_theory::{Numerical, OrderParameterOde};
use serde_json::json;
use std::sync::Arc;

const UNITS: [&str; 14] = [
    "erf(z/sqrt2)",
    "tanh",
    "tanh(1.2*x) + 0.05*x^2",
    "log(1+exp(x))",
    "0.7*sin(1.5*x) + 0.4*x",
    "tanh(x)+0.3*exp(-8*(x-1)^2)-0.3*exp(-8*(x+1)^2)",
    "gelu",
    "max(x,0)",
    "max(x,0.1*x)",
    "max(x-0.3,0)",
    "abs(x+0.2)",
    "0.2+max(x-0.2,0.1*(x-0.2))",
    "sampled[-8,!0.2,8;-0.21,0.41;4.1,3.9](x)",
    "min(max(x,-1),1)",
];

/// Students, teachers, eigenspaces.
const SIZES: [(usize, usize, usize); 4] = [(1, 1, 1), (2, 2, 1), (3, 2, 3), (4, 4, 1)];
const END: f64 = 100.0;

/// K students and M teachers in a few eigenspaces, all overlaps given.
fn problem((students, teachers, eigenspaces): (usize, usize, usize), unit: &str) -> Problem {
    let spec = Committee::soft(students, teachers, unit);
    let rule = spec.rule().expect("a committee");
    let spectrum = Spectrum::power_law(eigenspaces, 0.5).expect("a spectrum");
    let own = Mat::from_fn(students, students, |i, j| {
        if i == j { 0.2 + 0.05 * i as f64 } else { 0.02 - 0.013 * ((i + j) % 3) as f64 }
    });
    let cross = Mat::from_fn(students, teachers, |i, j| {
        0.03 * f64::from(u8::from(i == j)) + 0.01 * ((i + 2 * j) % 4) as f64 - 0.012
    });
    let blocks = (&own, &cross, &Mat::identity(teachers));
    let start = Overlaps::spread(rule.shape(), &spectrum, blocks, vec![]).expect("overlaps");
    Problem {
        rule,
        about: spec.about(),
        spectrum,
        dimension: None,
        training: Training::online(0.3),
        start: Arc::new(Given(start)),
        clock: Clock::Alpha,
    }
}

fn record(problem: &Problem, end: f64) -> Record {
    let observables: Vec<Arc<dyn Observable>> = ["R[*,*]", "Q[*,*]"]
        .iter()
        .flat_map(|name| observable::parse(name, problem).expect("observables"))
        .collect();
    Record::new((1..=40).map(|k| f64::from(k) * end / 40.0).collect(), observables)
}

fn farthest(a: &Trajectory, b: &Trajectory) -> f64 {
    let (a, b) = (a.rows(0), b.rows(0));
    a.iter().zip(&b).flat_map(|(a, b)| a.iter().zip(b)).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
}

/// The run that errors are measured against: as precise as can be where that takes seconds, and elsewhere with averages and steps that are
/// ten times finer.
fn reference(fields: usize) -> OrderParameterOde {
    let numerical = if fields <= 4 {
        Numerical::Precise
    } else {
        Numerical::Budget { error: 0.1 * Numerical::USUAL_ERROR, any_method: true }
    };
    OrderParameterOde { numerical, ..OrderParameterOde::default() }
}

/// One line per unit and size: seconds, ratio to erf, and the largest difference of an overlap to the reference where `errors`.
pub(crate) fn lines(errors: bool) {
    for size in SIZES {
        let (students, teachers, eigenspaces) = size;
        let mut erf = 0.0;
        for unit in UNITS {
            let problem = problem(size, unit);
            let record = record(&problem, END);
            let engine = OrderParameterOde::default();
            let (times, run) = best_of_3(|| engine.run(&problem, &record, &NoMonitor).expect("a solution"));
            let seconds = times.cpu.unwrap_or(times.wall);
            if unit == UNITS[0] {
                erf = seconds;
            }
            let off = errors.then(|| {
                let slow = reference(students + teachers).run(&problem, &record, &NoMonitor);
                farthest(&slow.expect("a solution"), &run)
            });
            println!(
                "{}",
                json!({"own unit": unit, "K": students, "M": teachers, "eigenspaces": eigenspaces, "seconds": seconds,
                       "ratio to erf": seconds / erf, "off": off, "statistics": run.statistics[0]})
            );
        }
    }
}
