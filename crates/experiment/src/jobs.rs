//! The jobs of an experiment: every run at every point of the sweep, every scan at every point of its grid.
//!
//! A job is looked for where results may lie, computed if it is nowhere, and kept as soon as it is done. What goes wrong in a
//! job, a panic too, is its own failure; the others go on. Only a disk that does not take results and a wish to stop end them all.

use crate::compute::{NoPart, compute_answer, compute_part, is_final, joined, scan_key};
use crate::description::ScanSpec;
use crate::execute::{Failure, unwritable};
use crate::experiment::{Experiment, Run};
use crate::optimise::SearchMemory;
use crate::points::Point;
use crate::quantities::{Answered, NoAnswer, Scan};
use crate::results::Results;
use crate::store::journal::RecordKind;
use crate::store::places::Known;
use crate::store::{Answers, Places, Tiling};
use didact_model::{Monitor, Trajectory};
use rayon::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::PoisonError;
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
    /// Jobs that were passed over because nothing was to be computed.
    pub(crate) passed_over: usize,
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

/// The key under which a search leaves its starts when it is interrupted for the n-th time.
fn resume_key(key: &str, number: usize) -> String {
    format!("{key}-interrupted-{number}")
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
    fn describe(&self, line: &str) {
        self.monitor.describe(line);
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
    /// Whether jobs that are not done are done now, or passed over.
    pub(crate) computes: bool,
}

/// Why there is no table, or no answer, where nothing was to be computed.
pub(crate) const NOT_YET: &str = "not computed yet";
/// Points that a message names where something is not computed yet.
const NAMED: usize = 3;

/// One line about the points of a run or a scan that are not computed yet.
fn not_yet(what: &str, points: &[&Point], all: usize) -> String {
    let named: Vec<String> = points.iter().take(NAMED).map(|point| point.label()).collect();
    let more = if points.len() > NAMED { "; …" } else { "" };
    let count = points.len();
    format!("{what}: {count} of {all} points {NOT_YET} ({}{more})", named.join("; "))
}

impl Workshop<'_> {
    /// Does everything that is not done, or says what is not.
    pub(crate) fn work(&self) -> Result<Done, Ended> {
        let experiment = self.experiment;
        let taken_over = AtomicUsize::new(0);
        self.places.journals().refresh();
        // Runs that are trained by a protocol wait until it is found.
        let (first, then): (Vec<&Run>, Vec<&Run>) =
            experiment.runs.iter().partition(|run| run.after.is_none());
        let found: Result<Vec<_>, Ended> =
            first.par_iter().map(|run| self.run(run, None, &taken_over)).collect();
        let mut known: BTreeMap<(usize, &str), Result<Trajectory, String>> =
            first.iter().map(|run| (run.point.index, run.name.as_str())).zip(found?).collect();
        let later: Result<Vec<_>, Ended> = then
            .par_iter()
            .map(|run| {
                let table = run.after.as_ref().map_or("", |after| after.table.as_str());
                self.run(run, known.get(&(run.point.index, table)), &taken_over)
            })
            .collect();
        known.extend(then.iter().map(|run| (run.point.index, run.name.as_str())).zip(later?));
        let mut results = Results {
            points: experiment.points.clone(),
            files: experiment.files.clone(),
            ..Results::default()
        };
        let (mut failures, mut failed_jobs, mut passed_over) = (Vec::new(), 0, 0);
        let mut waiting: BTreeMap<&str, Vec<&Point>> = BTreeMap::new();
        for run in &experiment.runs {
            let table = known.remove(&(run.point.index, run.name.as_str())).expect("every run was done");
            match &table {
                Ok(_) => {}
                Err(why) if !self.computes && why == NOT_YET => {
                    waiting.entry(&run.name).or_default().push(&run.point);
                }
                Err(why) => {
                    failures.push(format!("{} at {}: {why}", run.name, run.point.label()));
                    failed_jobs += 1;
                }
            }
            results.tables.insert((run.point.index, run.name.clone()), table);
        }
        for (name, points) in waiting {
            let all = experiment.runs.iter().filter(|run| run.name == name).count();
            failures.push(not_yet(name, &points, all));
            passed_over += points.len();
        }
        let mut answers = Vec::new();
        for (spec, grid) in experiment.resolved.scan.iter().zip(&experiment.grids) {
            let kept = self.scan(spec, grid, &taken_over)?;
            let rows = grid.iter().cloned().zip(kept.rows.iter().cloned()).collect();
            let scan = Scan { name: spec.name.clone(), rows };
            let open =
                |(_, row): &&(Point, Answered)| matches!(row, Err(NoAnswer::Failed(why)) if why == NOT_YET);
            let open: Vec<&Point> =
                scan.rows.iter().filter(|row| !self.computes && open(row)).map(|(point, _)| point).collect();
            failures.extend(scan.failures().filter(|line| self.computes || !line.ends_with(NOT_YET)));
            failed_jobs += scan.failed_points() - open.len();
            if !open.is_empty() {
                failures.push(not_yet(&format!("scan {}", spec.name), &open, grid.len()));
                passed_over += open.len();
            }
            results.scans.push(scan);
            answers.push(kept);
        }
        experiment.files.check_unchanged()?;
        failed_jobs += passed_over;
        let taken_over = taken_over.into_inner();
        Ok(Done { results, answers, failures, failed_jobs, taken_over, passed_over })
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
    fn run(
        &self,
        run: &Run,
        protocol: Option<&Result<Trajectory, String>>,
        taken_over: &AtomicUsize,
    ) -> Result<Result<Trajectory, String>, Ended> {
        let kept = || self.places.table(&run.key);
        // Other processes may have added it since the journals were read, which takes a look at each of them.
        let looked_again = || {
            self.places.journals().refresh();
            kept()
        };
        if let Some(Known { result, taken_over: from_another }) = kept().or_else(looked_again) {
            taken_over.fetch_add(usize::from(from_another), Ordering::Relaxed);
            self.share.advance(1.0);
            return Ok(Ok(result));
        }
        let planned = match self.experiment.planned_with(run, protocol) {
            Ok(planned) => planned,
            Err(why) => return Ok(Err(why)),
        };
        let run = planned.as_ref().unwrap_or(run);
        let tiling = Tiling::of(self.places.parts(&run.key), run.schedule.replicas());
        if !tiling.kept.is_empty() && (self.computes || tiling.missing.is_empty()) {
            return self.run_in_parts(run, &tiling);
        }
        if !self.computes {
            return Ok(Err(NOT_YET.into()));
        }
        self.may_begin()?;
        if let Some(memory) = &run.memory {
            self.remind(memory, &run.key);
        }
        match compute_part(run, &(0..run.schedule.replicas()), &self.share) {
            Ok(computed) => {
                self.keep(computed.kind, &computed.key, &computed.payload)?;
                self.places.journals().sync().map_err(|error| unwritable(self.partial, &error))?;
                Ok(Ok(computed.table))
            }
            Err(why) => {
                if let (NoPart::Interrupted, Some(memory)) = (&why, &run.memory) {
                    self.remember(memory, &run.key)?;
                }
                self.no_table(why)
            }
        }
    }

    /// What a run that could not be computed leaves.
    fn no_table(&self, why: NoPart) -> Result<Result<Trajectory, String>, Ended> {
        match why {
            NoPart::Interrupted => Err(Failure::Interrupted(self.partial.to_path_buf()).into()),
            NoPart::OutOfMemory(why) | NoPart::Error(why) | NoPart::Panic(why) => Ok(Err(why)),
        }
    }

    /// The table of a run of which parts are kept: what is missing is computed and kept as further parts.
    fn run_in_parts(&self, run: &Run, tiling: &Tiling) -> Result<Result<Trajectory, String>, Ended> {
        let replicas = f64::from(run.schedule.replicas());
        for missing in &tiling.missing {
            self.may_begin()?;
            let part = f64::from(missing.end - missing.start) / replicas;
            let share = ProgressShare { monitor: &self.share, part };
            match compute_part(run, missing, &share) {
                Ok(computed) => self.keep(computed.kind, &computed.key, &computed.payload)?,
                Err(why) => return self.no_table(why),
            }
        }
        self.places.journals().sync().map_err(|error| unwritable(self.partial, &error))?;
        self.places.journals().refresh();
        self.share
            .advance(tiling.kept.iter().map(|part| f64::from(part.end - part.start)).sum::<f64>() / replicas);
        let whole = joined(self.places, run);
        Ok(whole.ok_or_else(|| "parts of it were damaged while it was put together; run it again".into()))
    }

    /// Keeps what a search had found when it was interrupted.
    fn remember(&self, memory: &SearchMemory, key: &str) -> Result<(), Ended> {
        let left = std::mem::take(&mut *memory.left.lock().unwrap_or_else(PoisonError::into_inner));
        if left.is_empty() {
            return Ok(());
        }
        let answer: Answered = Ok([("starts".to_string(), json!(left))].into());
        let payload = serde_json::to_vec(&answer).expect("starts are plain data");
        let mut number = 0;
        while self.places.answer(&resume_key(key, number)).is_some() {
            number += 1;
        }
        self.keep(RecordKind::Answer, &resume_key(key, number), &payload)?;
        Ok(self.places.journals().sync().map_err(|error| unwritable(self.partial, &error))?)
    }

    /// Gives a search what an interrupted one left.
    fn remind(&self, memory: &SearchMemory, key: &str) {
        let all = (0..).map_while(|number| self.places.answer(&resume_key(key, number)));
        let Some(Ok(mut left)) = all.last() else { return };
        let starts = left.remove("starts").and_then(|value| serde_json::from_value(value).ok());
        *memory.resume.lock().unwrap_or_else(PoisonError::into_inner) = starts.unwrap_or_default();
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
        let key = scan_key(&keys);
        // A point at which the program failed is tried again: such a scan is looked through point by point.
        let whole = |answers: &Answers| answers.rows.len() == grid.len() && answers.rows.iter().all(is_final);
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
                let answered = before.get(index).filter(|row| is_final(row));
                if let Some(answer) = answered.cloned().or_else(|| self.places.answer(key)) {
                    self.share.advance(1.0);
                    return Ok(answer);
                }
                if !self.computes {
                    return Ok(Err(NoAnswer::Failed(NOT_YET.into())));
                }
                self.may_begin()?;
                let answer = compute_answer(spec, inputs, &grid[index]);
                if is_final(&answer) {
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
