//! The large-batch map: one step of spherical SGD with its averages in place of its sums
//! (docs/derivations/lora.md#s9-3).
//!
//! As B, d → ∞ at fixed d/B the step becomes deterministic, but the orthogonal part of the gradient keeps the squared
//! length (d/B)E\[c²\] and shortens the overlap: this is what stops stage 1 of the two-stage method below |m| = 1.

use super::landscape::{AdapterState, Landscape};
use didact_model::constraint::Retraction;

/// One step of size η; aligned pre-training.
#[derive(Debug, Clone, Copy)]
pub struct LargeBatch<'a> {
    /// Loss and frozen weights.
    pub landscape: &'a Landscape,
    /// η, the effective step.
    pub step: f64,
    /// d/B, or (d − 2)/B at finite d.
    pub dimensions_per_sample: f64,
    /// Whether the gradient is projected off w first.
    pub retraction: Retraction,
}

impl LargeBatch<'_> {
    /// (u, m) after one step, from E[c a] = −(L_c + 2cL_r), E[c z] = −2uL_r√(1−m²) and E\[c²\], c = eσ′(s)
    /// (docs/derivations/lora.md#eq-41).
    pub fn step(&self, state: AdapterState) -> AdapterState {
        let AdapterState { amplitude: u, overlap: m, .. } = state;
        let law = self.landscape.law(state);
        let slopes = self.landscape.population.slopes(law);
        let across = (1.0 - m * m).max(0.0).sqrt();
        let (mut along, mut aside) =
            (-(slopes.overlap + 2.0 * law.overlap * slopes.variance), -2.0 * u * slopes.variance * across);
        let own = m * along + across * aside;
        if self.retraction == Retraction::Tangent {
            (along, aside) = (along - own * m, aside - own * across);
        }
        let noise = (self.step * u).powi(2)
            * self.dimensions_per_sample
            * self.landscape.population.gradient_noise(law);
        let (first, second) = (m + self.step * u * along, across + self.step * u * aside);
        let length = (first * first + second * second + noise).sqrt();
        AdapterState::aligned(u + self.step * own, first / length)
    }

    /// (u, m) after so many steps.
    pub fn after(&self, start: AdapterState, steps: u64) -> AdapterState {
        (0..steps).fold(start, |state, _| self.step(state))
    }
}

#[cfg(test)]
mod tests {
    use super::super::population::{LossName, Population};
    use super::*;
    use didact_math::activation::parse;

    fn landscape(name: &str, labels: &str, mu: f64) -> Landscape {
        let unit = parse(name).unwrap();
        Landscape::aligned(Population::new(unit.clone(), labels, unit, LossName::Half).unwrap(), mu)
    }

    #[test]
    fn squared_labels_stop_where_the_noise_balances_them() {
        let landscape = landscape("He3", "squared", 0.325);
        for (step, u, m) in [(0.01 / 18.0, -0.29931718, 0.92097592), (0.02 / 18.0, -0.28227580, 0.86854091)] {
            let map = LargeBatch {
                landscape: &landscape,
                step,
                dimensions_per_sample: 0.1996,
                retraction: Retraction::Euclidean,
            };
            // Both retractions have one fixed point (docs/derivations/lora.md#s9-3).
            for retraction in [Retraction::Euclidean, Retraction::Tangent] {
                let fixed = AdapterState::aligned(u, m);
                let next = LargeBatch { retraction, ..map }.step(fixed);
                assert!((next.amplitude - u).abs() < 1e-8 && (next.overlap - m).abs() < 1e-8, "{next:?}");
            }
        }
    }

    #[test]
    fn small_steps_without_noise_follow_the_flow() {
        let landscape = landscape("erf(z)", "plain", 0.4);
        let state = AdapterState { amplitude: 0.3, overlap: 0.2, stray: 0.0 };
        let v = landscape.velocity(state);
        for retraction in [Retraction::Euclidean, Retraction::Tangent] {
            let step = 1e-6;
            let map = LargeBatch { landscape: &landscape, step, dimensions_per_sample: 0.0, retraction };
            let next = map.step(state);
            assert!(((next.amplitude - 0.3) / step - v.amplitude).abs() < 1e-6);
            assert!(((next.overlap - 0.2) / step - v.overlap).abs() < 1e-6);
        }
    }
}
