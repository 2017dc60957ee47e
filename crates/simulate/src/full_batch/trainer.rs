//! Gradient descent on data that the caller brings.

use super::Precision;
use super::chain::FullBatchChain;
use super::data::Inputs;
use crate::chain::Chain;
use didact_math::linalg::Mat;
use didact_model::{EngineError, Overlaps, Problem};

/// A chain on given inputs X (n x d, row after row) and weights (rows x d, trained first), without label noise.
pub struct Trainer(Box<dyn Chain + Send + Sync>);

impl Trainer {
    /// Starts training; `threads` shares every step among the threads of the pool it runs in.
    pub fn new(
        problem: &Problem,
        weights: Mat,
        scalars: Vec<f64>,
        inputs: &[f64],
        precision: Precision,
        threads: bool,
    ) -> Result<Self, EngineError> {
        let noise = vec![0.0; inputs.len() / weights.cols().max(1)];
        Ok(Self(match precision {
            Precision::Double => {
                let kept = Inputs::Kept(inputs.to_vec());
                Box::new(FullBatchChain::<f64>::from_parts(problem, weights, scalars, kept, noise, threads)?)
            }
            Precision::Single => {
                let kept = Inputs::Kept(inputs.iter().map(|x| *x as f32).collect());
                Box::new(FullBatchChain::<f32>::from_parts(problem, weights, scalars, kept, noise, threads)?)
            }
        }))
    }

    /// One step on all samples.
    pub fn step(&mut self) {
        self.0.step();
    }

    /// The overlaps now.
    pub fn overlaps(&self) -> Overlaps {
        self.0.overlaps()
    }

    /// The mean loss over the samples.
    pub fn train_loss(&self) -> f64 {
        self.0.train_loss().unwrap_or(f64::NAN)
    }
}
