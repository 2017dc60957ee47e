//! `didact report`: the claims of a finished run.

use super::show;
use didact_experiment::execute::{all_hold, finished};
use didact_experiment::{Diagnostic, Source};
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn report(folder: &Path, as_json: bool) -> Result<ExitCode, Diagnostic> {
    let Some(run) = finished(folder) else {
        let message = format!("{} is no finished run", folder.display());
        return Err(Diagnostic::new(message)
            .hint("run it (again) with `didact run`: it goes on where it was stopped"));
    };
    let title = Source::read(&folder.join("description.toml"))?.description()?.title;
    if as_json {
        say!("{:#}", show::as_json(&title, &run));
    } else {
        show::finished(&title, &run);
    }
    Ok(ExitCode::from(u8::from(!all_hold(&run.claims))))
}
