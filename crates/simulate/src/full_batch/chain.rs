//! Gradient descent on a fixed training set.

mod gradient;
mod ways;

use super::data::{Inputs, NOISE, Source};
use super::kernels::{Number, ROWS_PER_PASS};
use crate::chain::{Chain, ReplicaAddress};
use didact_math::linalg::{Mat, dot};
use didact_math::random::{RngAddress, Stream};
use didact_model::constraint::{Constraint, Retraction, inverse_of_barred};
use didact_model::problem::ProblemError;
use didact_model::rule::{Batch, LocalRule};
use didact_model::training::InputLaw;
use didact_model::{EngineError, Overlaps, Problem, Shape, Velocities};
use gradient::LARGEST_BLOCK;
use rayon::prelude::*;
use std::sync::Arc;
use ways::WaysOfTraining;

/// The gradient is summed over pieces of the training set, piece by piece, then over pieces in their order: threads take
/// pieces in any order and change nothing. At most this many.
const PIECES: usize = 64;
/// Rows of a piece, at least.
const PIECE: usize = 512;
/// Rows longer than a hundred times their start (or 100) have diverged.
const LARGEST_SQUARED_GROWTH: f64 = 1e4;

/// w_i ← w_i − η (1/n) Σ_μ kick_i(h_μ) x_μ over all n samples, X being kept in precision T. Weights are doubles.
#[derive(Debug)]
pub(super) struct FullBatchChain<T> {
    rule: Arc<dyn LocalRule>,
    shape: Shape,
    /// Rows x d, trained first.
    weights: Mat,
    scalars: Vec<f64>,
    /// First coordinate of every eigenspace, and d.
    bounds: Vec<usize>,
    inputs: Inputs<T>,
    samples: usize,
    /// v_μ, frozen x n: they never change.
    frozen: Vec<f64>,
    /// Labels, noise included; empty if the rule has none.
    labels: Vec<f64>,
    noise: Vec<f64>,
    step_size: f64,
    scalar_step: f64,
    constraint: Constraint,
    /// Squared lengths at the start.
    lengths: Vec<f64>,
    /// Squared length of the scalars at the start.
    scalar_length: f64,
    /// T⁻¹ of the frozen rows that the trained ones may not move along: the first ones.
    barred: Option<Mat>,
    threads: bool,
    sound: bool,
    /// Momentum, batches and noise; `None` for plain descent.
    ways: Option<Box<WaysOfTraining>>,
}

impl<T: Number> FullBatchChain<T> {
    /// Draws a training set; `keep` holds it in memory, `threads` shares a step among them.
    pub(super) fn new(
        problem: &Problem,
        start: &Overlaps,
        (address, begin): (ReplicaAddress, f64),
        keep: bool,
        threads: bool,
    ) -> Result<Self, EngineError> {
        let dimension = problem.finite_dimension(super::NAME)?;
        let samples = problem.sample_count().ok_or(EngineError::FullBatch { engine: super::NAME })? as usize;
        let sizes = problem.spectrum.multiplicities(dimension).map_err(ProblemError::from)?;
        // A later stage goes on from the rows: the training set knows their directions, not only their overlaps.
        let given = problem.start.weights();
        let rows = start.shape().rows();
        let weights = match given {
            Some(given) => given.block(0..rows, 0..given.cols()),
            None if problem.training.inputs != InputLaw::Gaussian => {
                crate::weights::spread_with_overlaps(start, &sizes, address)?
            }
            None => crate::weights::with_overlaps(start, &sizes)?,
        };
        let mut roots = Vec::with_capacity(dimension as usize);
        for (&size, lambda) in sizes.iter().zip(problem.spectrum.eigenvalues()) {
            roots.resize(roots.len() + size as usize, lambda.sqrt());
        }
        if roots.iter().all(|&r| r == 1.0) {
            roots.clear();
        }
        let source = Source {
            seed: address.seed,
            replica: address.replica,
            dimension: dimension as usize,
            roots,
            law: problem.training.inputs.clone(),
        };
        let d = source.dimension;
        let inputs = if keep {
            let mut x = vec![T::default(); samples * d];
            let fill = |(piece, rows): (usize, &mut [T])| source.fill(piece * PIECE, rows);
            if threads {
                x.par_chunks_mut(PIECE * d).enumerate().for_each(fill);
            } else {
                x.chunks_mut(PIECE * d).enumerate().for_each(fill);
            }
            Inputs::Kept(x)
        } else {
            Inputs::Drawn(source)
        };
        let mut noise = vec![0.0; samples];
        if problem.training.label_noise > 0.0 {
            let labels = RngAddress { seed: address.seed, replica: address.replica, step: 0, lane: NOISE };
            Stream::at(labels).fill_normal(&mut noise);
            noise.iter_mut().for_each(|e| *e *= problem.training.label_noise);
        }
        let mut chain = Self::from_parts(problem, weights, start.scalars.clone(), inputs, noise, threads)?;
        if !problem.training.is_plain() {
            let velocities = given
                .filter(|given| given.rows() > rows)
                .map(|given| given.block(rows..given.rows(), 0..given.cols()));
            chain.ways = Some(Box::new(WaysOfTraining::new(problem, start, velocities, address, begin)?));
        }
        Ok(chain)
    }

    /// From weights (rows x d, trained first), inputs and label noise.
    pub(super) fn from_parts(
        problem: &Problem,
        weights: Mat,
        scalars: Vec<f64>,
        inputs: Inputs<T>,
        noise: Vec<f64>,
        threads: bool,
    ) -> Result<Self, EngineError> {
        let dimension = problem.finite_dimension(super::NAME)?;
        let sizes = problem.spectrum.multiplicities(dimension).map_err(ProblemError::from)?;
        let shape = problem.rule.shape();
        let k = shape.trained;
        let bounds = std::iter::once(0).chain(sizes.iter().scan(0, |sum, size| {
            *sum += *size as usize;
            Some(*sum)
        }));
        let training = &problem.training;
        let (gram, scalar_length) = (weights.gram(), dot(&scalars, &scalars));
        let mut chain = Self {
            rule: problem.rule.clone(),
            shape,
            scalars,
            bounds: bounds.collect(),
            inputs,
            samples: noise.len(),
            frozen: Vec::new(),
            labels: Vec::new(),
            noise,
            step_size: problem.step_size(dimension),
            scalar_step: problem.step_size(dimension) * training.scalar_ratio,
            constraint: training.constraint,
            lengths: (0..k).map(|i| gram[(i, i)]).collect(),
            scalar_length,
            barred: inverse_of_barred(training.constraint.barred(&*problem.rule), &gram, k),
            weights,
            threads,
            sound: true,
            ways: None,
        };
        chain.project_frozen();
        chain.label_all();
        Ok(chain)
    }

    fn dimension(&self) -> usize {
        self.weights.cols()
    }

    /// Rows first..last of the pieces, by the number of samples alone.
    fn pieces(&self) -> Vec<(usize, usize)> {
        let size = PIECE.max(self.samples.div_ceil(PIECES)).next_multiple_of(LARGEST_BLOCK);
        (0..self.samples).step_by(size).map(|first| (first, (first + size).min(self.samples))).collect()
    }

    fn over_pieces<S: Send>(&self, work: impl Fn((usize, usize)) -> S + Sync + Send) -> Vec<S> {
        let pieces = self.pieces();
        if self.threads {
            pieces.into_par_iter().map(work).collect()
        } else {
            pieces.into_iter().map(work).collect()
        }
    }

    /// Fields of the frozen rows, once and for all.
    fn project_frozen(&mut self) {
        let (k, f) = (self.shape.trained, self.shape.frozen);
        let weights: Vec<Vec<T>> = (k..k + f).map(|n| round(self.weights.row(n))).collect();
        let parts = self.over_pieces(|(first, last)| {
            let mut fields = vec![0.0; f * (last - first)];
            let (mut room, mut tail) = (Vec::new(), Vec::new());
            for at in (first..last).step_by(ROWS_PER_PASS) {
                let count = ROWS_PER_PASS.min(last - at);
                let x = self.four(at, count, &mut room, &mut tail);
                for (n, w) in weights.iter().enumerate() {
                    let mut out = [T::default(); ROWS_PER_PASS];
                    T::project(x, w, &mut out);
                    for (i, h) in out[..count].iter().enumerate() {
                        fields[n * (last - first) + at - first + i] = h.to_double();
                    }
                }
            }
            fields
        });
        let n = self.samples;
        let mut frozen = vec![0.0; f * n];
        for ((first, last), part) in self.pieces().into_iter().zip(parts) {
            for row in 0..f {
                frozen[row * n + first..row * n + last]
                    .copy_from_slice(&part[row * (last - first)..(row + 1) * (last - first)]);
            }
        }
        self.frozen = frozen;
    }

    /// Labels of all samples, once and for all, if the rule has any.
    fn label_all(&mut self) {
        let n = self.samples;
        let mut labels = vec![0.0; n];
        // Labels do not read the trained fields, which have a place all the same.
        let fields = [vec![0.0; self.shape.trained * n], self.frozen.clone()].concat();
        if self.rule.labels(&Batch::new(&fields, n, &self.scalars, &self.noise), &mut labels) {
            self.labels = labels;
        }
    }

    fn labels_of(&self, at: usize, size: usize) -> &[f64] {
        if self.labels.is_empty() { &[] } else { &self.labels[at..at + size] }
    }

    /// Four rows from `at` on, of which `count` exist; the others are zeros.
    fn four<'a>(&'a self, at: usize, count: usize, room: &'a mut Vec<T>, tail: &'a mut Vec<T>) -> &'a [T] {
        let d = self.dimension();
        let x = self.inputs.rows(at, count, d, room);
        if count == ROWS_PER_PASS {
            return x;
        }
        tail.clear();
        tail.extend_from_slice(x);
        tail.resize(ROWS_PER_PASS * d, T::default());
        tail
    }

    /// Takes out of the gradient what a constraint forbids.
    fn constrain(&self, gradient: &mut Mat) {
        let k = self.shape.trained;
        for i in 0..k {
            if self.constraint.sphere == Some(Retraction::Tangent) {
                let row = self.weights.row(i);
                let along = dot(gradient.row(i), row) / self.lengths[i];
                gradient.row_mut(i).iter_mut().zip(row).for_each(|(g, w)| *g -= along * w);
            }
            if let Some(inverse) = &self.barred {
                let products =
                    Mat::from_fn(1, inverse.rows(), |_, n| dot(gradient.row(i), self.weights.row(k + n)));
                let along = products.times(inverse);
                for n in 0..inverse.rows() {
                    let (share, row) = (along[(0, n)], self.weights.row(k + n));
                    gradient.row_mut(i).iter_mut().zip(row).for_each(|(g, w)| *g -= share * w);
                }
            }
        }
    }
}

fn round<T: Number>(row: &[f64]) -> Vec<T> {
    row.iter().map(|w| T::from_double(*w)).collect()
}

impl<T: Number> Chain for FullBatchChain<T> {
    fn step(&mut self) {
        if self.ways.is_some() {
            return self.step_in_ways();
        }
        let (mut gradient, slopes, sound) = self.gradient();
        self.constrain(&mut gradient);
        let n = self.samples as f64;
        let (rate, keep) = (self.step_size / n, 1.0 - self.step_size * self.constraint.weight_decay);
        for i in 0..self.shape.trained {
            for (w, g) in self.weights.row_mut(i).iter_mut().zip(gradient.row(i)) {
                *w = keep * *w - rate * g;
            }
            let square = dot(self.weights.row(i), self.weights.row(i));
            self.sound = self.sound && square < LARGEST_SQUARED_GROWTH * self.lengths[i].max(1.0);
            if self.constraint.sphere.is_some() {
                let back = (self.lengths[i] / square).sqrt();
                self.weights.row_mut(i).iter_mut().for_each(|w| *w *= back);
            }
        }
        let rate = self.scalar_step / n;
        self.constraint.move_scalars(&mut self.scalars, rate, &slopes, self.scalar_length);
        self.sound &= sound;
    }

    fn overlaps(&self) -> Overlaps {
        let p = self.shape.rows();
        let block = |bounds: &[usize]| {
            let part = |i: usize| &self.weights.row(i)[bounds[0]..bounds[1]];
            let mut gram = Mat::zeros(p, p);
            for i in 0..p {
                for j in 0..=i {
                    gram[(i, j)] = dot(part(i), part(j));
                    gram[(j, i)] = gram[(i, j)];
                }
            }
            gram
        };
        let blocks = self.bounds.windows(2).map(block).collect();
        let overlaps = Overlaps::from_engine(self.shape, blocks, self.scalars.clone());
        match &self.ways {
            // Velocities of rows are handed over as rows; those of the scalars have no other place.
            Some(ways) => {
                let scalars = ways.scalar_velocities().to_vec();
                overlaps.with_velocities(Velocities { scalars, ..Velocities::default() })
            }
            None => overlaps,
        }
    }

    fn is_sound(&self) -> bool {
        self.sound
    }

    fn weights(&self) -> Option<Mat> {
        Some(match &self.ways {
            Some(ways) => ways.with_velocities(&self.weights),
            None => self.weights.clone(),
        })
    }

    fn fault(&self) -> Option<EngineError> {
        self.ways.as_ref().and_then(|ways| ways.fault())
    }

    fn batch_loss(&self) -> Option<f64> {
        match &self.ways {
            Some(ways) => ways.mask().and_then(|mask| self.mean_loss(Some(mask))),
            None => self.train_loss(),
        }
    }

    fn train_loss(&self) -> Option<f64> {
        self.mean_loss(None)
    }

    fn report_every(&self) -> u64 {
        (1_000_000_000 / (self.samples * self.dimension()).max(1) as u64).clamp(1, 2048)
    }
}

impl<T: Number> FullBatchChain<T> {
    /// The mean loss over all samples, or over those of a batch; `None` for an empty batch.
    fn mean_loss(&self, mask: Option<&[bool]>) -> Option<f64> {
        let (k, f) = (self.shape.trained, self.shape.frozen);
        let weights: Vec<Vec<T>> = (0..k).map(|i| round(self.weights.row(i))).collect();
        let parts = self.over_pieces(|(first, last)| {
            let (mut room, mut tail) = (Vec::new(), Vec::new());
            let mut fields = vec![0.0; (k + f) * ROWS_PER_PASS];
            let (mut losses, mut total) = ([0.0; ROWS_PER_PASS], 0.0);
            for at in (first..last).step_by(ROWS_PER_PASS) {
                let size = ROWS_PER_PASS.min(last - at);
                let x = self.four(at, size, &mut room, &mut tail);
                for (i, w) in weights.iter().enumerate() {
                    let mut out = [T::default(); ROWS_PER_PASS];
                    T::project(x, w, &mut out);
                    for (lane, h) in out.iter().enumerate().take(size) {
                        fields[i * size + lane] = h.to_double();
                    }
                }
                for n in 0..f {
                    fields[(k + n) * size..(k + n + 1) * size]
                        .copy_from_slice(&self.frozen[n * self.samples + at..][..size]);
                }
                let noise = &self.noise[at..at + size];
                let batch = Batch::new(&fields[..(k + f) * size], size, &self.scalars, noise);
                let batch = Batch { labels: self.labels_of(at, size), ..batch };
                self.rule.loss_batch(&batch, &mut losses[..size]);
                match mask {
                    None => total += losses[..size].iter().sum::<f64>(),
                    Some(mask) => {
                        let chosen = losses[..size].iter().zip(&mask[at..]).filter(|(_, seen)| **seen);
                        total += chosen.map(|(loss, _)| loss).sum::<f64>();
                    }
                }
            }
            total
        });
        let count = mask.map_or(self.samples, |mask| mask.iter().filter(|seen| **seen).count());
        (count > 0).then(|| parts.iter().sum::<f64>() / count as f64)
    }
}
