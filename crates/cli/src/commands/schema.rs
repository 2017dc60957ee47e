//! `didact schema`: what a description may say.

use didact_experiment::reference;
use std::process::ExitCode;

pub(crate) fn schema(markdown: bool) -> ExitCode {
    if markdown {
        print!("{}", reference::markdown());
    } else {
        println!("{:#}", reference::schema());
    }
    ExitCode::SUCCESS
}
