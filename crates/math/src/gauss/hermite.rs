//! Normalised Hermite polynomials h_k = He_k/√k!, orthonormal under N(0, 1), and Hermite coefficients.
//!
//! Everything is written in h_k: no factorial appears, so orders of hundreds do not overflow.

use super::quadrature::{GaussianRule, HERMITE_REACH, LARGEST_RULE, gauss_hermite};
use crate::activation::Activation;

/// h_k(z), by the three-term recurrence h_{k+1} = (z h_k − √k h_{k−1})/√(k+1).
pub fn polynomial(k: usize, z: f64) -> f64 {
    let (mut h, mut before) = (1.0, 0.0);
    for j in 0..k {
        (h, before) = ((z * h - (j as f64).sqrt() * before) / ((j + 1) as f64).sqrt(), h);
    }
    h
}

/// Fills `out` with h_0(z), h_1(z), …
pub fn polynomials(z: f64, out: &mut [f64]) {
    for k in 0..out.len() {
        out[k] = match k {
            0 => 1.0,
            1 => z,
            _ => (z * out[k - 1] - ((k - 1) as f64).sqrt() * out[k - 2]) / (k as f64).sqrt(),
        };
    }
}

/// E[f(z) h_k(z)] under a given rule.
pub fn coefficient(rule: &GaussianRule, k: usize, mut f: impl FnMut(f64) -> f64) -> f64 {
    rule.average(|z| f(z) * polynomial(k, z))
}

/// E[σ(√r z) h_k(z)] by quadrature: the default, and the test of every closed form.
pub fn of_activation<A: Activation + ?Sized>(activation: &A, k: usize, variance: f64) -> f64 {
    let deviation = variance.sqrt();
    let rule = match activation.degree().map(|degree| usize::midpoint(degree, k) + 1) {
        Some(nodes) if nodes <= LARGEST_RULE => gauss_hermite(nodes).clone(),
        _ => GaussianRule::resolving(activation, variance, HERMITE_REACH),
    };
    coefficient(&rule, k, |z| activation.value(deviation * z))
}

/// √(n!/k!) for n ≥ k.
pub fn factorial_ratio_root(n: usize, k: usize) -> f64 {
    (k + 1..=n).map(|i| (i as f64).sqrt()).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_orders_are_the_known_polynomials() {
        let z = 0.8f64;
        assert!((polynomial(2, z) - (z * z - 1.0) / 2f64.sqrt()).abs() < 1e-16);
        assert!((polynomial(3, z) - (z.powi(3) - 3.0 * z) / 6f64.sqrt()).abs() < 4e-16);
        let mut all = [0.0; 50];
        polynomials(z, &mut all);
        for (k, &h) in all.iter().enumerate() {
            assert!((h - polynomial(k, z)).abs() < 1e-14);
        }
    }

    #[test]
    fn exponential_has_known_coefficients_to_high_order() {
        // E[e^{tz} h_k] = t^k e^{t²/2}/√k!
        let rule = GaussianRule::trapezoid(0.2, HERMITE_REACH);
        for k in 0..=60 {
            let exact = (0.5f64).exp() / factorial_ratio_root(k, 0);
            let got = coefficient(&rule, k, f64::exp);
            assert!((got - exact).abs() < 1e-14, "k = {k}: {got} {exact}");
        }
    }
}
