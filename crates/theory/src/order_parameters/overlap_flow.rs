//! The equations of the overlaps.

use super::WORTH_THREADS;
use didact_math::dispatch;
use didact_math::linalg::{Mat, dot};
use didact_math::ode::VectorField;
use didact_model::{Averages, Law, Needed, Overlaps, Problem, Shape};
use rayon::prelude::*;

/// Where the overlaps stand in the state vector: per eigenspace R_b (row by row) and the lower triangle of Q_b, then
/// the scalars. T_b does not move and is kept aside.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) shape: Shape,
    pub(crate) start: Overlaps,
}

impl Layout {
    fn per_block(&self) -> usize {
        let Shape { trained: k, frozen: f, .. } = self.shape;
        k * f + k * (k + 1) / 2
    }

    /// The length of the pieces in which the part of the state before the scalars is read. A model that trains scalars alone has no
    /// number per block, and then this part is empty.
    fn chunk(&self) -> usize {
        self.per_block().max(1)
    }

    pub(crate) fn dimension(&self) -> usize {
        self.start.blocks.len() * self.per_block() + self.shape.scalars
    }

    pub(crate) fn pack(&self, overlaps: &Overlaps) -> Vec<f64> {
        let mut state = vec![0.0; self.dimension()];
        let scalars = self.dimension() - self.shape.scalars;
        for (g, part) in overlaps.blocks.iter().zip(state[..scalars].chunks_exact_mut(self.chunk())) {
            self.pack_block(g, part);
        }
        state[scalars..].copy_from_slice(&overlaps.scalars);
        state
    }

    fn pack_block(&self, g: &Mat, part: &mut [f64]) {
        let k = self.shape.trained;
        let mut at = 0;
        for i in 0..k {
            let width = self.shape.frozen;
            part[at..at + width].copy_from_slice(&g.row(i)[k..]);
            part[at + width..=at + width + i].copy_from_slice(&g.row(i)[..=i]);
            at += width + i + 1;
        }
    }

    /// Writes the moving entries of a block, mirrored.
    fn unpack_block(&self, part: &[f64], g: &mut Mat) {
        let Shape { trained: k, frozen: f, .. } = self.shape;
        let mut at = 0;
        for i in 0..k {
            g.row_mut(i)[k..].copy_from_slice(&part[at..at + f]);
            g.row_mut(i)[..=i].copy_from_slice(&part[at + f..=at + f + i]);
            for n in 0..f {
                g[(k + n, i)] = part[at + n];
            }
            for j in 0..i {
                g[(j, i)] = part[at + f + j];
            }
            at += f + i + 1;
        }
    }

    pub(crate) fn unpack(&self, state: &[f64]) -> Overlaps {
        let mut overlaps = self.start.clone();
        let scalars = self.dimension() - self.shape.scalars;
        for (g, part) in overlaps.blocks.iter_mut().zip(state[..scalars].chunks_exact(self.chunk())) {
            self.unpack_block(part, g);
        }
        overlaps.scalars.copy_from_slice(&state[scalars..]);
        overlaps
    }
}

/// Drift of the overlaps, per eigenspace b of the input covariance, in gradient-flow time t = s x steps:
///
///   dG_b/dt = B_b G_b + G_b B_bᵀ + (s d_b/B) λ_b N,        B_b = −λ_b A − γ 1 + [0 | M T⁻¹] − diag(ν),
///   A = E[∂kick],  N = E[kick kickᵀ],  fields ~ N(0, C),  C = Σ_b λ_b G_b;  A and N vanish on frozen rows,
///   da/dt = −(s_a/s) E[∂loss/∂a], projected off a when the scalars are kept on a sphere.
///
/// The constraints are row operations: γ is weight decay; M T⁻¹, with M = Σ_b λ_b (A G_b)[·, frozen] and T the plain
/// Gram of the frozen rows, takes out motion along the frozen rows; ν_i = (d/dt |w_i|²)/(2|w_i|²) keeps lengths.
/// Derived in docs/derivations/power-law-spectra.md#eq-16 and docs/derivations/power-law-spectra.md#eq-17.
/// One eigenspace, erf units: Saad & Solla (1995).
pub(crate) struct OverlapFlow<'a> {
    problem: &'a Problem,
    needed: Needed,
    pub(crate) layout: Layout,
    blocks: Vec<Mat>,
    covariance: Mat,
    pub(crate) averages: Averages,
    /// B_b G_b of every eigenspace, trained x rows.
    motion: Vec<Mat>,
    /// T⁻¹ of the frozen rows along which motion is forbidden.
    barred: Option<Mat>,
    pub(crate) worst_error: f64,
}

impl<'a> OverlapFlow<'a> {
    pub(crate) fn new(problem: &'a Problem, start: &Overlaps, needed: Needed) -> Self {
        let shape = start.shape();
        let count = problem.training.constraint.barred(&*problem.rule);
        let plain = start.moment(&problem.spectrum, 0);
        let barred = didact_model::constraint::inverse_of_barred(count, &plain, shape.trained);
        Self {
            problem,
            needed,
            layout: Layout { shape, start: start.clone() },
            blocks: start.blocks.clone(),
            covariance: Mat::zeros(shape.rows(), shape.rows()),
            averages: Averages::new(shape),
            motion: vec![Mat::zeros(shape.trained, shape.rows()); start.blocks.len()],
            barred,
            worst_error: 0.0,
        }
    }

    /// Blocks and covariance of a state, then the averages of the rule.
    fn average(&mut self, state: &[f64]) {
        let scalars = self.blocks.len() * self.layout.per_block();
        self.covariance.fill(0.0);
        for (g, part) in self.blocks.iter_mut().zip(state[..scalars].chunks_exact(self.layout.chunk())) {
            self.layout.unpack_block(part, g);
        }
        for (g, lambda) in self.blocks.iter().zip(self.problem.spectrum.eigenvalues()) {
            self.covariance.add_scaled(*lambda, g);
        }
        let law = Law {
            covariance: &self.covariance,
            scalars: &state[scalars..],
            label_noise: self.problem.training.label_noise,
        };
        self.problem.rule.averages(&law, self.needed, &mut self.averages);
        self.worst_error = self.worst_error.max(self.averages.error);
    }

    /// B_b G_b without the sphere: −λ_b A G_b − γ G_b + M T⁻¹ G_b[frozen, ·].
    fn move_rows(&mut self) {
        let Shape { trained: k, .. } = self.layout.shape;
        let decay = self.problem.training.constraint.weight_decay;
        let (a, p) = (self.averages.drift.as_slice(), self.layout.shape.rows());
        let one = |((g, motion), &lambda): ((&Mat, &mut Mat), &f64)| {
            drift(lambda, a, decay, g.as_slice(), motion.as_mut_slice(), p);
        };
        let eigenvalues = self.problem.spectrum.eigenvalues();
        if self.blocks.len() * k * p * p > WORTH_THREADS {
            let pairs = self.blocks.par_iter().zip(self.motion.par_iter_mut());
            pairs.zip(eigenvalues.par_iter()).for_each(one);
        } else {
            self.blocks.iter().zip(&mut self.motion).zip(eigenvalues).for_each(one);
        }
        let Some(inverse) = &self.barred else { return };
        // Motion of the rows along the frozen ones, summed over eigenspaces, is taken out again.
        let last = k + inverse.rows();
        let mut along = Mat::zeros(k, inverse.rows());
        for motion in &self.motion {
            along.add_scaled(1.0, &motion.block(0..k, k..last));
        }
        let back = along.times(inverse);
        for (g, motion) in self.blocks.iter().zip(&mut self.motion) {
            motion.add_scaled(-1.0, &back.times(&g.block(k..last, 0..p)));
        }
    }
}

dispatch! {
    /// −λ A G − γ G for the rows of A, G being P x P.
    fn drift(lambda: f64, a: &[f64], decay: f64, g: &[f64], out: &mut [f64], p: usize) {
        for (i, (a, out)) in a.chunks_exact(p).zip(out.chunks_exact_mut(p)).enumerate() {
            for (o, x) in out.iter_mut().zip(&g[i * p..]) {
                *o = -decay * x;
            }
            for (a, g) in a.iter().zip(g.chunks_exact(p)) {
                let factor = -lambda * a;
                for (o, x) in out.iter_mut().zip(g) {
                    *o = factor.mul_add(*x, *o);
                }
            }
        }
    }
}

impl VectorField for OverlapFlow<'_> {
    fn dimension(&self) -> usize {
        self.layout.dimension()
    }

    fn derivative(&mut self, _time: f64, state: &[f64], out: &mut [f64]) {
        self.average(state);
        self.drift_of_averages(state, out);
    }
}

impl OverlapFlow<'_> {
    /// The drift at the overlaps with which the flow was made, for averages that the caller gives.
    pub(crate) fn drift_with(&mut self, averages: &Averages, scalars: &[f64], out: &mut [f64]) {
        self.averages.drift.clone_from(&averages.drift);
        self.averages.noise.clone_from(&averages.noise);
        self.averages.scalars.clone_from(&averages.scalars);
        let mut state = vec![0.0; self.layout.dimension()];
        let rows = state.len() - scalars.len();
        state[rows..].copy_from_slice(scalars);
        self.drift_of_averages(&state, out);
    }

    /// The drift of blocks and scalars that have these averages; of the state only the scalars are read.
    fn drift_of_averages(&mut self, state: &[f64], out: &mut [f64]) {
        self.move_rows();
        let Shape { trained: k, frozen: f, .. } = self.layout.shape;
        let per_clock = self.problem.flow_per_clock();
        let noisy = self.needed == Needed::DriftAndNoise;
        let spectrum = &self.problem.spectrum;
        let diffusion =
            |b: usize| if noisy { self.problem.noise_weight(b) * spectrum.eigenvalues()[b] } else { 0.0 };
        let mut shrink = vec![0.0; if self.problem.training.constraint.sphere.is_some() { k } else { 0 }];
        for (i, nu) in shrink.iter_mut().enumerate() {
            let (mut rate, mut length) = (0.0, 0.0);
            for (b, (g, motion)) in self.blocks.iter().zip(&self.motion).enumerate() {
                rate += 2.0 * motion[(i, i)] + diffusion(b) * self.averages.noise[(i, i)];
                length += g[(i, i)];
            }
            *nu = rate / (2.0 * length);
        }
        let rows = self.blocks.len() * self.layout.per_block();
        for (b, part) in out[..rows].chunks_exact_mut(self.layout.chunk()).enumerate() {
            let (g, motion, diffusion) = (&self.blocks[b], &self.motion[b], diffusion(b));
            let mut at = 0;
            for i in 0..k {
                let nu = shrink.get(i).copied().unwrap_or(0.0);
                for n in k..k + f {
                    part[at] = per_clock * (motion[(i, n)] - nu * g[(i, n)]);
                    at += 1;
                }
                for j in 0..=i {
                    let both = nu + shrink.get(j).copied().unwrap_or(0.0);
                    let noise = if noisy { diffusion * self.averages.noise[(i, j)] } else { 0.0 };
                    part[at] = per_clock * (motion[(i, j)] + motion[(j, i)] - both * g[(i, j)] + noise);
                    at += 1;
                }
            }
        }
        let scalars = self.blocks.len() * self.layout.per_block();
        let (values, slopes) = (&state[scalars..], &self.averages.scalars);
        let length = dot(values, values);
        let on_sphere = self.problem.training.constraint.scalar_sphere.is_some() && length > 0.0;
        let along = if on_sphere { dot(values, slopes) / length } else { 0.0 };
        for ((o, slope), value) in out[scalars..].iter_mut().zip(slopes).zip(values) {
            *o = -per_clock * self.problem.training.scalar_ratio * (slope - along * value);
        }
    }
}
