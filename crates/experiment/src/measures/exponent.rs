//! A power law in time.

use super::{Dependency, Estimate, Findings, MeasureDefinition, MeasuredValues};
use didact_analysis::exponent::fit_exponent;
use didact_math::fits::Noise;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Exponent of a power law of the mean curve within a window of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ExponentMeasure {
    /// Run.
    pub run: String,
    /// Column.
    pub observable: String,
    /// From, to.
    pub window: [f64; 2],
}

impl MeasureDefinition for ExponentMeasure {
    fn depends_on(&self) -> Vec<Dependency<'_>> {
        vec![Dependency::column("run", &self.run, &self.observable)]
    }

    fn evaluate(&self, findings: &Findings) -> MeasuredValues {
        let Self { run, observable, window } = self;
        findings.at_each_point(|point| {
            let (times, values, errors) = findings.curve(point, run, observable, *window)?;
            let noise =
                if errors.iter().all(|e| *e > 0.0) { Noise::Known(&errors) } else { Noise::Estimated };
            let fit =
                fit_exponent(&times, &values, noise, (window[0], window[1])).map_err(|e| e.to_string())?;
            Ok(Estimate::new(fit.exponent, fit.exponent_error))
        })
    }
}
