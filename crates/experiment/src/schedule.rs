//! Schedules: stages that differ in some keys and end at a time or at an event, for any family and any engine.
//!
//! Every replica goes on from where its stage ended, at the time its stage ended; engines know nothing of it.

use crate::source::{Diagnostic, Source};
use didact_families::Model;
use didact_model::composed_start::{Restart, Restarted};
use didact_model::constraint::Constraint;
use didact_model::engine::{EngineStage, available_gigabytes};
use didact_model::problem::ProblemError;
use didact_model::start::{Continued, Start, StartError};
use didact_model::trajectory::Statistics;
use didact_model::{
    Clock, Cost, EndState, Engine, EngineError, Event, Monitor, Outcome, Problem, Record, Trajectory,
};
use didact_theory::OrderParameterOde;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Name of the event that ends a stage.
pub(crate) const END_OF_STAGE: &str = "end of stage";

/// Key of what asks for fluctuations.
pub(crate) const FLUCTUATIONS: &str = "run.fluctuations";

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
        let EndState { overlaps, weights, spread, .. } = end.clone();
        match &self.restart {
            None => Arc::new(Continued { overlaps, weights, spread }),
            Some(restart) => {
                let (restart, stage) = (restart.clone(), index as u64);
                Arc::new(Restarted { before: overlaps, restart, stage, spread })
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
    /// At least one, unless there is a table.
    stages: Vec<PlannedStage>,
    /// The table of another program, of which nothing is computed.
    recorded: Option<Arc<Trajectory>>,
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
        if stages.len() > 1 {
            engine.admits_stages().map_err(|e| refused(&e, source))?;
        }
        check_training_set(&stages, engine.as_ref(), source)?;
        try_start(&stages[0].draft, record.seed, engine.as_ref(), source)?;
        try_handing_over(&stages, record.seed, source)?;
        if !engine.takes_infinite_dimension() {
            let problem = &stages[0].draft;
            problem.finite_dimension(engine.name()).map_err(|e| Diagnostic::new(e).at_key(source, "data"))?;
        }
        Ok(Self { record, engine, stages, recorded: None })
    }

    /// A run whose table is there.
    pub(crate) fn of_table(engine: Box<dyn Engine>, table: Trajectory) -> Self {
        let record = crate::recorded::record(&table);
        Self { record, engine, stages: Vec::new(), recorded: Some(Arc::new(table)) }
    }

    /// The clock of its times.
    pub fn clock(&self) -> Clock {
        self.recorded.as_ref().map_or_else(|| self.draft().clock, |table| table.clock)
    }

    /// Names of the columns of the table.
    pub fn columns(&self) -> Vec<String> {
        let own = self.record.observables.iter().map(|o| o.name());
        own.chain(self.engine.added_columns(&self.record)).collect()
    }

    /// Names of the events of the table.
    pub fn events(&self) -> Vec<String> {
        let own = self.record.events.iter().map(|e| e.name.clone());
        own.chain(self.engine.added_events(&self.record)).collect()
    }

    /// What the run needs, estimated from the sizes of its first stage and from single calls of its rule, which take milliseconds.
    ///
    /// An event may end a run early: this is what it takes if that happens after this part of it ([`Self::expected_part`]).
    pub fn cost(&self, part: f64) -> Cost {
        if self.recorded.is_some() {
            return Cost { steps: None, memory: 0.0, seconds: 0.0 };
        }
        let cost = self.engine.cost(self.draft(), &self.record);
        Cost { steps: cost.steps.map(|steps| part * steps), seconds: part * cost.seconds, ..cost }
    }

    /// The part of a run after which an event is expected to end it: for fresh samples where theory has its first passage, if that is
    /// found in milliseconds; half of it where nothing is known.
    pub fn expected_part(&self) -> f64 {
        let (problem, record) = (self.draft(), &self.record);
        if !record.events.iter().any(|event| event.stops) {
            return 1.0;
        }
        let (theory, record) = (OrderParameterOde::default(), Record { replicas: 1, ..record.clone() });
        let small = problem.rule.shape().rows() * problem.spectrum.len() <= LARGEST_PILOT;
        // A pilot has time for some hundred averages.
        let slow = || theory.seconds_per_average(problem).is_some_and(|seconds| seconds > 1e-4);
        if !small || theory.admits(problem, &record).is_err() || slow() {
            return 0.5;
        }
        let deadline = Deadline(Instant::now() + PILOT);
        match theory.run(problem, &record, &deadline).map(|run| run.outcomes[0].clone()) {
            Ok(Outcome::Stopped { at, .. }) => (at / record.end()).clamp(0.0, 1.0),
            Ok(_) => 1.0,
            // Theory takes longer than it may, or does not start there.
            Err(_) => 0.5,
        }
    }

    /// The problem of the first stage, as a check sees it: not to be run. A table of another program has none.
    fn draft(&self) -> &Problem {
        &self.stages[0].draft
    }

    /// What the model has to say of this run before it starts.
    pub fn remarks(&self) -> Vec<String> {
        if self.recorded.is_some() {
            return Vec::new();
        }
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
        self.fits_record(&self.record)
    }

    fn fits_record(&self, record: &Record) -> Result<(), EngineError> {
        if self.recorded.is_some() {
            return Ok(());
        }
        let memory = self.engine.memory(self.draft(), record);
        let (gigabytes, available) = (1e-9 * memory, available_gigabytes());
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
        self.run_replicas(0..self.replicas(), monitor)
    }

    /// Replicas that are computed. Theory of a start that is the same for all needs one solution only, and so does theory of the mean.
    pub fn replicas(&self) -> u32 {
        if self.recorded.is_some() {
            return self.record.replicas;
        }
        let random =
            self.draft().start.is_random() || self.stages.iter().any(|stage| stage.restart.is_some());
        let one = self.engine.follows_the_mean() || (self.engine.stays_at_fixed_points() && !random);
        if one { 1 } else { self.record.replicas }
    }

    /// Whether replicas may be computed in parts ([`Schedule::run_replicas`], [`Schedule::join`]).
    pub fn splits(&self) -> bool {
        self.engine.replicas_stand_alone() && self.replicas() > 1
    }

    /// Runs all stages of some of the replicas, counted from the first of the record: together with those of other calls they are the
    /// replicas that [`Self::run`] gives, to the bit; remarks of the engine come with every part.
    pub fn run_replicas(
        &self,
        replicas: Range<u32>,
        monitor: &dyn Monitor,
    ) -> Result<Trajectory, EngineError> {
        if let Some(table) = &self.recorded {
            return Ok(some_replicas(table, replicas));
        }
        let first = self.record.first_replica;
        let numbers = first + replicas.start..first + replicas.end;
        // An engine that mixes replicas counts them itself, so that it gets the record as it is.
        let record = if replicas == (0..self.replicas()) {
            self.record.clone()
        } else {
            let replicas = numbers.end - numbers.start;
            Record { first_replica: numbers.start, replicas, ..self.record.clone() }
        };
        self.fits_record(&record)?;
        let problems: Vec<Problem> =
            self.stages.iter().map(PlannedStage::problem).collect::<Result<_, _>>()?;
        if let [only] = problems.as_slice() {
            return self.engine.run(only, &record, monitor);
        }
        if self.draft().training.samples.is_some() && self.engine.remembers_stages() {
            let ends = self.stages.iter().map(|stage| stage.until);
            let stages: Vec<EngineStage> = problems
                .iter()
                .cloned()
                .zip(ends)
                .map(|(problem, until)| EngineStage { problem, until })
                .collect();
            if let Some(run) = self.engine.run_stages(&stages, &record, monitor) {
                return run;
            }
        }
        let shared = ReplicaShare { monitor, replicas: f64::from(numbers.end - numbers.start) };
        let one = |r| self.run_replica(&problems, r, &shared);
        // A training set is planned to have the memory, and the threads, for itself.
        let replicas: Result<Vec<Trajectory>, EngineError> = if self.draft().training.samples.is_some() {
            numbers.map(one).collect()
        } else {
            numbers.into_par_iter().map(one).collect()
        };
        let mut replicas = replicas?.into_iter();
        let mut whole = replicas.next().expect("a record has a replica");
        replicas.for_each(|replica| whole.append_replicas(replica));
        Ok(whole)
    }

    /// The parts of a run one after the other, which are the run. Remarks that an engine makes once about all replicas are in
    /// every part, and once in the whole; those of stages are made for every replica.
    pub fn join(&self, parts: impl IntoIterator<Item = Trajectory>) -> Trajectory {
        if let Some(table) = &self.recorded {
            return Trajectory::clone(table);
        }
        let mut whole = Trajectory::of_record(self.engine.name(), self.draft(), &self.record);
        for mut part in parts {
            if self.stages.len() == 1 {
                part.notes.retain(|note| !whole.notes.contains(note));
            }
            whole.append_replicas(part);
        }
        whole
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
            place_in_run(&mut part, begin, saved, index, &self.record);
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

/// Some replicas of a table.
fn some_replicas(table: &Trajectory, replicas: Range<u32>) -> Trajectory {
    let range = replicas.start as usize..replicas.end as usize;
    let mut part = table.clone();
    part.columns.iter_mut().for_each(|column| column.curves = column.curves[range.clone()].to_vec());
    part.outcomes = part.outcomes[range].to_vec();
    part
}

/// Points at what an engine refuses.
fn refused(error: &EngineError, source: &Source) -> Diagnostic {
    let key = match error {
        EngineError::OnePass { .. } => "data.samples-per-dimension",
        EngineError::NoTrainingSet { .. } | EngineError::NoVelocities { .. } => "record.observe",
        EngineError::FullBatch { .. } => "data",
        EngineError::TooLarge { .. } => "data.dimension",
        EngineError::Training { way, .. } => way.key(),
        EngineError::Fluctuations(_) => FLUCTUATIONS,
        EngineError::Problem(ProblemError::Training(error)) => error.key(),
        _ => "run",
    };
    Diagnostic::new(error).at_key(source, key).of_this_machine(matches!(error, EngineError::TooLarge { .. }))
}

/// Draws one start, so that an impossible one is refused before anything runs.
fn try_start(problem: &Problem, seed: u64, engine: &dyn Engine, source: &Source) -> Result<(), Diagnostic> {
    let setting = problem.setting(seed, 0);
    // Mean-field theory starts from the limit of random rows.
    let start = if engine.follows_the_mean() {
        problem.start.centre(&setting)
    } else if engine.takes_infinite_dimension() && problem.training.samples.is_some() {
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
                let end = EndState { time: 0.0, saved: 0, overlaps, weights: None, spread: None };
                before.next_start(&end, index + 1).draw(&setting)
            });
            next.map_err(|error| Diagnostic::new(error).at_key(source, &key("restart")))?;
        }
    }
    Ok(())
}

/// Turns the trajectory of a stage (one replica) into a part of the whole run: times count from the beginning of the run, the
/// event that ends the stage goes, and so does the end of the stage where it was saved for the next stage alone. Events that the engine
/// adds are durations, which do not count from anywhere.
fn place_in_run(stage: &mut Trajectory, begin: f64, saved: usize, index: usize, record: &Record) {
    stage.columns.iter_mut().flat_map(|c| &mut c.curves).for_each(|curve| curve.truncate(saved));
    stage.events.retain(|event| !event.name.contains(END_OF_STAGE));
    let times =
        stage.events.iter_mut().filter(|event| record.events.iter().any(|own| own.name == event.name));
    times.flat_map(|e| &mut e.times).flatten().for_each(|time| *time += begin);
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
    if !(engine.hands_over_weights() || engine.remembers_stages()) {
        let message = format!("`{}` has no stages on a training set", engine.name());
        return refuse(message, "use engine `full-batch`, or a run without stages");
    }
    if engine.remembers_stages() {
        check_remembered(stages, engine.name(), source)?;
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

/// What stages of mean-field theory have in common: its kernels couple all steps of one training set and one model.
fn check_remembered(stages: &[PlannedStage], engine: &str, source: &Source) -> Result<(), Diagnostic> {
    let first = &stages[0];
    let key = |index: usize, part: &str| format!("training.stage.{index}.{part}");
    if let Some(index) = stages.iter().position(|stage| stage.event.is_some()) {
        let message = format!(
            "`{engine}` solves all stages at once, with kernels that couple their steps: a stage ends at a time that is known beforehand"
        );
        let hint = "run once without stages, read the time of the passage from an event, and end the stage at that `time`";
        return Err(Diagnostic::new(message).hint(hint).at_key(source, &key(index, "until")));
    }
    let same = |a: &Problem, b: &Problem| {
        let fixed = |p: &Problem| {
            let constraint = Constraint { weight_decay: 0.0, ..p.training.constraint };
            (constraint, p.training.label_noise, p.training.inputs.clone(), p.clock)
        };
        fixed(a) == fixed(b)
    };
    // The last stage is the training outside of all stages.
    let differs = |stage: &PlannedStage| stage.model != first.model || !same(&stage.draft, &first.draft);
    if let Some(index) = stages.iter().position(differs) {
        let message = format!(
            "the stages of `{engine}` differ in the model, the label noise or a constraint: its equations are those of one training set \
             and one model"
        );
        let hint = "change rates, momentum, weight decay, batches, noise or clipping from stage to stage; or use engine `full-batch`";
        return Err(Diagnostic::new(message).hint(hint).at_key(source, &key(index.saturating_sub(1), "set")));
    }
    Ok(())
}

/// How long theory may take to say when an event is expected.
const PILOT: Duration = Duration::from_millis(20);

/// Rows times eigenspaces beyond which theory is not asked: a single one of its steps would take too long.
const LARGEST_PILOT: usize = 64;

/// Ends what takes longer.
struct Deadline(Instant);

impl Monitor for Deadline {
    fn advance(&self, _fraction: f64) {}
    fn cancelled(&self) -> bool {
        Instant::now() > self.0
    }
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
    fn describe(&self, line: &str) {
        self.monitor.describe(line);
    }
    fn cancelled(&self) -> bool {
        self.monitor.cancelled()
    }
}
