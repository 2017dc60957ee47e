//! Layers as traces of plotly.js.

use serde_json::{Value, json};

use super::panels::Domain;
use super::text;
use crate::error::Result;
use crate::error_bars::ErrorBars;
use crate::figure::ScaleKind;
use crate::layer::{ColourMap, HeatMap, Histogram, HistogramStyle, Layer, Marker, Markers, Stroke};
use crate::scale::{self, Scale};
use crate::series::Style;

/// A layer with its surroundings.
pub(super) struct Trace<'a> {
    pub(super) layer: &'a Layer,
    pub(super) style: &'a Style,
    pub(super) scales: [Scale; 2],
    pub(super) domain: Domain,
    /// Right end of the room for a colour bar.
    pub(super) bar_edge: f64,
}

/// The traces of a layer. Axes and legend are filled in by the caller; a trace that must not appear in the legend says so.
pub(super) fn of(trace: &Trace) -> Result<Vec<Value>> {
    let Trace { layer, style, scales, .. } = trace;
    let hover = format!(
        "%{{x:.4~g}}, %{{y:.4~g}}<extra>{}</extra>",
        text::escape(&text::plain(layer.legend().unwrap_or("")))
    );
    let mut traces = match layer {
        Layer::Line(line) => vec![curve(&line.x, &line.y, style, *scales)],
        Layer::Density(density) => {
            let mut trace = curve(&density.x, &density.y, style, *scales);
            trace["fill"] = json!("tozeroy");
            trace["fillcolor"] = json!(translucent(&style.colour, 0.12));
            vec![trace]
        }
        Layer::Band(band) => vec![region(&band.x, &band.lower, &band.upper, style, *scales)],
        Layer::Markers(layer) => vec![markers(layer, style, *scales)],
        Layer::Histogram(layer) => vec![histogram(layer, style, *scales)],
        Layer::HeatMap(map) => vec![heat_map(map, trace)?],
        Layer::Guide(guide) => {
            let [x, y] = scales.map(|scale| [scale.low, scale.high]);
            vec![curve(&guide.x.map_or(x, |x| [x; 2]), &guide.y.map_or(y, |y| [y; 2]), style, *scales)]
        }
        Layer::Slope(slope) => {
            let [from, to] = [slope.from, slope.end()];
            vec![curve(&[from[0], to[0]], &[from[1], to[1]], style, *scales)]
        }
    };
    for trace in &mut traces {
        if trace["hoverinfo"] != json!("skip") && trace["type"] != json!("heatmap") {
            trace["hovertemplate"] = json!(hover);
        }
    }
    Ok(traces)
}

/// Numbers to a millionth of what the axis shows; a gap is `null`.
fn numbers(values: impl IntoIterator<Item = f64>, scale: Scale) -> Value {
    let digits = match scale.kind {
        ScaleKind::Log => 6,
        ScaleKind::Linear => {
            let cancelled = (scale.low.abs().max(scale.high.abs()) / (scale.high - scale.low)).log10().ceil();
            // f64 has no more than seventeen.
            6 + cancelled.clamp(0.0, 11.0) as usize
        }
    };
    let short =
        |value: f64| format!("{value:.digits$e}").parse::<f64>().ok().filter(|value| value.is_finite());
    values.into_iter().map(|value| json!(short(value))).collect()
}

fn curve(x: &[f64], y: &[f64], style: &Style, [across, up]: [Scale; 2]) -> Value {
    json!({
        "type": "scatter", "mode": "lines", "x": numbers(x.iter().copied(), across), "y": numbers(y.iter().copied(), up),
        "line": {"color": style.colour, "width": 2, "dash": dash(style.stroke)},
    })
}

fn dash(stroke: Stroke) -> &'static str {
    match stroke {
        Stroke::Solid => "solid",
        Stroke::Dashed => "dash",
        Stroke::Dotted => "dot",
        Stroke::DashDotted => "dashdot",
    }
}

/// The colour with an opacity, as `rgba()`. Colours are checked before, so the digits are there.
fn translucent(colour: &str, opacity: f64) -> String {
    let channel = |at: usize| {
        colour.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok()).unwrap_or(0)
    };
    format!("rgba({}, {}, {}, {opacity})", channel(1), channel(3), channel(5))
}

/// Closed polygons, one between gaps; edges below a log axis are put on it.
fn region(x: &[f64], lower: &[f64], upper: &[f64], style: &Style, scales: [Scale; 2]) -> Value {
    let scale = scales[1];
    let edge = |y: f64| if scale.kind == ScaleKind::Log && y <= 0.0 { scale.low } else { y };
    let rows: Vec<[f64; 3]> = (0..x.len()).map(|i| [x[i], edge(lower[i]), edge(upper[i])]).collect();
    let (mut across, mut up) = (Vec::new(), Vec::new());
    for run in rows.split(|row| row.iter().any(|value| !value.is_finite())).filter(|run| !run.is_empty()) {
        if !across.is_empty() {
            across.push(f64::NAN);
            up.push(f64::NAN);
        }
        across.extend(run.iter().chain(run.iter().rev()).map(|row| row[0]));
        up.extend(run.iter().map(|row| row[2]).chain(run.iter().rev().map(|row| row[1])));
    }
    json!({
        "type": "scatter", "mode": "lines", "x": numbers(across, scales[0]), "y": numbers(up, scales[1]), "fill": "toself", "line": {"width": 0},
        "fillcolor": translucent(&style.colour, 0.2), "hoverinfo": "skip",
    })
}

fn markers(layer: &Markers, style: &Style, [across, up]: [Scale; 2]) -> Value {
    let (symbol, hollow) = match style.marker {
        Marker::Circle => ("circle", true),
        Marker::Square => ("square", true),
        Marker::Triangle => ("triangle-up", true),
        Marker::Diamond => ("diamond", true),
        Marker::TriangleDown => ("triangle-down", true),
        Marker::Pentagon => ("pentagon", true),
        Marker::Cross => ("x-thin", false),
        Marker::Plus => ("cross-thin", false),
    };
    let fill = if hollow { "#ffffff" } else { &style.colour };
    let mut trace = json!({
        "type": "scatter", "mode": "markers", "x": numbers(layer.x.iter().copied(), across), "y": numbers(layer.y.iter().copied(), up),
        "marker": {"symbol": symbol, "size": 8, "color": fill, "line": {"color": style.colour, "width": 1.5}},
    });
    for (name, errors, scale) in [("error_x", &layer.x_error, across), ("error_y", &layer.y_error, up)] {
        if let Some(errors) = errors {
            let [below, above] = errors.sides().map(|side| numbers(side.iter().copied(), scale));
            trace[name] =
                json!({"type": "data", "array": above, "color": style.colour, "thickness": 1.2, "width": 3});
            if matches!(errors, ErrorBars::Uneven(_)) {
                trace[name]["symmetric"] = json!(false);
                trace[name]["arrayminus"] = below;
            }
        }
    }
    trace
}

fn histogram(layer: &Histogram, style: &Style, scales: [Scale; 2]) -> Value {
    let heights = layer.drawn_heights();
    if layer.style == HistogramStyle::Steps {
        let x = std::iter::once(layer.edges.first()).chain(layer.edges.iter().map(Some)).flatten().copied();
        let y = std::iter::once(0.0).chain(heights).chain([0.0]);
        let (x, y): (Vec<f64>, Vec<f64>) = x.zip(y).unzip();
        let mut trace = curve(&x, &y, style, scales);
        trace["line"]["shape"] = json!("hv");
        return trace;
    }
    json!({
        "type": "bar", "x": numbers(layer.edges.windows(2).map(|edge| f64::midpoint(edge[0], edge[1])), scales[0]), "y": numbers(heights, scales[1]),
        "width": numbers(layer.edges.windows(2).map(|edge| edge[1] - edge[0]), scales[0]), "marker": {"color": translucent(&style.colour, 0.35)},
    })
}

fn heat_map(map: &HeatMap, trace: &Trace) -> Result<Value> {
    let values = map.values.iter().flat_map(|row| row.iter().copied());
    let scale = scale::colour_scale(values, map.range, map.map == ColourMap::Diverging, "")?;
    let anchors = map.map.anchors();
    let colours: Vec<Value> = anchors
        .iter()
        .enumerate()
        .map(|(i, colour)| json!([i as f64 / (anchors.len() - 1) as f64, format!("#{colour:06X}")]))
        .collect();
    let columns = map.values.first().map_or(0, |row| row.len());
    let [x, y] = trace.scales;
    let mut value = json!({
        "type": "heatmap", "x": numbers(edges(map.x, columns, x.kind), x), "y": numbers(edges(map.y, map.values.len(), y.kind), y),
        "z": map.values.iter().map(|row| numbers(row.iter().copied(), scale)).collect::<Vec<_>>(),
        "colorscale": colours, "zmin": scale.low, "zmax": scale.high, "showscale": map.bar.is_some(),
        "hovertemplate": "%{x:.4~g}, %{y:.4~g}: %{z:.4~g}<extra></extra>",
    });
    // The label of the bar is an annotation: plotly turns formulas in bar titles on their side.
    if map.bar.is_some() {
        let Domain { x, y } = trace.domain;
        value["colorbar"] = json!({
            "thickness": 14, "ticks": "inside", "exponentformat": "power",
            "x": x[1] + 0.12 * (trace.bar_edge - x[1]), "xanchor": "left", "xpad": 0, "ypad": 0,
            "y": f64::midpoint(y[0], y[1]), "len": y[1] - y[0], "outlinewidth": 1,
        });
    }
    Ok(value)
}

/// Edges of `count` cells, equally wide on the axis.
fn edges([low, high]: [f64; 2], count: usize, kind: ScaleKind) -> Vec<f64> {
    let along = (0..=count).map(|i| i as f64 / count as f64);
    match kind {
        ScaleKind::Linear => along.map(|along| low + along * (high - low)).collect(),
        ScaleKind::Log => along.map(|along| low * (high / low).powf(along)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_on_a_log_axis_have_edges_in_geometric_progression() {
        let edges = edges([1e-2, 1e2], 4, ScaleKind::Log);
        assert!(edges.windows(2).all(|pair| (pair[1] / pair[0] - 10.0).abs() < 1e-12));
    }

    #[test]
    fn numbers_are_short_but_keep_what_the_axis_shows() {
        let log = Scale { kind: ScaleKind::Log, low: 1e-300, high: 10.0 };
        assert_eq!(numbers([1.23456789e-300, f64::NAN, 5.0], log).to_string(), "[1.234568e-300,null,5.0]");
        let narrow = Scale { kind: ScaleKind::Linear, low: 273.15, high: 273.15 + 2e-8 };
        assert_eq!(numbers([273.15000001234], narrow).to_string(), "[273.15000001234]");
    }

    #[test]
    fn translucent_colours_keep_their_channels() {
        assert_eq!(translucent("#0072B2", 0.2), "rgba(0, 114, 178, 0.2)");
    }
}
