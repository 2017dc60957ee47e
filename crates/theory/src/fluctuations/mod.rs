//! Fluctuations of one-pass SGD around the equations of its overlaps: d times the covariance of the state, and what follows from it.
//!
//! ```text
//! kick ──► products of a sample ──► D ┐
//! averages ───────────────────────► J ┼─► dΣ/dα = J Σ + Σ Jᵀ + D ──► Var[o] = ∇oᵀ Σ ∇o/d: bands, passage times, required d
//! law of the start ─────────────► Σ_0 ┘        at a fixed point ──► rate and seed of escape ──► law of escape times
//! ```
//!
//! Derived in docs/derivations/fluctuations.md.

mod closed;
mod engine;
mod erf;
mod error;
mod escape;
mod fourths;
mod linearise;
mod mean;
mod moments;
mod observer;
mod path;
mod points;
mod products;
mod start;
#[cfg(test)]
mod tests;
mod theory;
mod variables;

pub use engine::{Deviations, FluctuatingOde, FluctuationsKey, FluctuationsWord};
pub use error::FluctuationError;
pub use escape::EscapeLaw;
pub use theory::{FluctuationTheory, PassageLaw, Seed};
