//! E[f(z)] of a vector function of independent standard normals, with an error estimate.
//!
//! Deterministic: the same call gives the same numbers every time, on every machine.

use super::ball::{self, Effort, WeightedPoints, over_ball};
use super::lattice;
use super::normal::quantile;
use super::quadrature::{GaussianRule, HERMITE_REACH, gauss_hermite};

/// An average and how far it can be trusted.
#[derive(Clone, Debug)]
pub struct Average {
    /// One entry per output.
    pub mean: Vec<f64>,
    /// Per output: difference of two rules, or distance from a lattice if that is larger (tensor); standard error over the
    /// shifts (lattice).
    pub error: Vec<f64>,
    /// How it was computed.
    pub method: AverageMethod,
    /// Evaluations of f.
    pub points: usize,
}

/// How an average was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AverageMethod {
    /// Product rule with this many nodes per axis.
    Tensor {
        /// Nodes per axis of the finer rule.
        nodes: usize,
    },
    /// Shifted lattices in a ball.
    Ball {
        /// Points per lattice, those outside of the ball included.
        points: usize,
    },
    /// Randomly shifted lattices.
    Lattice {
        /// Points per lattice.
        points: usize,
        /// Independent shifts.
        shifts: usize,
    },
}

/// Up to this many dimensions a product rule is tried first: with a budget of 2¹⁶ it has 8 nodes per axis in five dimensions,
/// still exact for squared gradients of cubic units, whose tails a lattice of that size misses.
const TENSOR_DIMENSIONS: usize = 5;
/// A product rule that agrees with its coarser twin this well is accepted without trying the lattice.
const ACCEPTED: f64 = 1e-9;
/// Independent shifts of the lattice: the standard error is itself known to 1/√30 = 18 %.
const SHIFTS: usize = 16;

/// From this many nodes per axis on, a smooth function has converged. What has not is no business of a product rule.
const ENOUGH: usize = 60;
/// Fewer nodes: a product rule converges geometrically, so that the last difference of its sizes is larger than its error, if
/// this difference is smaller than the one before by this factor, as that of an error e^{−cn} = 1e-6 is (e^{−cn/4} for 3/4
/// and 1/2 of the nodes).
const GEOMETRIC: f64 = 0.03;
/// Standard errors within which a product rule must agree with the lattice to be preferred to it.
const AGREEMENT: f64 = 5.0;

/// E[f(z)], z ~ N(0, I), with about `budget` evaluations of `f(z, out)`.
///
/// Up to five dimensions a product rule is used if it has converged (two sizes agree to 1e-9 of the size of f); else,
/// and in higher dimensions, the average over 16 shifted lattices, unless the product rule seems the better of the two and
/// agrees with it.
pub fn expectation(
    dimension: usize,
    outputs: usize,
    mut f: impl FnMut(&[f64], &mut [f64]),
    budget: usize,
) -> Average {
    if dimension > TENSOR_DIMENSIONS {
        return quasi_monte_carlo(dimension, outputs, budget, &mut f);
    }
    let product = tensor(dimension, outputs, budget, &mut f);
    if product.relative_error() <= ACCEPTED {
        return product;
    }
    let spread = quasi_monte_carlo(dimension, outputs, budget, &mut f);
    better_of(product, spread)
}

/// The product rule, if it seems better than the lattice and agrees with it.
fn better_of(product: Average, spread: Average) -> Average {
    let outputs = product.mean.len();
    let apart = (0..outputs).map(|o| (product.mean[o] - spread.mean[o]).abs());
    let agree = apart.clone().zip(&spread.error).all(|(apart, error)| apart <= AGREEMENT * error);
    let smaller = product.relative_error() < spread.relative_error();
    if !(smaller && agree) {
        return spread;
    }
    // Two product rules can agree by chance over a kink, whose error oscillates with the number of nodes. The shifts of a
    // lattice are random, so the distance from it is honest.
    let error = apart.zip(&product.error).map(|(apart, error)| error.max(apart)).collect();
    Average { error, ..product }
}

/// A function of which averages are asked for, point by point and for many points at once.
pub trait Integrand {
    /// Number of independent standard normals that it reads.
    fn dimension(&self) -> usize;

    /// Number of averages.
    fn outputs(&self) -> usize;

    /// The values at one point.
    fn at(&mut self, z: &[f64], out: &mut [f64]);

    /// Adds Σ weight · value over some points to the sums.
    fn add(&mut self, points: &WeightedPoints, sums: &mut [f64]) {
        point_by_point(self, points, sums);
    }
}

/// Adds Σ weight · value over some points, one after the other: the slow, obvious way.
pub fn point_by_point<I: Integrand + ?Sized>(integrand: &mut I, points: &WeightedPoints, sums: &mut [f64]) {
    let (mut z, mut out) = (vec![0.0; integrand.dimension()], vec![0.0; integrand.outputs()]);
    for (p, weight) in points.weights.iter().enumerate() {
        for (j, z) in z.iter_mut().enumerate() {
            *z = points.coordinates[j * points.size() + p];
        }
        integrand.at(&z, &mut out);
        sums.iter_mut().zip(&out).for_each(|(sum, value)| *sum += weight * value);
    }
}

/// Which rule averages an integrand best: found once, and good for others like it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BestRule {
    /// A product rule.
    Product,
    /// A lattice in a ball at this level.
    Ball {
        /// log₂ of the points, counted from the smallest lattice.
        level: usize,
    },
    /// Randomly shifted lattices.
    Lattice,
}

/// Evaluations by a product rule.
const PRODUCT_BUDGET: usize = 1 << 16;

/// E[f(z)] as [`expectation`] with 2¹⁶ evaluations where its product rule converges; otherwise, in two to six dimensions, by a lattice
/// in a ball of up to `budget` evaluations, until the error is within `accuracy` in units of the largest mean. Where no rule
/// gets there the best of them is taken, randomly shifted lattices included.
///
/// `known` is the best rule of an integrand like this one, with which the average is computed at once; it is found where there is none.
pub fn expectation_within(
    integrand: &mut dyn Integrand,
    accuracy: f64,
    budget: usize,
    known: &mut Option<BestRule>,
) -> Average {
    let (dimension, outputs) = (integrand.dimension(), integrand.outputs());
    let product = |integrand: &mut dyn Integrand| {
        tensor(dimension, outputs, PRODUCT_BUDGET, &mut |z: &[f64], out: &mut [f64]| integrand.at(z, out))
    };
    let spread = |integrand: &mut dyn Integrand| {
        over_shifts(dimension, outputs, budget, |points, sums| integrand.add(points, sums))
    };
    let in_ball = |integrand: &mut dyn Integrand, accuracy: f64, first_level: usize| {
        let effort = Effort { accuracy, budget, first_level };
        over_ball(dimension, outputs, effort, &mut |points, sums| integrand.add(points, sums))
    };
    match *known {
        Some(BestRule::Product) => return product(integrand),
        Some(BestRule::Ball { level }) => return in_ball(integrand, f64::INFINITY, level).average,
        Some(BestRule::Lattice) => return spread(integrand),
        None => {}
    }
    let by_product = (dimension <= TENSOR_DIMENSIONS).then(|| product(integrand));
    if by_product.as_ref().is_some_and(|product| product.relative_error() <= ACCEPTED) {
        *known = Some(BestRule::Product);
        return by_product.expect("was just looked at");
    }
    let by_ball = (ball::FEWEST..=ball::MOST).contains(&dimension).then(|| in_ball(integrand, accuracy, 0));
    if let Some(found) = by_ball.as_ref().filter(|found| found.average.relative_error() <= accuracy) {
        *known = Some(BestRule::Ball { level: found.level });
        return found.average.clone();
    }
    let by_lattice = spread(integrand);
    let other = match by_product {
        Some(product) => better_of(product, by_lattice),
        None => by_lattice,
    };
    match by_ball {
        Some(found) if found.average.relative_error() < other.relative_error() => {
            *known = Some(BestRule::Ball { level: found.level });
            found.average
        }
        _ => {
            let product = matches!(other.method, AverageMethod::Tensor { .. });
            *known = Some(if product { BestRule::Product } else { BestRule::Lattice });
            other
        }
    }
}

impl Average {
    /// The largest error in units of the largest mean.
    pub fn relative_error(&self) -> f64 {
        relative(&self.mean, &self.error)
    }
}

/// The largest error in units of the largest mean.
pub(super) fn relative(mean: &[f64], error: &[f64]) -> f64 {
    let size = mean.iter().fold(f64::MIN_POSITIVE, |size, m| size.max(m.abs()));
    error.iter().fold(0.0, |worst: f64, e| worst.max(e / size))
}

/// The product rule of about `budget` points, compared with those of 3/4 and 1/2 as many nodes per axis.
fn tensor(
    dimension: usize,
    outputs: usize,
    budget: usize,
    f: &mut impl FnMut(&[f64], &mut [f64]),
) -> Average {
    // The three rules together cost (1 + (3/4)^d + (1/2)^d) n^d.
    let share = budget as f64 / (1.0 + 0.75f64.powi(dimension as i32) + 0.5f64.powi(dimension as i32));
    let nodes = (share.powf(1.0 / dimension.max(1) as f64) as usize).clamp(4, 361);
    let mut points = 0;
    let mut average = |nodes: usize| {
        let rule = rule(nodes);
        let mut sum = vec![0.0; outputs];
        points += product_sum(&rule, dimension, f, &mut sum);
        sum
    };
    let (coarse, middle, mean) = (average(nodes / 2), average(nodes * 3 / 4), average(nodes));
    let apart = |other: &[f64]| -> Vec<f64> { other.iter().zip(&mean).map(|(a, b)| (a - b).abs()).collect() };
    let (before, last) = (apart(&coarse), apart(&middle));
    let (first, second) = (relative(&mean, &before), relative(&mean, &last));
    let converges = second <= ACCEPTED || nodes < ENOUGH && second <= GEOMETRIC * first;
    let error = if converges { last } else { before.iter().zip(&last).map(|(a, b)| a.max(*b)).collect() };
    Average { mean, error, method: AverageMethod::Tensor { nodes }, points }
}

/// Few nodes: Gauss-Hermite, exact for polynomials. Many: the trapezoid, which copes with poles of tanh and sigmoid.
fn rule(nodes: usize) -> GaussianRule {
    if nodes < ENOUGH {
        gauss_hermite(nodes).clone()
    } else {
        // An odd number of nodes, no more than asked for, as far out as polynomials of high degree have weight.
        GaussianRule::trapezoid(HERMITE_REACH / ((nodes - 1) / 2) as f64, HERMITE_REACH)
    }
}

fn product_sum(
    rule: &GaussianRule,
    dimension: usize,
    f: &mut impl FnMut(&[f64], &mut [f64]),
    sum: &mut [f64],
) -> usize {
    let n = rule.nodes.len();
    let total = n.pow(dimension as u32);
    let (mut z, mut out) = (vec![0.0; dimension], vec![0.0; sum.len()]);
    for point in 0..total {
        let (mut digits, mut weight) = (point, 1.0);
        for slot in &mut z {
            *slot = rule.nodes[digits % n];
            weight *= rule.weights[digits % n];
            digits /= n;
        }
        f(&z, &mut out);
        for (sum, value) in sum.iter_mut().zip(&out) {
            *sum += weight * value;
        }
    }
    total
}

/// The mean over 16 randomly shifted lattices with tent transform, and its standard error.
pub fn quasi_monte_carlo(
    dimension: usize,
    outputs: usize,
    budget: usize,
    f: &mut impl FnMut(&[f64], &mut [f64]),
) -> Average {
    let (mut z, mut out) = (vec![0.0; dimension], vec![0.0; outputs]);
    over_shifts(dimension, outputs, budget, |points, sums| {
        for p in 0..points.size() {
            for (j, z) in z.iter_mut().enumerate() {
                *z = points.coordinates[j * points.size() + p];
            }
            f(&z, &mut out);
            for (sum, value) in sums.iter_mut().zip(&out) {
                *sum += value;
            }
        }
    })
}

/// Points that are handed over together.
const BLOCK: usize = 256;

/// The same with sums over many points at once; all weights are 1.
fn over_shifts(
    dimension: usize,
    outputs: usize,
    budget: usize,
    mut add: impl FnMut(&WeightedPoints, &mut [f64]),
) -> Average {
    let wanted = (budget / SHIFTS).max(16);
    let points =
        (wanted.next_power_of_two() / if wanted.is_power_of_two() { 1 } else { 2 }).min(lattice::LARGEST);
    // Past the largest lattice more points mean more shifts.
    let shifts = SHIFTS.max(budget / points);
    let generator = lattice::generator(dimension);
    let size = points.min(BLOCK);
    let (mut coordinates, weights) = (vec![0.0; dimension * size], vec![1.0; size]);
    let (mut mean, mut square) = (vec![0.0; outputs], vec![0.0; outputs]);
    for shift in 0..shifts {
        let offsets: Vec<f64> = (0..dimension).map(|j| lattice::uniform(shift as u64, j as u64)).collect();
        let mut sum = vec![0.0; outputs];
        for begin in (0..points).step_by(size) {
            for (j, column) in coordinates.chunks_exact_mut(size).enumerate() {
                for (p, z) in column.iter_mut().enumerate() {
                    let whole = ((begin + p) as u64).wrapping_mul(generator[j]) & (points as u64 - 1);
                    *z = normal_of(whole as f64 / points as f64 + offsets[j]);
                }
            }
            add(&WeightedPoints { coordinates: &coordinates, weights: &weights }, &mut sum);
        }
        // Running mean and sum of squared deviations (Welford), one entry per shift.
        for o in 0..outputs {
            let value = sum[o] / points as f64;
            let step = value - mean[o];
            mean[o] += step / (shift + 1) as f64;
            square[o] += step * (value - mean[o]);
        }
    }
    let error = square.iter().map(|s| (s / (shifts * (shifts - 1)) as f64).sqrt()).collect();
    Average { mean, error, method: AverageMethod::Lattice { points, shifts }, points: points * shifts }
}

/// The normal deviate of a point of the unit circle, through the tent map 1 − |2x − 1|.
fn normal_of(x: f64) -> f64 {
    let folded = 1.0 - (2.0 * x.fract() - 1.0).abs();
    // Keep off 0 and 1, where the normal deviate is infinite.
    quantile(folded.clamp(1e-300, 1.0 - f64::EPSILON / 2.0))
}

#[cfg(test)]
mod tests {
    use super::super::quadrature::REACH;
    use super::*;

    #[test]
    fn polynomials_are_exact_in_low_dimension() {
        for dimension in 1..=5 {
            let average = expectation(
                dimension,
                2,
                |z, out| {
                    out[0] = z.iter().map(|x| x * x).product();
                    out[1] = z.iter().sum::<f64>().powi(4);
                },
                200_000,
            );
            let d = dimension as f64;
            assert!(
                (average.mean[0] - 1.0).abs() < 1e-12
                    && (average.mean[1] / (3.0 * d * d) - 1.0).abs() < 1e-12
            );
            assert!(matches!(average.method, AverageMethod::Tensor { .. }));
            assert!(average.points <= 200_000);
        }
    }

    #[test]
    fn kinks_in_three_dimensions_go_to_the_lattice() {
        let average = expectation(3, 1, |z, out| out[0] = (z[0] + z[1] + z[2]).max(0.0), 400_000);
        let exact = (3.0 / (2.0 * std::f64::consts::PI)).sqrt();
        assert!(matches!(average.method, AverageMethod::Lattice { .. }), "{average:?}");
        assert!(
            (average.mean[0] - exact).abs() < 5.0 * average.error[0] && average.error[0] < 1e-4,
            "{average:?}"
        );
    }

    /// Two product rules that agreed by chance used to state a tenth of their error and less.
    #[test]
    fn the_stated_error_covers_the_true_one_over_oblique_kinks() {
        use crate::random::{RngAddress, Stream};
        let mut stream = Stream::at(RngAddress { seed: 5, replica: 0, step: 0, lane: 0 });
        for draw in 0..400 {
            let dimension = 2 + draw % 3;
            let mut direction = || -> Vec<f64> { (0..dimension).map(|_| stream.normal()).collect() };
            let (a, b) = (direction(), direction());
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
            let average = expectation(
                dimension,
                1,
                |z, out| out[0] = 0.5 * (dot(&a, z).max(0.0) - dot(&b, z).max(0.0)).powi(2),
                1 << 14,
            );
            // E[relu relu] = |a||b| (sin t + (π − t) cos t)/2π at the angle t.
            let (norms, product) = ((dot(&a, &a) * dot(&b, &b)).sqrt(), dot(&a, &b));
            let angle = (product / norms).clamp(-1.0, 1.0).acos();
            let cross = norms * (angle.sin() + (std::f64::consts::PI - angle) * angle.cos())
                / (2.0 * std::f64::consts::PI);
            let exact = 0.25 * (dot(&a, &a) + dot(&b, &b)) - cross;
            let (miss, size) = ((average.mean[0] - exact).abs(), 0.25 * (dot(&a, &a) + dot(&b, &b)));
            // No rule sees the wedge between two kinks that is thinner than its mesh.
            assert!(miss < 6.0 * average.error[0] + 1e-6 * size, "{draw}: off by {miss:e}, {average:?}");
            assert!(average.error[0] < 5e-3 * size, "{draw}: {average:?}, terms of {size}");
        }
    }

    #[test]
    fn the_stated_error_covers_the_true_one_in_high_dimension() {
        for dimension in [5, 10, 20, 40, 64, 80] {
            let d = dimension as f64;
            let average = expectation(
                dimension,
                2,
                |z, out| {
                    let sum = z.iter().sum::<f64>() / d.sqrt();
                    out[0] = sum.tanh().powi(2);
                    out[1] = sum.abs();
                },
                1 << 18,
            );
            // sum ~ N(0, 1), whatever the dimension.
            let exact = [
                GaussianRule::trapezoid(0.05, REACH).average(|x| x.tanh().powi(2)),
                (2.0 / std::f64::consts::PI).sqrt(),
            ];
            for o in 0..2 {
                let miss = (average.mean[o] - exact[o]).abs();
                assert!(
                    miss < 5.0 * average.error[o],
                    "d = {dimension}: off by {miss}, stated {}",
                    average.error[o]
                );
                // Plain Monte Carlo would state 0.32/512 and 0.60/512. A sum of many equal terms is hard for a lattice.
                let plain = [6.2e-4, 1.2e-3][o] * if dimension <= 10 { 0.6 } else { 1.2 };
                assert!(average.error[o] < plain, "d = {dimension}: stated {}", average.error[o]);
            }
        }
    }

    #[test]
    fn smooth_functions_converge_faster_than_monte_carlo() {
        let run = |budget: usize| {
            quasi_monte_carlo(6, 1, budget, &mut |z: &[f64], out: &mut [f64]| {
                out[0] = z.iter().enumerate().map(|(j, x)| 1.0 + (0.5 * x).sin() / (j + 1) as f64).product();
            })
        };
        let (small, large) = (run(1 << 14), run(1 << 20));
        assert!((large.mean[0] - 1.0).abs() < 5.0 * large.error[0]);
        // 64 times the points: 1/√n would gain 8, first order 64.
        assert!(large.error[0] < small.error[0] / 32.0, "{} {}", small.error[0], large.error[0]);
    }

    /// Σ_j a_j tanh(u_j + b_j) against a product of two of the coordinates: like the residual of a small network.
    struct Residual {
        dimension: usize,
    }

    impl Integrand for Residual {
        fn dimension(&self) -> usize {
            self.dimension
        }
        fn outputs(&self) -> usize {
            1
        }
        fn at(&mut self, z: &[f64], out: &mut [f64]) {
            let units: f64 = (2..z.len()).map(|j| (1.5 * (z[j] + 0.3 * z[0])).tanh()).sum();
            let r = units / z.len() as f64 - z[0] * z[1];
            out[0] = (1.0 + r * r).sqrt() - 1.0;
        }
    }

    #[test]
    fn smooth_functions_of_up_to_five_normals_are_averaged_as_accurately_as_asked_for() {
        for (dimension, accuracy) in [(3, 1e-6), (4, 1e-6), (5, 2e-5)] {
            let mut known = None;
            let found = expectation_within(&mut Residual { dimension }, accuracy, 1 << 20, &mut known);
            assert!(found.relative_error() <= accuracy, "{dimension}: {found:?}");
            assert_eq!(matches!(known, Some(BestRule::Ball { .. })), dimension < 5, "{known:?}");
            // The slow twins: a fine product rule, or many points of another lattice.
            let mut f = Residual { dimension };
            let mut at = |z: &[f64], out: &mut [f64]| f.at(z, out);
            let (exact, allowed) = if dimension < 5 {
                let rule = GaussianRule::trapezoid(0.36, 6.5);
                let mut exact = [0.0];
                product_sum(&rule, dimension, &mut at, &mut exact);
                (exact[0], 2e-6 * exact[0])
            } else {
                let spread = quasi_monte_carlo(dimension, 1, 1 << 20, &mut at);
                (spread.mean[0], 5.0 * spread.error[0])
            };
            let off = (found.mean[0] - exact).abs();
            assert!(off < allowed, "{dimension}: {} against {exact}", found.mean[0]);
            // Once known, the rule is used at once and gives the same.
            let again = expectation_within(&mut Residual { dimension }, accuracy, 1 << 20, &mut known);
            assert!((again.mean[0] / found.mean[0] - 1.0).abs() < 1e-12 && again.points <= found.points);
        }
    }

    #[test]
    fn the_same_call_gives_the_same_numbers() {
        let run = || expectation(7, 1, |z, out| out[0] = z[0] * z[6] + z[3].exp(), 10_000);
        assert_eq!(run().mean, run().mean);
    }

    #[test]
    fn no_dimension_is_a_constant() {
        assert_eq!(expectation(0, 1, |_, out| out[0] = 2.5, 1000).mean, [2.5]);
    }
}
