//! The trapezoidal product rule on a ball: E[f(x)], x ~ N(0, 1) in up to three dimensions.
//!
//! It converges exponentially for functions that are analytic in a strip, which losses of residuals are, where Gauss-Hermite nodes
//! would be spread too thin around the singularities near the real axis.

use didact_math::gauss::normal::density;

/// Dimensions that a product rule can afford.
pub(super) const MOST: usize = 3;
/// The ball: P(|x| > 9) < 1e-16 in three dimensions.
const RADIUS: f64 = 9.0;

/// Calls `visit(x, weight)` at every node of spacing h in the ball.
pub(super) fn visit(dimension: usize, spacing: f64, mut visit: impl FnMut(&[f64], f64)) {
    let side = (RADIUS / spacing).floor() as i64;
    let axis: Vec<(f64, f64)> = (-side..=side)
        .map(|i| {
            let x = i as f64 * spacing;
            (x, spacing * density(x))
        })
        .collect();
    let mut x = [0.0; MOST];
    descend(&axis, &mut x, 0, dimension, 1.0, 0.0, &mut visit);
}

fn descend(
    axis: &[(f64, f64)],
    x: &mut [f64; MOST],
    level: usize,
    dimension: usize,
    weight: f64,
    square: f64,
    visit: &mut impl FnMut(&[f64], f64),
) {
    if level == dimension {
        visit(&x[..dimension], weight);
        return;
    }
    for &(value, share) in axis {
        let square = square + value * value;
        if square <= RADIUS * RADIUS {
            x[level] = value;
            descend(axis, x, level + 1, dimension, weight * share, square, visit);
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn moments_of_the_normal_law_are_exact() {
        for dimension in 1..=3 {
            let (mut mass, mut fourth) = (0.0, 0.0);
            super::visit(dimension, 0.2, |x, weight| {
                mass += weight;
                fourth += weight * x[dimension - 1].powi(4);
            });
            assert!(
                (mass - 1.0).abs() < 1e-12 && (fourth - 3.0).abs() < 1e-11,
                "{dimension}: {mass} {fourth}"
            );
        }
    }
}
