//! Whether the spread of simulations is the predicted one.

use super::agreement::{deviation_column, needs_deviations};
use super::{Dependency, Estimate, Findings, MeasureDefinition, MeasuredValues, Planned, WrongKey};
use didact_analysis::agreement::largest_variance_deviation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Largest |z| between the variance of a simulation over its replicas and the predicted one, over the saved times in a window:
/// z = sqrt((r-1)/2) ln(s²/sd²) of r replicas. The prediction needs `fluctuations = true`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct VarianceAgreementMeasure {
    /// The prediction.
    pub theory: String,
    /// The simulation.
    pub simulation: String,
    /// Column.
    pub observable: String,
    /// From, to.
    pub window: [f64; 2],
}

impl MeasureDefinition for VarianceAgreementMeasure {
    fn depends_on(&self) -> Vec<Dependency<'_>> {
        vec![
            Dependency::column("theory", &self.theory, &self.observable),
            Dependency::column("simulation", &self.simulation, &self.observable),
        ]
    }

    fn check(&self, planned: &Planned) -> Result<(), WrongKey> {
        needs_deviations(planned, &self.theory, &self.observable)
    }

    fn evaluate(&self, findings: &Findings) -> MeasuredValues {
        let Self { theory, simulation, observable, window } = self;
        findings.at_each_point(|point| {
            let (times, deviations, _) =
                findings.curve(point, theory, &deviation_column(observable), *window)?;
            let table = findings.table(point, simulation)?;
            let column = table.mean(observable).ok_or_else(|| format!("no column `{observable}`"))?;
            let (mut found, mut spreads) = (Vec::new(), Vec::new());
            for (time, mean) in table.times.iter().zip(&column) {
                if *time >= window[0] && *time <= window[1] && mean.count > 0 {
                    found.push(*time);
                    spreads.push((mean.deviation, mean.count));
                }
            }
            if times != found {
                return Err(format!("`{theory}` and `{simulation}` saved different times").into());
            }
            let z = largest_variance_deviation(&spreads, &deviations).map_err(|e| e.to_string())?;
            Ok(Estimate::exact(z))
        })
    }
}
