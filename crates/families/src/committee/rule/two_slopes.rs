//! Units that are linear on either side of 0 (ReLU, |z|, leaky ReLU): every average in closed form, but for one integral per four fields.
//!
//! With s = sign z a unit is g = α z + β |z| and its slope g' = α + β s. The error is the sum of an odd part A = Σ_k v_k α_k z_k and an
//! even one, B = Σ_k v_k β_k |z_k|, and averages of odd products vanish:
//!
//!   E[e² g'_i g'_j] = α_i α_j E[A² + B²] + β_i β_j E[s_i s_j (A² + B²)] + 2 α_i β_j E[s_j A B] + 2 α_j β_i E[s_i A B].
//!
//! Stein's lemma takes the factors z away. With R_kl = √(C_kk C_ll − C_kl²), a_k = E[A z_k], D_mn = 4 E[δ_m δ_n] = 2/(π R_mn) and
//! F_jl = 2 E[δ_j |z_l|] = 2 R_jl/(π C_jj),
//!
//!   E|z_k||z_l| = (2/π) R_kl + C_kl E[s_k s_l],      E[s_j A |z_l|] = a_j F_jl + a_l E[s_j s_l],
//!   E[s_i s_j A²] = E[A²] E[s_i s_j] + D_ij ( a_i Cov(A, z_j | z_i) + a_j Cov(A, z_i | z_j) ),
//!   E[s_i s_j |z_k||z_l|] = C_kl E[s_i s_j s_k s_l] + Σ_{m<n} E_mn ( C_km Cov(z_l, z_n | z_m) + C_kn Cov(z_l, z_m | z_n) ),
//!
//! where m, n are two of the four fields, E_mn = 4 E[δ_m δ_n s_p s_q], and p, q the other two. E[s_i s_j s_k s_l] and all E_mn of four
//! fields come together ([`didact_math::gauss::signs`]) and serve every choice of i and j among them.

use didact_math::gauss::signs::{self, PAIRS};
use didact_math::linalg::Mat;
use didact_model::rule::{Averages, Needed};
use std::f64::consts::FRAC_2_PI;

/// Constants of one evaluation. Fields: trained first.
pub(super) struct TwoSlopes<'a> {
    /// Slopes below and above 0 of the unit of every field.
    pub(super) sides: &'a [[f64; 2]],
    /// v_k, coefficient of unit k in y − f.
    pub(super) residual: &'a [f64],
    /// a_i times the weight of the loss: kick_i = −gain_i (y − f) g'_i.
    pub(super) gain: &'a [f64],
    /// Variance of the label noise.
    pub(super) noise: f64,
}

/// What is known of every pair of fields; rows of P numbers.
struct Known<'a> {
    p: usize,
    c: &'a [f64],
    /// R.
    root: Vec<f64>,
    /// E[s_k s_l]; 0 for fields that vanish.
    sign: Vec<f64>,
}

impl<'a> Known<'a> {
    fn new(covariance: &'a Mat) -> Self {
        let (p, c) = (covariance.rows(), covariance.as_slice());
        let products: Vec<f64> = (0..p * p).map(|at| c[at / p * (p + 1)] * c[at % p * (p + 1)]).collect();
        let (mut root, mut sign) = (vec![0.0; p * p], vec![0.0; p * p]);
        signs::of_pairs(c, &products, &mut sign, &mut root);
        Self { p, c, root, sign }
    }

    fn variance(&self, k: usize) -> f64 {
        self.c[k * (self.p + 1)]
    }

    fn covariance(&self, k: usize, l: usize) -> f64 {
        self.c[k * self.p + l]
    }

    fn sign(&self, k: usize, l: usize) -> f64 {
        self.sign[k * self.p + l]
    }

    /// E|z_k||z_l|.
    fn sizes(&self, k: usize, l: usize) -> f64 {
        FRAC_2_PI * self.root[k * self.p + l] + self.covariance(k, l) * self.sign(k, l)
    }

    /// F_jl = 2 E[δ_j |z_l|].
    fn edge(&self, j: usize, l: usize) -> f64 {
        if self.variance(j) > 0.0 { FRAC_2_PI * self.root[j * self.p + l] / self.variance(j) } else { 0.0 }
    }

    /// D_mn = 4 E[δ_m δ_n]; 0 for parallel fields, where what it is multiplied with vanishes faster than R.
    fn corner(&self, m: usize, n: usize) -> f64 {
        let root = self.root[m * self.p + n];
        if root == 0.0 { 0.0 } else { FRAC_2_PI / root }
    }

    /// E[s_i s_j A²] of a Gaussian A with this variance and these covariances with z_i and z_j.
    fn signs_and_square(&self, [i, j]: [usize; 2], variance: f64, [a_i, a_j]: [f64; 2]) -> f64 {
        let corner = self.corner(i, j);
        let mut sum = variance * self.sign(i, j);
        if corner != 0.0 {
            let c = self.covariance(i, j);
            sum += corner
                * (a_i * (a_j - c * a_i / self.variance(i)) + a_j * (a_i - c * a_j / self.variance(j)));
        }
        sum
    }
}

impl TwoSlopes<'_> {
    fn odd(&self, k: usize) -> f64 {
        f64::midpoint(self.sides[k][0], self.sides[k][1])
    }

    fn even(&self, k: usize) -> f64 {
        0.5 * (self.sides[k][1] - self.sides[k][0])
    }

    /// Σ_kl v_k v_l E[g_k g_l].
    pub(super) fn squared_error(&self, covariance: &Mat) -> f64 {
        let known = Known::new(covariance);
        (0..known.p).map(|k| self.residual[k] * self.error_times_unit(&known, k)).sum()
    }

    /// E[e g_j].
    fn error_times_unit(&self, known: &Known, j: usize) -> f64 {
        let product = |k: usize| {
            self.odd(k) * self.odd(j) * known.covariance(k, j)
                + self.even(k) * self.even(j) * known.sizes(k, j)
        };
        (0..known.p).map(|k| self.residual[k] * product(k)).sum()
    }

    /// Fills A, E[e g_j] times −`weight` and, if needed, N.
    pub(super) fn fill(&self, covariance: &Mat, weight: f64, needed: Needed, out: &mut Averages) {
        let known = Known::new(covariance);
        out.error = 0.0;
        for (j, slope) in out.scalars.iter_mut().enumerate() {
            *slope = -weight * self.error_times_unit(&known, j);
        }
        self.drift(&known, &mut out.drift);
        if needed == Needed::DriftAndNoise {
            self.noise(&known, &mut out.noise);
        }
    }

    /// E[g'_i g'_k].
    fn slopes(&self, known: &Known, i: usize, k: usize) -> f64 {
        self.odd(i) * self.odd(k) + self.even(i) * self.even(k) * known.sign(i, k)
    }

    /// A_ik = −gain_i ( v_k E[g'_i g'_k] + δ_ik Σ_m v_m E[g''_i g_m] ), and E[g''_i g_m] = β_i β_m F_im.
    fn drift(&self, known: &Known, out: &mut Mat) {
        for (i, gain) in self.gain.iter().enumerate() {
            let bend = |m: usize| self.residual[m] * self.even(m) * known.edge(i, m);
            let curvature = self.even(i) * (0..known.p).map(bend).sum::<f64>();
            for k in 0..known.p {
                let own = if k == i { curvature } else { 0.0 };
                out[(i, k)] = -gain * (self.residual[k] * self.slopes(known, i, k) + own);
            }
        }
    }

    fn noise(&self, known: &Known, out: &mut Mat) {
        let (p, trained) = (known.p, self.gain.len());
        let odd: Vec<f64> = (0..p).map(|k| self.residual[k] * self.odd(k)).collect();
        let even: Vec<f64> = (0..p).map(|k| self.residual[k] * self.even(k)).collect();
        let with_odd: Vec<f64> =
            (0..p).map(|k| (0..p).map(|l| odd[l] * known.covariance(k, l)).sum()).collect();
        let odd_square: f64 = (0..p).map(|k| odd[k] * with_odd[k]).sum();
        let even_square: f64 =
            (0..p).map(|k| even[k] * (0..p).map(|l| even[l] * known.sizes(k, l)).sum::<f64>()).sum();
        // E[s_j A B].
        let mixed = |j: usize| -> f64 {
            let term = |l: usize| even[l] * (with_odd[j] * known.edge(j, l) + with_odd[l] * known.sign(j, l));
            (0..p).map(term).sum()
        };
        let mixed: Vec<f64> = (0..trained).map(mixed).collect();
        let mut four = Mat::zeros(trained, trained);
        self.add_four_fields(known, &even, &mut four);
        for i in 0..trained {
            for j in 0..=i {
                let signed = if i == j {
                    known.sign(i, i) * (odd_square + even_square)
                } else {
                    let both = [i, j];
                    known.signs_and_square(both, odd_square, both.map(|m| with_odd[m]))
                        + Self::signs_and_sizes(known, &even, both)
                        + four[(i, j)]
                };
                let (a, b) = ([self.odd(i), self.odd(j)], [self.even(i), self.even(j)]);
                let square = a[0] * a[1] * (odd_square + even_square)
                    + b[0] * b[1] * signed
                    + 2.0 * (a[0] * b[1] * mixed[j] + a[1] * b[0] * mixed[i]);
                let noise = self.noise * self.slopes(known, i, j);
                out[(i, j)] = self.gain[i] * self.gain[j] * (square + noise);
                out[(j, i)] = out[(i, j)];
            }
        }
    }

    /// The terms of E[s_i s_j B²] that are about three fields at most.
    fn signs_and_sizes(known: &Known, even: &[f64], [i, j]: [usize; 2]) -> f64 {
        let mut sum = 2.0 * even[i] * even[j] * known.covariance(i, j);
        for (l, w) in even.iter().enumerate() {
            let [a_i, a_j] = [i, j].map(|m| known.covariance(l, m));
            sum += w * w * known.signs_and_square([i, j], known.variance(l), [a_i, a_j]);
            if l != i && l != j {
                let c = known.covariance(i, j);
                let first = c * known.edge(j, l) + a_i * known.sign(j, l);
                let second = c * known.edge(i, l) + a_j * known.sign(i, l);
                sum += 2.0 * w * (even[i] * first + even[j] * second);
            }
        }
        sum
    }

    /// Adds the terms of E[s_i s_j B²] that are about four fields, two of them trained.
    fn add_four_fields(&self, known: &Known, even: &[f64], out: &mut Mat) {
        let (p, trained) = (known.p, self.gain.len());
        let open: Vec<usize> = (0..p).filter(|k| known.variance(*k) > 0.0).collect();
        let deviation: Vec<f64> = (0..p).map(|k| known.variance(k).sqrt()).collect();
        for (a, &one) in open.iter().enumerate() {
            for (b, &two) in open.iter().enumerate().skip(a + 1).take_while(|(_, two)| **two < trained) {
                for (c, &three) in open.iter().enumerate().skip(b + 1) {
                    for &last in &open[c + 1..] {
                        let fields = [one, two, three, last];
                        let own = Four::new(known, &deviation, fields);
                        for (pair, places) in PAIRS.into_iter().enumerate() {
                            let [i, j] = places.map(|at| fields[at]);
                            let [k, l] = PAIRS[5 - pair];
                            let weight = 2.0 * even[fields[k]] * even[fields[l]];
                            if i < trained && j < trained && weight != 0.0 {
                                out[(j, i)] += weight * own.signs_and_sizes(k, l);
                                out[(i, j)] = out[(j, i)];
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Four fields that do not vanish.
struct Four {
    c: [[f64; 4]; 4],
    /// Cov(z_a, z_b | z_m) in place m, a, b.
    given: [[[f64; 4]; 4]; 4],
    /// E[s s' s'' s'''].
    mean: f64,
    /// E_mn of every pair.
    corners: [f64; 6],
}

impl Four {
    fn new(known: &Known, deviation: &[f64], fields: [usize; 4]) -> Self {
        let c = fields.map(|a| fields.map(|b| known.covariance(a, b)));
        let correlations =
            PAIRS.map(|[a, b]| (c[a][b] / (deviation[fields[a]] * deviation[fields[b]])).clamp(-1.0, 1.0));
        let signs = signs::four(&correlations);
        let mut corners = signs.angles;
        for (corner, [m, n]) in corners.iter_mut().zip(PAIRS) {
            *corner *= FRAC_2_PI * known.corner(fields[m], fields[n]);
        }
        let given = std::array::from_fn(|m| {
            let inverse = 1.0 / c[m][m];
            std::array::from_fn(|a| {
                let factor = c[a][m] * inverse;
                std::array::from_fn(|b| c[a][b] - factor * c[m][b])
            })
        });
        Self { c, given, mean: signs.mean, corners }
    }

    /// E[s_i s_j |z_k||z_l|] for two of the fields, i and j being the others.
    fn signs_and_sizes(&self, k: usize, l: usize) -> f64 {
        let mut sum = self.c[k][l] * self.mean;
        for (corner, [m, n]) in self.corners.iter().zip(PAIRS) {
            sum += corner * (self.c[k][m] * self.given[m][l][n] + self.c[k][n] * self.given[n][l][m]);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::super::planes::nearly_learned;
    use super::*;
    use didact_math::activation::{Activation, PiecewiseLinear};
    use didact_math::gauss::pairs::pair_averages;
    use didact_math::gauss::relu::i4;
    use didact_math::random::{RngAddress, Stream};
    use didact_model::rule::Shape;

    /// E[g'_i g'_j g_k g_l] the slow way: g = a₊ z₊ − a₋ (−z)₊, so sixteen ReLU averages of mirrored fields.
    fn product(sides: &[[f64; 2]], covariance: &Mat, fields: [usize; 4]) -> f64 {
        let mut sum = 0.0;
        for choice in 0..16 {
            let up: [bool; 4] = std::array::from_fn(|n| (choice >> n) & 1 == 0);
            let sign = up.map(|up| if up { 1.0 } else { -1.0 });
            let factor = |n: usize| {
                let [below, above] = sides[fields[n]];
                match (up[n], n < 2) {
                    (true, _) => above,
                    (false, true) => below,
                    (false, false) => -below,
                }
            };
            let weight: f64 = (0..4).map(factor).product();
            let c = |a: usize, b: usize| sign[a] * sign[b] * covariance[(fields[a], fields[b])];
            if weight != 0.0 {
                sum += weight * i4(&std::array::from_fn(|a| std::array::from_fn(|b| c(a, b))));
            }
        }
        sum
    }

    /// Drift and noise the slow way, from averages of pairs and of four fields.
    fn slow(units: &TwoSlopes, c: &Mat) -> (Mat, Mat) {
        let (p, trained) = (c.rows(), units.gain.len());
        let activations: Vec<_> = units.sides.iter().map(|s| PiecewiseLinear::new(s[0], s[1])).collect();
        let pair = |i: usize, k: usize| {
            let minor = [[c[(i, i)], c[(i, k)]], [c[(k, i)], c[(k, k)]]];
            let (a, b): (&dyn Activation, &dyn Activation) = (&activations[i], &activations[k]);
            pair_averages(a, b, &minor)
        };
        let (mut drift, mut noise) = (Mat::zeros(trained, p), Mat::zeros(trained, trained));
        for i in 0..trained {
            let curvature: f64 = (0..p).map(|m| units.residual[m] * pair(i, m).curvature_value).sum();
            for k in 0..p {
                let own = if k == i { curvature } else { 0.0 };
                drift[(i, k)] = -units.gain[i] * (units.residual[k] * pair(i, k).slope_slope + own);
            }
            for j in 0..trained {
                let mut sum = units.noise * pair(i, j).slope_slope;
                for k in 0..p {
                    for l in 0..p {
                        sum += units.residual[k] * units.residual[l] * product(units.sides, c, [i, j, k, l]);
                    }
                }
                noise[(i, j)] = units.gain[i] * units.gain[j] * sum;
            }
        }
        (drift, noise)
    }

    fn assert_as_slow(units: &TwoSlopes, c: &Mat, tolerance: f64) {
        let (p, trained) = (c.rows(), units.gain.len());
        let mut out = Averages::new(Shape { trained, frozen: p - trained, ..Shape::default() });
        units.fill(c, 1.0, Needed::DriftAndNoise, &mut out);
        let (mut drift, mut noise) = slow(units, c);
        for i in 0..trained {
            for k in 0..p {
                drift[(i, k)] -= out.drift[(i, k)];
            }
        }
        noise.add_scaled(-1.0, &out.noise);
        let (drift, noise) = (drift.max_abs(), noise.max_abs());
        assert!(drift < tolerance && noise < tolerance, "{:?}, {c:?}: {drift:e} {noise:e}", units.sides);
    }

    #[test]
    fn drift_and_noise_match_averages_one_by_one() {
        let mut stream = Stream::at(RngAddress { seed: 11, replica: 0, step: 0, lane: 0 });
        let mut random =
            |p: usize, columns: usize| Mat::from_fn(p, columns, |_, _| 0.6 * stream.normal()).gram();
        let mut vanishing = random(5, 6);
        let mut parallel = random(5, 6);
        for k in 0..5 {
            (vanishing[(1, k)], vanishing[(k, 1)]) = (0.0, 0.0);
            parallel[(3, k)] = -2.0 * parallel[(0, k)];
        }
        for k in 0..5 {
            parallel[(k, 3)] = -2.0 * parallel[(k, 0)];
        }
        let students = |sides: [f64; 2], teachers: [f64; 2]| [vec![sides; 3], vec![teachers; 2]].concat();
        let residual = [-1.0, 0.7, -0.4, 1.1, 0.8];
        let gain = [1.0, -0.7, 0.4];
        for sides in [
            students([0.0, 1.0], [0.0, 1.0]),
            students([0.1, 1.0], [0.1, 1.0]),
            students([-1.0, 1.0], [0.0, 1.0]),
            students([0.3, -0.8], [1.0, 1.0]),
        ] {
            let units = TwoSlopes { sides: &sides, residual: &residual, gain: &gain, noise: 0.3 };
            for c in [random(5, 6), random(5, 5), vanishing.clone(), parallel.clone()] {
                assert_as_slow(&units, &c, 1e-11);
            }
            // Determinants of four fields vanish, are known to 1e-16 and count by their roots.
            assert_as_slow(&units, &random(5, 3), 3e-8);
        }
    }

    /// Eight fields, and fields of which two nearly repeat two others; there the slow twin itself loses digits.
    #[test]
    fn many_and_nearly_learned_fields_match_averages_one_by_one() {
        let mut stream = Stream::at(RngAddress { seed: 12, replica: 0, step: 0, lane: 0 });
        let c = Mat::from_fn(8, 9, |i, j| f64::from(u8::from(i % 4 == j)) + 0.3 * stream.normal()).gram();
        let residual = [-1.0, -1.0, -1.0, -1.0, 1.0, 1.0, 1.0, 1.0];
        let sides = [[0.1, 1.0]; 8];
        let units = TwoSlopes { sides: &sides, residual: &residual, gain: &[1.0; 4], noise: 0.0 };
        assert_as_slow(&units, &c, 1e-11);
        for (turn, tolerance) in [(0.3, 1e-12), (1e-2, 1e-11), (1e-3, 1e-10)] {
            let residual = [-1.0, -1.0, 1.0, 1.0];
            let units = TwoSlopes { sides: &sides[..4], residual: &residual, gain: &[1.0; 2], noise: 0.0 };
            assert_as_slow(&units, &nearly_learned(turn), tolerance);
        }
    }

    /// e vanishes with the student's distance t from its teacher, and so do the averages: N ~ t².
    #[test]
    fn a_perfect_student_makes_no_error() {
        let residual = [-1.0, -1.0, 1.0, 1.0];
        for sides in [[[0.0, 1.0]; 4], [[0.1, 1.0]; 4], [[-1.0, 1.0]; 4]] {
            let units = TwoSlopes { sides: &sides, residual: &residual, gain: &[1.0; 2], noise: 0.0 };
            let mut out = Averages::new(Shape { trained: 2, frozen: 2, ..Shape::default() });
            for (turn, allowed) in [(0.0, 1e-14), (1e-6, 1e-9), (1e-4, 1e-7)] {
                units.fill(&nearly_learned(turn), 1.0, Needed::DriftAndNoise, &mut out);
                assert!(out.noise.max_abs() < allowed, "{sides:?} {turn}: {:?}", out.noise);
                assert!(units.squared_error(&nearly_learned(turn)).abs() < allowed, "{sides:?} {turn}");
            }
        }
    }
}
