//! From a figure of the description and the results to a figure that can be rendered.

mod scans;

use crate::description::{FigureSpec, InsetSpec, PanelSpec, Series, SeriesStyle};
use crate::measures::Measured;
use crate::points::Point;
use crate::results::Results;
use didact_figure::{Band, ErrorBars, Guide, Histogram, Layer, Line, Markers, Uneven};
use didact_figure::{Figure, Inset, Panel, ScaleKind};
use didact_model::trajectory::Outcome;

/// Everything a figure may draw.
pub struct Drawable<'a> {
    /// Trajectories and scans.
    pub results: &'a Results,
    /// Measures.
    pub measured: &'a [Measured],
}

impl Drawable<'_> {
    /// The figure, or which series has no data.
    pub fn figure(&self, spec: &FigureSpec) -> Result<Figure, String> {
        let panels: Result<Vec<Panel>, String> = spec.panel.iter().map(|p| self.panel(p)).collect();
        let panels = panels.map_err(|e| format!("figure `{}`: {e}", spec.name))?;
        let diverges = |layer: &Layer| matches!(layer, Layer::Line(line) if !line.diverges_at.is_empty());
        let any = panels.iter().any(|panel| panel.layers.iter().any(diverges));
        let caption = match &spec.caption {
            Some(caption) if any => Some(format!("{caption} {DIVERGES}")),
            None if any => Some(DIVERGES.into()),
            caption => caption.clone(),
        };
        Ok(Figure {
            title: spec.title.clone(),
            panels,
            columns: spec.columns,
            legend: spec.legend,
            width: spec.width,
            caption,
            ..Figure::default()
        })
    }

    fn panel(&self, spec: &PanelSpec) -> Result<Panel, String> {
        let mut layers = Vec::new();
        for series in &spec.series {
            layers.extend(self.series(series, spec.y.scale == ScaleKind::Log)?);
        }
        layers.extend(spec.layers.iter().cloned());
        let inset = |inset: &InsetSpec| Ok(Inset { panel: self.panel(&inset.panel)?, place: inset.place });
        Ok(Panel {
            title: spec.title.clone(),
            x: spec.x.clone(),
            y: spec.y.clone(),
            layers,
            insets: spec.inset.iter().map(inset).collect::<Result<_, String>>()?,
            annotations: spec.annotations.clone(),
            ..Panel::default()
        })
    }

    fn series(&self, series: &Series, logarithmic: bool) -> Result<Vec<Layer>, String> {
        match (&series.run, &series.measure, &series.scan) {
            (Some(run), None, None) => {
                let points = self.results.points_of(run, &series.at);
                if points.is_empty() {
                    return Err(format!("no point of the sweep matches the series of run `{run}`"));
                }
                // Where the run failed is told among the failures; what there is is drawn.
                let done = points.into_iter().filter(|p| self.results.table(p, run).is_ok());
                let layers: Result<Vec<_>, String> =
                    done.map(|p| self.run_series(series, run, p, logarithmic)).collect();
                Ok(layers?.concat())
            }
            (None, Some(measure), None) => self.measure_series(series, measure),
            (None, None, Some(scan)) => self.scan_series(series, scan),
            _ => Err("a series draws one of `run`, `measure`, `scan`".into()),
        }
    }

    fn run_series(
        &self,
        series: &Series,
        run: &str,
        point: &Point,
        logarithmic: bool,
    ) -> Result<Vec<Layer>, String> {
        let column = series.y.as_deref().unwrap_or("loss");
        let table = self.results.table(point, run)?;
        let missing = |name: &str| format!("run `{run}` has no column `{name}`");
        let mean = table.mean(column).ok_or_else(|| missing(column))?;
        let x: Vec<f64> = match series.x.as_deref() {
            None | Some("time") => table.times.clone(),
            Some(other) => table.mean(other).ok_or_else(|| missing(other))?.iter().map(|m| m.value).collect(),
        };
        let keep: Vec<usize> =
            (series.skip.min(x.len())..x.len()).step_by(series.every.unwrap_or(1).max(1)).collect();
        let take = |f: &dyn Fn(usize) -> f64| keep.iter().map(|&i| f(i)).collect::<Vec<f64>>();
        let mut look = Look::new(series, point);
        if series.style == SeriesStyle::Band || series.band.is_some() {
            // A band and its line have one colour also where the description names no group.
            look.group.get_or_insert_with(|| format!("{run} {column} {}", point.index));
        }
        let xs = take(&|i| x[i]);
        // The mean ends where its last replica diverges.
        let ends: Option<Vec<f64>> = table.outcomes.iter().map(divergence).collect();
        let end = ends.and_then(|ends| ends.into_iter().reduce(f64::max)).filter(|_| series.x.is_none());
        let line = diverging(look.line(xs.clone(), take(&|i| mean[i].value)), end);
        Ok(match series.style {
            SeriesStyle::Line => match series.band {
                None => vec![line],
                Some(band) => {
                    let name = format!("sd({column})");
                    let deviations = table.mean(&name).ok_or_else(|| missing(&name))?;
                    let edge = |sign: f64| {
                        take(&|i| {
                            let (value, sd) = (mean[i].value, deviations[i].value / band.runs().sqrt());
                            predicted_edge(value, sign * sd, logarithmic)
                        })
                    };
                    vec![look.band(xs, edge(-1.0), edge(1.0)), line]
                }
            },
            SeriesStyle::Markers => {
                let errors: Vec<_> = keep.iter().map(|&i| [mean[i].error; 2]).collect();
                vec![look.markers(xs, take(&|i| mean[i].value), &errors)]
            }
            SeriesStyle::Band => {
                let edge = |sign: f64| take(&|i| mean[i].value + sign * mean[i].deviation);
                vec![look.band(xs, edge(-1.0), edge(1.0)), line]
            }
            SeriesStyle::Runs => {
                let runs = table.curves(column).ok_or_else(|| missing(column))?;
                let curve = |(r, outcome): (&Vec<f64>, &Outcome)| {
                    let drawn = look.line(xs.clone(), take(&|i| r.get(i).copied().unwrap_or(f64::NAN)));
                    diverging(drawn, divergence(outcome).filter(|_| series.x.is_none()))
                };
                runs.iter().zip(&table.outcomes).map(curve).collect()
            }
            SeriesStyle::Histogram => {
                let last = table.curves(column).ok_or_else(|| missing(column))?;
                let values: Vec<f64> = last.iter().filter_map(|r| r.last().copied()).collect();
                vec![look.histogram(&values)?]
            }
            SeriesStyle::Map => return Err(format!("run `{run}`: a map is drawn of a scan")),
            SeriesStyle::Guides => {
                return Err(format!("run `{run}`: guides are drawn of a scan or a measure"));
            }
        })
    }

    fn measure_series(&self, series: &Series, name: &str) -> Result<Vec<Layer>, String> {
        let measured =
            self.measured.iter().find(|m| m.name == name).ok_or_else(|| format!("no measure `{name}`"))?;
        if series.style == SeriesStyle::Guides {
            // One line per point of the sweep that has a number.
            let here = self.results.points.iter().filter(|p| p.matches(&series.at));
            let known = here.filter_map(|point| Some((point, measured.at(point).ok()?.value)));
            return Ok(known.map(|(point, at)| Look::new(series, point).guide(at)).collect());
        }
        let key = series
            .x
            .as_deref()
            .ok_or_else(|| format!("the series of measure `{name}` needs a swept key as `x`"))?;
        let mut layers = Vec::new();
        for curve in curves_of_measure(series, &self.results.points) {
            let (mut x, mut y, mut errors) = (Vec::new(), Vec::new(), Vec::new());
            for point in self.results.points.iter().filter(|p| p.matches(&curve.values)) {
                // A point without a number (a failed or censored one) is left out of the drawing, not of the tables.
                let Ok(estimate) = measured.at(point) else { continue };
                let at = point.values.get(key).and_then(serde_json::Value::as_f64);
                x.push(at.ok_or_else(|| format!("`{key}` is not swept over numbers"))?);
                y.push(estimate.value);
                errors.push(estimate.reach());
            }
            let look = Look::new(series, &curve);
            layers.push(match series.style {
                SeriesStyle::Markers => look.markers(x, y, &errors),
                _ => look.line(x, y),
            });
        }
        Ok(layers)
    }
}

/// The curves of a series of a measure: one for every combination of values of the swept keys that its legend or its group names.
pub(crate) fn curves_of_measure(series: &Series, points: &[Point]) -> Vec<Point> {
    let named = |key: &String| {
        let word = format!("{{{key}}}");
        let texts = [&series.legend, &series.group];
        series.x.as_ref() != Some(key) && texts.into_iter().flatten().any(|text| text.contains(&word))
    };
    let mut curves: Vec<Point> = Vec::new();
    for point in points.iter().filter(|p| p.matches(&series.at)) {
        let mut values = series.at.clone();
        values.extend(point.values.iter().filter(|(key, _)| named(key)).map(|(k, v)| (k.clone(), v.clone())));
        if !curves.iter().any(|curve| curve.values == values) {
            curves.push(Point { index: curves.len(), values });
        }
    }
    if curves.is_empty() { vec![Point { index: 0, values: series.at.clone() }] } else { curves }
}

/// What the caption of a figure with a curve that diverges says.
const DIVERGES: &str = "An arrow at the top of a panel marks where a curve diverges.";

/// When a replica diverged.
fn divergence(outcome: &Outcome) -> Option<f64> {
    match outcome {
        Outcome::Diverged { at } => Some(*at),
        _ => None,
    }
}

/// A line with the place where it diverges.
fn diverging(layer: Layer, at: Option<f64>) -> Layer {
    match layer {
        Layer::Line(mut line) => {
            line.diverges_at.extend(at);
            Layer::Line(line)
        }
        other => other,
    }
}

/// The edge of a predicted band: o ± sd, and on a logarithmic axis o e^{± sd/o}, which is nothing where o is not positive.
fn predicted_edge(value: f64, by: f64, logarithmic: bool) -> f64 {
    match (logarithmic, value > 0.0) {
        (false, _) => value + by,
        (true, true) => value * (by / value).exp(),
        (true, false) => f64::NAN,
    }
}

/// What a series looks like.
struct Look<'a> {
    series: &'a Series,
    legend: Option<String>,
    group: Option<String>,
}

impl<'a> Look<'a> {
    fn new(series: &'a Series, point: &Point) -> Self {
        let legend = series.legend.as_ref().map(|text| point.fill_label(text));
        Self { series, legend, group: series.group.as_ref().map(|text| point.fill(text)) }
    }

    fn line(&self, x: Vec<f64>, y: Vec<f64>) -> Layer {
        Layer::Line(Line {
            x: x.into(),
            y: y.into(),
            legend: self.legend.clone(),
            group: self.group.clone(),
            colour: self.series.colour.clone(),
            stroke: self.series.stroke,
            diverges_at: self.series.diverges_at.clone(),
            ..Line::default()
        })
    }

    /// A vertical line where the series says what stands on `x`, a horizontal one otherwise.
    fn guide(&self, at: f64) -> Layer {
        let vertical = self.series.x.is_some();
        Layer::Guide(Guide {
            x: vertical.then_some(at),
            y: (!vertical).then_some(at),
            legend: self.legend.clone(),
            group: self.group.clone(),
            colour: self.series.colour.clone(),
            stroke: self.series.stroke,
        })
    }

    fn band(&self, x: Vec<f64>, lower: Vec<f64>, upper: Vec<f64>) -> Layer {
        Layer::Band(Band {
            x: x.into(),
            lower: lower.into(),
            upper: upper.into(),
            legend: self.legend.clone(),
            group: self.group.clone(),
            colour: self.series.colour.clone(),
        })
    }

    /// Values in equal bins, their number from the square-root rule within 10..=80.
    fn histogram(&self, values: &[f64]) -> Result<Layer, String> {
        let finite: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
        let low = finite.iter().copied().fold(f64::INFINITY, f64::min);
        let high = finite.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if finite.is_empty() {
            return Err("a histogram of no finite number".into());
        }
        let bins = ((finite.len() as f64).sqrt().round() as usize).clamp(10, 80);
        let width = if high > low { (high - low) / bins as f64 } else { 1.0 };
        let mut heights = vec![0.0; bins];
        for value in &finite {
            heights[(((value - low) / width) as usize).min(bins - 1)] += 1.0;
        }
        let edges: Vec<f64> = (0..=bins).map(|i| low + width * i as f64).collect();
        Ok(Layer::Histogram(Histogram {
            edges: edges.into(),
            heights: heights.into(),
            normalise: true,
            legend: self.legend.clone(),
            group: self.group.clone(),
            colour: self.series.colour.clone(),
            ..Histogram::default()
        }))
    }

    /// Markers with bars of these lengths below and above.
    fn markers(&self, x: Vec<f64>, y: Vec<f64>, errors: &[[f64; 2]]) -> Layer {
        let side = |side: usize| -> Vec<f64> { errors.iter().map(|e| e[side]).collect() };
        let even = errors.iter().all(|[below, above]| below == above);
        let bars = || {
            if even {
                side(0).into()
            } else {
                ErrorBars::Uneven(Uneven { below: side(0).into(), above: side(1).into() })
            }
        };
        let some = errors.iter().flatten().any(|e| *e > 0.0);
        Layer::Markers(Markers {
            x: x.into(),
            y: y.into(),
            y_error: some.then(bars),
            marker: self.series.marker,
            legend: self.legend.clone(),
            group: self.group.clone(),
            colour: self.series.colour.clone(),
            ..Markers::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_measure_is_a_curve_for_every_value_of_the_keys_that_its_legend_names() {
        let text = |t: &str| Some(t.to_string());
        let point = |index: usize, d: u32, mu: f64| {
            let values = [("d".to_string(), json!(d)), ("mu".to_string(), json!(mu))].into();
            Point { index, values }
        };
        let points = [point(0, 100, 0.1), point(1, 100, 0.5), point(2, 200, 0.1), point(3, 200, 0.5)];
        let curves = |series: &Series| -> Vec<String> {
            curves_of_measure(series, &points).iter().map(Point::label).collect()
        };
        let series =
            Series { measure: text("m"), x: text("mu"), legend: text("$d = {d}$"), ..Series::default() };
        assert_eq!(curves(&series), ["d = 100", "d = 200"]);
        // The key on the axis makes no curves, and `at` chooses among them.
        let named = Series { legend: text("{mu}"), group: text("{d}"), ..series.clone() };
        assert_eq!(curves(&named), ["d = 100", "d = 200"]);
        let one = Series { at: [("d".to_string(), json!(200))].into(), ..series.clone() };
        assert_eq!(curves(&one), ["d = 200"]);
        // Without such a text all points are one curve, as before a sweep of several keys.
        assert_eq!(curves(&Series { legend: None, ..series }), ["the experiment"]);
    }
}
