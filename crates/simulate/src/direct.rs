//! Plain one-pass SGD on d-dimensional weights: the definition of right.

use crate::chain::{Chain, Seat, run_replicas};
use crate::kernels;
use crate::noise::StepNoise;
use didact_math::linalg::{Mat, cholesky_psd};
use didact_model::constraint::{Constraint, Retraction, pseudo_inverse};
use didact_model::overlaps::OverlapsError;
use didact_model::problem::ProblemError;
use didact_model::rule::{Batch, LocalRule};
use didact_model::{
    Engine, EngineError, Kick, Monitor, Overlaps, Problem, Record, Sample, Shape, Trajectory,
};
use std::sync::Arc;

/// Simulation in d dimensions.
#[derive(Debug, Clone, Copy, Default)]
pub struct Direct;

/// Weights beyond this are refused rather than swapped.
const MEMORY_LIMIT: f64 = 8.0;

impl Engine for Direct {
    fn name(&self) -> &'static str {
        "direct"
    }

    fn run(
        &self,
        problem: &Problem,
        record: &Record,
        monitor: &dyn Monitor,
    ) -> Result<Trajectory, EngineError> {
        let (dimension, rows) = (problem.finite_dimension("direct")?, problem.rule.shape().rows());
        let gigabytes = dimension as f64 * (rows + problem.training.batch) as f64 * 8e-9;
        if gigabytes > MEMORY_LIMIT {
            return Err(EngineError::Memory { gigabytes, rows, dimension });
        }
        run_replicas(self, problem, record, monitor, DirectChain::new)
    }
}

/// The chain of one replica: weights, and everything a step needs.
pub struct DirectChain {
    rule: Arc<dyn LocalRule>,
    shape: Shape,
    /// Rows x d, trained first.
    weights: Mat,
    scalars: Vec<f64>,
    /// First coordinate of every eigenspace, and d.
    bounds: Vec<usize>,
    /// √λ per coordinate; empty when all are 1.
    roots: Vec<f64>,
    step_size: f64,
    scalar_step: f64,
    batch: usize,
    label_noise: f64,
    constraint: Constraint,
    lengths: Vec<f64>,
    off_frozen: Option<Mat>,
    noise: StepNoise,
    /// Inputs of the step, batch x d.
    inputs: Vec<f64>,
    fields: Vec<f64>,
    labels: Vec<f64>,
    kicks: Vec<f64>,
    kick: Kick,
    sound: bool,
}

impl DirectChain {
    /// Starts from weights that have the given overlaps.
    ///
    /// The factor of every G_b fills the first coordinates of its eigenspace. Any other weights with these overlaps are
    /// a rotation of them within the eigenspaces, so their overlaps have the same law.
    pub fn new(problem: &Problem, start: &Overlaps, seat: Seat) -> Result<Self, EngineError> {
        let dimension = problem.finite_dimension("direct")?;
        let sizes = problem.spectrum.multiplicities(dimension).map_err(ProblemError::from)?;
        let p = start.shape().rows();
        let mut weights = Mat::zeros(p, dimension as usize);
        let mut first = 0;
        for (block, (gram, &size)) in start.blocks.iter().zip(&sizes).enumerate() {
            let lower = cholesky_psd(gram)
                .map_err(|_| EngineError::Overlaps(OverlapsError::NotPositive { block }))?;
            let used: Vec<usize> = (0..p).filter(|&j| lower[(j, j)] > 0.0).collect();
            if used.len() as u64 > size {
                return Err(EngineError::Overlaps(OverlapsError::Rank { block, rank: used.len(), size }));
            }
            for i in 0..p {
                for (at, &j) in used.iter().enumerate() {
                    weights[(i, first + at)] = lower[(i, j)];
                }
            }
            first += size as usize;
        }
        Self::from_weights(problem, weights, start.scalars.clone(), seat)
    }

    /// Starts from given weights (rows x d, trained first, coordinates in the order of the eigenspaces).
    pub fn from_weights(
        problem: &Problem,
        weights: Mat,
        scalars: Vec<f64>,
        seat: Seat,
    ) -> Result<Self, EngineError> {
        let dimension = problem.finite_dimension("direct")?;
        let sizes = problem.spectrum.multiplicities(dimension).map_err(ProblemError::from)?;
        let shape = problem.rule.shape();
        let (k, p, d) = (shape.trained, shape.rows(), dimension as usize);
        let mut bounds = vec![0];
        let mut roots = Vec::with_capacity(d);
        for (&size, lambda) in sizes.iter().zip(problem.spectrum.eigenvalues()) {
            bounds.push(bounds[bounds.len() - 1] + size as usize);
            roots.resize(roots.len() + size as usize, lambda.sqrt());
        }
        if roots.iter().all(|&r| r == 1.0) {
            roots.clear();
        }
        let training = &problem.training;
        let (batch, step_size) = (training.batch, problem.step_size(dimension));
        let gram = weights.gram();
        let labels = if training.label_noise > 0.0 { batch } else { 0 };
        Ok(Self {
            rule: problem.rule.clone(),
            shape,
            scalars,
            bounds,
            roots,
            step_size,
            scalar_step: step_size * training.scalar_ratio,
            batch,
            label_noise: training.label_noise,
            constraint: training.constraint,
            lengths: (0..k).map(|i| gram[(i, i)]).collect(),
            off_frozen: training.constraint.off_frozen.then(|| pseudo_inverse(&gram.block(k..p, k..p))),
            noise: StepNoise::new(seat, batch * d, labels, Vec::new()),
            inputs: vec![0.0; batch * d],
            fields: vec![0.0; p * batch],
            labels: vec![0.0; batch],
            kicks: vec![0.0; k * batch],
            kick: Kick::new(shape),
            weights,
            sound: true,
        })
    }

    /// −s kick_i per sample (trained x B), and the scalars moved.
    fn kick(&mut self) {
        let (b, s) = (self.batch, self.step_size);
        if self.label_noise > 0.0 {
            self.labels.iter_mut().zip(self.noise.labels()).for_each(|(l, z)| *l = self.label_noise * z);
        }
        if b == 1 {
            let sample = Sample { fields: &self.fields, scalars: &self.scalars, noise: self.labels[0] };
            self.rule.kick(&sample, &mut self.kick);
            self.kicks.copy_from_slice(&self.kick.rows);
        } else {
            let batch = Batch { fields: &self.fields, size: b, scalars: &self.scalars, noise: &self.labels };
            self.rule.kick_batch(&batch, &mut self.kicks, &mut self.kick.scalars);
        }
        let per_sample = s / b as f64;
        self.kicks.iter_mut().for_each(|c| *c *= -per_sample);
        self.sound = self.kicks.iter().all(|c| c.abs() < 1e100);
        for (a, slope) in self.scalars.iter_mut().zip(&self.kick.scalars) {
            *a -= self.scalar_step / b as f64 * slope;
        }
    }

    /// Factors and combinations of rows that a constraint adds to the step, before the samples are added.
    fn row_operations(&mut self) {
        let Constraint { sphere, weight_decay, .. } = self.constraint;
        let (k, b) = (self.shape.trained, self.batch);
        let product = |i: usize, row: usize| -> f64 {
            didact_math::linalg::dot(&self.kicks[i * b..(i + 1) * b], &self.fields[row * b..(row + 1) * b])
        };
        let tangent = sphere == Some(Retraction::Tangent);
        let mut scale = vec![1.0 - self.step_size * weight_decay; k];
        if tangent {
            scale.iter_mut().enumerate().for_each(|(i, s)| *s -= product(i, i) / self.lengths[i]);
        }
        let back = self
            .off_frozen
            .as_ref()
            .map(|inverse| Mat::from_fn(k, self.shape.frozen, |i, n| product(i, k + n)).times(inverse));
        if weight_decay > 0.0 || tangent {
            for (i, s) in scale.iter().enumerate() {
                self.weights.row_mut(i).iter_mut().for_each(|w| *w *= s);
            }
        }
        if let Some(back) = back {
            for i in 0..k {
                for n in 0..self.shape.frozen {
                    let frozen = self.weights.row(k + n).to_vec();
                    kernels::add_scaled(self.weights.row_mut(i), -back[(i, n)], &frozen);
                }
            }
        }
    }

    fn retract(&mut self) {
        for i in 0..self.shape.trained {
            let row = self.weights.row_mut(i);
            let scale = (self.lengths[i] / kernels::dot(row, row)).sqrt();
            row.iter_mut().for_each(|w| *w *= scale);
        }
    }
}

impl Chain for DirectChain {
    fn step(&mut self) {
        self.noise.advance();
        let (d, b) = (self.weights.cols(), self.batch);
        self.inputs.copy_from_slice(self.noise.normals());
        if !self.roots.is_empty() {
            for x in self.inputs.chunks_exact_mut(d) {
                x.iter_mut().zip(&self.roots).for_each(|(x, r)| *x *= r);
            }
        }
        kernels::project(&self.weights, &self.inputs, b, &mut self.fields);
        self.kick();
        if self.constraint != Constraint::none() {
            self.row_operations();
        }
        kernels::add_samples(&mut self.weights, self.shape.trained, &self.kicks, &self.inputs, b);
        if self.constraint.sphere.is_some() {
            self.retract();
        }
    }

    fn overlaps(&self) -> Overlaps {
        let p = self.shape.rows();
        let block = |range: &[usize]| {
            let part = |i: usize| &self.weights.row(i)[range[0]..range[1]];
            let mut gram = Mat::zeros(p, p);
            for i in 0..p {
                for j in 0..=i {
                    gram[(i, j)] = kernels::dot(part(i), part(j));
                    gram[(j, i)] = gram[(i, j)];
                }
            }
            gram
        };
        let blocks = self.bounds.windows(2).map(block).collect();
        Overlaps::from_engine(self.shape, blocks, self.scalars.clone())
    }

    fn is_sound(&self) -> bool {
        self.sound
    }
}
