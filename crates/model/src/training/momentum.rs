//! Velocities of the rows.

use super::{NumberOrFormula, StepScaling, TimedNumber, Training, TrainingError};
use crate::constraint::Retraction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Momentum as a description gives it: `{ beta = 0.9 }`, `{ beta = 0.9, kind = "nesterov" }` or `{ rate = 2.0 }`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MomentumSpec {
    /// What a step leaves of the velocity; on a training set also a formula of t.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beta: Option<NumberOrFormula>,
    /// γ in 1 − beta = γ/d, one-pass training only: velocity and rows then share the clock. A number or a formula of t.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<NumberOrFormula>,
    /// Where the gradient is taken.
    #[serde(default)]
    pub kind: MomentumKind,
}

/// Where the gradient is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MomentumKind {
    /// At the rows.
    #[default]
    HeavyBall,
    /// Ahead of them, at w + β p.
    Nesterov,
}

/// How friction scales with the dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MomentumScale {
    /// β is given.
    Beta,
    /// 1 − β = γ/d, and the kick enters with s = γη/d².
    Rate,
}

/// Velocities: p ← β p − s (kick x + κ w), w ← w + p; scalars likewise (docs/derivations/training-rules.md#s3).
#[derive(Debug, Clone, PartialEq)]
pub struct Momentum {
    /// β or γ.
    pub value: TimedNumber,
    /// Which of the two.
    pub scale: MomentumScale,
    /// Where the gradient is taken.
    pub kind: MomentumKind,
}

impl Momentum {
    /// Heavy ball of fixed β.
    pub fn heavy_ball(beta: f64) -> Self {
        Self { value: TimedNumber::Fixed(beta), scale: MomentumScale::Beta, kind: MomentumKind::HeavyBall }
    }

    /// Nesterov's momentum of fixed β.
    pub fn nesterov(beta: f64) -> Self {
        Self { kind: MomentumKind::Nesterov, ..Self::heavy_ball(beta) }
    }

    /// Heavy ball with 1 − β = γ/d.
    pub fn rate(gamma: f64) -> Self {
        Self { value: TimedNumber::Fixed(gamma), scale: MomentumScale::Rate, kind: MomentumKind::HeavyBall }
    }

    /// The momentum of a description.
    pub fn new(spec: &MomentumSpec) -> Result<Self, TrainingError> {
        let (number, scale, key) = match (&spec.beta, &spec.rate) {
            (Some(beta), None) => (beta, MomentumScale::Beta, "training.momentum.beta"),
            (None, Some(rate)) => (rate, MomentumScale::Rate, "training.momentum.rate"),
            (Some(_), Some(_)) => return Err(TrainingError::BetaAndRate),
            (None, None) => return Err(TrainingError::NeitherBetaNorRate),
        };
        let value = TimedNumber::new(number).map_err(|error| TrainingError::formula(key, error))?;
        Ok(Self { value, scale, kind: spec.kind })
    }

    /// True for Nesterov's look-ahead.
    pub fn looks_ahead(&self) -> bool {
        self.kind == MomentumKind::Nesterov
    }

    /// True when it is β = 0.
    pub(super) fn is_nothing(&self) -> bool {
        self.scale == MomentumScale::Beta && self.value == TimedNumber::Fixed(0.0)
    }

    /// β or γ at a time.
    pub(super) fn at(&self, t: f64) -> Result<f64, TrainingError> {
        let (value, time) = (self.value.value(t), self.value.varies().then_some(t));
        match self.scale {
            MomentumScale::Beta if !(0.0..1.0).contains(&value) => Err(TrainingError::Beta { value, time }),
            MomentumScale::Rate if !(value.is_finite() && value > 0.0) => {
                Err(TrainingError::Rate { value, time })
            }
            _ => Ok(value),
        }
    }

    pub(super) fn validate(&self, training: &Training, dimension: Option<u64>) -> Result<(), TrainingError> {
        let on_training_set = training.samples.is_some();
        match self.scale {
            MomentumScale::Beta if self.value.varies() && !on_training_set => {
                return Err(TrainingError::VaryingBeta);
            }
            MomentumScale::Rate if on_training_set => return Err(TrainingError::RateOnTrainingSet),
            MomentumScale::Rate if training.scaling != StepScaling::PerDimension => {
                return Err(TrainingError::RateScaling);
            }
            _ => {}
        }
        if !self.value.varies() {
            let value = self.at(0.0)?;
            if let (MomentumScale::Rate, Some(d)) = (self.scale, dimension)
                && value > d as f64
            {
                return Err(TrainingError::RateAboveDimension { rate: value, dimension: d });
            }
        }
        let constraint = &training.constraint;
        let tangent = Some(Retraction::Tangent);
        if constraint.sphere == tangent || constraint.scalar_sphere == tangent {
            return Err(TrainingError::TangentMomentum);
        }
        Ok(())
    }
}
