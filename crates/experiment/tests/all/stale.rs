//! Everything that a result depends on is in its key: an edited file never finds the numbers of the file before.

use crate::common::empty_folder;
use didact_experiment::{Experiment, Finished, Size, Source};
use didact_model::NoMonitor;
use std::path::{Path, PathBuf};

const RUN: &str = r#"
title = "Stale"
model = { family = "committee", students = 1, teachers = 1, activation = "linear" }
start = { q = [[0.25]], r = [[0.1]] }
record = { times = { from = 0, to = 4, points = 5 }, observe = ["loss"] }
"#;

const FILE: &str = r#"{ kind = "file", path = "e.csv" }"#;

/// Four eigenvalues, and what they are changed to; one, and what it is changed to.
const FOUR: [&str; 2] = ["3\n2\n1\n0.5\n", "9\n1\n0.1\n0.01\n"];
const ONE: [&str; 2] = ["1.5\n", "0.5\n"];

/// Every way in which a description names a file, and what the file holds before and after an edit.
fn descriptions() -> Vec<(&'static str, String, [&'static str; 2])> {
    // Parts of a spectrum are changed one by one from an isotropic one, and stages keep the number of eigenspaces.
    let of = |name: &'static str| if name == "stage, by parts" { ONE } else { FOUR };
    named().into_iter().map(|(name, text)| (name, text, of(name))).collect()
}

fn named() -> Vec<(&'static str, String)> {
    let training = "training = { learning-rate = 0.5 }\n";
    // Stages hand over the overlaps in each eigenspace: there are as many before as after.
    let four = "data = { spectrum = { kind = \"explicit\", eigenvalues = [1.6, 1.2, 0.8, 0.4] } }\n";
    let stage = |data: &str, set: &str| {
        format!(
            "{RUN}{data}training = {{ learning-rate = 0.5, stage = [{{ until = {{ time = 2 }}, set = {{ {set} }} }}] }}\n"
        )
    };
    let parts = r#""data.spectrum.kind" = "file", "data.spectrum.path" = "e.csv""#;
    vec![
        ("data", format!("{RUN}{training}data = {{ spectrum = {FILE} }}\n")),
        ("sweep", format!("{RUN}{training}sweep = {{ \"data.spectrum\" = [{FILE}] }}\n")),
        (
            "run, deep",
            format!(
                "{RUN}{training}run = [{{ name = \"ode\", engine = \"ode\", set = {{ data = {{ spectrum = {FILE} }} }} }}]\n"
            ),
        ),
        (
            "run, by parts",
            format!("{RUN}{training}run = [{{ name = \"ode\", engine = \"ode\", set = {{ {parts} }} }}]\n"),
        ),
        ("stage", stage(four, &format!("\"data.spectrum\" = {FILE}"))),
        ("stage, by parts", stage("", &format!("{parts}, \"data.spectrum.normalise\" = false"))),
        (
            "scan",
            "title = \"Stale\"\n[[scan]]\nname = \"s\"\nquantity = \"committee/linear-critical-rate\"\n\
             inputs = { file = \"e.csv\" }\nover = { N = [300, 600] }\n"
                .into(),
        ),
        (
            "scan over files",
            "title = \"Stale\"\n[[scan]]\nname = \"s\"\nquantity = \"committee/linear-critical-rate\"\n\
             over = { N = [300], file = [\"e.csv\"] }\n"
                .into(),
        ),
        (
            "measure",
            "title = \"Stale\"\n[[measure]]\nname = \"m\"\nkind = \"quantity\"\n\
             quantity = \"committee/linear-critical-rate\"\ninputs = { file = \"e.csv\", N = 300 }\n"
                .into(),
        ),
    ]
}

/// Runs a description that lies in a folder which is not the current one.
fn run(folder: &Path, text: &str) -> Finished {
    let source = Source { name: folder.join("it.toml").display().to_string(), text: text.into() };
    let experiment = Experiment::new(source, Size::Normal, None).unwrap_or_else(|e| panic!("{e}"));
    experiment.execute(&folder.join("runs"), &NoMonitor).unwrap()
}

/// The numbers: all tables, answers and measures.
fn numbers(finished: &Finished) -> Vec<Vec<u8>> {
    let files = ["ode.csv", "point-0000/ode.csv", "scan-s.csv", "results.json"];
    files.iter().filter_map(|file| std::fs::read(finished.folder.join(file)).ok()).collect()
}

#[test]
fn an_edited_file_is_never_answered_with_the_numbers_before() {
    for (index, (name, text, [before, after])) in descriptions().into_iter().enumerate() {
        let folder: PathBuf = empty_folder(&format!("stale-{index}"));
        std::fs::create_dir_all(&folder).unwrap();
        let write = |numbers: &str| std::fs::write(folder.join("e.csv"), numbers).unwrap();
        write(before);
        let first = run(&folder, &text);
        assert!(first.failures.is_empty(), "{name}: {:?}", first.failures);
        assert!(run(&folder, &text).reused, "{name}");
        write(after);
        let second = run(&folder, &text);
        assert!(!second.reused && second.taken_over == 0, "{name}");
        assert_ne!(numbers(&first), numbers(&second), "{name}");
        // The first file again finds its own results.
        write(before);
        let third = run(&folder, &text);
        assert!(third.reused && third.folder == first.folder, "{name}");
    }
}

#[test]
fn a_file_that_is_not_there_is_refused_before_anything_runs() {
    let folder = empty_folder("stale-missing");
    for (name, text, _) in descriptions() {
        let source = Source { name: folder.join("it.toml").display().to_string(), text };
        let error = Experiment::new(source, Size::Normal, None).err().unwrap_or_else(|| panic!("{name}"));
        assert!(error.to_string().contains("e.csv"), "{name}: {error}");
    }
}

/// It panicked when it ran.
#[test]
fn a_stage_with_other_eigenspaces_than_the_next_is_refused() {
    let text = format!(
        "{RUN}training = {{ learning-rate = 0.5, stage = [{{ until = {{ time = 2 }}, set = {{ \"data.spectrum\" = \
         {{ kind = \"power-law\", levels = 3, beta = 1.0 }} }} }}] }}\n"
    );
    let source = Source { name: "it.toml".into(), text };
    let error = Experiment::new(source, Size::Normal, None).err().expect("it is refused");
    assert!(error.to_string().contains("have other eigenspaces"), "{error}");
}
