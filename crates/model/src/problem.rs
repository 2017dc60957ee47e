//! An experiment for one engine: a rule, its inputs, how it is trained and where it starts.

use crate::clock::Clock;
use crate::family::ModelInfo;
use crate::record::Record;
use crate::rule::LocalRule;
use crate::spectrum::{Spectrum, SpectrumError};
use crate::start::{Setting, Start};
use crate::training::TrainingError;
use std::sync::Arc;

pub use crate::training::{Samples, StepScaling, Training};

/// Everything that an engine needs to know.
#[derive(Debug, Clone)]
pub struct Problem {
    /// What is learned.
    pub rule: Arc<dyn LocalRule>,
    /// Observables and remarks of the family that the rule is from.
    pub about: Arc<dyn ModelInfo>,
    /// Covariance of the inputs.
    pub spectrum: Spectrum,
    /// d; `None` is the limit d → ∞, which only theory can take.
    pub dimension: Option<u64>,
    /// How it is learned.
    pub training: Training,
    /// Where it starts.
    pub start: Arc<dyn Start>,
    /// The time of axes, columns and events.
    pub clock: Clock,
}

/// What is wrong with a problem.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ProblemError {
    /// η ≤ 0.
    #[error("the learning rate is {0}; it must be positive and finite")]
    LearningRate(f64),
    /// Ratio < 0.
    #[error("the scalar learning-rate ratio is {0}; it must be zero or positive")]
    ScalarRatio(f64),
    /// Power of d in the step that is not a number.
    #[error("the step scales with d to the power -{0}; it must be finite")]
    Power(f64),
    /// B = 0.
    #[error("the batch is empty; use a batch of at least 1")]
    Batch,
    /// σ < 0.
    #[error("the label noise is {0}; it is a standard deviation, zero or positive")]
    LabelNoise(f64),
    /// γ < 0.
    #[error("the weight decay is {0}; it must be zero or positive")]
    WeightDecay(f64),
    /// No rows to keep off.
    #[error("`off-own` keeps rows off the student's own frozen rows, but this student has none")]
    OffOwn,
    /// d needed.
    #[error("`{needs}` needs a finite dimension\n\nhint: set `dimension` in [data]")]
    Dimension {
        /// Who asks.
        needs: String,
    },
    /// Fewer dimensions than rows.
    #[error("d = {dimension} is smaller than the {rows} rows of the model\n\nhint: use d >= {rows}")]
    TooSmall {
        /// d.
        dimension: u64,
        /// P.
        rows: usize,
    },
    /// No samples.
    #[error("the training set has {0} samples per dimension; the ratio must be positive and finite")]
    SampleRatio(f64),
    /// n < 1.
    #[error("the training set has no sample{}", .ratio.map_or(String::new(), |r| format!(": {r} per dimension rounds to 0")))]
    NoSamples {
        /// δ, if it was given.
        ratio: Option<f64>,
    },
    /// s = η/d on a training set.
    #[error(
        "full-batch gradient descent takes steps of size η, not η/d\n\nhint: set `scaling = \"plain\"` in [training]"
    )]
    FullBatchScaling,
    /// alpha = steps/d on a training set.
    #[error(
        "full-batch gradient descent takes a number of steps that does not grow with d, so the clock cannot be steps/d\n\nhint: \
         set `clock = \"steps\"` in [record]"
    )]
    FullBatchClock,
    /// B on a training set.
    #[error(
        "`batch` is {0}, but full-batch gradient descent uses all samples at every step\n\nhint: remove `batch`"
    )]
    FullBatchBatch(usize),
    /// A bad spectrum.
    #[error(transparent)]
    Spectrum(#[from] SpectrumError),
    /// A way of training that makes no sense.
    #[error(transparent)]
    Training(#[from] TrainingError),
}

impl Problem {
    /// Checks every number that no type can check.
    pub fn validate(&self) -> Result<(), ProblemError> {
        let t = &self.training;
        if !(t.learning_rate.is_finite() && t.learning_rate > 0.0) {
            return Err(ProblemError::LearningRate(t.learning_rate));
        }
        if !(t.scalar_ratio.is_finite() && t.scalar_ratio >= 0.0) {
            return Err(ProblemError::ScalarRatio(t.scalar_ratio));
        }
        if let StepScaling::Power(power) = t.scaling
            && !power.is_finite()
        {
            return Err(ProblemError::Power(power));
        }
        if t.batch == 0 {
            return Err(ProblemError::Batch);
        }
        if !(t.label_noise.is_finite() && t.label_noise >= 0.0) {
            return Err(ProblemError::LabelNoise(t.label_noise));
        }
        let decay = t.constraint.weight_decay;
        if !(decay.is_finite() && decay >= 0.0) {
            return Err(ProblemError::WeightDecay(decay));
        }
        if t.constraint.off_own && self.rule.shape().own_frozen == 0 {
            return Err(ProblemError::OffOwn);
        }
        let rows = self.rule.shape().rows();
        let full_batch = t.samples.is_some();
        if full_batch {
            self.validate_samples()?;
        }
        match self.dimension {
            Some(dimension) if dimension < rows as u64 => Err(ProblemError::TooSmall { dimension, rows }),
            None if t.scaling != StepScaling::PerDimension && !full_batch => {
                let name = if t.scaling == StepScaling::Plain { "plain" } else { "power" };
                Err(ProblemError::Dimension { needs: format!("scaling = \"{name}\"") })
            }
            None if self.clock == Clock::Steps && !full_batch => {
                Err(ProblemError::Dimension { needs: "clock = \"steps\"".into() })
            }
            _ => Ok(self.training.validate(self)?),
        }
    }

    fn validate_samples(&self) -> Result<(), ProblemError> {
        let t = &self.training;
        if t.scaling == StepScaling::PerDimension {
            return Err(ProblemError::FullBatchScaling);
        }
        if self.clock == Clock::Alpha {
            return Err(ProblemError::FullBatchClock);
        }
        if t.batch != 1 {
            return Err(ProblemError::FullBatchBatch(t.batch));
        }
        match (t.samples, self.sample_count()) {
            (Some(Samples::PerDimension(ratio)), _) if !(ratio.is_finite() && ratio > 0.0) => {
                Err(ProblemError::SampleRatio(ratio))
            }
            (Some(Samples::PerDimension(ratio)), Some(0)) => {
                Err(ProblemError::NoSamples { ratio: Some(ratio) })
            }
            (Some(Samples::Count(0)), _) => Err(ProblemError::NoSamples { ratio: None }),
            _ => Ok(()),
        }
    }

    /// Whether a rotation of the teachers leaves their overlaps as they are at a start.
    pub fn check_drift(&self, start: &crate::overlaps::Overlaps) -> Result<(), ProblemError> {
        let Some(drift) = &self.training.drift else { return Ok(()) };
        let shape = start.shape();
        let plain = start.moment(&self.spectrum, 0);
        let frozen = plain.block(shape.trained..shape.rows(), shape.trained..shape.rows());
        Ok(drift.check_overlaps(&frozen, shape.own_frozen)?)
    }

    /// What the start of one replica needs to know.
    pub fn setting(&self, seed: u64, replica: u32) -> Setting<'_> {
        Setting {
            shape: self.rule.shape(),
            spectrum: &self.spectrum,
            dimension: self.dimension,
            seed,
            replica,
        }
    }

    /// n, the size of the training set: δ d rounded, where both are given.
    pub fn sample_count(&self) -> Option<u64> {
        match self.training.samples? {
            Samples::Count(n) => Some(n),
            Samples::PerDimension(ratio) => self.dimension.map(|d| (ratio * d as f64).round() as u64),
        }
    }

    /// δ = n/d of the training set.
    pub fn sample_ratio(&self) -> Option<f64> {
        match self.training.samples? {
            Samples::PerDimension(ratio) => Some(ratio),
            Samples::Count(n) => self.dimension.map(|d| n as f64 / d as f64),
        }
    }

    /// d, or an error that names who needs it.
    pub fn finite_dimension(&self, needs: &str) -> Result<u64, ProblemError> {
        self.dimension.ok_or_else(|| ProblemError::Dimension { needs: needs.into() })
    }

    /// s d, finite also for d → ∞ when s = η/d.
    pub fn step_times_dimension(&self) -> f64 {
        let rate = self.training.learning_rate;
        match (self.training.scaling, self.dimension) {
            (StepScaling::PerDimension, _) => rate,
            (_, d) => d.map_or(f64::INFINITY, |d| self.step_size(d) * d as f64),
        }
    }

    /// The step size s at a finite dimension.
    pub fn step_size(&self, dimension: u64) -> f64 {
        match self.training.scaling {
            StepScaling::PerDimension => self.training.learning_rate / dimension as f64,
            StepScaling::Plain => self.training.learning_rate,
            StepScaling::Power(power) => self.training.learning_rate * (dimension as f64).powf(-power),
        }
    }

    /// s d_b/B: what multiplies λ_b N in dG_b/dt, t = s x steps.
    pub fn noise_weight(&self, eigenspace: usize) -> f64 {
        self.step_times_dimension() * self.spectrum.weights()[eigenspace] / self.training.batch as f64
    }

    /// Steps of one replica over a record, for estimates: d counts as 1 where it is not finite.
    pub fn steps_of(&self, record: &Record) -> f64 {
        record.end() * self.steps_per_clock(self.dimension.unwrap_or(1).max(1))
    }

    /// Gradient-flow time t = s x steps that passes per unit of the clock.
    pub fn flow_per_clock(&self) -> f64 {
        match self.clock {
            Clock::Alpha => self.step_times_dimension(),
            Clock::Flow => 1.0,
            Clock::FlowPerUnit => self.rule.shape().trained as f64,
            Clock::Steps => self.step_size(self.dimension.unwrap_or(u64::MAX)),
        }
    }

    /// Steps per unit of the clock at a finite dimension.
    pub fn steps_per_clock(&self, dimension: u64) -> f64 {
        match self.clock {
            Clock::Alpha => dimension as f64,
            Clock::Flow | Clock::FlowPerUnit => {
                let steps = self.flow_per_clock() / self.step_size(dimension);
                match &self.training.momentum {
                    // At fixed β a step counts as 1/(1 − β) steps of plain descent.
                    Some(momentum) if !self.training.has_uneven_flow() => {
                        steps / self.training.effective_factor(momentum.value.value(0.0))
                    }
                    _ => steps,
                }
            }
            Clock::Steps => 1.0,
        }
    }
}
