//! Plans: which task computes which pieces.
//!
//! Pieces are dealt longest first, each to the task that has least to do so far. Estimates may come from a measurement, so
//! that two machines would plan differently: a plan is a file that is written once, and every task reads it.

use super::pieces::{Kept, Piece, divided, undivided};
use super::{folder_of, sweep_folder};
use crate::execute::unwritable;
use crate::experiment::{Experiment, Size};
use crate::source::{Diagnostic, Source};
use crate::store::{Places, disk};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};

/// Pieces are divided until each is at most this part of a task, so that tasks come out equal and cores are busy to the end …
const PIECES_PER_TASK: f64 = 8.0;
/// … but not below so many seconds: every part of a run is a record of its own.
const SHORTEST_PIECE: f64 = 10.0;
/// No more tasks than this, whatever a cluster allows.
pub const MOST_TASKS: usize = 100_000;

/// Who computes what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Plan {
    /// Name of the folder of the experiment: a digest of all that its results depend on.
    pub experiment: String,
    /// Where the description lay; files that it names are found beside it.
    pub source: PathBuf,
    /// The description as it was when it was shared out: later edits change nothing.
    pub text: String,
    /// `quick`, `normal` or `full`.
    pub size: String,
    /// Seed in place of the description's.
    pub seed: Option<u64>,
    /// Cores that a task is planned to have.
    pub cores: usize,
    /// The pieces of every task, longest first.
    pub tasks: Vec<Vec<Piece>>,
}

/// How many tasks there are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TaskCount {
    /// So many.
    Tasks(usize),
    /// As many as it takes for each to end after so many minutes.
    Minutes(f64),
}

/// What a plan is made of beside the experiment: as the user asked for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The description as a user names it.
    pub source: PathBuf,
    /// The size.
    pub size: Size,
    /// The seed.
    pub seed: Option<u64>,
    /// Cores of a task.
    pub cores: usize,
    /// Tasks.
    pub count: TaskCount,
    /// Never more tasks than this.
    pub most_tasks: usize,
}

impl Plan {
    /// Shares out what is missing. There are as many tasks as asked for, also where some have nothing to do; counted by minutes, no
    /// more than there are pieces.
    pub fn new(experiment: &Experiment, asked: &Asked, kept: &Kept) -> Self {
        // Costs depend on how many replicas run at a time: a task computes its pieces side by side, one thread each.
        let pieces = match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
            Ok(pool) => pool.install(|| undivided(experiment, kept)),
            Err(_) => undivided(experiment, kept),
        };
        let total: f64 = pieces.iter().map(|piece| piece.seconds).sum();
        let count = match asked.count {
            TaskCount::Tasks(count) => count,
            TaskCount::Minutes(minutes) => (total / (60.0 * minutes * asked.cores as f64)).ceil() as usize,
        };
        let count = count.clamp(1, asked.most_tasks);
        let longest = (total / count as f64 / PIECES_PER_TASK).max(SHORTEST_PIECE);
        let pieces = divided(experiment, pieces, longest);
        let count = match asked.count {
            TaskCount::Tasks(_) => count,
            TaskCount::Minutes(_) => count.min(pieces.len().max(1)),
        };
        let source = std::path::absolute(&asked.source).unwrap_or_else(|_| asked.source.clone());
        Self {
            experiment: experiment.folder_name().into(),
            source,
            text: experiment.source.text.clone(),
            size: asked.size.name().into(),
            seed: asked.seed,
            cores: asked.cores,
            tasks: dealt(pieces, count),
        }
    }

    /// The experiment as it was shared out. It is another one, and refused, when files that it reads or the program have changed.
    pub fn experiment(&self) -> Result<Experiment, Diagnostic> {
        let source = Source { name: self.source.display().to_string(), text: self.text.clone() };
        let experiment = Experiment::new(source, Size::named(&self.size)?, self.seed)?;
        if experiment.folder_name() != self.experiment {
            let message = format!(
                "this plan shares out `{}`, which is `{}` here: a file that the description reads, or the program, has changed",
                self.experiment,
                experiment.folder_name()
            );
            return Err(Diagnostic::new(message)
                .hint("share it out again with `didact sweep plan`, `submit` or `work`"));
        }
        if let Some(piece) = self.pieces().find(|piece| !piece.job.belongs_to(&experiment)) {
            return Err(Diagnostic::new(format!(
                "the plan has a piece that is none of the experiment: {:?}",
                piece.job
            )));
        }
        Ok(experiment)
    }

    /// All pieces, task by task.
    pub fn pieces(&self) -> impl Iterator<Item = &Piece> {
        self.tasks.iter().flatten()
    }

    /// Estimated seconds of one core, of everything.
    pub fn seconds(&self) -> f64 {
        self.pieces().map(|piece| piece.seconds).sum()
    }

    /// Estimated seconds that a task takes on its cores.
    pub fn task_seconds(&self, task: usize) -> f64 {
        let pieces = &self.tasks[task];
        let total: f64 = pieces.iter().map(|piece| piece.seconds).sum();
        let longest = pieces.iter().map(|piece| piece.seconds).fold(0.0, f64::max);
        longest.max(total / self.cores.max(1) as f64)
    }

    /// Reads a plan.
    pub fn read(path: &Path) -> Result<Self, Diagnostic> {
        let bytes = disk::read(path)
            .map_err(|error| Diagnostic::new(format!("cannot read the plan {}: {error}", path.display())))?;
        serde_json::from_slice(&bytes)
            .map_err(|error| Diagnostic::new(format!("{} is no plan of a sweep: {error}", path.display())))
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(self).expect("a plan is plain data");
        bytes.push(b'\n');
        bytes
    }

    /// Writes the plan under the next free number; gives its path.
    pub fn write_next(&self, root: &Path) -> Result<PathBuf, Diagnostic> {
        let folder = sweep_folder(root, &self.experiment);
        disk::create_folder(&folder).map_err(|error| unwritable(&folder, &error))?;
        for number in numbers_of_plans(&folder).last().copied().unwrap_or(0) + 1.. {
            let path = folder.join(format!("plan-{number}.json"));
            match disk::publish(&path, &self.bytes()) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(unwritable(&path, &error)),
                Ok(()) => return Ok(path),
            }
        }
        unreachable!("there is always a next number")
    }

    /// The plan by which an experiment is shared out to so many shards, without a submission: everything is in it, done or not. The
    /// process that comes first writes it, and all others read it.
    pub fn of_shards(
        experiment: &Experiment,
        asked: &Asked,
        root: &Path,
    ) -> Result<(Self, PathBuf), Diagnostic> {
        let TaskCount::Tasks(shards) = asked.count else {
            return Err(Diagnostic::new("shards are counted, not timed"));
        };
        let folder = folder_of(root, experiment);
        let path = folder.join(format!("shards-{shards}.json"));
        if !path.exists() {
            let nothing = Kept::new(Places::empty(root, experiment.folder_name()));
            let plan = Self::new(experiment, asked, &nothing);
            disk::create_folder(&folder).map_err(|error| unwritable(&folder, &error))?;
            match disk::publish(&path, &plan.bytes()) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(unwritable(&path, &error));
                }
                _ => {}
            }
        }
        Ok((Self::read(&path)?, path))
    }
}

/// Numbers of the plans in the folder of a sweep, increasing.
fn numbers_of_plans(folder: &Path) -> Vec<u32> {
    let number = |path: &PathBuf| {
        path.file_name()?.to_str()?.strip_prefix("plan-")?.strip_suffix(".json")?.parse().ok()
    };
    let mut numbers: Vec<u32> = disk::entries(folder).iter().filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}

/// All plans in the folder of a sweep, oldest submission first, those of shards before them.
pub fn plans_in(folder: &Path) -> Vec<PathBuf> {
    let shards = disk::entries(folder).into_iter().filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("shards-") && path.extension().is_some_and(|e| e == "json")
    });
    let numbered = numbers_of_plans(folder).into_iter().map(|n| folder.join(format!("plan-{n}.json")));
    shards.chain(numbered).collect()
}

/// Deals pieces to tasks: longest first, always to the task with least to do, the first of them among equals.
fn dealt(mut pieces: Vec<Piece>, count: usize) -> Vec<Vec<Piece>> {
    pieces.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then_with(|| a.job.cmp(&b.job)));
    let mut tasks: Vec<Vec<Piece>> = vec![Vec::new(); count];
    let mut loads: BinaryHeap<Reverse<(Load, usize)>> =
        (0..count).map(|task| Reverse((Load(0.0), task))).collect();
    for piece in pieces {
        let Some(Reverse((Load(load), task))) = loads.pop() else { break };
        loads.push(Reverse((Load(load + piece.seconds), task)));
        tasks[task].push(piece);
    }
    tasks
}

/// Seconds that are compared as numbers; estimates are finite.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Load(f64);

impl Eq for Load {}

impl PartialOrd for Load {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Load {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::Job;
    use proptest::prelude::*;

    fn pieces(seconds: &[f64]) -> Vec<Piece> {
        let piece = |(index, seconds): (usize, &f64)| Piece {
            job: Job::Run(index, 0, 1),
            seconds: *seconds,
            memory: 0.0,
        };
        seconds.iter().enumerate().map(piece).collect()
    }

    proptest! {
        /// The bound of Graham (1966) on the load of m machines when jobs are dealt one by one to the least loaded: the mean
        /// plus (1 − 1/m) times the longest job.
        #[test]
        fn every_piece_is_dealt_once_and_no_task_has_much_more_than_its_share(
            seconds in prop::collection::vec(0.01f64..100.0, 1..60),
            count in 1usize..12,
        ) {
            let tasks = dealt(pieces(&seconds), count);
            prop_assert_eq!(tasks.len(), count);
            let mut all: Vec<usize> = tasks.iter().flatten().map(|p| match p.job {
                Job::Run(run, ..) => run,
                Job::Scan(scan, ..) => scan,
            }).collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..seconds.len()).collect::<Vec<_>>());
            let load = |task: &Vec<Piece>| task.iter().map(|p| p.seconds).sum::<f64>();
            let most = tasks.iter().map(load).fold(0.0, f64::max);
            let (mean, longest) =
                (seconds.iter().sum::<f64>() / count as f64, seconds.iter().copied().fold(0.0, f64::max));
            prop_assert!(most <= mean + longest * (1.0 - 1.0 / count as f64) + 1e-9);
            for task in &tasks {
                prop_assert!(task.windows(2).all(|pair| pair[0].seconds >= pair[1].seconds));
            }
        }
    }
}
