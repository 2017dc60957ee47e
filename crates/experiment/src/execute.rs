//! Running an experiment: jobs in parallel, results kept one by one, the folder renamed when whole.
//!
//! A finished folder is compared with its digests before it is believed. What is damaged is healed, what failed is tried again, and
//! several processes may do all this at once.

use crate::claims::{Judged, Verdict};
use crate::experiment::Experiment;
use crate::jobs::{Done, Ended, ProgressShare, Workshop};
use crate::measures::Measured;
use crate::outcome::WriteError;
use crate::source::Diagnostic;
use crate::store::disk::{self, Stopwatch};
use crate::store::folder::{Assembly, Installed, PROVENANCE};
use crate::store::places::partial_folder;
use crate::store::{Damage, FolderState, Places, Provenance, write_atomically};
use didact_model::Monitor;
use serde::Deserialize;
use std::io;
use std::path::{Path, PathBuf};

/// How often a folder is put together anew when another process removes it meanwhile, or work is found done that is not.
const TRIES: usize = 100;

/// A finished experiment.
#[derive(Debug)]
pub struct Finished {
    /// Its folder.
    pub folder: PathBuf,
    /// True when it was found, not computed.
    pub reused: bool,
    /// Runs and scans that were taken over from other experiments: they do not depend on what is different there.
    pub taken_over: usize,
    /// Files that were found damaged and were made anew.
    pub healed: Vec<Damage>,
    /// Claims with verdicts.
    pub claims: Vec<Judged>,
    /// Points and runs that failed, with reasons, and points of scans outside of the domain of their quantity.
    pub failures: Vec<String>,
    /// How many of these are failed jobs: the next run tries them again.
    pub failed_jobs: usize,
    /// Measures.
    pub measured: Vec<Measured>,
}

/// Why an experiment did not finish.
#[derive(Debug)]
pub enum Failure {
    /// One clear error.
    Error(Diagnostic),
    /// The user stopped it; the folder can be resumed.
    Interrupted(PathBuf),
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Self {
        Self::Error(diagnostic)
    }
}

/// Whether finished work is taken or made anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Resume,
    Anew,
    /// Nothing is computed: what is kept is drawn and judged.
    Kept,
}

impl Experiment {
    /// Runs what is not there yet below `root`, and writes tables, figures and the report. A finished folder is found; files of it
    /// that are damaged are made anew, and jobs that failed are tried again.
    pub fn execute(&self, root: &Path, monitor: &dyn Monitor) -> Result<Finished, Failure> {
        let folder = root.join(self.folder_name());
        for _ in 0..TRIES {
            let healed = match FolderState::of(&folder) {
                FolderState::Absent => Vec::new(),
                FolderState::Damaged(damage) => damage,
                FolderState::Whole(provenance) => match of_whole(&folder, *provenance) {
                    Ok(found) if found.failed_jobs == 0 => {
                        // Left by a process that came second, or was killed at its very end.
                        remove_partial(&partial_folder(root, self.folder_name()))?;
                        return Ok(found);
                    }
                    Ok(_) => Vec::new(),
                    Err(damage) => vec![damage],
                },
            };
            match self.compute(root, Mode::Resume, monitor) {
                Ok(finished) => return Ok(Finished { healed, ..finished }),
                Err(Ended::By(failure)) => return Err(failure),
                Err(Ended::Elsewhere) => {}
            }
        }
        Err(unsteady(&folder).into())
    }

    /// Draws and judges what is kept below `root`, and computes nothing. What is not there yet is listed among the failures, and
    /// the folder of what is not whole stays, so that others may go on with it.
    pub fn execute_kept(&self, root: &Path, monitor: &dyn Monitor) -> Result<Finished, Failure> {
        let folder = root.join(self.folder_name());
        if let FolderState::Whole(provenance) = FolderState::of(&folder)
            && let Ok(found) = of_whole(&folder, *provenance)
            && found.failed_jobs == 0
        {
            return Ok(found);
        }
        match self.compute(root, Mode::Kept, monitor) {
            Ok(finished) => Ok(finished),
            Err(Ended::By(failure)) => Err(failure),
            Err(Ended::Elsewhere) => self.execute(root, monitor),
        }
    }

    /// Runs everything anew, whatever is there: files of a finished folder of the same experiment are replaced once all new ones
    /// are there.
    pub fn execute_fresh(&self, root: &Path, monitor: &dyn Monitor) -> Result<Finished, Failure> {
        remove_partial(&partial_folder(root, self.folder_name()))?;
        match self.compute(root, Mode::Anew, monitor) {
            Ok(finished) => Ok(finished),
            Err(Ended::By(failure)) => Err(failure),
            Err(Ended::Elsewhere) => Err(unsteady(&root.join(self.folder_name())).into()),
        }
    }

    /// Computes what is nowhere, and puts the folder together.
    fn compute(&self, root: &Path, mode: Mode, monitor: &dyn Monitor) -> Result<Finished, Ended> {
        let (begun, name) = (Stopwatch::start(), self.folder_name());
        let (folder, partial) = (root.join(name), partial_folder(root, name));
        refuse_link(&partial)?;
        let description = toml::to_string(&self.resolved).expect("a description is plain data");
        let make_partial = || begin(&partial, &description).map_err(|error| unwritable(&partial, &error));
        if mode != Mode::Kept {
            make_partial()?;
        }
        let places = match mode {
            Mode::Resume | Mode::Kept => Places::of(root, name),
            Mode::Anew => Places::empty(root, name),
        };
        let jobs = self.runs.len() + self.scan_points();
        let mut done = Workshop {
            experiment: self,
            places: &places,
            partial: &partial,
            rival: (mode == Mode::Resume && !folder.exists()).then_some(folder.as_path()),
            share: ProgressShare { monitor, part: 1.0 / jobs.max(1) as f64 },
            computes: mode != Mode::Kept,
        }
        .work()?;
        if mode == Mode::Kept && jobs > 0 && done.passed_over == jobs {
            let message = format!("nothing of it is computed yet below {}", root.display());
            return Err(Diagnostic::new(message)
                .hint("leave out --no-compute, or share it out with `didact sweep`")
                .into());
        }
        if mode == Mode::Kept {
            make_partial()?;
        }
        let finished = self.finish(&folder, &partial, &mut done, (mode, &begun), &description)?;
        if done.passed_over == 0 {
            remove_partial(&partial)?;
        }
        Ok(finished)
    }

    /// Puts the folder together and gives it its name, again if another process removes it meanwhile.
    fn finish(
        &self,
        folder: &Path,
        partial: &Path,
        done: &mut Done,
        (mode, begun): (Mode, &Stopwatch),
        description: &str,
    ) -> Result<Finished, Ended> {
        let outcome = self.conclude(done)?;
        let put_there = || -> Result<Installed, WriteError> {
            let assembly = Assembly::new(partial)?;
            let provenance = self.put_together(&assembly, done, &outcome, description)?;
            let provenance = Provenance { wall_seconds: begun.seconds(), ..provenance };
            Ok(assembly.install(folder, provenance, mode == Mode::Anew)?)
        };
        for _ in 0..TRIES {
            match put_there() {
                Ok(Installed::Here) => {
                    return Ok(Finished {
                        folder: folder.to_path_buf(),
                        reused: false,
                        taken_over: done.taken_over,
                        healed: Vec::new(),
                        claims: outcome.claims,
                        failures: std::mem::take(&mut done.failures),
                        failed_jobs: done.failed_jobs,
                        measured: outcome.measured,
                    });
                }
                // What is there has the same bytes as what would have been put there.
                Ok(Installed::ByAnother) => return Err(Ended::Elsewhere),
                // Another process has finished, or begins anew, and removed what was being put together.
                Err(WriteError::Disk(error)) if disk::is_gone(&error) => {}
                Err(WriteError::Disk(error)) => return Err(unwritable(partial, &error).into()),
                Err(WriteError::Text(text)) => return Err(Diagnostic::new(text).into()),
            }
        }
        Err(unsteady(folder).into())
    }
}

/// Makes the folder of what is not whole yet. Another process that has just finished may remove it at any moment.
fn begin(partial: &Path, description: &str) -> io::Result<()> {
    for _ in 0..TRIES {
        disk::create_folder(partial)?;
        match write_atomically(&partial.join("description.toml"), description.as_bytes()) {
            Err(error) if disk::is_gone(&error) => {}
            done => return done,
        }
    }
    Err(io::Error::other("the folder is removed again and again"))
}

/// Removes the folder of what is not whole, with journals and what is left of folders that were put together.
fn remove_partial(partial: &Path) -> Result<(), Diagnostic> {
    refuse_link(partial)?;
    if !partial.exists() {
        return Ok(());
    }
    disk::remove_folder(partial).map_err(|error| unwritable(partial, &error))
}

/// A link under the name of a folder that is made and removed again could lead anywhere.
pub(crate) fn refuse_link(partial: &Path) -> Result<(), Diagnostic> {
    if partial.is_symlink() {
        let message = format!("{} is a link, not a folder of results", partial.display());
        return Err(Diagnostic::new(message).hint("remove the link, or choose another folder with --out"));
    }
    Ok(())
}

pub(crate) fn unwritable(place: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::new(format!("cannot write to {}: {error}", place.display()))
        .hint("choose another folder with --out")
}

fn unsteady(folder: &Path) -> Diagnostic {
    Diagnostic::new(format!("other processes change {} all the time", folder.display()))
        .hint("run it again when they have ended")
}

/// What a whole folder says; the damage if its results cannot be read although their digest is right.
fn of_whole(folder: &Path, provenance: Provenance) -> Result<Finished, Damage> {
    #[derive(Deserialize)]
    struct Stored {
        claims: Vec<Judged>,
        measures: Vec<Measured>,
    }
    let read = disk::read(&folder.join("results.json")).ok();
    let stored: Option<Stored> = read.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let what = crate::store::folder::Fault::Changed;
    let Stored { claims, measures } = stored.ok_or(Damage { file: "results.json".into(), what })?;
    Ok(Finished {
        folder: folder.to_path_buf(),
        reused: true,
        taken_over: 0,
        healed: Vec::new(),
        claims,
        failures: provenance.failures,
        failed_jobs: provenance.failed_jobs,
        measured: measures,
    })
}

/// Why a folder is not taken for a finished experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotFinished {
    /// There is no provenance: it is something else, or not done yet.
    Unfinished,
    /// Files of it are missing or changed.
    Damaged(Vec<Damage>),
}

/// A folder that is whole: every file is as its provenance says.
pub fn finished(folder: &Path) -> Result<Finished, NotFinished> {
    match FolderState::of(folder) {
        FolderState::Whole(provenance) => {
            of_whole(folder, *provenance).map_err(|damage| NotFinished::Damaged(vec![damage]))
        }
        FolderState::Damaged(damage) if folder.join(PROVENANCE).exists() => Err(NotFinished::Damaged(damage)),
        FolderState::Absent | FolderState::Damaged(_) => Err(NotFinished::Unfinished),
    }
}

/// True when no claim fails.
pub fn all_hold(claims: &[Judged]) -> bool {
    claims.iter().all(|c| c.verdict != Verdict::Fails)
}
