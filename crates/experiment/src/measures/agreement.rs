//! Whether a simulation follows its prediction.

use super::{Dependency, Estimate, Findings, MeasureDefinition, MeasuredValues};
use didact_analysis::agreement::largest_deviation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Largest |z| between the mean of a simulation and a prediction, over the saved times in a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AgreementMeasure {
    /// The prediction.
    pub theory: String,
    /// The simulation.
    pub simulation: String,
    /// Column.
    pub observable: String,
    /// From, to.
    pub window: [f64; 2],
}

impl MeasureDefinition for AgreementMeasure {
    fn depends_on(&self) -> Vec<Dependency<'_>> {
        vec![
            Dependency::column("theory", &self.theory, &self.observable),
            Dependency::column("simulation", &self.simulation, &self.observable),
        ]
    }

    fn evaluate(&self, findings: &Findings) -> MeasuredValues {
        let Self { theory, simulation, observable, window } = self;
        findings.at_each_point(|point| {
            let (times, predicted, _) = findings.curve(point, theory, observable, *window)?;
            let (simulated_times, means, errors) = findings.curve(point, simulation, observable, *window)?;
            if times != simulated_times {
                return Err(format!("`{theory}` and `{simulation}` saved different times").into());
            }
            if findings.table(point, simulation)?.replicas() < 2 {
                return Err(format!("`{simulation}` has one replica, so no standard error").into());
            }
            let z = largest_deviation(&means, &errors, &predicted).map_err(|e| e.to_string())?;
            Ok(Estimate::exact(z))
        })
    }
}
