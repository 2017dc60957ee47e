//! How a model is trained and where it starts.

use super::Overrides;
use didact_model::constraint::Constraint;
use didact_model::problem::StepScaling;
use didact_model::record::Crossing;
use didact_model::spectrum::MeasuredSpectrum;
use didact_model::training::{BatchesSpec, Course, GradientMap, MomentumSpec, ScheduleSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One-pass stochastic gradient descent, or gradient descent on a training set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TrainingSpec {
    /// η: a number, or a course such as `{ times = [0, 10, 50], values = [1, 0.5, 0.1] }`, linear between times of the clock of the whole
    /// run and constant outside.
    pub learning_rate: RateSpec,
    /// `per-dimension`: step η/d; `plain`: step η.
    #[serde(default)]
    pub scaling: StepScaling,
    /// Samples per step.
    #[serde(default = "one")]
    #[schemars(range(max = 10_000_000))]
    pub batch: usize,
    /// Standard deviation of the noise on labels; unless given, 1 where the model names its noise, else 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_noise: Option<f64>,
    /// Learning rate of trained scalars, in units of that of the rows.
    #[serde(default = "unit")]
    pub scalar_ratio: f64,
    /// What is imposed on the rows.
    #[serde(default)]
    pub constraint: Constraint,
    /// Factor of the learning rate: a formula of t, or a table such as `{ kind = "cosine", end = 100, final = 0.1 }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleSpec>,
    /// Factor of the standard deviation of the label noise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_noise_schedule: Option<ScheduleSpec>,
    /// Factor of the weight decay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_decay_schedule: Option<ScheduleSpec>,
    /// Velocities: `{ beta = 0.9 }`, `{ beta = 0.9, kind = "nesterov" }`, or `{ rate = 2.0 }` with 1 − beta = rate/d.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub momentum: Option<MomentumSpec>,
    /// Map of the gradient of a sample: `{ clip = 0.7 }`, `"normalised"`, `"sign"` or `{ adam = { rate = 2.0 } }`.
    #[serde(default, skip_serializing_if = "is_plain")]
    pub gradient: GradientMap,
    /// Mini-batches of a training set: `{ fraction = 0.25, order = "reshuffled" }` or `{ fraction = 0.25, persistence = 5 }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batches: Option<BatchesSpec>,
    /// Hidden units left out at random, anew for every sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropout: Option<DropoutSpec>,
    /// ς of the noise on the inputs that the student reads; labels come from clean inputs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub input_noise: f64,
    /// ς of fresh noise N(0, ς²/d) on every trained weight, per sample.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub weight_noise: f64,
    /// Only directions of so many of the largest eigenvalues are trained; what rows have along the others stays as it is at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000))]
    pub trained_levels: Option<usize>,
    /// A schedule: stages one after the other; what follows the last one is trained as described above.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stage: Vec<Stage>,
}

/// A learning rate: one number, or a course.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "a learning rate is a number, or a course such as { times = [0, 10], values = [1, 0.1] }"
)]
pub enum RateSpec {
    /// The same at all times.
    Number(f64),
    /// A function of the clock.
    Course(Course),
}

/// Dropout of hidden units.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DropoutSpec {
    /// Probability with which a unit takes part; those that do are scaled by its inverse.
    pub keep: f64,
}

fn is_plain(gradient: &GradientMap) -> bool {
    *gradient == GradientMap::Plain
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

fn one() -> usize {
    1
}

fn yes() -> bool {
    true
}

fn unit() -> f64 {
    1.0
}

/// A part of a schedule: the description with some keys changed, until something happens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Stage {
    /// When it ends.
    pub until: Until,
    /// Keys with other values while it lasts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: Overrides,
    /// What begins anew when it has ended; all else goes on from where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<RestartSpec>,
}

/// What begins anew between two stages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RestartSpec {
    /// The trained scalars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scalars: Option<ScalarsSpec>,
    /// The trained rows, drawn anew from this law.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub students: Option<RowsSpec>,
    /// Velocities of momentum, which then start at 0.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub velocity: bool,
}

/// Values of trained scalars.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "scalars are a list of numbers, or a law such as `{ law = \"gaussian\", deviation = 1.0 }`"
)]
pub enum ScalarsSpec {
    /// One number each.
    Given(Vec<f64>),
    /// A law for all of them, of order d^{−1/2}.
    Law(ScalarsLaw),
}

/// The law of trained scalars.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "law", deny_unknown_fields, rename_all = "kebab-case")]
pub enum ScalarsLaw {
    /// All are size/√d.
    Fixed {
        /// In units of d^{−1/2}.
        size: f64,
    },
    /// N(0, deviation²/d), drawn anew for every replica.
    Gaussian {
        /// In units of d^{−1/2}.
        deviation: f64,
    },
}

/// The end of a stage: a time, an event, or whichever comes first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Until {
    /// At this time, counted from the start of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<f64>,
    /// When this observable …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observable: Option<String>,
    /// … `rises` above or `falls` below …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crossing: Option<Crossing>,
    /// … this level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<f64>,
}

/// The eigenvalues of the input covariance.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", deny_unknown_fields, rename_all = "kebab-case")]
pub enum SpectrumSpec {
    /// Σ = 1.
    #[default]
    Isotropic,
    /// λ_l ∝ l^{−(1+beta)}, l = 1..levels, of mean 1.
    PowerLaw {
        /// Number of distinct eigenvalues L.
        #[schemars(range(max = 1_000_000))]
        levels: usize,
        /// β > 0.
        beta: f64,
        /// Neighbouring eigenvalues merged into so many groups; `didact compute committee/spectrum` tells the error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        groups: Option<usize>,
    },
    /// Eigenvalues from a file, or those of the covariance of data in a file. It is read once: the resolved description
    /// holds what it said.
    File {
        /// `.npy` or `.csv`: a list of eigenvalues, or a table of data (samples x features). Relative to the description.
        path: String,
        /// Only so many of the largest eigenvalues.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        truncate: Option<usize>,
        /// Scaled to (1/d) Tr Σ = 1, unless `false`.
        #[serde(default = "yes")]
        normalise: bool,
        /// Neighbouring eigenvalues merged into so many groups.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        groups: Option<usize>,
    },
    /// Eigenvalues of the covariance of public images, measured beforehand and carried by the program, of mean 1.
    Measured {
        /// Which images: `cifar-10` (first channel, 1024 eigenvalues), `fashion-mnist` (784) or `mnist` (713).
        name: MeasuredSpectrum,
        /// Only so many of the largest eigenvalues, scaled to a mean of 1 again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        truncate: Option<usize>,
        /// Neighbouring eigenvalues merged into so many groups.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        groups: Option<usize>,
    },
    /// Any eigenvalues and the fractions of dimensions that have them.
    Explicit {
        /// λ_b.
        eigenvalues: Vec<f64>,
        /// w_b, summing to 1; equal unless given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        weights: Option<Vec<f64>>,
    },
}

/// Overlaps at the start: given (`q`, `r`), or of random rows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct StartSpec {
    /// Law of the trained rows.
    #[serde(default)]
    pub students: RowsSpec,
    /// Frozen rows.
    #[serde(default)]
    pub teachers: TeachersSpec,
    /// Overlaps of the trained rows, in place of random ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q: Option<Vec<Vec<f64>>>,
    /// Overlaps of trained with frozen rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r: Option<Vec<Vec<f64>>>,
    /// Trained scalars: numbers or a law; those of the model unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scalars: Option<ScalarsSpec>,
}

/// The law of random rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "law", deny_unknown_fields, rename_all = "kebab-case")]
pub enum RowsSpec {
    /// Components N(0, deviation²/d).
    Gaussian {
        /// Typical length of a row.
        deviation: f64,
    },
    /// Uniform on the sphere.
    Sphere {
        /// Length of every row.
        radius: f64,
    },
    /// Orthogonal to each other, uniformly.
    Orthogonal {
        /// Length of every row.
        radius: f64,
    },
}

impl Default for RowsSpec {
    fn default() -> Self {
        Self::Gaussian { deviation: 1.0 }
    }
}

/// The frozen rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "teachers are `orthonormal`, `sampled`, or a matrix of their overlaps")]
pub enum TeachersSpec {
    /// `orthonormal` or `sampled`.
    Named(NamedTeachers),
    /// Their overlaps.
    Gram(Vec<Vec<f64>>),
}

impl Default for TeachersSpec {
    fn default() -> Self {
        Self::Named(NamedTeachers::Orthonormal)
    }
}

/// Teachers by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NamedTeachers {
    /// T = 1.
    Orthonormal,
    /// Components N(0, 1/d), anew for every replica.
    Sampled,
}
