//! The trapezoidal product rule on a ball: E[f(x)], x ~ N(0, 1) in up to four dimensions.
//!
//! It converges exponentially for functions that are analytic in a strip, which losses of residuals are, where
//! Gauss-Hermite nodes would be spread too thin around the singularities near the real axis
//! (docs/derivations/gd-phase-transitions.md#s4-4).

use didact_math::gauss::normal::density;

/// Dimensions that a product rule can afford.
pub(super) const MOST: usize = 4;

/// The ball: P(|x| > 9) < 1e-16 in three dimensions; in four, where nodes are dear, P(|x| > 7) = 6e-10.
fn radius(dimension: usize) -> f64 {
    if dimension < MOST { 9.0 } else { 7.0 }
}

/// A line of nodes along the last axis.
pub(super) struct Line<'a> {
    /// The other coordinates.
    pub prefix: &'a [f64],
    /// The last coordinate.
    pub last: &'a [f64],
    /// Weights of the nodes.
    pub weights: &'a [f64],
}

/// Calls `visit` for every line of nodes in the ball, of the given spacing along each axis.
pub(super) fn visit(spacing: &[f64], mut visit: impl FnMut(&Line)) {
    let radius = radius(spacing.len());
    let axes: Vec<Axis> = spacing.iter().map(|h| Axis::new(*h, radius)).collect();
    let (last, outer) = axes.split_last().expect("at least one dimension");
    let mut weights = vec![0.0; last.nodes.len()];
    let mut prefix = [0.0; MOST];
    for code in 0..outer.iter().map(|axis| axis.nodes.len()).product() {
        let (mut digits, mut weight, mut square) = (code, 1.0, 0.0);
        // The first coordinate is the slowest.
        for (slot, axis) in prefix.iter_mut().zip(outer).rev() {
            let i = digits % axis.nodes.len();
            *slot = axis.nodes[i];
            weight *= axis.shares[i];
            square += *slot * *slot;
            digits /= axis.nodes.len();
        }
        if square > radius * radius {
            continue;
        }
        let side = last.nodes.len() / 2;
        let reach = (((radius * radius - square).sqrt() / last.spacing) as usize).min(side);
        let range = side - reach..=side + reach;
        let count = 2 * reach + 1;
        weights[..count]
            .iter_mut()
            .zip(&last.shares[range.clone()])
            .for_each(|(w, share)| *w = weight * share);
        visit(&Line { prefix: &prefix[..outer.len()], last: &last.nodes[range], weights: &weights[..count] });
    }
}

struct Axis {
    spacing: f64,
    nodes: Vec<f64>,
    shares: Vec<f64>,
}

impl Axis {
    fn new(spacing: f64, radius: f64) -> Self {
        let side = (radius / spacing).floor() as i64;
        let nodes: Vec<f64> = (-side..=side).map(|i| i as f64 * spacing).collect();
        let shares = nodes.iter().map(|x| spacing * density(*x)).collect();
        Self { spacing, nodes, shares }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn moments_of_the_normal_law_are_exact() {
        for dimension in 1..=4 {
            let (mut mass, mut fourth) = (0.0, 0.0);
            super::visit(&vec![0.2 + 0.05 * dimension as f64; dimension], |line| {
                mass += line.weights.iter().sum::<f64>();
                fourth += line.weights.iter().zip(line.last).map(|(w, x)| w * x.powi(4)).sum::<f64>();
            });
            // What lies outside of the ball.
            let (missing, heavy) = if dimension < 4 { (1e-12, 1e-11) } else { (1e-9, 1e-6) };
            assert!(
                (mass - 1.0).abs() < missing && (fourth - 3.0).abs() < heavy,
                "{dimension}: {mass} {fourth}"
            );
        }
    }
}
