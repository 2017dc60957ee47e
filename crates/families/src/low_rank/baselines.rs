//! Rules of the baselines that are no two-layer fits: lazy students and the first-moment estimator.

use super::lazy::LazyLoss;
use super::network::{Network, hermite_coefficient};
use super::rule::{Labels, SharedLoss, Trainee};
use super::students::{FullRank, Perturbed, RankOne};
use super::units::{LinearUnits, residual_risk};
use didact_math::linalg::{Mat, dot};
use didact_model::linearised::Linearised;
use didact_model::rule::{Averages, Kick, Law, LocalRule, Needed, Sample, Shape};
use didact_model::square_loss::Teacher;
use std::fmt::Debug;

/// Lazy students whose loss is known in closed form.
pub(super) trait LazyStudent: Trainee {
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

/// The square loss of a lazy student.
#[derive(Debug, Clone)]
pub(super) struct LazyRule<S> {
    /// Student, teacher and observables.
    pub(super) loss: SharedLoss<S, Perturbed>,
}

impl<S: LazyStudent> LazyRule<S> {
    /// Whether u and the trained rows are orthogonal to W, all of unit length where the closed form needs it.
    fn is_closed(&self, c: &Mat) -> bool {
        let trained = self.loss.student.shape().trained;
        let u = c.rows() - 1;
        let base = trained..u;
        base.clone().all(|w| {
            (c[(w, w)] - 1.0).abs() < 1e-10
                && c[(w, u)].abs() < 1e-10
                && (0..trained).all(|i| c[(i, w)].abs() < 1e-10)
        }) && (c[(u, u)] - 1.0).abs() < 1e-10
    }
}

impl<S: LazyStudent> LocalRule for LazyRule<S> {
    fn shape(&self) -> Shape {
        self.loss.shape()
    }
    fn loss(&self, sample: &Sample) -> f64 {
        self.loss.loss(sample)
    }
    fn kick(&self, sample: &Sample, out: &mut Kick) {
        self.loss.kick(sample, out);
    }
    fn risk(&self, law: &Law) -> f64 {
        let c = law.covariance;
        if !self.is_closed(c) {
            return self.loss.risk(law);
        }
        let trained = self.loss.student.shape().trained;
        let base = trained..c.rows() - 1;
        let lazy = LazyLoss::new(&self.loss.network, &c.block(base.clone(), base), &self.loss.loading);
        self.loss.student.closed_risk(&lazy, c)
    }
}

/// û ← û + s (f* − f_base) x: the first-moment estimator as a rule, loss = −(f* − f_base) û·x.
#[derive(Debug, Clone)]
pub(super) struct FirstMoment {
    /// The labels.
    pub(super) teacher: Perturbed,
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
    fn risk(&self, law: &Law) -> f64 {
        -dot(&self.slope(law.covariance), law.covariance.row(0))
    }
}
