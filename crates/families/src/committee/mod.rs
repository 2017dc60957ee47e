//! Committee machines: K hidden units learn from M.
//!
//!   student f = Σ_i a_i g(w_i·x),   teacher y = Σ_n v_n g_t(b_n·x),   loss = (y − f)²/2 or (y − f)², or any other ℓ(y, f).
//!
//! Saad & Solla, Phys. Rev. E 52, 4225 (1995); with correlated inputs Yoshida & Okada (2019) and
//! Worschech & Rosenow (2024). Order-parameter equations: docs/derivations/power-law-spectra.md#s3. Learning-rate and
//! time conventions: `docs/conventions.md`.

mod observables;
pub mod predictions;
mod quantities;
mod rule;

use super::{Family, ModelError, Reference};
use didact_math::activation;
use didact_model::loss::{AnyLoss, Loss, Prefactor};
use didact_model::observable::Observable;
use didact_model::quantity::Quantity;
use didact_model::rule::LocalRule;
use rule::{Hidden, Labels};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, LazyLock};

/// Output weights of student and teacher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// All ones: the soft committee machine of Saad & Solla.
    #[default]
    Soft,
    /// 1/K and 1/M.
    Mean,
    /// √M/K and 1/√M: the teacher has variance O(1) at any width (Worschech & Rosenow).
    Scaled,
}

/// A student committee that learns from a teacher committee.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Committee {
    /// K, hidden units of the student.
    #[schemars(range(max = 2048))]
    pub students: usize,
    /// M, hidden units of the teacher.
    #[schemars(range(max = 2048))]
    pub teachers: usize,
    /// g: a name (`erf(z/sqrt2)`, `relu`, `He3`, …) or an expression in x.
    pub activation: String,
    /// g_t, if it is not g.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teacher_activation: Option<String>,
    /// Output weights.
    #[serde(default)]
    pub output: Output,
    /// a_i, in place of those of `output`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub student_weights: Option<Vec<f64>>,
    /// v_n, in place of those of `output`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teacher_weights: Option<Vec<f64>>,
    /// Trains the a_i as scalars.
    #[serde(default)]
    pub train_output: bool,
    /// (y − f)²/2 (`half`), (y − f)² (`one`), or any loss ℓ(y, f), whose averages are computed by quadrature:
    /// `{ kind = "huber", kappa = 1.0 }`.
    #[serde(default)]
    pub loss: AnyLoss,
}

impl Committee {
    /// K units of g learn from M units of g, output weights 1, loss (y − f)²/2.
    pub fn soft(students: usize, teachers: usize, activation: &str) -> Self {
        Self {
            students,
            teachers,
            activation: activation.into(),
            teacher_activation: None,
            output: Output::Soft,
            student_weights: None,
            teacher_weights: None,
            train_output: false,
            loss: AnyLoss::default(),
        }
    }

    /// Output weights (a, v).
    fn weights(&self) -> (Vec<f64>, Vec<f64>) {
        let (k, m) = (self.students as f64, self.teachers as f64);
        let (a, v) = match self.output {
            Output::Soft => (1.0, 1.0),
            Output::Mean => (1.0 / k, 1.0 / m),
            Output::Scaled => (m.sqrt() / k, 1.0 / m.sqrt()),
        };
        let student = self.student_weights.clone().unwrap_or_else(|| vec![a; self.students]);
        let teacher = self.teacher_weights.clone().unwrap_or_else(|| vec![v; self.teachers]);
        (student, teacher)
    }
}

impl Family for Committee {
    const NAME: &'static str = "committee";
    const SUMMARY: &'static str = "K hidden units learn from M: soft committee machines with any activation";

    fn references(&self) -> Vec<Reference> {
        vec![
            Reference {
                key: "SaadSolla1995",
                citation: "D. Saad and S. A. Solla, On-line learning in soft committee machines, Phys. Rev. E 52, 4225 (1995)",
                locator: "doi:10.1103/PhysRevE.52.4225",
            },
            Reference {
                key: "YoshidaOkada2019",
                citation: "Y. Yoshida and M. Okada, Data-dependence of plateau phenomenon in learning with neural network: statistical mechanical analysis, NeurIPS (2019)",
                locator: "arXiv:2001.03371",
            },
            Reference {
                key: "WorschechRosenow2024",
                citation: "R. Worschech and B. Rosenow, Analyzing neural scaling laws in two-layer networks with power-law data spectra (2024)",
                locator: "arXiv:2410.09005",
            },
        ]
    }

    fn rule(&self) -> Result<Arc<dyn LocalRule>, ModelError> {
        for (name, count) in [("students", self.students), ("teachers", self.teachers)] {
            if count == 0 {
                return Err(ModelError::Zero { name });
            }
        }
        let (a, v) = self.weights();
        for (name, list, expected) in
            [("student-weights", &a, self.students), ("teacher-weights", &v, self.teachers)]
        {
            if list.len() != expected {
                return Err(ModelError::Length { name, given: list.len(), expected });
            }
            if let Some(&value) = list.iter().find(|w| !w.is_finite()) {
                return Err(ModelError::NotFinite { name, value });
            }
        }
        let parse = |name, text: &str| {
            activation::parse(text).map_err(|source| ModelError::Activation { name, source })
        };
        let own = parse("activation", &self.activation)?;
        let teacher = match &self.teacher_activation {
            Some(text) => parse("teacher-activation", text)?,
            None => own.clone(),
        };
        let student = Hidden { activation: own, weights: a, trained: self.train_output };
        let teacher = Labels { activation: teacher, weights: v };
        let loss = Loss::from(self.loss);
        if let Some((name, value)) = loss.parameter().filter(|(_, v)| !(v.is_finite() && *v > 0.0)) {
            let message = format!("{name} is {value}; it must be positive and finite");
            return Err(ModelError::Invalid { name: "loss", message });
        }
        Ok(Arc::new(rule::rule(student, teacher, loss)))
    }

    fn starting_scalars(&self) -> Vec<f64> {
        if self.train_output { self.weights().0 } else { Vec::new() }
    }

    fn observables(&self) -> Vec<Arc<dyn Observable>> {
        observables::all()
    }

    fn quantities() -> &'static [Quantity] {
        static ALL: LazyLock<Vec<Quantity>> = LazyLock::new(quantities::all);
        &ALL
    }

    fn examples() -> Vec<Self> {
        let mut all: Vec<Self> =
            ["erf(z/sqrt2)", "erf(z)", "linear", "relu", "quadratic", "tanh", "He3", "x*sigmoid(x)"]
                .map(|g| Self::soft(2, 2, g))
                .into();
        let one = AnyLoss::Squared(Prefactor::One);
        all.push(Self { output: Output::Scaled, loss: one, ..Self::soft(2, 3, "erf(z/sqrt2)") });
        let huber = AnyLoss::Other(Loss::Huber { kappa: 0.7 });
        all.push(Self { loss: huber, train_output: true, ..Self::soft(1, 1, "erf(z/sqrt2)") });
        let logistic = AnyLoss::Other(Loss::Logistic);
        let labels = Some("sigmoid".into());
        all.push(Self { loss: logistic, teacher_activation: labels, ..Self::soft(2, 1, "tanh") });
        all.push(Self { loss: AnyLoss::Other(Loss::Correlation), ..Self::soft(1, 2, "He3") });
        all.push(Self { train_output: true, output: Output::Mean, ..Self::soft(2, 1, "erf(z/sqrt2)") });
        all.push(Self { train_output: true, ..Self::soft(1, 2, "relu") });
        all.push(Self { teacher_activation: Some("erf(z)".into()), ..Self::soft(1, 1, "erf(z/sqrt2)") });
        all.push(Self { teacher_activation: Some("relu".into()), ..Self::soft(1, 1, "gelu") });
        all
    }
}
