//! The search for single values: any number of a description, by a scan and a refinement of runs of the equations.

use super::plan::Goal;
use super::summary::{StartSummary, Summary, lines};
use crate::build;
use crate::description::{BaselineName, Description, OptimiseSpec, Overrides};
use crate::overrides;
use crate::schedule::Schedule;
use crate::source::Source;
use didact_math::roots;
use didact_model::engine::Cost;
use didact_model::record::Crossing;
use didact_model::{EndState, Engine, EngineError, Event, Monitor, Problem, Record, Trajectory, observable};
use didact_theory::OrderParameterOde;
use didact_theory::control::scan_values;
use rayon::prelude::*;
use serde_json::{Map, Value};

/// Values of a scan of each kind: switch times have several minima, and windows outside of which nothing is reached.
const SCANNED: usize = 60;
/// Looks at an observable whose integral is wanted.
const LOOKS: usize = 2000;
/// Rounds over several values.
const ROUNDS: usize = 3;

/// A search for single values, as an engine of one run.
pub(super) struct StaticSearch {
    description: Description,
    spec: OptimiseSpec,
    goal: Goal,
    observable: String,
    source: Source,
}

impl StaticSearch {
    pub(super) fn new(
        description: &Description,
        spec: &OptimiseSpec,
        (goal, observable): (Goal, String),
        source: &Source,
    ) -> Self {
        Self {
            description: description.clone(),
            spec: spec.clone(),
            goal,
            observable,
            source: source.clone(),
        }
    }

    /// The changes that give the controls these values.
    fn changes(&self, values: &[f64]) -> Overrides {
        let plain = serde_json::to_value(&self.description).expect("a description is plain data");
        let one = |(control, value): (&crate::description::ControlSpec, &f64)| {
            let whole = overrides::get(&plain, &control.key).is_some_and(Value::is_u64);
            let value = if whole { Value::from(value.round() as u64) } else { Value::from(*value) };
            (control.key.clone(), value)
        };
        self.spec.controls.iter().zip(values).map(one).collect()
    }

    /// A run of the equations at some values, with a record of its own.
    fn trial(&self, values: &[f64], whole_table: bool, monitor: &dyn Monitor) -> Result<Trajectory, String> {
        let changed = overrides::with(&self.description, &self.changes(values), &self.source, "optimise")
            .map_err(|e| e.message)?;
        let (mut record, stages) = build::stages(&changed, &self.source).map_err(|e| e.message)?;
        if !whole_table {
            let end = self.goal.horizon();
            let problem = &stages[stages.len() - 1].draft;
            record.observables = observable::parse(&self.observable, problem).map_err(|e| e.to_string())?;
            record.events.clear();
            record.times = match self.goal {
                Goal::Integral { to } => (0..=LOOKS).map(|i| to * i as f64 / LOOKS as f64).collect(),
                Goal::Final { .. } | Goal::Reach { .. } => vec![end],
            };
            if let Goal::Reach { level, .. } = self.goal {
                let observable = record.observables[0].clone();
                let name = "reached".into();
                record.events =
                    vec![Event { name, observable, level, crossing: Crossing::Falls, stops: true }];
            }
        }
        record.replicas = self.spec.replicas.unwrap_or(1).max(1);
        let schedule = Schedule::new(Box::new(OrderParameterOde::default()), record, stages, &self.source)
            .map_err(|e| e.message)?;
        schedule.run(&OnlyTheEnd(monitor)).map_err(|e| e.to_string())
    }

    /// The objective at some values: the mean over replicas, infinite where nothing is reached or learning diverges.
    fn objective(&self, values: &[f64], monitor: &dyn Monitor) -> f64 {
        let Ok(table) = self.trial(values, false, monitor) else { return f64::INFINITY };
        let replicas = table.outcomes.len() as f64;
        if matches!(self.goal, Goal::Reach { .. }) {
            return table.events[0].times.iter().map(|t| t.unwrap_or(f64::INFINITY)).sum::<f64>() / replicas;
        }
        let mut sum = 0.0;
        for curve in &table.columns[0].curves {
            if curve.len() < table.times.len() {
                return f64::INFINITY;
            }
            sum += match self.goal {
                Goal::Integral { .. } => {
                    let panels = (1..curve.len())
                        .map(|i| 0.5 * (curve[i] + curve[i - 1]) * (table.times[i] - table.times[i - 1]));
                    panels.sum::<f64>()
                }
                _ => curve[curve.len() - 1],
            };
        }
        let mean = sum / replicas;
        if mean.is_nan() { f64::INFINITY } else { mean }
    }

    /// The values as the description gives them.
    fn given(&self) -> Vec<f64> {
        let plain = serde_json::to_value(&self.description).expect("a description is plain data");
        let number = |key: &str| overrides::get(&plain, key).and_then(Value::as_f64).unwrap_or(f64::NAN);
        self.spec.controls.iter().map(|control| number(&control.key)).collect()
    }

    /// The best values and what they give, or none where no value gives anything.
    fn find(&self, monitor: &dyn Monitor) -> Result<Option<(Vec<f64>, f64)>, EngineError> {
        let controls = &self.spec.controls;
        let mut values: Vec<f64> =
            self.given().iter().zip(controls).map(|(v, c)| v.clamp(c.bounds[0], c.bounds[1])).collect();
        let mut best = f64::INFINITY;
        let rounds = if controls.len() == 1 { 1 } else { ROUNDS };
        let part = 1.0 / (rounds * controls.len()) as f64;
        for _ in 0..rounds {
            for (index, control) in controls.iter().enumerate() {
                let [low, high] = control.bounds;
                let mut scanned: Vec<f64> =
                    (0..=SCANNED).map(|i| low + (high - low) * i as f64 / SCANNED as f64).collect();
                if low >= 0.0 {
                    scanned.extend(scan_values((low, high), SCANNED));
                }
                scanned.sort_by(f64::total_cmp);
                scanned.dedup();
                let with = |x: f64| {
                    let mut there = values.clone();
                    there[index] = x;
                    there
                };
                let one = |x: &f64| {
                    if monitor.cancelled() { f64::INFINITY } else { self.objective(&with(*x), monitor) }
                };
                let costs: Vec<f64> = scanned.par_iter().map(one).collect();
                if monitor.cancelled() {
                    return Err(EngineError::Interrupted);
                }
                monitor.advance(0.8 * part);
                let at = (0..costs.len())
                    .min_by(|a, b| costs[*a].total_cmp(&costs[*b]))
                    .expect("values were scanned");
                if !costs[at].is_finite() {
                    monitor.advance(0.2 * part);
                    continue;
                }
                let (low, high) = (scanned[at.saturating_sub(1)], scanned[(at + 1).min(scanned.len() - 1)]);
                let refined = roots::minimum(|x| one(&x), low, high, 1e-7 * (high - low));
                if monitor.cancelled() {
                    return Err(EngineError::Interrupted);
                }
                let (x, cost) = if refined.value < costs[at] {
                    (refined.at, refined.value)
                } else {
                    (scanned[at], costs[at])
                };
                if cost < best {
                    best = cost;
                    values[index] = x;
                }
                monitor.advance(0.2 * part);
            }
        }
        Ok(best.is_finite().then_some((values, best)))
    }
}

/// Passes on the wish to stop; progress is counted by the trial.
struct OnlyTheEnd<'a>(&'a dyn Monitor);

impl Monitor for OnlyTheEnd<'_> {
    fn advance(&self, _fraction: f64) {}
    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}

impl Engine for StaticSearch {
    fn name(&self) -> &'static str {
        "optimise"
    }

    fn admits(&self, problem: &Problem, _record: &Record) -> Result<(), EngineError> {
        if problem.training.samples.is_some() {
            return Err(EngineError::OnePass { engine: self.name() });
        }
        Ok(())
    }

    fn memory(&self, problem: &Problem, record: &Record) -> f64 {
        OrderParameterOde::default().memory(problem, record)
    }

    fn cost(&self, problem: &Problem, record: &Record) -> Cost {
        let one = OrderParameterOde::default().cost(problem, record);
        Cost { seconds: one.seconds * 2.0 * SCANNED as f64 * self.spec.controls.len() as f64, ..one }
    }

    fn stays_at_fixed_points(&self) -> bool {
        true
    }

    fn takes_infinite_dimension(&self) -> bool {
        true
    }

    fn run_with_end_states(
        &self,
        _problem: &Problem,
        _record: &Record,
        monitor: &dyn Monitor,
    ) -> Result<(Trajectory, Vec<EndState>), EngineError> {
        let failed = |reason: String| EngineError::Unsupported {
            engine: "optimise",
            reason,
            hint: "widen the bounds, or give more time".into(),
        };
        let Some((values, objective)) = self.find(monitor)? else {
            return Err(failed("no value within the bounds reaches the objective".into()));
        };
        let given = self.objective(&self.given(), monitor);
        let mut entries = Map::new();
        let mut put = |name: &str, value: f64| {
            if value.is_finite() {
                entries.insert(name.into(), Value::from(value));
            }
        };
        put("objective", objective);
        for (control, value) in self.spec.controls.iter().zip(&values) {
            put(&format!("value:{}", control.key), *value);
        }
        if self.spec.baselines.contains(&BaselineName::Given) {
            put("given", given);
            let gain = 100.0 * (1.0 - objective / given);
            put("gain-given", gain);
            put("gain", gain);
        }
        put("margin", (given - objective) / objective.abs());
        let changes = self.changes(&values);
        let summary = Summary {
            entries,
            starts: vec![StartSummary {
                name: "scan".into(),
                value: Some(objective),
                iterations: 0,
                outcome: "converged".into(),
            }],
            outcome: "converged".into(),
            courses: Vec::new(),
            values: changes.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
            training: lines(&changes),
        };
        let table = self.trial(&values, true, monitor);
        if monitor.cancelled() {
            return Err(EngineError::Interrupted);
        }
        let mut table = table.map_err(failed)?;
        table.engine = self.name().into();
        table.notes.insert(0, serde_json::to_string(&summary).expect("a summary is plain data"));
        Ok((table, Vec::new()))
    }
}
