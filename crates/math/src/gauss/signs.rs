//! Averages of products of signs of Gaussian fields.
//!
//! With s = sign z, correlations ρ and Plackett's identity (Biometrika 41, 351, 1954) for signs in place of orthants,
//!
//!   ∂E(s₁ s₂ s₃ s₄)/∂ρ_mn = 4 E[δ_m δ_n s_p s_q] √(C_mm C_nn) = (2/π)² asin(ρ_pq|mn) / √(1 − ρ_mn²),
//!
//! p and q being the other two fields and ρ_pq|mn their correlation given z_m = z_n = 0. The average vanishes where one field is independent
//! of the others, so it is the integral of this gradient while the correlations of that field are switched on. Probabilities of
//! orthants, which `gauss/orthant.rs` computes one by one, are sums of such averages; here one integral serves all sixteen.

use super::quadrature::gauss_legendre;
use crate::simd::scalar::asin;
use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};
use std::sync::OnceLock;

/// The pairs of four fields. Pair p and pair 5 − p have no field in common.
pub const PAIRS: [[usize; 2]; 6] = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];

/// For pairs of fields with these covariances C_ab and products of variances C_aa C_bb:
///
///   E[s_a s_b] = (2/π) asin ρ,      √(C_aa C_bb − C_ab²).
pub fn of_pairs(covariances: &[f64], products: &[f64], signs: &mut [f64], roots: &mut [f64]) {
    pairs(covariances, products, signs, roots);
}

/// What is known of four fields.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FourSigns {
    /// E(s₁ s₂ s₃ s₄).
    pub mean: f64,
    /// For every pair (m, n) the arcsine of the correlation of the other two fields given z_m = z_n = 0.
    pub angles: [f64; 6],
}

/// Determinants and variances of what is left of a field given others, all fields having variance 1, are rounding noise below this.
const ROUNDING: f64 = 16.0 * f64::EPSILON;

/// Determinants below this are computed by elimination: as a sum of products of correlations they lose more digits than they have. Two
/// fields at distances a from two others have det ~ a⁴, which rounding of such a sum hides from a = 1e-4 on, and elimination from 1e-8 on.
const SMALL: f64 = 1e-4;

/// Fields whose squared sine is below this are parallel.
const PARALLEL: f64 = 4.0 * f64::EPSILON;

/// The averages of four fields with these correlations, in the order of [`PAIRS`].
pub fn four(correlations: &[f64; 6]) -> FourSigns {
    let mut rho = [[1.0; 4]; 4];
    for ([i, j], value) in PAIRS.into_iter().zip(correlations) {
        (rho[i][j], rho[j][i]) = (*value, *value);
    }
    // Switch on the field that is least correlated with the others: the shortest path.
    let size = |i: usize| (0..4).filter(|&j| j != i).map(|j| rho[i][j].abs()).fold(0.0, f64::max);
    let first = (1..4).fold(0, |least, i| if size(i) < size(least) { i } else { least });
    let [j, k, l] = std::array::from_fn(|n| (first + 1 + n) % 4);
    let (x, y) = ([rho[first][j], rho[first][k], rho[first][l]], [rho[j][k], rho[j][l], rho[k][l]]);
    let path = Path::new(x, y, None);
    let whole = path.determinant * (1.0 - path.multiple);
    if whole < SMALL {
        let others = determinant(&rho, &[j, k, l]);
        let whole = if others > 0.0 { determinant(&rho, &[j, k, l, first]) } else { 0.0 };
        let mean = FRAC_2_PI * FRAC_2_PI * Path::new(x, y, Some([others, whole])).integral();
        return FourSigns { mean: within_bounds(mean, &rho), angles: angles_by_elimination(&rho, whole) };
    }
    let (mut cross, mut rest) = ([0.0; 6], [0.0; 6]);
    for (at, [m, n]) in PAIRS.into_iter().enumerate() {
        let [p, q] = PAIRS[5 - at];
        let own = rho[m][n];
        rest[at] = ((1.0 - own) * (1.0 + own)).max(0.0);
        cross[at] = snapped(
            rho[p][q] * rest[at]
                - rho[m][p] * (rho[m][q] - own * rho[n][q])
                - rho[n][p] * (rho[n][q] - own * rho[m][q]),
        );
    }
    FourSigns { mean: FRAC_2_PI * FRAC_2_PI * path.integral(), angles: given_angles(&cross, &rest, whole) }
}

/// Covariances given field m, whose own variance and those of the others are 1.
fn given_one(rho: &[[f64; 4]; 4], m: usize) -> [[f64; 4]; 4] {
    std::array::from_fn(|i| {
        std::array::from_fn(|j| match (rho[m][i], rho[m][j]) {
            (own, _) if i == j => (1.0 - own) * (1.0 + own),
            (a, b) => rho[i][j] - a * b,
        })
    })
}

/// The determinant of some of the fields by elimination, the largest variance first; 0 where a field is known from the others.
fn determinant(rho: &[[f64; 4]; 4], fields: &[usize]) -> f64 {
    let mut left = given_one(rho, fields[0]);
    let mut rest = [0; 3];
    let count = fields.len() - 1;
    rest[..count].copy_from_slice(&fields[1..]);
    let mut product = 1.0;
    for done in 0..count {
        for at in done + 1..count {
            if left[rest[at]][rest[at]] > left[rest[done]][rest[done]] {
                rest.swap(done, at);
            }
        }
        let pivot = rest[done];
        let variance = left[pivot][pivot];
        if variance <= ROUNDING {
            return 0.0;
        }
        product *= variance;
        let row = left[pivot];
        for &i in &rest[done + 1..count] {
            for &j in &rest[done + 1..count] {
                left[i][j] -= row[i] * row[j] / variance;
            }
        }
    }
    product
}

/// The angles of [`FourSigns`] where the determinant of all four, `whole`, is small: asin ρ_pq|mn = atan2(C_pq|mn, √(det/det_mn)).
fn angles_by_elimination(rho: &[[f64; 4]; 4], whole: f64) -> [f64; 6] {
    std::array::from_fn(|at| {
        let ([m, n], [p, q]) = (PAIRS[at], PAIRS[5 - at]);
        let left = given_one(rho, m);
        let rest = left[n][n];
        if rest <= PARALLEL {
            return 0.0;
        }
        let covariance = left[p][q] - left[n][p] * left[n][q] / rest;
        // Rounding of the second term grows where the two given fields are nearly parallel.
        let noise = ROUNDING * (1.0 + (left[n][p].abs() + left[n][q].abs()) / rest);
        angle(if covariance.abs() <= noise { 0.0 } else { covariance }, (whole / rest).sqrt())
    })
}

/// The product of all four signs is that of two pairs. With probabilities p and p' that the signs of a pair differ, the probability
/// that the product is −1 lies between |p − p'| and p + p', for each of the three ways to make pairs.
fn within_bounds(mean: f64, rho: &[[f64; 4]; 4]) -> f64 {
    let differ = |[i, j]: [usize; 2]| {
        let sine = (1.0 - rho[i][j]) * (1.0 + rho[i][j]);
        0.5 - angle(rho[i][j], if sine <= PARALLEL { 0.0 } else { sine.sqrt() }) / std::f64::consts::PI
    };
    (0..3).fold(mean, |mean, at| {
        let (p, q) = (differ(PAIRS[at]), differ(PAIRS[5 - at]));
        let odd = (p + q).min(2.0 - p - q);
        mean.max(1.0 - 2.0 * odd).min(1.0 - 2.0 * (p - q).abs())
    })
}

/// The correlations t x_j of one field with three others, t growing from 0 to 1.
///
/// The squared correlation of two fields given the other two is a ratio of determinants, in which by Sylvester's identity
///
///   asin ρ_kl|1j = atan2( cross_j, √(D_j D) ),   cross_j = a_j + b_j t²,   D_j = 1 − x_j² t²,   D = B (1 − m t²),
///
/// B being the determinant of the three others and m the squared multiple correlation at t = 1. The root of D is singular at
/// t = 1/√m, at the end of the path or just after it; with √m t = sin φ and v = tan φ/2 everything is a smooth function of v.
struct Path {
    x: [f64; 3],
    /// a_j and b_j, or the like in powers of 1 − m t².
    cross: [[f64; 2]; 3],
    /// B.
    determinant: f64,
    /// m.
    multiple: f64,
}

impl Path {
    /// From the correlations with the others, of the others, and the determinants of the others and of all four if they are known.
    fn new(x: [f64; 3], [y01, y02, y12]: [f64; 3], known: Option<[f64; 2]>) -> Self {
        let determinant = known.map_or_else(
            || {
                let sum = 1.0 + 2.0 * y01 * y02 * y12 - y01 * y01 - y02 * y02 - y12 * y12;
                if sum <= ROUNDING { 0.0 } else { sum }
            },
            |[others, _]| others,
        );
        let [x0, x1, x2] = x;
        let pair = |a: f64, b: f64, y: f64| a * a + b * b - 2.0 * a * b * y;
        // xᵀ adj(Y) x, Y being the correlations of the others.
        let form = x0 * x0 * (1.0 - y12 * y12)
            + x1 * x1 * (1.0 - y02 * y02)
            + x2 * x2 * (1.0 - y01 * y01)
            + 2.0 * (x0 * x1 * (y02 * y12 - y01) + x0 * x2 * (y01 * y12 - y02) + x1 * x2 * (y01 * y02 - y12));
        // Not less than with two of the others, nor than with one.
        let two = |a: f64, b: f64, y: f64| {
            let sine = (1.0 - y) * (1.0 + y);
            if sine > ROUNDING { pair(a, b, y) / sine } else { 0.0 }
        };
        let least = [x0 * x0, x1 * x1, x2 * x2, two(x0, x1, y01), two(x0, x2, y02), two(x1, x2, y12)];
        let least = least.into_iter().fold(0.0, f64::max).min(1.0);
        let multiple = match known {
            Some([others, whole]) if others > 0.0 => (1.0 - whole / others).clamp(least, 1.0),
            None if determinant > 0.0 => (form / determinant).clamp(least, 1.0),
            _ => least,
        };
        // Fields in three dimensions: the root of rounding noise would be 1e-8.
        let flat = known.is_none() && determinant * (1.0 - multiple) <= PARALLEL;
        let multiple = if flat { 1.0 } else { multiple };
        let cross = |own: f64, a: f64, b: f64, ya: f64, yb: f64, y: f64| {
            [snapped(y - ya * yb), snapped(own * (a * yb + b * ya - own * y) - a * b)]
        };
        let cross = [
            cross(x0, x1, x2, y01, y02, y12),
            cross(x1, x0, x2, y01, y12, y02),
            cross(x2, x0, x1, y02, y12, y01),
        ];
        // In powers of 1 − m t² where that is small, so that nothing cancels.
        let cross = if multiple > FROM_END {
            cross.map(|[a, b]| [snapped(a + b / multiple), -b / multiple])
        } else {
            cross
        };
        Self { x, cross, determinant, multiple }
    }

    /// Σ_j ∫ dt x_j/√D_j asin ρ_kl|1j.
    fn integral(&self) -> f64 {
        integral(self, rule(self.multiple))
    }
}

/// From this squared multiple correlation on, covariances are taken in powers of 1 − m t² in place of t².
const FROM_END: f64 = 0.5;

/// Where a field is known from two others, its covariance with the fourth given these is rounding noise, and no angle of ±π/2.
fn snapped(covariance: f64) -> f64 {
    if covariance.abs() <= ROUNDING { 0.0 } else { covariance }
}

/// Nodes and weights on [0, 1].
struct Rule {
    nodes: Vec<f64>,
    weights: Vec<f64>,
}

/// Squared multiple correlations up to which so many Gauss-Legendre nodes are exact to 1e-14.
const RULES: [(f64, usize); 3] = [(0.6, 8), (0.9, 12), (0.97, 24)];

fn rule(multiple: f64) -> &'static Rule {
    static KNOWN: OnceLock<[Rule; 4]> = OnceLock::new();
    let make = |k: usize| RULES.get(k).map_or_else(clustered, |rule| legendre(rule.1));
    let which = RULES.iter().position(|(most, _)| multiple <= *most).unwrap_or(RULES.len());
    &KNOWN.get_or_init(|| std::array::from_fn(make))[which]
}

fn legendre(count: usize) -> Rule {
    let rule = gauss_legendre(count);
    Rule {
        nodes: rule.nodes.iter().map(|x| 0.5 + 0.5 * x).collect(),
        weights: rule.weights.iter().map(|w| 0.5 * w).collect(),
    }
}

/// Gauss-Legendre nodes of y in x = 1 − (1 − y)⁴, which lie close at x = 1, where the integrand changes fast if fields are nearly parallel.
fn clustered() -> Rule {
    let mut rule = legendre(48);
    for (x, w) in rule.nodes.iter_mut().zip(&mut rule.weights) {
        let left = 1.0 - *x;
        (*x, *w) = (1.0 - left.powi(4), *w * 4.0 * left.powi(3));
    }
    rule
}

/// atan2(a, b) for b ≥ 0, and 0 where both vanish.
#[inline(always)]
fn angle(a: f64, b: f64) -> f64 {
    let size = a.abs();
    let near = size <= b;
    let least = if near { size } else { b };
    let y = asin(least / (a * a + b * b).sqrt().max(f64::MIN_POSITIVE));
    (if near { y } else { FRAC_PI_2 - y }).copysign(a)
}

crate::dispatch! {
    fn pairs(covariances: &[f64], products: &[f64], signs: &mut [f64], roots: &mut [f64]) {
        for (((c, product), sign), root) in covariances.iter().zip(products).zip(signs).zip(roots) {
            let determinant = product - c * c;
            // Below rounding the fields are parallel; the root would turn 1e-16 into 1e-8.
            let determinant = if determinant <= PARALLEL * product { 0.0 } else { determinant };
            *root = determinant.sqrt();
            *sign = FRAC_2_PI * angle(*c, *root);
        }
    }
}

crate::dispatch! {
    /// For every pair the angle of the other two.
    fn given_angles(cross: &[f64; 6], rest: &[f64; 6], whole: f64) -> [f64; 6] {
        let mut out = [0.0; 6];
        for k in 0..6 {
            out[k] = angle(cross[k], (rest[k] * whole).sqrt());
        }
        out
    }
}

crate::dispatch! {
    fn integral(path: &Path, rule: &Rule) -> f64 {
        let root = path.determinant.sqrt();
        let g = 1.0 / (1.0 + (1.0 - path.multiple).max(0.0).sqrt());
        let w = path.multiple * g * g;
        let from_end = path.multiple > FROM_END;
        let above = path.x.map(|x| (path.multiple - x * x).max(0.0));
        let mut sums = [0.0; LANES];
        let nodes = rule.nodes.as_chunks::<LANES>().0.iter().zip(rule.weights.as_chunks::<LANES>().0);
        for (nodes, weights) in nodes {
            for lane in 0..LANES {
                let x = nodes[lane];
                let q = w * x * x;
                let d = 1.0 / (1.0 + q);
                let cosine = (1.0 - q) * d;
                let t = 2.0 * g * x * d;
                let square = t * t;
                let power = if from_end { cosine * cosine } else { square };
                let mut sum = 0.0;
                for j in 0..3 {
                    // 1 − x_j² t² = (1 − m t²) + (m − x_j²) t², a sum of positive terms.
                    let own = above[j].mul_add(square, cosine * cosine).sqrt();
                    let cross = path.cross[j][1].mul_add(power, path.cross[j][0]);
                    sum += path.x[j] * angle(cross, cosine * root * own) / own;
                }
                sums[lane] += weights[lane] * cosine * d * sum;
            }
        }
        2.0 * g * sums.iter().sum::<f64>()
    }
}

/// Numbers in a vector register.
const LANES: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gauss::relu::{orthant4, slope_slope};
    use crate::linalg::Mat;
    use crate::random::{RngAddress, Stream};
    use std::f64::consts::FRAC_1_PI;

    /// From the probability of the orthant: 16 P = 1 + Σ E[s_m s_n] + E[s₁s₂s₃s₄].
    fn by_orthant(rho: &[f64; 6]) -> f64 {
        let mut c = [[1.0; 4]; 4];
        let mut pairs = 0.0;
        for ([i, j], value) in PAIRS.into_iter().zip(rho) {
            (c[i][j], c[j][i]) = (*value, *value);
            pairs += 4.0 * slope_slope(&[[1.0, *value], [*value, 1.0]]) - 1.0;
        }
        16.0 * orthant4(&c) - 1.0 - pairs
    }

    fn correlations(rows: &Mat) -> [f64; 6] {
        let c = rows.gram();
        PAIRS.map(|[i, j]| (c[(i, j)] / (c[(i, i)] * c[(j, j)]).sqrt()).clamp(-1.0, 1.0))
    }

    /// From independent fields to nearly parallel ones, also in three dimensions.
    #[test]
    fn products_of_four_signs_match_orthants() {
        let mut stream = Stream::at(RngAddress { seed: 5, replica: 0, step: 0, lane: 0 });
        let mut seen = [0; 2];
        for case in 0..2000 {
            let spread = [0.1, 0.3, 1.0, 3.0][case % 4];
            let columns = [4, 5, 3, 8][case / 4 % 4];
            let mut rows =
                Mat::from_fn(4, columns, |i, j| f64::from(u8::from(i == j)) + spread * stream.normal());
            if case % 7 == 0 {
                // Two fields close to the two others.
                let apart = 10f64.powi(-((case / 7 % 4) as i32));
                for (k, from) in [(2, 0), (3, 1)] {
                    for j in 0..columns {
                        rows[(k, j)] = rows[(from, j)] + apart * stream.normal();
                    }
                }
            }
            let rho = correlations(&rows);
            let (got, want) = (four(&rho).mean, by_orthant(&rho));
            // Determinants are differences, which lose digits where fields are nearly parallel or in three dimensions, and they count
            // by their roots.
            let near = columns == 3 || rho.iter().any(|r| r.abs() > 0.99);
            seen[usize::from(near)] += 1;
            let tolerance = if near { 3e-8 } else { 2e-12 };
            assert!((got - want).abs() < tolerance, "{rho:?}: {got} {want}");
        }
        assert!(seen[0] > 800 && seen[1] > 100, "{seen:?}");
    }

    /// Where two fields are nearly the same as two others, E[s₁s₂s₁s₂] = 1 up to the probability that the signs of a pair differ.
    #[test]
    fn nearly_parallel_pairs_keep_their_digits() {
        for apart in [1e-3, 1e-4, 1e-5, 1e-6, 0.0] {
            for r in [0.0, 0.3, -0.9, 0.9, 0.99] {
                let rows = Mat::from_fn(4, 4, |i, j| match (i, j) {
                    (0 | 2, 0) => 1.0,
                    (1 | 3, 0) => r,
                    (1 | 3, 1) => f64::sqrt(1.0 - r * r),
                    (2, 2) | (3, 3) => apart,
                    _ => 0.0,
                });
                let (got, want) = (four(&correlations(&rows)).mean, 1.0 - 4.0 * apart.atan() * FRAC_1_PI);
                // Both pairs differ with a probability of second order. The determinant of all four is of fourth order, that of three, which
                // its rounding is measured by, of second order: what is left of this is 1e-4 of 1 − E at 1e-5.
                let allowed = 3.0 * apart * apart + if apart > 0.0 { 1e-14 / apart } else { 1e-14 };
                assert!((got - want).abs() < allowed, "{apart} {r}: {got} {want}");
            }
        }
    }

    /// z₃ = −2 z₀ leaves E[s₀s₁s₂s₃] = −E[s₁s₂], and the angles of pairs with one of the two vanish.
    #[test]
    fn parallel_fields_leave_the_average_of_two() {
        let mut stream = Stream::at(RngAddress { seed: 6, replica: 0, step: 0, lane: 0 });
        for _ in 0..200 {
            let mut rows = Mat::from_fn(4, 6, |_, _| stream.normal());
            for j in 0..6 {
                rows[(3, j)] = -2.0 * rows[(0, j)];
            }
            let rho = correlations(&rows);
            let got = four(&rho);
            assert!((got.mean + FRAC_2_PI * rho[3].asin()).abs() < 1e-7, "{rho:?}: {got:?}");
            for pair in [0, 1, 4, 5] {
                assert!(got.angles[pair].abs() < 1e-6, "{rho:?}: {got:?}");
            }
        }
    }

    #[test]
    fn angles_are_the_gradient() {
        let rho = [0.3, -0.2, 0.45, 0.5, 0.1, -0.35];
        let angles = four(&rho).angles;
        for k in 0..6 {
            let moved = |by: f64| {
                let mut rho = rho;
                rho[k] += by;
                four(&rho).mean
            };
            let h = 1e-3;
            let slope = (8.0 * (moved(h) - moved(-h)) - (moved(2.0 * h) - moved(-2.0 * h))) / (12.0 * h);
            let want = FRAC_2_PI * FRAC_2_PI * angles[k] / (1.0 - rho[k] * rho[k]).sqrt();
            assert!((slope - want).abs() < 1e-10, "{k}: {slope} {want}");
        }
    }

    /// Two fields at distances a from two others, which are s apart. To second order in a both pairs differ with probability
    /// a²/(π² s), and given the fields of a pair the other two differ by the angle atan(a/s).
    #[test]
    fn nearly_parallel_pairs_that_are_close_to_each_other_keep_their_digits() {
        for r in [0.3, 0.9, 0.99, 0.999, 0.9999, 0.99999] {
            for apart in [1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9] {
                let s = f64::sqrt((1.0 - r) * (1.0 + r));
                let rows = Mat::from_fn(4, 4, |i, j| match (i, j) {
                    (0 | 2, 0) => 1.0,
                    (1 | 3, 0) => r,
                    (1 | 3, 1) => s,
                    (2, 2) | (3, 3) => apart,
                    _ => 0.0,
                });
                let got = four(&correlations(&rows));
                let both = 4.0 * (apart * FRAC_1_PI).powi(2) / s;
                let want = 1.0 - 4.0 * apart.atan() * FRAC_1_PI + both;
                // Covariances given a third field are of order s² and known to 1e-16, distances to 1e-16/a.
                let rounding = (2e-16 / (apart * s * s)).min(4.0 * apart * FRAC_1_PI) + 1e-15;
                let allowed = 2.0 * (apart / s).powi(2) * both + rounding;
                assert!((got.mean - want).abs() < allowed, "{r} {apart}: {} {want}", got.mean);
                if apart >= 1e-6 {
                    let angle = s.atan2(apart);
                    let allowed = 1e-12 + 1e-15 / (apart * s);
                    assert!((got.angles[1] - angle).abs() < allowed, "{r} {apart}: {:?} {angle}", got.angles);
                }
            }
        }
    }
}
