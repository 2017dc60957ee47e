//! First passages of an event: mean time, median time, and the share of the replicas that saw it.

use super::estimate::ONE_SIGMA;
use super::{Dependency, Estimate, Findings, MeasureDefinition, MeasuredValues};
use crate::points::Point;
use crate::results::Missing;
use didact_analysis::passage::Passage;
use didact_analysis::statistics::wilson;
use didact_analysis::survival::kaplan_meier;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// First passage of an event: mean over replicas and its standard error; censored runs make it unknown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EventTimeMeasure {
    /// Run.
    pub run: String,
    /// Event.
    pub event: String,
}

impl MeasureDefinition for EventTimeMeasure {
    fn depends_on(&self) -> Vec<Dependency<'_>> {
        vec![Dependency::event(&self.run, &self.event)]
    }

    fn evaluate(&self, findings: &Findings) -> MeasuredValues {
        findings.at_each_point(|point| {
            let passages = first_passages(findings, point, &self.run, &self.event)?;
            let censored = passages.iter().filter(|p| p.is_none()).count();
            if censored > 0 {
                let all = passages.len();
                return Err(format!("{censored} of {all} replicas never saw `{}`", self.event).into());
            }
            Ok(Estimate::mean_of(passages.iter().flatten().copied()))
        })
    }
}

/// Median first passage (Kaplan-Meier, censored runs counted as later), with the half-width of its 68 % interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EventMedianMeasure {
    /// Run.
    pub run: String,
    /// Event.
    pub event: String,
}

impl MeasureDefinition for EventMedianMeasure {
    fn depends_on(&self) -> Vec<Dependency<'_>> {
        vec![Dependency::event(&self.run, &self.event)]
    }

    fn evaluate(&self, findings: &Findings) -> MeasuredValues {
        findings.at_each_point(|point| {
            let passages = first_passages(findings, point, &self.run, &self.event)?;
            let end = findings.table(point, &self.run)?.times.last().copied().unwrap_or(0.0);
            let passage = |p: &Option<f64>| match *p {
                Some(time) => Passage::Passed { time },
                None => Passage::Censored { at: end },
            };
            let passages: Vec<Passage> = passages.iter().map(passage).collect();
            let curve = kaplan_meier(&passages).map_err(|e| e.to_string())?;
            let median = curve.median();
            let median =
                median.ok_or_else(|| format!("fewer than half of the replicas saw `{}`", self.event))?;
            let interval = curve.median_interval(ONE_SIGMA).map_err(|e| e.to_string())?;
            // An end that so few replicas do not bound leaves the other half of the interval.
            Ok(match interval {
                (Some(low), Some(high)) => Estimate::within(median, [low, high]),
                (Some(low), None) => Estimate::new(median, median - low),
                (None, Some(high)) => Estimate::new(median, high - median),
                (None, None) => Estimate::exact(median),
            })
        })
    }
}

/// Share of the replicas that saw an event, with the half-width of its 68 % Wilson interval as error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EventFractionMeasure {
    /// Run.
    pub run: String,
    /// Event.
    pub event: String,
}

impl MeasureDefinition for EventFractionMeasure {
    fn depends_on(&self) -> Vec<Dependency<'_>> {
        vec![Dependency::event(&self.run, &self.event)]
    }

    fn evaluate(&self, findings: &Findings) -> MeasuredValues {
        findings.at_each_point(|point| {
            let passages = first_passages(findings, point, &self.run, &self.event)?;
            let seen = passages.iter().flatten().count();
            let interval = wilson(seen, passages.len(), ONE_SIGMA).map_err(|e| e.to_string())?;
            Ok(Estimate::within(seen as f64 / passages.len() as f64, [interval.low, interval.high]))
        })
    }
}

/// The first passage of every replica; `None` where it is censored at the end of the run.
fn first_passages<'a>(
    findings: &Findings<'a>,
    point: &Point,
    run: &str,
    event: &str,
) -> Result<&'a [Option<f64>], Missing> {
    let passages = findings.table(point, run)?.event(event);
    Ok(passages.ok_or_else(|| format!("no event `{event}`"))?)
}
