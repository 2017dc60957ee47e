//! Dynamical mean-field theory of full-batch gradient descent in discrete time: exact as n, d → ∞ at fixed n/d and steps.

mod engine;
mod estimate;
mod factor;
mod kernels;
mod lanes;
mod linear;
mod memory;
mod points;
mod process;
mod step;

pub use engine::{Dmft, equations};
pub use estimate::{Diverged, estimate};
pub use kernels::{Equations, Kernels};
pub use linear::{LinearDescent, LinearState};
pub use memory::Memory;
pub use points::{Points, Sampling};
pub use process::Process;

/// Samples that are moved together: their sums fill eight vector registers, enough to hide the latency of an addition, and what
/// they and the next ones remember of some twenty steps fits into the nearest cache.
const LANES: usize = 32;

/// Sizes that the loops need.
#[derive(Debug, Clone, Copy)]
struct Dimensions {
    /// m.
    trained: usize,
    /// f.
    frozen: usize,
    /// Fields whose derivatives are kept: m, or m + f where responses to the frozen fields follow paths.
    columns: usize,
    /// Responses to the frozen fields by Stein's lemma.
    stein: bool,
}
