//! Does the simulation agree with the theory? The largest deviation in standard errors.

use crate::error::{AnalysisError, check_length};

/// A standard error below this share of the mean is rounding: the replicas all have one value there.
const ROUNDING: f64 = 1e-12;
/// Where the replicas have no spread, mean and prediction must agree to this relative accuracy.
const AGREES: f64 = 1e-9;

/// Largest |mean − predicted| / standard error over the times of a curve; infinite where the replicas have no
/// spread, as at a shared start, and do not agree with the prediction to a relative 1e-9. NaN counts as no
/// deviation.
///
/// The deviations at neighbouring times are correlated, because each replica is a curve: what looks like many
/// deviations is often one. The largest of n independent normal scores exceeds z with a probability of at most
/// n P(|Z| > z), and correlation only lowers it.
pub fn largest_deviation(
    means: &[f64],
    standard_errors: &[f64],
    predicted: &[f64],
) -> Result<f64, AnalysisError> {
    check_length("standard errors", means.len(), standard_errors.len())?;
    check_length("predicted values", means.len(), predicted.len())?;
    let deviations = means.iter().zip(standard_errors).zip(predicted).map(|((mean, error), predicted)| {
        if *error > ROUNDING * mean.abs() {
            (mean - predicted).abs() / error
        } else {
            f64::from((mean - predicted).abs() > AGREES * mean.abs()) * f64::INFINITY
        }
    });
    Ok(deviations.map(|z| if z.is_nan() { 0.0 } else { z }).fold(0.0, f64::max))
}

/// Fewest replicas of which a variance is compared.
const FEWEST: usize = 3;

/// Largest |z| between variances over replicas and predicted ones: z = sqrt((r − 1)/2) ln(s²/σ²), which is standard normal up to terms
/// of order 1/r where (r − 1) s²/σ² is χ² with r − 1 degrees of freedom. `spreads` has the standard deviation and the number of the
/// replicas at every time. Times with fewer than three replicas, or at which nothing scatters by the prediction, are left out.
///
/// The z of neighbouring times are correlated, as in [`largest_deviation`].
pub fn largest_variance_deviation(spreads: &[(f64, usize)], predicted: &[f64]) -> Result<f64, AnalysisError> {
    check_length("predicted standard deviations", spreads.len(), predicted.len())?;
    let compared = spreads.iter().zip(predicted).filter(|((_, count), sd)| *count >= FEWEST && **sd > 0.0);
    let mut scores = compared
        .map(|((deviation, count), sd)| {
            ((*count as f64 - 1.0) / 2.0).sqrt() * 2.0 * (deviation / sd).ln().abs()
        })
        .peekable();
    if scores.peek().is_none() {
        return Err(AnalysisError::Empty { what: "times with three replicas and a predicted spread" });
    }
    Ok(scores.fold(0.0, f64::max))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_noise::Noise;
    use didact_math::random::statistics::SampleMean;

    #[test]
    fn the_largest_deviation_counts_in_its_own_standard_errors() {
        let z = largest_deviation(&[1.0, 2.0, 3.0], &[0.1, 0.5, 0.2], &[1.1, 0.5, 3.3]);
        assert_eq!(z, Ok(3.0));
        let short = largest_deviation(&[1.0], &[0.1, 0.2], &[1.0]);
        assert!(matches!(short, Err(AnalysisError::LengthsDiffer { expected: 1, got: 2, .. })));
    }

    #[test]
    fn a_shared_start_must_agree_to_rounding() {
        let z = |predicted: f64| largest_deviation(&[2.0, 1.0], &[0.0, 0.1], &[predicted, 1.0]).expect("z");
        assert_eq!((z(2.0), z(2.0 + 1e-9)), (0.0, 0.0));
        assert_eq!(z(2.0 + 1e-8), f64::INFINITY);
    }

    #[test]
    fn deviations_of_the_right_theory_are_those_of_student() {
        // Ten normal replicas at independent times: |t| with 9 degrees of freedom exceeds 2.2622 with 5 %.
        let mut noise = Noise::new(12);
        let (times, mut beyond) = (20_000, 0);
        for _ in 0..times {
            let mean = SampleMean::of((0..10).map(|_| 1.0 + noise.normal()));
            let z = largest_deviation(&[mean.value], &[mean.error], &[1.0]).expect("z");
            beyond += i32::from(z > 2.2622);
        }
        // Binomial deviation √(20000 · 0.05 · 0.95) = 31.
        assert!((beyond - 1000).abs() < 4 * 31, "{beyond}");
    }

    #[test]
    fn scores_of_variances_are_logarithms_of_their_ratio() {
        // √(8/2) ln(4/1) of nine replicas; times with two replicas, and at which nothing scatters, are left out.
        let z = largest_variance_deviation(&[(2.0, 9), (50.0, 2), (1e-9, 9)], &[1.0, 1.0, 0.0]);
        assert!((z.expect("z") - 2.0 * 4f64.ln()).abs() < 1e-14);
        assert!(largest_variance_deviation(&[(2.0, 2)], &[1.0]).is_err());
        assert!(largest_variance_deviation(&[(2.0, 9)], &[]).is_err());
        assert_eq!(largest_variance_deviation(&[(0.0, 9)], &[1.0]), Ok(f64::INFINITY));
    }

    #[test]
    fn variances_of_the_right_theory_have_normal_scores() {
        let mut noise = Noise::new(21);
        let (times, replicas, mut beyond) = (4_000, 100, 0);
        for _ in 0..times {
            let draws: Vec<f64> = (0..replicas).map(|_| noise.normal()).collect();
            let spread = SampleMean::of(draws.iter().copied());
            let z = largest_variance_deviation(&[(spread.deviation, spread.count)], &[1.0]).expect("z");
            beyond += usize::from(z > 1.96);
        }
        // 5 % of 4000, with a binomial error of 13.8 and a correction of order 1/r.
        assert!((150..=260).contains(&beyond), "{beyond}");
    }
}
