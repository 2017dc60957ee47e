//! From values to lengths, and the range of values an axis shows.

use crate::error::{Error, Result};
use crate::error_bars::ErrorBars;
use crate::figure::{Axis, Panel, ScaleKind};
use crate::layer::Layer;
use crate::scene::Rect;

/// An axis with its range settled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    pub(crate) kind: ScaleKind,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Scale {
    /// 0 at the low end, 1 at the high end. NaN where the value has no place on the axis.
    pub(crate) fn fraction(&self, value: f64) -> f64 {
        match self.kind {
            ScaleKind::Linear => (value - self.low) / (self.high - self.low),
            ScaleKind::Log if value > 0.0 => (value / self.low).log10() / (self.high / self.low).log10(),
            ScaleKind::Log => f64::NAN,
        }
    }

    /// The scale continued so that what it shows now takes 1 − `fraction` of it.
    pub(crate) fn with_headroom(self, fraction: f64) -> Self {
        let stretch = 1.0 / (1.0 - fraction);
        let high = match self.kind {
            ScaleKind::Linear => self.low + stretch * (self.high - self.low),
            ScaleKind::Log => self.low * (self.high / self.low).powf(stretch),
        };
        Self { high, ..self }
    }

    /// As [`Scale::fraction`], but values below a log axis are put at its low end: for ends of error bars and bands.
    pub(crate) fn fraction_or_bottom(&self, value: f64) -> f64 {
        match self.kind {
            ScaleKind::Log if value <= 0.0 => 0.0,
            _ => self.fraction(value),
        }
    }
}

/// Two scales on a frame of the page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub(crate) frame: Rect,
    pub(crate) x: Scale,
    pub(crate) y: Scale,
}

impl View {
    pub(crate) fn across(&self, fraction: f64) -> f64 {
        self.frame.left + fraction * self.frame.width()
    }
    pub(crate) fn up(&self, fraction: f64) -> f64 {
        self.frame.bottom - fraction * self.frame.height()
    }
    /// Place on the page; NaN where the point has none.
    pub(crate) fn point(&self, x: f64, y: f64) -> (f64, f64) {
        (self.across(self.x.fraction(x)), self.up(self.y.fraction(y)))
    }
}

/// Settles both ranges of a panel: as given, or from the data.
pub(crate) fn scales(panel: &Panel, name: &str) -> Result<[Scale; 2]> {
    let mut extents = Extents { x: Extent::new(&panel.x), y: Extent::new(&panel.y) };
    // Where a curve diverges its values say nothing about the axis: it is followed only a little beyond what else there is, or beyond
    // where it begins.
    let diverging = |layer: &&Layer| matches!(layer, Layer::Line(line) if !line.diverges_at.is_empty());
    panel.layers.iter().filter(|layer| !diverging(layer)).for_each(|layer| extents.add(layer));
    let lines = || {
        panel.layers.iter().filter(diverging).filter_map(|layer| match layer {
            Layer::Line(line) => Some(line),
            _ => None,
        })
    };
    for line in lines() {
        let first = line.x.iter().zip(line.y.iter()).find(|(x, y)| x.is_finite() && y.is_finite());
        if let Some((&x, &y)) = first {
            extents.point(x, y);
        }
    }
    let bound = extents.y.beyond();
    for line in lines() {
        for (&x, &y) in line.x.iter().zip(line.y.iter()) {
            extents.point(x, if y > bound { f64::NAN } else { y });
        }
        // The place of the divergence is on the axis.
        line.diverges_at.iter().for_each(|at| extents.x.add(*at));
    }
    // Points make markers reach the frame; everything else may touch it.
    extents.x.tight |= !panel.layers.iter().any(|layer| matches!(layer, Layer::Markers(_)));
    let Extents { x, y } = extents;
    if x.alone && !y.alone {
        // All points were left out for their y: blame that axis.
        settle(&panel.y, &y, name, "y")?;
    }
    Ok([settle(&panel.x, &x, name, "x")?, settle(&panel.y, &y, name, "y")?])
}

/// Range of the colours of a heat map.
pub(crate) fn colour_scale(
    values: impl Iterator<Item = f64>,
    range: Option<[f64; 2]>,
    symmetric: bool,
    name: &str,
) -> Result<Scale> {
    let axis = Axis { range, ..Axis::default() };
    let mut extent = Extent { tight: true, ..Extent::new(&axis) };
    values.for_each(|value| extent.add(value));
    if symmetric {
        let reach = extent.high.abs().max(extent.low.abs());
        extent.add(-reach);
        extent.add(reach);
    }
    settle(&axis, &extent, name, "colour")
}

/// Numbers beyond this have no place on an axis: a run that diverges passes it on its way out of the numbers, where steps between ticks
/// overflow. Numbers closer to zero than its inverse have none on a log axis, and are zero on a linear one.
const LARGEST: f64 = 1e100;

/// What the data of a panel ask of one axis.
struct Extent {
    kind: ScaleKind,
    /// The range if it is given.
    given: Option<[f64; 2]>,
    low: f64,
    high: f64,
    /// Largest finite value, positive or not.
    largest: f64,
    /// Whether some value has a place on the axis, whatever the other coordinate.
    alone: bool,
    /// No margin around the data.
    tight: bool,
    /// The axis starts at zero if the data allow it.
    from_zero: bool,
}

impl Extent {
    fn new(axis: &Axis) -> Self {
        let (low, high) = (f64::INFINITY, f64::NEG_INFINITY);
        Self {
            kind: axis.scale,
            given: axis.range,
            low,
            high,
            largest: high,
            alone: false,
            tight: false,
            from_zero: false,
        }
    }

    /// Whether the value has a place on the axis.
    fn shows(&mut self, value: f64) -> bool {
        if value.is_finite() {
            self.largest = self.largest.max(value);
        }
        let shown = value.abs() <= LARGEST && (self.kind == ScaleKind::Linear || value >= LARGEST.recip());
        self.alone |= shown;
        shown
    }

    /// How far an axis follows a curve that diverges: a decade beyond the largest value, or twice the span of the values.
    fn beyond(&self) -> f64 {
        match self.kind {
            ScaleKind::Log => 10.0 * self.high,
            ScaleKind::Linear => self.high + (self.high - self.low).max(self.high.abs()),
        }
    }

    fn add(&mut self, value: f64) {
        if self.shows(value) {
            self.low = self.low.min(value);
            self.high = self.high.max(value);
        }
    }
}

struct Extents {
    x: Extent,
    y: Extent,
}

impl Extents {
    /// A point counts only if both its coordinates have a place, and for y only if a given range of x shows it.
    fn point(&mut self, x: f64, y: f64) {
        let (x_shown, y_shown) = (self.x.shows(x), self.y.shows(y));
        if x_shown && y_shown {
            self.x.add(x);
            if self.x.given.is_none_or(|[low, high]| (low..=high).contains(&x)) {
                self.y.add(y);
            }
        }
    }

    fn points(&mut self, x: &[f64], y: &[f64]) {
        x.iter().zip(y).for_each(|(&x, &y)| self.point(x, y));
    }

    fn add(&mut self, layer: &Layer) {
        match layer {
            Layer::Line(layer) => self.points(&layer.x, &layer.y),
            Layer::Density(layer) => {
                self.points(&layer.x, &layer.y);
                self.y.from_zero = true;
            }
            Layer::Band(layer) => {
                self.points(&layer.x, &layer.lower);
                self.points(&layer.x, &layer.upper);
            }
            Layer::Markers(layer) => {
                for (i, (&x, &y)) in layer.x.iter().zip(layer.y.iter()).enumerate() {
                    let [left, right] = ErrorBars::at(layer.x_error.as_ref(), i);
                    let [below, above] = ErrorBars::at(layer.y_error.as_ref(), i);
                    for (x, y) in [(x, y), (x - left, y), (x + right, y), (x, y - below), (x, y + above)] {
                        self.point(x, y);
                    }
                }
            }
            Layer::Histogram(layer) => {
                for (edge, height) in layer.edges.windows(2).zip(layer.drawn_heights()) {
                    self.point(edge[0], height);
                    self.point(edge[1], height);
                }
                self.y.from_zero = true;
            }
            Layer::HeatMap(layer) => {
                for corner in 0..2 {
                    self.point(layer.x[corner], layer.y[corner]);
                }
                self.x.tight = true;
                self.y.tight = true;
            }
            Layer::Slope(layer) => {
                for [x, y] in [layer.from, layer.end()] {
                    self.point(x, y);
                }
            }
            // A guide marks a place on axes that other data span.
            Layer::Guide(_) => {}
        }
    }
}

/// Margin around the data as a fraction of their span.
const MARGIN_X: f64 = 0.025;
const MARGIN_Y: f64 = 0.06;

fn settle(axis: &Axis, extent: &Extent, panel: &str, name: &'static str) -> Result<Scale> {
    let kind = axis.scale;
    let log = kind == ScaleKind::Log;
    let panel = || panel.to_owned();
    if let Some([low, high]) = axis.range {
        let within = low.abs().max(high.abs()) <= LARGEST && high - low >= LARGEST.recip();
        if !(within && (!log || low >= LARGEST.recip())) {
            return Err(Error::Range { panel: panel(), axis: name, low, high, log });
        }
        return Ok(Scale { kind, low, high });
    }
    let Extent { low, high, largest, .. } = *extent;
    if low > high {
        return Err(if log && largest.is_finite() {
            Error::NoPositiveData { panel: panel(), axis: name, largest }
        } else {
            Error::NoData { panel: panel(), axis: name }
        });
    }
    let margin = match name {
        _ if extent.tight => 0.0,
        "x" => MARGIN_X,
        _ => MARGIN_Y,
    };
    let (low, high) = if log {
        // A single value gets half a decade on either side.
        let (low, high) = if high / low > 1.0 + 1e-12 { (low, high) } else { (low / 3.0, high * 3.0) };
        let factor = (high / low).powf(margin);
        (low / factor, high * factor)
    } else {
        let least = LARGEST.recip();
        let half = if low.abs() < least { 1.0 } else { low.abs() / 2.0 };
        let (low, high) = if high - low > least.max(1e-12 * high.abs().max(low.abs())) {
            (low, high)
        } else {
            (low - half, high + half)
        };
        let pad = margin * (high - low);
        let bottom = if extent.from_zero && low >= 0.0 { 0.0 } else { low - pad };
        (bottom, if extent.from_zero && high <= 0.0 { 0.0 } else { high + pad })
    };
    Ok(Scale { kind, low, high })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error_bars::Uneven;
    use crate::layer::{Histogram, Line, Markers};

    fn panel(x: &[f64], y: &[f64], y_axis: Axis) -> Panel {
        let line = Line { x: x.to_vec().into(), y: y.to_vec().into(), ..Line::default() };
        Panel { y: y_axis, layers: vec![Layer::Line(line)], ..Panel::default() }
    }

    #[test]
    fn gaps_and_values_below_a_log_axis_do_not_stretch_the_range() {
        let data = panel(&[0.0, 1.0, 2.0, 3.0], &[1e-2, f64::NAN, -5.0, 1e2], Axis::log(""));
        let [x, y] = scales(&data, "(a)").unwrap();
        assert_eq!((x.low, x.high), (0.0, 3.0));
        assert!(y.low > 4e-3 && y.low < 1e-2 && y.high > 1e2 && y.high < 2.5e2, "{y:?}");
    }

    #[test]
    fn an_axis_follows_a_divergence_for_one_decade() {
        let mut data = panel(&[0.0, 1.0, 2.0], &[1e-2, 1.0, 0.1], Axis::log(""));
        let diverging = Line {
            x: vec![0.0, 1.0, 2.0, 3.0].into(),
            y: vec![0.5, 5.0, 1e60, f64::INFINITY].into(),
            diverges_at: vec![3.0],
            ..Line::default()
        };
        data.layers.push(Layer::Line(diverging.clone()));
        let [x, y] = scales(&data, "(a)").unwrap();
        assert!(y.high > 5.0 && y.high < 20.0 && x.high == 3.0, "{y:?} {x:?}");
        // Alone, it is followed from where it begins.
        let alone = Panel { y: Axis::log(""), layers: vec![Layer::Line(diverging)], ..Panel::default() };
        let [_, y] = scales(&alone, "(a)").unwrap();
        assert!(y.low < 0.5 && y.high > 5.0 && y.high < 20.0, "{y:?}");
    }

    /// A run that diverges passes all magnitudes before it leaves the numbers.
    #[test]
    fn values_of_every_magnitude_make_a_figure_or_an_error() {
        let mut values: Vec<f64> = (-5..=5).map(|k| 1.7 * 10f64.powi(60 * k)).collect();
        values.extend([0.0, f64::MAX, f64::MIN_POSITIVE, 5e-324, 1e-100, 1e100, f64::NAN, f64::INFINITY]);
        for axis in [Axis::linear(""), Axis::log("")] {
            for &first in &values {
                for &second in &values {
                    for sign in [1.0, -1.0] {
                        let data = panel(&[0.0, 1.0, 2.0], &[sign * first, second, first], axis.clone());
                        let Ok([_, y]) = scales(&data, "(a)") else { continue };
                        let ticks = crate::ticks::choose(&y, None, 150.0, |_| Ok(true)).unwrap();
                        let shown = ticks.major.iter().all(|tick| (y.low..=y.high).contains(&tick.value));
                        assert!(shown && y.low < y.high, "{sign} {first:e} {second:e}: {y:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_single_value_still_gets_a_range() {
        for (value, axis) in [(0.0, Axis::linear("")), (-3.0, Axis::linear("")), (1e-9, Axis::log(""))] {
            let [_, y] = scales(&panel(&[1.0], &[value], axis), "(a)").unwrap();
            assert!(y.low < value && value < y.high);
        }
    }

    #[test]
    fn empty_and_unusable_data_are_named() {
        let error = |panel: &Panel| scales(panel, "(b)").unwrap_err().to_string();
        assert!(error(&panel(&[], &[], Axis::default())).contains("panel (b), x axis: no finite value"));
        assert!(error(&panel(&[1.0], &[f64::NAN], Axis::default())).contains("y axis"));
        assert!(error(&panel(&[1.0, 2.0], &[-3.0, 0.0], Axis::log(""))).contains("largest is 0"));
        assert!(
            error(&panel(&[1.0], &[1.0], Axis::log("").range(0.0, 1.0))).contains("positive on a log axis")
        );
    }

    #[test]
    fn histograms_stand_on_zero_and_error_bars_fit() {
        let bars = Histogram {
            edges: vec![0.0, 1.0, 2.0].into(),
            heights: vec![4.0, 2.0].into(),
            ..Histogram::default()
        };
        let [_, y] = scales(&Panel { layers: vec![Layer::Histogram(bars)], ..Panel::default() }, "").unwrap();
        assert!(y.low == 0.0 && y.high > 4.0);
        let points = Markers {
            x: vec![1.0].into(),
            y: vec![1.0].into(),
            y_error: Some(vec![2.0].into()),
            ..Markers::default()
        };
        let [_, y] = scales(&Panel { layers: vec![Layer::Markers(points)], ..Panel::default() }, "").unwrap();
        assert!(y.low < -1.0 && y.high > 3.0);
        let points = Markers {
            x: vec![1.0].into(),
            y: vec![1.0].into(),
            y_error: Some(ErrorBars::Uneven(Uneven { below: vec![0.0].into(), above: vec![9.0].into() })),
            ..Markers::default()
        };
        let [_, y] = scales(&Panel { layers: vec![Layer::Markers(points)], ..Panel::default() }, "").unwrap();
        assert!(y.low > 0.0 && y.high > 10.0);
    }
}
