//! Constraints on the trained rows, as values that every engine applies.
//!
//! All of them are row operations `W ← M W − s c xᵀ` with a small M, so the overlaps stay closed: a constraint is a
//! value, not another simulator.

use crate::rule::LocalRule;
use didact_math::linalg::{Mat, dot, symmetric_eigen};
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
    /// The same for the student's own frozen rows alone: pre-trained weights, not those of its teacher.
    pub off_own: bool,
    /// Keeps the vector of trained scalars at the length it starts with.
    pub scalar_sphere: Option<Retraction>,
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

    /// How many of the frozen rows, counted from the first, the trained rows may not move along.
    pub fn barred(&self, rule: &dyn LocalRule) -> usize {
        match (self.off_frozen, self.off_own) {
            (true, _) => rule.shape().frozen,
            (false, true) => rule.shape().own_frozen,
            (false, false) => 0,
        }
    }

    /// a ← a − s g, on the sphere of the given squared length if `scalar_sphere` says so.
    pub fn move_scalars(&self, scalars: &mut [f64], step: f64, gradient: &[f64], squared_length: f64) {
        let along = match self.scalar_sphere {
            Some(Retraction::Tangent) => dot(scalars, gradient) / squared_length,
            _ => 0.0,
        };
        scalars.iter_mut().zip(gradient).for_each(|(a, g)| *a -= step * (g - *a * along));
        if self.scalar_sphere.is_some() {
            let scale = (squared_length / dot(scalars, scalars)).sqrt();
            scalars.iter_mut().for_each(|a| *a *= scale);
        }
    }
}

/// T⁻¹ of the first `count` frozen rows, given the Gram of all rows (`trained` first); `None` when there are none.
pub fn inverse_of_barred(count: usize, gram: &Mat, trained: usize) -> Option<Mat> {
    let rows = trained..trained + count;
    (count > 0).then(|| pseudo_inverse(&gram.block(rows.clone(), rows)))
}

/// The inverse of a symmetric Gram on its range: directions below 1e-12 of the largest eigenvalue count as absent.
pub fn pseudo_inverse(gram: &Mat) -> Mat {
    let eigen = symmetric_eigen(gram);
    let largest = eigen.values.last().copied().unwrap_or(0.0);
    let inverse: Vec<f64> =
        eigen.values.iter().map(|&v| if v > 1e-12 * largest { 1.0 / v } else { 0.0 }).collect();
    eigen.vectors.times(&Mat::diagonal(&inverse)).times(&eigen.vectors.transpose())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_on_a_sphere_keep_their_length_and_follow_the_projected_gradient() {
        let constraint = Constraint { scalar_sphere: Some(Retraction::Tangent), ..Constraint::none() };
        let (start, gradient) = ([0.6, -0.8, 0.0], [0.5, 0.3, -0.2]);
        let mut scalars = start;
        constraint.move_scalars(&mut scalars, 1e-3, &gradient, 1.0);
        assert!((dot(&scalars, &scalars) - 1.0).abs() < 1e-15);
        let along = dot(&start, &gradient);
        for i in 0..3 {
            // The retraction differs from the tangent step in second order: 1e-6 |g|² a.
            let tangent = start[i] - 1e-3 * (gradient[i] - start[i] * along);
            assert!((scalars[i] - tangent).abs() < 1e-6, "{i}");
        }
        let mut free = start;
        Constraint::none().move_scalars(&mut free, 0.5, &gradient, 1.0);
        for (got, expected) in free.iter().zip([0.35, -0.95, 0.1]) {
            assert!((got - expected).abs() < 1e-15);
        }
    }
}
