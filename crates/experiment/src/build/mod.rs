//! From a description to what an engine needs: a problem, a record and the stages of a schedule.

mod problem;
mod record;
mod stages;
mod start;

pub use problem::problem;
pub use record::record;
pub use stages::stages;

use crate::source::{Diagnostic, Source};

/// A section that runs cannot do without.
fn section<'a, T>(found: Option<&'a T>, name: &str, source: &Source) -> Result<&'a T, Diagnostic> {
    found.ok_or_else(|| {
        Diagnostic::new(format!("the section `[{name}]` is missing"))
            .hint("a run needs [model], [training] and [record]; without runs, give [[scan]] or [[measure]] only")
            .at_key(source, "run")
    })
}
