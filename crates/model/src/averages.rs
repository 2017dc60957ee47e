//! Gaussian averages of any rule by deterministic quadrature of its `kick`: the slow, obvious way.

mod mapped;
mod nearby;
mod of_samples;

pub use mapped::mapped_averages;
pub use nearby::Nearby;
pub use of_samples::{
    mean_loss_by_quadrature, other_class_by_quadrature, risk_by_lattice, risk_by_quadrature,
};

use crate::rule::{
    Averages, Batch, CurvatureAverages, Kick, Law, LocalRule, Needed, Sample, kicks_one_by_one,
};
use didact_math::gauss::ball::WeightedPoints;
use didact_math::gauss::expectation::point_by_point;
use didact_math::gauss::{Average, BestRule, Integrand, expectation, expectation_within};
use didact_math::linalg::{Mat, cholesky_psd, dot, symmetric_eigen};
use std::time::{Duration, Instant};

/// Evaluations of a rule per average of its curvature: about 15 nodes per axis for four fields.
const BUDGET: usize = 65_536;

/// The relative error of averages without a closed form that theory asks for where nothing is said.
pub const USUAL_ACCURACY: f64 = 1e-6;
/// The relative error that is good enough beside the scatter of a simulation.
pub const SAMPLED_ACCURACY: f64 = 1e-4;

/// How many evaluations an average of so many dimensions may take. In five to eight dimensions lattices of 2¹⁶ points have relative errors
/// of about 1e-4, those of 2¹⁸ of 3e-5, those of 2²⁰ of 1e-5.
fn evaluations(accuracy: f64, dimension: usize) -> usize {
    match dimension {
        _ if accuracy >= SAMPLED_ACCURACY => 1 << 16,
        0..=5 => 1 << 20,
        6..=8 => 1 << 18,
        _ => 1 << 16,
    }
}

/// A number and the estimated error of the quadrature that gave it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuadratureEstimate {
    /// The number.
    pub value: f64,
    /// Estimated absolute error: 0 for closed forms.
    pub error: f64,
}

impl QuadratureEstimate {
    /// A number from a closed form.
    pub fn exact(value: f64) -> Self {
        Self { value, error: 0.0 }
    }
}

/// Fields h = L z with independent z: the columns of L that carry variance, and the rows that own them.
struct Coordinates {
    /// P x r.
    factor: Mat,
    /// Row j of the r x r lower triangle is row `owners[j]` of `factor`.
    owners: Vec<usize>,
    /// Whether one more coordinate carries the label noise.
    noise: f64,
}

impl Coordinates {
    fn of(law: &Law) -> Self {
        Self::of_covariance(law.covariance, law.label_noise)
    }

    /// Coordinates of which the first belong to the frozen fields. Labels vary faster than students, and the first coordinates of a
    /// lattice are its best.
    fn frozen_first(law: &Law, trained: usize) -> Self {
        let c = law.covariance;
        let order: Vec<usize> = (trained..c.rows()).chain(0..trained).collect();
        let turned = Mat::from_fn(c.rows(), c.rows(), |i, j| c[(order[i], order[j])]);
        let Self { factor, owners, noise } = Self::of_covariance(&turned, law.label_noise);
        let mut back = Mat::zeros(factor.rows(), factor.cols());
        for (i, &row) in order.iter().enumerate() {
            back.row_mut(row).copy_from_slice(factor.row(i));
        }
        Self { factor: back, owners: owners.into_iter().map(|i| order[i]).collect(), noise }
    }

    fn of_covariance(covariance: &Mat, noise: f64) -> Self {
        let lower = cholesky_psd(covariance).unwrap_or_else(|_| factor_of_positive_part(covariance));
        let owners: Vec<usize> = (0..lower.rows()).filter(|&j| lower[(j, j)] > 0.0).collect();
        let factor = Mat::from_fn(lower.rows(), owners.len(), |i, j| lower[(i, owners[j])]);
        Self { factor, owners, noise }
    }

    fn dimension(&self) -> usize {
        self.owners.len() + usize::from(self.noise > 0.0)
    }

    /// Writes h = L z; returns the label noise.
    fn fields(&self, z: &[f64], fields: &mut [f64]) -> f64 {
        for (i, h) in fields.iter_mut().enumerate() {
            *h = dot(self.factor.row(i), &z[..self.owners.len()]);
        }
        if self.noise > 0.0 { self.noise * z[self.owners.len()] } else { 0.0 }
    }

    /// The same for many points, fields first as in a [`Batch`].
    fn fields_of(&self, points: &WeightedPoints, fields: &mut Vec<f64>, noise: &mut Vec<f64>) {
        let (n, r) = (points.size(), self.owners.len());
        fields.clear();
        fields.resize(self.factor.rows() * n, 0.0);
        for (i, row) in fields.chunks_exact_mut(n).enumerate() {
            for (z, l) in points.coordinates.chunks_exact(n).zip(self.factor.row(i)) {
                didact_math::simd::add_scaled(row, *l, z);
            }
        }
        noise.clear();
        noise.resize(n, 0.0);
        if self.noise > 0.0 {
            didact_math::simd::add_scaled(noise, self.noise, &points.coordinates[r * n..(r + 1) * n]);
        }
    }

    /// A from D = E[kick zᵀ] = A L, with zeros in the columns of dependent rows.
    ///
    /// A itself is not unique when C is singular, but A G_b is: a dependent row is the same combination of the others
    /// in every eigenspace. No derivative of `kick` is needed, so kinks and jumps are no special case (Stein's lemma).
    fn drift(&self, d: &Mat, out: &mut Mat) {
        out.fill(0.0);
        let r = self.owners.len();
        for i in 0..d.rows() {
            for j in (0..r).rev() {
                let later: f64 =
                    (j + 1..r).map(|m| out[(i, self.owners[m])] * self.factor[(self.owners[m], j)]).sum();
                out[(i, self.owners[j])] = (d[(i, j)] - later) / self.factor[(self.owners[j], j)];
            }
        }
    }
}

/// The factor of C without its negative directions, which a stage of an ODE step near a singular C may have.
fn factor_of_positive_part(covariance: &Mat) -> Mat {
    let eigen = symmetric_eigen(covariance);
    let n = covariance.rows();
    let roots = Mat::from_fn(n, n, |i, j| eigen.vectors[(i, j)] * eigen.values[j].max(0.0).sqrt());
    cholesky_psd(&roots.gram()).expect("a Gram matrix is positive semi-definite")
}

/// kick_i z_j, kick_i kick_j and the scalar kicks of a rule, whose averages are A L, N and the scalar gradient.
struct KickProducts<'a, R: ?Sized> {
    rule: &'a R,
    law: &'a Law<'a>,
    needed: Needed,
    coordinates: &'a Coordinates,
    fields: Vec<f64>,
    kick: Kick,
    batch: Vec<f64>,
    noise: Vec<f64>,
    kicks: Vec<f64>,
    weighted: Vec<f64>,
}

impl<'a, R: LocalRule + ?Sized> KickProducts<'a, R> {
    fn new(rule: &'a R, law: &'a Law, needed: Needed, coordinates: &'a Coordinates) -> Self {
        let shape = rule.shape();
        Self {
            rule,
            law,
            needed,
            coordinates,
            fields: vec![0.0; shape.rows()],
            kick: Kick::new(shape),
            batch: Vec::new(),
            noise: Vec::new(),
            kicks: Vec::new(),
            weighted: Vec::new(),
        }
    }
}

impl<R: LocalRule + ?Sized> Integrand for KickProducts<'_, R> {
    fn dimension(&self) -> usize {
        self.coordinates.dimension()
    }

    fn outputs(&self) -> usize {
        let k = self.kick.rows.len();
        k * self.coordinates.owners.len() + k * k + self.kick.scalars.len()
    }

    fn at(&mut self, z: &[f64], values: &mut [f64]) {
        let (k, r) = (self.kick.rows.len(), self.coordinates.owners.len());
        let noise = self.coordinates.fields(z, &mut self.fields);
        let sample = Sample { fields: &self.fields, scalars: self.law.scalars, noise };
        self.rule.kick(&sample, &mut self.kick);
        let kick = &self.kick;
        let (drift, rest) = values.split_at_mut(k * r);
        let (square, scalars) = rest.split_at_mut(k * k);
        for i in 0..k {
            for j in 0..r {
                drift[i * r + j] = kick.rows[i] * z[j];
            }
            if self.needed == Needed::DriftAndNoise {
                for j in 0..k {
                    square[i * k + j] = kick.rows[i] * kick.rows[j];
                }
            }
        }
        scalars.copy_from_slice(&kick.scalars);
    }

    fn add(&mut self, points: &WeightedPoints, sums: &mut [f64]) {
        // Scalar kicks of a batch come summed, without the weights of the points.
        if !self.kick.scalars.is_empty() {
            return point_by_point(self, points, sums);
        }
        let (k, r, n) = (self.kick.rows.len(), self.coordinates.owners.len(), points.size());
        self.coordinates.fields_of(points, &mut self.batch, &mut self.noise);
        let batch = Batch::new(&self.batch, n, self.law.scalars, &self.noise);
        self.kicks.resize(k * n, 0.0);
        match self.rule.batch() {
            Some(rule) => rule.kick_batch(&batch, &mut self.kicks, &mut []),
            None => kicks_one_by_one(self.rule, &batch, &mut self.kicks, &mut []),
        }
        let (drift, square) = sums.split_at_mut(k * r);
        for (i, kick) in self.kicks.chunks_exact(n).enumerate() {
            self.weighted.clear();
            self.weighted.extend(kick.iter().zip(points.weights).map(|(kick, weight)| weight * kick));
            for (sum, z) in drift[i * r..(i + 1) * r].iter_mut().zip(points.coordinates.chunks_exact(n)) {
                *sum += dot(&self.weighted, z);
            }
            if self.needed == Needed::DriftAndNoise {
                for (sum, other) in square[i * k..(i + 1) * k].iter_mut().zip(self.kicks.chunks_exact(n)) {
                    *sum += dot(&self.weighted, other);
                }
            }
        }
    }
}

/// What is kept from one call to the next.
#[derive(Debug, Default)]
struct Kept {
    best: Option<BestRule>,
    calls: u32,
    /// Error of the last average that was computed.
    error: f64,
    /// Drift, noise and scalar gradient at earlier points, behind each other.
    nearby: Nearby,
    /// Rows that carry variance of their own, on which the form of A depends.
    owners: Vec<usize>,
}

/// The best rule is looked for at the first call, and then once in so many.
const CALLS_PER_SEARCH: u32 = 64;
/// The share of the accuracy that goes to continuing averages from earlier points.
const CONTINUED: f64 = 0.3;

/// A, N and the scalar gradient of any rule, from `kick` alone.
///
/// Where the caller is content with some accuracy, averages along a trajectory are continued from earlier ones if these
/// tell them well enough.
pub fn by_quadrature<R: LocalRule + ?Sized>(rule: &R, law: &Law, needed: Needed, out: &mut Averages) {
    if !law.covariance.is_finite() {
        // A diverging run: the integrator finds out from the numbers.
        out.drift.fill(f64::NAN);
        out.noise.fill(f64::NAN);
        out.scalars.fill(f64::NAN);
        return;
    }
    let coordinates = Coordinates::of(law);
    let Some(accuracy) = out.accuracy else {
        let average = average_kicks(rule, law, needed, &coordinates, USUAL_ACCURACY, &mut None);
        write(&average, &coordinates, out);
        out.error = largest(&average.error);
        return;
    };
    let kept: &mut Kept = out.memory.of();
    if kept.owners != coordinates.owners {
        kept.owners.clone_from(&coordinates.owners);
        kept.nearby.clear();
    }
    let place = [law.covariance.as_slice(), law.scalars].concat();
    let continued = CONTINUED * accuracy;
    if let Some(value) = kept.nearby.predict(&place, continued) {
        let size = value.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let (drift, rest) = value.split_at(out.drift.as_slice().len());
        let (noise, scalars) = rest.split_at(out.noise.as_slice().len());
        out.drift.as_mut_slice().copy_from_slice(drift);
        out.noise.as_mut_slice().copy_from_slice(noise);
        out.scalars.copy_from_slice(scalars);
        out.error = kept.error + continued * size;
        return;
    }
    let before = kept.best;
    if kept.calls.is_multiple_of(CALLS_PER_SEARCH) {
        kept.best = None;
    }
    kept.calls = kept.calls.wrapping_add(1);
    let average = average_kicks(rule, law, needed, &coordinates, accuracy, &mut kept.best);
    // Averages of another rule do not go on smoothly.
    if kept.best != before {
        kept.nearby.clear();
    }
    kept.error = largest(&average.error);
    write(&average, &coordinates, out);
    let kept: &mut Kept = out.memory.of();
    let all = [out.drift.as_slice(), out.noise.as_slice(), &out.scalars].concat();
    let end = all.len();
    kept.nearby.push(place, all, &[end]);
    out.error = kept.error;
}

fn average_kicks<R: LocalRule + ?Sized>(
    rule: &R,
    law: &Law,
    needed: Needed,
    coordinates: &Coordinates,
    accuracy: f64,
    best: &mut Option<BestRule>,
) -> Average {
    let mut products = KickProducts::new(rule, law, needed, coordinates);
    expectation_within(&mut products, accuracy, evaluations(accuracy, coordinates.dimension()), best)
}

/// A, N and the scalar gradient from the averages of [`KickProducts`].
fn write(average: &Average, coordinates: &Coordinates, out: &mut Averages) {
    let (k, r) = (out.noise.rows(), coordinates.owners.len());
    let d = Mat::from_fn(k, r, |i, j| average.mean[i * r + j]);
    coordinates.drift(&d, &mut out.drift);
    out.noise = Mat::from_fn(k, k, |i, j| average.mean[k * r + i * k + j]);
    out.scalars.copy_from_slice(&average.mean[k * r + k * k..]);
}

fn largest(errors: &[f64]) -> f64 {
    errors.iter().copied().fold(0.0, f64::max)
}

/// How long a call of the averages of a rule takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallTime {
    /// Seconds by the clock.
    pub seconds: f64,
    /// Whether they have closed forms.
    pub closed: bool,
}

/// How long averages of a rule take, by the clock.
///
/// The fields are moderately correlated, as they are in most of a run.
pub fn time_of_call(rule: &dyn LocalRule, needed: Needed, accuracy: Option<f64>) -> CallTime {
    let shape = rule.shape();
    let scalars = vec![1.0; shape.scalars];
    let mut out = Averages { accuracy, ..Averages::new(shape) };
    let mut timed = |variance: f64| {
        let covariance = Mat::from_fn(shape.rows(), shape.rows(), |i, j| if i == j { variance } else { 0.3 });
        let begin = Instant::now();
        rule.averages(
            &Law { covariance: &covariance, scalars: &scalars, label_noise: 0.0 },
            needed,
            &mut out,
        );
        (begin.elapsed(), out.error == 0.0)
    };
    let (first, closed) = timed(1.0);
    // The first call may fill tables, or choose the quadrature, for all others.
    let longest = if closed { LONG_CLOSED_CALL } else { LONG_CALL };
    let seconds = if first < longest { first.min(timed(1.01).0) } else { first };
    CallTime { seconds: seconds.as_secs_f64(), closed }
}

/// A call that takes this long is timed only once.
const LONG_CALL: Duration = Duration::from_secs(1);
/// The same for closed forms, which have nothing to prepare.
const LONG_CLOSED_CALL: Duration = Duration::from_millis(1);

/// `E[c]` and `E[c (z zᵀ − 1)]` of the curvature c_ij = ∂kick_i/∂h_j of any rule, fields h = F z.
pub fn curvature_by_quadrature<R: LocalRule + ?Sized>(
    rule: &R,
    factor: &Mat,
    scalars: &[f64],
    out: &mut CurvatureAverages,
) {
    let (rows, span, k) = (factor.rows(), factor.cols(), rule.shape().trained);
    let (mut fields, mut curvature) = (vec![0.0; rows], Mat::zeros(k, rows));
    let per_pair = 1 + span * span;
    let average = expectation(
        span,
        k * k * per_pair,
        |z, values| {
            for (i, h) in fields.iter_mut().enumerate() {
                *h = dot(factor.row(i), z);
            }
            rule.curvature(&Sample { fields: &fields, scalars, noise: 0.0 }, &mut curvature);
            for (pair, values) in values.chunks_exact_mut(per_pair).enumerate() {
                let c = curvature[(pair / k, pair % k)];
                values[0] = c;
                for (at, value) in values[1..].iter_mut().enumerate() {
                    let (a, b) = (at / span, at % span);
                    *value = c * (z[a] * z[b] - f64::from(a == b));
                }
            }
        },
        BUDGET,
    );
    for (pair, values) in average.mean.chunks_exact(per_pair).enumerate() {
        out.mean[(pair / k, pair % k)] = values[0];
        out.second[pair].as_mut_slice().copy_from_slice(&values[1..]);
    }
    out.error = average.error.iter().copied().fold(0.0, f64::max);
}
