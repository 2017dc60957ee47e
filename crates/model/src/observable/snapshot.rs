//! A state as observables see it.

use crate::averages::{
    QuadratureEstimate, SAMPLED_ACCURACY, USUAL_ACCURACY, mean_loss_by_quadrature, other_class_by_quadrature,
};
use crate::overlaps::Overlaps;
use crate::problem::Problem;
use crate::rule::Law;
use didact_math::linalg::Mat;
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

/// A state to be measured; what several observables need is computed once.
#[derive(Debug)]
pub struct Snapshot<'a> {
    /// The state.
    pub overlaps: &'a Overlaps,
    /// Whose state.
    pub problem: &'a Problem,
    moments: RefCell<Vec<(i32, Rc<Mat>)>>,
    loss: OnceCell<QuadratureEstimate>,
    fresh_loss: OnceCell<QuadratureEstimate>,
    other_class: OnceCell<QuadratureEstimate>,
    accuracy: f64,
    pub(super) train_loss: Option<f64>,
    pub(super) batch_loss: Option<f64>,
    test_loss: Option<f64>,
}

impl<'a> Snapshot<'a> {
    /// Of a state.
    pub fn new(overlaps: &'a Overlaps, problem: &'a Problem) -> Self {
        Self {
            overlaps,
            problem,
            moments: RefCell::default(),
            loss: OnceCell::new(),
            fresh_loss: OnceCell::new(),
            other_class: OnceCell::new(),
            accuracy: USUAL_ACCURACY,
            train_loss: None,
            batch_loss: None,
            test_loss: None,
        }
    }

    /// With averages that have no closed form to this relative accuracy, where that does not take too long.
    pub fn within(mut self, accuracy: f64) -> Self {
        self.accuracy = accuracy;
        self
    }

    /// With the generalisation error, from a caller that knows it.
    pub fn with_loss(self, value: f64) -> Self {
        let loss = OnceCell::from(QuadratureEstimate::exact(value));
        Self { loss, ..self }
    }

    /// With the mean loss over the training set, which does not follow from the overlaps.
    pub fn with_train_loss(mut self, value: f64) -> Self {
        self.train_loss = Some(value);
        self
    }

    /// With the mean loss over the batch of a step.
    pub fn with_batch_loss(mut self, value: f64) -> Self {
        self.batch_loss = Some(value);
        self
    }

    /// With the test loss, from an engine that has it from its own samples.
    pub fn with_test_loss(mut self, value: f64) -> Self {
        self.test_loss = Some(value);
        self
    }

    /// m^(l) = Σ_b λ_b^l G_b.
    pub fn moment(&self, order: i32) -> Rc<Mat> {
        let mut known = self.moments.borrow_mut();
        if let Some((_, m)) = known.iter().find(|(o, _)| *o == order) {
            return m.clone();
        }
        let m = Rc::new(self.overlaps.moment(&self.problem.spectrum, order));
        known.push((order, m.clone()));
        m
    }

    /// The generalisation error.
    pub fn loss(&self) -> f64 {
        let estimate = self.loss.get_or_init(|| {
            let covariance = self.moment(1);
            let law = Law { covariance: &covariance, scalars: &self.overlaps.scalars, label_noise: 0.0 };
            self.problem.rule.risk_within(&law, self.accuracy)
        });
        estimate.value
    }

    /// The mean loss of fresh samples, label noise included.
    pub fn test_loss(&self) -> f64 {
        let label_noise = self.problem.training.label_noise;
        match self.test_loss {
            Some(value) => value,
            None if label_noise == 0.0 => self.loss(),
            None => {
                let estimate = self.fresh_loss.get_or_init(|| {
                    let covariance = self.moment(1);
                    let law = Law { covariance: &covariance, scalars: &self.overlaps.scalars, label_noise };
                    mean_loss_by_quadrature(self.problem.rule.as_ref(), &law, self.accuracy)
                });
                estimate.value
            }
        }
    }

    /// The share of fresh inputs, without label noise, whose output and label are in different classes.
    pub fn classification_error(&self) -> f64 {
        let estimate = self.other_class.get_or_init(|| {
            let covariance = self.moment(1);
            let law = Law { covariance: &covariance, scalars: &self.overlaps.scalars, label_noise: 0.0 };
            // A jump is averaged to a few digits in any case.
            let accuracy = self.accuracy.max(SAMPLED_ACCURACY);
            other_class_by_quadrature(self.problem.rule.as_ref(), &law, accuracy)
        });
        estimate.value
    }

    /// The largest estimated error of the averages that were asked for so far: 0 where all have closed forms.
    pub fn quadrature_error(&self) -> f64 {
        let errors = [&self.loss, &self.fresh_loss, &self.other_class]
            .map(|known| known.get().map_or(0.0, |e| e.error));
        errors.into_iter().fold(0.0, f64::max)
    }
}
