//! Many samples at once.

#[cfg(doc)]
use super::LabelledRule;
use super::{Kick, LocalRule, Sample};
use didact_math::linalg::Mat;

/// A mini-batch, fields first: `fields[k * size + j]` is field k of sample j, so that a rule can run over samples.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// P x size, row-major.
    pub fields: &'a [f64],
    /// Number of samples.
    pub size: usize,
    /// Trained scalars, the same for every sample.
    pub scalars: &'a [f64],
    /// Label noise per sample.
    pub noise: &'a [f64],
    /// Labels, noise included, where the caller has them from [`LabelledRule::labels`]: those of a training set do not
    /// change. Empty otherwise.
    pub labels: &'a [f64],
    /// ∂label/∂v_n (frozen x size), where the caller has them from [`LabelledRule::label_slopes`]. Empty otherwise.
    pub label_slopes: &'a [f64],
}

impl<'a> Batch<'a> {
    /// A batch whose labels are not known yet.
    pub fn new(fields: &'a [f64], size: usize, scalars: &'a [f64], noise: &'a [f64]) -> Self {
        Self { fields, size, scalars, noise, labels: &[], label_slopes: &[] }
    }

    /// Sample j, its fields copied to `fields`.
    pub fn sample<'b>(&'b self, j: usize, fields: &'b mut [f64]) -> Sample<'b> {
        for (k, h) in fields.iter_mut().enumerate() {
            *h = self.fields[k * self.size + j];
        }
        Sample { fields, scalars: self.scalars, noise: self.noise[j] }
    }
}

/// Room for the losses of a mini-batch to second order in the fields, samples last as in [`Batch`].
#[derive(Debug)]
pub struct Expansion<'a> {
    /// The losses; they are not asked for where this is empty.
    pub losses: &'a mut [f64],
    /// Kicks, trained x size.
    pub kicks: &'a mut [f64],
    /// How many fields, counted from the first, are asked about.
    pub columns: usize,
    /// ∂kick_i/∂h_k for these fields, trained x columns x size.
    pub curvature: &'a mut [f64],
}

/// Rules that work on many samples at once: loops over samples that the compiler vectorises.
///
/// Only `kick_batch` is required; the tests of every registered family compare it, sample by sample, with [`LocalRule::kick`].
pub trait BatchRule: LocalRule {
    /// The kicks of a mini-batch: `rows` (trained x size, row-major) per sample, `scalars` summed over samples.
    fn kick_batch(&self, batch: &Batch, rows: &mut [f64], scalars: &mut [f64]);

    /// The losses of a mini-batch.
    fn loss_batch(&self, batch: &Batch, out: &mut [f64]) {
        losses_one_by_one(self, batch, out);
    }

    /// Kicks and their derivatives for a mini-batch, and its losses if they are asked for.
    fn expand_batch(&self, batch: &Batch, mut out: Expansion) {
        if !out.losses.is_empty() {
            self.loss_batch(batch, out.losses);
        }
        expand_one_by_one(self, batch, &mut out);
    }

    /// Whether `kick_batch` gives every sample bitwise the kick that [`LocalRule::kick`] gives it, and takes less time. Replicas may
    /// then step together, one in each lane of the vector registers, without depending on which replicas share the registers.
    fn steps_in_lanes(&self) -> bool {
        false
    }
}

/// What engines call: the vectorised loops of a rule that has them, sample after sample otherwise.
impl dyn LocalRule + '_ {
    /// See [`BatchRule::kick_batch`].
    pub fn kick_batch(&self, batch: &Batch, rows: &mut [f64], scalars: &mut [f64]) {
        match self.batch() {
            Some(rule) => rule.kick_batch(batch, rows, scalars),
            None => kicks_one_by_one(self, batch, rows, scalars),
        }
    }

    /// See [`BatchRule::loss_batch`].
    pub fn loss_batch(&self, batch: &Batch, out: &mut [f64]) {
        match self.batch() {
            Some(rule) => rule.loss_batch(batch, out),
            None => losses_one_by_one(self, batch, out),
        }
    }

    /// See [`BatchRule::expand_batch`].
    pub fn expand_batch(&self, batch: &Batch, mut out: Expansion) {
        if let Some(rule) = self.batch() {
            rule.expand_batch(batch, out);
            return;
        }
        if !out.losses.is_empty() {
            losses_one_by_one(self, batch, out.losses);
        }
        expand_one_by_one(self, batch, &mut out);
    }

    /// See [`BatchRule::steps_in_lanes`].
    pub fn steps_in_lanes(&self) -> bool {
        self.batch().is_some_and(BatchRule::steps_in_lanes)
    }
}

/// The kicks of a batch, sample after sample: the slow, obvious way.
pub fn kicks_one_by_one<R: LocalRule + ?Sized>(
    rule: &R,
    batch: &Batch,
    rows: &mut [f64],
    scalars: &mut [f64],
) {
    let shape = rule.shape();
    let mut fields = vec![0.0; shape.rows()];
    let mut kick = Kick::new(shape);
    scalars.fill(0.0);
    for j in 0..batch.size {
        rule.kick(&batch.sample(j, &mut fields), &mut kick);
        for (i, c) in kick.rows.iter().enumerate() {
            rows[i * batch.size + j] = *c;
        }
        for (sum, c) in scalars.iter_mut().zip(&kick.scalars) {
            *sum += c;
        }
    }
}

fn losses_one_by_one<R: LocalRule + ?Sized>(rule: &R, batch: &Batch, out: &mut [f64]) {
    let mut fields = vec![0.0; rule.shape().rows()];
    for (j, out) in out.iter_mut().enumerate() {
        *out = rule.loss(&batch.sample(j, &mut fields));
    }
}

/// The kicks and curvatures of a batch, sample after sample; the losses are left alone.
pub fn expand_one_by_one<R: LocalRule + ?Sized>(rule: &R, batch: &Batch, out: &mut Expansion) {
    let columns = out.columns;
    let shape = rule.shape();
    let (mut fields, mut kick) = (vec![0.0; shape.rows()], Kick::new(shape));
    let mut one = Mat::zeros(shape.trained, shape.rows());
    for j in 0..batch.size {
        let sample = batch.sample(j, &mut fields);
        rule.kick(&sample, &mut kick);
        rule.curvature(&sample, &mut one);
        for i in 0..shape.trained {
            out.kicks[i * batch.size + j] = kick.rows[i];
            for k in 0..columns {
                out.curvature[(i * columns + k) * batch.size + j] = one[(i, k)];
            }
        }
    }
}
