//! Experiments that outgrow one machine: what is missing is shared out, computed anywhere, and found by [`Experiment::execute`].
//!
//! ```text
//! <out>/<name>.sweep/                  what `didact sweep` writes; nothing in it is a result
//!     plan-1.json                      who computes what: description, tasks, their pieces
//!     plan-1/task-0007-<process>.log   what a task reports, line by line; one file per attempt
//!     plan-1.sh, plan-1.submitted.json the script of the job array, and how it was submitted
//! <out>/<name>.partial/
//!     <process>.journal                results: one file per process, as for `didact run`
//! ```
//!
//! A *piece* is some replicas of a run, or some points of a scan: the smallest thing that is shared out. A *task* is a list of
//! pieces, and the *plan* has all tasks. Results have keys, so that a plan is only advice: pieces that are there already
//! are passed over, two tasks that do the same piece waste time and nothing else, and what no task has done is computed by `didact run`.
//! No file is ever written by two processes, and nothing needs a lock.

mod lanes;
pub mod log;
pub mod pieces;
pub mod plan;
pub mod status;
pub mod submission;
pub mod work;

pub use log::{FailureKind, TaskEnd, TaskEvent, TaskLog};
pub use pieces::{Job, Kept, Piece};
pub use plan::Plan;
pub use status::SweepStatus;
pub use submission::Submission;
pub use work::{WorkLimits, Worker};

use crate::experiment::Experiment;
use std::path::{Path, PathBuf};

/// The folder of plans, scripts and reports of tasks of an experiment.
pub fn sweep_folder(root: &Path, experiment: &str) -> PathBuf {
    root.join(format!("{experiment}.sweep"))
}

/// The folder of an experiment's sweep below `root`.
pub fn folder_of(root: &Path, experiment: &Experiment) -> PathBuf {
    sweep_folder(root, experiment.folder_name())
}
