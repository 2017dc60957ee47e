//! Schedules: stages that differ in some keys and end at a time or at an event, for any family and any engine.
//!
//! Every replica goes on from where its stage ended, at the time its stage ended; engines know nothing of it.

use crate::source::{Diagnostic, Source};
use didact_families::Model;
use didact_model::composed_start::{Restart, Restarted};
use didact_model::engine::available_gigabytes;
use didact_model::problem::ProblemError;
use didact_model::start::{Continued, Start, StartError};
use didact_model::trajectory::Statistics;
use didact_model::{
    Cost, EndState, Engine, EngineError, Event, Monitor, Outcome, Problem, Record, Trajectory,
};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Name of the event that ends a stage.
pub(crate) const END_OF_STAGE: &str = "end of stage";

/// One stage of a run.
pub struct PlannedStage {
    /// What a check needs: its rule may lack numbers that take long to compute.
    pub draft: Problem,
    /// Makes the rule that can be run.
    pub model: Model,
    /// Ends at this time of the whole run.
    pub until: f64,
    /// Or at this event.
    pub event: Option<Event>,
    /// What begins anew after it.
    pub restart: Option<Restart>,
}

impl PlannedStage {
    /// The problem that can be run.
    fn problem(&self) -> Result<Problem, EngineError> {
        Ok(Problem { rule: self.model.rule()?, ..self.draft.clone() })
    }

    /// Where the stage after this one, the `index`-th, begins when this one ended there.
    fn next_start(&self, end: &EndState, index: usize) -> Arc<dyn Start> {
        let EndState { overlaps, weights, .. } = end.clone();
        match &self.restart {
            None => Arc::new(Continued { overlaps, weights }),
            Some(restart) => {
                Arc::new(Restarted { before: overlaps, restart: restart.clone(), stage: index as u64 })
            }
        }
    }
}

/// A run with its stages, checked and ready to be run.
pub struct Schedule {
    /// What is written down.
    pub record: Record,
    /// The engine.
    pub engine: Box<dyn Engine>,
    stages: Vec<PlannedStage>,
}

impl Schedule {
    /// Checks everything that can be wrong before anything runs.
    pub fn new(
        engine: Box<dyn Engine>,
        record: Record,
        stages: Vec<PlannedStage>,
        source: &Source,
    ) -> Result<Self, Diagnostic> {
        for stage in &stages {
            engine.admits(&stage.draft, &record).map_err(|e| refused(&e, source))?;
        }
        check_training_set(&stages, engine.as_ref(), source)?;
        try_start(&stages[0].draft, record.seed, engine.takes_infinite_dimension(), source)?;
        try_handing_over(&stages, record.seed, source)?;
        if !engine.takes_infinite_dimension() {
            let problem = &stages[0].draft;
            problem.finite_dimension(engine.name()).map_err(|e| Diagnostic::new(e).at_key(source, "data"))?;
        }
        Ok(Self { record, engine, stages })
    }

    /// What the run needs, estimated from the sizes of its first stage; nothing is computed.
    pub fn cost(&self) -> Cost {
        self.engine.cost(self.draft(), &self.record)
    }

    /// The problem of the first stage, as a check sees it: not to be run.
    pub fn draft(&self) -> &Problem {
        &self.stages[0].draft
    }

    /// What the model has to say of this run before it starts.
    pub fn remarks(&self) -> Vec<String> {
        let problem = self.draft();
        let mut remarks: Vec<String> = problem.about.warning(problem).into_iter().collect();
        if self.engine.stays_at_fixed_points() {
            let start = problem.start.draw(&problem.setting(self.record.seed, 0));
            remarks.extend(start.ok().and_then(|start| problem.about.invariance(&start)));
        }
        remarks
    }

    /// Refuses a run that needs more memory than this machine has: to ask for it would end the process.
    pub fn fits(&self) -> Result<(), EngineError> {
        let (gigabytes, available) = (1e-9 * self.cost().memory, available_gigabytes());
        if gigabytes <= available {
            return Ok(());
        }
        Err(EngineError::TooLarge {
            engine: self.engine.name(),
            what: "its state, its integrator and its results".into(),
            gigabytes,
            available,
            hint: "use a smaller dimension or fewer units, save less, or run on a larger machine".into(),
        })
    }

    /// Runs all stages of all replicas.
    pub fn run(&self, monitor: &dyn Monitor) -> Result<Trajectory, EngineError> {
        self.run_record(&self.record, monitor)
    }

    /// Runs the replicas of these numbers, counted from the first of the record: together with those of other calls they are the
    /// replicas that [`Self::run`] gives, to the bit; remarks of the engine come with every part.
    pub fn run_replicas(
        &self,
        numbers: Range<u32>,
        monitor: &dyn Monitor,
    ) -> Result<Trajectory, EngineError> {
        let record = Record {
            first_replica: self.record.first_replica + numbers.start,
            replicas: numbers.len() as u32,
            ..self.record.clone()
        };
        self.run_record(&record, monitor)
    }

    fn run_record(&self, of: &Record, monitor: &dyn Monitor) -> Result<Trajectory, EngineError> {
        self.fits()?;
        let problems: Vec<Problem> =
            self.stages.iter().map(PlannedStage::problem).collect::<Result<_, _>>()?;
        if let [only] = problems.as_slice() {
            return self.engine.run(only, of, monitor);
        }
        let mut numbers = of.replica_numbers();
        // Theory of a start that is the same for all needs one solution only, as without stages.
        let random = problems[0].start.is_random() || self.stages.iter().any(|stage| stage.restart.is_some());
        if self.engine.stays_at_fixed_points() && !random {
            numbers.end = numbers.start + 1;
        }
        let shared = ReplicaShare { monitor, replicas: f64::from(numbers.end - numbers.start) };
        let one = |r| self.run_replica(&problems, r, &shared);
        // A training set is planned to have the memory, and the threads, for itself.
        let replicas: Result<Vec<Trajectory>, EngineError> = if self.draft().training.samples.is_some() {
            numbers.map(one).collect()
        } else {
            numbers.into_par_iter().map(one).collect()
        };
        let mut whole = Trajectory::of_record(self.engine.name(), self.draft(), of);
        replicas?.into_iter().for_each(|replica| whole.append_replicas(replica));
        Ok(whole)
    }

    fn run_replica(
        &self,
        problems: &[Problem],
        number: u32,
        monitor: &ReplicaShare,
    ) -> Result<Trajectory, EngineError> {
        let mut whole: Option<Trajectory> = None;
        // Where the stages before ended, in the time of the whole run.
        let mut before: Option<EndState> = None;
        for (index, stage) in self.stages.iter().enumerate() {
            let mut problem = problems[index].clone();
            let (begin, done) = before.as_ref().map_or((0.0, 0), |end| (end.time, end.saved));
            if let Some(end) = &before {
                problem.start = self.stages[index - 1].next_start(end, index);
            }
            let mut record = self.stage_record(stage, begin, done, number);
            record.stage = index as u16;
            record.begin = begin;
            if record.times.is_empty() {
                continue;
            }
            let (mut part, mut ends) = self.engine.run_with_end_states(&problem, &record, monitor)?;
            let mut end = ends.pop().expect("one replica was asked for");
            let reached = begin + end.time + 1e-9 * record.end();
            let saved = self.record.times[done..].iter().filter(|t| **t <= reached).count();
            place_in_run(&mut part, begin, saved, index, self.record.events.len());
            end.time += begin;
            end.saved = done + end.saved.min(saved);
            let over = part.outcomes[0] != Outcome::Completed;
            match &mut whole {
                None => whole = Some(part),
                Some(whole) => append_stage(whole, part),
            }
            before = Some(end);
            if over {
                break;
            }
        }
        let mut whole = whole.expect("a schedule has a stage with a time");
        whole.times.clone_from(&self.record.times);
        Ok(whole)
    }

    /// The saved times and events of one stage, counted from its beginning.
    fn stage_record(&self, stage: &PlannedStage, begin: f64, done: usize, number: u32) -> Record {
        let mut times: Vec<f64> = self.record.times[done..]
            .iter()
            .filter(|t| **t <= stage.until)
            .map(|t| (t - begin).max(0.0))
            .collect();
        let length = stage.until - begin;
        if length > 0.0 && times.last().is_none_or(|t| *t < length) {
            times.push(length);
        }
        let mut record = Record { times, replicas: 1, first_replica: number, ..self.record.clone() };
        if let Some(event) = &stage.event {
            record.events.push(event.clone());
        }
        record
    }
}

/// Points at what an engine refuses.
fn refused(error: &EngineError, source: &Source) -> Diagnostic {
    let key = match error {
        EngineError::OnePass { .. } => "data.samples-per-dimension",
        EngineError::NoTrainingSet { .. } | EngineError::NoVelocities { .. } => "record.observe",
        EngineError::FullBatch { .. } => "data",
        EngineError::TooLarge { .. } => "data.dimension",
        EngineError::Training { way, .. } => way.key(),
        EngineError::Problem(ProblemError::Training(error)) => error.key(),
        _ => "run",
    };
    Diagnostic::new(error).at_key(source, key).of_this_machine(matches!(error, EngineError::TooLarge { .. }))
}

/// Draws one start, so that an impossible one is refused before anything runs.
fn try_start(problem: &Problem, seed: u64, limit: bool, source: &Source) -> Result<(), Diagnostic> {
    let setting = problem.setting(seed, 0);
    // Mean-field theory starts from the limit of random rows.
    let start = if limit && problem.training.samples.is_some() {
        problem.start.limit(setting.shape, setting.spectrum)
    } else {
        problem.start.draw(&setting)
    };
    if let Ok(start) = &start {
        problem.check_drift(start).map_err(|e| Diagnostic::new(e).at_key(source, "data.drift.rotation"))?;
    }
    start.map(|_| ()).map_err(|error| {
        let key = match &error {
            StartError::Spectrum(_) => "data.dimension",
            StartError::Dimension => "data",
            StartError::Scalars { .. } | StartError::ScalarDimension => "start.scalars",
            _ => "start",
        };
        Diagnostic::new(error).at_key(source, key)
    })
}

/// Whether every stage can begin where the one before it ends.
fn try_handing_over(stages: &[PlannedStage], seed: u64, source: &Source) -> Result<(), Diagnostic> {
    for (index, pair) in stages.windows(2).enumerate() {
        let (before, after) = (&pair[0], &pair[1]);
        let key = |part: &str| format!("training.stage.{index}.{part}");
        let setting = before.draft.setting(seed, 0);
        if setting.shape != after.draft.rule.shape() {
            let message = format!(
                "stage {} trains a model of other rows or scalars than what follows it, which goes on from its overlaps",
                index + 1
            );
            let hint = "a stage may change any key that leaves the numbers of students, teachers and scalars";
            return Err(Diagnostic::new(message).hint(hint).at_key(source, &key("set")));
        }
        let spaces = |stage: &PlannedStage| stage.draft.spectrum.weights().to_vec();
        if spaces(before) != spaces(after) {
            let message = format!(
                "the inputs of stage {} have other eigenspaces than those of what follows it, which goes on from its overlaps in each of them",
                index + 1
            );
            let hint = "a stage may change the eigenvalues, not how many there are and how many dimensions have them";
            return Err(Diagnostic::new(message).hint(hint).at_key(source, &key("set")));
        }
        if before.restart.is_some() {
            let state = before.draft.start.draw(&setting);
            let next = state.and_then(|overlaps| {
                let end = EndState { time: 0.0, saved: 0, overlaps, weights: None };
                before.next_start(&end, index + 1).draw(&setting)
            });
            next.map_err(|error| Diagnostic::new(error).at_key(source, &key("restart")))?;
        }
    }
    Ok(())
}

/// Turns the trajectory of a stage (one replica) into a part of the whole run: times count from the beginning of the run, the
/// event that ends the stage goes, and so does the end of the stage where it was saved for the next stage alone.
fn place_in_run(stage: &mut Trajectory, begin: f64, saved: usize, index: usize, events: usize) {
    stage.columns.iter_mut().flat_map(|c| &mut c.curves).for_each(|curve| curve.truncate(saved));
    stage.events.truncate(events);
    stage.events.iter_mut().flat_map(|e| &mut e.times).flatten().for_each(|time| *time += begin);
    for outcome in &mut stage.outcomes {
        match outcome {
            Outcome::Stopped { by, .. } if by == END_OF_STAGE => *outcome = Outcome::Completed,
            Outcome::Stopped { at, .. } | Outcome::Diverged { at } => *at += begin,
            Outcome::Completed => {}
        }
    }
    stage.notes.iter_mut().for_each(|note| *note = format!("stage {}, {note}", index + 1));
}

/// Appends a stage to the stages before it.
fn append_stage(whole: &mut Trajectory, stage: Trajectory) {
    for (own, new) in whole.columns.iter_mut().zip(stage.columns) {
        own.curves.iter_mut().zip(new.curves).for_each(|(own, new)| own.extend(new));
    }
    for (own, new) in whole.events.iter_mut().zip(stage.events) {
        own.times.iter_mut().zip(new.times).for_each(|(own, new)| *own = own.or(new));
    }
    whole.outcomes = stage.outcomes;
    // Simulations have statistics only where averages have errors, which may be in a later stage.
    let replicas = whole.outcomes.len().min(stage.statistics.len());
    whole.statistics.resize(whole.statistics.len().max(replicas), Statistics::default());
    whole.statistics.iter_mut().zip(&stage.statistics).for_each(|(own, new)| own.add(new));
    whole.notes.extend(stage.notes);
}

/// Stages on a training set need an engine that hands its rows over, and one dimension and training set throughout.
fn check_training_set(
    stages: &[PlannedStage],
    engine: &dyn Engine,
    source: &Source,
) -> Result<(), Diagnostic> {
    let first = &stages[0].draft;
    if stages.len() == 1 || first.training.samples.is_none() {
        return Ok(());
    }
    let refuse = |message: String, hint: &str| {
        Err(Diagnostic::new(message).hint(hint).at_key(source, "training.stage"))
    };
    if !engine.hands_over_weights() {
        let message = format!("`{}` remembers every step of a training set: it has no stages", engine.name());
        return refuse(message, "use engine `full-batch`, or a run without stages");
    }
    if let Some(index) = stages.iter().position(|s| s.restart.is_some()) {
        // Rows drawn anew would need the teacher behind the labels.
        let message =
            "a stage on a training set goes on from the rows of the one before it: it cannot begin anew";
        let key = format!("training.stage.{index}.restart");
        return Err(Diagnostic::new(message)
            .hint("leave out `restart`, or train on fresh samples")
            .at_key(source, &key));
    }
    let data = |p: &Problem| (p.dimension, p.sample_count(), p.spectrum.clone(), p.rule.shape());
    if stages.iter().any(|s| data(&s.draft) != data(first)) {
        let message = "the stages differ in their training set, or in the rows of the model".into();
        return refuse(
            message,
            "change what is learned and how from stage to stage, not [data] and the number of units",
        );
    }
    Ok(())
}

/// Spreads the progress of single replicas over the whole run; stages overlap in it, so it only grows to at most 1.
struct ReplicaShare<'a> {
    monitor: &'a dyn Monitor,
    replicas: f64,
}

impl Monitor for ReplicaShare<'_> {
    fn advance(&self, fraction: f64) {
        self.monitor.advance(fraction / self.replicas);
    }
    fn cancelled(&self) -> bool {
        self.monitor.cancelled()
    }
}
