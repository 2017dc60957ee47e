//! Rules of the baselines that are no two-layer fits: lazy students and the first-moment estimator.

use super::super::lazy::LazyLoss;
use super::Labels;
use super::network::{Network, hermite_coefficient};
use super::students::{FullRank, Perturbed, RankOne};
use super::units::{LinearUnits, residual_risk};
use didact_math::linalg::{Mat, dot};
use didact_model::averages::{QuadratureEstimate, risk_by_quadrature};
use didact_model::linearised::Linearised;
use didact_model::rule::{Averages, Kick, Law, LocalRule, Needed, Sample, Shape};
use didact_model::teacher_student::{ClosedForms, Student, Teacher, TeacherStudent};
use std::fmt::Debug;

/// Lazy students whose loss is known in closed form.
pub(in crate::low_rank) trait LazyStudent: Student {
    /// `E[loss]` when the trained rows are orthogonal to W; `c` is the covariance of all fields.
    fn closed_risk(&self, lazy: &LazyLoss, c: &Mat) -> f64;
}

impl LazyStudent for Linearised<RankOne> {
    /// base − 2 ξ b·ĉ û·u + ξ² ĉᵀ M ĉ |û|².
    fn closed_risk(&self, lazy: &LazyLoss, c: &Mat) -> f64 {
        let (strength, own) = (self.student.network.strength, self.student.loadings(&self.scalars));
        let at_one = lazy.rank_one_loss(strength, own, 0.0) - lazy.base;
        lazy.base - lazy.rank_one_signal(strength, own) * c[(0, own.len() + 1)] + at_one * c[(0, 0)]
    }
}

impl LazyStudent for Linearised<FullRank> {
    /// base − 2 Σ_i b_i Δ_i·u + Σ_ij M_ij Δ_i·Δ_j.
    fn closed_risk(&self, lazy: &LazyLoss, c: &Mat) -> f64 {
        let k = lazy.target.len();
        let along: f64 = (0..k).map(|i| lazy.target[i] * c[(i, 2 * k)]).sum();
        let square: f64 = (0..k).map(|i| dot(lazy.features.row(i), &c.row(i)[..k])).sum();
        lazy.base - 2.0 * along + square
    }
}

/// The risk of a lazy student in closed form; its averages are left to quadrature.
#[derive(Debug, Clone)]
pub(in crate::low_rank) struct LazyForms {
    /// σ, of both.
    pub(in crate::low_rank) network: Network,
    /// c.
    pub(in crate::low_rank) loading: Vec<f64>,
}

impl LazyForms {
    /// Whether u and the trained rows are orthogonal to W, all of unit length where the closed form needs it.
    fn is_closed(trained: usize, c: &Mat) -> bool {
        let u = c.rows() - 1;
        let base = trained..u;
        base.clone().all(|w| {
            (c[(w, w)] - 1.0).abs() < 1e-10
                && c[(w, u)].abs() < 1e-10
                && (0..trained).all(|i| c[(i, w)].abs() < 1e-10)
        }) && (c[(u, u)] - 1.0).abs() < 1e-10
    }
}

impl<S: LazyStudent> ClosedForms<S, Perturbed> for LazyForms {
    fn risk_within(
        &self,
        pair: &TeacherStudent<S, Perturbed, Self>,
        law: &Law,
        accuracy: f64,
    ) -> QuadratureEstimate {
        let (c, trained) = (law.covariance, pair.student.shape().trained);
        if !Self::is_closed(trained, c) {
            return risk_by_quadrature(pair, law, accuracy);
        }
        let base = trained..c.rows() - 1;
        let lazy = LazyLoss::new(&self.network, &c.block(base.clone(), base), &self.loading);
        QuadratureEstimate::exact(pair.student.closed_risk(&lazy, c))
    }
}

/// û ← û + s (f* − f_base) x: the first-moment estimator as a rule, loss = −(f* − f_base) û·x.
#[derive(Debug, Clone)]
pub(in crate::low_rank) struct FirstMoment {
    /// The labels.
    pub(in crate::low_rank) teacher: Perturbed,
}

impl FirstMoment {
    /// f* + noise − f_base.
    fn residual(&self, sample: &Sample) -> f64 {
        let k = self.teacher.loading.len();
        let (fields, network) = (&sample.fields[1..], &self.teacher.network);
        self.teacher.label(fields) + sample.noise - network.output(&fields[..k], &vec![0.0; k], 0.0)
    }

    fn units(&self) -> (LinearUnits, LinearUnits) {
        let rows = self.shape().rows();
        let base = Perturbed { loading: vec![0.0; self.teacher.loading.len()], ..self.teacher.clone() };
        (self.teacher.units(rows, 1), base.units(rows, 1))
    }

    /// E[∂(f* − f_base)/∂h] = Σ_p v_p E[σ′(g_p)] M_p, E[σ′(r z)] = μ_1(r)/r.
    fn slope(&self, covariance: &Mat) -> Vec<f64> {
        let (teacher, base) = self.units();
        let mut sum = vec![0.0; covariance.rows()];
        for (units, sign) in [(teacher, 1.0), (base, -1.0)] {
            for (p, weight) in units.weights.iter().enumerate() {
                let row = units.rows.row(p);
                let variance: f64 = (0..row.len()).map(|h| row[h] * dot(row, covariance.row(h))).sum();
                let deviation = variance.max(0.0).sqrt();
                let network: &Network = &self.teacher.network;
                let slope = if deviation > 0.0 {
                    hermite_coefficient(&*network.activation, 1, deviation) / deviation
                } else {
                    network.activation.slope(0.0)
                };
                sum.iter_mut().zip(row).for_each(|(s, m)| *s += sign * weight * slope * m);
            }
        }
        sum
    }
}

impl LocalRule for FirstMoment {
    fn shape(&self) -> Shape {
        Shape {
            trained: 1,
            frozen: self.teacher.directions(),
            own_frozen: self.teacher.loading.len(),
            ..Shape::default()
        }
    }
    fn loss(&self, sample: &Sample) -> f64 {
        -self.residual(sample) * sample.fields[0]
    }
    fn kick(&self, sample: &Sample, out: &mut Kick) {
        out.rows[0] = -self.residual(sample);
    }
    fn averages(&self, law: &Law, _needed: Needed, out: &mut Averages) {
        let slope = self.slope(law.covariance);
        out.drift.row_mut(0).iter_mut().zip(slope).for_each(|(a, s)| *a = -s);
        let (teacher, base) = self.units();
        let square = residual_risk(&*self.teacher.network.activation, law.covariance, &teacher, &base);
        out.noise.fill(square + law.label_noise * law.label_noise);
        out.error = 0.0;
    }
    fn risk_within(&self, law: &Law, _accuracy: f64) -> QuadratureEstimate {
        QuadratureEstimate::exact(-dot(&self.slope(law.covariance), law.covariance.row(0)))
    }
}
