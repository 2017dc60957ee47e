//! Timing and printing.

use didact_model::{Engine, NoMonitor, Problem, Record};
use didact_simulate::Reduced;
use serde_json::{Value, json};
use std::io::Write;
use std::time::{Duration, Instant};

/// What a timed call took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// Wall seconds.
    pub(crate) wall: f64,
    /// Seconds of processor time over all threads: prefer it on a shared machine. `None` where the system does not say.
    pub(crate) cpu: Option<f64>,
}

/// Untimed calls go on for so long: compiled peers enter their timed calls with a warm processor and warm tables too.
const WARM_UP: Duration = Duration::from_millis(200);

/// The call with the least wall time of three after untimed calls, and its value.
pub(crate) fn best_of_3<T>(run: impl FnMut() -> T) -> (Times, T) {
    best_of(3, run)
}

/// The call with the least wall time of so many after untimed calls, and its value. Many short calls find a quiet
/// moment on a shared machine.
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

/// One call, timed.
pub(crate) fn timed<T>(run: impl FnOnce() -> T) -> (Times, T) {
    let (start, before) = (Instant::now(), processor_seconds());
    let value = run();
    let wall = start.elapsed().as_secs_f64();
    let cpu = before.zip(processor_seconds()).map(|(before, after)| after - before);
    (Times { wall, cpu }, value)
}

/// Processor time of all threads so far, to the nanosecond. (The accounts under `/proc` move in scheduler ticks of 4 ms.)
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn processor_seconds() -> Option<f64> {
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
    // SAFETY: POSIX function of the C library that std links; `Time` is its `timespec` on 64-bit Linux.
    let status = unsafe { clock_gettime(PROCESS_CPU_TIME, &raw mut time) };
    (status == 0).then_some(time.seconds as f64 + 1e-9 * time.nanoseconds as f64)
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
fn processor_seconds() -> Option<f64> {
    None
}

/// Prints one line in the common format.
pub(crate) fn report(workload: &str, peer: &str, times: Times, work: &Value, mut result: Value, ok: bool) {
    result["ok"] = json!(ok);
    let mut work = work.clone();
    work["cpu_seconds"] = json!(times.cpu);
    let line =
        json!({"workload": workload, "peer": peer, "seconds": times.wall, "work": work, "result": result});
    // A reader that has gone is no error.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Processor time of a step of one replica in the reduced simulation, when so many run.
pub(crate) fn seconds_per_reduced_step(problem: &Problem, replicas: u32, steps: u32) -> f64 {
    let record = Record { replicas, ..Record::new(vec![f64::from(steps)], Vec::new()) };
    let (times, _) = best_of(12, || Reduced.run(problem, &record, &NoMonitor).expect("a run"));
    times.cpu.unwrap_or(times.wall) / f64::from(steps) / f64::from(replicas)
}
