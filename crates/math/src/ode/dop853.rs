//! The explicit Runge-Kutta method of Dormand & Prince of order 8(5,3); coefficients and references in
//! `dop853_tableau.rs`.

use super::control::{StepControl, Tolerance};
use super::dop853_tableau::{
    A2, A3, A4, A5, A6, A7, A8, A9, A10, A11, A12, A14, A15, A16, B, C, DENSE, DENSE_STAGES, ERROR3, ERROR5,
};
use super::field::Counted;
use super::stages::{EXPLICIT_HINT, Row, Stages, Stepper, all_finite, combine, displace};

/// Position of f(t + h, y_new) among the stages.
const NEW_SLOPE: usize = 12;

/// Dormand-Prince 8(5,3).
pub(super) struct Dop853 {
    stages: Stages,
}

impl Dop853 {
    pub(super) fn new(n: usize) -> Self {
        Dop853 { stages: Stages::new(n, 13) }
    }
}

/// Returns the weights b_i(θ), θ = `share`, of the interpolant  y(t + θh) = y + h Σ_i b_i(θ) k_i,  of order 7:
///
///   θ(Δ + θ̄(k_1 − Δ + θ(2Δ − k_1 − k_13 + θ̄(D_1 + θ(D_2 + θ̄(D_3 + θ D_4)))))),   θ̄ = 1 − θ,  Δ = Σ b_i k_i,
///
/// the cubic Hermite polynomial through both ends with four corrections D.
pub(super) fn interpolant(share: f64) -> Row<12> {
    let rest = 1.0 - share;
    // θ(1 − θ) and θ²(1 − θ).
    let quadratic = share * rest;
    let cubic = share * quadratic;
    let end = share - quadratic + 2.0 * cubic;
    let p1 = quadratic * quadratic;
    let p2 = share * p1;
    let p3 = rest * p2;
    let p4 = share * p3;
    let mut row = DENSE_STAGES.map(|stage| (stage, 0.0));
    for (i, (_, weight)) in row.iter_mut().enumerate() {
        *weight = p1 * DENSE[0][i] + p2 * DENSE[1][i] + p3 * DENSE[2][i] + p4 * DENSE[3][i];
    }
    // The stages of B are the first eight of DENSE_STAGES, the new slope is the ninth.
    for (i, (_, b)) in B.into_iter().enumerate() {
        row[i].1 += end * b;
    }
    row[0].1 += quadratic - cubic;
    row[8].1 -= cubic;
    row
}

impl Stepper for Dop853 {
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
        s.evaluate(field, time + C[6] * step, step, 6, &A7);
        s.evaluate(field, time + C[7] * step, step, 7, &A8);
        s.evaluate(field, time + C[8] * step, step, 8, &A9);
        s.evaluate(field, time + C[9] * step, step, 9, &A10);
        s.evaluate(field, time + C[10] * step, step, 10, &A11);
        s.evaluate(field, time + C[11] * step, step, 11, &A12);
        displace(&mut s.candidate, &s.state, step, &B, &s.k);

        // Hairer's combination: err = err5 · err5 / √(err5² + 0.01 err3²) scales as h^8 and stays
        // reliable where the fifth-order estimate happens to vanish.
        combine(&mut s.scratch, step, &ERROR5, &s.k);
        let fifth = tolerance.mean_square(&s.scratch, &s.state, &s.candidate);
        combine(&mut s.scratch, step, &ERROR3, &s.k);
        let third = tolerance.mean_square(&s.scratch, &s.state, &s.candidate);
        let both = fifth + 0.01 * third;
        let error = if both == 0.0 { 0.0 } else { fifth / both.sqrt() };
        if error.is_nan() {
            return f64::INFINITY;
        }
        if error <= 1.0 {
            s.evaluate_candidate(field, time + step, NEW_SLOPE);
            if !all_finite(&s.k[NEW_SLOPE]) {
                return f64::INFINITY;
            }
        }
        error
    }

    fn prepare_interpolant(&mut self, field: &mut Counted<'_>, time: f64, step: f64) {
        let s = &mut self.stages;
        // The extra stages are allocated at the first interpolation, so that runs without one do not need their memory.
        let n = s.state.len();
        s.k.resize_with(16, || vec![0.0; n]);
        s.evaluate(field, time + C[13] * step, step, 13, &A14);
        s.evaluate(field, time + C[14] * step, step, 14, &A15);
        s.evaluate(field, time + C[15] * step, step, 15, &A16);
    }

    fn interpolate(&self, step: f64, share: f64, out: &mut [f64]) {
        displace(out, &self.stages.state, step, &interpolant(share), &self.stages.k);
    }

    fn advance(&mut self) {
        self.stages.advance(NEW_SLOPE);
    }

    fn step_control(&self) -> StepControl {
        // The constants of Hairer's code DOP853, with the weight 0.04 that it recommends for the previous error.
        StepControl {
            order: 8.0,
            plain: 1.0 / 8.0,
            proportional: 1.0 / 8.0 - 0.2 * 0.04,
            integral: 0.04,
            safety: 0.9,
            shortest: 1.0 / 3.0,
            longest: 6.0,
        }
    }

    fn hint(&self) -> &'static str {
        EXPLICIT_HINT
    }
}
