//! Carries the papers inside the binary, so that `didact reproduce` works wherever it is installed.

use std::fmt::Write;
use std::path::Path;

fn main() {
    let papers = Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../../papers");
    println!("cargo::rerun-if-changed={}", papers.display());
    let mut entries = Vec::new();
    for family in std::fs::read_dir(&papers).into_iter().flatten().flatten() {
        println!("cargo::rerun-if-changed={}", family.path().display());
        for file in std::fs::read_dir(family.path()).into_iter().flatten().flatten() {
            let path = file.path();
            if path.extension().is_some_and(|e| e == "toml") {
                let family = family.file_name().into_string().expect("a plain name");
                let figure = path.file_stem().expect("a file name").to_string_lossy().into_owned();
                entries.push((family, figure, path.canonicalize().expect("a file")));
            }
        }
    }
    entries.sort();
    let mut list = String::from("[\n");
    for (family, figure, path) in entries {
        writeln!(list, "    ({family:?}, {figure:?}, include_str!({path:?})),").expect("a string");
    }
    list.push(']');
    let out = Path::new(&std::env::var("OUT_DIR").expect("set by cargo")).join("papers.rs");
    std::fs::write(out, list).expect("the build folder can be written");
}
