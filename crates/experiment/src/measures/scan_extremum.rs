//! The smallest or largest number of a scan.

use super::{Dependency, Estimate, Findings, Found, MeasureDefinition, MeasuredValues};
use crate::description::Overrides;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Smallest or largest value of an entry of a scan, or where it is taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ScanExtremumMeasure {
    /// The scan.
    pub scan: String,
    /// The entry.
    pub entry: String,
    /// Which.
    pub extremum: Extremum,
    /// Give the value of this input there, not the value of the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Which rows of the scan; all unless given.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub at: Overrides,
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

impl ScanExtremumMeasure {
    fn find(&self, findings: &Findings) -> Found {
        let Self { scan, entry, extremum, of, at } = self;
        let pairs = findings.scanned(scan, (entry, of.as_deref().unwrap_or(entry)), at)?;
        let sign = if *extremum == Extremum::Maximum { -1.0 } else { 1.0 };
        let best = pairs.into_iter().min_by(|a, b| (sign * a.1).total_cmp(&(sign * b.1)));
        let (x, _) = best.ok_or_else(|| format!("scan `{scan}` has no number for `{entry}`"))?;
        Ok(Estimate::exact(x))
    }
}

impl MeasureDefinition for ScanExtremumMeasure {
    fn depends_on(&self) -> Vec<Dependency<'_>> {
        vec![Dependency::scan(&self.scan)]
    }

    fn evaluate(&self, findings: &Findings) -> MeasuredValues {
        MeasuredValues::Single(self.find(findings))
    }
}
