//! Quantiles and proportions.

use crate::error::{AnalysisError, check_confidence};
use crate::normal::normal_quantile;

/// A closed interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Whether the value lies inside, ends included.
    pub fn contains(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// Median of a sample (of an even one, the mean of its two middle values); NaN for an empty one.
pub fn median(sample: &[f64]) -> f64 {
    let mut sorted = sample.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    quantile_of_sorted(&sorted, 0.5)
}

/// Quantile of a sorted sample, linear between order statistics: position p (n − 1) counted from zero (type 7
/// of Hyndman & Fan, Am. Stat. 50, 361 (1996)); NaN for an empty one.
pub fn quantile_of_sorted(sorted: &[f64], probability: f64) -> f64 {
    if sorted.is_empty() {
        return f64::NAN;
    }
    let position = probability.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let left = position.floor() as usize;
    let right = (left + 1).min(sorted.len() - 1);
    let share = position - left as f64;
    // The two-sided form is exact where both values are equal or the share is 0 or 1/2 of a symmetric pair.
    (1.0 - share) * sorted[left] + share * sorted[right]
}

/// Half-width, in standard errors, of the two-sided normal interval of this confidence: 1.96 for 0.95.
pub fn normal_half_width(confidence: f64) -> Result<f64, AnalysisError> {
    check_confidence(confidence)?;
    Ok(normal_quantile(0.5 + 0.5 * confidence))
}

/// Wilson's interval of a proportion, with p̂ = successes/n and z the normal half-width of the confidence:
///
///   (p̂ + z²/2n ± z √(p̂(1−p̂)/n + z²/4n²)) / (1 + z²/n).
///
/// It stays inside [0, 1] and keeps its coverage at p̂ = 0 and 1, where the usual ±z√(p̂(1−p̂)/n) has width
/// zero. E. B. Wilson, JASA 22, 209 (1927); L. D. Brown, T. T. Cai, A. DasGupta, Stat. Sci. 16, 101 (2001).
pub fn wilson(successes: usize, trials: usize, confidence: f64) -> Result<Interval, AnalysisError> {
    let z = normal_half_width(confidence)?;
    if trials == 0 {
        return Err(AnalysisError::Empty { what: "trials" });
    }
    if successes > trials {
        let requirement = "there cannot be more successes than trials";
        return Err(AnalysisError::BadParameter { what: "successes", value: successes as f64, requirement });
    }
    let n = trials as f64;
    let share = successes as f64 / n;
    let ratio = z * z / n;
    let centre = (share + 0.5 * ratio) / (1.0 + ratio);
    let half = z * (share * (1.0 - share) / n + 0.25 * ratio / n).sqrt() / (1.0 + ratio);
    // The ends at 0 and n successes are exact; rounding would leave 1e-17.
    let low = if successes == 0 { 0.0 } else { centre - half };
    let high = if successes == trials { 1.0 } else { centre + half };
    Ok(Interval { low, high })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn median_and_quantiles_by_hand() {
        assert_eq!((median(&[4.0, 1.0, 3.0, 2.0]), median(&[3.0, 1.0, 2.0])), (2.5, 2.0));
        let sorted = [1.0, 2.0, 3.0, 4.0];
        assert_eq!((quantile_of_sorted(&sorted, 0.0), quantile_of_sorted(&sorted, 1.0)), (1.0, 4.0));
        assert_eq!(quantile_of_sorted(&sorted, 0.25), 1.75);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn wilson_ends_solve_their_quadratic() {
        // The ends are the p with (p̂ − p)² = z² p (1 − p) / n; at p̂ = 0 the upper one is z²/(n + z²).
        let z = normal_half_width(0.95).expect("confidence");
        assert!((z - 1.959963984540054).abs() < 1e-14);
        for (successes, trials) in [(3, 10), (50, 100), (1, 7)] {
            let interval = wilson(successes, trials, 0.95).expect("wilson");
            let (n, share) = (trials as f64, successes as f64 / trials as f64);
            for p in [interval.low, interval.high] {
                assert!(((share - p).powi(2) - z * z * p * (1.0 - p) / n).abs() < 1e-15);
            }
        }
        let none = wilson(0, 10, 0.95).expect("wilson");
        assert_eq!(none.low, 0.0);
        assert!((none.high - z * z / (10.0 + z * z)).abs() < 1e-15);
        assert_eq!(wilson(10, 10, 0.95).expect("wilson").high, 1.0);
        assert!(wilson(3, 2, 0.95).is_err() && wilson(0, 0, 0.95).is_err() && wilson(1, 2, 1.0).is_err());
    }

    #[test]
    fn wilson_covers_95_percent_on_average_over_the_proportion() {
        // Exact coverage by summing the binomial law at n = 30, averaged over p = 0.05 … 0.95. Brown, Cai &
        // DasGupta find the average within one percent of the nominal value for n ≥ 10 or so.
        let n = 30;
        let intervals: Vec<Interval> = (0..=n).map(|k| wilson(k, n, 0.95).expect("wilson")).collect();
        let coverage = |p: f64| {
            let mut probability = (1.0 - p).powi(n as i32);
            let mut total = 0.0;
            for (k, interval) in intervals.iter().enumerate() {
                total += if interval.contains(p) { probability } else { 0.0 };
                probability *= (n - k) as f64 / (k + 1) as f64 * p / (1.0 - p);
            }
            total
        };
        let average = (0..=90).map(|i| coverage(0.05 + 0.01 * f64::from(i))).sum::<f64>() / 91.0;
        assert!((average - 0.95).abs() < 0.01, "{average}");
    }

    proptest! {
        #[test]
        fn the_median_commutes_with_shift_and_scale(
            sample in prop::collection::vec(-10.0..10.0f64, 1..20), shift in -5.0..5.0f64, factor in -3.0..3.0f64,
        ) {
            let mapped: Vec<f64> = sample.iter().map(|v| factor * v + shift).collect();
            prop_assert!((median(&mapped) - factor * median(&sample) - shift).abs() < 1e-13);
        }

        #[test]
        fn more_confidence_widens_and_contains(successes in 0usize..50, extra in 0usize..50, low in 0.1..0.9f64) {
            prop_assume!(successes + extra > 0);
            let narrow = wilson(successes, successes + extra, low).expect("wilson");
            let wide = wilson(successes, successes + extra, low + 0.09).expect("wilson");
            prop_assert!(wide.low <= narrow.low && narrow.high <= wide.high);
            prop_assert!(wide.contains(successes as f64 / (successes + extra) as f64));
        }
    }
}
