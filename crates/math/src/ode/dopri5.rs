//! The explicit Runge-Kutta pair of Dormand & Prince of order 5(4).
//!
//! J. R. Dormand & P. J. Prince, J. Comput. Appl. Math. 6 (1980) 19; interpolant of order 4 by Shampine, Math.
//! Comp. 46 (1986) 135; as in Hairer, Nørsett & Wanner, *Solving ODEs I* (2nd ed.), tables II.5.2 and §II.6.

use super::control::{StepControl, Tolerance};
use super::field::Counted;
use super::stages::{EXPLICIT_HINT, Row, Stages, Stepper, all_finite, combine, displace};

/// Nodes c_i.
pub(super) const C: [f64; 7] = [0.0, 0.2, 0.3, 0.8, 8.0 / 9.0, 1.0, 1.0];
pub(super) const A2: Row<1> = [(0, 0.2)];
pub(super) const A3: Row<2> = [(0, 3.0 / 40.0), (1, 9.0 / 40.0)];
pub(super) const A4: Row<3> = [(0, 44.0 / 45.0), (1, -56.0 / 15.0), (2, 32.0 / 9.0)];
pub(super) const A5: Row<4> =
    [(0, 19372.0 / 6561.0), (1, -25360.0 / 2187.0), (2, 64448.0 / 6561.0), (3, -212.0 / 729.0)];
pub(super) const A6: Row<5> = [
    (0, 9017.0 / 3168.0),
    (1, -355.0 / 33.0),
    (2, 46732.0 / 5247.0),
    (3, 49.0 / 176.0),
    (4, -5103.0 / 18656.0),
];
/// Weights of the solution. They are also the last row of the tableau, so that the slope at the new point serves as the
/// first stage of the next step.
pub(super) const B: Row<5> =
    [(0, 35.0 / 384.0), (2, 500.0 / 1113.0), (3, 125.0 / 192.0), (4, -2187.0 / 6784.0), (5, 11.0 / 84.0)];
/// Weights of the error estimate: those of order 5 minus those of order 4.
pub(super) const ERROR: Row<6> = [
    (0, 71.0 / 57600.0),
    (2, -71.0 / 16695.0),
    (3, 71.0 / 1920.0),
    (4, -17253.0 / 339200.0),
    (5, 22.0 / 525.0),
    (6, -1.0 / 40.0),
];
/// Shampine's correction to the cubic Hermite interpolant.
const DENSE: [f64; 7] = [
    -12715105075.0 / 11282082432.0,
    0.0,
    87487479700.0 / 32700410799.0,
    -10690763975.0 / 1880347072.0,
    701980252875.0 / 199316789632.0,
    -1453857185.0 / 822651844.0,
    69997945.0 / 29380423.0,
];

/// Dormand-Prince 5(4).
pub(super) struct Dopri5 {
    stages: Stages,
}

impl Dopri5 {
    pub(super) fn new(n: usize) -> Self {
        Dopri5 { stages: Stages::new(n, 7) }
    }
}

/// Returns the weights b_i(θ), θ = `share`, of the interpolant  y(t + θh) = y + h Σ_i b_i(θ) k_i:  the cubic Hermite polynomial through both
/// ends plus θ²(1−θ)² Σ d_i k_i.
pub(super) fn interpolant(share: f64) -> Row<6> {
    let rest = 1.0 - share;
    // θ(1 − θ) and θ²(1 − θ).
    let quadratic = share * rest;
    let cubic = share * quadratic;
    let correction = quadratic * quadratic;
    let end = share - quadratic + 2.0 * cubic;
    let mut weights = [0.0; 7];
    for (stage, b) in B {
        weights[stage] = end * b;
    }
    weights[0] += quadratic - cubic;
    weights[6] -= cubic;
    [0, 2, 3, 4, 5, 6].map(|i| (i, weights[i] + correction * DENSE[i]))
}

impl Stepper for Dopri5 {
    fn begin(&mut self, field: &mut Counted<'_>, time: f64, state: &[f64]) -> bool {
        self.stages.begin(field, time, state)
    }

    fn state(&self) -> &[f64] {
        &self.stages.state
    }

    fn slope(&self) -> &[f64] {
        &self.stages.k[0]
    }

    fn candidate(&self) -> &[f64] {
        &self.stages.candidate
    }

    fn attempt(&mut self, field: &mut Counted<'_>, time: f64, step: f64, tolerance: Tolerance) -> f64 {
        let s = &mut self.stages;
        s.evaluate(field, time + C[1] * step, step, 1, &A2);
        s.evaluate(field, time + C[2] * step, step, 2, &A3);
        s.evaluate(field, time + C[3] * step, step, 3, &A4);
        s.evaluate(field, time + C[4] * step, step, 4, &A5);
        s.evaluate(field, time + C[5] * step, step, 5, &A6);
        displace(&mut s.candidate, &s.state, step, &B, &s.k);
        s.evaluate_candidate(field, time + step, 6);
        combine(&mut s.scratch, step, &ERROR, &s.k);
        let error = tolerance.mean_square(&s.scratch, &s.state, &s.candidate).sqrt();
        if error.is_nan() || !all_finite(&s.k[6]) { f64::INFINITY } else { error }
    }

    fn interpolate(&self, step: f64, share: f64, out: &mut [f64]) {
        displace(out, &self.stages.state, step, &interpolant(share), &self.stages.k);
    }

    fn advance(&mut self) {
        self.stages.advance(6);
    }

    fn step_control(&self) -> StepControl {
        // The constants of Hairer's code DOPRI5.
        StepControl {
            order: 5.0,
            plain: 0.2,
            proportional: 0.2 - 0.75 * 0.04,
            integral: 0.04,
            safety: 0.9,
            shortest: 0.2,
            longest: 10.0,
        }
    }

    fn hint(&self) -> &'static str {
        EXPLICIT_HINT
    }
}
