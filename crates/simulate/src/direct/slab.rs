//! Large batches, slab by slab.

use super::DirectChain;
use crate::kernels::{self, TOGETHER};
use didact_math::linalg::Mat;
use didact_math::simd::add_scaled;
use didact_model::Shape;
use didact_model::constraint::Constraint;
use didact_model::rule::Batch;

/// Inputs that are worked on while they are in the second-level cache: 256 kB.
const SLAB: usize = 1 << 15;

/// Room for part of a batch, and the sum Σ_j c_ij x_j of all parts. The numbers are those of the whole batch at once, up to
/// the order of additions.
pub(super) struct Slab {
    /// Samples per slab.
    samples: usize,
    inputs: Vec<f64>,
    fields: Vec<f64>,
    kicks: Vec<f64>,
    scalars: Vec<f64>,
    /// trained x d.
    moves: Mat,
}

impl Slab {
    /// `None` when the whole batch fits.
    pub(super) fn new(shape: Shape, batch: usize, d: usize) -> Option<Self> {
        let samples = (SLAB / d.max(1)).max(TOGETHER) / TOGETHER * TOGETHER;
        (batch * d > 4 * SLAB && batch > samples).then(|| Self {
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
    /// One step on a batch in slabs: all samples see the same weights, so only the sum of their moves is kept.
    pub(super) fn slab_step(&mut self, slab: &mut Slab) {
        self.noise.advance();
        let mut stream = self.noise.inputs();
        let (b, d, k) = (self.batch, self.weights.cols(), self.shape.trained);
        let per_sample = self.step_size / b as f64;
        if self.label_noise > 0.0 {
            self.labels.iter_mut().zip(self.noise.labels()).for_each(|(l, z)| *l = self.label_noise * z);
        }
        slab.moves.fill(0.0);
        self.kick.scalars.fill(0.0);
        for from in (0..b).step_by(slab.samples) {
            let n = slab.samples.min(b - from);
            let inputs = &mut slab.inputs[..n * d];
            stream.fill_normal(inputs);
            if !self.roots.is_empty() {
                for x in inputs.chunks_exact_mut(d) {
                    x.iter_mut().zip(&self.roots).for_each(|(x, r)| *x *= r);
                }
            }
            let (fields, kicks) = (&mut slab.fields[..n * self.shape.rows()], &mut slab.kicks[..n * k]);
            kernels::project(&self.weights, inputs, n, fields);
            let noise = &self.labels[from..from + n];
            let part = Batch::new(fields, n, &self.scalars, noise);
            self.rule.kick_batch(&part, kicks, &mut slab.scalars);
            self.kick.scalars.iter_mut().zip(&slab.scalars).for_each(|(sum, part)| *sum += part);
            kicks.iter_mut().for_each(|c| *c *= -per_sample);
            kernels::add_samples(&mut slab.moves, k, kicks, inputs, n);
            for (row, part) in fields.chunks_exact(n).enumerate() {
                self.fields[row * b + from..row * b + from + n].copy_from_slice(part);
            }
            for (row, part) in kicks.chunks_exact(n).enumerate() {
                self.kicks[row * b + from..row * b + from + n].copy_from_slice(part);
            }
        }
        self.sound = self.kicks.iter().all(|c| c.abs() < 1e100);
        let step = self.scalar_step / b as f64;
        self.constraint.move_scalars(&mut self.scalars, step, &self.kick.scalars, self.scalar_length);
        if self.constraint != Constraint::none() {
            self.row_operations();
        }
        for i in 0..k {
            add_scaled(self.weights.row_mut(i), 1.0, slab.moves.row(i));
        }
        if self.constraint.sphere.is_some() {
            self.retract();
        }
    }
}
