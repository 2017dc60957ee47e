//! The data side: the preactivations of one training sample, sampled; kernels and responses are means over samples.

use super::kernels::{Equations, Kernels};
use super::lanes::{WIDE, add_products, combine, fold, strips, strips_mut};
use super::points::Points;
use super::step::{Block, Room, Step, Sums};
use super::{Dimensions, LANES};
use didact_math::linalg::{Mat, cholesky_psd, solve};
use didact_model::Sample;
use didact_model::rule::Batch;
use rayon::prelude::*;

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
    memory: Memory,
    /// Whether the samples know their labels.
    labelled: bool,
}

/// What the samples remember, block after block; see [`Block`]. One allocation each: the system hands out fresh pages.
#[derive(Debug)]
struct Memory {
    given: Vec<f64>,
    now: Vec<f64>,
    kicks: Vec<f64>,
    curvature: Vec<f64>,
    /// Numbers per block in each of them.
    strides: [usize; 4],
}

impl Memory {
    /// The blocks, GROUP at a time.
    fn groups(&mut self) -> impl IndexedParallelIterator<Item = impl Iterator<Item = Block<'_>>> {
        let [a, b, c, e] = self.strides;
        self.given
            .par_chunks(GROUP * a)
            .zip(self.now.par_chunks_mut(GROUP * b))
            .zip(self.kicks.par_chunks_mut(GROUP * c))
            .zip(self.curvature.par_chunks_mut(GROUP * e))
            .map(move |(((given, now), kicks), curvature)| {
                given
                    .chunks_exact(a)
                    .zip(now.chunks_exact_mut(b))
                    .zip(kicks.chunks_exact_mut(c))
                    .zip(curvature.chunks_exact_mut(e))
                    .map(|(((given, now), kicks), curvature)| Block { given, now, kicks, curvature })
            })
    }
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
        let per_step = shape.trained * LANES;
        let strides =
            [(shape.frozen + 2) * LANES, 2 * per_step, horizon * per_step, horizon * per_step * size.columns];
        let blocks = points.samples() / LANES;
        let [mut given, now, kicks, curvature] = strides.map(|stride| vec![0.0; blocks * stride]);
        for (block, given) in given.chunks_exact_mut(strides[0]).enumerate() {
            let (given, per) = (strips_mut(given), LANES / WIDE);
            let columns = strips(points.block(block).0).chunks_exact(points.columns());
            for (strip, columns) in columns.enumerate() {
                for (n, row) in factor.iter().enumerate() {
                    given[n * per + strip] = combine(row, columns, points.columns() * WIDE);
                }
                let noise = columns[shape.frozen].map(|z| equations.label_noise * z);
                given[shape.frozen * per + strip] = noise;
            }
        }
        let mut labelled = true;
        let mut fields = vec![0.0; shape.rows() * LANES];
        for given in given.chunks_exact_mut(strides[0]) {
            let (frozen, rest) = given.split_at_mut(shape.frozen * LANES);
            let (noise, labels) = rest.split_at_mut(LANES);
            // Labels do not read the trained fields, which have a place all the same.
            fields[per_step..].copy_from_slice(frozen);
            labelled &= equations.rule.labels(&Batch::new(&fields, LANES, &equations.scalars, noise), labels);
        }
        let memory = Memory { given, now, kicks, curvature, strides };
        let kernels = Kernels::default();
        let scalars = equations.scalars.clone();
        Self { equations, points, size, kernels, scalars, factor, memory, labelled }
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
        let step = Step {
            t,
            size: self.size,
            labelled: self.labelled,
            equations: self.equations,
            scalars: &self.scalars,
            rows: &self.factor[self.size.frozen + t * self.size.trained..],
            memory: self.coefficients(t),
            back: self.backward_coefficients(t),
        };
        let points = self.points;
        let groups: Vec<Sums> = self
            .memory
            .groups()
            .enumerate()
            .map(|(group, blocks)| {
                let mut room = Room::new(&step);
                for (at, mut block) in blocks.enumerate() {
                    let (columns, weights) = points.block(group * GROUP + at);
                    step.sample(&mut block, columns, weights, &mut room);
                }
                step.collect(room)
            })
            .collect();
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

    /// Train loss E l(y, f(V(t))) and test loss E l(y, f(W(t))) of the last step, label noise included.
    pub fn losses(&self) -> (f64, f64) {
        let size = self.size;
        let [given, now, ..] = self.memory.strides;
        let groups = self.memory.given.par_chunks(GROUP * given).zip(self.memory.now.par_chunks(GROUP * now));
        let parts: Vec<(f64, f64)> = groups
            .enumerate()
            .map(|(group, (givens, nows))| {
                let (mut train, mut test) = (0.0, 0.0);
                let mut losses = vec![0.0; LANES];
                let mut fields = vec![0.0; (size.trained + size.frozen) * LANES];
                for (at, (given, now)) in givens.chunks_exact(given).zip(nows.chunks_exact(now)).enumerate() {
                    let (_, weights) = self.points.block(group * GROUP + at);
                    let (frozen, rest) = given.split_at(size.frozen * LANES);
                    let (noise, labels) = rest.split_at(LANES);
                    let labels = if self.labelled { labels } else { &[] };
                    let (fresh, moved) = now.split_at(size.trained * LANES);
                    let mut mean = |rows: &[f64]| {
                        fields[..rows.len()].copy_from_slice(rows);
                        fields[rows.len()..].copy_from_slice(frozen);
                        let batch = Batch { labels, ..Batch::new(&fields, LANES, &self.scalars, noise) };
                        self.equations.rule.loss_batch(&batch, &mut losses);
                        let mut sum = [[0.0; 4]];
                        for (loss, weight) in strips(&losses).iter().zip(strips(weights)) {
                            add_products(loss, std::slice::from_ref(weight), &mut sum);
                        }
                        fold(&sum[0])
                    };
                    train += mean(moved);
                    test += mean(fresh);
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
        let [given, now, ..] = self.memory.strides;
        let blocks = self.memory.given.chunks_exact(given).zip(self.memory.now.chunks_exact(now));
        for (index, (given, now)) in blocks.enumerate() {
            let (_, weights) = self.points.block(index);
            for lane in 0..LANES {
                for i in 0..m {
                    fields[i] = now[(m + i) * LANES + lane];
                }
                for k in 0..f {
                    fields[m + k] = given[k * LANES + lane];
                }
                let noise = given[f * LANES + lane];
                visit(&Sample { fields: &fields, scalars: &self.scalars, noise }, weights[lane] / n);
            }
        }
    }
}

/// A run whose rows are longer than 100 has left every reasonable range.
const LARGEST_SQUARED_LENGTH: f64 = 1e4;
