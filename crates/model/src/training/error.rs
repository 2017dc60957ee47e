//! What is wrong with a way of training, in words of its user.

use super::ScheduleError;

/// What is wrong with a way of training.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TrainingError {
    /// A number outside its range.
    #[error("`{}` is {value}; it must be {range}", .key.rsplit('.').next().unwrap_or(.key))]
    Range {
        /// Dotted key of the description.
        key: &'static str,
        /// Its value.
        value: f64,
        /// What it may be.
        range: &'static str,
    },
    /// A formula or table that makes no schedule.
    #[error("{error}")]
    Formula {
        /// Dotted key of the description.
        key: &'static str,
        /// What is wrong.
        error: Box<ScheduleError>,
    },
    /// A rate that is negative or no number at some time.
    #[error("the schedule of the {of} is {} at t = {}; it must be zero or positive\n\nhint: write `max(0, ...)`", short(*.value), short(*.time))]
    Schedule {
        /// Of what.
        of: &'static str,
        /// The factor.
        value: f64,
        /// When.
        time: f64,
    },
    /// η = 0 throughout.
    #[error("the learning rate is 0 at all times")]
    NoLearning,
    /// β outside [0, 1).
    #[error("the momentum is {}{}; it must be at least 0 and below 1", short(*.value), at(*.time))]
    Beta {
        /// β.
        value: f64,
        /// When, for a formula.
        time: Option<f64>,
    },
    /// γ ≤ 0.
    #[error("the momentum rate is {}{}; it must be positive", short(*.value), at(*.time))]
    Rate {
        /// γ.
        value: f64,
        /// When, for a formula.
        time: Option<f64>,
    },
    /// γ > d.
    #[error("the momentum rate is {rate} but d = {dimension}: 1 - beta = rate/d would exceed 1")]
    RateAboveDimension {
        /// γ.
        rate: f64,
        /// d.
        dimension: u64,
    },
    /// Both scalings.
    #[error("give \"beta\" or \"rate\", not both")]
    BetaAndRate,
    /// No number.
    #[error(
        "the momentum has neither \"beta\" nor \"rate\"\n\nhint: momentum = {{ beta = 0.9 }}, or one-pass {{ rate = 2.0 }}"
    )]
    NeitherBetaNorRate,
    /// γ on a training set.
    #[error("\"rate\" is 1 - beta = rate/d of one-pass training; use \"beta\" on a training set")]
    RateOnTrainingSet,
    /// γ with another scaling of the step.
    #[error("\"rate\" needs scaling = \"per-dimension\"")]
    RateScaling,
    /// β(t) in one pass.
    #[error(
        "\"beta\" may vary with t on a training set only; use \"rate\" or a schedule of the learning rate"
    )]
    VaryingBeta,
    /// Velocity on a sphere.
    #[error("the velocity does not stay tangent to the sphere; use sphere = \"euclidean\"")]
    TangentMomentum,
    /// b outside (0, 1].
    #[error("the batch fraction is {0}; it must be above 0 and at most 1")]
    Fraction(f64),
    /// Batches of fresh samples.
    #[error("\"batches\" needs a training set (data.samples-per-dimension); one-pass training has \"batch\"")]
    BatchesOfNothing,
    /// 1/b not whole.
    #[error(
        "a fraction of {fraction} does not divide an epoch; use 1/{below} or 1/{}, or order = \"independent\"",
        .below + 1
    )]
    Epoch {
        /// b.
        fraction: f64,
        /// ⌊1/b⌋.
        below: u64,
    },
    /// τ too short.
    #[error(
        "a persistence of {tau} steps is too short for a fraction of {fraction}; it must be at least {least}"
    )]
    Persistence {
        /// τ.
        tau: f64,
        /// b.
        fraction: f64,
        /// Least τ.
        least: f64,
    },
    /// Persistence of everything.
    #[error("a full batch has no persistence")]
    FullPersistence,
    /// Two laws of the batches.
    #[error("give \"order\" or \"persistence\", not both")]
    OrderAndPersistence,
    /// Batches without a sample.
    #[error("batches of fraction {fraction} of {samples} samples are empty")]
    EmptyBatches {
        /// b.
        fraction: f64,
        /// n.
        samples: u64,
    },
    /// Labels that would change.
    #[error("the labels of a training set are drawn once")]
    LabelsDrawnOnce {
        /// Dotted key of the description.
        key: &'static str,
    },
    /// Maps by coordinate with something that they do not go with.
    #[error("{what} do not go with \"{with}\"")]
    ByCoordinate {
        /// Which map.
        what: &'static str,
        /// What is in the way.
        with: &'static str,
    },
    /// No units to leave out.
    #[error("dropout needs hidden units")]
    NoHiddenUnits,
    /// Too many units to enumerate masks.
    #[error("2^K masks are too many for K = {units} hidden units; use at most 12")]
    TooManyMasks {
        /// K.
        units: usize,
    },
    /// A rotation that is no matrix of finite numbers.
    #[error(
        "the rotation is no matrix of finite numbers: its rows have different lengths, or an entry is not finite"
    )]
    RaggedRotation,
    /// A rotation of other rows.
    #[error("the rotation has {rows} rows{} but there are {frozen} frozen rows", columns(*.rows, *.cols))]
    RotationSize {
        /// Its rows.
        rows: usize,
        /// Its columns.
        cols: usize,
        /// F.
        frozen: usize,
    },
    /// A rotation that changes T.
    #[error(
        "the rotation changes the overlaps of the teachers; it must be antisymmetric for orthonormal ones, and leave the student's own rows alone"
    )]
    Rotation,
    /// More trained levels than there are, or none.
    #[error(
        "{trained} eigenvalues cannot be trained: the spectrum has {levels}; train 1 to {levels} of them"
    )]
    Levels {
        /// Asked for.
        trained: usize,
        /// L.
        levels: usize,
    },
    /// Trained levels with a constraint on whole rows.
    #[error("rows of which a part stays as it is cannot be kept by \"{with}\", which moves whole rows")]
    LevelsWith {
        /// The constraint.
        with: &'static str,
    },
    /// The flow clock at η = 0.
    #[error(
        "the learning rate is 0 at the start, where the time of gradient flow stands still\n\nhint: set `clock = \"alpha\"` in [record]"
    )]
    FlowStandsStill,
}

fn at(time: Option<f64>) -> String {
    time.map_or(String::new(), |t| format!(" at t = {}", short(t)))
}

/// A number without the rounding of its last digits.
fn short(x: f64) -> f64 {
    format!("{x:.11e}").parse().unwrap_or(x)
}

fn columns(rows: usize, cols: usize) -> String {
    if rows == cols { String::new() } else { format!(" and {cols} columns") }
}

impl TrainingError {
    /// What is wrong with the formula or table at a key.
    pub fn formula(key: &'static str, error: ScheduleError) -> Self {
        Self::Formula { key, error: Box::new(error) }
    }

    pub(super) fn range(key: &'static str, value: f64, range: &'static str) -> Self {
        Self::Range { key, value, range }
    }

    /// Dotted key of the description that is wrong.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Range { key, .. } | Self::Formula { key, .. } | Self::LabelsDrawnOnce { key } => key,
            Self::Schedule { of, .. } => match *of {
                "label noise" => "training.label-noise-schedule",
                "weight decay" => "training.weight-decay-schedule",
                "drift" => "data.drift.schedule",
                _ => "training.schedule",
            },
            Self::NoLearning | Self::FlowStandsStill => "training.schedule",
            Self::Beta { .. } | Self::VaryingBeta => "training.momentum.beta",
            Self::Rate { .. }
            | Self::RateAboveDimension { .. }
            | Self::RateOnTrainingSet
            | Self::RateScaling => "training.momentum.rate",
            Self::BetaAndRate | Self::NeitherBetaNorRate => "training.momentum",
            Self::TangentMomentum => "training.constraint",
            Self::Fraction(_) | Self::Epoch { .. } | Self::EmptyBatches { .. } => "training.batches.fraction",
            Self::Persistence { .. } | Self::FullPersistence => "training.batches.persistence",
            Self::BatchesOfNothing | Self::OrderAndPersistence => "training.batches",
            Self::ByCoordinate { .. } => "training.gradient",
            Self::NoHiddenUnits | Self::TooManyMasks { .. } => "training.dropout",
            Self::Levels { .. } | Self::LevelsWith { .. } => "training.trained-levels",
            Self::RaggedRotation | Self::RotationSize { .. } | Self::Rotation => "data.drift.rotation",
        }
    }
}
