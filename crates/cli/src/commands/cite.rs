//! `didact cite`: the bibliography of an experiment.

use didact_experiment::{Diagnostic, Source};
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn cite(file: &Path) -> Result<ExitCode, Diagnostic> {
    let description = Source::read(file)?.description()?;
    for reference in description.references() {
        say!("[{}] {}. {}", reference.key, reference.citation, reference.locator);
    }
    Ok(ExitCode::SUCCESS)
}
