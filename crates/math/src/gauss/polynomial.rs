//! Averages of products of polynomials of a few Gaussian fields, exact to rounding.

use super::quadrature::gauss_hermite;
use crate::linalg::{Mat, cholesky_psd};

/// E[Π_k p_k(z_k)] for fields of the given covariance; `polynomials[k]` holds monomial coefficients, low to high.
///
/// A product of n-node Gauss-Hermite rules integrates polynomials of degree 2n − 1 in every coordinate exactly; fields
/// are lower-triangular combinations of independent coordinates, as many as the rank.
///
/// # Panics
/// When the covariance is not positive semi-definite.
pub fn product(covariance: &Mat, polynomials: &[&[f64]]) -> f64 {
    let lower = cholesky_psd(covariance).expect("a covariance is positive semi-definite");
    let coordinates: Vec<usize> = (0..lower.rows()).filter(|&j| lower[(j, j)] > 0.0).collect();
    let degree: usize = polynomials.iter().map(|p| p.len().saturating_sub(1)).sum();
    let rule = gauss_hermite(degree / 2 + 1);
    let mut fields = vec![0.0; polynomials.len()];
    sum(&lower, &coordinates, &rule.nodes, &rule.weights, polynomials, &mut fields)
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

    #[test]
    fn dependent_fields_are_one_coordinate() {
        let c = Mat::from_fn(2, 2, |_, _| 2.0);
        let fourth = [0.0, 0.0, 0.0, 0.0, 1.0];
        // E[z⁸] = 105 σ⁸.
        assert!((product(&c, &[&fourth, &fourth]) / (105.0 * 16.0) - 1.0).abs() < 1e-13);
    }
}
