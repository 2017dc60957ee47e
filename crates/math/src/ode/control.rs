//! Choice of the step length.

use super::field::Counted;

/// Tolerances of the local error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tolerance {
    pub(super) relative: f64,
    pub(super) absolute: f64,
}

impl Tolerance {
    fn scale(self, size: f64) -> f64 {
        self.absolute + self.relative * size
    }

    /// Mean over the components of (error_i / (absolute + relative max(|old_i|, |new_i|)))².
    pub(super) fn mean_square(self, error: &[f64], old: &[f64], new: &[f64]) -> f64 {
        // Four partial sums: the compiler may not reorder a floating-point sum, so we do.
        const LANES: usize = 4;
        let n = error.len();
        let (old, new) = (&old[..n], &new[..n]);
        let ratio2 = |e: f64, a: f64, b: f64| {
            let ratio = e / self.scale(a.abs().max(b.abs()));
            ratio * ratio
        };
        let mut sums = [0.0; LANES];
        let whole = n - n % LANES;
        for start in (0..whole).step_by(LANES) {
            let (e, a, b) = (&error[start..][..LANES], &old[start..][..LANES], &new[start..][..LANES]);
            for lane in 0..LANES {
                sums[lane] += ratio2(e[lane], a[lane], b[lane]);
            }
        }
        for i in whole..n {
            sums[i - whole] += ratio2(error[i], old[i], new[i]);
        }
        (sums[0] + sums[1] + sums[2] + sums[3]) / n.max(1) as f64
    }
}

/// Constants of the proportional-integral step controller of one method,
///
///   h_{n+1} = safety · h_n · err_n^{−proportional} · err_{n−1}^{integral},
///
/// after Gustafsson (1991) and Lund; Hairer & Wanner, *Solving ODEs II*, §IV.2. The memory of the previous error
/// damps the oscillations of the step length that plain control shows when stability limits it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Law {
    /// Order of the method, for the choice of the first step.
    pub(super) order: f64,
    /// Exponent that alone would bring the error to 1: 1/(order of the error estimate + 1).
    pub(super) plain: f64,
    /// Exponent of the current error.
    pub(super) proportional: f64,
    /// Exponent of the previous error.
    pub(super) integral: f64,
    /// Aim below the tolerance by this factor of the step.
    pub(super) safety: f64,
    /// Strongest shortening.
    pub(super) shortest: f64,
    /// Strongest lengthening.
    pub(super) longest: f64,
}

/// The controller: a law and its memory.
#[derive(Clone, Debug)]
pub(super) struct Controller {
    law: Law,
    previous_error: f64,
    just_rejected: bool,
}

impl Controller {
    pub(super) fn new(law: Law) -> Self {
        Controller { law, previous_error: 1e-4, just_rejected: false }
    }

    /// Factor for the next step after a step with this error (at most 1) was accepted.
    pub(super) fn accepted(&mut self, error: f64) -> f64 {
        let law = self.law;
        // An error of zero would divide by zero; below 1e-30 every law is at its longest factor.
        let wanted =
            law.safety * error.max(1e-30).powf(-law.proportional) * self.previous_error.powf(law.integral);
        let longest = if self.just_rejected { 1.0 } else { law.longest };
        self.previous_error = error.max(1e-4);
        self.just_rejected = false;
        wanted.clamp(law.shortest, longest)
    }

    /// Factor for the next attempt after an error above 1, or an infinite one.
    pub(super) fn rejected(&mut self, error: f64) -> f64 {
        let law = self.law;
        self.just_rejected = true;
        if error.is_finite() { (law.safety * error.powf(-law.plain)).max(law.shortest) } else { 0.1 }
    }
}

/// Length of a first step whose local error should be near 1 % of the tolerance: Hairer, Nørsett & Wanner, *Solving
/// ODEs I*, §II.4. `slope` is f(start, state); costs one evaluation.
pub(super) fn first_step(
    field: &mut Counted<'_>,
    (start, direction): (f64, f64),
    state: &[f64],
    slope: &[f64],
    order: f64,
    (tolerance, largest): (Tolerance, f64),
) -> f64 {
    let size = |v: &[f64]| tolerance.mean_square(v, state, state).sqrt();
    let (d0, d1) = (size(state), size(slope));
    let h0 = if d0 < 1e-5 || d1 < 1e-5 { 1e-6 } else { 0.01 * d0 / d1 };
    let h0 = h0.min(largest);
    let moved: Vec<f64> = state.iter().zip(slope).map(|(y, f)| y + direction * h0 * f).collect();
    let mut change = vec![0.0; state.len()];
    field.derivative(start + direction * h0, &moved, &mut change);
    for (after, before) in change.iter_mut().zip(slope) {
        *after -= before;
    }
    let d2 = size(&change) / h0;
    let steepest = d1.max(d2);
    let h1 =
        if steepest <= 1e-15 { (h0 * 1e-3).max(1e-6) } else { (0.01 / steepest).powf(1.0 / (order + 1.0)) };
    // A field that is not finite at the trial point leaves h0; the controller shortens it if need be.
    let chosen = if h1.is_finite() && h1 > 0.0 { h1.min(100.0 * h0) } else { h0 };
    chosen.min(largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_square_is_the_obvious_sum_at_every_length() {
        let tolerance = Tolerance { relative: 1e-3, absolute: 1e-5 };
        for n in 1..12 {
            let e: Vec<f64> = (0..n).map(|i| 1e-4 * (i as f64).sin()).collect();
            let a: Vec<f64> = (0..n).map(|i| (1.3 * i as f64).cos()).collect();
            let b: Vec<f64> = (0..n).map(|i| -0.5 + 0.2 * i as f64).collect();
            let plain: f64 = (0..n)
                .map(|i| (e[i] / (1e-5 + 1e-3 * f64::max(a[i].abs(), b[i].abs()))).powi(2) / n as f64)
                .sum();
            assert!(
                (tolerance.mean_square(&e, &a, &b) / plain.max(1e-300) - 1.0).abs() < 1e-13 || plain == 0.0
            );
        }
    }
}
