//! Describe an experiment once; run it, keep it, check it, draw it.
//!
//! ```
//! use didact_experiment::{Experiment, Size, Source};
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
//! assert_eq!(experiment.jobs.len(), 1);
//! ```

pub mod build;
pub mod claims;
pub mod description;
pub mod draw;
pub mod execute;
pub mod index_page;
mod left_out;
pub mod measure;
mod names;
mod npz;
pub mod overrides;
mod page;
pub mod plan;
pub mod points;
pub mod quantities;
pub mod reference;
pub mod report;
pub mod results;
mod scan_tables;
pub mod schedule;
pub mod source;
pub mod spectra;
pub mod store;
pub mod words;

pub use description::Description;
pub use execute::{Failure, Finished};
pub use plan::{Experiment, Size};
pub use source::{Diagnostic, Source};
