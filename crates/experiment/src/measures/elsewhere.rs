//! A measure at another point of the sweep.

use super::{Dependency, Findings, MeasureDefinition, MeasuredValues};
use crate::description::Overrides;
use crate::points::Point;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A measure at another point of the sweep: the same keys but for those given here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ElsewhereMeasure {
    /// The measure.
    pub of: String,
    /// The keys that differ.
    pub at: Overrides,
}

impl MeasureDefinition for ElsewhereMeasure {
    fn depends_on(&self) -> Vec<Dependency<'_>> {
        let keys = self.at.keys().map(|key| Dependency::swept_key("at", key));
        keys.chain([Dependency::measure("of", &self.of)]).collect()
    }

    fn evaluate(&self, findings: &Findings) -> MeasuredValues {
        findings.at_each_point(|point| {
            let mut values = point.values.clone();
            values.extend(self.at.iter().map(|(key, value)| (key.clone(), value.clone())));
            let there = findings.points().iter().find(|p| p.matches(&values));
            let there = there.ok_or_else(|| {
                format!("the sweep has no point with {}", Point { index: 0, values }.label())
            })?;
            findings.measure(&self.of)?.at(there)
        })
    }
}
