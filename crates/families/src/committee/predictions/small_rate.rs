//! Linear units at small learning rate: sums over eigenvalues, and the integrals that show the power law.

use didact_math::special::{gamma, gamma_above, gamma_between, zeta};
use didact_model::spectrum::{Spectrum, SpectrumError};

/// ⟨ε_g⟩ = (e/2) Σ_a w_a λ_a exp(−2ηλ_a α) for η → 0, with e = 1 + σ_J²
/// (docs/derivations/power-law-spectra.md#eq-26).
pub fn error(spectrum: &Spectrum, learning_rate: f64, initial: f64, alpha: f64) -> f64 {
    0.5 * initial * decay(spectrum, 2.0 * learning_rate * alpha)
}

/// Σ_a w_a λ_a e^{−λ_a x}.
pub fn decay(spectrum: &Spectrum, x: f64) -> f64 {
    spectrum.eigenvalues().iter().zip(spectrum.weights()).map(|(l, w)| w * l * (-l * x).exp()).sum()
}

/// (R^(1), Q^(1)) for η → 0, averaged over teachers and starts; σ_J² is the variance of the student's components.
pub fn overlaps(spectrum: &Spectrum, learning_rate: f64, student_variance: f64, alpha: f64) -> (f64, f64) {
    let (once, twice) =
        (decay(spectrum, learning_rate * alpha), decay(spectrum, 2.0 * learning_rate * alpha));
    let nu = spectrum.moment(1);
    (nu - once, nu + (1.0 + student_variance) * twice - 2.0 * once)
}

/// The normalised power law λ_l = λ_+/l^{1+β}, l = 1..L, and a linear student that learns on it at small η.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerLaw {
    /// L.
    pub levels: usize,
    /// β.
    pub beta: f64,
    /// λ₊ (`lambda_plus`), the largest eigenvalue L/H_{L,1+β}.
    pub largest: f64,
    /// η.
    pub learning_rate: f64,
    /// 1 + σ_J².
    pub initial: f64,
}

/// The range of α in which a power law of the error is to be expected.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Where the largest eigenvalue is learned.
    pub from: f64,
    /// Where the integral over the spectrum ends to be scale-free.
    pub to: f64,
}

impl PowerLaw {
    /// The power law, refused like [`Spectrum::power_law`].
    pub fn new(levels: usize, beta: f64, learning_rate: f64, initial: f64) -> Result<Self, SpectrumError> {
        let spectrum = Spectrum::power_law(levels, beta)?;
        Ok(Self { levels, beta, largest: spectrum.eigenvalues()[0], learning_rate, initial })
    }

    /// s = β/(1+β), the exponent of the error in α.
    pub fn exponent(&self) -> f64 {
        self.beta / (1.0 + self.beta)
    }

    /// c = 2 η λ_+ α.
    fn reach(&self, alpha: f64) -> f64 {
        2.0 * self.learning_rate * self.largest * alpha
    }

    /// (e/2L) λ_+, the first term of the sum at α = 0.
    fn scale(&self) -> f64 {
        0.5 * self.initial * self.largest / self.levels as f64
    }

    /// ε_int = (e/2L) (λ_+/(1+β)) c^{−s} [Γ(s, c/U^{1+β}) − Γ(s, c)], the integral of the summand from 1 to U.
    pub fn integral_to(&self, alpha: f64, upper: f64) -> f64 {
        let (c, s) = (self.reach(alpha), self.exponent());
        if c == 0.0 {
            return self.scale() * (1.0 - upper.powf(-self.beta)) / self.beta;
        }
        let between = gamma_between(s, c * upper.powf(-1.0 - self.beta), c);
        self.scale() / (1.0 + self.beta) * c.powf(-s) * between
    }

    /// The integral over the whole spectrum (Eq. 9 of the paper, docs/derivations/power-law-spectra.md#eq-27).
    pub fn integral(&self, alpha: f64) -> f64 {
        self.integral_to(alpha, self.levels as f64)
    }

    /// The integral with its second incomplete gamma function left out
    /// (Eq. 52 of the paper, docs/derivations/power-law-spectra.md#s4-6).
    pub fn first_gamma_only(&self, alpha: f64) -> f64 {
        let (c, s) = (self.reach(alpha), self.exponent());
        let z = c * (self.levels as f64).powf(-1.0 - self.beta);
        self.scale() / (1.0 + self.beta) * c.powf(-s) * gamma_above(s, z)
    }

    /// The pure power law (e/2L) (λ_+/(1+β)) c^{−s} Γ(s) (docs/derivations/power-law-spectra.md#eq-28).
    pub fn leading(&self, alpha: f64) -> f64 {
        let s = self.exponent();
        self.scale() / (1.0 + self.beta) * self.reach(alpha).powf(-s) * gamma(s)
    }

    /// The summand f(k) of the error.
    pub fn summand(&self, k: f64, alpha: f64) -> f64 {
        let decay = k.powf(-1.0 - self.beta);
        self.scale() * decay * (-self.reach(alpha) * decay).exp()
    }

    /// Σ_{k=1}^L f(k), summed from the small end.
    pub fn sum(&self, alpha: f64) -> f64 {
        (1..=self.levels).rev().map(|k| self.summand(k as f64, alpha)).sum()
    }

    /// The integral with the zeroth-order correction of Euler and Maclaurin, (f(1) + f(L))/2.
    pub fn zeroth_order(&self, alpha: f64) -> f64 {
        let ends = self.summand(1.0, alpha) + self.summand(self.levels as f64, alpha);
        self.integral(alpha) + 0.5 * ends
    }

    /// An upper bound of the sum at any α: integral + (e λ_+/2L) [1/(2L^{1+β}) + ζ(1+β) − 1/β]
    /// (docs/derivations/power-law-spectra.md#eq-31).
    pub fn upper_bound(&self, alpha: f64) -> f64 {
        let end = 0.5 * (self.levels as f64).powf(-1.0 - self.beta);
        self.integral(alpha) + self.scale() * (end + zeta(1.0 + self.beta) - 1.0 / self.beta)
    }

    /// 1/(2ηλ_+) < α < (1/(2ηλ_+)) Γ((2β+1)/(1+β))^{(1+β)/β} L^{1+β}: beyond, decay is exponential
    /// (docs/derivations/power-law-spectra.md#eq-29).
    pub fn window(&self) -> Window {
        let from = 1.0 / (2.0 * self.learning_rate * self.largest);
        let (beta, one) = (self.beta, 1.0 + self.beta);
        let reach = gamma((2.0 * beta + 1.0) / one).powf(one / beta) * (self.levels as f64).powf(one);
        Window { from, to: from * reach }
    }

    /// L^{1+β}/(2ηλ_+), where the smallest eigenvalue is learned (z = 1): exponents are good to 15% up to a hundredth of it.
    pub fn levels_reached(&self) -> f64 {
        self.window().from * (self.levels as f64).powf(1.0 + self.beta)
    }

    /// Local exponent of the integral without its upper end: −s − z^s e^{−z}/Γ(s, z), z = c/L^{1+β}
    /// (docs/derivations/power-law-spectra.md#eq-30).
    pub fn local_exponent(&self, alpha: f64) -> f64 {
        let s = self.exponent();
        let z = self.reach(alpha) * (self.levels as f64).powf(-1.0 - self.beta);
        -s - (s * z.ln() - z).exp() / gamma_above(s, z)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::committee::predictions::regression::{CurveSize, Regression};

    fn law(levels: usize, beta: f64, rate: f64) -> PowerLaw {
        PowerLaw::new(levels, beta, rate, 2.0).unwrap()
    }

    #[test]
    fn the_sum_is_the_limit_of_small_rates() {
        let spectrum = Spectrum::power_law(32, 0.7).unwrap();
        let (alpha, rate) = (5.0, 0.1);
        let small = error(&spectrum, rate, 2.0, alpha);
        assert!((law(32, 0.7, rate).sum(alpha) / small - 1.0).abs() < 1e-13);
        // At fixed ηα the corrections are of first order in η.
        let off = |factor: f64| {
            let exact =
                Regression::new(&spectrum, rate * factor, 1.0).curve(CurveSize::Limit).error(alpha / factor);
            exact / small - 1.0
        };
        let ratio = off(1e-2) / off(1e-3);
        assert!((ratio - 10.0).abs() < 0.1, "{ratio}");
    }

    #[test]
    fn the_integral_is_that_of_the_summand() {
        let rule = didact_math::gauss::quadrature::gauss_legendre(40);
        for (beta, alpha) in [(0.01, 3.0), (0.5, 0.0), (0.5, 30.0), (1.5, 1e4)] {
            let law = law(64, beta, 0.02);
            // In x = ln k the integrand is smooth: panels of width ln(64)/8.
            let width = 64f64.ln() / 8.0;
            let panel = |p: usize| -> f64 {
                let middle = (p as f64 + 0.5) * width;
                let term = |(x, w): (&f64, &f64)| {
                    let k = (middle + 0.5 * width * x).exp();
                    0.5 * width * w * k * law.summand(k, alpha)
                };
                rule.nodes.iter().zip(&rule.weights).map(term).sum()
            };
            let want: f64 = (0..8).map(panel).sum();
            assert!((law.integral(alpha) / want - 1.0).abs() < 1e-12, "{beta} {alpha}");
        }
    }

    #[test]
    fn corrections_bound_the_sum() {
        for (beta, rate) in [(0.5, 0.01), (0.01, 0.01), (1.0, 0.002)] {
            let law = law(128, beta, rate);
            for alpha in [0.5, 1.0, 3.0, 10.0, 100.0] {
                assert!(law.sum(alpha) <= law.upper_bound(alpha), "{beta} {alpha}");
                // From 1/(2ηλ_+) on the zeroth order is a bound up to corrections of higher order, found below 0.2%.
                if alpha > law.window().from {
                    assert!(law.sum(alpha) <= law.zeroth_order(alpha) * 1.002, "{beta} {alpha}");
                }
            }
        }
    }

    #[test]
    fn deep_in_the_window_the_exponent_is_beta_over_one_plus_beta() {
        let law = law(10_000, 1.0, 0.01);
        let Window { from, to } = law.window();
        let alpha = (from * to).sqrt();
        assert!((law.local_exponent(alpha) + 0.5).abs() < 0.01, "{}", law.local_exponent(alpha));
        assert!((law.sum(alpha) / law.leading(alpha) - 1.0).abs() < 0.02);
        // At the end of the window it is no power law any more.
        assert!(law.local_exponent(to) < -0.9);
    }
}
