//! Problems with known solutions, shared by the tests.

use super::{FieldFn, VectorField};

pub(super) type FunctionField = FieldFn<fn(f64, &[f64], &mut [f64])>;

/// y'' = −y.
pub(super) fn oscillator() -> FunctionField {
    FieldFn::new(2, |_t, y, out| {
        out[0] = y[1];
        out[1] = -y[0];
    })
}

/// y' = y(1 − y);  y(t) = 1/(1 + e^{−t} (1 − y0)/y0).
pub(super) fn logistic() -> FunctionField {
    FieldFn::new(1, |_t, y, out| out[0] = y[0] * (1.0 - y[0]))
}

/// A problem with its exact solution.
pub(super) struct Solved {
    pub(super) field: FunctionField,
    pub(super) exact: fn(f64) -> [f64; 2],
}

/// A nonlinear, non-autonomous problem with the solution y = (1/(1+t²), e^{sin t}), coupled away from it.
pub(super) fn coupled() -> Solved {
    Solved {
        field: FieldFn::new(2, |t, y, out| {
            out[0] = -2.0 * t * y[0] * y[0];
            out[1] = y[1] * t.cos() + (y[0] * (1.0 + t * t) - 1.0) * y[1];
        }),
        exact: |t| [1.0 / (1.0 + t * t), t.sin().exp()],
    }
}

/// The restricted three-body problem, a start on a periodic orbit, and the period (Hairer, Nørsett & Wanner, §II.0).
pub(super) fn arenstorf() -> (FunctionField, [f64; 4], f64) {
    let field: FunctionField = FieldFn::new(4, |_t, y, out| {
        let moon = 0.012277471;
        let earth = 1.0 - moon;
        let d1 = ((y[0] + moon).powi(2) + y[1] * y[1]).powf(1.5);
        let d2 = ((y[0] - earth).powi(2) + y[1] * y[1]).powf(1.5);
        out[0] = y[2];
        out[1] = y[3];
        out[2] = y[0] + 2.0 * y[3] - earth * (y[0] + moon) / d1 - moon * (y[0] - earth) / d2;
        out[3] = y[1] - 2.0 * y[2] - earth * y[1] / d1 - moon * y[1] / d2;
    });
    (field, [0.994, 0.0, 0.0, -2.001_585_106_379_082_5], 17.065_216_560_157_962)
}

/// The van der Pol oscillator ε y'' = (1 − y²) y' − y, with a Jacobian by differences.
pub(super) fn van_der_pol(epsilon: f64) -> FieldFn<impl FnMut(f64, &[f64], &mut [f64])> {
    FieldFn::new(2, move |_t: f64, y: &[f64], out: &mut [f64]| {
        out[0] = y[1];
        out[1] = ((1.0 - y[0] * y[0]) * y[1] - y[0]) / epsilon;
    })
}

/// Robertson's stiff chemical kinetics (Hairer & Wanner, *Solving ODEs II*, §IV.1).
pub(super) struct Robertson;

impl VectorField for Robertson {
    fn dimension(&self) -> usize {
        3
    }

    fn derivative(&mut self, _time: f64, y: &[f64], out: &mut [f64]) {
        let slow = 0.04 * y[0];
        let back = 1e4 * y[1] * y[2];
        let fast = 3e7 * y[1] * y[1];
        out[0] = -slow + back;
        out[1] = slow - back - fast;
        out[2] = fast;
    }

    fn jacobian(&mut self, _time: f64, y: &[f64], out: &mut [f64]) {
        let (by1, by2, fast) = (1e4 * y[2], 1e4 * y[1], 6e7 * y[1]);
        out.copy_from_slice(&[-0.04, by1, by2, 0.04, -by1 - fast, -by2, 0.0, fast, 0.0]);
    }
}
