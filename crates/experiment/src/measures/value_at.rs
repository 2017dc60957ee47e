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
    /// Time (the nearest saved one); from the first to the last saved time.
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
            let saved = (table.times.first().copied(), table.times.last().copied());
            let (Some(first), Some(last)) = saved else { return Err("no times".to_string().into()) };
            // Times that were computed on a grid differ from those that are written in the last digits.
            let slack = 1e-9 * last.abs().max(first.abs());
            if *time < first - slack || *time > last + slack {
                return Err(format!("time {time} is not within the run, which is saved from {first} to {last}").into());
            }
            let nearest = (0..table.times.len())
                .min_by(|a, b| (table.times[*a] - time).abs().total_cmp(&(table.times[*b] - time).abs()))
                .ok_or("no times")?;
            let at = mean.get(nearest).filter(|m| m.value.is_finite());
            let at = at.ok_or_else(|| format!("no replica of `{run}` has a finite `{observable}` at time {time}"))?;
            Ok(Estimate::new(at.value, at.error))
        })
    }
}
