//! `didact schema`: what a description may say.

use didact_experiment::reference;
use std::process::ExitCode;

pub(crate) fn schema(markdown: bool) -> ExitCode {
    if markdown {
        say!("{}", reference::markdown().trim_end());
    } else {
        say!("{:#}", reference::schema());
    }
    ExitCode::SUCCESS
}
