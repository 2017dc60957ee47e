//! New values for keys of a description: the one mechanism behind sweeps, schedules, runs, `--quick` and `--full`.

use crate::description::{Description, Overrides};
use crate::reader;
use crate::source::{Diagnostic, Source};
use serde_json::Value;

/// The description with some keys changed. An unknown key, or a value of the wrong type, is an error that names it.
pub fn with(
    base: &Description,
    changes: &Overrides,
    source: &Source,
    owner: &str,
) -> Result<Description, Diagnostic> {
    if changes.is_empty() {
        return Ok(base.clone());
    }
    let mut value = serde_json::to_value(base).expect("a description is plain data");
    for (path, new) in changes {
        reader::check_key(path).map_err(|fault| fault.at_key(source, owner))?;
        set(&mut value, path, new.clone());
    }
    reader::check(&value).map_err(|fault| {
        let mut diagnostic = fault.diagnostic;
        diagnostic.message = format!("{} (while changing it for {owner})", diagnostic.message);
        diagnostic.at_key(source, owner)
    })?;
    serde_json::from_value(value).map_err(|error| {
        let keys: Vec<&str> = changes.keys().map(String::as_str).collect();
        let mut diagnostic = source.explain(&error.to_string(), None);
        diagnostic.message =
            format!("{} (while changing {} for {owner})", diagnostic.message, keys.join(", "));
        diagnostic.at_key(source, owner)
    })
}

/// Sets a dotted path, making tables on the way; a number steps into a list.
pub(crate) fn set(value: &mut Value, path: &str, new: Value) {
    let mut at = value;
    for part in path.split('.') {
        at = match part.parse::<usize>() {
            Ok(index) if at.get(index).is_some() => &mut at[index],
            _ => {
                if !at.is_object() {
                    *at = Value::Object(serde_json::Map::new());
                }
                &mut at[part]
            }
        };
    }
    *at = new;
}

/// The value at a dotted path.
pub fn get<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |at, part| match part.parse::<usize>() {
        Ok(index) if at.is_array() => at.get(index),
        _ => at.get(part),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_step_into_tables_and_lists() {
        let mut value = json!({"a": {"b": [1, {"c": 2}]}});
        set(&mut value, "a.b.1.c", json!(5));
        set(&mut value, "a.new.key", json!("x"));
        assert_eq!(value, json!({"a": {"b": [1, {"c": 5}], "new": {"key": "x"}}}));
        assert_eq!(get(&value, "a.b.1.c"), Some(&json!(5)));
        assert_eq!(get(&value, "a.z"), None);
    }
}
