//! What is known of quadratic networks without a simulation.
//!
//! [`state`] (risk and gradient flow of the overlaps), [`plateau`] and [`rates`] (the plateaus and the way out of them),
//! [`singular`] and [`escape`] (times of escape from the singular values of the start), [`alignment`] (the solution that a start
//! selects), [`one_step`] (one step at finite learning rate) and [`stationary`] (the landscape).

pub(super) mod alignment;
pub(super) mod escape;
pub(super) mod one_step;
pub(super) mod plateau;
pub(super) mod rates;
pub(super) mod singular;
pub(super) mod state;
pub(super) mod stationary;
