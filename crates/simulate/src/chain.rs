//! The one loop that steps, watches and records any chain.

use didact_math::linalg::Mat;
use didact_model::observable::Snapshot;
use didact_model::start::Setting;
use didact_model::trajectory::Replica;
use didact_model::{Engine, EngineError, Monitor, Outcome, Overlaps, Problem, Record, Trajectory};
use rayon::prelude::*;
use std::sync::Arc;

/// A Markov chain of learning.
pub trait Chain {
    /// One SGD step on fresh samples.
    fn step(&mut self);

    /// The overlaps now.
    fn overlaps(&self) -> Overlaps;

    /// False once a gradient was not finite or absurdly large: the run has diverged.
    fn is_sound(&self) -> bool;

    /// The mean loss over the training set, of chains that have one.
    fn train_loss(&self) -> Option<f64> {
        None
    }

    /// The rows themselves (P x d), of chains whose next steps depend on more than their overlaps.
    fn weights(&self) -> Option<&Mat> {
        None
    }

    /// Steps between two words with the monitor: a step of many samples is long.
    fn report_every(&self) -> u64 {
        REPORT_EVERY
    }
}

/// Whether replicas share the threads, or each has all of them in its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// One thread per replica.
    Together,
    /// One replica after the other.
    InTurn,
}

/// Where the random numbers of a chain come from.
#[derive(Debug, Clone, Copy)]
pub struct Seat {
    /// Seed of the experiment.
    pub seed: u64,
    /// Which run.
    pub replica: u32,
    /// Position in a schedule.
    pub stage: u16,
}

/// Runs all replicas of a record; `make` starts the chain of one replica.
pub fn run_replicas<C: Chain>(
    engine: &dyn Engine,
    problem: &Problem,
    record: &Record,
    monitor: &dyn Monitor,
    order: Order,
    make: impl Fn(&Problem, &Overlaps, Seat) -> Result<C, EngineError> + Sync,
) -> Result<Trajectory, EngineError> {
    problem.validate()?;
    record.validate()?;
    engine.admits(problem, record)?;
    let dimension = problem.finite_dimension(engine.name())?;
    let one = |replica: u32| {
        let setting = Setting {
            shape: problem.rule.shape(),
            spectrum: &problem.spectrum,
            dimension: Some(dimension),
            seed: record.seed,
            replica,
        };
        let start = problem.start.draw(&setting)?;
        let chain = make(problem, &start, Seat { seed: record.seed, replica, stage: record.stage })?;
        Loop { problem, record, monitor, steps_per_clock: problem.steps_per_clock(dimension) }.run(chain)
    };
    let replicas: Result<Vec<Replica>, EngineError> = match order {
        Order::Together => record.replica_numbers().into_par_iter().map(one).collect(),
        Order::InTurn => record.replica_numbers().map(one).collect(),
    };
    Ok(Trajectory {
        engine: engine.name().into(),
        clock: problem.clock,
        times: record.times.clone(),
        columns: record.observables.iter().map(|o| o.name()).collect(),
        events: record.events.iter().map(|e| e.name.clone()).collect(),
        replicas: replicas?,
        notes: Vec::new(),
    })
}

/// Looks for events this often over a run unless the record says otherwise.
const LOOKS: f64 = 2000.0;

/// Steps between two words with the monitor.
const REPORT_EVERY: u64 = 2048;

struct Loop<'a> {
    problem: &'a Problem,
    record: &'a Record,
    monitor: &'a dyn Monitor,
    steps_per_clock: f64,
}

/// What the events of one run have shown so far.
struct Watch {
    /// Last look: time and excess of every event.
    before: Option<(f64, Vec<f64>)>,
    /// First passages.
    passed: Vec<Option<f64>>,
}

impl Loop<'_> {
    fn run(&self, mut chain: impl Chain) -> Result<Replica, EngineError> {
        let saves: Vec<u64> =
            self.record.times.iter().map(|t| (t * self.steps_per_clock).round() as u64).collect();
        let end = *saves.last().expect("a validated record has times");
        let every = self.record.watch_every.unwrap_or(self.record.end() / LOOKS);
        let every = if self.record.events.is_empty() {
            u64::MAX
        } else {
            ((every * self.steps_per_clock) as u64).max(1)
        };
        let watched_need = self.record.events.iter().any(|e| e.observable.needs_training_set());
        let saved_need = self.record.needs_training_set();
        let mut watch = Watch { before: None, passed: vec![None; self.record.events.len()] };
        let (mut rows, mut reported) = (Vec::with_capacity(saves.len()), 0);
        let (mut step, mut outcome) = (0, Outcome::Completed);
        loop {
            let saving = saves.get(rows.len()) == Some(&step);
            if saving || (step % every == 0 && !self.record.events.is_empty()) {
                let overlaps = chain.overlaps();
                if !overlaps.is_finite() {
                    outcome = Outcome::Diverged { at: self.time(step) };
                    break;
                }
                let mut snapshot = Snapshot::new(&overlaps, self.problem);
                let wanted = if saving { saved_need } else { watched_need };
                if let Some(loss) = wanted.then(|| chain.train_loss()).flatten() {
                    snapshot = snapshot.with_train_loss(loss);
                }
                while saves.get(rows.len()) == Some(&step) {
                    rows.push(self.record.observables.iter().map(|o| o.measure(&snapshot)).collect());
                }
                if let Some(event) = self.look(&mut watch, &snapshot, self.time(step)) {
                    let at = watch.passed[event].unwrap_or(self.time(step));
                    outcome = Outcome::Stopped { by: self.record.events[event].name.clone(), at };
                    break;
                }
            }
            if step >= end {
                break;
            }
            chain.step();
            step += 1;
            if step % chain.report_every() == 0 {
                self.advance(step - reported, end);
                reported = step;
                if self.monitor.cancelled() {
                    return Err(EngineError::Interrupted);
                }
            }
            if !chain.is_sound() {
                outcome = Outcome::Diverged { at: self.time(step) };
                break;
            }
        }
        self.advance(end - reported, end);
        Ok(Replica {
            rows,
            outcome,
            events: watch.passed,
            last: chain.overlaps(),
            weights: chain.weights().map(|rows| Arc::new(rows.clone())),
            last_time: self.time(step),
        })
    }

    fn time(&self, step: u64) -> f64 {
        step as f64 / self.steps_per_clock
    }

    fn advance(&self, steps: u64, end: u64) {
        self.monitor.advance(steps as f64 / end.max(1) as f64 / f64::from(self.record.replicas));
    }

    /// Notes first passages, placed linearly between two looks; returns the first event that ends the run.
    fn look(&self, watch: &mut Watch, snapshot: &Snapshot, time: f64) -> Option<usize> {
        let measure = |e: &didact_model::Event| e.excess(e.observable.measure(snapshot));
        let now: Vec<f64> = self.record.events.iter().map(measure).collect();
        let mut stopped = None;
        if let Some((then, before)) = &watch.before {
            for (index, event) in self.record.events.iter().enumerate() {
                let (a, b) = (before[index], now[index]);
                if watch.passed[index].is_none() && a < 0.0 && b >= 0.0 {
                    watch.passed[index] = Some(then + (time - then) * (-a / (b - a)));
                    if event.stops && stopped.is_none() {
                        stopped = Some(index);
                    }
                }
            }
        }
        watch.before = Some((time, now));
        stopped
    }
}
