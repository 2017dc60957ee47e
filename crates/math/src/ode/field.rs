//! What is integrated.

/// The right-hand side of  y' = f(t, y).
pub trait VectorField {
    /// Number of components of the state.
    fn dimension(&self) -> usize;

    /// Write f(t, y) to `out`. Takes `&mut self` so that a field may own scratch buffers.
    ///
    /// A value that is not finite tells the integrator that it went too far: the step is repeated with a shorter length.
    fn derivative(&mut self, time: f64, state: &[f64], out: &mut [f64]);

    /// Write the Jacobian ∂f_i/∂y_j to `out[i * n + j]`; only `Method::Stiff` asks for it.
    ///
    /// The default takes n + 1 derivatives for forward differences, with increments √(ε max(1e-5, |y_j|)) as in Hairer & Wanner's RADAU5:
    /// they weigh rounding against truncation for components of order one and stay meaningful for small ones.
    fn jacobian(&mut self, time: f64, state: &[f64], out: &mut [f64]) {
        let n = self.dimension();
        let mut moved = state.to_vec();
        let mut base = vec![0.0; n];
        let mut there = vec![0.0; n];
        self.derivative(time, state, &mut base);
        for j in 0..n {
            moved[j] = state[j] + (f64::EPSILON * state[j].abs().max(1e-5)).sqrt();
            // The increment as the machine sees it, free of the rounding of the sum.
            let increment = moved[j] - state[j];
            self.derivative(time, &moved, &mut there);
            for i in 0..n {
                out[i * n + j] = (there[i] - base[i]) / increment;
            }
            moved[j] = state[j];
        }
    }

    /// An upper bound on the spectral radius of the Jacobian, if one is known cheaply; only `Method::Stabilised` asks
    /// for it, and estimates it by power iteration otherwise.
    fn spectral_radius(&mut self, _time: f64, _state: &[f64]) -> Option<f64> {
        None
    }
}

/// A field given by a closure `f(time, state, out)`.
pub struct FieldFn<F> {
    dimension: usize,
    function: F,
}

impl<F: FnMut(f64, &[f64], &mut [f64])> FieldFn<F> {
    /// The field of `function` in `dimension` components.
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

/// A field that counts the work asked of it.
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
}
