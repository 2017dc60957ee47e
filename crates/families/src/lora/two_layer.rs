//! Two-layer LoRA of rank R: K hidden units share R adapters (docs/derivations/lora.md#s11).
//!
//!   teacher y = Σ_k v_k φ(w*_k·x),   student f = Σ_k v_k σ(F_k),   F_k = (μ_k w*_k + Σ_r U_kr w_r)·x,   loss (y − f)²/(2K);
//!
//! trained are the unit vectors w_r and, as scalars, U (row by row: `scalar[k R + r]` is U_kr). In the names of the
//! engines M_kr = w*_k·w_r is `R[r,k]` and Q_rs = w_r·w_s is `Q[r,s]`.

pub use super::predictions::two_layer::{escape_rate, final_loss, initial_loss};

use super::rule::AdapterRule;
use crate::{Family, ModelError, Reference, Refusal};
use didact_math::activation;
use didact_model::problem::Problem;
use didact_model::quantity::Quantity;
use didact_model::rule::LocalRule;
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
    #[schemars(range(max = 2048))]
    pub hidden: usize,
    /// R, adapters shared by all units.
    #[schemars(range(max = 2048))]
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
        let output = self.output_weights.list("output-weights", self.hidden)?;
        Ok(Arc::new(AdapterRule::new(student, teacher, mu, output, self.rank)))
    }

    fn starting_scalars(&self) -> Vec<f64> {
        vec![self.amplitude; self.hidden * self.rank]
    }

    fn admits(&self, problem: &Problem) -> Result<(), Refusal> {
        super::needs_unit_rows(problem).map(|_| ())
    }

    fn quantities() -> &'static [Quantity] {
        super::quantities::two_layer::QUANTITIES
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
