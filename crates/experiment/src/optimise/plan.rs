//! Checks of an `[[optimise]]`, and the run that it becomes.

use super::courses::CourseSearch;
use super::statics::StaticSearch;
use super::summary::{SearchMemory, course_changes};
use crate::build;
use crate::description::{BaselineName, ControlSpec, Description, MethodName, OptimiseSpec, Overrides};
use crate::overrides;
use crate::recorded::NamedColumn;
use crate::schedule::Schedule;
use crate::source::{Diagnostic, Source};
use crate::spectra;
use didact_model::observable::{self, Observable, Snapshot};
use didact_model::training::Course;
use didact_model::{Clock, Problem, Record};
use didact_theory::control::{ControlError, ControlKey};
use serde_json::Value;
use std::sync::Arc;

/// A search that was checked.
pub(crate) struct Planned {
    pub(crate) schedule: Schedule,
    pub(crate) memory: Arc<SearchMemory>,
    /// The description at this point, with the changes of the optimisation.
    pub(crate) description: Description,
}

/// What is made small.
#[derive(Debug, Clone)]
pub(super) enum Goal {
    Final { at: f64 },
    Integral { to: f64 },
    Reach { level: f64, within: f64 },
}

impl Goal {
    /// T, or the longest time.
    pub(super) fn horizon(&self) -> f64 {
        match self {
            Self::Final { at } => *at,
            Self::Integral { to } => *to,
            Self::Reach { within, .. } => *within,
        }
    }
}

/// Points at parts of one `[[optimise]]`.
struct Place<'a> {
    source: &'a Source,
    index: usize,
}

impl Place<'_> {
    fn refuse<T>(&self, part: &str, message: impl Into<String>, hint: &str) -> Result<T, Diagnostic> {
        let key = format!("optimise.{}.{part}", self.index);
        let message: String = message.into();
        Err(Diagnostic::new(message).hint(hint).at_key(self.source, &key))
    }
}

/// Checks an `[[optimise]]` at a point and makes it a run.
pub(crate) fn plan(
    description: &Description,
    spec: &OptimiseSpec,
    index: usize,
    source: &Source,
) -> Result<Planned, Diagnostic> {
    let place = Place { source, index };
    let owner = format!("optimise.{index}.set");
    let here = spectra::resolve_last(overrides::with(description, &spec.set, source, &owner)?, source)?;
    let (goal, text, part) = goal(spec, &place)?;
    if spec.starts == 0 {
        return place.refuse("starts", "`starts` is 0", "start at least once");
    }
    if !(spec.tolerance > 0.0 && spec.tolerance < 1.0) {
        let message = format!("the tolerance is {}", spec.tolerance);
        return place.refuse("tolerance", message, "use a number between 0 and 1");
    }
    if spec.baselines.is_empty() {
        return place.refuse(
            "baselines",
            "`baselines` is empty",
            "name what the optimum is compared with, or leave it out",
        );
    }
    let courses = controls(&here, spec, &place)?;
    let mut plain = here.clone();
    let stages = plain.training.as_mut().map(|t| std::mem::take(&mut t.stage)).unwrap_or_default();
    let problem = build::problem(&plain, source)?;
    let record = build::record(&plain, &problem, source)?;
    let last = record.end();
    if goal.horizon() > last * (1.0 + 1e-9) {
        let message = format!("the time {} is beyond the last saved time, {last}", goal.horizon());
        return place.refuse("objective", message, "extend `record.times`, or give an earlier time");
    }
    let found = observable::parse(&text, &problem)
        .map_err(|e| Diagnostic::new(e).at_key(source, &format!("optimise.{index}.objective.{part}")))?;
    let [observable] = found.as_slice() else {
        return place.refuse("objective", format!("`{text}` is several observables"), "name one");
    };
    let observable = observable.clone();
    if observable.needs_training_set() || observable.needs_velocities() {
        let message = format!("`{text}` is no function of the overlaps and scalars of a state");
        return place.refuse("objective", message, "use `loss`, an overlap or a formula of these");
    }
    let memory = Arc::new(SearchMemory::default());
    if courses.is_empty() {
        let search = StaticSearch::new(&here, spec, (goal, text), source);
        let columns = record.observables.clone();
        let schedule = schedule(Box::new(search), &record, columns, (&here, source))?;
        return Ok(Planned { schedule, memory, description: here });
    }
    if !stages.is_empty() {
        let hint = "optimise the end of a stage (`training.stage.0.until.time`) alone, or remove the stages";
        return place.refuse("controls", "a course is optimised for training without stages", hint);
    }
    let starts = starts(&problem, spec, &place, record.seed)?;
    check_problem(&problem, &courses, &place)?;
    if let Some(reason) = starts.iter().find_map(|start| problem.about.invariance(start)) {
        return place.refuse("name", format!("{reason}: no protocol leaves this start"), "start elsewhere");
    }
    if let Goal::Reach { level, .. } = goal {
        let value = observable.measure(&Snapshot::new(&starts[0], &problem));
        if value <= level {
            let error = ControlError::ReachedAtStart { observable: text, level, value };
            return Err(Diagnostic::new(error).at_key(source, &format!("optimise.{index}.objective.level")));
        }
    }
    let mut columns: Vec<Arc<dyn Observable>> = Vec::new();
    let mut declare = |name: String| columns.push(Arc::new(NamedColumn(name)));
    let names: Vec<String> = courses.iter().map(|(key, _)| key.column().to_string()).collect();
    names.iter().cloned().for_each(&mut declare);
    ["p.f1", "p.f2", "H"].map(String::from).into_iter().for_each(&mut declare);
    let observed: Vec<String> = record.observables.iter().map(|o| o.name()).collect();
    observed.iter().cloned().for_each(&mut declare);
    let only_rate = courses.len() == 1 && courses[0].0 == ControlKey::LearningRate;
    let baselines: Vec<BaselineName> =
        spec.baselines.iter().copied().filter(|b| *b != BaselineName::Greedy || only_rate).collect();
    for baseline in &baselines {
        names.iter().chain(&observed).for_each(|column| declare(format!("{}/{column}", baseline.word())));
    }
    let search = CourseSearch {
        spec: spec.clone(),
        goal,
        observable,
        controls: courses,
        observed: record.observables.clone(),
        baselines,
        memory: memory.clone(),
    };
    let schedule = schedule(Box::new(search), &record, columns, (&plain, source))?;
    Ok(Planned { schedule, memory, description: here })
}

/// The run of a search: one stage, and the columns that it declares.
fn schedule(
    engine: Box<dyn didact_model::Engine>,
    record: &Record,
    columns: Vec<Arc<dyn Observable>>,
    (description, source): (&Description, &Source),
) -> Result<Schedule, Diagnostic> {
    let mut plain = description.clone();
    if let Some(training) = &mut plain.training {
        training.stage.clear();
    }
    let (_, stages) = build::stages(&plain, source)?;
    let record = Record { observables: columns, events: Vec::new(), replicas: 1, ..record.clone() };
    Schedule::new(engine, record, stages, source)
}

/// The objective, the text of its observable, and the key under which that stands.
fn goal(spec: &OptimiseSpec, place: &Place) -> Result<(Goal, String, &'static str), Diagnostic> {
    const FORMS: &str = "give { minimise = \"loss\", at = T }, { minimise-integral = \"loss\", to = T } or { reach = \"loss\", \
                         level = L, within = T }";
    let o = &spec.objective;
    let forms = [o.minimise.is_some(), o.minimise_integral.is_some(), o.reach.is_some()];
    if forms.iter().filter(|given| **given).count() != 1 {
        let message = if forms.contains(&true) {
            "the objective has two forms"
        } else {
            "the objective says nothing to minimise"
        };
        return place.refuse("objective", message, FORMS);
    }
    let chosen = match (&o.minimise, &o.minimise_integral, &o.reach) {
        (Some(text), _, _) => match (o.at, o.to, o.level, o.within) {
            (Some(at), None, None, None) => (Goal::Final { at }, text.clone(), "minimise"),
            _ => return place.refuse("objective", "`minimise` takes the time `at` and nothing else", FORMS),
        },
        (_, Some(text), _) => match (o.at, o.to, o.level, o.within) {
            (None, Some(to), None, None) => (Goal::Integral { to }, text.clone(), "minimise-integral"),
            _ => {
                return place.refuse(
                    "objective",
                    "`minimise-integral` takes the time `to` and nothing else",
                    FORMS,
                );
            }
        },
        (_, _, Some(text)) => match (o.at, o.to, o.level, o.within) {
            (None, None, Some(level), Some(within)) => (Goal::Reach { level, within }, text.clone(), "reach"),
            _ => {
                return place.refuse(
                    "objective",
                    "`reach` takes a `level` and a time `within`, and nothing else",
                    FORMS,
                );
            }
        },
        _ => unreachable!("one form is given"),
    };
    let horizon = chosen.0.horizon();
    if horizon.is_nan() || horizon <= 0.0 {
        return place.refuse(
            "objective",
            format!("the time of the objective is {horizon}"),
            "give a positive time",
        );
    }
    Ok(chosen)
}

/// The controls that are courses; empty where all are single values.
fn controls(
    here: &Description,
    spec: &OptimiseSpec,
    place: &Place,
) -> Result<Vec<(ControlKey, ControlSpec)>, Diagnostic> {
    if spec.controls.is_empty() {
        let hint = "name what may be chosen: controls = [{ key = \"training.learning-rate\", knots = 40, bounds = [0, 5] }]";
        return place.refuse("controls", "`controls` is empty", hint);
    }
    let value = serde_json::to_value(here).expect("a description is plain data");
    let mut courses = Vec::new();
    for (c, control) in spec.controls.iter().enumerate() {
        let part = |key: &str| format!("controls.{c}.{key}");
        let key = control.key.as_str();
        if spec.controls[..c].iter().any(|other| other.key == key) {
            return place.refuse(&part("key"), format!("`{key}` is controlled twice"), "name every key once");
        }
        let [low, high] = control.bounds;
        let smallest = if key == "training.batch" { 1.0 } else { 0.0 };
        if !(low < high && low.is_finite() && high.is_finite()) {
            let message = format!("the bounds of `{key}` are [{low}, {high}]");
            return place.refuse(&part("bounds"), message, "give two numbers, the smaller one first");
        }
        if low < smallest && (ControlKey::of_path(key).is_some() || key == "training.batch") {
            let message = format!("the lower bound of `{key}` is {low}");
            return place.refuse(&part("bounds"), message, &format!("it is at least {smallest}"));
        }
        if let Some(knots) = control.knots {
            if key == "training.batch" {
                let message = "per sample only the ratio of learning rate and batch matters: a course of the batch is one of the rate";
                let hint = "optimise the course of `training.learning-rate`, and choose any batch; without `knots` the batch is one value";
                return place.refuse(&part("key"), message, hint);
            }
            if key == "training.momentum.beta" {
                let message = "momentum multiplies the learning rate by 1/(1 - beta): a course of it is one of the rate";
                let hint = "optimise the course of `training.learning-rate` without momentum; without `knots` beta is one value";
                return place.refuse(&part("key"), message, hint);
            }
            let Some(known) = ControlKey::of_path(key) else {
                let message = format!("`{key}` is not yet a function of the clock that can be optimised");
                let hint = "leave `knots` out to optimise it as one value; courses are training.learning-rate, \
                            training.constraint.weight-decay and training.label-noise";
                return place.refuse(&part("key"), message, hint);
            };
            if knots < 2 {
                return place.refuse(&part("knots"), format!("`{key}` has {knots} knots"), "use at least 2");
            }
            courses.push((known, control.clone()));
            continue;
        }
        match overrides::get(&value, key) {
            Some(found) if found.is_number() => {}
            Some(Value::Object(_)) if key == "training.learning-rate" => {
                let hint = "give the learning rate as a number: it is the rate of the baseline `given`";
                return place.refuse(&part("key"), format!("`{key}` is a course already"), hint);
            }
            Some(_) => {
                return place.refuse(
                    &part("key"),
                    format!("`{key}` is no number"),
                    "control a key that is a number",
                );
            }
            None => {
                let hint =
                    "write the key with a number in the description: its value there is the baseline `given`";
                return place.refuse(&part("key"), format!("the description has no number `{key}`"), hint);
            }
        }
    }
    let has = |key: &str| spec.controls.iter().any(|c| c.key == key);
    if has("training.learning-rate") && has("training.batch") {
        let message = "per sample only the ratio of learning rate and batch matters: they are one control";
        return place.refuse("controls", message, "control the learning rate, and choose any batch");
    }
    if !courses.is_empty() && courses.len() != spec.controls.len() {
        let message = "courses and single values are not optimised together";
        return place.refuse(
            "controls",
            message,
            "sweep the single values, and optimise the courses at every point",
        );
    }
    let only_rates = !courses.is_empty() && courses.iter().all(|(key, _)| *key == ControlKey::LearningRate);
    if spec.method == MethodName::Sweep && !only_rates {
        return place.refuse("method", "sweeps find the learning rate alone", "use `method = \"direct\"`");
    }
    Ok(courses)
}

/// Where learning starts: one state, or those of the first replicas of a random start.
fn starts(
    problem: &Problem,
    spec: &OptimiseSpec,
    place: &Place,
    seed: u64,
) -> Result<Vec<didact_model::Overlaps>, Diagnostic> {
    if problem.start.is_random() && spec.replicas.is_none() {
        let hint = "set `replicas` in [[optimise]], or give the start by `q` and `r` in [start]";
        return place.refuse("name", "the start is random, and no protocol is best for all starts", hint);
    }
    let count = if problem.start.is_random() { spec.replicas.unwrap_or(1).max(1) } else { 1 };
    let drawn: Result<Vec<_>, _> =
        (0..count).map(|r| problem.start.draw(&problem.setting(seed, r))).collect();
    drawn.map_err(|e| Diagnostic::new(e).at_key(place.source, "start"))
}

/// What the equations of a course need of the training.
fn check_problem(
    problem: &Problem,
    courses: &[(ControlKey, ControlSpec)],
    place: &Place,
) -> Result<(), Diagnostic> {
    let at = |error: ControlError, key: &str| Err(Diagnostic::new(error).at_key(place.source, key));
    let training = &problem.training;
    if training.samples.is_some() {
        return at(ControlError::TrainingSet, "data");
    }
    let has = |key: ControlKey| courses.iter().any(|(known, _)| *known == key);
    if has(ControlKey::LearningRate) && matches!(problem.clock, Clock::Flow | Clock::FlowPerUnit) {
        return at(ControlError::FlowClock, "record.clock");
    }
    for (key, schedule, path) in [
        (ControlKey::LearningRate, &training.schedule, "training.schedule"),
        (ControlKey::WeightDecay, &training.weight_decay_schedule, "training.weight-decay-schedule"),
        (ControlKey::LabelNoise, &training.label_noise_schedule, "training.label-noise-schedule"),
    ] {
        if has(key) && !schedule.is_constant() {
            let message = format!("`{}` is controlled and has a schedule", key.path());
            let hint = "remove the schedule: the optimisation finds one";
            return Err(Diagnostic::new(message).hint(hint).at_key(place.source, path));
        }
    }
    let mut plain = training.clone();
    for schedule in [&mut plain.schedule, &mut plain.weight_decay_schedule, &mut plain.label_noise_schedule] {
        *schedule = didact_model::training::FactorSchedule::default();
    }
    if plain.is_plain() { Ok(()) } else { at(ControlError::WayOfTraining, "training") }
}

/// Changes by which a run with a protocol can be checked before the protocol is known: courses that fall from the middle of the bounds to
/// their lower end, and the middle of the bounds of single values.
pub(crate) fn placeholder(spec: &OptimiseSpec) -> Overrides {
    let mut changes = Overrides::new();
    let end = spec.objective.at.or(spec.objective.to).or(spec.objective.within).unwrap_or(1.0);
    for control in &spec.controls {
        let [low, high] = control.bounds;
        let middle = f64::midpoint(low, high);
        if control.knots.is_some() {
            let course = Course { times: vec![0.0, end], values: vec![middle, low] };
            changes.extend(course_changes(&control.key, &course));
        } else {
            let whole = control.key == "training.batch";
            changes.insert(
                control.key.clone(),
                if whole { Value::from(middle.round() as u64) } else { Value::from(middle) },
            );
        }
    }
    changes
}
