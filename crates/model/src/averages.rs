//! Gaussian averages of any rule by deterministic quadrature of its `kick`: the slow, obvious way.

mod mapped;

pub use mapped::mapped_averages;

use crate::rule::{Averages, CurvatureAverages, Kick, Law, LocalRule, Needed, Sample};
use didact_math::gauss::expectation;
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

    /// Writes h = L z; returns the label noise.
    fn fields(&self, z: &[f64], fields: &mut [f64]) -> f64 {
        for (i, h) in fields.iter_mut().enumerate() {
            *h = didact_math::linalg::dot(self.factor.row(i), &z[..self.owners.len()]);
        }
        if self.noise > 0.0 { self.noise * z[self.owners.len()] } else { 0.0 }
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

/// A, N and the scalar gradient of any rule, from `kick` alone.
pub fn by_quadrature<R: LocalRule + ?Sized>(rule: &R, law: &Law, needed: Needed, out: &mut Averages) {
    let shape = rule.shape();
    if !law.covariance.is_finite() {
        // A diverging run: the integrator finds out from the numbers.
        out.drift.fill(f64::NAN);
        out.noise.fill(f64::NAN);
        out.scalars.fill(f64::NAN);
        return;
    }
    let coordinates = Coordinates::of(law);
    let (k, r) = (shape.trained, coordinates.owners.len());
    let mut fields = vec![0.0; shape.rows()];
    let mut kick = Kick::new(shape);
    let outputs = k * r + k * k + shape.scalars;
    let average = expectation(
        coordinates.dimension(),
        outputs,
        |z, values| {
            let noise = coordinates.fields(z, &mut fields);
            rule.kick(&Sample { fields: &fields, scalars: law.scalars, noise }, &mut kick);
            let (drift, rest) = values.split_at_mut(k * r);
            let (square, scalars) = rest.split_at_mut(k * k);
            for i in 0..k {
                for j in 0..r {
                    drift[i * r + j] = kick.rows[i] * z[j];
                }
                if needed == Needed::DriftAndNoise {
                    for j in 0..k {
                        square[i * k + j] = kick.rows[i] * kick.rows[j];
                    }
                }
            }
            scalars.copy_from_slice(&kick.scalars);
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
    if !law.covariance.is_finite() {
        return QuadratureEstimate { value: f64::NAN, error: f64::NAN };
    }
    let coordinates = Coordinates::of(law);
    let mut fields = vec![0.0; rule.shape().rows()];
    let average = expectation(
        coordinates.dimension(),
        1,
        |z, values| {
            let noise = coordinates.fields(z, &mut fields);
            values[0] = rule.loss(&Sample { fields: &fields, scalars: law.scalars, noise });
        },
        BUDGET,
    );
    QuadratureEstimate { value: average.mean[0], error: average.error[0] }
}
