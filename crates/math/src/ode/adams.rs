//! Adams methods of variable order and step length in the mode PECE (predict, evaluate, correct, evaluate).
//!
//! F. T. Krogh; L. F. Shampine & M. K. Gordon, *Computer Solution of Ordinary Differential Equations* (1975); Hairer,
//! Nørsett & Wanner, *Solving ODEs I*, §III.5. A step costs two evaluations at every order, so for smooth fields at
//! tight tolerances over long times these methods need the fewest evaluations of those in [`ode`](super).
//!
//! From step to step the method keeps modified divided differences of the slope f on the past points t_n, t_{n−1}, …,
//!
//!   Φ_1(n) = f_n,    Φ_{i+1}(n) = Φ_i(n) − Φ*_i(n−1),    Φ*_i(n) = β_i Φ_i(n),    β_i = Π_{j<i} ψ_j(n+1)/ψ_j(n),
//!
//! ψ_i(n+1) = t_{n+1} − t_{n+1−i}. With steps of equal length they are backward differences and β_i = 1.

use super::control::{StepControl, Tolerance};
use super::field::Counted;
use super::stages::{EXPLICIT_HINT, Stepper, all_finite};
use crate::gauss::quadrature::gauss_legendre;
use std::sync::OnceLock;

/// Highest order k of the predictor; the corrector has order k + 1.
const HIGHEST_ORDER: usize = 12;
/// Number of differences that are kept: those of the corrector, and one more to estimate the error at the next order.
const DIFFERENCES: usize = HIGHEST_ORDER + 2;
/// The length of the next step is chosen so that its predicted error is at most this fraction of the tolerance. A step
/// is accepted up to the whole tolerance.
const TARGET_ERROR: f64 = 0.7;

/// |γ*_i| of the Adams-Moulton formulas on equal steps, the leading error coefficients: Σ_{j≤m} γ*_j/(m + 1 − j) = 0,
/// γ*_0 = 1.
fn error_coefficients() -> &'static [f64; DIFFERENCES] {
    static COEFFICIENTS: OnceLock<[f64; DIFFERENCES]> = OnceLock::new();
    COEFFICIENTS.get_or_init(|| {
        let mut gamma = [0.0; DIFFERENCES];
        gamma[0] = 1.0;
        for m in 1..DIFFERENCES {
            gamma[m] = -(0..m).map(|j| gamma[j] / (m + 1 - j) as f64).sum::<f64>();
        }
        gamma.map(f64::abs)
    })
}

/// Estimated errors of the attempted step at its own order and at the two orders below, in units of the tolerance.
#[derive(Clone, Copy, Debug, Default)]
struct Errors {
    /// At the order k of the step.
    same: f64,
    /// At k − 1.
    lower: f64,
    /// At k − 2.
    lowest: f64,
}

/// An Adams method with the differences of its past slopes.
pub(super) struct Adams {
    n: usize,
    state: Vec<f64>,
    candidate: Vec<f64>,
    /// Φ_i at the current point, in row i − 1.
    differences: Vec<f64>,
    /// Φ_i at the candidate, which replace `differences` when it is accepted.
    next_differences: Vec<f64>,
    /// ψ_i(n), i = 1, 2, …: distances to the past points.
    past: [f64; DIFFERENCES],
    next_past: [f64; DIFFERENCES],
    /// Order k of the predictor.
    order: usize,
    /// Number of consecutive steps of the present length.
    equal_steps: usize,
    /// Whether the integration is in its starting phase, in which every accepted step raises the order by one and doubles
    /// the step length.
    starting: bool,
    /// Consecutive rejected attempts.
    failures: u32,
    step: f64,
    /// Slope at the new point according to the interpolating polynomial, Σ_i Φ*_i(n).
    slope: Vec<f64>,
    /// State that the predictor gives at the new point.
    predicted: Vec<f64>,
    /// 1/(tolerated error) per component.
    weights: Vec<f64>,
    errors: Errors,
    tolerance: Tolerance,
}

impl Adams {
    pub(super) fn new(n: usize) -> Self {
        let zeros = || vec![0.0; n];
        Adams {
            n,
            state: zeros(),
            candidate: zeros(),
            differences: vec![0.0; n * DIFFERENCES],
            next_differences: vec![0.0; n * DIFFERENCES],
            past: [1.0; DIFFERENCES],
            next_past: [1.0; DIFFERENCES],
            order: 1,
            equal_steps: 0,
            starting: true,
            failures: 0,
            step: 0.0,
            slope: zeros(),
            predicted: zeros(),
            weights: zeros(),
            errors: Errors::default(),
            tolerance: Tolerance { relative: 0.0, absolute: 1.0 },
        }
    }

    /// Computes ψ_i(n+1), β_i and g_{i,1} of a step of length h. The integral of the interpolating polynomial over the
    /// step is h Σ_i g_{i,1} Φ*_i.
    fn coefficients(&mut self, step: f64) -> Coefficients {
        let k = self.order;
        let mut c = Coefficients {
            beta: [1.0; DIFFERENCES],
            integral: [0.0; DIFFERENCES],
            sigma: [1.0; DIFFERENCES],
        };
        self.next_past[0] = step;
        for i in 1..DIFFERENCES {
            self.next_past[i] = self.past[i - 1] + step;
        }
        for i in 1..=k.min(DIFFERENCES - 1) {
            c.beta[i] = c.beta[i - 1] * self.next_past[i - 1] / self.past[i - 1];
        }
        // Row i of g_{i,q} needs one entry less than row i − 1; it overwrites that row in place.
        let mut g: [f64; DIFFERENCES + 1] = std::array::from_fn(|q| 1.0 / (q + 1) as f64);
        c.integral[0] = 1.0;
        for i in 1..=k {
            let ratio = step / self.next_past[i - 1];
            for q in 0..=k - i {
                // The first row is 1/q and the second 1/(q(q+1)), for which the ratio is 1.
                g[q] -= ratio * g[q + 1];
            }
            c.integral[i] = g[0];
            c.sigma[i] = i as f64 * ratio * c.sigma[i - 1];
        }
        c
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.differences[i * self.n..(i + 1) * self.n]
    }

    /// Root mean square of a vector in units of the tolerance.
    fn size(&self, v: &[f64]) -> f64 {
        let sum: f64 = v.iter().zip(&self.weights).map(|(v, w)| (v * w) * (v * w)).sum();
        (sum / self.n.max(1) as f64).sqrt()
    }

    /// Computes Φ_i(n+1) from the slope at the candidate: Φ_{i+1}(n+1) = Φ_i(n+1) − Φ*_i(n).
    fn update_differences(&mut self, c: &Coefficients) {
        let (n, k) = (self.n, self.order);
        for i in 0..=k {
            let (done, rest) = self.next_differences.split_at_mut((i + 1) * n);
            let (newer, out) = (&done[i * n..], &mut rest[..n]);
            let older = &self.differences[i * n..(i + 1) * n];
            for ((out, newer), older) in out.iter_mut().zip(newer).zip(older) {
                *out = newer - c.beta[i] * older;
            }
        }
    }

    /// Chooses the order of the next step and returns the estimated error of the accepted step at that order.
    ///
    /// The rule of Shampine & Gordon: the order is lowered when the errors at the lower orders are not larger, and raised
    /// only after enough steps of equal length, for which the error estimate at the higher order is valid.
    fn next_order(&mut self) -> f64 {
        let (k, e) = (self.order, self.errors);
        if self.prefers_lower() {
            self.order = k - 1;
            self.starting = false;
            return e.lower;
        }
        if self.starting && k < HIGHEST_ORDER {
            self.order = k + 1;
            return e.same;
        }
        self.starting = false;
        if k == HIGHEST_ORDER || self.equal_steps <= k {
            return e.same;
        }
        let next = &self.next_differences[(k + 1) * self.n..(k + 2) * self.n];
        let higher = self.step.abs() * error_coefficients()[k + 1] * self.size(next);
        if k > 1 && e.lower <= e.same.min(higher) {
            self.order = k - 1;
            e.lower
        } else if higher < if k == 1 { 0.5 * e.same } else { e.same } {
            self.order = k + 1;
            higher
        } else {
            e.same
        }
    }

    /// Whether the errors at the lower orders are small enough to lower the order.
    fn prefers_lower(&self) -> bool {
        let e = self.errors;
        match self.order {
            1 => false,
            2 => e.lower <= 0.5 * e.same,
            _ => e.lower.max(e.lowest) <= e.same,
        }
    }
}

/// Coefficients of a step, the same for all components.
struct Coefficients {
    /// β_i, at index i − 1.
    beta: [f64; DIFFERENCES],
    /// g_{i,1}.
    integral: [f64; DIFFERENCES],
    /// σ_i, with which γ*_i σ_{i+1} is the error coefficient on steps of unequal length.
    sigma: [f64; DIFFERENCES],
}

impl Stepper for Adams {
    fn begin(&mut self, field: &mut Counted<'_>, time: f64, state: &[f64]) -> bool {
        self.state.copy_from_slice(state);
        field.derivative(time, &self.state, &mut self.differences[..self.n]);
        all_finite(self.row(0))
    }

    fn state(&self) -> &[f64] {
        &self.state
    }

    fn slope(&self) -> &[f64] {
        self.row(0)
    }

    fn attempt(&mut self, field: &mut Counted<'_>, time: f64, step: f64, tolerance: Tolerance) -> f64 {
        let (n, k) = (self.n, self.order);
        self.equal_steps = if step == self.step { self.equal_steps + 1 } else { 1 };
        self.step = step;
        self.tolerance = tolerance;
        let c = self.coefficients(step);
        // The predicted state, and the slope of the interpolating polynomial at the new point, Σ_i Φ*_i.
        self.predicted.copy_from_slice(&self.state);
        self.slope.fill(0.0);
        for i in (0..k).rev() {
            let (beta, weight) = (c.beta[i], step * c.integral[i] * c.beta[i]);
            let row = &self.differences[i * n..(i + 1) * n];
            for ((p, s), phi) in self.predicted.iter_mut().zip(&mut self.slope).zip(row) {
                *p += weight * phi;
                *s += beta * phi;
            }
        }
        let (residual, rest) = self.next_differences.split_at_mut(n);
        field.derivative(time + step, &self.predicted, residual);
        let rest = &mut rest[..2 * n];
        let (lower, lowest) = rest.split_at_mut(n);
        // The highest difference at the new point, Φ_{k+1}(n+1) = f − Σ_i Φ*_i, gives the corrector and the error
        // estimate. Adding Φ*_k, and then Φ*_{k−1}, gives the differences that estimate the errors at orders k − 1 and
        // k − 2.
        let weight = step * c.integral[k];
        let row = |i: usize| &self.differences[i * n..(i + 1) * n];
        let (last, before) = (row(k - 1), row(k.saturating_sub(2)));
        for i in 0..n {
            residual[i] -= self.slope[i];
            lower[i] = residual[i] + c.beta[k - 1] * last[i];
            lowest[i] = lower[i] + c.beta[k.saturating_sub(2)] * before[i];
            self.candidate[i] = self.predicted[i] + weight * residual[i];
            let size = self.state[i].abs().max(self.candidate[i].abs());
            self.weights[i] = 1.0 / (tolerance.absolute + tolerance.relative * size);
        }
        let gamma = error_coefficients();
        let length = step.abs();
        let highest = self.size(&self.next_differences[..n]);
        let error = length * (c.integral[k] - c.integral[k - 1]).abs() * highest;
        self.errors = Errors {
            same: length * c.sigma[k] * gamma[k] * highest,
            lower: if k > 1 {
                length * c.sigma[k - 1] * gamma[k - 1] * self.size(&self.next_differences[n..2 * n])
            } else {
                f64::INFINITY
            },
            lowest: if k > 2 {
                length * c.sigma[k - 2] * gamma[k - 2] * self.size(&self.next_differences[2 * n..3 * n])
            } else {
                0.0
            },
        };
        if !error.is_finite() {
            return f64::INFINITY;
        }
        if error > 1.0 {
            return error;
        }
        field.derivative(time + step, &self.candidate, &mut self.next_differences[..n]);
        if !all_finite(&self.next_differences[..n]) {
            return f64::INFINITY;
        }
        self.update_differences(&c);
        error
    }

    fn candidate(&self) -> &[f64] {
        &self.candidate
    }

    /// Evaluates y(t) = y_{n+1} − ∫_t^{t_{n+1}} P, where P is the polynomial through the slopes at the last k + 1 points,
    ///
    ///   P(t) = Σ_i Φ_i(n+1) Π_{j<i} (t − t_{n+2−j})/ψ_j(n+1).
    ///
    /// The integral is a Gauss-Legendre sum, which is exact for polynomials of this degree.
    fn interpolate(&self, step: f64, share: f64, out: &mut [f64]) {
        // P has degree k, and a rule of m nodes is exact up to degree 2m − 1.
        let rule = gauss_legendre(self.order / 2 + 1);
        let (from, used) = ((share - 1.0) * step, self.order + 1);
        let mut integral = [0.0; DIFFERENCES];
        for (node, weight) in rule.nodes.iter().zip(&rule.weights) {
            // `at` is t − t_{n+1}; the product runs over the past points.
            let at = from * 0.5 * (1.0 + node);
            let mut product = 1.0;
            for i in 0..used {
                integral[i] += 0.5 * weight * product;
                let behind = if i == 0 { 0.0 } else { self.next_past[i - 1] };
                product *= (at + behind) / self.next_past[i];
            }
        }
        out.copy_from_slice(&self.candidate);
        for (i, weight) in integral.iter().enumerate().take(used) {
            let row = &self.next_differences[i * self.n..(i + 1) * self.n];
            for (out, phi) in out.iter_mut().zip(row) {
                *out += from * weight * phi;
            }
        }
    }

    fn advance(&mut self) {
        std::mem::swap(&mut self.state, &mut self.candidate);
        std::mem::swap(&mut self.differences, &mut self.next_differences);
        std::mem::swap(&mut self.past, &mut self.next_past);
    }

    fn own_factor(&mut self, error: f64) -> Option<f64> {
        if error > 1.0 {
            self.failures += 1;
            self.starting = false;
            if self.prefers_lower() {
                self.order -= 1;
            }
            if self.failures >= 3 {
                // After three rejections in a row the past differences do not describe the solution, so the method
                // restarts at order 1, which uses the current slope alone.
                self.order = 1;
            }
            return Some(if error.is_finite() { 0.5 } else { 0.1 });
        }
        self.failures = 0;
        let was_starting = self.starting;
        let error = self.next_order();
        let power = (self.order + 1) as f64;
        // The step length is doubled or kept, so that most steps have equal length; only a reduction is by the factor
        // that the error asks for.
        Some(if (was_starting && self.starting) || error * power.exp2() <= TARGET_ERROR {
            2.0
        } else if error <= TARGET_ERROR {
            1.0
        } else {
            (TARGET_ERROR / error).powf(power.recip()).clamp(0.5, 0.9)
        })
    }

    fn step_control(&self) -> StepControl {
        // Only `order` is used, for the first step: `own_factor` chooses the length of all later ones.
        StepControl {
            order: 1.0,
            plain: 0.5,
            proportional: 0.5,
            integral: 0.0,
            safety: 0.9,
            shortest: 0.2,
            longest: 2.0,
        }
    }

    fn hint(&self) -> &'static str {
        EXPLICIT_HINT
    }
}
