//! `didact run`: one experiment.

use super::show;
use crate::Options;
use crate::exit::Ending;
use crate::progress::{self, Progress};
use didact_experiment::{Diagnostic, Experiment, Failure, Finished, Source};
use std::path::Path;

pub(crate) fn run(file: &Path, options: &Options, no_compute: bool) -> Result<Ending, Diagnostic> {
    prepare(options)?;
    let experiment = Experiment::new(Source::read(file)?, options.size.size(), options.seed)?;
    let how = match (no_compute, options.fresh) {
        (true, _) => How::Kept,
        (_, true) => How::Fresh,
        _ => How::Resume,
    };
    let finished = execute(&experiment, options, how)?;
    let (report, outcome) = show::finished(&experiment.resolved.title, &finished, options.json);
    if let Some(report) = report {
        say!("{report:#}");
    }
    Ok(outcome)
}

/// Threads and signals. Before anything is planned: a plan asks how many threads there are, which settles the number.
pub(crate) fn prepare(options: &Options) -> Result<(), Diagnostic> {
    progress::listen();
    if let Some(threads) = options.threads {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build_global().map_err(Diagnostic::new)?;
    }
    Ok(())
}

/// What is done with results that are there, and with those that are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// What is there is taken, the rest is computed.
    Resume,
    /// Everything is computed.
    Fresh,
    /// What is there is taken, the rest is said to be missing.
    Kept,
}

/// Runs with a progress bar.
pub(crate) fn execute(experiment: &Experiment, options: &Options, how: How) -> Result<Finished, Diagnostic> {
    for remark in experiment.remarks() {
        complain!("warning: {remark}");
    }
    let progress = Progress::new(&experiment.resolved.title);
    let result = match how {
        How::Resume => experiment.execute(&options.out, &progress),
        How::Fresh => experiment.execute_fresh(&options.out, &progress),
        How::Kept => experiment.execute_kept(&options.out, &progress),
    };
    progress.finish();
    result.map_err(|failure| match failure {
        Failure::Error(diagnostic) => diagnostic,
        Failure::Interrupted(folder) => Diagnostic::new("interrupted").hint(format!(
            "what is done is kept in {}; the same command goes on from there",
            folder.display()
        )),
    })
}
