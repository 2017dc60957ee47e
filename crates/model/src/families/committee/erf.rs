//! erf units: every average in closed form (Saad & Solla 1995), arranged for speed.
//!
//! With g(u) = erf(u/√2) and C the covariance of the fields,
//!
//!   E[g'_i g'_k] = h_ik = (2/π) / √((1+C_ii)(1+C_kk) − C_ik²),    E[g''_i g_k] = −h_ik C_ik/(1+C_ii),
//!   E[g_k g_l]  = (2/π) asin( C_kl / √((1+C_kk)(1+C_ll)) ).
//!
//! The four-field integral is the two-field one in disguise: g'_i g'_j is a Gaussian weight, so
//!
//!   E[g'_i g'_j g_k g_l] = h_ij (2/π) asin( D_kl / √((1+D_kk)(1+D_ll)) ),   D = C − Bᵀ S⁻¹ B,
//!   S = [[1+C_ii, C_ij], [C_ij, 1+C_jj]],   B = rows i and j of C,
//!
//! and N_ij needs one matrix D, P inverse roots and P(P+1)/2 arcsines per pair (i, j), all of them in one batch.
//! erf(κ z) is g(√2 κ z): fields are scaled first.

use crate::rule::{Averages, Needed};
use didact_math::linalg::Mat;
use didact_math::simd;
use std::f64::consts::FRAC_2_PI;

/// Constants of one evaluation. Fields: trained first.
pub(super) struct ErfCommittee<'a> {
    /// √2 κ per field.
    pub(super) scales: &'a [f64],
    /// v_k, coefficient of unit k in y − f.
    pub(super) residual: &'a [f64],
    /// a_i times the weight of the loss: kick_i = −gain_i (y − f) g'_i.
    pub(super) gain: &'a [f64],
    /// Variance of the label noise.
    pub(super) noise: f64,
}

impl ErfCommittee<'_> {
    /// Σ_kl v_k v_l E[g_k g_l].
    pub(super) fn squared_error(&self, covariance: &Mat) -> f64 {
        let p = self.scales.len();
        let c = |k: usize, l: usize| self.scales[k] * self.scales[l] * covariance[(k, l)];
        let root: Vec<f64> = (0..p).map(|k| (1.0 + c(k, k)).sqrt().recip()).collect();
        let mut sum = 0.0;
        for k in 0..p {
            for l in 0..=k {
                let twice = if l < k { 2.0 } else { 1.0 };
                let angle = (c(k, l) * root[k] * root[l]).clamp(-1.0, 1.0).asin();
                sum += twice * self.residual[k] * self.residual[l] * angle;
            }
        }
        FRAC_2_PI * sum
    }

    /// E[(y − f) g_j] for the trained unit j.
    pub(super) fn error_times_unit(&self, covariance: &Mat, j: usize) -> f64 {
        let c = |k: usize, l: usize| self.scales[k] * self.scales[l] * covariance[(k, l)];
        let angle = |k: usize| (c(k, j) / ((1.0 + c(k, k)) * (1.0 + c(j, j))).sqrt()).clamp(-1.0, 1.0).asin();
        FRAC_2_PI * (0..self.scales.len()).map(|k| self.residual[k] * angle(k)).sum::<f64>()
    }

    /// Fills A and, if needed, N. Allocates nothing once `out.scratch` has grown.
    pub(super) fn fill(&self, covariance: &Mat, needed: Needed, out: &mut Averages) {
        let (p, k) = (self.scales.len(), self.gain.len());
        let pairs = k * (k + 1) / 2;
        let angles = if needed == Needed::DriftAndNoise { pairs * p * (p + 1) / 2 } else { 0 };
        let mut scratch = std::mem::take(&mut out.scratch);
        scratch.resize(p * p + k * p + 3 * p + 2 * angles, 0.0);
        let (c, rest) = scratch.split_at_mut(p * p);
        let (h, rest) = rest.split_at_mut(k * p);
        let (work, rest) = rest.split_at_mut(3 * p);
        let (arguments, weights) = rest.split_at_mut(angles);
        for i in 0..p {
            for (j, x) in covariance.row(i).iter().enumerate() {
                c[i * p + j] = self.scales[i] * self.scales[j] * x;
            }
        }
        for i in 0..k {
            for j in 0..p {
                let determinant = (1.0 + c[i * p + i]) * (1.0 + c[j * p + j]) - c[i * p + j] * c[i * p + j];
                h[i * p + j] = FRAC_2_PI / determinant.sqrt();
            }
        }
        self.drift(c, h, &mut out.drift);
        if needed == Needed::DriftAndNoise {
            let mut at = 0;
            for i in 0..k {
                for j in 0..=i {
                    let end = at + p * (p + 1) / 2;
                    self.pair_arguments(c, (i, j), work, &mut arguments[at..end], &mut weights[at..end]);
                    at = end;
                }
            }
            simd::asin_in_place(arguments);
            let count = p * (p + 1) / 2;
            let sums = arguments.chunks_exact(count).zip(weights.chunks_exact(count));
            let pairs = (0..k).flat_map(|i| (0..=i).map(move |j| (i, j)));
            for ((i, j), (angles, weights)) in pairs.zip(sums) {
                let squared = FRAC_2_PI * didact_math::linalg::dot(angles, weights) + self.noise;
                let scale = self.gain[i] * self.gain[j] * self.scales[i] * self.scales[j];
                out.noise[(i, j)] = scale * h[i * p + j] * squared;
                out.noise[(j, i)] = out.noise[(i, j)];
            }
        }
        out.error = 0.0;
        out.scratch = scratch;
    }

    /// A_ik = −gain_i ( v_k E[g'_i g'_k] + δ_ik Σ_m v_m E[g''_i g_m] ).
    fn drift(&self, c: &[f64], h: &[f64], out: &mut Mat) {
        let p = self.scales.len();
        for i in 0..self.gain.len() {
            let mut diagonal = 0.0;
            for k in 0..p {
                let hik = h[i * p + k];
                out[(i, k)] = -self.gain[i] * self.residual[k] * self.scales[i] * self.scales[k] * hik;
                diagonal += self.residual[k] * hik * c[i * p + k];
            }
            let curvature = -self.scales[i] * self.scales[i] * diagonal / (1.0 + c[i * p + i]);
            out[(i, i)] -= self.gain[i] * curvature;
        }
    }

    /// Arguments D_kl/√((1+D_kk)(1+D_ll)) of the pair (i, j), l ≤ k, and their weights v_k v_l (twice off the diagonal).
    fn pair_arguments(
        &self,
        c: &[f64],
        (i, j): (usize, usize),
        work: &mut [f64],
        arguments: &mut [f64],
        weights: &mut [f64],
    ) {
        let p = self.scales.len();
        let (first, second) = (&c[i * p..(i + 1) * p], &c[j * p..(j + 1) * p]);
        let (sii, sjj, sij) = (1.0 + first[i], 1.0 + second[j], first[j]);
        let inverse = 1.0 / (sii * sjj - sij * sij);
        let (alpha, rest) = work.split_at_mut(p);
        let (beta, root) = rest.split_at_mut(p);
        for k in 0..p {
            alpha[k] = inverse * (sjj * first[k] - sij * second[k]);
            beta[k] = inverse * (sii * second[k] - sij * first[k]);
            let own = c[k * p + k] - alpha[k] * first[k] - beta[k] * second[k];
            root[k] = 1.0 / (1.0 + own).sqrt();
        }
        let mut at = 0;
        for k in 0..p {
            let (a, b, r, v) = (alpha[k], beta[k], root[k], self.residual[k]);
            let row = &c[k * p..k * p + k + 1];
            let end = at + k + 1;
            let (arguments, weights) = (&mut arguments[at..end], &mut weights[at..end]);
            for l in 0..=k {
                arguments[l] = (row[l] - a * first[l] - b * second[l]) * r * root[l];
                weights[l] = 2.0 * v * self.residual[l];
            }
            weights[k] *= 0.5;
            at = end;
        }
    }
}
