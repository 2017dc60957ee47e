//! One `[[optimise]]`: numbers of the training, or of the model, that make an observable smallest.

use super::Overrides;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A protocol to be found: controls, objective, and how it is sought.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OptimiseSpec {
    /// Name in runs (`protocol`), figures, measures and files.
    pub name: String,
    /// What may be chosen.
    pub controls: Vec<ControlSpec>,
    /// What is made small: `{ minimise = "loss", at = 200 }`, `{ minimise-integral = "loss", to = 200 }` or
    /// `{ reach = "loss", level = 1e-3, within = 500 }`.
    pub objective: ObjectiveSpec,
    /// Protocols from which the search starts: the best constant, greedy, one that falls at its end, then random ones.
    #[serde(default = "four")]
    #[schemars(range(max = 1000))]
    pub starts: usize,
    /// `direct`: values at knots, polished by sweeps; `sweep` (learning rate alone): the other way round.
    #[serde(default)]
    pub method: MethodName,
    /// Of the certificate.
    #[serde(default = "thousandth")]
    pub tolerance: f64,
    /// Steps at most, per start and level of knots.
    #[serde(default = "three_hundred")]
    #[schemars(range(max = 100_000))]
    pub iterations: usize,
    /// What the optimum is compared with, the first of them in `gain`.
    #[serde(default = "all_baselines")]
    pub baselines: Vec<BaselineName>,
    /// For a random start: the mean over the starts of so many replicas is made small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 10_000))]
    pub replicas: Option<u32>,
    /// Changes to the description for this optimisation alone.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: Overrides,
    /// Optimise only under `--full`.
    #[serde(default)]
    pub only_full: bool,
    /// Optimise only at the points of the sweep where these keys lie between two numbers.
    #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub within: BTreeMap<String, [f64; 2]>,
}

/// One number that may be chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ControlSpec {
    /// Its key: `training.learning-rate`, `training.constraint.weight-decay` or `training.label-noise` as a function of the clock; any
    /// number of the description, such as `model.mu` or `training.stage.0.until.time`, as one value.
    pub key: String,
    /// Smallest and largest value.
    pub bounds: [f64; 2],
    /// Intervals between knots of a function of the clock; without it the control is one value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 10_000))]
    pub knots: Option<usize>,
}

/// What is made small; one of three forms.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ObjectiveSpec {
    /// The observable at the time `at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimise: Option<String>,
    /// In units of the clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<f64>,
    /// The integral of the observable from 0 to the time `to`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimise_integral: Option<String>,
    /// In units of the clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<f64>,
    /// The first time at which the observable falls to `level`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<String>,
    /// The level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<f64>,
    /// The longest time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
}

/// How a protocol is sought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MethodName {
    /// Direct transcription.
    #[default]
    Direct,
    /// Forward-backward sweeps.
    Sweep,
}

/// What an optimum is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BaselineName {
    /// The best constant values.
    Constant,
    /// The rate that lowers the observable fastest at every instant.
    Greedy,
    /// The description as it stands.
    Given,
}

impl BaselineName {
    /// Its name in columns and entries.
    pub fn word(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Greedy => "greedy",
            Self::Given => "given",
        }
    }
}

impl OptimiseSpec {
    /// The name of its table: that of its files.
    pub fn table_name(name: &str) -> String {
        format!("optimise-{}", name.replace(' ', "-"))
    }
}

fn four() -> usize {
    4
}

fn thousandth() -> f64 {
    1e-3
}

fn three_hundred() -> usize {
    300
}

fn all_baselines() -> Vec<BaselineName> {
    vec![BaselineName::Constant, BaselineName::Greedy, BaselineName::Given]
}
