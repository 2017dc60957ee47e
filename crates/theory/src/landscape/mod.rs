//! Landscapes: what the loss looks like as a function of the weights.

pub mod population;
pub mod quantities;
pub mod stationary;
