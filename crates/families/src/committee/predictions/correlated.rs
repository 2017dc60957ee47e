//! Feature scaling outside the eigenbasis: the first N_l coordinates of correlated inputs are trained.
//!
//! Σ = [[S11, S12], [S12ᵀ, S22]] with Schur complement Z = S22 − S12ᵀ S11⁻¹ S12. With d = B − J split into its trained
//! part d~ and the constant rest d^, v = d~ + S11⁻¹ S12 d^ obeys v(α) = e^{−ηS11 α} v(0) at small η, and
//! ε_g = (vᵀ S11 v + d^ᵀ Z d^)/2N (docs/derivations/power-law-spectra.md#s5-2).

use super::regression::Regression;
use didact_math::linalg::{Mat, dot, symmetric_eigen};
use didact_math::random::{RngAddress, Stream};
use didact_model::spectrum::Spectrum;

/// The trained block in its own eigenbasis: linear regression in N_l dimensions with label noise from the rest.
#[derive(Debug, Clone)]
pub struct CorrelatedFeatures {
    dimension: f64,
    /// ℓ_k, the eigenvalues of S11.
    eigenvalues: Vec<f64>,
    /// 1 + [S11⁻¹ S12 S12ᵀ S11⁻¹]_kk in that basis: ⟨v_k²⟩ at the start, over 1 + σ_J².
    excess: Vec<f64>,
    /// Tr Z.
    residual: f64,
}

impl CorrelatedFeatures {
    /// `covariance` is symmetric and positive definite; `trained` ≤ its size. `None` when S11 is not positive definite.
    pub fn new(covariance: &Mat, trained: usize) -> Option<Self> {
        let n = covariance.rows();
        let rest = covariance.block(trained..n, trained..n).trace();
        if trained == 0 {
            let dimension = n as f64;
            return Some(Self { dimension, eigenvalues: vec![], excess: vec![], residual: rest });
        }
        let eigen = symmetric_eigen(&covariance.block(0..trained, 0..trained));
        if eigen.values[0] <= 0.0 {
            return None;
        }
        let mixed = eigen.vectors.transpose().times(&covariance.block(0..trained, trained..n));
        let square = |k: usize| mixed.row(k).iter().map(|x| x * x).sum::<f64>();
        let squares: Vec<f64> = (0..trained).map(square).collect();
        let explained: f64 = squares.iter().zip(&eigen.values).map(|(s, l)| s / l).sum();
        Some(Self {
            dimension: n as f64,
            excess: squares.iter().zip(&eigen.values).map(|(s, l)| 1.0 + s / (l * l)).collect(),
            eigenvalues: eigen.values,
            residual: (rest - explained).max(0.0),
        })
    }

    /// (e/2N) { Tr[S11 e^{−2ηS11 α}(1 + S11⁻¹ S12 S12ᵀ S11⁻¹)] + Tr Z } at small learning rate; α may be infinite.
    pub fn small_rate(&self, learning_rate: f64, initial: f64, alpha: f64) -> f64 {
        let moving = self.eigenvalues.iter().zip(&self.excess);
        let moving: f64 = moving.map(|(l, e)| l * e * (-2.0 * learning_rate * l * alpha).exp()).sum();
        0.5 * initial * (moving + self.residual) / self.dimension
    }

    /// The regression whose mean curve is exact at finite learning rate (and at finite N).
    pub fn regression(&self, learning_rate: f64, initial: f64) -> Regression {
        Regression {
            eigenvalues: self.eigenvalues.clone(),
            weights: vec![1.0 / self.dimension; self.eigenvalues.len()],
            initial: self.excess.iter().map(|e| initial * e).collect(),
            learning_rate,
            label_noise: 0.0,
            untrained: initial * self.residual / self.dimension,
        }
    }

    /// (e/2N) Tr Z.
    pub fn asymptote(&self, initial: f64) -> f64 {
        0.5 * initial * self.residual / self.dimension
    }
}

/// Σ_ij = ρ^|i−j|.
pub fn exponential_covariance(size: usize, correlation: f64) -> Mat {
    Mat::from_fn(size, size, |i, j| correlation.powi(i.abs_diff(j) as i32))
}

/// O diag(λ) Oᵀ with the columns of O orthonormal: the covariance of a spectrum in another basis.
pub fn in_basis(spectrum: &Spectrum, multiplicities: &[u64], basis: &Mat) -> Mat {
    let eigenvalues = spectrum.eigenvalues().iter().zip(multiplicities);
    let roots: Vec<f64> = eigenvalues.flat_map(|(l, &n)| (0..n).map(|_| l.sqrt())).collect();
    Mat::from_fn(basis.rows(), roots.len(), |i, j| basis[(i, j)] * roots[j]).gram()
}

/// A Haar-random orthogonal matrix: Gaussian rows made orthonormal one after the other.
pub fn random_basis(size: usize, seed: u64) -> Mat {
    let mut rows = Mat::zeros(size, size);
    Stream::at(RngAddress { seed, replica: 0, step: 0, lane: 0 }).fill_normal(rows.as_mut_slice());
    for i in 0..size {
        let mut row = rows.row(i).to_vec();
        // Twice is enough: the second pass removes what rounding left (Kahan, Parlett).
        for _ in 0..2 {
            for j in 0..i {
                let along = dot(&row, rows.row(j));
                row.iter_mut().zip(rows.row(j)).for_each(|(x, y)| *x -= along * y);
            }
        }
        let length = dot(&row, &row).sqrt();
        rows.row_mut(i).iter_mut().zip(&row).for_each(|(x, y)| *x = y / length);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::committee::predictions::feature::Features;
    use crate::committee::predictions::regression::CurveSize;

    #[test]
    fn a_diagonal_covariance_is_the_eigenbasis() {
        let spectrum = Spectrum::power_law(12, 0.8).unwrap();
        let covariance = Mat::diagonal(spectrum.eigenvalues());
        let (a, b) =
            (CorrelatedFeatures::new(&covariance, 5).unwrap(), Features::new(&spectrum, 12, 5).unwrap());
        for alpha in [0.0, 3.0, 1e9] {
            assert!((a.small_rate(0.2, 1.1, alpha) / b.small_rate(0.2, 1.1, alpha) - 1.0).abs() < 1e-12);
            let mean = |r: Regression| r.curve(CurveSize::Dimension(12.0)).error(alpha.min(40.0));
            assert!((mean(a.regression(0.2, 1.1)) / mean(b.regression(0.2, 1.1)) - 1.0).abs() < 1e-11);
        }
    }

    #[test]
    fn the_deterministic_equivalent_is_the_mean_over_random_bases() {
        // N = 96, N_l = 32: the equivalent is within 1-2% of the mean (docs/derivations/power-law-spectra.md#s5-3); 24
        // bases know it to 1%.
        let spectrum = Spectrum::power_law(96, 1.0).unwrap();
        let ones = vec![1; 96];
        let mean: f64 = (0..24)
            .map(|seed| {
                let covariance = in_basis(&spectrum, &ones, &random_basis(96, seed));
                CorrelatedFeatures::new(&covariance, 32).unwrap().asymptote(1.0)
            })
            .sum::<f64>()
            / 24.0;
        let equivalent = Features::new(&spectrum, 96, 32).unwrap().random_basis_asymptote(1.0);
        assert!((mean / equivalent - 1.0).abs() < 0.04, "{mean} {equivalent}");
    }
}
