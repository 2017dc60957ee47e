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
pub mod description;
pub mod draw;
pub mod engines;
pub mod execute;
pub mod experiment;
mod guard;
pub mod index_page;
pub mod input_files;
mod jobs;
mod left_out;
pub mod measures;
mod names;
mod npz;
mod outcome;
pub mod overrides;
mod page;
pub mod points;
pub mod quantities;
mod reader;
pub mod reference;
pub mod report;
pub mod results;
mod scan_tables;
pub mod schedule;
pub mod source;
pub mod spectra;
pub mod store;
pub mod summary;
pub mod words;

pub use description::Description;
pub use execute::{Failure, Finished};
pub use experiment::{Experiment, Run, Size};
pub use source::{Diagnostic, Source};
pub use summary::Summary;
