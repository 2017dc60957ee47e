//! `didact reproduce`: figures of papers, and a verdict on each of their claims.

use super::{list, run, show};
use crate::exit::Ending;
use crate::{Options, papers};
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
        experiments.push((format!("{}/{}", paper.key, figure.name), experiment));
    }
    let (mut outcome, mut reports) = (Ending::Done, Vec::new());
    for (name, experiment) in &experiments {
        let finished = run::execute(experiment, options)?;
        let title = format!("{name}: {}", experiment.resolved.title);
        let (report, ended) = show::finished(&title, &finished, options.json);
        outcome = outcome.and(ended);
        reports.extend(report);
    }
    if options.json {
        say!("{:#}", json!(reports));
    }
    Ok(outcome)
}
