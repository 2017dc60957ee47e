//! A prediction that needs no run.

use super::{Dependency, Estimate, Findings, MeasureDefinition, MeasuredValues, Planned, WrongKey};
use crate::points::Point;
use crate::quantities;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
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

impl QuantityMeasure {
    /// The inputs with the values of swept keys put in.
    fn inputs_at(&self, point: &Point) -> Map<String, Value> {
        self.inputs.iter().map(|(key, value)| (key.clone(), point.replace(value))).collect()
    }
}

impl MeasureDefinition for QuantityMeasure {
    fn depends_on(&self) -> Vec<Dependency<'_>> {
        vec![Dependency::quantity(&self.quantity, self.inputs.keys())]
    }

    fn check(&self, planned: &Planned) -> Result<(), WrongKey> {
        let quantity = quantities::find(&self.quantity).map_err(|e| ("quantity", e))?;
        if let Some(entry) = self.entry.as_deref().filter(|entry| !quantity.outputs.contains(entry)) {
            let known = quantity.outputs.join(", ");
            return Err(("entry", format!("`{}` has no entry `{entry}`; it has {known}", self.quantity)));
        }
        for point in planned.points {
            quantities::admits(&self.quantity, &self.inputs_at(point)).map_err(|e| ("inputs", e))?;
        }
        Ok(())
    }

    fn evaluate(&self, findings: &Findings) -> MeasuredValues {
        findings.at_each_point(|point| {
            let inputs = findings.files().located(&self.quantity, self.inputs_at(point));
            let value = quantities::number(&self.quantity, &inputs, self.entry.as_deref())?;
            Ok(Estimate::exact(value))
        })
    }
}
