//! Timing and printing.

use serde_json::{Value, json};
use std::time::Instant;

/// What a timed call took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// Wall seconds.
    pub(crate) wall: f64,
    /// Seconds of processor time over all threads: prefer it on a shared machine. `None` where the system does not say.
    pub(crate) cpu: Option<f64>,
}

/// The call with the least wall time of three after one untimed call, and its value.
pub(crate) fn best_of_3<T>(run: impl FnMut() -> T) -> (Times, T) {
    best_of(3, run)
}

/// The call with the least wall time of so many after one untimed call, and its value. Many short calls find a quiet
/// moment on a shared machine.
pub(crate) fn best_of<T>(calls: usize, mut run: impl FnMut() -> T) -> (Times, T) {
    run();
    let mut timed = || {
        let (start, before) = (Instant::now(), processor_seconds());
        let value = run();
        let wall = start.elapsed().as_secs_f64();
        let cpu = before.zip(processor_seconds()).map(|(before, after)| after - before);
        (Times { wall, cpu }, value)
    };
    let mut best = timed();
    for _ in 1..calls {
        let next = timed();
        if next.0.wall < best.0.wall {
            best = next;
        }
    }
    best
}

/// Processor time of all threads so far, from the scheduler's own account (Linux): nanoseconds run come first.
fn processor_seconds() -> Option<f64> {
    let mut nanoseconds = 0.0;
    for task in std::fs::read_dir("/proc/self/task").ok()? {
        let account = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        nanoseconds += account.split(' ').next()?.parse::<f64>().ok()?;
    }
    Some(1e-9 * nanoseconds)
}

/// Prints one line in the common format.
pub(crate) fn report(workload: &str, peer: &str, times: Times, work: &Value, mut result: Value, ok: bool) {
    result["ok"] = json!(ok);
    let mut work = work.clone();
    work["cpu_seconds"] = json!(times.cpu);
    let line =
        json!({"workload": workload, "peer": peer, "seconds": times.wall, "work": work, "result": result});
    println!("{line}");
}
