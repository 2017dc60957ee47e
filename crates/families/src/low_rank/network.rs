//! The network, its scales, and averages over pairs of its units.

use didact_math::activation::{Activation, Form};
use didact_math::gauss::{HermiteSeries, PairAverages, pair_averages};
use didact_math::linalg::dot;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What multiplies the pre-activations: the source uses three different scales
/// (docs/derivations/low-rank-perturbation.md#eq-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// κ = 1/√(1 + ξ²/k): pre-activations N(0, 1) for quantised c. All theorems of the source.
    #[default]
    Normalised,
    /// κ = 1: the problem statement of the source.
    Raw,
    /// κ = k/(k + ξ²): as printed for its simulations, where the square root of this is meant.
    Printed,
}

impl Mode {
    /// κ for k units of strength ξ.
    pub fn scale(self, units: usize, strength: f64) -> f64 {
        let s2 = 1.0 + strength * strength / units as f64;
        match self {
            Self::Normalised => 1.0 / s2.sqrt(),
            Self::Raw => 1.0,
            Self::Printed => 1.0 / s2,
        }
    }
}

/// f(x; c, u) = A Σ_i λ_i σ(κ(w_i·x + ξ c_i u·x)); the base network has ξ = 0 in the bracket, same κ and A.
#[derive(Debug, Clone)]
pub struct Network {
    /// σ.
    pub activation: Arc<dyn Activation>,
    /// λ, the second layer: known, shared by teacher and student, not trained.
    pub second_layer: Vec<f64>,
    /// ξ.
    pub strength: f64,
    /// κ.
    pub scale: f64,
    /// A.
    pub output_scale: f64,
}

impl Network {
    /// A network with the scale of its mode.
    pub fn new(activation: Arc<dyn Activation>, second_layer: Vec<f64>, strength: f64, mode: Mode) -> Self {
        let scale = mode.scale(second_layer.len(), strength);
        Self { activation, second_layer, strength, scale, output_scale: 1.0 }
    }

    /// k.
    pub fn units(&self) -> usize {
        self.second_layer.len()
    }

    /// θ = ξ²/(k + ξ²): 0 is the lazy limit, 1 the single-index limit.
    pub fn theta(&self) -> f64 {
        let square = self.strength * self.strength;
        square / (self.units() as f64 + square)
    }

    /// A Σ_i λ_i σ(κ(y_i + ξ c_i z)).
    pub fn output(&self, base: &[f64], loading: &[f64], along: f64) -> f64 {
        let mut sum = 0.0;
        let mut buffer = [0.0; UNITS_PER_CALL];
        let chunks = self
            .second_layer
            .chunks(UNITS_PER_CALL)
            .zip(base.chunks(UNITS_PER_CALL))
            .zip(loading.chunks(UNITS_PER_CALL));
        for ((lambda, y), c) in chunks {
            let fields = &mut buffer[..lambda.len()];
            self.preactivations(y, c, along, fields);
            self.activation.values(fields);
            sum += dot(lambda, fields);
        }
        self.output_scale * sum
    }

    /// κ(y_i + ξ c_i z) of some units.
    #[inline]
    pub(super) fn preactivations(&self, base: &[f64], loading: &[f64], along: f64, out: &mut [f64]) {
        let (scale, shift) = (self.scale, self.strength * along);
        for ((h, y), c) in out.iter_mut().zip(base).zip(loading) {
            *h = scale * (y + shift * c);
        }
    }

    /// Variance κ²(1 + ξ² c²) of a unit whose direction is orthogonal to W.
    pub fn variance(&self, loading: f64) -> f64 {
        self.scale * self.scale * (1.0 + (self.strength * loading).powi(2))
    }
}

/// Units that are evaluated with one call of the activation; they fit in registers and on the stack.
pub(super) const UNITS_PER_CALL: usize = 16;

/// Averages over pairs of units of one activation; units of the same variance share a Hermite series.
#[derive(Debug, Clone)]
pub struct Pairs<'a> {
    activation: &'a dyn Activation,
    /// Per unit: its variance and the place of its series.
    units: Vec<(f64, usize)>,
    series: Vec<Option<HermiteSeries>>,
}

impl<'a> Pairs<'a> {
    /// Units with these variances.
    pub fn new(activation: &'a dyn Activation, variances: &[f64]) -> Self {
        // Closed forms and finite series need no preparation.
        let prepared = activation.degree().is_none() && activation.form() == Form::General;
        let (mut distinct, mut series) = (Vec::<f64>::new(), Vec::new());
        let units = variances
            .iter()
            .map(|&v| {
                let found = distinct.iter().position(|&d| (d - v).abs() <= 1e-14 * v);
                let at = found.unwrap_or_else(|| {
                    distinct.push(v);
                    series.push(prepared.then(|| HermiteSeries::of(activation, v)).flatten());
                    distinct.len() - 1
                });
                (v, at)
            })
            .collect();
        Self { activation, units, series }
    }

    /// `E[σσ]`, `E[σ′σ′]`, `E[σ″σ]` and `E[σσ″]` of units i and j with the given covariance, clipped to a possible one.
    pub fn at(&self, i: usize, j: usize, covariance: f64) -> PairAverages {
        let ((vi, si), (vj, sj)) = (self.units[i], self.units[j]);
        let limit = (vi * vj).sqrt();
        let covariance = covariance.clamp(-limit, limit);
        match (&self.series[si], &self.series[sj]) {
            (Some(a), Some(b)) => a.with(b, covariance),
            _ => pair_averages(self.activation, self.activation, &[[vi, covariance], [covariance, vj]]),
        }
    }
}

/// E[σ(a) σ(b)], E[σ′(a) σ′(b)], … for centred Gaussians of covariance (q11, q12, q22).
pub fn gaussian_pair(activation: &dyn Activation, q11: f64, q12: f64, q22: f64) -> PairAverages {
    Pairs::new(activation, &[q11, q22]).at(0, 1, q12)
}

/// K(ρ) = E[σ(Ra) σ(Rb)] = Σ_p μ_p² ρ^p and K′(ρ) = R² E[σ′(Ra) σ′(Rb)] for unit Gaussians of correlation ρ
/// (docs/derivations/low-rank-perturbation.md#eq-13).
#[derive(Debug, Clone)]
pub struct Kernel<'a> {
    pairs: Pairs<'a>,
    variance: f64,
}

impl<'a> Kernel<'a> {
    /// The kernel of σ(R z).
    pub fn new(activation: &'a dyn Activation, deviation: f64) -> Self {
        let variance = deviation * deviation;
        Self { pairs: Pairs::new(activation, &[variance]), variance }
    }

    /// K(ρ).
    pub fn value(&self, rho: f64) -> f64 {
        self.pairs.at(0, 0, self.variance * rho).value_value
    }

    /// K′(ρ).
    pub fn slope(&self, rho: f64) -> f64 {
        self.variance * self.pairs.at(0, 0, self.variance * rho).slope_slope
    }
}

/// μ_p(R) = E[σ(R z) h_p(z)], h_p = He_p/√p!.
pub fn hermite_coefficient(activation: &dyn Activation, order: usize, deviation: f64) -> f64 {
    activation.hermite(order, deviation * deviation)
}

/// The information exponent of σ_R(z) = σ(R z): its first non-zero Hermite coefficient beyond the mean, up to order 60.
pub fn information_exponent(activation: &dyn Activation, deviation: f64) -> Option<usize> {
    let variance = deviation * deviation;
    let size = Kernel::new(activation, deviation).value(1.0);
    // Rounding of a coefficient is 1e-15 of the norm of σ; a true one this small cannot be distinguished from 0.
    (1..=60).find(|&p| activation.hermite(p, variance).powi(2) > 1e-24 * size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use didact_math::activation::parse;

    #[test]
    fn the_kernel_is_the_hermite_series_and_its_slope_the_derivative() {
        for name in ["relu", "abs", "erf(z/sqrt2)", "quad", "tanh", "sigmoid", "He3", "h4", "id"] {
            let activation = parse(name).unwrap();
            for deviation in [0.7, 1.0, 1.4] {
                let kernel = Kernel::new(&*activation, deviation);
                let terms = if activation.degree().is_some() { 5 } else { 400 };
                for rho in [-0.6f64, 0.0, 0.3, 0.7] {
                    let square = |p: usize| hermite_coefficient(&*activation, p, deviation).powi(2);
                    let series: f64 = (0..terms).map(|p| square(p) * rho.powi(p as i32)).sum();
                    let slope: f64 = (1..terms).map(|p| p as f64 * square(p) * rho.powi(p as i32 - 1)).sum();
                    // 0.7^400 is far below rounding.
                    assert!((kernel.value(rho) - series).abs() < 1e-11 * (1.0 + series.abs()), "{name}");
                    assert!((kernel.slope(rho) - slope).abs() < 1e-11 * (1.0 + slope.abs()), "{name}");
                }
            }
        }
    }

    #[test]
    fn the_exponent_of_he3_is_three_only_at_unit_scale() {
        let he3 = parse("He3").unwrap();
        assert_eq!(information_exponent(&*he3, 1.0), Some(3));
        assert_eq!(information_exponent(&*he3, 1.2), Some(1));
        for (name, exponent) in [("relu", 1), ("sigmoid", 1), ("quad", 2), ("abs", 2), ("h4", 4)] {
            assert_eq!(information_exponent(&*parse(name).unwrap(), 1.0), Some(exponent), "{name}");
        }
    }

    #[test]
    fn modes_scale_the_deviation_as_stated() {
        let s2: f64 = 1.0 + 9.0 / 4.0;
        for (mode, deviation) in
            [(Mode::Normalised, 1.0), (Mode::Raw, s2.sqrt()), (Mode::Printed, 1.0 / s2.sqrt())]
        {
            let network = Network::new(parse("relu").unwrap(), vec![1.0; 4], 3.0, mode);
            assert!((network.variance(0.5).sqrt() - deviation).abs() < 1e-15);
        }
    }
}
