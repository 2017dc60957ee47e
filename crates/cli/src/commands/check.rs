//! `didact check`: what would run.

use crate::exit::Ending;
use crate::units::{bytes, duration};
use didact_experiment::source::printable;
use didact_experiment::{Diagnostic, Experiment, Size, Source};
use serde_json::json;
use std::path::Path;

pub(crate) fn check(file: &Path, size: Size, as_json: bool) -> Result<Ending, Diagnostic> {
    let experiment = Experiment::new(Source::read(file)?, size, None)?;
    for remark in experiment.remarks() {
        complain!("warning: {remark}");
    }
    let costs: Vec<_> = experiment.jobs.iter().map(|job| (job, job.cost())).collect();
    if as_json {
        let jobs: Vec<_> = costs
            .iter()
            .map(|(job, cost)| {
                json!({"run": job.run, "engine": job.plan.engine.name(), "point": job.point.values,
                       "steps": cost.steps, "memory-bytes": cost.memory, "seconds": cost.seconds})
            })
            .collect();
        say!(
            "{:#}",
            json!({"title": experiment.resolved.title, "folder": experiment.folder_name(), "jobs": jobs,
                   "scan-points": experiment.scan_points()})
        );
        return Ok(Ending::Done);
    }
    say!("{}", printable(&experiment.resolved.title));
    for (job, cost) in &costs {
        let steps = cost.steps.map_or("adaptive steps".into(), |s| format!("{s:.3e} steps"));
        say!(
            "  {:<16} {:<8} {:<14} {:>8} {:>9}   {}",
            job.run,
            job.plan.engine.name(),
            steps,
            bytes(cost.memory),
            format!("~{}", duration(cost.seconds)),
            job.point.label()
        );
    }
    let mut parts = Vec::new();
    if !costs.is_empty() {
        let total: f64 = costs.iter().map(|(_, c)| c.seconds).sum();
        let stops = |job: &didact_experiment::plan::Job| job.plan.record.events.iter().any(|e| e.stops);
        let sooner = if experiment.jobs.iter().any(stops) { ", less where an event ends a run" } else { "" };
        parts.push(format!("{} runs, about {} of one core{sooner}", costs.len(), duration(total)));
    }
    if experiment.scan_points() > 0 {
        let points = experiment.scan_points();
        parts.push(format!("{points} points of scans, whose cost is not estimated"));
    }
    parts.push(format!("folder {}", experiment.folder_name()));
    say!("  {}", parts.join("; "));
    Ok(Ending::Done)
}
