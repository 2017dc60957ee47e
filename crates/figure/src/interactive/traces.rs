//! Layers as traces of plotly.js.

use serde_json::{Value, json};

use super::panels::Domain;
use super::text;
use crate::error::Result;
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
    let hover = format!("%{{x:.4~g}}, %{{y:.4~g}}<extra>{}</extra>", text::escape(&text::plain(layer.legend().unwrap_or(""))));
    let mut traces = match layer {
        Layer::Line(line) => vec![curve(&line.x, &line.y, style)],
        Layer::Density(density) => {
            let mut trace = curve(&density.x, &density.y, style);
            trace["fill"] = json!("tozeroy");
            trace["fillcolor"] = json!(translucent(&style.colour, 0.12));
            vec![trace]
        }
        Layer::Band(band) => vec![region(&band.x, &band.lower, &band.upper, style, scales[1])],
        Layer::Markers(layer) => vec![markers(layer, style)],
        Layer::Histogram(layer) => vec![histogram(layer, style)],
        Layer::HeatMap(map) => vec![heat_map(map, trace)?],
        Layer::Guide(guide) => {
            let [x, y] = scales.map(|scale| [scale.low, scale.high]);
            vec![curve(&guide.x.map_or(x, |x| [x; 2]), &guide.y.map_or(y, |y| [y; 2]), style)]
        }
        Layer::Slope(slope) => {
            let [from, to] = [slope.from, slope.end()];
            vec![curve(&[from[0], to[0]], &[from[1], to[1]], style)]
        }
    };
    for trace in &mut traces {
        if trace["hoverinfo"] != json!("skip") && trace["type"] != json!("heatmap") {
            trace["hovertemplate"] = json!(hover);
        }
    }
    Ok(traces)
}

/// Numbers to seven digits; a gap is `null`.
fn numbers(values: impl IntoIterator<Item = f64>) -> Value {
    let short = |value: f64| format!("{value:.6e}").parse::<f64>().ok().filter(|value| value.is_finite());
    values.into_iter().map(|value| json!(short(value))).collect()
}

fn curve(x: &[f64], y: &[f64], style: &Style) -> Value {
    json!({
        "type": "scatter", "mode": "lines", "x": numbers(x.iter().copied()), "y": numbers(y.iter().copied()),
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
    let channel = |at: usize| colour.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok()).unwrap_or(0);
    format!("rgba({}, {}, {}, {opacity})", channel(1), channel(3), channel(5))
}

/// Closed polygons, one between gaps; edges below a log axis are put on it.
fn region(x: &[f64], lower: &[f64], upper: &[f64], style: &Style, scale: Scale) -> Value {
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
        "type": "scatter", "mode": "lines", "x": numbers(across), "y": numbers(up), "fill": "toself", "line": {"width": 0},
        "fillcolor": translucent(&style.colour, 0.2), "hoverinfo": "skip",
    })
}

fn markers(layer: &Markers, style: &Style) -> Value {
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
        "type": "scatter", "mode": "markers", "x": numbers(layer.x.iter().copied()), "y": numbers(layer.y.iter().copied()),
        "marker": {"symbol": symbol, "size": 8, "color": fill, "line": {"color": style.colour, "width": 1.5}},
    });
    for (name, errors) in [("error_x", &layer.x_error), ("error_y", &layer.y_error)] {
        if let Some(errors) = errors {
            let errors = numbers(errors.iter().copied());
            trace[name] = json!({"type": "data", "array": errors, "color": style.colour, "thickness": 1.2, "width": 3});
        }
    }
    trace
}

fn histogram(layer: &Histogram, style: &Style) -> Value {
    let heights = layer.drawn_heights();
    if layer.style == HistogramStyle::Steps {
        let x = std::iter::once(layer.edges.first()).chain(layer.edges.iter().map(Some)).flatten().copied();
        let y = std::iter::once(0.0).chain(heights).chain([0.0]);
        let (x, y): (Vec<f64>, Vec<f64>) = x.zip(y).unzip();
        let mut trace = curve(&x, &y, style);
        trace["line"]["shape"] = json!("hv");
        return trace;
    }
    json!({
        "type": "bar", "x": numbers(layer.edges.windows(2).map(|edge| f64::midpoint(edge[0], edge[1]))), "y": numbers(heights),
        "width": numbers(layer.edges.windows(2).map(|edge| edge[1] - edge[0])), "marker": {"color": translucent(&style.colour, 0.35)},
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
    let [x, y] = trace.scales.map(|scale| scale.kind);
    let mut value = json!({
        "type": "heatmap", "x": numbers(edges(map.x, columns, x)), "y": numbers(edges(map.y, map.values.len(), y)),
        "z": map.values.iter().map(|row| numbers(row.iter().copied())).collect::<Vec<_>>(),
        "colorscale": colours, "zmin": scale.low, "zmax": scale.high, "showscale": map.bar.is_some(),
        "hovertemplate": "%{x:.4~g}, %{y:.4~g}: %{z:.4~g}<extra></extra>",
    });
    if let Some(bar) = &map.bar {
        let Domain { x, y } = trace.domain;
        value["colorbar"] = json!({
            "title": {"text": text::label(&bar.label)?}, "thickness": 14, "ticks": "inside", "exponentformat": "power",
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
    fn numbers_keep_seven_digits_at_any_size() {
        assert_eq!(numbers([1.23456789e-300, f64::NAN, 5.0]).to_string(), "[1.234568e-300,null,5.0]");
    }

    #[test]
    fn translucent_colours_keep_their_channels() {
        assert_eq!(translucent("#0072B2", 0.2), "rgba(0, 114, 178, 0.2)");
    }
}
