//! Where a number comes from: the equation behind an engine, a kind of measure or a quantity, with its derivation.
//!
//! Equations are read from the pages of `docs/derivations` at their anchors; `equations.toml` says which number comes from which.

use crate::overrides;
use crate::quantities;
use crate::source::Diagnostic;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The derivations, by the name of their page.
pub const DERIVATIONS: [(&str, &str); 6] = [
    ("gd-phase-transitions", include_str!("../../../../docs/derivations/gd-phase-transitions.md")),
    ("lora", include_str!("../../../../docs/derivations/lora.md")),
    ("low-rank-perturbation", include_str!("../../../../docs/derivations/low-rank-perturbation.md")),
    ("power-law-spectra", include_str!("../../../../docs/derivations/power-law-spectra.md")),
    ("quadratic-networks", include_str!("../../../../docs/derivations/quadratic-networks.md")),
    ("training-rules", include_str!("../../../../docs/derivations/training-rules.md")),
];

/// Why a number is what it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Explanation {
    /// What it is, in a sentence.
    pub says: String,
    /// The equation as TeX, without dollar signs.
    pub tex: Option<String>,
    /// Page and anchor of the derivation: `("lora", "eq-26")`.
    pub derivation: Option<(String, String)>,
}

/// A prediction that goes with a description.
#[derive(Debug, Clone)]
pub struct LiveQuantity {
    /// Path of the quantity, `family/name`.
    pub quantity: String,
    /// What it is called beside the figure.
    pub says: String,
    /// The entry of the answer.
    pub entry: String,
    /// The number, or why there is none.
    pub value: Result<f64, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Registry {
    engine: BTreeMap<String, Entry>,
    measure: BTreeMap<String, Entry>,
    live: Vec<Beside>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    says: String,
    tex: Option<String>,
    equation: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Beside {
    quantity: String,
    shows: BTreeMap<String, String>,
    when: BTreeMap<String, Value>,
    #[serde(default)]
    same: Vec<String>,
    inputs: BTreeMap<String, String>,
    equation: String,
}

fn registry() -> &'static Registry {
    static READ: OnceLock<Registry> = OnceLock::new();
    READ.get_or_init(|| toml::from_str(include_str!("equations.toml")).expect("a test reads this file"))
}

/// The text of a page, if there is one of this name.
pub fn derivation(page: &str) -> Option<&'static str> {
    DERIVATIONS.iter().find(|(name, _)| *name == page).map(|(_, text)| *text)
}

/// The equation that follows an anchor of a page, without its number.
fn equation_at(page: &str, anchor: &str) -> Option<String> {
    let text = derivation(page)?;
    let (_, after) = text.split_once(&format!("<a id=\"{anchor}\"></a>"))?;
    let (before, after) = after.split_once("```math\n")?;
    if !before.trim().is_empty() {
        return None;
    }
    let (tex, _) = after.split_once("```")?;
    Some(without_tag(tex.trim()).trim_end_matches([',', '.', ' ']).to_string())
}

/// An equation without `\tag{…}`.
pub fn without_tag(tex: &str) -> String {
    match tex.split_once("\\tag{") {
        Some((before, after)) => {
            format!("{}{}", before.trim_end(), after.split_once('}').map_or("", |(_, rest)| rest))
        }
        None => tex.into(),
    }
}

fn explained(says: &str, tex: Option<&String>, equation: Option<&String>) -> Explanation {
    let place = equation.and_then(|place| place.split_once('#'));
    let tex = tex.cloned().or_else(|| place.and_then(|(page, anchor)| equation_at(page, anchor)));
    Explanation {
        says: says.into(),
        tex,
        derivation: place.map(|(page, anchor)| (page.into(), anchor.into())),
    }
}

/// What explains a thing: `engine:ode`, `measure:event-time`, `quantity:committee/plateau`.
pub fn of(what: &str) -> Result<Explanation, Diagnostic> {
    let unknown = || Diagnostic::new(format!("there is no explanation of `{what}`"));
    let (kind, name) = what.split_once(':').ok_or_else(unknown)?;
    let entry = match kind {
        "engine" => registry().engine.get(name),
        "measure" => registry().measure.get(name),
        "quantity" => {
            let quantity = quantities::find(name).map_err(Diagnostic::new)?;
            let known = registry().live.iter().find(|live| live.quantity == name);
            return Ok(explained(&sentence(quantity.summary), None, known.map(|live| &live.equation)));
        }
        _ => None,
    };
    let entry = entry.ok_or_else(unknown)?;
    Ok(explained(&entry.says, entry.tex.as_ref(), entry.equation.as_ref()))
}

fn sentence(summary: &str) -> String {
    let mut letters = summary.chars();
    let first: String = letters.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
}

/// The predictions that go with a description, given with every default written out.
pub fn beside(description: &Value) -> Vec<LiveQuantity> {
    let mut all = Vec::new();
    for live in &registry().live {
        let has = |(key, value): (&String, &Value)| overrides::get(description, key) == Some(value);
        let first = live.same.first().and_then(|key| overrides::get(description, key));
        let equal = live.same.iter().all(|key| overrides::get(description, key) == first);
        if !live.when.iter().all(has) || !equal {
            continue;
        }
        let inputs: Map<String, Value> = live
            .inputs
            .iter()
            .filter_map(|(input, key)| Some((input.clone(), overrides::get(description, key)?.clone())))
            .filter(|(_, value)| !value.is_null())
            .collect();
        let answer = quantities::compute(&live.quantity, &inputs);
        for (entry, says) in &live.shows {
            let value = match &answer {
                Ok(answer) => {
                    let found = answer.iter().find(|(name, _)| name == entry).and_then(|(_, v)| v.as_f64());
                    found.ok_or_else(|| "it does not exist at these values".to_string())
                }
                Err(why) => Err(why.to_string()),
            };
            all.push(LiveQuantity {
                quantity: live.quantity.clone(),
                says: says.clone(),
                entry: entry.clone(),
                value,
            });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::EngineSpec;
    use serde_json::json;

    #[test]
    fn every_engine_and_every_kind_of_measure_is_explained() {
        let engines: Vec<String> = EngineSpec::catalogue().into_iter().map(|e| e.name).collect();
        assert_eq!(registry().engine.keys().cloned().collect::<Vec<_>>(), sorted(engines));
        let schema = crate::reference::schema();
        let kinds = schema["$defs"]["Measure"]["oneOf"].as_array().unwrap();
        let kinds = kinds.iter().map(|k| k["properties"]["kind"]["const"].as_str().unwrap().to_string());
        assert_eq!(registry().measure.keys().cloned().collect::<Vec<_>>(), sorted(kinds.collect()));
        // A table of another program comes from no equation.
        for name in registry().engine.keys().filter(|name| *name != "recorded") {
            let explained = of(&format!("engine:{name}")).unwrap();
            assert!(explained.tex.is_some() && explained.derivation.is_some(), "{name}");
        }
    }

    fn sorted(mut names: Vec<String>) -> Vec<String> {
        names.sort();
        names
    }

    #[test]
    fn every_equation_that_is_named_can_be_found_and_typeset() {
        let names: Vec<String> = registry()
            .engine
            .keys()
            .map(|n| format!("engine:{n}"))
            .chain(registry().measure.keys().map(|n| format!("measure:{n}")))
            .chain(registry().live.iter().map(|l| format!("quantity:{}", l.quantity)))
            .collect();
        for name in names {
            let explained = of(&name).unwrap();
            if let Some((page, anchor)) = &explained.derivation {
                assert!(equation_at(page, anchor).is_some(), "{name}: {page}#{anchor}");
            }
            if let Some(tex) = &explained.tex {
                let set = didact_figure::interactive::Prose::default().html(&format!("${tex}$"));
                assert!(set.starts_with("<svg"), "{name}: {set}");
            }
        }
    }

    #[test]
    fn predictions_beside_an_experiment_take_their_inputs_from_its_keys() {
        let description = json!({
            "model": {"family": "committee", "students": 2, "teachers": 2, "activation": "erf(z/sqrt2)", "output": "soft"},
            "training": {"learning-rate": 0.5},
            "data": {"spectrum": {"kind": "isotropic"}},
        });
        let shown = beside(&description);
        let escape = shown.iter().find(|q| q.quantity == "committee/escape").unwrap();
        let asked = json!({"M": 2, "eta": 0.5, "output": "soft"});
        let asked = quantities::number("committee/escape", asked.as_object().unwrap(), Some("tau")).unwrap();
        assert_eq!(escape.value, Ok(asked));
        // They are for as many students as teachers.
        let mut wider = description;
        wider["model"]["students"] = json!(3);
        assert!(beside(&wider).is_empty());
        for (family, inputs) in [
            ("quadratic-networks", json!({"students": 4, "teachers": 2})),
            ("lora-single-index", json!({"mu": 0.5, "activation": "relu"})),
            ("lora-two-layer", json!({"hidden": 4, "mu": 0.5, "activation": "h2"})),
        ] {
            let mut model = inputs;
            model["family"] = json!(family);
            let shown = beside(&json!({"model": model}));
            assert!(!shown.is_empty() && shown.iter().all(|q| q.value.is_ok()), "{family}: {shown:?}");
        }
    }

    #[test]
    fn what_is_unknown_is_refused() {
        for what in ["engine:none", "x", "measure:", "quantity:committee/plateu"] {
            assert!(of(what).is_err(), "{what}");
        }
    }
}
