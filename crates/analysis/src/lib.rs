//! What the curves say: escape times, plateaus, exponents, and whether theory and simulation agree.
//!
//! Pure functions of plain slices, which know neither networks nor files. A curve is `times: &[f64]` with
//! `values: &[f64]`; an ensemble is `times` with `replicas: &[Vec<f64>]`, where a replica that stopped early is
//! simply shorter and covers the first times.
//!
//! ```text
//!  value │▔▔╲                                  times, values
//!        │    ╲_______________   plateau            │
//!        │                    ╲                     ▼
//!        │ - - - - - - - - - - ╲ - -  level    ┌──────────┐    number, error,
//!        │                      ╲__            │ analysis │──► or why there is none
//!        └───────────────────────┬──► time     └──────────┘
//!                             passage
//! ```
//!
//! | question | answer |
//! |---|---|
//! | When does a curve first reach a level? | [`passage::first_passage`]; all replicas: [`passage::first_passages`] |
//! | When do replicas escape, if some never do? | [`survival::kaplan_meier`], [`survival::summarise`] |
//! | How probable is an event, seen k times in n? | [`statistics::wilson`] |
//! | Where does a curve stay flat, and how high? | [`plateau::plateaus`], [`plateau::longest_plateau`] |
//! | Which power of time, or of the dimension? | [`exponent::fit_exponent`], [`exponent::local_exponents`] |
//! | Does a time grow like ln d? | [`exponent::logarithmic_law`] |
//! | How fast does it grow or decay exponentially? | [`rate::fit_rate`], [`rate::growth_rate`] |
//! | Does a simulation agree with its prediction? | [`agreement::largest_deviation`] |
//!
//! Answers carry their errors. A replica that never escaped is censored, not dropped; "there is no plateau" is
//! an answer, not a failure.
//!
//! ```
//! use didact_analysis::{passage, survival, Level};
//!
//! // Four replicas on one time grid; the last one was stopped before it escaped.
//! let times = [0.0, 1.0, 2.0, 3.0, 4.0];
//! let replicas = [vec![0.0, 0.1, 0.9], vec![0.0, 0.3, 0.7], vec![0.1, 0.1, 0.3, 0.7], vec![0.0, 0.1, 0.1]];
//! let passages = passage::first_passages(&times, &replicas, Level::rising(0.5))?;
//! assert_eq!(passages[1].time(), Some(1.5));
//! let escape = survival::summarise(&passages, 0.95)?;
//! assert_eq!((escape.replicas, escape.escaped), (4, 3));
//! assert!(escape.log_time.is_none(), "a mean over the escaped replicas alone would be biased");
//! assert_eq!(escape.median, Some(2.0));
//! # Ok::<(), didact_analysis::AnalysisError>(())
//! ```
//!
//! ```
//! use didact_analysis::plateau::{longest_plateau, Criterion};
//! use didact_analysis::rate::growth_rate;
//!
//! // A loss that stays near 0.2 until a mode e^{t/4} has grown, and then falls.
//! let times: Vec<f64> = (1..200).map(|i| 0.5 * f64::from(i)).collect();
//! let mode = |t: &f64| 1e-6 * (0.25 * t).exp();
//! let loss: Vec<f64> = times.iter().map(|t| 0.2 / (1.0 + mode(t))).collect();
//! let plateau = longest_plateau(&times, &loss, Criterion::log_time())?.expect("a plateau");
//! assert!((plateau.height - 0.2).abs() < 1e-3 && plateau.end < 4.0 * 1e6_f64.ln());
//! let departure: Vec<f64> = loss.iter().map(|l| 0.2 - l).collect();
//! assert!((growth_rate(&times, &departure, [1e-6, 1e-4])? - 0.25).abs() < 1e-4);
//! # Ok::<(), didact_analysis::AnalysisError>(())
//! ```

pub mod agreement;
mod error;
pub mod exponent;
pub mod interpolate;
mod normal;
pub mod passage;
pub mod plateau;
pub mod rate;
pub mod statistics;
pub mod survival;
#[cfg(test)]
mod test_noise;

pub use error::AnalysisError;
pub use interpolate::{Axes, Scale};
pub use passage::{Level, Passage, PassageDirection};
pub use statistics::Interval;
