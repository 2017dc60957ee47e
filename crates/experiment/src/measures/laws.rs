//! Laws of a measure over the sweep: y = a + b ln x and y ∝ x^b.

use super::{Dependency, Estimate, Findings, Found, MeasureDefinition, MeasuredValues};
use crate::results::Missing;
use didact_analysis::exponent::{fit_exponent, logarithmic_law};
use didact_math::fits::Noise;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Slope of a measure against the logarithm of a swept key: y = a + b ln x, over the points at which its runs run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LogLawMeasure {
    /// The measure.
    pub of: String,
    /// The key.
    pub over: String,
    /// From, to, in the key; all of it unless given.
    #[serde(default = "super::everything")]
    pub window: [f64; 2],
    /// Where the error comes from.
    #[serde(default)]
    pub errors: FitErrors,
}

impl MeasureDefinition for LogLawMeasure {
    fn depends_on(&self) -> Vec<Dependency<'_>> {
        vec![Dependency::swept_key("over", &self.over), Dependency::measure("of", &self.of)]
    }

    fn evaluate(&self, findings: &Findings) -> MeasuredValues {
        let points = SweptPoints::of(findings, &self.of, &self.over, self.window);
        MeasuredValues::Single(points.and_then(|points| {
            slope(self.errors, &points.errors, |noise| {
                let line = logarithmic_law(&points.x, &points.y, noise).map_err(|e| e.to_string())?;
                Ok((line.slope, line.slope_error))
            })
        }))
    }
}

/// Exponent of a measure against a swept key: y ∝ x^b, over the points at which its runs run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PowerLawMeasure {
    /// The measure.
    pub of: String,
    /// The key.
    pub over: String,
    /// From, to, in the key; all of it unless given.
    #[serde(default = "super::everything")]
    pub window: [f64; 2],
    /// Where the error comes from.
    #[serde(default)]
    pub errors: FitErrors,
}

impl MeasureDefinition for PowerLawMeasure {
    fn depends_on(&self) -> Vec<Dependency<'_>> {
        vec![Dependency::swept_key("over", &self.over), Dependency::measure("of", &self.of)]
    }

    fn evaluate(&self, findings: &Findings) -> MeasuredValues {
        let points = SweptPoints::of(findings, &self.of, &self.over, self.window);
        MeasuredValues::Single(points.and_then(|points| {
            slope(self.errors, &points.errors, |noise| {
                let everywhere = (0.0, f64::INFINITY);
                let fit = fit_exponent(&points.x, &points.y, noise, everywhere).map_err(|e| e.to_string())?;
                Ok((fit.exponent, fit.exponent_error))
            })
        }))
    }
}

/// Where the standard error of a fit over the sweep comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FitErrors {
    /// The standard errors of the points, which also weight them; their scatter about the line if one has none.
    #[default]
    Points,
    /// The scatter of the points about the line, all weighted equally: for points of so few replicas that their own errors
    /// are hardly known. No less than these errors give, where all points have one: a few points may lie on a line by chance.
    Scatter,
}

/// A measure against a swept key.
struct SweptPoints {
    x: Vec<f64>,
    y: Vec<f64>,
    errors: Vec<f64>,
}

impl SweptPoints {
    /// The points in the window of the key at which the runs of the measure run.
    fn of(findings: &Findings, measure: &str, key: &str, window: [f64; 2]) -> Result<Self, Missing> {
        let measured = findings.measure(measure)?;
        let mut points = Self { x: Vec::new(), y: Vec::new(), errors: Vec::new() };
        for point in findings.points() {
            let x = point.values.get(key).and_then(serde_json::Value::as_f64);
            let x = x.ok_or_else(|| format!("`{key}` is not swept over numbers"))?;
            if x < window[0] || x > window[1] {
                continue;
            }
            let estimate = match measured.at(point) {
                Err(Missing::LeftOut { .. }) => continue,
                other => other.map_err(|why| why.at(point))?,
            };
            points.x.push(x);
            points.y.push(estimate.value);
            points.errors.push(estimate.error);
        }
        Ok(points)
    }
}

/// What a fit finds with the errors that are chosen for it, given those of its points.
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
    use didact_math::fits::straight_line;

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
