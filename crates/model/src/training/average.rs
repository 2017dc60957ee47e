//! Averages of the kick as training uses it: of masked networks, at noisy weights, clipped or reduced to signs.

use super::{GradientMap, Training};
use crate::averages::mapped_averages;
use crate::rule::{Averages, Law, LocalRule, Needed, masked_rules};
use didact_math::linalg::Mat;
use std::sync::Arc;

/// A and N of a way of training: the weighted sum over the rules that are drawn for a sample
/// (docs/derivations/training-rules.md#s8).
#[derive(Debug)]
pub struct TrainedAverages {
    /// Rules with their probabilities, and room for their averages.
    branches: Vec<(f64, Arc<dyn LocalRule>, Averages)>,
    gradient: GradientMap,
    weight_noise: f64,
    covariance: Mat,
}

impl TrainedAverages {
    /// For a rule that is trained in some way.
    pub fn new(rule: &Arc<dyn LocalRule>, training: &Training) -> Self {
        let shape = rule.shape();
        let rules = training.dropout.and_then(|keep| masked_rules(rule, keep));
        let rules = rules.unwrap_or_else(|| vec![(1.0, rule.clone())]);
        Self {
            branches: rules.into_iter().map(|(p, rule)| (p, rule, Averages::new(shape))).collect(),
            gradient: training.gradient,
            weight_noise: training.weight_noise,
            covariance: Mat::zeros(shape.rows(), shape.rows()),
        }
    }

    /// The relative error that the caller is content with where averages have no closed form.
    pub fn set_accuracy(&mut self, accuracy: Option<f64>) {
        self.branches.iter_mut().for_each(|(_, _, room)| room.accuracy = accuracy);
    }

    /// Fills `out` at a law of the fields. `trace` is (1/d) Tr Σ of the inputs: the variance that noise on the weights adds to the
    /// trained fields is ς² times it.
    pub fn fill(&mut self, law: &Law, trace: f64, needed: Needed, out: &mut Averages) {
        self.covariance.clone_from(law.covariance);
        for i in 0..out.drift.rows() {
            self.covariance[(i, i)] += self.weight_noise * self.weight_noise * trace;
        }
        let law = Law { covariance: &self.covariance, ..*law };
        let maps = self.gradient.scales_kicks() || self.gradient == GradientMap::Sign;
        out.drift.fill(0.0);
        out.noise.fill(0.0);
        out.scalars.fill(0.0);
        out.error = 0.0;
        for (probability, rule, room) in &mut self.branches {
            if maps {
                mapped_averages(&**rule, &law, self.gradient, needed, room);
            } else {
                rule.averages(&law, needed, room);
            }
            out.drift.add_scaled(*probability, &room.drift);
            if needed == Needed::DriftAndNoise {
                out.noise.add_scaled(*probability, &room.noise);
            }
            out.scalars.iter_mut().zip(&room.scalars).for_each(|(sum, s)| *sum += *probability * s);
            out.error = out.error.max(room.error);
        }
    }
}
