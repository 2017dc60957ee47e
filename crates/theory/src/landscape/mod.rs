//! Landscapes: where training stands, and which directions lead down from there.

mod easy_hard;
mod ensemble;
mod error;
mod grid;
mod one_step;
pub mod recovery;
mod start;
mod threshold;

pub use easy_hard::{Round, Split, split};
pub use ensemble::{Ensemble, HessianSpectrum};
pub use error::LandscapeError;
pub use one_step::{OneStep, one_step};
pub use start::{AtStart, at_start, weight_infimum};
pub use threshold::{LongTime, long_time, threshold};
