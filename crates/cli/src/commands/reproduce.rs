//! `didact reproduce`: figures of papers, and a verdict on each of their claims.

use super::{list, run, show};
use crate::exit::Ending;
use crate::papers::Paper;
use crate::{Options, papers};
use didact_experiment::index_page::{self, Entry};
use didact_experiment::{Diagnostic, Experiment};
use serde_json::json;

pub(crate) fn reproduce(wanted: &[String], options: &Options) -> Result<Ending, Diagnostic> {
    let papers = papers::all();
    if wanted.is_empty() {
        list::papers(&papers, options.json)?;
        complain!("hint: name a paper, or one figure of it: `didact reproduce committee --quick`");
        return Ok(Ending::Done);
    }
    let mut chosen = Vec::new();
    for name in wanted {
        chosen.extend(papers::find(&papers, name)?);
    }
    run::prepare(options)?;
    // All are checked before the first one runs.
    let mut experiments = Vec::new();
    for (paper, figure) in chosen {
        let experiment = Experiment::new(figure.source(paper.key), options.size.size(), options.seed)?;
        experiments.push((paper, format!("{}/{}", paper.key, figure.name), experiment));
    }
    let how = if options.fresh { run::How::Fresh } else { run::How::Resume };
    let (mut outcome, mut reports) = (Ending::Done, Vec::new());
    let mut pages: Vec<(&Paper, Vec<Entry>)> = Vec::new();
    for (paper, name, experiment) in &experiments {
        let finished = run::execute(experiment, options, how)?;
        let title = format!("{name}: {}", experiment.resolved.title);
        let (report, ended) = show::finished(&title, &finished, options.json);
        outcome = outcome.and(ended);
        reports.extend(report);
        let entry = Entry::read(name, &finished.folder);
        match pages.iter_mut().find(|(known, _)| known.key == paper.key) {
            Some((_, entries)) => entries.extend(entry),
            None => pages.push((paper, entry.into_iter().collect())),
        }
    }
    for (paper, entries) in pages.iter().filter(|(_, entries)| entries.len() > 1) {
        let row = &paper.row;
        let path = index_page::write(&options.out, paper.key, &row.title, &row.citation, entries)
            .map_err(|error| Diagnostic::new(format!("cannot write the page of {}: {error}", paper.key)))?;
        if !options.json {
            say!("{}: all figures on one page, {}", paper.key, path.display());
        }
    }
    if options.json {
        say!("{:#}", json!(reports));
    }
    Ok(outcome)
}
