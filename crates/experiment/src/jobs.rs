//! The jobs of an experiment: every run at every point of the sweep, every scan at every point of its grid.
//!
//! A job is looked for where results may lie, computed if it is nowhere, and kept as soon as it is done. What goes wrong in a
//! job, a panic too, is its own failure; the others go on. Only a disk that does not take results and a wish to stop end them all.

use crate::description::ScanSpec;
use crate::execute::{Failure, unwritable};
use crate::experiment::{Experiment, Run};
use crate::guard;
use crate::points::Point;
use crate::quantities::{self, Answered, NoAnswer, Scan};
use crate::results::Results;
use crate::store::journal::RecordKind;
use crate::store::places::Known;
use crate::store::{Answers, Encoded, Places, disk};
use didact_model::{EngineError, Monitor, Trajectory};
use rayon::prelude::*;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the jobs left.
pub(crate) struct Done {
    pub(crate) results: Results,
    /// Files with the answers of the scans.
    pub(crate) answers: Vec<Answers>,
    /// What failed, and points of scans outside of the domain of their quantity.
    pub(crate) failures: Vec<String>,
    /// How many of these are failed jobs.
    pub(crate) failed_jobs: usize,
    /// Runs and scans that were taken over from another experiment.
    pub(crate) taken_over: usize,
}

/// Why the jobs of an experiment were not done.
pub(crate) enum Ended {
    /// As a user learns it.
    By(Failure),
    /// Another process has finished the experiment.
    Elsewhere,
}

impl<T: Into<Failure>> From<T> for Ended {
    fn from(failure: T) -> Self {
        Self::By(failure.into())
    }
}

/// Progress of one run or scan as a part of all.
pub(crate) struct ProgressShare<'a> {
    pub(crate) monitor: &'a dyn Monitor,
    pub(crate) part: f64,
}

impl Monitor for ProgressShare<'_> {
    fn advance(&self, fraction: f64) {
        self.monitor.advance(fraction * self.part);
    }
    fn cancelled(&self) -> bool {
        self.monitor.cancelled()
    }
}

/// Everything that a job needs beside itself.
pub(crate) struct Workshop<'a> {
    pub(crate) experiment: &'a Experiment,
    pub(crate) places: &'a Places,
    /// The folder of what is not whole yet, for messages.
    pub(crate) partial: &'a Path,
    /// The finished folder, if one that appears there means that another process was quicker.
    pub(crate) rival: Option<&'a Path>,
    pub(crate) share: ProgressShare<'a>,
}

impl Workshop<'_> {
    /// Does everything that is not done.
    pub(crate) fn work(&self) -> Result<Done, Ended> {
        let experiment = self.experiment;
        let taken_over = AtomicUsize::new(0);
        let tables: Result<Vec<_>, Ended> =
            experiment.runs.par_iter().map(|run| self.run(run, &taken_over)).collect();
        let mut results = Results {
            points: experiment.points.clone(),
            files: experiment.files.clone(),
            ..Results::default()
        };
        let mut failures = Vec::new();
        for (run, table) in experiment.runs.iter().zip(tables?) {
            if let Err(why) = &table {
                failures.push(format!("{} at {}: {why}", run.name, run.point.label()));
            }
            results.tables.insert((run.point.index, run.name.clone()), table);
        }
        let mut failed_jobs = failures.len();
        let mut answers = Vec::new();
        for (spec, grid) in experiment.resolved.scan.iter().zip(&experiment.grids) {
            let kept = self.scan(spec, grid, &taken_over)?;
            let rows = grid.iter().cloned().zip(kept.rows.iter().cloned()).collect();
            let scan = Scan { name: spec.name.clone(), rows };
            failures.extend(scan.failures());
            failed_jobs += scan.failed_points();
            results.scans.push(scan);
            answers.push(kept);
        }
        experiment.files.check_unchanged()?;
        Ok(Done { results, answers, failures, failed_jobs, taken_over: taken_over.into_inner() })
    }

    /// Whether there is a reason to begin no further job.
    fn may_begin(&self) -> Result<(), Ended> {
        if self.share.cancelled() {
            return Err(Failure::Interrupted(self.partial.to_path_buf()).into());
        }
        if self.rival.is_some_and(Path::exists) {
            return Err(Ended::Elsewhere);
        }
        Ok(())
    }

    /// The table of a run, or why there is none.
    fn run(&self, run: &Run, taken_over: &AtomicUsize) -> Result<Result<Trajectory, String>, Ended> {
        self.places.journals().refresh();
        if let Some(Known { result, taken_over: from_another }) = self.places.table(&run.key) {
            taken_over.fetch_add(usize::from(from_another), Ordering::Relaxed);
            self.share.advance(1.0);
            return Ok(Ok(result));
        }
        self.may_begin()?;
        let engine = run.schedule.engine.name();
        let with = || format!("run `{}` on `{engine}` at {}", run.name, run.point.label());
        let work = || {
            disk::job_begins(&format!("run {}", run.name));
            let table = run.schedule.run(&self.share)?;
            Ok(Encoded::new(&table, &run.key).map(|encoded| (table, encoded)))
        };
        match guard::caught(with, work) {
            Ok(Ok(Ok((table, encoded)))) => {
                self.keep(RecordKind::Table, &run.key, &encoded.payload())?;
                self.places.journals().sync().map_err(|error| unwritable(self.partial, &error))?;
                Ok(Ok(table))
            }
            // Its numbers do not fit the file.
            Ok(Ok(Err(error))) => Ok(Err(error.to_string())),
            Ok(Err(EngineError::Interrupted)) => Err(Failure::Interrupted(self.partial.to_path_buf()).into()),
            Ok(Err(error)) => Ok(Err(error.to_string())),
            Err(why) => Ok(Err(why)),
        }
    }

    fn keep(&self, kind: RecordKind, key: &str, payload: &[u8]) -> Result<(), Ended> {
        Ok(self
            .places
            .journals()
            .append(kind, key, payload)
            .map_err(|error| unwritable(self.partial, &error))?)
    }

    /// The answers of a scan over its grid.
    fn scan(&self, spec: &ScanSpec, grid: &[Point], taken_over: &AtomicUsize) -> Result<Answers, Ended> {
        let asked: Vec<_> = grid.iter().map(|point| self.experiment.inputs_at(spec, point)).collect();
        let keys: Vec<&str> = asked.iter().map(|(_, key)| key.as_str()).collect();
        let key = disk::digest(keys.join(" ").as_bytes())[..32].to_string();
        // A point at which the program failed is tried again: such a scan is looked through point by point.
        let whole = |answers: &Answers| {
            answers.rows.len() == grid.len()
                && !answers.rows.iter().any(|row| matches!(row, Err(NoAnswer::Failed(_))))
        };
        let known = self.places.answers(&key);
        if let Some(known) = known.as_ref().filter(|known| whole(&known.result)) {
            taken_over.fetch_add(usize::from(known.taken_over), Ordering::Relaxed);
            self.share.advance(grid.len() as f64);
            return Ok(known.result.clone());
        }
        let before = known.map(|known| known.result.rows).unwrap_or_default();
        self.places.journals().refresh();
        let rows: Result<Vec<Answered>, Ended> = asked
            .par_iter()
            .enumerate()
            .map(|(index, (inputs, key))| {
                let answered = before.get(index).filter(|row| !matches!(row, Err(NoAnswer::Failed(_))));
                if let Some(answer) = answered.cloned().or_else(|| self.places.answer(key)) {
                    self.share.advance(1.0);
                    return Ok(answer);
                }
                self.may_begin()?;
                let with = || format!("scan `{}` at {}", spec.name, grid[index].label());
                let begin = guard::caught(with, || disk::job_begins(&format!("scan {}", spec.name)));
                let answer = begin.map_err(NoAnswer::Failed).and_then(|()| {
                    let answer = quantities::compute(&spec.quantity, inputs)?;
                    Ok(answer.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
                });
                if !matches!(answer, Err(NoAnswer::Failed(_))) {
                    let payload = serde_json::to_vec(&answer).expect("answers are plain data");
                    self.keep(RecordKind::Answer, key, &payload)?;
                }
                self.share.advance(1.0);
                Ok(answer)
            })
            .collect();
        let rows = rows?;
        self.places.journals().sync().map_err(|error| unwritable(self.partial, &error))?;
        Ok(Answers::new(key, rows))
    }
}
