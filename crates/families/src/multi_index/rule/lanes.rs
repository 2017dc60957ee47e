//! The loops over samples of a two-layer student.

use didact_math::dispatch;
use didact_model::loss::Loss;
use didact_model::with_derivatives;

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
    pub(super) curvature: &'a [f64],
}

dispatch! {
    /// ∂φ/∂h = a² ℓ″ σ′² + a ℓ′ σ″.
    pub(super) fn own(unit: Own, out: &mut [f64]) {
        let Own { weight: a, first, second, slope, curvature } = unit;
        let n = out.len();
        let (first, second, slope, curvature) = (&first[..n], &second[..n], &slope[..n], &curvature[..n]);
        for l in 0..n {
            out[l] = (a * a) * second[l] * slope[l] * slope[l] + a * first[l] * curvature[l];
        }
    }
}

dispatch! {
    /// φ and ∂φ/∂h of a student of one unit of weight a, in the places of σ′ and σ″: [`residuals`], the derivatives of the loss,
    /// [`kicks`] and [`own`] in one loop. For small batches one loop is faster
    /// than several, each of which would wait for the results of the one before.
    pub(super) fn single(
        loss: Loss,
        a: f64,
        value: &[f64],
        labels: &[f64],
        slope: &mut [f64],
        curvature: &mut [f64],
    ) {
        let n = value.len();
        let (labels, slope, curvature) = (&labels[..n], &mut slope[..n], &mut curvature[..n]);
        with_derivatives!(loss, derivatives => {
            for l in 0..n {
                let (first, second) = derivatives(a * value[l] - labels[l], labels[l]);
                let own = a * slope[l];
                curvature[l] = (a * first).mul_add(curvature[l], second * (own * own));
                slope[l] = own * first;
            }
        });
    }
}

dispatch! {
    /// ∂φ_i/∂z_n = a_i ∂²ℓ/∂f∂y σ′_i ∂h/∂z_n.
    pub(super) fn frozen(a: f64, loss: Loss, second: &[f64], slope: &[f64], label_slope: &[f64], out: &mut [f64]) {
        for (((out, second), slope), label_slope) in out.iter_mut().zip(second).zip(slope).zip(label_slope) {
            *out = a * loss.mixed(*second) * slope * label_slope;
        }
    }
}
