//! A column at one time.

use super::{Dependency, Estimate, Findings, MeasureDefinition, MeasuredValues, Planned, WrongKey};
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

    fn check(&self, planned: &Planned) -> Result<(), WrongKey> {
        let own = planned.runs.iter().filter(|r| r.name == self.run);
        let mut saved = own.map(|r| &r.schedule.record.times).peekable();
        let outside = |times: &Vec<f64>| !within(self.time, times);
        match saved.peek().copied() {
            Some(first) if saved.all(outside) => Err(("time", not_within(self.time, first))),
            _ => Ok(()),
        }
    }

    fn evaluate(&self, findings: &Findings) -> MeasuredValues {
        let Self { run, observable, time } = self;
        findings.at_each_point(|point| {
            let table = findings.table(point, run)?;
            let mean = table.mean(observable).ok_or_else(|| format!("no column `{observable}`"))?;
            if !within(*time, &table.times) {
                return Err(not_within(*time, &table.times).into());
            }
            let nearest = (0..table.times.len())
                .min_by(|a, b| (table.times[*a] - time).abs().total_cmp(&(table.times[*b] - time).abs()))
                .ok_or("no times")?;
            let at = mean.get(nearest).filter(|m| m.value.is_finite());
            let at = at
                .ok_or_else(|| format!("no replica of `{run}` has a finite `{observable}` at time {time}"))?;
            Ok(Estimate::new(at.value, at.error))
        })
    }
}

/// Whether a time lies between the first and the last saved one. Times that are computed on a grid differ in the last
/// digits from those that are written.
fn within(time: f64, saved: &[f64]) -> bool {
    let (Some(first), Some(last)) = (saved.first(), saved.last()) else { return false };
    let slack = 1e-9 * last.abs().max(first.abs());
    (first - slack..=last + slack).contains(&time)
}

fn not_within(time: f64, saved: &[f64]) -> String {
    match (saved.first(), saved.last()) {
        (Some(first), Some(last)) => {
            format!("time {time} is not within the run, which is saved from {first} to {last}")
        }
        _ => "the run saves nothing".into(),
    }
}
