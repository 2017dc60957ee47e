//! The average over (a, b), independent normals, of functions of a and z = m a + √(1−m²) b.
//!
//! Polynomials: Gauss-Hermite, exact. Smooth: the trapezoidal grid. Two straight pieces (ReLU, |z|): polar coordinates
//! with panels that end where the integrand has kinks, a plain grid only gives 4 digits
//! (docs/derivations/low-rank-perturbation.md#s5-4).

use didact_math::activation::Activation;
use didact_math::gauss::GaussianRule;
use didact_math::gauss::quadrature::{REACH, gauss_hermite, gauss_legendre};
use std::f64::consts::{PI, TAU};

/// σ(z) = `above`·z for z > 0 and `below`·z for z < 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::low_rank) struct TwoSlopes {
    below: f64,
    above: f64,
}

impl TwoSlopes {
    /// The two slopes, if σ has them and nothing else.
    pub(in crate::low_rank) fn of(activation: &dyn Activation) -> Option<Self> {
        let [kink] = activation.kinks() else { return None };
        let slopes = Self { below: activation.slope(-1.0), above: activation.slope(1.0) };
        let straight = |z: f64| {
            (activation.value(z) - slopes.at(z) * z).abs() <= 1e-14 * z.abs()
                && activation.curvature(z) == 0.0
        };
        (kink.at == 0.0 && [-7.3, -1.0, -0.01, 0.01, 1.0, 7.3].into_iter().all(straight)).then_some(slopes)
    }

    /// The slope at z ≠ 0.
    pub(in crate::low_rank) fn at(&self, z: f64) -> f64 {
        if z > 0.0 { self.above } else { self.below }
    }
}

/// A node of the rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::low_rank) struct Point {
    /// û·x.
    pub(in crate::low_rank) a: f64,
    /// The component of x along the part of u beyond û.
    pub(in crate::low_rank) b: f64,
    /// u·x.
    pub(in crate::low_rank) z: f64,
    /// Weights sum to one.
    pub(in crate::low_rank) weight: f64,
}

/// What the integrand is made of.
pub(in crate::low_rank) struct OuterRule<'a> {
    /// σ.
    pub(in crate::low_rank) activation: &'a dyn Activation,
    /// The overlap.
    pub(in crate::low_rank) m: f64,
    /// Kink lines z = ratio · a.
    pub(in crate::low_rank) ratios: Vec<f64>,
    /// 1/width of the layers around a = 0 and z = 0, in units of the noise y.
    pub(in crate::low_rank) sharpness: f64,
    /// Standard deviation of what σ reads per unit of a.
    pub(in crate::low_rank) steepness: f64,
}

/// The trapezoidal rule for products of four factors σ(steepness · z). At 1.5 times the resolution of σ a pole leaves
/// e^{−33} (tanh at spacing 0.3); the Gaussian itself leaves e^{−2π²/δ²} = 1e-34 at 0.5.
pub(in crate::low_rank) fn smooth_rule(activation: &dyn Activation, steepness: f64) -> GaussianRule {
    GaussianRule::trapezoid((1.5 * activation.resolution() / steepness.max(1.0)).min(0.5), REACH)
}

impl OuterRule<'_> {
    /// The nodes; `None` when σ has kinks but more than two straight pieces.
    pub(in crate::low_rank) fn points(&self) -> Option<Vec<Point>> {
        if self.activation.kinks().is_empty() {
            let rule = match self.activation.degree() {
                // D²F² has degree 4n − 2, with b² 4n.
                Some(degree) => gauss_hermite(2 * degree.max(1) + 1).clone(),
                None => smooth_rule(self.activation, self.steepness),
            };
            return Some(self.product(&rule));
        }
        TwoSlopes::of(self.activation).map(|_| self.polar())
    }

    fn point(&self, a: f64, b: f64, weight: f64) -> Point {
        let z = self.m * a + (1.0 - self.m * self.m).max(0.0).sqrt() * b;
        Point { a, b, z, weight }
    }

    fn product(&self, rule: &GaussianRule) -> Vec<Point> {
        let nodes = || rule.nodes.iter().zip(&rule.weights);
        nodes().flat_map(|(&a, wa)| nodes().map(move |(&b, wb)| self.point(a, b, wa * wb))).collect()
    }

    /// a = r cos φ, b = r sin φ, so z = r cos(φ − φ_u) with cos φ_u = m.
    fn polar(&self) -> Vec<Point> {
        let tilt = self.m.clamp(-1.0, 1.0).acos();
        // Directions where a, b or z change sign, and where z = ratio · a.
        let layers = [0.5 * PI, tilt + 0.5 * PI];
        let mut cuts = vec![0.0];
        cuts.extend(layers);
        let spread = (1.0 - self.m * self.m).max(0.0).sqrt();
        cuts.extend(self.ratios.iter().map(|ratio| (ratio - self.m).atan2(spread)));
        let mut borders: Vec<f64> =
            cuts.iter().flat_map(|c| [c.rem_euclid(TAU), (c + PI).rem_euclid(TAU)]).collect();
        borders.sort_by(f64::total_cmp);
        borders.dedup_by(|a, b| (*a - *b).abs() < 1e-12);
        borders.push(borders[0] + TAU);
        // Layers of width 1/sharpness: panels that shrink towards both ends, and towards r = 0.
        let levels = (2.0 * self.sharpness).log2().ceil().clamp(0.0, 12.0) as i32;
        let (radii, mut points) = (radii(levels), Vec::new());
        let angular = gauss_legendre(24);
        for pair in borders.windows(2) {
            let (start, width) = (pair[0], pair[1] - pair[0]);
            let mut shares = vec![0.0, 1.0];
            if levels > 1 {
                shares.push(0.5);
            }
            for level in 2..=levels {
                let share = 0.5f64.powi(level);
                shares.extend([share, 1.0 - share]);
            }
            shares.sort_by(f64::total_cmp);
            for panel in shares.windows(2) {
                let half = 0.5 * width * (panel[1] - panel[0]);
                let centre = start + width * f64::midpoint(panel[0], panel[1]);
                for (x, w) in angular.nodes.iter().zip(&angular.weights) {
                    let (sin, cos) = (centre + half * x).sin_cos();
                    for &(r, weight) in &radii {
                        points.push(self.point(r * cos, r * sin, half * w * weight / TAU));
                    }
                }
            }
        }
        points
    }
}

/// Nodes and weights of ∫ r e^{−r²/2} dr on [0, 13].
fn radii(levels: i32) -> Vec<(f64, f64)> {
    const END: f64 = 13.0;
    let mut borders: Vec<f64> = (0..levels.max(1)).map(|level| END * 0.5f64.powi(level)).collect();
    borders.push(0.0);
    borders.reverse();
    let rule = gauss_legendre(if levels <= 2 { 48 } else { 24 });
    let panel = |pair: &[f64]| -> Vec<(f64, f64)> {
        let (half, centre) = (0.5 * (pair[1] - pair[0]), f64::midpoint(pair[0], pair[1]));
        let nodes = rule.nodes.iter().zip(&rule.weights);
        nodes
            .map(|(x, w)| {
                let r = centre + half * x;
                (r, half * w * r * (-0.5 * r * r).exp())
            })
            .collect()
    };
    borders.windows(2).flat_map(panel).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use didact_math::activation::parse;

    #[test]
    fn moments_of_the_points_are_those_of_the_normals() {
        for (name, sharpness) in [("relu", 1.0), ("relu", 20.0), ("He3", 1.0), ("tanh", 1.0)] {
            let activation = parse(name).unwrap();
            for m in [-1.0, 0.0, 0.6, 1.0] {
                let rule = OuterRule {
                    activation: &*activation,
                    m,
                    ratios: vec![1.0, -1.0],
                    sharpness,
                    steepness: 1.0,
                };
                let points = rule.points().unwrap();
                let average = |f: &dyn Fn(&Point) -> f64| points.iter().map(|p| p.weight * f(p)).sum::<f64>();
                for (got, exact) in [
                    (average(&|_| 1.0), 1.0),
                    (average(&|p| p.a * p.z), m),
                    (average(&|p| p.b.powi(4)), 3.0),
                    (average(&|p| (p.a * p.b).powi(2)), 1.0),
                ] {
                    assert!((got - exact).abs() < 1e-12, "{name} {sharpness} {m}: {got} {exact}");
                }
            }
        }
    }

    #[test]
    fn two_slopes_are_recognised_by_what_they_do() {
        assert_eq!(TwoSlopes::of(&*parse("relu").unwrap()), Some(TwoSlopes { below: 0.0, above: 1.0 }));
        assert_eq!(TwoSlopes::of(&*parse("abs").unwrap()), Some(TwoSlopes { below: -1.0, above: 1.0 }));
        for other in ["tanh", "abs(x - 0.5)", "abs(x) + 0.1*x^2", "abs(x)*x"] {
            assert_eq!(TwoSlopes::of(&*parse(other).unwrap()), None, "{other}");
        }
    }
}
