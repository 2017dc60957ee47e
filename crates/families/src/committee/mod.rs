//! Committee machines: K hidden units learn from M.
//!
//!   student f = Σ_i a_i g(w_i·x),   teacher y = Σ_n v_n g_t(b_n·x),   loss = (y − f)²/2 or (y − f)².
//!
//! Saad & Solla, Phys. Rev. E 52, 4225 (1995); with correlated inputs Yoshida & Okada (2019) and
//! Worschech & Rosenow (2024). Learning-rate and time conventions: `docs/conventions.md`.

mod angles;
mod averages;
mod conditional;
mod erf;
mod kicks;
mod planes;
mod plateau;
pub mod spectra;

use super::{Family, ModelError, Reference};
use averages::Route;
use didact_math::activation::{self, Activation};
use didact_model::quantity::Quantity;
use didact_model::rule::{Averages, Batch, Jumps, Kick, Law, LocalRule, Needed, Sample, Shape};
use didact_model::square_loss::{Prefactor, SquareLoss, Student, Teacher};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
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
    pub students: usize,
    /// M, hidden units of the teacher.
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
    /// (y − f)²/2 (`half`) or (y − f)² (`one`).
    #[serde(default)]
    pub loss: Prefactor,
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
            loss: Prefactor::Half,
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
        Ok(Arc::new(CommitteeRule::new(student, teacher, self.loss)))
    }

    fn starting_scalars(&self) -> Vec<f64> {
        if self.train_output { self.weights().0 } else { Vec::new() }
    }

    fn quantities() -> &'static [Quantity] {
        static ALL: LazyLock<Vec<Quantity>> =
            LazyLock::new(|| [plateau::QUANTITIES, &spectra::quantities::all()].concat());
        &ALL
    }

    fn examples() -> Vec<Self> {
        let mut all: Vec<Self> =
            ["erf(z/sqrt2)", "erf(z)", "linear", "relu", "quadratic", "tanh", "He3", "x*sigmoid(x)"]
                .map(|g| Self::soft(2, 2, g))
                .into();
        all.push(Self { output: Output::Scaled, loss: Prefactor::One, ..Self::soft(2, 3, "erf(z/sqrt2)") });
        all.push(Self { train_output: true, output: Output::Mean, ..Self::soft(2, 1, "erf(z/sqrt2)") });
        all.push(Self { train_output: true, ..Self::soft(1, 2, "relu") });
        all.push(Self { teacher_activation: Some("erf(z)".into()), ..Self::soft(1, 1, "erf(z/sqrt2)") });
        all.push(Self { teacher_activation: Some("relu".into()), ..Self::soft(1, 1, "gelu") });
        all
    }
}

/// Units whose activations are computed together.
const UNITS: usize = 8;

/// Σ_i a_i σ(h_i).
fn weighted_sum(activation: &dyn Activation, weights: &[f64], fields: &[f64]) -> f64 {
    let mut values = [0.0; UNITS];
    let mut sum = 0.0;
    for (weights, fields) in weights.chunks(UNITS).zip(fields.chunks(UNITS)) {
        let values = &mut values[..weights.len()];
        values.copy_from_slice(&fields[..weights.len()]);
        activation.values(values);
        sum += weights.iter().zip(&*values).map(|(a, value)| a * value).sum::<f64>();
    }
    sum
}

/// The student's hidden layer; output weights are fixed, or trained as scalars that start there.
#[derive(Debug, Clone)]
struct Hidden {
    activation: Arc<dyn Activation>,
    weights: Vec<f64>,
    trained: bool,
}

impl Hidden {
    fn output_weights<'a>(&'a self, scalars: &'a [f64]) -> &'a [f64] {
        if self.trained { scalars } else { &self.weights }
    }
}

impl Student for Hidden {
    fn shape(&self) -> Shape {
        let k = self.weights.len();
        Shape { trained: k, frozen: 0, scalars: if self.trained { k } else { 0 } }
    }

    fn output(&self, fields: &[f64], scalars: &[f64]) -> f64 {
        weighted_sum(self.activation.as_ref(), self.output_weights(scalars), fields)
    }

    fn gradient(&self, fields: &[f64], scalars: &[f64], out: &mut Kick) -> f64 {
        let mut output = 0.0;
        for (i, a) in self.output_weights(scalars).iter().enumerate() {
            let (value, slope) = self.activation.value_and_slope(fields[i]);
            output += a * value;
            out.rows[i] = a * slope;
            if self.trained {
                out.scalars[i] = value;
            }
        }
        output
    }
}

/// The teacher.
#[derive(Debug, Clone)]
struct Labels {
    activation: Arc<dyn Activation>,
    weights: Vec<f64>,
}

impl Teacher for Labels {
    fn directions(&self) -> usize {
        self.weights.len()
    }
    fn label(&self, fields: &[f64]) -> f64 {
        weighted_sum(self.activation.as_ref(), &self.weights, fields)
    }
}

/// The square loss of the two, with the averages that are known in closed form.
#[derive(Debug, Clone)]
struct CommitteeRule {
    loss: SquareLoss<Hidden, Labels>,
    route: Route,
    /// At the starting output weights: computed once, since they are asked for at every right-hand side of an ODE.
    fixed: OutputFactors,
}

/// How the output weights enter the averages.
#[derive(Debug, Clone)]
struct OutputFactors {
    /// v_k, coefficient of unit k in y − f.
    residual: Vec<f64>,
    /// c_i = w a_i.
    gain: Vec<f64>,
}

impl OutputFactors {
    fn new(loss: &SquareLoss<Hidden, Labels>, scalars: &[f64]) -> Self {
        let (own, weight) = (loss.student.output_weights(scalars), loss.prefactor.weight());
        Self {
            residual: own.iter().map(|a| -a).chain(loss.teacher.weights.iter().copied()).collect(),
            gain: own.iter().map(|a| weight * a).collect(),
        }
    }
}

impl CommitteeRule {
    fn new(student: Hidden, teacher: Labels, prefactor: Prefactor) -> Self {
        let route =
            Route::of(&student.activation, &teacher.activation, student.weights.len(), teacher.weights.len());
        let start = student.weights.clone();
        let loss = SquareLoss { student, teacher, prefactor };
        let fixed = OutputFactors::new(&loss, &start);
        Self { loss, route, fixed }
    }

    /// v_k, the coefficient of unit k in y − f: −a_i for the student, v_n for the teacher; and c_i = w a_i.
    fn output_factors(&self, scalars: &[f64]) -> Cow<'_, OutputFactors> {
        if self.loss.student.trained {
            Cow::Owned(OutputFactors::new(&self.loss, scalars))
        } else {
            Cow::Borrowed(&self.fixed)
        }
    }

    fn activation(&self, row: usize) -> &Arc<dyn Activation> {
        if row < self.loss.student.weights.len() {
            &self.loss.student.activation
        } else {
            &self.loss.teacher.activation
        }
    }
}

impl LocalRule for CommitteeRule {
    fn shape(&self) -> Shape {
        self.loss.shape()
    }
    fn loss(&self, sample: &Sample) -> f64 {
        self.loss.loss(sample)
    }
    fn kick(&self, sample: &Sample, out: &mut Kick) {
        let &Sample { fields, scalars, noise } = sample;
        let noise = [noise];
        let one = Batch::new(fields, 1, scalars, &noise);
        kicks::fill(&self.loss, &one, &mut out.rows, &mut out.scalars);
    }
    fn kick_batch(&self, batch: &Batch, rows: &mut [f64], scalars: &mut [f64]) {
        kicks::fill(&self.loss, batch, rows, scalars);
    }
    fn steps_abreast(&self) -> bool {
        true
    }
    fn jumps(&self) -> Jumps {
        Jumps { trained: !self.loss.student.activation.kinks().is_empty(), frozen: false }
    }
    fn label(&self, frozen: &[f64], noise: f64) -> Option<f64> {
        self.loss.label(frozen, noise)
    }
    fn averages(&self, law: &Law, needed: Needed, out: &mut Averages) {
        averages::fill(self, law, needed, out);
    }
    fn risk(&self, law: &Law) -> f64 {
        averages::risk(self, law)
    }
}
