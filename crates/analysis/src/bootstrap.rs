//! Bootstrap over replicas: error and interval of any statistic, and bands over time.
//!
//! Whole runs are drawn with replacement, so correlations along a run are kept. Percentile intervals (B.
//! Efron & R. Tibshirani, *An Introduction to the Bootstrap* (1993), ch. 13): at few runs they are short by a
//! factor √((n−1)/n) and more. Deterministic: the same seed gives the same numbers.

use crate::error::{AnalysisError, check_confidence, check_runs};
use crate::replicas::values_at;
use crate::statistics::{Interval, mean_with_error, quantile_of_sorted};

/// How a bootstrap is done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bootstrap {
    /// Number of resamples; the ends of a 95 % interval need about a thousand.
    pub resamples: usize,
    /// Confidence of the interval.
    pub confidence: f64,
    /// Seed of the draws.
    pub seed: u64,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self { resamples: 1000, confidence: 0.95, seed: 0 }
    }
}

/// A statistic with its bootstrap error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The statistic of the sample itself.
    pub value: f64,
    /// Standard deviation of the statistic over the resamples.
    pub standard_error: f64,
    /// Percentile interval.
    pub interval: Interval,
}

/// A statistic at each time, with its pointwise percentile band.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// The statistic of the runs themselves.
    pub values: Vec<f64>,
    /// Lower end of the band.
    pub low: Vec<f64>,
    /// Upper end of the band.
    pub high: Vec<f64>,
}

impl Bootstrap {
    /// Bootstrap of a statistic of independent numbers, for example [`crate::statistics::median`].
    pub fn of_sample(
        self,
        sample: &[f64],
        statistic: impl Fn(&[f64]) -> f64,
    ) -> Result<Estimate, AnalysisError> {
        self.of_items(sample, |chosen: &[&f64]| {
            let numbers: Vec<f64> = chosen.iter().map(|&&v| v).collect();
            statistic(&numbers)
        })
    }

    /// Bootstrap of a statistic of whole replicas of any kind: runs, passages, fitted exponents.
    pub fn of_items<T>(
        self,
        items: &[T],
        statistic: impl Fn(&[&T]) -> f64,
    ) -> Result<Estimate, AnalysisError> {
        self.check(items.len())?;
        let value = statistic(&items.iter().collect::<Vec<_>>());
        let mut random = SplitMix64::new(self.seed);
        let mut replicates = Vec::with_capacity(self.resamples);
        for _ in 0..self.resamples {
            let chosen: Vec<&T> = random.resample(items.len()).into_iter().map(|i| &items[i]).collect();
            replicates.push(statistic(&chosen));
        }
        let interval = self.interval(&mut replicates)?;
        let spread = mean_with_error(&replicates).map_or(0.0, |m| m.standard_error * (m.count as f64).sqrt());
        Ok(Estimate { value, standard_error: spread, interval })
    }

    /// Pointwise band of a statistic over runs, on the times that at least `at_least` runs (two or more)
    /// reach.
    ///
    /// At each time the statistic is that of the resampled runs which reach it; a resample of which none does
    /// is left out there, a share below e^{−at_least} of them.
    pub fn band(
        self,
        times: &[f64],
        runs: &[Vec<f64>],
        at_least: usize,
        statistic: impl Fn(&[f64]) -> f64,
    ) -> Result<Band, AnalysisError> {
        check_runs(times, runs)?;
        self.check(runs.len())?;
        let at_least = at_least.max(2);
        if runs.len() < at_least {
            return Err(AnalysisError::TooFewRuns { what: "a band", runs: runs.len(), needed: at_least });
        }
        let covered =
            (0..times.len()).take_while(|&t| runs.iter().filter(|r| r.len() > t).count() >= at_least).count();
        let mut replicates: Vec<Vec<f64>> = vec![Vec::with_capacity(self.resamples); covered];
        let mut random = SplitMix64::new(self.seed);
        let mut alive = Vec::with_capacity(runs.len());
        for _ in 0..self.resamples {
            let chosen = random.resample(runs.len());
            for (time, replicates) in replicates.iter_mut().enumerate() {
                alive.clear();
                alive.extend(chosen.iter().filter_map(|&run| runs[run].get(time).copied()));
                if !alive.is_empty() {
                    replicates.push(statistic(&alive));
                }
            }
        }
        let mut band = Band { values: Vec::new(), low: Vec::new(), high: Vec::new() };
        for (time, replicates) in replicates.iter_mut().enumerate() {
            let interval = self.interval(replicates)?;
            band.values.push(statistic(&values_at(runs, time)));
            band.low.push(interval.low);
            band.high.push(interval.high);
        }
        Ok(band)
    }

    fn check(self, replicas: usize) -> Result<(), AnalysisError> {
        check_confidence(self.confidence)?;
        if self.resamples < 2 {
            let requirement = "an error needs at least two, an interval about a thousand";
            let value = self.resamples as f64;
            return Err(AnalysisError::BadParameter { what: "resamples", value, requirement });
        }
        if replicas < 2 {
            return Err(AnalysisError::TooFewRuns { what: "a bootstrap", runs: replicas, needed: 2 });
        }
        Ok(())
    }

    fn interval(self, replicates: &mut [f64]) -> Result<Interval, AnalysisError> {
        if let Some(index) = replicates.iter().position(|v| !v.is_finite()) {
            return Err(AnalysisError::NotFinite { what: "statistic", index, value: replicates[index] });
        }
        replicates.sort_unstable_by(f64::total_cmp);
        let tail = 0.5 * (1.0 - self.confidence);
        Ok(Interval {
            low: quantile_of_sorted(replicates, tail),
            high: quantile_of_sorted(replicates, 1.0 - tail),
        })
    }
}

/// SplitMix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014): a Weyl sequence and a mixing function. Small, and
/// more than good enough to choose which runs enter a resample; simulations use the counter-based generator
/// of the mathematics crate.
#[derive(Clone, Debug)]
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// `count` indices below `count`, uniform (to count/2⁶⁴) and independent.
    fn resample(&mut self, count: usize) -> Vec<usize> {
        let below = |draw: u64| ((u128::from(draw) * count as u128) >> 64) as usize;
        (0..count).map(|_| below(self.draw())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{mean, median};
    use crate::test_noise::Noise;
    use proptest::prelude::*;

    #[test]
    fn the_generator_gives_its_published_numbers() {
        // First outputs for seed 1234567 of the reference implementation.
        let mut random = SplitMix64::new(1234567);
        assert_eq!(random.draw(), 6457827717110365317);
        assert_eq!(random.draw(), 3203168211198807973);
        assert_eq!(random.draw(), 9817491932198370423);
    }

    #[test]
    fn the_error_of_a_mean_is_the_plug_in_error() {
        // Var of a bootstrap mean is exactly Σ(v − v̄)²/n²; 20000 resamples know its root to 1/√40000 = 0.5
        // %.
        let sample = [1.0, 4.0, 2.0, 8.0, 5.0, 7.0];
        let centre = mean(&sample);
        let exact = (sample.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / 36.0).sqrt();
        let bootstrap = Bootstrap { resamples: 20_000, ..Bootstrap::default() };
        let estimate = bootstrap.of_sample(&sample, mean).expect("bootstrap");
        assert_eq!(estimate.value, centre);
        assert!((estimate.standard_error / exact - 1.0).abs() < 4.0 * 0.005, "{estimate:?} {exact}");
    }

    #[test]
    fn the_interval_leaves_half_of_the_rest_on_each_side() {
        let mut replicates: Vec<f64> = (0..=1000).rev().map(f64::from).collect();
        let interval = Bootstrap { confidence: 0.9, ..Bootstrap::default() }.interval(&mut replicates);
        let Interval { low, high } = interval.expect("finite");
        assert!((low - 50.0).abs() < 1e-9 && (high - 950.0).abs() < 1e-9, "{low} {high}");
    }

    #[test]
    fn the_percentile_interval_of_a_mean_covers_as_theory_says() {
        // n = 40 normals: the interval is v̄ ± z s √((n−1)/n)/√n, so it covers with P(|t_39| < 1.645
        // √(39/40)) = 0.8876, less about 0.002 for 400 resamples; binomial error over 1500 repeats 0.008.
        let mut noise = Noise::new(21);
        let (repeats, mut covered) = (1500, 0);
        for seed in 0..repeats {
            let sample: Vec<f64> = (0..40).map(|_| noise.normal()).collect();
            let bootstrap = Bootstrap { resamples: 400, confidence: 0.9, seed };
            covered +=
                usize::from(bootstrap.of_sample(&sample, mean).expect("bootstrap").interval.contains(0.0));
        }
        let share = covered as f64 / repeats as f64;
        assert!((share - 0.8866).abs() < 4.0 * 0.008, "{share}");
    }

    #[test]
    fn a_band_is_the_bootstrap_at_each_time_of_the_runs_that_reach_it() {
        let mut noise = Noise::new(2);
        let times: Vec<f64> = (0..6).map(f64::from).collect();
        let runs: Vec<Vec<f64>> =
            (0..10).map(|run| (0..if run < 3 { 3 } else { 6 }).map(|_| noise.normal()).collect()).collect();
        let bootstrap = Bootstrap { resamples: 300, confidence: 0.8, seed: 5 };
        let band = bootstrap.band(&times, &runs, 2, median).expect("band");
        assert_eq!(band.values.len(), 6);
        for time in 0..6 {
            // The slow way: the same draws, one time alone, skipping runs that have ended.
            let slow = bootstrap.of_items(&runs, |chosen| {
                median(&chosen.iter().filter_map(|run| run.get(time).copied()).collect::<Vec<_>>())
            });
            let slow = slow.expect("bootstrap");
            assert_eq!(
                (band.values[time], band.low[time], band.high[time]),
                (slow.value, slow.interval.low, slow.interval.high)
            );
        }
        assert_eq!(bootstrap.band(&times, &runs, 8, median).expect("band").values.len(), 3);
    }

    #[test]
    fn one_run_no_resamples_and_a_statistic_without_value_are_refused() {
        let bootstrap = Bootstrap::default();
        assert!(matches!(bootstrap.of_sample(&[1.0], mean), Err(AnalysisError::TooFewRuns { runs: 1, .. })));
        let none = Bootstrap { resamples: 0, ..bootstrap };
        assert!(matches!(none.of_sample(&[1.0, 2.0], mean), Err(AnalysisError::BadParameter { .. })));
        let nan = bootstrap.of_sample(&[1.0, 2.0], |_| f64::NAN);
        assert!(matches!(nan, Err(AnalysisError::NotFinite { what: "statistic", .. })));
    }

    proptest! {
        #[test]
        fn same_seed_same_numbers_and_the_interval_moves_with_the_sample(
            sample in prop::collection::vec(-1.0..1.0f64, 2..15), seed in any::<u64>(), shift in -3.0..3.0f64,
        ) {
            let bootstrap = Bootstrap { resamples: 50, confidence: 0.9, seed };
            let first = bootstrap.of_sample(&sample, mean).expect("bootstrap");
            prop_assert_eq!(first, bootstrap.of_sample(&sample, mean).expect("bootstrap"));
            let moved: Vec<f64> = sample.iter().map(|v| v + shift).collect();
            let second = bootstrap.of_sample(&moved, mean).expect("bootstrap");
            prop_assert!((second.interval.low - first.interval.low - shift).abs() < 1e-13);
            prop_assert!((second.standard_error - first.standard_error).abs() < 1e-13);
            let (low, high) = sample.iter().fold((1.0_f64, -1.0_f64), |(l, h), &v| (l.min(v), h.max(v)));
            prop_assert!(first.interval.low >= low - 1e-15 && first.interval.high <= high + 1e-15);
        }
    }
}
