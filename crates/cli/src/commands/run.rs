//! `didact run`: one experiment.

use super::show;
use crate::Options;
use crate::exit::Ending;
use crate::progress::{self, Progress};
use didact_experiment::{Diagnostic, Experiment, Failure, Finished, Source};
use std::path::Path;

pub(crate) fn run(file: &Path, options: &Options) -> Result<Ending, Diagnostic> {
    prepare(options)?;
    let experiment = Experiment::new(Source::read(file)?, options.size.size(), options.seed)?;
    let finished = execute(&experiment, options)?;
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

/// Runs with a progress bar.
pub(crate) fn execute(experiment: &Experiment, options: &Options) -> Result<Finished, Diagnostic> {
    for remark in experiment.remarks() {
        complain!("warning: {remark}");
    }
    let progress = Progress::new(&experiment.resolved.title);
    let result = if options.fresh {
        experiment.execute_fresh(&options.out, &progress)
    } else {
        experiment.execute(&options.out, &progress)
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
