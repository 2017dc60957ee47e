//! How the keys of a description are called on a page: `model.mu` is the axis label that a figure gives it, or else μ.

use crate::description::{Description, PanelSpec};
use didact_figure::interactive::{Prose, escape};
use std::collections::BTreeMap;

/// Names of keys.
#[derive(Debug, Clone, Default)]
pub struct Words(BTreeMap<String, String>);

/// Greek letters that are names of keys.
const GREEK: [&str; 20] = [
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "kappa", "lambda", "mu", "nu",
    "xi", "rho", "sigma", "tau", "phi", "chi", "psi", "omega",
];

impl Words {
    /// Of the keys that an experiment varies. The label of an axis over which a figure draws a key is its name; else it is the
    /// last part of the key, unless two keys end alike.
    pub fn new(description: &Description) -> Self {
        let scanned = description.scan.iter().flat_map(|scan| scan.over.keys());
        let varied: Vec<&String> = description.sweep.keys().chain(scanned).collect();
        let mut names = BTreeMap::new();
        for key in &varied {
            let last = last_part(key);
            let alone = varied.iter().all(|other| other == key || last_part(other) != last);
            if alone {
                names.insert((*key).clone(), spoken(last));
            }
        }
        let mut labels: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for panel in description.figure.iter().flat_map(|figure| &figure.panel) {
            collect(panel, &mut labels);
        }
        for key in varied {
            // Where figures disagree none of them is right.
            if let Some([label]) = labels.get(key.as_str()).map(Vec::as_slice) {
                names.insert(key.clone(), (*label).to_owned());
            }
        }
        Self(names)
    }

    /// The name of a key, if it has one.
    pub(crate) fn name(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// A name alone as HTML, with the key as a tool tip.
    pub(crate) fn key(&self, key: &str, prose: &mut Prose) -> String {
        match self.name(key) {
            Some(name) => format!("<span title=\"{}\">{}</span>", escape(key), prose.html(name)),
            None => escape(key),
        }
    }

    /// Text as HTML in which `key = value` has the names of the keys.
    pub(crate) fn html(&self, text: &str, prose: &mut Prose) -> String {
        let mut html = String::new();
        let mut rest = text;
        // The longest key first: one may end like another.
        let mut keys: Vec<&String> = self.0.keys().collect();
        keys.sort_by_key(|key| std::cmp::Reverse(key.len()));
        while !rest.is_empty() {
            let starts = keys.iter().filter_map(|key| {
                let found = rest.match_indices(&format!("{key} = ")).map(|(at, _)| at).find(|&at| {
                    let before = rest[..at].chars().next_back();
                    before.is_none_or(|c| !(c.is_alphanumeric() || matches!(c, '.' | '-' | '_')))
                })?;
                Some((found, *key))
            });
            let Some((at, key)) = starts.min_by_key(|(at, _)| *at) else { break };
            html += &prose.html(&rest[..at]);
            html += &self.key(key, prose);
            rest = &rest[at + key.len()..];
        }
        html + &prose.html(rest)
    }
}

fn collect<'a>(panel: &'a PanelSpec, labels: &mut BTreeMap<&'a str, Vec<&'a str>>) {
    for series in &panel.series {
        if let Some(key) = series.x.as_deref()
            && !panel.x.label.is_empty()
        {
            let known = labels.entry(key).or_default();
            if !known.contains(&panel.x.label.as_str()) {
                known.push(&panel.x.label);
            }
        }
    }
    panel.inset.iter().for_each(|inset| collect(&inset.panel, labels));
}

fn last_part(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// `learning-rate` as words, `mu` as a letter.
fn spoken(part: &str) -> String {
    if GREEK.contains(&part) { format!("$\\{part}$") } else { part.replace(['-', '_'], " ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn words(swept: &[&str], axis: Option<(&str, &str)>) -> Words {
        let sweep: serde_json::Map<String, serde_json::Value> =
            swept.iter().map(|key| ((*key).to_owned(), json!([1.0, 2.0]))).collect();
        let mut value = json!({"title": "t", "sweep": sweep});
        if let Some((key, label)) = axis {
            let series = json!([{"measure": "m", "x": key}]);
            value["figure"] = json!([{"name": "f", "panel": [{"x": {"label": label}, "series": series}]}]);
        }
        Words::new(&serde_json::from_value(value).unwrap())
    }

    #[test]
    fn a_key_is_called_as_the_axis_that_shows_it() {
        let words = words(&["data.dimension"], Some(("data.dimension", "dimension $d$")));
        assert_eq!(words.name("data.dimension"), Some("dimension $d$"));
    }

    #[test]
    fn other_keys_are_called_by_their_last_part_unless_two_end_alike() {
        let words = words(&["model.mu", "training.learning-rate", "model.rank", "start.rank"], None);
        assert_eq!(words.name("model.mu"), Some("$\\mu$"));
        assert_eq!(words.name("training.learning-rate"), Some("learning rate"));
        assert_eq!(words.name("model.rank"), None);
    }

    #[test]
    fn names_replace_whole_keys_only() {
        let words = words(&["data.n", "n"], Some(("n", "count <n>")));
        let mut prose = Prose::default();
        let html = words.html("at data.n = 2, n = 3: <b>; mean = 4", &mut prose);
        let named = "<span title=\"n\">count &lt;n&gt;</span> = 3";
        assert_eq!(html, format!("at data.n = 2, {named}: &lt;b&gt;; mean = 4"));
    }
}
