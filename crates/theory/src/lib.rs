//! Predictions: what happens to the overlaps when the dimension goes to infinity.

pub mod dmft;
mod flow;
pub mod landscape;
pub mod order_parameters;
mod row_flow;

pub use order_parameters::{Numerical, OrderParameterOde};

use didact_model::quantity::Quantity;

/// Predictions that need the machinery of this crate, with the name of their group. Those of a single family are
/// registered by the family.
pub fn quantities() -> Vec<(&'static str, &'static Quantity)> {
    landscape::quantities()
}
