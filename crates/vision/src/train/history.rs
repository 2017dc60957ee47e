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
