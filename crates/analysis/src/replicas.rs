//! An ensemble of runs as one curve: the mean over runs at each time, its standard error, and curves aligned
//! at their escape.

use crate::compare::Measured;
use crate::error::{AnalysisError, check_runs, check_times};
use crate::interpolate::{Axes, interpolate};
use crate::passage::Passage;
use crate::statistics::{Mean, mean_with_error};

/// The mean over runs, on the first times: as many as enough runs reach.
#[derive(Clone, Debug, PartialEq)]
pub struct Average {
    /// Mean over the runs that reach the time.
    pub means: Vec<f64>,
    /// Standard error of the mean, from the scatter of the runs.
    pub standard_errors: Vec<f64>,
    /// Number of runs that reach the time; never increases.
    pub counts: Vec<usize>,
}

impl Average {
    /// The mean as a measured curve on the times it was taken on, ready to be compared with a prediction.
    pub fn measured<'a>(&'a self, times: &'a [f64]) -> Measured<'a> {
        let times = &times[..self.means.len().min(times.len())];
        Measured { times, means: &self.means, standard_errors: &self.standard_errors, counts: &self.counts }
    }
}

/// A number measured on each run by itself, so that its error comes from the scatter over independent seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct OverRuns {
    /// Mean over runs and its standard error.
    pub average: Mean,
    /// The number of each run, in order.
    pub per_run: Vec<f64>,
}

/// Mean over runs with standard error, as long as at least `at_least` runs (two or more) reach the time.
///
/// Where runs stop *because of* their value (an escape), the mean over those still running is the mean of the
/// late ones; give `at_least = runs.len()` to stop at the first run that ends.
pub fn average(times: &[f64], runs: &[Vec<f64>], at_least: usize) -> Result<Average, AnalysisError> {
    check_runs(times, runs)?;
    let at_least = at_least.max(2);
    if runs.len() < at_least {
        return Err(AnalysisError::TooFewRuns {
            what: "a mean with its error",
            runs: runs.len(),
            needed: at_least,
        });
    }
    let mut result = Average { means: Vec::new(), standard_errors: Vec::new(), counts: Vec::new() };
    for index in 0..times.len() {
        let alive = values_at(runs, index);
        if alive.len() < at_least {
            break;
        }
        let Some(mean) = mean_with_error(&alive) else { break };
        result.means.push(mean.mean);
        result.standard_errors.push(mean.standard_error);
        result.counts.push(mean.count);
    }
    Ok(result)
}

/// Mean over runs of the curves moved so that each passes its level at time zero, on the `offsets` from
/// there.
///
/// The plain mean smears a sharp drop that comes at a different time in each run; this one keeps its shape.
/// Runs whose passage is censored have no place on the common clock and are left out; every other run must
/// cover all the offsets.
pub fn average_about_passage(
    times: &[f64],
    runs: &[Vec<f64>],
    passages: &[Passage],
    offsets: &[f64],
    axes: Axes,
) -> Result<Average, AnalysisError> {
    check_runs(times, runs)?;
    check_times(offsets)?;
    if passages.len() != runs.len() {
        let (expected, got) = (runs.len(), passages.len());
        return Err(AnalysisError::LengthsDiffer { what: "passages", expected, got });
    }
    let mut moved = Vec::new();
    for (index, (run, passage)) in runs.iter().zip(passages).enumerate() {
        if let Passage::Passed { time } = passage {
            let at: Vec<f64> = offsets.iter().map(|offset| time + offset).collect();
            let curve = interpolate(&times[..run.len()], run, &at, axes).map_err(|e| e.in_run(index))?;
            moved.push(curve);
        }
    }
    if moved.is_empty() {
        return Err(AnalysisError::TooFewRuns { what: "a mean about the passage", runs: 0, needed: 2 });
    }
    average(offsets, &moved, 2)
}

/// The values at one time index of the runs that reach it.
pub(crate) fn values_at(runs: &[Vec<f64>], index: usize) -> Vec<f64> {
    runs.iter().filter_map(|run| run.get(index).copied()).collect()
}

/// Applies a measurement to each run and averages; names the run where it fails.
pub(crate) fn over_runs(
    times: &[f64],
    runs: &[Vec<f64>],
    what: &'static str,
    mut measure: impl FnMut(&[f64], &[f64]) -> Result<f64, AnalysisError>,
) -> Result<OverRuns, AnalysisError> {
    check_runs(times, runs)?;
    let per_run = runs
        .iter()
        .enumerate()
        .map(|(index, run)| measure(&times[..run.len()], run).map_err(|e| e.in_run(index)))
        .collect::<Result<Vec<f64>, _>>()?;
    let average =
        mean_with_error(&per_run).ok_or(AnalysisError::TooFewRuns { what, runs: runs.len(), needed: 2 })?;
    Ok(OverRuns { average, per_run })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passage::{Level, first_passages};

    #[test]
    fn the_mean_ends_where_too_few_runs_remain() {
        let runs = [vec![1.0, 2.0, 3.0], vec![3.0, 4.0], vec![5.0]];
        let got = average(&[0.0, 1.0, 2.0], &runs, 2).expect("average");
        assert_eq!((got.means, got.counts), (vec![3.0, 3.0], vec![3, 2]));
        // s² = 4 and 2, so √(4/3) and 1.
        assert!((got.standard_errors[0] - (4.0f64 / 3.0).sqrt()).abs() < 1e-15);
        assert_eq!(got.standard_errors[1], 1.0);
        assert_eq!(average(&[0.0, 1.0, 2.0], &runs, 3).expect("average").means, vec![3.0]);
        let alone = average(&[0.0], &runs[2..], 0);
        assert!(matches!(alone, Err(AnalysisError::TooFewRuns { runs: 1, needed: 2, .. })));
    }

    #[test]
    fn alignment_at_the_passage_restores_the_shape_that_the_mean_smears() {
        // The same sigmoid, late by 0, 3, 6, 9; a fifth run never escapes.
        let times: Vec<f64> = (0..400).map(|i| 0.1 * f64::from(i)).collect();
        let shape = |t: f64| 1.0 / (1.0 + (-2.0 * t).exp());
        let mut runs: Vec<Vec<f64>> =
            (0..4).map(|k| times.iter().map(|t| shape(t - 10.0 - 3.0 * f64::from(k))).collect()).collect();
        runs.push(vec![0.0; 100]);
        let passages = first_passages(&times, &runs, Level::rising(0.5)).expect("passages");
        let offsets = [-2.0, -1.0, 0.0, 1.0, 2.0];
        let aligned =
            average_about_passage(&times, &runs, &passages, &offsets, Axes::LINEAR).expect("aligned");
        for (offset, mean) in offsets.iter().zip(&aligned.means) {
            // Linear interpolation: h² max|f''| / 8 with |f''| ≤ 4/(6√3) < 0.39 for this slope.
            assert!((mean - shape(*offset)).abs() < 0.01 * 0.39 / 8.0 + 1e-12, "{offset}: {mean}");
        }
        assert_eq!(aligned.counts, vec![4; 5]);
        let none = average_about_passage(&times, &runs[4..], &passages[4..], &offsets, Axes::LINEAR);
        assert!(matches!(none, Err(AnalysisError::TooFewRuns { runs: 0, .. })));
    }
}
