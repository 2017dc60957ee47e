//! Linear units: the exact mean learning curve, at any learning rate, in the limit N → ∞ and at finite N.
//!
//! K linear units learn from M as one unit learns from one, with η → η M/K and σ_J² → σ_J² M/K
//! (docs/derivations/power-law-spectra.md#eq-19): the sums of the rows are all that matters. So this is online linear
//! regression on Gaussian inputs.

use didact_math::linalg::{RankOneEigen, largest_rank_one_eigenvalue};
use didact_math::roots::{brent, minimum};
use didact_model::spectrum::Spectrum;

/// Online linear regression, averaged over teachers, starts and examples.
///
/// c_a is the mean square of the weight error B − J in a coordinate of group a. Groups that are not trained are left out
/// of the lists; the variance of the label that they carry is `untrained`.
#[derive(Debug, Clone, PartialEq)]
pub struct Regression {
    /// λ_a of the trained groups.
    pub eigenvalues: Vec<f64>,
    /// w_a = n_a/N of the trained groups.
    pub weights: Vec<f64>,
    /// c_a at the start; 1 + σ_J² for random rows.
    pub initial: Vec<f64>,
    /// η.
    pub learning_rate: f64,
    /// s², variance of the noise on the labels; it is no part of the error.
    pub label_noise: f64,
    /// Σ w_b λ_b c_b over the coordinates that are not trained: noise that is part of the error.
    pub untrained: f64,
}

/// When a learning curve is exact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CurveSize {
    /// N → ∞ at fixed multiplicity fractions (docs/derivations/power-law-spectra.md#s4-3).
    Limit,
    /// The mean over SGD runs in N dimensions (docs/derivations/power-law-spectra.md#s4-7).
    Dimension(f64),
}

/// A learning curve as a sum over modes, ε(α) = Σ_k A_k e^{μ_k α} plus what the noise drives.
#[derive(Debug, Clone)]
pub struct Curve {
    /// μ_k ascending, per α in the limit, per step at finite N.
    values: Vec<f64>,
    /// A_k.
    amplitudes: Vec<f64>,
    /// ½ (v·u_k)(b·u_k), b being what noise adds per unit of time.
    drives: Vec<f64>,
    /// Error of the untrained directions.
    floor: f64,
    size: CurveSize,
}

impl Regression {
    /// All directions trained, random rows at the start.
    pub fn new(spectrum: &Spectrum, learning_rate: f64, student_variance: f64) -> Self {
        Self {
            eigenvalues: spectrum.eigenvalues().to_vec(),
            weights: spectrum.weights().to_vec(),
            initial: vec![1.0 + student_variance; spectrum.len()],
            learning_rate,
            label_noise: 0.0,
            untrained: 0.0,
        }
    }

    /// The mean learning curve.
    ///
    /// With c_a = h_a/√w_a and v_a = λ_a √w_a the equations are symmetric,
    ///
    ///   dh/dα = S h + b,   S = −2η diag(λ) + η² v vᵀ,   b = η² s² v,   ε = ½ v·h          (N → ∞),
    ///   h ← (1 + S) h + b, S = diag(−2x + 2x²) + (η²/N) v vᵀ,  x = ηλ/N,  b = (η²/N) s² v   (per step, finite N).
    ///
    /// Groups with equal diagonal entries act as one: only the component of h along v is seen.
    pub fn curve(&self, size: CurveSize) -> Curve {
        let rate = self.learning_rate;
        let (diagonal, weight): (Vec<f64>, f64) = match size {
            CurveSize::Limit => (self.eigenvalues.iter().map(|l| -2.0 * rate * l).collect(), rate * rate),
            CurveSize::Dimension(n) => {
                let entry = |l: &f64| {
                    let x = rate * l / n;
                    -2.0 * x + 2.0 * x * x
                };
                (self.eigenvalues.iter().map(entry).collect(), rate * rate / n)
            }
        };
        let mut order: Vec<usize> = (0..diagonal.len()).collect();
        order.sort_by(|a, b| diagonal[*a].total_cmp(&diagonal[*b]));
        // Per distinct diagonal entry: itself, |v|² and v·h.
        let mut groups: Vec<(f64, f64, f64)> = Vec::new();
        for a in order {
            let (square, along) = (
                self.eigenvalues[a].powi(2) * self.weights[a],
                self.eigenvalues[a] * self.weights[a] * self.initial[a],
            );
            match groups.last_mut() {
                Some(last) if last.0 == diagonal[a] => {
                    last.1 += square;
                    last.2 += along;
                }
                _ => groups.push((diagonal[a], square, along)),
            }
        }
        let v: Vec<f64> = groups.iter().map(|g| g.1.sqrt()).collect();
        let start: Vec<f64> = groups.iter().zip(&v).map(|(g, v)| g.2 / v).collect();
        let system = RankOneEigen::new(groups.iter().map(|g| g.0).collect(), weight, v.clone());
        let (reading, start) = (system.project(&v), system.project(&start));
        let noise = weight * (self.label_noise + self.untrained);
        Curve {
            values: system.values(),
            amplitudes: reading.iter().zip(&start).map(|(v, h)| 0.5 * v * h).collect(),
            drives: reading.iter().map(|v| 0.5 * v * v * noise).collect(),
            floor: 0.5 * self.untrained,
            size,
        }
    }

    /// μ_k in the limit N → ∞, one per eigenvalue, ascending: the roots of 1 = η² Σ_a w_a λ_a²/(μ + 2ηλ_a)
    /// (docs/derivations/power-law-spectra.md#eq-23).
    pub fn rates(&self) -> Vec<f64> {
        let curve = self.curve(CurveSize::Limit);
        let mut rates = curve.values;
        // Modes within a degenerate group that v does not see decay on their own.
        let mut sorted = self.eigenvalues.clone();
        sorted.sort_by(f64::total_cmp);
        rates.extend(sorted.windows(2).filter(|w| w[0] == w[1]).map(|w| -2.0 * self.learning_rate * w[0]));
        rates.sort_by(f64::total_cmp);
        rates
    }
}

impl Curve {
    /// ⟨ε_g⟩(α); at finite N after the nearest whole number of steps.
    pub fn error(&self, alpha: f64) -> f64 {
        self.floor + self.sum(alpha, |k, growth| self.amplitudes[k] * growth.exp() + self.driven(k, growth))
    }

    /// d ln ε/d ln α, the local exponent of the curve.
    pub fn local_exponent(&self, alpha: f64) -> f64 {
        let per_alpha = |k: usize| match self.size {
            CurveSize::Limit => self.values[k],
            CurveSize::Dimension(n) => n * self.values[k].ln_1p(),
        };
        let slope = self.sum(alpha, |k, growth| {
            let drive = if self.drives[k] == 0.0 { 0.0 } else { self.drives[k] / self.values[k] };
            (self.amplitudes[k] + drive) * per_alpha(k) * growth.exp()
        });
        alpha * slope / self.error(alpha)
    }

    /// ε_g(∞), infinite when unstable.
    pub fn limit(&self) -> f64 {
        if self.values.last().is_some_and(|top| *top >= 0.0) {
            return f64::INFINITY;
        }
        let driven: f64 = self.drives.iter().zip(&self.values).map(|(d, mu)| -d / mu).sum();
        self.floor + driven
    }

    /// μ_k and A_k, ascending in μ.
    pub fn modes(&self) -> (&[f64], &[f64]) {
        (&self.values, &self.amplitudes)
    }

    /// The curve at any α, also between two steps of finite N: every mode is continued as a power.
    pub fn between_steps(&self, alpha: f64) -> f64 {
        self.floor
            + self.sum_at(alpha, |k, growth| self.amplitudes[k] * growth.exp() + self.driven(k, growth))
    }

    fn sum(&self, alpha: f64, term: impl Fn(usize, f64) -> f64) -> f64 {
        match self.size {
            CurveSize::Limit => self.sum_at(alpha, term),
            CurveSize::Dimension(n) => self.sum_at((alpha * n).round() / n, term),
        }
    }

    fn sum_at(&self, alpha: f64, term: impl Fn(usize, f64) -> f64) -> f64 {
        let growth = |mu: f64| match self.size {
            CurveSize::Limit => mu * alpha,
            CurveSize::Dimension(n) => alpha * n * mu.ln_1p(),
        };
        (0..self.values.len()).map(|k| term(k, growth(self.values[k]))).sum()
    }

    /// (e^{growth} − 1)/μ times the drive: what noise has added.
    fn driven(&self, k: usize, growth: f64) -> f64 {
        if self.drives[k] == 0.0 {
            return 0.0;
        }
        self.drives[k] * growth.exp_m1() / self.values[k]
    }
}

/// η_c = 2/ν_1 in the limit N → ∞, for every spectrum: the largest mode then neither grows nor decays
/// (docs/derivations/power-law-spectra.md#eq-24).
pub fn critical_rate(spectrum: &Spectrum) -> f64 {
    2.0 / spectrum.moment(1)
}

/// η_c(N), above which the mean error of SGD in N dimensions grows: the root of Σ_b n_b x_b/(1 − x_b) = 2, x = ηλ/N
/// (docs/derivations/power-law-spectra.md#eq-33).
pub fn critical_rate_at(spectrum: &Spectrum, dimension: f64) -> f64 {
    let largest = spectrum.eigenvalues().iter().copied().fold(0.0, f64::max);
    let end = dimension / largest;
    let excess = |rate: f64| {
        let term = |(l, w): (&f64, &f64)| {
            let x = rate * l / dimension;
            w * dimension * x / (1.0 - x)
        };
        spectrum.eigenvalues().iter().zip(spectrum.weights()).map(term).sum::<f64>() - 2.0
    };
    // The sum exceeds N η ν_1/N, so the root is below 2/ν_1; and it diverges at N/λ_max, which may come first.
    let high = (2.0 / spectrum.moment(1)).min(end * (1.0 - 1e-15));
    brent(excess, 0.0, high, 0.0).unwrap_or(high)
}

/// The rate that makes the slowest mode fastest, and the decay rate −μ_max of that mode: (η_opt, −μ_max).
///
/// μ_max(η) is convex, so the minimum in (0, η_c) is the only one.
pub fn optimal_rate(spectrum: &Spectrum) -> (f64, f64) {
    let mut order: Vec<usize> = (0..spectrum.len()).collect();
    order.sort_by(|a, b| spectrum.eigenvalues()[*b].total_cmp(&spectrum.eigenvalues()[*a]));
    let v: Vec<f64> =
        order.iter().map(|&a| spectrum.eigenvalues()[a] * spectrum.weights()[a].sqrt()).collect();
    let largest = |rate: f64| {
        let poles: Vec<f64> = order.iter().map(|&a| -2.0 * rate * spectrum.eigenvalues()[a]).collect();
        largest_rank_one_eigenvalue(&poles, rate * rate, &v)
    };
    let end = critical_rate(spectrum);
    let best = minimum(largest, 1e-9 * end, end, 1e-12);
    (best.at, -best.value)
}

/// ε_g(∞) under label noise of variance s²: ½ η ν_1 s²/(2 − η ν_1), whatever the spectrum; infinite from η_c on
/// (docs/derivations/power-law-spectra.md#eq-25).
pub fn noise_floor(moment: f64, learning_rate: f64, label_noise: f64) -> f64 {
    let share = learning_rate * moment;
    if share >= 2.0 { f64::INFINITY } else { 0.5 * share * label_noise / (2.0 - share) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn direct(regression: &Regression, n: f64, steps: usize) -> f64 {
        let mut c = regression.initial.clone();
        let total = |c: &[f64]| -> f64 {
            (0..c.len()).map(|a| n * regression.weights[a] * regression.eigenvalues[a] * c[a]).sum()
        };
        for _ in 0..steps {
            let noise = total(&c) + n * (regression.untrained + regression.label_noise);
            for (c, l) in c.iter_mut().zip(&regression.eigenvalues) {
                let x = regression.learning_rate * l / n;
                *c = *c * (1.0 - 2.0 * x + 2.0 * x * x)
                    + regression.learning_rate.powi(2) / (n * n) * l * noise;
            }
        }
        0.5 * total(&c) / n + 0.5 * regression.untrained
    }

    #[test]
    fn modes_are_the_recursion_of_the_mean_squares() {
        let spectrum = Spectrum::power_law(24, 0.6).unwrap();
        for (rate, noise, untrained) in [(0.3, 0.0, 0.0), (0.8, 0.1, 0.02)] {
            let mut regression = Regression::new(&spectrum, rate, 0.4);
            (regression.label_noise, regression.untrained) = (noise, untrained);
            let curve = regression.curve(CurveSize::Dimension(48.0));
            for steps in [0, 1, 7, 300, 5000] {
                let (got, want) = (curve.error(steps as f64 / 48.0), direct(&regression, 48.0, steps));
                assert!((got / want - 1.0).abs() < 1e-11, "{rate} {steps}: {got} {want}");
            }
        }
    }

    #[test]
    fn large_dimensions_approach_the_limit_as_one_over_n() {
        let spectrum = Spectrum::new(vec![2.0, 0.8, 0.2], vec![0.25, 0.5, 0.25]).unwrap();
        let regression = Regression::new(&spectrum, 0.6, 0.1);
        let limit = regression.curve(CurveSize::Limit).error(5.0);
        let off = |n: f64| (regression.curve(CurveSize::Dimension(n)).error(5.0) - limit).abs();
        let ratio = off(1e3) / off(1e4);
        assert!((ratio - 10.0).abs() < 0.2, "{ratio}");
    }

    #[test]
    fn stability_ends_at_two_over_the_mean_eigenvalue() {
        let spectrum = Spectrum::new(vec![3.0, 1.0, 0.3], vec![0.2, 0.5, 0.3]).unwrap();
        let critical = critical_rate(&spectrum);
        let top = |rate: f64| *Regression::new(&spectrum, rate, 0.0).rates().last().unwrap();
        assert!(top(0.999 * critical) < 0.0 && top(1.001 * critical) > 0.0);
        let at = critical_rate_at(&spectrum, 60.0);
        let mean =
            |rate: f64| Regression::new(&spectrum, rate, 0.0).curve(CurveSize::Dimension(60.0)).limit();
        assert!(at < critical && mean(0.999 * at).is_finite() && mean(1.001 * at).is_infinite());
    }

    #[test]
    fn one_eigenvalue_is_learned_fastest_at_rate_one() {
        let (rate, decay) = optimal_rate(&Spectrum::isotropic());
        assert!((rate - 1.0).abs() < 1e-7 && (decay - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_noise_floor_is_where_the_curve_ends() {
        let spectrum = Spectrum::power_law(6, 0.4).unwrap();
        let mut regression = Regression::new(&spectrum, 0.7, 1.0);
        regression.label_noise = 0.3;
        let (floor, curve) = (noise_floor(1.0, 0.7, 0.3), regression.curve(CurveSize::Limit));
        assert!(
            (curve.limit() / floor - 1.0).abs() < 1e-12 && (curve.error(1e5) / floor - 1.0).abs() < 1e-12
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn sum_rule_and_splitting(
            logs in prop::collection::vec(-3.0..1.0f64, 1..8),
            rate in 0.05..1.5f64,
            alpha in 0.0..20.0f64,
        ) {
            let eigenvalues: Vec<f64> = logs.iter().map(|l| l.exp()).collect();
            let weights = vec![1.0 / eigenvalues.len() as f64; eigenvalues.len()];
            let spectrum = Spectrum::new(eigenvalues.clone(), weights.clone()).unwrap();
            let rate = rate / spectrum.moment(1);
            let regression = Regression::new(&spectrum, rate, 0.5);
            let curve = regression.curve(CurveSize::Limit);
            // Σ_k A_k = (1 + σ_J²) ν_1/2.
            prop_assert!((curve.error(0.0) / (0.75 * spectrum.moment(1)) - 1.0).abs() < 1e-11);
            // An eigenvalue split into two groups changes nothing.
            let halves = |v: &[f64], by: f64| v.iter().flat_map(|x| [x * by, x * by]).collect::<Vec<f64>>();
            let split = Spectrum::new(halves(&eigenvalues, 1.0), halves(&weights, 0.5)).unwrap();
            let other = Regression::new(&split, rate, 0.5);
            let (a, b) = (curve.error(alpha), other.curve(CurveSize::Limit).error(alpha));
            prop_assert!((a - b).abs() <= 1e-10 * a, "{a} {b}");
            prop_assert_eq!(other.rates().len(), split.len());
            // λ → cλ, η → η/c, weights of the rows → 1/√c.
            let scaled = Spectrum::new(eigenvalues.iter().map(|l| 3.0 * l).collect(), weights).unwrap();
            let c = Regression::new(&scaled, rate / 3.0, 0.5).curve(CurveSize::Limit).error(alpha) / 3.0;
            prop_assert!((a - c).abs() <= 1e-10 * a, "{a} {c}");
        }
    }
}
