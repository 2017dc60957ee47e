//! Schedules: stages that differ in some keys and end at a time or at an event, for any family and any engine.
//!
//! Every replica goes on from where its stage ended, at the time its stage ended; engines know nothing of it.

use crate::build;
use crate::description::{Description, Stage};
use crate::overrides;
use crate::source::{Diagnostic, Source};
use didact_families::Model;
use didact_math::linalg::Mat;
use didact_model::composed_start::{Restart, Restarted};
use didact_model::start::{Continued, Setting, Start, StartError};
use didact_model::trajectory::Replica;
use didact_model::{
    Engine, EngineError, Event, Monitor, Outcome, Overlaps, Problem, Record, Trajectory, observable,
};
use rayon::prelude::*;
use std::sync::Arc;

/// Name of the event that ends a stage.
const END_OF_STAGE: &str = "end of stage";

/// One stage, checked.
struct Planned {
    /// What a check needs: its rule may lack numbers that take long to compute.
    draft: Problem,
    model: Model,
    /// Ends at this time of the whole run.
    until: f64,
    /// Or at this event.
    event: Option<Event>,
    /// What begins anew after it.
    restart: Option<Restart>,
}

impl Planned {
    /// The problem that can be run.
    fn problem(&self) -> Result<Problem, EngineError> {
        Ok(Problem { rule: self.model.rule()?, ..self.draft.clone() })
    }

    /// Where the stage after this one, the `index`-th, begins; rows are those of engines that hand them over.
    fn next_start(&self, before: Overlaps, weights: Option<Arc<Mat>>, index: usize) -> Arc<dyn Start> {
        match &self.restart {
            None => Arc::new(Continued { overlaps: before, weights }),
            Some(restart) => Arc::new(Restarted { before, restart: restart.clone(), stage: index as u64 }),
        }
    }
}

/// A run with its stages, checked.
pub struct Plan {
    /// What is written down.
    pub record: Record,
    /// The engine.
    pub engine: Box<dyn Engine>,
    stages: Vec<Planned>,
}

impl Plan {
    /// Checks everything that can be wrong before anything runs.
    pub fn new(
        description: &Description,
        engine: Box<dyn Engine>,
        source: &Source,
    ) -> Result<Self, Diagnostic> {
        let mut plain = description.clone();
        let schedule = plain.training.as_mut().map(|t| std::mem::take(&mut t.stage)).unwrap_or_default();
        let last = build::problem(&plain, source)?;
        let model = |d: &Description| d.model.clone().expect("a problem has a model");
        let record = build::record(&plain, &last, source)?;
        let mut stages = Vec::new();
        for (index, stage) in schedule.iter().enumerate() {
            let key = |part: &str| format!("training.stage.{index}.{part}");
            let changed = overrides::with(&plain, &stage.set, source, &key("set"))?;
            let problem = build::problem(&changed, source)?;
            let event = end_event(stage, &problem, &key("until"), source)?;
            let until = stage.until.time.unwrap_or(f64::INFINITY).min(record.end());
            let restart =
                stage.restart.as_ref().map(|r| build::restart(r, &key("restart"), source)).transpose()?;
            stages.push(Planned { draft: problem, model: model(&changed), until, event, restart });
        }
        stages.push(Planned {
            draft: last,
            model: model(&plain),
            until: record.end(),
            event: None,
            restart: None,
        });
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

    /// The problem of the first stage, as a check sees it: not to be run.
    pub fn draft(&self) -> &Problem {
        &self.stages[0].draft
    }

    /// What the model has to say of this run before it starts.
    pub fn remarks(&self) -> Vec<String> {
        let problem = self.draft();
        let mut remarks: Vec<String> = problem.about.warning(problem).into_iter().collect();
        // Only theory stays where it starts for ever; the noise of a simulation leads away.
        if self.engine.name() == "ode" {
            let start = problem.start.draw(&setting(problem, self.record.seed));
            remarks.extend(start.ok().and_then(|start| problem.about.invariance(&start)));
        }
        remarks
    }

    /// Runs all stages of all replicas.
    pub fn run(&self, monitor: &dyn Monitor) -> Result<Trajectory, EngineError> {
        let problems: Vec<Problem> = self.stages.iter().map(Planned::problem).collect::<Result<_, _>>()?;
        if let [only] = problems.as_slice() {
            return self.engine.run(only, &self.record, monitor);
        }
        let shared = Shared { monitor, replicas: f64::from(self.record.replicas) };
        let (numbers, one) = (self.record.replica_numbers(), |r| self.run_replica(&problems, r, &shared));
        // A training set is planned to have the memory, and the threads, for itself.
        let runs: Result<Vec<(Replica, Vec<String>)>, EngineError> =
            if self.draft().training.samples.is_some() {
                numbers.map(one).collect()
            } else {
                numbers.into_par_iter().map(one).collect()
            };
        let (replicas, notes): (Vec<_>, Vec<_>) = runs?.into_iter().unzip();
        Ok(Trajectory {
            engine: self.engine.name().into(),
            clock: self.draft().clock,
            times: self.record.times.clone(),
            columns: self.record.observables.iter().map(|o| o.name()).collect(),
            events: self.record.events.iter().map(|e| e.name.clone()).collect(),
            replicas,
            notes: notes.concat(),
        })
    }

    fn run_replica(
        &self,
        problems: &[Problem],
        number: u32,
        monitor: &Shared,
    ) -> Result<(Replica, Vec<String>), EngineError> {
        let mut whole: Option<Replica> = None;
        let mut notes = Vec::new();
        for (index, stage) in self.stages.iter().enumerate() {
            let (mut problem, begin) = (problems[index].clone(), whole.as_ref().map_or(0.0, |w| w.last_time));
            if let Some(before) = &whole {
                let ended = &self.stages[index - 1];
                problem.start = ended.next_start(before.last.clone(), before.weights.clone(), index);
            }
            let done = whole.as_ref().map_or(0, |w| w.rows.len());
            let mut record = self.stage_record(stage, begin, done, number);
            record.stage = index as u16;
            if record.times.is_empty() {
                continue;
            }
            let run = self.engine.run(&problem, &record, monitor)?;
            notes.extend(run.notes.iter().map(|n| format!("stage {}, {n}", index + 1)));
            let replica = run.replicas.into_iter().next().expect("one replica was asked for");
            let saved = self.record.times[done..]
                .iter()
                .filter(|t| **t <= begin + replica.last_time + 1e-9 * record.end())
                .count();
            let joined = join(whole, replica, begin, saved, self.record.events.len());
            let over = !matches!(&joined.outcome, Outcome::Completed);
            whole = Some(joined);
            if over {
                break;
            }
        }
        Ok((whole.expect("a schedule has a stage with a time"), notes))
    }

    /// The saved times and events of one stage, counted from its beginning.
    fn stage_record(&self, stage: &Planned, begin: f64, done: usize, number: u32) -> Record {
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
        EngineError::NoTrainingSet { .. } => "record.observe",
        EngineError::FullBatch { .. } => "data",
        EngineError::TooLarge { .. } => "data.dimension",
        _ => "run",
    };
    Diagnostic::new(error).at_key(source, key)
}

/// Draws one start, so that an impossible one is refused before anything runs.
fn try_start(problem: &Problem, seed: u64, limit: bool, source: &Source) -> Result<(), Diagnostic> {
    let setting = setting(problem, seed);
    // Mean-field theory starts from the limit of random rows.
    let start = if limit && problem.training.samples.is_some() {
        problem.start.limit(setting.shape, setting.spectrum)
    } else {
        problem.start.draw(&setting)
    };
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
fn try_handing_over(stages: &[Planned], seed: u64, source: &Source) -> Result<(), Diagnostic> {
    for (index, pair) in stages.windows(2).enumerate() {
        let (before, after) = (&pair[0], &pair[1]);
        let key = |part: &str| format!("training.stage.{index}.{part}");
        let setting = setting(&before.draft, seed);
        if setting.shape != after.draft.rule.shape() {
            let message = format!(
                "stage {} trains a model of other rows or scalars than what follows it, which goes on from its overlaps",
                index + 1
            );
            let hint = "a stage may change any key that leaves the numbers of students, teachers and scalars";
            return Err(Diagnostic::new(message).hint(hint).at_key(source, &key("set")));
        }
        if before.restart.is_some() {
            let state = before.draft.start.draw(&setting);
            let next = state.and_then(|state| before.next_start(state, None, index + 1).draw(&setting));
            next.map_err(|error| Diagnostic::new(error).at_key(source, &key("restart")))?;
        }
    }
    Ok(())
}

fn setting(problem: &Problem, seed: u64) -> Setting<'_> {
    let Problem { rule, spectrum, dimension, .. } = problem;
    Setting { shape: rule.shape(), spectrum, dimension: *dimension, seed, replica: 0 }
}

/// Appends a stage to what came before it.
fn join(before: Option<Replica>, mut stage: Replica, begin: f64, saved: usize, events: usize) -> Replica {
    stage.rows.truncate(saved);
    stage.last_time += begin;
    stage.events.truncate(events);
    stage.events.iter_mut().for_each(|e| *e = e.map(|t| t + begin));
    stage.outcome = match stage.outcome {
        Outcome::Stopped { by, .. } if by == END_OF_STAGE => Outcome::Completed,
        Outcome::Stopped { by, at } => Outcome::Stopped { by, at: at + begin },
        Outcome::Diverged { at } => Outcome::Diverged { at: at + begin },
        Outcome::Completed => Outcome::Completed,
    };
    let Some(mut whole) = before else { return stage };
    whole.rows.append(&mut stage.rows);
    for (old, new) in whole.events.iter_mut().zip(stage.events) {
        *old = old.or(new);
    }
    Replica { rows: whole.rows, events: whole.events, ..stage }
}

/// Stages on a training set need an engine that hands its rows over, and one dimension and training set throughout.
fn check_training_set(stages: &[Planned], engine: &dyn Engine, source: &Source) -> Result<(), Diagnostic> {
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

fn end_event(
    stage: &Stage,
    problem: &Problem,
    key: &str,
    source: &Source,
) -> Result<Option<Event>, Diagnostic> {
    let until = &stage.until;
    let incomplete = || {
        Diagnostic::new("a stage ends at a `time`, or when an `observable` `rises` or `falls` (crossing) through a `level`")
            .at_key(source, key)
    };
    match (&until.observable, until.crossing, until.level) {
        (None, None, None) if until.time.is_some() => Ok(None),
        (Some(name), Some(crossing), Some(level)) => {
            let found =
                observable::parse(name, problem).map_err(|e| Diagnostic::new(e).at_key(source, key))?;
            let [observable] = found.as_slice() else { return Err(incomplete()) };
            let observable = observable.clone();
            Ok(Some(Event { name: END_OF_STAGE.into(), observable, level, crossing, stops: true }))
        }
        _ => Err(incomplete()),
    }
}

/// Spreads the progress of single replicas over the whole run; stages overlap in it, so it only grows to at most 1.
struct Shared<'a> {
    monitor: &'a dyn Monitor,
    replicas: f64,
}

impl Monitor for Shared<'_> {
    fn advance(&self, fraction: f64) {
        self.monitor.advance(fraction / self.replicas);
    }
    fn cancelled(&self) -> bool {
        self.monitor.cancelled()
    }
}
