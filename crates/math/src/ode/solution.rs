//! What an integration returns.

use std::fmt;

use super::events::Occurrence;

/// Why an integration stopped. [`Stop::ReachedEnd`] and [`Stop::Event`] are the planned ends; all others are early.
#[derive(Clone, Debug, PartialEq)]
pub enum Stop {
    /// The final time was reached.
    ReachedEnd,
    /// A terminal event happened.
    Event {
        /// Its position in the list of events.
        index: usize,
        /// Time of the event.
        time: f64,
    },
    /// The solution diverges: a component passed the state limit, the solution has a singularity, or the field is not
    /// finite even for the shortest step.
    Diverged {
        /// Estimated time of the divergence: the end of the step that passed the state limit, or the last time reached.
        time: f64,
    },
    /// The step length fell below 1e-14 |t|, the resolution of the time, although the solution does not diverge.
    Stuck {
        /// The time that was reached.
        time: f64,
        /// The step length that the error control asks for.
        step: f64,
        /// What to change.
        hint: &'static str,
    },
    /// The step limit of the options was reached.
    StepLimit {
        /// The time that was reached.
        time: f64,
    },
    /// The `watch` function of [`super::solve_watched`] asked to stop.
    Interrupted {
        /// The time that was reached.
        time: f64,
    },
}

/// How much work an integration was, and why it stopped.
#[derive(Clone, Debug, PartialEq)]
pub struct OdeReport {
    /// Accepted steps.
    pub steps: u64,
    /// Rejected steps.
    pub rejected: u64,
    /// Evaluations of the field by the integrator; those inside [`super::VectorField::jacobian`] are not counted.
    pub evaluations: u64,
    /// Evaluations of the Jacobian.
    pub jacobians: u64,
    /// Factorisations of an n × n matrix.
    pub factorisations: u64,
    /// Why the integration stopped.
    pub stop: Stop,
}

/// States at the requested times, and events, up to the time that the integration reached.
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
    /// The state at `last_time`.
    pub last_state: Vec<f64>,
    /// Work done and reason for stopping.
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
