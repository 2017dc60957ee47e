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

/// Replicas that step in time with each other. No member depends on its company.
pub trait Company {
    /// The chain of one replica.
    type Member: Chain;

    /// One step of every member.
    fn step(&mut self);

    /// Number of members.
    fn size(&self) -> usize;

    /// A member in its present state.
    fn member(&mut self, index: usize) -> &Self::Member;

    /// Whether all members are sound; asked for at every step.
    fn is_sound(&self) -> bool;
}

/// A company of one.
struct Alone<C>(C);

impl<C: Chain> Company for Alone<C> {
    type Member = C;

    #[inline]
    fn step(&mut self) {
        self.0.step();
    }
    fn size(&self) -> usize {
        1
    }
    fn member(&mut self, _index: usize) -> &C {
        &self.0
    }
    #[inline]
    fn is_sound(&self) -> bool {
        self.0.is_sound()
    }
}

impl<C: Chain> Company for Box<dyn Company<Member = C>> {
    type Member = C;

    fn step(&mut self) {
        (**self).step();
    }
    fn size(&self) -> usize {
        (**self).size()
    }
    fn member(&mut self, index: usize) -> &C {
        (**self).member(index)
    }
    fn is_sound(&self) -> bool {
        (**self).is_sound()
    }
}

/// Forms a company of chains, or gives them back when they do not go together.
pub type Form<C> = fn(Vec<C>) -> Result<Box<dyn Company<Member = C>>, Vec<C>>;

/// How replicas share the threads.
pub enum Order<C> {
    /// One thread per replica.
    Together,
    /// One replica after the other, each with all threads.
    InTurn,
    /// One thread for so many replicas, which go side by side if they can.
    Abreast(usize, Form<C>),
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
pub fn run_replicas<C: Chain + Send>(
    engine: &dyn Engine,
    problem: &Problem,
    record: &Record,
    monitor: &dyn Monitor,
    order: Order<C>,
    make: impl Fn(&Problem, &Overlaps, Seat) -> Result<C, EngineError> + Sync,
) -> Result<Trajectory, EngineError> {
    problem.validate()?;
    record.validate()?;
    engine.admits(problem, record)?;
    let dimension = problem.finite_dimension(engine.name())?;
    let begin = |&replica: &u32| {
        let setting = Setting {
            shape: problem.rule.shape(),
            spectrum: &problem.spectrum,
            dimension: Some(dimension),
            seed: record.seed,
            replica,
        };
        let start = problem.start.draw(&setting)?;
        make(problem, &start, Seat { seed: record.seed, replica, stage: record.stage })
    };
    let course = Loop { problem, record, monitor, steps_per_clock: problem.steps_per_clock(dimension) };
    let alone = |chain: C| course.run(Alone(chain)).map(|mut one| one.remove(0));
    let numbers: Vec<u32> = record.replica_numbers().collect();
    let replicas: Result<Vec<Replica>, EngineError> = match order {
        Order::Abreast(most, form) => {
            let group = |numbers: &[u32]| {
                let chains: Vec<C> = numbers.iter().map(begin).collect::<Result<_, _>>()?;
                match form(chains) {
                    Ok(company) => course.run(company),
                    Err(chains) => chains.into_par_iter().map(alone).collect(),
                }
            };
            let groups: Result<Vec<Vec<Replica>>, EngineError> =
                numbers.par_chunks(most).map(group).collect();
            groups.map(|all| all.into_iter().flatten().collect())
        }
        Order::Together => numbers.par_iter().map(|number| alone(begin(number)?)).collect(),
        Order::InTurn => numbers.iter().map(|number| alone(begin(number)?)).collect(),
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

/// One replica under way.
struct Course {
    /// Values recorded so far.
    rows: Vec<Vec<f64>>,
    watch: Watch,
    /// What is left of it once it has ended.
    replica: Option<Replica>,
}

/// What the events of one run have shown so far.
#[derive(Clone)]
struct Watch {
    /// Last look: time and excess of every event.
    before: Option<(f64, Vec<f64>)>,
    /// First passages.
    passed: Vec<Option<f64>>,
}

impl Course {
    fn new(record: &Record) -> Self {
        let watch = Watch { before: None, passed: vec![None; record.events.len()] };
        Self { rows: Vec::with_capacity(record.times.len()), watch, replica: None }
    }

    fn end(&mut self, outcome: Outcome, at: f64, chain: &impl Chain) {
        self.replica = Some(Replica {
            rows: std::mem::take(&mut self.rows),
            outcome,
            events: self.watch.passed.clone(),
            last: chain.overlaps(),
            weights: chain.weights().map(|rows| Arc::new(rows.clone())),
            last_time: at,
        });
    }
}

impl Loop<'_> {
    /// Steps the company until the last of its members has ended; members that end early step on unseen.
    fn run(&self, mut company: impl Company) -> Result<Vec<Replica>, EngineError> {
        let saves: Vec<u64> =
            self.record.times.iter().map(|t| (t * self.steps_per_clock).round() as u64).collect();
        let end = *saves.last().expect("a validated record has times");
        let every = self.record.watch_every.unwrap_or(self.record.end() / LOOKS);
        let every = if self.record.events.is_empty() {
            u64::MAX
        } else {
            ((every * self.steps_per_clock) as u64).max(1)
        };
        let size = company.size();
        let report_every = company.member(0).report_every();
        let mut courses: Vec<Course> = (0..size).map(|_| Course::new(self.record)).collect();
        let (mut step, mut saved, mut reported) = (0, 0, 0);
        loop {
            let due = saves[saved..].iter().take_while(|&&at| at == step).count();
            if due > 0 || (step % every == 0 && !self.record.events.is_empty()) {
                saved += due;
                for (index, course) in courses.iter_mut().enumerate().filter(|(_, c)| c.replica.is_none()) {
                    self.visit(course, company.member(index), step, due);
                }
            }
            if step >= end || courses.iter().all(|course| course.replica.is_some()) {
                break;
            }
            // Nothing is to be seen before the next of these.
            let after = |period: u64| (step / period + 1).saturating_mul(period);
            let pause = saves.get(saved).map_or(end, |&at| at.min(end));
            let pause = pause.min(after(every)).min(after(report_every));
            while step < pause {
                company.step();
                step += 1;
                if !company.is_sound() {
                    self.close_diverged(&mut company, &mut courses, step);
                    if courses.iter().all(|course| course.replica.is_some()) {
                        break;
                    }
                }
            }
            if step % report_every == 0 {
                self.advance((step - reported) * size as u64, end);
                reported = step;
                if self.monitor.cancelled() {
                    return Err(EngineError::Interrupted);
                }
            }
        }
        self.advance((end - reported) * size as u64, end);
        let close = |(index, mut course): (usize, Course)| {
            if course.replica.is_none() {
                course.end(Outcome::Completed, self.time(step), company.member(index));
            }
            course.replica.expect("every course has ended")
        };
        Ok(courses.into_iter().enumerate().map(close).collect())
    }

    /// Ends the courses of members that have just diverged.
    fn close_diverged(&self, company: &mut impl Company, courses: &mut [Course], step: u64) {
        let at = self.time(step);
        for (index, course) in courses.iter_mut().enumerate().filter(|(_, c)| c.replica.is_none()) {
            let member = company.member(index);
            if !member.is_sound() {
                course.end(Outcome::Diverged { at }, at, member);
            }
        }
    }

    /// Records and watches a member; `due` rows fall on this step.
    fn visit(&self, course: &mut Course, chain: &impl Chain, step: u64, due: usize) {
        let (overlaps, time) = (chain.overlaps(), self.time(step));
        if !overlaps.is_finite() {
            return course.end(Outcome::Diverged { at: time }, time, chain);
        }
        let mut snapshot = Snapshot::new(&overlaps, self.problem);
        let wanted = if due > 0 {
            self.record.needs_training_set()
        } else {
            self.record.events.iter().any(|e| e.observable.needs_training_set())
        };
        if let Some(loss) = wanted.then(|| chain.train_loss()).flatten() {
            snapshot = snapshot.with_train_loss(loss);
        }
        for _ in 0..due {
            course.rows.push(self.record.observables.iter().map(|o| o.measure(&snapshot)).collect());
        }
        if let Some(event) = self.look(&mut course.watch, &snapshot, time) {
            let at = course.watch.passed[event].unwrap_or(time);
            let by = self.record.events[event].name.clone();
            course.end(Outcome::Stopped { by, at }, time, chain);
        }
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
