//! The interface between the driver and a method, and the stage vectors that the Runge-Kutta methods share.

use super::control::{StepControl, Tolerance};
use super::field::Counted;

/// An integration method. It owns the current state and the stages of the step that is being attempted from it.
pub(super) trait Stepper {
    /// Starts at (time, state) and evaluates the slope there. Returns `false` if the slope is not finite.
    fn begin(&mut self, field: &mut Counted<'_>, time: f64, state: &[f64]) -> bool;

    /// The current state.
    fn state(&self) -> &[f64];

    /// The slope f at the current point.
    fn slope(&self) -> &[f64];

    /// The longest step that the method can take from the current point, regardless of accuracy.
    fn longest_step(&mut self, _field: &mut Counted<'_>, _time: f64, _tolerance: Tolerance) -> f64 {
        f64::INFINITY
    }

    /// Attempts a step of signed length `step` from the current point.
    ///
    /// Returns the error estimate in units of the tolerance, or ∞ if a stage or, for an acceptable step, the new slope is
    /// not finite. If the result is at most 1, `candidate` is the new state.
    fn attempt(&mut self, field: &mut Counted<'_>, time: f64, step: f64, tolerance: Tolerance) -> f64;

    /// The state at the end of the attempted step.
    fn candidate(&self) -> &[f64];

    /// Evaluates what `interpolate` needs in addition to the stages of the accepted step.
    fn prepare_interpolant(&mut self, _field: &mut Counted<'_>, _time: f64, _step: f64) {}

    /// Writes the state of the accepted step at the time t + θ h, where h = `step` and θ = `share`, 0 ≤ θ ≤ 1.
    fn interpolate(&self, step: f64, share: f64, out: &mut [f64]);

    /// Makes the candidate the current point.
    fn advance(&mut self);

    /// Returns the factor for the next step (or the next attempt, after a rejection) if the method chooses it itself from
    /// the error of the attempted step; `None` leaves it to the controller. Called once per attempt, before `advance`.
    fn own_factor(&mut self, _error: f64) -> Option<f64> {
        None
    }

    /// The constants of the step controller for this method.
    fn step_control(&self) -> StepControl;

    /// Advice for the user when the step length underflows.
    fn hint(&self) -> &'static str;
}

/// Advice for the user when the step length of an explicit method underflows.
pub(super) const EXPLICIT_HINT: &str =
    "the field may be stiff or discontinuous: try `Method::Stiff`, a looser tolerance, or split the interval";

/// One row of a tableau: (stage, weight) for every non-zero weight.
pub(super) type Row<const N: usize> = [(usize, f64); N];

/// State, candidate and stages of an explicit Runge-Kutta method.
pub(super) struct Stages {
    pub(super) state: Vec<f64>,
    pub(super) candidate: Vec<f64>,
    /// Buffer for the argument of the stage being evaluated; unused between stages.
    pub(super) scratch: Vec<f64>,
    /// The stage derivatives k_i.
    pub(super) k: Vec<Vec<f64>>,
}

impl Stages {
    pub(super) fn new(n: usize, stages: usize) -> Self {
        Stages {
            state: vec![0.0; n],
            candidate: vec![0.0; n],
            scratch: vec![0.0; n],
            k: vec![vec![0.0; n]; stages],
        }
    }

    pub(super) fn begin(&mut self, field: &mut Counted<'_>, time: f64, state: &[f64]) -> bool {
        self.state.copy_from_slice(state);
        field.derivative(time, &self.state, &mut self.k[0]);
        all_finite(&self.k[0])
    }

    /// k_index = f(time, y + step Σ_j row_j k_j).
    pub(super) fn evaluate<const N: usize>(
        &mut self,
        field: &mut Counted<'_>,
        time: f64,
        step: f64,
        index: usize,
        row: &Row<N>,
    ) {
        displace(&mut self.scratch, &self.state, step, row, &self.k);
        field.derivative(time, &self.scratch, &mut self.k[index]);
    }

    /// k_index = f(time, candidate).
    pub(super) fn evaluate_candidate(&mut self, field: &mut Counted<'_>, time: f64, index: usize) {
        field.derivative(time, &self.candidate, &mut self.k[index]);
    }

    /// Makes the candidate the current state; `slope` is the index of the stage that holds f there.
    pub(super) fn advance(&mut self, slope: usize) {
        std::mem::swap(&mut self.state, &mut self.candidate);
        self.k.swap(0, slope);
    }
}

/// out = base + step Σ_j row_j k_j, in one pass over memory.
pub(super) fn displace<const N: usize>(
    out: &mut [f64],
    base: &[f64],
    step: f64,
    row: &Row<N>,
    k: &[Vec<f64>],
) {
    let n = out.len();
    let base = &base[..n];
    let columns = row.map(|(stage, _)| &k[stage][..n]);
    let weights = row.map(|(_, weight)| step * weight);
    for i in 0..n {
        let mut sum = 0.0;
        for j in 0..N {
            sum += weights[j] * columns[j][i];
        }
        out[i] = base[i] + sum;
    }
}

/// out = step Σ_j row_j k_j.
pub(super) fn combine<const N: usize>(out: &mut [f64], step: f64, row: &Row<N>, k: &[Vec<f64>]) {
    let n = out.len();
    let columns = row.map(|(stage, _)| &k[stage][..n]);
    let weights = row.map(|(_, weight)| step * weight);
    for i in 0..n {
        let mut sum = 0.0;
        for j in 0..N {
            sum += weights[j] * columns[j][i];
        }
        out[i] = sum;
    }
}

/// Whether every component is finite. There is no branch per component, so that the loop is vectorised.
pub(super) fn all_finite(values: &[f64]) -> bool {
    all_within(values, f64::MAX)
}

/// Whether every component is at most `limit` in absolute value.
pub(super) fn all_within(values: &[f64], limit: f64) -> bool {
    values.iter().fold(true, |within, v| within & (v.abs() <= limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displacing_is_the_weighted_sum_of_the_named_stages() {
        let k: Vec<Vec<f64>> = (0..4).map(|s| (0..5).map(|i| f64::from(10 * s + i)).collect()).collect();
        let base = [1.0; 5];
        let (mut displaced, mut combined) = ([0.0; 5], [0.0; 5]);
        let row = [(1, 0.25), (3, -0.5)];
        displace(&mut displaced, &base, 2.0, &row, &k);
        combine(&mut combined, 2.0, &row, &k);
        for i in 0..5 {
            let sum = 2.0 * (0.25 * k[1][i] - 0.5 * k[3][i]);
            assert_eq!(combined[i], sum);
            assert_eq!(displaced[i], 1.0 + sum);
        }
    }

    #[test]
    fn nan_and_infinity_are_not_finite() {
        assert!(all_finite(&[0.0, -1e308, 3.0]));
        assert!(!all_finite(&[0.0, f64::NAN]));
        assert!(!all_finite(&[f64::NEG_INFINITY, 0.0]));
        assert!(!all_within(&[0.0, -2.0], 1.0));
    }
}
