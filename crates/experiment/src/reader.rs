//! What is refused in the raw tree of a description, before it becomes a [`Description`](crate::Description): numbers that
//! are not finite, lists where a table belongs, and counts beyond the limits that the schema states.
//!
//! The limits stand beside the keys that they belong to (`#[schemars(range(max = …))]`), so that the schema and the option
//! reference show them. Changes by `[quick]`, `[full]`, sweeps and runs pass here too.

use crate::reference;
use crate::source::Diagnostic;
use serde_json::{Map, Value};
use std::ops::Range;
use std::sync::OnceLock;
use toml::de::{DeTable, DeValue};

/// Dots of a key such as `training.learning-rate`; no key of a description is nearly as deep.
const LARGEST_DEPTH: usize = 32;

/// Something that is refused, and the dotted path of the key that it stands under.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fault {
    pub(crate) path: String,
    pub(crate) diagnostic: Diagnostic,
}

/// An `inf` that is meant, by its place in the text: the open end of a window.
type OpenEnds = Vec<(Range<usize>, &'static str)>;

/// A TOML table as plain data, and where windows have an open end. Numbers that are not finite are refused elsewhere.
pub(crate) fn plain(table: &DeTable) -> Result<(Value, OpenEnds), Fault> {
    let mut open = Vec::new();
    let value = plain_table(table, "", &mut open)?;
    Ok((value, open))
}

fn plain_table(table: &DeTable, path: &str, open: &mut OpenEnds) -> Result<Value, Fault> {
    let mut map = Map::new();
    for (key, value) in table {
        let here = join(path, key.get_ref());
        map.insert(key.get_ref().to_string(), plain_value(value, &here, open)?);
    }
    Ok(Value::Object(map))
}

fn plain_value(value: &toml::Spanned<DeValue>, path: &str, open: &mut OpenEnds) -> Result<Value, Fault> {
    Ok(match value.get_ref() {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Integer(digits) => whole_number(digits.as_str(), digits.radix()),
        DeValue::Float(number) => {
            let number: f64 = number.as_str().parse().unwrap_or(f64::NAN);
            let closed = self::number(path, number)?;
            if number.is_infinite() {
                let end = if number > 0.0 { "1.7976931348623157e308" } else { "-1.7976931348623157e308" };
                open.push((value.span(), end));
            }
            closed
        }
        DeValue::Boolean(flag) => Value::from(*flag),
        DeValue::Datetime(date) => Value::from(date.to_string()),
        DeValue::Array(list) => {
            let entries = list.iter().enumerate();
            Value::Array(
                entries
                    .map(|(i, v)| plain_value(v, &join(path, &i.to_string()), open))
                    .collect::<Result<_, _>>()?,
            )
        }
        DeValue::Table(table) => plain_table(table, path, open)?,
    })
}

/// A whole number. The deserialiser takes unsigned numbers of 64 bits too, so the limits must see them; beyond that it refuses a number
/// where it stands.
fn whole_number(digits: &str, radix: u32) -> Value {
    i64::from_str_radix(digits, radix)
        .map(Value::from)
        .or_else(|_| u64::from_str_radix(digits, radix).map(Value::from))
        .unwrap_or(Value::Null)
}

/// A finite number as it is, the open end of a window as the largest number; any other is refused.
pub(crate) fn number(path: &str, number: f64) -> Result<Value, Fault> {
    if number.is_infinite() && is_window(path) {
        return Ok(Value::from(if number > 0.0 { f64::MAX } else { f64::MIN }));
    }
    if number.is_finite() { Ok(Value::from(number)) } else { Err(not_finite(path, number)) }
}

/// Whether a path is that of one of the two numbers of a `window`.
fn is_window(path: &str) -> bool {
    path.rsplit('.').nth(1) == Some("window")
}

fn not_finite(path: &str, number: f64) -> Fault {
    let name = if number.is_nan() {
        "nan"
    } else if number > 0.0 {
        "inf"
    } else {
        "-inf"
    };
    let message = format!("`{path}` is {name}, which is not a finite number");
    Fault {
        path: path.into(),
        diagnostic: Diagnostic::new(message).hint("only the ends of a `window` may be inf"),
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.into() } else { format!("{path}.{key}") }
}

/// A key of `[quick]`, `[full]`, a sweep or a run: parts with a name, and not too many of them.
pub(crate) fn check_key(key: &str) -> Result<(), Diagnostic> {
    let parts = key.split('.').count();
    if key.split('.').any(str::is_empty) {
        let message = format!("`{key}` is no key: a part of it is empty");
        return Err(Diagnostic::new(message).hint("write keys as `training.learning-rate`"));
    }
    if parts > LARGEST_DEPTH {
        return Err(Diagnostic::new(format!(
            "a key of {parts} parts; there are none deeper than {LARGEST_DEPTH}"
        )));
    }
    Ok(())
}

/// A description as plain data against its schema, as far as the deserialiser is too kind or too late.
pub(crate) fn check(value: &Value) -> Result<(), Fault> {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    let root = SCHEMA.get_or_init(reference::schema);
    Checker { root }.value(root, value, "")
}

struct Checker<'a> {
    root: &'a Value,
}

impl<'a> Checker<'a> {
    /// What a reference stands for.
    fn resolve(&self, schema: &'a Value) -> &'a Value {
        let target = schema["$ref"].as_str().and_then(|r| r.strip_prefix('#'));
        target.and_then(|pointer| self.root.pointer(pointer)).unwrap_or(schema)
    }

    fn value(&self, schema: &'a Value, value: &Value, path: &str) -> Result<(), Fault> {
        let schema = self.resolve(schema);
        if value.is_array() && self.wants_table(schema) {
            let message = format!("`{path}` is a list; expected a table of keys and values");
            return fault(path, Diagnostic::new(message).hint(keys_of(schema)));
        }
        let name = path.rsplit('.').find(|part| part.parse::<usize>().is_err()).unwrap_or(path);
        if let (Some(most), Some(number)) = (schema["maximum"].as_f64(), value.as_f64())
            && number > most
        {
            return fault(
                path,
                Diagnostic::new(format!("`{name}` is {value}; the largest possible is {most}")),
            );
        }
        if let (Some(most), Some(text)) = (schema["maxLength"].as_u64(), value.as_str())
            && text.chars().count() as u64 > most
        {
            let length = text.chars().count();
            return fault(
                path,
                Diagnostic::new(format!("`{name}` has {length} characters; at most {most} are read")),
            );
        }
        if (value.is_number() || value.is_boolean()) && self.wants_word(schema) {
            let message = format!("`{path}` is {value}; expected a word");
            return fault(path, Diagnostic::new(message));
        }
        for alternatives in ["oneOf", "anyOf"] {
            let Some(alternatives) = schema[alternatives].as_array() else { continue };
            self.tags_are_words(alternatives, value, path)?;
            let fitting = alternatives.iter().filter(|a| self.fits(a, value));
            let faults: Vec<Fault> = match fitting.map(|a| self.value(a, value, path)).collect::<Vec<_>>() {
                checked if checked.iter().any(Result::is_ok) => continue,
                checked => checked.into_iter().filter_map(Result::err).collect(),
            };
            if let Some(first) = faults.into_iter().next() {
                return Err(first);
            }
        }
        match value {
            Value::Object(map) => {
                for (key, inner) in map {
                    let named = &schema["properties"][key.as_str()];
                    let inner_schema = if named.is_null() { &schema["additionalProperties"] } else { named };
                    self.value(inner_schema, inner, &join(path, key))?;
                }
            }
            Value::Array(list) => {
                for (index, inner) in list.iter().enumerate() {
                    let named = &schema["prefixItems"][index];
                    let inner_schema = if named.is_null() { &schema["items"] } else { named };
                    self.value(inner_schema, inner, &join(path, &index.to_string()))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Tables that are told apart by a tag have a word there. The deserialiser takes its position in the list as well.
    fn tags_are_words(&self, alternatives: &'a [Value], value: &Value, path: &str) -> Result<(), Fault> {
        for alternative in alternatives {
            let properties = self.resolve(alternative)["properties"].as_object();
            for (key, property) in properties.into_iter().flatten() {
                let given =
                    value.get(key).filter(|given| !given.is_string() && property["const"].is_string());
                if let Some(given) = given {
                    let message = format!("`{}` is {given}; expected a word", join(path, key));
                    return fault(&join(path, key), Diagnostic::new(message));
                }
            }
        }
        Ok(())
    }

    /// True when only words of a list are right here.
    fn wants_word(&self, schema: &'a Value) -> bool {
        let schema = self.resolve(schema);
        let words = |list: &Value| list.as_array().is_some_and(|all| all.iter().all(Value::is_string));
        let alternatives: Vec<&Value> =
            ["oneOf", "anyOf"].iter().filter_map(|key| schema[*key].as_array()).flatten().collect();
        let alternatives = alternatives.into_iter().filter(|a| a["type"] != "null");
        let wanted: Vec<bool> = alternatives.map(|a| self.wants_word(a)).collect();
        schema["const"].is_string()
            || words(&schema["enum"])
            || (!wanted.is_empty() && wanted.iter().all(|wanted| *wanted))
    }

    /// True when only tables are right here: a struct, or tables that are told apart by a tag.
    fn wants_table(&self, schema: &'a Value) -> bool {
        let schema = self.resolve(schema);
        let alternatives = ["oneOf", "anyOf"].iter().filter_map(|key| schema[*key].as_array()).flatten();
        let types = match &schema["type"] {
            Value::String(one) => vec![one.as_str()],
            Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        if types.is_empty() {
            let wanted: Vec<bool> =
                alternatives.filter(|a| a["type"] != "null").map(|a| self.wants_table(a)).collect();
            return !wanted.is_empty() && wanted.iter().all(|w| *w);
        }
        types.iter().all(|t| *t == "object" || *t == "null") && types.contains(&"object")
    }

    /// Whether a value may be meant as this alternative: of its type, and with its tags.
    fn fits(&self, schema: &'a Value, value: &Value) -> bool {
        let schema = self.resolve(schema);
        let of_type = |name: &str| match name {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "number" | "integer" => value.is_number(),
            "boolean" => value.is_boolean(),
            _ => value.is_null(),
        };
        let right_type = match &schema["type"] {
            Value::String(name) => of_type(name),
            Value::Array(names) => names.iter().filter_map(Value::as_str).any(of_type),
            _ => true,
        };
        // A schema of alternatives, such as a list of names, fits where one of them does.
        let mut alternatives = ["oneOf", "anyOf"].iter().filter_map(|key| schema[*key].as_array());
        let one_fits = alternatives.all(|all| all.iter().any(|a| self.fits(a, value)));
        let tags = schema["properties"].as_object().into_iter().flatten();
        let mut tags = tags.filter_map(|(key, property)| Some((key, property.get("const")?)));
        right_type && one_fits && tags.all(|(key, tag)| value.get(key).is_none_or(|given| given == tag))
    }
}

/// The keys of the table that is wanted, for a hint.
fn keys_of(schema: &Value) -> String {
    let direct = schema["properties"].as_object();
    let keys: Vec<String> =
        direct.into_iter().flatten().take(4).map(|(key, _)| format!("`{key} = …`")).collect();
    match keys.as_slice() {
        [] => "write `{ key = value, … }`".into(),
        keys => format!("write `{{ … }}` with keys such as {}", keys.join(", ")),
    }
}

fn fault(path: &str, diagnostic: Diagnostic) -> Result<(), Fault> {
    Err(Fault { path: path.into(), diagnostic })
}
