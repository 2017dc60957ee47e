//! Whether a simulation follows its prediction.

use super::{Dependency, Estimate, Findings, MeasureDefinition, MeasuredValues, Planned, WrongKey};
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
    /// Standard errors from the scatter of the `replicas`, or, for few of them, from the `theory`: its column `sd(…)` over the root of
    /// their number.
    #[serde(default)]
    pub errors: ErrorsFrom,
}

/// Where standard errors come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorsFrom {
    /// From the scatter of the replicas.
    #[default]
    Replicas,
    /// From the predicted standard deviation.
    Theory,
}

/// Refuses a prediction without standard deviations of an observable.
pub(super) fn needs_deviations(planned: &Planned, run: &str, observable: &str) -> Result<(), WrongKey> {
    let column = deviation_column(observable);
    let mut runs = planned.runs.iter().filter(|planned| planned.name == run);
    if runs.all(|run| run.schedule.columns().contains(&column)) {
        return Ok(());
    }
    Err(("theory", format!("run `{run}` has no column `{column}`\n\nhint: it needs `fluctuations = true`")))
}

/// The column of predicted standard deviations that belongs to a column.
pub(super) fn deviation_column(observable: &str) -> String {
    format!("sd({observable})")
}

impl MeasureDefinition for AgreementMeasure {
    fn depends_on(&self) -> Vec<Dependency<'_>> {
        vec![
            Dependency::column("theory", &self.theory, &self.observable),
            Dependency::column("simulation", &self.simulation, &self.observable),
        ]
    }

    fn check(&self, planned: &Planned) -> Result<(), WrongKey> {
        match self.errors {
            ErrorsFrom::Replicas => Ok(()),
            ErrorsFrom::Theory => needs_deviations(planned, &self.theory, &self.observable),
        }
    }

    fn evaluate(&self, findings: &Findings) -> MeasuredValues {
        let Self { theory, simulation, observable, window, errors: from } = self;
        findings.at_each_point(|point| {
            let (times, predicted, _) = findings.curve(point, theory, observable, *window)?;
            let (simulated_times, means, mut errors) =
                findings.curve(point, simulation, observable, *window)?;
            if times != simulated_times {
                return Err(format!("`{theory}` and `{simulation}` saved different times").into());
            }
            if *from == ErrorsFrom::Theory {
                let (_, predicted, _) =
                    findings.curve(point, theory, &deviation_column(observable), *window)?;
                let column = findings.table(point, simulation)?.mean(observable).unwrap_or_default();
                let times = &findings.table(point, simulation)?.times;
                let counts = times
                    .iter()
                    .zip(&column)
                    .filter(|(t, m)| **t >= window[0] && **t <= window[1] && m.count > 0);
                let counts: Vec<f64> = counts.map(|(_, m)| m.count as f64).collect();
                errors = predicted.iter().zip(&counts).map(|(sd, count)| sd / count.sqrt()).collect();
            } else if findings.table(point, simulation)?.replicas() < 2 {
                return Err(format!("`{simulation}` has one replica, so no standard error").into());
            }
            let z = largest_deviation(&means, &errors, &predicted).map_err(|e| e.to_string())?;
            Ok(Estimate::exact(z))
        })
    }
}
