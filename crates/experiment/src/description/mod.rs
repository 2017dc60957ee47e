//! The description of an experiment: one struct, read from TOML or JSON by the same deserialiser.
//!
//! Unknown keys are refused. Every default is written out in the resolved copy that a run keeps.

mod claims;
mod figures;
mod optimise;
mod run;
mod training;

pub use crate::measures::{Measure, MeasureKind};
pub use claims::{Bound, Check, Claim, Erratum};
pub use figures::{BandOfMean, BandSpec, FigureSpec, InsetSpec, NamedBand, PanelSpec, Series, SeriesStyle};
pub use optimise::{BaselineName, ControlSpec, MethodName, ObjectiveSpec, OptimiseSpec};
pub use run::RunSpec;
pub use training::{
    DropoutSpec, NamedTeachers, RateSpec, RestartSpec, RowsSpec, ScalarsLaw, ScalarsSpec, SpectrumSpec,
    Stage, StartSpec, TeachersSpec, TrainingSpec, Until,
};

use crate::measures::Dependency;
use didact_families::Model;
use didact_model::Clock;
use didact_model::Reference;
use didact_model::record::Crossing;
use didact_model::training::DriftSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// New values for keys of the description, by their dotted path: `"training.learning-rate" = 0.1`.
pub type Overrides = BTreeMap<String, Value>;

/// An experiment: what is learned, from what, how, what is written down, drawn and checked.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Description {
    /// One line; the folder of the run is named after it.
    pub title: String,
    /// A paragraph for the report.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// What is learned: a registered family and its parameters. An experiment without it has scans and quantities only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
    /// The inputs.
    #[serde(default)]
    pub data: DataSpec,
    /// How it is learned; needed by runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<TrainingSpec>,
    /// Where learning starts.
    #[serde(default)]
    pub start: StartSpec,
    /// What is written down; needed by runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<RecordSpec>,
    /// Engines to run, each with its own changes to the description; a model without any is run as `ode`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub run: Vec<RunSpec>,
    /// Protocols to be found: numbers of the training as functions of the clock, or of the model, that make an observable smallest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub optimise: Vec<OptimiseSpec>,
    /// Keys and the values they take: every combination is run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sweep: BTreeMap<String, Values>,
    /// Predictions that are not trajectories, tabulated over a grid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scan: Vec<ScanSpec>,
    /// Numbers read off the results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measure: Vec<Measure>,
    /// Sentences to be checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claim: Vec<Claim>,
    /// Figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figure: Vec<FigureSpec>,
    /// Changes that make it run in seconds (`--quick`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quick: Overrides,
    /// Changes that make it as large as the source did (`--full`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub full: Overrides,
}

impl Description {
    /// Writes out what is left to be understood: a model that names no run is run as `ode`.
    pub fn complete(mut self) -> Self {
        if self.run.is_empty() && self.model.is_some() {
            self.run.push(RunSpec { name: "ode".into(), ..RunSpec::default() });
        }
        for panel in self.figure.iter_mut().flat_map(|figure| &mut figure.panel) {
            complete_panel(panel);
        }
        self
    }

    /// What runs depend on: the same without words, measures, claims, scans and figures.
    pub fn of_runs(&self) -> Self {
        Self {
            model: self.model.clone(),
            data: self.data.clone(),
            training: self.training.clone(),
            start: self.start.clone(),
            record: self.record.clone(),
            run: self.run.clone(),
            optimise: self.optimise.clone(),
            ..Self::default()
        }
    }

    /// The sections of [`Self::of_runs`].
    pub const SECTIONS_OF_RUNS: [&str; 6] = ["model", "data", "training", "start", "record", "run"];

    /// The seed of all random numbers.
    pub fn seed(&self) -> u64 {
        self.record.as_ref().map_or(0, |r| r.seed)
    }

    /// What to cite: the papers of the model, and of the families whose quantities are asked for.
    pub fn references(&self) -> Vec<Reference> {
        let mut all = self.model.as_ref().map(Model::references).unwrap_or_default();
        let measured = self.measure.iter().flat_map(|m| m.kind.depends_on());
        let measured = measured.filter_map(|dependency| match dependency {
            Dependency::Quantity { path, .. } => Some(path.name),
            _ => None,
        });
        for path in self.scan.iter().map(|s| s.quantity.as_str()).chain(measured) {
            let family = path.split('/').next().unwrap_or_default();
            for reference in Model::references_of(family) {
                if !all.contains(&reference) {
                    all.push(reference);
                }
            }
        }
        all
    }
}

/// A series of an optimisation is one of the run that it becomes.
fn complete_panel(panel: &mut PanelSpec) {
    for series in &mut panel.series {
        let alone = series.run.is_none() && series.measure.is_none() && series.scan.is_none();
        if let Some(name) = series.optimise.take_if(|_| alone) {
            series.run = Some(OptimiseSpec::table_name(&name));
        }
    }
    panel.inset.iter_mut().for_each(|inset| complete_panel(&mut inset.panel));
}

/// The inputs x ~ N(0, Σ).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DataSpec {
    /// d; needed by simulations and by random starts. Without it theory takes d → ∞.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimension: Option<u64>,
    /// δ = n/d: a fixed training set of δ d samples, visited whole at every step (engines `full-batch` and `dmft`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples_per_dimension: Option<f64>,
    /// n, in place of δ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// Σ.
    #[serde(default)]
    pub spectrum: SpectrumSpec,
    /// Teachers that move: `{ rate = 0.05 }` or `{ rotation = [[0, 0.1], [-0.1, 0]] }`, one-pass training only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftSpec>,
    /// The law of the inputs: `gaussian`, `rademacher`, `laplace`, or rows of a table, `{ rows = { path = "features.npy" } }`. Theory
    /// takes Gaussian inputs of the same covariance.
    #[serde(default, skip_serializing_if = "is_gaussian")]
    pub inputs: InputsSpec,
}

/// The law of inputs of given covariance.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InputsSpec {
    /// Normal.
    #[default]
    Gaussian,
    /// ±√λ along every axis of the covariance.
    Rademacher,
    /// Two-sided exponential along every axis of the covariance.
    Laplace,
    /// A row of a table (samples x features) drawn at random; `data.spectrum` is that of the table.
    Rows(TableRows),
}

/// A table of data, samples x features.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TableRows {
    /// `.npy` or text, relative to the description.
    pub path: String,
    /// Digest of what the file held when the description was resolved; written by the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

fn is_gaussian(inputs: &InputsSpec) -> bool {
    *inputs == InputsSpec::Gaussian
}

/// What is written down, and for how many replicas.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RecordSpec {
    /// Times to save at, in units of the clock.
    pub times: Values,
    /// Observables: `loss`, `R[0,0]`, `Q[*,*]`, `alignment[0,0]`, `abs(R[0,0] - R[0,1])`, …
    #[serde(default = "only_loss")]
    pub observe: Vec<String>,
    /// Unit of time.
    #[serde(default)]
    pub clock: Clock,
    /// Independent repetitions of every run.
    #[serde(default = "one")]
    #[schemars(range(max = 1_000_000))]
    pub replicas: u32,
    /// Seed of all random numbers.
    #[serde(default)]
    pub seed: u64,
    /// First passages to note.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub event: Vec<EventSpec>,
    /// How often simulations look for events, in units of the clock; 2000 times over the run unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch_every: Option<f64>,
}

fn only_loss() -> Vec<String> {
    vec!["loss".into()]
}

fn one() -> u32 {
    1
}

/// A first passage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EventSpec {
    /// Name in tables.
    pub name: String,
    /// What is watched.
    pub observable: String,
    /// The level.
    pub level: f64,
    /// `rises` above it or `falls` below it.
    pub crossing: Crossing,
    /// Whether the replica ends there.
    #[serde(default)]
    pub stops: bool,
}

/// A list, or evenly spaced values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "values are a list such as `[1, 2, 4]`, or `{ from = 1, to = 100, points = 5 }`, with `spacing` and `integer` if wanted"
)]
pub enum Values {
    /// As given.
    List(Vec<Value>),
    /// Between two ends.
    Spaced(Spaced),
}

/// Evenly spaced values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Spaced {
    /// First value.
    pub from: f64,
    /// Last value.
    pub to: f64,
    /// How many.
    #[schemars(range(max = 1_000_000))]
    pub points: usize,
    /// `linear` or `log`.
    #[serde(default)]
    pub spacing: Spacing,
    /// Round to whole numbers (dimensions, widths); those that become equal count once.
    #[serde(default)]
    pub integer: bool,
}

/// How values are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Spacing {
    /// Equal differences.
    #[default]
    Linear,
    /// Equal ratios.
    Log,
}

impl Values {
    /// The values; `None` when a spaced range is impossible (no points, or logarithms of non-positive ends).
    pub fn expand(&self) -> Option<Vec<Value>> {
        let spaced = match self {
            Self::List(list) => return Some(list.clone()),
            Self::Spaced(s) => s,
        };
        let log = spaced.spacing == Spacing::Log;
        if spaced.points == 0 || !(spaced.from.is_finite() && spaced.to.is_finite()) {
            return None;
        }
        if log && (spaced.from <= 0.0 || spaced.to <= 0.0) {
            return None;
        }
        let grid = if log { didact_model::record::log_times } else { didact_model::record::linear_times };
        let number = |v: f64| if spaced.integer { Value::from(v.round() as i64) } else { Value::from(v) };
        let mut values: Vec<Value> =
            grid(spaced.from, spaced.to, spaced.points).into_iter().map(number).collect();
        if spaced.integer {
            // Close numbers may round to the same one; each is meant once.
            values.dedup();
        }
        Some(values)
    }

    /// The values as numbers.
    pub fn numbers(&self) -> Option<Vec<f64>> {
        self.expand()?.iter().map(Value::as_f64).collect()
    }
}

/// A quantity over a grid of its inputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ScanSpec {
    /// Name in figures and files.
    pub name: String,
    /// `family/quantity`.
    pub quantity: String,
    /// Inputs that stay.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, Value>,
    /// Inputs that vary: every combination is computed.
    pub over: BTreeMap<String, Values>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_of_a_log_grid_come_once_and_keep_their_ends() {
        let values =
            Values::Spaced(Spaced { from: 1.0, to: 10.0, points: 11, spacing: Spacing::Log, integer: true });
        assert_eq!(values.numbers().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0]);
        // What a user lists is left as it is: a repetition there is a slip that others find.
        let listed = Values::List(vec![Value::from(1), Value::from(1)]);
        assert_eq!(listed.numbers().unwrap(), [1.0, 1.0]);
    }
}
