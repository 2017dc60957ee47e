//! The input `model` of a quantity, written as under `[model]` of a description. This is the one place of the crate that asks the
//! registry of families; everything else knows rules.

use didact_families::Model;
use didact_model::LocalRule;
use didact_model::plain_words::in_plain_words;
use didact_model::quantity::{Arguments, Input, Kind, QuantityError};
use serde_json::Value;
use std::sync::Arc;

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
    serde_json::from_value(given.clone()).map_err(|error| {
        let words = in_plain_words(&error.to_string());
        refused(format!("input `model`: {words}"))
    })
}

/// Its rule.
pub(crate) fn rule(arguments: &Arguments) -> Result<Arc<dyn LocalRule>, QuantityError> {
    model(arguments)?.rule().map_err(|error| QuantityError::Domain(format!("input `model`: {error}")))
}
