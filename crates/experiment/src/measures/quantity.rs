//! A prediction that needs no run.

use super::{Dependency, Estimate, Findings, MeasureDefinition, MeasuredValues};
use crate::quantities;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A predicted quantity, or one entry of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct QuantityMeasure {
    /// `family/quantity`.
    pub quantity: String,
    /// Its inputs; the text `"{key}"` stands for the value of a swept key.
    pub inputs: BTreeMap<String, Value>,
    /// Name of the entry, if it has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
}

impl MeasureDefinition for QuantityMeasure {
    fn depends_on(&self) -> Vec<Dependency<'_>> {
        vec![Dependency::quantity(&self.quantity, self.inputs.keys())]
    }

    fn evaluate(&self, findings: &Findings) -> MeasuredValues {
        findings.at_each_point(|point| {
            let inputs = self.inputs.iter().map(|(key, value)| (key.clone(), point.replace(value))).collect();
            let inputs = findings.files().located(&self.quantity, inputs);
            let value = quantities::number(&self.quantity, &inputs, self.entry.as_deref())?;
            Ok(Estimate::exact(value))
        })
    }
}
