//! Dynamical mean-field theory of gradient descent on a training set in discrete time: exact as n, d → ∞ at fixed n/d and
//! steps (docs/derivations/gd-phase-transitions.md#s4).

mod backward;
mod engine;
mod estimate;
mod factor;
mod given;
mod kernels;
mod lanes;
mod linear;
mod linear_training;
mod memory;
mod one_unit;
mod points;
mod process;
mod step;
mod training_quantities;
mod ways;

pub use engine::{Dmft, DmftOptions, equations};
pub use estimate::{Diverged, estimate};
pub use kernels::{Equations, Kernels};
pub use linear::{LinearDescent, LinearState};
pub use linear_training::{LinearTraining, LinearTrainingState, MultiPass, MultiPassState, SteadyTracking};
pub use points::{Points, Sampling};
pub use process::Process;
pub(crate) use training_quantities::TRAINING;
pub use ways::TrainedSteps;

/// Samples that are moved together: their sums fill eight vector registers, enough to hide the latency of an addition, and what
/// they and the next ones remember of some twenty steps fits into the nearest cache.
const LANES: usize = 32;
