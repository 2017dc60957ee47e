//! Finite-size simulation: one-pass SGD in d dimensions, and its overlaps alone.
//!
//! [`Direct`] keeps the d-dimensional weights. [`Reduced`] keeps only their Gram matrices and draws them from their
//! exact law, at a cost free of d. Both end in the same [`didact_model::Trajectory`].

pub mod chain;
pub mod direct;
mod kernels;
pub mod noise;
pub mod reduced;
mod still;

pub use chain::Chain;
pub use direct::Direct;
pub use reduced::Reduced;
