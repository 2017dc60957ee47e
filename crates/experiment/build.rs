//! Gives the build two fingerprints: a hash of all sources that compute results, and one of those that make something of them.
//!
//! Tables are found again by a digest that contains it, so that a change of the code computes anew what a change of the
//! description alone would not. The hash covers names and contents of files, not times, and needs no repository: the same
//! sources have the same fingerprint everywhere.

use std::path::{Path, PathBuf};

/// What computes tables and answers, relative to this crate. Measures, reports, figures and the command line are not among it.
const SOURCES: [&str; 15] = [
    "../math/src",
    "../model/src",
    "../families/src",
    "../theory/src",
    "../simulate/src",
    "src/build",
    "src/overrides.rs",
    "src/points.rs",
    "src/quantities.rs",
    "src/recorded.rs",
    "src/schedule.rs",
    "src/spectra.rs",
    // Measured eigenvalues.
    "../../data/spectra/cifar-10.csv",
    "../../data/spectra/fashion-mnist.csv",
    "../../data/spectra/mnist.csv",
];

/// What makes measures, verdicts, figures and reports of them.
const OUTCOME_SOURCES: [&str; 3] = ["../analysis/src", "../figure/src", "src"];

fn main() {
    println!("cargo::rustc-env=DIDACT_BUILD={:016x}", fingerprint(&SOURCES));
    println!("cargo::rustc-env=DIDACT_OUTCOME_BUILD={:016x}", fingerprint(&OUTCOME_SOURCES));
}

fn fingerprint(sources: &[&str]) -> u64 {
    let here = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let mut hash = Fnv::new();
    for source in sources {
        let path = here.join(source);
        println!("cargo::rerun-if-changed={}", path.display());
        hash.add(source.as_bytes());
        add(&path, &mut hash);
    }
    hash.0
}

/// Adds a file, or all files below a folder in the order of their names.
fn add(path: &Path, hash: &mut Fnv) {
    if let Ok(bytes) = std::fs::read(path) {
        hash.add(&bytes);
        return;
    }
    let mut inside: Vec<PathBuf> =
        std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    inside.sort();
    for path in inside {
        hash.add(path.file_name().unwrap_or_default().to_string_lossy().as_bytes());
        add(&path, hash);
    }
}

/// The 64-bit hash FNV-1a: good enough to tell builds apart, and no dependency.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        // The length keeps two neighbouring files apart.
        for byte in (bytes.len() as u64).to_le_bytes().iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
