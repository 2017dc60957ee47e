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

    /// As [`Self::fill`], for text that is read: names of functions are typeset.
    pub fn fill_label(&self, template: &str) -> String {
        let mut typeset = self.clone();
        for (key, value) in &mut typeset.values {
            // Inside a formula a name stays as it is written.
            let open = template.split(&format!("{{{key}}}")).next().unwrap_or("").matches('$').count() % 2;
            if let (Value::String(name), 0) = (&*value, open) {
                *value = Value::String(in_tex(name));
            }
        }
        typeset.fill(template)
    }
}

/// The name of a function as a reader knows it, `He3` as He with an index; anything else as it is.
fn in_tex(name: &str) -> String {
    match name {
        "relu" => return "ReLU".into(),
        "gelu" => return "GeLU".into(),
        "erf(z)" => return r"$\mathrm{erf}(z)$".into(),
        "erf(z/sqrt2)" => return r"$\mathrm{erf}(z/\sqrt{2})$".into(),
        _ => {}
    }
    for (prefix, symbol) in [("He", r"\mathrm{He}"), ("h", "h")] {
        if let Some(order) = name.strip_prefix(prefix)
            && !order.is_empty()
            && order.bytes().all(|byte| byte.is_ascii_digit())
        {
            return format!("${symbol}_{{{order}}}$");
        }
    }
    name.to_owned()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_functions_are_typeset_in_labels_and_kept_in_formulas() {
        let point = |name: &str| Point { index: 0, values: [("s".to_owned(), Value::from(name))].into() };
        assert_eq!(point("He12").fill_label("{s}, flow"), r"$\mathrm{He}_{12}$, flow");
        assert_eq!(point("erf(z/sqrt2)").fill_label("{s}"), r"$\mathrm{erf}(z/\sqrt{2})$");
        assert_eq!(point("relu").fill_label("{s}"), "ReLU");
        assert_eq!(point("hard").fill_label("{s}"), "hard");
        assert_eq!(point("h3").fill_label("$E[{s}]$"), "$E[h3]$");
        assert_eq!(point("relu").fill("{s}"), "relu", "groups are names, not text");
    }
}
