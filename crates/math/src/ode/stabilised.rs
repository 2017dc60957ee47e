//! RKC, the Runge-Kutta-Chebyshev method of order 2.
//!
//! B. P. Sommeijer, L. F. Shampine & J. G. Verwer, *RKC: an explicit solver for parabolic PDEs*, J. Comput. Appl.
//! Math. 88 (1998) 315. With s stages the method is stable along the negative real axis up to h ρ ≈ 0.65 s², where ρ is
//! the spectral radius of the Jacobian, so the number of evaluations grows only as √ρ. It stores eight vectors,
//! whatever s is.

use super::control::{StepControl, Tolerance};
use super::field::Counted;
use super::stages::{Stepper, all_finite};

/// Damping ε of the Chebyshev polynomials, with the value of the paper.
const DAMPING: f64 = 2.0 / 13.0;
/// Number of steps after which the spectral radius is estimated again, with the value of the paper.
const RADIUS_LIFETIME: u32 = 25;

/// RKC with its estimate of the spectral radius.
pub(super) struct Chebyshev {
    state: Vec<f64>,
    slope: Vec<f64>,
    candidate: Vec<f64>,
    new_slope: Vec<f64>,
    /// The previous stage of the recurrence.
    previous: Vec<f64>,
    /// The stage before it; also a scratch buffer outside the recurrence.
    before: Vec<f64>,
    /// Derivative at the previous stage.
    stage_slope: Vec<f64>,
    /// Approximate eigenvector of the largest eigenvalue, kept from one estimate to the next.
    direction: Vec<f64>,
    /// Bound or estimate of the spectral radius.
    radius: f64,
    /// Accepted steps since the last estimate; `None` if a new one is needed.
    age: Option<u32>,
}

impl Chebyshev {
    pub(super) fn new(n: usize) -> Self {
        let zeros = || vec![0.0; n];
        Chebyshev {
            state: zeros(),
            slope: zeros(),
            candidate: zeros(),
            new_slope: zeros(),
            previous: zeros(),
            before: zeros(),
            stage_slope: zeros(),
            direction: zeros(),
            radius: 0.0,
            age: None,
        }
    }

    /// Sets the spectral radius of the Jacobian: the bound of the field, or an estimate by power iteration on
    /// (f(y + δv) − f(y))/δ. The estimate is raised by 20 % because it converges from below.
    fn estimate_radius(&mut self, field: &mut Counted<'_>, time: f64) {
        if let Some(bound) = field.field.spectral_radius(time, &self.state) {
            self.radius = bound;
            return;
        }
        let mut length = norm(&self.direction);
        if !(length > 0.0 && length.is_finite()) {
            // The slope has large components along the fast modes. The small alternating part avoids a start that is
            // exactly orthogonal to them.
            for (i, (v, f)) in self.direction.iter_mut().zip(&self.slope).enumerate() {
                *v = f + if i % 2 == 0 { f64::EPSILON } else { -f64::EPSILON };
            }
            length = norm(&self.direction);
        }
        let size = f64::EPSILON.sqrt() * norm(&self.state).max(f64::EPSILON.sqrt());
        let mut estimate = 0.0_f64;
        for iteration in 0..50 {
            let scale = size / length;
            for ((moved, y), v) in self.before.iter_mut().zip(&self.state).zip(&self.direction) {
                *moved = y + scale * v;
            }
            field.derivative(time, &self.before, &mut self.stage_slope);
            for ((v, there), here) in self.direction.iter_mut().zip(&self.stage_slope).zip(&self.slope) {
                *v = there - here;
            }
            length = norm(&self.direction);
            let latest = length / size;
            if !(latest > 0.0 && latest.is_finite()) {
                break;
            }
            let settled = (latest - estimate).abs() <= 0.01 * latest;
            estimate = estimate.max(latest);
            if settled && iteration >= 2 {
                break;
            }
        }
        self.radius = 1.2 * estimate;
    }
}

/// Number of stages needed for stability: h ρ ≤ 0.653 (s² − 1), at least 2.
fn stage_count(step: f64, radius: f64) -> usize {
    (1.0 + (1.0 + 1.54 * step.abs() * radius).sqrt()) as usize
}

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}

impl Stepper for Chebyshev {
    fn begin(&mut self, field: &mut Counted<'_>, time: f64, state: &[f64]) -> bool {
        self.state.copy_from_slice(state);
        field.derivative(time, state, &mut self.slope);
        self.age = None;
        all_finite(&self.slope)
    }

    fn state(&self) -> &[f64] {
        &self.state
    }

    fn slope(&self) -> &[f64] {
        &self.slope
    }

    fn candidate(&self) -> &[f64] {
        &self.candidate
    }

    fn longest_step(&mut self, field: &mut Counted<'_>, time: f64, tolerance: Tolerance) -> f64 {
        if self.age.is_none_or(|age| age >= RADIUS_LIFETIME) {
            self.estimate_radius(field, time);
            self.age = Some(0);
        }
        // Rounding errors grow as s² ε within a step; as in the paper, they are kept below a tenth of the relative
        // tolerance.
        let most2 = tolerance.relative.max(1e-10) / (10.0 * f64::EPSILON);
        most2 / (1.54 * self.radius)
    }

    fn attempt(&mut self, field: &mut Counted<'_>, time: f64, step: f64, tolerance: Tolerance) -> f64 {
        let s = stage_count(step, self.radius);
        let count = s as f64;
        let w0 = 1.0 + DAMPING / (count * count);
        // w1 = T_s'(w0) / T_s''(w0) from T_s(cosh x) = cosh(s x).
        let root = (w0 * w0 - 1.0).sqrt();
        let argument = count * (w0 + root).ln();
        let w1 = argument.sinh() * root * root / (argument.cosh() * count * root - w0 * argument.sinh());
        // b_0 = b_1 = b_2; T_j, T_j', T_j'' at w0 by their recurrences.
        let (mut b1, mut b2) = (0.25 / (w0 * w0), 0.25 / (w0 * w0));
        let (mut t1, mut t2) = (w0, 1.0);
        let (mut dt1, mut dt2) = (1.0, 0.0);
        let (mut ddt1, mut ddt2) = (0.0, 0.0);
        let first = w1 * b1;
        let (mut c1, mut c2) = (first, 0.0);
        self.before.copy_from_slice(&self.state);
        for i in 0..self.state.len() {
            self.previous[i] = self.state[i] + step * first * self.slope[i];
        }
        for _ in 2..=s {
            let t = 2.0 * w0 * t1 - t2;
            let dt = 2.0 * w0 * dt1 - dt2 + 2.0 * t1;
            let ddt = 2.0 * w0 * ddt1 - ddt2 + 4.0 * dt1;
            let b = ddt / (dt * dt);
            let a1 = 1.0 - t1 * b1;
            let mu = 2.0 * w0 * b / b1;
            let nu = -b / b2;
            let mu_slope = mu * w1 / w0;
            field.derivative(time + c1 * step, &self.previous, &mut self.stage_slope);
            let n = self.candidate.len();
            let (y, f) = (&self.state[..n], &self.slope[..n]);
            let (y1, y2, f1) = (&self.previous[..n], &self.before[..n], &self.stage_slope[..n]);
            let rest = 1.0 - mu - nu;
            for i in 0..n {
                self.candidate[i] =
                    mu * y1[i] + nu * y2[i] + rest * y[i] + step * mu_slope * (f1[i] - a1 * f[i]);
            }
            let c = mu * c1 + nu * c2 + mu_slope * (1.0 - a1);
            // The candidate becomes the previous stage of the next iteration.
            std::mem::swap(&mut self.before, &mut self.previous);
            std::mem::swap(&mut self.previous, &mut self.candidate);
            (t2, t1, dt2, dt1, ddt2, ddt1) = (t1, t, dt1, dt, ddt1, ddt);
            (b2, b1, c2, c1) = (b1, b, c1, c);
        }
        std::mem::swap(&mut self.candidate, &mut self.previous);
        field.derivative(time + step, &self.candidate, &mut self.new_slope);
        // Error estimate of the paper: 0.8 (y − y_new) + 0.4 h (f + f_new), of order h³.
        for i in 0..self.state.len() {
            self.before[i] =
                0.8 * (self.state[i] - self.candidate[i]) + 0.4 * step * (self.slope[i] + self.new_slope[i]);
        }
        let error = tolerance.mean_square(&self.before, &self.state, &self.candidate).sqrt();
        let acceptable = error <= 1.0;
        if !acceptable && self.age.is_some_and(|age| age > 0) {
            // The rejection may be caused by instability, so the spectral radius is estimated again.
            self.age = None;
        }
        if error.is_nan() || !all_finite(&self.new_slope) { f64::INFINITY } else { error }
    }

    /// Evaluates the cubic Hermite polynomial through both ends of the step.
    fn interpolate(&self, step: f64, share: f64, out: &mut [f64]) {
        let rest = 1.0 - share;
        let end = share * share * (3.0 - 2.0 * share);
        let (first, last) = (step * share * rest * rest, -step * share * share * rest);
        for i in 0..out.len() {
            out[i] = self.state[i]
                + end * (self.candidate[i] - self.state[i])
                + first * self.slope[i]
                + last * self.new_slope[i];
        }
    }

    fn advance(&mut self) {
        std::mem::swap(&mut self.state, &mut self.candidate);
        std::mem::swap(&mut self.slope, &mut self.new_slope);
        self.age = self.age.map(|age| age + 1);
    }

    fn step_control(&self) -> StepControl {
        StepControl {
            order: 2.0,
            plain: 1.0 / 3.0,
            proportional: 0.7 / 3.0,
            integral: 0.4 / 3.0,
            safety: 0.8,
            shortest: 0.1,
            longest: 10.0,
        }
    }

    fn hint(&self) -> &'static str {
        "the Jacobian may have large complex eigenvalues or the field be discontinuous: try `Method::Stiff`"
    }
}
