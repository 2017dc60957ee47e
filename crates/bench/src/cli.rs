//! Times of commands of the program `didact`, including process start.

use crate::harness::{Times, best_of, report};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Number of timed calls of a command.
const CALLS: usize = 30;

/// Limit of the time of `didact check`, in seconds.
const CHECK_LIMIT: f64 = 0.05;

/// Times `didact check`, and `didact compute` of a closed form, with the program in the folder of this one.
pub(crate) fn commands() {
    let candidate = std::env::current_exe().ok().and_then(|p| Some(p.parent()?.join("didact")));
    let Some(program) = candidate.filter(|p| p.exists()) else {
        println!(
            "{}",
            json!({"workload": "cli", "skipped": "build the program first: cargo build --release"})
        );
        return;
    };
    let cases: [(&str, &[&str], f64); 2] = [
        ("didact check", &["check", "papers/committee/extra-plateau.toml"], CHECK_LIMIT),
        ("didact compute", &["compute", "committee/plateau", "M=2"], 0.02),
    ];
    for (name, arguments, most) in cases {
        let (times, mean, worked) = timed(&program, arguments, CALLS);
        let result = json!({"mean_ms": mean * 1e3, "limit_ms": most * 1e3});
        report("cli", name, times, &json!({"calls": CALLS}), result, worked && mean < most);
    }
    every_check(&program);
}

/// Times `didact check` of every description under `papers/` and `examples/` and reports the one with the largest mean time.
fn every_check(program: &Path) {
    const CALLS_PER_FILE: usize = 5;
    let mut files = descriptions(Path::new("papers"));
    files.extend(descriptions(Path::new("examples")));
    files.sort();
    let (mut slowest, mut failed) = (None::<(String, Times, f64)>, Vec::new());
    let mut means = Map::new();
    for file in &files {
        let name = file.display().to_string();
        let (times, mean, worked) = timed(program, &["check", &name], CALLS_PER_FILE);
        if !worked {
            failed.push(name.clone());
        }
        means.insert(name.clone(), Value::from((mean * 1e5).round() / 1e2));
        if slowest.as_ref().is_none_or(|(_, _, most)| mean > *most) {
            slowest = Some((name, times, mean));
        }
    }
    let Some((name, times, mean)) = slowest else {
        println!("{}", json!({"workload": "cli", "skipped": "no descriptions here: run it at the root"}));
        return;
    };
    let work = json!({"calls": CALLS_PER_FILE, "files": files.len()});
    let ok = failed.is_empty() && mean < CHECK_LIMIT;
    let result = json!({"slowest": name, "mean_ms": mean * 1e3, "limit_ms": CHECK_LIMIT * 1e3, "failed": failed,
                        "every_mean_ms": means});
    report("cli", "didact check, every description", times, &work, result, ok);
}

/// Returns the times of the fastest call, the mean seconds of all calls, and whether all succeeded.
fn timed(program: &Path, arguments: &[&str], calls: usize) -> (Times, f64, bool) {
    let call = || Command::new(program).args(arguments).output().is_ok_and(|o| o.status.success());
    let (times, worked) = best_of(calls, call);
    let begun = Instant::now();
    let all = (0..calls).all(|_| call());
    (times, begun.elapsed().as_secs_f64() / calls as f64, worked && all)
}

/// The descriptions below a folder; the row of a paper in the registry is none.
fn descriptions(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries
        .flat_map(|path| match path {
            folder if folder.is_dir() => descriptions(&folder),
            row if row.ends_with("paper.toml") => Vec::new(),
            file if file.extension().is_some_and(|e| e == "toml") => vec![file],
            _ => Vec::new(),
        })
        .collect()
}
