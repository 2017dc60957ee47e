//! The trapezoidal product rule on a ball: E[f(x)], x ~ N(0, 1) in up to three dimensions.
//!
//! It converges exponentially for functions that are analytic in a strip, which losses of residuals are, where Gauss-Hermite nodes
//! would be spread too thin around the singularities near the real axis.

use didact_math::gauss::normal::density;

/// Dimensions that a product rule can afford.
pub(super) const MOST: usize = 3;
/// The ball: P(|x| > 9) < 1e-16 in three dimensions.
const RADIUS: f64 = 9.0;

/// A line of nodes along the last axis.
pub(super) struct Line<'a> {
    /// The other coordinates.
    pub prefix: &'a [f64],
    /// The last coordinate.
    pub last: &'a [f64],
    /// Weights of the nodes.
    pub weights: &'a [f64],
}

/// Calls `visit` for every line of nodes of spacing h in the ball.
pub(super) fn visit(dimension: usize, spacing: f64, mut visit: impl FnMut(&Line)) {
    let side = (RADIUS / spacing).floor() as i64;
    let nodes: Vec<f64> = (-side..=side).map(|i| i as f64 * spacing).collect();
    let shares: Vec<f64> = nodes.iter().map(|x| spacing * density(*x)).collect();
    let mut weights = vec![0.0; nodes.len()];
    let mut prefix = [0.0; MOST];
    let outer = nodes.len().pow(dimension as u32 - 1);
    for code in 0..outer {
        let (mut digits, mut weight, mut square) = (code, 1.0, 0.0);
        // The first coordinate is the slowest.
        for slot in prefix[..dimension - 1].iter_mut().rev() {
            *slot = nodes[digits % nodes.len()];
            weight *= shares[digits % nodes.len()];
            square += *slot * *slot;
            digits /= nodes.len();
        }
        if square > RADIUS * RADIUS {
            continue;
        }
        let reach = ((RADIUS * RADIUS - square).sqrt() / spacing).floor() as i64;
        let range = (side - reach.min(side)) as usize..=(side + reach.min(side)) as usize;
        let count = range.clone().count();
        weights[..count].iter_mut().zip(&shares[range.clone()]).for_each(|(w, share)| *w = weight * share);
        visit(&Line { prefix: &prefix[..dimension - 1], last: &nodes[range], weights: &weights[..count] });
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn moments_of_the_normal_law_are_exact() {
        for dimension in 1..=3 {
            let (mut mass, mut fourth) = (0.0, 0.0);
            super::visit(dimension, 0.2, |line| {
                mass += line.weights.iter().sum::<f64>();
                fourth += line.weights.iter().zip(line.last).map(|(w, x)| w * x.powi(4)).sum::<f64>();
            });
            assert!(
                (mass - 1.0).abs() < 1e-12 && (fourth - 3.0).abs() < 1e-11,
                "{dimension}: {mass} {fourth}"
            );
        }
    }
}
