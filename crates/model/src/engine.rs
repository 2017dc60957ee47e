//! What an engine is: a problem and a record go in, a trajectory comes out.

use crate::overlaps::OverlapsError;
use crate::problem::{Problem, ProblemError};
use crate::record::{Record, RecordError};
use crate::start::StartError;
use crate::trajectory::Trajectory;
use didact_math::ode::OdeError;

/// Watches a run: progress goes out, the wish to stop comes in. Called from several threads.
pub trait Monitor: Sync {
    /// A further fraction of the whole work is done (fractions of a run add up to 1).
    fn advance(&self, fraction: f64);
    /// True when the user wants the run to end now.
    fn cancelled(&self) -> bool;
}

/// Nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Monitor for Unwatched {
    fn advance(&self, _fraction: f64) {}
    fn cancelled(&self) -> bool {
        false
    }
}

/// Why an engine could not give a trajectory. Divergence is not among them: it is an outcome.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EngineError {
    /// A bad problem.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// A bad record.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A bad start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Bad overlaps.
    #[error(transparent)]
    Overlaps(#[from] OverlapsError),
    /// A bad option of the integrator.
    #[error(transparent)]
    Integrator(#[from] OdeError),
    /// The integrator could not go on.
    #[error("the integration of replica {replica} stopped: {reason}")]
    Stuck {
        /// Which run.
        replica: u32,
        /// Where, why and what to change.
        reason: String,
    },
    /// Weights that do not fit.
    #[error(
        "`direct` would need {gigabytes:.1} GB for weights of {rows} rows in d = {dimension}\n\nhint: use engine `reduced`: same law, cost free of d"
    )]
    Memory {
        /// Needed.
        gigabytes: f64,
        /// P.
        rows: usize,
        /// d.
        dimension: u64,
    },
    /// The monitor asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// Predicts or simulates any [`Problem`].
pub trait Engine: Sync {
    /// Name in descriptions, tables and files.
    fn name(&self) -> &'static str;

    /// Runs all replicas of the record.
    fn run(
        &self,
        problem: &Problem,
        record: &Record,
        monitor: &dyn Monitor,
    ) -> Result<Trajectory, EngineError>;
}
