//! `didact verify`, and how `run` and `report` meet damage and failures.

use crate::common::{didact, temporary};
use std::path::{Path, PathBuf};
use std::process::Output;

const DESCRIPTION: &str = r#"
title = "Verified"
model = { family = "committee", students = 1, teachers = 1, activation = "linear" }
training = { learning-rate = 0.5 }
start = { q = [[0.25]], r = [[0.1]] }
record = { times = [0, 1, 2] }
"#;

fn run(file: &Path, out: &Path) -> Output {
    didact().arg("run").arg(file).arg("--out").arg(out).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A folder with a description in it.
fn with_description(name: &str, description: &str) -> (PathBuf, PathBuf) {
    let folder = temporary(name);
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("it.toml");
    std::fs::write(&file, description).unwrap();
    (file, folder.join("runs"))
}

fn only_folder(out: &Path) -> PathBuf {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(out).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(entries.len(), 1, "{entries:?}");
    entries.pop().unwrap()
}

#[test]
fn damage_is_found_by_verify_and_report_and_healed_by_run() {
    let (file, out) = with_description("verify", DESCRIPTION);
    assert!(run(&file, &out).status.success());
    let folder = only_folder(&out);
    let verify = || didact().arg("verify").arg(&folder).output().unwrap();
    let whole = verify();
    assert!(whole.status.success() && text(&whole).contains("all as they were written"), "{}", text(&whole));
    let table = folder.join("ode.csv");
    let bytes = std::fs::read(&table).unwrap();
    std::fs::write(&table, [&bytes[..bytes.len() - 2], b"7\n"].concat()).unwrap();
    std::fs::remove_file(folder.join("report.html")).unwrap();
    for command in ["verify", "report"] {
        let ended = didact().arg(command).arg(&folder).output().unwrap();
        assert_eq!(ended.status.code(), Some(2), "{command}: {}", text(&ended));
        for words in ["is damaged", "ode.csv was changed", "report.html is missing", "hint: "] {
            assert!(text(&ended).contains(words), "{command}: {}", text(&ended));
        }
    }
    let json = didact().arg("verify").arg(&folder).arg("--json").output().unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((answer["whole"].as_bool(), answer["damaged"].as_array().unwrap().len()), (Some(false), 2));
    let healed = run(&file, &out);
    assert!(healed.status.success(), "{}", text(&healed));
    assert!(text(&healed).contains("healed:            ode.csv was changed; made anew"), "{}", text(&healed));
    assert_eq!(std::fs::read(&table).unwrap(), bytes);
    assert!(verify().status.success());
    assert!(text(&run(&file, &out)).contains("(unchanged, found)"));
    let nothing = didact().arg("verify").arg(out.join("nothing")).output().unwrap();
    assert_eq!(nothing.status.code(), Some(2), "{}", text(&nothing));
    std::fs::remove_dir_all(file.parent().unwrap()).unwrap();
}

/// Three rows cannot have these overlaps in eigenspaces of two dimensions: `direct` finds out when it builds weights.
#[test]
fn a_scan_is_computed_and_kept_when_the_only_run_fails() {
    let description = r#"
        title = "The only run fails, the scan is fine"
        model = { family = "committee", students = 2, teachers = 1, activation = "erf(z/sqrt2)" }
        data = { dimension = 8, spectrum = { kind = "power-law", levels = 4, beta = 1.0 } }
        training = { learning-rate = 0.5 }
        start = { q = [[1.0, 0.0], [0.0, 1.0]] }
        record = { times = [0, 1] }
        run = [{ name = "big", engine = "direct" }]
        scan = [{ name = "s", quantity = "committee/escape", inputs = { eta = 0.1 }, over = { M = [2, 3] } }]
    "#;
    let (file, out) = with_description("lost-scan", description);
    for _ in 0..2 {
        let ended = run(&file, &out);
        assert_eq!(ended.status.code(), Some(3), "{}", text(&ended));
        assert!(text(&ended).contains("failed:            big at"), "{}", text(&ended));
        assert!(!text(&ended).contains("found"), "a failed job is tried again: {}", text(&ended));
        assert!(only_folder(&out).join("scan-s.csv").exists());
    }
    std::fs::remove_dir_all(file.parent().unwrap()).unwrap();
}

#[test]
fn an_unfinished_folder_says_how_much_is_kept() {
    let (file, out) = with_description("unfinished", DESCRIPTION);
    let partial = out.join("it.partial");
    std::fs::create_dir_all(&partial).unwrap();
    let journal = didact_experiment::store::Journals::in_folder(&partial);
    journal.append(didact_experiment::store::journal::RecordKind::Table, "key", b"table").unwrap();
    let ended = didact().arg("verify").arg(&partial).output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    assert!(text(&ended).contains("is no finished run; one result is kept in it"), "{}", text(&ended));
    std::fs::remove_dir_all(file.parent().unwrap()).unwrap();
}
