//! Predictions: what happens to the overlaps when the dimension goes to infinity.

pub mod order_parameters;

pub use order_parameters::OrderParameterOde;

use didact_model::quantity::Quantity;

/// Predictions that need the machinery of this crate, with the name of their group. Those of a single family are
/// registered by the family.
pub fn quantities() -> Vec<(&'static str, &'static Quantity)> {
    Vec::new()
}
