//! Tables of other programs: measured, judged and drawn like runs, kept under what the file holds, refused when they are none.

use crate::common::empty_folder;
use didact_experiment::{Experiment, Finished, Size, Source, claims::Verdict};
use didact_model::NoMonitor;
use std::path::Path;

const TEXT: &str = r#"
title = "Recorded"
[[run]]
name = "outside"
engine = "recorded"
path = "curve.csv"
[[measure]]
name = "end"
kind = "value-at"
run = "outside"
observable = "accuracy"
time = 3
[[claim]]
says = "The last accuracy is one half."
measure = "end"
check = { equals = 0.5, absolute = 0.01 }
[[figure]]
name = "curve"
[[figure.panel]]
series = [{ run = "outside", y = "accuracy" }]
"#;

const CURVE: &str = "replica,time,accuracy\n0,1,0.1\n0,2,0.3\n0,3,0.4\n1,1,0.2\n1,2,0.4\n1,3,0.6\n";

fn experiment(folder: &Path, text: &str) -> Result<Experiment, String> {
    let source = Source { name: folder.join("it.toml").display().to_string(), text: text.into() };
    Experiment::new(source, Size::Normal, None).map_err(|e| e.to_string())
}

fn run(folder: &Path) -> Finished {
    experiment(folder, TEXT).unwrap().execute(&folder.join("runs"), &NoMonitor).unwrap()
}

#[test]
fn a_table_of_another_program_is_measured_judged_and_drawn_and_an_edited_one_is_read_again() {
    let folder = empty_folder("recorded");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("curve.csv"), CURVE).unwrap();
    let first = run(&folder);
    assert!(first.failures.is_empty(), "{:?}", first.failures);
    assert_eq!(first.claims[0].verdict, Verdict::Holds, "mean of 0.4 and 0.6");
    assert!(first.folder.join("curve.svg").exists() && first.folder.join("outside.csv").exists());
    assert!(run(&folder).reused);
    std::fs::write(folder.join("curve.csv"), CURVE.replace("0.6", "0.9")).unwrap();
    let second = run(&folder);
    assert!(!second.reused && second.claims[0].verdict == Verdict::Fails);
    // Where the file lies does not matter, only what it holds.
    std::fs::write(folder.join("curve.csv"), CURVE).unwrap();
    assert!(run(&folder).reused);
}

#[test]
fn what_is_no_table_or_cannot_have_an_effect_is_refused_before_anything_runs() {
    let folder = empty_folder("recorded-wrong");
    std::fs::create_dir_all(&folder).unwrap();
    let why = |text: &str| experiment(&folder, text).err().expect("it is refused");
    assert!(why(TEXT).contains("there is no such file"), "{}", why(TEXT));
    std::fs::write(folder.join("curve.csv"), "epoch,accuracy\n1,0.5\n").unwrap();
    assert!(why(TEXT).contains("no column `time`"));
    std::fs::write(folder.join("curve.csv"), CURVE).unwrap();
    assert!(why(&TEXT.replace("path = \"curve.csv\"", "")).contains("has no table"));
    assert!(why(&TEXT.replace("y = \"accuracy\"", "y = \"loss\"")).contains("loss"));
    let set = TEXT.replace("path = \"curve.csv\"", "path = \"curve.csv\"\nset = { \"record.seed\" = 3 }");
    assert!(why(&set).contains("would change nothing"));
}

/// `numpy.savez` of NumPy 1.24.2 wrote the file: `times` (3) and `accuracy` (2 x 3), the same numbers as in the text.
#[test]
fn an_archive_of_numpy_is_the_same_table_as_the_text() {
    let folder = empty_folder("recorded-numpy");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("curve.csv"), CURVE).unwrap();
    std::fs::write(folder.join("curve.npz"), include_bytes!("numpy.npz")).unwrap();
    let table = |text: &str| experiment(&folder, text).unwrap().runs[0].schedule.run(&NoMonitor).unwrap();
    assert_eq!(table(&TEXT.replace("curve.csv", "curve.npz")), table(TEXT));
}
