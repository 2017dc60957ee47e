//! How the rows move: a value that is chosen independently of what is learned and of the engine.
//!
//! Stack every row that a way of training needs into X: the trained rows w, their velocities p, the frozen rows v. One step on one
//! sample is the row operation
//!
//!   X ← M X − c xᵀ,     c = D kick(h),    h = X x,
//!
//! with a small M and D that do not depend on x. Overlaps stay closed under it, so that momentum, weight decay, spheres and
//! drifting teachers need no simulator of their own (docs/derivations/training-rules.md#s2). Clipping and normalisation are maps of
//! the kick, dropout draws another rule for every sample, and mini-batches of a training set choose which samples a step sees.
//! Signs and Adam act by coordinate: engines that know overlaps alone refuse them.
//!
//! No way of training names a family, and no family names one of them.

mod average;
mod course;
mod data;
mod error;
mod gradient;
mod levels;
mod momentum;
mod schedule;
mod ways;

pub use average::TrainedAverages;
pub use course::Course;
pub use data::{BatchOrder, Batches, BatchesSpec, Drift, DriftSpec, InputLaw};
pub use error::TrainingError;
pub use gradient::{Adam, GradientMap};
pub use momentum::{Momentum, MomentumKind, MomentumScale, MomentumSpec};
pub use schedule::{
    FactorSchedule, NamedSchedule, NumberOrFormula, ScheduleError, ScheduleSpec, TimedNumber,
};
pub use ways::Way;

use crate::clock::Clock;
use crate::constraint::Constraint;
use crate::problem::Problem;
use crate::record::Record;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the step size s follows from the learning rate η.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepScaling {
    /// s = η/d: the high-dimensional limit at fixed η.
    #[default]
    PerDimension,
    /// s = η.
    Plain,
    /// s = η d^{−power}: `{ power = 1.5 }`, the scaling of searches that take d² steps.
    Power(f64),
}

/// A training set that is drawn once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Samples {
    /// δ = n/d, also as d → ∞.
    PerDimension(f64),
    /// n.
    Count(u64),
}

/// How the rows move: one-pass training, where every step sees `batch` fresh samples, or gradient descent on a training set, whole or
/// by mini-batches of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Training {
    /// η.
    pub learning_rate: f64,
    /// s from η.
    pub scaling: StepScaling,
    /// s_a/s: how much faster the scalars learn than the rows.
    pub scalar_ratio: f64,
    /// B, samples per step; the gradient is their mean.
    pub batch: usize,
    /// Standard deviation of the noise added to every label.
    pub label_noise: f64,
    /// What is imposed on the rows.
    pub constraint: Constraint,
    /// The training set; `None` is one-pass training.
    pub samples: Option<Samples>,
    /// Factor of the learning rate.
    pub schedule: FactorSchedule,
    /// Factor of the standard deviation of the label noise.
    pub label_noise_schedule: FactorSchedule,
    /// Factor of the weight decay.
    pub weight_decay_schedule: FactorSchedule,
    /// Velocities of rows and scalars.
    pub momentum: Option<Momentum>,
    /// What becomes of the gradient of a sample before it moves the rows.
    pub gradient: GradientMap,
    /// Which samples of a training set a step sees; `None`: all of them.
    pub batches: Option<Batches>,
    /// How the frozen rows of the teacher move.
    pub drift: Option<Drift>,
    /// Probability with which a hidden unit takes part in a sample; `None`: all do.
    pub dropout: Option<f64>,
    /// ς in x + ς ζ: the student reads, and moves along, noisy inputs; labels come from x.
    pub input_noise: f64,
    /// ς of fresh noise N(0, ς²/d) on every trained weight, per sample.
    pub weight_noise: f64,
    /// The law of the inputs of given covariance.
    pub inputs: InputLaw,
    /// How many of the largest eigenvalues have trained directions; `None`: all.
    pub trained_levels: Option<usize>,
}

/// The numbers of training at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrainingRates {
    /// η, schedule included.
    pub learning_rate: f64,
    /// κ, schedule included.
    pub weight_decay: f64,
    /// Standard deviation of the label noise, schedule included.
    pub label_noise: f64,
    /// β, or γ of the scaling 1 − β = γ/d; 0 without momentum.
    pub momentum: f64,
    /// Factor of the rates of the drift.
    pub drift: f64,
}

impl Training {
    /// Batch 1, s = η/d, no noise, nothing imposed.
    pub fn online(learning_rate: f64) -> Self {
        Self {
            learning_rate,
            scaling: StepScaling::PerDimension,
            scalar_ratio: 1.0,
            batch: 1,
            label_noise: 0.0,
            constraint: Constraint::none(),
            samples: None,
            schedule: FactorSchedule::default(),
            label_noise_schedule: FactorSchedule::default(),
            weight_decay_schedule: FactorSchedule::default(),
            momentum: None,
            gradient: GradientMap::Plain,
            batches: None,
            drift: None,
            dropout: None,
            input_noise: 0.0,
            weight_noise: 0.0,
            inputs: InputLaw::Gaussian,
            trained_levels: None,
        }
    }

    /// Full-batch gradient descent, w ← w − η grad of the mean loss over δ d samples.
    pub fn full_batch(learning_rate: f64, samples_per_dimension: f64) -> Self {
        Self {
            scaling: StepScaling::Plain,
            samples: Some(Samples::PerDimension(samples_per_dimension)),
            ..Self::online(learning_rate)
        }
    }

    /// The same training without what changes nothing: β = 0, batches of the whole set, a keep probability of 1, a clip at infinity.
    pub fn simplified(&self) -> Self {
        let mut plain = self.clone();
        plain.momentum = plain.momentum.filter(|momentum| !momentum.is_nothing());
        if matches!(plain.gradient, GradientMap::Clip(at) if at == f64::INFINITY) {
            plain.gradient = GradientMap::Plain;
        }
        plain.batches = plain.batches.filter(|batches| batches.fraction < 1.0);
        plain.drift = plain.drift.filter(|drift| !drift.is_nothing());
        plain.dropout = plain.dropout.filter(|keep| *keep != 1.0);
        if plain.constraint.weight_decay == 0.0 {
            plain.weight_decay_schedule = FactorSchedule::default();
        }
        if plain.label_noise == 0.0 {
            plain.label_noise_schedule = FactorSchedule::default();
        }
        plain
    }

    /// True for plain gradient descent at a constant rate: engines then take their fastest way, which knows nothing of this module.
    pub fn is_plain(&self) -> bool {
        let Self { learning_rate, scaling, scalar_ratio, batch, label_noise, constraint, samples, .. } =
            *self;
        let plain = Self {
            scaling,
            scalar_ratio,
            batch,
            label_noise,
            constraint,
            samples,
            ..Self::online(learning_rate)
        };
        // A NaN is not equal to itself; what is refused elsewhere is plain here.
        self.simplified() == plain || learning_rate.is_nan()
    }

    /// The numbers at a time of the clock, counted from the start of the whole run.
    pub fn rates_at(&self, t: f64) -> Result<TrainingRates, TrainingError> {
        let factor = |schedule: &FactorSchedule, of: &'static str| {
            let value = schedule.value(t);
            if value.is_finite() && value >= 0.0 {
                Ok(value)
            } else {
                Err(TrainingError::Schedule { of, value, time: t })
            }
        };
        let momentum = match &self.momentum {
            Some(momentum) => momentum.at(t)?,
            None => 0.0,
        };
        let drift = match &self.drift {
            Some(drift) => factor(&drift.schedule, "drift")?,
            None => 1.0,
        };
        Ok(TrainingRates {
            learning_rate: self.learning_rate * factor(&self.schedule, "learning rate")?,
            weight_decay: self.constraint.weight_decay * factor(&self.weight_decay_schedule, "weight decay")?,
            label_noise: self.label_noise * factor(&self.label_noise_schedule, "label noise")?,
            momentum,
            drift,
        })
    }

    /// Times strictly within an interval at which some rate or its slope jumps, ascending.
    pub fn breaks(&self, begin: f64, end: f64) -> Vec<f64> {
        let schedules = [&self.schedule, &self.label_noise_schedule, &self.weight_decay_schedule];
        let drift = self.drift.as_ref().map(|drift| &drift.schedule);
        let mut found: Vec<f64> =
            schedules.into_iter().chain(drift).flat_map(|schedule| schedule.breaks(begin, end)).collect();
        if let Some(momentum) = &self.momentum {
            found.extend(momentum.value.breaks(begin, end));
        }
        found.sort_by(f64::total_cmp);
        found.dedup();
        found
    }

    /// What the flow clock is multiplied with: 1/(1 − β) at fixed β, 1 otherwise.
    pub fn effective_factor(&self, momentum: f64) -> f64 {
        match &self.momentum {
            Some(Momentum { scale: MomentumScale::Beta, .. }) => 1.0 / (1.0 - momentum),
            _ => 1.0,
        }
    }

    /// True when gradients are taken ahead of the rows, as Nesterov's momentum does.
    pub fn looks_ahead(&self) -> bool {
        self.momentum.as_ref().is_some_and(Momentum::looks_ahead)
    }

    /// True when the flow clock passes unevenly: rates differ from step to step.
    pub fn has_uneven_flow(&self) -> bool {
        let varies = |m: &Momentum| m.scale == MomentumScale::Beta && m.value.varies();
        !self.schedule.is_constant() || self.momentum.as_ref().is_some_and(varies)
    }

    /// What no type can check. `d` is the dimension, if it is finite; `frozen` and `own_frozen` count rows.
    pub(crate) fn validate(&self, problem: &Problem) -> Result<(), TrainingError> {
        let shape = problem.rule.shape();
        let on_training_set = self.samples.is_some();
        if let Some(momentum) = &self.momentum {
            momentum.validate(self, problem.dimension)?;
        }
        self.gradient.validate(self)?;
        self.validate_levels(problem)?;
        match &self.batches {
            Some(_) if !on_training_set => return Err(TrainingError::BatchesOfNothing),
            Some(batches) => batches.validate(problem.sample_count())?,
            None => {}
        }
        if on_training_set && (self.drift.is_some() || !self.label_noise_schedule.is_constant()) {
            let key = if self.drift.is_some() { "data.drift" } else { "training.label-noise-schedule" };
            return Err(TrainingError::LabelsDrawnOnce { key });
        }
        if let Some(drift) = &self.drift {
            drift.validate(problem)?;
        }
        if let Some(keep) = self.dropout {
            if !(keep > 0.0 && keep <= 1.0) {
                return Err(TrainingError::range("training.dropout.keep", keep, "above 0 and at most 1"));
            }
            let Some(hidden) = problem.rule.hidden() else { return Err(TrainingError::NoHiddenUnits) };
            if keep < 1.0 && hidden.units() > MOST_MASKED_UNITS {
                return Err(TrainingError::TooManyMasks { units: hidden.units() });
            }
        }
        for (key, value) in
            [("training.input-noise", self.input_noise), ("training.weight-noise", self.weight_noise)]
        {
            if !(value.is_finite() && value >= 0.0) {
                return Err(TrainingError::range(key, value, "zero or positive"));
            }
        }
        if self.inputs != InputLaw::Gaussian && shape.rows() == 0 {
            return Err(TrainingError::NoHiddenUnits);
        }
        if matches!(problem.clock, Clock::Flow | Clock::FlowPerUnit)
            && !self.schedule.is_constant()
            && self.schedule.value(0.0) == 0.0
        {
            return Err(TrainingError::FlowStandsStill);
        }
        Ok(())
    }

    /// Checks all rates at the breaks of the schedules, at the saved times and at 1000 equal times of a run.
    pub fn check_rates(&self, record: &Record) -> Result<(), TrainingError> {
        let varies = !self.breaks(0.0, 1.0).is_empty()
            || !self.schedule.is_constant()
            || !self.label_noise_schedule.is_constant()
            || !self.weight_decay_schedule.is_constant()
            || self.momentum.as_ref().is_some_and(|m| m.value.varies())
            || self.drift.as_ref().is_some_and(|d| !d.schedule.is_constant());
        if !varies {
            return self.rates_at(0.0).map(|_| ());
        }
        let (begin, end) = (record.begin, record.begin + record.end());
        let even = (0..=CHECKED_TIMES).map(|i| begin + (end - begin) * i as f64 / CHECKED_TIMES as f64);
        let saved = record.times.iter().map(|t| begin + t);
        let mut largest: f64 = 0.0;
        for t in even.chain(saved).chain(self.breaks(begin, end)) {
            largest = largest.max(self.rates_at(t)?.learning_rate);
        }
        if largest == 0.0 { Err(TrainingError::NoLearning) } else { Ok(()) }
    }
}

/// 2^K masks are enumerated; more units than this have too many.
const MOST_MASKED_UNITS: usize = 12;

/// Equal times at which schedules are checked before a run.
const CHECKED_TIMES: usize = 1000;
