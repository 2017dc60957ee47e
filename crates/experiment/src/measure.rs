//! Numbers read off the results, with their standard errors.

use crate::claims::digits;
use crate::description::{Extremum, FitErrors, Measure, MeasureKind, Overrides};
use crate::points::Point;
use crate::quantities;
use crate::results::{Missing, Results};
use didact_analysis::exponent::{fit_exponent, logarithmic_law};
use didact_analysis::passage::Passage;
use didact_analysis::plateau::{Criterion, longest_plateau};
use didact_analysis::rate::{Window, fit_rate};
use didact_analysis::statistics::wilson;
use didact_analysis::survival::kaplan_meier;
use didact_math::expression::Expression;
use didact_math::fits::{Noise, straight_line};
use didact_model::Trajectory;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Probability within one standard deviation of a normal variable: the confidence that makes an interval comparable
/// with a standard error.
const ONE_SIGMA: f64 = 0.682_689_492_137_085_9;

/// A number with its standard error (0 when it has none).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Its standard error; half the length of the interval, where there is one.
    pub error: f64,
    /// The two ends of its interval of one standard deviation, where they are not at the same distance: of a probability
    /// (Wilson) and of a median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

impl Estimate {
    /// A number with a standard error.
    pub fn new(value: f64, error: f64) -> Self {
        Self { value, error, interval: None }
    }

    /// A number without one.
    pub fn exact(value: f64) -> Self {
        Self::new(value, 0.0)
    }

    /// A number in an interval.
    pub fn within(value: f64, [low, high]: [f64; 2]) -> Self {
        Self { value, error: 0.5 * (high - low), interval: Some([low, high]) }
    }

    /// How far it may reach below and above the value.
    pub fn reach(&self) -> [f64; 2] {
        self.interval.map_or([self.error; 2], |[low, high]| [self.value - low, high - self.value])
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = digits(self.value);
        match self.interval {
            Some([low, high]) => write!(out, "{value} ({} to {})", digits(low), digits(high)),
            None if self.error > 0.0 => write!(out, "{value} ± {}", digits(self.error)),
            None => write!(out, "{value}"),
        }
    }
}

/// What a measure found: per point of the sweep, or once for a fit over it. `Err` says why there is no number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The measure.
    pub name: String,
    /// One per point, or a single one.
    pub values: Vec<Result<Estimate, Missing>>,
    /// True when it is one number over the whole sweep.
    pub global: bool,
}

/// Evaluates all measures in order; later ones may use earlier ones.
pub fn evaluate(measures: &[Measure], results: &Results) -> Vec<Measured> {
    let mut done: Vec<Measured> = Vec::new();
    for measure in measures {
        let global = matches!(
            &measure.kind,
            MeasureKind::LogLaw { .. }
                | MeasureKind::PowerLaw { .. }
                | MeasureKind::ScanExponent { .. }
                | MeasureKind::ScanExtremum { .. }
        );
        let values = if global {
            vec![over_sweep(&measure.kind, results, &done)]
        } else {
            results.points.iter().map(|p| at_point(&measure.kind, p, results, &done)).collect()
        };
        done.push(Measured { name: measure.name.clone(), values, global });
    }
    done
}

type Found = Result<Estimate, Missing>;

fn find<'a>(done: &'a [Measured], name: &str) -> Result<&'a Measured, String> {
    done.iter().find(|m| m.name == name).ok_or_else(|| format!("no measure `{name}` before this one"))
}

fn at_point(kind: &MeasureKind, point: &Point, results: &Results, done: &[Measured]) -> Found {
    match kind {
        MeasureKind::EventTime { run, event } => {
            let passages =
                results.table(point, run)?.event(event).ok_or_else(|| format!("no event `{event}`"))?;
            let censored = passages.iter().filter(|p| p.is_none()).count();
            if censored > 0 {
                return Err(format!("{censored} of {} runs never saw `{event}`", passages.len()).into());
            }
            let moments: didact_math::random::statistics::Moments =
                passages.iter().flatten().copied().collect();
            let error = if moments.count() > 1 { moments.standard_error() } else { 0.0 };
            Ok(Estimate::new(moments.mean(), error))
        }
        MeasureKind::EventMedian { run, event } => {
            let table = results.table(point, run)?;
            let passages = table.event(event).ok_or_else(|| format!("no event `{event}`"))?;
            let end = table.times.last().copied().unwrap_or(0.0);
            let passage = |p: &Option<f64>| match *p {
                Some(time) => Passage::Passed { time },
                None => Passage::Censored { at: end },
            };
            let passages: Vec<Passage> = passages.iter().map(passage).collect();
            let curve = kaplan_meier(&passages).map_err(|e| e.to_string())?;
            let median =
                curve.median().ok_or_else(|| format!("fewer than half of the runs saw `{event}`"))?;
            let interval = curve.median_interval(ONE_SIGMA).map_err(|e| e.to_string())?;
            // An end that so few runs do not bound leaves the other half of the interval.
            Ok(match interval {
                (Some(low), Some(high)) => Estimate::within(median, [low, high]),
                (Some(low), None) => Estimate::new(median, median - low),
                (None, Some(high)) => Estimate::new(median, high - median),
                (None, None) => Estimate::exact(median),
            })
        }
        MeasureKind::EventFraction { run, event } => {
            let passages =
                results.table(point, run)?.event(event).ok_or_else(|| format!("no event `{event}`"))?;
            let seen = passages.iter().flatten().count();
            let interval = wilson(seen, passages.len(), ONE_SIGMA).map_err(|e| e.to_string())?;
            Ok(Estimate::within(seen as f64 / passages.len() as f64, [interval.low, interval.high]))
        }
        MeasureKind::ValueAt { run, observable, time } => {
            let table = results.table(point, run)?;
            let mean = table.mean(observable).ok_or_else(|| format!("no column `{observable}`"))?;
            let nearest = (0..table.times.len())
                .min_by(|a, b| (table.times[*a] - time).abs().total_cmp(&(table.times[*b] - time).abs()))
                .ok_or("no times")?;
            Ok(Estimate::new(mean[nearest].value, mean[nearest].error))
        }
        MeasureKind::PlateauHeight { run, observable } => {
            let (times, values, _) = results.curve(point, run, observable, [0.0, f64::INFINITY])?;
            let positive = times.iter().position(|t| *t > 0.0).unwrap_or(0);
            let (times, values) = (&times[positive..], &values[positive..]);
            let found = longest_plateau(times, values, Criterion::log_time()).map_err(|e| e.to_string())?;
            let plateau = found.ok_or("no plateau")?;
            Ok(Estimate::exact(plateau.height))
        }
        MeasureKind::Exponent { run, observable, window } => {
            let (times, values, errors) = results.curve(point, run, observable, *window)?;
            let noise =
                if errors.iter().all(|e| *e > 0.0) { Noise::Known(&errors) } else { Noise::Estimated };
            let fit =
                fit_exponent(&times, &values, noise, (window[0], window[1])).map_err(|e| e.to_string())?;
            Ok(Estimate::new(fit.exponent, fit.exponent_error))
        }
        MeasureKind::Rate { run, observable, reference, window } => {
            let (times, values, _) = results.curve(point, run, observable, *window)?;
            let window = Window::Times(window[0], window[1]);
            let fit =
                fit_rate(&times, &values, Noise::Estimated, *reference, window).map_err(|e| e.to_string())?;
            Ok(Estimate::new(fit.rate, fit.rate_error))
        }
        MeasureKind::GrowthRate { run, observable, levels } => {
            growth_rate(results.table(point, run)?, observable, *levels)
        }
        MeasureKind::Agreement { theory, simulation, observable, window } => {
            let (times, predicted, _) = results.curve(point, theory, observable, *window)?;
            let (simulated_times, means, errors) = results.curve(point, simulation, observable, *window)?;
            if times != simulated_times {
                return Err(format!("`{theory}` and `{simulation}` saved different times").into());
            }
            if results.table(point, simulation)?.replicas() < 2 {
                return Err(format!("`{simulation}` has one replica, so no standard error").into());
            }
            // A shared start has no spread: there the two must agree to rounding.
            let z = means.iter().zip(&errors).zip(&predicted).map(|((m, e), p)| {
                if *e > 1e-12 * m.abs() {
                    (m - p).abs() / e
                } else {
                    f64::from((m - p).abs() > 1e-9 * m.abs()) * f64::INFINITY
                }
            });
            let z = z.map(|z| if z.is_nan() { 0.0 } else { z });
            Ok(Estimate::exact(z.fold(0.0, f64::max)))
        }
        MeasureKind::Quantity { quantity, inputs, entry } => {
            let inputs = inputs.iter().map(|(k, v)| (k.clone(), point.replace(v))).collect();
            let value = quantities::number(quantity, &inputs, entry.as_deref())?;
            Ok(Estimate::exact(value))
        }
        MeasureKind::MeanOver { of, over } => {
            let others: Overrides = point
                .values
                .iter()
                .filter(|(key, _)| *key != over)
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect();
            let measured = find(done, of)?;
            let mut moments = didact_math::random::statistics::Moments::default();
            for at in results.points.iter().filter(|p| p.matches(&others)) {
                moments.push(measured.at(at).map_err(|why| why.at(at))?.value);
            }
            let error = if moments.count() > 1 { moments.standard_error() } else { 0.0 };
            Ok(Estimate::new(moments.mean(), error))
        }
        MeasureKind::Elsewhere { of, at } => {
            let mut values = point.values.clone();
            values.extend(at.iter().map(|(key, value)| (key.clone(), value.clone())));
            let there = results.points.iter().find(|p| p.matches(&values));
            let there = there.ok_or_else(|| {
                format!("the sweep has no point with {}", Point { index: 0, values }.label())
            })?;
            find(done, of)?.at(there)
        }
        MeasureKind::Formula { formula, with } => {
            let names: Vec<&str> = with.keys().map(String::as_str).collect();
            let expression = Expression::parse(formula, &names).map_err(|e| e.to_string())?;
            let inputs: Result<Vec<Estimate>, Missing> =
                with.values().map(|m| find(done, m)?.at(point)).collect();
            let inputs = inputs?;
            let values: Vec<f64> = inputs.iter().map(|e| e.value).collect();
            let mut gradient = vec![0.0; values.len()];
            let value = expression.gradient(&values, &mut gradient);
            let square: f64 = gradient.iter().zip(&inputs).map(|(g, e)| (g * e.error).powi(2)).sum();
            Ok(Estimate::new(value, square.sqrt()))
        }
        MeasureKind::LogLaw { .. }
        | MeasureKind::PowerLaw { .. }
        | MeasureKind::ScanExponent { .. }
        | MeasureKind::ScanExtremum { .. } => Err("one number over the whole sweep or scan".into()),
    }
}

/// Slope of ln |value| against time, from the last time below the first level to the first time above the second.
fn growth_rate(table: &Trajectory, column: &str, levels: [f64; 2]) -> Found {
    let runs = table.curves(column).ok_or_else(|| format!("no column `{column}`"))?;
    let mut rates = didact_math::random::statistics::Moments::default();
    for run in runs {
        let size: Vec<f64> = run.iter().map(|v| v.abs()).collect();
        let last = size.iter().position(|v| *v > levels[1]).ok_or("a run never passes the upper level")?;
        let first = size[..last].iter().rposition(|v| *v < levels[0]).map_or(0, |at| at + 1);
        let logs: Vec<f64> = size[first..last].iter().map(|v| v.ln()).collect();
        let line =
            straight_line(&table.times[first..last], &logs, Noise::Estimated).map_err(|e| e.to_string())?;
        rates.push(line.slope);
    }
    let error = if rates.count() > 1 { rates.standard_error() } else { 0.0 };
    Ok(Estimate::new(rates.mean(), error))
}

impl Measured {
    /// The number of a point (or the only one).
    pub fn at(&self, point: &Point) -> Found {
        self.values[if self.global { 0 } else { point.index }].clone()
    }
}

fn over_sweep(kind: &MeasureKind, results: &Results, done: &[Measured]) -> Found {
    match kind {
        MeasureKind::ScanExponent { scan, entry, over, window, at } => {
            let mut pairs = results.scanned(scan, (entry, over), at)?;
            pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (x, y): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let fit = fit_exponent(&x, &y, Noise::Estimated, (window[0], window[1]))
                .map_err(|e| format!("scan `{scan}`: {e}"))?;
            return Ok(Estimate::new(fit.exponent, fit.exponent_error));
        }
        MeasureKind::ScanExtremum { scan, entry, extremum, of, at } => {
            let pairs = results.scanned(scan, (entry, of.as_deref().unwrap_or(entry)), at)?;
            let sign = if *extremum == Extremum::Maximum { -1.0 } else { 1.0 };
            let best = pairs.into_iter().min_by(|a, b| (sign * a.1).total_cmp(&(sign * b.1)));
            let (x, _) = best.ok_or_else(|| format!("scan `{scan}` has no number for `{entry}`"))?;
            return Ok(Estimate::exact(x));
        }
        _ => {}
    }
    let (MeasureKind::LogLaw { of, over, window, errors: choice }
    | MeasureKind::PowerLaw { of, over, window, errors: choice }) = kind
    else {
        return Err("not a fit over the sweep".into());
    };
    let measured = find(done, of)?;
    let (mut x, mut y, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    for point in &results.points {
        let key = point.values.get(over).and_then(serde_json::Value::as_f64);
        let key = key.ok_or_else(|| format!("`{over}` is not swept over numbers"))?;
        if key < window[0] || key > window[1] {
            continue;
        }
        let estimate = match measured.at(point) {
            Err(Missing::LeftOut { .. }) => continue,
            other => other.map_err(|why| why.at(point))?,
        };
        x.push(key);
        y.push(estimate.value);
        errors.push(estimate.error);
    }
    slope(*choice, &errors, |noise| {
        if matches!(kind, MeasureKind::LogLaw { .. }) {
            let line = logarithmic_law(&x, &y, noise).map_err(|e| e.to_string())?;
            return Ok((line.slope, line.slope_error));
        }
        let fit = fit_exponent(&x, &y, noise, (0.0, f64::INFINITY)).map_err(|e| e.to_string())?;
        Ok((fit.exponent, fit.exponent_error))
    })
}

/// What a fit finds with the errors that are chosen for it, those of its points given.
fn slope(choice: FitErrors, errors: &[f64], fit: impl Fn(Noise) -> Result<(f64, f64), Missing>) -> Found {
    let known = errors.iter().all(|e| *e > 0.0);
    let (value, error) = if choice == FitErrors::Points && known {
        fit(Noise::Known(errors))?
    } else {
        fit(Noise::Estimated)?
    };
    // Few points may lie on a line by chance.
    let least = if choice == FitErrors::Scatter && known { fit(Noise::Known(errors))?.1 } else { 0.0 };
    Ok(Estimate::new(value, error.max(least)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scatter_is_no_less_than_the_errors_of_the_points_give() {
        let x = [1.0, 2.0, 3.0, 4.0];
        let found = |y: [f64; 4], error: f64, choice| {
            let fit = |noise: Noise| {
                let line = straight_line(&x, &y, noise).map_err(|e| e.to_string())?;
                Ok((line.slope, line.slope_error))
            };
            slope(choice, &[error; 4], fit).unwrap()
        };
        // Σ (x − 2.5)² = 5, so the errors of the points give 0.1/√5.
        let by_points = 0.1 / 5.0_f64.sqrt();
        let straight = found([1.0, 2.0, 3.0, 4.0], 0.1, FitErrors::Scatter);
        assert!((straight.value - 1.0).abs() < 1e-14 && (straight.error - by_points).abs() < 1e-14);
        let bent = [1.0, 3.0, 2.0, 4.0];
        let scattered = found(bent, 0.1, FitErrors::Scatter);
        // Σ r² = 1.8 about the slope 0.8, two degrees of freedom.
        assert!((scattered.error - (0.9_f64 / 5.0).sqrt()).abs() < 1e-14);
        assert_eq!(found(bent, 0.0, FitErrors::Scatter), scattered);
        assert_eq!(found(bent, 0.0, FitErrors::Points), scattered);
        assert!((found(bent, 0.1, FitErrors::Points).error - by_points).abs() < 1e-14);
    }
}
