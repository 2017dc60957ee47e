//! What was observed: named columns over time, one curve per replica, with outcomes.

use crate::clock::Clock;
use crate::overlaps::Overlaps;
use crate::start::StateSpread;
use didact_math::linalg::Mat;
use didact_math::random::statistics::SampleMean;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What every engine ends in, every analysis starts from and every table file holds.
///
/// Replicas stand in the same order everywhere: `outcomes[r]`, `columns[c].curves[r]` and `events[e].times[r]` belong to
/// the same replica.
#[derive(Debug, Clone, PartialEq)]
pub struct Trajectory {
    /// Name of the engine that computed it.
    pub engine: String,
    /// Unit of `times` and of first passages.
    pub clock: Clock,
    /// Saved times.
    pub times: Vec<f64>,
    /// What was asked for, one column per observable.
    pub columns: Vec<RecordedColumn>,
    /// First passages, one entry per event.
    pub events: Vec<Passages>,
    /// How every replica ended.
    pub outcomes: Vec<Outcome>,
    /// The work of the integrator for every replica; empty for engines that integrate nothing.
    pub statistics: Vec<Statistics>,
    /// Remarks of the engine in words.
    pub notes: Vec<String>,
}

/// An observable over time.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedColumn {
    /// Name of the observable.
    pub name: String,
    /// One curve per replica, with a value for every saved time that the replica reached.
    pub curves: Vec<Vec<f64>>,
}

/// The first passages of one event.
#[derive(Debug, Clone, PartialEq)]
pub struct Passages {
    /// Name of the event.
    pub name: String,
    /// One time per replica; `None` is censored at the end of the replica.
    pub times: Vec<Option<f64>>,
}

/// How a replica ended. Only an error is an error: stopping early and diverging are results.
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

/// The work of an integrator on one replica, all stages together.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Statistics {
    /// Steps that were accepted.
    pub accepted_steps: u64,
    /// Steps that were rejected and tried again with a shorter length.
    pub rejected_steps: u64,
    /// Calls of the right-hand side; those inside a Jacobian are not counted.
    pub evaluations: u64,
    /// Jacobians.
    pub jacobians: u64,
    /// Factorisations of an n x n matrix.
    pub factorisations: u64,
    /// Largest estimated error of a Gaussian average; `None` where all averages have closed forms.
    pub quadrature_error: Option<f64>,
}

impl Statistics {
    /// Adds the work of a later stage.
    pub fn add(&mut self, later: &Self) {
        self.accepted_steps += later.accepted_steps;
        self.rejected_steps += later.rejected_steps;
        self.evaluations += later.evaluations;
        self.jacobians += later.jacobians;
        self.factorisations += later.factorisations;
        self.quadrature_error = match (self.quadrature_error, later.quadrature_error) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
    }
}

/// Where a replica stands at its end, from which a later stage goes on. It is handed over in memory and never written.
#[derive(Debug, Clone)]
pub struct EndState {
    /// The time of the end.
    pub time: f64,
    /// Number of saved times that were reached.
    pub saved: usize,
    /// The overlaps there.
    pub overlaps: Overlaps,
    /// The rows themselves (P x d, then those of velocities where there are any), where later steps depend on more than their
    /// overlaps: on a training set.
    pub weights: Option<Arc<Mat>>,
    /// How replicas scatter there, from a theory that follows it.
    pub spread: Option<Arc<StateSpread>>,
}

impl Trajectory {
    /// Number of replicas.
    pub fn replicas(&self) -> usize {
        self.outcomes.len()
    }

    /// Names of the columns.
    pub fn column_names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str())
    }

    /// The curves of a column: one per replica, as long as the replica ran.
    pub fn curves(&self, name: &str) -> Option<&[Vec<f64>]> {
        self.columns.iter().find(|column| column.name == name).map(|column| column.curves.as_slice())
    }

    /// First passages of an event, one per replica.
    pub fn event(&self, name: &str) -> Option<&[Option<f64>]> {
        self.events.iter().find(|event| event.name == name).map(|event| event.times.as_slice())
    }

    /// Mean over the replicas that reached each time; `count` 0 and NaN where none did.
    pub fn mean(&self, name: &str) -> Option<Vec<SampleMean>> {
        let curves = self.curves(name)?;
        let at = |time: usize| SampleMean::of(curves.iter().filter_map(|curve| curve.get(time).copied()));
        Some((0..self.times.len()).map(at).collect())
    }

    /// The values of one replica, row by row: all columns at each time that it reached.
    pub fn rows(&self, replica: usize) -> Vec<Vec<f64>> {
        let length = self.columns.iter().map(|column| column.curves[replica].len()).max().unwrap_or(0);
        let row = |time: usize| self.columns.iter().map(|column| column.curves[replica][time]).collect();
        (0..length).map(row).collect()
    }

    /// Adds replicas of the same problem and record after the own ones.
    pub fn append_replicas(&mut self, other: Self) {
        for (own, new) in self.columns.iter_mut().zip(other.columns) {
            own.curves.extend(new.curves);
        }
        for (own, new) in self.events.iter_mut().zip(other.events) {
            own.times.extend(new.times);
        }
        self.outcomes.extend(other.outcomes);
        self.statistics.extend(other.statistics);
        self.notes.extend(other.notes);
    }
}
