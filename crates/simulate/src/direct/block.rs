//! Four steps in one pass over the weights.

use crate::kernels::{self, INPUTS_PER_PASS, Lanes};
use didact_math::linalg::Mat;
use didact_model::Shape;

/// Four steps of one sample each, which share one pass over the weights (they exceed the first-level cache).
///
/// The inputs are known in advance, so the fields of step s follow from products with the weights W at the start of the
/// block and of the inputs among themselves:
///
///   w_i(s)·x_s = w_i·x_s + Σ_{r<s} c_ir x_r·x_s,       W ← W + C X after the last step,
///
/// with c_ir = −s kick_i of step r. The same numbers as step by step, up to rounding.
pub(super) struct Block {
    /// Steps done; the weights are up to date when all are.
    pub(super) done: usize,
    /// W Xᵀ, rows x 4.
    fields: Vec<[f64; INPUTS_PER_PASS]>,
    /// X Xᵀ above the diagonal.
    gram: [[f64; INPUTS_PER_PASS]; INPUTS_PER_PASS],
    /// C, trained x 4; zero for steps to come.
    pub(super) kicks: Vec<f64>,
    room: Vec<[Lanes; INPUTS_PER_PASS]>,
}

impl Block {
    pub(super) fn new(shape: Shape) -> Self {
        Self {
            done: INPUTS_PER_PASS,
            fields: vec![[0.0; INPUTS_PER_PASS]; shape.rows()],
            gram: [[0.0; INPUTS_PER_PASS]; INPUTS_PER_PASS],
            kicks: vec![0.0; shape.trained * INPUTS_PER_PASS],
            room: vec![[[0.0; 4]; INPUTS_PER_PASS]; shape.rows()],
        }
    }

    pub(super) fn begin(&mut self, weights: &Mat, inputs: &[f64]) {
        self.done = 0;
        self.kicks.fill(0.0);
        kernels::project_four(weights, inputs, &mut self.room, &mut self.fields, &mut self.gram);
    }

    /// Fields of the next step.
    pub(super) fn fields(&self, out: &mut [f64]) {
        let s = self.done;
        for (h, fields) in out.iter_mut().zip(&self.fields) {
            *h = fields[s];
        }
        for (h, c) in out.iter_mut().zip(self.kicks.chunks_exact(INPUTS_PER_PASS)) {
            for r in 0..s {
                *h += c[r] * self.gram[r][s];
            }
        }
    }
}
