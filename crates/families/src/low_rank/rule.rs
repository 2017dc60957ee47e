//! The rules: square loss without the factor 1/2, student and teacher sharing the frozen rows W.

use super::network::Network;
use super::noise::gradient_noise;
use super::side_by_side;
use super::students::{FromScratch, Perturbed, RankOne, SecondLayer, SingleIndex};
use super::units::{LinearUnits, residual_risk};
use didact_math::linalg::Mat;
use didact_model::averages;
use didact_model::linearised::Linearised;
use didact_model::rule::{
    Averages, Batch, BatchRule, CurvatureRule, Jumps, Kick, Law, LocalRule, Needed, Sample, Shape,
    kicks_one_by_one,
};
use didact_model::square_loss::{Student, Teacher};
use std::fmt::Debug;

/// A student and a teacher whose pre-activations are linear in the fields, or not.
pub(super) trait Trainee: Student {
    /// The units of f̂ as combinations of all fields of the rule, with the trained scalars; `None` if it has others.
    fn units(&self, rows: usize, scalars: &[f64]) -> Option<LinearUnits>;

    /// Whether one trained row perturbs the rows W, so that the neurons may be independent given its field and the teacher's.
    fn perturbs_by_one_row(&self) -> bool {
        false
    }

    /// ∂(pre-activation of unit l)/∂(scalar l) is this times the field of the first trained row; 0 without scalars, and
    /// `None` when the scalars enter in another way.
    fn scalar_gain(&self) -> Option<f64> {
        Some(0.0)
    }

    /// How outputs and gradients of many samples are computed side by side; `None` if one by one.
    fn abreast(&self) -> Option<side_by_side::Network<'_>> {
        None
    }
}

/// The label as a combination of units.
pub(super) trait Labels: Teacher {
    /// Its units, reading the fields from `first` on.
    fn units(&self, rows: usize, first: usize) -> LinearUnits;

    /// How labels of many samples are computed side by side.
    fn abreast(&self) -> side_by_side::Network<'_>;
}

impl Trainee for RankOne {
    fn perturbs_by_one_row(&self) -> bool {
        true
    }
    fn units(&self, rows: usize, scalars: &[f64]) -> Option<LinearUnits> {
        let Network { strength, scale, output_scale, .. } = self.network;
        let c = self.loadings(scalars);
        let rows = Mat::from_fn(c.len(), rows, |l, h| match h {
            0 => scale * strength * c[l],
            h if h == l + 1 => scale,
            _ => 0.0,
        });
        let weights = self.network.second_layer.iter().map(|l| output_scale * l).collect();
        Some(LinearUnits { rows, weights })
    }
    fn scalar_gain(&self) -> Option<f64> {
        Some(if self.trained { self.network.scale * self.network.strength } else { 0.0 })
    }
    fn abreast(&self) -> Option<side_by_side::Network<'_>> {
        let Self { network, loading, .. } = self;
        (!self.trained).then_some(side_by_side::Network::Perturbed { network, loading, along: 0, base: 1 })
    }
}

impl Trainee for FromScratch {
    fn units(&self, rows: usize, _scalars: &[f64]) -> Option<LinearUnits> {
        let k = self.network.units();
        let weights = self.network.second_layer.iter().map(|l| self.network.output_scale * l).collect();
        Some(LinearUnits { rows: Mat::from_fn(k, rows, |l, h| f64::from(u8::from(l == h))), weights })
    }
    fn abreast(&self) -> Option<side_by_side::Network<'_>> {
        Some(side_by_side::Network::Free { network: &self.network, weights: &self.network.second_layer })
    }
}

impl Trainee for SecondLayer {
    fn units(&self, rows: usize, scalars: &[f64]) -> Option<LinearUnits> {
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
        Some(LinearUnits { rows, weights: scalars.iter().map(|a| output_scale * a).collect() })
    }
    fn scalar_gain(&self) -> Option<f64> {
        None
    }
}

/// Lazy students are linear in what is trained: their averages are those of `lazy.rs`, or quadrature.
impl<S: Student> Trainee for Linearised<S> {
    fn units(&self, _rows: usize, _scalars: &[f64]) -> Option<LinearUnits> {
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
    fn abreast(&self) -> side_by_side::Network<'_> {
        let Self { network, loading } = self;
        side_by_side::Network::Perturbed { network, loading, along: loading.len(), base: 0 }
    }
}

impl Labels for SingleIndex {
    fn units(&self, rows: usize, first: usize) -> LinearUnits {
        let rows = Mat::from_fn(1, rows, |_, h| f64::from(u8::from(h == first)));
        LinearUnits { rows, weights: vec![self.network.output_scale] }
    }
    fn abreast(&self) -> side_by_side::Network<'_> {
        side_by_side::Network::Free { network: &self.network, weights: &[1.0] }
    }
}

/// loss = (f* + noise − f̂)². Frozen rows are shared: student and teacher both read them from the first.
#[derive(Debug, Clone)]
pub(super) struct SharedLoss<S, T> {
    /// The network that learns.
    pub(super) student: S,
    /// The network that labels.
    pub(super) teacher: T,
    /// σ, of both.
    pub(super) network: Network,
    /// c.
    pub(super) loading: Vec<f64>,
}

impl<S: Trainee, T: Labels> SharedLoss<S, T> {
    #[inline]
    fn label(&self, sample: &Sample) -> f64 {
        let trained = self.student.shape().trained;
        self.teacher.label(&sample.fields[trained..]) + sample.noise
    }

    /// Units of f* and of f̂ at these scalars.
    fn units(&self, scalars: &[f64]) -> Option<(LinearUnits, LinearUnits)> {
        let shape = self.shape();
        let student = self.student.units(shape.rows(), scalars)?;
        Some((self.teacher.units(shape.rows(), shape.trained), student))
    }

    /// N = 4 E[D² F²] where the neurons are independent given û·x and u·x: orthonormal W, orthogonal to u and û.
    fn independent_noise(&self, law: &Law) -> Option<f64> {
        let c = law.covariance;
        let (loading, k) = (&self.loading, self.loading.len());
        if !self.student.perturbs_by_one_row() || c.rows() != k + 2 {
            return None;
        }
        let away = (1..=k).all(|i| {
            (1..=k).all(|j| (c[(i, j)] - f64::from(u8::from(i == j))).abs() < 1e-10)
                && c[(0, i)].abs() < 1e-10
                && c[(i, k + 1)].abs() < 1e-10
        });
        let unit = (c[(0, 0)] - 1.0).abs() < 1e-10 && (c[(k + 1, k + 1)] - 1.0).abs() < 1e-10;
        let student = self.student.units(k + 2, law.scalars)?;
        let gain = self.network.scale * self.network.strength;
        let own: Vec<f64> = (0..k).map(|l| student.rows[(l, 0)] / gain).collect();
        let m = c[(0, k + 1)].clamp(-1.0, 1.0);
        (away && unit)
            .then(|| gradient_noise(&self.network, loading, &own, m, law.label_noise).ok())
            .flatten()
            .map(|noise| noise.whole)
    }
}

impl<S: Trainee, T: Labels> LocalRule for SharedLoss<S, T> {
    fn shape(&self) -> Shape {
        let own = self.student.shape();
        // A refit trains no rows, so that there is nothing to keep off W.
        let own_frozen = if own.trained == 0 { 0 } else { own.frozen };
        Shape { frozen: own.frozen.max(self.teacher.directions()), own_frozen, ..own }
    }

    fn loss(&self, sample: &Sample) -> f64 {
        (self.label(sample) - self.student.output(sample.fields, sample.scalars)).powi(2)
    }

    #[inline]
    fn kick(&self, sample: &Sample, out: &mut Kick) {
        let output = self.student.gradient(sample.fields, sample.scalars, out);
        let slope = -2.0 * (self.label(sample) - output);
        out.rows.iter_mut().chain(&mut out.scalars).for_each(|g| *g *= slope);
    }

    /// The drift in closed form from pair averages; the noise by independent neurons where that holds, else by quadrature.
    fn averages(&self, law: &Law, needed: Needed, out: &mut Averages) {
        let units = self.units(law.scalars).zip(self.student.scalar_gain());
        let Some(((teacher, student), gain)) = units.filter(|_| law.covariance.is_finite()) else {
            return averages::by_quadrature(self, law, needed, out);
        };
        let noise = match needed {
            Needed::Drift => Some(0.0),
            Needed::DriftAndNoise => self.independent_noise(law),
        };
        match noise {
            Some(noise) => {
                out.noise.fill(noise);
                out.error = 0.0;
            }
            None => averages::by_quadrature(self, law, needed, out),
        }
        let shape = self.shape();
        super::units::drift(&*self.network.activation, law.covariance, &teacher, &student, shape, gain, out);
    }

    fn risk(&self, law: &Law) -> f64 {
        match self.units(law.scalars).filter(|_| law.covariance.is_finite()) {
            Some((teacher, student)) => {
                residual_risk(&*self.network.activation, law.covariance, &teacher, &student)
            }
            None => averages::risk_by_quadrature(self, law).value,
        }
    }

    fn batch(&self) -> Option<&dyn BatchRule> {
        Some(self)
    }

    fn curved(&self) -> Option<&dyn CurvatureRule> {
        Some(self)
    }
}

impl<S: Trainee, T: Labels> BatchRule for SharedLoss<S, T> {
    fn kick_batch(&self, batch: &Batch, rows: &mut [f64], scalars: &mut [f64]) {
        let trained = self.student.shape().trained;
        match self.student.abreast() {
            Some(student) => side_by_side::kicks(&student, &self.teacher.abreast(), trained, batch, rows),
            None => kicks_one_by_one(self, batch, rows, scalars),
        }
    }

    fn steps_in_lanes(&self) -> bool {
        self.student.abreast().is_some()
    }
}

impl<S: Trainee, T: Labels> CurvatureRule for SharedLoss<S, T> {
    fn jumps(&self) -> Jumps {
        Jumps { trained: !self.network.activation.kinks().is_empty(), frozen: false }
    }
}
