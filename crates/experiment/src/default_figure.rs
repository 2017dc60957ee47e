//! The figure of a description that has none: what was recorded against time, or a scan against its input.

use crate::description::{FigureSpec, PanelSpec, ScanSpec, Series, SeriesStyle};
use crate::experiment::{Experiment, Run};
use crate::quantities;
use crate::results::Results;
use didact_figure::{Axis, Legend, ScaleKind};
use std::collections::BTreeSet;

/// Curves of one panel; more are hard to tell apart.
const CURVES: usize = 6;

/// A figure of the results so far: losses in one panel, all other columns in another, predictions as lines and simulations as
/// markers; without runs the first entry of every scan. `None` where there is neither.
pub(crate) fn of(experiment: &Experiment, results: &Results) -> Option<FigureSpec> {
    let first = experiment.runs.first();
    let panels: Vec<PanelSpec> = match first {
        Some(first) => of_runs(experiment, first, results),
        None => experiment.resolved.scan.iter().filter_map(of_scan).take(4).collect(),
    };
    let legend = if panels.iter().any(|p| p.series.len() > 1) { Legend::Bottom } else { Legend::None };
    (!panels.is_empty()).then(|| FigureSpec {
        name: "overview".into(),
        title: None,
        caption: None,
        columns: None,
        legend,
        width: None,
        panel: panels,
    })
}

fn of_runs(experiment: &Experiment, first: &Run, results: &Results) -> Vec<PanelSpec> {
    let columns: Vec<String> = first.schedule.record.observables.iter().map(|o| o.name()).collect();
    let (losses, others): (Vec<&String>, Vec<&String>) = columns.iter().partition(|c| c.ends_with("loss"));
    let names: BTreeSet<&str> = experiment.runs.iter().map(|run| run.name.as_str()).collect();
    let times = &first.schedule.record.times;
    let spread = times.iter().copied().find(|t| *t > 0.0).zip(times.last().copied());
    // Saved times that span decades are meant to be seen so.
    let log_times =
        spread.is_some_and(|(first, last)| times.len() > 4 && last / first > 10.0 * times.len() as f64);
    let x = Axis { label: first.schedule.clock().label().into(), ..scaled(log_times) };
    let mut panels = Vec::new();
    for chosen in [losses, others] {
        let mut series = Vec::new();
        for column in chosen.iter().take(CURVES) {
            for name in &names {
                let run = experiment.runs.iter().find(|run| run.name == *name).expect("a name of a run");
                if run.schedule.record.observables.iter().all(|o| o.name() != **column) {
                    continue;
                }
                let theory = run.schedule.engine.takes_infinite_dimension();
                let swept: String = run.point.values.keys().map(|key| format!(", {{{key}}}")).collect();
                let by = if names.len() > 1 { format!(" ({name})") } else { String::new() };
                series.push(Series {
                    run: Some((*name).to_string()),
                    y: Some((*column).clone()),
                    style: if theory { SeriesStyle::Line } else { SeriesStyle::Markers },
                    every: (!theory).then_some(times.len().div_ceil(25)),
                    legend: Some(format!("{column}{by}{swept}")),
                    group: Some(format!("{column}{swept}")),
                    ..Series::default()
                });
            }
        }
        let Some(label) = chosen.first() else { continue };
        let label = if chosen.len() > 1 { String::new() } else { (*label).clone() };
        // A loss that is positive everywhere is looked at in decades.
        let positive = chosen.iter().all(|column| column.ends_with("loss") && is_positive(results, column));
        let y = Axis { label, ..scaled(positive) };
        panels.push(PanelSpec { x: x.clone(), y, series, ..PanelSpec::default() });
    }
    panels
}

fn is_positive(results: &Results, column: &str) -> bool {
    let tables = results.tables.values().flatten();
    let mut values = tables.filter_map(|t| t.curves(column)).flatten().flatten().peekable();
    values.peek().is_some() && values.all(|value| *value > 0.0)
}

fn of_scan(scan: &ScanSpec) -> Option<PanelSpec> {
    let x = scan.over.keys().next()?;
    let y = *quantities::find(&scan.quantity).ok()?.outputs.first()?;
    let series = Series {
        scan: Some(scan.name.clone()),
        x: Some(x.clone()),
        y: Some(y.into()),
        legend: Some(format!("{y} ({})", scan.name)),
        ..Series::default()
    };
    let axis = |label: &str| Axis { label: label.into(), ..Axis::default() };
    Some(PanelSpec { x: axis(x), y: axis(y), series: vec![series], ..PanelSpec::default() })
}

fn scaled(log: bool) -> Axis {
    Axis { scale: if log { ScaleKind::Log } else { ScaleKind::Linear }, ..Axis::default() }
}
