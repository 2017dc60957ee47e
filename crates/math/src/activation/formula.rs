//! Activations given by a formula in x (or z).

use super::{Activation, ActivationError, Form, Kink, LinearPieces};
use crate::expression::Expression;
use crate::gauss::GaussianRule;
use crate::gauss::quadrature::{HERMITE_REACH, REACH};
use std::borrow::Cow;

/// σ(z) given by a formula; derivatives are exact, kinks are found.
#[derive(Clone, Debug)]
pub struct Formula {
    expression: Expression,
    kinks: Vec<Kink>,
    resolution: f64,
    linear_pieces: Option<LinearPieces>,
}

impl Formula {
    /// Accepts a continuous formula of one variable that is finite on |z| ≤ 9.
    pub fn new(expression: Expression) -> Result<Self, ActivationError> {
        assert_eq!(expression.variables().len(), 1, "an activation has one variable");
        let breaks = expression.breaks();
        if let Some(jump) = breaks.iter().find(|b| b.value_jump != 0.0) {
            return Err(ActivationError::Jump {
                formula: expression.text().to_owned(),
                at: jump.at,
                size: jump.value_jump,
            });
        }
        let mut kinks: Vec<Kink> = breaks.iter().map(|b| Kink { at: b.at, jump: b.slope_jump }).collect();
        // Sums that do not end where the curvature jumps are off by the third power of their spacing.
        kinks.extend(expression.curvature_breaks().into_iter().map(|at| Kink { at, jump: 0.0 }));
        kinks.sort_by(|a, b| a.at.total_cmp(&b.at));
        let mut formula = Self { expression, kinks, resolution: COARSEST, linear_pieces: None };
        formula.resolution = formula.measure()?;
        formula.linear_pieces = LinearPieces::of(&formula);
        Ok(formula)
    }

    /// The coarsest spacing whose trapezoidal (or panel) averages of σ² and σ′² no longer change.
    ///
    /// Sums go farther out than averages need to: where they end, a function that grows as eˣ still has some weight at |z| = 9, and sums
    /// of different spacing would differ by what is missing beyond it, not because they do not resolve the function.
    fn measure(&self) -> Result<f64, ActivationError> {
        let at: Vec<f64> = self.kinks.iter().map(|kink| kink.at).collect();
        let average = |spacing: f64| {
            let rule = if at.is_empty() {
                GaussianRule::trapezoid(spacing, HERMITE_REACH)
            } else {
                GaussianRule::panels(&at, 5.0 * spacing, HERMITE_REACH)
            };
            let mut sums = [0.0; 2];
            for (&z, w) in rule.nodes.iter().zip(&rule.weights) {
                let (value, slope, _) = self.jet(z);
                if z.abs() > REACH && !(value.is_finite() && slope.is_finite()) {
                    continue;
                }
                if !value.is_finite() {
                    return Err(ActivationError::NotFinite { formula: self.name(), at: z, value });
                }
                sums[0] += w * value * value;
                sums[1] += w * slope * slope;
            }
            Ok(sums)
        };
        let mut spacing = COARSEST;
        let mut coarse = average(spacing)?;
        while spacing > FINEST {
            let fine = average(0.5 * spacing)?;
            if coarse.iter().zip(fine).all(|(a, b)| (a - b).abs() <= 1e-13 * (1.0 + b.abs())) {
                break;
            }
            (spacing, coarse) = (0.5 * spacing, fine);
        }
        if coarse[0].is_nan() || coarse[0] > LARGEST_SQUARE || self.outgrows_a_gaussian() {
            return Err(ActivationError::Growth { formula: self.name() });
        }
        Ok(spacing)
    }

    /// Whether σ(z)² e^{−z²/2} still grows far out, on either side.
    fn outgrows_a_gaussian(&self) -> bool {
        let logarithm = |z: f64| 2.0 * self.value(z).abs().ln() - 0.5 * z * z;
        [1.0, -1.0].iter().any(|sign| {
            let (near, far) = (logarithm(20.0 * sign), logarithm(26.0 * sign));
            far > 0.0 && far >= near
        })
    }
}

/// Mean square over Gaussian inputs; products of several such means are still finite numbers.
const LARGEST_SQUARE: f64 = 1e60;

/// Values that are computed together.
const LIST: usize = 128;
const COARSEST: f64 = 0.3;
/// A pole closer to the real line than about 0.01 is not resolved.
const FINEST: f64 = 0.3 / 64.0;

impl Activation for Formula {
    fn name(&self) -> String {
        self.expression.text().to_owned()
    }
    fn value(&self, z: f64) -> f64 {
        self.expression.value(&[z])
    }
    fn slope(&self, z: f64) -> f64 {
        self.expression.jet(&[z], 0).slope
    }
    fn curvature(&self, z: f64) -> f64 {
        self.expression.jet(&[z], 0).curvature
    }
    fn kinks(&self) -> &[Kink] {
        &self.kinks
    }
    fn form(&self) -> Form {
        Form::General
    }
    fn linear_pieces(&self) -> Option<Cow<'_, LinearPieces>> {
        self.linear_pieces.as_ref().map(Cow::Borrowed)
    }
    fn jet(&self, z: f64) -> (f64, f64, f64) {
        let jet = self.expression.jet(&[z], 0);
        (jet.value, jet.slope, jet.curvature)
    }
    fn values(&self, z: &mut [f64]) {
        let mut out = [0.0; LIST];
        for z in z.chunks_mut(LIST) {
            let out = &mut out[..z.len()];
            self.expression.values(&[z], out);
            z.copy_from_slice(out);
        }
    }
    fn resolution(&self) -> f64 {
        self.resolution
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    /// Sums over exp(x) were never found to have converged, because of what they lack beyond their reach, and all averages took the
    /// finest of all grids: minutes where they should take a second.
    #[test]
    fn functions_that_grow_are_not_taken_for_steep_ones() {
        for (formula, expected) in [
            ("exp(x)", 0.3),
            ("exp(x) - x", 0.3),
            ("exp(0.5*x) + x^2", 0.3),
            ("exp(-1.5*x)", 0.3),
            ("sin(x)", 0.3),
        ] {
            assert_eq!(parse(formula).unwrap().resolution(), expected, "{formula}");
        }
        assert!(parse("tanh(20*x)").unwrap().resolution() < 0.02);
    }
}
