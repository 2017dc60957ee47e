//! Population theory at frozen loadings: loss, signal, their series, and the law of the signal at zero overlap.
//!
//! W, u and û enter through G = W Wᵀ and m = u·û alone; u and û are orthogonal to W here
//! (docs/derivations/low-rank-perturbation.md#s4). The general covariance is that of the rule (`units.rs`).

use super::network::{Kernel, Network, Pairs, hermite_coefficient};
use didact_math::linalg::{Mat, dot};

/// A teacher W + ξ c uᵀ and a student W + ξ ĉ ûᵀ.
#[derive(Debug, Clone)]
pub struct Instance {
    /// Activation, second layer and scales.
    pub network: Network,
    /// G, k x k with unit diagonal.
    pub gram: Mat,
    /// c.
    pub loading: Vec<f64>,
    /// ĉ.
    pub student_loading: Vec<f64>,
}

impl Instance {
    /// κ²(G_ij + ξ² a_i b_j m).
    fn covariance(&self, i: usize, j: usize, product: f64) -> f64 {
        let Network { scale, strength, .. } = self.network;
        scale * scale * (self.gram[(i, j)] + strength * strength * product)
    }

    /// Averages over teachers (units 0..k) and students (k..2k).
    fn pairs(&self) -> Pairs<'_> {
        let loadings = self.loading.iter().chain(&self.student_loading);
        let variances: Vec<f64> = loadings.map(|&c| self.network.variance(c)).collect();
        Pairs::new(&*self.network.activation, &variances)
    }

    /// Φ(m) = A² Σ_ij λ_i λ_j {E₀₀[c, c, 1] + E₀₀[ĉ, ĉ, 1] − 2 E₀₀[c, ĉ, m]} = E[(f* − f̂)²]; no factor 1/2
    /// (docs/derivations/low-rank-perturbation.md#eq-14).
    pub fn loss(&self, overlaps: &[f64]) -> Vec<f64> {
        let (k, pairs) = (self.network.units(), self.pairs());
        let (c, s) = (&self.loading, &self.student_loading);
        let own = self.sum(|i, j| {
            pairs.at(i, j, self.covariance(i, j, c[i] * c[j])).value_value
                + pairs.at(k + i, k + j, self.covariance(i, j, s[i] * s[j])).value_value
        });
        let cross =
            |m: f64| self.sum(|i, j| pairs.at(i, k + j, self.covariance(i, j, c[i] * s[j] * m)).value_value);
        let a2 = self.network.output_scale.powi(2);
        overlaps.iter().map(|&m| a2 * (own - 2.0 * cross(m))).collect()
    }

    /// Σ_ij λ_i λ_j entry(i, j).
    fn sum(&self, entry: impl Fn(usize, usize) -> f64) -> f64 {
        let l = &self.network.second_layer;
        let k = l.len();
        (0..k).map(|i| l[i] * (0..k).map(|j| l[j] * entry(i, j)).sum::<f64>()).sum()
    }

    /// h(m) = −dΦ/dm = 2 A² κ² ξ² Σ_ij λ_i λ_j c_i ĉ_j E₁₁[cov_ij(m)].
    ///
    /// The population gradient at û, on the sphere, is −h(m)(u − m û)
    /// (docs/derivations/low-rank-perturbation.md#eq-15).
    pub fn signal(&self, overlaps: &[f64]) -> Vec<f64> {
        let (k, pairs) = (self.network.units(), self.pairs());
        let (c, s) = (&self.loading, &self.student_loading);
        let Network { scale, strength, output_scale, .. } = self.network;
        let factor = 2.0 * (output_scale * scale * strength).powi(2);
        let at = |m: f64| {
            let slope = |i, j: usize| pairs.at(i, k + j, self.covariance(i, j, c[i] * s[j] * m)).slope_slope;
            factor * self.sum(|i, j| c[i] * s[j] * slope(i, j))
        };
        overlaps.iter().map(|&m| at(m)).collect()
    }

    /// ∂Φ/∂ĉ_l (Euclidean), with K2 = κ² ξ² and E₂₀(s; t) = E[σ″(s) σ(t)]
    /// (docs/derivations/low-rank-perturbation.md#eq-37):
    ///
    ///   2 A² λ_l K2 {Σ_j λ_j [E₁₁(s_l, s_j) ĉ_j + E₂₀(s_l; s_j) ĉ_l] − Σ_i λ_i [E₁₁(t_i, s_l) c_i m + E₂₀(s_l; t_i) ĉ_l]}.
    pub fn loading_gradient(&self, m: f64) -> Vec<f64> {
        let (k, pairs) = (self.network.units(), self.pairs());
        let (c, s, lambda) = (&self.loading, &self.student_loading, &self.network.second_layer);
        let Network { scale, strength, output_scale, .. } = self.network;
        let factor = 2.0 * (output_scale * scale * strength).powi(2);
        let entry = |l: usize| -> f64 {
            let term = |i: usize| {
                let own = pairs.at(k + l, k + i, self.covariance(l, i, s[l] * s[i]));
                let cross = pairs.at(k + l, i, self.covariance(i, l, c[i] * s[l] * m));
                own.slope_slope * s[i] + own.curvature_value * s[l]
                    - cross.slope_slope * c[i] * m
                    - cross.curvature_value * s[l]
            };
            factor * lambda[l] * (0..k).map(|i| lambda[i] * term(i)).sum::<f64>()
        };
        (0..k).map(entry).collect()
    }

    /// T(l, s) = Σ_ij λ_i λ_j G_ij^s for odd l, k Σ_ij λ_i c_i λ_j ĉ_j G_ij^s for even l; 0⁰ = 1
    /// (docs/derivations/low-rank-perturbation.md#eq-18).
    pub fn interaction(&self, l: usize, s: usize) -> f64 {
        self.contract(l, |i, j| self.gram[(i, j)].powi(s as i32))
    }

    fn contract(&self, l: usize, power: impl Fn(usize, usize) -> f64) -> f64 {
        if l % 2 == 1 {
            return self.sum(power);
        }
        let (c, s) = (&self.loading, &self.student_loading);
        self.network.units() as f64 * self.sum(|i, j| c[i] * s[j] * power(i, j))
    }

    /// a_0, …, a_{n−1} of h(m) = Σ_l a_l m^l; quantised loadings, normalised mode
    /// (docs/derivations/low-rank-perturbation.md#eq-17), t = ξ²/k:
    ///
    ///   a_l = 2 A² t^{l+1} Σ_s C(l+s, l) (l+s+1) μ²_{l+s+1} (1+t)^{−(l+s+1)} T(l, s).
    pub fn signal_series(&self, count: usize) -> Vec<f64> {
        let k = self.network.units();
        let t = self.network.strength.powi(2) / k as f64;
        let activation = &*self.network.activation;
        let last = activation.degree().unwrap_or(SERIES_LIMIT);
        // Series of units without kinks end long before the limit, and every coefficient is a sum over many nodes.
        let mut squares = Vec::new();
        let mut square = |p: usize| -> f64 {
            for order in squares.len()..=p {
                squares.push(hermite_coefficient(activation, order, 1.0).powi(2));
            }
            squares[p]
        };
        let a2 = self.network.output_scale.powi(2);
        (0..count)
            .map(|l| {
                let mut power = Mat::from_fn(k, k, |_, _| 1.0);
                // C(l+s, l) (1+t)^{−(l+s+1)}, by its ratio in s.
                let mut weight = (1.0 + t).powi(-(l as i32 + 1));
                let mut sum = 0.0;
                for (s, p) in (l + 1..=last).enumerate() {
                    sum += weight * p as f64 * square(p) * self.contract(l, |i, j| power[(i, j)]);
                    // |G_ij| ≤ 1 and μ_p² ≤ E[σ²]: from here on the weights fall geometrically.
                    let next = if p < last { square(p + 1) } else { 0.0 };
                    if weight * p as f64 * (square(p) + next) < 1e-18 * sum.abs() && s as f64 * t > l as f64 {
                        break;
                    }
                    weight *= (l + s + 1) as f64 / ((s + 1) as f64 * (1.0 + t));
                    for (x, g) in power.as_mut_slice().iter_mut().zip(self.gram.as_slice()) {
                        *x *= g;
                    }
                }
                2.0 * a2 * t.powi(l as i32 + 1) * sum
            })
            .collect()
    }

    /// ω = c·ĉ.
    pub fn loading_overlap(&self) -> f64 {
        dot(&self.loading, &self.student_loading)
    }
}

/// Most terms of the series: the tail of ReLU at t = 0.01, (1+t)^{−p}, is then below 1e-12.
const SERIES_LIMIT: usize = 3000;

/// Variance of h(0) over independent uniform signs of c and ĉ: Σ_ij Q_ij², Q_ij = 2 A² θ λ_i λ_j K′(G_ij/s²)
/// (docs/derivations/low-rank-perturbation.md#eq-24).
pub fn signal_variance(network: &Network, gram: &Mat) -> f64 {
    let kernel = Kernel::new(&*network.activation, 1.0);
    let theta = network.theta();
    let (k, l) = (network.units(), &network.second_layer);
    let factor = 2.0 * theta * network.output_scale.powi(2);
    (0..k * k)
        .map(|at| (at / k, at % k))
        .map(|(i, j)| (factor * l[i] * l[j] * kernel.slope(gram[(i, j)] * (1.0 - theta))).powi(2))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::super::network::Mode;
    use super::*;
    use didact_math::activation::parse;
    use proptest::prelude::*;

    fn gram() -> Mat {
        let rows =
            [[1.0, 0.3, -0.2, 0.1], [0.3, 1.0, 0.5, 0.0], [-0.2, 0.5, 1.0, 0.25], [0.1, 0.0, 0.25, 1.0]];
        Mat::from_fn(4, 4, |i, j| rows[i][j])
    }

    fn instance(name: &str, xi: f64, mode: Mode, c: [f64; 4], s: [f64; 4]) -> Instance {
        let network = Network::new(parse(name).unwrap(), vec![1.0, -0.7, 1.2, 0.5], xi, mode);
        Instance { network, gram: gram(), loading: c.to_vec(), student_loading: s.to_vec() }
    }

    const C: [f64; 4] = [0.5, 0.5, -0.5, 0.5];
    const S: [f64; 4] = [0.5, -0.5, -0.5, 0.5];
    const NAMES: [&str; 8] = ["relu", "abs", "erf(z/sqrt2)", "quad", "tanh", "sigmoid", "He3", "h4"];

    #[test]
    fn the_signal_is_minus_the_slope_of_the_loss() {
        for name in NAMES {
            for mode in [Mode::Normalised, Mode::Raw, Mode::Printed] {
                let it = instance(name, 2.0, mode, [0.6, -0.2, 0.4, (1.0f64 - 0.56).sqrt()], S);
                let m = 0.3;
                let loss = it.loss(&[m - 2e-3, m - 1e-3, m + 1e-3, m + 2e-3]);
                let slope = (8.0 * (loss[2] - loss[1]) - (loss[3] - loss[0])) / 12e-3;
                let h = it.signal(&[m])[0];
                assert!((h + slope).abs() < 1e-9 * (1.0 + h.abs() + loss[0]), "{name} {mode:?}: {h} {slope}");
            }
        }
    }

    #[test]
    fn the_loading_gradient_is_the_slope_of_the_loss() {
        for name in NAMES {
            let s = [0.8, 0.1, -0.5, 0.316_227_766];
            let base = instance(name, 1.5, Mode::Normalised, C, s);
            let gradient = base.loading_gradient(0.3);
            for l in 0..4 {
                let at = |by: f64| {
                    let mut moved = base.clone();
                    moved.student_loading[l] += by;
                    moved.loss(&[0.3])[0]
                };
                let h = 1e-3;
                let slope = (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
                assert!(
                    (gradient[l] - slope).abs() < 2e-8 * (1.0 + slope.abs()),
                    "{name}: {gradient:?} {slope}"
                );
            }
        }
    }

    #[test]
    fn the_power_series_is_the_signal() {
        for (name, terms, tolerance) in
            [("relu", 60, 1e-8), ("He3", 4, 1e-13), ("quad", 3, 1e-13), ("sigmoid", 40, 1e-10)]
        {
            let it = instance(name, 1.5, Mode::Normalised, C, S);
            let series = it.signal_series(terms);
            for m in [-0.5f64, 0.0, 0.7] {
                let sum: f64 = series.iter().enumerate().map(|(l, a)| a * m.powi(l as i32)).sum();
                let h = it.signal(&[m])[0];
                assert!((sum - h).abs() < tolerance * (1.0 + h.abs()), "{name} at {m}: {sum} {h}");
            }
            assert!(series.iter().skip(1).step_by(2).all(|&a| a >= 0.0), "odd coefficients of {name}");
        }
    }

    #[test]
    fn a_student_with_the_loading_of_its_teacher_can_reach_zero_loss() {
        for name in NAMES {
            let it = instance(name, 1.5, Mode::Raw, C, C);
            let loss = it.loss(&[1.0, 0.4]);
            assert!(loss[0].abs() < 1e-11 * (1.0 + loss[1]) && loss[1] > 0.0, "{name}: {loss:?}");
        }
    }

    #[test]
    fn raw_mode_is_normalised_mode_of_a_stretched_activation() {
        // √s² = √(1 + 4/4) = √2 for ξ = 2, k = 4.
        let raw = instance("tanh", 2.0, Mode::Raw, C, S).signal(&[0.4])[0];
        let stretched = instance("tanh(1.4142135623730951*x)", 2.0, Mode::Normalised, C, S).signal(&[0.4])[0];
        assert!((raw - stretched).abs() < 1e-11 * raw.abs(), "{raw} {stretched}");
    }

    #[test]
    fn identity_units_have_a_constant_signal() {
        let it = instance("id", 1.7, Mode::Printed, C, S);
        let l = &it.network.second_layer;
        let exact = 2.0 * (it.network.scale * 1.7).powi(2) * dot(l, &C) * dot(l, &S);
        for h in it.signal(&[-0.9, 0.0, 0.8]) {
            assert!((h - exact).abs() < 1e-14);
        }
    }

    #[test]
    fn the_variance_of_the_signal_is_that_over_all_signs() {
        for name in ["relu", "He3", "quad"] {
            let network = instance(name, 1.3, Mode::Normalised, C, S).network;
            let signs = |bits: usize| -> Vec<f64> {
                (0..4).map(|i| if bits >> i & 1 == 1 { 0.5 } else { -0.5 }).collect()
            };
            let (mut mean, mut square) = (0.0, 0.0);
            for bits in 0..256 {
                let it = Instance {
                    network: network.clone(),
                    gram: gram(),
                    loading: signs(bits & 15),
                    student_loading: signs(bits >> 4),
                };
                let h = it.signal(&[0.0])[0];
                mean += h / 256.0;
                square += h * h / 256.0;
            }
            let exact = signal_variance(&network, &gram());
            assert!(mean.abs() < 1e-13 && (square - exact).abs() < 1e-11 * exact, "{name}: {square} {exact}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
        #[test]
        fn the_signal_has_the_symmetries_of_the_model(
            m in -0.95f64..0.95, xi in 0.3f64..4.0, name in 0usize..8, angle in 0.1f64..1.4,
        ) {
            let c = [angle.cos(), 0.0, angle.sin() * 0.6, angle.sin() * 0.8];
            let it = instance(NAMES[name], xi, Mode::Normalised, c, S);
            let h = it.signal(&[m])[0];
            let scale = 1e-11 * (1.0 + h.abs());
            let mut other = it.clone();
            other.student_loading.iter_mut().for_each(|s| *s = -*s);
            prop_assert!((h + other.signal(&[-m])[0]).abs() < scale, "sign");
            let swapped = Instance { loading: S.to_vec(), student_loading: c.to_vec(), ..it.clone() };
            prop_assert!((h - swapped.signal(&[m])[0]).abs() < scale, "exchange");
            let order = [2, 0, 3, 1];
            let pick = |v: &[f64]| -> Vec<f64> { order.iter().map(|&i| v[i]).collect() };
            let mut permuted = it.clone();
            permuted.network.second_layer = pick(&it.network.second_layer);
            (permuted.loading, permuted.student_loading) = (pick(&c), pick(&S));
            permuted.gram = Mat::from_fn(4, 4, |i, j| gram()[(order[i], order[j])]);
            prop_assert!((h - permuted.signal(&[m])[0]).abs() < scale, "permutation");
            let mut larger = it.clone();
            larger.network.output_scale = 1.7;
            larger.network.second_layer.iter_mut().for_each(|l| *l *= 0.6);
            let factor = (1.7f64 * 0.6).powi(2);
            prop_assert!((factor * h - larger.signal(&[m])[0]).abs() < 2.0 * scale, "scale");
            prop_assert!(it.loss(&[m])[0] > -1e-11, "positive loss");
        }
    }
}
