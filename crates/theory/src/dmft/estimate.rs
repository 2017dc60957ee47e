//! Numbers of the effective process with their sampling errors, from independent scrambles.

use super::{Equations, Points, Process, Sampling};
use didact_math::random::statistics::SampleMean;
use didact_model::averages::QuadratureEstimate;

/// The process diverged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "gradient descent diverges at step {step}: rows are longer than 100\n\nhint: use a smaller learning rate"
)]
pub struct Diverged {
    /// The first step without a data side.
    pub step: usize,
}

/// Runs the process to step `steps` once per scramble and averages what `read` finds there; the standard error over
/// scrambles is the sampling error.
pub fn estimate(
    equations: &Equations,
    sampling: &Sampling,
    scrambles: u32,
    steps: usize,
    read: impl Fn(&Process) -> Vec<f64>,
) -> Result<Vec<QuadratureEstimate>, Diverged> {
    let mut found = Vec::<Vec<f64>>::new();
    for scramble in 0..scrambles {
        let shape = equations.shape();
        let mut points = Points::sobol(sampling, scramble, shape.frozen, shape.trained, steps + 1);
        let mut process = Process::new(equations, &mut points);
        for step in 0..=steps {
            if !process.advance() {
                return Err(Diverged { step });
            }
        }
        found.push(read(&process));
    }
    let entries = found.first().map_or(0, Vec::len);
    let mean = |entry: usize| SampleMean::of(found.iter().map(|f| f[entry]));
    Ok((0..entries).map(|e| QuadratureEstimate { value: mean(e).value, error: mean(e).error }).collect())
}
