//! Gradient flow of the rows themselves, in the coordinates that they span.
//!
//! Without the noise term of SGD every row moves within its eigenspace by a linear map, dW_b/dt = −λ_b A W_b, so the
//! Gram G_b = W_b W_bᵀ keeps its rank. Where that rank is small (a sampled start with L = d has rank 1) the rows are far fewer
//! numbers than their overlaps: K columns per direction in place of K M + K(K+1)/2, and a right-hand side costs
//! K P per direction in place of K P².

use super::WORTH_THREADS;
use didact_math::dispatch;
use didact_math::linalg::{Mat, low_rank_factor};
use didact_math::ode::VectorField;
use didact_model::{Averages, Law, Needed, Overlaps, Problem, Shape};
use rayon::prelude::*;

/// Where rows stand: W = [state; frozen], one column per direction of an eigenspace.
#[derive(Debug, Clone)]
pub(super) struct RowLayout {
    shape: Shape,
    /// First column of every eigenspace, and their number at the end.
    starts: Vec<usize>,
    /// λ of every column.
    eigenvalues: Vec<f64>,
    /// Frozen rows, frozen x columns.
    frozen: Mat,
}

impl RowLayout {
    /// Rows that have these overlaps, and the trained ones as a state; `None` when the overlaps are no Grams.
    pub(super) fn of(start: &Overlaps, problem: &Problem) -> Option<(Self, Vec<f64>)> {
        let shape = start.shape();
        let (k, f) = (shape.trained, shape.frozen);
        let mut factors = Vec::with_capacity(start.blocks.len());
        let mut starts = vec![0];
        let mut eigenvalues = Vec::new();
        for (g, &lambda) in start.blocks.iter().zip(problem.spectrum.eigenvalues()) {
            let factor = low_rank_factor(g)?;
            eigenvalues.extend((0..factor.cols()).map(|_| lambda));
            starts.push(eigenvalues.len());
            factors.push(factor);
        }
        let columns = eigenvalues.len();
        let mut frozen = Mat::zeros(f, columns);
        let mut state = vec![0.0; k * columns + shape.scalars];
        for (factor, &at) in factors.iter().zip(&starts) {
            let width = factor.cols();
            for n in 0..f {
                frozen.row_mut(n)[at..at + width].copy_from_slice(factor.row(k + n));
            }
            for i in 0..k {
                state[i * columns + at..][..width].copy_from_slice(factor.row(i));
            }
        }
        state[k * columns..].copy_from_slice(&start.scalars);
        Some((Self { shape, starts, eigenvalues, frozen }, state))
    }

    /// Numbers of the state.
    pub(super) fn dimension(&self) -> usize {
        self.shape.trained * self.eigenvalues.len() + self.shape.scalars
    }

    /// The overlaps of a state.
    pub(super) fn unpack(&self, state: &[f64]) -> Overlaps {
        let (k, p, columns) = (self.shape.trained, self.shape.rows(), self.eigenvalues.len());
        let row = |i: usize| if i < k { &state[i * columns..][..columns] } else { self.frozen.row(i - k) };
        let block = |ends: &[usize]| {
            let rows = Mat::from_fn(p, ends[1] - ends[0], |i, j| row(i)[ends[0] + j]);
            rows.gram()
        };
        let blocks = self.starts.windows(2).map(block).collect();
        Overlaps::from_engine(self.shape, blocks, state[k * columns..].to_vec())
    }
}

/// dW/dt = −A W diag(λ), da/dt = −(s_a/s) E[∂loss/∂a], per unit of the clock.
pub(super) struct RowFlow<'a> {
    problem: &'a Problem,
    layout: RowLayout,
    /// λ W of the trained rows.
    weighted: Vec<f64>,
    covariance: Mat,
    pub(super) averages: Averages,
    threads: bool,
    pub(super) worst_error: f64,
}

impl<'a> RowFlow<'a> {
    pub(super) fn new(problem: &'a Problem, layout: RowLayout) -> Self {
        let (k, p, columns) = (layout.shape.trained, layout.shape.rows(), layout.eigenvalues.len());
        let mut covariance = Mat::zeros(p, p);
        for n in k..p {
            for m in k..p {
                let terms = layout.frozen.row(n - k).iter().zip(layout.frozen.row(m - k));
                covariance[(n, m)] = terms.zip(&layout.eigenvalues).map(|((x, y), l)| l * x * y).sum();
            }
        }
        Self {
            problem,
            weighted: vec![0.0; k * columns],
            covariance,
            averages: Averages::new(layout.shape),
            threads: k * p * columns > WORTH_THREADS,
            layout,
            worst_error: 0.0,
        }
    }

    /// C = W diag(λ) Wᵀ: the rows of trained fields, then mirrored.
    fn covary(&mut self, rows: &[f64]) {
        let RowLayout { shape, eigenvalues, frozen, .. } = &self.layout;
        let (k, p, columns) = (shape.trained, shape.rows(), eigenvalues.len());
        let row = |(i, (out, weighted)): (usize, (&mut [f64], &mut [f64]))| {
            for ((w, x), l) in weighted.iter_mut().zip(&rows[i * columns..]).zip(eigenvalues) {
                *w = l * x;
            }
            let (own, cross) = out.split_at_mut(k);
            products(weighted, &rows[..(i + 1) * columns], &mut own[..=i]);
            products(weighted, frozen.as_slice(), cross);
        };
        let out = &mut self.covariance.as_mut_slice()[..k * p];
        if self.threads {
            let parts = out.par_chunks_exact_mut(p).zip(self.weighted.par_chunks_exact_mut(columns));
            parts.enumerate().for_each(row);
        } else {
            out.chunks_exact_mut(p).zip(self.weighted.chunks_exact_mut(columns)).enumerate().for_each(row);
        }
        for i in 0..k {
            for j in 0..i {
                self.covariance[(j, i)] = self.covariance[(i, j)];
            }
            for n in k..p {
                self.covariance[(n, i)] = self.covariance[(i, n)];
            }
        }
    }
}

impl VectorField for RowFlow<'_> {
    fn dimension(&self) -> usize {
        self.layout.dimension()
    }

    fn derivative(&mut self, _time: f64, state: &[f64], out: &mut [f64]) {
        let (k, p, columns) =
            (self.layout.shape.trained, self.layout.shape.rows(), self.layout.eigenvalues.len());
        let (rows, scalars) = state.split_at(k * columns);
        self.covary(rows);
        let law =
            Law { covariance: &self.covariance, scalars, label_noise: self.problem.training.label_noise };
        self.problem.rule.averages(&law, Needed::Drift, &mut self.averages);
        self.worst_error = self.worst_error.max(self.averages.error);
        let per_clock = self.problem.flow_per_clock();
        let (moving, slopes) = out.split_at_mut(k * columns);
        let (layout, drift) = (&self.layout, &self.averages.drift);
        let row = |(out, a): (&mut [f64], &[f64])| {
            out.fill(0.0);
            combine(&a[..k], rows, out);
            combine(&a[k..], layout.frozen.as_slice(), out);
            for (o, l) in out.iter_mut().zip(&layout.eigenvalues) {
                *o *= -per_clock * l;
            }
        };
        if self.threads {
            moving.par_chunks_exact_mut(columns).zip(drift.as_slice().par_chunks_exact(p)).for_each(row);
        } else {
            moving.chunks_exact_mut(columns).zip(drift.as_slice().chunks_exact(p)).for_each(row);
        }
        for (o, slope) in slopes.iter_mut().zip(&self.averages.scalars) {
            *o = -per_clock * self.problem.training.scalar_ratio * slope;
        }
    }
}

/// Columns at a time: the sums of four lanes do not wait for each other.
const LANES: usize = 4;

dispatch! {
    /// out_r = x · row r, rows being as long as x.
    pub(crate) fn products(x: &[f64], rows: &[f64], out: &mut [f64]) {
        let n = x.len();
        for (four, rows) in out.chunks_mut(LANES).zip(rows.chunks(LANES * n)) {
            if four.len() < LANES {
                for (out, row) in four.iter_mut().zip(rows.chunks_exact(n)) {
                    let mut sum = [0.0; LANES];
                    for (x, y) in x.chunks_exact(LANES).zip(row.chunks_exact(LANES)) {
                        for lane in 0..LANES {
                            sum[lane] += x[lane] * y[lane];
                        }
                    }
                    let rest = n - n % LANES;
                    let tail: f64 = x[rest..].iter().zip(&row[rest..]).map(|(x, y)| x * y).sum();
                    *out = sum.iter().sum::<f64>() + tail;
                }
                continue;
            }
            let (a, rest) = rows.split_at(n);
            let (b, rest) = rest.split_at(n);
            let (c, d) = rest.split_at(n);
            let mut sums = [[0.0; LANES]; LANES];
            let whole = n - n % LANES;
            for at in (0..whole).step_by(LANES) {
                let x = &x[at..at + LANES];
                for (sum, row) in sums.iter_mut().zip([a, b, c, d]) {
                    let row = &row[at..at + LANES];
                    for lane in 0..LANES {
                        sum[lane] += x[lane] * row[lane];
                    }
                }
            }
            for ((out, sum), row) in four.iter_mut().zip(&sums).zip([a, b, c, d]) {
                let tail: f64 = x[whole..].iter().zip(&row[whole..]).map(|(x, y)| x * y).sum();
                *out = sum.iter().sum::<f64>() + tail;
            }
        }
    }
}

dispatch! {
    /// out += Σ_k factors_k (row k), four rows at a time so that `out` is read and written seldom.
    fn combine(factors: &[f64], rows: &[f64], out: &mut [f64]) {
        let n = out.len();
        for (factors, rows) in factors.chunks(4).zip(rows.chunks(4 * n)) {
            if let [f0, f1, f2, f3] = factors {
                let (a, rest) = rows.split_at(n);
                let (b, rest) = rest.split_at(n);
                let (c, d) = rest.split_at(n);
                for ((((o, a), b), c), d) in out.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                    *o += (f0 * a + f1 * b) + (f2 * c + f3 * d);
                }
            } else {
                for (f, row) in factors.iter().zip(rows.chunks_exact(n)) {
                    for (o, x) in out.iter_mut().zip(row) {
                        *o += f * x;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_the_plain_sums_at_any_length() {
        for n in [1, 3, 4, 7, 16] {
            for count in [1, 2, 4, 5, 9] {
                let x: Vec<f64> = (0..n).map(|i| 1.0 + i as f64).collect();
                let rows: Vec<f64> = (0..n * count).map(|i| ((i * 7) % 5) as f64 - 2.0).collect();
                let mut got = vec![0.0; count];
                products(&x, &rows, &mut got);
                let want: Vec<f64> =
                    rows.chunks(n).map(|r| r.iter().zip(&x).map(|(a, b)| a * b).sum()).collect();
                assert_eq!(got, want, "products of whole numbers are exact");
                let factors: Vec<f64> = (0..count).map(|i| i as f64 - 1.0).collect();
                let mut got = vec![0.5; n];
                combine(&factors, &rows, &mut got);
                for (j, g) in got.iter().enumerate() {
                    let want: f64 = (0..count).map(|k| factors[k] * rows[k * n + j]).sum::<f64>() + 0.5;
                    assert_eq!(*g, want);
                }
            }
        }
    }
}
