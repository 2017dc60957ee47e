//! Feature scaling of linear units: only N_l of the N directions are trained.
//!
//! Directions are the eigen-directions in order of decreasing eigenvalue
//! (docs/derivations/power-law-spectra.md#s5-1), or those of a random basis
//! (docs/derivations/power-law-spectra.md#s5-3). For a given covariance see [`super::correlated`].

use super::regression::Regression;
use super::small_rate::PowerLaw;
use didact_math::roots::brent;
use didact_model::spectrum::{Spectrum, SpectrumError};

/// Every eigenvalue and how many of its directions are trained, the largest eigenvalues first.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    /// N.
    pub dimension: u64,
    /// N_l.
    pub trained: u64,
    /// (λ, trained directions, untrained directions).
    groups: Vec<(f64, u64, u64)>,
}

impl Features {
    /// The first N_l ≤ N directions; a degenerate group may be cut.
    pub fn new(spectrum: &Spectrum, dimension: u64, trained: u64) -> Result<Self, SpectrumError> {
        let sizes = spectrum.multiplicities(dimension)?;
        let mut groups: Vec<(f64, u64)> = spectrum.eigenvalues().iter().copied().zip(sizes).collect();
        groups.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut left = trained;
        let cut = |(eigenvalue, size): (f64, u64)| {
            let inside = size.min(left);
            left -= inside;
            (eigenvalue, inside, size - inside)
        };
        Ok(Self { dimension, trained, groups: groups.into_iter().map(cut).collect() })
    }

    /// Σ w λ over the trained directions, and over the others.
    fn variances(&self) -> (f64, f64) {
        let n = self.dimension as f64;
        let sum = |count: fn(&(f64, u64, u64)) -> u64| -> f64 {
            self.groups.iter().rev().map(|g| g.0 * count(g) as f64 / n).sum()
        };
        (sum(|g| g.1), sum(|g| g.2))
    }

    /// (e/2) [Σ_{k≤N_l} w_k λ_k e^{−2ηλ_k α} + Σ_{k>N_l} w_k λ_k], e = 1 + σ_J²: small learning rate
    /// (Eq. 10 of the paper, docs/derivations/power-law-spectra.md#eq-34).
    pub fn small_rate(&self, learning_rate: f64, initial: f64, alpha: f64) -> f64 {
        let n = self.dimension as f64;
        let term = |&(l, inside, outside): &(f64, u64, u64)| {
            l * (inside as f64 * (-2.0 * learning_rate * l * alpha).exp() + outside as f64) / n
        };
        0.5 * initial * self.groups.iter().rev().map(term).sum::<f64>()
    }

    /// The regression on the trained directions: the others act as label noise that is part of the error.
    pub fn regression(&self, learning_rate: f64, initial: f64) -> Regression {
        let inside: Vec<_> = self.groups.iter().filter(|g| g.1 > 0).collect();
        Regression {
            eigenvalues: inside.iter().map(|g| g.0).collect(),
            weights: inside.iter().map(|g| g.1 as f64 / self.dimension as f64).collect(),
            initial: vec![initial; inside.len()],
            learning_rate,
            label_noise: 0.0,
            untrained: initial * self.variances().1,
        }
    }

    /// (e/2) Σ_{k>N_l} w_k λ_k, what remains at small learning rate.
    pub fn asymptote(&self, initial: f64) -> f64 {
        0.5 * initial * self.variances().1
    }

    /// What remains at a finite rate as N → ∞: the asymptote / (1 − (η/2) Σ_{k≤N_l} w_k λ_k); infinite when unstable.
    pub fn asymptote_at(&self, learning_rate: f64, initial: f64) -> f64 {
        let share = 1.0 - 0.5 * learning_rate * self.variances().0;
        if share <= 0.0 { f64::INFINITY } else { self.asymptote(initial) / share }
    }

    /// κ of a Haar-random basis: Σ_k λ_k/(λ_k + κ) = N_l; ∞ at N_l = 0 and 0 at N_l = N.
    pub fn random_basis_ridge(&self) -> f64 {
        let (n, wanted) = (self.dimension as f64, self.trained as f64);
        if self.trained == 0 {
            return f64::INFINITY;
        }
        if self.trained >= self.dimension {
            return 0.0;
        }
        let size = |g: &(f64, u64, u64)| (g.1 + g.2) as f64;
        let trace: f64 = self.groups.iter().map(|g| g.0 * size(g)).sum();
        let smallest = self.groups.iter().map(|g| g.0).fold(f64::INFINITY, f64::min);
        // λ/(λ+κ) ≤ λ/κ and ≥ λ_min/(λ_min+κ) bracket the root.
        let (low, high) = ((smallest * (n - wanted) / wanted).ln(), (trace / wanted).ln());
        let excess =
            |x: f64| self.groups.iter().map(|g| size(g) * g.0 / (g.0 + x.exp())).sum::<f64>() - wanted;
        brent(excess, low - 1e-9, high + 1e-9, 0.0).map_or(f64::NAN, f64::exp)
    }

    /// Deterministic equivalent of the asymptote in a Haar-random basis, (e/2N) κ N_l at small learning rate.
    pub fn random_basis_asymptote(&self, initial: f64) -> f64 {
        if self.trained == 0 {
            return self.asymptote(initial);
        }
        0.5 * initial * self.random_basis_ridge() * self.trained as f64 / self.dimension as f64
    }
}

/// The integral forms for N = L: tail (e/2)(λ_+/(βL))(N_l^{−β} − L^{−β}) plus ε_int **up to N_l**
/// (Eqs. 11 and 79 of the paper, corrected: docs/derivations/power-law-spectra.md#eq-35).
///
/// The worst error of replacing the sums by integrals is (e/4)(λ_+/L)(N_l^{−1−β} + L^{−1−β}).
pub fn integral(law: &PowerLaw, trained: u64, alpha: f64) -> f64 {
    integral_asymptote(law, trained) + law.integral_to(alpha, trained as f64)
}

/// (e/2)(λ_+/(βL))(N_l^{−β} − L^{−β}): the error that more examples do not lower, as an integral.
pub fn integral_asymptote(law: &PowerLaw, trained: u64) -> f64 {
    let (levels, beta) = (law.levels as f64, law.beta);
    let tail = (trained as f64).powf(-beta) - levels.powf(-beta);
    0.5 * law.initial * law.largest / (beta * levels) * tail
}

/// β [(π/(1+β))/sin(π/(1+β))]^{1+β}: asymptote in a random basis over that in the eigenbasis, 1 ≪ N_l ≪ N.
pub fn random_basis_ratio(beta: f64) -> f64 {
    let angle = std::f64::consts::PI / (1.0 + beta);
    beta * (angle / angle.sin()).powf(1.0 + beta)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::committee::predictions::regression::CurveSize;
    use crate::committee::predictions::small_rate;

    #[test]
    fn all_directions_or_none_are_the_known_limits() {
        let spectrum = Spectrum::power_law(8, 0.5).unwrap();
        let whole = Features::new(&spectrum, 32, 32).unwrap();
        let plain = small_rate::error(&spectrum, 0.1, 1.3, 4.0);
        assert!((whole.small_rate(0.1, 1.3, 4.0) - plain).abs() < 1e-14);
        assert_eq!(whole.asymptote(1.3), 0.0);
        let none = Features::new(&spectrum, 32, 0).unwrap();
        assert!((none.small_rate(0.1, 1.3, 4.0) - 0.65).abs() < 1e-13);
        assert!((none.regression(0.1, 1.3).curve(CurveSize::Limit).error(9.0) - 0.65).abs() < 1e-13);
    }

    #[test]
    fn the_finite_rate_asymptote_is_where_the_curve_ends() {
        let spectrum = Spectrum::power_law(64, 1.0).unwrap();
        let features = Features::new(&spectrum, 64, 20).unwrap();
        let end = features.regression(0.3, 1.01).curve(CurveSize::Limit).limit();
        assert!((features.asymptote_at(0.3, 1.01) / end - 1.0).abs() < 1e-12);
        // A degenerate group cut in two is the same as two groups.
        let coarse = Spectrum::power_law(4, 1.0).unwrap();
        let cut = Features::new(&coarse, 64, 20).unwrap();
        let mean = cut.regression(0.3, 1.0).curve(CurveSize::Dimension(64.0)).error(50.0);
        assert!(mean > cut.asymptote(1.0) && mean < 1.2 * cut.asymptote(1.0));
    }

    #[test]
    fn a_random_basis_is_worse_by_the_known_ratio() {
        // 2.47 at β = 1 and 3.01 at β = 1.5 (docs/derivations/power-law-spectra.md#eq-40), reached for 1 ≪ N_l ≪ N.
        assert!(
            (random_basis_ratio(1.0) - 2.467).abs() < 1e-3 && (random_basis_ratio(1.5) - 3.01).abs() < 5e-3
        );
        let spectrum = Spectrum::power_law(20_000, 1.0).unwrap();
        let features = Features::new(&spectrum, 20_000, 100).unwrap();
        let ratio = features.random_basis_asymptote(1.0) / features.asymptote(1.0);
        assert!((ratio / random_basis_ratio(1.0) - 1.0).abs() < 0.02, "{ratio}");
    }
}
