//! `didact report`: what a finished run found.

use super::show;
use crate::exit::Ending;
use didact_experiment::execute::finished;
use didact_experiment::{Diagnostic, Source};
use std::path::Path;

pub(crate) fn report(folder: &Path, as_json: bool) -> Result<Ending, Diagnostic> {
    let Some(run) = finished(folder) else {
        let message = format!("{} is no finished run", folder.display());
        return Err(Diagnostic::new(message)
            .hint("run it (again) with `didact run`: it goes on where it was stopped"));
    };
    let title = Source::read(&folder.join("description.toml"))?.description()?.title;
    let (report, outcome) = show::finished(&title, &run, as_json);
    if let Some(report) = report {
        say!("{report:#}");
    }
    Ok(outcome)
}
