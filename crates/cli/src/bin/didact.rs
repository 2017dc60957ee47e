//! The program `didact`: all of it is in the library of this package, which the Python package installs as a command too.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(didact_cli::run(std::env::args_os()))
}
