//! Scalar non-linearities σ: their derivatives, kinks and Hermite coefficients, and their names.

mod formula;
mod linear_pieces;
mod lists;
mod names;
mod piecewise;
mod polynomial;
mod recognise;
mod smooth;

pub use formula::Formula;
pub use linear_pieces::LinearPieces;
pub use names::{ActivationError, catalogue, parse};
pub use piecewise::{Abs, PiecewiseLinear, Relu};
pub use polynomial::{HermitePolynomial, Polynomial};
pub use smooth::{Erf, Gelu, Linear, Sigmoid, Tanh};

use std::borrow::Cow;

/// A point where the slope of σ jumps, a Dirac term of weight `jump` in σ″, or where only σ″ jumps and `jump` is 0.
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
    /// σ(z) = |z|.
    Abs,
    /// σ(z) = above·z for z > 0, below·z for z < 0, other than the two above.
    PiecewiseLinear {
        /// Slope on the negative side.
        below: f64,
        /// Slope on the positive side.
        above: f64,
    },
    /// Monomial coefficients, low to high.
    Polynomial(Vec<f64>),
    /// Anything else.
    General,
}

impl Form {
    /// The slopes below and above 0 of a unit that is linear on either side.
    pub fn sides(&self) -> Option<[f64; 2]> {
        match *self {
            Self::Linear => Some([1.0, 1.0]),
            Self::Relu => Some([0.0, 1.0]),
            Self::Abs => Some([-1.0, 1.0]),
            Self::PiecewiseLinear { below, above } => Some([below, above]),
            Self::Erf { .. } | Self::Polynomial(_) | Self::General => None,
        }
    }
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

    /// Where the slope or the curvature jumps, ascending.
    fn kinks(&self) -> &[Kink] {
        &[]
    }

    /// Whether the slope itself jumps somewhere.
    fn slope_jumps(&self) -> bool {
        self.kinks().iter().any(|kink| kink.jump != 0.0)
    }

    /// What closed forms need to know.
    fn form(&self) -> Form {
        Form::General
    }

    /// The pieces of a σ that is linear between a few kinks.
    fn linear_pieces(&self) -> Option<Cow<'_, LinearPieces>> {
        LinearPieces::of_form(&self.form()).map(Cow::Owned)
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

    /// (σ, σ′, σ″) at once; override where it is cheaper.
    fn jet(&self, z: f64) -> (f64, f64, f64) {
        (self.value(z), self.slope(z), self.curvature(z))
    }

    /// (σ, σ′, σ″) of many arguments; override where the loop can be vectorised (equal to [`jet`](Self::jet) up to rounding).
    fn jets(&self, z: &[f64], value: &mut [f64], slope: &mut [f64], curvature: &mut [f64]) {
        for (i, &z) in z.iter().enumerate() {
            (value[i], slope[i], curvature[i]) = self.jet(z);
        }
    }

    /// σ of every entry, in place: one dynamic call for many units, and a loop that the compiler sees whole.
    fn values(&self, z: &mut [f64]) {
        for z in z {
            *z = self.value(*z);
        }
    }

    /// σ of every entry, in place, and σ′ in `slopes`.
    fn values_and_slopes(&self, z: &mut [f64], slopes: &mut [f64]) {
        for (z, slope) in z.iter_mut().zip(slopes) {
            (*z, *slope) = self.value_and_slope(*z);
        }
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

/// [`Activation::jets`] of an activation whose values and slopes are computed over lists, from (z, σ, σ′) ↦ σ″.
fn jets_by_lists(
    activation: &impl Activation,
    z: &[f64],
    [value, slope, curvature]: [&mut [f64]; 3],
    second: impl Fn(f64, f64, f64) -> f64,
) {
    value.copy_from_slice(z);
    activation.values_and_slopes(value, slope);
    for (i, curvature) in curvature.iter_mut().enumerate() {
        *curvature = second(z[i], value[i], slope[i]);
    }
}

#[cfg(test)]
mod tests;
