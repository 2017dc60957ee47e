//! `didact schema`: what a description may say.

use crate::exit::Ending;
use didact_experiment::reference;

pub(crate) fn schema(markdown: bool) -> Ending {
    if markdown {
        say!("{}", reference::markdown().trim_end());
    } else {
        say!("{:#}", reference::schema());
    }
    Ending::Done
}
