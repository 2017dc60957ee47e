//! Running moments and Kolmogorov–Smirnov tests, for statistical tests of simulations.

use std::f64::consts::PI;

/// Mean and variance of a stream of numbers, without cancellation (B. P. Welford, Technometrics 4, 419, 1962).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    count: u64,
    mean: f64,
    /// Σ (x − mean)².
    squares: f64,
}

impl Moments {
    /// Creates an accumulator without numbers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one number.
    pub fn push(&mut self, value: f64) {
        self.count += 1;
        let shift = value - self.mean;
        self.mean += shift / self.count as f64;
        self.squares += shift * (value - self.mean);
    }

    /// Adds the numbers of another accumulator (T. F. Chan, G. H. Golub and R. J. LeVeque 1979).
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        let (a, b) = (self.count as f64, other.count as f64);
        let shift = other.mean - self.mean;
        self.count += other.count;
        self.mean += shift * b / (a + b);
        self.squares += other.squares + shift * shift * a * b / (a + b);
    }

    /// Number of numbers that were added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean of the numbers; 0 if there are none.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Unbiased estimate of the variance, Σ(x − mean)²/(n − 1); NaN for fewer than two numbers.
    pub fn variance(&self) -> f64 {
        if self.count < 2 { f64::NAN } else { self.squares / (self.count - 1) as f64 }
    }

    /// Standard error of the mean, √(variance/n); NaN for fewer than two numbers.
    pub fn standard_error(&self) -> f64 {
        (self.variance() / self.count as f64).sqrt()
    }
}

impl Extend<f64> for Moments {
    fn extend<I: IntoIterator<Item = f64>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.push(value));
    }
}

impl FromIterator<f64> for Moments {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut moments = Self::new();
        moments.extend(values);
        moments
    }
}

/// The mean of independent numbers, its standard error, and their spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleMean {
    /// The mean; NaN of none.
    pub value: f64,
    /// Its standard error √(s²/n), with s² the unbiased variance (0 of a single number).
    pub error: f64,
    /// The standard deviation s of the numbers (0 of a single one).
    pub deviation: f64,
    /// How many numbers.
    pub count: usize,
}

impl SampleMean {
    /// Of these numbers.
    pub fn of(sample: impl IntoIterator<Item = f64>) -> Self {
        let moments: Moments = sample.into_iter().collect();
        let count = moments.count() as usize;
        Self {
            value: if count == 0 { f64::NAN } else { moments.mean() },
            error: if count > 1 { moments.standard_error() } else { 0.0 },
            deviation: if count > 1 { moments.variance().sqrt() } else { 0.0 },
            count,
        }
    }
}

/// Result of a Kolmogorov–Smirnov test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KolmogorovSmirnov {
    /// Largest distance D between the two distribution functions.
    pub distance: f64,
    /// Probability of a distance this large or larger if the laws are the same.
    pub p_value: f64,
}

/// Tests a sample, which is sorted in place, against a continuous distribution function. Panics on an empty sample or a NaN.
pub fn one_sample(sample: &mut [f64], distribution: impl Fn(f64) -> f64) -> KolmogorovSmirnov {
    sort(sample);
    let n = sample.len() as f64;
    let distance = sample.iter().enumerate().fold(0.0_f64, |distance, (i, &x)| {
        let value = distribution(x);
        distance.max(value - i as f64 / n).max((i + 1) as f64 / n - value)
    });
    KolmogorovSmirnov { distance, p_value: p_value(distance, n) }
}

/// Tests whether two samples, which are sorted in place, have the same continuous law. Panics on an empty sample or a NaN.
pub fn two_sample(a: &mut [f64], b: &mut [f64]) -> KolmogorovSmirnov {
    sort(a);
    sort(b);
    let (n, m) = (a.len() as f64, b.len() as f64);
    let (mut i, mut j) = (0, 0);
    let mut distance = 0.0_f64;
    while i < a.len() && j < b.len() {
        // Equal values of both samples are passed together: the distance is taken between different values only.
        let x = a[i].min(b[j]);
        i += a[i..].iter().take_while(|&&value| value <= x).count();
        j += b[j..].iter().take_while(|&&value| value <= x).count();
        distance = distance.max((i as f64 / n - j as f64 / m).abs());
    }
    KolmogorovSmirnov { distance, p_value: p_value(distance, n * m / (n + m)) }
}

/// Q(λ) = 2 Σ_{k≥1} (−1)^{k−1} exp(−2k²λ²), the limit for n → ∞ of P(√n D > λ) (A. N. Kolmogorov 1933).
///
/// Below λ = 1 the equal sum 1 − (√(2π)/λ) Σ_{k odd} exp(−k²π²/8λ²), by Jacobi's theta identity, converges faster.
pub fn kolmogorov_tail(lambda: f64) -> f64 {
    if lambda <= 0.0 {
        return 1.0;
    }
    if lambda < 1.0 {
        let sum: f64 = [1.0, 3.0, 5.0, 7.0].iter().map(|k| (-(k * PI / lambda).powi(2) / 8.0).exp()).sum();
        return 1.0 - (2.0 * PI).sqrt() / lambda * sum;
    }
    (1..=5).fold(0.0, |sum, k| {
        let term = 2.0 * (-2.0 * (f64::from(k) * lambda).powi(2)).exp();
        if k % 2 == 1 { sum + term } else { sum - term }
    })
}

/// p-value with the small-sample correction of M. A. Stephens (J. R. Stat. Soc. B 32, 115, 1970):
/// Q(λ) at λ = (√n + 0.12 + 0.11/√n) D.
fn p_value(distance: f64, n: f64) -> f64 {
    let root = n.sqrt();
    kolmogorov_tail((root + 0.12 + 0.11 / root) * distance)
}

fn sort(sample: &mut [f64]) {
    assert!(!sample.is_empty(), "a Kolmogorov–Smirnov test needs a sample");
    assert!(!sample.iter().any(|x| x.is_nan()), "a Kolmogorov–Smirnov test cannot order NaN");
    sample.sort_unstable_by(f64::total_cmp);
}

#[cfg(test)]
mod tests {
    use super::super::stream::{RngAddress, Stream};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn moments_match_a_worked_example() {
        let m: Moments = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].into_iter().collect();
        assert_eq!((m.count(), m.mean()), (8, 5.0));
        assert!((m.variance() - 32.0 / 7.0).abs() < 1e-14);
        assert!((m.standard_error() - (4.0_f64 / 7.0).sqrt()).abs() < 1e-15);
        assert!(Moments::new().variance().is_nan());
    }

    #[test]
    fn the_mean_of_four_numbers_by_hand() {
        // s² = 5/3, standard error √(5/12).
        let mean = SampleMean::of([4.0, 1.0, 3.0, 2.0]);
        assert_eq!((mean.value, mean.count), (2.5, 4));
        assert!((mean.error - (5.0_f64 / 12.0).sqrt()).abs() < 1e-15);
        assert!((mean.deviation - (5.0_f64 / 3.0).sqrt()).abs() < 1e-15);
        let one = SampleMean::of([7.0]);
        assert_eq!((one.value, one.error, one.deviation), (7.0, 0.0, 0.0));
        assert!(SampleMean::of([]).value.is_nan());
    }

    proptest! {
        #[test]
        fn merging_equals_pushing_everything(values in prop::collection::vec(-1e3..1e3, 2..60), cut in 0usize..60) {
            let cut = cut.min(values.len());
            let whole: Moments = values.iter().copied().collect();
            let mut merged: Moments = values[..cut].iter().copied().collect();
            merged.merge(&values[cut..].iter().copied().collect());
            prop_assert_eq!(merged.count(), whole.count());
            prop_assert!((merged.mean() - whole.mean()).abs() < 1e-11);
            prop_assert!((merged.variance() - whole.variance()).abs() <= 1e-12 * (1e6 + whole.variance()));
        }
    }

    /// Upper quantiles of the limit law: Q(1.3581) = 0.05, Q(1.6276) = 0.01 (tables of Smirnov 1948).
    #[test]
    fn tail_matches_tabulated_quantiles_and_is_continuous() {
        assert!((kolmogorov_tail(1.3581) - 0.05).abs() < 2e-5);
        assert!((kolmogorov_tail(1.6276) - 0.01).abs() < 2e-5);
        assert!((kolmogorov_tail(1.0 - 1e-12) - kolmogorov_tail(1.0)).abs() < 1e-11);
        assert_eq!(kolmogorov_tail(0.0), 1.0);
    }

    #[test]
    fn distances_match_hand_computed_values() {
        assert!((one_sample(&mut [0.7, 0.1], |x| x).distance - 0.4).abs() < 1e-15);
        assert!((two_sample(&mut [1.0, 2.0, 3.0], &mut [2.0, 2.5]).distance - 1.0 / 3.0).abs() < 1e-15);
        assert_eq!(two_sample(&mut [1.0, 2.0], &mut [2.0, 1.0]).distance, 0.0);
    }

    /// Under the null hypothesis the p-value is uniform; the mean of 400 of them is 1/2 ± 1/√4800.
    #[test]
    fn p_values_are_uniform_under_the_null_hypothesis_and_small_otherwise() {
        let mut stream = Stream::at(RngAddress { seed: 5, replica: 0, step: 0, lane: 0 });
        let (mut one, mut two) = (Moments::new(), Moments::new());
        for _ in 0..400 {
            let (mut a, mut b) = (vec![0.0; 300], vec![0.0; 200]);
            stream.fill_uniform(&mut a);
            stream.fill_uniform(&mut b);
            one.push(one_sample(&mut a, |x| x).p_value);
            two.push(two_sample(&mut a, &mut b).p_value);
        }
        for m in [one, two] {
            assert!((m.mean() - 0.5).abs() < 5.0 / 4800.0_f64.sqrt() + 0.02, "{m:?}");
            assert!((m.variance() - 1.0 / 12.0).abs() < 0.02, "{m:?}");
        }
        let mut shifted: Vec<f64> = (0..1000).map(|_| 0.9 * stream.uniform()).collect();
        assert!(one_sample(&mut shifted, |x| x).p_value < 1e-6);
    }
}
