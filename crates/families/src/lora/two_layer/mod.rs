//! Two-layer LoRA of rank R: K hidden units share R adapters (docs/derivations/lora.md#s11).
//!
//!   teacher y = Σ_k v_k φ(w*_k·x),   student f = Σ_k v_k σ(F_k),   F_k = (μ_k w*_k + Σ_r U_kr w_r)·x,   loss (y − f)²/(2K);
//!
//! trained are the unit vectors w_r and, as scalars, U (row by row: `scalar[k R + r]` is U_kr). In the names of the
//! engines M_kr = w*_k·w_r is `R[r,k]` and Q_rs = w_r·w_s is `Q[r,s]`.

mod averages;
mod predictions;

pub use predictions::{escape_rate, final_loss, initial_loss};

use super::batch::{Sliced, TOGETHER, dot};
use crate::{Family, ModelError, Reference, Refusal};
use averages::Route;
use didact_math::activation::{self, Activation};
use didact_math::simd::add_scaled;
use didact_model::loss::Loss;
use didact_model::problem::Problem;
use didact_model::quantity::Quantity;
use didact_model::rule::{
    Averages, Batch, BatchRule, CurvatureRule, Jumps, Kick, Law, LocalRule, Needed, Sample, Shape,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One number for every hidden unit, or one each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a number for all hidden units, or a list with one for each")]
pub enum PerUnit {
    /// The same for all.
    Same(f64),
    /// One each.
    Each(Vec<f64>),
}

impl PerUnit {
    fn list(&self, name: &'static str, units: usize) -> Result<Vec<f64>, ModelError> {
        let list = match self {
            Self::Same(value) => vec![*value; units],
            Self::Each(list) => list.clone(),
        };
        if list.len() != units {
            return Err(ModelError::Length { name, given: list.len(), expected: units });
        }
        match list.iter().find(|v| !v.is_finite()) {
            Some(&value) => Err(ModelError::NotFinite { name, value }),
            None => Ok(list),
        }
    }
}

/// Rank-R LoRA of a pre-trained two-layer network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LoraTwoLayer {
    /// K, hidden units of student and teacher.
    pub hidden: usize,
    /// R, adapters shared by all units.
    pub rank: usize,
    /// μ_k, strength of pre-training, one number or one per unit.
    pub mu: PerUnit,
    /// v_k, output weights of both networks; 1 unless given.
    #[serde(default = "ones")]
    pub output_weights: PerUnit,
    /// σ: `h2` (normalised He_2) and `linear` have closed forms throughout; any other works.
    pub activation: String,
    /// φ, if it is not σ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teacher_activation: Option<String>,
    /// U_kr before training, all alike.
    #[serde(default)]
    pub amplitude: f64,
}

fn ones() -> PerUnit {
    PerUnit::Same(1.0)
}

impl LoraTwoLayer {
    /// Equal strengths, output weights 1, U = 0.
    pub fn uniform(hidden: usize, rank: usize, mu: f64, activation: &str) -> Self {
        Self {
            hidden,
            rank,
            mu: PerUnit::Same(mu),
            output_weights: ones(),
            activation: activation.into(),
            teacher_activation: None,
            amplitude: 0.0,
        }
    }
}

impl Family for LoraTwoLayer {
    const NAME: &'static str = "lora-two-layer";
    const SUMMARY: &'static str = "rank-R LoRA fine-tuning of a pre-trained two-layer network";

    fn references(&self) -> Vec<Reference> {
        vec![super::REFERENCE]
    }

    fn rule(&self) -> Result<Arc<dyn LocalRule>, ModelError> {
        for (name, count) in [("hidden", self.hidden), ("rank", self.rank)] {
            if count == 0 {
                return Err(ModelError::Zero { name });
            }
        }
        let mu = self.mu.list("mu", self.hidden)?;
        if let Some(bad) = mu.iter().find(|m| !(**m > 0.0 && **m < 1.0)) {
            let message = format!("mu holds {bad}; pre-training strengths lie strictly between 0 and 1");
            return Err(ModelError::Invalid { name: "mu", message });
        }
        if !self.amplitude.is_finite() {
            return Err(ModelError::NotFinite { name: "amplitude", value: self.amplitude });
        }
        let parse = |name, text: &str| {
            activation::parse(text).map_err(|source| ModelError::Activation { name, source })
        };
        let student = parse("activation", &self.activation)?;
        let teacher = match &self.teacher_activation {
            Some(text) => parse("teacher-activation", text)?,
            None => student.clone(),
        };
        Ok(Arc::new(TwoLayerRule {
            route: Route::of(&*student, &*teacher),
            sliced: [Sliced::new(student.clone()), Sliced::new(teacher.clone())],
            student,
            teacher,
            mu,
            output: self.output_weights.list("output-weights", self.hidden)?,
            rank: self.rank,
        }))
    }

    fn starting_scalars(&self) -> Vec<f64> {
        vec![self.amplitude; self.hidden * self.rank]
    }

    fn admits(&self, problem: &Problem) -> Result<(), Refusal> {
        super::needs_unit_rows(problem).map(|_| ())
    }

    fn quantities() -> &'static [Quantity] {
        predictions::QUANTITIES
    }

    fn examples() -> Vec<Self> {
        let mixed = |activation: &str| Self {
            mu: PerUnit::Each(vec![0.3, 0.7]),
            output_weights: PerUnit::Each(vec![1.0, -0.6]),
            amplitude: 0.2,
            ..Self::uniform(2, 1, 0.5, activation)
        };
        let mut all = ["h2", "linear", "erf(z)", "relu"].map(mixed).to_vec();
        all.push(Self { teacher_activation: Some("tanh".into()), ..mixed("sigmoid") });
        all.push(Self { amplitude: 0.2, ..Self::uniform(2, 2, 0.4, "h2") });
        all
    }
}

/// Fields: w_r·x (trained), then w*_k·x (frozen); scalars U, row by row.
#[derive(Debug, Clone)]
struct TwoLayerRule {
    student: Arc<dyn Activation>,
    teacher: Arc<dyn Activation>,
    sliced: [Sliced; 2],
    /// μ_k.
    mu: Vec<f64>,
    /// v_k.
    output: Vec<f64>,
    rank: usize,
    route: Route,
}

impl TwoLayerRule {
    /// 1/K, what multiplies (y − f)²/2.
    fn weight(&self) -> f64 {
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

impl LocalRule for TwoLayerRule {
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

    fn risk(&self, law: &Law) -> f64 {
        averages::risk(self, law)
    }

    fn batch(&self) -> Option<&dyn BatchRule> {
        Some(self)
    }

    fn curved(&self) -> Option<&dyn CurvatureRule> {
        Some(self)
    }
}

impl BatchRule for TwoLayerRule {
    fn kick_batch(&self, batch: &Batch, rows: &mut [f64], scalars: &mut [f64]) {
        let (n, k, r) = (batch.size, self.mu.len(), self.rank);
        let [student, teacher] = &self.sliced;
        let mut slopes = vec![0.0; k * TOGETHER];
        let (mut field, mut value, mut error) = ([0.0; TOGETHER], [0.0; TOGETHER], [0.0; TOGETHER]);
        scalars.fill(0.0);
        rows.fill(0.0);
        let mut from = 0;
        while from < n {
            let count = TOGETHER.min(n - from);
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
                    &mut slopes[unit * TOGETHER..unit * TOGETHER + count],
                );
                add_scaled(error, -self.output[unit], value);
            }
            for unit in 0..k {
                let common = &mut slopes[unit * TOGETHER..unit * TOGETHER + count];
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

impl CurvatureRule for TwoLayerRule {
    fn jumps(&self) -> Jumps {
        Jumps { trained: !self.student.kinks().is_empty(), frozen: false }
    }
}
