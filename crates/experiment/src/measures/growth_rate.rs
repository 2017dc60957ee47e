//! Exponential growth between two levels, replica by replica.

use super::{Dependency, Estimate, Findings, MeasureDefinition, MeasuredValues};
use crate::results::Missing;
use didact_analysis::rate::growth_rate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rate of exponential growth of |value| between two levels, fitted in every replica: mean and standard error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GrowthRateMeasure {
    /// Run.
    pub run: String,
    /// Column.
    pub observable: String,
    /// From above the first level to below the second.
    pub levels: [f64; 2],
}

impl MeasureDefinition for GrowthRateMeasure {
    fn depends_on(&self) -> Vec<Dependency<'_>> {
        vec![Dependency::column("run", &self.run, &self.observable)]
    }

    fn evaluate(&self, findings: &Findings) -> MeasuredValues {
        let Self { run, observable, levels } = self;
        findings.at_each_point(|point| {
            let table = findings.table(point, run)?;
            let curves = table.curves(observable).ok_or_else(|| format!("no column `{observable}`"))?;
            let rate =
                |curve: &Vec<f64>| growth_rate(&table.times, curve, *levels).map_err(|e| e.to_string());
            let rates: Result<Vec<f64>, String> = curves.iter().map(rate).collect();
            Ok(Estimate::mean_of(rates.map_err(Missing::from)?))
        })
    }
}
