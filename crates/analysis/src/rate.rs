//! Exponential rates, such as the rate of escape from a plateau: |value − reference| ~ e^{rate · time}.

use crate::error::{AnalysisError, check_curve, check_length};
use crate::exponent::{needed_points, samples_inside};
use crate::replicas::{OverRuns, over_runs};
use didact_math::fits::{Noise, straight_line};

/// The stretch of the curve on which a rate is fitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Window {
    /// From the first to the second time, both included.
    Times(f64, f64),
    /// While the amplitude A = |value − reference| grows from `above_start` · A(first) to `below_end` ·
    /// A(last): late enough for the growing mode to dominate, early enough for it not to saturate. From the
    /// last sample below the lower bound (excluded) before the upper one is first passed (excluded).
    Growth {
        /// Lower bound in units of the first amplitude.
        above_start: f64,
        /// Upper bound in units of the last amplitude.
        below_end: f64,
    },
}

impl Window {
    /// From twice the first amplitude to 0.3 of the last.
    pub const ESCAPE: Self = Self::Growth { above_start: 2.0, below_end: 0.3 };
}

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

/// Slope of ln|value − reference| on the window.
///
/// With [`Noise::Estimated`] the error takes the residuals for independent; along one run they are not, and
/// [`rate_over_runs`] gives the error over seeds. Known standard errors σ of the values become σ/A of ln A,
/// to first order.
pub fn fit_rate(
    times: &[f64],
    values: &[f64],
    noise: Noise<'_>,
    reference: f64,
    window: Window,
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
    let needed = needed_points(noise);
    let inside = match window {
        Window::Times(from, to) => samples_inside(times, (from, to), needed, "a rate and its error")?,
        Window::Growth { above_start, below_end } => {
            growth(times, &amplitudes, (above_start, below_end), needed)?
        }
    };
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

/// Rate of each run on its own window, and their mean with the standard error over the seeds.
///
/// A run without growth is refused, naming it: whether to leave it out is a decision, and leaving out the
/// slow ones biases the rate.
pub fn rate_over_runs(
    times: &[f64],
    runs: &[Vec<f64>],
    reference: f64,
    window: Window,
) -> Result<OverRuns, AnalysisError> {
    over_runs(times, runs, "a rate over runs", |times, run| {
        Ok(fit_rate(times, run, Noise::Estimated, reference, window)?.rate)
    })
}

/// Indices of [`Window::Growth`].
fn growth(
    times: &[f64],
    amplitudes: &[f64],
    (above_start, below_end): (f64, f64),
    needed: usize,
) -> Result<std::ops::Range<usize>, AnalysisError> {
    for (what, value) in [("above_start", above_start), ("below_end", below_end)] {
        if !(value > 0.0 && value.is_finite()) {
            return Err(AnalysisError::BadParameter { what, value, requirement: "it must be positive" });
        }
    }
    let (start, end) = (amplitudes[0], amplitudes[amplitudes.len() - 1]);
    let (low, high) = (above_start * start, below_end * end);
    let to = amplitudes.iter().position(|&a| a > high).unwrap_or(amplitudes.len());
    let from = amplitudes[..to].iter().rposition(|&a| a < low).map_or(0, |below| below + 1);
    if low >= high || from >= to {
        return Err(AnalysisError::NoGrowth { start, end, low, high });
    }
    if to - from < needed {
        let needed_for = "a rate and its error";
        let (from_time, to_time) = (times[from], times[to - 1]);
        return Err(AnalysisError::TooFewPoints {
            points: to - from,
            needed,
            from: from_time,
            to: to_time,
            needed_for,
        });
    }
    Ok(from..to)
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
        let fit = fit_rate(&times, &values, Noise::Estimated, 0.5, Window::ESCAPE).expect("fit");
        // The values carry rounding 1e-16/1e-6 of their amplitude.
        assert!((fit.rate - 0.11).abs() < 1e-11, "{fit:?}");
        assert!((fit.amplitude / (1e-6 * (0.11 * fit.from).exp()) - 1.0).abs() < 1e-9);
        // Bounds: e^{0.11 t} from 2 to 0.3 e^{0.11 · 99}.
        assert_eq!((fit.from, fit.to), (7.0, 88.0));
        let decay: Vec<f64> = times.iter().map(|t| 1.0 + (-0.2 * t).exp()).collect();
        let fit = fit_rate(&times, &decay, Noise::Estimated, 1.0, Window::Times(5.0, 40.0)).expect("fit");
        assert!((fit.rate + 0.2).abs() < 1e-9 && fit.points == 36);
    }

    #[test]
    fn the_window_keeps_saturation_out() {
        // ln(g/(1+g)) has slope λ/(1+g): below 0.3 of the end 1/(1+g) > 0.7, and only the last tenth of the
        // window is so late.
        let times: Vec<f64> = (0..600).map(|i| 0.1 * f64::from(i)).collect();
        let values = escape(&times, 1e-8, 0.5);
        let whole = fit_rate(&times, &values, Noise::Estimated, 0.9, Window::Times(0.0, 60.0)).expect("fit");
        let escape = fit_rate(&times, &values, Noise::Estimated, 0.9, Window::ESCAPE).expect("fit");
        let early = Window::Growth { above_start: 2.0, below_end: 0.01 };
        let early = fit_rate(&times, &values, Noise::Estimated, 0.9, early).expect("fit");
        assert!((whole.rate - 0.5).abs() > 0.1, "{whole:?}");
        assert!((escape.rate - 0.5).abs() < 0.01 * 0.5, "{escape:?}");
        assert!((early.rate - 0.5).abs() < 0.001 * 0.5, "{early:?}");
    }

    #[test]
    fn the_rate_over_seeds_covers_the_truth_as_often_as_it_should() {
        // Rates 0.5 ± 0.02 over seeds, 2 % noise on the amplitudes: the error of one fit, 2e-4, says nothing
        // of the spread.
        let times: Vec<f64> = (0..60).map(|i| 0.5 * f64::from(i)).collect();
        let mut noise = test_noise::Noise::new(8);
        let repeats = 1000;
        let mut outside = 0;
        for _ in 0..repeats {
            let runs: Vec<Vec<f64>> = (0..16)
                .map(|_| {
                    let rate = 0.5 + 0.02 * noise.normal();
                    let grown = |t: &f64| 1e-8 * (rate * t + 0.02 * noise.normal()).exp();
                    times.iter().map(grown).map(|a| -a).collect()
                })
                .collect();
            let average = rate_over_runs(&times, &runs, 0.0, Window::ESCAPE).expect("fit").average;
            outside += i32::from((average.mean - 0.5).abs() > 2.1314 * average.standard_error);
        }
        // Student's t with 15 degrees of freedom: 5 % beyond 2.1314, so 50 ± 6.9.
        assert!((outside - 50).abs() < 28, "{outside}");
    }

    #[test]
    fn a_run_without_growth_is_named() {
        let times: Vec<f64> = (0..300).map(|i| 0.2 * f64::from(i)).collect();
        let runs = [escape(&times, 1e-8, 0.5), vec![0.8; 300]];
        let error = rate_over_runs(&times, &runs, 0.9, Window::ESCAPE).expect_err("flat");
        assert!(
            matches!(error, AnalysisError::InRun { run: 1, .. }) && error.to_string().contains("no growth")
        );
    }

    #[test]
    fn known_errors_become_relative_and_zero_amplitude_is_refused() {
        let times = [0.0, 1.0, 2.0];
        let values = [1.0, 2.0, 4.0];
        let errors = [0.1, 0.2, 0.4];
        let fit =
            fit_rate(&times, &values, Noise::Known(&errors), 0.0, Window::Times(0.0, 2.0)).expect("fit");
        // σ of ln A is 0.1 at each: Var slope = 0.01/Σ(t − 1)² = 0.005.
        assert!((fit.rate - 2f64.ln()).abs() < 1e-14 && (fit.rate_error - 0.005f64.sqrt()).abs() < 1e-14);
        let zero = fit_rate(&times, &values, Noise::Estimated, 2.0, Window::Times(0.0, 2.0));
        assert!(matches!(zero, Err(AnalysisError::NotPositive { index: 1, .. })));
        let short = fit_rate(&times, &values, Noise::Estimated, 0.0, Window::Times(0.5, 2.0));
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
            let a = fit_rate(&times, &values, Noise::Estimated, 0.9, Window::ESCAPE).expect("fit");
            let b = fit_rate(&moved, &mapped, Noise::Estimated, factor * 0.9 + shift, Window::ESCAPE).expect("fit");
            // Rounding of the shift against the smallest amplitude, 1e-16 · 10 / (1e-4 · 0.1).
            prop_assert!((a.rate / (clock * b.rate) - 1.0).abs() < 1e-9);
            prop_assert_eq!(a.points, b.points);
        }
    }
}
