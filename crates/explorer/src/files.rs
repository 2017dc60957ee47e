//! Files that a description names. A request may name those of the card it began with and no other: no text that comes over the
//! network makes the program open a file that its user has not named on the command line.

use didact_experiment::quantities;
use didact_experiment::{Diagnostic, Source};
use didact_model::quantity::Kind;
use serde_json::Value;
use std::collections::BTreeSet;

/// Texts of a description that stand where the path of a file may stand.
pub(crate) fn named(description: &Value) -> BTreeSet<String> {
    let mut keys: BTreeSet<&str> = ["path"].into();
    for (_, quantity) in quantities::all() {
        keys.extend(quantity.inputs.iter().filter(|i| i.kind == Kind::File).map(|i| i.name));
    }
    let mut found = BTreeSet::new();
    collect(description, false, &keys, &mut found);
    found
}

fn collect(value: &Value, is_file: bool, keys: &BTreeSet<&str>, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if is_file => {
            found.insert(text.clone());
        }
        Value::Array(list) => list.iter().for_each(|entry| collect(entry, is_file, keys, found)),
        Value::Object(table) => {
            for (key, entry) in table {
                // Changes name keys by their dotted path: `"data.spectrum.path" = ["a.csv"]`.
                let last = key.rsplit('.').next().unwrap_or(key);
                collect(entry, is_file || keys.contains(last), keys, found);
            }
        }
        _ => {}
    }
}

/// Refuses a description that names a file which is not among those of its card.
pub(crate) fn check(
    source: &Source,
    description: &Value,
    allowed: &BTreeSet<String>,
) -> Result<(), Diagnostic> {
    match named(description).into_iter().find(|file| !allowed.contains(file)) {
        None => Ok(()),
        Some(file) => {
            let line = source.text.lines().position(|line| line.contains(&file));
            let place = line.map(|line| format!(" (line {})", line + 1)).unwrap_or_default();
            Err(Diagnostic::new(format!("the explorer opens no file that a page names: `{file}`{place}"))
                .hint("put it into the description on disk and start `didact explore FILE`"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_is_found_wherever_a_description_may_hold_one() {
        for description in [
            json!({"data": {"spectrum": {"kind": "file", "path": "/etc/passwd"}}}),
            json!({"data": {"inputs": {"rows": {"path": "/etc/passwd"}}}}),
            json!({"sweep": {"data.spectrum.path": ["/etc/passwd"]}}),
            json!({"sweep": {"data.spectrum": [{"kind": "file", "path": "/etc/passwd"}]}}),
            json!({"run": [{"set": {"data.spectrum.path": "/etc/passwd"}}]}),
            json!({"quick": {"data.spectrum": {"kind": "file", "path": "/etc/passwd"}}}),
            json!({"training": {"stage": [{"set": {"data.spectrum.path": "/etc/passwd"}}]}}),
            json!({"scan": [{"inputs": {"file": "/etc/passwd"}}]}),
            json!({"scan": [{"over": {"file": ["/etc/passwd"]}}]}),
            json!({"measure": [{"kind": "quantity", "inputs": {"file": "/etc/passwd"}}]}),
        ] {
            assert_eq!(named(&description), ["/etc/passwd".to_string()].into(), "{description}");
        }
        assert!(named(&json!({"title": "/etc/passwd", "model": {"activation": "relu"}})).is_empty());
    }

    #[test]
    fn files_of_the_card_are_allowed_and_others_are_named_with_their_line() {
        let source = Source { name: "t.toml".into(), text: "title = \"t\"\npath = \"b.csv\"\n".into() };
        let allowed: BTreeSet<String> = ["a.csv".to_string()].into();
        assert!(check(&source, &json!({"data": {"spectrum": {"path": "a.csv"}}}), &allowed).is_ok());
        let refused =
            check(&source, &json!({"data": {"spectrum": {"path": "b.csv"}}}), &allowed).unwrap_err();
        assert!(refused.message.contains("`b.csv` (line 2)"), "{refused}");
    }
}
