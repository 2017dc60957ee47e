//! What a script learns from the exit code: 0 all done and no claim fails, 1 a claim fails, 2 an error, 3 finished with failed jobs.

use crate::common::{didact, temporary};
use std::path::{Path, PathBuf};
use std::process::Output;

const HEAD: &str = r#"
title = "Exit codes"
model = { family = "committee", students = 1, teachers = 1, activation = "linear" }
data = { dimension = 100 }
training = { learning-rate = 0.5 }
start = { q = [[0.25]], r = [[0.1]] }
record = { times = [0, 1, 2] }
"#;

const MEASURE: &str = r#"
measure = [{ name = "end", kind = "value-at", run = "ode", observable = "loss", time = 2 }]
"#;

/// Runs a description in a folder of its own and gives what was printed; `report` must end with the same code.
fn run(name: &str, text: &str) -> Output {
    let out = temporary(name);
    std::fs::create_dir_all(&out).unwrap();
    let file = out.join("it.toml");
    std::fs::write(&file, text).unwrap();
    let output = didact().arg("run").arg(&file).arg("--out").arg(&out).output().unwrap();
    if let Some(folder) = finished(&out) {
        let report = didact().arg("report").arg(folder).output().unwrap();
        assert_eq!(report.status.code(), output.status.code(), "{name}: run and report differ");
    }
    std::fs::remove_dir_all(out).unwrap();
    output
}

fn finished(out: &Path) -> Option<PathBuf> {
    let mut entries = std::fs::read_dir(out).unwrap().flatten().map(|e| e.path());
    entries.find(|p| p.is_dir() && p.extension().is_none_or(|e| e != "partial"))
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn done_is_0_a_failing_claim_1_and_an_error_2() {
    let claim = |most: f64| {
        format!(
            "{HEAD}{MEASURE}claim = [{{ says = \"small\", measure = \"end\", check = {{ at-most = {most} }} }}]"
        )
    };
    for (name, description, code) in [
        ("plain", HEAD.to_string(), 0),
        ("holds", claim(10.0), 0),
        ("fails", claim(-1.0), 1),
        ("wrong", format!("{HEAD}nonsense = 1"), 2),
    ] {
        let output = run(name, &description);
        assert_eq!(output.status.code(), Some(code), "{name}: {}", text(&output));
    }
}

#[test]
fn a_scan_that_fails_at_every_point_is_3_and_one_that_fails_at_some_is_not() {
    let scan = |values: &str| {
        format!(
            "title = \"Scans\"\n[[scan]]\nname = \"s\"\nquantity = \"quadratic-networks/escape-time\"\n\
             inputs = {{ p = 6, p_star = 3, delta = 0.1 }}\nover = {{ sum_rho2 = {values} }}\n"
        )
    };
    for (name, values, code) in [("all", "[0, -1]", 3), ("some", "[0, 1e-5]", 0), ("none", "[1e-5, 1e-4]", 0)]
    {
        let output = run(&format!("scan-{name}"), &scan(values));
        assert_eq!(output.status.code(), Some(code), "{name}: {}", text(&output));
        assert_eq!(text(&output).contains("failed:"), name != "none", "{name}: {}", text(&output));
    }
}

#[test]
fn a_failed_run_that_no_claim_needs_is_3() {
    // Three rows cannot have these overlaps in eigenspaces of two dimensions: `direct` finds out when it builds weights.
    let description = r#"
        title = "One point fails"
        model = { family = "committee", students = 2, teachers = 1, activation = "erf(z/sqrt2)" }
        data = { dimension = 8 }
        training = { learning-rate = 0.5 }
        start = { q = [[1.0, 0.0], [0.0, 1.0]] }
        record = { times = [0, 1] }
        run = [{ name = "sgd", engine = "direct" }]
        [sweep]
        "data.spectrum" = [{ kind = "isotropic" }, { kind = "power-law", levels = 4, beta = 1.0 }]
    "#;
    let output = run("failed-run", description);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    assert!(text(&output).contains("failed:"), "{}", text(&output));
}

#[test]
fn a_run_whose_replicas_all_diverge_says_so_and_is_3() {
    let description = HEAD
        .replace("learning-rate = 0.5", "learning-rate = 50")
        .replace("times = [0, 1, 2]", "times = [0, 100], replicas = 3")
        + "run = [{ name = \"sgd\", engine = \"reduced\" }]";
    let output = run("diverged", &description);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    assert!(text(&output).contains("3 of 3 replicas of `sgd`: nothing is left of it"), "{}", text(&output));
}

#[test]
fn measures_are_printed_at_the_end() {
    let output = run("measures", &format!("{HEAD}{MEASURE}"));
    assert!(text(&output).contains("measure:           end = "), "{}", text(&output));
    let swept = run(
        "measures-swept",
        &format!("{HEAD}{MEASURE}sweep = {{ \"training.learning-rate\" = [0.1, 0.5] }}"),
    );
    assert!(text(&swept).contains("at 2 points"), "{}", text(&swept));
}
