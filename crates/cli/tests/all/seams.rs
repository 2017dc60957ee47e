//! Models x engines: what runs a family does not know its name.

use std::path::{Path, PathBuf};

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
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the folder of crates");
    let families: Vec<String> = std::fs::read_dir(crates.join("families/src"))
        .expect("the families")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().expect("a name").to_string_lossy().into_owned())
        .collect();
    assert!(families.len() >= 5, "{families:?}");
    let mut seen = 0;
    for name in ["math", "theory", "simulate", "analysis", "experiment", "figure", "cli"] {
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
