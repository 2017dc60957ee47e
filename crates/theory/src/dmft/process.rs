//! The data side: the preactivations of one training sample, sampled; kernels and responses are means over samples.

use super::factor::Factor;
use super::kernels::{Equations, Kernels};
use super::lanes::strips_mut;
use super::memory::Memory;
use super::points::Points;
use super::step::{Known, Room, Step, Sums};
use super::{Dimensions, LANES};
use didact_math::linalg::{Mat, cholesky_psd, dot, solve};
use didact_math::memory::with_room;
use didact_math::simd::add_scaled;
use didact_model::Sample;
use didact_model::rule::Batch;
use rayon::prelude::*;

/// The effective process of one sample,
///
///   V(t) = W(t) − (η/δ) Σ_{s<t} R_θ(t,s) φ(s),   φ(s) = kick(V(s), v, e),   Cov(W(t),W(s)) = C_θ(t,s),  Cov(W(t),v) = C_θ(t,*),
///   C_ℓ(t,s) = E[φ(t) φ(s)ᵀ],   R_ℓ(t,s) = E[dφ(t)/dW(s)],   R_ℓ(t,*) = E[dφ(t)/dv]  (total derivatives at fixed W and e),
///
/// marched forward in t with N samples of fixed normals. Causal: kernels of step t come from those before it.
#[derive(Debug)]
pub struct Process<'a> {
    equations: &'a Equations,
    points: &'a Points,
    size: Dimensions,
    /// Kernels so far.
    pub kernels: Kernels,
    /// Trained scalars at the current step.
    pub scalars: Vec<f64>,
    /// Of Cov(v, W(0), W(1), …).
    factor: Factor,
    memory: Memory,
    known: Known,
}

impl<'a> Process<'a> {
    /// The process before its first step. The points must have a column per frozen field, one for the noise, and as many
    /// innovations as steps will be made.
    pub fn new(equations: &'a Equations, points: &'a Points) -> Self {
        Self::reusing(Memory::default(), equations, points)
    }

    /// The same, in memory that an earlier process has [left](Self::into_memory).
    pub fn reusing(mut memory: Memory, equations: &'a Equations, points: &'a Points) -> Self {
        let shape = equations.shape();
        let jumps = equations.rule.jumps().frozen;
        let paths = !equations.all_hard() && !jumps;
        let size = Dimensions {
            trained: shape.trained,
            frozen: shape.frozen,
            columns: if paths { shape.rows() } else { shape.trained },
            stein: jumps && !equations.all_hard(),
        };
        let lower = cholesky_psd(&equations.frozen()).expect("frozen rows have a Gram matrix");
        let factor = Factor::new(&lower);
        let horizon = (points.columns() - shape.frozen - 1) / shape.trained;
        memory.fit(&size, points.samples(), horizon);
        let known = memory.visit(
            || Known { labels: true, label_slopes: paths },
            |known, index, past| {
                let (columns, _) = points.strip(index);
                let (frozen, rest) = past.given.split_at_mut(shape.frozen * LANES);
                frozen.fill(0.0);
                for (coefficients, frozen) in factor.rows().iter().zip(strips_mut(frozen)) {
                    for (c, column) in coefficients.iter().zip(columns) {
                        add_scaled(frozen, *c, column);
                    }
                }
                let (noise, rest) = rest.split_at_mut(LANES);
                let (labels, slopes) = rest.split_at_mut(LANES);
                if equations.label_noise == 0.0 {
                    noise.fill(0.0);
                } else {
                    let drawn = &columns[shape.frozen];
                    noise.iter_mut().zip(drawn).for_each(|(e, z)| *e = equations.label_noise * z);
                }
                with_room(shape.rows() * LANES, |fields| {
                    // Labels do not read the trained fields, which have a place all the same.
                    fields[shape.trained * LANES..].copy_from_slice(frozen);
                    let batch = Batch::new(fields, LANES, &equations.scalars, noise);
                    known.labels &= equations.rule.labels(&batch, labels);
                    known.label_slopes = known.label_slopes && equations.rule.label_slopes(&batch, slopes);
                });
            },
            |known| *known,
        );
        let kernels = Kernels::default();
        let scalars = equations.scalars.clone();
        let known = Known {
            labels: known.iter().all(|known| known.labels),
            label_slopes: known.iter().all(|known| known.label_slopes),
        };
        Self { equations, points, size, kernels, scalars, factor, memory, known }
    }

    /// The memory of the samples, for a process to come.
    pub fn into_memory(self) -> Memory {
        self.memory
    }

    /// Steps done: kernels of steps 0..t are known.
    pub fn steps(&self) -> usize {
        self.kernels.kicks.len()
    }

    /// One more step: the weights move, then every sample does. False, with the data side left undone, once the rows have
    /// become longer than 100 or not finite.
    pub fn advance(&mut self) -> bool {
        let t = self.steps();
        if t > 0 {
            let rate = self.equations.step * self.equations.scalar_ratio;
            let slopes = std::mem::take(&mut self.kernels.scalar_slopes);
            self.scalars.iter_mut().zip(slopes).for_each(|(a, g)| *a -= rate * g);
        }
        self.kernels.move_weights(self.equations);
        let now = &self.kernels.weights[t][t];
        if !(0..self.size.trained).all(|i| now[(i, i)] < LARGEST_SQUARED_LENGTH) {
            return false;
        }
        self.extend_factor(t);
        let mut memory = std::mem::take(&mut self.memory);
        let step = self.step(t);
        let groups = memory.visit(
            || Room::new(&step),
            |room, index, past| {
                let (columns, weights) = self.points.strip(index);
                step.sample(past, columns, weights, room);
            },
            |room| step.collect(room),
        );
        self.memory = memory;
        let total = groups.iter().fold(Sums::new(&self.size, t, self.scalars.len()), Sums::add);
        self.record(t, &total);
        true
    }

    /// What all samples share at step t.
    fn step(&self, t: usize) -> Step<'_> {
        Step {
            t,
            size: self.size,
            known: self.known,
            reads_frozen: self.reads_frozen(),
            equations: self.equations,
            scalars: &self.scalars,
            rows: &self.factor.rows()[self.size.frozen + t * self.size.trained..],
            memory: self.coefficients(t),
            back: self.backward_coefficients(t),
        }
    }

    /// Appends the rows of W(t) to the factor of the joint covariance.
    fn extend_factor(&mut self, t: usize) {
        let (m, f) = (self.size.trained, self.size.frozen);
        let kernels = &self.kernels;
        for i in 0..m {
            let covariance = |column: usize| match column.checked_sub(f) {
                None => kernels.weights_frozen[t][(i, column)],
                Some(before) => kernels.weights[t][before / m][(i, before % m)],
            };
            let covariances: Vec<f64> = (0..f + t * m + i).map(covariance).collect();
            self.factor.push(&covariances, kernels.weights[t][t][(i, i)]);
        }
    }

    /// −(η/δ) R_θ(t,s)_ij as coefficients of φ_j(s), per i.
    fn coefficients(&self, t: usize) -> Vec<Vec<f64>> {
        let m = self.size.trained;
        let response = |s: usize, i: usize, j: usize| self.kernels.weights_response[t][s][(i, j)];
        let memory = -self.equations.step / self.equations.ratio;
        let row = |i: usize| (0..t * m).map(|c| memory * response(c / m, i, c % m)).collect();
        (0..m).map(row).collect()
    }

    /// −(η/δ) R_θ(r,s)_kj, (s, j) x (r, k).
    fn backward_coefficients(&self, t: usize) -> Vec<f64> {
        let m = self.size.trained;
        let memory = -self.equations.step / self.equations.ratio;
        let mut out = vec![0.0; t * m * (t + 1) * m];
        for (at, out) in out.iter_mut().enumerate() {
            let (row, column) = (at / ((t + 1) * m), at % ((t + 1) * m));
            let (s, j, r, k) = (row / m, row % m, column / m, column % m);
            if r > s {
                *out = memory * self.kernels.weights_response[r][s][(k, j)];
            }
        }
        out
    }

    /// Turns sums into the kernels of step t.
    fn record(&mut self, t: usize, sums: &Sums) {
        let (m, f) = (self.size.trained, self.size.frozen);
        let n = self.points.samples() as f64;
        let block = |sums: &[f64], s: usize| Mat::from_fn(m, m, |i, j| sums[(s * m + i) * m + j] / n);
        let kicks: Vec<Mat> = (0..=t).map(|s| block(&sums.kicks, s)).collect();
        let responses: Vec<Mat> = (0..=t).map(|s| block(&sums.response, s)).collect();
        let mut star = Mat::from_fn(m, f, |i, j| sums.frozen[i * f + j] / n);
        if self.size.stein {
            // E[φ vᵀ] = R_ℓ(t,*) T + Σ_s R_ℓ(t,s) C_θ(s,*): no derivative of the label is needed.
            for (s, response) in responses.iter().enumerate() {
                star.add_scaled(-1.0, &response.times(&self.kernels.weights_frozen[s]));
            }
            star = solve(&self.equations.frozen(), &star.transpose()).transpose();
        }
        if let Some(hard) = &self.equations.hard {
            let along = star.times(hard);
            star.add_scaled(-1.0, &along);
        }
        self.kernels.kicks.push(kicks);
        self.kernels.kicks_response.push(responses);
        self.kernels.kicks_frozen.push(star);
        self.kernels.scalar_slopes = sums.scalars.iter().map(|s| s / n).collect();
    }

    /// Whether the rule needs to be shown v at every step.
    fn reads_frozen(&self) -> bool {
        let paths = self.size.columns > self.size.trained;
        let told = self.known.labels && (self.known.label_slopes || !paths);
        !(told && self.equations.rule.labels_suffice())
    }

    /// Train loss E l(y, f(V(t))) and test loss E l(y, f(W(t))) of the last step, label noise included.
    pub fn losses(&self) -> (f64, f64) {
        let m = self.size.trained;
        let step = self.step(self.steps() - 1);
        let parts: Vec<(f64, f64)> = self
            .memory
            .groups()
            .map(|(first, group)| {
                let (mut train, mut test) = (0.0, 0.0);
                let mut losses = [0.0; LANES];
                let mut fields = vec![0.0; (m + self.size.frozen) * LANES];
                for (at, (given, kicks)) in group.enumerate() {
                    let (columns, weights) = self.points.strip(first + at);
                    let mut mean = |fields: &mut [f64]| {
                        self.equations.rule.loss_batch(&step.batch(fields, given), &mut losses);
                        dot(&losses, weights)
                    };
                    step.gaussian(columns, &mut fields[..m * LANES]);
                    test += mean(&mut fields);
                    step.remember(kicks, &mut fields[..m * LANES]);
                    train += mean(&mut fields);
                }
                (train, test)
            })
            .collect();
        let n = self.points.samples() as f64;
        let total = parts.iter().fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
        (total.0 / n, total.1 / n)
    }

    /// Calls `visit` with every sample of the last step (V(t), v, e as a rule sees them) and its probability.
    pub fn for_every_sample(&self, mut visit: impl FnMut(&Sample, f64)) {
        let Dimensions { trained: m, frozen: f, .. } = self.size;
        let step = Step { reads_frozen: true, ..self.step(self.steps() - 1) };
        let n = self.points.samples() as f64;
        let (mut fields, mut sample) = (vec![0.0; (m + f) * LANES], vec![0.0; m + f]);
        for (index, (given, kicks)) in self.memory.strips().enumerate() {
            let (columns, weights) = self.points.strip(index);
            step.gaussian(columns, &mut fields[..m * LANES]);
            step.remember(kicks, &mut fields[..m * LANES]);
            let batch = step.batch(&mut fields, given);
            for lane in 0..LANES {
                visit(&batch.sample(lane, &mut sample), weights[lane] / n);
            }
        }
    }
}

/// A run whose rows are longer than 100 has left every reasonable range.
const LARGEST_SQUARED_LENGTH: f64 = 1e4;
