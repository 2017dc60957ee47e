//! Does nothing: without a build script Cargo would not look at the build dependencies of this crate.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
