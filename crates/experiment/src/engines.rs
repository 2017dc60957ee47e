//! The registry of engines: one line per engine.
//!
//! An engine and its options are defined in `theory` or `simulate` (tables of other programs in `recorded.rs`); a description chooses one by `engine = "<name>"` and
//! gives its options beside it.

use crate::source::nearest;
use didact_model::{Engine, EngineOptions, OptionError};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Makes the enum of all engines from the names of its variants and the types of their options.
macro_rules! engines {
    ($($(#[$note:meta])* $name:ident($options:ty),)*) => {
        /// An engine and its options, told apart by the key `engine`.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "engine", rename_all = "kebab-case")]
        pub enum EngineSpec {
            $($(#[$note])* $name($options),)*
        }

        impl EngineSpec {
            /// The engine with its options.
            pub fn engine(&self) -> Result<Box<dyn Engine>, OptionError> {
                match self {
                    $(Self::$name(options) => options.engine(),)*
                }
            }

            /// The same engine for a drawing that moves ([`EngineOptions::in_haste`]).
            pub(crate) fn in_haste(&self, error: f64) -> Self {
                match self {
                    $(Self::$name(options) => Self::$name(options.in_haste(error)),)*
                }
            }

            /// Every engine: name, one line about it, and the keys of its options.
            pub fn catalogue() -> Vec<Registered> {
                vec![$(registered(Self::$name(<$options>::default()), <$options>::ABOUT, fits::<$options>),)*]
            }
        }
    };
}

engines! {
    /// Order-parameter equations: the limit of infinite dimension, with error control.
    Ode(didact_theory::OdeOptions),
    /// The overlaps alone, exact in law at any finite d, at a cost free of d.
    Reduced(didact_simulate::ReducedOptions),
    /// Plain SGD on d-dimensional weights.
    Direct(didact_simulate::DirectOptions),
    /// Gradient descent on a fixed training set.
    FullBatch(didact_simulate::FullBatch),
    /// Dynamical mean-field theory of full-batch gradient descent.
    Dmft(didact_theory::dmft::DmftOptions),
    /// A table that another program made.
    Recorded(crate::recorded::RecordedOptions),
}

impl Default for EngineSpec {
    fn default() -> Self {
        Self::Ode(didact_theory::OdeOptions::default())
    }
}

/// What is known of an engine before it has options.
pub struct Registered {
    /// Name in descriptions.
    pub name: String,
    /// What it is, in one line.
    pub about: &'static str,
    /// Its options and their defaults.
    pub options: Map<String, Value>,
    /// Whether a value is one that an option can take.
    fits: fn(&str, &Value) -> Result<(), String>,
}

fn registered(
    default: EngineSpec,
    about: &'static str,
    fits: fn(&str, &Value) -> Result<(), String>,
) -> Registered {
    let (name, options) = default.name_and_options();
    Registered { name, about, options, fits }
}

/// Whether an option can have this value, all others having their defaults.
fn fits<Options: DeserializeOwned>(option: &str, value: &Value) -> Result<(), String> {
    let alone = Map::from_iter([(option.to_string(), value.clone())]);
    serde_json::from_value::<Options>(Value::Object(alone)).map(|_| ()).map_err(|error| error.to_string())
}

impl EngineSpec {
    /// The engine of this name with these options.
    pub(crate) fn new(name: &str, run: &str, mut options: Map<String, Value>) -> Result<Self, String> {
        let all = Self::catalogue();
        let Some(own) = all.iter().find(|engine| engine.name == name) else {
            let names: Vec<&str> = all.iter().map(|engine| engine.name.as_str()).collect();
            let hint = match nearest(name, &names) {
                Some(name) => format!("did you mean `{name}`?"),
                None => format!("engines are {}", names.join(", ")),
            };
            return Err(format!("unknown engine `{name}` of run `{run}`\n\nhint: {hint}"));
        };
        for option in options.keys().filter(|option| !own.options.contains_key(*option)) {
            if let Some(owner) = all.iter().find(|engine| engine.options.contains_key(option)) {
                return Err(format!(
                    "run `{run}`: `{option}` belongs to engine `{}`, not `{name}`",
                    owner.name
                ));
            }
        }
        options.insert("engine".into(), name.into());
        serde_json::from_value(Value::Object(options)).map_err(|error| error.to_string())
    }

    /// The engine of this name with the default options, if there is one.
    pub fn named(name: &str) -> Option<Self> {
        let registered = Self::catalogue().into_iter().find(|engine| engine.name == name)?;
        Self::new(name, name, registered.options).ok()
    }

    /// Name in descriptions.
    pub fn name(&self) -> String {
        self.name_and_options().0
    }

    /// The options that differ from their defaults.
    pub(crate) fn chosen_options(&self) -> Map<String, Value> {
        let (name, options) = self.name_and_options();
        let defaults =
            Self::catalogue().into_iter().find(|e| e.name == name).map(|e| e.options).unwrap_or_default();
        options.into_iter().filter(|(key, value)| defaults.get(key) != Some(value)).collect()
    }

    fn name_and_options(&self) -> (String, Map<String, Value>) {
        let Ok(Value::Object(mut options)) = serde_json::to_value(self) else {
            unreachable!("a tagged enum of structs is a table")
        };
        let name = options.shift_remove("engine").and_then(|name| name.as_str().map(String::from));
        (name.expect("the tag is a text"), options)
    }

    /// Whether some engine has this option.
    pub(crate) fn has_option(option: &str) -> bool {
        Self::catalogue().iter().any(|engine| engine.options.contains_key(option))
    }

    /// The options of all engines.
    pub(crate) fn all_options() -> Vec<String> {
        Self::catalogue()
            .into_iter()
            .flat_map(|engine| engine.options.into_iter().map(|(key, _)| key))
            .collect()
    }

    /// Whether some engine takes this value for an option; what is wrong with it otherwise.
    pub(crate) fn check_value(option: &str, value: &Value) -> Result<(), String> {
        let mut result = Ok(());
        for engine in Self::catalogue().iter().filter(|engine| engine.options.contains_key(option)) {
            result = (engine.fits)(option, value);
            if result.is_ok() {
                break;
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_registered_under_their_own_names() {
        for Registered { name, options, .. } in EngineSpec::catalogue() {
            let spec = EngineSpec::new(&name, "run", options).unwrap();
            assert_eq!(spec.engine().unwrap().name(), name);
            assert!(spec.chosen_options().is_empty(), "defaults are not choices");
        }
    }

    #[test]
    fn chosen_options_are_those_that_differ_from_their_defaults() {
        let given =
            Map::from_iter([("tolerance".into(), Value::from(1e-6)), ("quadratic-term".into(), true.into())]);
        let spec = EngineSpec::new("ode", "run", given).unwrap();
        assert_eq!(spec.chosen_options(), Map::from_iter([("tolerance".into(), Value::from(1e-6))]));
        // An option whose default depends on the problem has none here, and is a choice whatever its value.
        let method = Map::from_iter([("method".into(), Value::from("explicit"))]);
        assert_eq!(EngineSpec::new("ode", "run", method.clone()).unwrap().chosen_options(), method);
    }
}
