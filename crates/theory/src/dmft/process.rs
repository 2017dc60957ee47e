//! The data side: the preactivations of one training sample, sampled; kernels and responses are means over samples.

use super::kernels::{Equations, Kernels};
use super::lanes::{combine, dot, multiply_into, sum, weigh};
use super::points::Points;
use super::{Dimensions, LANES};
use didact_math::linalg::{Mat, cholesky_psd, solve};
use didact_model::rule::Batch;
use didact_model::{Kick, Sample};
use rayon::prelude::*;
use std::ops::Range;

/// Blocks whose sums are added up before they meet the others: the order of additions does not depend on threads.
const GROUP: usize = 8;

/// Pivots below this fraction of their diagonal entry are rounding: the process is smooth in t.
const ZERO_PIVOT: f64 = 1e-14;

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
    /// Rows of the Cholesky factor of Cov(v, W(0), W(1), …).
    factor: Vec<Vec<f64>>,
    blocks: Vec<Block>,
}

/// What LANES samples remember.
#[derive(Debug, Clone)]
struct Block {
    /// v, f x LANES.
    frozen: Vec<f64>,
    noise: Vec<f64>,
    /// W(t), m x LANES.
    fresh: Vec<f64>,
    /// V(t), m x LANES.
    fields: Vec<f64>,
    /// φ(s), (s, i) x LANES.
    kicks: Vec<f64>,
    /// ∂φ_i(s)/∂h_k, (s, i, k) x LANES, k over the trained fields or over all.
    curvature: Vec<f64>,
}

/// Sums over the samples of a group of blocks.
#[derive(Debug, Clone)]
struct Sums {
    /// C_ℓ(t,s), (s, i, j).
    kicks: Vec<f64>,
    /// R_ℓ(t,s), (s, i, j).
    response: Vec<f64>,
    /// R_ℓ(t,*) by paths, or E[φ v] for Stein's lemma; (i, n).
    frozen: Vec<f64>,
    scalars: Vec<f64>,
}

impl Sums {
    fn new(size: &Dimensions, t: usize, scalars: usize) -> Self {
        let square = (t + 1) * size.trained * size.trained;
        Self {
            kicks: vec![0.0; square],
            response: vec![0.0; square],
            frozen: vec![0.0; size.trained * size.frozen],
            scalars: vec![0.0; scalars],
        }
    }

    fn add(mut self, other: &Self) -> Self {
        for (a, b) in [
            (&mut self.kicks, &other.kicks),
            (&mut self.response, &other.response),
            (&mut self.frozen, &other.frozen),
            (&mut self.scalars, &other.scalars),
        ] {
            a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        }
        self
    }
}

/// Everything about step t that all blocks share.
struct Step<'a> {
    t: usize,
    size: Dimensions,
    equations: &'a Equations,
    scalars: &'a [f64],
    /// W_i(t) = Σ_c row_i[c] z_c over frozen columns, then innovations.
    rows: &'a [Vec<f64>],
    /// −(η/δ) R_θ(t,s)_ij, as coefficients of φ_j(s), per i.
    memory: Vec<Vec<f64>>,
    /// −(η/δ) R_θ(r,s)_kj for r = s+1..t and all k, per (s, j).
    back: Vec<Vec<f64>>,
}

impl<'a> Process<'a> {
    /// The process before its first step. The points must have a column per frozen field, one for the noise, and as many
    /// innovations as steps will be made.
    pub fn new(equations: &'a Equations, points: &'a Points) -> Self {
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
        let factor: Vec<Vec<f64>> = (0..shape.frozen).map(|n| lower.row(n)[..=n].to_vec()).collect();
        let horizon = (points.columns() - shape.frozen - 1) / shape.trained;
        let make = |block: usize| {
            let (columns, _) = points.block(block);
            let mut frozen = vec![0.0; shape.frozen * LANES];
            for (out, row) in frozen.chunks_exact_mut(LANES).zip(&factor) {
                combine(row, columns, out);
            }
            let noise = &columns[shape.frozen * LANES..(shape.frozen + 1) * LANES];
            Block {
                frozen,
                noise: noise.iter().map(|e| equations.label_noise * e).collect(),
                fresh: vec![0.0; shape.trained * LANES],
                fields: vec![0.0; shape.trained * LANES],
                kicks: Vec::with_capacity(horizon * shape.trained * LANES),
                curvature: Vec::with_capacity(horizon * shape.trained * size.columns * LANES),
            }
        };
        let blocks = (0..points.samples() / LANES).map(make).collect();
        let kernels = Kernels::default();
        let scalars = equations.scalars.clone();
        Self { equations, points, size, kernels, scalars, factor, blocks }
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
        // Out of the way while the step borrows everything else.
        let mut moving = std::mem::take(&mut self.blocks);
        let (step, points) = (self.shared(t), self.points);
        let groups: Vec<Sums> = moving
            .par_chunks_mut(GROUP)
            .enumerate()
            .map(|(group, blocks)| {
                let mut room = Room::new(&step);
                let mut sums = Sums::new(&step.size, t, step.scalars.len());
                for (at, block) in blocks.iter_mut().enumerate() {
                    let (columns, weights) = points.block(group * GROUP + at);
                    step.sample(block, columns, weights, &mut room, &mut sums);
                }
                sums
            })
            .collect();
        self.blocks = moving;
        let total = groups.iter().fold(Sums::new(&self.size, t, self.scalars.len()), Sums::add);
        self.record(t, &total);
        true
    }

    /// Appends the rows of W(t) to the factor of the joint covariance.
    fn extend_factor(&mut self, t: usize) {
        let (m, f) = (self.size.trained, self.size.frozen);
        for i in 0..m {
            let mut row: Vec<f64> = Vec::with_capacity(f + (t + 1) * m);
            for column in 0..f + t * m + i {
                let covariance = if column < f {
                    self.kernels.weights_frozen[t][(i, column)]
                } else {
                    let (s, j) = ((column - f) / m, (column - f) % m);
                    self.kernels.weights[t][s][(i, j)]
                };
                let before = &self.factor[column];
                let pivot = before[column];
                let product: f64 = row.iter().zip(before).map(|(a, b)| a * b).sum();
                row.push(if pivot > 0.0 { (covariance - product) / pivot } else { 0.0 });
            }
            let variance = self.kernels.weights[t][t][(i, i)];
            let pivot = variance - row.iter().map(|a| a * a).sum::<f64>();
            row.push(if pivot > ZERO_PIVOT * variance { pivot.sqrt() } else { 0.0 });
            self.factor.push(row);
        }
    }

    fn shared(&self, t: usize) -> Step<'_> {
        let (m, f) = (self.size.trained, self.size.frozen);
        let memory = -self.equations.step / self.equations.ratio;
        let response =
            |r: usize, s: usize, k: usize, j: usize| memory * self.kernels.weights_response[r][s][(k, j)];
        let coefficients =
            |i: usize| (0..t).flat_map(move |s| (0..m).map(move |j| response(t, s, i, j))).collect();
        let back = |s: usize, j: usize| {
            (s + 1..=t).flat_map(|r| (0..m).map(move |k| (r, k))).map(|(r, k)| response(r, s, k, j)).collect()
        };
        Step {
            t,
            size: self.size,
            equations: self.equations,
            scalars: &self.scalars,
            rows: &self.factor[f + t * m..],
            memory: (0..m).map(coefficients).collect(),
            back: (0..t).flat_map(|s| (0..m).map(move |j| (s, j))).map(|(s, j)| back(s, j)).collect(),
        }
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

    /// Train loss E l(y, f(V(t))) and test loss E l(y, f(W(t))) of the last step, label noise included.
    pub fn losses(&self) -> (f64, f64) {
        let size = self.size;
        let parts: Vec<(f64, f64)> = self
            .blocks
            .par_chunks(GROUP)
            .enumerate()
            .map(|(group, blocks)| {
                let (mut train, mut test) = (0.0, 0.0);
                let mut losses = vec![0.0; LANES];
                let mut fields = vec![0.0; (size.trained + size.frozen) * LANES];
                for (at, block) in blocks.iter().enumerate() {
                    let (_, weights) = self.points.block(group * GROUP + at);
                    let mut mean = |rows: &[f64]| {
                        fields[..rows.len()].copy_from_slice(rows);
                        fields[rows.len()..].copy_from_slice(&block.frozen);
                        let batch = Batch {
                            fields: &fields,
                            size: LANES,
                            scalars: &self.scalars,
                            noise: &block.noise,
                        };
                        self.equations.rule.loss_batch(&batch, &mut losses);
                        dot(&losses, weights)
                    };
                    train += mean(&block.fields);
                    test += mean(&block.fresh);
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
        let (m, f) = (self.size.trained, self.size.frozen);
        let n = self.points.samples() as f64;
        let mut fields = vec![0.0; m + f];
        for (index, block) in self.blocks.iter().enumerate() {
            let (_, weights) = self.points.block(index);
            for lane in 0..LANES {
                for i in 0..m {
                    fields[i] = block.fields[i * LANES + lane];
                }
                for k in 0..f {
                    fields[m + k] = block.frozen[k * LANES + lane];
                }
                let sample = Sample { fields: &fields, scalars: &self.scalars, noise: block.noise[lane] };
                visit(&sample, weights[lane] / n);
            }
        }
    }
}

/// A run whose rows are longer than 100 has left every reasonable range.
const LARGEST_SQUARED_LENGTH: f64 = 1e4;

/// Buffers of one thread.
struct Room {
    /// V then v, rows x LANES.
    fields: Vec<f64>,
    /// weight φ(t), m x LANES.
    weighted: Vec<f64>,
    /// X_r, (i, r, k) x LANES: dφ_i(t)/dV_k(r), times the weight.
    chain: Vec<f64>,
    /// g_s, m x LANES for one i.
    through: Vec<f64>,
    kick: Kick,
    rows: Vec<f64>,
}

impl Room {
    fn new(step: &Step) -> Self {
        let Dimensions { trained: m, frozen: f, .. } = step.size;
        Self {
            fields: vec![0.0; (m + f) * LANES],
            weighted: vec![0.0; m * LANES],
            chain: vec![0.0; m * (step.t + 1) * m * LANES],
            through: vec![0.0; m * LANES],
            kick: Kick::new(step.equations.shape()),
            rows: vec![0.0; m * LANES],
        }
    }
}

impl Step<'_> {
    /// Moves one block to step t and adds its share of the kernels.
    fn sample(&self, block: &mut Block, columns: &[f64], weights: &[f64], room: &mut Room, sums: &mut Sums) {
        let Dimensions { trained: m, frozen: f, columns: wide, .. } = self.size;
        // Column f is the noise: W takes the columns before it and those after it.
        let (latent, innovations) = (&columns[..f * LANES], &columns[(f + 1) * LANES..]);
        for i in 0..m {
            let own = i * LANES..(i + 1) * LANES;
            let (first, rest) = self.rows[i].split_at(f);
            let fresh = &mut block.fresh[own.clone()];
            combine(rest, innovations, fresh);
            if first.iter().any(|c| *c != 0.0) {
                combine(first, latent, &mut room.weighted[..LANES]);
                fresh.iter_mut().zip(&room.weighted).for_each(|(w, a)| *w += a);
            }
            let fields = &mut block.fields[own];
            combine(&self.memory[i], &block.kicks, fields);
            fields.iter_mut().zip(&*fresh).for_each(|(v, w)| *v += w);
        }
        room.fields[..m * LANES].copy_from_slice(&block.fields);
        room.fields[m * LANES..].copy_from_slice(&block.frozen);
        let (kicks, curvature) = (block.kicks.len(), block.curvature.len());
        block.kicks.resize(kicks + m * LANES, 0.0);
        block.curvature.resize(curvature + m * wide * LANES, 0.0);
        let batch = Batch { fields: &room.fields, size: LANES, scalars: self.scalars, noise: &block.noise };
        let rule = &self.equations.rule;
        rule.curvature_batch(&batch, wide, &mut block.kicks[kicks..], &mut block.curvature[curvature..]);
        if !self.scalars.is_empty() {
            rule.kick_batch(&batch, &mut room.rows, &mut room.kick.scalars);
            sums.scalars.iter_mut().zip(&room.kick.scalars).for_each(|(sum, g)| *sum += g);
        }
        for i in 0..m {
            weigh(
                &block.kicks[kicks + i * LANES..][..LANES],
                weights,
                &mut room.weighted[i * LANES..][..LANES],
            );
        }
        for s in 0..=self.t {
            for i in 0..m {
                for j in 0..m {
                    let past = &block.kicks[(s * m + j) * LANES..][..LANES];
                    sums.kicks[(s * m + i) * m + j] += dot(&room.weighted[i * LANES..][..LANES], past);
                }
            }
        }
        if self.size.stein {
            for i in 0..m {
                for n in 0..f {
                    let latent = &block.frozen[n * LANES..][..LANES];
                    sums.frozen[i * f + n] += dot(&room.weighted[i * LANES..][..LANES], latent);
                }
            }
        }
        for i in 0..m {
            self.adjoint(i, block, weights, room, sums);
        }
    }

    /// Total derivatives of φ_i(t), backwards in time:
    ///
    ///   X_t = D(t),   g_s = −(η/δ) Σ_{r=s+1..t} X_r R_θ(r,s),   X_s = g_s D(s),
    ///   dφ_i(t)/dW(s) = X_s,   dφ_i(t)/dv = Dv(t) + Σ_s g_s Dv(s).
    ///
    /// Memory grows as t, where propagating all derivatives forward would need t².
    fn adjoint(&self, i: usize, block: &Block, weights: &[f64], room: &mut Room, sums: &mut Sums) {
        let Dimensions { trained: m, frozen: f, columns: wide, .. } = self.size;
        let t = self.t;
        let entry = |s: usize, row: usize, k: usize| -> Range<usize> {
            let at = ((s * m + row) * wide + k) * LANES;
            at..at + LANES
        };
        let chain = &mut room.chain[i * (t + 1) * m * LANES..(i + 1) * (t + 1) * m * LANES];
        for k in 0..m {
            let own = &mut chain[(t * m + k) * LANES..][..LANES];
            weigh(&block.curvature[entry(t, i, k)], weights, own);
            sums.response[(t * m + i) * m + k] += sum(own);
        }
        for n in m..wide {
            sums.frozen[i * f + n - m] += dot(&block.curvature[entry(t, i, n)], weights);
        }
        for s in (0..t).rev() {
            let (now, later) = chain.split_at_mut((s + 1) * m * LANES);
            for j in 0..m {
                combine(&self.back[s * m + j], later, &mut room.through[j * LANES..][..LANES]);
            }
            let now = &mut now[s * m * LANES..];
            for k in 0..m {
                let out = &mut now[k * LANES..(k + 1) * LANES];
                let mut total =
                    multiply_into(&room.through[..LANES], &block.curvature[entry(s, 0, k)], out, true);
                for j in 1..m {
                    let through = &room.through[j * LANES..(j + 1) * LANES];
                    total += multiply_into(through, &block.curvature[entry(s, j, k)], out, false);
                }
                sums.response[(s * m + i) * m + k] += total;
            }
            for n in m..wide {
                for j in 0..m {
                    let through = &room.through[j * LANES..(j + 1) * LANES];
                    sums.frozen[i * f + n - m] += dot(through, &block.curvature[entry(s, j, n)]);
                }
            }
        }
    }
}
