//! The first Hermite coefficients of an activation with kinks, and what they leave out of the average of a pair.
//!
//!   E[a(u) b(v)] = Σ_k a_k b_k ρ^k,      |Σ_{k ≥ n} a_k b_k ρ^k| ≤ |ρ|^n ( (E(a²) − Σ_{k<n} a_k²) (E(b²) − Σ_{k<n} b_k²) )^{1/2}.
//!
//! A kink makes a_k² fall like k^{−5/2}, so that a complete series ([`super::series`]) would be too long; a hundred terms give six digits
//! of fields that are not nearly parallel.

use super::quadrature::GaussianRule;
use super::series::next_order;
use crate::activation::Activation;

/// Coefficients that are kept.
const TERMS: usize = 128;
/// Panels that resolve the last of them: three and a half wavelengths 2π/√128 on 16 nodes.
const PANEL: f64 = 2.0;
/// |h_k(z)| φ(z) ≤ e^{−z²/4} = 1.4e-8 here, whatever k.
const REACH: f64 = 8.5;
/// Error of the sums over nodes, relative to the size of a pair average.
const ROUNDING: f64 = 3e-8;
/// Numbers in a vector register.
const LANES: usize = 4;

/// The first coefficients E[σ(√r z) h_k(z)] of one field.
#[derive(Debug, Clone)]
pub struct TruncatedSeries {
    variance: f64,
    value: Vec<f64>,
    square: f64,
    /// E[σ²] less the squares of the coefficients.
    rest: f64,
}

impl TruncatedSeries {
    /// The series of σ(√r z).
    pub fn of(activation: &dyn Activation, variance: f64) -> Self {
        let deviation = variance.max(0.0).sqrt();
        let kinks = activation.kinks();
        let breaks: Vec<f64> =
            kinks.iter().map(|kink| kink.at / deviation).filter(|z| z.is_finite()).collect();
        let GaussianRule { mut nodes, mut weights } = GaussianRule::panels(&breaks, PANEL, REACH);
        let count = nodes.len().next_multiple_of(LANES);
        nodes.resize(count, 0.0);
        weights.resize(count, 0.0);
        let mut samples: Vec<f64> = nodes.iter().map(|z| deviation * z).collect();
        activation.values(&mut samples);
        let square = weights.iter().zip(&samples).map(|(w, s)| w * s * s).sum();
        samples.iter_mut().zip(&weights).for_each(|(s, w)| *s *= w);
        let mut value = vec![samples.iter().sum()];
        let (mut now, mut before) = (vec![1.0; count], vec![0.0; count]);
        for k in 1..TERMS {
            let (up, down) = (1.0 / (k as f64).sqrt(), ((k - 1) as f64 / k as f64).sqrt());
            value.push(next_order(&nodes, &now, &mut before, up, down, &samples));
            std::mem::swap(&mut now, &mut before);
        }
        let known: f64 = value.iter().map(|c| c * c).sum();
        Self { variance, value, square, rest: (square - known).max(0.0) }
    }

    /// E[σ(√r z)²].
    pub fn square(&self) -> f64 {
        self.square
    }

    /// E[a(u) b(v)] of fields with this covariance, and a bound on its error.
    pub fn product(&self, other: &Self, covariance: f64) -> (f64, f64) {
        let size = (self.variance * other.variance).sqrt();
        let rho = if size > 0.0 { (covariance / size).clamp(-1.0, 1.0) } else { 0.0 };
        let sum = self.value.iter().zip(&other.value).rev().fold(0.0, |sum, (a, b)| rho * sum + a * b);
        let left_out = rho.abs().powi(TERMS as i32) * (self.rest * other.rest).sqrt();
        (sum, left_out + ROUNDING * (self.square * other.square).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activation::parse;
    use crate::gauss::pair_averages;

    #[test]
    fn products_are_within_their_bound() {
        for (a, b) in [
            ("max(x,0)", "max(x,0)"),
            ("tanh(max(x,0))", "abs(tanh(x))+0.2*x"),
            ("max(x-0.4,0)^2", "tanh(max(x,0))"),
        ] {
            let (a, b) = (parse(a).unwrap(), parse(b).unwrap());
            let mut close = 0;
            for (c, d) in [(0.3, 1.0), (1.7, 0.6)] {
                let (first, second) =
                    (TruncatedSeries::of(a.as_ref(), c), TruncatedSeries::of(b.as_ref(), d));
                for rho in [0.0, -0.5, 0.9, 0.99, 1.0] {
                    let covariance = rho * f64::sqrt(c * d);
                    let exact = pair_averages(a.as_ref(), b.as_ref(), &[[c, covariance], [covariance, d]]);
                    let (got, bound) = first.product(&second, covariance);
                    let off = (got - exact.value_value).abs();
                    assert!(off <= bound, "{rho}: off by {off:e}, bound {bound:e}");
                    close += usize::from(bound < 1e-6);
                }
            }
            assert!(close >= 6, "{close} of 10 are good to six digits");
        }
    }
}
