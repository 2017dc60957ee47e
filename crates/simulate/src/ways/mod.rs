//! One-pass chains for every way of training that is not plain descent at a constant rate.
//!
//! Plain descent has chains of its own (`reduced/`, `direct/`), which know nothing of momentum, schedules or noise. Those here take any
//! [`didact_model::training::Training`]; [`reduced`] on overlaps, exact in law, [`direct`] on d-dimensional weights.

pub(crate) mod direct;
pub(crate) mod reduced;

use crate::chain::ReplicaAddress;
use didact_math::linalg::{Mat, dot};
use didact_math::random::{RngAddress, Stream};
use didact_model::constraint::Constraint;
use didact_model::rule::{Batch, masked_rules};
use didact_model::training::{GradientMap, MomentumScale, Training, TrainingRates};
use didact_model::{Kick, LocalRule, Problem, Sample, Shape};
use std::sync::Arc;

/// Lane of the random numbers of these chains: one stream per step.
const LANE: u16 = 0x5a00;

/// Kicks beyond this are a divergence: their squares are still finite.
pub(crate) const HUGE: f64 = 1e100;

/// The stream of one step.
fn step_stream(address: ReplicaAddress, step: u64, lane: u16) -> Stream {
    let ReplicaAddress { seed, replica, stage } = address;
    Stream::at(RngAddress { seed, replica, step: step | (u64::from(stage) << 40), lane: LANE + lane })
}

/// The kick of a sample as training uses it: of a masked network, clipped or normalised.
#[derive(Debug)]
pub(crate) struct TrainedKick {
    rule: Arc<dyn LocalRule>,
    /// Rules that are drawn for a sample, with the sum of the probabilities up to each.
    masked: Vec<(f64, Arc<dyn LocalRule>)>,
    gradient: GradientMap,
    shape: Shape,
    fields: Vec<f64>,
    kick: Kick,
}

impl TrainedKick {
    pub(crate) fn new(problem: &Problem, training: &Training) -> Self {
        let shape = problem.rule.shape();
        let masked = training.dropout.and_then(|keep| masked_rules(&problem.rule, keep)).unwrap_or_default();
        let mut sum = 0.0;
        let masked = masked.into_iter().map(|(probability, rule)| {
            sum += probability;
            (sum, rule)
        });
        Self {
            rule: problem.rule.clone(),
            masked: masked.collect(),
            gradient: training.gradient,
            shape,
            fields: vec![0.0; shape.rows()],
            kick: Kick::new(shape),
        }
    }

    /// Kicks (trained x size) and the sum of the scalar slopes of a batch.
    pub(crate) fn fill(&mut self, batch: &Batch, stream: &mut Stream, kicks: &mut [f64], slopes: &mut [f64]) {
        if self.masked.is_empty() {
            self.rule.kick_batch(batch, kicks, slopes);
        } else {
            slopes.fill(0.0);
            for j in 0..batch.size {
                let place = stream.uniform();
                let drawn = self.masked.partition_point(|(sum, _)| *sum < place).min(self.masked.len() - 1);
                let sample = batch.sample(j, &mut self.fields);
                self.masked[drawn].1.kick(&Sample { ..sample }, &mut self.kick);
                for i in 0..self.shape.trained {
                    kicks[i * batch.size + j] = self.kick.rows[i];
                }
                slopes.iter_mut().zip(&self.kick.scalars).for_each(|(sum, s)| *sum += s);
            }
        }
        self.gradient.map_batch(kicks, batch.size);
    }
}

/// The coefficients of one step, from the rates of its time.
///
/// Without momentum w ← (1 − gain κ) w − gain kick x. With it, p being the velocity per unit of alpha,
/// p ← β p − gain (kick x + κ y), w ← w + p/d (docs/derivations/training-rules.md#eq-4).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Coefficients {
    /// β, with momentum.
    pub(crate) beta: Option<f64>,
    /// What multiplies the kick.
    pub(crate) gain: f64,
    /// κ.
    pub(crate) decay: f64,
}

impl Coefficients {
    pub(crate) fn new(
        training: &Training,
        rates: &TrainingRates,
        step_per_rate: f64,
        dimension: f64,
    ) -> Self {
        let s = step_per_rate * rates.learning_rate;
        let (beta, gain) = match training.momentum.as_ref().map(|m| m.scale) {
            None => (None, s),
            Some(MomentumScale::Beta) => (Some(rates.momentum), s * dimension),
            Some(MomentumScale::Rate) => (Some(1.0 - rates.momentum / dimension), s * rates.momentum),
        };
        Self { beta, gain, decay: rates.weight_decay }
    }
}

/// Trained scalars and their velocities.
#[derive(Debug, Clone)]
pub(crate) struct MovingScalars {
    pub(crate) values: Vec<f64>,
    pub(crate) velocities: Vec<f64>,
    /// |a|² to be kept.
    squared_length: f64,
}

impl MovingScalars {
    pub(crate) fn new(values: Vec<f64>, mut velocities: Vec<f64>) -> Self {
        velocities.resize(values.len(), 0.0);
        Self { squared_length: dot(&values, &values), values, velocities }
    }

    /// One step against the mean slopes; `per_velocity` is what a velocity adds in a step.
    pub(crate) fn step(
        &mut self,
        constraint: &Constraint,
        coefficients: &Coefficients,
        ratio: f64,
        slopes: &[f64],
        per_velocity: f64,
    ) {
        let gain = coefficients.gain * ratio;
        let Some(beta) = coefficients.beta else {
            constraint.move_scalars(&mut self.values, gain, slopes, self.squared_length);
            return;
        };
        for ((a, q), slope) in self.values.iter_mut().zip(&mut self.velocities).zip(slopes) {
            *q = beta * *q - gain * slope;
            *a += *q * per_velocity;
        }
        if constraint.scalar_sphere.is_some() {
            let scale = (self.squared_length / dot(&self.values, &self.values)).sqrt();
            self.values.iter_mut().for_each(|a| *a *= scale);
        }
    }

    /// Scalars ahead of their velocities, where the gradient of Nesterov's momentum is taken.
    pub(crate) fn ahead(&self, beta: f64, per_velocity: f64) -> Vec<f64> {
        self.values.iter().zip(&self.velocities).map(|(a, q)| a + beta * per_velocity * q).collect()
    }
}

/// exp(A) of a small matrix: Taylor's series of A/2ⁿ, squared n times.
pub(crate) fn exponential(a: &Mat) -> Mat {
    let n = a.rows();
    let halvings = (a.max_abs() * n as f64).log2().max(0.0).ceil() as i32 + 4;
    let small = a.scaled(0.5_f64.powi(halvings));
    let (mut sum, mut term) = (Mat::identity(n), Mat::identity(n));
    for order in 1..=12 {
        term = term.times(&small).scaled(1.0 / f64::from(order));
        sum.add_scaled(1.0, &term);
    }
    (0..halvings).fold(sum, |power, _| power.times(&power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_of_a_rotation_is_a_rotation() {
        let angle = 2.7_f64;
        let turned = exponential(&Mat::from_rows(&[vec![0.0, angle], vec![-angle, 0.0]]).unwrap());
        let exact = [[angle.cos(), angle.sin()], [-angle.sin(), angle.cos()]];
        for i in 0..2 {
            for j in 0..2 {
                assert!((turned[(i, j)] - exact[i][j]).abs() < 1e-13);
            }
        }
    }
}
