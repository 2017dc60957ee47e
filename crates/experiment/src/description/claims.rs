//! Sentences about measures, to be checked.

use super::Overrides;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
