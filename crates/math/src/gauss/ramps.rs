//! Averages of functions that are linear between kinks, in closed form up to a one-dimensional integral.
//!
//! With z = m + s u, u ~ N(0, 1), such a function is its line at the mean plus one ramp per kink that points away from the mean. A ramp
//! at the distance a ≥ 0 has
//!
//!   E[(u − a)₊] = M(a) = φ(a) − a Q(a),   E[u (u − a)₊] = Q(a) = Φ(−a),   E[(u − a)₊(u − b)₊] = Q(b) − a M(b) for a ≤ b,
//!
//! and two ramps that point in opposite directions have the product 0. For two fields of correlation ρ
//!
//!   Cov((u − τ₁)₊, (v − τ₂)₊) = ρ Q(τ₁) Q(τ₂) + K(τ₁, τ₂; ρ),      ∂²K/∂ρ² = φ₂(τ₁, τ₂; ρ),   K = ∂K/∂ρ = 0 at ρ = 0
//!
//! with the density φ₂ of two correlated normals (R. L. Plackett, Biometrika 41, 351 (1954)). K is integrated from the nearer of ρ = 0
//! and ρ = 1, at both of which it is known, so that it keeps its digits where two fields become the same.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use super::normal::{cdf, density};
use super::pairs::PairAverages;
use super::quadrature::gauss_legendre;
use crate::activation::LinearPieces;
use crate::simd::scalar;

/// E[(u − a)₊] for a ≥ 0, from φ(a) and Q(a).
fn mean_of_ramp(a: f64, density: f64, tail: f64) -> f64 {
    density - a * tail
}

/// A function of z = m + s u to first order in u, and its variance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SegmentMoments {
    /// E\[σ\].
    pub mean: f64,
    /// E[σ u] = s E[σ′].
    pub first: f64,
    /// E\[σ²\] − E\[σ\]².
    pub variance: f64,
}

/// The moments of σ(m + s u), one at a time: the slow twin of [`Ramps`].
pub fn moments(pieces: &LinearPieces, mean: f64, deviation: f64) -> SegmentMoments {
    if deviation == 0.0 {
        return SegmentMoments { mean: pieces.value(mean), first: 0.0, variance: 0.0 };
    }
    // (direction, a, jump·s, Q, M) of every ramp.
    let ramps: Vec<[f64; 5]> = pieces
        .kinks
        .iter()
        .map(|kink| {
            let tau = (kink.at - mean) / deviation;
            let (a, tail) = (tau.abs(), cdf(-tau.abs()));
            let direction = if tau < 0.0 { -1.0 } else { 1.0 };
            [direction, a, kink.jump * deviation, tail, mean_of_ramp(a, density(a), tail)]
        })
        .collect();
    let passed = |kink: &&crate::activation::Kink| kink.at < mean;
    let line =
        deviation * (pieces.slope + pieces.kinks.iter().filter(passed).map(|kink| kink.jump).sum::<f64>());
    let mut out = SegmentMoments { mean: pieces.value(mean), first: line, variance: line * line };
    for (j, &[direction, a, size, tail, ramp]) in ramps.iter().enumerate() {
        out.mean += size * ramp;
        out.first += size * direction * tail;
        out.variance += 2.0 * line * size * direction * tail;
        for (k, &[other_direction, b, other_size, other_tail, other_ramp]) in ramps[..=j].iter().enumerate() {
            let product = if direction != other_direction {
                0.0
            } else if a >= b {
                tail - b * ramp
            } else {
                other_tail - a * other_ramp
            };
            let twice = if k < j { 2.0 } else { 1.0 };
            out.variance += twice * size * other_size * (product - ramp * other_ramp);
        }
    }
    out
}

/// K(τ₁, τ₂; ρ) and its slope in ρ.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Remainder {
    value: f64,
    slope: f64,
}

/// Correlations below this are reached from 0, others from 1 with panels.
const MIDDLE: f64 = FRAC_1_SQRT_2;
/// Gauss-Legendre nodes of an integral from 0: precise to rounding (A. Genz, Statistics and Computing 14, 251 (2004)).
const FROM_ZERO: usize = 16;
/// Nodes of each panel of an integral from 1. Panels halve towards ρ = 1, where e^{−δ²/2ψ²} has an essential singularity.
const FROM_ONE: usize = 14;
const MOST_HALVINGS: u32 = 30;

fn remainder(first: f64, second: f64, rho: f64) -> Remainder {
    if rho < 0.0 {
        let mirrored = remainder(first, -second, -rho);
        return Remainder { value: mirrored.value, slope: -mirrored.slope };
    }
    let mut out = Remainder { value: 0.0, slope: 0.0 };
    if rho <= MIDDLE {
        let half = 0.5 * rho.asin();
        let rule = gauss_legendre(FROM_ZERO);
        for (x, w) in rule.nodes.iter().zip(&rule.weights) {
            let r = (half * (1.0 + x)).sin();
            let square = first * first - 2.0 * r * first * second + second * second;
            let density = half * w * (-0.5 * square / (1.0 - r * r)).exp() / (2.0 * PI);
            out.slope += density;
            out.value += (rho - r) * density;
        }
        return out;
    }
    // r = cos ψ.
    let end = ((1.0 - rho) * (1.0 + rho)).sqrt().atan2(rho);
    let apart = (first - second).abs();
    let rule = gauss_legendre(FROM_ONE);
    let mut high = end;
    for halving in 0..=MOST_HALVINGS {
        // Below δ/9 the integrand is less than e^{−40}.
        let last = apart == 0.0 || halving == MOST_HALVINGS;
        let low = if last { 0.0 } else { 0.5 * high };
        let half = 0.5 * (high - low);
        for (x, w) in rule.nodes.iter().zip(&rule.weights) {
            let psi = low + half * (1.0 + x);
            let (sine, cosine) = psi.sin_cos();
            let exponent = -0.5 * (apart / sine).powi(2) - first * second / (1.0 + cosine);
            let density = half * w * exponent.exp() / (2.0 * PI);
            out.slope -= density;
            // cos ψ − ρ.
            out.value += 2.0 * (0.5 * (end - psi)).sin() * (0.5 * (end + psi)).sin() * density;
        }
        if last || low < apart / 9.0 {
            break;
        }
        high = low;
    }
    let [a, b] = [first.abs(), second.abs()];
    let [tail, other_tail] = [cdf(-a), cdf(-b)];
    let [ramp, other_ramp] = [mean_of_ramp(a, density(a), tail), mean_of_ramp(b, density(b), other_tail)];
    let (value, slope) = at_one(first * second >= 0.0, [a, b], [tail, other_tail], [ramp, other_ramp]);
    out.slope += slope;
    out.value += value - (1.0 - rho) * slope;
    out
}

/// K and ∂K/∂ρ at ρ = 1 of two kinks on the same side of the mean or on opposite ones, from their distances, tails Q and ramps M.
#[inline(always)]
fn at_one(same: bool, [a, b]: [f64; 2], [tail, other]: [f64; 2], [ramp, other_ramp]: [f64; 2]) -> (f64, f64) {
    let products = (tail * other, ramp * other_ramp);
    let (near, far_tail, far_ramp) = if a >= b { (b, tail, ramp) } else { (a, other, other_ramp) };
    let near_tail = if a >= b { other } else { tail };
    if same {
        (far_tail - near * far_ramp - products.1 - products.0, far_tail * (1.0 - near_tail))
    } else {
        (products.0 - products.1, products.0)
    }
}

/// The averages of a(u), b(v) for two functions that are linear between kinks, fields of covariance C with positive variances.
pub(super) fn pair(a: &LinearPieces, b: &LinearPieces, c: &[[f64; 2]; 2]) -> PairAverages {
    let [s, t] = [c[0][0].sqrt(), c[1][1].sqrt()];
    let rho = (c[0][1] / (s * t)).clamp(-1.0, 1.0);
    let (own, other) = (moments(a, 0.0, s), moments(b, 0.0, t));
    let mut out = PairAverages {
        value_value: own.mean * other.mean + rho * own.first * other.first,
        slope_slope: own.first / s * (other.first / t),
        curvature_value: dirac(a, b, s, t, rho),
        value_curvature: dirac(b, a, t, s, rho),
    };
    for kink in &a.kinks {
        for partner in &b.kinks {
            let jumps = kink.jump * partner.jump;
            let rest = remainder(kink.at / s, partner.at / t, rho);
            out.value_value += s * t * jumps * rest.value;
            out.slope_slope += jumps * rest.slope;
        }
    }
    out
}

/// Σ over the kinks κ of a: jump · (density of u at κ) · E[b(v) | u = κ].
fn dirac(a: &LinearPieces, b: &LinearPieces, s: f64, t: f64, rho: f64) -> f64 {
    let spread = t * ((1.0 - rho) * (1.0 + rho)).max(0.0).sqrt();
    let term = |kink: &crate::activation::Kink| {
        let tau = kink.at / s;
        kink.jump * density(tau) / s * moments(b, rho * t * tau, spread).mean
    };
    a.kinks.iter().map(term).sum()
}

/// Means that are computed together; lists are filled up to a multiple of it.
pub const LANES: usize = 8;
type Lanes = [f64; LANES];
/// Kinks farther away than this, in deviations, are as good as infinitely far.
const FARTHEST: f64 = 1e3;

/// The moments of one function at many means and one deviation.
#[derive(Clone, Debug, Default)]
pub struct Ramps {
    /// E[σ] at every mean.
    pub mean: Vec<f64>,
    /// E[σ u].
    pub first: Vec<f64>,
    /// The variance.
    pub variance: Vec<f64>,
    deviation: f64,
    jumps: Vec<f64>,
    /// τ, Q and M of every kink at every mean, one kink after the other.
    tau: Vec<f64>,
    tail: Vec<f64>,
    ramp: Vec<f64>,
}

impl Ramps {
    /// The moments at these means, a multiple of [`LANES`] of them, for a positive deviation.
    pub fn fill(&mut self, pieces: &LinearPieces, means: &[f64], deviation: f64) {
        let (n, kinks) = (means.len(), pieces.kinks.len());
        assert!(n.is_multiple_of(LANES) && deviation > 0.0, "whole lanes and a deviation");
        self.deviation = deviation;
        self.jumps.clear();
        self.jumps.extend(pieces.kinks.iter().map(|kink| kink.jump));
        for list in [&mut self.mean, &mut self.first, &mut self.variance] {
            list.resize(n, 0.0);
        }
        for list in [&mut self.tau, &mut self.tail, &mut self.ramp] {
            list.resize(kinks * n, 0.0);
        }
        fill_line(pieces, means, deviation, &mut self.mean, &mut self.first);
        for (j, kink) in pieces.kinks.iter().enumerate() {
            let at = j * n..(j + 1) * n;
            let lists = (&mut self.tau[at.clone()], &mut self.tail[at.clone()], &mut self.ramp[at]);
            fill_kink(kink.at, deviation, means, lists.0, lists.1, lists.2);
        }
        add_ramps(self);
    }

    fn kink(&self, j: usize) -> [&[f64]; 3] {
        let n = self.mean.len();
        [&self.tau, &self.tail, &self.ramp].map(|list| &list[j * n..(j + 1) * n])
    }

    /// Adds scale·Cov(σ_1, σ_2) at every mean for fields of the correlation of the integral.
    pub fn add_covariances(&self, other: &Self, integral: &Plackett, scale: f64, out: &mut [f64]) {
        let linear = scale * integral.rho;
        for ((out, a), b) in out.iter_mut().zip(&self.first).zip(&other.first) {
            *out += linear * a * b;
        }
        for (j, jump) in self.jumps.iter().enumerate() {
            for (k, partner) in other.jumps.iter().enumerate() {
                let factor = scale * self.deviation * other.deviation * jump * partner;
                integral.add(self.kink(j), other.kink(k), factor, out);
            }
        }
    }
}

crate::dispatch! {
    /// σ and s σ′ of the line at each mean.
    fn fill_line(pieces: &LinearPieces, means: &[f64], deviation: f64, mean: &mut [f64], first: &mut [f64]) {
        for ((mean, first), m) in mean.iter_mut().zip(first.iter_mut()).zip(means) {
            *mean = pieces.slope.mul_add(*m, pieces.intercept);
            *first = deviation * pieces.slope;
        }
        for kink in &pieces.kinks {
            let steeper = deviation * kink.jump;
            for ((mean, first), m) in mean.iter_mut().zip(first.iter_mut()).zip(means) {
                *mean = kink.jump.mul_add((m - kink.at).max(0.0), *mean);
                *first += if *m > kink.at { steeper } else { 0.0 };
            }
        }
    }
}

crate::dispatch! {
    /// τ, Q(|τ|) and M(|τ|) of one kink.
    fn fill_kink(at: f64, deviation: f64, means: &[f64], tau: &mut [f64], tail: &mut [f64], ramp: &mut [f64]) {
        let inverse = deviation.recip();
        for (((m, tau), tail), ramp) in means.iter().zip(tau).zip(tail).zip(ramp) {
            let z = (at - m) * inverse;
            let z = if z > FARTHEST { FARTHEST } else { z };
            let z = if z < -FARTHEST { -FARTHEST } else { z };
            let density = scalar::normal_density(z);
            *tau = z;
            *tail = density * scalar::mills_ratio(z);
            *ramp = density - z.abs() * *tail;
        }
    }
}

/// Adds the ramps to the line.
fn add_ramps(all: &mut Ramps) {
    let Ramps { mean, first, variance, deviation, jumps, tau, tail, ramp } = all;
    let n = mean.len();
    square(first, variance);
    let at_kink = |j: usize| j * n..(j + 1) * n;
    for j in 0..jumps.len() {
        let at = at_kink(j);
        let size = *deviation * jumps[j];
        let lists = [&tau[at.clone()], &tail[at.clone()], &ramp[at]];
        for k in 0..=j {
            let at = at_kink(k);
            let partner = [&tau[at.clone()], &tail[at.clone()], &ramp[at]];
            let twice = if k < j { 2.0 } else { 1.0 };
            add_variance(&lists, &partner, twice * size * *deviation * jumps[k], variance);
        }
    }
    // The cross term with the line needs the line alone, so that the ramps are added to it afterwards.
    for j in 0..jumps.len() {
        let at = at_kink(j);
        add_to_line_variance(&tau[at.clone()], &tail[at], 2.0 * *deviation * jumps[j], first, variance);
    }
    for j in 0..jumps.len() {
        let at = at_kink(j);
        add_ramp(&[&tau[at.clone()], &tail[at.clone()], &ramp[at]], *deviation * jumps[j], mean, first);
    }
}

crate::dispatch! {
    fn square(line: &[f64], variance: &mut [f64]) {
        for (line, variance) in line.iter().zip(variance) {
            *variance = line * line;
        }
    }
}

crate::dispatch! {
    /// variance += factor (E[ramp ramp] − M M).
    fn add_variance(own: &[&[f64]; 3], partner: &[&[f64]; 3], factor: f64, variance: &mut [f64]) {
        let ([tau, tail, ramp], [tau_2, tail_2, ramp_2]) = (own, partner);
        let n = variance.len();
        let (tau, tail, ramp) = (&tau[..n], &tail[..n], &ramp[..n]);
        let (tau_2, tail_2, ramp_2) = (&tau_2[..n], &tail_2[..n], &ramp_2[..n]);
        for i in 0..n {
            let (a, b) = (tau[i].abs(), tau_2[i].abs());
            let farther = if a >= b { tail[i] - b * ramp[i] } else { tail_2[i] - a * ramp_2[i] };
            let same = (tau[i] < 0.0) == (tau_2[i] < 0.0);
            let product = if same { farther } else { 0.0 };
            variance[i] += factor * (product - ramp[i] * ramp_2[i]);
        }
    }
}

crate::dispatch! {
    /// variance += factor·line·(±Q).
    fn add_to_line_variance(tau: &[f64], tail: &[f64], factor: f64, line: &[f64], variance: &mut [f64]) {
        for (((tau, tail), line), variance) in tau.iter().zip(tail).zip(line).zip(variance) {
            let signed = if *tau < 0.0 { -tail } else { *tail };
            *variance += factor * line * signed;
        }
    }
}

crate::dispatch! {
    /// mean += size·M, first += size·(±Q).
    fn add_ramp(own: &[&[f64]; 3], size: f64, mean: &mut [f64], first: &mut [f64]) {
        let [tau, tail, ramp] = own;
        let n = mean.len();
        let (tau, tail, ramp, first) = (&tau[..n], &tail[..n], &ramp[..n], &mut first[..n]);
        for i in 0..n {
            mean[i] += size * ramp[i];
            first[i] += size * if tau[i] < 0.0 { -tail[i] } else { tail[i] };
        }
    }
}

/// The integral K(τ₁, τ₂; ρ) at one correlation, for many kinks.
#[derive(Clone, Debug)]
pub struct Plackett {
    rho: f64,
    from_one: bool,
    /// For every node: e^{−p δ² − q τ₁τ₂} times the weight, δ = τ₁ − τ₂.
    nodes: Vec<[f64; 3]>,
}

/// Lists of kinks use integrals from 0 up to this correlation: with a few nodes more these are better than integrals from 1, which are
/// smooth functions of the angle for equal kinks only.
const NEARLY_ONE: f64 = 0.99;

impl Plackett {
    /// With so many nodes for an integral from 0 to a moderate correlation, and more for larger ones. Six nodes give K within 1e-8.
    pub fn new(rho: f64, nodes: usize) -> Self {
        let rho = rho.clamp(-1.0, 1.0);
        let size = rho.abs();
        let from_one = size > NEARLY_ONE;
        let (end, nodes) = match size {
            _ if from_one => (((1.0 - size) * (1.0 + size)).sqrt().atan2(size), 3 * nodes + 6),
            0.95.. => (size.asin(), nodes + 8),
            0.8.. => (size.asin(), nodes + 4),
            _ => (size.asin(), nodes),
        };
        let rule = gauss_legendre(nodes.max(1));
        let node = |(x, w): (&f64, &f64)| {
            let t = 0.5 * (1.0 + x);
            if from_one {
                // Nodes are dense near ρ = 1, where e^{−δ²/2ψ²} varies fast for kinks that are nearly equal.
                let angle = end * t * t;
                let (sine, cosine) = angle.sin_cos();
                let above = 2.0 * (0.5 * (end - angle)).sin() * (0.5 * (end + angle)).sin();
                // At ρ = 1 itself the integral has no length.
                let steepness = if sine > 0.0 { 0.5 / (sine * sine) } else { 0.0 };
                [steepness, 1.0 / (1.0 + cosine), end * t * w * above / (2.0 * PI)]
            } else {
                // τ₁² − 2rτ₁τ₂ + τ₂² = δ² + 2(1 − r)τ₁τ₂ over 2(1 − r²).
                let (sine, cosine) = (end * t).sin_cos();
                let weight = 0.5 * end * w / (2.0 * PI);
                [0.5 / (cosine * cosine), 1.0 / (1.0 + sine), weight * (size - sine)]
            }
        };
        let nodes = rule.nodes.iter().zip(&rule.weights).map(node).collect();
        Self { rho, from_one, nodes }
    }

    /// out += factor·K.
    fn add(&self, own: [&[f64]; 3], partner: [&[f64]; 3], factor: f64, out: &mut [f64]) {
        let mirror = if self.rho < 0.0 { -1.0 } else { 1.0 };
        add_integral(own[0], partner[0], mirror, &self.nodes, factor, out);
        if self.from_one {
            add_end(&own, &partner, mirror, 1.0 - self.rho.abs(), factor, out);
        }
    }
}

crate::dispatch! {
    /// out += factor Σ_q weight_q e^{−p_q δ² − q_q τ₁τ₂}.
    fn add_integral(first: &[f64], second: &[f64], mirror: f64, nodes: &[[f64; 3]], factor: f64, out: &mut [f64]) {
        let lists = first.as_chunks::<LANES>().0.iter().zip(second.as_chunks::<LANES>().0);
        for ((first, second), out) in lists.zip(out.as_chunks_mut::<LANES>().0) {
            let (mut squares, mut products, mut sums): (Lanes, Lanes, Lanes) =
                ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
            for lane in 0..LANES {
                let other = mirror * second[lane];
                let apart = first[lane] - other;
                squares[lane] = -apart * apart;
                products[lane] = -first[lane] * other;
            }
            for &[p, q, weight] in nodes {
                for lane in 0..LANES {
                    let exponent = p.mul_add(squares[lane], q * products[lane]);
                    sums[lane] = weight.mul_add(scalar::exp(exponent), sums[lane]);
                }
            }
            for lane in 0..LANES {
                out[lane] = factor.mul_add(sums[lane], out[lane]);
            }
        }
    }
}

crate::dispatch! {
    /// out += factor (K − (1 − ρ) ∂K/∂ρ) at ρ = 1.
    fn add_end(own: &[&[f64]; 3], partner: &[&[f64]; 3], mirror: f64, missing: f64, factor: f64, out: &mut [f64]) {
        let ([tau, tail, ramp], [tau_2, tail_2, ramp_2]) = (own, partner);
        let n = out.len();
        let (tau, tail, ramp) = (&tau[..n], &tail[..n], &ramp[..n]);
        let (tau_2, tail_2, ramp_2) = (&tau_2[..n], &tail_2[..n], &ramp_2[..n]);
        for i in 0..n {
            let other = mirror * tau_2[i];
            let same = tau[i] * other >= 0.0;
            let distances = [tau[i].abs(), other.abs()];
            let (value, slope) = at_one(same, distances, [tail[i], tail_2[i]], [ramp[i], ramp_2[i]]);
            out[i] += factor * (value - missing * slope);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pairs::quadrature_of_pair;
    use super::*;
    use crate::activation::parse;
    use crate::gauss::GaussianRule;

    const UNITS: [&str; 4] = [
        "0.2+max(x-0.2,0.1*(x-0.2))",
        "min(max(x,-1),1)",
        "abs(x - 0.5) - 0.3*abs(x + 1) + 0.1*x",
        "max(x, 0) + max(-x - 2, 0.5)",
    ];

    #[test]
    fn pairs_match_quadrature() {
        for first in UNITS {
            for second in ["relu", UNITS[0], UNITS[1], UNITS[2]] {
                let (a, b) = (parse(first).unwrap(), parse(second).unwrap());
                for c in [
                    [[1.3, 0.4], [0.4, 0.8]],
                    [[0.5, -0.45], [-0.45, 0.6]],
                    [[2.0, 0.0], [0.0, 0.1]],
                    [[1.0, 0.72], [0.72, 1.0]],
                    [[1.0, 0.999], [0.999, 1.0]],
                    [[1.0, -0.9999], [-0.9999, 1.0]],
                    [[1.0, 1.0], [1.0, 1.0]],
                    [[4.0, 3.7], [3.7, 3.7]],
                    [[0.02, 0.019], [0.019, 0.03]],
                ] {
                    let (got, slow) = (
                        pair(&a.linear_pieces().unwrap(), &b.linear_pieces().unwrap(), &c),
                        quadrature_of_pair(&*a, &*b, &c),
                    );
                    for (x, y) in [
                        (got.value_value, slow.value_value),
                        (got.slope_slope, slow.slope_slope),
                        (got.curvature_value, slow.curvature_value),
                        (got.value_curvature, slow.value_curvature),
                    ] {
                        let allowed = 2e-12 * (1.0 + y.abs());
                        assert!((x - y).abs() <= allowed, "{first}, {second}, {c:?}\n{got:?}\n{slow:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn moments_match_sums_over_panels_that_end_at_the_kinks() {
        for name in UNITS {
            let unit = parse(name).unwrap();
            let pieces = unit.linear_pieces().unwrap();
            let mut ramps = Ramps::default();
            for deviation in [1e-3, 0.4, 1.0, 3.0] {
                let means: Vec<f64> = (0..16).map(|k| 0.39 * f64::from(k) - 3.0).collect();
                ramps.fill(&pieces, &means, deviation);
                for (n, &mean) in means.iter().enumerate() {
                    let breaks: Vec<f64> =
                        pieces.kinks.iter().map(|kink| (kink.at - mean) / deviation).collect();
                    let rule = GaussianRule::panels(&breaks, 1.0, 9.0);
                    let centre = rule.average(|u| unit.value(mean + deviation * u));
                    let first = rule.average(|u| u * unit.value(mean + deviation * u));
                    let variance = rule.average(|u| (unit.value(mean + deviation * u) - centre).powi(2));
                    let one = moments(&pieces, mean, deviation);
                    for (a, b, c, size) in [
                        (one.mean, ramps.mean[n], centre, 1.0 + deviation),
                        (one.first, ramps.first[n], first, deviation),
                        (one.variance, ramps.variance[n], variance, deviation * deviation),
                    ] {
                        let allowed = 1e-13 * size + 1e-12 * c.abs();
                        assert!((a - c).abs() < allowed, "{name}, {mean}, {deviation}: {a} {c}");
                        assert!((b - c).abs() < allowed, "{name}, {mean}, {deviation}: {b} {c}");
                    }
                }
            }
        }
    }

    #[test]
    fn covariances_of_many_means_are_those_of_one() {
        let (a, b) = (parse(UNITS[1]).unwrap(), parse(UNITS[0]).unwrap());
        let (first, second) = (a.linear_pieces().unwrap(), b.linear_pieces().unwrap());
        let own: Vec<f64> = (0..24).map(|k| 0.3 * f64::from(k) - 3.3).collect();
        let others: Vec<f64> = (0..24).map(|k| 2.0 * (0.8 * f64::from(k)).sin()).collect();
        let (s, t) = (0.9, 0.6);
        let (mut ramps, mut partner) = (Ramps::default(), Ramps::default());
        ramps.fill(&first, &own, s);
        partner.fill(&second, &others, t);
        for rho in [0.0, 0.3, -0.7, 0.8, -0.95, 0.999, 1.0, -1.0] {
            let mut got = vec![0.0; 24];
            ramps.add_covariances(&partner, &Plackett::new(rho, 40), 2.0, &mut got);
            for n in 0..24 {
                let mut sum = rho * ramps.first[n] * partner.first[n];
                for kink in &first.kinks {
                    for other in &second.kinks {
                        let rest = remainder((kink.at - own[n]) / s, (other.at - others[n]) / t, rho);
                        sum += s * t * kink.jump * other.jump * rest.value;
                    }
                }
                assert!((got[n] - 2.0 * sum).abs() < 1e-9, "{rho}, {n}: {} {sum}", got[n]);
            }
        }
        // Equal fields have the variance as covariance, to rounding.
        let mut same = vec![0.0; 24];
        ramps.add_covariances(&ramps, &Plackett::new(1.0, 3), 1.0, &mut same);
        assert!(same.iter().zip(&ramps.variance).all(|(a, b)| (a - b).abs() < 1e-15));
    }
}
