//! `didact report`: what a finished run found.

use super::{show, verify};
use crate::exit::Ending;
use didact_experiment::execute::finished;
use didact_experiment::{Diagnostic, Source};
use std::path::Path;

pub(crate) fn report(folder: &Path, as_json: bool) -> Result<Ending, Diagnostic> {
    let run = finished(folder).map_err(|why| verify::refused(folder, &why))?;
    let title = Source::read(&folder.join("description.toml"))?.description()?.title;
    let (report, outcome) = show::finished(&title, &run, as_json);
    if let Some(report) = report {
        say!("{report:#}");
    }
    Ok(outcome)
}
