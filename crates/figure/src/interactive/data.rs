//! The numbers behind a figure, as the page carries them: for the script, for its table, for CSV.

use serde_json::{Value, json};

use super::plain::plain;
use crate::error_bars::ErrorBars;
use crate::figure::{Figure, Panel, ScaleKind};
use crate::layer::Layer;
use crate::scale::Scale;
use crate::scene::{Placed, Rect, Scene};
use crate::series::Book;
use crate::{draw, layout, svg};

/// A figure as data.
pub(super) struct Data {
    pub(super) panels: Vec<PanelData>,
}

/// A panel or an inset: where it is on the page and what it shows.
pub(super) struct PanelData {
    pub(super) name: String,
    pub(super) x_label: String,
    pub(super) y_label: String,
    placed: Placed,
    pub(super) layers: Vec<LayerData>,
}

/// The numbers of a layer.
pub(super) struct LayerData {
    /// Place among the layers of its panel.
    layer: usize,
    series: Option<usize>,
    /// What its series is called in this panel, or its kind.
    pub(super) name: String,
    pub(super) kind: &'static str,
    /// Named columns of one length: `x` and `y`, ends of error bars or edges of a band as `low` and `high`.
    pub(super) columns: Vec<(&'static str, Vec<f64>)>,
    /// Of markers: one of them, drawn at the origin.
    marker: Option<String>,
    /// Of a heat map: its rows from the bottom, and the corners.
    map: Option<MapData>,
}

/// A heat map: its rows from the bottom, the left lower corner and the right upper one.
type MapData = (Vec<Vec<f64>>, [f64; 2], [f64; 2]);

impl Data {
    pub(super) fn new(figure: &Figure, book: &Book, page: &Scene) -> Self {
        let letters = layout::letters(figure);
        let mut placed = page.panels.iter();
        let mut panels = Vec::new();
        for (panel, letter) in figure.panels.iter().zip(letters) {
            let insets = panel.insets.iter().enumerate().map(|(index, inset)| {
                let number = if panel.insets.len() > 1 { format!(" {}", index + 1) } else { String::new() };
                (&inset.panel, format!("{letter} inset{number}").trim().to_owned())
            });
            for (own, name) in std::iter::once((panel, letter.clone())).chain(insets) {
                if let Some(placed) = placed.next() {
                    panels.push(PanelData::new(own, name, book, panels.len(), *placed));
                }
            }
        }
        Self { panels }
    }

    /// JSON of at most `room` bytes if that can be had by leaving out points of long columns, evenly. What is left is exact.
    pub(super) fn json(&self, room: usize) -> String {
        let caps = [usize::MAX, 1500, 1000, 700, 450, 300, 200, 120, 70, 40, 25, 15, 8];
        let mut text = String::new();
        for cap in caps {
            text = self.capped(cap).to_string();
            if text.len() <= room {
                break;
            }
        }
        // In a script element nothing but `</` or `<!--` ends or changes the text.
        text.replace('<', "\\u003c")
    }

    fn capped(&self, cap: usize) -> Value {
        // Columns that several layers share, as the abscissae mostly are, are written once.
        let mut columns: Vec<Value> = Vec::new();
        let mut known: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
        let mut column = |values: Value| {
            *known.entry(values.to_string()).or_insert_with(|| {
                columns.push(values);
                columns.len() - 1
            })
        };
        let mut panels = Vec::new();
        for panel in &self.panels {
            let mut layers = Vec::new();
            for layer in &panel.layers {
                let mut value = json!({ "layer": layer.layer, "kind": layer.kind, "name": layer.name });
                if let Some(series) = layer.series {
                    value["series"] = json!(series);
                }
                let scale = |name: &str| if name == "x" { panel.placed.view.x } else { panel.placed.view.y };
                let length = layer.columns.first().map_or(0, |(_, values)| values.len());
                let kept = evenly(length, cap);
                for (name, values) in &layer.columns {
                    let values = kept.iter().map(|&i| values[i]);
                    value[*name] = json!(column(numbers(values, scale(name))));
                }
                if kept.len() < length {
                    value["of"] = json!(length);
                }
                if let Some(marker) = &layer.marker {
                    value["marker"] = json!(marker);
                }
                if let Some((rows, x, y)) = &layer.map {
                    value["across"] = json!(x);
                    value["up"] = json!(y);
                    let cells = rows.len() * rows.first().map_or(0, Vec::len);
                    if cells <= cap.saturating_mul(10) {
                        let low = rows.iter().flatten().copied().fold(f64::INFINITY, f64::min);
                        let high = rows.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
                        let scale = Scale { kind: ScaleKind::Linear, low, high };
                        value["rows"] = rows
                            .iter()
                            .map(|row| numbers(row.iter().copied(), scale))
                            .collect::<Vec<_>>()
                            .into();
                    }
                }
                layers.push(value);
            }
            panels.push(panel.json(layers));
        }
        json!({ "panels": panels, "columns": columns })
    }
}

impl PanelData {
    fn new(panel: &Panel, name: String, book: &Book, number: usize, placed: Placed) -> Self {
        let marker = |index: usize| {
            let style = book.pages[number].styles.get(index)?;
            let mut path = crate::scene::Path::default();
            draw::marker(&mut path, style.marker, placed.marker);
            Some(svg::path_data(&path, 2))
        };
        let layers = panel.layers.iter().enumerate().map(|(index, layer)| {
            let mut data = LayerData::new(layer);
            data.layer = index;
            data.series = book.pages[number].entries[index];
            let text = data.series.map(|entry| plain(&book.texts[entry])).filter(|text| !text.is_empty());
            data.name = text.unwrap_or_else(|| data.kind.to_owned());
            data.marker = if data.kind == "markers" { marker(index) } else { None };
            data
        });
        Self {
            name,
            x_label: plain(&panel.x.label),
            y_label: plain(&panel.y.label),
            placed,
            layers: layers.collect(),
        }
    }

    fn json(&self, layers: Vec<Value>) -> Value {
        let axis = |scale: Scale, label: &str| json!({ "label": label, "log": scale.kind == ScaleKind::Log, "low": scale.low, "high": scale.high });
        let corners =
            |rect: Rect| [rect.left, rect.top, rect.right, rect.bottom].map(|v| (v * 100.0).round() / 100.0);
        let view = self.placed.view;
        json!({
            "name": self.name, "inset": self.placed.inset, "frame": corners(view.frame), "outer": corners(self.placed.outer),
            "x": axis(view.x, &self.x_label), "y": axis(view.y, &self.y_label), "layers": layers,
        })
    }
}

impl LayerData {
    fn new(layer: &Layer) -> Self {
        let mut map = None;
        let columns = match layer {
            Layer::Line(l) => vec![("x", l.x.to_vec()), ("y", l.y.to_vec())],
            Layer::Density(l) => vec![("x", l.x.to_vec()), ("y", l.y.to_vec())],
            Layer::Band(l) => {
                vec![("x", l.x.to_vec()), ("low", l.lower.to_vec()), ("high", l.upper.to_vec())]
            }
            Layer::Markers(l) => {
                let mut columns = vec![("x", l.x.to_vec()), ("y", l.y.to_vec())];
                let ends = |values: &[f64], bars: &ErrorBars, side: usize, sign: f64| -> Vec<f64> {
                    let end = |(i, value): (usize, &f64)| value + sign * ErrorBars::at(Some(bars), i)[side];
                    values.iter().enumerate().map(end).collect()
                };
                if let Some(bars) = &l.y_error {
                    columns.push(("low", ends(&l.y, bars, 0, -1.0)));
                    columns.push(("high", ends(&l.y, bars, 1, 1.0)));
                }
                if let Some(bars) = &l.x_error {
                    columns.push(("left", ends(&l.x, bars, 0, -1.0)));
                    columns.push(("right", ends(&l.x, bars, 1, 1.0)));
                }
                columns
            }
            Layer::Histogram(l) => {
                let middles = l.edges.windows(2).map(|edge| f64::midpoint(edge[0], edge[1])).collect();
                vec![("x", middles), ("y", l.drawn_heights())]
            }
            Layer::Slope(l) => {
                let ends = [l.from, l.end()];
                vec![("x", ends.map(|[x, _]| x).to_vec()), ("y", ends.map(|[_, y]| y).to_vec())]
            }
            Layer::Guide(l) => {
                let columns = [("x", l.x), ("y", l.y)];
                columns.into_iter().filter_map(|(name, at)| Some((name, vec![at?]))).collect()
            }
            Layer::HeatMap(l) => {
                map = Some((l.values.iter().map(|row| row.to_vec()).collect(), l.x, l.y));
                Vec::new()
            }
        };
        Self { layer: 0, series: None, name: String::new(), kind: layer.kind(), columns, marker: None, map }
    }

    /// The column of this name.
    pub(super) fn column(&self, name: &str) -> Option<&[f64]> {
        self.columns.iter().find(|(own, _)| *own == name).map(|(_, values)| values.as_slice())
    }
}

/// At most `cap` of the first `length` numbers, evenly spaced, both ends among them.
pub(super) fn evenly(length: usize, cap: usize) -> Vec<usize> {
    if length <= cap {
        return (0..length).collect();
    }
    (0..cap).map(|i| i * (length - 1) / (cap - 1).max(1)).collect()
}

/// Six digits, or as many more as a linear axis over a narrow range needs; `null` where there is no number.
fn numbers(values: impl IntoIterator<Item = f64>, scale: Scale) -> Value {
    let largest = scale.low.abs().max(scale.high.abs());
    let narrow = match scale.kind {
        ScaleKind::Linear if scale.high > scale.low => (largest / (scale.high - scale.low)).log10().max(0.0),
        _ => 0.0,
    };
    let digits = (5.0 + narrow.ceil()).min(16.0) as usize;
    values
        .into_iter()
        .map(|value| {
            if !value.is_finite() {
                return Value::Null;
            }
            let short: f64 = format!("{value:.digits$e}").parse().unwrap_or(value);
            // Whole numbers without ".0".
            if short.fract() == 0.0 && short.abs() < 1e15 { json!(short as i64) } else { json!(short) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_but_keep_what_the_axis_shows() {
        let log = Scale { kind: ScaleKind::Log, low: 1e-300, high: 10.0 };
        assert_eq!(numbers([1.23456789e-300, f64::NAN, 5.0], log).to_string(), "[1.23457e-300,null,5]");
        let narrow = Scale { kind: ScaleKind::Linear, low: 273.15, high: 273.15 + 2e-8 };
        assert_eq!(numbers([273.15000001234], narrow).to_string(), "[273.15000001234]");
    }

    #[test]
    fn thinning_keeps_both_ends_and_the_order() {
        assert_eq!(evenly(3, 5), [0, 1, 2]);
        let kept = evenly(1000, 40);
        assert_eq!((kept.len(), kept[0], kept[39]), (40, 0, 999));
        assert!(kept.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
