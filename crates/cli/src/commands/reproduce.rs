//! `didact reproduce`: figures of papers, and a verdict on each of their claims.

use super::{run, show};
use crate::Options;
use didact_experiment::execute::all_hold;
use didact_experiment::source::nearest;
use didact_experiment::{Diagnostic, Experiment, Source};
use serde_json::json;
use std::process::ExitCode;

/// (family, figure, description), carried in the binary.
pub(crate) const PAPERS: &[(&str, &str, &str)] = &include!(concat!(env!("OUT_DIR"), "/papers.rs"));

pub(crate) fn reproduce(what: Option<&str>, options: &Options) -> Result<ExitCode, Diagnostic> {
    let chosen: Vec<_> = PAPERS
        .iter()
        .filter(|(family, figure, _)| what.is_none_or(|w| w == *family || w == format!("{family}/{figure}")))
        .collect();
    if chosen.is_empty() {
        let names: Vec<String> =
            PAPERS.iter().flat_map(|(f, g, _)| [(*f).to_string(), format!("{f}/{g}")]).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let wanted = what.unwrap_or("anything");
        let hint = nearest(wanted, &names)
            .map_or_else(|| "see `didact list papers`".into(), |n| format!("did you mean `{n}`?"));
        return Err(Diagnostic::new(format!("no paper `{wanted}`")).hint(hint));
    }
    run::prepare(options)?;
    let mut experiments = Vec::new();
    for (family, figure, text) in chosen {
        let source = Source { name: format!("papers/{family}/{figure}.toml"), text: (*text).to_string() };
        experiments.push((
            format!("{family}/{figure}"),
            Experiment::new(source, options.size.size(), options.seed)?,
        ));
    }
    let (mut holds, mut reports) = (true, Vec::new());
    for (name, experiment) in &experiments {
        let finished = run::execute(experiment, options)?;
        holds &= all_hold(&finished.claims) && finished.failures.is_empty();
        let title = format!("{name}: {}", experiment.resolved.title);
        if options.json {
            reports.push(show::as_json(&title, &finished));
        } else {
            show::finished(&title, &finished);
        }
    }
    if options.json {
        say!("{:#}", json!(reports));
    }
    Ok(ExitCode::from(u8::from(!holds)))
}
