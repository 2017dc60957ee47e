//! The transpose of the derivative of the split equations, and gradients of numbers of a state.

use super::SplitFlow;
use didact_math::linalg::{Mat, dot};
use didact_model::{Law, Needed};

/// Step of the differences of averages by an entry of C, in units of the size of that entry: errors of order 1e-10.
const STEP: f64 = 2e-5;
/// The same where averages have no closed form, or C is at the edge of what a covariance can be.
const COARSE_STEP: f64 = 1e-3;
/// Second differences of smooth averages are of order STEP² = 4e-10 in units of the averages, those of powers 3/2 of the distance to the
/// edge of order 1e-7: what is above this is not smooth.
const UNEVEN: f64 = 2e-8;

/// Variances of a state that is not special, relative to those of the state, beyond them.
const USUAL: f64 = 0.5;

/// What a transposed derivative says of the numbers beside the state.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::control) struct Slopes {
    /// c·∂f/∂γ.
    pub(in crate::control) decay: f64,
    /// c·∂f/∂σ.
    pub(in crate::control) noise: f64,
}

impl SplitFlow<'_> {
    /// Adds (∂f/∂y)ᵀ c to `out` at the state that was evaluated, f = η f1 + η² f2 (docs/derivations/optimal-protocols.md#eq-6).
    ///
    /// The chain is that of `evaluate` and `parts` in reverse: state → (A, N, s) and blocks → motion → f. Overlaps enter linearly once
    /// A, N and s are given, and these depend on the state through C and the scalars only.
    pub(in crate::control) fn pull_back(
        &mut self,
        state: &[f64],
        rate: f64,
        cotangent: &[f64],
        out: &mut [f64],
        with_noise_slope: bool,
    ) -> Slopes {
        let (k, p) = (self.shape.trained, self.shape.rows());
        let (e1, e2) = (rate * self.scales.0, rate * rate * self.scales.1);
        let per_block = self.per_block();
        let rows_end = self.rows_end();
        let (nu1, nu2) = self.shrinking();
        let nu: Vec<f64> = nu1.iter().zip(&nu2).map(|(a, b)| e1 * a + e2 * b).collect();
        let mut nu_bar = vec![0.0; nu.len()];
        let mut noise_bar = Mat::zeros(k, k);
        let mut drift_bar = Mat::zeros(k, p);
        let mut motion_bars = vec![Mat::zeros(k, p); self.blocks.len()];
        for (b, bar) in motion_bars.iter_mut().enumerate() {
            let (g, diffusion) = (&self.blocks[b], self.diffusion(b));
            for (at, (i, j)) in Self::entries(self.shape).enumerate() {
                let at = b * per_block + at;
                let c = cotangent[at];
                bar[(i, j)] += e1 * c;
                if j < k {
                    bar[(j, i)] += e1 * c;
                    noise_bar[(i, j)] += e2 * diffusion * c;
                }
                if !nu.is_empty() {
                    out[at] -= (nu[i] + if j < k { nu[j] } else { 0.0 }) * c;
                    nu_bar[i] -= c * g[(i, j)];
                    if j < k {
                        nu_bar[j] -= c * g[(i, j)];
                    }
                }
            }
        }
        // ν_i = (Σ_b 2 e1 M_b[i,i] + e2 w_b λ_b N_ii)/(2 L_i).
        let weight: f64 = (0..self.blocks.len()).map(|b| self.diffusion(b)).sum();
        for (i, bar) in nu_bar.iter().enumerate() {
            let length = self.lengths[i];
            motion_bars.iter_mut().for_each(|m| m[(i, i)] += e1 * bar / length);
            noise_bar[(i, i)] += e2 * weight * bar / (2.0 * length);
            let own = Self::entries(self.shape).position(|at| at == (i, i)).expect("a diagonal entry");
            for b in 0..self.blocks.len() {
                out[b * per_block + own] -= bar * nu[i] / length;
            }
        }
        let mut block_bars = vec![Mat::zeros(p, p); self.blocks.len()];
        if let Some(inverse) = &self.barred {
            let last = k + inverse.rows();
            let mut back_bar = Mat::zeros(k, inverse.rows());
            for ((g, bar), block_bar) in self.blocks.iter().zip(&motion_bars).zip(&mut block_bars) {
                let frozen = g.block(k..last, 0..p);
                back_bar.add_product_transposed(1.0, bar, &frozen);
                let through = self.back.transpose().times(bar);
                for m in 0..inverse.rows() {
                    for j in 0..p {
                        block_bar[(k + m, j)] += through[(m, j)];
                    }
                }
            }
            let along_bar = back_bar.times(&inverse.transpose());
            for bar in &mut motion_bars {
                for i in 0..k {
                    for m in 0..inverse.rows() {
                        bar[(i, k + m)] -= along_bar[(i, m)];
                    }
                }
            }
        }
        let mut slopes = Slopes::default();
        let drift_transposed = self.averages.drift.transpose();
        for (((g, bar), block_bar), &lambda) in
            self.blocks.iter().zip(&motion_bars).zip(&mut block_bars).zip(self.problem.spectrum.eigenvalues())
        {
            // G_b is symmetric, so that A's cotangent is −λ_b M̄_b G_b.
            drift_bar.add_product(-lambda, bar, g);
            block_bar.add_product(-lambda, &drift_transposed, bar);
            for i in 0..k {
                for j in 0..p {
                    block_bar[(i, j)] -= self.decay * bar[(i, j)];
                    slopes.decay -= bar[(i, j)] * g[(i, j)];
                }
            }
        }
        let scalars = &state[rows_end..];
        let c = &cotangent[rows_end..];
        let (ratio, length) = (e1 * self.problem.training.scalar_ratio, dot(scalars, scalars));
        let along = self.along(scalars);
        let kept = self.problem.training.constraint.scalar_sphere.is_some() && length > 0.0;
        let across = if kept { dot(scalars, c) / length } else { 0.0 };
        let scalar_bar: Vec<f64> = c.iter().zip(scalars).map(|(c, a)| -ratio * (c - across * a)).collect();
        if kept {
            for (s, a) in scalars.iter().enumerate() {
                out[rows_end + s] +=
                    ratio * (along * c[s] + across * (self.averages.scalars[s] - 2.0 * along * a));
            }
        }
        let bars = Bars { drift: &drift_bar, noise: &noise_bar, scalars: &scalar_bar };
        let by_entry = self.differences(scalars, &bars);
        for (b, (block_bar, lambda)) in block_bars.iter().zip(self.problem.spectrum.eigenvalues()).enumerate()
        {
            for (at, (i, j)) in Self::entries(self.shape).enumerate() {
                let mirrored = if i == j { 0.0 } else { block_bar[(j, i)] };
                out[b * per_block + at] += block_bar[(i, j)] + mirrored + lambda * by_entry[at];
            }
        }
        for (s, by) in by_entry[per_block..].iter().enumerate() {
            out[rows_end + s] += by;
        }
        if with_noise_slope {
            let h = 1e-4 * self.noise.max(1e-2);
            let covariance = self.covariance.clone();
            // Averages are even in σ.
            let up = self.paired(&covariance, scalars, self.noise + h, &bars);
            let down = self.paired(&covariance, scalars, (self.noise - h).abs(), &bars);
            slopes.noise = (up - down) / (2.0 * h);
        }
        slopes
    }

    /// ⟨Ā, A⟩ + ⟨N̄, N⟩ + s̄·s at a law.
    fn paired(&mut self, covariance: &Mat, scalars: &[f64], noise: f64, bars: &Bars) -> f64 {
        let law = Law { covariance, scalars, label_noise: noise };
        self.problem.rule.averages(&law, Needed::DriftAndNoise, &mut self.displaced);
        dot(bars.drift.as_slice(), self.displaced.drift.as_slice())
            + dot(bars.noise.as_slice(), self.displaced.noise.as_slice())
            + dot(bars.scalars, &self.displaced.scalars)
    }

    /// The same sum of absolute values, at the law of the last call.
    fn magnitude(&self, bars: &Bars) -> f64 {
        let sum = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| (x * y).abs()).sum::<f64>();
        sum(bars.drift.as_slice(), self.displaced.drift.as_slice())
            + sum(bars.noise.as_slice(), self.displaced.noise.as_slice())
            + sum(bars.scalars, &self.displaced.scalars)
    }

    /// The derivatives of that number by the moving entries of C, in the order of a block, then by the scalars.
    fn differences(&mut self, scalars: &[f64], bars: &Bars) -> Vec<f64> {
        let covariance = self.covariance.clone();
        let middle = self.paired(&covariance, scalars, self.noise, bars);
        // A student that has nearly learned has a small noise matrix, and cotangents for which the drift nearly cancels: the size of what is
        // differentiated is that at a state which is not special.
        let mut usual = covariance.clone();
        for row in 0..usual.rows() {
            usual[(row, row)] += USUAL * covariance[(row, row)].abs().max(1e-6);
        }
        let magnitude = self.magnitude(bars) + {
            self.paired(&usual, scalars, self.noise, bars);
            self.magnitude(bars)
        };
        let (noise, closed) = (self.noise, self.closed);
        let mut slopes = Vec::with_capacity(self.per_block() + scalars.len());
        for entry in Self::entries(self.shape) {
            let value = |c: &Mat| self.paired(c, scalars, noise, bars);
            slopes.push(slope_by_entry(&covariance, entry, closed, (middle, magnitude), value));
        }
        for s in 0..scalars.len() {
            let h = if closed { STEP } else { COARSE_STEP } * scalars[s].abs().max(0.1);
            let mut moved = scalars.to_vec();
            moved[s] += h;
            let up = self.paired(&covariance, &moved, noise, bars);
            moved[s] -= 2.0 * h;
            slopes.push((up - self.paired(&covariance, &moved, noise, bars)) / (2.0 * h));
        }
        slopes
    }

    /// The generalisation error of a state.
    pub(in crate::control) fn risk(&self, state: &[f64]) -> f64 {
        let overlaps = self.unpack(state);
        let covariance = overlaps.covariance(&self.problem.spectrum);
        self.problem.rule.risk(&Law { covariance: &covariance, scalars: &overlaps.scalars, label_noise: 0.0 })
    }

    /// Its gradient, through C and the scalars alone.
    pub(in crate::control) fn risk_gradient(&self, state: &[f64]) -> Vec<f64> {
        let overlaps = self.unpack(state);
        let covariance = overlaps.covariance(&self.problem.spectrum);
        let risk = |c: &Mat, scalars: &[f64]| {
            self.problem.rule.risk(&Law { covariance: c, scalars, label_noise: 0.0 })
        };
        let scalars = &overlaps.scalars;
        let middle = risk(&covariance, scalars);
        // A risk is a difference of numbers of the size of the squared outputs, of which 1 is the usual one.
        let magnitude = middle.abs().max(1.0);
        let slopes: Vec<f64> = Self::entries(self.shape)
            .map(|entry| {
                slope_by_entry(&covariance, entry, self.closed, (middle, magnitude), |c| risk(c, scalars))
            })
            .collect();
        let mut gradient = Vec::with_capacity(self.dimension());
        for lambda in self.problem.spectrum.eigenvalues() {
            gradient.extend(slopes.iter().map(|slope| lambda * slope));
        }
        for s in 0..scalars.len() {
            let h = if self.closed { STEP } else { COARSE_STEP } * scalars[s].abs().max(0.1);
            let mut moved = scalars.clone();
            moved[s] += h;
            let up = risk(&covariance, &moved);
            moved[s] -= 2.0 * h;
            gradient.push((up - risk(&covariance, &moved)) / (2.0 * h));
        }
        gradient
    }

    /// The gradient of any number of a state, by central differences of every entry.
    pub(in crate::control) fn gradient_of(
        &self,
        state: &[f64],
        mut value: impl FnMut(&[f64]) -> f64,
    ) -> Vec<f64> {
        let overlaps = self.unpack(state);
        let mut sizes = Vec::with_capacity(state.len());
        for g in &overlaps.blocks {
            sizes.extend(
                Self::entries(self.shape).map(|(i, j)| (g[(i, i)] * g[(j, j)]).abs().sqrt().max(1e-6)),
            );
        }
        sizes.extend(overlaps.scalars.iter().map(|a| a.abs().max(0.1)));
        let mut moved = state.to_vec();
        let mut gradient = Vec::with_capacity(state.len());
        for (at, size) in sizes.into_iter().enumerate() {
            let h = if self.closed { STEP } else { COARSE_STEP } * size;
            moved[at] = state[at] + h;
            let up = value(&moved);
            moved[at] = state[at] - h;
            gradient.push((up - value(&moved)) / (2.0 * h));
            moved[at] = state[at];
        }
        gradient
    }
}

/// The derivative of a number of a covariance by one of its entries (and the mirrored one), by central differences. Where averages have
/// no closed form, or are not smooth because C is at the edge of the cone of covariances, the differences are coarse and taken somewhat
/// inside the cone. `known` is the number at C, and the size of the terms that it is the sum of.
fn slope_by_entry(
    covariance: &Mat,
    (i, j): (usize, usize),
    closed: bool,
    (middle, magnitude): (f64, f64),
    mut value: impl FnMut(&Mat) -> f64,
) -> f64 {
    let size = (covariance[(i, i)] * covariance[(j, j)]).abs().sqrt().max(1e-6);
    let mut moved = |by: f64, inward: f64| {
        let mut there = covariance.clone();
        there[(i, j)] += by;
        if i != j {
            there[(j, i)] += by;
        }
        if inward > 0.0 {
            for row in 0..there.rows() {
                there[(row, row)] += inward * covariance[(row, row)].abs().max(1e-6);
            }
        }
        value(&there)
    };
    if closed {
        let h = STEP * size;
        let (up, down) = (moved(h, 0.0), moved(-h, 0.0));
        let slope = (up - down) / (2.0 * h);
        if slope.is_finite() && (up + down - 2.0 * middle).abs() <= UNEVEN * magnitude {
            return slope;
        }
    }
    let h = COARSE_STEP * size;
    (moved(h, 2.0 * COARSE_STEP) - moved(-h, 2.0 * COARSE_STEP)) / (2.0 * h)
}

/// Cotangents of the averages.
struct Bars<'a> {
    drift: &'a Mat,
    /// Of the lower triangle of N.
    noise: &'a Mat,
    scalars: &'a [f64],
}
