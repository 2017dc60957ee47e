//! A column at one time.

use super::{Dependency, Estimate, Findings, MeasureDefinition, MeasuredValues};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An observable at a time: mean over replicas.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ValueAtMeasure {
    /// Run.
    pub run: String,
    /// Column.
    pub observable: String,
    /// Time (the nearest saved one).
    pub time: f64,
}

impl MeasureDefinition for ValueAtMeasure {
    fn depends_on(&self) -> Vec<Dependency<'_>> {
        vec![Dependency::column("run", &self.run, &self.observable)]
    }

    fn evaluate(&self, findings: &Findings) -> MeasuredValues {
        let Self { run, observable, time } = self;
        findings.at_each_point(|point| {
            let table = findings.table(point, run)?;
            let mean = table.mean(observable).ok_or_else(|| format!("no column `{observable}`"))?;
            let nearest = (0..table.times.len())
                .min_by(|a, b| (table.times[*a] - time).abs().total_cmp(&(table.times[*b] - time).abs()))
                .ok_or("no times")?;
            Ok(Estimate::new(mean[nearest].value, mean[nearest].error))
        })
    }
}
