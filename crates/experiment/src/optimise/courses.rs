//! The search for courses: the optimal control of `didact_theory`, and its table.

use super::plan::Goal;
use super::summary::{SearchMemory, StartSummary, Summary, lines};
use crate::description::{BaselineName, ControlSpec, MethodName, OptimiseSpec};
use didact_math::ode::KeptOptions;
use didact_model::engine::Cost;
use didact_model::observable::{Observable, Snapshot};
use didact_model::trajectory::RecordedColumn;
use didact_model::{EndState, Engine, EngineError, Monitor, Outcome, Overlaps, Problem, Record, Trajectory};
use didact_theory::OrderParameterOde;
use didact_theory::control::{
    Control, ControlError, ControlKey, ControlProblem, MinimumTime, Objective, Optimum, Protocol, Search,
    SearchMethod,
};
use serde_json::{Map, Value};
use std::sync::{Arc, PoisonError};

/// A gradient in units of a run of the engine `ode`, for estimates: the equations forward and transposed, with tighter steps.
const GRADIENT_RUNS: f64 = 40.0;
/// Gradients of one start, with its share of the certificate.
const GRADIENTS: f64 = 150.0;

/// A search for courses, as an engine of one run.
pub(super) struct CourseSearch {
    pub(super) spec: OptimiseSpec,
    pub(super) goal: Goal,
    pub(super) observable: Arc<dyn Observable>,
    pub(super) controls: Vec<(ControlKey, ControlSpec)>,
    pub(super) observed: Vec<Arc<dyn Observable>>,
    pub(super) baselines: Vec<BaselineName>,
    pub(super) memory: Arc<SearchMemory>,
}

/// What was found, whatever the objective.
struct FoundProtocol {
    optimum: Optimum,
    /// J, or T*.
    objective: f64,
    /// The same of every baseline; none where it is never reached.
    baselines: Vec<(BaselineName, Option<f64>)>,
}

impl CourseSearch {
    fn control_problem<'m>(
        &self,
        problem: &Problem,
        seed: u64,
        monitor: &'m dyn Monitor,
    ) -> Result<ControlProblem<'m>, EngineError> {
        let count = if problem.start.is_random() { self.spec.replicas.unwrap_or(1).max(1) } else { 1 };
        let starts: Result<Vec<Overlaps>, _> =
            (0..count).map(|r| problem.start.draw(&problem.setting(seed, r))).collect();
        let controls = self.controls.iter().map(|(key, spec)| Control {
            key: *key,
            bounds: (spec.bounds[0], spec.bounds[1]),
            knots: spec.knots.unwrap_or(40),
        });
        Ok(ControlProblem {
            problem: problem.clone(),
            starts: starts?,
            observable: self.observable.clone(),
            objective: if matches!(self.goal, Goal::Integral { .. }) {
                Objective::Integral
            } else {
                Objective::Final
            },
            horizon: self.goal.horizon(),
            controls: controls.collect(),
            options: KeptOptions::default(),
            monitor,
        })
    }

    fn search(&self, seed: u64) -> Search {
        Search {
            starts: self.spec.starts,
            method: match self.spec.method {
                MethodName::Direct => SearchMethod::Direct,
                MethodName::Sweep => SearchMethod::Sweep,
            },
            tolerance: self.spec.tolerance,
            iterations: self.spec.iterations,
            seed,
            certify: true,
            resume: self.memory.resume.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    fn find(&self, control: &ControlProblem, seed: u64) -> Result<FoundProtocol, EngineError> {
        let failed = |error: ControlError| {
            if let ControlError::Interrupted(so_far) = error {
                *self.memory.left.lock().unwrap_or_else(PoisonError::into_inner) = so_far;
                return EngineError::Interrupted;
            }
            let text = error.to_string();
            let (reason, hint) =
                text.split_once("\n\nhint: ").unwrap_or((&text, "see the guide to optimal protocols"));
            EngineError::Unsupported { engine: "optimise", reason: reason.into(), hint: hint.into() }
        };
        let search = self.search(seed);
        if let Goal::Reach { level, .. } = self.goal {
            let found = control.minimum_time(level, &search).map_err(failed)?;
            let MinimumTime { time, optimum, constant, greedy, given } = found;
            let of = |baseline: &BaselineName| match baseline {
                BaselineName::Constant => constant.as_ref().map(|c| c.1),
                BaselineName::Greedy => greedy,
                BaselineName::Given => given,
            };
            let baselines = self.baselines.iter().map(|b| (*b, of(b))).collect();
            return Ok(FoundProtocol { optimum, objective: time, baselines });
        }
        let optimum = control.optimise(&search).map_err(failed)?;
        let of = |baseline: &BaselineName| match baseline {
            BaselineName::Constant => Some(optimum.constant.value),
            BaselineName::Greedy => optimum.greedy.as_ref().map(|g| g.0),
            BaselineName::Given => Some(optimum.given).filter(|v| v.is_finite()),
        };
        let baselines = self.baselines.iter().map(|b| (*b, of(b))).collect();
        Ok(FoundProtocol { objective: optimum.value, baselines, optimum })
    }

    fn summary(&self, found: &FoundProtocol) -> Summary {
        let mut entries = Map::new();
        let mut put = |name: &str, value: Option<f64>| {
            if let Some(value) = value.filter(|v| v.is_finite()) {
                entries.insert(name.into(), Value::from(value));
            }
        };
        let certificate = &found.optimum.certificate;
        put("objective", Some(found.objective));
        put("constant-rate", found.optimum.constant.values.first().copied());
        for (index, (baseline, value)) in found.baselines.iter().enumerate() {
            put(baseline.word(), *value);
            let gain = value.map(|value| 100.0 * (1.0 - found.objective / value));
            put(&format!("gain-{}", baseline.word()), gain);
            if index == 0 {
                put("gain", gain);
            }
        }
        put("certified", Some(f64::from(u8::from(certificate.certified))));
        put("projected-gradient", Some(certificate.projected_gradient));
        put("sweep-difference", certificate.sweep_difference);
        put("hamiltonian-spread", certificate.hamiltonian_spread);
        put("curvature", certificate.curvature);
        put("hessian", certificate.hessian);
        put("end-rate", certificate.end_rate);
        put("margin", Some(certificate.margin));
        put("knots-difference", certificate.knots_difference);
        let starts = found.optimum.starts.iter().map(|start| StartSummary {
            name: start.name.clone(),
            value: Some(start.value).filter(|v| v.is_finite()),
            iterations: start.iterations,
            outcome: start.outcome.word().into(),
        });
        let courses = self.controls.iter().zip(&found.optimum.protocol);
        let courses = courses.map(|((key, _), course)| (key.path().to_string(), course.clone())).collect();
        let mut summary = Summary {
            entries,
            starts: starts.collect(),
            outcome: found.optimum.outcome.word().into(),
            courses,
            values: Vec::new(),
            training: Vec::new(),
        };
        summary.training = lines(&summary.changes());
        summary
    }

    /// What a user should know of the result.
    fn warnings(&self, found: &FoundProtocol) -> Vec<String> {
        let mut all = Vec::new();
        let certificate = &found.optimum.certificate;
        if !certificate.certified {
            all.push(format!("not certified: {}", certificate.failures.join("; ")));
        }
        for ((key, spec), course) in self.controls.iter().zip(&found.optimum.protocol) {
            let [low, high] = spec.bounds;
            let mut bound = 0.0;
            for pair in 0..course.times.len() - 1 {
                let at = |x: f64| x <= low || x >= high;
                if at(course.values[pair]) && at(course.values[pair + 1]) {
                    bound += course.times[pair + 1] - course.times[pair];
                }
            }
            if bound > 0.5 * course.times[course.times.len() - 1] {
                all.push(format!("`{}` is at a bound on more than half of the interval", key.path()));
            }
        }
        all
    }

    /// The columns of a protocol at some times: the controls, then what is observed; NaN after a divergence.
    fn columns(
        &self,
        control: &ControlProblem,
        protocol: &Protocol,
        times: &[f64],
        prefix: &str,
    ) -> Vec<RecordedColumn> {
        let mut all = Vec::new();
        for ((key, _), course) in self.controls.iter().zip(protocol) {
            let curve = times.iter().map(|t| course.value(*t)).collect();
            all.push(RecordedColumn { name: format!("{prefix}{}", key.column()), curves: vec![curve] });
        }
        let states: Option<Vec<Vec<Overlaps>>> =
            (0..control.starts.len()).map(|start| control.states(protocol, start, times)).collect();
        for observable in &self.observed {
            let mean = |i: usize| match &states {
                Some(all) => {
                    let values =
                        all.iter().map(|s| observable.measure(&Snapshot::new(&s[i], &control.problem)));
                    values.sum::<f64>() / all.len() as f64
                }
                None => f64::NAN,
            };
            let curve = (0..times.len()).map(mean).collect();
            all.push(RecordedColumn { name: format!("{prefix}{}", observable.name()), curves: vec![curve] });
        }
        all
    }
}

impl Engine for CourseSearch {
    fn name(&self) -> &'static str {
        "optimise"
    }

    fn admits(&self, problem: &Problem, _record: &Record) -> Result<(), EngineError> {
        // The columns of a table are not those of a state; all else was checked when the search was planned.
        problem.validate().map_err(EngineError::from)
    }

    fn memory(&self, _problem: &Problem, record: &Record) -> f64 {
        1e7 + record.bytes()
    }

    fn cost(&self, problem: &Problem, record: &Record) -> Cost {
        let run = OrderParameterOde::default().cost(problem, record).seconds;
        let states = if problem.start.is_random() { self.spec.replicas.unwrap_or(1).max(1) } else { 1 };
        Cost {
            steps: None,
            memory: self.memory(problem, record),
            seconds: GRADIENT_RUNS * run * GRADIENTS * self.spec.starts as f64 * f64::from(states),
        }
    }

    fn stays_at_fixed_points(&self) -> bool {
        true
    }

    fn takes_infinite_dimension(&self) -> bool {
        true
    }

    fn run_with_end_states(
        &self,
        problem: &Problem,
        record: &Record,
        monitor: &dyn Monitor,
    ) -> Result<(Trajectory, Vec<EndState>), EngineError> {
        let whole = self.control_problem(problem, record.seed, monitor)?;
        let found = self.find(&whole, record.seed)?;
        let horizon = if matches!(self.goal, Goal::Reach { .. }) { found.objective } else { whole.horizon };
        let control = whole.with_horizon(horizon);
        let protocol = &found.optimum.protocol;
        let mut times: Vec<f64> = protocol.iter().flat_map(|c| c.times.iter().copied()).collect();
        times.extend(record.times.iter().copied().filter(|t| *t <= horizon));
        times.sort_by(f64::total_cmp);
        times.dedup_by(|a, b| (*a - *b).abs() <= 1e-12 * horizon);
        let mut columns = self.columns(&control, protocol, &times, "");
        let momenta = &found.optimum.momenta;
        let between = |of: &dyn Fn(usize) -> f64| -> Vec<f64> {
            let at = |t: &f64| {
                let after = momenta.partition_point(|m| m.time < *t).clamp(1, momenta.len() - 1);
                let (a, b) = (momenta[after - 1].time, momenta[after].time);
                let share = ((t - a) / (b - a)).clamp(0.0, 1.0);
                (1.0 - share) * of(after - 1) + share * of(after)
            };
            times.iter().map(at).collect()
        };
        let products = [
            ("p.f1", between(&|i| momenta[i].drift)),
            ("p.f2", between(&|i| momenta[i].noise)),
            ("H", between(&|i| momenta[i].hamiltonian)),
        ];
        let products =
            products.map(|(name, curve)| RecordedColumn { name: name.into(), curves: vec![curve] });
        drop(columns.splice(self.controls.len()..self.controls.len(), products));
        for baseline in &self.baselines {
            let protocol = match baseline {
                BaselineName::Constant => control.constant(&found.optimum.constant.values),
                BaselineName::Given => control.given(),
                BaselineName::Greedy => match control.greedy(400) {
                    Some((_, course)) => vec![course],
                    None => control.constant(&vec![f64::NAN; self.controls.len()]),
                },
            };
            columns.extend(self.columns(&control, &protocol, &times, &format!("{}/", baseline.word())));
        }
        let summary = self.summary(&found);
        let mut notes = vec![serde_json::to_string(&summary).expect("a summary is plain data")];
        notes.extend(self.warnings(&found));
        let trajectory = Trajectory {
            engine: self.name().into(),
            clock: problem.clock,
            times,
            columns,
            events: Vec::new(),
            outcomes: vec![Outcome::Completed],
            statistics: Vec::new(),
            notes,
        };
        Ok((trajectory, Vec::new()))
    }
}
