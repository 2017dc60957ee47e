//! Lazy training: any student replaced by its first-order expansion around where it starts.

use crate::rule::{Kick, Shape};
use crate::teacher_student::Student;
use didact_math::linalg::dot;

/// Where the trained rows of a lazy student start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// At zero: they are changes of the weights, not weights.
    Zero,
    /// At rows that are kept as frozen rows, in the same order, before the student's own frozen rows.
    Copies,
}

/// f_lin(h, a) = f(h⁰, a⁰) + Σ_i ∂_i f(h⁰, a⁰) (h_i − h⁰_i) + Σ_j ∂_{a_j} f(h⁰, a⁰) (a_j − a⁰_j):
/// the neural tangent kernel regime of any [`Student`] (Jacot, Gabriel & Hongler 2018; Chizat, Oyallon & Bach 2019).
///
/// It is linear in what is trained and as non-linear as before in the input.
#[derive(Debug, Clone)]
pub struct Linearised<S> {
    /// The network that is expanded.
    pub student: S,
    /// Where its rows start.
    pub origin: Origin,
    /// a⁰.
    pub scalars: Vec<f64>,
}

impl<S: Student> Linearised<S> {
    /// Calls `expand` with h⁰, fields in the order of the inner student.
    fn at_origin<T>(&self, fields: &[f64], expand: impl FnOnce(&[f64]) -> T) -> T {
        let inner = self.student.shape();
        match self.origin {
            // Copies and frozen rows stand one after the other, as the inner student reads them.
            Origin::Copies => expand(&fields[inner.trained..]),
            Origin::Zero => {
                let mut origin = fields[..inner.rows()].to_vec();
                origin[..inner.trained].fill(0.0);
                expand(&origin)
            }
        }
    }

    /// f_lin, with the gradient at the origin in `out`.
    fn expand(&self, fields: &[f64], scalars: &[f64], out: &mut Kick) -> f64 {
        let trained = self.student.shape().trained;
        self.at_origin(fields, |origin| {
            let start = self.student.gradient(origin, &self.scalars, out);
            start + dot(&out.rows, &fields[..trained]) - dot(&out.rows, &origin[..trained])
                + dot(&out.scalars, scalars)
                - dot(&out.scalars, &self.scalars)
        })
    }
}

impl<S: Student> Student for Linearised<S> {
    fn shape(&self) -> Shape {
        let inner = self.student.shape();
        match self.origin {
            Origin::Zero => inner,
            Origin::Copies => Shape { frozen: inner.trained + inner.frozen, ..inner },
        }
    }

    fn output(&self, fields: &[f64], scalars: &[f64]) -> f64 {
        self.expand(fields, scalars, &mut Kick::new(self.student.shape()))
    }

    fn gradient(&self, fields: &[f64], scalars: &[f64], out: &mut Kick) -> f64 {
        self.expand(fields, scalars, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// f = a h_0² + sin(h_1) with h_1 frozen.
    #[derive(Debug, Clone)]
    struct Curved;

    impl Student for Curved {
        fn shape(&self) -> Shape {
            Shape { trained: 1, frozen: 1, scalars: 1, ..Shape::default() }
        }
        fn output(&self, h: &[f64], a: &[f64]) -> f64 {
            a[0] * h[0] * h[0] + h[1].sin()
        }
        fn gradient(&self, h: &[f64], a: &[f64], out: &mut Kick) -> f64 {
            out.rows[0] = 2.0 * a[0] * h[0];
            out.scalars[0] = h[0] * h[0];
            self.output(h, a)
        }
    }

    #[test]
    fn it_is_the_tangent_at_the_start_and_no_longer_curved() {
        let lazy = Linearised { student: Curved, origin: Origin::Copies, scalars: vec![0.7] };
        assert_eq!(lazy.shape(), Shape { trained: 1, frozen: 2, scalars: 1, ..Shape::default() });
        // Trained field 1.5 that started at 1.2, frozen field 0.4, scalar 0.9 that started at 0.7.
        let tangent = 0.7 * 1.44 + 0.4f64.sin() + 2.0 * 0.7 * 1.2 * 0.3 + 1.44 * 0.2;
        assert!((lazy.output(&[1.5, 1.2, 0.4], &[0.9]) - tangent).abs() < 1e-15);
        let at_start = lazy.output(&[1.2, 1.2, 0.4], &[0.7]);
        assert!((at_start - Curved.output(&[1.2, 0.4], &[0.7])).abs() < 1e-15);
    }

    #[test]
    fn rows_that_start_at_zero_need_no_copies() {
        let lazy = Linearised { student: Curved, origin: Origin::Zero, scalars: vec![0.7] };
        assert_eq!(lazy.shape(), Curved.shape());
        let mut kick = Kick::new(lazy.shape());
        // At zero the square has no slope: only the frozen part is left.
        assert!((lazy.gradient(&[3.0, 0.4], &[0.7], &mut kick) - 0.4f64.sin()).abs() < 1e-15);
        assert_eq!(kick.rows, [0.0]);
    }
}
