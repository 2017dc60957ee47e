//! Maps of the gradient of a sample.

use super::{Training, TrainingError};
use crate::constraint::Retraction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What becomes of the gradient of a sample before it moves the rows. The gradient of the scalars is left as it is.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GradientMap {
    /// Nothing.
    #[default]
    Plain,
    /// The kick is shortened to this norm over the trained rows: `{ clip = 0.7 }`.
    Clip(f64),
    /// The kick is divided by its norm over the trained rows.
    Normalised,
    /// Every coordinate of every row moves by its sign alone.
    Sign,
    /// Every coordinate is divided by the root of the running mean of its square: `{ adam = { rate = 2.0 } }`.
    Adam(Adam),
}

/// Adam, with decay rates β₁ and 1 − β₂ = γ₂/d.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Adam {
    /// γ₂ in 1 − β₂ = γ₂/d: the mean of squares runs over d/γ₂ steps.
    pub rate: f64,
    /// β₁ of the running mean of the gradient.
    #[serde(default = "usual_beta")]
    pub beta: f64,
}

impl Adam {
    /// ε of the published algorithm (Kingma and Ba, arXiv:1412.6980): added to the root of the mean of squares, so that a gradient that
    /// has always been 0 moves nothing.
    pub const EPSILON: f64 = 1e-8;
}

fn usual_beta() -> f64 {
    0.9
}

impl GradientMap {
    /// True for maps that act on coordinates, which overlaps do not know.
    pub fn acts_by_coordinate(&self) -> bool {
        matches!(self, Self::Sign | Self::Adam(_))
    }

    /// True for maps that shorten or lengthen the kick of a sample as a whole, by [`Self::factor`].
    pub fn scales_kicks(&self) -> bool {
        match self {
            Self::Clip(_) | Self::Normalised => true,
            Self::Plain | Self::Sign | Self::Adam(_) => false,
        }
    }

    /// Applies clip or normalisation to the kicks of a sample. Signs and Adam leave kicks alone: they act on coordinates.
    #[inline]
    pub fn map(&self, kicks: &mut [f64]) {
        let Some(factor) = self.factor(kicks.iter().map(|k| k * k).sum::<f64>()) else { return };
        kicks.iter_mut().for_each(|kick| *kick *= factor);
    }

    /// The same for a batch, rows x size with samples last.
    pub fn map_batch(&self, kicks: &mut [f64], size: usize) {
        if !self.scales_kicks() {
            return;
        }
        for j in 0..size {
            let square = kicks.iter().skip(j).step_by(size).map(|k| k * k).sum::<f64>();
            if let Some(factor) = self.factor(square) {
                kicks.iter_mut().skip(j).step_by(size).for_each(|kick| *kick *= factor);
            }
        }
    }

    /// What a kick of this squared norm is multiplied with, if that is not 1. A kick of 0 stays 0.
    #[inline]
    pub fn factor(&self, square: f64) -> Option<f64> {
        match self {
            Self::Clip(at) if square > at * at => Some(at / square.sqrt()),
            Self::Normalised if square > 0.0 => Some(1.0 / square.sqrt()),
            Self::Clip(_) | Self::Normalised | Self::Plain | Self::Sign | Self::Adam(_) => None,
        }
    }

    /// d ln f/d ln s of the factor f at the squared norm s, where there is a factor: for the derivatives of mapped kicks.
    #[inline]
    pub fn elasticity(&self, _square: f64) -> f64 {
        match self {
            Self::Clip(_) | Self::Normalised => -0.5,
            Self::Plain | Self::Sign | Self::Adam(_) => 0.0,
        }
    }

    pub(super) fn validate(&self, training: &Training) -> Result<(), TrainingError> {
        match *self {
            Self::Clip(at) if at.is_nan() || at <= 0.0 => {
                return Err(TrainingError::range("training.gradient.clip", at, "positive"));
            }
            Self::Adam(Adam { rate, .. }) if !(rate.is_finite() && rate > 0.0) => {
                return Err(TrainingError::range("training.gradient.adam.rate", rate, "positive"));
            }
            Self::Adam(Adam { beta, .. }) if !(0.0..1.0).contains(&beta) => {
                return Err(TrainingError::range(
                    "training.gradient.adam.beta",
                    beta,
                    "at least 0 and below 1",
                ));
            }
            _ => {}
        }
        if !self.acts_by_coordinate() {
            return Ok(());
        }
        let what = if *self == Self::Sign { "signs" } else { "Adam's steps" };
        let refuse = |with: &'static str| Err(TrainingError::ByCoordinate { what, with });
        let constraint = &training.constraint;
        if training.input_noise > 0.0 {
            return refuse("input-noise");
        }
        if constraint.off_frozen {
            return refuse("off-frozen");
        }
        if constraint.off_own {
            return refuse("off-own");
        }
        if constraint.sphere == Some(Retraction::Tangent) {
            return refuse("tangent");
        }
        if matches!(self, Self::Adam(_)) && training.momentum.is_some() {
            return refuse("momentum");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_mapped_sample_by_sample_and_zero_stays_zero() {
        let kicks = [3.0, 0.3, 0.0, 4.0, 0.4, 0.0];
        let mut clipped = kicks;
        GradientMap::Clip(2.5).map_batch(&mut clipped, 3);
        assert_eq!(clipped, [1.5, 0.3, 0.0, 2.0, 0.4, 0.0]);
        let mut one = [3.0, 4.0];
        GradientMap::Normalised.map(&mut one);
        assert!((one[0] - 0.6).abs() < 1e-15 && (one[1] - 0.8).abs() < 1e-15);
        let mut normalised = kicks;
        GradientMap::Normalised.map_batch(&mut normalised, 3);
        assert!((normalised[1] - 0.6).abs() < 1e-15 && normalised[2] == 0.0);
    }
}
