//! The registry of quantities: `family/name` with inputs, as command line, scans and measures ask for them.

use crate::guard;
use crate::points::Point;
use crate::source::nearest;
use didact_families::Model;
use didact_model::quantity::{Answer, Quantity};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Every quantity with its path, `group/name`.
pub fn all() -> Vec<(String, &'static Quantity)> {
    let registered = Model::quantities().into_iter().chain(didact_theory::quantities());
    let registered = registered.chain(crate::fluctuations::quantities());
    registered.map(|(group, q)| (format!("{group}/{}", q.name), q)).collect()
}

/// The quantity of a path such as `committee/plateau`.
pub fn find(path: &str) -> Result<&'static Quantity, String> {
    let all = all();
    if let Some((_, quantity)) = all.iter().find(|(known, _)| known == path) {
        return Ok(quantity);
    }
    let names: Vec<&str> = all.iter().map(|(known, _)| known.as_str()).collect();
    let hint = match nearest(path, &names) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("quantities are {}", names.join(", ")),
    };
    Err(format!("unknown quantity `{path}`\n\nhint: {hint}"))
}

/// The quantity of a path, all of whose required inputs are among the given ones, and no other is given.
pub fn check<'a>(path: &str, inputs: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
    let quantity = find(path)?;
    let given: Vec<&str> = inputs.into_iter().collect();
    let known: Vec<&str> = quantity.inputs.iter().map(|i| i.name).collect();
    if let Some(name) = given.iter().find(|n| !known.contains(n)) {
        let hint = match nearest(name, &known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("inputs are {}", known.join(", ")),
        };
        return Err(format!("`{path}` has no input `{name}`\n\nhint: {hint}"));
    }
    match quantity.inputs.iter().find(|i| i.default.is_none() && !given.contains(&i.name)) {
        Some(input) => Err(format!("`{path}` needs the input `{}`: {}", input.name, input.about)),
        None => Ok(()),
    }
}

/// Whether the inputs are of the kinds and magnitudes that a quantity takes; nothing is computed.
pub fn admits(path: &str, inputs: &Map<String, Value>) -> Result<(), String> {
    find(path)?.admits(inputs).map_err(|e| e.to_string())
}

/// Its named entries. A panic, which is a fault of the program, is an error that asks to be reported.
pub fn compute(path: &str, inputs: &Map<String, Value>) -> Result<Answer, NoAnswer> {
    let quantity = find(path).map_err(NoAnswer::Refused)?;
    let with = || format!("`{path}` with {}", Value::Object(inputs.clone()));
    let answer = guard::caught(with, || quantity.evaluate(inputs)).map_err(NoAnswer::Failed)?;
    answer.map_err(|error| NoAnswer::Refused(error.to_string()))
}

/// One entry of it (the first unless named) as a number. A panic is left to the caller, which knows what asked.
pub fn number(path: &str, inputs: &Map<String, Value>, entry: Option<&str>) -> Result<f64, String> {
    let answer = find(path)?.evaluate(inputs).map_err(|e| e.to_string())?;
    let found = match entry {
        Some(name) => answer.iter().find(|(n, _)| *n == name),
        None => answer.first(),
    };
    let names = || answer.iter().map(|(n, _)| *n).collect::<Vec<_>>().join(", ");
    let (_, value) = found
        .ok_or_else(|| format!("`{path}` has no entry `{}`; it has {}", entry.unwrap_or(""), names()))?;
    value.as_f64().ok_or_else(|| format!("`{path}`: the entry is no number"))
}

/// Named entries of an answer.
pub type Entries = BTreeMap<String, Value>;

/// Why a quantity has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoAnswer {
    /// There is none for these inputs, which is an answer too.
    Refused(String),
    /// The program failed: the next run tries again.
    Failed(String),
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Refused(why) | Self::Failed(why)) = self;
        out.write_str(why)
    }
}

/// The answer of a quantity at one point, or why there is none.
pub type Answered = Result<Entries, NoAnswer>;

/// Answers of a quantity over a grid.
pub type Rows = Vec<Answered>;

/// A quantity tabulated over a grid: the grid point and the entries, or why there are none.
#[derive(Debug, Clone)]
pub struct Scan {
    /// Name of the scan.
    pub name: String,
    /// One row per grid point.
    pub rows: Vec<(Point, Answered)>,
}

impl Scan {
    /// The points without an answer, and why.
    pub fn failures(&self) -> impl Iterator<Item = String> + '_ {
        self.rows.iter().filter_map(|(point, answer)| {
            answer.as_ref().err().map(|why| format!("scan {} at {}: {why}", self.name, point.label()))
        })
    }

    /// How many points the program failed at, which the next run tries again.
    pub fn failed_points(&self) -> usize {
        self.rows.iter().filter(|(_, answer)| matches!(answer, Err(NoAnswer::Failed(_)))).count()
    }

    /// The table as CSV: inputs, then entries; a point without an answer has an empty row.
    pub fn csv(&self) -> String {
        let inputs: Vec<&String> =
            self.rows.first().map(|(p, _)| p.values.keys().collect()).unwrap_or_default();
        // Not every row has every entry: some have the reason why one is missing.
        let entries: BTreeSet<&String> =
            self.rows.iter().filter_map(|(_, e)| e.as_ref().ok()).flat_map(BTreeMap::keys).collect();
        let entries: Vec<&String> = entries.into_iter().collect();
        let names: Vec<&str> = inputs.iter().chain(&entries).map(|n| n.as_str()).collect();
        let mut text = names.join(",") + "\n";
        for (point, answer) in &self.rows {
            let mut row: Vec<String> = inputs.iter().map(|k| point.values[*k].to_string()).collect();
            let entry = |name: &&String| {
                answer.as_ref().ok().and_then(|a| a.get(*name)).map_or(String::new(), Value::to_string)
            };
            row.extend(entries.iter().map(entry));
            text += &(row.join(",") + "\n");
        }
        text
    }
}
