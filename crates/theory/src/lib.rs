//! Predictions: what happens to the overlaps when the dimension goes to infinity.

pub mod order_parameters;

pub use order_parameters::OrderParameterOde;
