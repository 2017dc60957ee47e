//! The moments of functions that are linear between kinks at many means at once, and their covariances: what an integral over the means
//! asks for.

use std::f64::consts::PI;

use super::{FARTHEST, at_one};
use crate::activation::LinearPieces;
use crate::gauss::quadrature::gauss_legendre;
use crate::simd::scalar;

/// Means that are computed together; lists are filled up to a multiple of it.
pub const LANES: usize = 8;
type Lanes = [f64; LANES];

/// The moments of one function at many means and one deviation.
#[derive(Clone, Debug, Default)]
pub struct Ramps {
    /// E\[σ\] at every mean.
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

/// Values and slopes of a function at these places, none of which is a kink.
pub fn values_and_slopes(pieces: &LinearPieces, places: &[f64], values: &mut [f64], slopes: &mut [f64]) {
    fill_line(pieces, places, 1.0, values, slopes);
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
    /// With so many nodes for an integral from 0 to a moderate correlation, more for larger ones and fewer for smaller ones. Six nodes
    /// give K within 1e-8.
    pub fn new(rho: f64, nodes: usize) -> Self {
        let rho = rho.clamp(-1.0, 1.0);
        let size = rho.abs();
        let from_one = size > NEARLY_ONE;
        let (end, nodes) = match size {
            _ if from_one => (((1.0 - size) * (1.0 + size)).sqrt().atan2(size), 3 * nodes + 6),
            0.95.. => (size.asin(), nodes + 8),
            0.8.. => (size.asin(), nodes + 4),
            0.35.. => (size.asin(), nodes),
            // The integrand is a polynomial of low degree on a short interval, and K itself of second order in ρ.
            0.1.. => (size.asin(), (2 * nodes).div_ceil(3)),
            _ => (size.asin(), nodes.div_ceil(2)),
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
                    // Minus half a positive quadratic form of τ₁ and τ₂.
                    let exponent = p.mul_add(squares[lane], q * products[lane]);
                    sums[lane] = weight.mul_add(scalar::exp_of_negative(exponent), sums[lane]);
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
    use super::super::remainder;
    use super::*;
    use crate::activation::parse;

    /// The nodes that fields of any correlation get where six are asked for, for kinks near the means and away from them.
    #[test]
    fn six_nodes_give_the_integral_within_1e_8() {
        let taus = [-3.0, -1.7, -0.9, -0.2, 0.0, 0.6, 1.3, 2.4];
        for rho in [0.01, -0.05, 0.09, 0.11, -0.2, 0.34, 0.36, -0.6, 0.79] {
            let integral = Plackett::new(rho, 6);
            for second in taus {
                let (others, mut got) = ([second; LANES], [0.0; LANES]);
                integral.add([&taus; 3], [&others; 3], 1.0, &mut got);
                for (first, got) in taus.iter().zip(got) {
                    let want = remainder(*first, second, rho).value;
                    assert!((got - want).abs() < 1e-8, "{rho}, {first}, {second}: {got} {want}");
                }
            }
        }
    }

    #[test]
    fn covariances_of_many_means_are_those_of_one() {
        let (a, b) = (parse("min(max(x,-1),1)").unwrap(), parse("0.2+max(x-0.2,0.1*(x-0.2))").unwrap());
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
        assert!(same.iter().zip(&ramps.variance).all(|(a, b)| (a - b).abs() < 1e-14));
    }
}
