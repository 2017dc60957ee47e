//! Carries the papers inside the binary, so that `didact reproduce` works wherever it is installed.
//!
//! Every folder of `papers/` is a paper: `paper.toml` is its row in the registry, every other TOML file one of its figures.

use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() {
    let papers = Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../../papers");
    println!("cargo::rerun-if-changed={}", papers.display());
    let mut list = String::from("[\n");
    for paper in sorted(&papers) {
        println!("cargo::rerun-if-changed={}", paper.display());
        let key = name(&paper);
        let row = paper.join("paper.toml");
        let text = std::fs::read_to_string(&row).unwrap_or_else(|error| {
            panic!("the paper `{key}` needs its row in the registry, {}: {error}", row.display())
        });
        writeln!(list, "    ({key:?}, include_str!({:?}), &[", canonical(&row)).expect("a string");
        for file in
            sorted(&paper).into_iter().filter(|f| f.extension().is_some_and(|e| e == "toml") && *f != row)
        {
            let figure = name(&file.with_extension(""));
            assert!(
                text.contains(&format!("\"{figure}\"")),
                "{} does not name the figure \"{figure}\" in its list `figures`",
                row.display()
            );
            writeln!(list, "        ({figure:?}, include_str!({:?})),", canonical(&file)).expect("a string");
        }
        list.push_str("    ]),\n");
    }
    list.push(']');
    let out = Path::new(&std::env::var("OUT_DIR").expect("set by cargo")).join("papers.rs");
    std::fs::write(out, list).expect("the build folder can be written");
}

/// What is in a folder, by name.
fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn name(path: &Path) -> String {
    path.file_name().expect("a file name").to_str().expect("a plain name").to_owned()
}

fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().expect("a file")
}
