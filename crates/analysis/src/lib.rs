//! What the curves say: escape times, plateaus, exponents, and whether theory and simulation agree.
//!
//! Pure functions of plain slices. A curve is `times: &[f64]` with `values: &[f64]`; an ensemble is `times`
//! with `runs: &[Vec<f64>]`, where a run that stopped early is simply shorter and covers the first times.
//! Every answer carries its error; a run that never escaped is censored, not dropped; "there is no plateau"
//! is an answer, not a failure.
//!
//! ```
//! use didact_analysis::{passage, survival, Level};
//!
//! // Four runs on one time grid; the last one was stopped before it escaped.
//! let times = [0.0, 1.0, 2.0, 3.0, 4.0];
//! let runs = [vec![0.0, 0.1, 0.9], vec![0.0, 0.3, 0.7], vec![0.1, 0.1, 0.3, 0.7], vec![0.0, 0.1, 0.1]];
//! let passages = passage::first_passages(&times, &runs, Level::rising(0.5))?;
//! assert_eq!(passages[1].time(), Some(1.5));
//! let escape = survival::summarise(&passages, 0.95)?;
//! assert_eq!((escape.runs, escape.escaped), (4, 3));
//! assert!(escape.log_time.is_none(), "a mean over the escaped runs alone would be biased");
//! assert_eq!(escape.median, Some(2.0));
//! # Ok::<(), didact_analysis::AnalysisError>(())
//! ```

pub mod bootstrap;
pub mod compare;
mod error;
pub mod exponent;
pub mod interpolate;
pub mod passage;
pub mod plateau;
pub mod rate;
pub mod replicas;
pub mod special;
pub mod statistics;
pub mod survival;
#[cfg(test)]
mod test_noise;

pub use error::AnalysisError;
pub use interpolate::{Axes, Scale};
pub use passage::{Direction, Level, Passage};
pub use statistics::Interval;
