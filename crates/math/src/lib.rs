//! Mathematics that knows no network: Gaussian averages, random numbers, integrators, small linear algebra.

pub mod activation;
pub mod expression;
pub mod fits;
pub mod gauss;
pub mod linalg;
pub mod memory;
pub mod ode;
pub mod random;
pub mod roots;
pub mod simd;
pub mod special;
pub mod spectra;
