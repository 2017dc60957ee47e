//! A number of an optimisation.

use super::{Dependency, Estimate, Findings, MeasureDefinition, MeasuredValues, Planned, WrongKey};
use crate::optimise::{ENTRIES, Summary};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An entry of an `[[optimise]]`: its objective, a baseline, the gain in percent, an item of the certificate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OptimumMeasure {
    /// Name of the optimisation.
    pub optimise: String,
    /// `objective`, `constant`, `constant-rate`, `greedy`, `given`, `gain`, `gain-<baseline>`, `certified`, `value:<key>` of a control that
    /// is one value, or an item of the certificate.
    #[serde(default = "objective")]
    pub entry: String,
}

fn objective() -> String {
    "objective".into()
}

impl MeasureDefinition for OptimumMeasure {
    fn depends_on(&self) -> Vec<Dependency<'_>> {
        vec![Dependency::optimise(&self.optimise)]
    }

    fn check(&self, _planned: &Planned) -> Result<(), WrongKey> {
        let entry = self.entry.as_str();
        if ENTRIES.contains(&entry) || entry.starts_with("value:") {
            return Ok(());
        }
        let known = ENTRIES.join(", ");
        Err(("entry", format!("an optimisation has no entry `{entry}`; it has {known} and value:<key>")))
    }

    fn evaluate(&self, findings: &Findings) -> MeasuredValues {
        findings.at_each_point(|point| {
            let table = findings.optimum(point, &self.optimise)?;
            Ok(Estimate::exact(Summary::of_table(table)?.number(&self.entry)?))
        })
    }
}
