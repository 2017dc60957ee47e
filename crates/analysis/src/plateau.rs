//! Plateaus of a positive curve, such as the loss before the escape.
//!
//! **Definition.** Let y = ln value and x = time or ln time. The curve is *flat* at x when over a window of
//! width `span` about x its local slope, carried on over the span, changes the value by no more than the
//! relative `tolerance`:
//!
//!   |slope(x)| · span ≤ ln(1 + tolerance),   slope = (median y right − median y left) / (median x right − median x left)
//!
//! over the samples in the two halves of the window (exact for a straight line; at the ends of the curve the
//! window is moved inside). A *plateau* is a stretch of flat samples at least `span` long. Flat stretches
//! less than a span apart, with heights equal to the tolerance, are one: noise interrupts a plateau. Its
//! height is the median value. Last, it is extended over the neighbouring samples that stay within the
//! tolerance of its height, because next to a jump the window gives up a quarter of a span too early.
//!
//! What follows from it: a power law t^{−a} in log time is a plateau everywhere (a · span ≤ ln(1 +
//! tolerance)) or nowhere, never a staircase of small ones; rescaling the values rescales the heights only; a
//! single wild sample does not break it. Independent relative noise σ on n samples per span adds about 5σ/√n
//! to the change over a span, so the tolerance should be at least twice that. The flat end of a converged
//! curve is a plateau too. A stretch with an empty half window is not judged flat.

use crate::error::{AnalysisError, check_curve};
use crate::interpolate::Scale;
use crate::statistics::median;

/// What counts as flat.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Criterion {
    /// Whether lengths are measured in time or in ln time.
    pub time: Scale,
    /// Width of the window and least length of a plateau: in units of time, or of ln time (ln 2 is a
    /// doubling).
    pub span: f64,
    /// Relative change over one span that still counts as flat.
    pub tolerance: f64,
}

impl Criterion {
    /// Flat within 5 % while time doubles.
    pub fn log_time() -> Self {
        Self { time: Scale::Log, span: std::f64::consts::LN_2, tolerance: 0.05 }
    }

    /// Flat within 5 % over this stretch of time.
    pub fn linear_time(span: f64) -> Self {
        Self { time: Scale::Linear, span, tolerance: 0.05 }
    }
}

/// A stretch where the curve stays put.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePlateau {
    /// Median value on the flat stretch.
    pub height: f64,
    /// Time of its first sample.
    pub start: f64,
    /// Time of its last sample.
    pub end: f64,
    /// Number of samples from start to end.
    pub samples: usize,
}

impl CurvePlateau {
    /// Length on the scale: end − start, or ln(end/start).
    pub fn length(&self, time: Scale) -> f64 {
        match time {
            Scale::Linear => self.end - self.start,
            Scale::Log => (self.end / self.start).ln(),
        }
    }
}

/// All plateaus in order of time, by the definition of this module; an empty list where there is none.
pub fn plateaus(
    times: &[f64],
    values: &[f64],
    criterion: Criterion,
) -> Result<Vec<CurvePlateau>, AnalysisError> {
    check_curve(times, values)?;
    for (what, value) in [("span", criterion.span), ("tolerance", criterion.tolerance)] {
        if !(value > 0.0 && value.is_finite()) {
            return Err(AnalysisError::BadParameter { what, value, requirement: "it must be positive" });
        }
    }
    let transform = |scale: Scale, what: &'static str, numbers: &[f64]| {
        numbers.iter().enumerate().map(|(i, &v)| scale.forward(what, i, v)).collect::<Result<Vec<f64>, _>>()
    };
    let x = transform(criterion.time, "times", times)?;
    let y = transform(Scale::Log, "values", values)?;
    let tolerance = criterion.tolerance.ln_1p();

    let flat = flat_samples(&x, &y, criterion.span, tolerance);
    let mut stretches = merge(flat_stretches(&flat), &x, &y, criterion.span, tolerance);
    stretches.retain(|s| x[s.last] - x[s.first] >= criterion.span);
    extend(&mut stretches, &y, tolerance);
    let describe = |s: &Stretch| CurvePlateau {
        height: s.log_height.exp(),
        start: times[s.first],
        end: times[s.last],
        samples: s.last - s.first + 1,
    };
    Ok(stretches.iter().map(describe).collect())
}

/// The longest plateau on the scale of the criterion, if there is one.
pub fn longest_plateau(
    times: &[f64],
    values: &[f64],
    criterion: Criterion,
) -> Result<Option<CurvePlateau>, AnalysisError> {
    let all = plateaus(times, values, criterion)?;
    let length = |p: &CurvePlateau| p.length(criterion.time);
    Ok(all.into_iter().max_by(|a, b| length(a).total_cmp(&length(b))))
}

/// Flat samples from `first` to `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stretch {
    first: usize,
    last: usize,
    log_height: f64,
}

/// For each sample, whether the window about it is flat.
fn flat_samples(x: &[f64], y: &[f64], span: f64, tolerance: f64) -> Vec<bool> {
    let (begin, end) = (x[0], x[x.len() - 1]);
    if end - begin < span {
        return vec![false; x.len()];
    }
    // A window moved to an end of the curve must not lose the sample at that end to rounding.
    let half = 0.5 * span * (1.0 + 1e-12);
    let flat = |centre: f64| {
        let from = x.partition_point(|&t| t < centre - half);
        let middle = x.partition_point(|&t| t < centre);
        let to = x.partition_point(|&t| t <= centre + half);
        if from == middle || middle == to {
            return false;
        }
        let rise = median(&y[middle..to]) - median(&y[from..middle]);
        let run = median(&x[middle..to]) - median(&x[from..middle]);
        (rise / run).abs() * span <= tolerance
    };
    x.iter().map(|&t| flat(t.clamp(begin + 0.5 * span, (end - 0.5 * span).max(begin + 0.5 * span)))).collect()
}

/// Maximal stretches of `true`, as pairs (first, last).
fn flat_stretches(flat: &[bool]) -> Vec<(usize, usize)> {
    let mut stretches: Vec<(usize, usize)> = Vec::new();
    for index in (0..flat.len()).filter(|&i| flat[i]) {
        match stretches.last_mut() {
            Some((_, last)) if *last + 1 == index => *last = index,
            _ => stretches.push((index, index)),
        }
    }
    stretches
}

/// Joins stretches less than a span apart whose heights agree, from left to right.
fn merge(stretches: Vec<(usize, usize)>, x: &[f64], y: &[f64], span: f64, tolerance: f64) -> Vec<Stretch> {
    let stretch = |first: usize, last: usize| Stretch { first, last, log_height: median(&y[first..=last]) };
    let mut merged: Vec<Stretch> = Vec::new();
    for (first, last) in stretches {
        let next = stretch(first, last);
        match merged.last_mut() {
            Some(previous)
                if x[first] - x[previous.last] < span
                    && (next.log_height - previous.log_height).abs() <= tolerance =>
            {
                *previous = stretch(previous.first, last);
            }
            _ => merged.push(next),
        }
    }
    merged
}

/// Extends each stretch over neighbouring samples within the tolerance of its height, up to the next stretch.
fn extend(stretches: &mut [Stretch], y: &[f64], tolerance: f64) {
    let near = |index: usize, height: f64| (y[index] - height).abs() <= tolerance;
    for k in 0..stretches.len() {
        let floor = if k == 0 { 0 } else { stretches[k - 1].last + 1 };
        let ceiling = stretches.get(k + 1).map_or(y.len(), |next| next.first);
        let stretch = &mut stretches[k];
        while stretch.first > floor && near(stretch.first - 1, stretch.log_height) {
            stretch.first -= 1;
        }
        while stretch.last + 1 < ceiling && near(stretch.last + 1, stretch.log_height) {
            stretch.last += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_noise::{self, Noise};
    use proptest::prelude::*;

    fn log_grid() -> Vec<f64> {
        test_noise::log_grid(1e-1, 1e4, 500)
    }

    /// Falls to 0.3 before t = 1, leaves it near 200, converges to 0.001.
    fn two_plateaus(t: f64) -> f64 {
        0.3 + 0.7 * (-5.0 * t).exp() - 0.299 / (1.0 + (200.0 / t).powi(6))
    }

    #[test]
    fn two_plateaus_are_found_with_their_heights_and_ends() {
        let times = log_grid();
        let values: Vec<f64> = times.iter().map(|&t| two_plateaus(t)).collect();
        let found = plateaus(&times, &values, Criterion::log_time()).expect("plateaus");
        assert_eq!(found.len(), 2, "{found:?}");
        // Where it is flat, the last approach 299 (200/t)^6 = r has 6r/(1 + r) ≤ ln 1.05/ln 2, so r ≤ 1.2 %.
        assert!((found[0].height / 0.3 - 1.0).abs() < 0.002 && (found[1].height / 0.001 - 1.0).abs() < 0.012);
        // The ends are where the curve is 5 % off 0.3: 0.7 e^{−5t} = 0.015, and 0.299/(1 + (200/t)^6) =
        // 0.015; grid ratio 1.023.
        let start = (0.7f64 / 0.015).ln() / 5.0;
        let end = 200.0 / (0.299f64 / 0.015 - 1.0).powf(1.0 / 6.0);
        assert!((found[0].start / start).ln().abs() < 0.04, "{} {start}", found[0].start);
        assert!((found[0].end / end).ln().abs() < 0.04, "{} {end}", found[0].end);
        assert_eq!(found[1].end, 1e4);
        let longest = longest_plateau(&times, &values, Criterion::log_time()).expect("plateaus");
        assert_eq!(longest, Some(found[0]));
    }

    #[test]
    fn noise_and_wild_samples_do_not_break_a_plateau() {
        // 3 % noise on 30 samples per doubling: 5σ/√n = 2.7 %, against a tolerance of 8 %; every 40th sample
        // doubled.
        let criterion = Criterion { tolerance: 0.08, ..Criterion::log_time() };
        let mut noise = Noise::new(9);
        let times = log_grid();
        for _ in 0..50 {
            let values: Vec<f64> = times
                .iter()
                .enumerate()
                .map(|(i, &t)| {
                    two_plateaus(t) * (0.03 * noise.normal()).exp() * if i % 40 == 7 { 2.0 } else { 1.0 }
                })
                .collect();
            let first = longest_plateau(&times, &values, criterion).expect("plateaus").expect("one");
            // Median of some 200 samples: 1.25 · 3 % / √200 = 0.3 %, and the slow departure.
            assert!((first.height / 0.3 - 1.0).abs() < 0.015, "{first:?}");
            // The ends lie between the sharp ones above and a quarter span inside.
            assert!(first.start > 0.4 && first.start < 1.1, "{first:?}");
            assert!(first.end > 85.0 && first.end < 170.0, "{first:?}");
        }
    }

    #[test]
    fn a_power_law_is_flat_everywhere_or_nowhere() {
        let times = log_grid();
        let critical = 1.05f64.ln() / std::f64::consts::LN_2;
        let count = |a: f64| {
            let values: Vec<f64> = times.iter().map(|t| t.powf(-a)).collect();
            plateaus(&times, &values, Criterion::log_time()).expect("plateaus")
        };
        assert!(count(1.01 * critical).is_empty());
        let whole = count(0.99 * critical);
        assert_eq!((whole.len(), whole[0].samples), (1, times.len()));
    }

    #[test]
    fn a_jump_ends_a_plateau_exactly_and_no_plateau_is_an_answer() {
        let times: Vec<f64> = (0..200).map(f64::from).collect();
        let step: Vec<f64> = times.iter().map(|&t| if t < 90.0 { 2.0 } else { 1.0 }).collect();
        let found = plateaus(&times, &step, Criterion::linear_time(30.0)).expect("plateaus");
        let ends: Vec<(f64, f64, f64)> = found.iter().map(|p| (p.height, p.start, p.end)).collect();
        assert_eq!(ends, vec![(2.0, 0.0, 89.0), (1.0, 90.0, 199.0)]);
        let decay: Vec<f64> = times.iter().map(|t| (-0.05 * t).exp()).collect();
        assert_eq!(plateaus(&times, &decay, Criterion::linear_time(30.0)), Ok(vec![]));
        assert_eq!(longest_plateau(&times[..20], &step[..20], Criterion::linear_time(30.0)), Ok(None));
    }

    #[test]
    fn what_has_no_logarithm_is_refused() {
        let zero_time = plateaus(&[0.0, 1.0], &[1.0, 1.0], Criterion::log_time());
        assert_eq!(zero_time, Err(AnalysisError::NotPositive { what: "times", index: 0, value: 0.0 }));
        let negative = plateaus(&[1.0, 2.0], &[1.0, -1.0], Criterion::log_time());
        assert_eq!(negative, Err(AnalysisError::NotPositive { what: "values", index: 1, value: -1.0 }));
        assert!(plateaus(&[1.0], &[1.0], Criterion::linear_time(0.0)).is_err());
    }

    proptest! {
        #[test]
        fn scaling_values_scales_heights_and_scaling_time_moves_the_ends(
            seed in 0u64..1000, value_factor in 0.01..100.0f64, time_factor in 0.1..10.0f64,
        ) {
            let mut noise = Noise::new(seed);
            let times = log_grid();
            let values: Vec<f64> =
                times.iter().map(|&t| two_plateaus(t) * (0.01 * noise.normal()).exp()).collect();
            let scaled: Vec<f64> = values.iter().map(|v| value_factor * v).collect();
            let moved: Vec<f64> = times.iter().map(|t| time_factor * t).collect();
            let found = plateaus(&times, &values, Criterion::log_time()).expect("plateaus");
            let mapped = plateaus(&moved, &scaled, Criterion::log_time()).expect("plateaus");
            prop_assert_eq!(found.len(), mapped.len());
            for (a, b) in found.iter().zip(&mapped) {
                prop_assert!((value_factor * a.height / b.height - 1.0).abs() < 1e-12);
                prop_assert!((time_factor * a.start / b.start - 1.0).abs() < 1e-12);
                prop_assert_eq!(a.samples, b.samples);
            }
        }

        #[test]
        fn plateaus_are_in_order_disjoint_and_long_enough(
            logs in prop::collection::vec(-0.3..0.3f64, 10..80), span in 2.0..12.0f64,
        ) {
            let times: Vec<f64> = (0..logs.len()).map(|i| i as f64).collect();
            let mut level = 0.0;
            let mut walk = |step: f64| {
                level += if step.abs() > 0.2 { step } else { 0.0 };
                f64::exp(level)
            };
            let values: Vec<f64> = logs.iter().map(|&step| walk(step)).collect();
            let found = plateaus(&times, &values, Criterion::linear_time(span)).expect("plateaus");
            prop_assert!(found.iter().all(|p| p.length(Scale::Linear) >= span));
            prop_assert!(found.windows(2).all(|w| w[0].end < w[1].start));
        }
    }
}
