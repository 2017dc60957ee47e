//! The normals that drive the data side: scrambled Sobol points, whitened, with importance weights.

use super::LANES;
use super::given::Given;
use super::lanes::{PerSample, per_sample};
use super::memory::{Layout, SampleHistory};
use didact_math::gauss::normal::quantile;
use didact_math::random::sobol_column;
use rayon::prelude::*;

/// N samples of (frozen fields, label noise, innovations of W(0), W(1), …), all standard normal and uncorrelated.
///
/// Whitening takes the empirical mean off every column and makes it uncorrelated with those before it and of variance 1, so
/// that linear models are exact at any N. Columns only see those before them: a longer horizon changes no earlier number.
///
/// The samples of a process live in the same memory, next to what drives them: points serve one process after the other.
#[derive(Debug, Clone)]
pub struct Points {
    pub(super) given: Given,
    pub(super) history: SampleHistory,
    /// Importance weight per sample, of mean 1.
    weights: Vec<f64>,
    /// Whether every weight is 1.
    uniform: bool,
    /// Seed and number of the scramble, for numbers that are drawn later.
    pub(super) origin: (u64, u32),
}

const ONES: PerSample = [1.0; LANES];

/// How to draw points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// N per scramble, a power of two, at least [`FEWEST`](Self::FEWEST).
    pub samples: usize,
    /// RngAddress of the random numbers.
    pub seed: u64,
    /// Standard deviation that the frozen fields are drawn with; each sample is weighted by the ratio of densities. Above 1
    /// the tails that decide spectral edges are seen more often (docs/derivations/gd-phase-transitions.md#s11).
    pub spread: f64,
}

impl Sampling {
    /// Samples below which means are not worth having.
    pub const FEWEST: usize = 128;
}

impl Default for Sampling {
    fn default() -> Self {
        Self { samples: 16_384, seed: 0, spread: 1.0 }
    }
}

impl Points {
    /// Scramble number `scramble`: f frozen fields, one noise, and m innovations at each of `steps` steps.
    pub fn sobol(sampling: &Sampling, scramble: u32, frozen: usize, trained: usize, steps: usize) -> Self {
        let n = sampling.samples;
        let columns = frozen + 1 + trained * steps;
        let mut table: Vec<Vec<f64>> = (0..columns)
            .into_par_iter()
            .map(|axis| {
                let mut column = vec![0.0; n];
                sobol_column(sampling.seed, scramble, axis, &mut column);
                // Places in (0, 1); the ends would be infinite.
                column.iter_mut().for_each(|u| *u = quantile(u.clamp(1e-300, 1.0 - f64::EPSILON / 2.0)));
                column
            })
            .collect();
        let mut weights = vec![1.0; n];
        if sampling.spread != 1.0 {
            let excess = 0.5 * (sampling.spread * sampling.spread - 1.0);
            for column in &mut table[..frozen] {
                for (z, w) in column.iter_mut().zip(&mut weights) {
                    *w *= (-excess * *z * *z).exp();
                    *z *= sampling.spread;
                }
            }
            let mean = weights.iter().sum::<f64>() / n as f64;
            weights.iter_mut().for_each(|w| *w /= mean);
        }
        whiten(&mut table, &weights);
        Self { origin: (sampling.seed, scramble), ..Self::new(&table, weights, frozen, trained) }
    }

    /// Given columns in the same order (frozen fields, noise, innovations), all of weight 1 and used as they are.
    pub fn given(table: &[Vec<f64>], frozen: usize, trained: usize) -> Self {
        Self::new(table, vec![1.0; table[0].len()], frozen, trained)
    }

    fn new(table: &[Vec<f64>], weights: Vec<f64>, frozen: usize, trained: usize) -> Self {
        assert!(weights.len().is_multiple_of(LANES), "samples come in values of {LANES}");
        let (drawn, innovations) = table.split_at(frozen + 1);
        let layout = Layout { trained, frozen, columns: trained, steps: innovations.len() / trained };
        let uniform = weights.iter().all(|w| *w == 1.0);
        Self {
            given: Given::new(drawn),
            history: SampleHistory::new(layout, innovations),
            weights,
            uniform,
            origin: (0, 0),
        }
    }

    /// N.
    pub fn samples(&self) -> usize {
        self.weights.len()
    }

    /// Importance weights, of mean 1.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The weights of a chunk of samples.
    #[inline]
    pub(super) fn weights_of(&self, chunk: usize) -> &PerSample {
        // Weights that are all the same need not come from far.
        if self.uniform { &ONES } else { &per_sample(&self.weights)[chunk] }
    }
}

/// Gram-Schmidt on the columns under the weighted mean; the constant function comes first.
fn whiten(table: &mut [Vec<f64>], weights: &[f64]) {
    let n = weights.len() as f64;
    for j in 0..table.len() {
        let (done, rest) = table.split_at_mut(j);
        let column = &mut rest[0];
        let mean = weighted_product(column, weights, None) / n;
        column.iter_mut().for_each(|z| *z -= mean);
        // Twice, since columns of a later step may be nearly dependent only through rounding of the first pass.
        for _ in 0..2 {
            let along: Vec<f64> =
                done.par_iter().map(|other| weighted_product(column, weights, Some(other)) / n).collect();
            for (other, c) in done.iter().zip(&along) {
                column.iter_mut().zip(other).for_each(|(z, o)| *z -= c * o);
            }
        }
        let own = column.clone();
        let scale = (weighted_product(column, weights, Some(&own)) / n).sqrt();
        column.iter_mut().for_each(|z| *z /= scale);
    }
}

fn weighted_product(column: &[f64], weights: &[f64], other: Option<&[f64]>) -> f64 {
    match other {
        Some(other) => column.iter().zip(weights).zip(other).map(|((z, w), o)| z * w * o).sum(),
        None => column.iter().zip(weights).map(|(z, w)| z * w).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(points: &Points) -> Vec<Vec<f64>> {
        let layout = points.history.layout;
        let mut columns = vec![Vec::new(); layout.frozen + 1 + layout.steps * layout.trained];
        for (index, blocks) in points.history.iter().enumerate() {
            let moves = layout.view(blocks).moves;
            let innovations = (0..layout.steps).flat_map(|t| &moves.at(t)[..layout.trained]);
            for (column, numbers) in columns.iter_mut().zip(points.given.drawn(index).chain(innovations)) {
                column.extend(numbers);
            }
        }
        columns
    }

    #[test]
    fn columns_are_white_under_their_weights_and_longer_horizons_change_none() {
        for spread in [1.0, 1.6] {
            let sampling = Sampling { samples: 1024, seed: 3, spread };
            let short = columns(&Points::sobol(&sampling, 1, 2, 2, 3));
            let points = Points::sobol(&sampling, 1, 2, 2, 5);
            let long = columns(&points);
            assert_eq!(short, long[..short.len()]);
            for (j, a) in long.iter().enumerate() {
                assert!(weighted_product(a, &points.weights, None).abs() < 1e-9);
                for (k, b) in long[..=j].iter().enumerate() {
                    let product = weighted_product(a, &points.weights, Some(b)) / 1024.0;
                    assert!((product - f64::from(u8::from(j == k))).abs() < 1e-13, "{j} {k}: {product}");
                }
            }
        }
    }

    #[test]
    fn room_for_more_derivatives_leaves_the_points_as_they_are() {
        let mut points = Points::sobol(&Sampling { samples: 128, ..Sampling::default() }, 0, 2, 3, 4);
        let before = columns(&points);
        for wide in [5, 3] {
            points.history.fit(wide);
            assert_eq!(columns(&points), before);
        }
    }

    #[test]
    fn importance_weights_keep_the_law_and_see_the_tails() {
        let plain = Points::sobol(&Sampling { samples: 65_536, seed: 1, spread: 1.0 }, 0, 1, 1, 1);
        let wide = Points::sobol(&Sampling { samples: 65_536, seed: 1, spread: 1.6 }, 0, 1, 1, 1);
        let fourth = |p: &Points| {
            let v = &columns(p)[0];
            v.iter().zip(&p.weights).map(|(v, w)| w * v.powi(4)).sum::<f64>() / p.samples() as f64
        };
        assert!((fourth(&plain) - 3.0).abs() < 0.01 && (fourth(&wide) - 3.0).abs() < 0.01);
        let beyond = |p: &Points| columns(p)[0].iter().filter(|v| v.abs() > 4.0).count();
        assert!(beyond(&wide) > 100 * beyond(&plain).max(1));
    }
}
