//! Plain one-pass SGD on d-dimensional weights: the definition of right.

mod batch_part;
mod block;

use crate::chain::{Chain, ReplicaAddress, ReplicaOrder, run_replicas};
use crate::kernels::{self, INPUTS_PER_PASS};
use crate::noise::StepNoise;
use crate::ways::direct::WaysDirectChain;
use batch_part::BatchPart;
use block::Block;
use didact_math::linalg::{Mat, dot};
use didact_math::simd::add_scaled;
use didact_model::constraint::{Constraint, Retraction, inverse_of_barred};
use didact_model::engine::{Cost, EngineOptions, OptionError};
use didact_model::problem::ProblemError;
use didact_model::rule::{Batch, LocalRule};
use didact_model::timed::{Losses, seconds_of_looks, seconds_per_kick};
use didact_model::{
    EndState, Engine, EngineError, Kick, Monitor, Overlaps, Problem, Record, Sample, Shape, Trajectory, Way,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// Simulation in d dimensions.
#[derive(Debug, Clone, Copy, Default)]
pub struct Direct;

/// Weights beyond this are refused rather than swapped.
const MEMORY_LIMIT: f64 = 8.0;

/// The engine `direct` has no options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectOptions {}

impl EngineOptions for DirectOptions {
    const ABOUT: &'static str = "plain SGD on d-dimensional weights";

    fn engine(&self) -> Result<Box<dyn Engine>, OptionError> {
        Ok(Box::new(Direct))
    }
}

impl Engine for Direct {
    fn name(&self) -> &'static str {
        "direct"
    }

    fn replicas_stand_alone(&self) -> bool {
        true
    }

    fn memory(&self, problem: &Problem, record: &Record) -> f64 {
        let (rows, batch) = (problem.rule.shape().rows() as f64, problem.training.batch as f64);
        let at_a_time = (rayon::current_num_threads() as f64).min(f64::from(record.replicas));
        at_a_time * problem.dimension.unwrap_or(0) as f64 * (rows + batch) * 8.0 + record.bytes()
    }

    fn cost(&self, problem: &Problem, record: &Record) -> Cost {
        let (d, replicas) = (problem.dimension.unwrap_or(0) as f64, f64::from(record.replicas));
        let (rows, batch) = (problem.rule.shape().rows() as f64, problem.training.batch as f64);
        let steps = problem.steps_of(record) * replicas;
        let kick = seconds_per_kick(problem, problem.training.batch);
        Cost {
            steps: Some(steps),
            memory: self.memory(problem, record),
            seconds: steps * batch * (d * (2.2e-9 + 0.15e-9 * rows) + kick)
                + replicas * seconds_of_looks(problem, record, Losses::Simulated),
        }
    }

    fn refuses(&self, way: Way) -> Option<(&'static str, &'static str)> {
        (way == Way::Batches).then_some((
            "choose batches of a training set: its samples are fresh",
            "use \"full-batch\" or \"dmft\"",
        ))
    }

    fn run_with_end_states(
        &self,
        problem: &Problem,
        record: &Record,
        monitor: &dyn Monitor,
    ) -> Result<(Trajectory, Vec<EndState>), EngineError> {
        let (dimension, rows) = (problem.finite_dimension("direct")?, problem.rule.shape().rows());
        let gigabytes = dimension as f64 * (rows + problem.training.batch) as f64 * 8e-9;
        if gigabytes > MEMORY_LIMIT {
            return Err(EngineError::Memory { gigabytes, rows, dimension });
        }
        if !problem.training.is_plain() {
            let make = |problem: &Problem, start: &Overlaps, address: ReplicaAddress| {
                WaysDirectChain::new(problem, start, address, record.begin)
            };
            return run_replicas(self, problem, record, monitor, ReplicaOrder::Parallel, make);
        }
        run_replicas(self, problem, record, monitor, ReplicaOrder::Parallel, DirectChain::new)
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
    /// |a|² to be kept.
    scalar_length: f64,
    /// T⁻¹ of the frozen rows along which motion is forbidden.
    barred: Option<Mat>,
    noise: StepNoise,
    /// Several steps that share a pass over the weights, where that is possible.
    block: Option<Block>,
    /// Buffers for a batch that is too large for the cache: it is drawn, projected and added in parts.
    part: Option<BatchPart>,
    fields: Vec<f64>,
    labels: Vec<f64>,
    kicks: Vec<f64>,
    kick: Kick,
    sound: bool,
}

impl DirectChain {
    /// Starts from weights that have the given overlaps.
    pub fn new(problem: &Problem, start: &Overlaps, address: ReplicaAddress) -> Result<Self, EngineError> {
        let dimension = problem.finite_dimension("direct")?;
        let sizes = problem.spectrum.multiplicities(dimension).map_err(ProblemError::from)?;
        let weights = crate::weights::with_overlaps(start, &sizes)?;
        Self::from_weights(problem, weights, start.scalars.clone(), address)
    }

    /// Starts from given weights (rows x d, trained first, coordinates in the order of the eigenspaces).
    pub fn from_weights(
        problem: &Problem,
        weights: Mat,
        scalars: Vec<f64>,
        address: ReplicaAddress,
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
        // Constraints act on whole rows at every step.
        let block = (batch == 1 && training.constraint == Constraint::none()).then(|| Block::new(shape));
        let samples = if block.is_some() { INPUTS_PER_PASS } else { batch };
        let part = BatchPart::new(shape, batch, d);
        // A batch that is drawn in parts is not drawn ahead.
        let ahead = if part.is_some() { 0 } else { samples * d };
        let labels = if training.label_noise > 0.0 { samples } else { 0 };
        Ok(Self {
            rule: problem.rule.clone(),
            shape,
            scalar_length: dot(&scalars, &scalars),
            scalars,
            bounds,
            roots,
            step_size,
            scalar_step: step_size * training.scalar_ratio,
            batch,
            label_noise: training.label_noise,
            constraint: training.constraint,
            lengths: (0..k).map(|i| gram[(i, i)]).collect(),
            barred: inverse_of_barred(training.constraint.barred(&*problem.rule), &gram, k),
            noise: StepNoise::new(address, ahead, labels, Vec::new()),
            block,
            part,
            fields: vec![0.0; p * batch],
            labels: vec![0.0; batch],
            kicks: vec![0.0; k * batch],
            kick: Kick::new(shape),
            weights,
            sound: true,
        })
    }

    /// Draws inputs and label noise.
    fn draw(&mut self) {
        self.noise.advance();
        if !self.roots.is_empty() {
            for x in self.noise.normals_mut().chunks_exact_mut(self.weights.cols()) {
                x.iter_mut().zip(&self.roots).for_each(|(x, r)| *x *= r);
            }
        }
    }

    /// −s kick_i per sample (trained x B), and the scalars moved; `first` is the place of the samples in what was drawn.
    fn kick(&mut self, first: usize) {
        let (b, s) = (self.batch, self.step_size);
        if self.label_noise > 0.0 {
            let drawn = &self.noise.labels()[first..];
            for (l, z) in self.labels.iter_mut().zip(drawn) {
                *l = self.label_noise * z;
            }
        }
        if b == 1 {
            let sample = Sample { fields: &self.fields, scalars: &self.scalars, noise: self.labels[0] };
            self.rule.kick(&sample, &mut self.kick);
            self.kicks.copy_from_slice(&self.kick.rows);
        } else {
            let batch = Batch::new(&self.fields, b, &self.scalars, &self.labels);
            self.rule.kick_batch(&batch, &mut self.kicks, &mut self.kick.scalars);
        }
        let per_sample = s / b as f64;
        self.kicks.iter_mut().for_each(|c| *c *= -per_sample);
        self.sound = self.kicks.iter().all(|c| c.abs() < 1e100);
        let step = self.scalar_step / b as f64;
        self.constraint.move_scalars(&mut self.scalars, step, &self.kick.scalars, self.scalar_length);
    }

    /// Factors and combinations of rows that a constraint adds to the step, before the samples are added.
    fn row_operations(&mut self) {
        let Constraint { sphere, weight_decay, .. } = self.constraint;
        let (k, b) = (self.shape.trained, self.batch);
        let product = |i: usize, row: usize| -> f64 {
            dot(&self.kicks[i * b..(i + 1) * b], &self.fields[row * b..(row + 1) * b])
        };
        let tangent = sphere == Some(Retraction::Tangent);
        let mut scale = vec![1.0 - self.step_size * weight_decay; k];
        if tangent {
            for (i, s) in scale.iter_mut().enumerate() {
                *s -= product(i, i) / self.lengths[i];
            }
        }
        let back = self
            .barred
            .as_ref()
            .map(|inverse| Mat::from_fn(k, inverse.rows(), |i, n| product(i, k + n)).times(inverse));
        if weight_decay > 0.0 || tangent {
            for (i, s) in scale.iter().enumerate() {
                self.weights.row_mut(i).iter_mut().for_each(|w| *w *= s);
            }
        }
        if let Some(back) = back {
            for i in 0..k {
                for n in 0..back.cols() {
                    let frozen = self.weights.row(k + n).to_vec();
                    add_scaled(self.weights.row_mut(i), -back[(i, n)], &frozen);
                }
            }
        }
    }

    /// One step by itself.
    fn plain_step(&mut self) {
        if let Some(mut part) = self.part.take() {
            self.step_by_parts(&mut part);
            self.part = Some(part);
            return;
        }
        self.draw();
        kernels::project(&self.weights, self.noise.normals(), self.batch, &mut self.fields);
        self.kick(0);
        if self.constraint != Constraint::none() {
            self.row_operations();
        }
        let inputs = self.noise.normals();
        kernels::add_samples(&mut self.weights, self.shape.trained, &self.kicks, inputs, self.batch);
        if self.constraint.sphere.is_some() {
            self.retract();
        }
    }

    /// The weights with the steps of an unfinished block.
    fn weights_now(&self) -> Cow<'_, Mat> {
        match &self.block {
            Some(block) if (1..INPUTS_PER_PASS).contains(&block.done) => {
                let mut weights = self.weights.clone();
                let inputs = self.noise.normals();
                kernels::add_samples(&mut weights, self.shape.trained, &block.kicks, inputs, INPUTS_PER_PASS);
                Cow::Owned(weights)
            }
            _ => Cow::Borrowed(&self.weights),
        }
    }

    fn retract(&mut self) {
        for i in 0..self.shape.trained {
            let row = self.weights.row_mut(i);
            let scale = (self.lengths[i] / kernels::dot(row, row)).sqrt();
            for w in row {
                *w *= scale;
            }
        }
    }
}

impl Chain for DirectChain {
    fn step(&mut self) {
        let Some(mut block) = self.block.take() else { return self.plain_step() };
        if block.done == INPUTS_PER_PASS {
            self.draw();
            block.begin(&self.weights, self.noise.normals());
        }
        block.fields(&mut self.fields);
        self.kick(block.done);
        for (c, kick) in block.kicks.iter_mut().skip(block.done).step_by(INPUTS_PER_PASS).zip(&self.kicks) {
            *c = *kick;
        }
        block.done += 1;
        if block.done == INPUTS_PER_PASS {
            kernels::add_samples(
                &mut self.weights,
                self.shape.trained,
                &block.kicks,
                self.noise.normals(),
                INPUTS_PER_PASS,
            );
        }
        self.block = Some(block);
    }

    fn overlaps(&self) -> Overlaps {
        let p = self.shape.rows();
        let weights = self.weights_now();
        let block = |range: &[usize]| {
            let part = |i: usize| &weights.row(i)[range[0]..range[1]];
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

#[cfg(test)]
mod tests;
