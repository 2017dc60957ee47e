//! E[∏ᵢ (zᵢ₊)^{pᵢ}] of up to four Gaussian fields, where (z₊)⁰ = θ(z), by recursion.
//!
//! Stein's lemma takes one power away, E[z_m F] = Σⱼ C_mj E[∂ⱼF]; the derivative of a step is δ(zⱼ), which conditions
//! the other fields on zⱼ = 0 and so removes a field. What remains at the end are orthant probabilities. Up to three
//! fields they are sums of arcsines; for four the only non-elementary piece is a one-dimensional integral (Plackett).

use std::f64::consts::{FRAC_1_PI, PI};
use std::sync::OnceLock;

use super::normal::FRAC_1_SQRT_2PI;
use crate::expression::sigmoid;

const FIELDS: usize = 4;
/// Rounding of a covariance, in units of the variances it was computed from: below it a variance or determinant is 0.
const ROUNDING: f64 = 4.0 * f64::EPSILON;

/// A product ∏ (zᵢ₊)^{pᵢ} and the covariance of its fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Product {
    len: usize,
    c: [[f64; FIELDS]; FIELDS],
    power: [u8; FIELDS],
    /// Variances before any conditioning: they set the rounding noise in `c`.
    scale: [f64; FIELDS],
}

impl Product {
    pub(super) fn new<const N: usize>(covariance: &[[f64; N]; N], powers: [u8; N]) -> Self {
        let mut product =
            Self { len: N, c: [[0.0; FIELDS]; FIELDS], power: [0; FIELDS], scale: [0.0; FIELDS] };
        for i in 0..N {
            product.c[i][..N].copy_from_slice(&covariance[i]);
            product.power[i] = powers[i];
            product.scale[i] = covariance[i][i];
        }
        product
    }

    /// E[∏ (zᵢ₊)^{pᵢ}]. A field that is identically zero counts as θ = 1/2.
    pub(super) fn mean(mut self) -> f64 {
        match self.merge() {
            0.0 => 0.0,
            factor => factor * self.mean_of_distinct(),
        }
    }

    /// Removes fields of zero variance and merges parallel ones; returns the factor taken out.
    fn merge(&mut self) -> f64 {
        let mut factor = 1.0;
        let mut i = 0;
        while i < self.len {
            if self.c[i][i] <= ROUNDING * self.scale[i] {
                if self.power[i] > 0 {
                    return 0.0;
                }
                factor *= 0.5;
                self.remove(i);
                continue;
            }
            let mut j = i + 1;
            while j < self.len {
                if self.c[j][j] > ROUNDING * self.scale[j] && self.sine_squared(i, j) == 0.0 {
                    if self.c[i][j] < 0.0 {
                        return 0.0; // zᵢ and zⱼ are never positive together
                    }
                    factor *= (self.c[j][j] / self.c[i][i]).sqrt().powi(i32::from(self.power[j]));
                    self.power[i] += self.power[j];
                    self.remove(j);
                } else {
                    j += 1;
                }
            }
            i += 1;
        }
        factor
    }

    fn mean_of_distinct(self) -> f64 {
        let Some(m) = (0..self.len).find(|&i| self.power[i] > 0) else { return self.orthant() };
        let mut rest = self;
        rest.power[m] -= 1;
        let mut sum = 0.0;
        for j in 0..self.len {
            if self.c[m][j] == 0.0 {
                continue;
            }
            let derivative = if rest.power[j] > 0 {
                let mut lower = rest;
                lower.power[j] -= 1;
                f64::from(rest.power[j]) * lower.mean_of_distinct()
            } else {
                FRAC_1_SQRT_2PI / self.c[j][j].sqrt() * rest.at_zero(j).mean()
            };
            sum += self.c[m][j] * derivative;
        }
        sum
    }

    /// The other fields given z_j = 0.
    fn at_zero(mut self, j: usize) -> Self {
        let row = self.c[j];
        for i in 0..self.len {
            for k in 0..self.len {
                self.c[i][k] -= row[i] * row[k] / row[j];
            }
        }
        self.remove(j);
        self
    }

    fn remove(&mut self, i: usize) {
        let last = self.len - 1;
        for k in i..last {
            self.c.swap(k, k + 1);
            self.power.swap(k, k + 1);
            self.scale.swap(k, k + 1);
        }
        for row in &mut self.c {
            row[i..].rotate_left(1);
        }
        self.len = last;
    }

    /// Cᵢᵢ Cⱼⱼ − Cᵢⱼ², zero if it is rounding noise.
    fn sine_squared(&self, i: usize, j: usize) -> f64 {
        let (a, b) = (self.c[i][i], self.c[j][j]);
        snapped(
            a * b - self.c[i][j] * self.c[i][j],
            ROUNDING * f64::midpoint(self.scale[i] * b, self.scale[j] * a),
        )
    }

    /// asin of the correlation of two fields.
    fn angle(&self, i: usize, j: usize) -> f64 {
        self.c[i][j].atan2(self.sine_squared(i, j).sqrt())
    }

    /// P(all fields > 0):  1/2;  1/4 + a₁₂/2π;  1/8 + (a₁₂ + a₁₃ + a₂₃)/4π;  Plackett for four.
    fn orthant(&self) -> f64 {
        let angles =
            || (0..self.len).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| self.angle(i, j));
        match self.len {
            0 => 1.0,
            1 => 0.5,
            2 => 0.25 + 0.5 * FRAC_1_PI * angles().sum::<f64>(),
            3 => 0.125 + 0.25 * FRAC_1_PI * angles().sum::<f64>(),
            _ => self.orthant_of_four(),
        }
    }

    /// Plackett, Biometrika 41, 351 (1954): ∂P/∂ρ₁ⱼ is the density of (z₁, zⱼ) at 0 times P(z_k, z_l > 0 | z₁ = zⱼ = 0).
    /// Switch the correlations of one field on, ρ₁ⱼ → tρ₁ⱼ; with sin u = tρ₁ⱼ the density is du/2π:
    ///
    ///   P = P(2,3,4)/2 + Σⱼ ∫₀^{asin ρ₁ⱼ} du/2π [1/4 + asin r_kl(t)/2π].
    ///
    /// r reaches ±1 at most at the end t = 1 (singular C), a square-root singularity that tanh-sinh nodes absorb.
    fn orthant_of_four(&self) -> f64 {
        let rho = |i: usize, j: usize| self.c[i][j] / (self.c[i][i] * self.c[j][j]).sqrt();
        // Switch on the field that is least correlated with the others: shortest path, mildest integrand.
        let size = |i: usize| (0..4).filter(|&j| j != i).map(|j| rho(i, j).abs()).fold(0.0, f64::max);
        let first = (0..4).min_by(|&i, &j| size(i).total_cmp(&size(j))).unwrap_or(0);
        let others: [usize; 3] = std::array::from_fn(|i| (first + 1 + i) % 4);
        let mut block = *self;
        block.remove(first);
        let mut sum = 0.5 * block.orthant();
        for turn in 0..3 {
            let [j, k, l] = std::array::from_fn(|i| others[(turn + i) % 3]);
            let end = self.angle(first, j);
            if end == 0.0 {
                continue;
            }
            let [x_j, x_k, x_l] = [j, k, l].map(|i| rho(first, i));
            let (y_k, y_l, kl) = (rho(j, k), rho(j, l), rho(k, l));
            let integral: f64 = tanh_sinh()
                .iter()
                .map(|&(share, weight)| {
                    let s = (share * end).sin();
                    let t = s / x_j;
                    let left = 1.0 - s * s;
                    // Covariances given z₁ = zⱼ = 0, times 1 − s².
                    let given = |c: f64, (x, y): (f64, f64), (v, w): (f64, f64)| {
                        left * c - t * t * x * v - y * w + s * t * (x * w + v * y)
                    };
                    let (kk, ll) = (given(1.0, (x_k, y_k), (x_k, y_k)), given(1.0, (x_l, y_l), (x_l, y_l)));
                    let cross = given(kl, (x_k, y_k), (x_l, y_l));
                    let sine_squared = snapped(kk * ll - cross * cross, ROUNDING * (kk.abs() + ll.abs()));
                    weight * (0.25 + 0.5 * FRAC_1_PI * cross.atan2(sine_squared.sqrt()))
                })
                .sum();
            sum += 0.5 * FRAC_1_PI * end * integral;
        }
        sum
    }
}

fn snapped(value: f64, noise: f64) -> f64 {
    if value <= noise { 0.0 } else { value }
}

/// Nodes and weights of ∫₀¹ that absorb end-point singularities: x = 1/(1 + e^{−π sinh(kh)}).
fn tanh_sinh() -> &'static [(f64, f64)] {
    static NODES: OnceLock<Vec<(f64, f64)>> = OnceLock::new();
    NODES.get_or_init(|| {
        // 53 nodes: halving the step changes the integral of a square-root singularity by less than 1e-13 (tested),
        // and the integral enters a probability with a factor of at most 1/8π.
        double_exponential(0.125, 26)
    })
}

fn double_exponential(step: f64, side: i32) -> Vec<(f64, f64)> {
    (-side..=side)
        .map(|k| {
            let s = f64::from(k) * step;
            let y = PI * s.sinh();
            let (up, down) = (sigmoid(y), sigmoid(-y));
            (up, step * PI * s.cosh() * up * down)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tanh_sinh_nodes_absorb_square_roots_at_the_end() {
        // What the integrand of Plackett's formula does at worst: asin r with 1 − r ~ distance (at or just past the end).
        for past in [0.0, 1e-12, 1e-8, 1e-4, 1e-2, 1.0] {
            let integrate = |nodes: &[(f64, f64)]| -> f64 {
                nodes.iter().map(|&(x, w)| w * (1.0 - (1.0 - x + past) / (1.0 + past)).asin()).sum()
            };
            let (used, finer) = (integrate(tanh_sinh()), integrate(&double_exponential(0.0625, 52)));
            assert!((used - finer).abs() < 1e-13, "{past}: {}", used - finer);
        }
        // ∫₀¹ asin x dx = π/2 − 1.
        let exact = PI / 2.0 - 1.0;
        let got: f64 = tanh_sinh().iter().map(|&(x, w)| w * x.asin()).sum();
        assert!((got - exact).abs() < 1e-14, "{}", got - exact);
    }
}
