//! The input `model` of a quantity, written as under `[model]` of a description. This is the one place of the crate that asks the
//! registry of families; everything else knows rules.

use didact_families::Model;
use didact_model::LocalRule;
use didact_model::plain_words::in_plain_words;
use didact_model::quantity::{Arguments, Input, Kind, QuantityError};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// The input.
pub(crate) const MODEL: Input = Input {
    name: "model",
    kind: Kind::Any,
    default: None,
    about: "the model, as under [model] of a description",
};

/// The model of a question.
pub(crate) fn model(arguments: &Arguments) -> Result<Model, QuantityError> {
    let hint = "write it as the table [model] of a description";
    let refused = |words: String| QuantityError::Domain(format!("{words}\n\nhint: {hint}"));
    let given = arguments.value(MODEL.name);
    if !given.get("family").is_some_and(Value::is_string) {
        return Err(refused("input `model` is no table with a `family`".into()));
    }
    within_limits(given).map_err(|words| QuantityError::Domain(format!("input `model`: {words}")))?;
    serde_json::from_value(given.clone()).map_err(|error| {
        let words = in_plain_words(&error.to_string());
        refused(format!("input `model`: {words}"))
    })
}

/// Its rule.
pub(crate) fn rule(arguments: &Arguments) -> Result<Arc<dyn LocalRule>, QuantityError> {
    model(arguments)?.rule().map_err(|error| QuantityError::Domain(format!("input `model`: {error}")))
}

/// Refuses counts above the limit that stands beside their key in the schema of models: a description is checked when it is read, the
/// table of a quantity here, before anything is allocated.
fn within_limits(model: &Value) -> Result<(), String> {
    let Some(table) = model.as_object() else { return Ok(()) };
    for (key, value) in table {
        if let (Some(most), Some(number)) = (limits().get(key), value.as_f64())
            && number > *most
        {
            return Err(format!("`{key}` is {value}; the largest possible is {most}"));
        }
    }
    Ok(())
}

/// The largest value of every key of a model that has one. A key means the same in all families that have it.
fn limits() -> &'static BTreeMap<String, f64> {
    static LIMITS: OnceLock<BTreeMap<String, f64>> = OnceLock::new();
    LIMITS.get_or_init(|| {
        let mut found = BTreeMap::new();
        collect_limits(&schemars::schema_for!(Model).to_value(), &mut found);
        found
    })
}

fn collect_limits(schema: &Value, found: &mut BTreeMap<String, f64>) {
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(most) = property["maximum"].as_f64() {
            let limit = found.entry(key.clone()).or_insert(most);
            *limit = limit.max(most);
        }
    }
    match schema {
        Value::Object(parts) => parts.values().for_each(|part| collect_limits(part, found)),
        Value::Array(parts) => parts.iter().for_each(|part| collect_limits(part, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A committee with 2^63 − 1 teachers ended in an internal error: its weights were asked for before anything else was looked at.
    #[test]
    fn counts_of_a_model_have_the_limits_of_a_description() {
        let committee = |teachers: u64| json!({"family": "committee", "students": 2, "teachers": teachers});
        assert_eq!(within_limits(&committee(2048)), Ok(()));
        let refused = within_limits(&committee(i64::MAX as u64)).unwrap_err();
        assert_eq!(refused, "`teachers` is 9223372036854775807; the largest possible is 2048");
        for key in ["students", "teachers", "units", "directions", "trained", "frozen"] {
            assert!(limits().contains_key(key), "{key}: {:?}", limits());
        }
    }
}
