//! Escape times when some replicas never escape: Kaplan-Meier median, mean of log-times, fraction escaped.

use crate::error::AnalysisError;
use crate::passage::Passage;
use crate::statistics::{Interval, normal_half_width, wilson};
use didact_math::random::statistics::SampleMean;

/// What the replicas say about the escape time.
#[derive(Clone, Debug, PartialEq)]
pub struct EscapeSummary {
    /// Number of replicas.
    pub replicas: usize,
    /// Replicas that passed the level, those already beyond it at the start included.
    pub escaped: usize,
    /// Replicas already beyond the level at their first time; where there are any, the level or the start is
    /// suspect.
    pub beyond_at_start: usize,
    /// Wilson interval of the probability to escape while watched. Meaningful where all replicas were watched
    /// equally long.
    pub escape_probability: Interval,
    /// Kaplan-Meier median; None where fewer than half escape.
    pub median: Option<f64>,
    /// Lower end of the confidence interval of the median; None where these replicas do not bound it.
    pub median_low: Option<f64>,
    /// Upper end of the confidence interval of the median; None where these replicas do not bound it.
    pub median_high: Option<f64>,
    /// Mean of ln(time) with its standard error. None where a replica is censored (the mean over the escaped
    /// ones alone would be too early), where a time is not positive, or for a single replica.
    pub log_time: Option<SampleMean>,
}

/// Summary of the passages of all replicas at this confidence, for example 0.95.
pub fn summarise(passages: &[Passage], confidence: f64) -> Result<EscapeSummary, AnalysisError> {
    let curve = kaplan_meier(passages)?;
    let times: Vec<f64> = passages.iter().filter_map(|p| p.time()).collect();
    let (median_low, median_high) = curve.median_interval(confidence)?;
    let complete = times.len() == passages.len() && times.len() > 1 && times.iter().all(|&t| t > 0.0);
    let log_time = complete.then(|| SampleMean::of(times.iter().map(|t| t.ln())));
    Ok(EscapeSummary {
        replicas: passages.len(),
        escaped: times.len(),
        beyond_at_start: passages.iter().filter(|p| matches!(p, Passage::AtStart { .. })).count(),
        escape_probability: wilson(times.len(), passages.len(), confidence)?,
        median: curve.median(),
        median_low,
        median_high,
        log_time,
    })
}

/// The Kaplan-Meier estimate of S(t) = P(not yet escaped at t): a staircase that falls at each escape.
#[derive(Clone, Debug, PartialEq)]
pub struct KaplanMeier {
    /// Times of the escapes, increasing, each once.
    pub times: Vec<f64>,
    /// S just after each of them.
    pub survival: Vec<f64>,
    /// Greenwood's Var S / S² = Σ d_i / (n_i (n_i − d_i)) after each; infinite where S = 0.
    pub relative_variance: Vec<f64>,
}

/// S(t) = Π_{t_i ≤ t} (1 − d_i/n_i) with d_i escapes at t_i among the n_i replicas still watched just
/// before; a replica censored at t_i itself counts as watched there. E. L. Kaplan & P. Meier, JASA 53, 457 (1958).
///
/// Right where the censoring does not depend on the escape to come, as for a fixed end of the simulation.
pub fn kaplan_meier(passages: &[Passage]) -> Result<KaplanMeier, AnalysisError> {
    if passages.is_empty() {
        return Err(AnalysisError::Empty { what: "passages" });
    }
    if let Some(index) = passages.iter().position(|p| !p.watched_until().is_finite()) {
        let value = passages[index].watched_until();
        return Err(AnalysisError::NotFinite { what: "passages", index, value });
    }
    let mut ordered = passages.to_vec();
    // Escapes before censorings at equal times, which is the convention above.
    let key = |p: &Passage| (p.watched_until(), p.time().is_none());
    ordered.sort_by(|a, b| {
        let (a, b) = (key(a), key(b));
        a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
    });
    let mut curve = KaplanMeier { times: Vec::new(), survival: Vec::new(), relative_variance: Vec::new() };
    let (mut survival, mut variance, mut index) = (1.0, 0.0, 0);
    while index < ordered.len() {
        let watched = (ordered.len() - index) as f64;
        let Some(time) = ordered[index].time() else {
            index += 1;
            continue;
        };
        let together = ordered[index..].iter().take_while(|p| p.time() == Some(time)).count();
        let escapes = together as f64;
        survival *= (watched - escapes) / watched;
        variance += escapes / (watched * (watched - escapes));
        curve.times.push(time);
        curve.survival.push(survival);
        curve.relative_variance.push(variance);
        index += together;
    }
    Ok(curve)
}

impl KaplanMeier {
    /// The first t with S(t) ≤ 1/2, and where S is exactly 1/2 up to the next escape, the middle of that
    /// stretch, so that without censoring it is the ordinary median. None where S stays above 1/2.
    pub fn median(&self) -> Option<f64> {
        // S is a product of ratios of integers: "exactly 1/2" up to the rounding of the product.
        let rounding = 1e-12;
        let index = self.survival.iter().position(|&s| s <= 0.5 + rounding)?;
        let on_the_half = (self.survival[index] - 0.5).abs() <= rounding;
        match self.times.get(index + 1) {
            Some(next) if on_the_half => Some(0.5 * (self.times[index] + next)),
            _ => Some(self.times[index]),
        }
    }

    /// Ends of the interval of the median: where the pointwise band of S passes 1/2, on the scale ln(−ln S),
    ///
    ///   S^{exp(±z σ/|ln S|)},   σ² = Greenwood's relative variance.
    ///
    /// R. Brookmeyer & J. Crowley, Biometrics 38, 29 (1982), with the transformed band of Kalbfleisch &
    /// Prentice, which keeps its coverage at tens of replicas. An end that the band does not reach is None.
    pub fn median_interval(&self, confidence: f64) -> Result<(Option<f64>, Option<f64>), AnalysisError> {
        let z = normal_half_width(confidence)?;
        let passes = |sign: f64| {
            self.times.iter().enumerate().find_map(|(index, &time)| {
                let (s, variance) = (self.survival[index], self.relative_variance[index]);
                // At S = 0 the variance is undefined: the lower band is there, the upper one is not known.
                let band = if s > 0.0 {
                    s.powf((sign * z * variance.sqrt() / -s.ln()).exp())
                } else if sign > 0.0 {
                    0.0
                } else {
                    1.0
                };
                (band <= 0.5).then_some(time)
            })
        };
        Ok((passes(1.0), passes(-1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::median;
    use crate::test_noise::Noise;
    use proptest::prelude::*;

    fn passed(time: f64) -> Passage {
        Passage::Passed { time }
    }

    fn censored(at: f64) -> Passage {
        Passage::Censored { at }
    }

    #[test]
    fn the_estimate_agrees_with_the_textbook_remission_times() {
        // The 6-MP arm of Freireich et al. (1963), the standard worked example: S = 0.857, 0.807, 0.753,
        // 0.690, 0.627, 0.538, 0.448.
        let escaped = [6.0, 6.0, 6.0, 7.0, 10.0, 13.0, 16.0, 22.0, 23.0];
        let watched = [6.0, 9.0, 10.0, 11.0, 17.0, 19.0, 20.0, 25.0, 32.0, 32.0, 34.0, 35.0];
        let passages: Vec<Passage> =
            escaped.iter().map(|&t| passed(t)).chain(watched.iter().map(|&t| censored(t))).collect();
        let curve = kaplan_meier(&passages).expect("curve");
        assert_eq!(curve.times, vec![6.0, 7.0, 10.0, 13.0, 16.0, 22.0, 23.0]);
        let printed = [0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448];
        for (got, want) in curve.survival.iter().zip(printed) {
            assert!((got - want).abs() < 0.0005 + 1e-12, "{got} {want}");
        }
        // Greenwood's standard error at 10 is printed as 0.0963.
        let error = curve.survival[2] * curve.relative_variance[2].sqrt();
        assert!((error - 0.0963).abs() < 0.00005 + 1e-12, "{error}");
        assert_eq!(curve.median(), Some(23.0));
        assert_eq!(curve.median_interval(0.95), Ok((Some(13.0), None)));
    }

    #[test]
    fn a_summary_does_not_average_over_the_escaped_replicas_alone() {
        let summary = summarise(&[passed(1.0), passed(4.0), censored(5.0)], 0.95).expect("summary");
        assert_eq!((summary.escaped, summary.log_time, summary.median), (2, None, Some(4.0)));
        let complete = summarise(&[passed(1.0), passed(4.0)], 0.95).expect("summary");
        let log_time = complete.log_time.expect("no censoring");
        assert!((log_time.value - 2f64.ln()).abs() < 1e-15 && (log_time.error - 2f64.ln()).abs() < 1e-15);
        let silent = summarise(&[censored(5.0), censored(5.0)], 0.95).expect("summary");
        assert_eq!((silent.median, silent.median_low, silent.median_high), (None, None, None));
        assert_eq!(silent.escape_probability.low, 0.0);
        let start = summarise(&[Passage::AtStart { time: 0.0 }, passed(1.0)], 0.95).expect("summary");
        assert_eq!((start.beyond_at_start, start.log_time), (1, None));
        assert_eq!(summarise(&[], 0.95), Err(AnalysisError::Empty { what: "passages" }));
    }

    #[test]
    fn the_interval_of_a_censored_median_covers_it_as_often_as_it_should() {
        // Exponential escapes, 60 replicas, exponential censoring at 0.4 of the rate, 4000 repeats; median ln 2.
        // Binomial error of the coverage 0.35 %; the staircase of 60 replicas moves the coverage by about one
        // step at the ends, 1 %.
        let mut noise = Noise::new(3);
        let repeats = 4000;
        let mut covered = 0;
        for _ in 0..repeats {
            let passages: Vec<Passage> = (0..60)
                .map(|_| {
                    let (escape, end) = (noise.exponential(), noise.exponential() / 0.4);
                    if escape <= end { passed(escape) } else { censored(end) }
                })
                .collect();
            let (low, high) =
                kaplan_meier(&passages).expect("curve").median_interval(0.95).expect("interval");
            let truth = std::f64::consts::LN_2;
            covered += usize::from(low.is_some_and(|t| t <= truth) && high.is_none_or(|t| truth <= t));
        }
        let share = covered as f64 / f64::from(repeats);
        assert!((share - 0.95).abs() < 4.0 * 0.0035 + 0.01, "{share}");
    }

    proptest! {
        #[test]
        fn without_censoring_it_is_the_ordinary_median(times in prop::collection::vec(0.1..10.0f64, 1..40)) {
            let passages: Vec<Passage> = times.iter().map(|&t| passed(t)).collect();
            let curve = kaplan_meier(&passages).expect("curve");
            prop_assert!((curve.median().expect("all escaped") - median(&times)).abs() < 1e-14);
            // Greenwood without censoring is the binomial variance S(1 − S)/n.
            for (s, v) in curve.survival.iter().zip(&curve.relative_variance).filter(|(s, _)| **s > 1e-9) {
                prop_assert!((s * s * v - s * (1.0 - s) / times.len() as f64).abs() < 1e-13);
            }
        }

        #[test]
        fn order_does_not_matter_and_longer_watching_never_raises_survival(
            replicas in prop::collection::vec((0.1..10.0f64, any::<bool>()), 1..30),
        ) {
            let passages: Vec<Passage> =
                replicas.iter().map(|&(t, escaped)| if escaped { passed(t) } else { censored(t) }).collect();
            let reversed: Vec<Passage> = passages.iter().rev().copied().collect();
            let curve = kaplan_meier(&passages).expect("curve");
            prop_assert_eq!(&curve, &kaplan_meier(&reversed).expect("curve"));
            prop_assert!(curve.survival.windows(2).all(|w| w[1] < w[0]));
        }
    }
}
