//! The single-index model: parameters and observables.

use super::landscape::Landscape;
use super::population::{LossName, Population};
use super::rule::{Neuron, SingleIndexRule};
use crate::{Family, ModelError, Reference, Refusal};
use didact_math::activation::{self, Activation, Form};
use didact_model::composed_start::ScalarLaw;
use didact_model::observable::{Observable, Snapshot};
use didact_model::problem::Problem;
use didact_model::quantity::Quantity;
use didact_model::rule::{Law, LocalRule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, OnceLock};

/// Rank-one LoRA of a pre-trained neuron: student σ((μ w* + b ξ + u w)·x), teacher φ(w*·x); u and the unit vector w learn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LoraSingleIndex {
    /// μ, strength of pre-training along the teacher, between 0 and 1.
    pub mu: f64,
    /// σ: a name (`erf(z)`, `relu`, `He3`, …) or an expression in x.
    pub activation: String,
    /// φ, if it is not σ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teacher_activation: Option<String>,
    /// What is learned from a label y: `plain`, `squared`, or a formula in y.
    #[serde(default = "plain")]
    pub labels: String,
    /// b, weight of the pre-trained neuron along a direction ξ of its own (a second frozen row): a number, or `complement`
    /// for 1 − μ; none unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misalignment: Option<Misalignment>,
    /// (y − f)²/2 (`half`), (y − f)² (`one`), or 1 − y f (`correlation`).
    #[serde(default)]
    pub loss: LossName,
}

/// The weight of the stray direction ξ.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "`misalignment` is a number or `complement`")]
pub enum Misalignment {
    /// b.
    Weight(f64),
    /// In terms of μ.
    Named(NamedMisalignment),
}

/// Weights of ξ by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NamedMisalignment {
    /// b = 1 − μ.
    Complement,
}

fn plain() -> String {
    "plain".into()
}

impl LoraSingleIndex {
    /// Teacher and student of one activation, aligned, plain labels, half-squared loss.
    pub fn matched(mu: f64, activation: &str) -> Self {
        Self {
            mu,
            activation: activation.into(),
            teacher_activation: None,
            labels: plain(),
            misalignment: None,
            loss: LossName::Half,
        }
    }

    /// φ, σ.
    fn activations(&self) -> Result<[Arc<dyn Activation>; 2], ModelError> {
        let parse = |name, text: &str| {
            activation::parse(text).map_err(|source| ModelError::Activation { name, source })
        };
        let student = parse("activation", &self.activation)?;
        let teacher = match &self.teacher_activation {
            Some(text) => parse("teacher-activation", text)?,
            None => student.clone(),
        };
        Ok([teacher, student])
    }

    /// The loss of the pair, labels transformed.
    pub fn population(&self) -> Result<Population, ModelError> {
        let [teacher, student] = self.activations()?;
        for (name, unit) in [("activation", &student), ("teacher-activation", &teacher)] {
            if unit.degree() == Some(0) {
                let message = format!(
                    "`{}` is a constant, from which nothing is learned\n\nhint: use He1 or higher",
                    unit.name()
                );
                return Err(ModelError::Invalid { name, message });
            }
        }
        if self.loss == LossName::Correlation && self.labels.trim() == "squared" {
            let message = "squared labels with the correlation loss: the even part alone is learned from, and u has no bound\n\n\
                           hint: use loss `half`; or write labels = \"y^2\" to say that you mean it";
            return Err(ModelError::Invalid { name: "labels", message: message.into() });
        }
        Population::new(teacher, &self.labels, student, self.loss)
    }

    /// The loss as a function of (u, m, q), ξ orthogonal to w*.
    pub fn landscape(&self) -> Result<Landscape, ModelError> {
        self.check_weights()?;
        let misalignment = self.stray_weight().unwrap_or(0.0);
        Ok(Landscape { misalignment, ..Landscape::aligned(self.population()?, self.mu) })
    }

    /// b, if there is a ξ.
    fn stray_weight(&self) -> Option<f64> {
        Some(match self.misalignment? {
            Misalignment::Weight(b) => b,
            Misalignment::Named(NamedMisalignment::Complement) => 1.0 - self.mu,
        })
    }

    fn neuron(&self) -> Neuron {
        Neuron { mu: self.mu, misalignment: self.stray_weight() }
    }

    fn check_weights(&self) -> Result<(), ModelError> {
        let mu = self.mu;
        if !(mu > 0.0 && mu < 1.0) {
            let message = format!(
                "mu is {mu}; pre-training strengths lie strictly between 0 and 1\n\n\
                 hint: the limits are known in closed form: quantity `lora-single-index/limits`"
            );
            return Err(ModelError::Invalid { name: "mu", message });
        }
        match self.stray_weight() {
            Some(b) if !b.is_finite() => Err(ModelError::NotFinite { name: "misalignment", value: b }),
            _ => Ok(()),
        }
    }
}

impl Family for LoraSingleIndex {
    const NAME: &'static str = "lora-single-index";
    const SUMMARY: &'static str =
        "rank-one LoRA fine-tuning of a pre-trained neuron, any activations and labels";

    fn references(&self) -> Vec<Reference> {
        vec![super::REFERENCE]
    }

    fn rule(&self) -> Result<Arc<dyn LocalRule>, ModelError> {
        self.check_weights()?;
        let population = self.population()?;
        let [teacher, _] = self.activations()?;
        Ok(Arc::new(SingleIndexRule::new(population, teacher, &self.labels, self.neuron())))
    }

    /// u = 0: what an adapter has of order d^{−1/2} vanishes as d → ∞.
    fn starting_scalars(&self) -> Vec<f64> {
        vec![0.0]
    }

    /// u = d^{−1/2}, of the order that the search phase starts from.
    fn scalar_law(&self) -> Option<ScalarLaw> {
        Some(ScalarLaw::Fixed { size: 1.0 })
    }

    fn admits(&self, problem: &Problem) -> Result<(), Refusal> {
        let Some(start) = super::needs_unit_rows(problem)? else { return Ok(()) };
        // r = |W|² at the start; a stage that goes on from elsewhere is not asked.
        let weights = [start.scalars[0], self.mu, self.stray_weight().unwrap_or(0.0)];
        let plain = start.moment(&problem.spectrum, 0);
        let n = plain.rows();
        let r: f64 = (0..n * n).map(|at| weights[at / n] * plain[(at / n, at % n)] * weights[at % n]).sum();
        let relu = self.activations().is_ok_and(|[_, student]| student.form() == Form::Relu);
        if relu && r <= 1e-15 {
            return Err(Refusal {
                key: "start.scalars",
                message: "a relu student that starts at W = mu w* + u w = 0 has no gradient".into(),
                hint: "start from another u, or with |m| below 1".into(),
            });
        }
        Ok(())
    }

    fn observables(&self) -> Vec<Arc<dyn Observable>> {
        let mut all =
            vec![Reading::Amplitude, Reading::Overlap, Reading::Effective, Reading::Variance, Reading::Error];
        if self.misalignment.is_some() {
            all.push(Reading::Stray);
        }
        let named = |what| Named { what, neuron: self.neuron(), spec: self.clone(), plain: OnceLock::new() };
        all.into_iter().map(|what| Arc::new(named(what)) as Arc<dyn Observable>).collect()
    }

    fn quantities() -> &'static [Quantity] {
        super::quantities::QUANTITIES
    }

    fn examples() -> Vec<Self> {
        let mut all: Vec<Self> = ["erf(z)", "He3", "sigmoid", "x*sigmoid(x)", "relu"]
            .map(|activation| Self::matched(0.4, activation))
            .into();
        let stray = Some(Misalignment::Weight(0.6));
        let squared = |activation| Self { labels: "squared".into(), ..Self::matched(0.3, activation) };
        all.extend(["erf(z)", "He3", "relu"].map(squared));
        all.push(Self { misalignment: stray, ..Self::matched(0.4, "erf(z/sqrt2)") });
        all.push(Self { loss: LossName::Correlation, ..Self::matched(0.5, "erf(z)") });
        all.push(Self { labels: "tanh(y)".into(), ..Self::matched(0.5, "linear") });
        all.push(Self { misalignment: stray, loss: LossName::One, ..Self::matched(0.3, "relu") });
        all.push(Self { teacher_activation: Some("relu".into()), ..Self::matched(0.5, "erf(z)") });
        all.push(Self { teacher_activation: Some("He3".into()), ..Self::matched(0.5, "relu") });
        all
    }
}

/// Order parameters by their names in the paper.
#[derive(Debug, Clone, Copy)]
enum Reading {
    Amplitude,
    Overlap,
    Stray,
    Effective,
    Variance,
    Error,
}

/// `u`, `m`, `q`, `m_eff` (c = W·w*), `r` (|W|²) and `mse`, the test error on the labels as they are.
#[derive(Debug)]
struct Named {
    what: Reading,
    neuron: Neuron,
    spec: LoraSingleIndex,
    /// Teacher and student with the labels as they are, made when `mse` is measured first.
    plain: OnceLock<Population>,
}

impl Named {
    /// The half-squared error on the labels as they are, not as they are transformed for training.
    fn plain(&self) -> &Population {
        self.plain.get_or_init(|| {
            let [teacher, student] = self.spec.activations().expect("parameters that the rule has accepted");
            Population::new(teacher, "plain", student, LossName::Half)
                .expect("plain labels have no formula to refuse")
        })
    }
}

impl Observable for Named {
    fn name(&self) -> String {
        match self.what {
            Reading::Amplitude => "u",
            Reading::Overlap => "m",
            Reading::Stray => "q",
            Reading::Effective => "m_eff",
            Reading::Variance => "r",
            Reading::Error => "mse",
        }
        .into()
    }

    fn measure(&self, snapshot: &Snapshot) -> f64 {
        let covariance = snapshot.moment(1);
        let scalars = &snapshot.overlaps.scalars;
        let law = self.neuron.law(&Law { covariance: &covariance, scalars, label_noise: 0.0 });
        match self.what {
            Reading::Amplitude => scalars[0],
            Reading::Overlap => covariance[(0, 1)],
            Reading::Stray => covariance[(0, 2)],
            Reading::Effective => law.overlap,
            Reading::Variance => law.student,
            Reading::Error => 2.0 * self.plain().loss(law),
        }
    }
}
