//! What tests of whole experiments share.

#![allow(dead_code)] // Every test file is a crate of its own and uses part of it.

use didact_experiment::source::{Diagnostic, Source};
use didact_experiment::{Experiment, Size};
use std::path::{Path, PathBuf};

/// One erf unit that learns from another, and what is recorded of it; sweep and runs are to follow.
pub(crate) const ERF_UNIT: &str = r#"
[model]
family = "committee"
students = 1
teachers = 1
activation = "erf(z/sqrt2)"

[training]
learning-rate = 0.1

[record]
times = [0, 1]
observe = ["loss"]
"#;

/// A description, checked.
pub(crate) fn checked(text: &str) -> Result<Experiment, Diagnostic> {
    Experiment::new(Source { name: "test.toml".into(), text: text.into() }, Size::Normal, None)
}

/// A folder of this name in which nothing is left.
pub(crate) fn empty_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    folder
}
