//! E[f(z)] of a vector function of independent standard normals, with an error estimate.
//!
//! Deterministic: the same call gives the same numbers every time, on every machine.

use super::lattice;
use super::normal::quantile;
use super::quadrature::{GaussianRule, REACH, gauss_hermite};

/// An average and how far it can be trusted.
#[derive(Clone, Debug)]
pub struct Average {
    /// One entry per output.
    pub mean: Vec<f64>,
    /// Per output: difference of two rules (tensor), or standard error over the shifts (lattice).
    pub error: Vec<f64>,
    /// How it was computed.
    pub method: Method,
    /// Evaluations of f.
    pub points: usize,
}

/// How an average was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
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

/// Up to this many dimensions a product rule is tried first.
const TENSOR_DIMENSIONS: usize = 4;
/// A product rule that agrees with its coarser twin this well is accepted without trying the lattice.
const ACCEPTED: f64 = 1e-9;
/// Independent shifts of the lattice: the standard error is itself known to 1/√30 = 18 %.
const SHIFTS: usize = 16;

/// E[f(z)], z ~ N(0, I), with about `budget` evaluations of `f(z, out)`.
///
/// Up to four dimensions a product rule is used if it has converged (two sizes agree to 1e-9 of the size of f); else,
/// and in higher dimensions, the average over 16 shifted lattices, whichever of the two states the smaller error.
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
    let relative = |average: &Average| {
        let size = average.mean.iter().fold(f64::MIN_POSITIVE, |size, m| size.max(m.abs()));
        average.error.iter().fold(0.0, |worst: f64, e| worst.max(e / size))
    };
    if relative(&product) <= ACCEPTED {
        return product;
    }
    let spread = quasi_monte_carlo(dimension, outputs, budget, &mut f);
    if relative(&spread) < relative(&product) { spread } else { product }
}

/// The product rule of about `budget` points, compared with one of 3/4 as many nodes per axis.
fn tensor(
    dimension: usize,
    outputs: usize,
    budget: usize,
    f: &mut impl FnMut(&[f64], &mut [f64]),
) -> Average {
    // Fine and coarse rule together cost (1 + (3/4)^d) n^d.
    let share = budget as f64 / (1.0 + 0.75f64.powi(dimension as i32));
    let nodes = (share.powf(1.0 / dimension.max(1) as f64) as usize).clamp(4, 361);
    let mut points = 0;
    let mut average = |nodes: usize| {
        let rule = rule(nodes);
        let mut sum = vec![0.0; outputs];
        points += product_sum(&rule, dimension, f, &mut sum);
        sum
    };
    let (coarse, mean) = (average(nodes * 3 / 4), average(nodes));
    let error = coarse.iter().zip(&mean).map(|(a, b)| (a - b).abs()).collect();
    Average { mean, error, method: Method::Tensor { nodes }, points }
}

/// Few nodes: Gauss-Hermite, exact for polynomials. Many: the trapezoid, which copes with poles of tanh and sigmoid.
fn rule(nodes: usize) -> GaussianRule {
    if nodes < 60 {
        gauss_hermite(nodes).clone()
    } else {
        GaussianRule::trapezoid(2.0 * REACH / (nodes - 1) as f64, REACH)
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
    let wanted = (budget / SHIFTS).max(16);
    let points =
        (wanted.next_power_of_two() / if wanted.is_power_of_two() { 1 } else { 2 }).min(lattice::LARGEST);
    // Past the largest lattice more points mean more shifts.
    let shifts = SHIFTS.max(budget / points);
    let generator = lattice::generator(dimension);
    let (mut z, mut out) = (vec![0.0; dimension], vec![0.0; outputs]);
    let (mut mean, mut square) = (vec![0.0; outputs], vec![0.0; outputs]);
    for shift in 0..shifts {
        let offsets: Vec<f64> = (0..dimension).map(|j| lattice::uniform(shift as u64, j as u64)).collect();
        let mut sum = vec![0.0; outputs];
        for i in 0..points {
            for j in 0..dimension {
                let whole = (i as u64).wrapping_mul(generator[j]) & (points as u64 - 1);
                z[j] = normal_of(whole as f64 / points as f64 + offsets[j]);
            }
            f(&z, &mut out);
            for (sum, value) in sum.iter_mut().zip(&out) {
                *sum += value;
            }
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
    Average { mean, error, method: Method::Lattice { points, shifts }, points: points * shifts }
}

/// The normal deviate of a point of the unit circle, through the tent map 1 − |2x − 1|.
fn normal_of(x: f64) -> f64 {
    let folded = 1.0 - (2.0 * x.fract() - 1.0).abs();
    // Keep off 0 and 1, where the normal deviate is infinite.
    quantile(folded.clamp(1e-300, 1.0 - f64::EPSILON / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomials_are_exact_in_low_dimension() {
        for dimension in 1..=4 {
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
            assert!(matches!(average.method, Method::Tensor { .. }));
            assert!(average.points <= 200_000);
        }
    }

    #[test]
    fn kinks_in_three_dimensions_go_to_the_lattice() {
        let average = expectation(3, 1, |z, out| out[0] = (z[0] + z[1] + z[2]).max(0.0), 400_000);
        let exact = (3.0 / (2.0 * std::f64::consts::PI)).sqrt();
        assert!(matches!(average.method, Method::Lattice { .. }), "{average:?}");
        assert!(
            (average.mean[0] - exact).abs() < 5.0 * average.error[0] && average.error[0] < 1e-4,
            "{average:?}"
        );
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
    fn no_dimension_is_a_constant() {
        assert_eq!(expectation(0, 1, |_, out| out[0] = 2.5, 1000).mean, [2.5]);
    }
}
