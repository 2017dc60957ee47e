//! From values to lengths, and the range of values an axis shows.

use crate::error::{Error, Result};
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
    let mut extents = [Extent::default(), Extent::default()];
    for layer in &panel.layers {
        extend(&mut extents, layer, [panel.x.scale, panel.y.scale]);
    }
    let [x, y] = extents;
    Ok([settle(&panel.x, &x, name, "x")?, settle(&panel.y, &y, name, "y")?])
}

/// Range of the colours of a heat map.
pub(crate) fn colour_scale(values: impl Iterator<Item = f64>, range: Option<[f64; 2]>, symmetric: bool, name: &str) -> Result<Scale> {
    let mut extent = Extent::default();
    values.for_each(|value| extent.add(value, ScaleKind::Linear));
    if symmetric {
        extent.add(-extent.high, ScaleKind::Linear);
        extent.add(-extent.low, ScaleKind::Linear);
    }
    extent.tight = true;
    settle(&Axis { range, ..Axis::default() }, &extent, name, "colour")
}

/// What the data of a panel ask of one axis.
struct Extent {
    low: f64,
    high: f64,
    /// Largest finite value, positive or not.
    largest: f64,
    /// No margin around the data.
    tight: bool,
    /// The axis starts at zero if the data allow it.
    from_zero: bool,
}

impl Default for Extent {
    fn default() -> Self {
        Self { low: f64::INFINITY, high: f64::NEG_INFINITY, largest: f64::NEG_INFINITY, tight: false, from_zero: false }
    }
}

impl Extent {
    fn add(&mut self, value: f64, kind: ScaleKind) {
        if value.is_finite() {
            self.largest = self.largest.max(value);
            if kind == ScaleKind::Linear || value > 0.0 {
                self.low = self.low.min(value);
                self.high = self.high.max(value);
            }
        }
    }
}

fn extend(extents: &mut [Extent; 2], layer: &Layer, [x_kind, y_kind]: [ScaleKind; 2]) {
    let [across, up] = extents;
    // A point counts only if both coordinates have a place on the axes.
    let shown = |value: f64, kind| value.is_finite() && (kind == ScaleKind::Linear || value > 0.0);
    let mut point = |x: f64, y: f64| {
        if shown(x, x_kind) || !shown(y, y_kind) {
            up.add(y, y_kind);
        }
        if shown(y, y_kind) || !shown(x, x_kind) {
            across.add(x, x_kind);
        }
    };
    match layer {
        Layer::Line(layer) => layer.x.iter().zip(layer.y.iter()).for_each(|(&x, &y)| point(x, y)),
        Layer::Density(layer) => {
            layer.x.iter().zip(layer.y.iter()).for_each(|(&x, &y)| point(x, y));
            up.from_zero = true;
        }
        Layer::Band(layer) => {
            for edge in [&layer.lower, &layer.upper] {
                layer.x.iter().zip(edge.iter()).for_each(|(&x, &y)| point(x, y));
            }
        }
        Layer::Markers(layer) => {
            let error = |column: &Option<crate::Column>, i: usize| {
                column.as_ref().and_then(|column| column.get(i)).copied().filter(|error| error.is_finite()).unwrap_or(0.0)
            };
            for (i, (&x, &y)) in layer.x.iter().zip(layer.y.iter()).enumerate() {
                point(x, y);
                let (dx, dy) = (error(&layer.x_error, i), error(&layer.y_error, i));
                for sign in [-1.0, 1.0] {
                    point(x + sign * dx, y);
                    point(x, y + sign * dy);
                }
            }
        }
        Layer::Histogram(layer) => {
            for (edge, height) in layer.edges.windows(2).zip(layer.drawn_heights()) {
                point(edge[0], height);
                point(edge[1], height);
            }
            up.from_zero = true;
        }
        Layer::HeatMap(layer) => {
            for corner in 0..2 {
                point(layer.x[corner], layer.y[corner]);
            }
            across.tight = true;
            up.tight = true;
        }
        Layer::Slope(layer) => {
            point(layer.from[0], layer.from[1]);
            point(layer.end()[0], layer.end()[1]);
        }
        // A guide marks a place on axes that other data span.
        Layer::Guide(_) => {}
    }
}

/// Margin around the data as a fraction of their span. Curves may touch the left and right side of the frame.
const MARGIN_X: f64 = 0.02;
const MARGIN_Y: f64 = 0.06;

fn settle(axis: &Axis, extent: &Extent, panel: &str, name: &'static str) -> Result<Scale> {
    let kind = axis.scale;
    let log = kind == ScaleKind::Log;
    let panel = || panel.to_owned();
    if let Some([low, high]) = axis.range {
        if !(low.is_finite() && high.is_finite() && low < high && (!log || low > 0.0)) {
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
        let half = if low == 0.0 { 1.0 } else { low.abs() / 2.0 };
        let (low, high) = if high - low > 1e-12 * high.abs().max(low.abs()) { (low, high) } else { (low - half, high + half) };
        let pad = margin * (high - low);
        let bottom = if extent.from_zero && low >= 0.0 { 0.0 } else { low - pad };
        (bottom, if extent.from_zero && high <= 0.0 { 0.0 } else { high + pad })
    };
    Ok(Scale { kind, low, high })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::{Histogram, Line, Markers};

    fn panel(x: &[f64], y: &[f64], y_axis: Axis) -> Panel {
        let line = Line { x: x.to_vec().into(), y: y.to_vec().into(), ..Line::default() };
        Panel { y: y_axis, layers: vec![Layer::Line(line)], ..Panel::default() }
    }

    #[test]
    fn gaps_and_values_below_a_log_axis_do_not_stretch_the_range() {
        let data = panel(&[0.0, 1.0, 2.0, 3.0], &[1e-2, f64::NAN, -5.0, 1e2], Axis::log(""));
        let [x, y] = scales(&data, "(a)").unwrap();
        assert!(x.low < 0.0 && x.high > 3.0);
        assert!(y.low > 4e-3 && y.low < 1e-2 && y.high > 1e2 && y.high < 2.5e2, "{y:?}");
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
        assert!(error(&panel(&[1.0], &[1.0], Axis::log("").range(0.0, 1.0))).contains("positive on a log axis"));
    }

    #[test]
    fn histograms_stand_on_zero_and_error_bars_fit() {
        let bars = Histogram { edges: vec![0.0, 1.0, 2.0].into(), heights: vec![4.0, 2.0].into(), ..Histogram::default() };
        let [_, y] = scales(&Panel { layers: vec![Layer::Histogram(bars)], ..Panel::default() }, "").unwrap();
        assert!(y.low == 0.0 && y.high > 4.0);
        let points = Markers { x: vec![1.0].into(), y: vec![1.0].into(), y_error: Some(vec![2.0].into()), ..Markers::default() };
        let [_, y] = scales(&Panel { layers: vec![Layer::Markers(points)], ..Panel::default() }, "").unwrap();
        assert!(y.low < -1.0 && y.high > 3.0);
    }
}
