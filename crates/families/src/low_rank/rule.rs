//! The rules: square loss without the factor 1/2, student and teacher sharing the frozen rows W.

pub(super) mod baselines;
mod lanes;
pub(super) mod students;
mod units;

use super::network::{self, Network};
use super::noise::gradient_noise;
use didact_math::linalg::Mat;
use didact_model::averages::{self, QuadratureEstimate};
use didact_model::loss::Loss;
use didact_model::rule::{Averages, Batch, Law, LocalRule, Needed, kicks_one_by_one};
use didact_model::teacher_student::{ClosedForms, Student, Teacher, TeacherRows, TeacherStudent};
use std::fmt::Debug;
use students::{FromScratch, Perturbed, RankOne, SecondLayer, SingleIndex};
use units::{LinearUnits, residual_risk};

/// A student whose pre-activations are linear in the fields.
pub(super) trait Trainee: Student {
    /// The units of f̂ as combinations of all fields of the rule, at these trained scalars.
    fn units(&self, rows: usize, scalars: &[f64]) -> LinearUnits;

    /// Whether one trained row perturbs the rows W, so that the neurons may be independent given its field and the teacher's.
    fn perturbs_by_one_row(&self) -> bool {
        false
    }

    /// ∂(pre-activation of unit l)/∂(scalar l) is this times the field of the first trained row; 0 without scalars, and
    /// `None` when the scalars enter in another way.
    fn scalar_gain(&self) -> Option<f64> {
        Some(0.0)
    }

    /// The network whose outputs and gradients are computed for several samples at once; `None` if sample by sample.
    fn in_lanes(&self) -> Option<lanes::Network<'_>> {
        None
    }
}

/// The label as a combination of units.
pub(super) trait Labels: Teacher {
    /// Its units, reading the fields from `first` on.
    fn units(&self, rows: usize, first: usize) -> LinearUnits;

    /// The network whose labels are computed for several samples at once.
    fn in_lanes(&self) -> lanes::Network<'_>;
}

impl Trainee for RankOne {
    fn perturbs_by_one_row(&self) -> bool {
        true
    }
    fn units(&self, rows: usize, scalars: &[f64]) -> LinearUnits {
        let Network { strength, scale, output_scale, .. } = self.network;
        let c = self.loadings(scalars);
        let rows = Mat::from_fn(c.len(), rows, |l, h| match h {
            0 => scale * strength * c[l],
            h if h == l + 1 => scale,
            _ => 0.0,
        });
        let weights = self.network.second_layer.iter().map(|l| output_scale * l).collect();
        LinearUnits { rows, weights }
    }
    fn scalar_gain(&self) -> Option<f64> {
        Some(if self.trained { self.network.scale * self.network.strength } else { 0.0 })
    }
    fn in_lanes(&self) -> Option<lanes::Network<'_>> {
        let Self { network, loading, .. } = self;
        (!self.trained).then_some(lanes::Network::Perturbed { network, loading, along: 0, base: 1 })
    }
}

impl Trainee for FromScratch {
    fn units(&self, rows: usize, _scalars: &[f64]) -> LinearUnits {
        let k = self.network.units();
        let weights = self.network.second_layer.iter().map(|l| self.network.output_scale * l).collect();
        LinearUnits { rows: Mat::from_fn(k, rows, |l, h| f64::from(u8::from(l == h))), weights }
    }
    fn in_lanes(&self) -> Option<lanes::Network<'_>> {
        Some(lanes::Network::Free { network: &self.network, weights: &self.network.second_layer })
    }
}

impl Trainee for SecondLayer {
    fn units(&self, rows: usize, scalars: &[f64]) -> LinearUnits {
        let k = self.network.units();
        let Network { strength, scale, output_scale, .. } = self.network;
        let shift = scale * strength / (k as f64).sqrt();
        let rows = Mat::from_fn(2 * k, rows, |j, h| match h {
            h if h == j % k => scale,
            h if h == k + 1 => {
                if j < k {
                    shift
                } else {
                    -shift
                }
            }
            _ => 0.0,
        });
        LinearUnits { rows, weights: scalars.iter().map(|a| output_scale * a).collect() }
    }
    fn scalar_gain(&self) -> Option<f64> {
        None
    }
}

impl Labels for Perturbed {
    fn units(&self, rows: usize, first: usize) -> LinearUnits {
        let Network { strength, scale, output_scale, .. } = self.network;
        let k = self.loading.len();
        let rows = Mat::from_fn(k, rows, |i, h| match h.checked_sub(first) {
            Some(n) if n == i => scale,
            Some(n) if n == k => scale * strength * self.loading[i],
            _ => 0.0,
        });
        let weights = self.network.second_layer.iter().map(|l| output_scale * l).collect();
        LinearUnits { rows, weights }
    }
    fn in_lanes(&self) -> lanes::Network<'_> {
        let Self { network, loading } = self;
        lanes::Network::Perturbed { network, loading, along: loading.len(), base: 0 }
    }
}

impl Labels for SingleIndex {
    fn units(&self, rows: usize, first: usize) -> LinearUnits {
        let rows = Mat::from_fn(1, rows, |_, h| f64::from(u8::from(h == first)));
        LinearUnits { rows, weights: vec![self.network.output_scale] }
    }
    fn in_lanes(&self) -> lanes::Network<'_> {
        lanes::Network::Free { network: &self.network, weights: &[1.0] }
    }
}

/// loss = (f* + noise − f̂)². Frozen rows are shared: student and teacher both read them from the first.
pub(super) type SharedLoss<S, T> = TeacherStudent<S, T, SharedForms>;

/// A student and a teacher that share the frozen rows, with what is known of them in closed form.
pub(super) fn shared<S, T, F>(student: S, teacher: T, forms: F) -> TeacherStudent<S, T, F> {
    TeacherStudent { student, teacher, loss: Loss::SQUARE, teacher_rows: TeacherRows::Shared, forms }
}

/// Averages of two-layer networks whose pre-activations are linear in the fields.
#[derive(Debug, Clone)]
pub(super) struct SharedForms {
    /// σ, of both.
    pub(super) network: Network,
    /// c.
    pub(super) loading: Vec<f64>,
}

impl SharedForms {
    /// Units of f* and of f̂ at these scalars.
    fn units<S: Trainee, T: Labels>(pair: &SharedLoss<S, T>, scalars: &[f64]) -> (LinearUnits, LinearUnits) {
        let shape = pair.shape();
        let student = pair.student.units(shape.rows(), scalars);
        (pair.teacher.units(shape.rows(), shape.trained), student)
    }

    /// N = 4 E[D² F²] where the neurons are independent given û·x and u·x: orthonormal W, orthogonal to u and û.
    fn independent_noise<S: Trainee>(&self, student: &S, law: &Law) -> Option<f64> {
        let c = law.covariance;
        let (loading, k) = (&self.loading, self.loading.len());
        if !student.perturbs_by_one_row() || c.rows() != k + 2 {
            return None;
        }
        let away = (1..=k).all(|i| {
            (1..=k).all(|j| (c[(i, j)] - f64::from(u8::from(i == j))).abs() < 1e-10)
                && c[(0, i)].abs() < 1e-10
                && c[(i, k + 1)].abs() < 1e-10
        });
        let unit = (c[(0, 0)] - 1.0).abs() < 1e-10 && (c[(k + 1, k + 1)] - 1.0).abs() < 1e-10;
        let student = student.units(k + 2, law.scalars);
        let gain = self.network.scale * self.network.strength;
        let own: Vec<f64> = (0..k).map(|l| student.rows[(l, 0)] / gain).collect();
        let m = c[(0, k + 1)].clamp(-1.0, 1.0);
        (away && unit)
            .then(|| gradient_noise(&self.network, loading, &own, m, law.label_noise).ok())
            .flatten()
            .map(|noise| noise.whole)
    }
}

impl<S: Trainee, T: Labels> ClosedForms<S, T> for SharedForms {
    /// The drift in closed form from pair averages; the noise by independent neurons where that holds, else by quadrature.
    fn averages(&self, pair: &SharedLoss<S, T>, law: &Law, needed: Needed, out: &mut Averages) {
        let gain = pair.student.scalar_gain().filter(|_| law.covariance.is_finite());
        let Some(gain) = gain else { return averages::by_quadrature(pair, law, needed, out) };
        let (teacher, student) = Self::units(pair, law.scalars);
        let noise = match needed {
            Needed::Drift => Some(0.0),
            Needed::DriftAndNoise => self.independent_noise(&pair.student, law),
        };
        match noise {
            Some(noise) => {
                out.noise.fill(noise);
                out.error = 0.0;
            }
            None => averages::by_quadrature(pair, law, needed, out),
        }
        let shape = pair.shape();
        units::drift(&*self.network.activation, law.covariance, &teacher, &student, shape, gain, out);
    }

    fn risk_within(&self, pair: &SharedLoss<S, T>, law: &Law, _accuracy: f64) -> QuadratureEstimate {
        if !law.covariance.is_finite() {
            return QuadratureEstimate::exact(f64::NAN);
        }
        let (teacher, student) = Self::units(pair, law.scalars);
        let risk = residual_risk(&*self.network.activation, law.covariance, &teacher, &student);
        QuadratureEstimate::exact(risk)
    }

    fn kick_batch(&self, pair: &SharedLoss<S, T>, batch: &Batch, rows: &mut [f64], scalars: &mut [f64]) {
        let trained = pair.student.shape().trained;
        match pair.student.in_lanes() {
            Some(student) => lanes::kicks(&student, &pair.teacher.in_lanes(), trained, batch, rows),
            None => kicks_one_by_one(pair, batch, rows, scalars),
        }
    }

    fn steps_in_lanes(&self, pair: &SharedLoss<S, T>) -> bool {
        pair.student.in_lanes().is_some()
    }
}
