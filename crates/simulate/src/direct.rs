//! Plain one-pass SGD on d-dimensional weights: the definition of right.

use crate::chain::{Chain, Order, Seat, run_replicas};
use crate::kernels::{self, Lanes, TOGETHER};
use crate::noise::StepNoise;
use didact_math::linalg::{Mat, dot};
use didact_model::constraint::{Constraint, Retraction, inverse_of_barred};
use didact_model::problem::ProblemError;
use didact_model::rule::{Batch, LocalRule};
use didact_model::{
    Engine, EngineError, Kick, Monitor, Overlaps, Problem, Record, Sample, Shape, Trajectory,
};
use std::borrow::Cow;
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
        run_replicas(self, problem, record, monitor, Order::Together, DirectChain::new)
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
    /// A batch too large for the cache is drawn, projected and added in slabs.
    slab: Option<Slab>,
    fields: Vec<f64>,
    labels: Vec<f64>,
    kicks: Vec<f64>,
    kick: Kick,
    sound: bool,
}

/// Four steps of one sample each, which share one pass over the weights (they exceed the first-level cache).
///
/// The inputs are known in advance, so the fields of step s follow from products with the weights W at the start of the
/// block and of the inputs among themselves:
///
///   w_i(s)·x_s = w_i·x_s + Σ_{r<s} c_ir x_r·x_s,       W ← W + C X after the last step,
///
/// with c_ir = −s kick_i of step r. The same numbers as step by step, up to rounding.
struct Block {
    /// Steps done; the weights are up to date when all are.
    done: usize,
    /// W Xᵀ, rows x 4.
    fields: Vec<[f64; TOGETHER]>,
    /// X Xᵀ above the diagonal.
    gram: [[f64; TOGETHER]; TOGETHER],
    /// C, trained x 4; zero for steps to come.
    kicks: Vec<f64>,
    room: Vec<[Lanes; TOGETHER]>,
}

/// Inputs that are worked on while they are in the second-level cache: 256 kB.
const SLAB: usize = 1 << 15;

/// Room for part of a batch, and the sum Σ_j c_ij x_j of all parts. The numbers are those of the whole batch at once, up to
/// the order of additions.
struct Slab {
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
    fn new(shape: Shape, batch: usize, d: usize) -> Option<Self> {
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

impl Block {
    fn new(shape: Shape) -> Self {
        Self {
            done: TOGETHER,
            fields: vec![[0.0; TOGETHER]; shape.rows()],
            gram: [[0.0; TOGETHER]; TOGETHER],
            kicks: vec![0.0; shape.trained * TOGETHER],
            room: vec![[[0.0; 4]; TOGETHER]; shape.rows()],
        }
    }

    fn begin(&mut self, weights: &Mat, inputs: &[f64]) {
        self.done = 0;
        self.kicks.fill(0.0);
        kernels::project_four(weights, inputs, &mut self.room, &mut self.fields, &mut self.gram);
    }

    /// Fields of the next step.
    fn fields(&self, out: &mut [f64]) {
        let s = self.done;
        for (h, fields) in out.iter_mut().zip(&self.fields) {
            *h = fields[s];
        }
        for (h, c) in out.iter_mut().zip(self.kicks.chunks_exact(TOGETHER)) {
            for r in 0..s {
                *h += c[r] * self.gram[r][s];
            }
        }
    }
}

impl DirectChain {
    /// Starts from weights that have the given overlaps.
    pub fn new(problem: &Problem, start: &Overlaps, seat: Seat) -> Result<Self, EngineError> {
        let dimension = problem.finite_dimension("direct")?;
        let sizes = problem.spectrum.multiplicities(dimension).map_err(ProblemError::from)?;
        let weights = crate::weights::with_overlaps(start, &sizes)?;
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
        // Constraints act on whole rows at every step.
        let block = (batch == 1 && training.constraint == Constraint::none()).then(|| Block::new(shape));
        let samples = if block.is_some() { TOGETHER } else { batch };
        let slab = Slab::new(shape, batch, d);
        // What is drawn in slabs is not drawn ahead.
        let ahead = if slab.is_some() { 0 } else { samples * d };
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
            noise: StepNoise::new(seat, ahead, labels, Vec::new()),
            block,
            slab,
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
                    kernels::add_scaled(self.weights.row_mut(i), -back[(i, n)], &frozen);
                }
            }
        }
    }

    /// One step on a batch in slabs: all samples see the same weights, so only the sum of their moves is kept.
    fn slab_step(&mut self, slab: &mut Slab) {
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
            kernels::add_scaled(self.weights.row_mut(i), 1.0, slab.moves.row(i));
        }
        if self.constraint.sphere.is_some() {
            self.retract();
        }
    }

    /// One step by itself.
    fn plain_step(&mut self) {
        if let Some(mut slab) = self.slab.take() {
            self.slab_step(&mut slab);
            self.slab = Some(slab);
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
            Some(block) if (1..TOGETHER).contains(&block.done) => {
                let mut weights = self.weights.clone();
                let inputs = self.noise.normals();
                kernels::add_samples(&mut weights, self.shape.trained, &block.kicks, inputs, TOGETHER);
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
        if block.done == TOGETHER {
            self.draw();
            block.begin(&self.weights, self.noise.normals());
        }
        block.fields(&mut self.fields);
        self.kick(block.done);
        for (c, kick) in block.kicks.iter_mut().skip(block.done).step_by(TOGETHER).zip(&self.kicks) {
            *c = *kick;
        }
        block.done += 1;
        if block.done == TOGETHER {
            kernels::add_samples(
                &mut self.weights,
                self.shape.trained,
                &block.kicks,
                self.noise.normals(),
                TOGETHER,
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
mod tests {
    use super::*;
    use didact_model::start::Given;
    use didact_model::{Clock, Spectrum, Training};

    /// Three trained sine units with trained output weights learn from two: enough of a rule to step with.
    #[derive(Debug)]
    struct Sines;

    impl Sines {
        fn error(sample: &Sample) -> f64 {
            let label: f64 = sample.fields[3..].iter().map(|h| h.sin()).sum();
            let output: f64 = sample.fields.iter().zip(sample.scalars).map(|(h, a)| a * h.sin()).sum();
            label + sample.noise - output
        }
    }

    impl LocalRule for Sines {
        fn shape(&self) -> Shape {
            Shape { trained: 3, frozen: 2, scalars: 3 }
        }
        fn loss(&self, sample: &Sample) -> f64 {
            0.5 * Self::error(sample).powi(2)
        }
        fn kick(&self, sample: &Sample, out: &mut Kick) {
            let error = Self::error(sample);
            for i in 0..3 {
                out.rows[i] = -error * sample.scalars[i] * sample.fields[i].cos();
                out.scalars[i] = -error * sample.fields[i].sin();
            }
        }
    }

    /// The definition, one step at a time, on the same inputs.
    #[test]
    fn blocks_of_steps_give_the_trajectory_of_single_steps() {
        let rule: Arc<dyn LocalRule> = Arc::new(Sines);
        let spectrum = Spectrum::isotropic();
        let blocks = (&Mat::identity(3).scaled(0.3), &Mat::zeros(3, 2), &Mat::identity(2));
        let start = Overlaps::spread(rule.shape(), &spectrum, blocks, vec![1.0, 0.5, -0.3]).unwrap();
        let training = Training { label_noise: 0.1, ..Training::online(0.7) };
        let (d, seat) = (37, Seat { seed: 5, replica: 1, stage: 0 });
        let problem = Problem {
            rule: rule.clone(),
            spectrum,
            dimension: Some(d as u64),
            training,
            start: Arc::new(Given(start.clone())),
            clock: Clock::Steps,
        };
        let mut chain = DirectChain::new(&problem, &start, seat).unwrap();
        let (mut weights, mut scalars) = (chain.weights.clone(), start.scalars.clone());
        let mut noise = StepNoise::new(seat, TOGETHER * d, TOGETHER, Vec::new());
        let (size, mut kick) = (problem.step_size(d as u64), Kick::new(rule.shape()));
        for step in 0..401 {
            chain.step();
            let place = step % TOGETHER;
            if place == 0 {
                noise.advance();
            }
            let x = &noise.normals()[place * d..(place + 1) * d];
            let fields: Vec<f64> = (0..5).map(|i| dot(weights.row(i), x)).collect();
            let sample = Sample { fields: &fields, scalars: &scalars, noise: 0.1 * noise.labels()[place] };
            rule.kick(&sample, &mut kick);
            for i in 0..3 {
                weights.row_mut(i).iter_mut().zip(x).for_each(|(w, x)| *w -= size * kick.rows[i] * x);
                scalars[i] -= size * kick.scalars[i];
            }
            // Measured inside blocks too: they are finished on a copy then.
            let mut difference = chain.overlaps().blocks[0].clone();
            difference.add_scaled(-1.0, &weights.gram());
            assert!(difference.max_abs() < 1e-12, "step {step}: {difference:?}");
        }
        assert!((weights.gram()[(0, 0)] - 0.3).abs() > 0.1, "the rows have moved");
    }

    /// A batch in slabs is the batch at once: the definition, on the same inputs.
    #[test]
    fn slabs_of_a_large_batch_give_the_step_of_the_whole_batch() {
        let rule: Arc<dyn LocalRule> = Arc::new(Sines);
        let spectrum = Spectrum::isotropic();
        let blocks = (&Mat::identity(3).scaled(0.3), &Mat::zeros(3, 2), &Mat::identity(2));
        let start = Overlaps::spread(rule.shape(), &spectrum, blocks, vec![1.0, 0.5, -0.3]).unwrap();
        let (d, batch, seat) = (70, 4001, Seat { seed: 5, replica: 1, stage: 0 });
        let training =
            Training { label_noise: 0.1, batch, constraint: Constraint::sphere(), ..Training::online(20.0) };
        let problem = Problem {
            rule: rule.clone(),
            spectrum,
            dimension: Some(d as u64),
            training,
            start: Arc::new(Given(start.clone())),
            clock: Clock::Steps,
        };
        let mut chain = DirectChain::new(&problem, &start, seat).unwrap();
        assert!(chain.slab.is_some(), "the batch is too small for this test");
        let (mut weights, mut scalars) = (chain.weights.clone(), start.scalars.clone());
        let mut noise = StepNoise::new(seat, 0, batch, Vec::new());
        let size = problem.step_size(d as u64) / batch as f64;
        let (mut kick, mut first) = (Kick::new(rule.shape()), Vec::new());
        for step in 0..3 {
            chain.step();
            noise.advance();
            let mut inputs = vec![0.0; batch * d];
            noise.inputs().fill_normal(&mut inputs);
            assert_ne!(first, inputs[..d], "step {step} has inputs of its own");
            first = inputs[..d].to_vec();
            let (old, old_scalars) = (weights.clone(), scalars.clone());
            for (x, label) in inputs.chunks_exact(d).zip(noise.labels()) {
                let fields: Vec<f64> = (0..5).map(|i| dot(old.row(i), x)).collect();
                rule.kick(&Sample { fields: &fields, scalars: &old_scalars, noise: 0.1 * label }, &mut kick);
                for i in 0..3 {
                    weights.row_mut(i).iter_mut().zip(x).for_each(|(w, x)| *w -= size * kick.rows[i] * x);
                    scalars[i] -= size * kick.scalars[i];
                }
            }
            for i in 0..3 {
                let scale = (0.3 / dot(weights.row(i), weights.row(i))).sqrt();
                weights.row_mut(i).iter_mut().for_each(|w| *w *= scale);
            }
            let mut difference = chain.overlaps().blocks[0].clone();
            difference.add_scaled(-1.0, &weights.gram());
            assert!(difference.max_abs() < 1e-12, "step {step}: {difference:?}");
            for (a, b) in chain.overlaps().scalars.iter().zip(&scalars) {
                assert!((a - b).abs() < 1e-12, "step {step}: {a} {b}");
            }
        }
    }
}
