//! Timing and printing.

use serde_json::{Value, json};
use std::time::Instant;

/// Best wall seconds of three calls after one untimed call, and the value of the best.
pub(crate) fn best_of_3<T>(run: impl FnMut() -> T) -> (f64, T) {
    best_of(3, run)
}

/// Best wall seconds of so many calls after one untimed call, and the value of the best. Many short calls find a
/// quiet moment on a shared machine.
pub(crate) fn best_of<T>(calls: usize, mut run: impl FnMut() -> T) -> (f64, T) {
    run();
    let mut timed = || {
        let start = Instant::now();
        let value = run();
        (start.elapsed().as_secs_f64(), value)
    };
    let mut best = timed();
    for _ in 1..calls {
        let next = timed();
        if next.0 < best.0 {
            best = next;
        }
    }
    best
}

/// Prints one line in the common format.
pub(crate) fn report(workload: &str, peer: &str, seconds: f64, work: &Value, mut result: Value, ok: bool) {
    result["ok"] = json!(ok);
    let line =
        json!({"workload": workload, "peer": peer, "seconds": seconds, "work": work, "result": result});
    println!("{line}");
}
