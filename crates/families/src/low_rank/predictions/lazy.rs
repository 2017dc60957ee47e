//! Baselines in closed form: lazy (linearised) training, the first-moment estimator, refitting the second layer.
//!
//! Lazy student: f_base + A κ Σ_i λ_i σ′(κ w_i·x) Δ_i·x with rows Δ_i orthogonal to W
//! (docs/derivations/low-rank-perturbation.md#s6-3).

use super::network::{Kernel, Network, Pairs, hermite_coefficient};
use super::population::Instance;
use didact_math::linalg::{Mat, dot, symmetric_eigen};

/// Directions below this fraction of the largest eigenvalue count as absent in pseudo-inverses.
const ABSENT: f64 = 1e-12;

/// The quadratic loss of the lazy student: base − 2 b·δ + δᵀ M δ + tr(M S) at Δ = δ uᵀ + Δ_⊥, S = Δ_⊥ Δ_⊥ᵀ.
#[derive(Debug, Clone)]
pub struct LazyLoss {
    /// E[(f* − f_base)²].
    pub base: f64,
    /// M_ij = E[φ_i φ_j], φ_i = A κ λ_i σ′(κ w_i·x).
    pub features: Mat,
    /// b_i = E[f* φ_i u·x].
    pub target: Vec<f64>,
}

impl LazyLoss {
    /// For a teacher with loading c.
    pub fn new(network: &Network, gram: &Mat, loading: &[f64]) -> Self {
        let k = network.units();
        let Network { scale, strength, output_scale, .. } = *network;
        let square = scale * scale;
        // Units 0..k are those of the base network, k..2k those of the teacher.
        let variances: Vec<f64> =
            (0..k).map(|_| square).chain(loading.iter().map(|&c| network.variance(c))).collect();
        let pairs = Pairs::new(&*network.activation, &variances);
        let slope = |i: usize, unit: usize, j: usize| pairs.at(i, unit, square * gram[(i, j)]).slope_slope;
        let (lambda, factor) = (&network.second_layer, output_scale * output_scale * square);
        let features = Mat::from_fn(k, k, |i, j| factor * lambda[i] * lambda[j] * slope(i, j, j));
        let target = (0..k)
            .map(|i| {
                let sum: f64 = (0..k).map(|j| lambda[j] * loading[j] * slope(i, k + j, j)).sum();
                factor * strength * lambda[i] * sum
            })
            .collect();
        let unperturbed = Instance {
            network: network.clone(),
            gram: gram.clone(),
            loading: loading.to_vec(),
            student_loading: vec![0.0; k],
        };
        Self { base: unperturbed.loss(&[0.0])[0], features, target }
    }

    /// The loss of the best full-rank lazy student: base − bᵀ M⁺ b (docs/derivations/low-rank-perturbation.md#eq-45).
    pub fn floor(&self) -> f64 {
        let gain: f64 = self.modes().iter().filter(|m| m.present).map(|m| m.target.powi(2) / m.rate).sum();
        self.base - gain
    }

    /// Full-rank loss along gradient flow from Δ = 0: every mode of M relaxes as 1 − e^{−2wτ}
    /// (docs/derivations/low-rank-perturbation.md#eq-46).
    pub fn flow(&self, time: f64) -> f64 {
        let gained = |mode: &Mode| {
            if mode.present {
                let left = (-2.0 * mode.rate * time).exp();
                mode.target.powi(2) / mode.rate * (1.0 - left * left)
            } else {
                4.0 * time * mode.target.powi(2)
            }
        };
        self.base - self.modes().iter().map(gained).sum::<f64>()
    }

    /// h_lin = 2 ξ b·ĉ: the signal of a rank-one lazy student, which does not depend on m.
    pub fn rank_one_signal(&self, strength: f64, student_loading: &[f64]) -> f64 {
        2.0 * strength * dot(&self.target, student_loading)
    }

    /// Rank-one loss at overlap m with |û| = 1: base − h_lin m + ξ² ĉᵀ M ĉ
    /// (docs/derivations/low-rank-perturbation.md#eq-47).
    pub fn rank_one_loss(&self, strength: f64, student_loading: &[f64], m: f64) -> f64 {
        let k = student_loading.len();
        let square: f64 =
            (0..k).map(|i| student_loading[i] * dot(self.features.row(i), student_loading)).sum();
        self.base - self.rank_one_signal(strength, student_loading) * m + strength * strength * square
    }

    fn modes(&self) -> Vec<Mode> {
        let eigen = symmetric_eigen(&self.features);
        let largest = eigen.values.last().copied().unwrap_or(0.0);
        let component = |j: usize| -> f64 {
            self.target.iter().enumerate().map(|(i, b)| b * eigen.vectors[(i, j)]).sum()
        };
        let mode =
            |(j, &rate): (usize, &f64)| Mode { rate, target: component(j), present: rate > ABSENT * largest };
        eigen.values.iter().enumerate().map(mode).collect()
    }
}

/// An eigenvector of M.
struct Mode {
    rate: f64,
    target: f64,
    present: bool,
}

/// û ∝ Π Σ x (f* − f_base)/n with n samples: signal S and squared overlap S²/(S² + (d/n) base) for n, d → ∞
/// (docs/derivations/low-rank-perturbation.md#s6-4).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MomentEstimate {
    /// S = A κ ξ Σ_i λ_i c_i E[σ′(R_i g)], the length of E[x (f* − f_base)], with its sign along u.
    pub signal: f64,
    /// Squared overlap with u.
    pub squared_overlap: f64,
}

/// The first-moment estimator at n/d samples per dimension.
pub fn moment_estimator(network: &Network, gram: &Mat, loading: &[f64], samples: f64) -> MomentEstimate {
    let Network { scale, strength, output_scale, .. } = *network;
    let slope = |c: f64| {
        let deviation = network.variance(c).sqrt();
        hermite_coefficient(&*network.activation, 1, deviation) / deviation
    };
    let sum: f64 = network.second_layer.iter().zip(loading).map(|(l, &c)| l * c * slope(c)).sum();
    let signal = output_scale * scale * strength * sum;
    let base = LazyLoss::new(network, gram, loading).base;
    MomentEstimate { signal, squared_overlap: signal * signal / (signal * signal + base / samples) }
}

/// Population loss after the best refit of 2k output weights on features σ(κ(w_i ± ξ û/√k)·x), per overlap m:
/// T − crᵀ GF⁺ cr; normalised mode, quantised c (docs/derivations/low-rank-perturbation.md#eq-52, where cr is r and GF
/// is Γ).
pub fn refit_floor(network: &Network, gram: &Mat, loading: &[f64], overlaps: &[f64]) -> Vec<f64> {
    let k = network.units();
    let kernel = Kernel::new(&*network.activation, 1.0);
    let (xi2, s2) = (network.strength.powi(2), 1.0 + network.strength.powi(2) / k as f64);
    let sign = |j: usize| if j < k { 1.0 } else { -1.0 } / (k as f64).sqrt();
    let at = |i: usize, j: usize, product: f64| kernel.value((gram[(i % k, j % k)] + xi2 * product) / s2);
    let lambda = &network.second_layer;
    let teacher: f64 = (0..k)
        .map(|i| lambda[i] * (0..k).map(|j| lambda[j] * at(i, j, loading[i] * loading[j])).sum::<f64>())
        .sum();
    let features = Mat::from_fn(2 * k, 2 * k, |i, j| at(i, j, sign(i) * sign(j)));
    let eigen = symmetric_eigen(&features);
    let largest = eigen.values.last().copied().unwrap_or(0.0);
    let a2 = network.output_scale.powi(2);
    let floor = |m: f64| {
        let cross: Vec<f64> = (0..2 * k)
            .map(|i| (0..k).map(|j| lambda[j] * at(i, j, sign(i) * loading[j] * m)).sum())
            .collect();
        let explained: f64 = (0..2 * k)
            .filter(|&j| eigen.values[j] > ABSENT * largest)
            .map(|j| {
                let part: f64 = cross.iter().enumerate().map(|(i, c)| c * eigen.vectors[(i, j)]).sum();
                part * part / eigen.values[j]
            })
            .sum();
        a2 * (teacher - explained)
    };
    overlaps.iter().map(|&m| floor(m)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::network::Mode as Scale;
    use super::*;
    use didact_math::activation::parse;

    fn network(name: &str, relative: f64) -> (Network, Vec<f64>) {
        let network = Network::new(parse(name).unwrap(), vec![1.0; 16], 4.0 * relative, Scale::Normalised);
        // 10 plus signs.
        (network, (0..16).map(|i| if i < 10 { 0.25 } else { -0.25 }).collect())
    }

    #[test]
    fn relative_floors_are_those_of_the_spec() {
        let strengths = [0.05, 0.1, 0.25, 0.5, 1.0, 2.0];
        for (name, floors) in [
            ("relu", [0.030, 0.075, 0.264, 0.549, 0.787, 0.888]),
            ("He3", [0.0037, 0.0149, 0.0885, 0.2985, 0.6667, 0.9239]),
            ("quad", [0.029, 0.107, 0.429, 0.750, 0.923, 0.980]),
        ] {
            for (xi, floor) in strengths.into_iter().zip(floors) {
                let (network, c) = network(name, xi);
                let lazy = LazyLoss::new(&network, &Mat::identity(16), &c);
                assert!(
                    (lazy.floor() / lazy.base - floor).abs() < 6e-4,
                    "{name} {xi}: {}",
                    lazy.floor() / lazy.base
                );
                assert!(lazy.floor() <= lazy.base);
                let sign = lazy.rank_one_signal(4.0 * xi, &c).signum();
                assert!(lazy.rank_one_loss(4.0 * xi, &c, sign) >= lazy.floor() - 1e-12);
            }
        }
    }

    #[test]
    fn the_floor_vanishes_like_the_square_of_a_small_strength() {
        let ratio = |xi: f64| {
            let (network, c) = network("He3", xi);
            let lazy = LazyLoss::new(&network, &Mat::identity(16), &c);
            lazy.floor() / lazy.base
        };
        let (small, half) = (ratio(0.02), ratio(0.01));
        assert!((small / half - 4.0).abs() < 0.02, "{}", small / half);
    }

    #[test]
    fn at_small_strength_the_signal_is_the_lazy_one() {
        // Both are O(θ); their ratio tends to 1.
        for name in ["relu", "He3", "quad"] {
            let (network, c) = network(name, 1e-3);
            let mut own = c.clone();
            own[0] = -own[0];
            let it = Instance {
                network: network.clone(),
                gram: Mat::identity(16),
                loading: c.clone(),
                student_loading: own.clone(),
            };
            let (h, lazy) = (it.signal(&[0.0])[0], LazyLoss::new(&network, &Mat::identity(16), &c));
            let linear = lazy.rank_one_signal(network.strength, &own);
            // ReLU has corrections of relative order √θ.
            assert!((h / linear - 1.0).abs() < 5e-3, "{name}: {h} {linear}");
        }
    }

    #[test]
    fn the_lazy_flow_goes_from_the_base_to_the_floor() {
        let (network, c) = network("relu", 1.0);
        let lazy = LazyLoss::new(&network, &Mat::identity(16), &c);
        assert!((lazy.flow(0.0) - lazy.base).abs() < 1e-13);
        assert!((lazy.flow(1e6) - lazy.floor()).abs() < 1e-9 * lazy.base);
        assert!(lazy.flow(0.1) < lazy.flow(0.01));
    }

    #[test]
    fn a_refit_is_perfect_at_full_overlap_and_decreases_with_it() {
        for name in ["relu", "He3", "sigmoid"] {
            let (network, c) = network(name, 0.8);
            let floors = refit_floor(&network, &Mat::identity(16), &c, &[0.0, 0.5, 0.9, 1.0, -1.0, -0.5]);
            let scale = floors[0];
            assert!(floors[3].abs() < 1e-8 * scale && floors[4].abs() < 1e-8 * scale, "{name}: {floors:?}");
            assert!(
                floors[0] > floors[1] && floors[1] > floors[2] && floors[2] > floors[3],
                "{name}: {floors:?}"
            );
            assert!((floors[1] - floors[5]).abs() < 1e-8 * scale, "{name}: {floors:?}");
        }
    }

    #[test]
    fn the_first_moment_is_blind_without_a_linear_part() {
        let (he3, c) = network("He3", 1.0);
        assert!(moment_estimator(&he3, &Mat::identity(16), &c, 10.0).signal.abs() < 1e-14);
        let (relu, c) = network("relu", 1.0);
        let few = moment_estimator(&relu, &Mat::identity(16), &c, 0.5).squared_overlap;
        let many = moment_estimator(&relu, &Mat::identity(16), &c, 50.0).squared_overlap;
        assert!(0.0 < few && few < many && many < 1.0);
    }
}
