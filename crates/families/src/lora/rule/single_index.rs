//! The rule of a pre-trained neuron with one adapter.

use super::batch::{self, SAMPLES_PER_BLOCK, Sliced};
use crate::lora::population::{FieldLaw, Population};
use didact_math::activation::Activation;
use didact_math::simd::add_scaled;
use didact_model::averages::QuadratureEstimate;
use didact_model::loss::Loss;
use didact_model::rule::{
    Averages, Batch, BatchRule, CurvatureRule, Jumps, Kick, KinkPlane, Law, LocalRule, Needed, Sample, Shape,
};
use std::sync::Arc;

/// Fields: w·x (trained), w*·x and, when misaligned, ξ·x (frozen); one scalar, u.
#[derive(Debug, Clone)]
pub(in crate::lora) struct SingleIndexRule {
    population: Population,
    loss: Loss,
    label: Sliced,
    student: Sliced,
    neuron: Neuron,
}

/// How the student's neuron W is made of the rows.
#[derive(Debug, Clone, Copy)]
pub(in crate::lora) struct Neuron {
    /// μ.
    pub(in crate::lora) mu: f64,
    /// b, if there is a ξ.
    pub(in crate::lora) misalignment: Option<f64>,
}

impl Neuron {
    /// w* and, when misaligned, ξ.
    fn frozen(&self) -> usize {
        if self.misalignment.is_some() { 2 } else { 1 }
    }

    /// W as a combination of the fields, (u, μ, b).
    fn weights(&self, scalars: &[f64]) -> [f64; 3] {
        [scalars[0], self.mu, self.misalignment.unwrap_or(0.0)]
    }

    /// The law of (λ*, s) at a covariance of the fields.
    pub(in crate::lora) fn law(&self, law: &Law) -> FieldLaw {
        let weights = self.weights(law.scalars);
        let p = 1 + self.frozen();
        let along = |row: usize| (0..p).map(|j| weights[j] * law.covariance[(row, j)]).sum::<f64>();
        let variance: f64 = (0..p).map(|i| weights[i] * along(i)).sum();
        FieldLaw::new(law.covariance[(1, 1)], along(1), variance)
    }
}

impl SingleIndexRule {
    /// The pair with its labels as they are learned from. `teacher` labels before the transform `labels`.
    pub(in crate::lora) fn new(
        population: Population,
        teacher: Arc<dyn Activation>,
        labels: &str,
        neuron: Neuron,
    ) -> Self {
        let label = match labels.trim() {
            "squared" | "y^2" => Sliced::squared(teacher),
            _ => Sliced::new(population.teacher.clone()),
        };
        let student = Sliced::new(population.student.clone());
        Self { loss: population.loss.loss(), population, label, student, neuron }
    }

    /// s = W·x.
    fn field(&self, sample: &Sample) -> f64 {
        self.neuron.weights(sample.scalars).iter().zip(sample.fields).map(|(w, h)| w * h).sum()
    }
}

impl LocalRule for SingleIndexRule {
    fn shape(&self) -> Shape {
        Shape { trained: 1, frozen: self.neuron.frozen(), scalars: 1, ..Shape::default() }
    }

    fn loss(&self, sample: &Sample) -> f64 {
        let label = self.population.teacher.value(sample.fields[1]) + sample.noise;
        let output = self.population.student.value(self.field(sample));
        self.loss.value(output, label)
    }

    fn kick(&self, sample: &Sample, out: &mut Kick) {
        let label = self.population.teacher.value(sample.fields[1]) + sample.noise;
        let (output, slope) = self.population.student.value_and_slope(self.field(sample));
        let common = self.loss.slope(output, label) * slope;
        out.rows[0] = common * sample.scalars[0];
        out.scalars[0] = common * sample.fields[0];
    }

    /// With w the weight of the loss and L_c, L_r at the law of (λ*, s):
    ///
    ///   A = w u (2u L_r,  L_c + 2μ L_r,  2b L_r),   E[∂loss/∂u] = A C e_w/u,   N = w²u²(E[e²σ′²] + s²E[σ′²])
    ///
    /// (docs/derivations/lora.md#s4).
    fn averages(&self, law: &Law, needed: Needed, out: &mut Averages) {
        let (fields, [u, mu, b]) = (self.neuron.law(law), self.neuron.weights(law.scalars));
        let slopes = self.population.slopes(fields);
        let weight = self.population.loss.weight();
        let couplings = [
            2.0 * u * slopes.variance,
            slopes.overlap + 2.0 * mu * slopes.variance,
            2.0 * b * slopes.variance,
        ];
        let p = self.shape().rows();
        for (j, coupling) in couplings[..p].iter().enumerate() {
            out.drift[(0, j)] = weight * u * coupling;
        }
        out.scalars[0] = weight * (0..p).map(|j| couplings[j] * law.covariance[(0, j)]).sum::<f64>();
        if needed == Needed::DriftAndNoise {
            let mut noise = self.population.gradient_noise(fields);
            if law.label_noise > 0.0 {
                noise += law.label_noise.powi(2) * self.population.squared_slope(fields.student);
            }
            out.noise[(0, 0)] = (weight * u).powi(2) * noise;
        }
        out.error = 0.0;
    }

    fn risk_within(&self, law: &Law, _accuracy: f64) -> QuadratureEstimate {
        let risk = self.population.loss.weight() * self.population.loss(self.neuron.law(law));
        QuadratureEstimate::exact(risk)
    }

    fn batch(&self) -> Option<&dyn BatchRule> {
        Some(self)
    }

    fn curved(&self) -> Option<&dyn CurvatureRule> {
        Some(self)
    }
}

impl BatchRule for SingleIndexRule {
    fn kick_batch(&self, samples: &Batch, rows: &mut [f64], scalars: &mut [f64]) {
        let n = samples.size;
        let [u, mu, b] = self.neuron.weights(samples.scalars);
        let weight = -self.population.loss.weight();
        let residual = if self.population.loss.has_residual() { 1.0 } else { 0.0 };
        let (mut s, mut value, mut slope, mut label) = (
            [0.0; SAMPLES_PER_BLOCK],
            [0.0; SAMPLES_PER_BLOCK],
            [0.0; SAMPLES_PER_BLOCK],
            [0.0; SAMPLES_PER_BLOCK],
        );
        scalars[0] = 0.0;
        let mut from = 0;
        while from < n {
            let count = SAMPLES_PER_BLOCK.min(n - from);
            let field = |k: usize| &samples.fields[k * n + from..k * n + from + count];
            let (own, teacher) = (field(0), field(1));
            let (s, value, slope, label) =
                (&mut s[..count], &mut value[..count], &mut slope[..count], &mut label[..count]);
            batch::combine(u, own, mu, teacher, s);
            if self.neuron.misalignment.is_some() {
                add_scaled(s, b, field(2));
            }
            self.student.values_and_slopes(s, value, slope);
            self.label.values(teacher, label);
            let out = &mut rows[from..from + count];
            let noise = &samples.noise[from..from + count];
            batch::kicks_per_amplitude(weight, label, noise, residual, value, slope, out);
            scalars[0] += batch::dot(out, own);
            out.iter_mut().for_each(|c| *c *= u);
            from += count;
        }
    }
}

impl CurvatureRule for SingleIndexRule {
    fn jumps(&self) -> Jumps {
        Jumps { trained: self.population.student.slope_jumps(), frozen: false }
    }

    fn kink_planes(&self, scalars: &[f64]) -> Option<Vec<KinkPlane>> {
        let normal = self.neuron.weights(scalars)[..self.shape().rows()].to_vec();
        let kinks = self.population.student.kinks().iter().filter(|kink| kink.jump != 0.0);
        Some(kinks.map(|kink| KinkPlane { normal: normal.clone(), offset: kink.at }).collect())
    }
}
