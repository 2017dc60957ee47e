//! Full-batch gradient descent: the same rule on a fixed set of n samples, visited whole at every step
//! (docs/derivations/gd-phase-transitions.md#s2).

mod chain;
mod data;
mod kernels;
mod memory;
mod trainer;

pub use trainer::Trainer;

use crate::chain::{ReplicaOrder, run_replicas};
use chain::FullBatchChain;
use didact_model::engine::{Cost, EngineOptions, OptionError};
use didact_model::timed::{Losses, seconds_of_looks, seconds_per_kick};
use didact_model::{EndState, Engine, EngineError, Monitor, Problem, Record, Trajectory, Way};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const NAME: &str = "full-batch";

/// How inputs and partial gradients are kept. Weights, labels and losses are doubles in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// 8 bytes per number.
    #[default]
    Double,
    /// 4 bytes per number: half the memory, twice the speed.
    Single,
}

/// What becomes of the inputs between steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InputStorage {
    /// Kept if they fit into memory, drawn anew otherwise. The numbers are the same.
    #[default]
    Auto,
    /// Kept, or refused.
    Keep,
    /// Drawn anew at every step.
    Draw,
}

/// Gradient descent w ← w − η grad of the mean loss over a training set that is drawn once per replica.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "FullBatchOptions")]
pub struct FullBatch {
    /// Inputs as `double` or `single` precision numbers.
    pub precision: Precision,
    /// `keep` the inputs, `draw` them anew at every step, or `auto`: by the memory there is.
    #[serde(rename = "inputs")]
    pub storage: InputStorage,
}

impl EngineOptions for FullBatch {
    const ABOUT: &'static str = "gradient descent on a fixed training set of n samples in d dimensions";

    fn engine(&self) -> Result<Box<dyn Engine>, OptionError> {
        Ok(Box::new(*self))
    }
}

impl FullBatch {
    fn bytes(self) -> f64 {
        match self.precision {
            Precision::Double => 8.0,
            Precision::Single => 4.0,
        }
    }

    /// Whether replicas run one after the other, and how the inputs of those that run at the same time are kept.
    fn plan(self, problem: &Problem, record: &Record) -> Result<(bool, memory::Plan), EngineError> {
        let d = problem.finite_dimension(NAME)? as f64;
        let n = problem.sample_count().ok_or(EngineError::FullBatch { engine: NAME })? as f64;
        let shape = problem.rule.shape();
        let (k, p) = (shape.trained as f64, shape.rows() as f64);
        let needs = memory::Needs {
            inputs: if self.storage == InputStorage::Draw { 0.0 } else { n * d * self.bytes() * 1e-9 },
            rest: (n * (shape.frozen as f64 + 1.0) * 8.0 + d * (3.0 * p * 8.0 + 64.0 * k * self.bytes()))
                * 1e-9,
        };
        let must_keep = self.storage == InputStorage::Keep;
        let what = format!("{n} samples in d = {d}");
        let available = memory::available_gigabytes();
        let threads = rayon::current_num_threads();
        if record.replicas > 1 {
            let at_a_time = threads.min(record.replicas as usize) as f64;
            let plan = memory::plan(needs, at_a_time, true, available, what.clone());
            if let Ok(plan) = plan {
                return Ok((false, plan));
            }
        }
        Ok((true, memory::plan(needs, 1.0, must_keep, available, what)?))
    }
}

impl Engine for FullBatch {
    fn name(&self) -> &'static str {
        NAME
    }

    fn replicas_stand_alone(&self) -> bool {
        true
    }

    fn memory(&self, problem: &Problem, record: &Record) -> f64 {
        let (n, d) = (problem.sample_count().unwrap_or(0) as f64, problem.dimension.unwrap_or(0) as f64);
        let at_a_time = (rayon::current_num_threads() as f64).min(f64::from(record.replicas));
        n * d * 8.0 * at_a_time + record.bytes()
    }

    fn cost(&self, problem: &Problem, record: &Record) -> Cost {
        let (n, d) = (problem.sample_count().unwrap_or(0) as f64, problem.dimension.unwrap_or(0) as f64);
        let replicas = f64::from(record.replicas);
        let steps = problem.steps_of(record) * replicas;
        // Inputs are drawn once, and read at every step and whenever the train loss is measured.
        let drawing = replicas * n * d * 4e-9;
        let looks = replicas * record.times.len() as f64;
        let reading = (steps + 0.5 * looks) * n * d * problem.rule.shape().trained as f64 * 5e-10
            + steps * n * seconds_per_kick(problem, n as usize);
        Cost {
            steps: Some(steps),
            memory: self.memory(problem, record),
            seconds: drawing + reading + replicas * seconds_of_looks(problem, record, Losses::Simulated),
        }
    }

    fn hands_over_weights(&self) -> bool {
        true
    }

    fn refuses(&self, way: Way) -> Option<(&'static str, &'static str)> {
        match way {
            Way::Sign | Way::Adam => Some((
                "move every coordinate of a training set by eta: such a step has length eta sqrt(d)",
                "use one-pass training with \"ode\" or \"direct\"",
            )),
            Way::Rate => Some(("scale the momentum with d on a training set", "use \"beta\"")),
            Way::Drift | Way::Rotation | Way::LabelNoiseSchedule => {
                Some(("change the labels of a training set, which are drawn once", "use one-pass training"))
            }
            Way::TrainedLevels => Some((
                "hold directions of a training set",
                "use one-pass training with \"ode\", \"reduced\" or \"direct\"",
            )),
            _ => None,
        }
    }

    fn admits(&self, problem: &Problem, record: &Record) -> Result<(), EngineError> {
        if problem.training.samples.is_none() {
            return Err(EngineError::FullBatch { engine: NAME });
        }
        self.admits_training(problem, record)?;
        self.plan(problem, record).map(|_| ())
    }

    fn run_with_end_states(
        &self,
        problem: &Problem,
        record: &Record,
        monitor: &dyn Monitor,
    ) -> Result<(Trajectory, Vec<EndState>), EngineError> {
        problem.validate()?;
        self.admits(problem, record)?;
        let (sequential, plan) = self.plan(problem, record)?;
        let keep = plan.keep && self.storage != InputStorage::Draw;
        let (mut trajectory, end_states) = match self.precision {
            Precision::Double => {
                let order = if sequential { ReplicaOrder::Sequential } else { ReplicaOrder::Parallel };
                run_replicas(self, problem, record, monitor, order, |problem, start, address| {
                    FullBatchChain::<f64>::new(problem, start, (address, record.begin), keep, sequential)
                })
            }
            Precision::Single => {
                let order = if sequential { ReplicaOrder::Sequential } else { ReplicaOrder::Parallel };
                run_replicas(self, problem, record, monitor, order, |problem, start, address| {
                    FullBatchChain::<f32>::new(problem, start, (address, record.begin), keep, sequential)
                })
            }
        }?;
        let n = problem.sample_count().unwrap_or(0);
        let inputs = if keep { "kept in memory" } else { "drawn anew at every step" };
        trajectory.notes.push(format!("{n} samples per replica, {inputs}"));
        Ok((trajectory, end_states))
    }
}
