//! How a plan was submitted to Slurm: kept beside the plan, so that it can be looked at and submitted again.

use crate::execute::unwritable;
use crate::source::Diagnostic;
use crate::store::{disk, write_atomically};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What was asked for from the scheduler.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Resources {
    /// Partition; the cluster's own choice unless given.
    pub partition: Option<String>,
    /// Time of a task, as Slurm writes it.
    pub time: Option<String>,
    /// Memory of a task, as Slurm writes it.
    pub mem: Option<String>,
    /// Cores of a task.
    pub cpus: usize,
    /// Tasks that run at the same time.
    pub max_running: Option<usize>,
    /// Image in which the program runs.
    pub container: Option<String>,
    /// Text of a script with `{options}` and `{command}`.
    pub template: Option<String>,
    /// How often a task whose time is over is begun again.
    pub requeues: u32,
    /// Further options of `sbatch`.
    pub options: Vec<String>,
}

/// A plan that was submitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Submission {
    /// Number of the job array.
    pub job: String,
    /// What was asked for.
    pub resources: Resources,
}

impl Submission {
    /// The file beside a plan.
    pub fn path(plan: &Path) -> PathBuf {
        plan.with_extension("submitted.json")
    }

    /// How a plan was submitted; `None` if it was not.
    pub fn read(plan: &Path) -> Option<Self> {
        serde_json::from_slice(&disk::read(&Self::path(plan)).ok()?).ok()
    }

    /// Keeps it beside the plan.
    pub fn write(&self, plan: &Path) -> Result<(), Diagnostic> {
        let path = Self::path(plan);
        let text = serde_json::to_vec_pretty(self).expect("a submission is plain data");
        write_atomically(&path, &text).map_err(|error| unwritable(&path, &error))
    }
}
