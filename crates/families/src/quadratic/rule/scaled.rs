//! Quadratic units whose outputs are multiplied by fixed factors.

use super::QuadraticRule;
use didact_math::linalg::Mat;
use didact_model::loss::Loss;
use didact_model::rule::{Averages, Kick, Law, LocalRule, Needed, Sample, Shape};

/// loss = e², e = (1/p*) Σ u² − (1/p) Σ f_k λ_k²; kick_k = −(4/p) f_k e λ_k.
#[derive(Debug)]
pub(super) struct ScaledUnits {
    pub(super) rule: QuadraticRule,
    pub(super) factors: Vec<f64>,
}

impl ScaledUnits {
    /// D_k in e = Σ_k D_k h_k².
    fn weight(&self, row: usize) -> f64 {
        self.rule.weight(row) * self.factors.get(row).copied().unwrap_or(1.0)
    }

    /// −(4/p) f_k.
    fn gain(&self, row: usize) -> f64 {
        -4.0 / self.factors.len() as f64 * self.factors[row]
    }

    fn error(&self, sample: &Sample) -> f64 {
        let terms = sample.fields.iter().enumerate().map(|(k, h)| self.weight(k) * h * h);
        terms.sum::<f64>() + sample.noise
    }
}

impl LocalRule for ScaledUnits {
    fn shape(&self) -> Shape {
        self.rule.shape()
    }

    fn loss(&self, sample: &Sample) -> f64 {
        Loss::SQUARE.value(0.0, self.error(sample))
    }

    fn kick(&self, sample: &Sample, out: &mut Kick) {
        let error = self.error(sample);
        for (k, (c, h)) in out.rows.iter_mut().zip(sample.fields).enumerate() {
            *c = self.gain(k) * error * h;
        }
    }

    /// A and N of [`QuadraticRule`] with factors in D and in front of every kick.
    fn averages(&self, law: &Law, needed: Needed, out: &mut Averages) {
        let (c, p, rows) = (law.covariance, self.factors.len(), self.shape().rows());
        let trace: f64 = (0..rows).map(|k| self.weight(k) * c[(k, k)]).sum();
        for i in 0..p {
            for k in 0..rows {
                let own = if i == k { trace } else { 0.0 };
                out.drift[(i, k)] = self.gain(i) * (own + 2.0 * c[(i, k)] * self.weight(k));
            }
        }
        out.error = 0.0;
        if needed == Needed::Drift {
            return;
        }
        let d = Mat::diagonal(&(0..rows).map(|k| self.weight(k)).collect::<Vec<f64>>());
        let once = c.times(&d).times(c);
        let twice = once.times(&d).times(c);
        let square: f64 = (0..rows).map(|k| self.weight(k) * once[(k, k)]).sum();
        let level = trace * trace + 2.0 * square + law.label_noise * law.label_noise;
        for i in 0..p {
            for j in 0..p {
                let value = level * c[(i, j)] + 4.0 * trace * once[(i, j)] + 8.0 * twice[(i, j)];
                out.noise[(i, j)] = self.gain(i) * self.gain(j) * value;
            }
        }
    }
}
