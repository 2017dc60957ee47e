//! A student that learns from a teacher: how most models become a [`LocalRule`].
//!
//! Write a [`Student`] (output and gradient) and a [`Teacher`] (label), join them in a [`TeacherStudent`], and every engine runs it. What
//! the pair knows in closed form goes into a type that implements [`ClosedForms`]; every hook that it leaves out has a slow default.
//!
//! ```
//! use didact_model::loss::Loss;
//! use didact_model::rule::{Kick, LocalRule, Sample, Shape};
//! use didact_model::teacher_student::{Student, Teacher, TeacherStudent};
//!
//! /// f = (w·x)², a student without scalars or frozen rows.
//! #[derive(Debug)]
//! struct Squared;
//!
//! impl Student for Squared {
//!     fn shape(&self) -> Shape {
//!         Shape { trained: 1, ..Shape::default() }
//!     }
//!     fn output(&self, h: &[f64], _: &[f64]) -> f64 {
//!         h[0] * h[0]
//!     }
//!     fn gradient(&self, h: &[f64], a: &[f64], out: &mut Kick) -> f64 {
//!         out.rows[0] = 2.0 * h[0];
//!         self.output(h, a)
//!     }
//! }
//!
//! impl Teacher for Squared {
//!     fn directions(&self) -> usize {
//!         1
//!     }
//!     fn label(&self, h: &[f64]) -> f64 {
//!         h[0] * h[0]
//!     }
//! }
//!
//! let rule = TeacherStudent::new(Squared, Squared, Loss::LogCosh);
//! let sample = Sample { fields: &[1.0, 2.0], scalars: &[], noise: 0.0 };
//! let mut kick = Kick::new(rule.shape());
//! rule.kick(&sample, &mut kick);
//! assert_eq!(kick.rows, [2.0 * (1.0_f64 - 4.0).tanh()]);
//! // Engines that meet a sample twice find its label.
//! assert_eq!((&rule as &dyn LocalRule).label(&[2.0], 0.0), Some(4.0));
//! ```

use crate::averages::{self, QuadratureEstimate};
use crate::loss::Loss;
use crate::rule::{
    Averages, Batch, BatchRule, CurvatureRule, HiddenUnits, Jumps, Kick, KinkPlane, LabelledRule, Law,
    LocalRule, Needed, Sample, Shape, kicks_one_by_one,
};
use std::fmt::Debug;
use std::sync::Arc;

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
    /// Whether ∂f/∂h_i jumps along a trained field, as that of a relu does.
    fn has_kinks(&self) -> bool {
        false
    }
    /// The planes in the space of the student's own fields on which ∂f/∂h_i jumps; `None` where they are not known.
    fn kink_planes(&self, _scalars: &[f64]) -> Option<Vec<KinkPlane>> {
        if self.has_kinks() { None } else { Some(Vec::new()) }
    }
}

/// What a pair of student and teacher knows in closed form, or computes for many samples at once. Every method has a slow default,
/// and the tests of the registered families compare the two.
pub trait ClosedForms<S: Student, T: Teacher>: Send + Sync + Debug + Sized {
    /// See [`LocalRule::averages`].
    fn averages(&self, pair: &TeacherStudent<S, T, Self>, law: &Law, needed: Needed, out: &mut Averages) {
        averages::by_quadrature(pair, law, needed, out);
    }

    /// See [`LocalRule::risk_within`].
    fn risk_within(&self, pair: &TeacherStudent<S, T, Self>, law: &Law, accuracy: f64) -> QuadratureEstimate {
        averages::risk_by_quadrature(pair, law, accuracy)
    }

    /// See [`LocalRule::kick`].
    #[inline]
    fn kick(&self, pair: &TeacherStudent<S, T, Self>, sample: &Sample, out: &mut Kick) {
        pair.kick_by_gradient(sample, out);
    }

    /// See [`BatchRule::kick_batch`].
    fn kick_batch(
        &self,
        pair: &TeacherStudent<S, T, Self>,
        batch: &Batch,
        rows: &mut [f64],
        scalars: &mut [f64],
    ) {
        kicks_one_by_one(pair, batch, rows, scalars);
    }

    /// See [`BatchRule::steps_in_lanes`].
    fn steps_in_lanes(&self, _pair: &TeacherStudent<S, T, Self>) -> bool {
        false
    }

    /// The number of hidden units whose outputs [`Self::with_unit_factors`] can scale; 0 where there are none.
    fn units(&self, _pair: &TeacherStudent<S, T, Self>) -> usize {
        0
    }

    /// See [`HiddenUnits::with_unit_factors`]; only asked for where there are units.
    fn with_unit_factors(
        &self,
        _pair: &TeacherStudent<S, T, Self>,
        _factors: &[f64],
    ) -> Option<Arc<dyn LocalRule>> {
        None
    }
}

/// Nothing is known in closed form: averages and risk by quadrature, batches sample by sample.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoClosedForms;

impl<S: Student, T: Teacher> ClosedForms<S, T> for NoClosedForms {}

/// Which frozen rows the teacher reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TeacherRows {
    /// Rows of its own, after the frozen rows of the student.
    #[default]
    Separate,
    /// All frozen rows from the first: student and teacher share the pre-trained ones.
    Shared,
}

/// The loss of a student against the labels of a teacher. Fields are the student's trained rows, then the frozen rows.
#[derive(Debug, Clone)]
pub struct TeacherStudent<S, T, F = NoClosedForms> {
    /// The network that learns.
    pub student: S,
    /// The network that labels.
    pub teacher: T,
    /// ℓ(y, f).
    pub loss: Loss,
    /// Which frozen rows the teacher reads.
    pub teacher_rows: TeacherRows,
    /// What the pair knows beyond outputs, gradients and labels.
    pub forms: F,
}

impl<S: Student, T: Teacher> TeacherStudent<S, T> {
    /// A pair of which nothing is known in closed form.
    pub fn new(student: S, teacher: T, loss: Loss) -> Self {
        Self { student, teacher, loss, teacher_rows: TeacherRows::Separate, forms: NoClosedForms }
    }
}

impl<S: Student, T: Teacher, F: ClosedForms<S, T>> TeacherStudent<S, T, F> {
    /// The label of a sample, noise included.
    #[inline]
    pub fn label_of(&self, sample: &Sample) -> f64 {
        let own = self.student.shape();
        let first = match self.teacher_rows {
            TeacherRows::Separate => own.rows(),
            TeacherRows::Shared => own.trained,
        };
        self.teacher.label(&sample.fields[first..]) + sample.noise
    }

    /// The kick from the gradient of the output: ∂ℓ/∂f ∂f/∂h_i.
    #[inline]
    pub fn kick_by_gradient(&self, sample: &Sample, out: &mut Kick) {
        let output = self.student.gradient(sample.fields, sample.scalars, out);
        let slope = self.loss.slope(output, self.label_of(sample));
        out.rows.iter_mut().chain(&mut out.scalars).for_each(|g| *g *= slope);
    }
}

impl<S: Student, T: Teacher, F: ClosedForms<S, T>> LocalRule for TeacherStudent<S, T, F> {
    fn shape(&self) -> Shape {
        let (own, directions) = (self.student.shape(), self.teacher.directions());
        let frozen = match self.teacher_rows {
            TeacherRows::Separate => own.frozen + directions,
            TeacherRows::Shared => own.frozen.max(directions),
        };
        // Without trained rows there is nothing to keep off the frozen ones.
        Shape { frozen, own_frozen: if own.trained == 0 { 0 } else { own.frozen }, ..own }
    }

    fn loss(&self, sample: &Sample) -> f64 {
        let label = self.label_of(sample);
        self.loss.value(self.student.output(sample.fields, sample.scalars), label)
    }

    #[inline]
    fn kick(&self, sample: &Sample, out: &mut Kick) {
        self.forms.kick(self, sample, out);
    }

    fn averages(&self, law: &Law, needed: Needed, out: &mut Averages) {
        self.forms.averages(self, law, needed, out);
    }

    fn risk_within(&self, law: &Law, accuracy: f64) -> QuadratureEstimate {
        self.forms.risk_within(self, law, accuracy)
    }

    fn same_class(&self, sample: &Sample) -> Option<bool> {
        let output = self.student.output(sample.fields, sample.scalars);
        Some(self.loss.same_class(output, self.label_of(sample)))
    }

    fn batch(&self) -> Option<&dyn BatchRule> {
        Some(self)
    }

    /// A student with frozen rows of its own may read the latent fields past the label.
    fn labelled(&self) -> Option<&dyn LabelledRule> {
        if self.student.shape().frozen == 0 { Some(self) } else { None }
    }

    fn curved(&self) -> Option<&dyn CurvatureRule> {
        Some(self)
    }

    fn hidden(&self) -> Option<&dyn HiddenUnits> {
        if self.forms.units(self) > 0 { Some(self) } else { None }
    }
}

impl<S: Student, T: Teacher, F: ClosedForms<S, T>> HiddenUnits for TeacherStudent<S, T, F> {
    fn units(&self) -> usize {
        self.forms.units(self)
    }

    fn with_unit_factors(&self, factors: &[f64]) -> Arc<dyn LocalRule> {
        self.forms.with_unit_factors(self, factors).expect("a pair with hidden units can scale them")
    }
}

impl<S: Student, T: Teacher, F: ClosedForms<S, T>> BatchRule for TeacherStudent<S, T, F> {
    fn kick_batch(&self, batch: &Batch, rows: &mut [f64], scalars: &mut [f64]) {
        self.forms.kick_batch(self, batch, rows, scalars);
    }

    fn steps_in_lanes(&self) -> bool {
        self.forms.steps_in_lanes(self)
    }
}

impl<S: Student, T: Teacher, F: ClosedForms<S, T>> LabelledRule for TeacherStudent<S, T, F> {
    fn label(&self, frozen: &[f64], noise: f64) -> f64 {
        self.teacher.label(frozen) + noise
    }
}

impl<S: Student, T: Teacher, F: ClosedForms<S, T>> CurvatureRule for TeacherStudent<S, T, F> {
    fn jumps(&self) -> Jumps {
        Jumps { trained: self.student.has_kinks(), frozen: false }
    }

    fn kink_planes(&self, scalars: &[f64]) -> Option<Vec<KinkPlane>> {
        let mut planes = self.student.kink_planes(scalars)?;
        let rows = self.shape().rows();
        planes.iter_mut().for_each(|plane| plane.normal.resize(rows, 0.0));
        Some(planes)
    }
}
