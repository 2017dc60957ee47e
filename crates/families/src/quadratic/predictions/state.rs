//! The order parameters ρ and Q of an orthonormal teacher, and what follows from them in closed form:
//! docs/derivations/quadratic-networks.md#s2.

use didact_math::linalg::{Mat, cholesky_psd, dot};

/// ρ = W W*ᵀ (p × p*) and Q = W Wᵀ (p × p), teacher rows orthonormal.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// Overlaps of students with teachers.
    pub rho: Mat,
    /// Overlaps of students with each other.
    pub q: Mat,
}

impl State {
    /// Q = 1: orthonormal students.
    pub fn orthonormal(rho: Mat) -> Self {
        let q = Mat::identity(rho.rows());
        Self { rho, q }
    }

    /// p and p* as numbers.
    fn widths(&self) -> (f64, f64) {
        (self.rho.rows() as f64, self.rho.cols() as f64)
    }

    /// τ = 1 − tr(Q)/p.
    pub fn missing_norm(&self) -> f64 {
        1.0 - self.q.trace() / self.widths().0
    }

    /// N⊥ = Q − ρ ρᵀ, the Gram matrix of the students outside the teacher space.
    pub fn outside(&self) -> Mat {
        let mut outside = self.q.clone();
        outside.add_scaled(-1.0, &self.rho.gram());
        outside
    }

    /// The population risk `E[e²]`, never negative, exact to rounding also where it is tiny
    /// (docs/derivations/quadratic-networks.md#eq-2p).
    pub fn risk(&self) -> f64 {
        risk(&self.q, &self.rho, &Mat::identity(self.rho.cols()))
    }

    /// The risk as a polynomial of ρ and Q (docs/derivations/quadratic-networks.md#eq-2), with its cancellations:
    /// analytic also where N⊥ is not a Gram matrix.
    fn plain_risk(&self) -> f64 {
        let (p, teachers) = self.widths();
        let square = |m: &Mat| dot(m.as_slice(), m.as_slice());
        self.missing_norm().powi(2) + 2.0 / teachers - 4.0 / (p * teachers) * square(&self.rho)
            + 2.0 / (p * p) * square(&self.q)
    }

    /// dρ/dt of the gradient flow, t = η α:  (4/p) [(τ + 2/p*) ρ − (2/p) Q ρ]
    /// (docs/derivations/quadratic-networks.md#eq-6).
    pub fn flow_rho(&self) -> Mat {
        let (p, teachers) = self.widths();
        let mut out = self.rho.scaled(4.0 / p * (self.missing_norm() + 2.0 / teachers));
        out.add_scaled(-8.0 / (p * p), &self.q.times(&self.rho));
        out
    }

    /// dQ/dt of the gradient flow, t = η α:  (8/p) [τ Q + (2/p*) ρ ρᵀ − (2/p) Q²]
    /// (docs/derivations/quadratic-networks.md#eq-6).
    pub fn flow_q(&self) -> Mat {
        let (p, teachers) = self.widths();
        let mut out = self.q.scaled(8.0 / p * self.missing_norm());
        out.add_scaled(16.0 / (p * teachers), &self.rho.gram());
        out.add_scaled(-16.0 / (p * p), &self.q.times(&self.q));
        out
    }

    /// C = ⟨e² λ λᵀ⟩ = R Q + 4 τ (A/p* − Q²/p) + 8 (A/p*² − (A Q + Q A)/(p p*) + Q³/p²),  A = ρ ρᵀ
    /// (docs/derivations/quadratic-networks.md#eq-5).
    pub fn noise(&self) -> Mat {
        let (p, teachers) = self.widths();
        let (a, square) = (self.rho.gram(), self.q.times(&self.q));
        let (mixed, tau) = (a.times(&self.q), self.missing_norm());
        let mut out = self.q.scaled(self.plain_risk());
        out.add_scaled(4.0 * tau / teachers + 8.0 / (teachers * teachers), &a);
        out.add_scaled(-4.0 * tau / p, &square);
        out.add_scaled(-8.0 / (p * teachers), &mixed);
        out.add_scaled(-8.0 / (p * teachers), &mixed.transpose());
        out.add_scaled(8.0 / (p * p), &square.times(&self.q));
        out
    }

    /// dQ/dα at learning rate η (docs/derivations/quadratic-networks.md#eq-4), with label noise of variance Δ; at
    /// finite N the mean of N ΔQ has C (1 + 6/N) and Δ Q (1 + 2/N), since kick kickᵀ is homogeneous in the Gaussian
    /// input.
    pub fn rate_q(&self, learning_rate: f64, label_variance: f64, dimension: Option<f64>) -> Mat {
        let p = self.widths().0;
        let excess = |degree: f64| 1.0 + dimension.map_or(0.0, |n| degree / n);
        let weight = 16.0 * learning_rate * learning_rate / (p * p);
        let mut out = self.flow_q().scaled(learning_rate);
        out.add_scaled(weight * excess(6.0), &self.noise());
        out.add_scaled(weight * label_variance * excess(2.0), &self.q);
        out
    }
}

/// The risk `E[e²]` = tr(M)² + 2 tr(M²) for any teacher Gram T, free of cancellation
/// (docs/derivations/quadratic-networks.md#eq-2p):
///
///   R = (tr m + tr N⊥/p)² + 2 [‖m‖² + (2/p²) tr(ρ̃ᵀ N⊥ ρ̃) + ‖N⊥‖²/p²],   m = ρ̃ᵀρ̃/p − LᵀL/p*,
///
/// in the orthonormal frame of the teacher space, T = L Lᵀ, ρ = ρ̃ Lᵀ, N⊥ = Q − ρ̃ ρ̃ᵀ.
pub(in crate::quadratic) fn risk(q: &Mat, rho: &Mat, teacher: &Mat) -> f64 {
    let (p, teachers) = (rho.rows() as f64, rho.cols() as f64);
    // A teacher Gram that is no Gram only occurs in a diverging run.
    let Ok(lower) = cholesky_psd(teacher) else { return f64::NAN };
    let framed = in_teacher_frame(rho, &lower);
    let mut mismatch = framed.transpose().gram().scaled(1.0 / p);
    mismatch.add_scaled(-1.0 / teachers, &lower.transpose().gram());
    let mut outside = q.clone();
    outside.add_scaled(-1.0, &framed.gram());
    let square = |m: &Mat| dot(m.as_slice(), m.as_slice());
    // Nothing negative is left outside but rounding, and rounding must not make the risk negative.
    let mixed = dot(outside.times(&framed).as_slice(), framed.as_slice()).max(0.0);
    (mismatch.trace() + outside.trace() / p).powi(2)
        + 2.0 * (square(&mismatch) + (2.0 * mixed + square(&outside)) / (p * p))
}

/// ρ̃ with ρ = ρ̃ Lᵀ, by forward substitution; a dependent teacher row adds no coordinate.
fn in_teacher_frame(rho: &Mat, lower: &Mat) -> Mat {
    let mut framed = Mat::zeros(rho.rows(), rho.cols());
    for k in 0..rho.rows() {
        for l in 0..rho.cols() {
            let pivot = lower[(l, l)];
            if pivot > 0.0 {
                let known = dot(&framed.row(k)[..l], &lower.row(l)[..l]);
                framed[(k, l)] = (rho[(k, l)] - known) / pivot;
            }
        }
    }
    framed
}

#[cfg(test)]
pub(in crate::quadratic) mod tests {
    use super::*;
    use didact_math::random::{RngAddress, Stream};
    use proptest::prelude::*;

    /// A random state: rows of p students in p + p* + 1 dimensions, teachers on the first axes.
    pub(crate) fn random_state(p: usize, teachers: usize, size: f64, seed: u64) -> State {
        let mut stream = Stream::at(RngAddress { seed, replica: 0, step: 0, lane: 0 });
        let w = Mat::from_fn(p, p + teachers + 1, |_, _| size * stream.normal());
        State { rho: w.block(0..p, 0..teachers), q: w.gram() }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_cancellation_free_risk_is_the_printed_one(p in 1usize..5, teachers in 1usize..4, seed in 0u64..1000) {
            let state = random_state(p, teachers, 0.7, seed);
            prop_assert!((state.risk() - state.plain_risk()).abs() < 1e-12 * (1.0 + state.risk()));
        }

        #[test]
        fn the_risk_falls_at_the_squared_gradient_along_the_flow(p in 1usize..5, teachers in 1usize..4, seed in 0u64..1000) {
            // dW/dt = B W + c ρ W*, B = (4τ/p) 1 − (8/p²) Q, c = 8/(p p*), is −grad R: dR/dt = −|dW/dt|².
            let state = random_state(p, teachers, 0.6, seed);
            let wide = p as f64;
            let mut b = state.q.scaled(-8.0 / (wide * wide));
            (0..p).for_each(|i| b[(i, i)] += 4.0 / wide * state.missing_norm());
            let (c, a) = (8.0 / (wide * teachers as f64), state.rho.gram());
            let speed = b.times(&state.q).times(&b).trace() + 2.0 * c * b.times(&a).trace() + c * c * a.trace();
            let (rho, q) = (state.flow_rho(), state.flow_q());
            let moved = |by: f64| {
                let mut there = state.clone();
                there.rho.add_scaled(by, &rho);
                there.q.add_scaled(by, &q);
                there.plain_risk()
            };
            let h = 1e-5;
            let rate = (moved(h) - moved(-h)) / (2.0 * h);
            // The quotient of a polynomial of degree 4: error h² R‴/6.
            prop_assert!((rate + speed).abs() < 1e-7 * (1.0 + speed.powf(1.5)), "{rate} {speed}");
        }

        #[test]
        fn rotations_of_students_and_teachers_change_nothing(p in 2usize..5, seed in 0u64..1000) {
            let state = random_state(p, 2, 0.8, seed);
            let turn = |n: usize, angle: f64| Mat::from_fn(n, n, |i, j| match (i, j) {
                (0, 0) | (1, 1) => angle.cos(),
                (0, 1) => -angle.sin(),
                (1, 0) => angle.sin(),
                _ => f64::from(i == j),
            });
            let (o, v) = (turn(p, 0.7), turn(2, -1.1));
            let turned = State {
                rho: o.times(&state.rho).times(&v),
                q: o.times(&state.q).times(&o.transpose()),
            };
            prop_assert!((turned.risk() - state.risk()).abs() < 1e-12 * (1.0 + state.risk()));
            let mut difference = o.times(&state.noise()).times(&o.transpose());
            difference.add_scaled(-1.0, &turned.noise());
            prop_assert!(difference.max_abs() < 1e-11 * (1.0 + turned.noise().max_abs()));
        }
    }

    #[test]
    fn a_perfect_student_has_no_risk_to_the_last_digit_that_matters() {
        // W = √(p/p*) S W*: the polynomial (docs/derivations/quadratic-networks.md#eq-2) leaves rounding of order 1e-16
        // and may be negative, the sum of squares (docs/derivations/quadratic-networks.md#eq-2p) leaves its square.
        let s = [[0.6, 0.0], [0.8, 0.0], [0.0, 1.0]];
        let rho = Mat::from_fn(3, 2, |i, j| 1.5_f64.sqrt() * s[i][j]);
        let state = State { q: rho.gram(), rho };
        assert!((0.0..1e-30).contains(&state.risk()), "{}", state.risk());
    }

    #[test]
    fn one_unit_is_real_phase_retrieval() {
        // p = p* = 1 at the plateau Q = 1/3, rho = 0: R = 8/3.
        let state = State { rho: Mat::zeros(1, 1), q: Mat::diagonal(&[1.0 / 3.0]) };
        assert!((state.risk() - 8.0 / 3.0).abs() < 1e-15);
        assert!(state.flow_q().max_abs() < 1e-15);
    }
}
