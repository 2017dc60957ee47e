//! The one case in closed form: a linear student under the square loss, whose Hessian is a Wishart matrix
//! (docs/derivations/gd-phase-transitions.md#s4-3).

use std::f64::consts::PI;

/// Gradient descent of f = θ·x on (f − y)²/2, y = θ_*·x + noise, |θ_*| = 1, with δ d samples, d → ∞.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinearDescent {
    /// δ = n/d.
    pub ratio: f64,
    /// η.
    pub step: f64,
    /// s², variance of the label noise.
    pub noise_variance: f64,
    /// |θ(0)|.
    pub start_length: f64,
}

/// What is known at step t.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinearState {
    /// C_θ(t,*) = E[1 − q].
    pub overlap: f64,
    /// `C_θ(t,t) = r² E[q²] + E[(1−q)²] + (s²/δ) E[(1−q)²/λ]`.
    pub squared_length: f64,
    /// (1 − 2 C_θ(t,*) + C_θ(t,t) + s²)/2.
    pub test: f64,
    /// `½ {(1 + r²) E[λ q²] + s² (1 − 1/δ + E[q²]/δ)}`.
    pub train: f64,
}

impl LinearDescent {
    /// The state after t steps; q = (1 − ηλ)^t, λ an eigenvalue of the empirical covariance.
    pub fn at(&self, t: usize) -> LinearState {
        let (delta, s2, r2) = (self.ratio, self.noise_variance, self.start_length * self.start_length);
        let power = i32::try_from(t).unwrap_or(i32::MAX);
        let q = |lambda: f64| (1.0 - self.step * lambda).powi(power);
        let mean = |f: &dyn Fn(f64) -> f64| self.mean(t, f);
        let overlap = mean(&|l| 1.0 - q(l));
        let moved = |l: f64| (1.0 - q(l)) * (1.0 - q(l));
        let squared_length = r2 * mean(&|l| q(l) * q(l))
            + mean(&moved)
            + s2 / delta * mean(&|l| if l > 0.0 { moved(l) / l } else { 0.0 });
        LinearState {
            overlap,
            squared_length,
            test: 0.5 * (1.0 - 2.0 * overlap + squared_length + s2),
            train: 0.5
                * ((1.0 + r2) * mean(&|l| l * q(l) * q(l))
                    + s2 * (1.0 - 1.0 / delta + mean(&|l| q(l) * q(l)) / delta)),
        }
    }

    /// R_θ(t,s) = E[(1 − ηλ)^{t−1−s}].
    pub fn response(&self, t: usize, s: usize) -> f64 {
        let power = t - 1 - s;
        self.mean(power, &|l| (1.0 - self.step * l).powi(i32::try_from(power).unwrap_or(i32::MAX)))
    }

    /// E[f(λ)] under the law of Marchenko and Pastur with aspect c = 1/δ, for f like a polynomial of degree 2t + 1.
    ///
    /// With λ = (l₊ + l₋)/2 + (l₊ − l₋)/2 cos u the integrand is periodic, and the midpoint rule converges exponentially; its
    /// nearest singularity, λ = 0, lies |ln c|/2 off the real axis. Below δ = 1 there is an atom 1 − δ at 0.
    fn mean(&self, t: usize, f: &dyn Fn(f64) -> f64) -> f64 {
        let nodes = bulk(self.ratio, t);
        let sum: f64 = nodes.iter().map(|(lambda, density)| density * f(*lambda)).sum();
        PI / nodes.len() as f64 * sum + (1.0 - self.ratio).max(0.0) * f(0.0)
    }
}

/// Nodes of the midpoint rule for the law of Marchenko and Pastur with aspect 1/δ, and the density there.
fn bulk(ratio: f64, t: usize) -> Vec<(f64, f64)> {
    let c = 1.0 / ratio;
    let (lowest, half) = ((1.0 - c.sqrt()).powi(2), 2.0 * c.sqrt());
    let nodes = (64.0 + 4.0 * t as f64 + (40.0 / c.ln().abs()).min(2e5)) as usize;
    let node = |i: usize| {
        // By the half angle, so that small eigenvalues keep their digits.
        let (sine, cosine) = (0.5 * PI * (i as f64 + 0.5) / nodes as f64).sin_cos();
        let lambda = lowest + 2.0 * half * cosine * cosine;
        (lambda, 4.0 * (half * sine * cosine).powi(2) / (2.0 * PI * c * lambda))
    };
    (0..nodes).map(node).collect()
}

/// Eigenvalues and their weights, for averages of functions like polynomials of degree 2t + 1; the atom at 0 included.
pub(super) fn eigenvalues(ratio: f64, t: usize) -> Vec<(f64, f64)> {
    let nodes = bulk(ratio, t);
    let width = PI / nodes.len() as f64;
    let atom = (ratio < 1.0).then_some((0.0, 1.0 - ratio));
    nodes.into_iter().map(|(lambda, density)| (lambda, width * density)).chain(atom).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_the_spectrum_are_those_of_marchenko_and_pastur() {
        for ratio in [0.3, 0.9, 0.999, 1.0, 1.001, 2.0, 9.0] {
            let law = LinearDescent { ratio, step: 1.0, noise_variance: 0.0, start_length: 1.0 };
            let moment = |k: i32| law.mean(5, &|l| l.powi(k));
            for (k, expected) in [(0, 1.0), (1, 1.0), (2, 1.0 + 1.0 / ratio)] {
                assert!((moment(k) - expected).abs() < 1e-11, "moment {k} at {ratio}: {}", moment(k));
            }
        }
    }

    #[test]
    fn nothing_has_moved_before_the_first_step() {
        let start = LinearDescent { ratio: 0.7, step: 0.3, noise_variance: 0.4, start_length: 1.2 }.at(0);
        assert!(start.overlap.abs() < 1e-14 && (start.squared_length - 1.44).abs() < 1e-12);
        assert!((start.train - start.test).abs() < 1e-12, "no sample has been seen");
    }
}
