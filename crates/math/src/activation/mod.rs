//! Scalar non-linearities σ: their derivatives, kinks and Hermite coefficients, and their names.

mod formula;
mod names;
mod piecewise;
mod polynomial;
mod smooth;

pub use formula::Formula;
pub use names::{ActivationError, catalogue, parse};
pub use piecewise::{Abs, Relu};
pub use polynomial::{HermitePolynomial, Polynomial};
pub use smooth::{Erf, Gelu, Linear, Sigmoid, Tanh};

/// A point where the slope of σ jumps: a Dirac term of weight `jump` in σ″.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kink {
    /// Where.
    pub at: f64,
    /// σ′(at + 0) − σ′(at − 0).
    pub jump: f64,
}

/// What closed forms need to know about σ.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// σ(z) = z.
    Linear,
    /// σ(z) = erf(scale·z).
    Erf {
        /// 1/√2 in Saad and Solla's work.
        scale: f64,
    },
    /// σ(z) = max(z, 0).
    Relu,
    /// Monomial coefficients, low to high.
    Polynomial(Vec<f64>),
    /// Anything else.
    General,
}

/// A continuous scalar non-linearity σ.
///
/// At a kink the slope is half-way between its two sides, the limit of E[σ′] as the variance shrinks.
pub trait Activation: Send + Sync + std::fmt::Debug {
    /// A name that [`parse`] reads back.
    fn name(&self) -> String;
    /// σ(z).
    fn value(&self, z: f64) -> f64;
    /// σ′(z).
    fn slope(&self, z: f64) -> f64;
    /// σ″(z), its regular part; Dirac terms are in [`Self::kinks`].
    fn curvature(&self, z: f64) -> f64;

    /// Where the slope jumps, ascending.
    fn kinks(&self) -> &[Kink] {
        &[]
    }

    /// What closed forms need to know.
    fn form(&self) -> Form {
        Form::General
    }

    /// Degree if σ is a polynomial: its Hermite series then ends.
    fn degree(&self) -> Option<usize> {
        match self.form() {
            Form::Linear => Some(1),
            Form::Polynomial(coefficients) => Some(coefficients.len().saturating_sub(1)),
            _ => None,
        }
    }

    /// (σ, σ′) at once; override where it is cheaper.
    fn value_and_slope(&self, z: f64) -> (f64, f64) {
        (self.value(z), self.slope(z))
    }

    /// σ over a list, as long as `out`; override where vectors help.
    fn values(&self, z: &[f64], out: &mut [f64]) {
        for (out, z) in out.iter_mut().zip(z) {
            *out = self.value(*z);
        }
    }

    /// σ and σ′ over a list; override where vectors help.
    fn values_and_slopes(&self, z: &[f64], values: &mut [f64], slopes: &mut [f64]) {
        for ((value, slope), z) in values.iter_mut().zip(slopes).zip(z) {
            (*value, *slope) = self.value_and_slope(*z);
        }
    }

    /// (σ, σ′, σ″) at once; override where it is cheaper.
    fn jet(&self, z: f64) -> (f64, f64, f64) {
        (self.value(z), self.slope(z), self.curvature(z))
    }

    /// Spacing of a trapezoidal grid in z that resolves products of σ and its derivatives to round-off.
    ///
    /// A pole at distance d from the real axis costs e^{−2πd/δ}: 0.2 suits tanh (d = π/2, e^{−49}).
    fn resolution(&self) -> f64 {
        0.2
    }

    /// c_k(r) = E[σ(√r z) h_k(z)], z ~ N(0, 1), h_k = He_k/√k!; by quadrature unless known in closed form.
    fn hermite(&self, k: usize, variance: f64) -> f64 {
        crate::gauss::hermite::of_activation(self, k, variance)
    }
}

#[cfg(test)]
mod tests;
