//! What stands behind the program: licences, packages in several versions or without a maintainer, unsafe code. Offline.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// `.ci/dependencies.toml`.
fn rules() -> toml::Table {
    std::fs::read_to_string(root().join(".ci/dependencies.toml")).unwrap().parse().unwrap()
}

/// Packages of the lock file that this machine builds.
fn packages() -> Vec<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let about = Command::new("rustc").arg("-vV").output().unwrap().stdout;
    let about = String::from_utf8(about).unwrap();
    let target = about.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_string();
    let output = Command::new(cargo)
        .current_dir(root())
        .args(["metadata", "--format-version", "1", "--offline", "--locked", "--filter-platform", &target])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn names(rules: &toml::Table, table: &str) -> BTreeSet<String> {
    let listed = rules[table].as_table().unwrap();
    for (name, reason) in listed {
        assert!(reason.as_str().is_some_and(|r| r.len() > 8), "`{name}` of [{table}] has no reason");
    }
    listed.keys().cloned().collect()
}

/// Whether licences of this list suffice for an expression such as `(MIT OR Apache-2.0) AND Unicode-3.0`.
fn suffices(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let plain = expression.replace('/', " OR ").replace(['(', ')'], " ");
    // OR binds in parentheses here, so every part of AND needs one that is allowed.
    plain.split(" AND ").all(|part| part.split(" OR ").any(|licence| allowed.contains(licence.trim())))
}

#[test]
fn licences_are_permissive() {
    let rules = rules();
    let allowed: BTreeSet<&str> =
        rules["licences"].as_array().unwrap().iter().map(|l| l.as_str().unwrap()).collect();
    let all = packages();
    assert!(all.len() > 100);
    for package in &all {
        let licence = package["license"].as_str().unwrap_or("none");
        assert!(suffices(licence, &allowed), "{} {}: {licence}", package["name"], package["version"]);
    }
    assert!(suffices("MIT/GPL-3.0", &allowed) && suffices("(MIT OR Zlib) AND Unicode-3.0", &allowed));
    assert!(!suffices("GPL-3.0", &allowed) && !suffices("MIT AND GPL-3.0", &allowed));
}

#[test]
fn packages_in_several_versions_or_without_a_maintainer_are_listed_with_a_reason() {
    let rules = rules();
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages() {
        let text = |key: &str| package[key].as_str().unwrap().to_string();
        versions.entry(text("name")).or_default().insert(text("version"));
    }
    let several: BTreeSet<String> =
        versions.iter().filter(|(_, v)| v.len() > 1).map(|(name, _)| name.clone()).collect();
    let listed = names(&rules, "duplicates");
    let new: Vec<_> = several.difference(&listed).collect();
    assert!(new.is_empty(), "in several versions, without a reason in .ci/dependencies.toml: {new:?}");
    let gone: Vec<_> = listed.difference(&several).collect();
    assert!(gone.is_empty(), "listed as in several versions, but there is one or none: {gone:?}");
    for name in names(&rules, "unmaintained") {
        assert!(versions.contains_key(&name), "`{name}` is no longer there: take it off the list");
    }
}

/// All Rust files below the crates, by their path in the repository.
fn sources() -> BTreeMap<String, String> {
    let mut open = vec![root().join("crates")];
    let mut all = BTreeMap::new();
    while let Some(here) = open.pop() {
        for path in std::fs::read_dir(here).unwrap().map(|e| e.unwrap().path()) {
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let name = path.strip_prefix(root()).unwrap().display().to_string();
                all.insert(name, std::fs::read_to_string(path).unwrap());
            }
        }
    }
    all
}

/// Features of every package that a build of some crates of the workspace turns on.
fn features(selection: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let shape = ["-e", "normal,build,dev", "--prefix", "none", "-f", "{p}|{f}"];
    let output = Command::new(cargo)
        .current_dir(root())
        .args(["tree", "--offline", "--locked"])
        .args(selection)
        .args(shape)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let line = line.trim_end_matches(" (*)");
        let Some((package, features)) = line.split_once('|') else { continue };
        all.entry(package.into()).or_default().insert(features.into());
    }
    all
}

#[test]
fn every_command_builds_packages_with_the_same_features() {
    let whole = features(&["--workspace"]);
    for package in
        ["didact-math", "didact-figure", "didact-model", "didact-experiment", "didact", "didact-cli"]
    {
        for (name, own) in features(&["-p", package]) {
            // Features of our own crates are chosen by the build.
            if name.starts_with("didact") {
                continue;
            }
            assert!(
                own.is_subset(&whole[&name]),
                "a build of {package} has {name} with {own:?}, one of the workspace with {:?}: add what is missing to \
                 crates/unify/Cargo.toml, so that both share what is built",
                whole[&name]
            );
        }
    }
}

#[test]
fn unsafe_code_says_why_it_is_safe_and_stands_in_the_list() {
    let page = std::fs::read_to_string(root().join("docs/unsafe.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `crates/"));
    let listed: BTreeMap<String, usize> = rows
        .map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            assert!(cells[3].len() > 20, "no reason: {row}");
            (cells[1].trim_matches('`').to_string(), cells[2].parse().unwrap())
        })
        .collect();
    // The word is put together here, so that this file has none.
    let word = ["un", "safe"].concat();
    let mut found = BTreeMap::new();
    for (name, text) in sources() {
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let uses =
                ["{", "fn", "impl", "extern"].iter().any(|after| code.contains(&format!("{word} {after}")));
            if !uses {
                continue;
            }
            *found.entry(name.clone()).or_insert(0) += 1;
            let above = &lines[index.saturating_sub(4)..index];
            // A declaration of foreign functions does nothing; its calls say why they are right.
            let declared = code.contains(&format!("{word} extern"));
            assert!(
                declared || above.iter().any(|l| l.contains("SAFETY:")),
                "{name}:{}: no SAFETY comment",
                index + 1
            );
        }
    }
    assert_eq!(found, listed, "what the sources have, and what docs/unsafe.md lists");
}
