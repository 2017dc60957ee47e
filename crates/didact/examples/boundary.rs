//! The work inside of the Python calls that `python/tools/bench.py` times: one quantity, and the README's committee from its
//! description to its table in memory. Prints the best times in microseconds.

use didact::experiment::{Experiment, Size, Source, quantities};
use didact::model::NoMonitor;
use serde_json::json;
use std::time::Instant;

/// The shortest time of a call in microseconds.
fn best(times: usize, mut call: impl FnMut()) -> f64 {
    let one = |_| {
        let begun = Instant::now();
        call();
        1e6 * begun.elapsed().as_secs_f64()
    };
    (0..times).map(one).fold(f64::INFINITY, f64::min)
}

#[expect(clippy::print_stdout, reason = "a program for a terminal")]
fn main() {
    let inputs = json!({"M": 2});
    let inputs = inputs.as_object().expect("an object");
    let compute = best(2000, || {
        quantities::compute("committee/plateau", inputs).expect("a known quantity");
    });
    let description = json!({
        "title": "solve",
        "model": {"family": "committee", "students": 2, "teachers": 2, "activation": "erf(z/sqrt2)"},
        "data": {"dimension": 1000},
        "training": {"learning-rate": 1.0},
        "start": {"q": [[0.25, 0.0], [0.0, 0.25]], "r": [[0.1, 0.0], [0.0, 0.1]]},
        "record": {"times": (0..41).map(|i| 2.0 * f64::from(i)).collect::<Vec<_>>(), "observe": ["loss", "R[0,0]"]},
    });
    let prepare =
        || Experiment::new(Source::of_value(&description), Size::Normal, None).expect("a right description");
    let prepared = best(300, || drop(prepare()));
    let experiment = prepare();
    let run = best(300, || drop(experiment.runs[0].schedule.run(&NoMonitor).expect("a table")));
    println!(
        "compute {compute:.1} us, solve {:.1} us ({prepared:.1} to read and check, {run:.1} to run)",
        prepared + run
    );
}
