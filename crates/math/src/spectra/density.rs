//! The bulk of the spectrum at complex arguments and on its support: Stieltjes transform, density, intervals.

use super::bulk::{Bulk, Edge};
use super::complex::Complex;
use crate::dispatch;
use std::f64::consts::PI;

/// A Newton iteration ends when the relative size of its step is below this; the next step would be rounding.
const NEWTON_TOLERANCE: f64 = 1e-13;
/// On the real axis, Im α below this fraction of |α| counts as 0, that is as outside of the bulk.
const REAL_TOLERANCE: f64 = 1e-8;

impl Bulk<'_> {
    /// The Stieltjes transform α(z) for any z. On the real axis it is the limit from above, with Im α exactly 0 outside of
    /// the bulk.
    ///
    /// Off the real axis the solution with Im α Im z > 0 is unique, so a converged Newton iteration with this property is
    /// right. Its starting points come from a damped fixed-point iteration, which converges from every start.
    pub fn stieltjes(&self, z: Complex) -> Complex {
        if z.im < 0.0 {
            let above = self.stieltjes(Complex::new(z.re, -z.im));
            return Complex::new(above.re, -above.im);
        }
        if z.im > 0.0 {
            return self.above_axis(z, -z.reciprocal());
        }
        let left = self.left_edge();
        if z.re < left.position {
            return self.stieltjes_below(z.re, left).into();
        }
        let law = self.law.reflected();
        let mirrored = Bulk { law: &law, delta: self.delta };
        let right = mirrored.left_edge();
        if -z.re < right.position {
            return (-mirrored.stieltjes_below(-z.re, right)).into();
        }
        self.on_axis(z.re)
    }

    /// α(z) for Im z > 0, from a guess.
    fn above_axis(&self, z: Complex, guess: Complex) -> Complex {
        let mut alpha = guess;
        // With damping 1/2 the map is a contraction in the hyperbolic metric of the half-plane. It converges slowly near
        // the real axis, so a Newton iteration is tried after every 30 iterations.
        for _ in 0..200 {
            if let Some(found) = self.newton(z, alpha)
                && found.im > 0.0
            {
                return found;
            }
            for _ in 0..30 {
                let q = self.complex_moments(alpha).0;
                alpha = (alpha + (q * self.delta - z).reciprocal()) * 0.5;
            }
        }
        alpha
    }

    /// The limit of α(x + i y) for y → 0+ at a point x between the edges.
    fn on_axis(&self, x: f64) -> Complex {
        let scale = self.mean_and_variance().1.sqrt();
        let mut alpha = Complex::new(0.0, 1.0 / scale);
        let mut height = scale;
        for _ in 0..10 {
            alpha = self.above_axis(Complex::new(x, height), alpha);
            height *= 0.1;
        }
        self.settled(x, alpha)
    }

    /// Returns α on the real axis at x, from a solution just above it.
    fn settled(&self, x: f64, near: Complex) -> Complex {
        match self.newton(x.into(), near) {
            Some(alpha) if alpha.im > REAL_TOLERANCE * alpha.norm() => alpha,
            // x is in a gap between two parts of the bulk, where α is real.
            _ => self.newton(x.into(), near.re.into()).unwrap_or(Complex::from(near.re)),
        }
    }

    /// Solves z(α) = z by Newton's iteration; `None` if it does not converge.
    fn newton(&self, z: Complex, guess: Complex) -> Option<Complex> {
        let mut alpha = guess;
        for _ in 0..25 {
            let (q, square) = self.complex_moments(alpha);
            let inverse = alpha.reciprocal();
            let step = (q * self.delta - inverse - z) / (inverse * inverse - square * self.delta);
            alpha = alpha - step;
            if !alpha.norm().is_finite() {
                return None;
            }
            if step.norm() <= NEWTON_TOLERANCE * alpha.norm() {
                return Some(alpha);
            }
        }
        None
    }

    /// The averages E[G/(δ + G α)] and E[G²/(δ + G α)²] at complex α.
    fn complex_moments(&self, alpha: Complex) -> (Complex, Complex) {
        let mut out = [0.0; 4];
        complex_moments(&self.law.probabilities, &self.law.values, self.delta, alpha.re, alpha.im, &mut out);
        (Complex::new(out[0], out[1]), Complex::new(out[2], out[3]))
    }

    /// The density Im α(x + i0)/π of the continuous part, at ascending points x.
    ///
    /// The Newton iteration at a point starts from the solution at the point before it. A result with Im α > 0 is right,
    /// because there is only one solution with this property.
    pub fn density(&self, points: &[f64]) -> Vec<f64> {
        let (left, right) = (self.left_edge(), self.right_edge());
        let mut last = Complex::default();
        points
            .iter()
            .map(|&x| {
                if x <= left.position || x >= right.position {
                    return 0.0;
                }
                let warm = (last.im > 0.0).then(|| self.newton(x.into(), last)).flatten();
                last = match warm {
                    Some(alpha) if alpha.im > REAL_TOLERANCE * alpha.norm() => alpha,
                    _ => self.on_axis(x),
                };
                (last.im / PI).max(0.0)
            })
            .collect()
    }

    /// The intervals of the continuous part, found on a grid of `points` between the edges and refined by bisection.
    ///
    /// A gap or an interval narrower than the grid spacing is not found.
    pub fn support(&self, points: usize) -> Vec<(f64, f64)> {
        let (Edge { position: left, .. }, Edge { position: right, .. }) =
            (self.left_edge(), self.right_edge());
        let inside = |x: f64| self.on_axis(x).im > 0.0;
        let count = points.max(2);
        let grid: Vec<f64> =
            (0..count).map(|i| left + (right - left) * (i as f64 + 0.5) / count as f64).collect();
        let mut intervals = Vec::new();
        let mut open = None;
        let mut before = (left, inside(grid[0]));
        if before.1 {
            open = Some(left);
        }
        for &x in &grid {
            let now = inside(x);
            if now != before.1 {
                let border = bisect(&inside, before.0, x, now);
                match open.take() {
                    Some(start) => intervals.push((start, border)),
                    None => open = Some(border),
                }
            }
            before = (x, now);
        }
        intervals.extend(open.map(|start| (start, right)));
        intervals
    }
}

/// Finds the position between low and high at which the value of `inside` becomes `after`.
fn bisect(inside: &impl Fn(f64) -> bool, mut low: f64, mut high: f64, after: bool) -> f64 {
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if inside(middle) == after {
            high = middle;
        } else {
            low = middle;
        }
    }
    0.5 * (low + high)
}

dispatch! {
    /// Computes real and imaginary parts of Σ p q and Σ p q² with q = G/(δ + G α), in four partial sums that are vectorised.
    fn complex_moments(
        probabilities: &[f64], values: &[f64], delta: f64, re: f64, im: f64, out: &mut [f64],
    ) {
        let mut sums = [[0.0; 4]; 4];
        let (p_blocks, p_rest) = probabilities.as_chunks::<4>();
        let (g_blocks, g_rest) = values.as_chunks::<4>();
        for (p, g) in p_blocks.iter().zip(g_blocks) {
            for lane in 0..4 {
                let (a, b) = (delta + g[lane] * re, g[lane] * im);
                let factor = g[lane] / (a * a + b * b);
                let (x, y) = (a * factor, -b * factor);
                sums[0][lane] += p[lane] * x;
                sums[1][lane] += p[lane] * y;
                sums[2][lane] += p[lane] * (x * x - y * y);
                sums[3][lane] += p[lane] * (2.0 * x * y);
            }
        }
        for (p, g) in p_rest.iter().zip(g_rest) {
            let (a, b) = (delta + g * re, g * im);
            let factor = g / (a * a + b * b);
            let (x, y) = (a * factor, -b * factor);
            sums[0][0] += p * x;
            sums[1][0] += p * y;
            sums[2][0] += p * (x * x - y * y);
            sums[3][0] += p * (2.0 * x * y);
        }
        for (out, lanes) in out.iter_mut().zip(&sums) {
            *out = lanes.iter().sum();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::WeightLaw;
    use super::super::marchenko_pastur;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_weights_give_the_marchenko_pastur_law() {
        let law = WeightLaw::sample(&[1.0]).unwrap();
        for delta in [0.4, 2.0, 8.0] {
            let bulk = Bulk::new(&law, delta).unwrap();
            for z in [
                Complex::new(0.7, 0.3),
                Complex::new(-1.0, 1e-6),
                Complex::new(1.0, 1e-6),
                Complex::new(1.1, 0.0),
                Complex::new(-0.3, 0.0),
                // For delta = 0.4 between the atom at 0 and the bulk.
                Complex::new(0.1, 0.0),
                Complex::new(9.0, 0.0),
                Complex::new(0.9, -0.2),
            ] {
                let (got, exact) = (bulk.stieltjes(z), marchenko_pastur::stieltjes(delta, z));
                assert!((got - exact).norm() < 1e-11 * exact.norm(), "{delta} {z:?}: {got:?} {exact:?}");
            }
            let (low, high) = marchenko_pastur::support(delta);
            let points: Vec<f64> =
                (0..50).map(|i| low - 0.1 + (high - low + 0.2) * f64::from(i) / 49.0).collect();
            for (x, got) in points.iter().zip(bulk.density(&points)) {
                assert!((got - marchenko_pastur::density(delta, *x)).abs() < 1e-9, "{delta} {x}");
            }
        }
    }

    #[test]
    fn a_gap_has_no_density_and_a_real_transform() {
        // Weights 1 and 30 with many samples: the support has two intervals.
        let law = WeightLaw::new(&[0.7, 0.3], &[1.0, 30.0]).unwrap();
        let bulk = Bulk::new(&law, 1.5).unwrap();
        let intervals = bulk.support(400);
        assert_eq!(intervals.len(), 2, "{intervals:?}");
        let middle = 0.5 * (intervals[0].1 + intervals[1].0);
        assert_eq!(bulk.density(&[middle]), [0.0]);
        let alpha = bulk.stieltjes(middle.into());
        assert_eq!(alpha.im, 0.0);
        assert!((bulk.position(alpha.re) - middle).abs() < 1e-10);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn the_density_has_the_mass_mean_and_variance_of_the_law(
            values in prop::collection::vec(-2.0..2.0f64, 3..8), delta in 1.5..8.0f64,
        ) {
            let law = WeightLaw::sample(&values).unwrap();
            let bulk = Bulk::new(&law, delta).unwrap();
            let (left, right) = (bulk.left_edge().position, bulk.right_edge().position);
            // A midpoint sum over an angle, in which the square-root edges are smooth.
            let angles: Vec<f64> = (0..1500).map(|i| PI * (1.0 - (f64::from(i) + 0.5) / 1500.0)).collect();
            let points: Vec<f64> = angles.iter().map(|u| 0.5 * (left + right) + 0.5 * (right - left) * u.cos()).collect();
            let density = bulk.density(&points);
            let moment = |power: i32| -> f64 {
                let weigh = |((u, x), rho): ((&f64, &f64), &f64)| x.powi(power) * rho * u.sin();
                angles.iter().zip(&points).zip(&density).map(weigh).sum::<f64>() * 0.5 * (right - left) * PI / 1500.0
            };
            let (mean, variance) = bulk.mean_and_variance();
            // Edges of inner gaps are not smooth in the angle; there the error of a midpoint sum is about (spacing)^{3/2}.
            prop_assert!((moment(0) - 1.0).abs() < 2e-3, "mass {}", moment(0));
            prop_assert!((moment(1) - mean).abs() < 4e-3 * (1.0 + mean.abs()));
            prop_assert!((moment(2) - variance - mean * mean).abs() < 1e-2 * (1.0 + variance));
        }

        #[test]
        fn the_transform_above_the_axis_solves_its_equation(
            values in prop::collection::vec(-3.0..3.0f64, 2..6), delta in 0.2..8.0f64, x in -4.0..4.0f64, y in 1e-5..1.0f64,
        ) {
            let law = WeightLaw::sample(&values).unwrap();
            let bulk = Bulk::new(&law, delta).unwrap();
            let z = Complex::new(x, y);
            let alpha = bulk.stieltjes(z);
            prop_assert!(alpha.im > 0.0);
            let right = bulk.complex_moments(alpha).0 * delta;
            prop_assert!((z + alpha.reciprocal() - right).norm() < 1e-9 * (1.0 + alpha.reciprocal().norm()));
        }
    }
}
