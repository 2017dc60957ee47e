//! Averages over Gaussian variables: quadrature, Hermite series, closed forms for erf and ReLU.
//!
//! Everything here is about centred Gaussian fields z with a given covariance C; nothing knows what the fields are.

pub mod angles;
pub mod ball;
pub mod erf;
pub mod expectation;
pub mod hermite;
mod lattice;
pub mod normal;
mod orthant;
pub mod pairs;
pub mod polynomial;
pub mod quadrature;
pub mod ramps;
pub mod relu;
pub mod series;
pub mod signs;
pub mod smoothed;
pub mod truncated;

pub use expectation::{Average, BestRule, Integrand, expectation, expectation_within};
pub use pairs::{PairAverages, pair_averages};
pub use quadrature::GaussianRule;
pub use series::HermiteSeries;
