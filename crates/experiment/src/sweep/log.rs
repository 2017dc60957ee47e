//! What a task reports: one line of JSON per event, in a file that only grows and that one process writes.
//!
//! Reports say what happens and why something failed. They are never asked whether a result exists: only the results themselves
//! are. A line that was cut short, or damaged, is passed over. No decision rests on the times in it, which are those of the
//! clock of a node.

use super::pieces::Job;
use crate::store::disk;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Seconds between two signs of life of a task.
pub const HEARTBEAT: u64 = 15;

/// Why a piece failed. Preemption, the end of the time and the loss of a node are not among it: then a piece is merely not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// It needs more memory than the task has.
    OutOfMemory,
    /// The engine could not go on, for a reason that it gives.
    Error,
    /// A fault of the program.
    Panic,
    /// The process died of it: a signal that nobody sent from outside.
    Crash,
    /// It does not fit into the time of a task.
    TooLong,
    /// Tasks that had begun it were gone without a word, several times.
    Lost,
}

impl FailureKind {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::OutOfMemory => "out of memory",
            Self::Error => "error",
            Self::Panic => "internal error",
            Self::Crash => "crash",
            Self::TooLong => "longer than the time of a task",
            Self::Lost => "tasks lost with it",
        }
    }
}

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskEnd {
    /// All its pieces are done, or failed.
    Finished,
    /// Its time is over.
    Time,
    /// A signal asked it to end.
    Signal,
    /// The process that computes was killed from outside.
    Killed,
    /// A piece failed, and the first failure was to end it.
    FailFast,
}

/// Where and how a task works.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Attempt {
    /// The machine.
    pub host: String,
    /// Its process.
    pub process: u32,
    /// Number of the Slurm job, with that of the array and the task: `123_7`.
    pub job: Option<String>,
    /// How often Slurm had begun it before.
    pub restarts: u32,
    /// Cores.
    pub threads: usize,
    /// Seconds until its time is over, where that is known.
    pub seconds_left: Option<f64>,
}

/// One line of a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum TaskEvent {
    /// The task begins.
    Begin {
        /// Where and how.
        attempt: Attempt,
    },
    /// A piece begins.
    Start {
        /// Which.
        job: Job,
    },
    /// A piece is done and kept.
    Done {
        /// Which.
        job: Job,
        /// How long it took.
        seconds: f64,
        /// How long it was estimated to take.
        estimated: f64,
        /// Replicas of it that diverged: a result, not a failure.
        #[serde(default)]
        diverged: usize,
    },
    /// A piece failed; the others go on.
    Failed {
        /// Which.
        job: Job,
        /// In which way.
        kind: FailureKind,
        /// What the engine said.
        why: String,
    },
    /// A sign of life.
    Beat {
        /// Memory in use, in bytes.
        memory: u64,
    },
    /// The process that computes has died, and another one goes on with what is left.
    Restart {
        /// How it died.
        why: String,
    },
    /// The task ends in good order.
    End {
        /// How.
        end: TaskEnd,
        /// Pieces that are not done.
        left: usize,
    },
}

/// The report that a task writes.
#[derive(Debug)]
pub struct TaskLog {
    path: PathBuf,
    file: File,
}

impl TaskLog {
    /// Begins the report of a task of a plan, in a new file.
    pub fn create(plan: &Path, task: usize) -> io::Result<Self> {
        let folder = plan.with_extension("");
        disk::create_folder(&folder)?;
        let path = folder.join(format!("task-{task:04}-{}.log", disk::unique()));
        Ok(Self { file: disk::create_file(&path)?, path })
    }

    /// Adds a line.
    pub fn add(&mut self, event: &TaskEvent) -> io::Result<()> {
        let mut line = serde_json::to_vec(event).expect("an event is plain data");
        line.push(b'\n');
        disk::write(&mut self.file, &self.path, &line)
    }

    /// Forces it to the disk.
    pub fn sync(&self) -> io::Result<()> {
        disk::sync(&self.file, &self.path)
    }
}

/// One attempt of a task, as its report tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskReport {
    /// The file.
    pub path: PathBuf,
    /// Which task of the plan.
    pub task: usize,
    /// All lines that can be read.
    pub events: Vec<TaskEvent>,
}

impl TaskReport {
    /// Reads a report; lines that cannot be read are passed over.
    pub fn of_bytes(path: &Path, task: usize, bytes: &[u8]) -> Self {
        // A line without an end may still be growing: half a number is a number too.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let lines = bytes[..whole].split(|byte| *byte == b'\n');
        let events = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
        Self { path: path.to_path_buf(), task, events }
    }

    /// The attempt.
    pub fn attempt(&self) -> Option<&Attempt> {
        self.events
            .iter()
            .find_map(|event| if let TaskEvent::Begin { attempt } = event { Some(attempt) } else { None })
    }

    /// How it ended; `None` while it works, or when it is gone without a word.
    pub fn end(&self) -> Option<TaskEnd> {
        self.events
            .iter()
            .find_map(|event| if let TaskEvent::End { end, .. } = event { Some(*end) } else { None })
    }

    /// Pieces that were begun and neither done nor failed.
    pub fn open(&self) -> Vec<Job> {
        let mut open: Vec<Job> = Vec::new();
        for event in &self.events {
            match event {
                TaskEvent::Start { job } => open.push(job.clone()),
                TaskEvent::Done { job, .. } | TaskEvent::Failed { job, .. } => {
                    open.retain(|other| other != job);
                }
                TaskEvent::Restart { .. } => open.clear(),
                _ => {}
            }
        }
        open
    }

    /// Pieces that failed and were not done afterwards, with kind and reason.
    pub fn failed(&self) -> Vec<(Job, FailureKind, String)> {
        let mut failed: Vec<(Job, FailureKind, String)> = Vec::new();
        for event in &self.events {
            match event {
                TaskEvent::Failed { job, kind, why } => failed.push((job.clone(), *kind, why.clone())),
                TaskEvent::Done { job, .. } => failed.retain(|(other, ..)| other != job),
                _ => {}
            }
        }
        failed
    }
}

/// All reports about a plan, by task; those of one task in the order of their files, which says nothing about time.
pub fn reports_of(plan: &Path) -> Vec<TaskReport> {
    let mut reports = reports_where(plan, |_| true);
    reports.sort_by_key(|report| report.task);
    reports
}

/// The reports of one task of a plan; those of others are not even read.
pub fn reports_of_task(plan: &Path, task: usize) -> Vec<TaskReport> {
    reports_where(plan, |other| other == task)
}

fn reports_where(plan: &Path, wanted: impl Fn(usize) -> bool) -> Vec<TaskReport> {
    let task = |path: &Path| -> Option<usize> {
        let name = path.file_name()?.to_str()?.strip_prefix("task-")?.strip_suffix(".log")?;
        name.split('-').next()?.parse().ok()
    };
    let read = |path: PathBuf| {
        let task = task(&path).filter(|task| wanted(*task))?;
        Some(TaskReport::of_bytes(&path, task, &disk::read(&path).ok()?))
    };
    disk::entries(&plan.with_extension("")).into_iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events() -> Vec<TaskEvent> {
        let job = |first, end| Job::Run(3, first, end);
        vec![
            TaskEvent::Begin { attempt: Attempt { host: "n1".into(), threads: 4, ..Attempt::default() } },
            TaskEvent::Start { job: job(0, 8) },
            TaskEvent::Start { job: job(8, 16) },
            TaskEvent::Done { job: job(0, 8), seconds: 1.5, estimated: 1.0, diverged: 1 },
            TaskEvent::Failed { job: job(8, 16), kind: FailureKind::OutOfMemory, why: "a\nb".into() },
            TaskEvent::Start { job: job(16, 24) },
            TaskEvent::Beat { memory: 1 << 30 },
        ]
    }

    fn text() -> Vec<u8> {
        events()
            .iter()
            .flat_map(|event| [serde_json::to_vec(event).unwrap(), b"\n".to_vec()].concat())
            .collect()
    }

    #[test]
    fn a_report_says_what_is_open_and_what_failed() {
        let report = TaskReport::of_bytes(Path::new("x"), 0, &text());
        assert_eq!(report.events, events());
        assert_eq!(report.open(), [Job::Run(3, 16, 24)]);
        assert_eq!(report.failed(), [(Job::Run(3, 8, 16), FailureKind::OutOfMemory, "a\nb".to_string())]);
        assert_eq!((report.end(), report.attempt().unwrap().threads), (None, 4));
    }

    #[test]
    fn a_report_that_was_cut_at_any_byte_has_the_lines_before_the_cut() {
        let (text, events) = (text(), events());
        for length in 0..=text.len() {
            let whole = text[..length].split(|byte| *byte == b'\n').count() - 1;
            let report = TaskReport::of_bytes(Path::new("x"), 0, &text[..length]);
            assert_eq!(report.events, events[..whole], "{length}");
        }
    }
}
