//! The height of a plateau.

use super::{Dependency, Estimate, Findings, MeasureDefinition, MeasuredValues};
use didact_analysis::plateau::{Criterion, longest_plateau};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Height of the longest plateau of the mean curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PlateauHeightMeasure {
    /// Run.
    pub run: String,
    /// Column.
    pub observable: String,
}

impl MeasureDefinition for PlateauHeightMeasure {
    fn depends_on(&self) -> Vec<Dependency<'_>> {
        vec![Dependency::column("run", &self.run, &self.observable)]
    }

    fn evaluate(&self, findings: &Findings) -> MeasuredValues {
        findings.at_each_point(|point| {
            let all_times = [0.0, f64::INFINITY];
            let (times, values, _) = findings.curve(point, &self.run, &self.observable, all_times)?;
            // Lengths are measured in ln time, which time 0 does not have.
            let positive = times.iter().position(|t| *t > 0.0).unwrap_or(0);
            let (times, values) = (&times[positive..], &values[positive..]);
            let found = longest_plateau(times, values, Criterion::log_time()).map_err(|e| e.to_string())?;
            Ok(Estimate::exact(found.ok_or("no plateau")?.height))
        })
    }
}
