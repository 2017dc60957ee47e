//! The rule of a two-layer student and its derivatives in closed form.

mod lanes;

use didact_math::activation::Activation;
use didact_math::linalg::{Mat, dot};
use didact_math::memory::with_scratch;
use didact_math::simd::add_scaled;
use didact_model::link::Link;
use didact_model::loss::Loss;
use didact_model::rule::{
    Batch, BatchRule, CurvatureRule, Expansion, HiddenUnits, Jumps, Kick, KinkPlane, LabelledRule, LocalRule,
    Sample, Shape,
};
use lanes::Own;
use std::borrow::Cow;
use std::sync::Arc;

/// f = (1/m) Σ_j a_j σ(h_j + b_j) against y = h(z, e), loss ℓ(y, f). Scalars are the a_j, if they are trained, then the b_j.
#[derive(Debug)]
pub(super) struct MultiIndexRule {
    pub(super) activation: Arc<dyn Activation>,
    /// a_j/m, as they are unless trained.
    pub(super) weights: Vec<f64>,
    /// What multiplies a_j: 1/m.
    pub(super) gains: Vec<f64>,
    /// b_j, as they are unless trained.
    pub(super) biases: Vec<f64>,
    pub(super) train_output: bool,
    pub(super) train_biases: bool,
    pub(super) link: Link,
    pub(super) loss: Loss,
}

/// What a sample needs once: output, label and jets of the units.
struct Units {
    output: f64,
    label: f64,
    values: Vec<f64>,
    slopes: Vec<f64>,
    curvatures: Vec<f64>,
}

/// The same of a batch.
struct BatchUnits<'a> {
    /// f − y.
    residuals: &'a mut [f64],
    /// y.
    labels: &'a [f64],
    /// σ, m x size, where the a_j are trained.
    values: &'a [f64],
    /// m x size.
    slopes: &'a [f64],
    /// m x size.
    curvatures: &'a [f64],
    /// ℓ′ and ℓ″, yet to be filled.
    first: &'a mut [f64],
    second: &'a mut [f64],
}

impl MultiIndexRule {
    fn trained(&self) -> usize {
        self.weights.len()
    }

    /// a_j/m at these scalars.
    fn weights_at(&self, scalars: &[f64]) -> Cow<'_, [f64]> {
        if self.train_output {
            self.gains.iter().zip(scalars).map(|(gain, a)| gain * a).collect()
        } else {
            Cow::Borrowed(&self.weights)
        }
    }

    /// b_j at these scalars.
    fn biases_at<'a>(&'a self, scalars: &'a [f64]) -> &'a [f64] {
        let behind = if self.train_output { self.trained() } else { 0 };
        if self.train_biases { &scalars[behind..] } else { &self.biases }
    }

    fn output(&self, sample: &Sample) -> f64 {
        let (weights, biases) = (self.weights_at(sample.scalars), self.biases_at(sample.scalars));
        let unit = |j: usize| weights[j] * self.activation.value(sample.fields[j] + biases[j]);
        (0..self.trained()).map(unit).sum()
    }

    fn units(&self, sample: &Sample) -> Units {
        let m = self.trained();
        let (weights, biases) = (self.weights_at(sample.scalars), self.biases_at(sample.scalars));
        let (mut output, mut values) = (0.0, vec![0.0; m]);
        let (mut slopes, mut curvatures) = (vec![0.0; m], vec![0.0; m]);
        for j in 0..m {
            let (value, slope, curvature) = self.activation.jet(sample.fields[j] + biases[j]);
            output += weights[j] * value;
            (values[j], slopes[j], curvatures[j]) = (value, slope, curvature);
        }
        let label = self.link.label(&sample.fields[m..], sample.noise);
        Units { output, label, values, slopes, curvatures }
    }

    /// Units whose values [`Self::batch_units`] keeps.
    fn kept(&self) -> usize {
        if self.train_output { self.trained() } else { 1 }
    }

    /// Numbers that [`Self::batch_units`] needs room for.
    fn room(&self, size: usize) -> usize {
        (2 * self.trained() + self.kept() + 5) * size
    }

    fn batch_units<'a>(&self, batch: &Batch<'a>, room: &'a mut [f64]) -> BatchUnits<'a> {
        let (m, n) = (self.trained(), batch.size);
        let (slopes, room) = room.split_at_mut(m * n);
        let (curvatures, room) = room.split_at_mut(m * n);
        let (residuals, room) = room.split_at_mut(n);
        let (shifted, room) = room.split_at_mut(n);
        let (values, room) = room.split_at_mut(self.kept() * n);
        let (first, room) = room.split_at_mut(n);
        let (second, own) = room.split_at_mut(n);
        let labels = if batch.labels.is_empty() {
            self.labels(batch, own);
            own
        } else {
            batch.labels
        };
        let (weights, biases) = (self.weights_at(batch.scalars), self.biases_at(batch.scalars));
        for j in 0..m {
            let own = j * n..(j + 1) * n;
            let mut fields = &batch.fields[own.clone()];
            if biases[j] != 0.0 {
                shifted.iter_mut().zip(fields).for_each(|(s, h)| *s = h + biases[j]);
                fields = shifted;
            }
            let value = &mut values[if self.train_output { own.clone() } else { 0..n }];
            self.activation.jets(fields, value, &mut slopes[own.clone()], &mut curvatures[own]);
            if j == 0 {
                lanes::residuals(weights[j], value, labels, residuals);
            } else {
                add_scaled(residuals, weights[j], value);
            }
        }
        BatchUnits { residuals, labels, values, slopes, curvatures, first, second }
    }

    /// A student of one unit whose labels are known, and its own field alone.
    fn single(&self, batch: &Batch, out: Expansion) {
        let (n, a, bias) = (batch.size, self.weights_at(batch.scalars)[0], self.biases_at(batch.scalars)[0]);
        let (slope, curvature) = (&mut out.kicks[..n], &mut out.curvature[..n]);
        let labels = &batch.labels[..n];
        with_scratch(2 * n, |room| {
            let (value, other) = room.split_at_mut(n);
            let mut fields = &batch.fields[..n];
            if bias != 0.0 {
                other.iter_mut().zip(fields).for_each(|(shifted, h)| *shifted = h + bias);
                fields = other;
            }
            self.activation.jets(fields, value, slope, curvature);
            lanes::single(self.loss, a, value, labels, slope, curvature);
            if !out.losses.is_empty() {
                lanes::residuals(a, value, labels, other);
                self.loss.values(other, labels, out.losses);
            }
        });
    }

    /// Any number of units and of fields to differentiate by.
    fn several(&self, batch: &Batch, out: Expansion) {
        let Expansion { losses, kicks, columns, curvature } = out;
        let n = batch.size;
        with_scratch(self.room(n), |room| {
            let mut units = self.batch_units(batch, room);
            if !losses.is_empty() {
                self.loss.values(units.residuals, units.labels, losses);
            }
            self.loss.slopes(units.residuals, units.labels, units.first, units.second);
            let BatchUnits { slopes, curvatures, first, second, .. } = &mut units;
            let weights = self.weights_at(batch.scalars);
            for (i, &a) in weights.iter().enumerate() {
                let own = i * n..(i + 1) * n;
                let slope = &slopes[own.clone()];
                lanes::kicks(a, first, slope, &mut kicks[own.clone()]);
                for j in 0..self.trained().min(columns) {
                    let (other, out) = (&slopes[j * n..][..n], &mut curvature[(i * columns + j) * n..][..n]);
                    if i == j {
                        let unit =
                            Own { weight: a, first, second, slope, curvature: &curvatures[own.clone()] };
                        lanes::own(unit, out);
                    } else {
                        lanes::cross(a * weights[j], second, slope, other, out);
                    }
                }
            }
            if columns > self.trained() {
                self.frozen_curvature(batch, &units, columns, curvature);
            }
        });
    }

    /// ∂φ_i/∂z_n of a batch, the columns behind those of the trained fields.
    fn frozen_curvature(&self, batch: &Batch, units: &BatchUnits, columns: usize, curvature: &mut [f64]) {
        let (m, n) = (self.trained(), batch.size);
        let mut fresh = Vec::new();
        let label_slopes = if batch.label_slopes.is_empty() {
            fresh.resize(self.link.directions() * n, 0.0);
            self.label_slopes(batch, &mut fresh);
            &fresh
        } else {
            batch.label_slopes
        };
        for (i, &a) in self.weights_at(batch.scalars).iter().enumerate() {
            let slope = &units.slopes[i * n..][..n];
            let behind = curvature[(i * columns + m) * n..(i + 1) * columns * n].chunks_exact_mut(n);
            for (out, label_slope) in behind.zip(label_slopes.chunks_exact(n)) {
                lanes::frozen(a, self.loss, units.second, slope, label_slope, out);
            }
        }
    }
}

impl LocalRule for MultiIndexRule {
    fn shape(&self) -> Shape {
        let m = self.trained();
        let scalars = [self.train_output, self.train_biases].map(|trained| if trained { m } else { 0 });
        Shape {
            trained: m,
            frozen: self.link.directions(),
            scalars: scalars.iter().sum(),
            ..Shape::default()
        }
    }

    fn loss(&self, sample: &Sample) -> f64 {
        let label = self.link.label(&sample.fields[self.trained()..], sample.noise);
        self.loss.value(self.output(sample), label)
    }

    /// φ_j = (a_j/m) ℓ′ σ′(h_j + b_j), ℓ′ = ∂ℓ/∂f (docs/derivations/gd-phase-transitions.md#eq-1);
    /// ∂ℓ/∂a_j = (1/m) ℓ′ σ(h_j + b_j), ∂ℓ/∂b_j = φ_j.
    fn kick(&self, sample: &Sample, out: &mut Kick) {
        let units = self.units(sample);
        let slope = self.loss.slope(units.output, units.label);
        let weights = self.weights_at(sample.scalars);
        for (j, out) in out.rows.iter_mut().enumerate() {
            *out = weights[j] * slope * units.slopes[j];
        }
        let behind = if self.train_output { self.trained() } else { 0 };
        let (outputs, biases) = out.scalars.split_at_mut(behind);
        for ((out, gain), value) in outputs.iter_mut().zip(&self.gains).zip(&units.values) {
            *out = gain * slope * value;
        }
        biases.iter_mut().zip(&out.rows).for_each(|(out, kick)| *out = *kick);
    }

    /// ∂φ_i/∂h_j = (a_i a_j/m²) ℓ″ σ′_i σ′_j + δ_ij (a_i/m) ℓ′ σ″_i,      ∂φ_i/∂z_n = (a_i/m) ∂²ℓ/∂f∂y σ′_i ∂h/∂z_n
    /// (docs/derivations/gd-phase-transitions.md#eq-2).
    fn curvature(&self, sample: &Sample, out: &mut Mat) {
        let m = self.trained();
        let units = self.units(sample);
        let first = self.loss.slope(units.output, units.label);
        let second = self.loss.curvature(units.output, units.label);
        let mixed = self.loss.mixed(second);
        let mut gradient = vec![0.0; self.link.directions()];
        self.link.gradient(&sample.fields[m..], sample.noise, &mut gradient);
        let weights = self.weights_at(sample.scalars);
        for i in 0..m {
            let own = weights[i] * units.slopes[i];
            for j in 0..m {
                out[(i, j)] = second * own * weights[j] * units.slopes[j];
            }
            out[(i, i)] += weights[i] * first * units.curvatures[i];
            for (n, g) in gradient.iter().enumerate() {
                out[(i, m + n)] = mixed * own * g;
            }
        }
    }

    fn same_class(&self, sample: &Sample) -> Option<bool> {
        let label = self.link.label(&sample.fields[self.trained()..], sample.noise);
        Some(self.loss.same_class(self.output(sample), label))
    }

    fn batch(&self) -> Option<&dyn BatchRule> {
        Some(self)
    }

    fn labelled(&self) -> Option<&dyn LabelledRule> {
        Some(self)
    }

    fn curved(&self) -> Option<&dyn CurvatureRule> {
        Some(self)
    }

    fn hidden(&self) -> Option<&dyn HiddenUnits> {
        Some(self)
    }
}

impl HiddenUnits for MultiIndexRule {
    fn units(&self) -> usize {
        self.trained()
    }

    fn with_unit_factors(&self, factors: &[f64]) -> Arc<dyn LocalRule> {
        let scaled = |list: &[f64]| list.iter().zip(factors).map(|(a, factor)| a * factor).collect();
        Arc::new(Self {
            activation: self.activation.clone(),
            weights: scaled(&self.weights),
            gains: scaled(&self.gains),
            biases: self.biases.clone(),
            train_output: self.train_output,
            train_biases: self.train_biases,
            link: self.link.clone(),
            loss: self.loss,
        })
    }
}

impl BatchRule for MultiIndexRule {
    fn kick_batch(&self, batch: &Batch, rows: &mut [f64], scalars: &mut [f64]) {
        let n = batch.size;
        let behind = if self.train_output { self.trained() } else { 0 };
        let (outputs, biases) = scalars.split_at_mut(behind);
        with_scratch(self.room(n), |room| {
            let BatchUnits { residuals, labels, values, slopes, first, second, .. } =
                self.batch_units(batch, room);
            self.loss.slopes(residuals, labels, first, second);
            let weights = self.weights_at(batch.scalars);
            for ((out, slope), a) in rows.chunks_exact_mut(n).zip(slopes.chunks_exact(n)).zip(&*weights) {
                lanes::kicks(*a, first, slope, out);
            }
            for ((out, gain), values) in outputs.iter_mut().zip(&self.gains).zip(values.chunks_exact(n)) {
                *out = gain * dot(first, values);
            }
        });
        biases.iter_mut().zip(rows.chunks_exact(n)).for_each(|(out, row)| *out = row.iter().sum());
    }

    fn loss_batch(&self, batch: &Batch, out: &mut [f64]) {
        with_scratch(self.room(batch.size), |room| {
            let BatchUnits { residuals, labels, .. } = self.batch_units(batch, room);
            self.loss.values(residuals, labels, out);
        });
    }

    fn expand_batch(&self, batch: &Batch, out: Expansion) {
        if self.trained() == 1 && out.columns == 1 && !batch.labels.is_empty() {
            self.single(batch, out);
        } else {
            self.several(batch, out);
        }
    }
}

impl LabelledRule for MultiIndexRule {
    fn labels(&self, batch: &Batch, out: &mut [f64]) {
        let n = batch.size;
        let frozen: Vec<&[f64]> = batch.fields[self.trained() * n..].chunks_exact(n).collect();
        self.link.labels(&frozen, batch.noise, out);
    }

    fn label_slopes(&self, batch: &Batch, out: &mut [f64]) -> bool {
        let (m, n, k) = (self.trained(), batch.size, self.link.directions());
        let (mut z, mut gradient) = (vec![0.0; k], vec![0.0; k]);
        for l in 0..n {
            z.iter_mut().enumerate().for_each(|(d, z)| *z = batch.fields[(m + d) * n + l]);
            self.link.gradient(&z, batch.noise[l], &mut gradient);
            gradient.iter().enumerate().for_each(|(d, g)| out[d * n + l] = *g);
        }
        true
    }

    fn labels_suffice(&self) -> bool {
        true
    }

    fn label(&self, frozen: &[f64], noise: f64) -> f64 {
        self.link.label(frozen, noise)
    }
}

impl CurvatureRule for MultiIndexRule {
    fn jumps(&self) -> Jumps {
        Jumps { trained: self.activation.slope_jumps(), frozen: self.link.has_jumps() }
    }

    fn kink_planes(&self, scalars: &[f64]) -> Option<Vec<KinkPlane>> {
        let rows = self.shape().rows();
        let kinks = || self.activation.kinks().iter().filter(|kink| kink.jump != 0.0);
        let of_unit = |(j, bias): (usize, &f64)| {
            let bias = *bias;
            kinks().map(move |kink| KinkPlane::of_field(rows, j, kink.at - bias))
        };
        Some(self.biases_at(scalars).iter().enumerate().flat_map(of_unit).collect())
    }

    /// One unit: ∂φ/∂h. More: G_j = a_j ℓ′ σ″_j, the block of m Hess that survives when m is large, with the sign of
    /// a_j (docs/derivations/gd-phase-transitions.md#eq-4, docs/derivations/gd-phase-transitions.md#e1).
    fn row_weight(&self, sample: &Sample, row: usize) -> f64 {
        let m = self.trained();
        let units = self.units(sample);
        let weights = self.weights_at(sample.scalars);
        let of_unit = weights[row] * self.loss.slope(units.output, units.label) * units.curvatures[row];
        if m == 1 {
            let own = weights[0] * units.slopes[0];
            return self.loss.curvature(units.output, units.label) * own * own + of_unit;
        }
        m as f64 * of_unit
    }
}
