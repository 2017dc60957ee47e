//! Timing of calls and printing of results.

use didact_model::{Engine, NoMonitor, Problem, Record};
use didact_simulate::Reduced;
use serde_json::{Value, json};
use std::io::Write;
use std::time::{Duration, Instant};

/// Wall time and processor time of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// Wall seconds.
    pub(crate) wall: f64,
    /// Seconds of processor time over all threads, which vary less on a shared machine; `None` where the system does not report
    /// them.
    pub(crate) cpu: Option<f64>,
}

/// Duration of the untimed calls before the timed ones, so that caches, tables and the processor's clock rate have settled.
const WARM_UP: Duration = Duration::from_millis(200);

/// Runs untimed calls, then three timed ones. Returns the times and the value of the one with the least wall time.
pub(crate) fn best_of_3<T>(run: impl FnMut() -> T) -> (Times, T) {
    best_of(3, run)
}

/// Runs untimed calls, then `calls` timed ones. Returns the times and the value of the one with the least wall time. On a shared
/// machine the least time of many short calls is the least disturbed.
pub(crate) fn best_of<T>(calls: usize, mut run: impl FnMut() -> T) -> (Times, T) {
    let begin = Instant::now();
    run();
    while begin.elapsed() < WARM_UP {
        run();
    }
    let mut best = timed(&mut run);
    for _ in 1..calls {
        let next = timed(&mut run);
        if next.0.wall < best.0.wall {
            best = next;
        }
    }
    best
}

/// Runs one timed call.
pub(crate) fn timed<T>(run: impl FnOnce() -> T) -> (Times, T) {
    let (start, before) = (Instant::now(), processor_seconds());
    let value = run();
    let wall = start.elapsed().as_secs_f64();
    let cpu = before.zip(processor_seconds()).map(|(before, after)| after - before);
    (Times { wall, cpu }, value)
}

/// Processor time of all threads so far, with nanosecond resolution. (The resolution of the numbers under `/proc` is a
/// scheduler tick, 4 ms.)
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn processor_seconds() -> Option<f64> {
    /// Value of `CLOCK_PROCESS_CPUTIME_ID` in the headers of Linux.
    const PROCESS_CPU_TIME: i32 = 2;
    #[repr(C)]
    struct Time {
        seconds: i64,
        nanoseconds: i64,
    }
    unsafe extern "C" {
        fn clock_gettime(clock: i32, time: *mut Time) -> i32;
    }
    let mut time = Time { seconds: 0, nanoseconds: 0 };
    // SAFETY: a POSIX function of the C library, which std links; `Time` has the layout of its `timespec` on 64-bit Linux.
    let status = unsafe { clock_gettime(PROCESS_CPU_TIME, &raw mut time) };
    (status == 0).then_some(time.seconds as f64 + 1e-9 * time.nanoseconds as f64)
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
fn processor_seconds() -> Option<f64> {
    None
}

/// Prints one JSON line in the format that the crate page describes.
pub(crate) fn report(workload: &str, peer: &str, times: Times, work: &Value, mut result: Value, ok: bool) {
    result["ok"] = json!(ok);
    let mut work = work.clone();
    work["cpu_seconds"] = json!(times.cpu);
    let line =
        json!({"workload": workload, "peer": peer, "seconds": times.wall, "work": work, "result": result});
    // A closed pipe is not an error.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Processor seconds per step and replica of the reduced simulation, when `replicas` of them run.
pub(crate) fn seconds_per_reduced_step(problem: &Problem, replicas: u32, steps: u32) -> f64 {
    let record = Record { replicas, ..Record::new(vec![f64::from(steps)], Vec::new()) };
    let (times, _) = best_of(12, || Reduced.run(problem, &record, &NoMonitor).expect("a run"));
    times.cpu.unwrap_or(times.wall) / f64::from(steps) / f64::from(replicas)
}
