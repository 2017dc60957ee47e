//! Sentences about measures, to be checked.

use super::Overrides;
use crate::Size;
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
    /// A bound that the source prints: the number must lie within it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// The smallest size at which the numbers can decide. Below it the claim is shown as not judged at this size.
    #[serde(default = "quick")]
    pub judged_from: Size,
}

fn quick() -> Size {
    Size::Quick
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
    /// Tolerance in standard errors of the measure. Beside `at-least` or `at-most` alone: by how many standard errors at least the measure is
    /// beyond the bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sigmas: Option<f64>,
    /// The widest tolerance of `sigmas` that still says something: half of what is expected unless given. Beyond it an agreement
    /// is not judged at this size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<f64>,
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

/// A printed bound on a number: not its value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Bound {
    /// Name in the list of remarks on the source.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The number is at most this, the source proves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// The number is at least this, the source proves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// How near the number comes, and why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}
