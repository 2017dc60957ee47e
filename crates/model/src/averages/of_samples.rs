//! Averages over fresh samples: the loss, and the share of samples in the wrong class.

use super::{Coordinates, QuadratureEstimate, evaluations};
use crate::rule::{Batch, Law, LocalRule, Sample};
use didact_math::gauss::ball::WeightedPoints;
use didact_math::gauss::{BestRule, Integrand, expectation_within};
use didact_math::linalg::dot;

/// `E[loss]` without label noise, to this relative accuracy where that does not take too long.
pub fn risk_by_quadrature<R: LocalRule + ?Sized>(rule: &R, law: &Law, accuracy: f64) -> QuadratureEstimate {
    mean_loss_by_quadrature(rule, &Law { label_noise: 0.0, ..*law }, accuracy)
}

/// What is averaged over fresh samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OfSamples {
    Loss,
    /// 1 where output and label are in different classes.
    OtherClass,
}

/// A number per sample as a function of independent coordinates of its fields.
struct SampleAverage<'a, R: ?Sized> {
    what: OfSamples,
    rule: &'a R,
    scalars: &'a [f64],
    /// For single points.
    coordinates: Coordinates,
    /// For many points: trained fields last.
    frozen_first: Coordinates,
    fields: Vec<f64>,
    batch: Vec<f64>,
    noise: Vec<f64>,
    losses: Vec<f64>,
}

impl<R: LocalRule + ?Sized> SampleAverage<'_, R> {
    fn of(&self, sample: &Sample) -> f64 {
        match self.what {
            OfSamples::Loss => self.rule.loss(sample),
            OfSamples::OtherClass => self.rule.same_class(sample).map_or(f64::NAN, |same| f64::from(!same)),
        }
    }
}

impl<R: LocalRule + ?Sized> Integrand for SampleAverage<'_, R> {
    fn dimension(&self) -> usize {
        self.coordinates.dimension()
    }

    fn outputs(&self) -> usize {
        1
    }

    fn at(&mut self, z: &[f64], values: &mut [f64]) {
        let noise = self.coordinates.fields(z, &mut self.fields);
        values[0] = self.of(&Sample { fields: &self.fields, scalars: self.scalars, noise });
    }

    fn add(&mut self, points: &WeightedPoints, sums: &mut [f64]) {
        self.frozen_first.fields_of(points, &mut self.batch, &mut self.noise);
        let batch = Batch::new(&self.batch, points.size(), self.scalars, &self.noise);
        self.losses.resize(points.size(), 0.0);
        match self.rule.batch() {
            Some(rule) if self.what == OfSamples::Loss => rule.loss_batch(&batch, &mut self.losses),
            _ => {
                let mut fields = std::mem::take(&mut self.fields);
                for j in 0..points.size() {
                    self.losses[j] = self.of(&batch.sample(j, &mut fields));
                }
                self.fields = fields;
            }
        }
        sums[0] += dot(&self.losses, points.weights);
    }
}

/// `E[loss]` of a fresh sample with its label noise, the test loss, to this relative accuracy where that does not take too long.
pub fn mean_loss_by_quadrature<R: LocalRule + ?Sized>(
    rule: &R,
    law: &Law,
    accuracy: f64,
) -> QuadratureEstimate {
    average_of_samples(OfSamples::Loss, rule, law, accuracy, None)
}

/// `E[loss]` without label noise by randomly shifted lattices, without trying rules for smooth functions first: for losses with kinks.
pub fn risk_by_lattice<R: LocalRule + ?Sized>(rule: &R, law: &Law, accuracy: f64) -> QuadratureEstimate {
    let law = Law { label_noise: 0.0, ..*law };
    average_of_samples(OfSamples::Loss, rule, &law, accuracy, Some(BestRule::Lattice))
}

/// The share of fresh samples whose output and label are in different classes. NaN where the rule knows no classes.
pub fn other_class_by_quadrature<R: LocalRule + ?Sized>(
    rule: &R,
    law: &Law,
    accuracy: f64,
) -> QuadratureEstimate {
    average_of_samples(OfSamples::OtherClass, rule, law, accuracy, None)
}

fn average_of_samples<R: LocalRule + ?Sized>(
    what: OfSamples,
    rule: &R,
    law: &Law,
    accuracy: f64,
    mut known: Option<BestRule>,
) -> QuadratureEstimate {
    if !law.covariance.is_finite() {
        return QuadratureEstimate { value: f64::NAN, error: f64::NAN };
    }
    let shape = rule.shape();
    let (coordinates, frozen_first) = (Coordinates::of(law), Coordinates::frozen_first(law, shape.trained));
    // Rounding may tell the ranks of the two factors apart; then one of them serves for both.
    let frozen_first =
        if frozen_first.dimension() == coordinates.dimension() { frozen_first } else { Coordinates::of(law) };
    let mut losses = SampleAverage {
        what,
        rule,
        scalars: law.scalars,
        coordinates,
        frozen_first,
        fields: vec![0.0; shape.rows()],
        batch: Vec::new(),
        noise: Vec::new(),
        losses: Vec::new(),
    };
    let budget = evaluations(accuracy, losses.coordinates.dimension());
    let average = expectation_within(&mut losses, accuracy, budget, &mut known);
    // Two rules that agree to the last bit have rounding errors all the same.
    let rounding = f64::EPSILON * average.mean[0].abs();
    QuadratureEstimate { value: average.mean[0], error: average.error[0].max(rounding) }
}
