//! What the sources keep to: engines do not know families by name, and a public type has its name alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The folder of all crates.
fn crates() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the folder of crates")
}

/// The sources under a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    found
}

/// The code of a file: neither its tests nor its comments.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

#[test]
fn no_engine_and_no_command_names_a_family() {
    let crates = crates();
    let families: Vec<String> = std::fs::read_dir(crates.join("families/src"))
        .expect("the families")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().expect("a name").to_string_lossy().into_owned())
        .collect();
    assert!(families.len() >= 5, "{families:?}");
    let mut seen = 0;
    for name in ["math", "theory", "simulate", "analysis", "experiment", "figure", "cli", "explorer"] {
        for path in sources(&crates.join(name).join("src")) {
            let code = code(&std::fs::read_to_string(&path).expect("a source"));
            for family in &families {
                assert!(!code.contains(&format!("families::{family}")), "{} names {family}", path.display());
            }
            seen += 1;
        }
    }
    assert!(seen > 100, "{seen} sources");
}

/// The name that a line declares, if it declares a public struct, enum or trait.
fn declared(line: &str) -> Option<&str> {
    let line = line.trim_start().strip_prefix("pub ")?;
    let kinds = ["struct ", "enum ", "trait "];
    let name = kinds.iter().find_map(|kind| line.strip_prefix(kind))?;
    name.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().filter(|name| !name.is_empty())
}

#[test]
fn no_two_public_types_share_a_name() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in std::fs::read_dir(crates()).expect("the crates") {
        let folder = entry.expect("an entry").path().join("src");
        for path in if folder.is_dir() { sources(&folder) } else { Vec::new() } {
            let text = std::fs::read_to_string(&path).expect("a source");
            for name in code(&text).lines().filter_map(declared) {
                places.entry(name.to_string()).or_default().push(path.display().to_string());
            }
        }
    }
    assert!(places.len() > 300, "{} public types", places.len());
    let shared: Vec<String> = places
        .iter()
        .filter(|(_, places)| places.len() > 1)
        .map(|(name, places)| format!("{name}: {}", places.join(", ")))
        .collect();
    assert!(shared.is_empty(), "these names need to say more of what they are:\n{}", shared.join("\n"));
}

#[test]
fn a_declaration_is_recognised_by_its_name() {
    assert_eq!(declared("pub struct Line<'a> {"), Some("Line"));
    assert_eq!(declared("    pub enum Kind;"), Some("Kind"));
    assert_eq!(declared("pub(crate) struct Hidden;"), None);
    assert_eq!(declared("pub fn line() {"), None);
}
