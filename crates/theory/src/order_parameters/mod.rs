//! The order-parameter equations of one-pass SGD, for any rule.

mod flow;
mod numerical;
pub(crate) mod overlap_flow;
pub(crate) mod row_flow;
mod ways_flow;

use crate::fluctuations::{Deviations, FluctuatingOde, FluctuationsKey, FluctuationsWord};
use didact_math::linalg::Mat;
use didact_math::ode::{self, Direction, Method, Options, Saving, Solution, Stop, VectorField};
use didact_model::averages::time_of_call;
use didact_model::engine::{Cost, EngineOptions, OptionError};
use didact_model::observable::Snapshot;
use didact_model::timed::{Losses, measured_once, seconds_of_looks};
use didact_model::{
    EndState, Engine, EngineError, Monitor, Needed, Outcome, Overlaps, Problem, Record, Recorder, Shape,
    Statistics, Trajectory, Way,
};
use flow::Flow;
pub use numerical::Numerical;
use overlap_flow::{Layout, OverlapFlow};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// Averages of a run of usual length that are not continued from earlier ones: half of the right-hand sides of a multistep method.
const NUMERICAL_CALLS: f64 = 1e3;

/// Closed forms that take longer than this are not timed, in seconds.
const LONGEST_TIMED_CALL: f64 = 0.02;

/// Right-hand sides in closed form of a run of usual length.
const CLOSED_CALLS: f64 = 1.5e3;

/// Products of a right-hand side below which threads cost more than they give.
const WORTH_THREADS: usize = 2_000_000;

/// The limit d → ∞ of the overlaps, integrated with error control.
#[derive(Debug, Clone)]
pub struct OrderParameterOde {
    /// Integrator and tolerances.
    pub options: Options,
    /// Without the term of second order in the learning rate this is gradient flow on the population loss.
    pub needed: Needed,
    /// What is done where averages have no closed form.
    pub numerical: Numerical,
}

impl Default for OrderParameterOde {
    /// Eighth order, relative tolerance 1e-9, steps that land on the saved times, quadratic term included.
    fn default() -> Self {
        let options = Options {
            method: Method::Dop853,
            relative: 1e-9,
            // The product and not 1e-12, which differs in the last bit: a description gives the same numbers.
            absolute: 1e-9 * 1e-3,
            saving: Saving::Landing,
            ..Options::default()
        };
        Self { options, needed: Needed::DriftAndNoise, numerical: Numerical::USUAL }
    }
}

/// The options of the engine `ode`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct OdeOptions {
    /// Keep the term of second order in the learning rate.
    pub quadratic_term: bool,
    /// Relative tolerance of a step; the absolute one is a thousandth of it. 1e-9 unless given. Where averages have no closed form it is
    /// the relative error of the run instead, 1e-6 unless given, shared between integrator and averages.
    pub tolerance: Option<f64>,
    /// `explicit` (order 8), `multistep`, `stiff` or `stabilised`. Unless given, `explicit` where averages have closed forms, and
    /// `multistep`, which needs the fewest of them, where they have not.
    pub method: Option<OdeMethod>,
    /// `true`: beside every column `o` the standard deviation of one run at `data.dimension`, as `sd(o)`, and beside every event that of
    /// its time. `"scaled"`: the limit of sqrt(d) times it, as `scaled-sd(o)`, which needs no dimension. `"later"`: the columns of `true`
    /// without numbers, as the explorer asks for them while a knob turns.
    pub fluctuations: FluctuationsKey,
    /// Moves the columns by the shift of the mean at order 1/d; with `fluctuations = "scaled"` it is in columns `scaled-shift(o)`.
    pub mean_correction: bool,
}

/// Integrators by their use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OdeMethod {
    /// Dormand-Prince 8(5,3).
    #[default]
    Explicit,
    /// Adams of variable order: the fewest evaluations of a smooth flow over a long time.
    Multistep,
    /// Rosenbrock, with a dense Jacobian.
    Stiff,
    /// Runge-Kutta-Chebyshev, for many mildly stiff equations.
    Stabilised,
}

impl Default for OdeOptions {
    fn default() -> Self {
        Self {
            quadratic_term: true,
            tolerance: None,
            method: None,
            fluctuations: FluctuationsKey::default(),
            mean_correction: false,
        }
    }
}

impl EngineOptions for OdeOptions {
    const ABOUT: &'static str =
        "order-parameter equations: the limit of infinite dimension, with error control";

    fn engine(&self) -> Result<Box<dyn Engine>, OptionError> {
        let relative = self.tolerance.unwrap_or(1e-9);
        if !(relative > 0.0 && relative < 1.0) {
            let problem = format!("is {relative}; use a number between 0 and 1");
            return Err(OptionError { option: "tolerance", problem });
        }
        let method = match self.method.unwrap_or_default() {
            OdeMethod::Explicit => Method::Dop853,
            OdeMethod::Multistep => Method::Adams,
            OdeMethod::Stiff => Method::Stiff,
            OdeMethod::Stabilised => Method::Stabilised,
        };
        let options = Options {
            method,
            relative,
            absolute: relative * 1e-3,
            // Steps cut short would spoil the memory of a multistep method.
            saving: if method == Method::Adams { Saving::Dense } else { Saving::Landing },
            ..Options::default()
        };
        let needed = if self.quadratic_term { Needed::DriftAndNoise } else { Needed::Drift };
        let numerical = Numerical::Budget {
            error: self.tolerance.unwrap_or(Numerical::USUAL_ERROR),
            any_method: self.method.is_none(),
        };
        let mean = OrderParameterOde { options, needed, numerical };
        let (scaled, deviations) = match self.fluctuations {
            FluctuationsKey::Flag(true) => (false, Deviations::Now),
            FluctuationsKey::Named(FluctuationsWord::Scaled) => (true, Deviations::Now),
            // A mean that is moved by its fluctuations needs them.
            FluctuationsKey::Named(FluctuationsWord::Later) if self.mean_correction => {
                (false, Deviations::Now)
            }
            FluctuationsKey::Named(FluctuationsWord::Later) => (false, Deviations::Later),
            FluctuationsKey::Flag(false) if self.mean_correction => {
                return Ok(Box::new(FluctuatingOde {
                    mean,
                    deviations: Deviations::Never,
                    scaled: false,
                    mean_correction: true,
                }));
            }
            FluctuationsKey::Flag(false) => return Ok(Box::new(mean)),
        };
        Ok(Box::new(FluctuatingOde { mean, deviations, scaled, mean_correction: self.mean_correction }))
    }

    fn in_haste(&self, error: f64) -> Self {
        Self {
            tolerance: Some(self.tolerance.map_or(error, |own| own.max(error))),
            fluctuations: match self.fluctuations {
                FluctuationsKey::Flag(true) => FluctuationsKey::Named(FluctuationsWord::Later),
                asked => asked,
            },
            ..*self
        }
    }
}

impl OrderParameterOde {
    /// The equations without the term of second order in the learning rate.
    pub fn gradient_flow() -> Self {
        Self { needed: Needed::Drift, ..Self::default() }
    }
}

impl OrderParameterOde {
    /// The time derivative (per unit of the clock) of the overlaps at the start of replica 0; frozen blocks are 0.
    pub fn initial_derivative(&self, problem: &Problem) -> Result<Overlaps, EngineError> {
        problem.validate()?;
        let start = problem.start.draw(&problem.setting(0, 0))?;
        let mut flow = OverlapFlow::new(problem, &start, self.needed);
        let state = flow.layout.pack(&start);
        let mut derivative = vec![0.0; state.len()];
        flow.derivative(0.0, &state, &mut derivative);
        let p = start.shape().rows();
        let zero = Overlaps::from_engine(
            start.shape(),
            vec![Mat::zeros(p, p); start.blocks.len()],
            vec![0.0; start.scalars.len()],
        );
        Ok(Layout { shape: start.shape(), start: zero }.unpack(&derivative))
    }
}

impl OrderParameterOde {
    /// How long averages over the fields take by the clock; `None` where they have closed forms.
    pub fn seconds_per_average(&self, problem: &Problem) -> Option<f64> {
        let (needed, accuracy) = (self.needed, self.numerical.accuracy());
        measured_once(problem, &format!("averages {needed:?} within {accuracy:?}"), || {
            let call = time_of_call(&*problem.rule, needed, accuracy);
            (!call.closed).then_some(call.seconds)
        })
    }

    /// The same for closed forms.
    fn seconds_per_closed_average(&self, problem: &Problem) -> f64 {
        let needed = self.needed;
        let seconds = measured_once(problem, &format!("closed averages {needed:?}"), || {
            Some(time_of_call(&*problem.rule, needed, None).seconds)
        });
        seconds.unwrap_or(0.0)
    }
}

/// How many solutions a run needs: a start that is the same for all replicas needs one.
fn solutions(problem: &Problem, record: &Record) -> f64 {
    if problem.start.is_random() { f64::from(record.replicas) } else { 1.0 }
}

impl Engine for OrderParameterOde {
    fn name(&self) -> &'static str {
        "ode"
    }

    fn replicas_stand_alone(&self) -> bool {
        true
    }

    fn memory(&self, problem: &Problem, record: &Record) -> f64 {
        let (rows, blocks) = (problem.rule.shape().rows() as f64, problem.spectrum.len() as f64);
        let at_a_time = (rayon::current_num_threads() as f64).min(solutions(problem, record));
        // A stiff method keeps the Jacobian and its LU factors, n x n each.
        let n = flow::variables(problem, self.needed) as f64;
        let matrices = if self.options.method == Method::Stiff { 2.0 * n * n * 8.0 } else { 0.0 };
        // State, stages of the integrator and buffers of the right-hand side.
        let vectors = 20.0 * blocks * rows * rows * 8.0;
        vectors + at_a_time * matrices + record.bytes()
    }

    fn cost(&self, problem: &Problem, record: &Record) -> Cost {
        let (rows, blocks) = (problem.rule.shape().rows() as f64, problem.spectrum.len() as f64);
        let call = 2e-7 + blocks * rows.powi(3) * 1e-9 + rows.powi(4) * 2e-10;
        // Averages without closed forms cost what they cost, by the rule and its units: one of them is timed. A single call for
        // very many rows would take seconds.
        let timed = if call < LONGEST_TIMED_CALL { self.seconds_per_average(problem) } else { None };
        let averages = match timed {
            Some(seconds) => NUMERICAL_CALLS * seconds,
            None if call < LONGEST_TIMED_CALL => {
                let own = self.seconds_per_closed_average(problem);
                CLOSED_CALLS * call.max(own + blocks * rows.powi(3) * 1e-9)
            }
            None => CLOSED_CALLS * call,
        };
        let seconds = averages + seconds_of_looks(problem, record, Losses::Averages);
        Cost {
            steps: None,
            memory: self.memory(problem, record),
            seconds: solutions(problem, record) * seconds,
        }
    }

    fn stays_at_fixed_points(&self) -> bool {
        true
    }

    fn refuses(&self, way: Way) -> Option<(&'static str, &'static str)> {
        (way == Way::Batches).then_some((
            "choose batches of a training set: its samples are fresh",
            "use \"full-batch\" or \"dmft\"",
        ))
    }

    fn admits(&self, problem: &Problem, record: &Record) -> Result<(), EngineError> {
        if problem.training.samples.is_some() {
            return Err(EngineError::OnePass { engine: self.name() });
        }
        if record.needs_training_set() {
            return Err(EngineError::NoTrainingSet { engine: self.name() });
        }
        self.admits_training(problem, record)?;
        ways_flow::admits(problem, record)
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
        problem.validate()?;
        record.validate()?;
        self.admits(problem, record)?;
        // A start that is the same for all needs one solution only.
        let numbers = record.replica_numbers();
        let numbers = if problem.start.is_random() { numbers } else { numbers.start..numbers.start + 1 };
        let replicas = numbers.len() as u32;
        let solved: Result<Vec<(Recorder, Vec<String>)>, EngineError> =
            numbers.into_par_iter().map(|r| self.integrate(problem, record, r, replicas, monitor)).collect();
        let (recorders, remarks): (Vec<_>, Vec<_>) = solved?.into_iter().unzip();
        let (mut trajectory, end_states) = Trajectory::of_replicas(self.name(), problem, record, recorders);
        let note = |(index, remarks): (usize, Vec<String>)| {
            let replica = record.first_replica as usize + index;
            (!remarks.is_empty()).then(|| format!("replica {replica}: {}", remarks.join("; ")))
        };
        trajectory.notes = remarks.into_iter().enumerate().filter_map(note).collect();
        Ok((trajectory, end_states))
    }
}

impl OrderParameterOde {
    /// One replica, and what there is to remark about it.
    fn integrate<'r>(
        &self,
        problem: &Problem,
        record: &'r Record,
        replica: u32,
        replicas: u32,
        monitor: &dyn Monitor,
    ) -> Result<(Recorder<'r>, Vec<String>), EngineError> {
        if !problem.training.is_plain() {
            return ways_flow::integrate(self, problem, record, (replica, replicas), monitor);
        }
        let start = problem.start.draw(&problem.setting(record.seed, replica))?;
        let (mut flow, state) = Flow::new(problem, &start, self.needed);
        flow.set_accuracy(self.numerical.accuracy());
        flow.field().derivative(0.0, &state, &mut vec![0.0; state.len()]);
        let closed = flow.worst_error() == 0.0;
        let numerical = self.numerical.at_best(flow.relative_error());
        let options = if closed { self.options.clone() } else { numerical.options(&self.options) };
        let layout = flow.layout();
        let events: Vec<ode::OdeEvent> = record
            .events
            .iter()
            .map(|event| ode::OdeEvent {
                name: event.name.clone(),
                function: Box::new(|_, state: &[f64]| {
                    let overlaps = layout.unpack(state);
                    event.excess(event.observable.measure(&Snapshot::new(&overlaps, problem)))
                }),
                direction: Direction::Rising,
                terminal: event.stops,
            })
            .collect();
        let end = record.end();
        let mut done = 0.0;
        let mut watch = |time: f64| {
            let fraction = if end > 0.0 { time / end } else { 1.0 };
            monitor.advance((fraction - done) / f64::from(replicas));
            done = fraction;
            if monitor.cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let request = ode::Request {
            start: 0.0,
            state: &state,
            end,
            save_at: &record.times,
            events: &events,
            options: &options,
        };
        let solution = ode::solve_watched(flow.field(), &request, &mut watch)?;
        let outcome = outcome(&solution, record, replica)?;
        let mut recorder = Recorder::new(record);
        for state in &solution.states {
            recorder.save(&Snapshot::new(&layout.unpack(state), problem));
        }
        for occurrence in &solution.occurrences {
            recorder.note_passage(occurrence.event, occurrence.time);
        }
        recorder.set_statistics(statistics(&solution, flow.worst_error()));
        recorder.end(outcome, solution.last_time, layout.unpack(&solution.last_state), None);
        let mut remarks: Vec<String> =
            problem.about.warning(problem).into_iter().chain(problem.about.invariance(&start)).collect();
        if let Some((i, j)) = equal_rows(&start) {
            remarks.push(format!("rows {i} and {j} start equal, so only rounding can tell them apart"));
        }
        Ok((recorder, remarks))
    }
}

fn statistics(solution: &Solution, quadrature_error: f64) -> Statistics {
    let report = &solution.report;
    Statistics {
        accepted_steps: report.steps,
        rejected_steps: report.rejected,
        evaluations: report.evaluations,
        jacobians: report.jacobians,
        factorisations: report.factorisations,
        quadrature_error: (quadrature_error > 0.0).then_some(quadrature_error),
    }
}

/// Two trained rows with the same overlaps in every eigenspace: the equations never break their symmetry.
fn equal_rows(start: &Overlaps) -> Option<(usize, usize)> {
    let Shape { trained: k, frozen, .. } = start.shape();
    let equal = |i: usize, j: usize| {
        start.blocks.iter().all(|g| {
            let same = g[(i, i)] == g[(j, j)] && g[(i, i)] == g[(i, j)];
            same && (k..k + frozen).all(|n| g[(i, n)] == g[(j, n)])
        })
    };
    (0..k).flat_map(|i| (0..i).map(move |j| (j, i))).find(|&(i, j)| equal(i, j))
}

fn outcome(solution: &Solution, record: &Record, replica: u32) -> Result<Outcome, EngineError> {
    match &solution.report.stop {
        Stop::ReachedEnd => Ok(Outcome::Completed),
        Stop::Event { index, time } => {
            Ok(Outcome::Stopped { by: record.events[*index].name.clone(), at: *time })
        }
        Stop::Diverged { time } => Ok(Outcome::Diverged { at: *time }),
        Stop::Interrupted { .. } => Err(EngineError::Interrupted),
        Stop::Stuck { .. } | Stop::StepLimit { .. } => {
            Err(EngineError::Stuck { replica, reason: solution.report.to_string() })
        }
    }
}
