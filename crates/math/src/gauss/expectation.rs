//! E[f(z)] of a vector function of independent standard normals, with an error estimate.
//!
//! Deterministic: the same call gives the same numbers every time, on every machine.

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

/// Points whose values are asked for together: enough to hide what a call costs, few enough for the nearest cache.
const BLOCK: usize = 64;

/// E[f(z)], z ~ N(0, I), with about `budget` evaluations of `f(z, out)`.
///
/// Up to five dimensions a product rule is used if it has converged (two sizes agree to 1e-9 of the size of f); else,
/// and in higher dimensions, the average over 16 shifted lattices, unless the product rule seems the better of the two and
/// agrees with it.
pub fn expectation(
    dimension: usize,
    outputs: usize,
    f: impl FnMut(&[f64], &mut [f64]),
    budget: usize,
) -> Average {
    expectation_in_blocks(dimension, outputs, point_by_point(dimension, outputs, f), budget)
}

/// [`expectation`] of a function that computes many points at once: `f(n, z, out)` reads coordinate k of point j at `z[k * n + j]`
/// and writes output o of it at `out[o * n + j]`. The sums are taken in the same order.
pub fn expectation_in_blocks(
    dimension: usize,
    outputs: usize,
    mut f: impl FnMut(usize, &[f64], &mut [f64]),
    budget: usize,
) -> Average {
    if dimension > TENSOR_DIMENSIONS {
        return lattice_average(dimension, outputs, budget, &mut f);
    }
    let product = tensor(dimension, outputs, budget, &mut f);
    if relative(&product.mean, &product.error) <= ACCEPTED {
        return product;
    }
    let spread = lattice_average(dimension, outputs, budget, &mut f);
    let apart = (0..outputs).map(|o| (product.mean[o] - spread.mean[o]).abs());
    let agree = apart.clone().zip(&spread.error).all(|(apart, error)| apart <= AGREEMENT * error);
    let smaller = relative(&product.mean, &product.error) < relative(&spread.mean, &spread.error);
    if !(smaller && agree) {
        return spread;
    }
    // Two product rules can agree by chance over a kink, whose error oscillates with the number of nodes. The shifts of a
    // lattice are random, so the distance from it is honest.
    let error = apart.zip(&product.error).map(|(apart, error)| error.max(apart)).collect();
    Average { error, ..product }
}

/// A function of single points as one of blocks.
fn point_by_point(
    dimension: usize,
    outputs: usize,
    mut f: impl FnMut(&[f64], &mut [f64]),
) -> impl FnMut(usize, &[f64], &mut [f64]) {
    let (mut point, mut values) = (vec![0.0; dimension], vec![0.0; outputs]);
    move |n, z, out| {
        for j in 0..n {
            point.iter_mut().enumerate().for_each(|(k, x)| *x = z[k * n + j]);
            f(&point, &mut values);
            values.iter().enumerate().for_each(|(o, value)| out[o * n + j] = *value);
        }
    }
}

/// Sums over points that are collected into blocks.
struct Blocks<'f, F> {
    f: &'f mut F,
    dimension: usize,
    /// Coordinates, weights and values of a block; the coordinates of a point come together until the block is full.
    points: Vec<f64>,
    weights: Vec<f64>,
    columns: Vec<f64>,
    values: Vec<f64>,
    sum: Vec<f64>,
}

impl<'f, F: FnMut(usize, &[f64], &mut [f64])> Blocks<'f, F> {
    fn new(dimension: usize, outputs: usize, f: &'f mut F) -> Self {
        let (points, weights, columns) = (Vec::new(), Vec::new(), Vec::new());
        Self { f, dimension, points, weights, columns, values: Vec::new(), sum: vec![0.0; outputs] }
    }

    /// Adds weight f(z).
    fn add(&mut self, weight: f64, z: &[f64]) {
        self.points.extend_from_slice(z);
        self.weights.push(weight);
        if self.weights.len() == BLOCK {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let n = self.weights.len();
        if n == 0 {
            return;
        }
        self.columns.clear();
        for k in 0..self.dimension {
            self.columns.extend((0..n).map(|j| self.points[j * self.dimension + k]));
        }
        self.values.resize(self.sum.len() * n, 0.0);
        (self.f)(n, &self.columns, &mut self.values);
        for (sum, values) in self.sum.iter_mut().zip(self.values.chunks_exact(n)) {
            for (weight, value) in self.weights.iter().zip(values) {
                *sum += weight * value;
            }
        }
        self.points.clear();
        self.weights.clear();
        self.values.clear();
    }

    /// The sums, from zero again.
    fn finish(&mut self) -> Vec<f64> {
        self.flush();
        let zeros = vec![0.0; self.sum.len()];
        std::mem::replace(&mut self.sum, zeros)
    }
}

/// The largest error in units of the largest mean.
fn relative(mean: &[f64], error: &[f64]) -> f64 {
    let size = mean.iter().fold(f64::MIN_POSITIVE, |size, m| size.max(m.abs()));
    error.iter().fold(0.0, |worst: f64, e| worst.max(e / size))
}

/// The product rule of about `budget` points, compared with those of 3/4 and 1/2 as many nodes per axis.
fn tensor(
    dimension: usize,
    outputs: usize,
    budget: usize,
    f: &mut impl FnMut(usize, &[f64], &mut [f64]),
) -> Average {
    // The three rules together cost (1 + (3/4)^d + (1/2)^d) n^d.
    let share = budget as f64 / (1.0 + 0.75f64.powi(dimension as i32) + 0.5f64.powi(dimension as i32));
    let nodes = (share.powf(1.0 / dimension.max(1) as f64) as usize).clamp(4, 361);
    let mut points = 0;
    let mut blocks = Blocks::new(dimension, outputs, f);
    let mut average = |nodes: usize| {
        points += add_product(&rule(nodes), dimension, &mut blocks);
        blocks.finish()
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

fn add_product<F: FnMut(usize, &[f64], &mut [f64])>(
    rule: &GaussianRule,
    dimension: usize,
    blocks: &mut Blocks<F>,
) -> usize {
    let n = rule.nodes.len();
    let total = n.pow(dimension as u32);
    let mut z = vec![0.0; dimension];
    for point in 0..total {
        let (mut digits, mut weight) = (point, 1.0);
        for slot in &mut z {
            *slot = rule.nodes[digits % n];
            weight *= rule.weights[digits % n];
            digits /= n;
        }
        blocks.add(weight, &z);
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
    lattice_average(dimension, outputs, budget, &mut point_by_point(dimension, outputs, f))
}

fn lattice_average(
    dimension: usize,
    outputs: usize,
    budget: usize,
    f: &mut impl FnMut(usize, &[f64], &mut [f64]),
) -> Average {
    let wanted = (budget / SHIFTS).max(16);
    let points =
        (wanted.next_power_of_two() / if wanted.is_power_of_two() { 1 } else { 2 }).min(lattice::LARGEST);
    // Past the largest lattice more points mean more shifts.
    let shifts = SHIFTS.max(budget / points);
    let generator = lattice::generator(dimension);
    let mut z = vec![0.0; dimension];
    let mut blocks = Blocks::new(dimension, outputs, f);
    let (mut mean, mut square) = (vec![0.0; outputs], vec![0.0; outputs]);
    for shift in 0..shifts {
        let offsets: Vec<f64> = (0..dimension).map(|j| lattice::uniform(shift as u64, j as u64)).collect();
        for i in 0..points {
            for j in 0..dimension {
                let whole = (i as u64).wrapping_mul(generator[j]) & (points as u64 - 1);
                z[j] = normal_of(whole as f64 / points as f64 + offsets[j]);
            }
            blocks.add(1.0, &z);
        }
        let sum = blocks.finish();
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

    #[test]
    fn the_same_call_gives_the_same_numbers() {
        let run = || expectation(7, 1, |z, out| out[0] = z[0] * z[6] + z[3].exp(), 10_000);
        assert_eq!(run().mean, run().mean);
    }

    #[test]
    fn blocks_of_points_give_the_sums_of_single_points() {
        for dimension in [1, 3, 6] {
            let f = |z: &[f64]| [z.iter().sum::<f64>().abs(), z[0].exp()];
            let one = expectation(dimension, 2, |z, out| out.copy_from_slice(&f(z)), 5000);
            let whole = |n: usize, z: &[f64], out: &mut [f64]| {
                for j in 0..n {
                    let point: Vec<f64> = (0..dimension).map(|k| z[k * n + j]).collect();
                    [out[j], out[n + j]] = f(&point);
                }
            };
            let many = expectation_in_blocks(dimension, 2, whole, 5000);
            assert_eq!((one.mean, one.error), (many.mean, many.error), "{dimension}");
        }
    }

    #[test]
    fn no_dimension_is_a_constant() {
        assert_eq!(expectation(0, 1, |_, out| out[0] = 2.5, 1000).mean, [2.5]);
    }
}
