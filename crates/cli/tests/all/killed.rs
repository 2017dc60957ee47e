//! A run that is killed at any moment is never taken for finished, and running it again gives the same bytes.

use crate::common::{didact, temporary};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const DESCRIPTION: &str = r#"
title = "Killed and resumed"
model = { family = "committee", students = 2, teachers = 2, activation = "erf(z/sqrt2)" }
data = { dimension = 4000 }
training = { learning-rate = 0.5 }
start = { students = { law = "gaussian", deviation = 0.5 } }
record = { times = { from = 0, to = 20, points = 11 }, replicas = 4 }
sweep = { "training.learning-rate" = [0.2, 0.4, 0.6, 0.8] }
run = [{ name = "theory", engine = "ode" }, { name = "sgd", engine = "reduced" }]

[[figure]]
name = "curves"
panel = [{ x = { label = "time" }, y = { label = "loss", scale = "log" }, series = [{ run = "sgd" }] }]
"#;

/// All files below a folder by name, but for the provenance: it says how long the run took.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(here) = open.pop() {
        for entry in std::fs::read_dir(here).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if !path.ends_with("provenance.json") {
                all.insert(
                    path.strip_prefix(folder).unwrap().display().to_string(),
                    std::fs::read(&path).unwrap(),
                );
            }
        }
    }
    all
}

fn finished_folders(out: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(out).into_iter().flatten().flatten().map(|e| e.path());
    entries.filter(|p| p.extension().is_none_or(|e| e != "partial")).collect()
}

#[test]
fn a_killed_run_is_resumed_to_the_same_bytes() {
    let (undisturbed, disturbed) = (temporary("undisturbed"), temporary("disturbed"));
    std::fs::create_dir_all(&disturbed).unwrap();
    let file = disturbed.with_extension("toml");
    std::fs::write(&file, DESCRIPTION).unwrap();
    let run = |out: &Path| {
        let mut command = didact();
        command.arg("run").arg(&file).arg("--out").arg(out);
        command
    };
    let begun = std::time::Instant::now();
    assert!(run(&undisturbed).output().unwrap().status.success());
    let whole = begun.elapsed();
    // Kill at moments spread over the run: before, between and during the writing of files.
    for k in 0..12u32 {
        let mut child = run(&disturbed).stdout(std::process::Stdio::null()).spawn().unwrap();
        std::thread::sleep(whole.mul_f64(f64::from(k) / 12.0).max(Duration::from_millis(5)));
        let _ = child.kill();
        child.wait().unwrap();
        for folder in finished_folders(&disturbed) {
            let report = didact().arg("report").arg(&folder).output().unwrap();
            assert!(report.status.success(), "a folder that looks finished is not: {}", folder.display());
        }
    }
    for entry in std::fs::read_dir(&disturbed).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "partial") {
            assert_eq!(didact().arg("report").arg(&path).output().unwrap().status.code(), Some(2));
        }
    }
    assert!(run(&disturbed).output().unwrap().status.success());
    let (a, b) = (finished_folders(&undisturbed), finished_folders(&disturbed));
    assert_eq!((a.len(), b.len()), (1, 1));
    let (a, b) = (contents(&a[0]), contents(&b[0]));
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    for (name, bytes) in &a {
        assert!(bytes == &b[name], "{name} differs");
    }
    std::fs::remove_dir_all(undisturbed).unwrap();
    std::fs::remove_dir_all(disturbed).unwrap();
    std::fs::remove_file(file).unwrap();
}

/// A run that takes long, started; its folder and its description.
#[cfg(unix)]
fn long_run(name: &str) -> (std::process::Child, std::path::PathBuf, std::path::PathBuf) {
    let out = temporary(name);
    let file = out.with_extension("toml");
    std::fs::write(&file, DESCRIPTION.replace("dimension = 4000", "dimension = 400000")).unwrap();
    let mut command = didact();
    command.arg("run").arg(&file).arg("--out").arg(&out).stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    // The folder is made after everything that listens to signals.
    let begun = std::time::Instant::now();
    while !out.exists() && begun.elapsed() < Duration::from_mins(1) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    (child, out, file)
}

#[cfg(unix)]
fn signal(child: &std::process::Child, name: &str) {
    std::process::Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
}

/// Ctrl-C, a batch system that ends a job, a terminal that is closed.
#[test]
#[cfg(unix)]
fn an_interrupted_run_says_how_to_go_on_and_goes_on() {
    for name in ["-INT", "-TERM", "-HUP"] {
        let (child, out, file) = long_run(&format!("interrupted{name}"));
        signal(&child, name);
        let ended = child.wait_with_output().unwrap();
        let message = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(2), "{name}: {message}");
        assert!(
            message.contains("interrupted") && message.contains("goes on from there"),
            "{name}: {message}"
        );
        assert!(finished_folders(&out).is_empty(), "{name}");
        // The theory of all points was done in that time; it is kept.
        let partial = std::fs::read_dir(&out).unwrap().next().unwrap().unwrap().path();
        assert!(partial.join("description.toml").exists(), "{name}");
        std::fs::remove_dir_all(out).unwrap();
        std::fs::remove_file(file).unwrap();
    }
}

/// Both signals wait while the process is stopped, so that it cannot end in good order between them. Which of them comes second
/// is up to the system; that one ends it. Two threads may handle the two at the same instant, each as the first one: then the
/// process ends in good order, so a few tries are made.
#[test]
#[cfg(unix)]
fn a_second_signal_ends_at_once_with_the_code_of_shells() {
    let ended_at_once = |number: u32| {
        let (child, out, file) = long_run(&format!("twice-{number}"));
        for name in ["-STOP", "-TERM", "-INT", "-CONT"] {
            signal(&child, name);
        }
        let ended = child.wait_with_output().unwrap();
        let message = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(matches!(ended.status.code(), Some(2 | 130 | 143)), "{:?}: {message}", ended.status);
        std::fs::remove_dir_all(out).unwrap();
        std::fs::remove_file(file).unwrap();
        ended.status.code() != Some(2)
    };
    assert!((0..10).any(ended_at_once), "the second signal never ended the process");
}

/// One Jacobian of 40 units against 40 takes many seconds, in which nobody looks for signals.
const DEAF: &str = r#"
title = "A long step"
model = { family = "committee", students = 40, teachers = 40, activation = "erf(z/sqrt2)" }
data = { dimension = 1000 }
training = { learning-rate = 0.1 }
record = { times = [0, 1000], observe = ["loss"] }
run = [{ name = "t", engine = "ode", method = "stiff" }]
"#;

/// A scan of which one point takes long.
const DEAF_SCAN: &str = r#"
title = "A long point"
scan = [{ name = "s", quantity = "committee/linear-error", inputs = { beta = 1, eta = 0.1, alpha = 1 }, over = { L = [9998, 9999, 10000] } }]
"#;

#[test]
#[cfg(unix)]
fn a_signal_ends_work_that_does_not_look_for_it() {
    for (name, text) in [("deaf-step", DEAF), ("deaf-scan", DEAF_SCAN)] {
        let out = temporary(name);
        let file = out.with_extension("toml");
        std::fs::write(&file, text).unwrap();
        let mut command = didact();
        command.arg("run").arg(&file).arg("--out").arg(&out).stderr(std::process::Stdio::piped());
        let child = command.spawn().unwrap();
        let begun = std::time::Instant::now();
        while !out.exists() && begun.elapsed() < Duration::from_mins(1) {
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(100));
        signal(&child, "-TERM");
        let ended = child.wait_with_output().unwrap();
        let message = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(2), "{name}: {message}");
        assert!(
            message.contains("interrupted") && message.contains("goes on from there"),
            "{name}: {message}"
        );
        assert!(finished_folders(&out).is_empty(), "{name}: it ended before the signal");
        std::fs::remove_dir_all(out).unwrap();
        std::fs::remove_file(file).unwrap();
    }
}
