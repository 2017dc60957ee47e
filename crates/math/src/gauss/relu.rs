//! Closed Gaussian averages of ReLU units: z₊ = max(z, 0), its slope θ(z) and its curvature δ(z).
//!
//! C is the covariance of the fields in the order in which they are listed. Singular covariances (repeated,
//! opposite or vanishing fields) are exact: parallel fields are merged first, a vanishing field has θ = 1/2.
//! Two fields: Y. Cho and L. Saul, NeurIPS 2009. More fields follow from Stein's lemma, see `orthant`.

use std::f64::consts::{FRAC_1_PI, FRAC_PI_2};

use super::orthant::Product;

/// E[z₁₊ z₂₊] = [√(C₁₁C₂₂ − C₁₂²) + C₁₂ (π/2 + asin ρ)]/2π.
pub fn value_value(c: &[[f64; 2]; 2]) -> f64 {
    let (root, angle) = polar(c);
    0.5 * FRAC_1_PI * (root + c[0][1] * (FRAC_PI_2 + angle))
}

/// E[θ(z₁) θ(z₂)] = 1/4 + asin ρ/2π.
pub fn slope_slope(c: &[[f64; 2]; 2]) -> f64 {
    0.25 + 0.5 * FRAC_1_PI * polar(c).1
}

/// E[δ(z₁) z₂₊] = √(C₁₁C₂₂ − C₁₂²)/(2π C₁₁); 0 if z₁ vanishes (its limit when z₂ vanishes with it).
pub fn curvature_value(c: &[[f64; 2]; 2]) -> f64 {
    if c[0][0] == 0.0 { 0.0 } else { 0.5 * FRAC_1_PI * polar(c).0 / c[0][0] }
}

/// I3 = E[θ(z₁) z₂ z₃₊] = C₁₂ E[δ(z₁) z₃₊] + C₂₃ E[θ(z₁) θ(z₃)].
pub fn i3(c: &[[f64; 3]; 3]) -> f64 {
    let outer = [[c[0][0], c[0][2]], [c[0][2], c[2][2]]];
    c[0][1] * curvature_value(&outer) + c[1][2] * slope_slope(&outer)
}

/// I4 = E[θ(z₁) θ(z₂) z₃₊ z₄₊]. Elementary if two fields are parallel; otherwise one 53-point integral, the orthant
/// probability of the four fields, is left.
pub fn i4(c: &[[f64; 4]; 4]) -> f64 {
    Product::new(c, [0, 0, 1, 1]).mean()
}

/// E[θ(z₁) θ(z₂) z₃₊].
pub fn step_step_value(c: &[[f64; 3]; 3]) -> f64 {
    Product::new(c, [0, 0, 1]).mean()
}

/// E[θ(z₁) z₂₊ z₃₊].
pub fn step_value_value(c: &[[f64; 3]; 3]) -> f64 {
    Product::new(c, [0, 1, 1]).mean()
}

/// E[θ(z₁) θ(z₂) (z₃₊)²].
pub fn step_step_square(c: &[[f64; 3]; 3]) -> f64 {
    Product::new(c, [0, 0, 2]).mean()
}

/// P(z₁, z₂, z₃ > 0) = 1/8 + Σ asin ρ/4π.
pub fn orthant3(c: &[[f64; 3]; 3]) -> f64 {
    Product::new(c, [0, 0, 0]).mean()
}

/// P(z₁, z₂, z₃, z₄ > 0), by Plackett's one-dimensional integral: a test of faster ways. Not for two pairs of nearly (not exactly) parallel
/// fields, where the determinants along its path lose their digits and it may be off by several per cent.
pub fn orthant4(c: &[[f64; 4]; 4]) -> f64 {
    Product::new(c, [0, 0, 0, 0]).mean()
}

/// (√det C, asin ρ), both without division by a variance that may vanish.
fn polar(c: &[[f64; 2]; 2]) -> (f64, f64) {
    let product = c[0][0] * c[1][1];
    let determinant = product - c[0][1] * c[0][1];
    // Below rounding the fields are parallel; the root would turn 1e-16 into 1e-8.
    let root = if determinant <= 4.0 * f64::EPSILON * product { 0.0 } else { determinant.sqrt() };
    (root, c[0][1].atan2(root))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gauss::normal;
    use proptest::prelude::*;

    type Factor = [u8; 4];

    /// L with L Lᵀ = C (a zero pivot leaves a zero column).
    fn cholesky<const N: usize>(c: &[[f64; N]; N]) -> [[f64; N]; N] {
        let mut l = [[0.0; N]; N];
        for j in 0..N {
            let pivot = c[j][j] - (0..j).map(|k| l[j][k] * l[j][k]).sum::<f64>();
            l[j][j] = if pivot < 1e-12 { 0.0 } else { pivot.sqrt() };
            for i in j + 1..N {
                let rest = c[i][j] - (0..j).map(|k| l[i][k] * l[j][k]).sum::<f64>();
                l[i][j] = if l[j][j] == 0.0 { 0.0 } else { rest / l[j][j] };
            }
        }
        l
    }

    /// Brute force by polar coordinates in the plane: fields z_i = r (l_i · n(φ)), E[r^{p+1} …] in closed form, and the
    /// angle by a fine midpoint rule. For four fields of rank 2: slow, independent, obvious.
    fn planar(rows: &[[f64; 2]], powers: &[u8]) -> f64 {
        let total: u8 = powers.iter().sum();
        // ∫ r^{p+1} e^{−r²/2} dr: 1, √(π/2), 2 for p = 0, 1, 2.
        let radial = [1.0, FRAC_PI_2.sqrt(), 2.0][usize::from(total)];
        let n = 2_000_000;
        let sum: f64 = (0..n)
            .map(|i| {
                let angle = (f64::from(i) + 0.5) / f64::from(n) * 4.0 * FRAC_PI_2;
                rows.iter()
                    .zip(powers)
                    .map(|(row, &p)| {
                        let z = row[0] * angle.cos() + row[1] * angle.sin();
                        if z > 0.0 { z.powi(i32::from(p)) } else { 0.0 }
                    })
                    .product::<f64>()
            })
            .sum();
        radial * sum / f64::from(n)
    }

    fn gram<const N: usize, const D: usize>(rows: &[[f64; D]; N]) -> [[f64; N]; N] {
        rows.map(|a| rows.map(|b| a.iter().zip(b).map(|(x, y)| x * y).sum()))
    }

    /// The same average by quasi-Monte Carlo, with its standard error.
    fn lattice_mean<const N: usize>(c: &[[f64; N]; N], powers: Factor) -> (f64, f64) {
        let l = cholesky(c);
        let average =
            crate::gauss::expectation::quasi_monte_carlo(N, 1, 1 << 21, &mut |x: &[f64], out: &mut [f64]| {
                out[0] = (0..N)
                    .map(|i| {
                        let z: f64 = (0..=i).map(|k| l[i][k] * x[k]).sum();
                        if z > 0.0 { z.powi(i32::from(powers[i])) } else { 0.0 }
                    })
                    .product();
            });
        (average.mean[0], average.error[0])
    }

    const C: [[f64; 4]; 4] =
        [[1.2, 0.3, 0.2, -0.1], [0.3, 0.9, 0.25, 0.15], [0.2, 0.25, 1.1, 0.4], [-0.1, 0.15, 0.4, 0.7]];

    fn part<const N: usize>(fields: [usize; N]) -> [[f64; N]; N] {
        fields.map(|i| fields.map(|j| C[i][j]))
    }

    #[test]
    fn two_fields_match_the_general_recursion_and_known_limits() {
        for c in [part([0, 1]), part([0, 3]), [[1.0, -0.99], [-0.99, 1.0]], [[2.0, 1.0], [1.0, 0.5]]] {
            assert!((value_value(&c) - Product::new(&c, [1, 1]).mean()).abs() < 1e-15);
            assert!((slope_slope(&c) - Product::new(&c, [0, 0]).mean()).abs() < 1e-15);
        }
        assert_eq!(value_value(&[[2.0, 2.0], [2.0, 2.0]]), 1.0); // E[z₊²] = C/2
        assert_eq!(slope_slope(&[[2.0, -2.0], [-2.0, 2.0]]), 0.0);
        assert_eq!(slope_slope(&[[0.0, 0.0], [0.0, 2.0]]), 0.25);
        assert_eq!(curvature_value(&[[0.0, 0.0], [0.0, 2.0]]), 0.0);
        // E[δ(z₁) z₂₊] for independent fields: φ(0)/√C₁₁ · √(C₂₂/2π).
        let got = curvature_value(&[[0.25, 0.0], [0.0, 4.0]]);
        assert!((got - normal::density(0.0) / 0.5 * 2.0 * normal::density(0.0)).abs() < 1e-15);
    }

    #[test]
    fn rank_two_products_match_the_planar_integral() {
        // Four different directions in a plane: every 3 × 3 minor of C vanishes.
        let rows = [[1.0, 0.2], [-0.3, 1.1], [0.7, 0.6], [0.9, -0.5]];
        let c = gram(&rows);
        for powers in [[0, 0, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 2, 0, 0], [0, 0, 1, 0]] {
            let (got, exact) = (Product::new(&c, powers).mean(), planar(&rows, &powers));
            // The midpoint rule errs by (jumps) × 1/n.
            assert!((got - exact).abs() < 4e-6, "{powers:?}: {got} {exact}");
        }
        let three = [rows[0], rows[1], rows[2]];
        for powers in [[0, 0, 0], [0, 0, 1], [0, 1, 1], [0, 0, 2]] {
            let (got, exact) = (Product::new(&gram(&three), powers).mean(), planar(&three, &powers));
            assert!((got - exact).abs() < 4e-6, "{powers:?}: {got} {exact}");
        }
    }

    #[test]
    fn four_fields_match_quasi_monte_carlo() {
        let strong = gram(&[
            [1.0, 0.2, 0.1, 0.05],
            [0.9, -0.3, 0.2, 0.1],
            [0.8, 0.1, -0.4, 0.3],
            [0.7, 0.3, 0.3, -0.6],
        ]);
        for c in [C, strong] {
            for powers in [[0, 0, 0, 0], [0, 0, 1, 1], [0, 0, 1, 0]] {
                let (mean, error) = lattice_mean(&c, powers);
                let got = Product::new(&c, powers).mean();
                assert!(
                    (got - mean).abs() < 5.0 * error && error < 1e-4,
                    "{powers:?}: {got} {mean} ± {error}"
                );
            }
        }
        let c = part([0, 1, 2]);
        for powers in [[0, 0, 0, 9], [0, 0, 1, 9], [0, 1, 1, 9], [0, 0, 2, 9]] {
            let (mean, error) = lattice_mean(&c, powers);
            let got = Product::new(&c, [powers[0], powers[1], powers[2]]).mean();
            assert!((got - mean).abs() < 5.0 * error && error < 1e-4, "{powers:?}: {got} {mean} ± {error}");
        }
    }

    #[test]
    fn four_independent_fields_factorise() {
        let c: [[f64; 4]; 4] = std::array::from_fn(|i| std::array::from_fn(|j| f64::from(u8::from(i == j))));
        assert!((orthant4(&c) - 1.0 / 16.0).abs() < 1e-16);
        assert!((i4(&c) - 0.25 * normal::density(0.0).powi(2)).abs() < 1e-16);
        // Two independent pairs: P4 = P2 P2 exactly.
        let (a, b) = (0.6, -0.8);
        let pairs = [[1.0, a, 0.0, 0.0], [a, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, b], [0.0, 0.0, b, 1.0]];
        let exact = slope_slope(&[[1.0, a], [a, 1.0]]) * slope_slope(&[[1.0, b], [b, 1.0]]);
        assert!((orthant4(&pairs) - exact).abs() < 1e-15);
        // (z₁, z₃ | z₂, z₄) interleaved: the path integral has work to do.
        let order = [0, 2, 1, 3];
        let mixed = order.map(|i: usize| order.map(|j: usize| pairs[i][j]));
        assert!((orthant4(&mixed) - exact).abs() < 1e-15);
    }

    #[test]
    fn equicorrelated_half_is_one_over_n_plus_one() {
        // ρ = 1/2: zᵢ = xᵢ − x₀ (up to scale), so P(all > 0) = P(x₀ smallest) = 1/5 and 1/4 for three.
        let c: [[f64; 4]; 4] =
            std::array::from_fn(|i| std::array::from_fn(|j| if i == j { 1.0 } else { 0.5 }));
        assert!((orthant4(&c) - 0.2).abs() < 1e-15, "{}", orthant4(&c));
        let c: [[f64; 3]; 3] =
            std::array::from_fn(|i| std::array::from_fn(|j| if i == j { 1.0 } else { 0.5 }));
        assert!((orthant3(&c) - 0.25).abs() < 1e-16);
    }

    #[test]
    fn repeated_fields_reduce_exactly() {
        let spread = |fields: [usize; 4]| fields.map(|i| fields.map(|j| C[i][j]));
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-15, "{a} {b}");
        close(i4(&spread([0, 0, 0, 0])), C[0][0] / 2.0); // θθ z₊ z₊
        close(i4(&spread([0, 1, 0, 1])), value_value(&part([0, 1]))); // θ_i z_i₊ = z_i₊
        close(i4(&spread([0, 0, 1, 2])), step_value_value(&part([0, 1, 2])));
        close(i4(&spread([0, 1, 2, 2])), step_step_square(&part([0, 1, 2])));
        close(i4(&spread([0, 1, 1, 2])), step_value_value(&part([0, 1, 2])));
        close(step_step_value(&part([0, 0, 1])), Product::new(&part([0, 1]), [0, 1]).mean());
        close(i3(&part([0, 1, 1])), step_value_value(&part([0, 1, 1])));
        // Opposite fields are never positive together.
        let c = gram(&[[1.0, 0.0], [-2.0, 0.0], [0.3, 0.4], [0.1, 1.0]]);
        assert_eq!(i4(&c), 0.0);
        // A field that vanishes: θ = 1/2.
        let c = gram(&[[0.0, 0.0], [1.0, 0.5], [0.3, 0.4], [0.1, 1.0]]);
        let rest = gram(&[[1.0, 0.5], [0.3, 0.4], [0.1, 1.0]]);
        close(i4(&c), 0.5 * step_value_value(&rest));
    }

    #[test]
    fn i3_matches_quasi_monte_carlo() {
        let l = cholesky(&part([0, 1, 2]));
        let average =
            crate::gauss::expectation::quasi_monte_carlo(3, 1, 1 << 20, &mut |x: &[f64], out: &mut [f64]| {
                let z: [f64; 3] = std::array::from_fn(|i| (0..=i).map(|k| l[i][k] * x[k]).sum());
                out[0] = if z[0] > 0.0 { z[1] * z[2].max(0.0) } else { 0.0 };
            });
        let got = i3(&part([0, 1, 2]));
        assert!((got - average.mean[0]).abs() < 5.0 * average.error[0] && average.error[0] < 1e-4);
    }

    fn rows() -> impl Strategy<Value = [[f64; 4]; 4]> {
        prop::array::uniform4(prop::array::uniform4(-1.0..1.0f64))
    }

    proptest! {
        /// θ(z) + θ(−z) = 1 and z = z₊ − (−z)₊ link four-field averages to three-field closed forms: an exact check of
        /// the one-dimensional integral, for any covariance (also nearly singular ones).
        #[test]
        fn reflections_add_up(rows in rows()) {
            let c = gram(&rows);
            let flip = |i: usize| {
                let sign = |k: usize| if k == i { -1.0 } else { 1.0 };
                let mut out = c;
                for (a, row) in out.iter_mut().enumerate() {
                    for (b, entry) in row.iter_mut().enumerate() {
                        *entry *= sign(a) * sign(b);
                    }
                }
                out
            };
            let without = |i: usize| -> [[f64; 3]; 3] {
                let keep: [usize; 3] = std::array::from_fn(|k| if k < i { k } else { k + 1 });
                keep.map(|a| keep.map(|b| c[a][b]))
            };
            for i in 0..4 {
                let sum = orthant4(&c) + orthant4(&flip(i));
                prop_assert!((sum - orthant3(&without(i))).abs() < 1e-12, "orthant {i}: {sum}");
            }
            for i in 0..2 {
                let sum = i4(&c) + i4(&flip(i));
                prop_assert!((sum - step_value_value(&without(i))).abs() < 1e-12, "i4 {i}: {sum}");
            }
        }

        #[test]
        fn fields_can_be_exchanged(rows in rows()) {
            let c = gram(&rows);
            let order = |p: [usize; 4]| p.map(|i| p.map(|j| c[i][j]));
            prop_assert!((i4(&c) - i4(&order([1, 0, 3, 2]))).abs() < 1e-12);
            prop_assert!((orthant4(&c) - orthant4(&order([2, 3, 0, 1]))).abs() < 1e-12);
        }
    }
}
