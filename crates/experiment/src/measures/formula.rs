//! A formula of other measures.

use super::{Dependency, Estimate, Findings, MeasureDefinition, MeasuredValues, Planned, WrongKey};
use crate::results::Missing;
use didact_math::expression::Expression;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A formula of earlier measures, its error from theirs to first order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FormulaMeasure {
    /// The formula, in the variables of `with`.
    pub formula: String,
    /// Variables and the measures they stand for.
    pub with: BTreeMap<String, String>,
}

impl MeasureDefinition for FormulaMeasure {
    fn depends_on(&self) -> Vec<Dependency<'_>> {
        let variables = self.with.iter();
        variables.map(|(variable, name)| Dependency::measure(format!("with.{variable}"), name)).collect()
    }

    fn check(&self, _planned: &Planned) -> Result<(), WrongKey> {
        let names: Vec<&str> = self.with.keys().map(String::as_str).collect();
        Expression::parse(&self.formula, &names).map(|_| ()).map_err(|e| ("formula", e.to_string()))
    }

    fn evaluate(&self, findings: &Findings) -> MeasuredValues {
        let Self { formula, with } = self;
        findings.at_each_point(|point| {
            let names: Vec<&str> = with.keys().map(String::as_str).collect();
            let expression = Expression::parse(formula, &names).map_err(|e| e.to_string())?;
            let inputs: Result<Vec<Estimate>, Missing> =
                with.values().map(|name| findings.measure(name)?.at(point)).collect();
            let inputs = inputs?;
            let values: Vec<f64> = inputs.iter().map(|e| e.value).collect();
            let mut gradient = vec![0.0; values.len()];
            let value = expression.gradient(&values, &mut gradient);
            let square: f64 = gradient.iter().zip(&inputs).map(|(g, e)| (g * e.error).powi(2)).sum();
            Ok(Estimate::new(value, square.sqrt()))
        })
    }
}
