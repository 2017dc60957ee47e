//! erf units: every average in closed form (Saad & Solla 1995; docs/derivations/power-law-spectra.md#s3-1), arranged
//! for speed.
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
//! and N_ij needs one matrix D, P inverse roots and P(P+1)/2 arcsines per pair (i, j): the inner loop, in `angles`.
//! erf(κ z) is g(√2 κ z): fields are scaled first.

use didact_math::dispatch;
use didact_math::gauss::angles;
use didact_math::linalg::Mat;
use didact_model::rule::{Averages, Needed};
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
        let pairs = if needed == Needed::DriftAndNoise { k * (k + 1) / 2 } else { 0 };
        let mut scratch = std::mem::take(&mut out.scratch);
        scratch.resize(p * p + k * p + pairs + angles::room(p), 0.0);
        let (c, rest) = scratch.split_at_mut(p * p);
        let (h, rest) = rest.split_at_mut(k * p);
        let (sums, room) = rest.split_at_mut(pairs);
        scale(covariance.as_slice(), self.scales, c);
        slope_products(c, p, h);
        self.drift(c, h, &mut out.drift);
        if needed == Needed::DriftAndNoise {
            angles::weighted_angles(c, self.residual, room, sums);
            let pairs = (0..k).flat_map(|i| (0..=i).map(move |j| (i, j)));
            for ((i, j), sum) in pairs.zip(sums) {
                let squared = FRAC_2_PI * *sum + self.noise;
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
        for (i, (c, h)) in c.chunks_exact(p).zip(h.chunks_exact(p)).enumerate() {
            let gain = self.gain[i] * self.scales[i];
            let mut curvature = 0.0;
            for (k, out) in out.row_mut(i).iter_mut().enumerate() {
                *out = -gain * self.residual[k] * self.scales[k] * h[k];
                curvature += self.residual[k] * h[k] * c[k];
            }
            out[(i, i)] += gain * self.scales[i] * curvature / (1.0 + c[i]);
        }
    }
}

dispatch! {
    /// The covariance of the scaled fields.
    fn scale(covariance: &[f64], scales: &[f64], c: &mut [f64]) {
        let p = scales.len();
        for ((row, out), a) in covariance.chunks_exact(p).zip(c.chunks_exact_mut(p)).zip(scales) {
            for ((out, x), b) in out.iter_mut().zip(row).zip(scales) {
                *out = a * b * x;
            }
        }
    }
}

dispatch! {
    /// h_ik = E[g'_i g'_k] for the first rows of C, as many as `h` has.
    fn slope_products(c: &[f64], p: usize, h: &mut [f64]) {
        for (i, (row, h)) in c.chunks_exact(p).zip(h.chunks_exact_mut(p)).enumerate() {
            let own = 1.0 + row[i];
            // The diagonal of C first: a strided load inside the loop would keep it from using vectors.
            for (k, h) in h.iter_mut().enumerate() {
                *h = 1.0 + c[k * (p + 1)];
            }
            for (h, x) in h.iter_mut().zip(row) {
                *h = FRAC_2_PI / (own * *h - x * x).sqrt();
            }
        }
    }
}
