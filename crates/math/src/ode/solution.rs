//! What an integration returns.

use std::fmt;

use super::events::Occurrence;

/// Why an integration stopped. Only [`Stop::ReachedEnd`] and [`Stop::Event`] are what the caller planned.
#[derive(Clone, Debug, PartialEq)]
pub enum Stop {
    /// The final time was reached.
    ReachedEnd,
    /// A terminal event happened.
    Event {
        /// Its position in the list of events.
        index: usize,
        /// When.
        time: f64,
    },
    /// The solution left the finite numbers: a component passed the state limit, the solution has a singularity, or
    /// the field is not finite however short the step.
    Diverged {
        /// The time of the singularity, as well as it can be told.
        time: f64,
    },
    /// The steps became too short for the clock to move, without divergence.
    Stuck {
        /// Where the integration stands.
        time: f64,
        /// The step it would need.
        step: f64,
        /// What to change.
        hint: &'static str,
    },
    /// The step limit of the options was reached.
    StepLimit {
        /// Where the integration stands.
        time: f64,
    },
    /// The watcher asked to stop.
    Interrupted {
        /// Where the integration stands.
        time: f64,
    },
}

/// The work done and the way it ended.
#[derive(Clone, Debug, PartialEq)]
pub struct OdeReport {
    /// Accepted steps.
    pub steps: u64,
    /// Rejected steps.
    pub rejected: u64,
    /// Derivatives asked for by the integrator; those inside [`super::VectorField::jacobian`] are not counted.
    pub evaluations: u64,
    /// Jacobians asked for.
    pub jacobians: u64,
    /// Factorisations of an n × n matrix.
    pub factorisations: u64,
    /// Why the integration stopped.
    pub stop: Stop,
}

/// States at the requested times and events, as far as the integration got.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// The requested times that were reached.
    pub times: Vec<f64>,
    /// The state at each of `times`.
    pub states: Vec<Vec<f64>>,
    /// The events that happened, in the order of integration.
    pub occurrences: Vec<Occurrence>,
    /// The last time reached with a finite state within the limit.
    pub last_time: f64,
    /// The state there.
    pub last_state: Vec<f64>,
    /// Work and reason of stopping.
    pub report: OdeReport,
}

impl Solution {
    /// Whether the integration reached its final time or a terminal event.
    pub fn is_complete(&self) -> bool {
        matches!(self.report.stop, Stop::ReachedEnd | Stop::Event { .. })
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::ReachedEnd => write!(f, "reached the final time"),
            Stop::Event { index, time } => write!(f, "stopped by event {index} at time {time}"),
            Stop::Diverged { time } => write!(f, "the solution diverges at time {time}"),
            Stop::Stuck { time, step, hint } => {
                write!(f, "stuck at time {time}, where a step of {step:e} would be needed; hint: {hint}")
            }
            Stop::StepLimit { time } => {
                write!(f, "step limit reached at time {time}; hint: raise `step_limit`, or leave it out")
            }
            Stop::Interrupted { time } => write!(f, "interrupted at time {time}"),
        }
    }
}

impl fmt::Display for OdeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({} steps, {} rejected, {} evaluations",
            self.stop, self.steps, self.rejected, self.evaluations
        )?;
        if self.jacobians > 0 {
            write!(f, ", {} Jacobians, {} factorisations", self.jacobians, self.factorisations)?;
        }
        write!(f, ")")
    }
}
