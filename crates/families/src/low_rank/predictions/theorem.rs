//! Calculators: constants of the convergence theorem, crossovers in the strength, and instances made by hand.

use didact_math::linalg::{Mat, dot};

/// What the generic convergence statement prescribes (docs/derivations/low-rank-perturbation.md#eq-26). Conservative
/// by many orders of magnitude.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TheoremConstants {
    /// δ = min{S ε³/(4 μ Lg²), 1}, Lg = ln(d V).
    pub delta: f64,
    /// η = δ/(d V).
    pub rate: f64,
    /// α = 4 Lg/(ε δ S).
    pub alpha: f64,
    /// T = ⌈α d V⌉, after which |m| ≥ 1 − ε with high probability.
    pub steps: f64,
    /// T_weak = ⌈4 d V/(δ S)⌉.
    pub weak_steps: f64,
}

/// δ, η, α, T and T_weak from bounds S on the signal and V on the noise; μ is the first-moment constant.
pub fn theorem_constants(
    dimension: f64,
    signal: f64,
    noise: f64,
    epsilon: f64,
    moment: f64,
) -> TheoremConstants {
    let lg = (dimension * noise).ln();
    let delta = (signal * epsilon.powi(3) / (4.0 * moment * lg * lg)).min(1.0);
    let alpha = 4.0 * lg / (epsilon * delta * signal);
    TheoremConstants {
        delta,
        rate: delta / (dimension * noise),
        alpha,
        steps: (alpha * dimension * noise).ceil(),
        weak_steps: (4.0 * dimension * noise / (delta * signal)).ceil(),
    }
}

/// The bounds that the theorems use, up to constants C = γ = 1 (orthonormal W):
/// docs/derivations/low-rank-perturbation.md#eq-27.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TheoremBounds {
    /// V_k = λ_max⁴ k³ ξ² min(k, 4ξ²)/(k + ξ²).
    pub noise: f64,
    /// S_k = λ_min² ξ² (k/(k+ξ²))^{s*}, times k^{−1/2} when μ_1 = 0.
    pub signal: f64,
}

/// V_k and S_k; `exponent` is the information exponent s*.
pub fn theorem_bounds(units: usize, strength: f64, exponent: usize, weights: (f64, f64)) -> TheoremBounds {
    let (k, xi2) = (units as f64, strength * strength);
    let weaker = if exponent == 1 { 1.0 } else { k.sqrt().recip() };
    TheoremBounds {
        noise: weights.1.powi(4) * k.powi(3) * xi2 * k.min(4.0 * xi2) / (k + xi2),
        signal: weights.0.powi(2) * xi2 * (k / (k + xi2)).powi(exponent as i32) * weaker,
    }
}

/// Where the plateau changes its nature, cubic units, start m ~ d^{−1/2}
/// (docs/derivations/low-rank-perturbation.md#s4-5).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crossovers {
    /// ξ_1 = (k d/4)^{1/4}: below, no plateau; above, one of length log d.
    pub logarithmic: f64,
    /// ξ_2 = k^{1/2} d^{1/4}: beyond, the single-index plateau of length √d.
    pub single_index: f64,
}

/// ξ_1 and ξ_2.
pub fn crossovers(units: usize, dimension: f64) -> Crossovers {
    let k = units as f64;
    Crossovers {
        logarithmic: (k * dimension / 4.0).powf(0.25),
        single_index: k.sqrt() * dimension.powf(0.25),
    }
}

/// The base of the separating instance: G_ij = −c_i c_j off the diagonal, so that the w_i + c_i u (ξ = 1, quantised c) are
/// orthogonal of length √(1 + 1/k) (docs/derivations/low-rank-perturbation.md#s6-5).
pub fn orthogonal_teacher_gram(loading: &[f64]) -> Mat {
    let k = loading.len();
    Mat::from_fn(k, k, |i, j| if i == j { 1.0 } else { -loading[i] * loading[j] })
}

/// c = 2(u′ − u)/|u′ − u|², with which (c, u) and (−c, u′) are one function for σ = z² and W = 1
/// (docs/derivations/low-rank-perturbation.md#s6-6).
///
/// `None` when u and u′ coincide or have different lengths.
pub fn two_optima(u: &[f64], other: &[f64]) -> Option<Vec<f64>> {
    let difference: Vec<f64> = other.iter().zip(u).map(|(a, b)| a - b).collect();
    let square = dot(&difference, &difference);
    let same_length = (dot(u, u) - dot(other, other)).abs() <= 1e-9 * dot(u, u);
    (square > 0.0 && same_length).then(|| difference.iter().map(|x| 2.0 * x / square).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use didact_math::linalg::symmetric_eigen;

    #[test]
    fn the_teachers_of_the_separating_instance_are_orthogonal() {
        let k = 6;
        let c: Vec<f64> = (1..=k).map(|i| if i % 2 == 1 { -1.0 } else { 1.0 } / (k as f64).sqrt()).collect();
        let gram = orthogonal_teacher_gram(&c);
        for i in 0..k {
            for j in 0..k {
                let product = gram[(i, j)] + c[i] * c[j];
                let exact = if i == j { 1.0 + 1.0 / k as f64 } else { 0.0 };
                assert!((product - exact).abs() < 1e-15);
            }
        }
        let eigen = symmetric_eigen(&gram).values;
        assert!(
            (eigen[0] - 1.0 / k as f64).abs() < 1e-14
                && (eigen[k - 1] - (1.0 + 1.0 / k as f64)).abs() < 1e-14
        );
    }

    #[test]
    fn both_optima_are_one_function() {
        let (u, v) = ([0.6, 0.8], [0.8, -0.6]);
        let c = two_optima(&u, &v).unwrap();
        for x in [[0.3, -1.2], [2.0, 0.7], [-0.4, -0.9]] {
            let network = |sign: f64, w: &[f64; 2]| -> f64 {
                (0..2).map(|i| (x[i] + sign * c[i] * dot(w, &x)).powi(2)).sum()
            };
            assert!((network(1.0, &u) - network(-1.0, &v)).abs() < 1e-12);
        }
        assert_eq!(two_optima(&u, &u), None);
        assert_eq!(two_optima(&u, &[2.0, 0.0]), None);
    }

    #[test]
    fn the_theorem_is_as_conservative_as_stated() {
        let got = theorem_constants(1000.0, 0.5, 64.0, 0.1, 1.0);
        assert!((got.steps / 5.55e13 - 1.0).abs() < 1e-3, "{got:?}");
    }
}
