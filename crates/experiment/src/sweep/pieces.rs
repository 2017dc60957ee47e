//! What is shared out: some replicas of a run, or some points of a scan.

use crate::compute::{is_final, scan_key};
use crate::experiment::Experiment;
use crate::store::{Places, Tiling};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Seconds that a point of a scan is taken to need: quantities have no estimate, and most answer within this time.
pub const SCAN_POINT_SECONDS: f64 = 0.05;

/// The work of a piece.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Job {
    /// Some replicas of a run, which has this position among all runs at all points.
    Run(usize, u32, u32),
    /// Some points of a scan, which has this position among the scans.
    Scan(usize, usize, usize),
}

/// A job and what it costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Piece {
    /// What is computed.
    pub job: Job,
    /// Estimated seconds of one core.
    pub seconds: f64,
    /// Estimated bytes.
    pub memory: f64,
}

impl Job {
    /// Short text for messages: `sgd at data.dimension = 100, replicas 0 to 7`.
    pub fn label(&self, experiment: &Experiment) -> String {
        match *self {
            Self::Run(run, first, end) => {
                let Some(run) = experiment.runs.get(run) else { return "an unknown run".into() };
                let name = format!("{} at {}", run.name, run.point.label());
                if (first, end) == (0, run.schedule.replicas()) {
                    name
                } else {
                    format!("{name}, replicas {first} to {}", end.saturating_sub(1))
                }
            }
            Self::Scan(scan, first, end) => match experiment.resolved.scan.get(scan) {
                Some(spec) => format!("scan {}, points {first} to {}", spec.name, end.saturating_sub(1)),
                None => "an unknown scan".into(),
            },
        }
    }

    /// How many runs, parts of runs or points of scans it is.
    pub fn points(&self) -> usize {
        match self {
            Self::Run(..) => 1,
            Self::Scan(_, first, end) => end.saturating_sub(*first),
        }
    }

    /// Whether the job is one of this experiment.
    pub fn belongs_to(&self, experiment: &Experiment) -> bool {
        match *self {
            Self::Run(run, first, end) => {
                experiment.runs.get(run).is_some_and(|run| first < end && end <= run.schedule.replicas())
            }
            Self::Scan(scan, first, end) => {
                experiment.grids.get(scan).is_some_and(|grid| first < end && end <= grid.len())
            }
        }
    }
}

/// All jobs of an experiment that are not kept yet, none of them divided.
pub fn undivided(experiment: &Experiment, kept: &Kept) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (index, (run, cost)) in experiment.runs.iter().zip(experiment.costs()).enumerate() {
        let missing = kept.missing_replicas(experiment, index);
        if missing.is_empty() {
            continue;
        }
        let replicas = f64::from(run.schedule.replicas());
        for part in missing {
            let share = f64::from(part.end - part.start) / replicas;
            let job = Job::Run(index, part.start, part.end);
            pieces.push(Piece { job, seconds: cost.seconds * share, memory: cost.memory });
        }
    }
    for (index, grid) in experiment.grids.iter().enumerate() {
        for missing in kept.missing_points(index, &(0..grid.len())) {
            let seconds = SCAN_POINT_SECONDS * missing.len() as f64;
            pieces.push(Piece { job: Job::Scan(index, missing.start, missing.end), seconds, memory: 0.0 });
        }
    }
    pieces
}

/// Divides pieces that take longer than `longest` seconds, where that is possible: replicas of a run, points of a scan.
pub fn divided(experiment: &Experiment, pieces: Vec<Piece>, longest: f64) -> Vec<Piece> {
    let mut all = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let (first, end) = match piece.job {
            Job::Run(run, first, end) if experiment.runs[run].schedule.splits() => {
                (first as usize, end as usize)
            }
            Job::Scan(_, first, end) => (first, end),
            Job::Run(..) => {
                all.push(piece);
                continue;
            }
        };
        let count = end - first;
        let parts = ((piece.seconds / longest).ceil() as usize).clamp(1, count);
        for part in 0..parts {
            let (from, to) = (first + part * count / parts, first + (part + 1) * count / parts);
            let job = match piece.job {
                Job::Run(run, ..) => Job::Run(run, from as u32, to as u32),
                Job::Scan(scan, ..) => Job::Scan(scan, from, to),
            };
            let seconds = piece.seconds * (to - from) as f64 / count as f64;
            all.push(Piece { job, seconds, memory: piece.memory });
        }
    }
    all
}

/// What is kept of an experiment. Records are read once, so that damaged ones do not count, and are then taken for kept.
#[derive(Debug)]
pub struct Kept {
    /// Where results lie.
    pub places: Places,
    tables: BTreeSet<usize>,
    /// By run of which there is no table: replicas that are in no part.
    missing: BTreeMap<usize, Vec<Range<u32>>>,
    /// By scan and point.
    answers: BTreeSet<(usize, usize)>,
}

impl Kept {
    /// What is kept in these places; [`Kept::refresh`] looks.
    pub fn new(places: Places) -> Self {
        Self { places, tables: BTreeSet::new(), missing: BTreeMap::new(), answers: BTreeSet::new() }
    }

    /// Looks for everything that was not found before.
    pub fn refresh(&mut self, experiment: &Experiment) {
        let runs = (0..experiment.runs.len()).map(|run| Job::Run(run, 0, 0));
        let scans = (0..experiment.grids.len()).map(|scan| Job::Scan(scan, 0, 0));
        let all: Vec<Job> = runs.chain(scans).collect();
        self.refresh_for(experiment, &all);
    }

    /// Looks for the runs and scans of these jobs alone.
    pub fn refresh_for(&mut self, experiment: &Experiment, jobs: &[Job]) {
        self.places.journals().refresh();
        let scans: BTreeSet<usize> = jobs
            .iter()
            .filter_map(|job| if let Job::Scan(scan, ..) = job { Some(*scan) } else { None })
            .collect();
        let runs: BTreeSet<usize> = jobs
            .iter()
            .filter_map(|job| if let Job::Run(run, ..) = job { Some(*run) } else { None })
            .collect();
        for index in runs.into_iter().filter(|run| !self.tables.contains(run)).collect::<Vec<_>>() {
            let run = &experiment.runs[index];
            if self.places.table(&run.key).is_some() {
                self.tables.insert(index);
            } else if run.schedule.splits() {
                let tiling = Tiling::of(self.places.parts(&run.key), run.schedule.replicas());
                self.missing.insert(index, tiling.missing);
            }
        }
        for scan in scans {
            self.look_for_answers(experiment, scan);
        }
    }

    fn look_for_answers(&mut self, experiment: &Experiment, scan: usize) {
        let (spec, grid) = (&experiment.resolved.scan[scan], &experiment.grids[scan]);
        if (0..grid.len()).all(|point| self.answers.contains(&(scan, point))) {
            return;
        }
        let keys: Vec<String> = grid.iter().map(|point| experiment.inputs_at(spec, point).1).collect();
        let whole = self.places.answers(&scan_key(&keys)).map(|known| known.result.rows);
        for (point, key) in keys.iter().enumerate() {
            let answered = whole.as_ref().and_then(|rows| rows.get(point)).is_some_and(is_final);
            if answered || self.places.answer(key).is_some() {
                self.answers.insert((scan, point));
            }
        }
    }

    /// Which replicas of a run are missing.
    pub fn missing_replicas(&self, experiment: &Experiment, run: usize) -> Vec<Range<u32>> {
        if self.tables.contains(&run) {
            return Vec::new();
        }
        let all = || std::iter::once(0..experiment.runs[run].schedule.replicas()).collect();
        self.missing.get(&run).cloned().unwrap_or_else(all)
    }

    /// Which of these points of a scan are missing, as stretches.
    pub fn missing_points(&self, scan: usize, points: &Range<usize>) -> Vec<Range<usize>> {
        let mut stretches: Vec<Range<usize>> = Vec::new();
        for point in points.clone().filter(|point| !self.answers.contains(&(scan, *point))) {
            match stretches.last_mut() {
                Some(last) if last.end == point => last.end += 1,
                _ => stretches.push(point..point + 1),
            }
        }
        stretches
    }

    /// The share of a job that is kept, between 0 and 1.
    pub fn share(&self, experiment: &Experiment, job: &Job) -> f64 {
        let (missing, all) = match *job {
            Job::Run(run, first, end) => {
                let overlap = |gap: &Range<u32>| gap.end.min(end).saturating_sub(gap.start.max(first));
                let missing: u32 = self.missing_replicas(experiment, run).iter().map(overlap).sum();
                (f64::from(missing), f64::from(end - first))
            }
            Job::Scan(scan, first, end) => {
                let missing: usize = self.missing_points(scan, &(first..end)).iter().map(Range::len).sum();
                (missing as f64, (end - first) as f64)
            }
        };
        1.0 - missing / all
    }

    /// Whether all of a job is kept.
    pub fn has(&self, experiment: &Experiment, job: &Job) -> bool {
        self.share(experiment, job) >= 1.0
    }
}
