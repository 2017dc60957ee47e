//! Gaussian averages of any rule by deterministic quadrature of its `kick`: the slow, obvious way.

use crate::rule::{Averages, CurvatureAverages, Kick, Law, LocalRule, Needed, Sample, Shape};
use didact_math::gauss::{expectation, expectation_in_blocks};
use didact_math::linalg::{Mat, cholesky_psd, symmetric_eigen};

/// Evaluations of a rule per average: about 15 nodes per axis for four fields.
const BUDGET: usize = 65_536;

/// A number and the estimated error of the quadrature that gave it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuadratureEstimate {
    /// The number.
    pub value: f64,
    /// Estimated absolute error.
    pub error: f64,
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
        let lower = cholesky_psd(law.covariance).unwrap_or_else(|_| factor_of_positive_part(law.covariance));
        let owners: Vec<usize> = (0..lower.rows()).filter(|&j| lower[(j, j)] > 0.0).collect();
        let factor = Mat::from_fn(lower.rows(), owners.len(), |i, j| lower[(i, owners[j])]);
        Self { factor, owners, noise: law.label_noise }
    }

    fn dimension(&self) -> usize {
        self.owners.len() + usize::from(self.noise > 0.0)
    }

    /// Fields (P x n) and label noise of n points z (dimension x n).
    fn block(&self, n: usize, z: &[f64], fields: &mut Vec<f64>, noise: &mut Vec<f64>) {
        let r = self.owners.len();
        fields.clear();
        fields.resize(self.factor.rows() * n, 0.0);
        for (i, fields) in fields.chunks_exact_mut(n).enumerate() {
            for (factor, z) in self.factor.row(i).iter().zip(z.chunks_exact(n)) {
                fields.iter_mut().zip(z).for_each(|(h, z)| *h += factor * z);
            }
        }
        noise.clear();
        if self.noise > 0.0 {
            noise.extend(z[r * n..].iter().map(|z| self.noise * z));
        } else {
            noise.resize(n, 0.0);
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

/// Fields and noise of some points at which a rule is averaged, samples last as in [`crate::rule::Batch`].
#[derive(Debug, Clone, Copy)]
pub struct QuadraturePoints<'a> {
    /// P x size.
    pub fields: &'a [f64],
    /// Label noise per point.
    pub noise: &'a [f64],
    /// Number of points.
    pub size: usize,
}

impl QuadraturePoints<'_> {
    /// Calls `work` with every point and its number.
    fn each(&self, scalars: &[f64], mut work: impl FnMut(usize, &Sample)) {
        let mut fields = vec![0.0; self.fields.len() / self.size];
        for j in 0..self.size {
            fields.iter_mut().enumerate().for_each(|(k, h)| *h = self.fields[k * self.size + j]);
            work(j, &Sample { fields: &fields, scalars, noise: self.noise[j] });
        }
    }
}

/// A, N and the scalar gradient of any rule, from `kick` alone.
pub fn by_quadrature<R: LocalRule + ?Sized>(rule: &R, law: &Law, needed: Needed, out: &mut Averages) {
    let shape = rule.shape();
    let mut kick = Kick::new(shape);
    let kicks = |points: &QuadraturePoints, slopes: &mut [f64]| {
        points.each(law.scalars, |j, sample| {
            rule.kick(sample, &mut kick);
            let all = kick.rows.iter().chain(&kick.scalars);
            all.enumerate().for_each(|(i, slope)| slopes[i * points.size + j] = *slope);
        });
    };
    by_quadrature_in_blocks(shape, kicks, law, needed, out);
}

/// The same of a rule that computes many samples at once: `kicks(points, slopes)` writes ∂loss/∂h_i and then ∂loss/∂a_j,
/// (trained + scalars) x size.
pub fn by_quadrature_in_blocks(
    shape: Shape,
    mut kicks: impl FnMut(&QuadraturePoints, &mut [f64]),
    law: &Law,
    needed: Needed,
    out: &mut Averages,
) {
    if !law.covariance.is_finite() {
        // A diverging run: the integrator finds out from the numbers.
        out.drift.fill(f64::NAN);
        out.noise.fill(f64::NAN);
        out.scalars.fill(f64::NAN);
        return;
    }
    let coordinates = Coordinates::of(law);
    let (k, r) = (shape.trained, coordinates.owners.len());
    let (mut fields, mut noise, mut slopes) = (Vec::new(), Vec::new(), Vec::new());
    let outputs = k * r + k * k + shape.scalars;
    let average = expectation_in_blocks(
        coordinates.dimension(),
        outputs,
        |n, z, values| {
            coordinates.block(n, z, &mut fields, &mut noise);
            slopes.resize((k + shape.scalars) * n, 0.0);
            kicks(&QuadraturePoints { fields: &fields, noise: &noise, size: n }, &mut slopes);
            let (drift, rest) = values.split_at_mut(k * r * n);
            let (square, scalars) = rest.split_at_mut(k * k * n);
            for (i, kick) in slopes.chunks_exact(n).take(k).enumerate() {
                let products = |to: &mut [f64], other: &[f64]| {
                    for ((to, a), b) in to.iter_mut().zip(kick).zip(other) {
                        *to = a * b;
                    }
                };
                for j in 0..r {
                    products(&mut drift[(i * r + j) * n..][..n], &z[j * n..][..n]);
                }
                if needed == Needed::DriftAndNoise {
                    for j in 0..k {
                        products(&mut square[(i * k + j) * n..][..n], &slopes[j * n..][..n]);
                    }
                }
            }
            scalars.copy_from_slice(&slopes[k * n..]);
        },
        BUDGET,
    );
    let d = Mat::from_fn(k, r, |i, j| average.mean[i * r + j]);
    coordinates.drift(&d, &mut out.drift);
    out.noise = Mat::from_fn(k, k, |i, j| average.mean[k * r + i * k + j]);
    out.scalars.copy_from_slice(&average.mean[k * r + k * k..]);
    out.error = average.error.iter().copied().fold(0.0, f64::max);
}

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
                *h = didact_math::linalg::dot(factor.row(i), z);
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

/// `E[loss]` without label noise.
pub fn risk_by_quadrature<R: LocalRule + ?Sized>(rule: &R, law: &Law) -> QuadratureEstimate {
    mean_loss_by_quadrature(rule, &Law { label_noise: 0.0, ..*law })
}

/// `E[loss]` of a fresh sample with its label noise: the test loss.
pub fn mean_loss_by_quadrature<R: LocalRule + ?Sized>(rule: &R, law: &Law) -> QuadratureEstimate {
    let losses = |points: &QuadraturePoints, losses: &mut [f64]| {
        points.each(law.scalars, |j, sample| losses[j] = rule.loss(sample));
    };
    mean_loss_in_blocks(losses, law)
}

/// The same of a rule that computes the losses of many samples at once.
pub fn mean_loss_in_blocks(
    mut losses: impl FnMut(&QuadraturePoints, &mut [f64]),
    law: &Law,
) -> QuadratureEstimate {
    if !law.covariance.is_finite() {
        return QuadratureEstimate { value: f64::NAN, error: f64::NAN };
    }
    let coordinates = Coordinates::of(law);
    let (mut fields, mut noise) = (Vec::new(), Vec::new());
    let average = expectation_in_blocks(
        coordinates.dimension(),
        1,
        |n, z, values| {
            coordinates.block(n, z, &mut fields, &mut noise);
            losses(&QuadraturePoints { fields: &fields, noise: &noise, size: n }, values);
        },
        BUDGET,
    );
    QuadratureEstimate { value: average.mean[0], error: average.error[0] }
}
