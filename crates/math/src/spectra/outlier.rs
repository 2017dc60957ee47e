//! Outliers: eigenvalues outside of the bulk, which exist because the weights depend on a few directions of the input.

use super::bulk::{Bulk, Edge};
use super::law::WeightLawError;
use crate::linalg::{Mat, dot, symmetric_eigen};
use crate::roots::brent_between;

/// A bulk together with the projections u of the input on the r directions on which the weights depend.
///
/// The block of the resolvent on these directions is (Z(α(z)) − z)⁻¹ with
///
/// ```text
/// Z(α) = δ E[ G/(δ + G α) u uᵀ ],
/// ```
///
/// provided that these directions span a *hard* subspace, so that the blocks of H between them and the other
/// directions on which the weights depend vanish in the limit. The
/// eigenvalues of Z(α) decrease with α while z(α) increases, so that each is equal to z(α) at most once left of the bulk. An
/// outlier lies where they are equal
/// (docs/derivations/gd-phase-transitions.md#eq-24).
#[derive(Clone, Copy, Debug)]
pub struct Spiked<'a> {
    /// The law of G, and δ.
    pub bulk: Bulk<'a>,
    projections: &'a [Vec<f64>],
}

/// The upper limit below which outliers are sought; c is the left edge of the bulk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ceiling {
    /// min(0, c), for outliers that are directions of descent of a Hessian.
    Zero,
    /// c, for all outliers left of the bulk.
    Edge,
}

/// An eigenvalue left of the bulk.
#[derive(Clone, Debug, PartialEq)]
pub struct Outlier {
    /// Position λ* (`lambda_star`) of the eigenvalue.
    pub position: f64,
    /// The Stieltjes transform α(λ*) of the bulk.
    pub alpha: f64,
    /// Squared norm of the projection of its unit eigenvector on the r directions.
    pub overlap: f64,
    /// The direction of this projection, a unit vector of R^r.
    pub direction: Vec<f64>,
}

impl<'a> Spiked<'a> {
    /// Creates the spiked ensemble; `projections[i]` holds u_i at every atom of the law.
    pub fn new(bulk: Bulk<'a>, projections: &'a [Vec<f64>]) -> Result<Self, WeightLawError> {
        for column in projections {
            if column.len() != bulk.law.len() {
                let (given, expected) = (column.len(), bulk.law.len());
                return Err(WeightLawError::Length { name: "a list of projections", given, expected });
            }
            if let Some(index) = column.iter().position(|u| !u.is_finite()) {
                return Err(WeightLawError::NotFinite { name: "projection", index, value: column[index] });
            }
        }
        Ok(Self { bulk, projections })
    }

    /// The matrix δ E[q(G) u uᵀ].
    fn weighted(&self, q: impl Fn(f64) -> f64) -> Mat {
        let r = self.projections.len();
        let law = self.bulk.law;
        let mut out = Mat::zeros(r, r);
        for i in 0..r {
            for j in 0..=i {
                let (a, b) = (&self.projections[i], &self.projections[j]);
                let terms = law.probabilities.iter().zip(&law.values).zip(a.iter().zip(b));
                let sum: f64 = terms.map(|((p, &g), (a, b))| p * q(g) * a * b).sum();
                out[(i, j)] = self.bulk.delta * sum;
                out[(j, i)] = out[(i, j)];
            }
        }
        out
    }

    /// The matrix Z(α).
    pub fn block(&self, alpha: f64) -> Mat {
        let delta = self.bulk.delta;
        if alpha.is_infinite() {
            return Mat::zeros(self.projections.len(), self.projections.len());
        }
        self.weighted(|g| g / (delta + g * alpha))
    }

    /// The eigenvalues of Z(α), ascending.
    fn branches(&self, alpha: f64) -> Vec<f64> {
        let block = self.block(alpha);
        if block.rows() == 1 { vec![block[(0, 0)]] } else { symmetric_eigen(&block).values }
    }

    /// The position of the ceiling and α there.
    fn top(&self, ceiling: Ceiling) -> Edge {
        let edge = self.bulk.left_edge();
        match ceiling {
            Ceiling::Zero if edge.position > 0.0 => {
                Edge { position: 0.0, alpha: self.bulk.stieltjes_below(0.0, edge) }
            }
            _ => edge,
        }
    }

    /// ψ (`psi`) = ζ(α) − z(α) at the ceiling, where ζ (`zeta`) is the smallest eigenvalue of Z. An outlier exists if and only
    /// if ψ < 0
    /// (docs/derivations/gd-phase-transitions.md#eq-25).
    pub fn psi(&self, ceiling: Ceiling) -> f64 {
        let top = self.top(ceiling);
        self.branches(top.alpha).first().map_or(f64::INFINITY, |zeta| zeta - top.position)
    }

    /// All outliers below the ceiling, lowest first.
    pub fn outliers(&self, ceiling: Ceiling) -> Vec<Outlier> {
        let top = self.top(ceiling);
        let mut found = Vec::new();
        for (i, zeta) in self.branches(top.alpha).iter().enumerate() {
            if zeta - top.position < 0.0 {
                found.push(self.outlier(i, top, zeta - top.position));
            }
        }
        found
    }

    /// The outlier of branch i, which lies below the ceiling: the root of ζ_i(α) = z(α) on (0, α_top).
    fn outlier(&self, i: usize, top: Edge, psi: f64) -> Outlier {
        let excess = |alpha: f64| self.branches(alpha)[i] - self.bulk.position(alpha);
        // α_top is infinite only for G ≥ 0, where Z is positive semi-definite and there is no outlier, so it is finite here.
        let (mut high, mut below) = (top.alpha, psi);
        let mut low = 0.5 * high;
        let alpha = loop {
            let above = excess(low);
            if above >= 0.0 {
                break brent_between(excess, (low, above), (high, below), 0.0).expect("bracketed");
            }
            (high, below) = (low, above);
            low *= 0.5;
        };
        let eigen = symmetric_eigen(&self.block(alpha));
        let direction: Vec<f64> = (0..self.projections.len()).map(|k| eigen.vectors[(k, i)]).collect();
        Outlier {
            position: self.bulk.position(alpha),
            alpha,
            overlap: self.overlap(alpha, &direction),
            direction,
        }
    }

    /// The squared overlap 1/(1 + α′ δ E[G² (w·u)²/(δ+Gα)²]) with α′ = 1/z′(α), the residue of the resolvent block at its pole
    /// (docs/derivations/gd-phase-transitions.md#eq-26).
    fn overlap(&self, alpha: f64, direction: &[f64]) -> f64 {
        let delta = self.bulk.delta;
        let slope = self.weighted(|g| (g / (delta + g * alpha)).powi(2));
        let along: f64 = (0..direction.len()).map(|k| direction[k] * dot(slope.row(k), direction)).sum();
        1.0 / (1.0 + along / self.bulk.slope(alpha))
    }
}

#[cfg(test)]
mod tests {
    use super::super::WeightLaw;
    use super::*;
    use proptest::prelude::*;

    /// A spiked covariance matrix (1/n) Σ x xᵀ: x has variance 1 + s along one direction, so G = 1 and u² has mean 1 + s. Baik,
    /// Ben Arous and Péché: there is an outlier if s > √(1/δ).
    #[test]
    fn constant_weights_give_the_transition_of_baik_ben_arous_and_peche() {
        let delta = 4.0;
        let gamma = 1.0 / delta;
        let law = WeightLaw::sample(&[-1.0]).unwrap(); // of −H, so that the largest eigenvalue is on the left
        for s in [0.3, 0.49, 0.51, 1.5f64] {
            let projections = [vec![(1.0 + s).sqrt()]];
            let spiked = Spiked::new(Bulk::new(&law, delta).unwrap(), &projections).unwrap();
            let outliers = spiked.outliers(Ceiling::Edge);
            assert_eq!(outliers.len(), usize::from(s > gamma.sqrt()), "s = {s}");
            assert_eq!(spiked.psi(Ceiling::Edge) < 0.0, s > gamma.sqrt());
            for outlier in outliers {
                let position = (1.0 + s) * (1.0 + gamma / s);
                assert!((outlier.position + position).abs() < 1e-9, "{outlier:?}");
                let overlap = (1.0 - gamma / (s * s)) / (1.0 + gamma / s);
                // Near the transition the position is nearly a double root, which is accurate to half of the digits.
                assert!((outlier.overlap - overlap).abs() < 1e-7, "{outlier:?} {overlap}");
            }
        }
    }

    #[test]
    fn two_directions_give_two_outliers_with_their_own_directions() {
        let law = WeightLaw::sample(&[-1.0, -1.0]).unwrap();
        let (big, small) = (3f64.sqrt(), 2f64.sqrt());
        // Columns (big, big) and (small, −small): uncorrelated, variances 3 and 2.
        let projections = [vec![big, big], vec![small, -small]];
        let spiked = Spiked::new(Bulk::new(&law, 4.0).unwrap(), &projections).unwrap();
        let outliers = spiked.outliers(Ceiling::Edge);
        assert_eq!(outliers.len(), 2);
        for (outlier, (axis, s)) in outliers.iter().zip([(0, 2.0), (1, 1.0)]) {
            assert!((outlier.direction[axis].abs() - 1.0).abs() < 1e-12);
            assert!((outlier.position + (1.0 + s) * (1.0 + 0.25 / s)).abs() < 1e-10);
        }
    }

    #[test]
    fn positive_weights_have_no_direction_of_descent() {
        let law = WeightLaw::sample(&[0.5, 2.0]).unwrap();
        let projections = [vec![0.1, 1.4]];
        for delta in [0.5, 1.0, 6.0] {
            let spiked = Spiked::new(Bulk::new(&law, delta).unwrap(), &projections).unwrap();
            assert!(spiked.psi(Ceiling::Zero) >= 0.0);
            assert!(spiked.outliers(Ceiling::Zero).is_empty());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn an_outlier_lies_left_of_the_edge_with_an_overlap_between_0_and_1(
            values in prop::collection::vec(-2.0..2.0f64, 4), u in prop::collection::vec(-2.0..2.0f64, 4), delta in 0.5..12.0f64,
        ) {
            let law = WeightLaw::sample(&values).unwrap();
            let bulk = Bulk::new(&law, delta).unwrap();
            let projections = [u];
            let spiked = Spiked::new(bulk, &projections).unwrap();
            let outliers = spiked.outliers(Ceiling::Zero);
            prop_assert_eq!(outliers.len(), usize::from(spiked.psi(Ceiling::Zero) < 0.0));
            for outlier in outliers {
                prop_assert!(outlier.position <= bulk.left_edge().position.min(0.0));
                prop_assert!((0.0..1.0).contains(&outlier.overlap));
                let zeta = spiked.block(outlier.alpha)[(0, 0)];
                prop_assert!((zeta - outlier.position).abs() < 1e-9 * (1.0 + zeta.abs()));
            }
        }
    }
}
