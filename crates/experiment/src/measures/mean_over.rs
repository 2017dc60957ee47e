//! A measure averaged over one key of the sweep.

use super::{Dependency, Estimate, Findings, MeasureDefinition, MeasuredValues};
use crate::description::Overrides;
use crate::results::Missing;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Mean of a measure over the values of a swept key, such as the seed of an instance, at fixed other keys, with the
/// standard error over them. Points without a number make it unknown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MeanOverMeasure {
    /// The measure.
    pub of: String,
    /// The key.
    pub over: String,
}

impl MeasureDefinition for MeanOverMeasure {
    fn depends_on(&self) -> Vec<Dependency<'_>> {
        vec![Dependency::swept_key("over", &self.over), Dependency::measure("of", &self.of)]
    }

    fn evaluate(&self, findings: &Findings) -> MeasuredValues {
        findings.at_each_point(|point| {
            let mut others: Overrides = point.values.clone();
            others.remove(&self.over);
            let measured = findings.measure(&self.of)?;
            let points = findings.points().iter().filter(|p| p.matches(&others));
            let values: Result<Vec<f64>, Missing> = points
                .map(|p| measured.at(p).map(|estimate| estimate.value).map_err(|why| why.at(p)))
                .collect();
            Ok(Estimate::mean_of(values?))
        })
    }
}
