//! E[c c c c] of erf units under the square loss: the part of it that is not elementary, and how much of it has to be computed.
//!
//! E_B[e_0⁴] = 3 E_B[e_0²]² + χ_B (the notation is that of the module `erf`), where χ_B is an integral over closed forms. It is a small part of
//! E[c c c c], which is a small part of the covariance of a step. A [`FourthRule`] says how many nodes the integral has, and whether the
//! kurtosis χ_B/E_B[e_0²]² is computed for every four rows or interpolated between those of two pairs.
//! docs/derivations/fluctuations.md#s7-erf

use super::products::triangle;
use didact_math::gauss::angles;
use didact_math::gauss::quadrature::{LARGEST_SQUARED, gauss_squared};
use didact_math::linalg::Mat;
use std::f64::consts::FRAC_2_PI;

/// What multiplies ρ^{−2n} in the error of the integral over t, in units of E_B[e_0⁴]: a dozen at most in examples of all kinds, at
/// variances from 0.3 to 30.
const FRONT: f64 = 20.0;
/// Below this share of Σ_ab |v_a v_b| an average of e_0² is rounding, and its kurtosis nothing.
const ROUNDING: f64 = 1e-13;

/// How E[c c c c] is averaged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FourthRule {
    /// Nodes of the integral over t.
    pub(super) nodes: Nodes,
    /// Whether the kurtosis is computed for every four rows, not interpolated.
    pub(super) every: bool,
}

/// How many nodes an integral has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Nodes {
    /// So many that the error is below this share of the average, by its bound.
    Within(f64),
    /// This many, with this error.
    Count(usize, f64),
}

impl FourthRule {
    /// Everything computed, to a relative accuracy.
    pub(super) fn every(accuracy: f64) -> Self {
        Self { nodes: Nodes::Within(accuracy), every: true }
    }
}

/// All multisets of four of the first rows, in descending order.
pub(super) fn fourfolds(rows: usize) -> impl Iterator<Item = [usize; 4]> {
    (0..rows).flat_map(|i| {
        (0..=i).flat_map(move |j| (0..=j).flat_map(move |n| (0..=n).map(move |l| [i, j, n, l])))
    })
}

/// Whether an average of e_0² is rounding.
pub(super) fn negligible(square: f64, v: &[f64]) -> bool {
    let size: f64 = v.iter().map(|x| x.abs()).sum();
    square <= ROUNDING * size * size
}

/// χ/E[e_0²]².
pub(super) fn kurtosis(excess: f64, square: f64, v: &[f64]) -> f64 {
    if negligible(square, v) { 0.0 } else { excess / (square * square) }
}

/// The kurtoses of four rows in two pairs (i, i, j, j), by the place of (i, j) in a triangle.
pub(super) fn even_kurtoses(known: &[([usize; 4], f64)], rows: usize) -> Vec<f64> {
    let mut even = vec![0.0; rows * (rows + 1) / 2];
    for ([i, j, n, l], value) in known {
        if i == j && n == l {
            even[triangle(*i, *n)] = *value;
        }
    }
    even
}

/// A kurtosis as the quadratic form of the multiplicities of rows that is exact for two pairs: with λ_i the share of row i of the four and
/// φ_ij the kurtosis of (i, i, j, j), Σ_i φ_ii λ_i (2 λ_i − 1) + Σ_{i<j} 4 λ_i λ_j φ_ij.
pub(super) fn interpolated(four: [usize; 4], even: &[f64]) -> f64 {
    let mut sum = 0.0;
    for a in four {
        sum -= 2.0 * even[triangle(a, a)];
        for b in four {
            sum += even[triangle(a, b)];
        }
    }
    sum / 8.0
}

/// A Gaussian law under the weights φ of some fields: its covariance, and the average of the weights.
#[derive(Clone)]
pub(super) struct Tilted {
    pub(super) fields: usize,
    pub(super) covariance: Vec<f64>,
    pub(super) weight: f64,
}

impl Tilted {
    /// The law of the scaled fields.
    pub(super) fn plain(s: &[f64], covariance: &Mat) -> Self {
        let p = s.len();
        let covariance = (0..p * p).map(|at| s[at / p] * s[at % p] * covariance[(at / p, at % p)]).collect();
        Self { fields: p, covariance, weight: 1.0 }
    }

    /// E[e_0²].
    pub(super) fn square(&self, v: &[f64], room: &mut [f64]) -> f64 {
        FRAC_2_PI * angles::plain_angles(&self.covariance, v, room)
    }

    /// E[e_0²] under the weights of the pairs (a, b) of the first fields.
    pub(super) fn squares(&self, v: &[f64], room: &mut [f64], of: &mut [f64]) {
        angles::weighted_angles(&self.covariance, v, room, of);
        of.iter_mut().for_each(|x| *x *= FRAC_2_PI);
    }

    pub(super) fn at(&self, a: usize, b: usize) -> f64 {
        self.covariance[a * self.fields + b]
    }

    /// The law under one more weight.
    pub(super) fn by(&self, i: usize) -> Self {
        let p = self.fields;
        let own = 1.0 + self.at(i, i);
        let row = &self.covariance[i * p..(i + 1) * p];
        let mut covariance = self.covariance.clone();
        for (out, x) in covariance.chunks_exact_mut(p).zip(row) {
            out.iter_mut().zip(row).for_each(|(c, y)| *c -= x * y / own);
        }
        Self { fields: p, covariance, weight: self.weight / own.sqrt() }
    }

    /// E[g′_a g′_b].
    pub(super) fn slopes(&self, a: usize, b: usize) -> f64 {
        let x = self.at(a, b);
        FRAC_2_PI / ((1.0 + self.at(a, a)) * (1.0 + self.at(b, b)) - x * x).sqrt()
    }
}

/// Nodes and weights of the integral over t.
pub(super) struct Integral {
    nodes: Vec<(f64, f64)>,
    pub(super) error: f64,
}

impl Integral {
    /// The rule of Gauss for the weight x² with t = ((1+4V)^x − 1)/(4V), V the largest variance: the integrand begins as t². It is singular
    /// where 1 + 4 t B_aa ≤ 0 at most (four equal fields), which in x are the lines Im x = ±π/ln(1+4V): with σ = 2π/ln(1+4V) and
    /// ρ = σ + √(σ²+1) the error falls as ρ^{−2n}. Weights only make variances smaller, so that those of C decide.
    pub(super) fn new(plain: &Tilted, asked: Nodes) -> Self {
        let reach = 4.0 * (0..plain.fields).map(|a| plain.at(a, a)).fold(1e-3, f64::max);
        let length = reach.ln_1p();
        let width = 2.0 * std::f64::consts::PI / length;
        let rate = 2.0 * (width + (width * width + 1.0).sqrt()).ln();
        let bound = |count: usize| FRONT * (-rate * count as f64).exp();
        let (count, error) = match asked {
            Nodes::Count(count, error) => (count, error),
            Nodes::Within(accuracy) => {
                let count = ((FRONT / accuracy.max(1e-14)).ln() / rate).ceil();
                let count = (count.max(2.0) as usize).min(LARGEST_SQUARED);
                (count, bound(count))
            }
        };
        let node = |(x, w): &(f64, f64)| {
            let grown = (x * length).exp_m1();
            (grown / reach, w / (x * x) * length * (1.0 + grown) / reach)
        };
        Self { nodes: gauss_squared(count).iter().map(node).collect(), error }
    }

    /// χ_B = E_B[e_0⁴] − 3 E_B[e_0²]².
    pub(super) fn excess(&self, law: &Tilted, v: &[f64], room: &mut [f64]) -> f64 {
        let p = law.fields;
        let mut of_pairs = vec![0.0; p * (p + 1) / 2];
        let mut part = law.clone();
        let mut ends = vec![0.0; p];
        let mut sum = 0.0;
        for (t, weight) in &self.nodes {
            for (x, whole) in part.covariance.iter_mut().zip(&law.covariance) {
                *x = t * whole;
            }
            let square = part.square(v, room);
            part.squares(v, room, &mut of_pairs);
            (0..p).for_each(|a| ends[a] = 1.0 / (1.0 + part.at(a, a)));
            let mut inner = 0.0;
            for a in 0..p {
                for b in 0..=a {
                    let twice = if a == b { 0.5 } else { 1.0 };
                    let x = part.slopes(a, b) * (of_pairs[triangle(a, b)] - square);
                    inner += twice * (ends[a] + ends[b]) * v[a] * v[b] * law.at(a, b) * x;
                }
            }
            sum += weight * inner;
        }
        6.0 * sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpolated_kurtoses_are_those_of_two_pairs_and_of_linear_laws() {
        // φ of shares λ: exact for all quadratic forms.
        let form = |four: [usize; 4]| {
            let share = |row: usize| four.iter().filter(|x| **x == row).count() as f64 / 4.0;
            let (x, y) = (share(0), share(1));
            0.3 + 0.7 * x - 0.2 * y + 1.1 * x * x - 0.6 * x * y + 0.4 * y * y
        };
        let known: Vec<([usize; 4], f64)> = fourfolds(3).map(|four| (four, form(four))).collect();
        let even = even_kurtoses(&known, 3);
        for (four, value) in known {
            assert!((interpolated(four, &even) - value).abs() < 1e-14, "{four:?}");
        }
    }
}
