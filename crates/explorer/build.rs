//! Carries the pictures of the gallery inside the program.

use std::fmt::Write;
use std::path::Path;

fn main() {
    let folder = Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("set by cargo")).join("thumbnails");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".svg")?.to_owned()))
        .collect();
    names.sort();
    let mut list = String::from("[\n");
    for name in names {
        let path = folder.join(format!("{name}.svg"));
        writeln!(list, "    ({name:?}, include_str!({path:?})),").expect("a string");
    }
    list.push(']');
    let out = Path::new(&std::env::var("OUT_DIR").expect("set by cargo")).join("thumbnails.rs");
    std::fs::write(out, list).expect("the build folder can be written");
}
