//! Quadratic networks: p hidden units z² learn from p* of them, output weights fixed.
//!
//!   y = (1/p*) Σ_l u_l²,   ŷ = (1/p) Σ_k λ_k²,   e = y − ŷ,   loss = e² (no factor 1/2),
//!
//! with fields u_l = w*_l·x, λ_k = w_k·x. Rows of the paper have norm √N and fields a factor 1/√N, so rows here are w/√N; the
//! step is s = η/N, and library time s × steps is t = η α. With t̃ = t/p the time scales of all widths coincide.
//! ρ = W W*ᵀ is `R`, Q = W Wᵀ is `Q`; N⊥ = Q − ρ ρᵀ is the part of the students outside the teacher space.
//!
//! Bocchi, Regimbeau, Lucibello, Saglietti & Cammarota, arXiv:2604.03068 (2026). Every formula is derived in
//! docs/derivations/quadratic-networks.md; its list of errata (docs/derivations/quadratic-networks.md#s9) says
//! where the paper prints something else.

mod observables;
mod predictions;
mod quantities;
mod rule;
mod validation;

pub use predictions::alignment::{Polar, alignment, alignment_at, closest_solution, polar_factor};
pub use predictions::one_step::OneStep;
pub use predictions::singular::{HalfLoss, SingularFlow};
pub use predictions::state::State;
pub use predictions::stationary::{
    Stationary, StationaryError, manifold_dimension, student_degrees_of_freedom,
};

use super::{Family, ModelError, Reference, Refusal};
use didact_math::linalg::Mat;
use didact_model::observable::Observable;
use didact_model::overlaps::Overlaps;
use didact_model::problem::Problem;
use didact_model::quantity::Quantity;
use didact_model::rule::LocalRule;
use predictions::{alignment, escape, one_step, plateau, rates, singular, state, stationary};
use rule::QuadraticRule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// p quadratic units that learn from p*.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct QuadraticNetworks {
    /// p, hidden units of the student.
    #[schemars(range(max = 2048))]
    pub students: usize,
    /// p*, hidden units of the teacher.
    #[schemars(range(max = 2048))]
    pub teachers: usize,
    /// A start ρ(0) (p rows of p*) to compare with: adds the observables `distance` and `polar-drift`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Vec<Vec<f64>>>,
}

impl QuadraticNetworks {
    /// Widths p and p*, nothing to compare with.
    pub fn new(students: usize, teachers: usize) -> Self {
        Self { students, teachers, reference: None }
    }
}

impl Family for QuadraticNetworks {
    const NAME: &'static str = "quadratic-networks";
    const SUMMARY: &'static str =
        "p units z^2 learn from p*: plateau, escape, selected solution and landscape in closed form";

    fn references(&self) -> Vec<Reference> {
        vec![Reference {
            key: "Bocchi2026",
            citation: "D. Bocchi, T. Regimbeau, C. Lucibello, L. Saglietti and C. Cammarota, Escape dynamics and implicit bias of one-pass SGD in overparameterized quadratic networks (2026)",
            locator: "arXiv:2604.03068",
        }]
    }

    fn rule(&self) -> Result<Arc<dyn LocalRule>, ModelError> {
        for (name, count) in [("students", self.students), ("teachers", self.teachers)] {
            if count == 0 {
                return Err(ModelError::Zero { name });
            }
        }
        self.checked_reference()?;
        Ok(Arc::new(QuadraticRule::new(self.students, self.teachers)))
    }

    fn starting_scalars(&self) -> Vec<f64> {
        Vec::new()
    }

    fn quantities() -> &'static [Quantity] {
        quantities::ALL
    }

    fn admits(&self, problem: &Problem) -> Result<(), Refusal> {
        validation::admits(problem)
    }

    fn observables(&self) -> Vec<Arc<dyn Observable>> {
        let reference = self.checked_reference().ok().flatten();
        observables::all(self.students, self.teachers, reference.as_ref())
    }

    fn warning(&self, problem: &Problem) -> Option<String> {
        validation::learning_rate(problem)
    }

    fn invariance(&self, start: &Overlaps) -> Option<String> {
        validation::invariant_set(start)
    }

    fn examples() -> Vec<Self> {
        [(1, 1), (2, 1), (1, 2), (2, 2), (3, 2)].map(|(p, teachers)| Self::new(p, teachers)).into()
    }
}

impl QuadraticNetworks {
    fn checked_reference(&self) -> Result<Option<Mat>, ModelError> {
        self.reference.as_ref().map(|rows| self.check_reference(rows)).transpose()
    }

    fn check_reference(&self, rows: &[Vec<f64>]) -> Result<Mat, ModelError> {
        let invalid = |message: String| ModelError::Invalid { name: "reference", message };
        let rho = Mat::from_rows(rows)
            .filter(|m| m.rows() == self.students && m.cols() == self.teachers && m.is_finite())
            .ok_or_else(|| {
                invalid(format!(
                    "the reference start is not a {} x {} matrix of finite numbers: one row per student, one column per teacher",
                    self.students, self.teachers
                ))
            })?;
        if polar_factor(&rho).is_rank_deficient() {
            return Err(invalid(
                "the reference start has no full rank, so it selects no solution; use independent columns"
                    .into(),
            ));
        }
        Ok(rho)
    }
}
