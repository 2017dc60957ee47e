//! The right-hand side of a differential equation, its Jacobian by differences, and a wrapper that counts evaluations.

/// The right-hand side of  y' = f(t, y).
pub trait VectorField {
    /// Number of components of the state.
    fn dimension(&self) -> usize;

    /// Writes f(t, y) to `out`. Takes `&mut self` so that a field may own scratch buffers.
    ///
    /// If a value is not finite, the integrator repeats the step with a shorter length.
    fn derivative(&mut self, time: f64, state: &[f64], out: &mut [f64]);

    /// Writes the Jacobian ∂f_i/∂y_j to `out[i * n + j]`; only `Method::Stiff` needs it.
    ///
    /// The default uses [`forward_differences`], which evaluates the field n + 1 times or a few times more. An exact
    /// Jacobian is worth writing where it is cheap, because the steps become longer as well as cheaper.
    fn jacobian(&mut self, time: f64, state: &[f64], out: &mut [f64]) {
        forward_differences(|y, slope| self.derivative(time, y, slope), state, out);
    }

    /// Returns an upper bound on the spectral radius of the Jacobian, if one is known cheaply. Only `Method::Stabilised`
    /// uses it; without a bound it estimates the radius by power iteration.
    fn spectral_radius(&mut self, _time: f64, _state: &[f64]) -> Option<f64> {
        None
    }
}

/// Computes the Jacobian ∂f_i/∂y_j of `function(y, out)` by forward differences and writes it to `out[i * n + j]`.
///
/// The increments √(ε max(1e-5, |y_j|)) of Hairer & Wanner's RADAU5 balance rounding against truncation for
/// components of order one. A component far below that floor may still matter on its own scale (a fast intermediate
/// of a reaction), so it is first moved by √ε |y_j|, and by the larger increment only if the change of f is then not
/// resolved above the rounding of f.
pub fn forward_differences(mut function: impl FnMut(&[f64], &mut [f64]), state: &[f64], out: &mut [f64]) {
    const FLOOR: f64 = 1e-5;
    let n = state.len();
    let mut moved = state.to_vec();
    let mut base = vec![0.0; n];
    let mut there = vec![0.0; n];
    function(state, &mut base);
    for j in 0..n {
        let own = f64::EPSILON.sqrt() * state[j].abs();
        let common = (f64::EPSILON * state[j].abs().max(FLOOR)).sqrt();
        let small = state[j] != 0.0 && state[j].abs() < FLOOR;
        for length in [own, common].into_iter().skip(usize::from(!small)) {
            moved[j] = state[j] + length;
            // The increment that was really made, after the rounding of the sum.
            let increment = moved[j] - state[j];
            function(&moved, &mut there);
            let (mut change, mut size) = (0.0_f64, 0.0_f64);
            for i in 0..n {
                let difference = there[i] - base[i];
                out[i * n + j] = difference / increment;
                if difference.abs() > change {
                    (change, size) = (difference.abs(), base[i].abs());
                }
            }
            // The difference has as many correct digits as for a component of order one.
            if change > f64::EPSILON.sqrt() * size {
                break;
            }
        }
        moved[j] = state[j];
    }
}

/// A field given by a closure `f(time, state, out)`.
pub struct FieldFn<F> {
    dimension: usize,
    function: F,
}

impl<F: FnMut(f64, &[f64], &mut [f64])> FieldFn<F> {
    /// Wraps `function`, which has `dimension` components.
    pub fn new(dimension: usize, function: F) -> Self {
        FieldFn { dimension, function }
    }
}

impl<F: FnMut(f64, &[f64], &mut [f64])> VectorField for FieldFn<F> {
    fn dimension(&self) -> usize {
        self.dimension
    }

    fn derivative(&mut self, time: f64, state: &[f64], out: &mut [f64]) {
        (self.function)(time, state, out);
    }
}

/// A field that counts its evaluations, its Jacobians and the factorisations made with them.
pub(super) struct Counted<'a> {
    pub(super) field: &'a mut dyn VectorField,
    pub(super) evaluations: u64,
    pub(super) jacobians: u64,
    pub(super) factorisations: u64,
}

impl<'a> Counted<'a> {
    pub(super) fn new(field: &'a mut dyn VectorField) -> Self {
        Counted { field, evaluations: 0, jacobians: 0, factorisations: 0 }
    }

    pub(super) fn derivative(&mut self, time: f64, state: &[f64], out: &mut [f64]) {
        self.evaluations += 1;
        self.field.derivative(time, state, out);
    }

    pub(super) fn jacobian(&mut self, time: f64, state: &[f64], out: &mut [f64]) {
        self.jacobians += 1;
        self.field.jacobian(time, state, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forward_differences_agree_with_the_exact_jacobian() {
        let mut field = FieldFn::new(2, |t: f64, y: &[f64], out: &mut [f64]| {
            out[0] = t * y[0] * y[1];
            out[1] = y[0].sin() - y[1].powi(3);
        });
        let (t, y) = (2.0, [0.3, -1e-7]);
        let mut got = [0.0; 4];
        field.jacobian(t, &y, &mut got);
        let exact = [t * y[1], t * y[0], y[0].cos(), -3.0 * y[1] * y[1]];
        for (got, exact) in got.iter().zip(exact) {
            // Truncation ½ |f''| δ and rounding ε/δ, δ = √(ε/3) to √(1e-5 ε): both below 1e-7.
            assert!((got - exact).abs() < 1e-7, "{got} {exact}");
        }
    }

    #[test]
    fn a_tiny_component_is_differentiated_on_its_own_scale() {
        // ∂/∂y (3e7 y²) at y = 1e-13 is 6e-6; an increment of order 1e-11 would answer 3e-4.
        let mut got = [0.0; 4];
        let function = |y: &[f64], out: &mut [f64]| {
            out[0] = 3e7 * y[0] * y[0];
            out[1] = 1.0 + 2.0 * y[1];
        };
        forward_differences(function, &[1e-13, 1e-13], &mut got);
        assert!((got[0] / 6e-6 - 1.0).abs() < 1e-7, "{got:?}");
        // Added to 1, a change of 1e-21 would be lost to rounding, so the larger increment is used.
        assert!((got[3] - 2.0).abs() < 1e-4, "{got:?}");
    }
}
