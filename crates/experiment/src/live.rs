//! An experiment in memory, step by step: predictions first, simulations replica by replica. Nothing is written.
//!
//! A front end that shows an experiment while somebody changes it asks for what is cheap first and draws what there is. When all
//! parts are done, measures, verdicts and figures are those that [`Experiment::execute`] puts into a folder, to the bit.
//!
//! ```
//! use didact_experiment::live::Live;
//! use didact_experiment::{Experiment, Size, Source};
//! use didact_model::NoMonitor;
//!
//! let text = r#"
//!     title = "One unit"
//!     model = { family = "committee", students = 1, teachers = 1, activation = "erf(z/sqrt2)" }
//!     data = { dimension = 100 }
//!     training = { learning-rate = 1.0 }
//!     start = { q = [[0.5]], r = [[0.1]] }
//!     record = { times = [0, 1], replicas = 12 }
//!     run = [{ name = "theory", engine = "ode" }, { name = "sgd", engine = "reduced" }]
//! "#;
//! let source = Source { name: "one.toml".into(), text: text.into() };
//! let mut live = Live::new(Experiment::new(source, Size::Normal, None).unwrap());
//! live.predict(&NoMonitor).unwrap();
//! assert_eq!(live.waiting(), ["sgd"]);
//! live.simulate(8, &NoMonitor).unwrap();
//! live.simulate(12, &NoMonitor).unwrap();
//! assert!(live.is_complete());
//! ```

use crate::claims::{self, Judged};
use crate::default_figure;
use crate::description::{FigureSpec, Measure, MeasureKind, OptimiseSpec};
use crate::draw::Drawable;
use crate::experiment::{Experiment, Run, Size};
use crate::guard;
use crate::measures::events::EventTimeMeasure;
use crate::measures::value_at::ValueAtMeasure;
use crate::measures::{self, Dependency, Measured};
use crate::quantities::{self, NoAnswer, Scan};
use crate::results::Results;
use crate::source::{Diagnostic, Source};
use didact_figure::Figure;
use didact_model::{EngineError, Monitor, Trajectory};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// The error per step that integrators are allowed while somebody turns a knob; a line is drawn to about a thousandth of a panel.
const HASTY_TOLERANCE: f64 = 1e-5;

/// Why a run has no table yet.
const WAITS: &str = "it is not done yet";

/// The monitor asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted;

/// What the parts of an experiment would take, by the planner.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LivePlan {
    /// Seconds of one core for all predictions.
    pub theory_seconds: f64,
    /// Seconds of one core for all simulations.
    pub simulation_seconds: f64,
    /// Bytes of the largest run.
    pub memory: f64,
    /// Points of scans, which the planner cannot estimate.
    pub scan_points: usize,
}

/// How far a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveProgress {
    /// It is what a run on disk finds.
    Final,
    /// Further replicas will make it more precise.
    Provisional,
    /// A run or scan that it needs has not begun.
    Waiting,
}

/// A measure with how far it is and what it comes from.
#[derive(Debug, Clone)]
pub struct LiveNumber {
    /// What was found.
    pub measured: Measured,
    /// The definition.
    pub kind: MeasureKind,
    /// How far it is.
    pub progress: LiveProgress,
    /// Names of the engines of the runs that it is read off, directly or through other measures.
    pub engines: Vec<String>,
}

/// What is known so far.
#[derive(Debug, Clone)]
pub struct LiveOutcome {
    /// The measures of the description.
    pub measures: Vec<LiveNumber>,
    /// First passages of every event in every run, and the last value of every column.
    pub readings: Vec<LiveNumber>,
    /// Claims with verdicts, and how far the numbers behind them are.
    pub claims: Vec<(Judged, LiveProgress)>,
    /// Figures by name: those of the description, or one that is made for it. What has nothing to draw yet says why.
    pub figures: Vec<(String, Result<Figure, String>)>,
    /// What went wrong.
    pub failures: Vec<String>,
}

/// An experiment of which parts are done.
pub struct Live {
    /// The experiment.
    pub experiment: Experiment,
    results: Results,
    /// Replicas that are done, by point and name of the run; runs that are not begun are not there.
    replicas: BTreeMap<(usize, String), u32>,
    /// Runs that are trained by a protocol, planned once it is found.
    planned: BTreeMap<(usize, String), Run>,
    failures: Vec<String>,
}

impl Experiment {
    /// The experiment with engines that are content with a drawing that moves: the tolerance of integrators is raised to one in a hundred
    /// thousand, and standard deviations of the theory have no numbers yet.
    pub fn hasty(source: Source) -> Result<Self, Diagnostic> {
        let mut description = source.description()?;
        let asked = description.run.clone();
        for run in &mut description.run {
            run.engine = run.engine.in_haste(HASTY_TOLERANCE);
        }
        let mut experiment = Self::of_description(description, source, Size::Normal, None)?;
        // What it says of itself is what was asked for: a reader sees no key that nobody has written.
        for run in &mut experiment.resolved.run {
            if let Some(original) = asked.iter().find(|original| original.name == run.name) {
                run.engine = original.engine.clone();
            }
        }
        Ok(experiment)
    }
}

impl Live {
    /// Of which nothing is done yet.
    pub fn new(experiment: Experiment) -> Self {
        let mut results = Results {
            points: experiment.points.clone(),
            files: experiment.files.clone(),
            ..Results::default()
        };
        for run in &experiment.runs {
            results.tables.insert(place(run), Err(WAITS.into()));
        }
        let (replicas, planned) = (BTreeMap::new(), BTreeMap::new());
        Self { experiment, results, replicas, planned, failures: Vec::new() }
    }

    /// What it would take.
    pub fn plan(&self) -> LivePlan {
        let mut plan = LivePlan { scan_points: self.experiment.scan_points(), ..LivePlan::default() };
        for (run, cost) in self.experiment.runs.iter().zip(self.experiment.costs()) {
            plan.memory = plan.memory.max(cost.memory);
            if predicts(run) {
                plan.theory_seconds += cost.seconds;
            } else {
                plan.simulation_seconds += cost.seconds;
            }
        }
        plan
    }

    /// Computes every run that is a prediction: optimisations among them, then what is trained by what they found.
    pub fn predict(&mut self, monitor: &dyn Monitor) -> Result<(), Interrupted> {
        not_cancelled(monitor)?;
        let all = self.experiment.runs.iter().filter(|run| predicts(run));
        let (first, then): (Vec<&Run>, Vec<&Run>) = all.partition(|run| run.after.is_none());
        let share = 1.0 / (first.len() + then.len()).max(1) as f64;
        let predicted = |runs: Vec<&Run>| -> Vec<_> {
            runs.par_iter()
                .map(|run| {
                    let part = crate::jobs::ProgressShare { monitor, part: share };
                    (place(run), run.schedule.record.replicas, computed(run, || run.schedule.run(&part)))
                })
                .collect()
        };
        let done = predicted(first);
        self.keep(done)?;
        self.plan_with_protocols()?;
        let done = predicted(self.planned.values().filter(|run| predicts(run)).collect());
        self.keep(done)
    }

    /// Plans the runs whose protocols are found; those whose protocol failed have failed.
    fn plan_with_protocols(&mut self) -> Result<(), Interrupted> {
        let mut failed = Vec::new();
        for run in &self.experiment.runs {
            let Some(after) = &run.after else { continue };
            let table = self.results.tables.get(&(run.point.index, after.table.clone()));
            match self.experiment.planned_with(run, table) {
                Ok(Some(planned)) => {
                    self.planned.insert(place(run), planned);
                }
                Ok(None) => {}
                Err(why) => failed.push((place(run), 0, Err(Ended::Failed(why)))),
            }
        }
        self.keep(failed)
    }

    /// The run as it is computed: with its protocol where it is trained by one. `None` before that is found.
    fn as_planned<'a>(&'a self, run: &'a Run) -> Option<&'a Run> {
        if run.after.is_some() { self.planned.get(&place(run)) } else { Some(run) }
    }

    /// Computes the scans. `may_go_on` is asked before every point; once it says no, scans that are not whole are left out.
    pub fn scan(
        &mut self,
        monitor: &dyn Monitor,
        may_go_on: impl Fn() -> bool + Sync,
    ) -> Result<bool, Interrupted> {
        let experiment = &self.experiment;
        for (spec, grid) in experiment.resolved.scan.iter().zip(&experiment.grids) {
            let rows: Option<Vec<_>> = grid
                .par_iter()
                .map(|point| {
                    if monitor.cancelled() || !may_go_on() {
                        return None;
                    }
                    let (inputs, _) = experiment.inputs_at(spec, point);
                    let answer = quantities::compute(&spec.quantity, &inputs).map(|answer| {
                        answer.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
                    });
                    Some((point.clone(), answer))
                })
                .collect();
            if monitor.cancelled() {
                return Err(Interrupted);
            }
            let Some(rows) = rows else { return Ok(false) };
            let failed = |row: &(_, Result<_, NoAnswer>)| matches!(row.1, Err(NoAnswer::Failed(_)));
            let scan = Scan { name: spec.name.clone(), rows };
            if scan.rows.iter().any(failed) {
                self.failures.extend(scan.failures());
            }
            self.results.scans.push(scan);
        }
        Ok(true)
    }

    /// Simulates until every run has so many replicas, or all that it should have.
    pub fn simulate(&mut self, replicas: u32, monitor: &dyn Monitor) -> Result<(), Interrupted> {
        not_cancelled(monitor)?;
        let runs: Vec<(&Run, u32)> = self
            .experiment
            .runs
            .iter()
            .filter(|run| !predicts(run))
            .filter_map(|run| self.as_planned(run))
            .map(|run| (run, self.replicas.get(&place(run)).copied().unwrap_or(0)))
            .filter(|(run, have)| *have < replicas.min(run.schedule.record.replicas))
            .collect();
        let share = 1.0 / runs.len().max(1) as f64;
        let done: Vec<_> = runs
            .par_iter()
            .map(|(run, have)| {
                let part = crate::jobs::ProgressShare { monitor, part: share };
                let end = replicas.min(run.schedule.record.replicas);
                (place(run), end, computed(run, || run.schedule.run_replicas(*have..end, &part)))
            })
            .collect();
        self.keep(done)
    }

    /// The largest number of replicas of a simulation.
    pub fn most_replicas(&self) -> u32 {
        let simulated = self.experiment.runs.iter().filter(|run| !predicts(run));
        simulated.map(|run| run.schedule.record.replicas).max().unwrap_or(0)
    }

    /// Names of the runs that have not begun at some point of the sweep.
    pub fn waiting(&self) -> Vec<&str> {
        let waits = |run: &&Run| !self.replicas.contains_key(&place(run));
        let names: BTreeSet<&str> =
            self.experiment.runs.iter().filter(waits).map(|r| r.name.as_str()).collect();
        names.into_iter().collect()
    }

    /// Whether every run has all its replicas and every scan is there.
    pub fn is_complete(&self) -> bool {
        self.unfinished().is_empty() && self.results.scans.len() == self.experiment.resolved.scan.len()
    }

    /// Names of the runs that lack replicas at some point of the sweep.
    fn unfinished(&self) -> BTreeSet<&str> {
        let lacks = |run: &&Run| {
            let have = self.replicas.get(&place(run)).copied().unwrap_or(0);
            have < run.schedule.record.replicas
        };
        self.experiment.runs.iter().filter(lacks).map(|run| run.name.as_str()).collect()
    }

    /// Keeps tables, joining new replicas to those that are there.
    fn keep(&mut self, done: Vec<(Place, u32, Result<Trajectory, Ended>)>) -> Result<(), Interrupted> {
        for (place, replicas, table) in done {
            match table {
                Ok(table) => {
                    match self.results.tables.get_mut(&place) {
                        Some(Ok(known)) => {
                            known.append_replicas(table);
                            // Remarks of an engine come with every part of its replicas; each is wanted once.
                            let mut seen = BTreeSet::new();
                            known.notes.retain(|note| seen.insert(note.clone()));
                        }
                        _ => {
                            self.results.tables.insert(place.clone(), Ok(table));
                        }
                    }
                    self.replicas.insert(place, replicas);
                }
                Err(Ended::Interrupted) => return Err(Interrupted),
                Err(Ended::Failed(why)) => {
                    self.failures.push(format!("run {}: {why}", place.1));
                    self.results.tables.insert(place.clone(), Err(why));
                    // It will not be tried again.
                    self.replicas.insert(place, u32::MAX);
                }
            }
        }
        Ok(())
    }

    /// Measures, verdicts and figures of what is there.
    pub fn outcome(&self) -> LiveOutcome {
        let description = &self.experiment.resolved;
        let (measured, mut failures) = measures::evaluate(&description.measure, &self.results);
        failures.extend(self.failures.iter().cloned());
        let of = |measure: &Measure, measured: &Measured| LiveNumber {
            measured: measured.clone(),
            kind: measure.kind.clone(),
            progress: self.progress(&measure.kind),
            engines: self.engines(&measure.kind),
        };
        let Experiment { size, points, .. } = &self.experiment;
        let judged = claims::judge(self.experiment.claims(), *size, points, &measured);
        let how_far = |name: &str| {
            let measure = description.measure.iter().find(|m| m.name == name);
            measure.map_or(LiveProgress::Final, |m| self.progress(&m.kind))
        };
        let claims = self.experiment.claims().zip(judged).map(|(claim, judged)| {
            let compared = claim.check.equals_measure.as_deref().map_or(LiveProgress::Final, how_far);
            (judged, how_far(&claim.measure).and(compared))
        });
        let readings = self.readings();
        let (read, _) = measures::evaluate(&readings, &self.results);
        LiveOutcome {
            measures: description.measure.iter().zip(&measured).map(|(m, found)| of(m, found)).collect(),
            readings: readings.iter().zip(&read).map(|(m, found)| of(m, found)).collect(),
            claims: claims.collect(),
            figures: self.figures(&measured),
            failures,
        }
    }

    fn figures(&self, measured: &[Measured]) -> Vec<(String, Result<Figure, String>)> {
        let drawable = Drawable { results: &self.results, measured };
        let own = &self.experiment.resolved.figure;
        let made: Vec<FigureSpec>;
        let specs = if own.is_empty() {
            made = default_figure::of(&self.experiment, &self.results).into_iter().collect();
            &made
        } else {
            own
        };
        let draw = |spec: &FigureSpec| {
            let drawn = guard::caught(|| format!("figure `{}`", spec.name), || drawable.figure(spec));
            let drawn = drawn.and_then(|figure| figure).and_then(|figure| {
                let empty = |panel: &didact_figure::Panel| panel.layers.is_empty() && panel.insets.is_empty();
                if figure.panels.iter().all(empty) {
                    Err("nothing of it is done yet".into())
                } else {
                    Ok(figure)
                }
            });
            (spec.name.clone(), drawn)
        };
        specs.iter().map(draw).collect()
    }

    /// The first passage of every event and the last value of every column, as measures.
    fn readings(&self) -> Vec<Measure> {
        let mut all = Vec::new();
        let mut seen = BTreeSet::new();
        for run in &self.experiment.runs {
            if !seen.insert(run.name.as_str()) {
                continue;
            }
            let record = &run.schedule.record;
            for event in &record.events {
                let kind = EventTimeMeasure { run: run.name.clone(), event: event.name.clone() };
                let name = format!("{} ({})", event.name, run.name);
                all.push(Measure { name, kind: MeasureKind::EventTime(kind) });
            }
            for observable in &record.observables {
                let kind = ValueAtMeasure {
                    run: run.name.clone(),
                    observable: observable.name(),
                    time: record.end(),
                };
                let name = format!("{} at the end ({})", observable.name(), run.name);
                all.push(Measure { name, kind: MeasureKind::ValueAt(kind) });
            }
        }
        all
    }

    /// How far the runs, scans and measures are that a measure depends on.
    fn progress(&self, kind: &MeasureKind) -> LiveProgress {
        let waiting = self.waiting();
        let unfinished = self.unfinished();
        let mut progress = LiveProgress::Final;
        self.each_dependency(kind, 0, &mut |dependency| {
            let own = match dependency {
                Dependency::Scan(scan) if self.results.scans.iter().all(|s| s.name != scan.name) => {
                    LiveProgress::Waiting
                }
                Dependency::Optimise(named)
                    if waiting.contains(&OptimiseSpec::table_name(named.name).as_str()) =>
                {
                    LiveProgress::Waiting
                }
                other => match other.run() {
                    Some(run) if waiting.contains(&run) => LiveProgress::Waiting,
                    Some(run) if unfinished.contains(run) => LiveProgress::Provisional,
                    _ => LiveProgress::Final,
                },
            };
            progress = progress.and(own);
        });
        progress
    }

    /// The engines of the runs that a measure depends on.
    fn engines(&self, kind: &MeasureKind) -> Vec<String> {
        let mut engines = BTreeSet::new();
        self.each_dependency(kind, 0, &mut |dependency| {
            let own = dependency.run().and_then(|name| self.experiment.runs.iter().find(|r| r.name == name));
            engines.extend(own.map(|run| run.schedule.engine.name().to_string()));
        });
        engines.into_iter().collect()
    }

    /// Every dependency of a measure, through other measures too.
    fn each_dependency(&self, kind: &MeasureKind, depth: usize, visit: &mut dyn FnMut(&Dependency)) {
        let measures = &self.experiment.resolved.measure;
        for dependency in kind.depends_on() {
            visit(&dependency);
            if let Dependency::Measure(named) = &dependency
                && let Some(other) = measures.iter().find(|m| m.name == named.name)
                && depth < measures.len()
            {
                self.each_dependency(&other.kind, depth + 1, visit);
            }
        }
    }
}

impl LiveProgress {
    /// That of a number that needs both.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Waiting, _) | (_, Self::Waiting) => Self::Waiting,
            (Self::Provisional, _) | (_, Self::Provisional) => Self::Provisional,
            _ => Self::Final,
        }
    }

    /// As a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Final => "final",
            Self::Provisional => "provisional",
            Self::Waiting => "waiting",
        }
    }
}

/// Where a table belongs: the point and the name of the run.
type Place = (usize, String);

fn place(run: &Run) -> Place {
    (run.point.index, run.name.clone())
}

/// Whether a run is a prediction: its engine takes d to infinity, so that it has no replicas to wait for.
fn predicts(run: &Run) -> bool {
    run.schedule.engine.takes_infinite_dimension()
}

/// Engines ask now and then; a short run may be over before the first time.
fn not_cancelled(monitor: &dyn Monitor) -> Result<(), Interrupted> {
    if monitor.cancelled() { Err(Interrupted) } else { Ok(()) }
}

/// Why there is no table.
enum Ended {
    Interrupted,
    Failed(String),
}

fn computed(run: &Run, work: impl FnOnce() -> Result<Trajectory, EngineError>) -> Result<Trajectory, Ended> {
    let with = || format!("run `{}` at {}", run.name, run.point.label());
    match guard::caught(with, work) {
        Ok(Ok(table)) => Ok(table),
        Ok(Err(EngineError::Interrupted)) => Err(Ended::Interrupted),
        Ok(Err(error)) => Err(Ended::Failed(error.to_string())),
        Err(why) => Err(Ended::Failed(why)),
    }
}

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;
