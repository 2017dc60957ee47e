//! Every key of the schema of descriptions with hostile values: each is accepted, or refused with one clear message.
//!
//! For every property that the schema knows, a description is made of nothing but what leads to it, and the property
//! takes values of the wrong kind, size or length. What a check of the whole (`Experiment::new`) says is a message for a
//! user: one, short, and without words of the program.

use didact_experiment::{Experiment, Size, Source, reference};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// The schema, with references resolved.
struct Schema(Value);

impl Schema {
    fn resolve<'a>(&'a self, node: &'a Value) -> &'a Value {
        let target = node["$ref"].as_str().and_then(|r| r.strip_prefix('#'));
        target.and_then(|pointer| self.0.pointer(pointer)).unwrap_or(node)
    }

    /// The forms that a value may have: alternatives, or the node itself.
    fn forms<'a>(&'a self, node: &'a Value) -> Vec<&'a Value> {
        let node = self.resolve(node);
        let alternatives = ["oneOf", "anyOf"].iter().filter_map(|key| node[*key].as_array()).flatten();
        let mut all: Vec<&Value> = alternatives.flat_map(|inner| self.forms(inner)).collect();
        // A struct that flattens an enum has properties of its own beside the alternatives.
        if all.is_empty() || node["properties"].is_object() {
            all.push(node);
        }
        all
    }

    /// A value that fits: the smallest one, with what is required.
    fn smallest(&self, node: &Value, depth: usize) -> Value {
        let node = self.resolve(node);
        if depth > 12 {
            return Value::Null;
        }
        if let Some(value) = node.get("const") {
            return value.clone();
        }
        if let Some(first) = node["enum"].as_array().and_then(|list| list.first()) {
            return first.clone();
        }
        let mut value = match ["oneOf", "anyOf"].iter().find_map(|key| node[*key].as_array()) {
            Some(alternatives) => self.smallest(&alternatives[0], depth + 1),
            None => Value::Null,
        };
        let kinds: Vec<&str> = match &node["type"] {
            Value::String(one) => vec![one],
            Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
            _ => vec![],
        };
        match kinds.first() {
            Some(&"object") => {
                let mut table = value.as_object().cloned().unwrap_or_default();
                for key in node["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                    let inner = self.smallest(&node["properties"][key], depth + 1);
                    table.insert(key.into(), inner);
                }
                value = Value::Object(table);
            }
            Some(&"array") => {
                let fixed = node["prefixItems"].as_array();
                let count = node["minItems"].as_u64().unwrap_or(0) as usize;
                let item = |i: usize| fixed.and_then(|f| f.get(i)).unwrap_or(&node["items"]);
                value = (0..count).map(|i| self.smallest(item(i), depth + 1)).collect();
            }
            Some(&"string") => value = json!("x"),
            Some(&"integer") => value = json!(1),
            Some(&"number") => value = json!(0.5),
            Some(&"boolean") => value = json!(true),
            _ => {}
        }
        value
    }
}

/// Makes a description with a value at some place.
type Make<'a> = Rc<dyn Fn(Value) -> Value + 'a>;

/// One place of the schema, and how to make a description with a value there.
struct Place<'a> {
    path: String,
    key: String,
    make: Make<'a>,
}

/// Visits every property of every form once.
fn places<'a>(schema: &'a Schema) -> Vec<Place<'a>> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    // Where: the node, its path, and how a value there becomes a description.
    let whole: Make<'a> = Rc::new(|value: Value| value);
    let mut open: Vec<(&'a Value, String, Make<'a>)> = vec![(&schema.0, String::new(), whole)];
    while let Some((node, path, make)) = open.pop() {
        for form in schema.forms(node) {
            if !seen.insert(std::ptr::from_ref(form)) {
                continue;
            }
            let smallest = schema.smallest(form, 0);
            for (key, inner) in form["properties"].as_object().into_iter().flatten() {
                let (outer, base, name) = (make.clone(), smallest.clone(), key.clone());
                let with: Make<'a> = Rc::new(move |value: Value| {
                    let mut table = base.as_object().cloned().unwrap_or_default();
                    table.insert(name.clone(), value);
                    outer(Value::Object(table))
                });
                let here = format!("{path}.{key}");
                found.push(Place { path: here.clone(), key: key.clone(), make: with.clone() });
                open.push((inner, here, with));
            }
            if form["additionalProperties"].is_object() {
                let outer = make.clone();
                let with: Make<'a> = Rc::new(move |value: Value| outer(json!({"key": value})));
                open.push((&form["additionalProperties"], format!("{path}.*"), with));
            }
            if form["items"].is_object() {
                let outer = make.clone();
                let with: Make<'a> = Rc::new(move |value: Value| outer(json!([value])));
                open.push((&form["items"], format!("{path}[]"), with));
            }
        }
    }
    found
}

/// Values of the wrong kind, size or length. TOML writes what JSON cannot.
fn hostile() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1e308),
        json!(9_223_372_036_854_775_808_u64),
        json!(0.5),
        json!(""),
        json!("x\u{0}\u{1b}[31m\u{7f}"),
        json!("y".repeat(100_000)),
        json!([]),
        json!([[]]),
        json!([null, 1, "a"]),
        json!({}),
        json!({"": 1}),
    ]
}

/// What is wrong with what a check says of a text, if anything.
fn wrong(name: &str, text: String) -> Option<String> {
    let check = || Experiment::new(Source { name: name.into(), text }, Size::Normal, None);
    let Ok(checked) = catch_unwind(AssertUnwindSafe(check)) else { return Some("panics".into()) };
    let Err(diagnostic) = checked else { return None };
    let message = diagnostic.to_string();
    let words = [
        "NaN", "struct ", "enum ", "untagged", "variant", "usize", "u32", "u64", "f64", "panicked", "unwrap",
        "Some(",
    ];
    if let Some(word) = words.iter().find(|word| message.contains(*word)) {
        return Some(format!("says `{word}`: {message}"));
    }
    let control = message.chars().any(|c| c.is_control() && c != '\n');
    let long = message.lines().any(|line| line.chars().count() > 4200) || message.lines().count() > 12;
    (control || long || !message.starts_with("error: ")).then(|| format!("says `{message}`"))
}

#[test]
fn every_key_takes_hostile_values_with_one_clear_message() {
    let schema = Schema(reference::schema());
    let places = places(&schema);
    let keys: BTreeSet<&str> = places.iter().map(|p| p.key.as_str()).collect();
    for expected in [
        "learning-rate",
        "eigenvalues",
        "observe",
        "colour",
        "points",
        "equals",
        "until",
        "tolerance",
        "link",
    ] {
        assert!(keys.contains(expected), "no place for `{expected}`");
    }
    assert!(places.len() > 250, "{} keys", places.len());
    let mut faults = Vec::new();
    for Place { path, make, .. } in &places {
        for value in hostile() {
            let mut whole = make(value.clone());
            if let Some(table) = whole.as_object_mut() {
                table.entry("title").or_insert(json!("t"));
            }
            if let Some(fault) = wrong("hostile.json", whole.to_string()) {
                let shown: String = value.to_string().chars().take(40).collect();
                faults.push(format!("{path} = {shown}: {}", fault.chars().take(300).collect::<String>()));
            }
        }
    }
    assert!(faults.is_empty(), "{}:\n{}", faults.len(), faults.join("\n"));
}

/// The same in a description that is otherwise right, as TOML, which has nan, inf and dates.
#[test]
fn every_value_of_a_right_description_can_be_hostile() {
    let text = include_str!("hostile_base.toml");
    let source = |text: String| Source { name: "base.toml".into(), text };
    if let Err(error) = Experiment::new(source(text.into()), Size::Normal, None) {
        panic!("the base is right: {error}");
    }
    // A value stands after `= `, and ends at a comma, a brace or the end of the line.
    let starts: Vec<usize> = text.match_indices("= ").map(|(at, _)| at + 2).collect();
    let mut faults = Vec::new();
    for start in starts {
        let rest = &text[start..];
        let end = match rest.as_bytes()[0] {
            b'"' => rest[1..].find('"').unwrap() + 2,
            b'[' => rest.find(']').unwrap() + 1,
            b'{' => rest.find('}').unwrap() + 1,
            _ => rest.find([',', '}', '\n']).unwrap(),
        };
        for value in [
            "nan",
            "inf",
            "-inf",
            "0",
            "-1",
            "1e308",
            "9223372036854775807",
            "true",
            "\"\"",
            "[]",
            "{}",
            "[nan]",
            "1979-05-27",
            "\"\\u001B\"",
        ] {
            let changed = format!("{}{value}{}", &text[..start], &rest[end..]);
            if let Some(fault) = wrong("hostile.toml", changed) {
                let line = text[..start].matches('\n').count() + 1;
                faults.push(format!("line {line}, {value}: {fault}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn places_lead_to_their_key() {
    let schema = Schema(reference::schema());
    let found = places(&schema);
    let at = |path: &str| found.iter().find(|p| p.path == path).unwrap_or_else(|| panic!("no {path}"));
    let made = (at(".training.learning-rate").make)(json!(0.25));
    assert_eq!(made.pointer("/training/learning-rate"), Some(&json!(0.25)));
    let made = (at(".record.event[].level").make)(json!(7));
    assert_eq!(made.pointer("/record/event/0/level"), Some(&json!(7)));
}
