//! Numbers read off the results, with their standard errors.

use crate::description::{Measure, MeasureKind};
use crate::points::Point;
use crate::quantities;
use crate::results::Results;
use didact_analysis::exponent::{fit_exponent, logarithmic_law};
use didact_analysis::plateau::{Criterion, longest_plateau};
use didact_analysis::rate::{Window, fit_rate};
use didact_math::fits::Noise;
use serde::{Deserialize, Serialize};

/// A number with its standard error (0 when it has none).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
}

/// What a measure found: per point of the sweep, or once for a fit over it. `Err` says why there is no number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The measure.
    pub name: String,
    /// One per point, or a single one.
    pub values: Vec<Result<Estimate, String>>,
    /// True when it is one number over the whole sweep.
    pub global: bool,
}

/// Evaluates all measures in order; later ones may use earlier ones.
pub fn evaluate(measures: &[Measure], results: &Results) -> Vec<Measured> {
    let mut done: Vec<Measured> = Vec::new();
    for measure in measures {
        let global = matches!(&measure.kind, MeasureKind::LogLaw { .. } | MeasureKind::PowerLaw { .. });
        let values = if global {
            vec![over_sweep(&measure.kind, results, &done)]
        } else {
            results.points.iter().map(|p| at_point(&measure.kind, p, results, &done)).collect()
        };
        done.push(Measured { name: measure.name.clone(), values, global });
    }
    done
}

type Found = Result<Estimate, String>;

fn find<'a>(done: &'a [Measured], name: &str) -> Result<&'a Measured, String> {
    done.iter().find(|m| m.name == name).ok_or_else(|| format!("no measure `{name}` before this one"))
}

fn at_point(kind: &MeasureKind, point: &Point, results: &Results, done: &[Measured]) -> Found {
    match kind {
        MeasureKind::EventTime { run, event } => {
            let passages = results.table(point, run)?.event(event).ok_or_else(|| format!("no event `{event}`"))?;
            let censored = passages.iter().filter(|p| p.is_none()).count();
            if censored > 0 {
                return Err(format!("{censored} of {} runs never saw `{event}`", passages.len()));
            }
            let moments: didact_math::random::statistics::Moments = passages.iter().flatten().copied().collect();
            let error = if moments.count() > 1 { moments.standard_error() } else { 0.0 };
            Ok(Estimate { value: moments.mean(), error })
        }
        MeasureKind::ValueAt { run, observable, time } => {
            let table = results.table(point, run)?;
            let mean = table.mean(observable).ok_or_else(|| format!("no column `{observable}`"))?;
            let nearest = (0..table.times.len())
                .min_by(|a, b| (table.times[*a] - time).abs().total_cmp(&(table.times[*b] - time).abs()))
                .ok_or("no times")?;
            Ok(Estimate { value: mean[nearest].value, error: mean[nearest].error })
        }
        MeasureKind::PlateauHeight { run, observable } => {
            let (times, values, _) = results.curve(point, run, observable, [0.0, f64::INFINITY])?;
            let positive = times.iter().position(|t| *t > 0.0).unwrap_or(0);
            let (times, values) = (&times[positive..], &values[positive..]);
            let found = longest_plateau(times, values, Criterion::log_time()).map_err(|e| e.to_string())?;
            let plateau = found.ok_or("no plateau")?;
            Ok(Estimate { value: plateau.height, error: 0.0 })
        }
        MeasureKind::Exponent { run, observable, window } => {
            let (times, values, errors) = results.curve(point, run, observable, *window)?;
            let noise = if errors.iter().all(|e| *e > 0.0) { Noise::Known(&errors) } else { Noise::Estimated };
            let fit = fit_exponent(&times, &values, noise, (window[0], window[1])).map_err(|e| e.to_string())?;
            Ok(Estimate { value: fit.exponent, error: fit.exponent_error })
        }
        MeasureKind::Rate { run, observable, reference, window } => {
            let (times, values, _) = results.curve(point, run, observable, *window)?;
            let window = Window::Times(window[0], window[1]);
            let fit = fit_rate(&times, &values, Noise::Estimated, *reference, window).map_err(|e| e.to_string())?;
            Ok(Estimate { value: fit.rate, error: fit.rate_error })
        }
        MeasureKind::Agreement { theory, simulation, observable, window } => {
            let (times, predicted, _) = results.curve(point, theory, observable, *window)?;
            let (simulated_times, means, errors) = results.curve(point, simulation, observable, *window)?;
            if times != simulated_times {
                return Err(format!("`{theory}` and `{simulation}` saved different times"));
            }
            if results.table(point, simulation)?.header.outcomes.len() < 2 {
                return Err(format!("`{simulation}` has one replica, so no standard error"));
            }
            // A shared start has no spread: there the two must agree to rounding.
            let z = means.iter().zip(&errors).zip(&predicted).map(|((m, e), p)| {
                if *e > 1e-12 * m.abs() { (m - p).abs() / e } else { f64::from((m - p).abs() > 1e-9 * m.abs()) * f64::INFINITY }
            });
            let z = z.map(|z| if z.is_nan() { 0.0 } else { z });
            Ok(Estimate { value: z.fold(0.0, f64::max), error: 0.0 })
        }
        MeasureKind::Quantity { quantity, inputs, entry } => {
            let inputs = inputs.clone().into_iter().collect();
            let value = quantities::number(quantity, &inputs, entry.as_deref())?;
            Ok(Estimate { value, error: 0.0 })
        }
        MeasureKind::Ratio { of, to } => {
            let (a, b) = (find(done, of)?.at(point)?, find(done, to)?.at(point)?);
            let value = a.value / b.value;
            Ok(Estimate { value, error: value.abs() * (a.error / a.value).hypot(b.error / b.value) })
        }
        MeasureKind::LogLaw { .. } | MeasureKind::PowerLaw { .. } => Err("a fit over the sweep".into()),
    }
}

impl Measured {
    /// The number of a point (or the only one).
    pub fn at(&self, point: &Point) -> Found {
        self.values[if self.global { 0 } else { point.index }].clone()
    }
}

fn over_sweep(kind: &MeasureKind, results: &Results, done: &[Measured]) -> Found {
    let (MeasureKind::LogLaw { of, over } | MeasureKind::PowerLaw { of, over }) = kind else {
        return Err("not a fit over the sweep".into());
    };
    let measured = find(done, of)?;
    let (mut x, mut y, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    for point in &results.points {
        let key = point.values.get(over).and_then(serde_json::Value::as_f64);
        x.push(key.ok_or_else(|| format!("`{over}` is not swept over numbers"))?);
        let estimate = measured.at(point)?;
        y.push(estimate.value);
        errors.push(estimate.error);
    }
    let noise = if errors.iter().all(|e| *e > 0.0) { Noise::Known(&errors) } else { Noise::Estimated };
    if matches!(kind, MeasureKind::LogLaw { .. }) {
        let line = logarithmic_law(&x, &y, noise).map_err(|e| e.to_string())?;
        return Ok(Estimate { value: line.slope, error: line.slope_error });
    }
    let fit = fit_exponent(&x, &y, noise, (0.0, f64::INFINITY)).map_err(|e| e.to_string())?;
    Ok(Estimate { value: fit.exponent, error: fit.exponent_error })
}
