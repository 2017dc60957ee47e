//! Optimal protocols: the learning rate, weight decay or label noise as functions of the clock that make a loss smallest.
//!
//! ```text
//! ControlProblem ─┬─ value, differentiate   J of a protocol and its exact gradient (problem.rs, split_flow.rs)
//!                 ├─ direct                 minimisation over the values at knots (direct.rs)
//!                 ├─ sweep                  the rate that minimises H at every time (sweep.rs)
//!                 ├─ best_constant, greedy  what it is compared with (baselines.rs)
//!                 ├─ optimise               all of it, from several starts, with a certificate (search.rs, optimum.rs, certificate.rs)
//!                 └─ minimum_time           the smallest T at which a level can be reached (minimum_time.rs)
//! ```
//!
//! Late times have closed forms ([`LateTimes`], [`linear_unit`]). The mathematics is in docs/derivations/optimal-protocols.md.

mod baselines;
mod certificate;
mod direct;
mod late_times;
mod minimum_time;
mod optimum;
mod problem;
mod quantities;
mod search;
mod split_flow;
mod sweep;
#[cfg(test)]
mod tests;

pub use baselines::{Constant, scan_values};
pub use certificate::Certificate;
pub use direct::Found;
pub use late_times::{LateTimes, linear_unit};
pub use minimum_time::MinimumTime;
pub use optimum::Optimum;
pub use problem::{
    Control, ControlKey, ControlProblem, Differentiated, Momenta, Objective, Protocol, best_rate, knot_times,
};
pub use quantities::quantities;
pub use search::{Candidate, Search, SearchMethod, SearchOutcome};
pub use sweep::Swept;

/// Why there is no optimal protocol.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ControlError {
    /// T ≤ 0.
    #[error("the horizon is {0}; it must be positive and finite")]
    Horizon(f64),
    /// No interval.
    #[error("the bounds of `{key}` are [{low}, {high}]; give [lo, hi] with 0 <= lo < hi")]
    Bounds {
        /// Of which control.
        key: &'static str,
        /// Lower.
        low: f64,
        /// Upper.
        high: f64,
    },
    /// No course.
    #[error("`{key}` has knots = {knots}; give at least 2 intervals between knots")]
    Knots {
        /// Of which control.
        key: &'static str,
        /// How many.
        knots: usize,
    },
    /// In flow time samples cost nothing.
    #[error(
        "in the clock `flow` a small learning rate costs no time, so that the best rate is 0\n\nhint: set `clock = \"alpha\"` or \
         `clock = \"steps\"` in [record]"
    )]
    FlowClock,
    /// Full-batch training.
    #[error(
        "optimal protocols follow from the equations of one-pass training, and training on a fixed set of samples has none like \
         them\n\nhint: remove `samples-per-dimension` and `samples` from [data]"
    )]
    TrainingSet,
    /// Momentum, clipping, drift and others.
    #[error(
        "protocols are optimised for plain descent: with momentum, maps of the gradient, dropout, drift or noise on inputs and weights the \
         equations are others\n\nhint: remove these keys from [training] and [data]"
    )]
    WayOfTraining,
    /// Nothing can leave the start.
    #[error("{0}: no protocol leaves this start\n\nhint: start elsewhere")]
    Invariant(String),
    /// Every constant control diverges.
    #[error(
        "learning diverges at every constant `{key}` within the bounds\n\nhint: lower the upper bound, {high}"
    )]
    AllDiverge {
        /// Of which control.
        key: &'static str,
        /// The upper bound.
        high: f64,
    },
    /// Nothing to be reached.
    #[error(
        "the level {level} is reached at 0: `{observable}` starts at {value}\n\nhint: give a lower level"
    )]
    ReachedAtStart {
        /// What is observed.
        observable: String,
        /// The level.
        level: f64,
        /// Where it starts.
        value: f64,
    },
    /// Not within the time.
    #[error(
        "`{observable}` does not fall to {level} within {within}; the smallest value found is {smallest:.6e}\n\nhint: give a longer \
         `within` or a higher `level`"
    )]
    NotReached {
        /// What is observed.
        observable: String,
        /// The level.
        level: f64,
        /// The time given.
        within: f64,
        /// The optimum at that time.
        smallest: f64,
    },
    /// The monitor asked for the end; what was found so far goes into [`Search::resume`].
    #[error("the search was interrupted")]
    Interrupted(Vec<Candidate>),
    /// Late times of what has no isolated perfect solution in closed form.
    #[error("{0}")]
    LateTimes(String),
}
