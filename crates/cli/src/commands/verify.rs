//! `didact verify`: whether a finished run is as it was written.

use crate::exit::Ending;
use didact_experiment::Diagnostic;
use didact_experiment::execute::NotFinished;
use didact_experiment::store::{Damage, FolderState, Journals};
use serde_json::json;
use std::path::Path;

/// Damaged files that a message names.
const NAMED: usize = 12;

pub(crate) fn verify(folder: &Path, as_json: bool) -> Result<Ending, Diagnostic> {
    let state = FolderState::of(folder);
    if as_json {
        let (files, damage): (usize, Vec<String>) = match &state {
            FolderState::Absent => (0, Vec::new()),
            FolderState::Whole(provenance) => (provenance.files.len() + 1, Vec::new()),
            FolderState::Damaged(damage) => (0, damage.iter().map(Damage::to_string).collect()),
        };
        let whole = matches!(state, FolderState::Whole(_));
        say!("{:#}", json!({"folder": folder, "whole": whole, "files": files, "damaged": damage}));
    }
    match state {
        FolderState::Whole(provenance) => {
            if !as_json {
                // The provenance has a digest of its own.
                say!("{}: {} files, all as they were written", folder.display(), provenance.files.len() + 1);
            }
            Ok(Ending::Done)
        }
        FolderState::Damaged(damage) if folder.join("provenance.json").exists() => {
            Err(refused(folder, &NotFinished::Damaged(damage)))
        }
        FolderState::Absent | FolderState::Damaged(_) => Err(refused(folder, &NotFinished::Unfinished)),
    }
}

/// Why a folder is not taken for a finished run, in words.
pub(crate) fn refused(folder: &Path, why: &NotFinished) -> Diagnostic {
    let shown = folder.display();
    match why {
        NotFinished::Damaged(damage) => {
            let mut lines: Vec<String> = damage.iter().take(NAMED).map(|d| format!("  {d}")).collect();
            if damage.len() > NAMED {
                lines.push(format!("  and {} more", damage.len() - NAMED));
            }
            Diagnostic::new(format!("{shown} is damaged:\n{}", lines.join("\n")))
                .hint("`didact run` of the same description makes anew what is damaged")
        }
        NotFinished::Unfinished => {
            let (kept, damaged) = Journals::in_folder(folder).count();
            let results = match (kept, damaged) {
                (0, _) => String::new(),
                (1, 0) => "; one result is kept in it".into(),
                (kept, 0) => format!("; {kept} results are kept in it"),
                (kept, damaged) => format!("; of {kept} results in it {damaged} are damaged"),
            };
            Diagnostic::new(format!("{shown} is no finished run{results}"))
                .hint("run it (again) with `didact run`: it goes on where it was stopped")
        }
    }
}
