//! Describe an experiment once; run it, keep it, check it, draw it.
//!
//! ```text
//! text ──► Description ──► Experiment ──► build ──► Schedule ──► engine ──► Trajectory ──► tables on disk
//!          description/    points, runs   problem,  stages                                      │
//!                                         record                     report ◄── figures, claims ◄── measures
//! ```
//!
//! ```
//! use didact_experiment::{Experiment, Size, Source};
//! use didact_model::NoMonitor;
//!
//! let text = r#"
//!     title = "A first run"
//!     model = { family = "committee", students = 1, teachers = 1, activation = "erf(z/sqrt2)" }
//!     training = { learning-rate = 1.0 }
//!     start = { q = [[0.5]], r = [[0.1]] }
//!     record = { times = [0, 5, 10] }
//! "#;
//! let source = Source { name: "first.toml".into(), text: text.into() };
//! let experiment = Experiment::new(source, Size::Normal, None).unwrap();
//! let trajectory = experiment.runs[0].schedule.run(&NoMonitor).unwrap();
//! assert_eq!((trajectory.engine.as_str(), trajectory.times.len()), ("ode", 3));
//! let loss = &trajectory.curves("loss").unwrap()[0];
//! assert!(loss[2] < loss[0], "one unit learns from another");
//! ```

pub mod build;
mod checks;
pub mod claims;
mod compute;
mod default_figure;
pub mod description;
pub mod draw;
pub mod edit;
pub mod engines;
pub mod execute;
pub mod experiment;
pub mod explain;
mod figure_checks;
pub mod fluctuations;
pub mod frontend;
mod guard;
pub mod index_page;
pub mod input_files;
mod jobs;
mod left_out;
pub mod live;
pub mod measures;
mod names;
mod npz;
mod optimise;
mod outcome;
pub mod overrides;
mod page;
pub mod points;
pub mod quantities;
mod reader;
pub mod recorded;
pub mod reference;
pub mod report;
pub mod results;
mod scan_tables;
pub mod schedule;
pub mod source;
pub mod spectra;
pub mod store;
pub mod summary;
pub mod sweep;
pub mod words;
mod zip;

pub use description::Description;
pub use execute::{Failure, Finished};
pub use experiment::{Experiment, Run, Size};
pub use source::{Diagnostic, Source};
pub use summary::Summary;

/// Doors for the fuzzer (`crates/fuzz`) to readers that are not public. Not for use by programs.
#[doc(hidden)]
pub mod fuzzing {
    use crate::claims::Judged;
    use crate::measures::Measured;
    use crate::npz;
    use crate::store::Answers;
    use crate::sweep::log::TaskReport;
    use crate::sweep::{Plan, Submission};
    use std::path::Path;

    /// Reads an archive and two arrays of it, and says what it found.
    pub fn npz(bytes: &[u8]) -> String {
        let Some(archive) = npz::Reader::new(bytes) else { return "no archive".into() };
        let arrays = ["times", "loss"].map(|name| archive.array(name));
        let shown = |array: &Option<npz::Array>| match array {
            Some(array) => {
                let cells: Option<usize> =
                    array.shape.iter().try_fold(1, |all: usize, n| all.checked_mul(*n));
                assert_eq!(cells, Some(array.values.len()), "an array fills its shape");
                format!("array of {} sides", array.shape.len())
            }
            None => "no array".into(),
        };
        arrays.each_ref().map(shown).join(", ")
    }

    /// A small archive of `times` and `loss`.
    pub fn archive(replicas: usize, length: usize) -> Vec<u8> {
        let mut writer = npz::Writer::default();
        let added = writer
            .add("times", &[length], (0..length).map(|t| t as f64))
            .and_then(|()| writer.add("loss", &[replicas, length], (0..replicas * length).map(|i| i as f64)))
            .and_then(|()| writer.finish());
        added.expect("a small archive")
    }

    /// Reads a text as each of the JSON files of a run folder or a sweep, and says as which it can be read.
    pub fn run_files(text: &str) -> String {
        let answers = serde_json::from_str::<Answers>(text).is_ok();
        let measured = serde_json::from_str::<Vec<Measured>>(text).is_ok();
        let judged = serde_json::from_str::<Vec<Judged>>(text).is_ok();
        let plan = serde_json::from_str::<Plan>(text).is_ok();
        let submission = serde_json::from_str::<Submission>(text).is_ok();
        let report = TaskReport::of_bytes(Path::new("task-0.log"), 0, text.as_bytes());
        let (open, failed) = (report.open().len(), report.failed().len());
        format!(
            "answers {answers}, measures {measured}, claims {judged}, plan {plan}, submission {submission}, report {open} {failed}"
        )
    }
}
