//! Finite-size simulation: one-pass SGD in d dimensions, its overlaps alone, and full-batch gradient descent.
//!
//! [`Direct`] keeps the d-dimensional weights. [`Reduced`] keeps only their Gram matrices and draws them from their
//! exact law, at a cost free of d. [`FullBatch`] visits a fixed training set. All end in the same [`didact_model::Trajectory`].

pub mod chain;
pub mod direct;
pub mod full_batch;
mod kernels;
pub mod noise;
pub mod reduced;
mod still;
mod weights;

pub use chain::Chain;
pub use direct::Direct;
pub use full_batch::FullBatch;
pub use reduced::Reduced;
