//! Deterministic random numbers for the tests of this crate.

use crate::bootstrap::SplitMix64;

pub(crate) struct Noise(SplitMix64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// Uniform on (0, 1].
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.0.draw() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }

    /// Box-Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        (2.0 * self.exponential()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}
