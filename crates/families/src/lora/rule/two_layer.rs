//! The rule of a two-layer network with R adapters.

use super::batch::{SAMPLES_PER_BLOCK, Sliced, dot};
use super::two_layer_averages::{self as averages, Route};
use didact_math::activation::Activation;
use didact_math::simd::add_scaled;
use didact_model::averages::QuadratureEstimate;
use didact_model::loss::Loss;
use didact_model::rule::{
    Averages, Batch, BatchRule, CurvatureRule, Jumps, Kick, KinkPlane, Law, LocalRule, Needed, Sample, Shape,
};
use std::sync::Arc;

/// Fields: w_r·x (trained), then w*_k·x (frozen); scalars U, row by row.
#[derive(Debug, Clone)]
pub(in crate::lora) struct AdapterRule {
    pub(super) student: Arc<dyn Activation>,
    pub(super) teacher: Arc<dyn Activation>,
    sliced: [Sliced; 2],
    /// μ_k.
    pub(super) mu: Vec<f64>,
    /// v_k.
    pub(super) output: Vec<f64>,
    pub(super) rank: usize,
    pub(super) route: Route,
}

impl AdapterRule {
    /// Activations of student and teacher, μ_k, v_k and R.
    pub(in crate::lora) fn new(
        student: Arc<dyn Activation>,
        teacher: Arc<dyn Activation>,
        mu: Vec<f64>,
        output: Vec<f64>,
        rank: usize,
    ) -> Self {
        let route = Route::of(&*student, &*teacher);
        let sliced = [Sliced::new(student.clone()), Sliced::new(teacher.clone())];
        Self { student, teacher, sliced, mu, output, rank, route }
    }

    /// 1/K, what multiplies (y − f)²/2.
    pub(super) fn weight(&self) -> f64 {
        1.0 / self.mu.len() as f64
    }

    /// F_k of a sample.
    fn field(&self, k: usize, fields: &[f64], scalars: &[f64]) -> f64 {
        let (adapters, teachers) = fields.split_at(self.rank);
        self.mu[k] * teachers[k] + dot(&scalars[k * self.rank..(k + 1) * self.rank], adapters)
    }

    /// y − f, the teacher's part.
    fn label(&self, sample: &Sample) -> f64 {
        let teachers = &sample.fields[self.rank..];
        let units = self.output.iter().zip(teachers).map(|(v, a)| v * self.teacher.value(*a));
        units.sum::<f64>() + sample.noise
    }
}

impl LocalRule for AdapterRule {
    fn shape(&self) -> Shape {
        Shape {
            trained: self.rank,
            frozen: self.mu.len(),
            scalars: self.rank * self.mu.len(),
            ..Shape::default()
        }
    }

    fn loss(&self, sample: &Sample) -> f64 {
        let output =
            |k: usize| self.output[k] * self.student.value(self.field(k, sample.fields, sample.scalars));
        let output = (0..self.mu.len()).map(output).sum();
        Loss::Square { weight: self.weight() }.value(output, self.label(sample))
    }

    fn kick(&self, sample: &Sample, out: &mut Kick) {
        let (k, r) = (self.mu.len(), self.rank);
        let mut error = self.label(sample);
        let mut slopes = vec![0.0; k];
        for (unit, slope) in slopes.iter_mut().enumerate() {
            let value;
            (value, *slope) = self.student.value_and_slope(self.field(unit, sample.fields, sample.scalars));
            error -= self.output[unit] * value;
        }
        out.rows.fill(0.0);
        for (unit, slope) in slopes.iter().enumerate() {
            let common = -self.weight() * error * self.output[unit] * slope;
            for adapter in 0..r {
                out.rows[adapter] += common * sample.scalars[unit * r + adapter];
                out.scalars[unit * r + adapter] = common * sample.fields[adapter];
            }
        }
    }

    fn averages(&self, law: &Law, needed: Needed, out: &mut Averages) {
        averages::fill(self, law, needed, out);
    }

    fn risk_within(&self, law: &Law, _accuracy: f64) -> QuadratureEstimate {
        QuadratureEstimate::exact(averages::risk(self, law))
    }

    fn batch(&self) -> Option<&dyn BatchRule> {
        Some(self)
    }

    fn curved(&self) -> Option<&dyn CurvatureRule> {
        Some(self)
    }
}

impl BatchRule for AdapterRule {
    fn kick_batch(&self, batch: &Batch, rows: &mut [f64], scalars: &mut [f64]) {
        let (n, k, r) = (batch.size, self.mu.len(), self.rank);
        let [student, teacher] = &self.sliced;
        let mut slopes = vec![0.0; k * SAMPLES_PER_BLOCK];
        let (mut field, mut value, mut error) =
            ([0.0; SAMPLES_PER_BLOCK], [0.0; SAMPLES_PER_BLOCK], [0.0; SAMPLES_PER_BLOCK]);
        scalars.fill(0.0);
        rows.fill(0.0);
        let mut from = 0;
        while from < n {
            let count = SAMPLES_PER_BLOCK.min(n - from);
            let fields = |row: usize| &batch.fields[row * n + from..row * n + from + count];
            let (field, value, error) = (&mut field[..count], &mut value[..count], &mut error[..count]);
            error.copy_from_slice(&batch.noise[from..from + count]);
            for unit in 0..k {
                teacher.values(fields(r + unit), value);
                add_scaled(error, self.output[unit], value);
                field.fill(0.0);
                add_scaled(field, self.mu[unit], fields(r + unit));
                for adapter in 0..r {
                    add_scaled(field, batch.scalars[unit * r + adapter], fields(adapter));
                }
                student.values_and_slopes(
                    field,
                    value,
                    &mut slopes[unit * SAMPLES_PER_BLOCK..unit * SAMPLES_PER_BLOCK + count],
                );
                add_scaled(error, -self.output[unit], value);
            }
            for unit in 0..k {
                let common = &mut slopes[unit * SAMPLES_PER_BLOCK..unit * SAMPLES_PER_BLOCK + count];
                let factor = -self.weight() * self.output[unit];
                common.iter_mut().zip(&*error).for_each(|(c, e)| *c *= factor * e);
                for adapter in 0..r {
                    let u = batch.scalars[unit * r + adapter];
                    add_scaled(&mut rows[adapter * n + from..adapter * n + from + count], u, common);
                    scalars[unit * r + adapter] += dot(common, fields(adapter));
                }
            }
            from += count;
        }
    }
}

impl CurvatureRule for AdapterRule {
    fn jumps(&self) -> Jumps {
        Jumps { trained: self.student.slope_jumps(), frozen: false }
    }

    fn kink_planes(&self, scalars: &[f64]) -> Option<Vec<KinkPlane>> {
        let (units, rank) = (self.mu.len(), self.rank);
        let of_unit = |unit: usize| {
            let mut normal = scalars[unit * rank..(unit + 1) * rank].to_vec();
            normal.resize(rank + units, 0.0);
            normal[rank + unit] = self.mu[unit];
            let kinks = self.student.kinks().iter().filter(|kink| kink.jump != 0.0);
            kinks.map(move |kink| KinkPlane { normal: normal.clone(), offset: kink.at })
        };
        Some((0..units).flat_map(of_unit).collect())
    }
}
