//! Spectra of H = (1/n) Σᵢ Gᵢ xᵢ xᵢᵀ with Gaussian inputs xᵢ in R^d and n = δ d (`delta`), as n, d → ∞.
//!
//! Hessians of generalised linear models have this form. The weights Gᵢ depend on the inputs only through their projections
//! u on a few directions, and this dependence makes outliers. The bulk is the generalised Marchenko-Pastur law of
//! V. A. Marčenko and L. A. Pastur (1967) and J. W. Silverstein and Z. D. Bai (1995); its Stieltjes transform
//! α(z) = ∫ dμ(x)/(x − z) (`alpha`) solves
//!
//! ```text
//! z + 1/α = δ E[ G/(δ + G α) ].
//! ```
//!
//! Outliers follow from a Schur complement on the directions u: J. Baik, G. Ben Arous and S. Péché (2005) for G = 1 and
//! another variance along them, Y. M. Lu and G. Li (2020) and M. Mondelli and A. Montanari (2019) for weights that depend on
//! them. Bulk and outliers are derived in docs/derivations/gd-phase-transitions.md#s5.
//!
//! [`Bulk`] gives edges, Stieltjes transform and density, [`Spiked`] the outliers, [`marchenko_pastur`] the closed forms for
//! G = 1. [`extreme_pairs`] and [`spectral_density`] compute the same from a finite matrix by Lanczos iteration.
//!
//! ```
//! use didact_math::spectra::{Bulk, Ceiling, Spiked, WeightLaw};
//! // Half of the weights are −1, half are 1, and the projection u is large where they are −1.
//! let law = WeightLaw::new(&[0.5, 0.5], &[-1.0, 1.0]).unwrap();
//! let bulk = Bulk::new(&law, 3.0).unwrap();
//! assert!((bulk.left_edge().position + 1.302722518).abs() < 1e-9);
//! let projections = [vec![1.4, 0.2]];
//! let outlier = Spiked::new(bulk, &projections).unwrap().outliers(Ceiling::Zero).remove(0);
//! assert!(outlier.position < -1.31 && outlier.overlap > 0.1);
//! ```

mod bulk;
mod complex;
mod density;
mod lanczos;
mod law;
pub mod marchenko_pastur;
mod outlier;

pub use bulk::{Bulk, Edge};
pub use complex::Complex;
pub use lanczos::{
    RitzPair, SpectralMeasure, SpectrumEnd, Tridiagonal, extreme_pairs, spectral_density, tridiagonalise,
};
pub use law::{WeightLaw, WeightLawError};
pub use outlier::{Ceiling, Outlier, Spiked};
