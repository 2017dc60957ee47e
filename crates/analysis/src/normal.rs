//! The upper tail of the normal law and its inverse, to full accuracy far into the tail.

use std::f64::consts::{PI, SQRT_2};

/// P(Z > z) for Z ~ N(0, 1).
pub(crate) fn normal_upper_tail(z: f64) -> f64 {
    0.5 * libm::erfc(z / SQRT_2)
}

/// The z with P(Z ≤ z) = `probability`; ∓∞ at 0 and 1, NaN outside.
///
/// Start from the rational approximation 26.2.23 of Abramowitz & Stegun (error below 4.5e-4), then Halley's
/// iteration on the tail: with u = (Q(z) − q)/φ(z), z ← z + u/(1 − z u/2), which triples the digits each
/// time.
pub(crate) fn normal_quantile(probability: f64) -> f64 {
    let tail = probability.min(1.0 - probability);
    if tail.is_nan() || tail <= 0.0 {
        return match probability {
            0.0 => f64::NEG_INFINITY,
            1.0 => f64::INFINITY,
            _ => f64::NAN,
        };
    }
    let t = (-2.0 * tail.ln()).sqrt();
    let top = 2.515517 + t * (0.802853 + t * 0.010328);
    let bottom = 1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308));
    let mut z = t - top / bottom;
    for _ in 0..3 {
        let density = (-0.5 * z * z).exp() / (2.0 * PI).sqrt();
        let u = (normal_upper_tail(z) - tail) / density;
        z += u / (1.0 - 0.5 * z * u);
    }
    if probability < 0.5 { -z } else { z }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_ends_of_the_quantile_are_exact() {
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(normal_quantile(1.0), f64::INFINITY);
        assert!(normal_quantile(1.5).is_nan() && normal_quantile(f64::NAN).is_nan());
        assert!(normal_quantile(0.5).abs() < 1e-16);
    }

    proptest! {
        #[test]
        fn the_quantile_inverts_the_tail(exponent in -250.0..-0.31f64) {
            let tail = 10f64.powf(exponent);
            let z = normal_quantile(tail);
            // The condition number of the tail is about z²; erfc itself has a few units in the last place.
            prop_assert!((normal_upper_tail(-z) / tail - 1.0).abs() < 1e-15 * (10.0 + z * z));
        }
    }
}
