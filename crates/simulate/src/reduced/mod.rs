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
//! coordinate. Derivations: docs/derivations/power-law-spectra.md#s8-2,
//! docs/derivations/quadratic-networks.md#s8-2, docs/derivations/lora.md#s9.

mod eigenspace;
mod group;

use crate::chain::{Chain, Group, ReplicaAddress, ReplicaOrder, run_replicas};
use crate::kernels;
use crate::noise::StepNoise;
use crate::ways::reduced::WaysReducedChain;
use didact_math::linalg::{Mat, dot};
use didact_math::random::BartlettFactor;
use didact_model::constraint::{Constraint, Retraction, inverse_of_barred};
use didact_model::engine::{Cost, EngineOptions, OptionError};
use didact_model::rule::{Batch, LocalRule};
use didact_model::timed::{Losses, seconds_of_looks, seconds_per_kick};
use didact_model::{
    EndState, Engine, EngineError, Kick, Monitor, Overlaps, Problem, Record, Sample, Shape, Trajectory, Way,
};
use eigenspace::{Eigenspace, project_batch};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Exact-in-law simulation of the overlaps.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reduced;

/// The engine `reduced` has no options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReducedOptions {}

impl EngineOptions for ReducedOptions {
    const ABOUT: &'static str = "the overlaps alone, exact in law at any finite d, at a cost free of d";

    fn engine(&self) -> Result<Box<dyn Engine>, OptionError> {
        Ok(Box::new(Reduced))
    }
}

impl Engine for Reduced {
    fn name(&self) -> &'static str {
        "reduced"
    }

    fn replicas_stand_alone(&self) -> bool {
        true
    }

    fn memory(&self, problem: &Problem, record: &Record) -> f64 {
        problem.spectrum.len() as f64 * (problem.rule.shape().rows() as f64).powi(2) * 8.0 + record.bytes()
    }

    fn cost(&self, problem: &Problem, record: &Record) -> Cost {
        let shape = problem.rule.shape();
        let (trained, rows) = (shape.trained as f64, shape.rows() as f64);
        let (blocks, batch) = (problem.spectrum.len() as f64, problem.training.batch as f64);
        let steps = problem.steps_of(record) * f64::from(record.replicas);
        // Fields and kicks of every sample, and the factor of the trained rows; frozen rows cost little beyond that.
        let factor = blocks * trained * trained * rows * 6e-10;
        let kick = seconds_per_kick(problem, problem.training.batch);
        let alone = 1.1e-7 + batch * (rows * 4e-9 + kick) + factor;
        // Replicas that step together share the vector registers.
        let together = problem.rule.steps_in_lanes() && record.replicas >= 8;
        let step = if together { 0.35 * alone } else { alone };
        Cost {
            steps: Some(steps),
            memory: self.memory(problem, record),
            seconds: steps * step
                + f64::from(record.replicas) * seconds_of_looks(problem, record, Losses::Simulated),
        }
    }

    fn refuses(&self, way: Way) -> Option<(&'static str, &'static str)> {
        match way {
            Way::Sign => Some(("take signs coordinate by coordinate", "use \"ode\" or \"direct\"")),
            Way::Adam => Some(("divide coordinate by coordinate as Adam does", "use \"ode\" or \"direct\"")),
            Way::Batches => Some((
                "choose batches of a training set: its samples are fresh",
                "use \"full-batch\" or \"dmft\"",
            )),
            Way::Inputs => Some((
                "draw fields of inputs that are not Gaussian: it knows overlaps alone",
                "use \"direct\", beside the Gaussian theory of \"ode\"",
            )),
            _ => None,
        }
    }

    fn run_with_end_states(
        &self,
        problem: &Problem,
        record: &Record,
        monitor: &dyn Monitor,
    ) -> Result<(Trajectory, Vec<EndState>), EngineError> {
        if !problem.training.is_plain() {
            let make = |problem: &Problem, start: &Overlaps, address: ReplicaAddress| {
                WaysReducedChain::new(problem, start, address, record.begin)
            };
            return run_replicas(self, problem, record, monitor, ReplicaOrder::Parallel, make);
        }
        run_replicas(
            self,
            problem,
            record,
            monitor,
            ReplicaOrder::Groups { size: group::LANES, form: ReducedChain::group },
            ReducedChain::new,
        )
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
    pub fn new(problem: &Problem, start: &Overlaps, address: ReplicaAddress) -> Result<Self, EngineError> {
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
                space.frozen_factor.bar(&space.frozen, training.constraint.barred(&*problem.rule));
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
            noise: StepNoise::new(address, normals, labels, freedom),
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

    /// A group of three to eight chains that step together; chains that cannot do so are given back. See `group/`.
    pub fn group(chains: Vec<Self>) -> Result<Box<dyn Group<Member = Self>>, Vec<Self>> {
        group::LaneGroup::of(chains).map(|group| Box::new(group) as Box<_>)
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
                space.frozen_factor.shift(along, space.root * c, shared);
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
        let batch = Batch::new(&work.batch_fields, b, &self.scalars, &work.labels);
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
