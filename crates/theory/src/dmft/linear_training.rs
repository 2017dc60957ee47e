//! Least squares in closed form for momentum, weight decay, schedules and independent mini-batches, and for single samples drawn with
//! replacement (docs/derivations/training-rules.md#s5-3).

use super::linear::eigenvalues;
use didact_math::ode::{FieldFn, Method, OdeError, Options, Request, Stop, solve_watched};
use didact_model::training::{FactorSchedule, TimedNumber};
use std::ops::ControlFlow;

/// Training of f = θ·x on (f − y)²/2, y = θ_*·x + noise, |θ_*| = 1, with δ d samples, d → ∞.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearTraining {
    /// δ = n/d.
    pub ratio: f64,
    /// η.
    pub step: f64,
    /// Factor of η at every step.
    pub schedule: FactorSchedule,
    /// s², variance of the label noise.
    pub noise_variance: f64,
    /// |θ(0)|.
    pub start_length: f64,
    /// β at every step.
    pub beta: TimedNumber,
    /// Whether the gradient is taken ahead of the velocity.
    pub nesterov: bool,
    /// κ.
    pub weight_decay: f64,
    /// b: every step sees each sample with this probability.
    pub fraction: f64,
}

/// What is known at step t.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinearTrainingState {
    /// C_θ(t,*).
    pub overlap: f64,
    /// C_θ(t,t).
    pub squared_length: f64,
    /// C_θ(t,0).
    pub start_overlap: f64,
    /// Mean loss of fresh samples.
    pub test: f64,
    /// Mean loss over the training set.
    pub train: f64,
}

/// Position and velocity of one mode.
#[derive(Debug, Clone, Copy)]
struct Mode {
    x: f64,
    p: f64,
}

impl LinearTraining {
    /// Plain descent without noise from a start of unit length.
    pub fn new(ratio: f64, step: f64) -> Self {
        Self {
            ratio,
            step,
            schedule: FactorSchedule::default(),
            noise_variance: 0.0,
            start_length: 1.0,
            beta: TimedNumber::Fixed(0.0),
            nesterov: false,
            weight_decay: 0.0,
            fraction: 1.0,
        }
    }

    fn rates(&self, t: usize) -> (f64, f64) {
        (self.step * self.schedule.value(t as f64), self.beta.value(t as f64))
    }

    /// Where the gradient of step t is taken.
    fn read(&self, mode: Mode, t: usize) -> f64 {
        if self.nesterov { mode.x + self.rates(t).1 * mode.p } else { mode.x }
    }

    /// p ← β p − η (c y − force), x ← x + p.
    fn advance(&self, mode: &mut Mode, t: usize, c: f64, force: f64) {
        let (eta, beta) = self.rates(t);
        mode.p = beta * mode.p - eta * (c * self.read(*mode, t) - force);
        mode.x += mode.p;
    }

    /// The state after t steps: docs/derivations/training-rules.md#eq-14 and docs/derivations/training-rules.md#eq-15.
    pub fn at(&self, t: usize) -> LinearTrainingState {
        let (delta, s2, r2) = (self.ratio, self.noise_variance, self.start_length * self.start_length);
        let nodes = eigenvalues(delta, 2 * t + 2);
        let excess = (1.0 - self.fraction) / self.fraction;
        // Modes of every eigenvalue: without force from 1, with unit force from 0, and after a unit push at every earlier step.
        let mut free = vec![Mode { x: 1.0, p: 0.0 }; nodes.len()];
        let mut forced = vec![Mode { x: 0.0, p: 0.0 }; nodes.len()];
        let mut pushed: Vec<Vec<Mode>> = Vec::new();
        let average = |value: &dyn Fn(usize, f64) -> f64| -> f64 {
            nodes.iter().enumerate().map(|(n, (lambda, weight))| weight * value(n, *lambda)).sum()
        };
        // The train loss at θ, or where the gradient is taken, without and with what batches add.
        let smooth = |q: &dyn Fn(usize) -> f64, g: &dyn Fn(usize) -> f64| {
            0.5 * (r2 * average(&|n, l| l * q(n) * q(n))
                + average(&|n, l| l * (1.0 - l * g(n)).powi(2))
                + s2 * (1.0 + average(&|n, l| (l * g(n)).powi(2) - 2.0 * l * g(n)) / delta))
        };
        let mut losses: Vec<f64> = Vec::new();
        let batches = |power: i32, r: &dyn Fn(usize, usize) -> f64, losses: &[f64]| -> f64 {
            if excess == 0.0 {
                return 0.0;
            }
            let one = |(k, loss): (usize, &f64)| {
                self.rates(k).0.powi(2) * average(&|n, l| l.powi(power) * r(k, n).powi(2)) * loss
            };
            excess / delta * losses.iter().enumerate().map(one).sum::<f64>()
        };
        for now in 0..t {
            let q = |n: usize| self.read(free[n], now);
            let g = |n: usize| self.read(forced[n], now);
            let r = |k: usize, n: usize| self.read(pushed[k][n], now);
            let loss = smooth(&q, &g) + batches(2, &r, &losses);
            losses.push(loss);
            for (n, (lambda, _)) in nodes.iter().enumerate() {
                let c = lambda + self.weight_decay;
                self.advance(&mut free[n], now, c, 0.0);
                self.advance(&mut forced[n], now, c, 1.0);
                pushed.iter_mut().for_each(|modes| self.advance(&mut modes[n], now, c, 0.0));
            }
            pushed.push(vec![Mode { x: 1.0, p: 1.0 }; nodes.len()]);
        }
        let (q, g) = (|n: usize| free[n].x, |n: usize| forced[n].x);
        let r = |k: usize, n: usize| pushed[k][n].x;
        let overlap = average(&|n, l| l * g(n));
        let squared_length = r2 * average(&|n, _| q(n) * q(n))
            + average(&|n, l| (l * g(n)).powi(2))
            + s2 / delta * average(&|n, l| l * g(n) * g(n))
            + 2.0 * batches(1, &r, &losses);
        LinearTrainingState {
            overlap,
            squared_length,
            start_overlap: r2 * average(&|n, _| q(n)),
            test: 0.5 * (1.0 - 2.0 * overlap + squared_length + s2),
            train: smooth(&q, &g) + batches(2, &r, &losses),
        }
    }

    /// R_θ(t,s) = E[r(t,s)], s < t.
    pub fn response(&self, t: usize, s: usize) -> f64 {
        let mean = |(lambda, weight): (f64, f64)| {
            let mut mode = Mode { x: 1.0, p: 1.0 };
            (s + 1..t).for_each(|now| self.advance(&mut mode, now, lambda + self.weight_decay, 0.0));
            weight * mode.x
        };
        eigenvalues(self.ratio, t).into_iter().map(mean).sum()
    }
}

/// One sample per step, drawn with replacement from δ d of them, with step size η/d: the limit of small batches
/// (docs/derivations/training-rules.md#eq-16).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MultiPass {
    /// δ = n/d.
    pub ratio: f64,
    /// η.
    pub rate: f64,
    /// s², variance of the label noise.
    pub noise_variance: f64,
    /// |θ(0)|.
    pub start_length: f64,
}

/// What is known at a time alpha = steps/d.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MultiPassState {
    /// θ·θ_*.
    pub overlap: f64,
    /// |θ|².
    pub squared_length: f64,
    /// Mean loss of fresh samples.
    pub test: f64,
    /// Mean loss over the training set.
    pub train: f64,
}

impl MultiPass {
    /// The states at increasing times.
    pub fn at(&self, alpha: &[f64]) -> Result<Vec<MultiPassState>, OdeError> {
        let (delta, eta, s2, r2) =
            (self.ratio, self.rate, self.noise_variance, self.start_length * self.start_length);
        let nodes = eigenvalues(delta, 40);
        let average = |f: &dyn Fn(usize, f64) -> f64| -> f64 {
            nodes.iter().enumerate().map(|(n, (lambda, weight))| weight * f(n, *lambda)).sum()
        };
        let train = |t: f64, z: &[f64]| {
            let q = |l: f64| (-eta * l * t).exp();
            let flow = 0.5
                * ((1.0 + r2) * average(&|_, l| l * q(l) * q(l))
                    + s2 * (1.0 - 1.0 / delta + average(&|_, l| q(l) * q(l)) / delta));
            flow + eta * eta * average(&|n, l| l * l * z[n])
        };
        let mut field = FieldFn::new(nodes.len(), |t: f64, z: &[f64], out: &mut [f64]| {
            let loss = train(t, z);
            for ((out, z), (lambda, _)) in out.iter_mut().zip(z).zip(&nodes) {
                *out = loss - 2.0 * eta * lambda * z;
            }
        });
        let start = vec![0.0; nodes.len()];
        let options =
            Options { method: Method::Dop853, relative: 1e-11, absolute: 1e-13, ..Options::default() };
        let request = Request {
            start: 0.0,
            state: &start,
            end: alpha.last().copied().unwrap_or(0.0),
            save_at: alpha,
            events: &[],
            options: &options,
        };
        let solution = solve_watched(&mut field, &request, &mut |_| ControlFlow::Continue(()))?;
        debug_assert!(matches!(solution.report.stop, Stop::ReachedEnd | Stop::Diverged { .. }));
        let state = |(&t, z): (&f64, &Vec<f64>)| {
            let q = |l: f64| (-eta * l * t).exp();
            let moved = |l: f64| (-eta * l * t).exp_m1().powi(2);
            let overlap = average(&|_, l| -(-eta * l * t).exp_m1());
            let squared_length = r2 * average(&|_, l| q(l) * q(l))
                + average(&|_, l| moved(l))
                + s2 / delta * average(&|_, l| if l > 0.0 { moved(l) / l } else { 0.0 })
                + 2.0 * eta * eta * average(&|n, l| l * z[n]);
            MultiPassState {
                overlap,
                squared_length,
                test: 0.5 * (1.0 - 2.0 * overlap + squared_length + s2),
                train: train(t, z),
            }
        };
        Ok(alpha.iter().zip(&solution.states).map(state).collect())
    }
}

/// The steady state of a linear unit that follows a moving teacher, isotropic inputs (docs/derivations/training-rules.md#eq-19).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyTracking {
    /// η, below 2.
    pub rate: f64,
    /// s², variance of the label noise.
    pub noise_variance: f64,
}

impl SteadyTracking {
    /// Overlap R and loss under diffusion at rate ν.
    pub fn diffusion(&self, nu: f64) -> (f64, f64) {
        self.at(self.rate / (self.rate + nu))
    }

    /// Overlap R and loss under rotation with angular velocity ω per alpha.
    pub fn rotation(&self, omega: f64) -> (f64, f64) {
        self.at(self.rate * self.rate / (self.rate * self.rate + omega * omega))
    }

    fn at(&self, overlap: f64) -> (f64, f64) {
        let distance = (2.0 * (1.0 - overlap) + self.rate * self.noise_variance) / (2.0 - self.rate);
        (overlap, 0.5 * distance)
    }
}
