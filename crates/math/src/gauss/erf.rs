//! Closed Gaussian averages of g(z) = erf(z/√2), the Saad-Solla integrals.
//!
//! D. Saad and S. Solla, Phys. Rev. E 52, 4225 (1995); derived in docs/derivations/power-law-spectra.md#s3-1. C is the
//! covariance of the fields in the order in which they are listed; repeated fields (a singular C) need no special care.
//! Another unit erf(s z) is g(√2 s z), so it is covered by [`rescaled`] with factors √2 s, times one factor √2 s per
//! derivative of that field.

use std::f64::consts::{FRAC_2_PI, PI};

/// Covariance of (f₁z₁, f₂z₂, …).
pub fn rescaled<const N: usize>(c: &[[f64; N]; N], factors: [f64; N]) -> [[f64; N]; N] {
    std::array::from_fn(|i| std::array::from_fn(|j| factors[i] * factors[j] * c[i][j]))
}

/// I2 = E[g(z₁) g(z₂)] = (2/π) asin( C₁₂/√((1+C₁₁)(1+C₂₂)) ).
pub fn i2(c: &[[f64; 2]; 2]) -> f64 {
    FRAC_2_PI * arcsine(c[0][1] / ((1.0 + c[0][0]) * (1.0 + c[1][1])).sqrt())
}

/// E[g′(z₁) g′(z₂)] = (2/π)/√((1+C₁₁)(1+C₂₂) − C₁₂²).
pub fn slope_slope(c: &[[f64; 2]; 2]) -> f64 {
    FRAC_2_PI / determinant(c).sqrt()
}

/// E[g″(z₁) g(z₂)] = −(2/π) C₁₂/( (1+C₁₁) √((1+C₁₁)(1+C₂₂) − C₁₂²) ).
pub fn curvature_value(c: &[[f64; 2]; 2]) -> f64 {
    -FRAC_2_PI * c[0][1] / ((1.0 + c[0][0]) * determinant(c).sqrt())
}

/// I3 = E[g′(z₁) z₂ g(z₃)] = (2/π) [C₂₃(1+C₁₁) − C₁₂C₁₃]/( (1+C₁₁) √((1+C₁₁)(1+C₃₃) − C₁₃²) ).
pub fn i3(c: &[[f64; 3]; 3]) -> f64 {
    let first = 1.0 + c[0][0];
    let lambda3 = first * (1.0 + c[2][2]) - c[0][2] * c[0][2];
    FRAC_2_PI * (c[1][2] * first - c[0][1] * c[0][2]) / (first * lambda3.sqrt())
}

/// I4 = E[g′(z₁) g′(z₂) g(z₃) g(z₄)] = (4/π²) Λ₄^{−1/2} asin( Λ₀/√(Λ₁Λ₂) ).
pub fn i4(c: &[[f64; 4]; 4]) -> f64 {
    let (first, second) = (1.0 + c[0][0], 1.0 + c[1][1]);
    let lambda4 = first * second - c[0][1] * c[0][1];
    // What conditioning on the two slopes takes from the covariance of fields i and j, times Λ₄.
    let taken = |i: usize, j: usize| {
        first * c[1][i] * c[1][j] + second * c[0][i] * c[0][j]
            - c[0][1] * (c[0][i] * c[1][j] + c[0][j] * c[1][i])
    };
    let lambda0 = lambda4 * c[2][3] - taken(2, 3);
    let lambda1 = lambda4 * (1.0 + c[2][2]) - taken(2, 2);
    let lambda2 = lambda4 * (1.0 + c[3][3]) - taken(3, 3);
    4.0 / (PI * PI * lambda4.sqrt()) * arcsine(lambda0 / (lambda1 * lambda2).sqrt())
}

fn determinant(c: &[[f64; 2]; 2]) -> f64 {
    (1.0 + c[0][0]) * (1.0 + c[1][1]) - c[0][1] * c[0][1]
}

/// Rounding may push a correlation past ±1.
fn arcsine(x: f64) -> f64 {
    x.clamp(-1.0, 1.0).asin()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gauss::quadrature::gauss_hermite;
    use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

    /// Golden case G-erf-1 (independent code, 40⁴-point quadrature).
    const GOLDEN: [[f64; 4]; 4] =
        [[1.2, 0.3, 0.2, -0.1], [0.3, 0.9, 0.25, 0.15], [0.2, 0.25, 1.1, 0.4], [-0.1, 0.15, 0.4, 0.7]];

    fn part<const N: usize>(fields: [usize; N]) -> [[f64; N]; N] {
        fields.map(|i| fields.map(|j| GOLDEN[i][j]))
    }

    #[test]
    fn integrals_match_the_golden_case() {
        let got = [i2(&part([0, 1])), i3(&part([0, 1, 2])), i4(&GOLDEN)];
        let expected = [0.09375278155089423, 0.06625532416473005, 0.042306900522928306];
        for (got, expected) in got.into_iter().zip(expected) {
            assert!((got / expected - 1.0).abs() < 1e-14, "{got} {expected}");
        }
    }

    fn g(z: f64) -> [f64; 3] {
        let slope = FRAC_2_SQRT_PI * FRAC_1_SQRT_2 * (-0.5 * z * z).exp();
        [libm::erf(z * FRAC_1_SQRT_2), slope, -z * slope]
    }

    /// Brute force: E[f] over (z₁, z₂) with covariance c on a 60² grid.
    fn brute(c: &[[f64; 2]; 2], f: impl Fn(f64, f64) -> f64) -> f64 {
        let rule = gauss_hermite(60);
        let (l11, l21) = (c[0][0].sqrt(), c[0][1] / c[0][0].sqrt());
        let l22 = (c[1][1] - l21 * l21).max(0.0).sqrt();
        rule.average(|x| rule.average(|y| f(l11 * x, l21 * x + l22 * y)))
    }

    #[test]
    fn two_field_averages_match_quadrature() {
        for c in [[[1.2, 0.3], [0.3, 0.9]], [[0.5, -0.4], [-0.4, 0.6]], [[0.4, 0.4], [0.4, 0.4]]] {
            assert!((i2(&c) - brute(&c, |a, b| g(a)[0] * g(b)[0])).abs() < 1e-13);
            assert!((slope_slope(&c) - brute(&c, |a, b| g(a)[1] * g(b)[1])).abs() < 1e-13);
            assert!((curvature_value(&c) - brute(&c, |a, b| g(a)[2] * g(b)[0])).abs() < 1e-13);
        }
    }

    #[test]
    fn repeated_fields_reduce_to_two_field_quadrature() {
        let c: [[f64; 2]; 2] = [[0.5, 0.2], [0.2, 0.6]];
        let spread = |fields: [usize; 4]| fields.map(|i| fields.map(|j| c[i][j]));
        let cases: [[usize; 4]; 4] = [[0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 1], [1, 1, 1, 1]];
        for fields in cases {
            let exact = brute(&c, |a, b| {
                let z = [a, b];
                let [i, j, k, l] = fields.map(|i| g(z[i]));
                i[1] * j[1] * k[0] * l[0]
            });
            assert!((i4(&spread(fields)) - exact).abs() < 1e-13, "{fields:?}");
        }
    }

    #[test]
    fn scales_enter_through_the_covariance() {
        // E[erf(s a) erf(t b)] with (s, t) = (1, 0.4).
        let c = [[0.3, 0.1], [0.1, 0.5]];
        let root = 2f64.sqrt();
        let got = i2(&rescaled(&c, [root, 0.4 * root]));
        assert!((got - brute(&c, |a, b| libm::erf(a) * libm::erf(0.4 * b))).abs() < 1e-13);
    }
}
