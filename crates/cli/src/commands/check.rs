//! `didact check`: what would run.

use crate::exit::Ending;
use crate::units::{bytes, duration};
use didact_experiment::source::printable;
use didact_experiment::{Diagnostic, Experiment, Run, Size, Source};
use serde_json::json;
use std::path::Path;

/// Plans the sizes that were not asked for too: what `--quick` and `--full` change is a part of the description.
fn other_sizes(source: &Source, asked: Size) -> Result<(), Diagnostic> {
    for (size, flag) in [(Size::Quick, "--quick"), (Size::Normal, "neither size"), (Size::Full, "--full")] {
        if size == asked {
            continue;
        }
        match Experiment::new(source.clone(), size, None) {
            // That this machine is too small for it says nothing about the description.
            Err(mut error) if !error.is_of_this_machine() => {
                error.message = format!("{} (with {flag})", error.message);
                return Err(error);
            }
            _ => {}
        }
    }
    Ok(())
}

pub(crate) fn check(file: &Path, size: Size, as_json: bool) -> Result<Ending, Diagnostic> {
    let source = Source::read(file)?;
    let experiment = Experiment::new(source.clone(), size, None)?;
    other_sizes(&source, size)?;
    for remark in experiment.remarks() {
        complain!("warning: {remark}");
    }
    for run in &experiment.runs {
        if let Err(refusal) = run.schedule.fits() {
            let message = Diagnostic::new(refusal).message;
            complain!("warning: run `{}` would fail on this machine: {message}", run.name);
        }
    }
    let costs: Vec<_> = experiment.runs.iter().zip(experiment.costs()).collect();
    if as_json {
        let runs: Vec<_> = costs
            .iter()
            .map(|(run, cost)| {
                json!({"run": run.name, "engine": run.schedule.engine.name(), "point": run.point.values,
                       "steps": cost.steps, "memory-bytes": cost.memory, "seconds": cost.seconds})
            })
            .collect();
        say!(
            "{:#}",
            json!({"title": experiment.resolved.title, "folder": experiment.folder_name(), "jobs": runs,
                   "scan-points": experiment.scan_points()})
        );
        return Ok(Ending::Done);
    }
    say!("{}", printable(&experiment.resolved.title));
    for (run, cost) in &costs {
        let steps = cost.steps.map_or("adaptive steps".into(), |s| format!("{s:.3e} steps"));
        say!(
            "  {:<16} {:<8} {:<14} {:>8} {:>9}   {}",
            run.name,
            run.schedule.engine.name(),
            steps,
            bytes(cost.memory),
            format!("~{}", duration(cost.seconds)),
            run.point.label()
        );
    }
    let mut parts = Vec::new();
    if !costs.is_empty() {
        let total: f64 = costs.iter().map(|(_, c)| c.seconds).sum();
        let stops = |run: &Run| run.schedule.record.events.iter().any(|e| e.stops);
        let sooner = if experiment.runs.iter().any(stops) {
            ", as far as theory expects events to end them"
        } else {
            ""
        };
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
