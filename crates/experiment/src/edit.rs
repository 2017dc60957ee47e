//! Changes of single keys in the text of a description: comments, order and layout of everything else stay as they are.
//!
//! ```
//! use didact_experiment::Source;
//! use serde_json::json;
//!
//! let text = "title = \"t\"\n[training]\nlearning-rate = 1.0 # the step\n";
//! let source = Source { name: "t.toml".into(), text: text.into() };
//! let edited = source.with_key("training.learning-rate", &json!(0.5)).unwrap();
//! assert_eq!(edited.text, text.replace("1.0", "0.5"));
//! ```

use crate::overrides;
use crate::reader;
use crate::source::{Diagnostic, Source};
use serde_json::{Map, Value};
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// Numbers of more than this magnitude are written with an exponent, so that a slider does not fill the line with zeros.
const PLAIN: Range<f64> = 1e-4..1e15;

impl Source {
    /// The description as plain data, as it is written: nothing is filled in.
    pub fn plain(&self) -> Result<Value, Diagnostic> {
        if self.is_json() {
            return serde_json::from_str(&self.text).map_err(Diagnostic::new);
        }
        let table = DeTable::parse(&self.text).map_err(|e| self.explain(e.message(), e.span()))?;
        let plain =
            reader::plain(table.get_ref()).map_err(|fault| fault.diagnostic.at_key(self, &fault.path))?;
        Ok(plain.0)
    }

    /// The same description as TOML; what is TOML already stays as it is.
    pub fn as_toml(self) -> Result<Self, Diagnostic> {
        if !self.is_json() {
            return Ok(self);
        }
        let text = document(&self.plain()?);
        Ok(Self { name: self.name.trim_end_matches(".json").to_string() + ".toml", text })
    }

    /// The source with another value for a dotted key (`training.learning-rate`, `run.0.engine`), put where it belongs if the text
    /// does not have it.
    pub fn with_key(&self, path: &str, value: &Value) -> Result<Self, Diagnostic> {
        reader::check_key(path)?;
        let before = self.plain()?;
        if overrides::get(&before, path) == Some(value) {
            return Ok(self.clone());
        }
        let mut wanted = before;
        overrides::set(&mut wanted, path, value.clone());
        let edited = self.replaced(path, value).or_else(|| self.inserted(path, value));
        Ok(self.that_says(&wanted, edited))
    }

    /// The source without a dotted key, which then has its default.
    pub fn without_key(&self, path: &str) -> Result<Self, Diagnostic> {
        reader::check_key(path)?;
        let mut wanted = self.plain()?;
        if !remove(&mut wanted, path) {
            return Ok(self.clone());
        }
        let edited = self.cut(path);
        Ok(self.that_says(&wanted, edited))
    }

    /// An edited text if it says what is wanted, else one that is written anew: an edit by the text alone cannot know every form of
    /// TOML, so each is read again before it is believed.
    fn that_says(&self, wanted: &Value, edited: Option<String>) -> Self {
        let named = |text| Self { name: self.name.clone(), text };
        let says = |source: &Self| source.plain().is_ok_and(|plain| plain == *wanted);
        edited.map(named).filter(says).unwrap_or_else(|| named(document(wanted)))
    }

    fn is_json(&self) -> bool {
        std::path::Path::new(&self.name).extension().is_some_and(|e| e == "json")
    }

    /// The text with the value at its place replaced.
    fn replaced(&self, path: &str, value: &Value) -> Option<String> {
        let document = DeTable::parse(&self.text).ok()?;
        let at = find(document.get_ref(), path)?;
        let mut text = self.text.clone();
        text.replace_range(at, &inline(value)?);
        Some(text)
    }

    /// The text with a key added to the nearest table that is there.
    fn inserted(&self, path: &str, value: &Value) -> Option<String> {
        let document = DeTable::parse(&self.text).ok()?;
        let parts: Vec<&str> = path.split('.').collect();
        let owner = (0..parts.len()).rev().find_map(|length| {
            let range =
                if length == 0 { None } else { Some(find(document.get_ref(), &parts[..length].join("."))?) };
            Some((length, range))
        });
        let (length, range) = owner?;
        let entry = format!(
            "{} = {}",
            parts[length..].iter().map(|p| key(p)).collect::<Vec<_>>().join("."),
            inline(value)?
        );
        let mut text = self.text.clone();
        let Some(range) = range else {
            // Keys of the description itself stand before its first table.
            let first = if text.starts_with('[') { Some(0) } else { text.find("\n[").map(|at| at + 1) };
            match first {
                Some(at) => text.insert_str(at, &format!("{entry}\n\n")),
                None => text.push_str(&format!("{}{entry}\n", if text.ends_with('\n') { "" } else { "\n" })),
            }
            return Some(text);
        };
        if self.text.get(range.clone())?.starts_with('{') {
            let inner = self.text[range.start + 1..range.end - 1].trim_end();
            let at = range.start + 1 + inner.len();
            let comma = if inner.trim().is_empty() { " " } else { ", " };
            let end = if self.text[at..range.end - 1].is_empty() { " " } else { "" };
            text.insert_str(at, &format!("{comma}{entry}{end}"));
        } else {
            // A table with a header: the key comes right below it.
            let at = self.text[range.start..].find('\n').map_or(self.text.len(), |end| range.start + end);
            text.insert_str(at, &format!("\n{entry}"));
        }
        Some(text)
    }

    /// The text without an entry: its line where it has one for itself, else its part of the line.
    fn cut(&self, path: &str) -> Option<String> {
        let document = DeTable::parse(&self.text).ok()?;
        let (entry, value) = find_entry(document.get_ref(), path)?;
        let (from, to) = (entry.start, value.end);
        let line = self.text[..from].rfind('\n').map_or(0, |at| at + 1);
        let end = self.text[to..].find('\n').map_or(self.text.len(), |at| to + at + 1);
        let rest = self.text[to..end].trim();
        let mut text = self.text.clone();
        if self.text[line..from].trim().is_empty() && (rest.is_empty() || rest.starts_with('#')) {
            text.replace_range(line..end, "");
        } else if let Some(comma) = self.text[to..]
            .find(|c: char| !c.is_whitespace())
            .filter(|at| self.text[to + at..].starts_with(','))
        {
            text.replace_range(from..to + comma + 1, "");
        } else {
            let before = self.text[..from].trim_end();
            let before = before.strip_suffix(',').unwrap_or(before);
            text.replace_range(before.len()..to, "");
        }
        Some(text)
    }
}

/// Where the value of a dotted path stands.
fn find(table: &DeTable, path: &str) -> Option<Range<usize>> {
    find_entry(table, path).map(|(_, value)| value)
}

/// Where the key of a dotted path stands, and where its value does.
fn find_entry(table: &DeTable, path: &str) -> Option<(Range<usize>, Range<usize>)> {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let (key, value) = table.iter().find(|(key, _)| key.get_ref() == first)?;
    within(value, rest, key.span())
}

fn within(
    value: &toml::Spanned<DeValue>,
    rest: Option<&str>,
    key: Range<usize>,
) -> Option<(Range<usize>, Range<usize>)> {
    let Some(rest) = rest else { return Some((key, value.span())) };
    match value.get_ref() {
        DeValue::Table(table) => find_entry(table, rest),
        DeValue::Array(list) => {
            let (index, rest) =
                rest.split_once('.').map_or((rest, None), |(first, rest)| (first, Some(rest)));
            let entry = list.get(index.parse::<usize>().ok()?)?;
            within(entry, rest, entry.span())
        }
        _ => None,
    }
}

/// Takes a dotted path out of plain data; false when it is not there.
fn remove(value: &mut Value, path: &str) -> bool {
    let (owner, last) = path.rsplit_once('.').unwrap_or(("", path));
    let owner = if owner.is_empty() {
        Some(value)
    } else {
        owner.split('.').try_fold(value, |at, part| match part.parse::<usize>() {
            Ok(index) if at.is_array() => at.get_mut(index),
            _ => at.get_mut(part),
        })
    };
    match owner {
        Some(Value::Object(table)) => table.shift_remove(last).is_some(),
        Some(Value::Array(list)) => {
            let index = last.parse::<usize>().ok().filter(|index| *index < list.len());
            index.map(|index| list.remove(index)).is_some()
        }
        _ => false,
    }
}

/// A key as TOML writes it: bare where it may be.
fn key(part: &str) -> String {
    let bare = !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if bare { part.into() } else { quoted(part) }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.into()).to_string()
}

/// A value on one line; `None` for what TOML cannot say.
fn inline(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.to_string(),
            None => float(number.as_f64()?),
        },
        Value::String(text) => quoted(text),
        Value::Array(list) => {
            format!("[{}]", list.iter().map(inline).collect::<Option<Vec<_>>>()?.join(", "))
        }
        Value::Object(table) => {
            let entry =
                |(name, value): (&String, &Value)| Some(format!("{} = {}", key(name), inline(value)?));
            let entries =
                table.iter().filter(|(_, v)| !v.is_null()).map(entry).collect::<Option<Vec<_>>>()?;
            if entries.is_empty() { "{}".into() } else { format!("{{ {} }}", entries.join(", ")) }
        }
    })
}

/// The shortest text that is read as this number.
fn float(number: f64) -> String {
    if number == 0.0 || PLAIN.contains(&number.abs()) { format!("{number:?}") } else { format!("{number:e}") }
}

/// A whole description as TOML: plain keys first, then a section for every table.
fn document(value: &Value) -> String {
    let none = Map::new();
    let all = value.as_object().unwrap_or(&none);
    let tables =
        |value: &Value| value.as_array().is_some_and(|l| !l.is_empty() && l.iter().all(Value::is_object));
    let mut text = String::new();
    let line = |name: &str, value: &Value| inline(value).map(|value| format!("{} = {value}\n", key(name)));
    for (name, value) in all.iter().filter(|(_, v)| !v.is_object() && !tables(v)) {
        text += &line(name, value).unwrap_or_default();
    }
    let mut section = |header: String, table: &Map<String, Value>| {
        let lines: String = table.iter().filter_map(|(name, value)| line(name, value)).collect();
        text += &format!("\n{header}\n{lines}");
    };
    for (name, value) in all {
        match value {
            Value::Object(table) => section(format!("[{}]", key(name)), table),
            Value::Array(list) if tables(value) => {
                for table in list.iter().filter_map(Value::as_object) {
                    section(format!("[[{}]]", key(name)), table);
                }
            }
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TEXT: &str = r#"# A comment.
title = "t"   # another

[model]
family = "committee" # which
students = 2

[data]
spectrum = { kind = "power-law", levels = 4, beta = 0.5 }

[[run]]
name = "theory"
engine = "ode"

[[run]]
name = "sgd"
engine = "reduced"
set = { "training.learning-rate" = 0.5 }
"#;

    fn source() -> Source {
        Source { name: "t.toml".into(), text: TEXT.into() }
    }

    fn lines_that_differ(edited: &str) -> Vec<&str> {
        edited.lines().filter(|line| !TEXT.lines().any(|old| old == *line)).collect()
    }

    #[test]
    fn a_value_is_replaced_where_it_stands_and_nothing_else_changes() {
        for (path, value, line) in [
            ("model.students", json!(3), "students = 3"),
            ("model.family", json!("x\"y"), "family = 'x\"y' # which"),
            (
                "data.spectrum.beta",
                json!(0.25),
                "spectrum = { kind = \"power-law\", levels = 4, beta = 0.25 }",
            ),
            ("run.1.engine", json!("direct"), "engine = \"direct\""),
            ("run.1.set", json!({"training.learning-rate": 2}), "set = { \"training.learning-rate\" = 2 }"),
            ("data.spectrum", json!({"kind": "isotropic"}), "spectrum = { kind = \"isotropic\" }"),
        ] {
            let edited = source().with_key(path, &value).unwrap();
            assert_eq!(lines_that_differ(&edited.text), [line], "{path}");
            assert_eq!(edited.text.lines().count(), TEXT.lines().count(), "{path}");
            assert_eq!(overrides::get(&edited.plain().unwrap(), path), Some(&value), "{path}");
        }
    }

    #[test]
    fn a_key_that_is_not_there_is_put_into_its_table() {
        for (path, value, line) in [
            ("model.activation", json!("relu"), "activation = \"relu\""),
            ("data.dimension", json!(100), "dimension = 100"),
            (
                "data.spectrum.groups",
                json!(2),
                "spectrum = { kind = \"power-law\", levels = 4, beta = 0.5, groups = 2 }",
            ),
            ("training.learning-rate", json!(1e-7), "training.learning-rate = 1e-7"),
            ("run.0.tolerance", json!(1e-5), "tolerance = 1e-5"),
            ("about", json!("a\nb"), "about = \"\"\""),
        ] {
            let edited = source().with_key(path, &value).unwrap();
            assert_eq!(lines_that_differ(&edited.text).first(), Some(&line), "{path}: {}", edited.text);
            assert!(edited.text.contains("# A comment.") && edited.text.contains("# which"), "{path}");
            let mut wanted = source().plain().unwrap();
            overrides::set(&mut wanted, path, value);
            assert_eq!(edited.plain().unwrap(), wanted, "{path}");
        }
    }

    #[test]
    fn a_key_is_taken_out_with_its_line_or_its_part_of_the_line() {
        for path in ["model.students", "data.spectrum.beta", "data.spectrum.kind", "run.1.set", "title"] {
            let edited = source().without_key(path).unwrap();
            let mut wanted = source().plain().unwrap();
            assert!(remove(&mut wanted, path));
            assert_eq!(edited.plain().unwrap(), wanted, "{path}");
            assert!(edited.text.contains("# A comment."), "{path}: {}", edited.text);
        }
        assert_eq!(source().without_key("model.nothing").unwrap().text, TEXT);
    }

    /// The slow, obvious way is to change the data and write the text anew; an edit must say the same.
    #[test]
    fn what_an_edit_of_the_text_cannot_do_is_written_anew() {
        for (path, value) in [
            ("model", json!({"family": "formula", "loss": "h1"})),
            ("run", json!([{"name": "a", "engine": "ode"}])),
            ("run.0", json!({"name": "a", "engine": "ode"})),
            ("a.b.c", json!([1.5, "x", true])),
        ] {
            let edited = source().with_key(path, &value).unwrap();
            let mut wanted = source().plain().unwrap();
            overrides::set(&mut wanted, path, value);
            assert_eq!(edited.plain().unwrap(), wanted, "{path}: {}", edited.text);
        }
    }

    #[test]
    fn a_key_that_is_none_is_refused() {
        assert!(source().with_key("a..b", &json!(1)).is_err());
        assert!(source().with_key(&["a"; 40].join("."), &json!(1)).is_err());
    }

    #[test]
    fn json_becomes_toml_that_says_the_same() {
        let value = json!({"title": "t", "model": {"family": "committee"}, "run": [{"name": "a", "engine": "ode"}],
                           "quick": {"record.replicas": 4}, "sweep": {"data.dimension": [1, 2.5]}});
        let toml = Source::of_value(&value).as_toml().unwrap();
        assert_eq!(toml.plain().unwrap(), value);
        assert!(toml.text.contains("[[run]]\nname = \"a\""), "{}", toml.text);
    }
}
