//! What a training saw: a line per epoch and model.

use serde::{Deserialize, Serialize};

/// One model after one epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// Mean loss over the images of the epoch, each as it was seen.
    pub train_loss: f64,
    /// Part of them that was answered rightly.
    pub train_accuracy: f64,
    /// Mean loss on all test images after the epoch.
    pub test_loss: f64,
    /// Part of them that was answered rightly.
    pub test_accuracy: f64,
}

/// All epochs of all models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// Per model, its epochs.
    pub models: Vec<Vec<Epoch>>,
}

impl History {
    pub(super) fn new(models: usize) -> Self {
        Self { models: vec![Vec::new(); models] }
    }

    pub(super) fn push(&mut self, train: &[[f64; 2]], test: &[[f64; 2]]) {
        for ((model, train), test) in self.models.iter_mut().zip(train).zip(test) {
            let [train_loss, train_accuracy] = *train;
            let [test_loss, test_accuracy] = *test;
            model.push(Epoch { train_loss, train_accuracy, test_loss, test_accuracy });
        }
    }

    /// Mean over the models of the accuracy on test images after the last epoch.
    pub fn final_accuracy(&self) -> f64 {
        let last = self.models.iter().filter_map(|model| model.last());
        last.map(|epoch| epoch.test_accuracy).sum::<f64>() / self.models.len() as f64
    }

    /// When the accuracy of a model on test images first passes a level, in epochs, by a straight line between two of them; none if it never
    /// does, and at most 1 if the first epoch does.
    pub fn epochs_to(&self, model: usize, level: f64) -> Option<f64> {
        let epochs = &self.models[model];
        let after = epochs.iter().position(|epoch| epoch.test_accuracy >= level)?;
        let Some(before) = after.checked_sub(1) else { return Some(1.0) };
        let [low, high] = [before, after].map(|epoch| epochs[epoch].test_accuracy);
        Some((before + 1) as f64 + (level - low) / (high - low))
    }

    /// A table of some of the models for `engine = "recorded"`: a line per replica and epoch, counted from 1.
    pub fn csv(&self, models: std::ops::Range<usize>) -> String {
        let mut text = String::from("replica,time,train_loss,train_accuracy,test_loss,test_accuracy\n");
        for (replica, model) in self.models[models].iter().enumerate() {
            for (epoch, e) in model.iter().enumerate() {
                text += &format!(
                    "{replica},{},{},{},{},{}\n",
                    epoch + 1,
                    e.train_loss,
                    e.train_accuracy,
                    e.test_loss,
                    e.test_accuracy
                );
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_passed_between_two_epochs() {
        let epoch =
            |test_accuracy| Epoch { train_loss: 1.0, train_accuracy: 0.0, test_loss: 1.0, test_accuracy };
        let history = History { models: vec![vec![epoch(0.2), epoch(0.4), epoch(0.8)], vec![epoch(0.6); 3]] };
        assert!((history.final_accuracy() - 0.7).abs() < 1e-12);
        assert!((history.epochs_to(0, 0.5).unwrap() - 2.25).abs() < 1e-12);
        assert_eq!((history.epochs_to(1, 0.5), history.epochs_to(1, 0.9)), (Some(1.0), None));
    }
}
