//! `didact cite`: the bibliography of an experiment.

use crate::exit::Ending;
use didact_experiment::{Diagnostic, Source};
use std::path::Path;

pub(crate) fn cite(file: &Path) -> Result<Ending, Diagnostic> {
    let description = Source::read(file)?.description()?;
    for reference in description.references() {
        say!("[{}] {}. {}", reference.key, reference.citation, reference.locator);
    }
    Ok(Ending::Done)
}
