//! Averages of products of polynomials of a few Gaussian fields, exact to rounding.

use super::quadrature::gauss_hermite;
use crate::linalg::{Mat, cholesky_psd, symmetric_eigen};

/// E[Π_k p_k(z_k)] for fields of the given covariance; `polynomials[k]` holds monomial coefficients, low to high.
///
/// A product of n-node Gauss-Hermite rules integrates polynomials of degree 2n − 1 in every coordinate exactly; fields
/// are lower-triangular combinations of independent coordinates, as many as the rank. The average is a polynomial of the
/// covariance, so it goes on where the covariance is not quite positive, as in a stage of an ODE step near a singular
/// one: coordinates of negative variance are then imaginary.
pub fn product(covariance: &Mat, polynomials: &[&[f64]]) -> f64 {
    let degree: usize = polynomials.iter().map(|p| p.len().saturating_sub(1)).sum();
    let rule = gauss_hermite(degree / 2 + 1);
    if let Ok(lower) = cholesky_psd(covariance) {
        let coordinates: Vec<usize> = (0..lower.rows()).filter(|&j| lower[(j, j)] > 0.0).collect();
        let mut fields = vec![0.0; polynomials.len()];
        return sum(&lower, &coordinates, &rule.nodes, &rule.weights, polynomials, &mut fields);
    }
    if !covariance.is_finite() {
        return f64::NAN;
    }
    let eigen = symmetric_eigen(covariance);
    let axis = |k: usize| Axis {
        along: (0..covariance.rows()).map(|i| eigen.vectors[(i, k)] * eigen.values[k].abs().sqrt()).collect(),
        imaginary: eigen.values[k] < 0.0,
    };
    let axes: Vec<Axis> = (0..covariance.rows()).map(axis).collect();
    sum_complex(&axes, &rule.nodes, &rule.weights, polynomials, &mut vec![(0.0, 0.0); polynomials.len()]).0
}

/// A coordinate and what every field has of it.
struct Axis {
    along: Vec<f64>,
    imaginary: bool,
}

/// Sums over the remaining axes.
fn sum_complex(
    axes: &[Axis],
    nodes: &[f64],
    weights: &[f64],
    polynomials: &[&[f64]],
    fields: &mut [(f64, f64)],
) -> (f64, f64) {
    let times = |a: (f64, f64), b: (f64, f64)| (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0);
    let Some((axis, rest)) = axes.split_last() else {
        let value = |p: &&[f64], z: (f64, f64)| {
            p.iter().rev().fold((0.0, 0.0), |sum, c| {
                let (re, im) = times(sum, z);
                (re + c, im)
            })
        };
        return fields.iter().zip(polynomials).map(|(z, p)| value(p, *z)).fold((1.0, 0.0), times);
    };
    let before = fields.to_vec();
    let mut total = (0.0, 0.0);
    for (node, weight) in nodes.iter().zip(weights) {
        for ((z, old), along) in fields.iter_mut().zip(&before).zip(&axis.along) {
            *z = if axis.imaginary { (old.0, old.1 + along * node) } else { (old.0 + along * node, old.1) };
        }
        let (re, im) = sum_complex(rest, nodes, weights, polynomials, fields);
        total = (total.0 + weight * re, total.1 + weight * im);
    }
    fields.copy_from_slice(&before);
    total
}

/// Sums over the remaining coordinates, last first, so that each field is complete when all are fixed.
fn sum(
    lower: &Mat,
    coordinates: &[usize],
    nodes: &[f64],
    weights: &[f64],
    polynomials: &[&[f64]],
    fields: &mut [f64],
) -> f64 {
    let Some((&j, rest)) = coordinates.split_last() else {
        return fields.iter().zip(polynomials).map(|(z, p)| horner(p, *z)).product();
    };
    let before = fields.to_vec();
    let mut total = 0.0;
    for (node, weight) in nodes.iter().zip(weights) {
        for (i, z) in fields.iter_mut().enumerate() {
            *z = before[i] + lower[(i, j)] * node;
        }
        total += weight * sum(lower, rest, nodes, weights, polynomials, fields);
    }
    fields.copy_from_slice(&before);
    total
}

/// The value of a polynomial.
pub fn horner(coefficients: &[f64], z: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, c| sum * z + c)
}

/// Coefficients of the derivative.
pub fn derivative(coefficients: &[f64]) -> Vec<f64> {
    coefficients.iter().enumerate().skip(1).map(|(n, c)| n as f64 * c).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_match_isserlis() {
        let c = Mat::from_rows(&[vec![1.3, 0.4, -0.2], vec![0.4, 0.9, 0.3], vec![-0.2, 0.3, 1.1]]).unwrap();
        let z = [0.0, 1.0];
        let square = [0.0, 0.0, 1.0];
        // E[z1 z2] = C12; E[z1² z2²] = C11 C22 + 2 C12²; E[z1² z2 z3] = C11 C23 + 2 C12 C13.
        assert!((product(&c, &[&z, &z, &[1.0]]) - 0.4).abs() < 1e-14);
        assert!((product(&c, &[&square, &square, &[1.0]]) - (1.3 * 0.9 + 2.0 * 0.16)).abs() < 1e-13);
        assert!((product(&c, &[&square, &z, &z]) - (1.3 * 0.3 + 2.0 * 0.4 * -0.2)).abs() < 1e-13);
    }

    /// Regression: a stage of an ODE step near a perfect student asked for such averages, and they panicked.
    #[test]
    fn averages_go_on_where_the_covariance_is_not_positive() {
        let square = [0.0, 0.0, 1.0];
        let c = Mat::from_rows(&[vec![1.0, 1.2], vec![1.2, 0.9]]).unwrap();
        // E[z1² z2²] = C11 C22 + 2 C12², whatever the sign of the determinant.
        assert!((product(&c, &[&square, &square]) - (0.9 + 2.0 * 1.44)).abs() < 1e-13);
        let cubic = [0.3, 0.0, 0.5, 1.0];
        let near = |excess: f64| {
            let c = Mat::from_rows(&[vec![1.0, 1.0 + excess], vec![1.0 + excess, 1.0]]).unwrap();
            product(&c, &[&cubic, &cubic])
        };
        // Cubic in the excess: the second difference is small on both sides of 0 and across it.
        let h = 1e-3;
        assert!((near(h) - 2.0 * near(0.0) + near(-h)).abs() < 100.0 * h * h);
        assert!(
            (near(2.0 * h) - 3.0 * near(h) + 3.0 * near(0.0) - near(-h) - 36.0 * h * h * h).abs() < 1e-12
        );
    }

    #[test]
    fn dependent_fields_are_one_coordinate() {
        let c = Mat::from_fn(2, 2, |_, _| 2.0);
        let fourth = [0.0, 0.0, 0.0, 0.0, 1.0];
        // E[z⁸] = 105 σ⁸.
        assert!((product(&c, &[&fourth, &fourth]) / (105.0 * 16.0) - 1.0).abs() < 1e-13);
    }
}
