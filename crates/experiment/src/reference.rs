//! The JSON schema of descriptions and the option reference made from it.

use crate::description::Description;
use didact_families::Model;
use serde_json::{Map, Value};

/// The JSON schema of a description. Every family is described by its own summary.
pub fn schema() -> Value {
    let mut schema =
        serde_json::to_value(schemars::schema_for!(Description)).expect("a schema is plain data");
    let families = Model::catalogue();
    for variant in schema["$defs"]["Model"]["oneOf"].as_array_mut().into_iter().flatten() {
        let summary = families.iter().find(|(name, _)| tag(variant) == Some(*name)).map(|(_, about)| *about);
        variant["description"] = summary.map(sentence).into();
    }
    schema
}

/// With a capital letter and a full stop.
fn sentence(summary: &str) -> String {
    let mut letters = summary.chars();
    let first: String = letters.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
}

/// The option reference as Markdown: every key with its type, default and meaning.
pub fn markdown() -> String {
    let schema = schema();
    let none = Map::new();
    let definitions = schema["$defs"].as_object().unwrap_or(&none).clone();
    let mut text = String::from(
        "# Option reference\n\nGenerated from the schema (`didact schema --markdown`); do not edit.\n\n## Description\n\n",
    );
    text += &section(&schema);
    for (name, definition) in &definitions {
        text += &format!("## {name}\n\n");
        text += &section(definition);
    }
    text
}

fn section(definition: &Value) -> String {
    let mut text = String::new();
    if let Some(about) = definition["description"].as_str() {
        text += &format!("{}\n\n", about.replace('\n', " "));
    }
    text += &properties(definition);
    for variants in ["oneOf", "anyOf"] {
        for variant in definition[variants].as_array().into_iter().flatten() {
            let name = variant["const"]
                .as_str()
                .or_else(|| tag(variant))
                .map_or_else(|| kind(variant), |n| format!("`{n}`"));
            let about = variant["description"].as_str().unwrap_or_default().replace('\n', " ");
            let inner = properties(variant);
            text += &if inner.is_empty() {
                format!("- {name}: {about}\n")
            } else {
                format!("### {name}\n\n{about}\n\n{inner}")
            };
        }
    }
    if let Some(values) = definition["enum"].as_array() {
        let names: Vec<String> = values.iter().filter_map(Value::as_str).map(|v| format!("`{v}`")).collect();
        text += &format!("One of {}.\n", names.join(", "));
    }
    text + "\n"
}

/// The constant that tells a variant apart.
fn tag(variant: &Value) -> Option<&str> {
    ["kind", "law", "family", "engine"].iter().find_map(|key| variant["properties"][*key]["const"].as_str())
}

fn properties(definition: &Value) -> String {
    let Some(properties) = definition["properties"].as_object() else { return String::new() };
    let required: Vec<&str> =
        definition["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut text = String::from("| key | type | default | meaning |\n|---|---|---|---|\n");
    for (name, property) in properties {
        let default = match property.get("default") {
            Some(value) => format!("`{value}`"),
            None if required.contains(&name.as_str()) => "required".into(),
            None => "none".into(),
        };
        let mut about =
            property["description"].as_str().unwrap_or_default().replace('\n', " ").replace('|', "\\|");
        if let Some(most) = property["maximum"].as_u64() {
            about += &format!(" At most {most}.");
        }
        text += &format!("| `{name}` | {} | {default} | {about} |\n", kind(property));
    }
    text + "\n"
}

fn kind(property: &Value) -> String {
    if let Some(target) = property["$ref"].as_str() {
        let name = target.rsplit('/').next().unwrap_or_default();
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(options) = property["anyOf"].as_array() {
        let names: Vec<String> = options.iter().map(kind).filter(|k| k != "null").collect();
        return names.join(" or ");
    }
    if let Some(constant) = property["const"].as_str() {
        return format!("`{constant}`");
    }
    match &property["type"] {
        Value::String(t) if t == "array" => format!("list of {}", kind(&property["items"])),
        Value::String(t) => t.clone(),
        Value::Array(types) if types.iter().any(|t| t == "array") => {
            format!("list of {}", kind(&property["items"]))
        }
        Value::Array(types) => {
            let names: Vec<&str> = types.iter().filter_map(Value::as_str).filter(|t| *t != "null").collect();
            names.join(" or ")
        }
        _ => "any".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_says_what_every_family_is_and_names_no_type_of_the_program() {
        let text = markdown();
        for (name, summary) in Model::catalogue() {
            assert!(text.contains(&format!("### `{name}`\n\n{}\n", sentence(summary))), "{name}");
        }
        assert!(!text.contains("See [`") && !text.contains("::"), "{text}");
    }
}
