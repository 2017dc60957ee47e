//! The overlaps alone, exact in law at any finite d, at a cost free of d.
//!
//! In eigenspace b the input is √λ_b z, z ~ N(0, 1) in d_b dimensions. A step needs the projections of z on the rows
//! and, of the rest of z, only its length: χ² with the remaining degrees of freedom. So the Gram matrices form a
//! Markov chain of their own. It is kept in factor form, frozen rows first:
//!
//!   frozen = T_b^{1/2} [1 0],   trained = [along | own],   Q_b = along alongᵀ + own ownᵀ,
//!
//! so that nothing is lost when a trained row approaches the frozen ones. A mini-batch needs, in place of χ², one
//! Wishart matrix of the kicks (Bartlett). An eigenspace with no more dimensions than rows is kept coordinate by
//! coordinate. References: spec power-law-spectra 8.2, quadratic-networks 8.2, lora-single-index 9.

use crate::chain::{Chain, Order, Seat, run_replicas};
use crate::kernels;
use crate::noise::StepNoise;
use crate::still::Still;
use didact_math::linalg::{Mat, cholesky_psd, dot};
use didact_math::random::BartlettFactor;
use didact_model::constraint::{Constraint, Retraction, inverse_of_barred};
use didact_model::overlaps::OverlapsError;
use didact_model::rule::{Batch, LocalRule};
use didact_model::{
    Engine, EngineError, Kick, Monitor, Overlaps, Problem, Record, Sample, Shape, Trajectory,
};
use std::sync::Arc;

/// Exact-in-law simulation of the overlaps.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reduced;

impl Engine for Reduced {
    fn name(&self) -> &'static str {
        "reduced"
    }

    fn run(
        &self,
        problem: &Problem,
        record: &Record,
        monitor: &dyn Monitor,
    ) -> Result<Trajectory, EngineError> {
        run_replicas(self, problem, record, monitor, Order::Together, ReducedChain::new)
    }
}

/// Factor of the Gram of the rows in one eigenspace.
#[derive(Debug, Clone)]
struct Eigenspace {
    /// √λ_b.
    root: f64,
    /// Coordinates shared with the frozen rows.
    shared: usize,
    /// Frozen rows, frozen x shared.
    frozen: Vec<f64>,
    /// Trained rows along those coordinates, trained x shared.
    along: Vec<f64>,
    /// Trained rows beyond them, trained x trained lower triangle; empty when `rest` is.
    own: Vec<f64>,
    /// Dimensions outside the span of all rows; `None` when the eigenspace is kept coordinate by coordinate.
    rest: Option<u64>,
    /// Where the frozen factor ends and where motion is forbidden; see `still.rs`.
    still: Still,
}

impl Eigenspace {
    fn new(gram: &Mat, shape: Shape, lambda: f64, size: u64, block: usize) -> Result<Self, EngineError> {
        let Shape { trained: k, frozen: f, .. } = shape;
        let p = k + f;
        // Frozen rows first: row r of the factor is row `order(r)` of the Gram.
        let order = |r: usize| if r < f { k + r } else { r - f };
        let sorted = Mat::from_fn(p, p, |i, j| gram[(order(i), order(j))]);
        let lower =
            cholesky_psd(&sorted).map_err(|_| EngineError::Overlaps(OverlapsError::NotPositive { block }))?;
        let (columns, rest) = if size > p as u64 {
            ((0..f).collect::<Vec<_>>(), Some(size - p as u64))
        } else {
            let mut used: Vec<usize> = (0..p).filter(|&j| lower[(j, j)] > 0.0).collect();
            if used.len() as u64 > size {
                return Err(EngineError::Overlaps(OverlapsError::Rank { block, rank: used.len(), size }));
            }
            // Zero columns complete the coordinates: the input moves rows there too.
            used.extend((0..p).filter(|&j| lower[(j, j)] == 0.0).take(size as usize - used.len()));
            (used, None)
        };
        let shared = columns.len();
        let pick = |rows: std::ops::Range<usize>| {
            rows.flat_map(|i| columns.iter().map(|&j| lower[(i, j)]).collect::<Vec<_>>())
                .collect::<Vec<f64>>()
        };
        let own = if rest.is_some() {
            (0..k * k).map(|at| lower[(f + at / k, f + at % k)]).collect()
        } else {
            Vec::new()
        };
        let (frozen, along) = (pick(0..f), pick(f..p));
        let still = Still::of(&frozen, shared);
        Ok(Self { root: lambda.sqrt(), shared, frozen, along, own, rest, still })
    }

    /// Normals per sample.
    fn coordinates(&self, trained: usize) -> usize {
        self.shared + if self.rest.is_some() { trained } else { 0 }
    }

    fn gram(&self, shape: Shape) -> Mat {
        let Shape { trained: k, frozen: f, .. } = shape;
        let along = |i: usize| &self.along[i * self.shared..(i + 1) * self.shared];
        let frozen = |n: usize| &self.frozen[n * self.shared..(n + 1) * self.shared];
        let own = |i: usize| if self.own.is_empty() { &[][..] } else { &self.own[i * k..(i + 1) * k] };
        let entry = |i: usize, j: usize| match (i < k, j < k) {
            (true, true) => dot(along(i), along(j)) + dot(own(i), own(j)),
            (true, false) => dot(along(i), frozen(j - k)),
            (false, true) => dot(along(j), frozen(i - k)),
            (false, false) => dot(frozen(i - k), frozen(j - k)),
        };
        Mat::from_fn(k + f, k + f, entry)
    }

    /// Adds √λ (rows · z) to the fields of one sample.
    #[inline]
    fn project(&self, z: &[f64], k: usize, fields: &mut [f64]) {
        let (shared, own) = z.split_at(self.shared);
        let (trained, frozen) = fields.split_at_mut(k);
        for (i, h) in trained.iter_mut().enumerate() {
            let mut sum = dot(&self.along[i * self.shared..(i + 1) * self.shared], shared);
            if !self.own.is_empty() {
                sum += dot(&self.own[i * k..=i * k + i], &own[..=i]);
            }
            *h += self.root * sum;
        }
        self.still.project(&self.frozen, self.root, shared, frozen);
    }

    /// w_i ← scale_i w_i for all trained rows.
    fn scale(&mut self, scale: &[f64]) {
        let k = scale.len();
        for (i, s) in scale.iter().enumerate() {
            self.along[i * self.shared..(i + 1) * self.shared].iter_mut().for_each(|v| *v *= s);
            if !self.own.is_empty() {
                self.own[i * k..(i + 1) * k].iter_mut().for_each(|v| *v *= s);
            }
        }
    }

    /// |w_i|² in this eigenspace.
    fn squared_length(&self, i: usize, k: usize) -> f64 {
        let along = &self.along[i * self.shared..(i + 1) * self.shared];
        let own = if self.own.is_empty() { &[][..] } else { &self.own[i * k..(i + 1) * k] };
        dot(along, along) + dot(own, own)
    }
}

/// The chain of one replica.
pub struct ReducedChain {
    rule: Arc<dyn LocalRule>,
    shape: Shape,
    spaces: Vec<Eigenspace>,
    scalars: Vec<f64>,
    step_size: f64,
    scalar_step: f64,
    batch: usize,
    label_noise: f64,
    constraint: Constraint,
    /// |w_i|² to be kept.
    lengths: Vec<f64>,
    /// |a|² to be kept.
    scalar_length: f64,
    /// T⁻¹ of the frozen rows along which motion is forbidden.
    barred: Option<Mat>,
    noise: StepNoise,
    work: Work,
    sound: bool,
}

/// Buffers of a step, allocated once.
struct Work {
    fields: Vec<f64>,
    batch_fields: Vec<f64>,
    labels: Vec<f64>,
    kick: Kick,
    /// −s kick_i (batch 1), or −(s/B) kick_ij.
    coefficients: Vec<f64>,
    /// own + c zᵀ, trained x trained.
    moved: Vec<f64>,
    /// Its Gram.
    gram: Mat,
    scale: Vec<f64>,
}

impl ReducedChain {
    /// Starts from overlaps.
    pub fn new(problem: &Problem, start: &Overlaps, seat: Seat) -> Result<Self, EngineError> {
        let dimension = problem.finite_dimension("reduced")?;
        let shape = start.shape();
        let sizes =
            problem.spectrum.multiplicities(dimension).map_err(didact_model::problem::ProblemError::from)?;
        let spaces = start.blocks.iter().zip(problem.spectrum.eigenvalues()).zip(&sizes).enumerate();
        let mut spaces: Vec<Eigenspace> = spaces
            .map(|(b, ((gram, &lambda), &size))| Eigenspace::new(gram, shape, lambda, size, b))
            .collect::<Result<_, _>>()?;
        let (k, p) = (shape.trained, shape.rows());
        let training = &problem.training;
        let (batch, step_size) = (training.batch, problem.step_size(dimension));
        let plain = start.moment(&problem.spectrum, 0);
        let barred = match spaces.as_mut_slice() {
            // In one eigenspace the barred rows span coordinates of their own: those that do not move.
            [space] if batch == 1 => {
                space.still.bar(&space.frozen, training.constraint.barred(&*problem.rule));
                None
            }
            _ => inverse_of_barred(training.constraint.barred(&*problem.rule), &plain, k),
        };
        let normals: usize = spaces.iter().map(|s| s.coordinates(k)).sum::<usize>() * batch;
        let labels = if training.label_noise > 0.0 { batch } else { 0 };
        // Batch 1 needs a chi-square per eigenspace; a batch draws Wishart factors instead.
        let freedom =
            if batch == 1 { spaces.iter().map(|s| s.rest.unwrap_or(0)).collect() } else { Vec::new() };
        Ok(Self {
            rule: problem.rule.clone(),
            shape,
            scalars: start.scalars.clone(),
            step_size,
            scalar_step: step_size * training.scalar_ratio,
            batch,
            label_noise: training.label_noise,
            constraint: training.constraint,
            lengths: (0..k).map(|i| plain[(i, i)]).collect(),
            barred,
            scalar_length: dot(&start.scalars, &start.scalars),
            noise: StepNoise::new(seat, normals, labels, freedom),
            work: Work {
                fields: vec![0.0; p],
                batch_fields: vec![0.0; if batch > 1 { p * batch } else { 0 }],
                labels: vec![0.0; batch],
                kick: Kick::new(shape),
                coefficients: vec![0.0; k * batch],
                moved: vec![0.0; k * k],
                gram: Mat::zeros(k, k),
                scale: vec![1.0; k],
            },
            spaces,
            sound: true,
        })
    }

    fn single(&mut self) {
        let (k, s) = (self.shape.trained, self.step_size);
        let work = &mut self.work;
        work.fields.fill(0.0);
        let mut normals = self.noise.normals();
        for space in &self.spaces {
            let (z, later) = normals.split_at(space.coordinates(k));
            space.project(z, k, &mut work.fields);
            normals = later;
        }
        let noise = if self.label_noise > 0.0 { self.label_noise * self.noise.labels()[0] } else { 0.0 };
        self.rule.kick(&Sample { fields: &work.fields, scalars: &self.scalars, noise }, &mut work.kick);
        for (c, kick) in work.coefficients.iter_mut().zip(&work.kick.rows) {
            *c = -s * kick;
        }
        self.sound = work.coefficients.iter().all(|c| c.abs() < HUGE);
        let (step, length) = (self.scalar_step, self.scalar_length);
        self.constraint.move_scalars(&mut self.scalars, step, &work.kick.scalars, length);
        self.row_operations();
        let work = &mut self.work;
        let mut normals = self.noise.normals();
        for (b, space) in self.spaces.iter_mut().enumerate() {
            let (z, later) = normals.split_at(space.coordinates(k));
            normals = later;
            let (shared, own) = z.split_at(space.shared);
            for (i, &c) in work.coefficients.iter().enumerate() {
                let along = &mut space.along[i * space.shared..(i + 1) * space.shared];
                space.still.shift(along, space.root * c, shared);
            }
            if space.rest.is_none() {
                continue;
            }
            let norm = space.root * space.root * self.noise.chi_square(b);
            for (i, &c) in work.coefficients.iter().enumerate() {
                for j in 0..k {
                    work.moved[i * k + j] = space.own[i * k + j] + space.root * c * own[j];
                }
            }
            let c = &work.coefficients;
            fill_lower(k, &mut work.gram, |i, j| {
                dot(&work.moved[i * k..(i + 1) * k], &work.moved[j * k..(j + 1) * k]) + c[i] * c[j] * norm
            });
            cholesky_into(&work.gram, &mut space.own);
        }
    }

    /// The same for B samples: kicks C (trained x B), z one column per sample, Wishart in place of χ².
    fn batched(&mut self) {
        let (k, b, s) = (self.shape.trained, self.batch, self.step_size);
        let work = &mut self.work;
        let mut normals = self.noise.normals();
        work.batch_fields.fill(0.0);
        for space in &self.spaces {
            let (z, later) = normals.split_at(space.coordinates(k) * b);
            project_batch(space, z, k, b, &mut work.batch_fields);
            normals = later;
        }
        if self.label_noise > 0.0 {
            work.labels.iter_mut().zip(self.noise.labels()).for_each(|(l, z)| *l = self.label_noise * z);
        }
        let batch =
            Batch { fields: &work.batch_fields, size: b, scalars: &self.scalars, noise: &work.labels };
        self.rule.kick_batch(&batch, &mut work.coefficients, &mut work.kick.scalars);
        let per_sample = s / b as f64;
        work.coefficients.iter_mut().for_each(|c| *c *= -per_sample);
        let (step, length) = (self.scalar_step / b as f64, self.scalar_length);
        self.constraint.move_scalars(&mut self.scalars, step, &work.kick.scalars, length);
        self.row_operations();
        let work = &mut self.work;
        // The part of the kicks outside all rows: Gram ~ Wishart(rest, C Cᵀ), shared shape, independent draws.
        fill_lower(k, &mut work.gram, |i, j| {
            kernels::dot(&work.coefficients[i * b..(i + 1) * b], &work.coefficients[j * b..(j + 1) * b])
        });
        // Not NaN either.
        self.sound = (0..k).all(|i| work.gram[(i, i)] < HUGE * HUGE);
        let mut shape_factor = vec![0.0; k * k];
        cholesky_into(&work.gram, &mut shape_factor);
        let shape_factor = Mat::from_fn(k, k, |i, j| shape_factor[i * k + j]);
        let mut stream = self.noise.irregular();
        let mut normals = self.noise.normals();
        for space in &mut self.spaces {
            let (z, later) = normals.split_at(space.coordinates(k) * b);
            normals = later;
            let moves = |i: usize, column: usize| {
                space.root
                    * kernels::dot(&work.coefficients[i * b..(i + 1) * b], &z[column * b..(column + 1) * b])
            };
            for i in 0..k {
                for column in 0..space.shared {
                    space.along[i * space.shared + column] += moves(i, column);
                }
                if space.rest.is_some() {
                    for j in 0..k {
                        work.moved[i * k + j] = space.own[i * k + j] + moves(i, space.shared + j);
                    }
                }
            }
            let Some(rest) = space.rest else { continue };
            let bartlett = BartlettFactor::draw(&mut stream, k, rest);
            let outside =
                shape_factor.times(&Mat::from_fn(k, bartlett.columns(), |i, j| bartlett.row(i)[j])).gram();
            let lambda = space.root * space.root;
            fill_lower(k, &mut work.gram, |i, j| {
                dot(&work.moved[i * k..(i + 1) * k], &work.moved[j * k..(j + 1) * k])
                    + lambda * outside[(i, j)]
            });
            cholesky_into(&work.gram, &mut space.own);
        }
    }

    /// The part M of W ← M W + c xᵀ: decay, tangent gradients, no motion along frozen rows.
    fn row_operations(&mut self) {
        let Constraint { sphere, weight_decay, .. } = self.constraint;
        let (k, b) = (self.shape.trained, self.batch);
        if weight_decay > 0.0 || sphere == Some(Retraction::Tangent) {
            self.work.scale.fill(1.0 - self.step_size * weight_decay);
            if sphere == Some(Retraction::Tangent) {
                for i in 0..k {
                    // −s c (x − w (w·x)/|w|²): the projection scales the row itself.
                    let along = mean_product(&self.work, i, i, b);
                    self.work.scale[i] -= along / self.lengths[i];
                }
            }
            let scale = std::mem::take(&mut self.work.scale);
            self.spaces.iter_mut().for_each(|space| space.scale(&scale));
            self.work.scale = scale;
        }
        if let Some(inverse) = &self.barred {
            let f = inverse.rows();
            let moved = Mat::from_fn(k, f, |i, n| mean_product(&self.work, i, k + n, b));
            let back = moved.times(inverse);
            for space in &mut self.spaces {
                for i in 0..k {
                    for n in 0..f {
                        let frozen = &space.frozen[n * space.shared..(n + 1) * space.shared];
                        let along = &mut space.along[i * space.shared..(i + 1) * space.shared];
                        along.iter_mut().zip(frozen).for_each(|(a, v)| *a -= back[(i, n)] * v);
                    }
                }
            }
        }
    }

    fn retract(&mut self) {
        let k = self.shape.trained;
        for i in 0..k {
            let length: f64 = self.spaces.iter().map(|s| s.squared_length(i, k)).sum();
            self.work.scale[i] = (self.lengths[i] / length).sqrt();
        }
        let scale = std::mem::take(&mut self.work.scale);
        self.spaces.iter_mut().for_each(|space| space.scale(&scale));
        self.work.scale = scale;
    }
}

/// Kicks beyond this are a divergence: their squares are still finite.
const HUGE: f64 = 1e100;

/// Σ_samples coefficient_i h_row: what the step would add along a row.
fn mean_product(work: &Work, i: usize, row: usize, batch: usize) -> f64 {
    if batch == 1 {
        return work.coefficients[i] * work.fields[row];
    }
    kernels::dot(
        &work.coefficients[i * batch..(i + 1) * batch],
        &work.batch_fields[row * batch..(row + 1) * batch],
    )
}

/// Adds √λ rows · Z to the fields of a batch; Z is coordinates x B.
fn project_batch(space: &Eigenspace, z: &[f64], k: usize, b: usize, fields: &mut [f64]) {
    let mut add = |row: usize, weight: f64, column: usize| {
        if weight != 0.0 {
            let (out, z) = (&mut fields[row * b..(row + 1) * b], &z[column * b..(column + 1) * b]);
            kernels::add_scaled(out, weight, z);
        }
    };
    for column in 0..space.shared {
        for i in 0..k {
            add(i, space.root * space.along[i * space.shared + column], column);
        }
        for n in 0..space.frozen.len() / space.shared.max(1) {
            add(k + n, space.root * space.frozen[n * space.shared + column], column);
        }
    }
    if !space.own.is_empty() {
        for i in 0..k {
            for j in 0..=i {
                add(i, space.root * space.own[i * k + j], space.shared + j);
            }
        }
    }
}

fn fill_lower(n: usize, out: &mut Mat, entry: impl Fn(usize, usize) -> f64) {
    for i in 0..n {
        for j in 0..=i {
            out[(i, j)] = entry(i, j);
        }
    }
}

/// Lower Cholesky factor of a small PSD matrix (lower triangle read), zero pivots to zero columns, without checks.
#[inline]
fn cholesky_into(a: &Mat, l: &mut [f64]) {
    let n = a.rows();
    for i in 0..n {
        for j in 0..i {
            let pivot = l[j * n + j];
            let rest = a[(i, j)] - dot(&l[i * n..i * n + j], &l[j * n..j * n + j]);
            l[i * n + j] = if pivot > 0.0 { rest / pivot } else { 0.0 };
        }
        let pivot = a[(i, i)] - dot(&l[i * n..i * n + i], &l[i * n..i * n + i]);
        l[i * n + i] = if pivot > 1e-15 * a[(i, i)] { pivot.sqrt() } else { 0.0 };
        l[i * n + i + 1..(i + 1) * n].fill(0.0);
    }
}

impl Chain for ReducedChain {
    #[inline]
    fn step(&mut self) {
        self.noise.advance();
        if self.batch == 1 {
            self.single();
        } else {
            self.batched();
        }
        if self.constraint.sphere.is_some() {
            self.retract();
        }
    }

    fn overlaps(&self) -> Overlaps {
        let blocks = self.spaces.iter().map(|s| s.gram(self.shape)).collect();
        Overlaps::from_engine(self.shape, blocks, self.scalars.clone())
    }

    fn is_sound(&self) -> bool {
        self.sound
    }
}
