//! What `didact check` says that runs cost, against the processor time that they take.

use crate::harness::timed;
use didact_experiment::{Experiment, Size, Source};
use didact_model::NoMonitor;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Estimate and measurement of all points of a run.
#[derive(Default)]
struct Sums {
    estimated: f64,
    measured: f64,
    points: usize,
}

/// Prints a line for every run of all quick papers and examples under a folder, and how many estimates are off by more than 3.
pub(crate) fn lines(root: &Path, only: Option<&str>) {
    let mut files = Vec::new();
    for folder in ["papers", "examples"] {
        collect(&root.join(folder), &mut files);
    }
    files.sort();
    let (mut all, mut off) = (0, 0);
    for file in files.iter().filter(|f| only.is_none_or(|part| f.to_string_lossy().contains(part))) {
        let name = file.strip_prefix(root).unwrap_or(file).display().to_string();
        let experiment = Source::read(file).and_then(|source| Experiment::new(source, Size::Quick, None));
        let experiment = match experiment {
            Ok(experiment) => experiment,
            Err(error) => {
                println!("{}", json!({"estimates": name, "error": error.to_string()}));
                continue;
            }
        };
        let mut runs: BTreeMap<(String, &str), Sums> = BTreeMap::new();
        for (run, cost) in experiment.runs.iter().zip(experiment.costs()) {
            let sums = runs.entry((run.name.clone(), run.schedule.engine.name())).or_default();
            sums.estimated += cost.seconds;
            let (times, outcome) = timed(|| run.schedule.run(&NoMonitor));
            if let Err(error) = outcome {
                println!("{}", json!({"estimates": name, "run": run.name, "error": error.to_string()}));
            }
            sums.measured += times.cpu.unwrap_or(times.wall);
            sums.points += 1;
        }
        for ((run, engine), Sums { estimated, measured, points }) in runs {
            let ratio = estimated / measured;
            all += 1;
            // Below some milliseconds nobody waits for the difference.
            off += usize::from(!(1.0 / 3.0..=3.0).contains(&ratio) && estimated.max(measured) > NOTICED);
            println!(
                "{}",
                json!({"estimates": name, "run": run, "engine": engine, "points": points, "estimated": estimated,
                       "measured": measured, "ratio": ratio})
            );
        }
    }
    println!("{}", json!({"estimates": "all", "runs": all, "off_by_more_than_3": off}));
}

/// Seconds that a user notices.
const NOTICED: f64 = 0.02;

/// Descriptions in a folder and those below it; `paper.toml` is a registry row.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "toml")
            && path.file_name().is_some_and(|n| n != "paper.toml")
        {
            files.push(path);
        }
    }
}
