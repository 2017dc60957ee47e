//! Curves between their samples: linear or logarithmic interpolation, which never overshoots, and common
//! grids.

use crate::error::{AnalysisError, check_curve, check_runs, check_times};

/// How a coordinate is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// As it is.
    #[default]
    Linear,
    /// By its natural logarithm; needs positive numbers.
    Log,
}

impl Scale {
    pub(crate) fn forward(self, what: &'static str, index: usize, value: f64) -> Result<f64, AnalysisError> {
        match self {
            Scale::Linear => Ok(value),
            Scale::Log if value > 0.0 => Ok(value.ln()),
            Scale::Log => Err(AnalysisError::NotPositive { what, index, value }),
        }
    }

    /// The point a `share` of the way from `low` to `high`, measured on this scale; exact at both ends.
    fn between(self, low: f64, high: f64, share: f64) -> f64 {
        if share <= 0.0 {
            return low;
        }
        if share >= 1.0 {
            return high;
        }
        match self {
            Scale::Linear => low + share * (high - low),
            Scale::Log => low * (share * (high / low).ln()).exp(),
        }
    }

    /// The share of the way from `low` to `high` at which `value` lies, measured on this scale.
    fn share(self, low: f64, high: f64, value: f64) -> f64 {
        match self {
            Scale::Linear => (value - low) / (high - low),
            Scale::Log => (value / low).ln() / (high / low).ln(),
        }
    }
}

/// Scales of both coordinates. A curve is a straight line between two samples when drawn on these axes, so a
/// power law is exact on [`Axes::LOG_LOG`] and an exponential on [`Axes::LOG_VALUE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Axes {
    /// Scale of time.
    pub time: Scale,
    /// Scale of the values.
    pub value: Scale,
}

impl Axes {
    /// Both linear.
    pub const LINEAR: Self = Self { time: Scale::Linear, value: Scale::Linear };
    /// Linear time, logarithmic value.
    pub const LOG_VALUE: Self = Self { time: Scale::Linear, value: Scale::Log };
    /// Logarithmic time, linear value.
    pub const LOG_TIME: Self = Self { time: Scale::Log, value: Scale::Linear };
    /// Both logarithmic.
    pub const LOG_LOG: Self = Self { time: Scale::Log, value: Scale::Log };
}

/// The curve at the times `at` (in any order). A time outside the curve is refused: there is no
/// extrapolation.
pub fn interpolate(times: &[f64], values: &[f64], at: &[f64], axes: Axes) -> Result<Vec<f64>, AnalysisError> {
    check_curve(times, values)?;
    at.iter().map(|&time| value_at(times, values, time, axes)).collect()
}

/// Every run on the grid, as far as it goes: a run that stopped early stays shorter, on the same grid.
///
/// The grid must not begin before the times. A run shorter than the first grid point is refused, naming it.
pub fn resample(
    times: &[f64],
    runs: &[Vec<f64>],
    grid: &[f64],
    axes: Axes,
) -> Result<Vec<Vec<f64>>, AnalysisError> {
    check_runs(times, runs)?;
    check_times(grid)?;
    let one = |run: &Vec<f64>| {
        let times = &times[..run.len()];
        let last = times[times.len() - 1];
        let covered = grid.partition_point(|&t| t <= last);
        // The first point is asked for even when it is not covered, so that the error names it.
        let grid = &grid[..covered.max(1)];
        grid.iter().map(|&time| value_at(times, run, time, axes)).collect::<Result<Vec<_>, _>>()
    };
    runs.iter().enumerate().map(|(index, run)| one(run).map_err(|e| e.in_run(index))).collect()
}

/// `points` numbers from `first` to `last`, both included and exact, equally spaced on the scale.
pub fn grid(first: f64, last: f64, points: usize, scale: Scale) -> Result<Vec<f64>, AnalysisError> {
    check_times(&[first, last])?;
    scale.forward("grid", 0, first)?;
    if points < 2 {
        let requirement = "a grid has at least its two ends";
        return Err(AnalysisError::BadParameter { what: "points", value: points as f64, requirement });
    }
    Ok((0..points).map(|i| scale.between(first, last, i as f64 / (points - 1) as f64)).collect())
}

/// The time at which the segment between two samples passes `level`, which lies between their values.
pub(crate) fn crossing_time(
    times: &[f64],
    values: &[f64],
    right: usize,
    level: f64,
    axes: Axes,
) -> Result<f64, AnalysisError> {
    let left = right - 1;
    // A level met exactly at a sample needs no interpolation, and so no logarithm.
    if values[right] == level {
        return Ok(times[right]);
    }
    for i in [left, right] {
        axes.time.forward("times", i, times[i])?;
        axes.value.forward("values", i, values[i])?;
    }
    let share = axes.value.share(values[left], values[right], level);
    Ok(axes.time.between(times[left], times[right], share))
}

/// As [`interpolate`] at one time, for a curve already checked.
fn value_at(times: &[f64], values: &[f64], at: f64, axes: Axes) -> Result<f64, AnalysisError> {
    let (first, last) = (times[0], times[times.len() - 1]);
    if !(first <= at && at <= last) {
        return Err(AnalysisError::OutsideCurve { at, first, last });
    }
    let right = times.partition_point(|&t| t < at);
    if times[right] == at {
        return Ok(values[right]);
    }
    let left = right - 1;
    for i in [left, right] {
        axes.time.forward("times", i, times[i])?;
        axes.value.forward("values", i, values[i])?;
    }
    let share = axes.time.share(times[left], times[right], at);
    Ok(axes.value.between(values[left], values[right], share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_law_is_exact_on_its_own_axes() {
        type Law = fn(f64) -> f64;
        let times = [0.5, 1.0, 4.0, 9.0];
        let laws: [(Law, Axes); 4] = [
            (|t| 3.0 - 2.0 * t, Axes::LINEAR),
            (|t| 2.0 * (-0.7 * t).exp(), Axes::LOG_VALUE),
            (|t| 5.0 - t.ln(), Axes::LOG_TIME),
            (|t| 2.0 * t.powf(-1.5), Axes::LOG_LOG),
        ];
        for (law, axes) in laws {
            let values: Vec<f64> = times.iter().map(|&t| law(t)).collect();
            for at in [0.5, 0.6, 2.0, 8.9, 9.0] {
                let got = interpolate(&times, &values, &[at], axes).expect("inside")[0];
                assert!((got - law(at)).abs() < 1e-14 * (1.0 + law(at).abs()), "{axes:?} {at}: {got}");
            }
        }
    }

    #[test]
    fn there_is_no_extrapolation_and_no_logarithm_of_zero() {
        let outside = interpolate(&[1.0, 2.0], &[1.0, 2.0], &[2.5], Axes::LINEAR);
        assert_eq!(outside, Err(AnalysisError::OutsideCurve { at: 2.5, first: 1.0, last: 2.0 }));
        assert!(interpolate(&[1.0, 2.0], &[1.0, 2.0], &[f64::NAN], Axes::LINEAR).is_err());
        let zero = interpolate(&[0.0, 2.0], &[1.0, 2.0], &[1.0], Axes::LOG_TIME);
        assert_eq!(zero, Err(AnalysisError::NotPositive { what: "times", index: 0, value: 0.0 }));
        // A sample itself is exact and needs no logarithm.
        assert_eq!(interpolate(&[0.0, 2.0], &[-1.0, 2.0], &[0.0], Axes::LOG_LOG), Ok(vec![-1.0]));
    }

    #[test]
    fn a_run_that_stopped_early_stays_shorter_on_the_grid() {
        let times = [0.0, 1.0, 2.0, 3.0];
        let runs = [vec![0.0, 1.0, 2.0, 3.0], vec![0.0, 10.0]];
        let on_grid = resample(&times, &runs, &[0.5, 1.0, 1.5, 2.5], Axes::LINEAR).expect("resample");
        assert_eq!(on_grid, vec![vec![0.5, 1.0, 1.5, 2.5], vec![5.0, 10.0]]);
        let late = resample(&times, &runs, &[1.5], Axes::LINEAR).expect_err("run 1 ends before");
        assert!(matches!(late, AnalysisError::InRun { run: 1, .. }));
    }

    #[test]
    fn grids_hit_their_ends_exactly_and_are_even_on_their_scale() {
        let log = grid(1e-2, 1e4, 7, Scale::Log).expect("grid");
        for (got, power) in log.iter().zip(-2..) {
            assert!((got / 10f64.powi(power) - 1.0).abs() < 1e-14);
        }
        assert_eq!((log[0], log[6]), (1e-2, 1e4));
        assert_eq!(grid(0.0, 3.0, 4, Scale::Linear), Ok(vec![0.0, 1.0, 2.0, 3.0]));
        assert!(grid(0.0, 3.0, 4, Scale::Log).is_err() && grid(0.0, 3.0, 1, Scale::Linear).is_err());
    }

    proptest! {
        #[test]
        fn a_monotone_curve_stays_monotone_and_inside_its_samples(
            steps in prop::collection::vec((0.1..2.0f64, 0.0..2.0f64), 2..12),
            axes in prop::sample::select(vec![Axes::LINEAR, Axes::LOG_VALUE, Axes::LOG_TIME, Axes::LOG_LOG]),
        ) {
            let (mut times, mut values) = (vec![0.3], vec![0.2]);
            for (dt, dv) in steps {
                times.push(times[times.len() - 1] + dt);
                values.push(values[values.len() - 1] + dv);
            }
            let fine = grid(times[0], times[times.len() - 1], 200, Scale::Linear).expect("grid");
            let curve = interpolate(&times, &values, &fine, axes).expect("inside");
            // Rounding of ln and exp: a few units in the last place.
            prop_assert!(curve.windows(2).all(|w| w[1] >= w[0] * (1.0 - 1e-14)));
            prop_assert!(curve[0] == values[0] && curve[199] == values[values.len() - 1]);
        }
    }
}
