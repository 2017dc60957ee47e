//! The stages of a schedule.

use super::start::restart;
use super::{problem, record};
use crate::description::{Description, Stage};
use crate::overrides;
use crate::schedule::{END_OF_STAGE, PlannedStage};
use crate::source::{Diagnostic, Source};
use didact_model::{Event, Problem, Record, observable};

/// What a run writes down, and its stages: those of the schedule in order, then training as described outside of it.
pub fn stages(description: &Description, source: &Source) -> Result<(Record, Vec<PlannedStage>), Diagnostic> {
    let mut plain = description.clone();
    let schedule = plain.training.as_mut().map(|t| std::mem::take(&mut t.stage)).unwrap_or_default();
    let last = problem(&plain, source)?;
    let model = |d: &Description| d.model.clone().expect("a problem has a model");
    let record = record(&plain, &last, source)?;
    let mut stages = Vec::new();
    for (index, stage) in schedule.iter().enumerate() {
        let key = |part: &str| format!("training.stage.{index}.{part}");
        let changed = overrides::with(&plain, &stage.set, source, &key("set"))?;
        let draft = problem(&changed, source)?;
        let event = end_event(stage, &draft, &key("until"), source)?;
        let until = stage.until.time.unwrap_or(f64::INFINITY).min(record.end());
        let restart = stage.restart.as_ref().map(|r| restart(r, &key("restart"), source)).transpose()?;
        stages.push(PlannedStage { draft, model: model(&changed), until, event, restart });
    }
    let until = record.end();
    stages.push(PlannedStage { draft: last, model: model(&plain), until, event: None, restart: None });
    Ok((record, stages))
}

/// The event that ends a stage, if it does not end at a time alone.
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
