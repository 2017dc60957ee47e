//! Helpers of the command-line tests; not every test uses all of them.

#![allow(dead_code, unreachable_pub)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The program.
pub fn didact() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_didact"));
    command.env("NO_COLOR", "1");
    command
}

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A folder of this test alone.
pub fn temporary(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("didact-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}
