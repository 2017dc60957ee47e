//! Does the simulation agree with the theory? Deviations in standard errors, and how they shrink with the
//! dimension.

use crate::error::{AnalysisError, check_curve, check_finite, check_length};
use crate::interpolate::{Axes, interpolate};
use crate::special::{chi2_upper_tail, normal_quantile, normal_two_sided_tail, student_two_sided_tail};
use didact_math::fits::{Noise, PowerLaw, power_law};

/// A curve measured with errors, such as the mean over runs: [`crate::replicas::Average::measured`].
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    /// Times, increasing.
    pub times: &'a [f64],
    /// Mean at each time.
    pub means: &'a [f64],
    /// Standard error of each mean; zero where all runs agree (a fixed start).
    pub standard_errors: &'a [f64],
    /// Number of runs behind each mean; empty where the standard errors are known rather than estimated from
    /// the runs.
    pub counts: &'a [usize],
}

/// A predicted curve.
#[derive(Clone, Copy, Debug)]
pub struct Predicted<'a> {
    /// Times, increasing; they must cover the measured ones.
    pub times: &'a [f64],
    /// Value at each time.
    pub values: &'a [f64],
    /// Axes on which the curve is straight between two samples.
    pub axes: Axes,
}

/// Agreement of a measured with a predicted curve.
///
/// With a standard error estimated from n runs, t = (mean − theory)/standard error follows Student's law with
/// n − 1 degrees of freedom, not the normal one: at n = 5 as many as 12 % lie beyond 2. So z is the normal
/// score that is as improbable as t, P(|Z| > |z|) = P(|T_{n−1}| > |t|), and 2 and 3 mean what they usually
/// mean at any number of runs.
///
/// The z at neighbouring times are correlated, because each run is a curve: what looks like many deviations
/// is often one. `largest` and the expected fractions are right nevertheless; `p_value_if_independent` is
/// what its name says, and lies too often near 0 and near 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Normal score of (mean − theory) / standard error at each time; 0 where both have no spread and agree.
    pub z: Vec<f64>,
    /// Number of times with a spread, the ones that count below.
    pub compared: usize,
    /// Largest |z|.
    pub largest: f64,
    /// Time of the largest |z|.
    pub largest_at: f64,
    /// Root mean square of z; 1 for agreement.
    pub rms: f64,
    /// Fraction of times with |z| > 2; 4.6 % for agreement.
    pub beyond_two: f64,
    /// Fraction of times with |z| > 3; 0.27 % for agreement.
    pub beyond_three: f64,
    /// Σ z².
    pub chi2: f64,
    /// P(χ² > Σ z²) with one degree of freedom per time, as if the times were independent. They are not: see
    /// above.
    pub p_value_if_independent: f64,
    /// min(1, compared · P(|Z| > largest)): the Bonferroni bound on the probability of so large a z anywhere,
    /// valid for any correlation.
    pub p_value_bound: f64,
}

/// z-scores of the measured against the predicted curve, interpolated at the measured times, and their
/// summary.
///
/// Where the standard error is 0 the two must agree to a relative 1e-9 (they share the start), else the
/// comparison is refused.
pub fn compare(measured: Measured<'_>, predicted: Predicted<'_>) -> Result<Comparison, AnalysisError> {
    let theory = theory_at(measured, predicted)?;
    let mut z = Vec::with_capacity(theory.len());
    let (mut compared, mut largest, mut largest_at) = (0_usize, 0.0_f64, measured.times[0]);
    for (index, &expected) in theory.iter().enumerate() {
        let (mean, error) = (measured.means[index], measured.standard_errors[index]);
        let time = measured.times[index];
        if error == 0.0 {
            if (mean - expected).abs() > 1e-9 * mean.abs().max(expected.abs()) {
                return Err(AnalysisError::NoSpread { time, mean, theory: expected });
            }
            z.push(0.0);
            continue;
        }
        let t = (mean - expected) / error;
        let score = measured.counts.get(index).map_or(t, |&runs| normal_score(t, runs));
        compared += 1;
        if score.abs() > largest {
            (largest, largest_at) = (score.abs(), time);
        }
        z.push(score);
    }
    if compared == 0 {
        return Err(AnalysisError::Empty { what: "times at which the runs differ" });
    }
    let count = compared as f64;
    let beyond = |limit: f64| z.iter().filter(|z| z.abs() > limit).count() as f64 / count;
    let chi2 = z.iter().map(|z| z * z).sum::<f64>();
    Ok(Comparison {
        compared,
        largest,
        largest_at,
        rms: (chi2 / count).sqrt(),
        beyond_two: beyond(2.0),
        beyond_three: beyond(3.0),
        chi2,
        p_value_if_independent: chi2_upper_tail(chi2, count),
        p_value_bound: (count * normal_two_sided_tail(largest)).min(1.0),
        z,
    })
}

/// Root-mean-square distance of two curves over the measured times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Deviation {
    /// √⟨(mean − theory)²⟩.
    pub rms: f64,
    /// √⟨standard error²⟩: what `rms` would be by the noise of the runs alone.
    pub noise: f64,
    /// √max(0, rms² − noise²): the part that more runs would not remove.
    pub systematic: f64,
}

/// Distance of the measured from the predicted curve, with the share that the noise of the runs explains.
pub fn deviation(measured: Measured<'_>, predicted: Predicted<'_>) -> Result<Deviation, AnalysisError> {
    let theory = theory_at(measured, predicted)?;
    let count = theory.len() as f64;
    let square = measured.means.iter().zip(&theory).map(|(m, t)| (m - t).powi(2)).sum::<f64>() / count;
    let noise = measured.standard_errors.iter().map(|e| e * e).sum::<f64>() / count;
    Ok(Deviation { rms: square.sqrt(), noise: noise.sqrt(), systematic: (square - noise).max(0.0).sqrt() })
}

/// How the deviation shrinks with the dimension: deviation ≈ prefactor · d^exponent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviationLaw {
    /// The fit.
    pub fit: PowerLaw,
    /// (exponent + 1/2) / error: distance, in standard errors, from the d^{−1/2} of the fluctuations of one
    /// run.
    pub z_from_half: f64,
    /// (exponent + 1) / error: distance, in standard errors, from the 1/d of the mean.
    pub z_from_one: f64,
}

/// Fit of deviations measured at several dimensions. A deviation of zero has no logarithm and is refused with
/// its position.
pub fn deviation_law(
    dimensions: &[f64],
    deviations: &[f64],
    noise: Noise<'_>,
) -> Result<DeviationLaw, AnalysisError> {
    check_length("deviations", dimensions.len(), deviations.len())?;
    for (what, numbers) in [("dimensions", dimensions), ("deviations", deviations)] {
        check_finite(what, numbers)?;
        if let Some(index) = numbers.iter().position(|&v| v <= 0.0) {
            return Err(AnalysisError::NotPositive { what, index, value: numbers[index] });
        }
    }
    let fit = power_law(dimensions, deviations, noise, (0.0, f64::INFINITY))?;
    let distance = |expected: f64| (fit.exponent - expected) / fit.exponent_error;
    Ok(DeviationLaw { fit, z_from_half: distance(-0.5), z_from_one: distance(-1.0) })
}

/// The normal score as improbable as t of Student's law with runs − 1 degrees of freedom.
fn normal_score(t: f64, runs: usize) -> f64 {
    let degrees = (runs - 1) as f64;
    let tail = student_two_sided_tail(t, degrees);
    let size = if tail > f64::MIN_POSITIVE {
        -normal_quantile(0.5 * tail)
    } else {
        // Beyond the range of the tail, z > 37: Wallace's approximation, Ann. Math. Stat. 30, 1124 (1959).
        (degrees * (t * t / degrees).ln_1p()).sqrt() * (8.0 * degrees + 1.0) / (8.0 * degrees + 3.0)
    };
    size.copysign(t)
}

/// Checks the measured curve and evaluates the predicted one at its times.
fn theory_at(measured: Measured<'_>, predicted: Predicted<'_>) -> Result<Vec<f64>, AnalysisError> {
    check_curve(measured.times, measured.means)?;
    check_length("standard errors", measured.times.len(), measured.standard_errors.len())?;
    check_finite("standard errors", measured.standard_errors)?;
    if let Some(&value) = measured.standard_errors.iter().find(|&&e| e < 0.0) {
        let requirement = "it cannot be negative";
        return Err(AnalysisError::BadParameter { what: "a standard error", value, requirement });
    }
    if !measured.counts.is_empty() {
        check_length("counts", measured.times.len(), measured.counts.len())?;
        if let Some(&runs) = measured.counts.iter().find(|&&runs| runs < 2) {
            return Err(AnalysisError::TooFewRuns { what: "a standard error", runs, needed: 2 });
        }
    }
    interpolate(predicted.times, predicted.values, measured.times, predicted.axes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replicas::average;
    use crate::special::normal_upper_tail;
    use crate::test_noise;
    use proptest::prelude::*;

    fn predicted<'a>(times: &'a [f64], values: &'a [f64]) -> Predicted<'a> {
        Predicted { times, values, axes: Axes::LINEAR }
    }

    #[test]
    fn the_summary_of_known_scores_is_exact() {
        let times = [0.0, 1.0, 2.0, 3.0, 4.0];
        let measured = Measured {
            times: &times,
            means: &[1.0, 2.5, 2.8, 4.4, 4.5],
            standard_errors: &[0.0, 0.5, 0.1, 0.1, 1.0],
            counts: &[],
        };
        // Theory 1 + t on a coarser grid: z = -, 1, −2… in order (0.5/0.5, −0.2/0.1, 0.4/0.1, −0.5).
        let got = compare(measured, predicted(&[0.0, 4.0], &[1.0, 5.0])).expect("compare");
        for (z, want) in got.z.iter().zip([0.0, 1.0, -2.0, 4.0, -0.5]) {
            assert!((z - want).abs() < 1e-12);
        }
        assert_eq!((got.compared, got.largest_at), (4, 3.0));
        assert!((got.chi2 - 21.25).abs() < 1e-11 && (got.rms - (21.25f64 / 4.0).sqrt()).abs() < 1e-12);
        assert_eq!(got.beyond_three, 0.25);
        // χ² with 4 degrees of freedom: e^{−x/2}(1 + x/2); Bonferroni: 4 · 2 P(Z > 4).
        assert!((got.p_value_if_independent - (-10.625f64).exp() * 11.625).abs() < 1e-12);
        assert!((got.p_value_bound - 8.0 * normal_upper_tail(4.0)).abs() < 1e-12);
    }

    #[test]
    fn a_different_start_and_a_theory_that_ends_early_are_refused() {
        let measured =
            Measured { times: &[0.0, 1.0], means: &[1.0, 2.0], standard_errors: &[0.0, 0.1], counts: &[] };
        let start = compare(measured, predicted(&[0.0, 1.0], &[1.1, 2.0]));
        assert_eq!(start, Err(AnalysisError::NoSpread { time: 0.0, mean: 1.0, theory: 1.1 }));
        let short = compare(measured, predicted(&[0.0, 0.5], &[1.0, 1.5]));
        assert!(matches!(short, Err(AnalysisError::OutsideCurve { at: 1.0, .. })));
        let exact = Measured { standard_errors: &[0.0, 0.0], ..measured };
        assert!(matches!(
            compare(exact, predicted(&[0.0, 1.0], &[1.0, 2.0])),
            Err(AnalysisError::Empty { .. })
        ));
        let negative = Measured { standard_errors: &[0.0, -0.1], ..measured };
        assert!(compare(negative, predicted(&[0.0, 1.0], &[1.0, 2.0])).is_err());
    }

    #[test]
    fn agreement_gives_the_advertised_fractions_and_uniform_p_values_even_with_five_runs() {
        // Independent times, 5 runs each; 40 times, 500 repeats.
        let mut noise = test_noise::Noise::new(17);
        let times: Vec<f64> = (0..40).map(f64::from).collect();
        let zeros = vec![0.0; 40];
        let (mut beyond_two, mut square, mut small_p, mut small_bound) = (0.0, 0.0, 0, 0);
        let repeats = 500;
        for _ in 0..repeats {
            let runs: Vec<Vec<f64>> = (0..5).map(|_| (0..40).map(|_| noise.normal()).collect()).collect();
            let mean = average(&times, &runs, 2).expect("average");
            let got = compare(mean.measured(&times), predicted(&times, &zeros)).expect("compare");
            beyond_two += got.beyond_two / f64::from(repeats);
            square += got.rms.powi(2) / f64::from(repeats);
            small_p += i32::from(got.p_value_if_independent < 0.1);
            small_bound += i32::from(got.p_value_bound < 0.1);
        }
        // Binomial over 20000 scores: 0.15 %; χ²: √(2/20000) = 1 %.
        assert!((beyond_two - 0.0455).abs() < 4.0 * 0.0015, "{beyond_two}");
        assert!((square - 1.0).abs() < 4.0 * 0.01, "{square}");
        // 10 % of 500, binomial error 6.7, for the p-value; 1 − e^{−0.1} = 9.5 % for the bound at independent
        // times.
        assert!((small_p - 50).abs() < 27 && (small_bound - 48).abs() < 27, "{small_p} {small_bound}");
    }

    #[test]
    fn the_normal_score_is_as_improbable_as_t_and_tends_to_it_with_many_runs() {
        for (t, runs) in [(0.3, 2), (-2.5, 5), (12.0, 10), (4.0, 400)] {
            let score = normal_score(t, runs);
            let (normal, student) =
                (normal_two_sided_tail(score), student_two_sided_tail(t, (runs - 1) as f64));
            assert!((normal / student - 1.0).abs() < 1e-12 && score.signum() == t.signum(), "{t} {runs}");
            assert!(score.abs() < t.abs());
        }
        assert!((normal_score(3.0, 1_000_000) - 3.0).abs() < 1e-4);
        // Where the tail underflows the approximation takes over: compare just before, z = 37.
        let (runs, degrees) = (5000, 4999.0_f64);
        let wallace = |t: f64| {
            (degrees * (t * t / degrees).ln_1p()).sqrt() * (8.0 * degrees + 1.0) / (8.0 * degrees + 3.0)
        };
        assert!((normal_score(39.0, runs) - wallace(39.0)).abs() < 1e-3);
        assert!(normal_score(60.0, runs) > 50.0 && normal_score(60.0, runs) < 60.0);
    }

    #[test]
    fn the_deviation_splits_into_noise_and_systematic_part() {
        let times = [0.0, 1.0];
        let measured =
            Measured { times: &times, means: &[1.5, 0.5], standard_errors: &[0.3, 0.3], counts: &[] };
        let got = deviation(measured, predicted(&times, &[1.0, 1.0])).expect("deviation");
        assert!((got.rms - 0.5).abs() < 1e-15 && (got.noise - 0.3).abs() < 1e-15);
        assert!((got.systematic - 0.4).abs() < 1e-15);
        let quiet = Measured { standard_errors: &[0.6, 0.6], ..measured };
        assert_eq!(deviation(quiet, predicted(&times, &[1.0, 1.0])).expect("deviation").systematic, 0.0);
    }

    #[test]
    fn fluctuations_of_one_run_shrink_like_the_root_of_the_dimension() {
        let mut noise = test_noise::Noise::new(6);
        let dimensions = [1e2, 1e3, 1e4, 1e5, 1e6];
        let errors: Vec<f64> = dimensions.iter().map(|d: &f64| 0.05 * 2.0 / d.sqrt()).collect();
        let deviations: Vec<f64> =
            dimensions.iter().map(|d: &f64| 2.0 / d.sqrt() * (0.05 * noise.normal()).exp()).collect();
        let law = deviation_law(&dimensions, &deviations, Noise::Known(&errors)).expect("law");
        assert!(law.z_from_half.abs() < 4.0 && law.z_from_one > 20.0, "{law:?}");
        let zero = deviation_law(&[1.0, 2.0], &[1.0, 0.0], Noise::Estimated);
        assert_eq!(zero, Err(AnalysisError::NotPositive { what: "deviations", index: 1, value: 0.0 }));
    }

    proptest! {
        #[test]
        fn scores_do_not_depend_on_the_unit(
            rows in prop::collection::vec((-2.0..2.0f64, 0.1..1.0f64, -2.0..2.0f64), 1..20),
            unit in 0.01..100.0f64,
        ) {
            let times: Vec<f64> = (0..rows.len()).map(|i| i as f64).collect();
            let column = |f: &dyn Fn(&(f64, f64, f64)) -> f64| rows.iter().map(f).collect::<Vec<f64>>();
            let (means, errors, theory) = (column(&|r| r.0), column(&|r| r.1), column(&|r| r.2));
            let comparison = |unit: f64| {
                let scaled = |v: &[f64]| v.iter().map(|x| unit * x).collect::<Vec<f64>>();
                let (means, errors, theory) = (scaled(&means), scaled(&errors), scaled(&theory));
                let measured = Measured { times: &times, means: &means, standard_errors: &errors, counts: &[] };
                compare(measured, predicted(&times, &theory)).expect("compare")
            };
            let (a, b) = (comparison(1.0), comparison(unit));
            prop_assert!((a.chi2 - b.chi2).abs() < 1e-11 * (1.0 + a.chi2));
            prop_assert!((a.largest - b.largest).abs() < 1e-11 * (1.0 + a.largest));
            prop_assert!(a.rms <= a.largest * (1.0 + 1e-12));
        }
    }
}
