//! One step of SGD at finite N: mean and covariance of the change of (ρ, Q), exact for every N
//! (docs/derivations/quadratic-networks.md#eq-5p).

use super::state::State;
use didact_math::linalg::Mat;

/// Powers of e = zᵀ D z up to the fourth.
const ORDER: usize = 4;

/// The law of one step from a state: Δρ = F uᵀ/N and ΔQ = (F λᵀ + λ Fᵀ)/N + F Fᵀ |x|²/N², F = (4 η/p) e λ.
///
/// Entries are ordered: ρ row by row, then Q_ij with i ≤ j row by row.
#[derive(Debug)]
pub struct OneStep {
    /// S_k = 2^k Σ (DΣ)^k, the series of the tilted covariance.
    tilted: Vec<Mat>,
    /// Coefficients of `E[exp(t e)]`.
    weights: [f64; ORDER + 1],
    entries: Vec<Entry>,
    dimension: f64,
}

/// An entry of (Δρ, ΔQ): (linear · e + quadratic · e² |x|²) z_a z_b.
#[derive(Debug)]
struct Entry {
    a: usize,
    b: usize,
    linear: f64,
    quadratic: f64,
}

impl OneStep {
    /// At a state, a learning rate η and a dimension N.
    pub fn new(state: &State, learning_rate: f64, dimension: f64) -> Self {
        let (p, teachers) = (state.rho.rows(), state.rho.cols());
        let rows = p + teachers;
        let covariance = Mat::from_fn(rows, rows, |i, j| match (i < p, j < p) {
            (true, true) => state.q[(i, j)],
            (true, false) => state.rho[(i, j - p)],
            (false, true) => state.rho[(j, i - p)],
            (false, false) => f64::from(i == j),
        });
        let weight = |k: usize| if k < p { -1.0 / p as f64 } else { 1.0 / teachers as f64 };
        // (2 DΣ) from the right, once per power of t.
        let step = Mat::from_fn(rows, rows, |i, j| 2.0 * weight(i) * covariance[(i, j)]);
        let mut tilted = vec![covariance];
        let mut power = Mat::identity(rows);
        let mut cumulants = [0.0; ORDER + 1];
        for (k, cumulant) in cumulants.iter_mut().enumerate().skip(1) {
            power = power.times(&step);
            // ln E[exp(t e)] = −½ ln det(1 − 2 t DΣ) = Σ_k t^k tr((2DΣ)^k)/(2k).
            *cumulant = power.trace() / (2.0 * k as f64);
            tilted.push(tilted[k - 1].times(&step));
        }
        let mut weights = [1.0, 0.0, 0.0, 0.0, 0.0];
        for n in 1..=ORDER {
            weights[n] = (1..=n).map(|k| k as f64 * cumulants[k] * weights[n - k]).sum::<f64>() / n as f64;
        }
        let gain = 4.0 * learning_rate / p as f64 / dimension;
        let rho = (0..p).flat_map(|k| (0..teachers).map(move |l| (k, p + l)));
        let q = (0..p).flat_map(|i| (i..p).map(move |j| (i, j)));
        let entries = rho
            .map(|(a, b)| Entry { a, b, linear: gain, quadratic: 0.0 })
            .chain(q.map(|(a, b)| Entry { a, b, linear: 2.0 * gain, quadratic: gain * gain }))
            .collect();
        Self { tilted, weights, entries, dimension }
    }

    /// `E[e^n z_a z_b] = n! [tⁿ] E[exp(t e)] S_ab(t)`, S(t) = Σ (1 − 2 t DΣ)⁻¹.
    fn pair(&self, n: usize, a: usize, b: usize) -> f64 {
        factorial(n) * (0..=n).map(|i| self.weights[i] * self.tilted[n - i][(a, b)]).sum::<f64>()
    }

    /// `E[e^n z_a z_b z_c z_d]`: Isserlis under the tilted law.
    fn quadruple(&self, n: usize, [a, b, c, d]: [usize; 4]) -> f64 {
        let mut sum = 0.0;
        for i in 0..=n {
            for j in 0..=n - i {
                let (s, t) = (&self.tilted[j], &self.tilted[n - i - j]);
                let pairings = s[(a, b)] * t[(c, d)] + s[(a, c)] * t[(b, d)] + s[(a, d)] * t[(b, c)];
                sum += self.weights[i] * pairings;
            }
        }
        factorial(n) * sum
    }

    /// `E[Δ]`, not multiplied by N.
    pub fn mean(&self) -> Vec<f64> {
        let one = |e: &Entry| {
            e.linear * self.pair(1, e.a, e.b) + (self.dimension + 6.0) * e.quadratic * self.pair(2, e.a, e.b)
        };
        self.entries.iter().map(one).collect()
    }

    /// `Cov[Δ]`, not multiplied by N. For f homogeneous of degree m in x, `E[f |x|²] = (N + m) E f` and
    /// `E[f |x|⁴] = (N + m)(N + m + 2) E f`.
    pub fn covariance(&self) -> Mat {
        let (mean, n) = (self.mean(), self.dimension);
        Mat::from_fn(mean.len(), mean.len(), |i, j| {
            let (x, y) = (&self.entries[i], &self.entries[j]);
            let indices = [x.a, x.b, y.a, y.b];
            let crossed = x.linear * y.quadratic + x.quadratic * y.linear;
            let mut sum = x.linear * y.linear * self.quadruple(2, indices);
            if crossed != 0.0 {
                sum += (n + 10.0) * crossed * self.quadruple(3, indices);
            }
            let both = x.quadratic * y.quadratic;
            if both != 0.0 {
                sum += (n + 12.0) * (n + 14.0) * both * self.quadruple(4, indices);
            }
            sum - mean[i] * mean[j]
        })
    }
}

fn factorial(n: usize) -> f64 {
    (1..=n).map(|k| k as f64).product()
}

#[cfg(test)]
mod tests {
    use super::super::state::tests::random_state;
    use super::*;
    use didact_math::gauss::quadrature::gauss_hermite;
    use didact_math::linalg::cholesky_psd;

    #[test]
    fn tilted_moments_are_those_of_tensor_quadrature() {
        // p = 2, p* = 1: 8 nodes per axis are exact to degree 15 > 12.
        let state = random_state(2, 1, 0.5, 3);
        let step = OneStep::new(&state, 0.1, 9.0);
        let lower = cholesky_psd(&step.tilted[0]).unwrap();
        let rule = gauss_hermite(8);
        let mut sums = [0.0; 3];
        let nodes = || rule.nodes.iter().zip(&rule.weights);
        for (&x, wx) in nodes() {
            for (&y, wy) in nodes() {
                for (&z, wz) in nodes() {
                    let point = [x, y, z];
                    let h: Vec<f64> =
                        (0..3).map(|i| (0..3).map(|j| lower[(i, j)] * point[j]).sum()).collect();
                    let e = h[2] * h[2] - 0.5 * (h[0] * h[0] + h[1] * h[1]);
                    let weight = wx * wy * wz;
                    sums[0] += weight * e.powi(4) * h[0] * h[1] * h[1] * h[2];
                    sums[1] += weight * e.powi(3) * h[0].powi(4);
                    sums[2] += weight * e * e * h[0] * h[2];
                }
            }
        }
        let got = [step.quadruple(4, [0, 1, 1, 2]), step.quadruple(3, [0; 4]), step.pair(2, 0, 2)];
        for (got, want) in got.iter().zip(sums) {
            assert!((got - want).abs() < 1e-11 * (1.0 + want.abs()), "{got} {want}");
        }
    }

    #[test]
    fn the_mean_step_is_the_equation_of_motion_with_its_finite_size_term() {
        let (state, eta, n) = (random_state(3, 2, 0.6, 5), 0.07, 25.0);
        let mean = OneStep::new(&state, eta, n).mean();
        let rho = state.flow_rho().scaled(eta);
        let q = state.rate_q(eta, 0.0, Some(n));
        let upper = (0..3).flat_map(|i| (i..3).map(move |j| (i, j))).map(|at| q[at]);
        for (got, want) in mean.iter().zip(rho.as_slice().iter().copied().chain(upper)) {
            assert!((n * got - want).abs() < 1e-13 * (1.0 + want.abs()), "{got} {want}");
        }
    }
}
