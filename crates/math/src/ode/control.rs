//! Control of the step length: error norm, step controller, and choice of the first step.

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
        // The sum is split into four partial sums so that it can be vectorised; the compiler may not reorder a
        // floating-point sum itself.
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
/// after K. Gustafsson (1991); Hairer & Wanner, *Solving ODEs II*, §IV.2. The factor with the previous error damps the
/// oscillations of the step length that occur without it when stability, not accuracy, limits the step.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepControl {
    /// Order of the method, for the choice of the first step.
    pub(super) order: f64,
    /// Exponent of the error after a rejected step: 1/(order of the error estimate + 1), which brings the error to 1.
    pub(super) plain: f64,
    /// Exponent of the current error.
    pub(super) proportional: f64,
    /// Exponent of the previous error.
    pub(super) integral: f64,
    /// Factor below 1 on the predicted step length, so that most steps are accepted.
    pub(super) safety: f64,
    /// Smallest factor between two steps.
    pub(super) shortest: f64,
    /// Largest factor between two steps.
    pub(super) longest: f64,
}

/// The step controller: its constants, and what it remembers of the last step.
#[derive(Clone, Debug)]
pub(super) struct Controller {
    constants: StepControl,
    /// Error of the last accepted step, at least 1e-4.
    previous_error: f64,
    just_rejected: bool,
}

impl Controller {
    pub(super) fn new(constants: StepControl) -> Self {
        // The initial value and the floor 1e-4 of the previous error are those of Hairer's codes.
        Controller { constants, previous_error: 1e-4, just_rejected: false }
    }

    /// Returns the factor for the next step after a step with this error (at most 1) was accepted.
    pub(super) fn accepted(&mut self, error: f64) -> f64 {
        let constants = self.constants;
        // The floor avoids a division by zero; for errors below 1e-30 the factor is `longest` in every method.
        let wanted = constants.safety
            * error.max(1e-30).powf(-constants.proportional)
            * self.previous_error.powf(constants.integral);
        let longest = if self.just_rejected { 1.0 } else { constants.longest };
        self.previous_error = error.max(1e-4);
        self.just_rejected = false;
        wanted.clamp(constants.shortest, longest)
    }

    /// Returns the factor for the next attempt after an error above 1. An infinite error, from a field that is not finite,
    /// gives the factor 0.1.
    pub(super) fn rejected(&mut self, error: f64) -> f64 {
        let constants = self.constants;
        self.just_rejected = true;
        if error.is_finite() {
            (constants.safety * error.powf(-constants.plain)).max(constants.shortest)
        } else {
            0.1
        }
    }
}

/// Chooses the length of the first step such that its local error should be near 1 % of the tolerance: Hairer, Nørsett &
/// Wanner, *Solving ODEs I*, §II.4. `slope` is f(start, state). One more evaluation is needed.
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
    // If the field is not finite at the trial point, h0 is used; the controller shortens it if needed.
    let chosen = if h1.is_finite() && h1 > 0.0 { h1.min(100.0 * h0) } else { h0 };
    chosen.min(largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_square_equals_the_plain_sum_at_every_length() {
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
