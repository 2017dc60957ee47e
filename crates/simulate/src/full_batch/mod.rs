//! Full-batch gradient descent: the same rule on a fixed set of n samples, visited whole at every step
//! (docs/derivations/gd-phase-transitions.md#s2).

mod chain;
mod data;
mod kernels;
mod memory;
mod trainer;

pub use trainer::Trainer;

use crate::chain::{Order, run_replicas};
use chain::FullBatchChain;
use didact_model::{Engine, EngineError, Monitor, Problem, Record, Trajectory};
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FullBatch {
    /// Of the inputs.
    pub precision: Precision,
    /// Of the inputs.
    pub storage: InputStorage,
}

impl FullBatch {
    fn bytes(self) -> f64 {
        match self.precision {
            Precision::Double => 8.0,
            Precision::Single => 4.0,
        }
    }

    /// Whether replicas run one after the other, and how the inputs of those that run together are kept.
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
            let together = threads.min(record.replicas as usize) as f64;
            let plan = memory::plan(needs, together, true, available, what.clone());
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

    fn hands_over_weights(&self) -> bool {
        true
    }

    fn admits(&self, problem: &Problem, record: &Record) -> Result<(), EngineError> {
        if problem.training.samples.is_none() {
            return Err(EngineError::FullBatch { engine: NAME });
        }
        self.plan(problem, record).map(|_| ())
    }

    fn run(
        &self,
        problem: &Problem,
        record: &Record,
        monitor: &dyn Monitor,
    ) -> Result<Trajectory, EngineError> {
        problem.validate()?;
        self.admits(problem, record)?;
        let (in_turn, plan) = self.plan(problem, record)?;
        let keep = plan.keep && self.storage != InputStorage::Draw;
        let mut trajectory = match self.precision {
            Precision::Double => {
                let order = if in_turn { Order::InTurn } else { Order::Together };
                run_replicas(self, problem, record, monitor, order, |problem, start, seat| {
                    FullBatchChain::<f64>::new(problem, start, seat, keep, in_turn)
                })
            }
            Precision::Single => {
                let order = if in_turn { Order::InTurn } else { Order::Together };
                run_replicas(self, problem, record, monitor, order, |problem, start, seat| {
                    FullBatchChain::<f32>::new(problem, start, seat, keep, in_turn)
                })
            }
        }?;
        let n = problem.sample_count().unwrap_or(0);
        let inputs = if keep { "kept in memory" } else { "drawn anew at every step" };
        trajectory.notes.push(format!("{n} samples per replica, {inputs}"));
        Ok(trajectory)
    }
}
