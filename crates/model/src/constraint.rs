//! Constraints on the trained rows, as values that every engine applies.
//!
//! All of them are row operations `W ← M W − s c xᵀ` with a small M, so the overlaps stay closed: a constraint is a
//! value, not another simulator.

use didact_math::linalg::{Mat, symmetric_eigen};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How rows are kept on the sphere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Retraction {
    /// w ← (w − s c x) / |w − s c x|, times the length it had.
    Euclidean,
    /// The same with the gradient first projected off w: x → x − w (w·x)/|w|².
    Tangent,
}

/// What is imposed on the trained rows in addition to the gradient step.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Constraint {
    /// Keeps every trained row at the length it starts with.
    pub sphere: Option<Retraction>,
    /// γ in w ← (1 − s γ) w − s c x.
    pub weight_decay: f64,
    /// Lets rows move only in the orthogonal complement of the frozen rows.
    pub off_frozen: bool,
}

impl Constraint {
    /// Nothing imposed.
    pub fn none() -> Self {
        Self::default()
    }

    /// Rows of fixed length, renormalised after every step.
    pub fn sphere() -> Self {
        Self { sphere: Some(Retraction::Euclidean), ..Self::default() }
    }
}

/// The inverse of a symmetric Gram on its range: directions below 1e-12 of the largest eigenvalue count as absent.
pub fn pseudo_inverse(gram: &Mat) -> Mat {
    let eigen = symmetric_eigen(gram);
    let largest = eigen.values.last().copied().unwrap_or(0.0);
    let inverse: Vec<f64> =
        eigen.values.iter().map(|&v| if v > 1e-12 * largest { 1.0 / v } else { 0.0 }).collect();
    eigen.vectors.times(&Mat::diagonal(&inverse)).times(&eigen.vectors.transpose())
}
