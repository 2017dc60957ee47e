//! The command line: what a user waits for, process start included.

use crate::harness::{best_of, report};
use serde_json::json;
use std::process::Command;
use std::time::Instant;

const CALLS: usize = 30;

/// `didact check` and `didact compute` of a closed form, with the program that stands beside this one.
pub(crate) fn commands() {
    let beside = std::env::current_exe().ok().and_then(|p| Some(p.parent()?.join("didact")));
    let Some(program) = beside.filter(|p| p.exists()) else {
        println!(
            "{}",
            json!({"workload": "cli", "skipped": "build the program first: cargo build --release"})
        );
        return;
    };
    let cases: [(&str, &[&str], f64); 2] = [
        ("didact check", &["check", "papers/committee/plateau.toml"], 0.05),
        ("didact compute", &["compute", "committee/plateau", "M=2"], 0.02),
    ];
    for (name, arguments, most) in cases {
        let call = || Command::new(&program).args(arguments).output().is_ok_and(|o| o.status.success());
        let (times, worked) = best_of(CALLS, call);
        let begun = Instant::now();
        let all = (0..CALLS).all(|_| call());
        let mean = begun.elapsed().as_secs_f64() / CALLS as f64;
        let result = json!({"mean_ms": mean * 1e3, "limit_ms": most * 1e3});
        report("cli", name, times, &json!({"calls": CALLS}), result, worked && all && mean < most);
    }
}
