//! What is written down.

use super::section;
use crate::description::Description;
use crate::source::{Diagnostic, Source};
use didact_model::{Clock, Event, Problem, Record, observable};

/// What a run of the problem writes down.
pub fn record(description: &Description, problem: &Problem, source: &Source) -> Result<Record, Diagnostic> {
    let spec = section(description.record.as_ref(), "record", source)?;
    let times = spec.times.numbers().ok_or_else(|| {
        Diagnostic::new("`times` is no list of numbers, and no range with points and positive ends")
            .at_key(source, "record.times")
    })?;
    if let Some(time) = times.iter().find(|t| problem.clock == Clock::Steps && !is_whole(**t)) {
        let message = format!("the clock counts steps, but {time} is not a whole number of them");
        let hint = "use whole numbers, or `integer = true` in a range of times";
        return Err(Diagnostic::new(message).hint(hint).at_key(source, "record.times"));
    }
    let parse = |text: &str, key: &str| {
        observable::parse(text, problem).map_err(|e| Diagnostic::new(e).at_key(source, key))
    };
    let mut observables = Vec::new();
    for text in &spec.observe {
        observables.extend(parse(text, "record.observe")?);
    }
    let mut record = Record::new(times, observables);
    for event in &spec.event {
        let found = parse(&event.observable, "record.event.observable")?;
        let [observable] = found.as_slice() else {
            let message = format!("event `{}` watches several observables; name one", event.name);
            return Err(Diagnostic::new(message).at_key(source, "record.event.observable"));
        };
        record.events.push(Event {
            name: event.name.clone(),
            observable: observable.clone(),
            level: event.level,
            crossing: event.crossing,
            stops: event.stops,
        });
    }
    record.replicas = spec.replicas;
    record.seed = spec.seed;
    record.watch_every = spec.watch_every;
    record.validate().map_err(|e| Diagnostic::new(e).at_key(source, "record.times"))?;
    Ok(record)
}

/// Whether a time is a whole number, but for the rounding of a range.
fn is_whole(time: f64) -> bool {
    (time - time.round()).abs() <= 1e-9 * time.abs().max(1.0)
}
