//! The loops over samples of a two-layer student.

use didact_math::dispatch;

dispatch! {
    /// out = a x − y.
    pub(super) fn residuals(a: f64, x: &[f64], y: &[f64], out: &mut [f64]) {
        for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
            *out = a * x - y;
        }
    }
}

dispatch! {
    /// φ = a ℓ′ σ′.
    pub(super) fn kicks(a: f64, first: &[f64], slope: &[f64], out: &mut [f64]) {
        for ((out, first), slope) in out.iter_mut().zip(first).zip(slope) {
            *out = a * first * slope;
        }
    }
}

dispatch! {
    /// ∂φ_i/∂h_j = a_i a_j ℓ″ σ′_i σ′_j, j ≠ i.
    pub(super) fn cross(product: f64, second: &[f64], slope: &[f64], other: &[f64], out: &mut [f64]) {
        for (((out, second), slope), other) in out.iter_mut().zip(second).zip(slope).zip(other) {
            *out = product * second * slope * other;
        }
    }
}

/// Derivatives of one unit and of the loss.
pub(super) struct Own<'a> {
    /// a.
    pub(super) weight: f64,
    /// ℓ′.
    pub(super) first: &'a [f64],
    /// ℓ″.
    pub(super) second: &'a [f64],
    /// σ′.
    pub(super) slope: &'a [f64],
    /// σ″.
    pub(super) bend: &'a [f64],
}

dispatch! {
    /// ∂φ/∂h = a² ℓ″ σ′² + a ℓ′ σ″.
    pub(super) fn own(unit: Own, out: &mut [f64]) {
        let Own { weight: a, first, second, slope, bend } = unit;
        let n = out.len();
        let (first, second, slope, bend) = (&first[..n], &second[..n], &slope[..n], &bend[..n]);
        for l in 0..n {
            out[l] = (a * a) * second[l] * slope[l] * slope[l] + a * first[l] * bend[l];
        }
    }
}
