//! The one loop that steps, watches and records any chain.

use crate::step_clock::StepClock;
use didact_math::linalg::Mat;
use didact_model::averages::SAMPLED_ACCURACY;
use didact_model::observable::Snapshot;
use didact_model::{
    EndState, Engine, EngineError, Monitor, Outcome, Overlaps, Problem, Record, Recorder, Trajectory,
};
use rayon::prelude::*;
use std::sync::Arc;

/// A Markov chain of learning: one replica.
pub trait Chain {
    /// One step of training.
    fn step(&mut self);

    /// The overlaps now.
    fn overlaps(&self) -> Overlaps;

    /// False once a gradient was not finite or absurdly large: the replica has diverged.
    fn is_sound(&self) -> bool;

    /// The mean loss over the training set, of chains that have one.
    fn train_loss(&self) -> Option<f64> {
        None
    }

    /// The mean loss over the batch of the next step, of chains that have one.
    fn batch_loss(&self) -> Option<f64> {
        None
    }

    /// What keeps a chain that is not sound from going on, where it has not diverged.
    fn fault(&self) -> Option<EngineError> {
        None
    }

    /// The rows themselves (P x d, then velocities where there are any), of chains whose next steps depend on more than their
    /// overlaps.
    fn weights(&self) -> Option<Mat> {
        None
    }

    /// Steps between progress reports. A chain whose steps take long reports more often.
    fn report_every(&self) -> u64 {
        REPORT_EVERY
    }
}

/// Replicas that step together, for instance in the lanes of vector registers. No member depends on the others.
pub trait Group {
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

/// A group of one chain.
struct Single<C>(C);

impl<C: Chain> Group for Single<C> {
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

impl<C: Chain> Group for Box<dyn Group<Member = C>> {
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

/// Makes a group of chains, or gives them back when they cannot step together.
pub type FormGroup<C> = fn(Vec<C>) -> Result<Box<dyn Group<Member = C>>, Vec<C>>;

/// How replicas share the threads.
pub enum ReplicaOrder<C> {
    /// One thread per replica.
    Parallel,
    /// One replica after the other, each with all threads.
    Sequential,
    /// One thread per group of at most `size` replicas; chains that cannot form a group run alone.
    Groups {
        /// Largest number of members.
        size: usize,
        /// Makes the group.
        form: FormGroup<C>,
    },
}

/// The part of a random number's address that a chain has for itself: [`didact_math::random::RngAddress`] adds step and lane.
#[derive(Debug, Clone, Copy)]
pub struct ReplicaAddress {
    /// Seed of the experiment.
    pub seed: u64,
    /// Which replica.
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
    order: ReplicaOrder<C>,
    make: impl Fn(&Problem, &Overlaps, ReplicaAddress) -> Result<C, EngineError> + Sync,
) -> Result<(Trajectory, Vec<EndState>), EngineError> {
    problem.validate()?;
    record.validate()?;
    engine.admits(problem, record)?;
    let dimension = problem.finite_dimension(engine.name())?;
    let begin = |&replica: &u32| {
        let start = problem.start.draw(&problem.setting(record.seed, replica))?;
        make(problem, &start, ReplicaAddress { seed: record.seed, replica, stage: record.stage })
    };
    let clock = StepClock::new(problem, dimension, record.begin);
    let steps = StepLoop { problem, record, monitor, clock };
    let run_single = |chain: C| steps.run(Single(chain)).map(|mut one| one.remove(0));
    let numbers: Vec<u32> = record.replica_numbers().collect();
    let replicas: Result<Vec<Recorder>, EngineError> = match order {
        ReplicaOrder::Groups { size, form } => {
            let run_group = |numbers: &[u32]| {
                let chains: Vec<C> = numbers.iter().map(begin).collect::<Result<_, _>>()?;
                match form(chains) {
                    Ok(group) => steps.run(group),
                    Err(chains) => chains.into_par_iter().map(run_single).collect(),
                }
            };
            let groups: Result<Vec<Vec<Recorder>>, EngineError> =
                numbers.par_chunks(size).map(run_group).collect();
            groups.map(|all| all.into_iter().flatten().collect())
        }
        ReplicaOrder::Parallel => numbers.par_iter().map(|number| run_single(begin(number)?)).collect(),
        ReplicaOrder::Sequential => numbers.iter().map(|number| run_single(begin(number)?)).collect(),
    };
    Ok(Trajectory::of_replicas(engine.name(), problem, record, replicas?))
}

/// Looks for events this often over a replica unless the record says otherwise, and more rarely where averages are expensive
/// ([`Recorder::adaptive`]).
const LOOKS: f64 = 2000.0;

/// Steps between progress reports.
const REPORT_EVERY: u64 = 2048;

/// The loop over the steps of a group: which steps are saved, looked at and reported.
struct StepLoop<'a> {
    problem: &'a Problem,
    record: &'a Record,
    monitor: &'a dyn Monitor,
    /// At the first step.
    clock: StepClock,
}

impl<'a> StepLoop<'a> {
    /// Steps the group until the last of its members has ended. Members that end early step on, but are recorded no more.
    fn run(&self, mut group: impl Group) -> Result<Vec<Recorder<'a>>, EngineError> {
        let saves = self.clock.clone().steps_at(&self.record.times);
        let saves = saves.map_err(|fault| EngineError::Problem(fault.into()))?;
        let end = *saves.last().expect("a validated record has times");
        let every = self.record.watch_every.unwrap_or(self.record.end() / LOOKS);
        let every = if self.record.events.is_empty() {
            u64::MAX
        } else {
            self.clock.steps_in(every, end, self.record)
        };
        let mut clock = self.clock.clone();
        let size = group.size();
        let report_every = group.member(0).report_every();
        // Looks at every step are few, and what is asked for is done.
        let adaptive = self.record.watch_every.is_none() && every > 1;
        let recorder = || if adaptive { Recorder::adaptive(self.record) } else { Recorder::new(self.record) };
        let mut recorders: Vec<Recorder> = (0..size).map(|_| recorder()).collect();
        let (mut step, mut saved, mut reported) = (0, 0, 0);
        loop {
            let due = saves[saved..].iter().take_while(|&&at| at == step).count();
            if due > 0 || (step % every == 0 && !self.record.events.is_empty()) {
                saved += due;
                clock.advance_to(step);
                for (index, recorder) in running(&mut recorders) {
                    self.observe(recorder, group.member(index), clock.time(), due);
                }
            }
            if step >= end || recorders.iter().all(Recorder::has_ended) {
                break;
            }
            // Nothing is saved, looked at or reported before the next of these steps.
            let after = |period: u64| (step / period + 1).saturating_mul(period);
            let pause = saves.get(saved).map_or(end, |&at| at.min(end));
            let pause = pause.min(after(every)).min(after(report_every));
            while step < pause {
                group.step();
                step += 1;
                if !group.is_sound() {
                    clock.advance_to(step);
                    end_diverged(&mut group, &mut recorders, clock.time())?;
                    if recorders.iter().all(Recorder::has_ended) {
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
        clock.advance_to(step);
        for (index, recorder) in running(&mut recorders) {
            end_replica(recorder, Outcome::Completed, clock.time(), group.member(index));
        }
        Ok(recorders)
    }

    /// Records and watches a member; `due` saved times fall on this step.
    fn observe(&self, recorder: &mut Recorder, chain: &impl Chain, time: f64, due: usize) {
        let overlaps = chain.overlaps();
        if !overlaps.is_finite() {
            return end_replica(recorder, Outcome::Diverged { at: time }, time, chain);
        }
        let mut snapshot = Snapshot::new(&overlaps, self.problem).within(SAMPLED_ACCURACY);
        let wanted =
            if due > 0 { self.record.needs_training_set() } else { self.record.events_need_training_set() };
        if let Some(loss) = wanted.then(|| chain.train_loss()).flatten() {
            snapshot = snapshot.with_train_loss(loss);
        }
        if let Some(loss) = wanted.then(|| chain.batch_loss()).flatten() {
            snapshot = snapshot.with_batch_loss(loss);
        }
        if let Some(outcome) = recorder.observe(time, due, &snapshot) {
            end_replica(recorder, outcome, time, chain);
        }
    }

    fn advance(&self, steps: u64, end: u64) {
        self.monitor.advance(steps as f64 / end.max(1) as f64 / f64::from(self.record.replicas));
    }
}

/// The members that have not ended, with their positions.
fn running<'r, 'a>(recorders: &'r mut [Recorder<'a>]) -> impl Iterator<Item = (usize, &'r mut Recorder<'a>)> {
    recorders.iter_mut().enumerate().filter(|(_, recorder)| !recorder.has_ended())
}

/// Ends the members that have just diverged.
fn end_diverged(group: &mut impl Group, recorders: &mut [Recorder], at: f64) -> Result<(), EngineError> {
    for (index, recorder) in running(recorders) {
        let member = group.member(index);
        if let Some(fault) = member.fault() {
            return Err(fault);
        }
        if !member.is_sound() {
            end_replica(recorder, Outcome::Diverged { at }, at, member);
        }
    }
    Ok(())
}

fn end_replica(recorder: &mut Recorder, outcome: Outcome, time: f64, chain: &impl Chain) {
    recorder.end(outcome, time, chain.overlaps(), chain.weights().map(Arc::new));
}
