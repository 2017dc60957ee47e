//! One `[[run]]`: an engine with its options, and changes to the description.
//!
//! The options stand beside the key `engine`. They belong to the engine, which defines them, so that a run is read in two
//! parts: its own keys, and those of [`EngineSpec`].

use super::Overrides;
use crate::engines::EngineSpec;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeSeed, Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// One engine on the problem.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunSpec {
    /// Name in figures, measures and files.
    pub name: String,
    /// The engine and its options.
    pub engine: EngineSpec,
    /// Changes to the description for this run alone.
    pub set: Overrides,
    /// Run only under `--full`.
    pub only_full: bool,
    /// Run only at the points of the sweep where these keys lie between two numbers: `{ "data.dimension" = [0, 4096] }`.
    pub within: BTreeMap<String, [f64; 2]>,
    /// Trained by what this `[[optimise]]` found.
    pub protocol: Option<String>,
}

/// The keys of a run that do not depend on its engine.
const OWN_KEYS: [&str; 6] = ["name", "engine", "set", "only-full", "where", "protocol"];

impl Serialize for RunSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("engine", &self.engine.name())?;
        for (option, value) in self.engine.chosen_options() {
            map.serialize_entry(&option, &value)?;
        }
        if !self.set.is_empty() {
            map.serialize_entry("set", &self.set)?;
        }
        map.serialize_entry("only-full", &self.only_full)?;
        if !self.within.is_empty() {
            map.serialize_entry("where", &self.within)?;
        }
        if let Some(protocol) = &self.protocol {
            map.serialize_entry("protocol", protocol)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for RunSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RunVisitor)
    }
}

/// A key of a run: one of its own, or an option of some engine.
struct RunKey(String);

impl<'de> Deserialize<'de> for RunKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let key = String::deserialize(deserializer)?;
        if OWN_KEYS.contains(&key.as_str()) || EngineSpec::has_option(&key) {
            return Ok(Self(key));
        }
        let options = EngineSpec::all_options();
        let known: Vec<String> = OWN_KEYS
            .into_iter()
            .chain(options.iter().map(String::as_str))
            .map(|known| format!("`{known}`"))
            .collect();
        Err(Error::custom(format!("unknown field `{key}`, expected one of {}", known.join(", "))))
    }
}

/// Reads the value of an option; one that no engine could take is refused here, where its place in the file is known.
struct OptionValue<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for OptionValue<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let value = Value::deserialize(deserializer)?;
        EngineSpec::check_value(self.0, &value).map_err(Error::custom)?;
        Ok(value)
    }
}

struct RunVisitor;

impl<'de> Visitor<'de> for RunVisitor {
    type Value = RunSpec;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("a run: its `name`, its `engine` and the options of the engine")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RunSpec, A::Error> {
        let (mut name, mut engine): (Option<String>, Option<String>) = (None, None);
        let mut run = RunSpec::default();
        let mut options = Map::new();
        while let Some(RunKey(key)) = map.next_key()? {
            match key.as_str() {
                "name" => name = Some(map.next_value()?),
                "engine" => engine = Some(map.next_value()?),
                "set" => run.set = map.next_value()?,
                "only-full" => run.only_full = map.next_value()?,
                "where" => run.within = map.next_value()?,
                "protocol" => run.protocol = Some(map.next_value()?),
                option => {
                    let value = map.next_value_seed(OptionValue(option))?;
                    options.insert(key, value);
                }
            }
        }
        run.name = name.ok_or_else(|| Error::missing_field("name"))?;
        let engine = engine.ok_or_else(|| Error::missing_field("engine"))?;
        run.engine = EngineSpec::new(&engine, &run.name, options).map_err(Error::custom)?;
        Ok(run)
    }
}

/// The schema of a run: its own keys, and one alternative per engine with the options of that engine.
#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(dead_code, reason = "only its schema is used")]
struct RunSchema {
    /// Name in figures, measures and files.
    name: String,
    /// Changes to the description for this run alone.
    #[serde(default)]
    set: Overrides,
    /// Run only under `--full`.
    #[serde(default)]
    only_full: bool,
    /// Run only at the points of the sweep where these keys lie between two numbers: `{ "data.dimension" = [0, 4096] }`.
    #[serde(default, rename = "where")]
    within: BTreeMap<String, [f64; 2]>,
    /// Trained by what the `[[optimise]]` of this name found, in place of the controlled keys.
    #[serde(default)]
    protocol: Option<String>,
    #[serde(flatten)]
    engine: EngineSpec,
}

impl JsonSchema for RunSpec {
    fn schema_name() -> Cow<'static, str> {
        "RunSpec".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = RunSchema::json_schema(generator);
        schema.insert(
            "description".into(),
            "One engine on the problem, with the options of the engine.".into(),
        );
        schema.insert("unevaluatedProperties".into(), false.into());
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<RunSpec, String> {
        toml::from_str(text).map_err(|error| error.message().to_string())
    }

    #[test]
    fn a_run_is_written_as_it_is_read() {
        let text = "name = \"flow\"\nengine = \"ode\"\nquadratic-term = false\nonly-full = true\n";
        let run = read(text).unwrap();
        assert_eq!(toml::to_string(&run).unwrap(), text);
        assert_eq!(read(&toml::to_string(&run).unwrap()).unwrap(), run);
    }

    #[test]
    fn options_are_checked_by_the_engine_that_owns_them() {
        let error = |rest: &str| read(&format!("name = \"x\"\n{rest}")).unwrap_err();
        assert!(
            error("engine = \"reduced\"\ntolerance = 1e-6").contains("`tolerance` belongs to engine `ode`")
        );
        assert!(error("engine = \"ode\"\ntolerance = \"low\"").contains("invalid type: string"));
        assert!(error("engine = \"ode\"\ntolernce = 1e-6").starts_with("unknown field `tolernce`"));
        assert!(error("engine = \"odee\"").contains("did you mean `ode`?"));
        assert!(error("").contains("missing field `engine`"));
    }
}
