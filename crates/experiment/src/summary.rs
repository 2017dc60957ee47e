//! What is worth knowing of a finished folder beyond its claims: replicas that diverged, errors of quadrature, scans
//! without an answer. It is read from the files of the runs, so that it is the same for a new run and for one that is found.

use crate::store::{Answers, disk};
use didact_model::Outcome;
use didact_model::trajectory::Statistics;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A finished folder in numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// One per name of a run, over all points of the sweep.
    pub runs: Vec<RunSummary>,
    /// One per scan.
    pub scans: Vec<ScanSummary>,
}

/// One run over all points of the sweep.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunSummary {
    /// Its name.
    pub name: String,
    /// Points at which it has a table.
    pub points: usize,
    /// Replicas of all points.
    pub replicas: usize,
    /// Replicas of all points that diverged.
    pub diverged: usize,
    /// Points at which every replica diverged: nothing is left of the run there.
    pub lost_points: usize,
    /// Largest estimated error of a Gaussian average; `None` where all averages have closed forms.
    pub quadrature_error: Option<f64>,
}

/// One scan.
#[derive(Debug, Clone, PartialEq)]
pub struct ScanSummary {
    /// Its name.
    pub name: String,
    /// Points of its grid.
    pub points: usize,
    /// Points without an answer.
    pub failed: usize,
}

impl Summary {
    /// Of the folder of a finished experiment. Files that belong to no run and no scan are passed over.
    pub fn of(folder: &Path) -> Self {
        let mut runs: BTreeMap<String, RunSummary> = BTreeMap::new();
        let mut scans = Vec::new();
        for path in json_files(folder) {
            let Some(name) = path.file_stem().and_then(|s| s.to_str()) else { continue };
            let Ok(bytes) = disk::read(&path) else { continue };
            if let Ok(header) = serde_json::from_slice::<Ended>(&bytes) {
                runs.entry(name.into()).or_default().add(&header);
            } else if let (Some(scan), Some(answers)) = (name.strip_prefix("scan-"), Answers::of_file(&bytes))
            {
                let failed = answers.rows.iter().filter(|r| r.is_err()).count();
                scans.push(ScanSummary { name: scan.into(), points: answers.rows.len(), failed });
            }
        }
        let runs = runs.into_iter().map(|(name, run)| RunSummary { name, ..run }).collect();
        Self { runs, scans }
    }

    /// True when nothing is left of a run at some point, or of a scan at all points.
    pub fn has_lost_work(&self) -> bool {
        self.runs.iter().any(|run| run.lost_points > 0)
            || self.scans.iter().any(|scan| scan.points > 0 && scan.failed == scan.points)
    }
}

/// The part of the header of a table that tells how its replicas ended.
#[derive(Deserialize)]
struct Ended {
    outcomes: Vec<Outcome>,
    statistics: Vec<Statistics>,
}

impl RunSummary {
    fn add(&mut self, header: &Ended) {
        let diverged = header.outcomes.iter().filter(|o| matches!(o, Outcome::Diverged { .. })).count();
        self.points += 1;
        self.replicas += header.outcomes.len();
        self.diverged += diverged;
        self.lost_points += usize::from(diverged > 0 && diverged == header.outcomes.len());
        let errors = header.statistics.iter().filter_map(|s| s.quadrature_error);
        self.quadrature_error = errors.chain(self.quadrature_error).reduce(f64::max);
    }
}

/// The JSON files of a folder and of the folders of its points.
fn json_files(folder: &Path) -> Vec<PathBuf> {
    let here = disk::entries(folder);
    let points: Vec<PathBuf> =
        here.iter().filter(|path| path.is_dir()).flat_map(|path| disk::entries(path)).collect();
    here.into_iter().chain(points).filter(|path| path.extension().is_some_and(|e| e == "json")).collect()
}
