//! The points of a sweep: every combination of the values of its keys.

use crate::description::{Overrides, Values};
use crate::source::{Diagnostic, Source};
use serde_json::Value;
use std::collections::BTreeMap;

/// Points of a sweep or of a scan.
const LARGEST_GRID: usize = 200_000;

/// One combination.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Position in the sweep.
    pub index: usize,
    /// The keys and their values.
    pub values: Overrides,
}

impl Point {
    /// Short text for messages: `data.dimension = 100`.
    pub fn label(&self) -> String {
        let parts: Vec<String> = self.values.iter().map(|(k, v)| format!("{k} = {v}")).collect();
        if parts.is_empty() { "the experiment".into() } else { parts.join(", ") }
    }

    /// True when every given key has this point's value.
    pub fn matches(&self, at: &Overrides) -> bool {
        let equal = |a: &Value, b: &Value| a == b || (a.is_number() && a.as_f64() == b.as_f64());
        at.iter().all(|(key, value)| self.values.get(key).is_some_and(|own| equal(own, value)))
    }

    /// True when every given key has a value of this point between the two numbers.
    pub fn lies_within(&self, ranges: &BTreeMap<String, [f64; 2]>) -> bool {
        ranges.iter().all(|(key, [low, high])| {
            self.values.get(key).and_then(Value::as_f64).is_some_and(|own| *low <= own && own <= *high)
        })
    }

    /// The value of a swept key for the text `"{key}"`; any other value as it is.
    pub fn replace(&self, value: &Value) -> Value {
        let key = value.as_str().and_then(|t| t.strip_prefix('{')).and_then(|t| t.strip_suffix('}'));
        key.and_then(|k| self.values.get(k)).unwrap_or(value).clone()
    }

    /// `{key}` of a legend replaced by the value of the key.
    pub fn fill(&self, template: &str) -> String {
        self.values.iter().fold(template.to_string(), |text, (key, value)| {
            let shown = match value {
                Value::String(s) => s.clone(),
                other => other.as_f64().map_or_else(|| other.to_string(), short),
            };
            text.replace(&format!("{{{key}}}"), &shown)
        })
    }
}

/// A number as a legend shows it: powers of ten as TeX, the rest plain.
fn short(value: f64) -> String {
    let exponent = value.abs().log10();
    if value > 0.0 && exponent.abs() >= 3.0 && (exponent - exponent.round()).abs() < 1e-12 {
        return format!("10^{{{}}}", exponent.round());
    }
    format!("{value}")
}

/// All combinations, the last key varying fastest.
pub fn expand(
    sweep: &BTreeMap<String, Values>,
    key: &str,
    source: &Source,
) -> Result<Vec<Point>, Diagnostic> {
    let mut combinations = vec![Overrides::new()];
    for (name, values) in sweep {
        let values = values.expand().filter(|v| !v.is_empty()).ok_or_else(|| {
            Diagnostic::new(format!("the sweep over `{name}` is empty"))
                .hint("give a list of values, or from, to and points (positive ends for log spacing)")
                .at_key(source, key)
        })?;
        if combinations.len().saturating_mul(values.len()) > LARGEST_GRID {
            let message = format!("the grid has more than {LARGEST_GRID} points with those of `{name}`");
            return Err(Diagnostic::new(message).hint("use fewer values").at_key(source, key));
        }
        combinations = combinations
            .iter()
            .flat_map(|c| {
                values.iter().map(|v| c.clone().into_iter().chain([(name.clone(), v.clone())]).collect())
            })
            .collect();
    }
    Ok(combinations.into_iter().enumerate().map(|(index, values)| Point { index, values }).collect())
}
