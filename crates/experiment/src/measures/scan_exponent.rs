//! A power law across a scan.

use super::{Dependency, Estimate, Findings, Found, MeasureDefinition, MeasuredValues};
use crate::description::Overrides;
use didact_analysis::exponent::fit_exponent;
use didact_math::fits::Noise;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Exponent of an entry of a scan against one of its inputs, within a window of that input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ScanExponentMeasure {
    /// The scan.
    pub scan: String,
    /// The entry.
    pub entry: String,
    /// The input.
    pub over: String,
    /// From, to; all of it unless given.
    #[serde(default = "super::everything")]
    pub window: [f64; 2],
    /// Which rows of the scan; all unless given.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub at: Overrides,
}

impl ScanExponentMeasure {
    fn fit(&self, findings: &Findings) -> Found {
        let Self { scan, entry, over, window, at } = self;
        let mut pairs = findings.scanned(scan, (entry, over), at)?;
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (x, y): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let fit = fit_exponent(&x, &y, Noise::Estimated, (window[0], window[1]))
            .map_err(|e| format!("scan `{scan}`: {e}"))?;
        Ok(Estimate::new(fit.exponent, fit.exponent_error))
    }
}

impl MeasureDefinition for ScanExponentMeasure {
    fn depends_on(&self) -> Vec<Dependency<'_>> {
        vec![Dependency::scan(&self.scan)]
    }

    fn evaluate(&self, findings: &Findings) -> MeasuredValues {
        MeasuredValues::Single(self.fit(findings))
    }
}
