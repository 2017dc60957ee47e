//! The list of ways of training, for tables and refusals.

use super::{GradientMap, InputLaw, MomentumScale, Training};

/// One way in which training can differ from plain gradient descent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// Momentum of fixed β.
    Beta,
    /// Momentum with 1 − β = γ/d.
    Rate,
    /// Schedules of learning rate and weight decay.
    Schedules,
    /// A schedule of the label noise.
    LabelNoiseSchedule,
    /// Mini-batches of a training set.
    Batches,
    /// Clipped kicks.
    Clip,
    /// Normalised kicks.
    Normalised,
    /// Signs of all coordinates.
    Sign,
    /// Adam.
    Adam,
    /// Teachers that diffuse.
    Drift,
    /// Teachers that rotate.
    Rotation,
    /// Hidden units left out at random.
    Dropout,
    /// Noise on the trained weights.
    WeightNoise,
    /// Noise on the inputs of the student.
    InputNoise,
    /// Inputs that are not Gaussian.
    Inputs,
    /// Directions of the largest eigenvalues only.
    TrainedLevels,
}

impl Way {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 16] = [
        Self::Beta,
        Self::Rate,
        Self::Schedules,
        Self::LabelNoiseSchedule,
        Self::Batches,
        Self::Clip,
        Self::Normalised,
        Self::Sign,
        Self::Adam,
        Self::Drift,
        Self::Rotation,
        Self::Dropout,
        Self::WeightNoise,
        Self::InputNoise,
        Self::Inputs,
        Self::TrainedLevels,
    ];

    /// What a description says to get it.
    pub fn example(self) -> &'static str {
        match self {
            Self::Beta => "momentum = { beta = 0.5 }",
            Self::Rate => "momentum = { rate = 2.0 }",
            Self::Schedules => "schedule = \"1/(1+t/20)\"",
            Self::LabelNoiseSchedule => "label-noise-schedule = { kind = \"exponential\", tau = 3 }",
            Self::Batches => "batches = { fraction = 0.5 }",
            Self::Clip => "gradient = { clip = 0.7 }",
            Self::Normalised => "gradient = \"normalised\"",
            Self::Sign => "gradient = \"sign\"",
            Self::Adam => "gradient = { adam = { rate = 2.0 } }",
            Self::Drift => "drift = { rate = 0.05 }",
            Self::Rotation => "drift = { rotation = [[0, 0.1], [-0.1, 0]] }",
            Self::Dropout => "dropout = { keep = 0.8 }",
            Self::WeightNoise => "weight-noise = 0.2",
            Self::InputNoise => "input-noise = 0.5",
            Self::Inputs => "inputs = \"rademacher\"",
            Self::TrainedLevels => "trained-levels = 50",
        }
    }

    /// Dotted key of the description.
    pub fn key(self) -> &'static str {
        match self {
            Self::Beta | Self::Rate => "training.momentum",
            Self::Schedules => "training.schedule",
            Self::LabelNoiseSchedule => "training.label-noise-schedule",
            Self::Batches => "training.batches",
            Self::Clip | Self::Normalised | Self::Sign | Self::Adam => "training.gradient",
            Self::Drift | Self::Rotation => "data.drift",
            Self::Dropout => "training.dropout",
            Self::WeightNoise => "training.weight-noise",
            Self::InputNoise => "training.input-noise",
            Self::Inputs => "data.inputs",
            Self::TrainedLevels => "training.trained-levels",
        }
    }
}

impl Training {
    /// The ways in which this training differs from plain gradient descent.
    pub fn ways(&self) -> Vec<Way> {
        let training = self.simplified();
        let momentum = training.momentum.as_ref().map(|m| m.scale);
        let drift = training.drift.as_ref();
        let is = |way: Way| match way {
            Way::Beta => momentum == Some(MomentumScale::Beta),
            Way::Rate => momentum == Some(MomentumScale::Rate),
            Way::Schedules => {
                !(training.schedule.is_constant() && training.weight_decay_schedule.is_constant())
            }
            Way::LabelNoiseSchedule => !training.label_noise_schedule.is_constant(),
            Way::Batches => training.batches.is_some(),
            Way::Clip => matches!(training.gradient, GradientMap::Clip(_)),
            Way::Normalised => training.gradient == GradientMap::Normalised,
            Way::Sign => training.gradient == GradientMap::Sign,
            Way::Adam => matches!(training.gradient, GradientMap::Adam(_)),
            Way::Drift => drift.is_some_and(|d| d.rate > 0.0),
            Way::Rotation => drift.is_some_and(|d| d.rotation.is_some()),
            Way::Dropout => training.dropout.is_some(),
            Way::WeightNoise => training.weight_noise > 0.0,
            Way::InputNoise => training.input_noise > 0.0,
            Way::Inputs => training.inputs != InputLaw::Gaussian,
            Way::TrainedLevels => training.trained_levels.is_some(),
        };
        Way::ALL.into_iter().filter(|way| is(*way)).collect()
    }
}
