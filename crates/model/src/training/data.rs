//! Which samples a step sees, how the rule that labels them drifts, and the law of the inputs.

use super::{FactorSchedule, ScheduleSpec, TrainingError};
use crate::problem::Problem;
use didact_math::linalg::Mat;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Mini-batches of a training set as a description gives them: `{ fraction = 0.25, order = "reshuffled" }`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BatchesSpec {
    /// b, the fraction of the training set that a step sees.
    pub fraction: f64,
    /// In which order samples are visited; `independent` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<BatchOrder>,
    /// Steps that a sample stays in the batch on average, in place of an order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistence: Option<f64>,
}

/// The law of the path s(0), s(1), … of one sample, s being 1 when the step sees it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BatchOrder {
    /// At every step anew, with probability b.
    #[default]
    Independent,
    /// Epochs without replacement, in a new random order each.
    Reshuffled,
    /// Epochs without replacement, always in the same random order.
    Cyclic,
}

/// Mini-batches of a training set: w ← w − η (1/(b n)) Σ_μ s_μ(t) kick(h_μ) x_μ (docs/derivations/training-rules.md#s5).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Batches {
    /// b.
    pub fraction: f64,
    /// The order, where no persistence is given.
    pub order: BatchOrder,
    /// τ: a sample leaves with probability 1/τ and enters with b/((1 − b)τ).
    pub persistence: Option<f64>,
}

impl Batches {
    /// The batches of a description.
    pub fn new(spec: &BatchesSpec) -> Result<Self, TrainingError> {
        if spec.order.is_some() && spec.persistence.is_some() {
            return Err(TrainingError::OrderAndPersistence);
        }
        Ok(Self {
            fraction: spec.fraction,
            order: spec.order.unwrap_or_default(),
            persistence: spec.persistence,
        })
    }

    /// A fraction drawn anew at every step.
    pub fn independent(fraction: f64) -> Self {
        Self { fraction, order: BatchOrder::Independent, persistence: None }
    }

    /// L, the number of batches of an epoch, for orders that have epochs.
    pub fn batches_per_epoch(&self) -> Option<usize> {
        let epochs = self.persistence.is_none() && self.order != BatchOrder::Independent;
        epochs.then(|| (1.0 / self.fraction).round() as usize)
    }

    /// Probabilities per step of a persistent batch: to leave it, and to enter it.
    pub fn leave_and_enter(&self) -> Option<(f64, f64)> {
        let (b, tau) = (self.fraction, self.persistence?);
        Some((1.0 / tau, b / ((1.0 - b) * tau)))
    }

    pub(super) fn validate(&self, samples: Option<u64>) -> Result<(), TrainingError> {
        let b = self.fraction;
        if !(b > 0.0 && b <= 1.0) {
            return Err(TrainingError::Fraction(b));
        }
        if let Some(tau) = self.persistence {
            if b == 1.0 {
                return Err(TrainingError::FullPersistence);
            }
            let least = (b / (1.0 - b)).max(1.0);
            if !(tau.is_finite() && tau >= least) {
                return Err(TrainingError::Persistence { tau, fraction: b, least });
            }
        }
        if let Some(parts) = self.batches_per_epoch()
            && (1.0 / b - parts as f64).abs() > 1e-9 * parts as f64
        {
            return Err(TrainingError::Epoch { fraction: b, below: (1.0 / b).floor() as u64 });
        }
        match samples {
            Some(n) if (b * n as f64).round() == 0.0 => {
                Err(TrainingError::EmptyBatches { fraction: b, samples: n })
            }
            _ => Ok(()),
        }
    }
}

/// The drift of a teacher as a description gives it: `{ rate = 0.05 }` or `{ rotation = [[0, 0.1], [-0.1, 0]] }`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DriftSpec {
    /// ν: v(alpha)·v(0) decays as e^{−ν alpha}.
    #[serde(default)]
    pub rate: f64,
    /// Ω: v turns by exp(Ω/d) at every step, within the span of the frozen rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation: Option<Vec<Vec<f64>>>,
    /// Factor of both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleSpec>,
}

/// How the frozen rows of the teacher move (docs/derivations/training-rules.md#s7). The student's own frozen rows stay.
#[derive(Debug, Clone, PartialEq)]
pub struct Drift {
    /// ν.
    pub rate: f64,
    /// Ω, of all frozen rows.
    pub rotation: Option<Mat>,
    /// Factor of both.
    pub schedule: FactorSchedule,
}

impl Drift {
    /// Diffusion at a constant rate.
    pub fn diffusion(rate: f64) -> Self {
        Self { rate, rotation: None, schedule: FactorSchedule::default() }
    }

    /// Rotation within the span of the frozen rows.
    pub fn rotation(rotation: Mat) -> Self {
        Self { rate: 0.0, rotation: Some(rotation), schedule: FactorSchedule::default() }
    }

    /// The drift of a description.
    pub fn new(spec: &DriftSpec) -> Result<Self, TrainingError> {
        let rotation = match &spec.rotation {
            None => None,
            Some(rows) => Some(Mat::from_rows(rows).ok_or(TrainingError::RaggedRotation)?),
        };
        let key = "data.drift.schedule";
        let schedule = spec.schedule.clone().map(FactorSchedule::new).transpose();
        let schedule = schedule.map_err(|error| TrainingError::formula(key, error))?.unwrap_or_default();
        Ok(Self { rate: spec.rate, rotation, schedule })
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.rate == 0.0 && self.rotation.as_ref().is_none_or(|omega| omega.max_abs() == 0.0)
    }

    pub(super) fn validate(&self, problem: &Problem) -> Result<(), TrainingError> {
        let too_large = problem.dimension.is_some_and(|d| self.rate > d as f64);
        if !(self.rate.is_finite() && self.rate >= 0.0) || too_large {
            let range = if too_large { "at most d" } else { "zero or positive" };
            return Err(TrainingError::range("data.drift.rate", self.rate, range));
        }
        let frozen = problem.rule.shape().frozen;
        match &self.rotation {
            Some(omega) if omega.rows() != frozen || omega.cols() != frozen => {
                Err(TrainingError::RotationSize { rows: omega.rows(), cols: omega.cols(), frozen })
            }
            Some(omega) if !omega.is_finite() => Err(TrainingError::RaggedRotation),
            _ => Ok(()),
        }
    }

    /// Whether a rotation leaves the overlaps of the frozen rows as they are, Ω T + T Ωᵀ = 0, and the student's own rows alone.
    pub fn check_overlaps(&self, frozen: &Mat, own_frozen: usize) -> Result<(), TrainingError> {
        let Some(omega) = &self.rotation else { return Ok(()) };
        let moved = omega.times(frozen);
        let change = Mat::from_fn(moved.rows(), moved.cols(), |i, j| moved[(i, j)] + moved[(j, i)]);
        let touches_own = (0..own_frozen).any(|i| omega.row(i).iter().any(|x| *x != 0.0));
        let size = omega.max_abs() * frozen.max_abs();
        if touches_own || change.max_abs() > 1e-9 * size.max(f64::MIN_POSITIVE) {
            return Err(TrainingError::Rotation);
        }
        Ok(())
    }
}

/// The law of the coordinates of the inputs, in the frame in which their covariance is diagonal.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum InputLaw {
    /// Normal: what theory assumes.
    #[default]
    Gaussian,
    /// ±√λ, each with probability 1/2.
    Rademacher,
    /// Two-sided exponential of variance λ.
    Laplace,
    /// A row of a table drawn at random, in the frame of its principal axes: samples x d.
    Rows(Arc<Mat>),
}

impl InputLaw {
    /// Name in descriptions.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Gaussian => "gaussian",
            Self::Rademacher => "rademacher",
            Self::Laplace => "laplace",
            Self::Rows(_) => "file",
        }
    }
}
