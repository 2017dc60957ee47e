//! Landscapes: where training stands, and which directions lead down from there.

mod descent;
mod easy_hard;
mod empirical;
mod ensemble;
mod error;
mod grid;
mod link_quantities;
mod one_step;
pub mod population;
mod quantities;
pub mod recovery;
mod spectral_method;
mod start;
mod threshold;

pub use descent::{Descent, Sampled, THRESHOLD_SPREAD};
pub use easy_hard::{Round, Split, split};
pub use empirical::{EmpiricalDescent, EmpiricalHessian};
pub use ensemble::{Ensemble, HessianSpectrum};
pub use error::LandscapeError;
pub use one_step::{OneStepKernels, one_step};
pub use quantities::quantities;
pub use spectral_method::{Preprocessing, SpectralMethod, sampled_spectral_method, spectral_method};
pub use start::{AtStart, at_start, weight_infimum};
pub use threshold::{LongTime, long_time, threshold};
