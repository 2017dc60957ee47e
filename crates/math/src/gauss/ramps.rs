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

mod lists;

pub use lists::{LANES, Plackett, Ramps, values_and_slopes};

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use super::normal::{cdf, density};
use super::pairs::{Fields, PairAverages, transposed};
use super::quadrature::gauss_legendre;
use crate::activation::{Kink, LinearPieces};

/// E[(u − a)₊] for a ≥ 0, from φ(a) and Q(a).
fn mean_of_ramp(a: f64, density: f64, tail: f64) -> f64 {
    density - a * tail
}

/// Kinks farther away than this, in deviations, are as good as infinitely far: φ and Q are 0, and products with them are numbers.
const FARTHEST: f64 = 1e3;

/// τ, the distance of a kink from the mean in deviations, with its sign.
fn distance(kink: f64, mean: f64, deviation: f64) -> f64 {
    ((kink - mean) / deviation).clamp(-FARTHEST, FARTHEST)
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
            let tau = distance(kink.at, mean, deviation);
            let (a, tail) = (tau.abs(), cdf(-tau.abs()));
            let direction = if tau < 0.0 { -1.0 } else { 1.0 };
            [direction, a, kink.jump * deviation, tail, mean_of_ramp(a, density(a), tail)]
        })
        .collect();
    let passed = |kink: &&Kink| kink.at < mean;
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
        Remainder { value: mirrored.value, slope: -mirrored.slope }
    } else if rho <= MIDDLE {
        remainder_from_zero(first, second, rho)
    } else {
        remainder_from_one(first, second, rho)
    }
}

/// K = ∫ (ρ − r) φ₂ dr and ∂K/∂ρ = ∫ φ₂ dr over 0 < r < ρ, with r = sin θ.
fn remainder_from_zero(first: f64, second: f64, rho: f64) -> Remainder {
    let mut out = Remainder { value: 0.0, slope: 0.0 };
    let half = 0.5 * rho.asin();
    let rule = gauss_legendre(FROM_ZERO);
    for (x, w) in rule.nodes.iter().zip(&rule.weights) {
        let r = (half * (1.0 + x)).sin();
        let square = first * first - 2.0 * r * first * second + second * second;
        let density = half * w * (-0.5 * square / (1.0 - r * r)).exp() / (2.0 * PI);
        out.slope += density;
        out.value += (rho - r) * density;
    }
    out
}

/// K and ∂K/∂ρ from their values at 1 and an integral over ρ < r < 1, with r = cos ψ.
fn remainder_from_one(first: f64, second: f64, rho: f64) -> Remainder {
    let [a, b] = [first.abs(), second.abs()];
    let [tail, other_tail] = [cdf(-a), cdf(-b)];
    let [ramp, other_ramp] = [mean_of_ramp(a, density(a), tail), mean_of_ramp(b, density(b), other_tail)];
    let (value, slope) = at_one(first * second >= 0.0, [a, b], [tail, other_tail], [ramp, other_ramp]);
    let mut out = Remainder { value: value - (1.0 - rho) * slope, slope };
    let end = ((1.0 - rho) * (1.0 + rho)).sqrt().atan2(rho);
    if end == 0.0 {
        // Equal fields: the integral has no length, and δ/ψ of kinks at one place has no value.
        return out;
    }
    let apart = (first - second).abs();
    let rule = gauss_legendre(FROM_ONE);
    let mut high = end;
    for halving in 0..=MOST_HALVINGS {
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
        // Below δ/9 the integrand is less than e^{−40}.
        if last || low < apart / 9.0 {
            break;
        }
        high = low;
    }
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
    let (own, other) = (moments(a, 0.0, s), moments(b, 0.0, t));
    let rho = correlation(c);
    let mut out = PairAverages {
        value_value: own.mean * other.mean + rho * own.first * other.first,
        slope_slope: own.first / s * (other.first / t),
        curvature_value: dirac(a, b, c),
        value_curvature: dirac(b, a, &transposed(c)),
    };
    for kink in &a.kinks {
        for partner in &b.kinks {
            let jumps = kink.jump * partner.jump;
            let rest = remainder(distance(kink.at, 0.0, s), distance(partner.at, 0.0, t), rho);
            out.value_value += s * t * jumps * rest.value;
            out.slope_slope += jumps * rest.slope;
        }
    }
    out
}

/// ρ of two fields, ±1 where rounding alone parts them: E[a′b′] changes as √(1 − ρ²), so that 1 − ρ = 1e-16 would be seen as 1e-8.
fn correlation(c: &[[f64; 2]; 2]) -> f64 {
    let fields = Fields::new(c);
    if fields.spread == 0.0 {
        1f64.copysign(fields.slope)
    } else {
        (fields.slope / c[1][1].sqrt()).clamp(-1.0, 1.0)
    }
}

/// Σ over the kinks κ of a: jump · (density of u at κ) · E[b(v) | u = κ].
fn dirac(a: &LinearPieces, b: &LinearPieces, c: &[[f64; 2]; 2]) -> f64 {
    let fields = Fields::new(c);
    let term = |kink: &Kink| {
        let tau = distance(kink.at, 0.0, fields.deviation);
        kink.jump * density(tau) / fields.deviation * moments(b, fields.slope * tau, fields.spread).mean
    };
    a.kinks.iter().map(term).sum()
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

    /// The integral over ρ < r < 1 was 0/0 for kinks at one place of two equal fields, and E\[σ²\] was no number.
    #[test]
    fn equal_fields_have_the_averages_of_one() {
        for name in UNITS {
            let unit = parse(name).unwrap();
            let pieces = unit.linear_pieces().unwrap();
            for variance in [1e-3, 0.1, 0.3, 0.7, 1.0, 1.6, 3.0] {
                let deviation = f64::sqrt(variance);
                let breaks: Vec<f64> = pieces.kinks.iter().map(|kink| kink.at / deviation).collect();
                let rule = GaussianRule::panels(&breaks, 1.0, 9.0);
                let square = rule.average(|u| unit.value(deviation * u).powi(2));
                let slope = rule.average(|u| unit.slope(deviation * u).powi(2));
                let one = pair(&pieces, &pieces, &[[variance; 2]; 2]);
                assert!((one.value_value - square).abs() < 1e-14 * (1.0 + square), "{name}, {variance}");
                assert!((one.slope_slope - slope).abs() < 1e-14 * (1.0 + slope), "{name}, {variance}");
                // The same field on another scale, up to rounding of its covariance.
                let (cross, other) = (-0.3 * variance, 0.3 * 0.3 * variance);
                let scaled = pair(&pieces, &pieces, &[[variance, cross], [cross, other]]);
                let product = rule_of_both(&breaks, -0.3)
                    .average(|u| unit.slope(deviation * u) * unit.slope(-0.3 * deviation * u));
                assert!((scaled.slope_slope - product).abs() < 1e-13 * (1.0 + slope), "{name}, {variance}");
            }
        }
    }

    /// Panels that end at the kinks of σ(s u) and σ(scale·s u).
    fn rule_of_both(breaks: &[f64], scale: f64) -> GaussianRule {
        let all: Vec<f64> = breaks.iter().copied().chain(breaks.iter().map(|at| at / scale)).collect();
        GaussianRule::panels(&all, 1.0, 9.0)
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
                        let allowed = 1e-13 * size + 1e-11 * c.abs();
                        assert!((a - c).abs() < allowed, "{name}, {mean}, {deviation}: {a} {c}");
                        assert!((b - c).abs() < allowed, "{name}, {mean}, {deviation}: {b} {c}");
                    }
                }
            }
        }
    }
}
