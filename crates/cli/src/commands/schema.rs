//! `didact schema`: what a description may say.

use didact_experiment::{Diagnostic, reference};
use std::process::ExitCode;

pub(crate) fn schema(markdown: bool) -> Result<ExitCode, Diagnostic> {
    if markdown {
        print!("{}", reference::markdown());
    } else {
        println!("{:#}", reference::schema());
    }
    Ok(ExitCode::SUCCESS)
}
