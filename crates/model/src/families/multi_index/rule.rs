//! The rule of a two-layer student and its derivatives in closed form.

use super::link::Link;
use crate::residual_loss::ResidualLoss;
use crate::rule::{Batch, Jumps, Kick, LocalRule, Sample, Shape};
use didact_math::activation::Activation;
use didact_math::linalg::Mat;
use std::sync::Arc;

/// f = (1/m) Σ_j a_j σ(h_j + b_j) against y = h(z, e), loss ρ(f − y).
#[derive(Debug)]
pub(super) struct TwoLayerRule {
    pub(super) activation: Arc<dyn Activation>,
    /// a_j/m.
    pub(super) weights: Vec<f64>,
    pub(super) biases: Vec<f64>,
    pub(super) link: Link,
    pub(super) loss: ResidualLoss,
}

/// What a sample needs once: residual and jets of the units.
struct Units {
    residual: f64,
    slopes: Vec<f64>,
    curvatures: Vec<f64>,
}

impl TwoLayerRule {
    fn trained(&self) -> usize {
        self.weights.len()
    }

    fn residual(&self, sample: &Sample) -> f64 {
        let m = self.trained();
        let unit = |j: usize| self.weights[j] * self.activation.value(sample.fields[j] + self.biases[j]);
        (0..m).map(unit).sum::<f64>() - self.link.label(&sample.fields[m..], sample.noise)
    }

    fn units(&self, sample: &Sample) -> Units {
        let m = self.trained();
        let (mut output, mut slopes, mut curvatures) = (0.0, vec![0.0; m], vec![0.0; m]);
        for j in 0..m {
            let (value, slope, curvature) = self.activation.jet(sample.fields[j] + self.biases[j]);
            output += self.weights[j] * value;
            (slopes[j], curvatures[j]) = (slope, curvature);
        }
        Units { residual: output - self.link.label(&sample.fields[m..], sample.noise), slopes, curvatures }
    }

    /// Residuals and the jets of all units of a batch.
    fn batch_units(&self, batch: &Batch) -> BatchUnits {
        let (m, n) = (self.trained(), batch.size);
        let mut numbers = vec![0.0; (5 + 2 * m) * n];
        let (residual, rest) = numbers.split_at_mut(n);
        let (value, rest) = rest.split_at_mut(n);
        let (shifted, rest) = rest.split_at_mut(n);
        let (slopes, curvatures) = rest[2 * n..].split_at_mut(m * n);
        let frozen: Vec<&[f64]> = batch.fields[m * n..].chunks_exact(n).collect();
        self.link.labels(&frozen, batch.noise, residual);
        residual.iter_mut().for_each(|r| *r = -*r);
        for j in 0..m {
            let own = j * n..(j + 1) * n;
            let mut fields = &batch.fields[own.clone()];
            if self.biases[j] != 0.0 {
                shifted.iter_mut().zip(fields).for_each(|(s, h)| *s = h + self.biases[j]);
                fields = shifted;
            }
            self.activation.jets(fields, value, &mut slopes[own.clone()], &mut curvatures[own]);
            for (r, v) in residual.iter_mut().zip(&*value) {
                *r += self.weights[j] * v;
            }
        }
        BatchUnits { numbers, trained: m, size: n }
    }
}

/// What a batch needs once, in one allocation: residuals, two arrays of room, ρ′, ρ″, then σ′ and σ″ of all units.
struct BatchUnits {
    numbers: Vec<f64>,
    trained: usize,
    size: usize,
}

impl BatchUnits {
    fn residuals(&mut self) -> &mut [f64] {
        &mut self.numbers[..self.size]
    }

    /// ρ′ and ρ″ of the residuals; σ′ and σ″, m x size each.
    fn derivatives(&mut self, loss: ResidualLoss) -> [&[f64]; 4] {
        let (n, m) = (self.size, self.trained);
        let (residual, rest) = self.numbers.split_at_mut(3 * n);
        let (first, rest) = rest.split_at_mut(n);
        let (second, units) = rest.split_at_mut(n);
        loss.slopes(&residual[..n], first, second);
        let (slopes, curvatures) = units.split_at(m * n);
        [first, second, slopes, curvatures]
    }
}

impl LocalRule for TwoLayerRule {
    fn shape(&self) -> Shape {
        Shape { trained: self.trained(), frozen: self.link.directions(), scalars: 0 }
    }

    fn loss(&self, sample: &Sample) -> f64 {
        self.loss.value(self.residual(sample))
    }

    /// φ_j = (a_j/m) ρ′(f − y) σ′(h_j + b_j).
    fn kick(&self, sample: &Sample, out: &mut Kick) {
        let units = self.units(sample);
        let slope = self.loss.slope(units.residual);
        for (j, out) in out.rows.iter_mut().enumerate() {
            *out = self.weights[j] * slope * units.slopes[j];
        }
    }

    fn kick_batch(&self, batch: &Batch, rows: &mut [f64], _scalars: &mut [f64]) {
        let n = batch.size;
        let mut units = self.batch_units(batch);
        let [first, _, slopes, _] = units.derivatives(self.loss);
        for ((out, slope), a) in rows.chunks_exact_mut(n).zip(slopes.chunks_exact(n)).zip(&self.weights) {
            for i in 0..n {
                out[i] = a * first[i] * slope[i];
            }
        }
    }

    fn loss_batch(&self, batch: &Batch, out: &mut [f64]) {
        let mut units = self.batch_units(batch);
        self.loss.values(units.residuals());
        out.copy_from_slice(units.residuals());
    }

    /// ∂φ_i/∂h_j = (a_i a_j/m²) ρ″ σ′_i σ′_j + δ_ij (a_i/m) ρ′ σ″_i,      ∂φ_i/∂z_n = −(a_i/m) ρ″ σ′_i ∂h/∂z_n.
    fn curvature(&self, sample: &Sample, out: &mut Mat) {
        let m = self.trained();
        let units = self.units(sample);
        let (first, second) = (self.loss.slope(units.residual), self.loss.curvature(units.residual));
        let mut gradient = vec![0.0; self.link.directions()];
        self.link.gradient(&sample.fields[m..], sample.noise, &mut gradient);
        for i in 0..m {
            let own = self.weights[i] * units.slopes[i];
            for j in 0..m {
                out[(i, j)] = second * own * self.weights[j] * units.slopes[j];
            }
            out[(i, i)] += self.weights[i] * first * units.curvatures[i];
            for (n, g) in gradient.iter().enumerate() {
                out[(i, m + n)] = -second * own * g;
            }
        }
    }

    fn curvature_batch(&self, batch: &Batch, columns: usize, kicks: &mut [f64], curvature: &mut [f64]) {
        let (m, n) = (self.trained(), batch.size);
        let mut units = self.batch_units(batch);
        let [first, second, slopes, curvatures] = units.derivatives(self.loss);
        for i in 0..m {
            let (a, slope) = (self.weights[i], &slopes[i * n..(i + 1) * n]);
            let kick = &mut kicks[i * n..(i + 1) * n];
            for l in 0..n {
                kick[l] = a * first[l] * slope[l];
            }
            for j in 0..m.min(columns) {
                let (b, other) = (a * self.weights[j], &slopes[j * n..(j + 1) * n]);
                let out = &mut curvature[(i * columns + j) * n..][..n];
                for l in 0..n {
                    out[l] = b * second[l] * slope[l] * other[l];
                }
                if i == j {
                    let own = &curvatures[i * n..(i + 1) * n];
                    for l in 0..n {
                        out[l] += a * first[l] * own[l];
                    }
                }
            }
        }
        if columns > m {
            let k = self.link.directions();
            let (mut z, mut gradient) = (vec![0.0; k], vec![0.0; k]);
            for l in 0..n {
                for (d, z) in z.iter_mut().enumerate() {
                    *z = batch.fields[(m + d) * n + l];
                }
                self.link.gradient(&z, batch.noise[l], &mut gradient);
                for i in 0..m {
                    let own = -self.weights[i] * second[l] * slopes[i * n + l];
                    for d in 0..columns - m {
                        curvature[(i * columns + m + d) * n + l] = own * gradient[d];
                    }
                }
            }
        }
    }

    fn jumps(&self) -> Jumps {
        Jumps { trained: !self.activation.kinks().is_empty(), frozen: self.link.has_jumps() }
    }

    fn label(&self, frozen: &[f64], noise: f64) -> Option<f64> {
        Some(self.link.label(frozen, noise))
    }

    /// One unit: ∂φ/∂h. More: G_j = a_j ρ′ σ″_j, the block of m Hess that survives when m is large, with the sign of a_j.
    fn row_weight(&self, sample: &Sample, row: usize) -> f64 {
        let m = self.trained();
        let units = self.units(sample);
        let bent = self.weights[row] * self.loss.slope(units.residual) * units.curvatures[row];
        if m == 1 {
            let own = self.weights[0] * units.slopes[0];
            return self.loss.curvature(units.residual) * own * own + bent;
        }
        m as f64 * bent
    }
}
