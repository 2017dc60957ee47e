//! Answers to the cases of `golden/fluctuations.json`: quantities of the same names.

use crate::compare::Answer;
use crate::inputs::Inputs;
use didact_experiment::quantities;
use serde_json::{Map, Value};

pub fn answer(kind: &str, inputs: &Inputs) -> Option<Answer> {
    let entries: &[&str] = match kind {
        "start-covariance" | "covariance" => &["covariance"],
        "diffusion" => &["diffusion"],
        "loss-band" => &["variance"],
        "passage-time" => &["time", "variance"],
        "required-dimension" => &["dimension"],
        "seed" => &["rate", "variance"],
        "escape-law" => &["mean", "deviation"],
        "mean-correction" => &["shift"],
        _ => return None,
    };
    let given: &Map<String, Value> = inputs.0.as_object().expect("inputs");
    let found = quantities::compute(&format!("fluctuations/{kind}"), given).unwrap_or_else(|e| panic!("{e}"));
    let entry = |name: &&str| {
        let (_, value) = found.iter().find(|(known, _)| known == name).expect("an entry");
        value.clone()
    };
    let values: Vec<Value> = entries.iter().map(entry).collect();
    Some(Answer::exact(if let [only] = values.as_slice() { only.clone() } else { Value::from(values) }))
}
