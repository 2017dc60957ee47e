//! `didact compute`: a quantity as JSON.

use super::list;
use crate::exit::Ending;
use didact_experiment::{Diagnostic, quantities};
use serde_json::{Map, Value};

pub(crate) fn compute(quantity: &str, inputs: &[String], help: bool) -> Result<Ending, Diagnostic> {
    if help {
        let found = quantities::find(quantity).map_err(Diagnostic::new)?;
        list::quantity(quantity, found);
        return Ok(Ending::Done);
    }
    let mut given = Map::new();
    for input in inputs {
        let Some((key, value)) = input.split_once('=') else {
            return Err(
                Diagnostic::new(format!("`{input}` is not an input")).hint("write inputs as key=value")
            );
        };
        // Numbers and lists are JSON; anything else is a word.
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        given.insert(key.into(), value);
    }
    let answer = quantities::compute(quantity, &given).map_err(Diagnostic::new)?;
    let object: Map<String, Value> =
        answer.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    say!("{:#}", Value::Object(object));
    Ok(Ending::Done)
}
