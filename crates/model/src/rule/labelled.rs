//! Labels that are known before the student is.

use super::{Batch, LocalRule};

/// Rules whose loss depends on the frozen fields through a label alone: the latent directions then have easy and hard parts, and the
/// labels of a training set need to be computed only once.
///
/// Students that read frozen fields themselves (pre-trained rows) have no such label.
pub trait LabelledRule: LocalRule {
    /// The label of an input from its frozen fields and its noise.
    fn label(&self, frozen: &[f64], noise: f64) -> f64;

    /// The labels of the samples of a batch, for callers that meet the same samples again.
    fn labels(&self, batch: &Batch, out: &mut [f64]) {
        let shape = self.shape();
        let mut fields = vec![0.0; shape.rows()];
        for (j, out) in out.iter_mut().enumerate() {
            let sample = batch.sample(j, &mut fields);
            *out = self.label(&sample.fields[shape.trained..], sample.noise);
        }
    }

    /// The derivatives of the labels along the frozen fields (frozen x size), for callers that meet the same samples again. False,
    /// with nothing written, where they are not known.
    fn label_slopes(&self, _batch: &Batch, _out: &mut [f64]) -> bool {
        false
    }

    /// Whether kicks, losses and derivatives of a batch with labels, and with their slopes where derivatives along frozen fields
    /// are asked for, leave its frozen fields unread: callers may then leave these fields uninitialised.
    fn labels_suffice(&self) -> bool {
        false
    }
}

/// What engines call: the labels of a rule that has them, the answer that there are none otherwise.
impl dyn LocalRule + '_ {
    /// See [`LabelledRule::label`]; `None` where the rule has no label.
    pub fn label(&self, frozen: &[f64], noise: f64) -> Option<f64> {
        self.labelled().map(|rule| rule.label(frozen, noise))
    }

    /// See [`LabelledRule::labels`]; false, with nothing written, where the rule has no label.
    pub fn labels(&self, batch: &Batch, out: &mut [f64]) -> bool {
        self.labelled().map(|rule| rule.labels(batch, out)).is_some()
    }

    /// See [`LabelledRule::label_slopes`]; false, with nothing written, where they are not known.
    pub fn label_slopes(&self, batch: &Batch, out: &mut [f64]) -> bool {
        self.labelled().is_some_and(|rule| rule.label_slopes(batch, out))
    }

    /// See [`LabelledRule::labels_suffice`].
    pub fn labels_suffice(&self) -> bool {
        self.labelled().is_some_and(LabelledRule::labels_suffice)
    }
}
