//! Exponents: power laws on a window, local slopes, and the logarithmic law of escape times.

use crate::error::{AnalysisError, check_curve, check_finite, check_length};
use didact_math::fits::{LineFit, Noise, PowerLawFit, power_law, straight_line};

/// Exponent of values ~ time^exponent from the samples with window.0 ≤ time ≤ window.1.
///
/// With [`Noise::Estimated`] the error takes the residuals for independent. Along one curve they are not, and
/// the error is too small; the errors of a mean over replicas ([`Noise::Known`]) share that correlation. An
/// error that can be trusted comes from the scatter of the exponents of single replicas.
pub fn fit_exponent(
    times: &[f64],
    values: &[f64],
    noise: Noise<'_>,
    window: (f64, f64),
) -> Result<PowerLawFit, AnalysisError> {
    check_curve(times, values)?;
    let inside = samples_inside(times, window, needed_points(noise), "an exponent and its error")?;
    positive("times", times, inside.clone())?;
    positive("values", values, inside)?;
    Ok(power_law(times, values, noise, window)?)
}

/// The slope of ln value against ln time about one sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalExponent {
    /// Time of the sample.
    pub time: f64,
    /// d ln value / d ln time.
    pub exponent: f64,
    /// Its standard error, from the scatter about the local line.
    pub standard_error: f64,
}

/// Slope of ln value against ln time about every sample that has `neighbours` (one or more) samples on both
/// sides: a least-squares line through the 2·neighbours + 1 of them. More neighbours, less noise, less
/// resolution.
pub fn local_exponents(
    times: &[f64],
    values: &[f64],
    neighbours: usize,
) -> Result<Vec<LocalExponent>, AnalysisError> {
    check_curve(times, values)?;
    if neighbours == 0 {
        let requirement = "a slope needs at least one neighbour on each side";
        return Err(AnalysisError::BadParameter { what: "neighbours", value: 0.0, requirement });
    }
    let width = 2 * neighbours + 1;
    if times.len() < width {
        return Err(too_few(times.len(), width, (times[0], times[times.len() - 1]), "a local exponent"));
    }
    positive("times", times, 0..times.len())?;
    positive("values", values, 0..values.len())?;
    let x: Vec<f64> = times.iter().map(|t| t.ln()).collect();
    let y: Vec<f64> = values.iter().map(|v| v.ln()).collect();
    let local = |start: usize| {
        let line = straight_line(&x[start..start + width], &y[start..start + width], Noise::Estimated)?;
        let time = times[start + neighbours];
        Ok(LocalExponent { time, exponent: line.slope, standard_error: line.slope_error })
    };
    (0..=times.len() - width).map(local).collect()
}

/// The law  y = a + b ln x,  for example an escape time against the dimension: intercept a, slope b, with
/// errors.
///
/// The value at x is `line.at(x.ln())`.
pub fn logarithmic_law(x: &[f64], y: &[f64], noise: Noise<'_>) -> Result<LineFit, AnalysisError> {
    if x.is_empty() {
        return Err(AnalysisError::Empty { what: "x" });
    }
    check_length("y", x.len(), y.len())?;
    check_finite("x", x)?;
    check_finite("y", y)?;
    positive("x", x, 0..x.len())?;
    let logs: Vec<f64> = x.iter().map(|x| x.ln()).collect();
    Ok(straight_line(&logs, y, noise)?)
}

/// Points that a line and the error of its slope need.
pub(crate) fn needed_points(noise: Noise<'_>) -> usize {
    match noise {
        Noise::Known(_) => 2,
        Noise::Estimated => 3,
    }
}

/// Indices of the increasing times inside the window.
pub(crate) fn samples_inside(
    times: &[f64],
    window: (f64, f64),
    needed: usize,
    needed_for: &'static str,
) -> Result<std::ops::Range<usize>, AnalysisError> {
    let from = times.partition_point(|&t| t < window.0);
    let to = times.partition_point(|&t| t <= window.1).max(from);
    if to - from < needed { Err(too_few(to - from, needed, window, needed_for)) } else { Ok(from..to) }
}

fn too_few(points: usize, needed: usize, window: (f64, f64), needed_for: &'static str) -> AnalysisError {
    AnalysisError::TooFewPoints { points, needed, from: window.0, to: window.1, needed_for }
}

fn positive(
    what: &'static str,
    numbers: &[f64],
    inside: std::ops::Range<usize>,
) -> Result<(), AnalysisError> {
    match inside.clone().find(|&i| numbers[i] <= 0.0) {
        Some(index) => Err(AnalysisError::NotPositive { what, index, value: numbers[index] }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_noise::log_grid;
    use proptest::prelude::*;

    #[test]
    fn refusals_name_the_index_and_the_window() {
        let times = [0.0, 1.0, 2.0, 3.0, 4.0];
        let flat = [1.0; 5];
        let negative = fit_exponent(&times, &[1.0, 1.0, -1.0, 1.0, 1.0], Noise::Estimated, (1.0, 4.0));
        assert_eq!(negative, Err(AnalysisError::NotPositive { what: "values", index: 2, value: -1.0 }));
        let few = fit_exponent(&times, &flat, Noise::Estimated, (2.5, 9.0)).expect_err("two points");
        assert!(matches!(few, AnalysisError::TooFewPoints { points: 2, needed: 3, from: 2.5, to: 9.0, .. }));
        assert!(few.to_string().contains("holds 2 points; 3 are needed"), "{few}");
        // Time zero outside the window is no obstacle, inside it is.
        assert!(fit_exponent(&times, &flat, Noise::Estimated, (0.5, 9.0)).is_ok());
        let zero = fit_exponent(&times, &flat, Noise::Estimated, (0.0, 9.0)).expect_err("zero");
        assert!(matches!(zero, AnalysisError::NotPositive { what: "times", index: 0, .. }));
    }

    #[test]
    fn local_exponents_follow_a_crossover() {
        // value = t^{-1/2} (1 + t)^{-1}: exponent −1/2 − t/(1 + t), smooth on the scale of the window.
        let times = log_grid(1e-4, 1e4, 400);
        let values: Vec<f64> = times.iter().map(|t| t.powf(-0.5) / (1.0 + t)).collect();
        let local = local_exponents(&times, &values, 3).expect("slopes");
        assert_eq!((local.len(), local[0].time), (394, times[3]));
        for slope in &local {
            let exact = -0.5 - slope.time / (1.0 + slope.time);
            // Cubic term of ln(1 + e^x): |f'''| ≤ 1/(6√3) < 0.1; a window of half-width w = 3 · 0.046 errs by
            // below w² f'''/6.
            assert!((slope.exponent - exact).abs() < 0.14f64.powi(2) * 0.1 / 6.0, "{slope:?} {exact}");
        }
        assert!(
            local_exponents(&times, &values, 0).is_err()
                && local_exponents(&times[..6], &values[..6], 3).is_err()
        );
    }

    #[test]
    fn escape_times_that_grow_like_log_d_give_their_law() {
        let d = [1e2, 1e3, 1e4, 1e5];
        let errors = [0.3, 0.2, 0.2, 0.1];
        let y: Vec<f64> = d.iter().map(|d: &f64| 4.0 + 1.25 * d.ln()).collect();
        let law = logarithmic_law(&d, &y, Noise::Known(&errors)).expect("law");
        assert!((law.slope - 1.25).abs() < 1e-13 && (law.intercept - 4.0).abs() < 1e-12);
        // Var slope = Σw / (Σw Σw x² − (Σw x)²) with w = 1/σ².
        let w: Vec<f64> = errors.iter().map(|e: &f64| e.powi(-2)).collect();
        let moment = |k: i32| d.iter().zip(&w).map(|(d, w): (&f64, &f64)| w * d.ln().powi(k)).sum::<f64>();
        let variance = moment(0) / (moment(0) * moment(2) - moment(1).powi(2));
        assert!((law.slope_error / variance.sqrt() - 1.0).abs() < 1e-10);
        assert!((law.at(1e6f64.ln()).0 - 4.0 - 1.25 * 1e6f64.ln()).abs() < 1e-12);
        let bad = logarithmic_law(&[0.0, 1.0, 2.0], &[1.0; 3], Noise::Estimated);
        assert!(matches!(bad, Err(AnalysisError::NotPositive { what: "x", index: 0, .. })));
    }

    proptest! {
        #[test]
        fn units_do_not_change_an_exponent(
            logs in prop::collection::vec(-1.0..1.0f64, 5..20), time_unit in 0.01..100.0f64, unit in 0.01..100.0f64,
        ) {
            let times: Vec<f64> = (1..=logs.len()).map(|i| i as f64).collect();
            let values: Vec<f64> = logs.iter().map(|l| l.exp()).collect();
            let rescaled: Vec<f64> = values.iter().map(|v| unit * v).collect();
            let clock: Vec<f64> = times.iter().map(|t| time_unit * t).collect();
            let all = (0.0, f64::INFINITY);
            let a = fit_exponent(&times, &values, Noise::Estimated, all).expect("fit");
            let b = fit_exponent(&clock, &rescaled, Noise::Estimated, all).expect("fit");
            prop_assert!((a.exponent - b.exponent).abs() < 1e-11);
            prop_assert!((a.exponent_error - b.exponent_error).abs() < 1e-11);
        }
    }
}
