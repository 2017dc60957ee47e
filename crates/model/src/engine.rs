//! What an engine is: a problem and a record go in, a trajectory comes out.

use crate::family::ModelError;
use crate::overlaps::OverlapsError;
use crate::problem::{Problem, ProblemError};
use crate::record::{Record, RecordError};
use crate::start::StartError;
use crate::training::Way;
use crate::trajectory::{EndState, Trajectory};
use didact_math::ode::OdeError;

pub use crate::machine::available_gigabytes;

/// Watches a run: progress goes out, the wish to stop comes in. Called from several threads.
pub trait Monitor: Sync {
    /// A further fraction of the whole work is done (fractions of a run add up to 1).
    fn advance(&self, fraction: f64);
    /// What is being done now, in a line for the user.
    fn describe(&self, _line: &str) {}
    /// True when the user wants the run to end now.
    fn cancelled(&self) -> bool;
}

/// The monitor of a run that nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMonitor;

impl Monitor for NoMonitor {
    fn advance(&self, _fraction: f64) {}
    fn cancelled(&self) -> bool {
        false
    }
}

/// Why an engine could not give a trajectory. Divergence is not among them: it is an outcome.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EngineError {
    /// A number of the model that was left to be computed does not exist.
    #[error(transparent)]
    Model(#[from] ModelError),
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
        /// Which replica.
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
    /// A training set for a one-pass engine.
    #[error(
        "`{engine}` trains on fresh samples at every step, but [data] asks for a fixed training set\n\nhint: use engine \
         `full-batch` or `dmft`, or remove `samples-per-dimension` and `samples`"
    )]
    OnePass {
        /// Who asks.
        engine: &'static str,
    },
    /// No training set for an engine that needs one.
    #[error(
        "`{engine}` trains on a fixed set of samples, but [data] gives none\n\nhint: set `samples-per-dimension` (n/d) or \
         `samples` (n) in [data]"
    )]
    FullBatch {
        /// Who asks.
        engine: &'static str,
    },
    /// The mean over a training set that does not exist.
    #[error(
        "`train_loss` is the mean over a training set, and `{engine}` has none\n\nhint: use `loss` or `test_loss`"
    )]
    NoTrainingSet {
        /// Who asks.
        engine: &'static str,
    },
    /// Something that an engine cannot do.
    #[error("`{engine}` cannot run this: {reason}\n\nhint: {hint}")]
    Unsupported {
        /// Who.
        engine: &'static str,
        /// What is in the way.
        reason: String,
        /// What to do.
        hint: String,
    },
    /// A way of training that an engine cannot take.
    #[error("engine \"{engine}\" cannot {reason}; {instead}")]
    Training {
        /// Who.
        engine: &'static str,
        /// Which way of training.
        way: Way,
        /// The rest of the sentence.
        reason: &'static str,
        /// What to use.
        instead: &'static str,
    },
    /// Velocities that do not exist.
    #[error("engine \"{engine}\" has no velocities to observe{}", why.map_or(String::new(), |why| format!(": {why}")))]
    NoVelocities {
        /// Who.
        engine: &'static str,
        /// Why not.
        why: Option<&'static str>,
    },
    /// Fluctuations that are not known, in a sentence with its hint.
    #[error("{0}")]
    Fluctuations(String),
    /// More memory than there is.
    #[error(
        "`{engine}` would need {gigabytes:.1} GB for {what}; {available:.1} GB are there\n\nhint: {hint}"
    )]
    TooLarge {
        /// Who.
        engine: &'static str,
        /// For what.
        what: String,
        /// Needed.
        gigabytes: f64,
        /// Present.
        available: f64,
        /// What to do.
        hint: String,
    },
    /// The monitor asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// What a run needs, estimated from its sizes and from timed calls of its rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Steps of all replicas; `None` for integrators, which choose their own.
    pub steps: Option<f64>,
    /// Bytes of state and results.
    pub memory: f64,
    /// Seconds of one core. Rough: from the cost per step of erf units on one machine, good to a factor of a few.
    pub seconds: f64,
}

/// The options of an engine, as a description gives them beside `engine = "<name>"`.
///
/// The struct derives serde and `JsonSchema`, has a default for every option, and denies unknown fields.
pub trait EngineOptions {
    /// What the engine is, in one line.
    const ABOUT: &'static str;

    /// The engine with these options.
    fn engine(&self) -> Result<Box<dyn Engine>, OptionError>;

    /// These options for a drawing that moves: content with this relative error, and without what takes longer than the curves.
    #[must_use]
    fn in_haste(&self, _error: f64) -> Self
    where
        Self: Sized + Clone,
    {
        self.clone()
    }
}

/// An option with a value that makes no sense.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("the {option} {problem}")]
pub struct OptionError {
    /// Key of the option.
    pub option: &'static str,
    /// The rest of a sentence about it: `is 2; use a number between 0 and 1`.
    pub problem: String,
}

/// A stage of a run that ends at a time.
#[derive(Debug, Clone)]
pub struct EngineStage {
    /// What is learned and how.
    pub problem: Problem,
    /// The time of the whole run at which the stage ends.
    pub until: f64,
}

/// Predicts or simulates any [`Problem`].
pub trait Engine: Send + Sync {
    /// Name in descriptions, tables and files.
    fn name(&self) -> &'static str;

    /// Whether the engine can run this at all, found without running it. Unless said, engines are for one-pass training.
    fn admits(&self, problem: &Problem, record: &Record) -> Result<(), EngineError> {
        if problem.training.samples.is_some() {
            return Err(EngineError::OnePass { engine: self.name() });
        }
        if record.needs_training_set() {
            return Err(EngineError::NoTrainingSet { engine: self.name() });
        }
        self.admits_training(problem, record)
    }

    /// Why the engine cannot train in this way, as the end of a sentence, and what to use instead; `None` when it can.
    fn refuses(&self, way: Way) -> Option<(&'static str, &'static str)> {
        let _ = way;
        None
    }

    /// Whether the engine runs every way in which the training differs from plain descent, and all rates make sense.
    fn admits_training(&self, problem: &Problem, record: &Record) -> Result<(), EngineError> {
        for way in problem.training.ways() {
            if let Some((reason, instead)) = self.refuses(way) {
                return Err(EngineError::Training { engine: self.name(), way, reason, instead });
            }
        }
        if record.needs_velocities()
            && (problem.training.momentum.is_none() || problem.training.samples.is_some())
        {
            let why =
                problem.training.samples.is_some().then_some("those of a training set are not recorded");
            return Err(EngineError::NoVelocities { engine: self.name(), why });
        }
        problem.training.check_rates(record).map_err(|e| EngineError::Problem(e.into()))
    }

    /// Bytes of state and results that a run would need, from its sizes alone: every run asks for it before it begins.
    fn memory(&self, problem: &Problem, record: &Record) -> f64;

    /// What a run would need, the time too, which is estimated from timed calls of the rule: milliseconds. The rule may be a draft.
    fn cost(&self, problem: &Problem, record: &Record) -> Cost;

    /// True when a start at a fixed point stays there for ever. The noise of a simulation leads away from it.
    fn stays_at_fixed_points(&self) -> bool {
        false
    }

    /// False when a finite dimension is needed.
    fn takes_infinite_dimension(&self) -> bool {
        false
    }

    /// True when one curve stands for all replicas, also of a random start.
    fn follows_the_mean(&self) -> bool {
        false
    }

    /// Whether the engine can be run stage after stage.
    fn admits_stages(&self) -> Result<(), EngineError> {
        Ok(())
    }

    /// Names of columns that the engine adds behind those of the record.
    fn added_columns(&self, record: &Record) -> Vec<String> {
        let _ = record;
        Vec::new()
    }

    /// Names of events that the engine adds behind those of the record: durations, not times.
    fn added_events(&self, record: &Record) -> Vec<String> {
        let _ = record;
        Vec::new()
    }

    /// True when the replicas of a record may be computed in parts, on several machines: the parts one after the other are the whole,
    /// bit by bit. Random numbers belong to a replica, so that only engines whose results mix replicas say no.
    fn replicas_stand_alone(&self) -> bool {
        false
    }

    /// True when a later stage of a schedule can go on with the same training set: the engine hands its rows over.
    fn hands_over_weights(&self) -> bool {
        false
    }

    /// Runs stages that follow each other on one training set as one run. `None` where the stages are run one after the other, each
    /// from where the one before it ended. Engines that remember every step cannot be begun in the middle.
    fn run_stages(
        &self,
        _stages: &[EngineStage],
        _record: &Record,
        _monitor: &dyn Monitor,
    ) -> Option<Result<Trajectory, EngineError>> {
        None
    }

    /// True when [`Self::run_stages`] runs the stages of a training set.
    fn remembers_stages(&self) -> bool {
        false
    }

    /// Runs all replicas of the record, and says where each of them ended.
    fn run_with_end_states(
        &self,
        problem: &Problem,
        record: &Record,
        monitor: &dyn Monitor,
    ) -> Result<(Trajectory, Vec<EndState>), EngineError>;

    /// Runs all replicas of the record.
    fn run(
        &self,
        problem: &Problem,
        record: &Record,
        monitor: &dyn Monitor,
    ) -> Result<Trajectory, EngineError> {
        Ok(self.run_with_end_states(problem, record, monitor)?.0)
    }
}
