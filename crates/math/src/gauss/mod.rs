//! Averages over Gaussian variables: quadrature, Hermite series, closed forms for erf and ReLU.
//!
//! Everything here is about centred Gaussian fields z with a given covariance C; nothing knows what the fields are.

pub mod erf;
pub mod expectation;
pub mod hermite;
mod lattice;
pub mod normal;
mod orthant;
pub mod pairs;
pub mod polynomial;
pub mod quadrature;
pub mod relu;
pub mod series;

pub use expectation::{Average, expectation, expectation_in_blocks};
pub use pairs::{PairAverages, pair_averages};
pub use quadrature::GaussianRule;
pub use series::HermiteSeries;
