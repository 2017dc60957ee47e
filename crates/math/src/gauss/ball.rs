//! E[f(z)] of a smooth function of two to six independent standard normals, by a lattice in a ball.
//!
//! For a function that decays on all sides equal weights on a lattice are a trapezoidal rule in many dimensions: the error is the
//! Fourier transform of f(z) φ(z) at the points of the dual lattice, so that it falls exponentially with the number of points where f
//! is smooth. Points outside of a ball carry no weight worth an evaluation.
//!
//! The lattices are those of Korobov, x_i = frac(i (1, a, a², …)/n), stretched over a cube. The multipliers a were found by search (2000
//! to 120 random ones for each n and dimension): the one taken sums the hardest function of its class with the smallest error,
//! f(z) = ∏ 1/(1 + z_j²), whose Fourier transform is positive, so that this error bounds those at all shifts.

use super::expectation::{Average, AverageMethod, relative};
use super::lattice;

/// Half the side of the cube: a standard normal is beyond it with probability 1.6e-10.
const HALF_SIDE: f64 = 6.4;
/// log₂ of the smallest lattice.
const SMALLEST: usize = 10;
/// The fewest dimensions.
pub const FEWEST: usize = 2;
/// The most dimensions.
pub const MOST: usize = FEWEST + 4;
/// Points that are handed over together.
const BLOCK: usize = 512;
/// Independent shifts of the lattice. Their scatter is twice the standard error of their mean, and is stated as the error: with so
/// few of them it is itself uncertain.
const SHIFTS: usize = 4;
/// Width of the outermost shell, whose part of the sum bounds what is beyond.
const SHELL: f64 = 0.5;

/// Multipliers for 2^10, 2^11, … points (rows) and 2 to 6 dimensions (columns).
const MULTIPLIERS: [[u64; MOST - FEWEST + 1]; 13] = [
    [109, 777, 27, 909, 21],
    [399, 1545, 195, 1125, 317],
    [53, 123, 2905, 2299, 3271],
    [497, 755, 5773, 3909, 7109],
    [12527, 2107, 13967, 14715, 13899],
    [10601, 28989, 12717, 32675, 2327],
    [24143, 48199, 45433, 57543, 18091],
    [88561, 48199, 20599, 60363, 60005],
    [64079, 174053, 167223, 118833, 86955],
    [226493, 4377, 284625, 44119, 363453],
    [602221, 903507, 173809, 867441, 150063],
    [1102349, 1999665, 5567, 451187, 1009007],
    [394603, 841501, 3897589, 786475, 919205],
];

/// Some points, coordinate by coordinate: `coordinates[j * size + p]` is coordinate j of point p.
#[derive(Debug, Clone, Copy)]
pub struct WeightedPoints<'a> {
    /// dimension x size.
    pub coordinates: &'a [f64],
    /// One per point. They are in proportion to the Gaussian density; all weights of a sum add up to about 1.
    pub weights: &'a [f64],
}

impl WeightedPoints<'_> {
    /// Number of points.
    pub fn size(&self) -> usize {
        self.weights.len()
    }
}

/// The radius of the ball: P(|z| > r) is about 1e-9, so that 1e-6 of the average of a function is not beyond it even where it
/// grows a thousandfold.
fn radius(dimension: usize) -> f64 {
    [6.44, 6.7, 6.92, 7.12, 7.3][dimension - FEWEST]
}

/// About how many points of the lattices of a level are in the ball, whose volume is π^{n/2} rⁿ/Γ(n/2 + 1).
fn cost(dimension: usize, level: usize) -> f64 {
    let unit_ball = (1..=dimension).fold(if dimension.is_multiple_of(2) { 1.0 } else { 2.0 }, |volume, n| {
        if n % 2 == dimension % 2 && n > 1 { volume * std::f64::consts::TAU / n as f64 } else { volume }
    });
    let share = unit_ball * (radius(dimension) / (2.0 * HALF_SIDE)).powi(dimension as i32);
    (SHIFTS << (level + SMALLEST)) as f64 * share.min(1.0)
}

/// How large a lattice to begin with, and what to stop at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// Largest error, in units of the largest mean.
    pub accuracy: f64,
    /// About as many points are summed over by the last lattices at most, and as many again by those before.
    pub budget: usize,
    /// Sizes that are passed over, because an earlier sum needed a larger one.
    pub first_level: usize,
}

/// An average over a ball, and the level of the lattice that gave it: 0 for the smallest, one more for each doubling.
#[derive(Debug, Clone)]
pub struct BallAverage {
    /// The average with the error that was found.
    pub average: Average,
    /// See [`Effort::first_level`].
    pub level: usize,
}

/// E[f(z)], z ~ N(0, I): `add(points, sums)` adds Σ weight · f(z) over some points to the sums, one per output.
///
/// The lattice is doubled until the error is within the accuracy or the budget spent. The error is the scatter of four
/// shifts, with the part of the outermost shell.
///
/// # Panics
///
/// For dimensions other than 2 to 6.
pub fn over_ball(
    dimension: usize,
    outputs: usize,
    effort: Effort,
    add: &mut dyn FnMut(&WeightedPoints, &mut [f64]),
) -> BallAverage {
    assert!((FEWEST..=MOST).contains(&dimension), "lattices are known for {FEWEST} to {MOST} dimensions");
    let mut points = 0;
    let mut level = effort.first_level.min(MULTIPLIERS.len() - 1);
    loop {
        let mut sums = Vec::with_capacity(SHIFTS);
        let mut shells = vec![0.0; outputs];
        for shift in 0..SHIFTS {
            let lattice = Lattice::new(dimension, level, shift);
            let (sum, shell, count) = lattice.sum(outputs, add);
            points += count;
            for (worst, part) in shells.iter_mut().zip(shell) {
                *worst = f64::max(*worst, part.abs());
            }
            sums.push(sum);
        }
        let mean: Vec<f64> =
            (0..outputs).map(|o| sums.iter().map(|sum| sum[o]).sum::<f64>() / SHIFTS as f64).collect();
        let error: Vec<f64> = (0..outputs)
            .map(|o| {
                let squares: f64 = sums.iter().map(|sum| (sum[o] - mean[o]) * (sum[o] - mean[o])).sum();
                (squares / (SHIFTS - 1) as f64).sqrt() + shells[o]
            })
            .collect();
        let accurate = relative(&mean, &error) <= effort.accuracy;
        // The next level costs twice as much as this one.
        let spent = level + 1 == MULTIPLIERS.len() || 2.0 * cost(dimension, level) > effort.budget as f64;
        if accurate || spent {
            let method = AverageMethod::Ball { points: 1 << (level + SMALLEST) };
            return BallAverage { average: Average { mean, error, method, points }, level };
        }
        level += 1;
    }
}

/// One lattice at one shift.
struct Lattice {
    count: u64,
    generator: Vec<u64>,
    offsets: Vec<f64>,
}

impl Lattice {
    fn new(dimension: usize, level: usize, shift: usize) -> Self {
        let count = 1u64 << (level + SMALLEST);
        let multiplier = MULTIPLIERS[level][dimension - FEWEST];
        let power = |power: &mut u64, _: usize| {
            let now = *power;
            *power = now.wrapping_mul(multiplier) & (count - 1);
            Some(now)
        };
        let generator = (0..dimension).scan(1, power).collect();
        let offsets = (0..dimension).map(|j| lattice::uniform(shift as u64, j as u64)).collect();
        Self { count, generator, offsets }
    }

    /// The sum over the ball, the part of the outermost shell in it, and the number of points.
    fn sum(
        &self,
        outputs: usize,
        add: &mut dyn FnMut(&WeightedPoints, &mut [f64]),
    ) -> (Vec<f64>, Vec<f64>, usize) {
        let dimension = self.generator.len();
        let radius = radius(dimension);
        let (edge, inner) = (radius * radius, (radius - SHELL) * (radius - SHELL));
        let unit =
            (2.0 * HALF_SIDE / std::f64::consts::TAU.sqrt()).powi(dimension as i32) / self.count as f64;
        let mut groups = [Group::new(dimension, outputs), Group::new(dimension, outputs)];
        let mut columns = vec![0.0; dimension * BLOCK];
        let mut squares = vec![0.0; BLOCK];
        let mut begin = 0;
        while begin < self.count {
            squares.fill(0.0);
            for (j, column) in columns.chunks_exact_mut(BLOCK).enumerate() {
                coordinates(begin, self.generator[j], self.count, self.offsets[j], column, &mut squares);
            }
            for (p, square) in squares.iter().enumerate().filter(|(_, square)| **square <= edge) {
                let group = &mut groups[usize::from(*square > inner)];
                group.push(columns.iter().skip(p).step_by(BLOCK), unit * (-0.5 * square).exp(), add);
            }
            begin += BLOCK as u64;
        }
        let [ball, shell] = groups.map(|mut group| {
            group.flush(add);
            group
        });
        let whole = ball.sum.iter().zip(&shell.sum).map(|(a, b)| a + b).collect();
        (whole, shell.sum, ball.total + shell.total)
    }
}

crate::dispatch! {
    /// One coordinate of the points from `begin` on, and its square added to `squares`.
    fn coordinates(begin: u64, step: u64, count: u64, offset: f64, out: &mut [f64], squares: &mut [f64]) {
        let inverse = 1.0 / count as f64;
        for (p, (z, square)) in out.iter_mut().zip(squares).enumerate() {
            let whole = (begin + p as u64).wrapping_mul(step) & (count - 1);
            // Counts are below 2³², which convert exactly and fast.
            let x = f64::from(whole as u32) * inverse + offset;
            *z = HALF_SIDE * (2.0 * (x - x.floor()) - 1.0);
            *square += *z * *z;
        }
    }
}

/// WeightedPoints that are waiting to be summed over.
struct Group {
    coordinates: Vec<f64>,
    weights: Vec<f64>,
    sum: Vec<f64>,
    total: usize,
}

impl Group {
    fn new(dimension: usize, outputs: usize) -> Self {
        Self {
            coordinates: vec![0.0; dimension * BLOCK],
            weights: Vec::with_capacity(BLOCK),
            sum: vec![0.0; outputs],
            total: 0,
        }
    }

    fn push<'a>(
        &mut self,
        point: impl Iterator<Item = &'a f64>,
        weight: f64,
        add: &mut dyn FnMut(&WeightedPoints, &mut [f64]),
    ) {
        let at = self.weights.len();
        for (j, z) in point.enumerate() {
            self.coordinates[j * BLOCK + at] = *z;
        }
        self.weights.push(weight);
        if at + 1 == BLOCK {
            self.flush(add);
        }
    }

    fn flush(&mut self, add: &mut dyn FnMut(&WeightedPoints, &mut [f64])) {
        let size = self.weights.len();
        if size == 0 {
            return;
        }
        if size < BLOCK {
            // Coordinates of a part of a block move together.
            for j in 1..self.coordinates.len() / BLOCK {
                self.coordinates.copy_within(j * BLOCK..j * BLOCK + size, j * size);
            }
        }
        let dimension = self.coordinates.len() / BLOCK;
        let points =
            WeightedPoints { coordinates: &self.coordinates[..dimension * size], weights: &self.weights };
        add(&points, &mut self.sum);
        self.total += size;
        self.weights.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::quadrature::{GaussianRule, REACH};
    use super::*;

    /// The average of a function of one point.
    fn average(dimension: usize, accuracy: f64, budget: usize, f: impl Fn(&[f64]) -> f64) -> BallAverage {
        let mut point = vec![0.0; dimension];
        let mut add = |points: &WeightedPoints, sums: &mut [f64]| {
            for (p, w) in points.weights.iter().enumerate() {
                for (j, z) in point.iter_mut().enumerate() {
                    *z = points.coordinates[j * points.size() + p];
                }
                sums[0] += w * f(&point);
            }
        };
        over_ball(dimension, 1, Effort { accuracy, budget, first_level: 0 }, &mut add)
    }

    #[test]
    fn weights_add_up_to_one() {
        for dimension in FEWEST..=6 {
            let found = average(dimension, 1e-7, 1 << 22, |_| 1.0).average;
            assert!((found.mean[0] - 1.0).abs() < 3e-7, "{dimension}: {found:?}");
        }
    }

    /// A ridge function along any direction is an average over one normal.
    #[test]
    fn ridges_of_smooth_units_converge_within_the_stated_error() {
        let one = GaussianRule::trapezoid(0.05, REACH).average(|x| (1.5 * x + 0.2).tanh().powi(2));
        for (dimension, budget) in [(2, 1 << 14), (3, 1 << 17), (4, 1 << 20), (5, 1 << 22)] {
            let direction: Vec<f64> = (0..dimension).map(|j| (1.0 + j as f64).sqrt()).collect();
            let norm = direction.iter().map(|x| x * x).sum::<f64>().sqrt();
            let found = average(dimension, 1e-6, budget, |z| {
                let u = z.iter().zip(&direction).map(|(a, b)| a * b).sum::<f64>() / norm;
                (1.5 * u + 0.2).tanh().powi(2)
            });
            let Average { mean, error, .. } = found.average;
            assert!((mean[0] - one).abs() <= error[0], "{dimension}: off by {:e}, {error:?}", mean[0] - one);
            assert!(error[0] <= 1e-6 * one, "{dimension}: {error:?} at level {}", found.level);
        }
    }

    #[test]
    fn kinks_have_honest_errors() {
        let exact = (1.0 / std::f64::consts::TAU).sqrt();
        for dimension in [2, 3, 4] {
            let scale = (dimension as f64).sqrt().recip();
            let found =
                average(dimension, 1e-6, 1 << 18, |z| (scale * z.iter().sum::<f64>()).max(0.0)).average;
            assert!((found.mean[0] - exact).abs() <= 3.0 * found.error[0], "{dimension}: {found:?}");
        }
    }

    #[test]
    fn a_function_that_outgrows_the_ball_is_found_out() {
        // E[e^{2.5 (z₁ + z₂)}]: most of it is at |z| = 3.5, a part in 10³ beyond the ball.
        let exact = 6.25f64.exp();
        let found = average(2, 1e-6, 1 << 16, |z| (2.5 * (z[0] + z[1])).exp()).average;
        let off = (found.mean[0] - exact).abs();
        assert!(off > 1e-6 * exact && found.error[0] > 0.5 * off, "{found:?}, off by {off:e}");
    }

    #[test]
    fn a_level_that_is_known_to_be_needed_is_the_first() {
        let f = |z: &[f64]| (1.5 * z[0]).tanh().powi(2) * z[2].cos();
        let climbed = average(3, 1e-7, 1 << 20, f);
        let mut counted = 0;
        let mut add = |points: &WeightedPoints, sums: &mut [f64]| {
            counted += points.size();
            let n = points.size();
            for (p, w) in points.weights.iter().enumerate() {
                let c = points.coordinates;
                sums[0] += w * f(&[c[p], c[n + p], c[2 * n + p]]);
            }
        };
        let effort = Effort { accuracy: 1e-7, budget: 1 << 20, first_level: climbed.level };
        let direct = over_ball(3, 1, effort, &mut add);
        assert_eq!(direct.average.mean, climbed.average.mean);
        assert!(counted < climbed.average.points && counted == direct.average.points);
    }
}
