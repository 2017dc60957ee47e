//! Why fluctuations have no answer.

use didact_model::EngineError;
use didact_model::problem::ProblemError;
use didact_model::start::StartError;

/// Why fluctuations have no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FluctuationError {
    /// A training set.
    #[error("fluctuations are those of one-pass training; here is a training set")]
    TrainingSet,
    /// A way of training whose increments are not those of plain descent.
    #[error(
        "fluctuations are known for plain descent, with batches, weight decay, spheres and stages; not with `{way}`\n\n\
         hint: use `reduced` with many replicas"
    )]
    Way {
        /// What a description says.
        way: &'static str,
    },
    /// A start whose law is not known.
    #[error(
        "the starts of replicas differ by a law whose covariance is not known\n\nhint: give the overlaps of the start"
    )]
    StartLaw,
    /// Too many numbers.
    #[error("{numbers} numbers in the state; a band has at most {most}")]
    TooLarge {
        /// n.
        numbers: usize,
        /// The limit.
        most: usize,
    },
    /// No gradient.
    #[error(
        "the gradient of `{observable}` jumps at {clock} = {time}\n\nhint: observe it without `abs`, `max` and the like, or at other times"
    )]
    Jump {
        /// Which observable.
        observable: String,
        /// Name of the clock.
        clock: &'static str,
        /// When.
        time: f64,
    },
    /// Equal rows with a kick that jumps.
    #[error("rows {first} and {second} coincide at alpha = 0, where the kick jumps: dA/dC is infinite")]
    Coincide {
        /// One row.
        first: usize,
        /// The other.
        second: usize,
    },
    /// No crossing, because the mean diverges.
    #[error(
        "`{observable}` does not cross {level}: the solution diverges at alpha = {at:.4}\n\nhint: use a smaller learning rate"
    )]
    Diverges {
        /// Which observable.
        observable: String,
        /// The level.
        level: f64,
        /// Where the solution ends.
        at: f64,
    },
    /// No crossing.
    #[error("`{observable}` does not cross {level} before alpha = {until}")]
    NoCrossing {
        /// Which observable.
        observable: String,
        /// The level.
        level: f64,
        /// The end of the search.
        until: f64,
    },
    /// Nothing to be relative to.
    #[error("`{observable}` is 0 at alpha = {time}: it has no relative accuracy")]
    Zero {
        /// Which observable.
        observable: String,
        /// When.
        time: f64,
    },
    /// The state moves.
    #[error("the start is no fixed point: its drift is {drift}")]
    NoFixedPoint {
        /// The largest entry of F.
        drift: f64,
    },
    /// Everything decays.
    #[error("no unstable direction")]
    Stable,
    /// More than one rate.
    #[error("{count} unstable directions, of rates {rates}")]
    ManyUnstable {
        /// How many.
        count: usize,
        /// Their rates.
        rates: String,
    },
    /// The observable does not see the unstable direction.
    #[error("`{observable}` does not change along the unstable direction")]
    Blind {
        /// Which observable.
        observable: String,
    },
    /// The trajectory ends before the time that was asked for.
    #[error(
        "the equations of the mean end at alpha = {time}, before {wanted}\n\nhint: use a smaller learning rate"
    )]
    Ends {
        /// The last time that was reached.
        time: f64,
        /// The time that was asked for.
        wanted: f64,
    },
    /// A mean correction that is not known.
    #[error("no mean correction with `{with}`")]
    NoMeanCorrection {
        /// Key of what is in the way.
        with: &'static str,
    },
    /// From the start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// From the problem.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// From the integration.
    #[error(transparent)]
    Engine(Box<EngineError>),
}

impl From<EngineError> for FluctuationError {
    fn from(error: EngineError) -> Self {
        Self::Engine(Box::new(error))
    }
}
