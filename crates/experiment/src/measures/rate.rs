//! An exponential approach to, or departure from, a reference value.

use super::{Dependency, Estimate, Findings, MeasureDefinition, MeasuredValues};
use didact_analysis::rate::fit_rate;
use didact_math::fits::Noise;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rate of exponential growth or decay of |value − reference| within a window of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RateMeasure {
    /// Run.
    pub run: String,
    /// Column.
    pub observable: String,
    /// Subtracted first.
    #[serde(default)]
    pub reference: f64,
    /// From, to.
    pub window: [f64; 2],
}

impl MeasureDefinition for RateMeasure {
    fn depends_on(&self) -> Vec<Dependency<'_>> {
        vec![Dependency::column("run", &self.run, &self.observable)]
    }

    fn evaluate(&self, findings: &Findings) -> MeasuredValues {
        let Self { run, observable, reference, window } = self;
        findings.at_each_point(|point| {
            let (times, values, _) = findings.curve(point, run, observable, *window)?;
            let window = (window[0], window[1]);
            let fit =
                fit_rate(&times, &values, Noise::Estimated, *reference, window).map_err(|e| e.to_string())?;
            Ok(Estimate::new(fit.rate, fit.rate_error))
        })
    }
}
