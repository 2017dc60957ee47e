//! Exponential rates, such as the rate of escape from a plateau: |value − reference| ~ e^{rate · time}.

use crate::error::{AnalysisError, check_curve, check_length};
use crate::exponent::{needed_points, samples_inside};
use didact_math::fits::{Noise, straight_line};

/// A fitted exponential  |value − reference| = amplitude · e^{rate (time − from)}.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Rate; negative for a decay.
    pub rate: f64,
    /// Its standard error.
    pub rate_error: f64,
    /// Fitted amplitude at `from`.
    pub amplitude: f64,
    /// First time used.
    pub from: f64,
    /// Last time used.
    pub to: f64,
    /// Samples used.
    pub points: usize,
    /// χ² of the fit in ln amplitude.
    pub chi2: f64,
}

/// Slope of ln|value − reference| over the samples with window.0 ≤ time ≤ window.1.
///
/// With [`Noise::Estimated`] the error takes the residuals for independent; along one curve they are not, and
/// the scatter of the rates of several replicas is the better error. Known standard errors σ of the values
/// become σ/A of ln A, to first order, where A = |value − reference|.
pub fn fit_rate(
    times: &[f64],
    values: &[f64],
    noise: Noise<'_>,
    reference: f64,
    window: (f64, f64),
) -> Result<Rate, AnalysisError> {
    check_curve(times, values)?;
    if let Noise::Known(errors) = noise {
        check_length("standard errors", times.len(), errors.len())?;
    }
    if !reference.is_finite() {
        let requirement = "it must be finite";
        return Err(AnalysisError::BadParameter { what: "reference", value: reference, requirement });
    }
    let amplitudes: Vec<f64> = values.iter().map(|v| (v - reference).abs()).collect();
    let inside = samples_inside(times, window, needed_points(noise), "a rate and its error")?;
    if let Some(index) = inside.clone().find(|&i| amplitudes[i] <= 0.0) {
        return Err(AnalysisError::NotPositive {
            what: "|values - reference|",
            index,
            value: amplitudes[index],
        });
    }
    let (from, to) = (times[inside.start], times[inside.end - 1]);
    let clock: Vec<f64> = times[inside.clone()].iter().map(|t| t - from).collect();
    let logs: Vec<f64> = amplitudes[inside.clone()].iter().map(|a| a.ln()).collect();
    let log_errors: Vec<f64> = match noise {
        Noise::Known(errors) => inside.clone().map(|i| errors[i] / amplitudes[i]).collect(),
        Noise::Estimated => Vec::new(),
    };
    let noise = match noise {
        Noise::Known(_) => Noise::Known(&log_errors),
        Noise::Estimated => Noise::Estimated,
    };
    let line = straight_line(&clock, &logs, noise)?;
    Ok(Rate {
        rate: line.slope,
        rate_error: line.slope_error,
        amplitude: line.intercept.exp(),
        from,
        to,
        points: clock.len(),
        chi2: line.chi2,
    })
}

/// Rate of exponential growth of |value| between two levels: the slope of ln |value| against time, from the
/// sample after the last one below `levels[0]` to the sample before the first one above `levels[1]`.
///
/// A lower level well above the start leaves the growing mode alone to dominate; an upper level well below the
/// end keeps saturation out. A curve that never passes the upper level is refused: whether to leave it out is a
/// decision, and leaving out the slow ones biases the rate.
pub fn growth_rate(times: &[f64], values: &[f64], levels: [f64; 2]) -> Result<f64, AnalysisError> {
    let amplitudes: Vec<f64> = values.iter().map(|v| v.abs()).collect();
    let to = amplitudes.iter().position(|a| *a > levels[1]);
    let to = to.ok_or(AnalysisError::LevelNotPassed { level: levels[1] })?;
    let from = amplitudes[..to].iter().rposition(|a| *a < levels[0]).map_or(0, |below| below + 1);
    let logs: Vec<f64> = amplitudes[from..to].iter().map(|a| a.ln()).collect();
    Ok(straight_line(&times[from..to], &logs, Noise::Estimated)?.slope)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_noise;
    use proptest::prelude::*;

    /// Leaves 0.9 as a logistic curve: amplitude a e^{λt} / (1 + a e^{λt}), towards 0.
    fn escape(times: &[f64], start: f64, rate: f64) -> Vec<f64> {
        times
            .iter()
            .map(|t| {
                let grown = start * (rate * t).exp();
                0.9 - 0.9 * grown / (1.0 + grown)
            })
            .collect()
    }

    #[test]
    fn a_pure_exponential_gives_its_rate_and_amplitude() {
        let times: Vec<f64> = (0..100).map(f64::from).collect();
        let values: Vec<f64> = times.iter().map(|t| 0.5 - 1e-6 * (0.11 * t).exp()).collect();
        let fit = fit_rate(&times, &values, Noise::Estimated, 0.5, (7.0, 88.0)).expect("fit");
        // The values carry rounding 1e-16/1e-6 of their amplitude.
        assert!((fit.rate - 0.11).abs() < 1e-11, "{fit:?}");
        assert!((fit.amplitude / (1e-6 * (0.11 * fit.from).exp()) - 1.0).abs() < 1e-9);
        assert_eq!((fit.from, fit.to), (7.0, 88.0));
        let decay: Vec<f64> = times.iter().map(|t| 1.0 + (-0.2 * t).exp()).collect();
        let fit = fit_rate(&times, &decay, Noise::Estimated, 1.0, (5.0, 40.0)).expect("fit");
        assert!((fit.rate + 0.2).abs() < 1e-9 && fit.points == 36);
    }

    #[test]
    fn the_levels_keep_the_start_and_saturation_out() {
        // ln(g/(1+g)) has slope λ/(1+g): below 0.01 it is λ to a percent, and to a part in a thousand over most of the way.
        let times: Vec<f64> = (0..600).map(|i| 0.1 * f64::from(i)).collect();
        let grown: Vec<f64> = escape(&times, 1e-8, 0.5).iter().map(|v| 0.9 - v).collect();
        let rate = |levels| growth_rate(&times, &grown, levels).expect("growth");
        assert!((rate([2e-8, 0.01]) - 0.5).abs() < 0.001 * 0.5);
        let whole = fit_rate(&times, &grown, Noise::Estimated, 0.0, (0.0, 60.0)).expect("fit");
        assert!((whole.rate - 0.5).abs() > 0.1, "{whole:?}");
        // Between the levels it is the fit of the same samples; the sign of the values does not matter.
        let mirrored: Vec<f64> = grown.iter().map(|v| -v).collect();
        let inside: Vec<f64> =
            times.iter().zip(&grown).filter(|(_, v)| (2e-8..=0.01).contains(*v)).map(|(t, _)| *t).collect();
        let window = (inside[0], inside[inside.len() - 1]);
        let same = fit_rate(&times, &mirrored, Noise::Estimated, 0.0, window).expect("fit");
        assert!((growth_rate(&times, &mirrored, [2e-8, 0.01]).expect("growth") - same.rate).abs() < 1e-12);
    }

    #[test]
    fn the_last_sample_below_the_lower_level_starts_the_growth() {
        // It grows by e per unit of time only after its last fall below the lower level.
        let times: Vec<f64> = (0..9).map(f64::from).collect();
        let values = [0.5, 2.0, 0.9, 1.0, 1f64.exp(), 2f64.exp(), 3f64.exp(), 100.0, 1.0];
        assert!((growth_rate(&times, &values, [0.95, 50.0]).expect("growth") - 1.0).abs() < 1e-14);
        let never = growth_rate(&times, &values, [0.95, 200.0]);
        assert_eq!(never, Err(AnalysisError::LevelNotPassed { level: 200.0 }));
    }

    #[test]
    fn the_scatter_of_growth_rates_covers_the_truth_as_often_as_it_should() {
        // Rates 0.5 ± 0.02 over seeds, 2 % noise on the amplitudes: the error of one fit, 2e-4, says nothing
        // of the spread.
        use didact_math::random::statistics::SampleMean;
        let times: Vec<f64> = (0..60).map(|i| 0.5 * f64::from(i)).collect();
        let mut noise = test_noise::Noise::new(8);
        let repeats = 1000;
        let mut outside = 0;
        for _ in 0..repeats {
            let replicas: Vec<Vec<f64>> = (0..16)
                .map(|_| {
                    let rate = 0.5 + 0.02 * noise.normal();
                    times.iter().map(|t| -1e-8 * (rate * t + 0.02 * noise.normal()).exp()).collect()
                })
                .collect();
            let rate = |curve: &Vec<f64>| growth_rate(&times, curve, [2e-8, 1e-3]).expect("growth");
            let mean = SampleMean::of(replicas.iter().map(rate));
            outside += i32::from((mean.value - 0.5).abs() > 2.1314 * mean.error);
        }
        // Student's t with 15 degrees of freedom: 5 % beyond 2.1314, so 50 ± 6.9.
        assert!((outside - 50).abs() < 28, "{outside}");
    }

    #[test]
    fn known_errors_become_relative_and_zero_amplitude_is_refused() {
        let times = [0.0, 1.0, 2.0];
        let values = [1.0, 2.0, 4.0];
        let errors = [0.1, 0.2, 0.4];
        let fit = fit_rate(&times, &values, Noise::Known(&errors), 0.0, (0.0, 2.0)).expect("fit");
        // σ of ln A is 0.1 at each: Var slope = 0.01/Σ(t − 1)² = 0.005.
        assert!((fit.rate - 2f64.ln()).abs() < 1e-14 && (fit.rate_error - 0.005f64.sqrt()).abs() < 1e-14);
        let zero = fit_rate(&times, &values, Noise::Estimated, 2.0, (0.0, 2.0));
        assert!(matches!(zero, Err(AnalysisError::NotPositive { index: 1, .. })));
        let short = fit_rate(&times, &values, Noise::Estimated, 0.0, (0.5, 2.0));
        assert!(matches!(short, Err(AnalysisError::TooFewPoints { points: 2, needed: 3, .. })));
    }

    proptest! {
        #[test]
        fn shifting_and_scaling_values_leaves_the_rate_and_a_faster_clock_divides_it(
            factor in 0.1..10.0f64, shift in -5.0..5.0f64, clock in 0.1..10.0f64,
        ) {
            let times: Vec<f64> = (0..80).map(|i| 0.5 * f64::from(i)).collect();
            let values = escape(&times, 1e-4, 0.5);
            let mapped: Vec<f64> = values.iter().map(|v| factor * v + shift).collect();
            let moved: Vec<f64> = times.iter().map(|t| clock * t + shift).collect();
            // Half a sample beyond the ends, so that rounding of the clock moves no sample over them.
            let window = (1.25, 18.25);
            let moved_window = (clock * window.0 + shift, clock * window.1 + shift);
            let a = fit_rate(&times, &values, Noise::Estimated, 0.9, window).expect("fit");
            let b = fit_rate(&moved, &mapped, Noise::Estimated, factor * 0.9 + shift, moved_window).expect("fit");
            // Rounding of the shift against the smallest amplitude, 1e-16 · 10 / (1e-4 · 0.1).
            prop_assert!((a.rate / (clock * b.rate) - 1.0).abs() < 1e-9);
            prop_assert_eq!(a.points, b.points);
        }
    }
}
