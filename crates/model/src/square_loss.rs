//! Square loss of a student against a teacher: how most models become a [`LocalRule`].

use crate::rule::{Kick, LabelledRule, LocalRule, Sample, Shape};
use std::fmt::Debug;

/// Labels an input from its projections on the teacher directions.
pub trait Teacher: Send + Sync + Debug {
    /// Number of directions (frozen rows).
    fn directions(&self) -> usize;
    /// The label, noise excluded.
    fn label(&self, fields: &[f64]) -> f64;
}

/// A network read through its fields: trained rows first, then frozen rows of its own.
pub trait Student: Send + Sync + Debug {
    /// Rows trained, rows frozen, trained scalars.
    fn shape(&self) -> Shape;
    /// The output f.
    fn output(&self, fields: &[f64], scalars: &[f64]) -> f64;
    /// ∂f/∂h_i and ∂f/∂a_j; returns f.
    fn gradient(&self, fields: &[f64], scalars: &[f64], out: &mut Kick) -> f64;
}

/// What multiplies the squared error.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Prefactor {
    /// loss = (label − output)² / 2.
    #[default]
    Half,
    /// loss = (label − output)².
    One,
}

impl Prefactor {
    /// ∂loss/∂f = −weight (label − f): 1 for [`Prefactor::Half`], 2 for [`Prefactor::One`].
    pub fn weight(self) -> f64 {
        match self {
            Self::Half => 1.0,
            Self::One => 2.0,
        }
    }
}

/// Fields are the student's rows (trained, then its frozen ones), then the teacher's directions.
#[derive(Debug, Clone)]
pub struct SquareLoss<S, T> {
    /// The network that learns.
    pub student: S,
    /// The network that labels.
    pub teacher: T,
    /// 1/2 or 1.
    pub prefactor: Prefactor,
}

impl<S: Student, T: Teacher> SquareLoss<S, T> {
    fn label_of(&self, sample: &Sample) -> f64 {
        let own = self.student.shape().rows();
        self.teacher.label(&sample.fields[own..]) + sample.noise
    }
}

impl<S: Student, T: Teacher> LocalRule for SquareLoss<S, T> {
    fn shape(&self) -> Shape {
        let own = self.student.shape();
        Shape { frozen: own.frozen + self.teacher.directions(), own_frozen: own.frozen, ..own }
    }

    fn loss(&self, sample: &Sample) -> f64 {
        let error = self.label_of(sample) - self.student.output(sample.fields, sample.scalars);
        0.5 * self.prefactor.weight() * error * error
    }

    fn kick(&self, sample: &Sample, out: &mut Kick) {
        let output = self.student.gradient(sample.fields, sample.scalars, out);
        let slope = -self.prefactor.weight() * (self.label_of(sample) - output);
        out.rows.iter_mut().chain(&mut out.scalars).for_each(|g| *g *= slope);
    }

    /// A student with frozen rows of its own may read the latent fields past the label.
    fn labelled(&self) -> Option<&dyn LabelledRule> {
        if self.student.shape().frozen == 0 { Some(self) } else { None }
    }
}

impl<S: Student, T: Teacher> LabelledRule for SquareLoss<S, T> {
    fn label(&self, frozen: &[f64], noise: f64) -> f64 {
        self.teacher.label(frozen) + noise
    }
}
