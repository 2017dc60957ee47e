//! What a search found, as numbers with names and as changes of a description.

use crate::description::Overrides;
use didact_model::Trajectory;
use didact_model::training::Course;
use didact_theory::control::{Candidate, ControlKey};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Mutex;

/// Names of the numbers that a summary may have, beside `value:<key>` of a control that is one value.
pub(crate) const ENTRIES: [&str; 18] = [
    "objective",
    "constant",
    "constant-rate",
    "greedy",
    "given",
    "gain",
    "gain-constant",
    "gain-greedy",
    "gain-given",
    "certified",
    "projected-gradient",
    "sweep-difference",
    "hamiltonian-spread",
    "curvature",
    "hessian",
    "end-rate",
    "margin",
    "knots-difference",
];

/// What became of one start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct StartSummary {
    pub(crate) name: String,
    pub(crate) value: Option<f64>,
    pub(crate) iterations: usize,
    pub(crate) outcome: String,
}

/// What a search found. It is the first note of its table, as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Summary {
    /// Numbers by name; those that were not computed are missing.
    pub(crate) entries: Map<String, Value>,
    pub(crate) starts: Vec<StartSummary>,
    pub(crate) outcome: String,
    /// Controls as functions of the clock, by key.
    pub(crate) courses: Vec<(String, Course)>,
    /// Controls that are one value, by key.
    pub(crate) values: Vec<(String, Value)>,
    /// Lines for a description that is trained by the protocol.
    pub(crate) training: Vec<String>,
}

impl Summary {
    /// Of the table of a search.
    pub(crate) fn of_table(table: &Trajectory) -> Result<Self, String> {
        let note = table.notes.first().ok_or("the table of an optimisation has no summary")?;
        serde_json::from_str(note)
            .map_err(|error| format!("the summary of an optimisation cannot be read: {error}"))
    }

    /// An entry as a number.
    pub(crate) fn number(&self, entry: &str) -> Result<f64, String> {
        if let Some(value) = self.entries.get(entry) {
            return value.as_f64().ok_or_else(|| format!("`{entry}` is no number"));
        }
        let known: Vec<&str> = self.entries.keys().map(String::as_str).collect();
        Err(format!("the optimisation has no `{entry}`; it has {}", known.join(", ")))
    }

    /// The changes that make a description train by what was found.
    pub(crate) fn changes(&self) -> Overrides {
        let mut changes = Overrides::new();
        for (key, course) in &self.courses {
            changes.extend(course_changes(key, course));
        }
        changes.extend(self.values.iter().cloned());
        changes
    }
}

/// The changes that give a key a course: the learning rate takes one, other keys take it as the factor of 1.
pub(crate) fn course_changes(key: &str, course: &Course) -> Vec<(String, Value)> {
    let plain = json!({"times": course.times, "values": course.values});
    let factor = json!({"kind": "course", "times": course.times, "values": course.values});
    match ControlKey::of_path(key) {
        Some(ControlKey::WeightDecay) => {
            vec![(key.into(), json!(1.0)), ("training.weight-decay-schedule".into(), factor)]
        }
        Some(ControlKey::LabelNoise) => {
            vec![(key.into(), json!(1.0)), ("training.label-noise-schedule".into(), factor)]
        }
        _ => vec![(key.into(), plain)],
    }
}

/// Lines of TOML for the changes.
pub(crate) fn lines(changes: &Overrides) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::Object(table) => {
            let parts: Vec<String> = table.iter().map(|(key, value)| format!("{key} = {value}")).collect();
            format!("{{ {} }}", parts.join(", "))
        }
        other => other.to_string(),
    };
    changes.iter().map(|(key, value)| format!("{key} = {}", text(value))).collect()
}

/// Where an interrupted search stands, for the next one, and where the one before it stood.
#[derive(Debug, Default)]
pub(crate) struct SearchMemory {
    pub(crate) left: Mutex<Vec<Candidate>>,
    pub(crate) resume: Mutex<Vec<Candidate>>,
}
