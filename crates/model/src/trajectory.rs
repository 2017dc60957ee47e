//! What was observed: named columns over time, per replica, with outcomes.

use crate::clock::Clock;
use crate::overlaps::Overlaps;
use didact_math::linalg::Mat;
use didact_math::random::statistics::SampleMean;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How a run ended. Only an error is an error: stopping early and diverging are results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Outcome {
    /// All times were reached.
    Completed,
    /// An event ended it.
    Stopped {
        /// Name of the event.
        by: String,
        /// When.
        at: f64,
    },
    /// The state left every reasonable range.
    Diverged {
        /// When.
        at: f64,
    },
}

/// One run.
#[derive(Debug, Clone)]
pub struct Replica {
    /// Saved rows, one per time that was reached, each with one number per column.
    pub rows: Vec<Vec<f64>>,
    /// How it ended.
    pub outcome: Outcome,
    /// First passage per event; `None` is censored at the end of the run.
    pub events: Vec<Option<f64>>,
    /// The state at the end, from which a later stage goes on.
    pub last: Overlaps,
    /// The rows themselves at the end (P x d), where later steps depend on more than their overlaps: on a training set.
    pub weights: Option<Arc<Mat>>,
    /// The time of the end.
    pub last_time: f64,
}

/// What every engine ends in and every analysis starts from.
#[derive(Debug, Clone)]
pub struct Trajectory {
    /// Who computed it.
    pub engine: String,
    /// Unit of `times` and events.
    pub clock: Clock,
    /// Saved times.
    pub times: Vec<f64>,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Names of the events.
    pub events: Vec<String>,
    /// The runs.
    pub replicas: Vec<Replica>,
    /// What the engine has to say of itself: integrator report, quadrature error.
    pub notes: Vec<String>,
}

impl Trajectory {
    /// Position of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c == name)
    }

    /// All runs of a column: one vector over time per replica, as long as the run was.
    pub fn runs(&self, name: &str) -> Option<Vec<Vec<f64>>> {
        let column = self.column(name)?;
        Some(self.replicas.iter().map(|r| r.rows.iter().map(|row| row[column]).collect()).collect())
    }

    /// Mean over the replicas that reached each time; `count` 0 and NaN where none did.
    pub fn mean(&self, name: &str) -> Option<Vec<SampleMean>> {
        let column = self.column(name)?;
        let at = |time: usize| {
            SampleMean::of(self.replicas.iter().filter_map(|r| r.rows.get(time)).map(|row| row[column]))
        };
        Some((0..self.times.len()).map(at).collect())
    }
}
