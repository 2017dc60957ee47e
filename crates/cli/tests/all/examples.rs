//! Every example runs, every paper is accepted, and generated files are fresh.

use crate::common::{didact, root, temporary};

#[test]
fn every_example_runs_and_its_claims_hold() {
    let out = temporary("examples");
    let mut count = 0;
    for file in std::fs::read_dir(root().join("examples")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|e| e != "toml") {
            continue;
        }
        let run = didact().arg("run").arg(&path).arg("--quick").arg("--out").arg(&out).output().unwrap();
        assert!(run.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&run.stderr));
        assert!(String::from_utf8_lossy(&run.stdout).contains("report.html"));
        count += 1;
    }
    assert!(count >= 5, "{count} examples");
    std::fs::remove_dir_all(out).unwrap();
}

#[test]
fn every_paper_is_accepted_in_every_size() {
    for paper in std::fs::read_dir(root().join("papers")).unwrap() {
        for file in std::fs::read_dir(paper.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            if path.ends_with("paper.toml") {
                continue;
            }
            for size in [None, Some("--quick"), Some("--full")] {
                let run = didact().arg("check").arg(&path).args(size).output().unwrap();
                assert!(run.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&run.stderr));
            }
        }
    }
}

/// A reader must be able to tell the sentences of a paper from ours.
#[test]
fn every_claim_of_a_paper_names_its_source() {
    let mut claims = 0;
    for paper in std::fs::read_dir(root().join("papers")).unwrap() {
        for file in std::fs::read_dir(paper.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            for claim in text.split("\n[[claim]]\n").skip(1) {
                let claim = claim.split("\n[").next().unwrap();
                assert!(claim.contains("\nsource = \""), "{}: {claim}", path.display());
                claims += 1;
            }
        }
    }
    assert!(claims > 300, "{claims} claims");
}

#[test]
fn the_option_reference_is_fresh() {
    let made = didact().args(["schema", "--markdown"]).output().unwrap().stdout;
    let kept = std::fs::read(root().join("docs/reference.md")).unwrap_or_default();
    let hint = "run `cargo run -- schema --markdown > docs/reference.md`";
    assert!(made == kept, "docs/reference.md is stale: {hint}");
}

#[test]
fn an_unchanged_run_is_found_and_a_changed_seed_is_not() {
    let out = temporary("reuse");
    let example = root().join("examples/sweep.toml");
    let run = |extra: &[&str]| {
        let run = didact()
            .arg("run")
            .arg(&example)
            .args(extra)
            .arg("--json")
            .arg("--out")
            .arg(&out)
            .output()
            .unwrap();
        serde_json::from_slice::<serde_json::Value>(&run.stdout).unwrap()
    };
    let first = run(&[]);
    assert_eq!(first["reused"], false);
    let again = run(&["--threads", "1"]);
    assert_eq!((&again["reused"], &again["folder"]), (&serde_json::json!(true), &first["folder"]));
    assert_ne!(run(&["--seed", "9"])["folder"], first["folder"]);
    std::fs::remove_dir_all(out).unwrap();
}

#[test]
fn threads_can_be_chosen_for_runs_that_are_planned_by_them() {
    let out = temporary("threads");
    std::fs::create_dir_all(&out).unwrap();
    let text = r#"
        title = "Few threads"
        model = { family = "multi-index", activation = "gelu", link = "z^2" }
        data = { dimension = 10, samples-per-dimension = 4 }
        training = { learning-rate = 0.1, scaling = "plain" }
        start = { students = { law = "sphere", radius = 1.0 } }
        record = { clock = "steps", times = [0, 2], observe = ["train_loss"], replicas = 2 }
        run = [{ name = "gd", engine = "full-batch" }]
    "#;
    let file = out.join("threads.toml");
    std::fs::write(&file, text).unwrap();
    let run = didact().arg("run").arg(&file).args(["--threads", "1", "--out"]).arg(&out).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    std::fs::remove_dir_all(out).unwrap();
}

#[test]
fn compute_prints_json_and_lists_name_everything() {
    let run = didact().args(["compute", "committee/plateau", "M=2", "output=scaled"]).output().unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert!((answer["loss"].as_f64().unwrap() - 0.0058054).abs() < 5e-8);
    let list = String::from_utf8(didact().arg("list").output().unwrap().stdout).unwrap();
    for name in [
        "committee",
        "ode",
        "reduced",
        "direct",
        "relu",
        "alignment",
        "committee/escape",
        "committee/plateau",
    ] {
        assert!(list.contains(name), "{name}");
    }
    let cited = didact().arg("cite").arg(root().join("examples/sweep.toml")).output().unwrap();
    assert!(String::from_utf8_lossy(&cited.stdout).contains("Saad"));
}

#[test]
fn a_failed_point_of_a_sweep_is_recorded_and_not_fatal() {
    let out = temporary("failed-point");
    std::fs::create_dir_all(&out).unwrap();
    // Three rows cannot have these overlaps in eigenspaces of two dimensions: `direct` finds out when it builds weights.
    let text = r#"
        title = "One point fails"
        model = { family = "committee", students = 2, teachers = 1, activation = "erf(z/sqrt2)" }
        data = { dimension = 8, spectrum = { kind = "explicit", eigenvalues = [1.0], weights = [1.0] } }
        training = { learning-rate = 0.5 }
        start = { q = [[1.0, 0.0], [0.0, 1.0]] }
        record = { times = [0, 1] }
        run = [{ name = "sgd", engine = "direct" }]
        [sweep]
        "data.spectrum.eigenvalues" = [[1.0], [1.0, 2.0, 3.0, 4.0]]
        "data.spectrum.weights" = [[1.0], [0.25, 0.25, 0.25, 0.25]]
    "#;
    let file = out.join("failing.toml");
    std::fs::write(&file, text).unwrap();
    // Mixed lengths are refused before anything runs.
    let run = didact().arg("run").arg(&file).arg("--out").arg(&out).output().unwrap();
    assert_eq!(run.status.code(), Some(2));

    let text = text.split("[sweep]").next().unwrap().to_string()
        + "[sweep]\n\"data.spectrum\" = [{ kind = \"isotropic\" }, { kind = \"power-law\", levels = 4, beta = 1.0 }]\n";
    std::fs::write(&file, text).unwrap();
    let run = didact().arg("run").arg(&file).arg("--json").arg("--out").arg(&out).output().unwrap();
    assert_eq!(run.status.code(), Some(3), "finished, with a failed job");
    let answer: serde_json::Value = serde_json::from_slice(&run.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&run.stderr)));
    let failures = answer["failures"].as_array().unwrap();
    assert_eq!(failures.len(), 1, "{answer}");
    assert!(
        failures[0].as_str().unwrap().contains("rank 3, but its eigenspace has 2 dimensions"),
        "{answer}"
    );
    std::fs::remove_dir_all(out).unwrap();
}
