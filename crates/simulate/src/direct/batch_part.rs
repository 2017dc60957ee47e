//! Large batches, part by part: each part is drawn, projected and added while it is in the cache.

use super::DirectChain;
use crate::kernels::{self, INPUTS_PER_PASS};
use didact_math::linalg::Mat;
use didact_math::simd::add_scaled;
use didact_model::Shape;
use didact_model::constraint::Constraint;
use didact_model::rule::Batch;

/// Numbers of the inputs of one part: 256 kB, which stay in the second-level cache while they are worked on.
const PART_SIZE: usize = 1 << 15;

/// Buffers for one part of a batch, and the sum Σ_j c_ij x_j of all parts. The numbers are those of the whole batch at once, up to
/// the order of additions.
pub(super) struct BatchPart {
    /// Samples of a part.
    samples: usize,
    inputs: Vec<f64>,
    fields: Vec<f64>,
    kicks: Vec<f64>,
    scalars: Vec<f64>,
    /// trained x d.
    moves: Mat,
}

impl BatchPart {
    /// `None` when the whole batch fits.
    pub(super) fn new(shape: Shape, batch: usize, d: usize) -> Option<Self> {
        let samples = (PART_SIZE / d.max(1)).max(INPUTS_PER_PASS) / INPUTS_PER_PASS * INPUTS_PER_PASS;
        (batch * d > 4 * PART_SIZE && batch > samples).then(|| Self {
            samples,
            inputs: vec![0.0; samples * d],
            fields: vec![0.0; samples * shape.rows()],
            kicks: vec![0.0; samples * shape.trained],
            scalars: vec![0.0; shape.scalars],
            moves: Mat::zeros(shape.trained, d),
        })
    }
}

impl DirectChain {
    /// One step on a batch in parts: all samples see the same weights, so only the sum of their moves is kept.
    pub(super) fn step_by_parts(&mut self, part: &mut BatchPart) {
        self.noise.advance();
        let mut stream = self.noise.inputs();
        let (b, d, k) = (self.batch, self.weights.cols(), self.shape.trained);
        let per_sample = self.step_size / b as f64;
        if self.label_noise > 0.0 {
            self.labels.iter_mut().zip(self.noise.labels()).for_each(|(l, z)| *l = self.label_noise * z);
        }
        part.moves.fill(0.0);
        self.kick.scalars.fill(0.0);
        for from in (0..b).step_by(part.samples) {
            let n = part.samples.min(b - from);
            let inputs = &mut part.inputs[..n * d];
            stream.fill_normal(inputs);
            if !self.roots.is_empty() {
                for x in inputs.chunks_exact_mut(d) {
                    x.iter_mut().zip(&self.roots).for_each(|(x, r)| *x *= r);
                }
            }
            let (fields, kicks) = (&mut part.fields[..n * self.shape.rows()], &mut part.kicks[..n * k]);
            kernels::project(&self.weights, inputs, n, fields);
            let noise = &self.labels[from..from + n];
            let samples = Batch::new(fields, n, &self.scalars, noise);
            self.rule.kick_batch(&samples, kicks, &mut part.scalars);
            self.kick.scalars.iter_mut().zip(&part.scalars).for_each(|(sum, s)| *sum += s);
            kicks.iter_mut().for_each(|c| *c *= -per_sample);
            kernels::add_samples(&mut part.moves, k, kicks, inputs, n);
            for (row, values) in fields.chunks_exact(n).enumerate() {
                self.fields[row * b + from..row * b + from + n].copy_from_slice(values);
            }
            for (row, values) in kicks.chunks_exact(n).enumerate() {
                self.kicks[row * b + from..row * b + from + n].copy_from_slice(values);
            }
        }
        self.sound = self.kicks.iter().all(|c| c.abs() < 1e100);
        let step = self.scalar_step / b as f64;
        self.constraint.move_scalars(&mut self.scalars, step, &self.kick.scalars, self.scalar_length);
        if self.constraint != Constraint::none() {
            self.row_operations();
        }
        for i in 0..k {
            add_scaled(self.weights.row_mut(i), 1.0, part.moves.row(i));
        }
        if self.constraint.sphere.is_some() {
            self.retract();
        }
    }
}
