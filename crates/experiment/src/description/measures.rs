//! Numbers read off results, and sentences about them.

use super::Overrides;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A named number of the results, one per point of the sweep unless it is a fit over the sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Measure {
    /// Name in claims, figures and tables.
    pub name: String,
    /// What it is.
    #[serde(flatten)]
    pub kind: MeasureKind,
}

/// What a measure is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", deny_unknown_fields, rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum MeasureKind {
    /// First passage of an event: mean over replicas and its standard error; censored runs make it unknown.
    EventTime {
        /// Run.
        run: String,
        /// Event.
        event: String,
    },
    /// Median first passage (Kaplan-Meier, censored runs counted as later), with the half-width of its 68 % interval.
    EventMedian {
        /// Run.
        run: String,
        /// Event.
        event: String,
    },
    /// Share of the replicas that saw an event, with the half-width of its 68 % Wilson interval as error.
    EventFraction {
        /// Run.
        run: String,
        /// Event.
        event: String,
    },
    /// An observable at a time: mean over replicas.
    ValueAt {
        /// Run.
        run: String,
        /// Column.
        observable: String,
        /// Time (the nearest saved one).
        time: f64,
    },
    /// Height of the longest plateau of the mean curve.
    PlateauHeight {
        /// Run.
        run: String,
        /// Column.
        observable: String,
    },
    /// Exponent of a power law of the mean curve within a window of time.
    Exponent {
        /// Run.
        run: String,
        /// Column.
        observable: String,
        /// From, to.
        window: [f64; 2],
    },
    /// Rate of exponential growth or decay of |value − reference| within a window of time.
    Rate {
        /// Run.
        run: String,
        /// Column.
        observable: String,
        /// Subtracted first.
        #[serde(default)]
        reference: f64,
        /// From, to.
        window: [f64; 2],
    },
    /// Rate of exponential growth of |value| between two levels, fitted in every replica: mean and standard error.
    GrowthRate {
        /// Run.
        run: String,
        /// Column.
        observable: String,
        /// From above the first level to below the second.
        levels: [f64; 2],
    },
    /// Largest |z| between the mean of a simulation and a prediction, over the saved times in a window.
    Agreement {
        /// The prediction.
        theory: String,
        /// The simulation.
        simulation: String,
        /// Column.
        observable: String,
        /// From, to.
        window: [f64; 2],
    },
    /// A predicted quantity, or one entry of it.
    Quantity {
        /// `family/quantity`.
        quantity: String,
        /// Its inputs; the text `"{key}"` stands for the value of a swept key.
        inputs: BTreeMap<String, Value>,
        /// Name of the entry, if it has several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        entry: Option<String>,
    },
    /// Exponent of an entry of a scan against one of its inputs, within a window of that input.
    ScanExponent {
        /// The scan.
        scan: String,
        /// The entry.
        entry: String,
        /// The input.
        over: String,
        /// From, to; all of it unless given.
        #[serde(default = "everything")]
        window: [f64; 2],
        /// Which rows of the scan; all unless given.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        at: Overrides,
    },
    /// Smallest or largest value of an entry of a scan, or where it is taken.
    ScanExtremum {
        /// The scan.
        scan: String,
        /// The entry.
        entry: String,
        /// Which.
        extremum: Extremum,
        /// Give the value of this input there, not the value of the entry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<String>,
        /// Which rows of the scan; all unless given.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        at: Overrides,
    },
    /// Slope of a measure against the logarithm of a swept key: y = a + b ln x, over the points at which its runs run.
    LogLaw {
        /// The measure.
        of: String,
        /// The key.
        over: String,
        /// From, to, in the key; all of it unless given.
        #[serde(default = "everything")]
        window: [f64; 2],
        /// Where the error comes from.
        #[serde(default)]
        errors: FitErrors,
    },
    /// Exponent of a measure against a swept key: y ∝ x^b, over the points at which its runs run.
    PowerLaw {
        /// The measure.
        of: String,
        /// The key.
        over: String,
        /// From, to, in the key; all of it unless given.
        #[serde(default = "everything")]
        window: [f64; 2],
        /// Where the error comes from.
        #[serde(default)]
        errors: FitErrors,
    },
    /// Mean of a measure over the values of a swept key, such as the seed of an instance, at fixed other keys, with the
    /// standard error over them. Points without a number make it unknown.
    MeanOver {
        /// The measure.
        of: String,
        /// The key.
        over: String,
    },
    /// A measure at another point of the sweep: the same keys but for those given here.
    Elsewhere {
        /// The measure.
        of: String,
        /// The keys that differ.
        at: Overrides,
    },
    /// A formula of earlier measures, its error from theirs to first order.
    Formula {
        /// The formula, in the variables of `with`.
        formula: String,
        /// Variables and the measures they stand for.
        with: BTreeMap<String, String>,
    },
}

impl MeasureKind {
    /// The runs it is measured on.
    pub fn runs(&self) -> Vec<&str> {
        match self {
            Self::EventTime { run, .. }
            | Self::EventMedian { run, .. }
            | Self::EventFraction { run, .. }
            | Self::ValueAt { run, .. }
            | Self::PlateauHeight { run, .. }
            | Self::Exponent { run, .. }
            | Self::Rate { run, .. }
            | Self::GrowthRate { run, .. } => vec![run],
            Self::Agreement { theory, simulation, .. } => vec![theory, simulation],
            _ => Vec::new(),
        }
    }

    /// The measures it is computed from.
    pub fn measures(&self) -> Vec<&str> {
        match self {
            Self::LogLaw { of, .. }
            | Self::PowerLaw { of, .. }
            | Self::MeanOver { of, .. }
            | Self::Elsewhere { of, .. } => vec![of],
            Self::Formula { with, .. } => with.values().map(String::as_str).collect(),
            _ => Vec::new(),
        }
    }
}

/// Where the standard error of a fit over the sweep comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FitErrors {
    /// The standard errors of the points, which also weight them; their scatter about the line if one has none.
    #[default]
    Points,
    /// The scatter of the points about the line, all weighted equally: for points of so few replicas that their own errors
    /// are hardly known. No less than these errors give, where all points have one: a few points may lie on a line by chance.
    Scatter,
}

/// Every positive number (a window that TOML and JSON can both write).
fn everything() -> [f64; 2] {
    [0.0, f64::MAX]
}

/// Smallest or largest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Extremum {
    /// Smallest.
    Minimum,
    /// Largest.
    Maximum,
}

/// A sentence of a source, as a check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Claim {
    /// The sentence.
    pub says: String,
    /// Where it stands.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// The measure it is about.
    pub measure: String,
    /// Which points of the sweep; all unless given.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub at: Overrides,
    /// What must be true.
    pub check: Check,
    /// What the source prints, when that is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erratum: Option<Erratum>,
    /// Checked only under `--full`.
    #[serde(default)]
    pub only_full: bool,
}

/// A condition on a number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Check {
    /// Equal to this, within `absolute`, `relative` or `sigmas` (the widest of those given).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equals: Option<f64>,
    /// Equal to another measure, within the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equals_measure: Option<String>,
    /// Absolute tolerance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absolute: Option<f64>,
    /// Relative tolerance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relative: Option<f64>,
    /// Tolerance in standard errors of the measure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sigmas: Option<f64>,
    /// At least this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// At most this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// Strictly increasing along this swept key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub increases_with: Option<String>,
    /// Strictly decreasing along this swept key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decreases_with: Option<String>,
}

/// A printed number that is wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Erratum {
    /// Name in the list of errata.
    pub id: String,
    /// What is printed.
    pub printed: f64,
    /// Why it is wrong.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}
