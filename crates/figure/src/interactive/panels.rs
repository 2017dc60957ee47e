//! Axes, annotations and places of panels.

use serde_json::{Value, json};

use super::text;
use super::traces::{self, Trace};
use crate::error::Result;
use crate::figure::{Axis, Panel, ScaleKind};
use crate::layer::Layer;
use crate::palette;
use crate::scale::{self, Scale};
use crate::series::Book;

/// What has been collected for plotly so far.
#[derive(Default)]
pub(super) struct Plot {
    pub(super) traces: Vec<Value>,
    pub(super) annotations: Vec<Value>,
    pub(super) axes: Vec<(String, Value)>,
    /// Series that have their legend entry.
    named: Vec<String>,
    panels: usize,
}

/// The frame of a panel as fractions of the page, y up.
#[derive(Clone, Copy)]
pub(super) struct Domain {
    pub(super) x: [f64; 2],
    pub(super) y: [f64; 2],
}

impl Domain {
    /// The part with this left, bottom, width and height.
    pub(super) fn part(&self, [left, bottom, width, height]: [f64; 4]) -> Self {
        let inside = |range: [f64; 2], from: f64, length: f64| {
            let start = range[0] + from * (range[1] - range[0]);
            [start, start + length * (range[1] - range[0])]
        };
        Self { x: inside(self.x, left, width), y: inside(self.y, bottom, height) }
    }
}

/// Cells of a grid with room for labels in between.
pub(super) fn domain(column: usize, row: usize, columns: usize, rows: usize) -> Domain {
    let cell = |index: usize, count: usize, gap: f64| {
        let size = (1.0 - gap * (count - 1) as f64) / count as f64;
        let start = index as f64 * (size + gap);
        [start, start + size]
    };
    // Gaps are fractions of the whole page, labels have fixed sizes: about 90 and 85 pixels.
    let [bottom, top] = cell(row, rows, 0.21 / rows as f64).map(|place| 1.0 - place);
    Domain { x: cell(column, columns, 0.18 / columns as f64), y: [top, bottom] }
}

impl Plot {
    pub(super) fn panel(&mut self, book: &Book, panel: &Panel, letter: &str, mut domain: Domain, legend: bool) -> Result<()> {
        self.panels += 1;
        let number = if self.panels == 1 { String::new() } else { self.panels.to_string() };
        let [x, y] = scale::scales(panel, letter)?;
        let frame = domain;
        if panel.layers.iter().any(|layer| matches!(layer, Layer::HeatMap(map) if map.bar.is_some())) {
            domain.x[1] -= 0.16 * (domain.x[1] - domain.x[0]);
        }
        for (layer, style) in panel.layers.iter().zip(book.styles(panel)?) {
            let name = layer.series().unwrap_or_default().to_owned();
            let entry = legend && layer.legend().is_some() && !self.named.contains(&name);
            if entry {
                self.named.push(name.clone());
            }
            let trace = Trace { layer, style: &style, scales: [x, y], domain, bar_edge: frame.x[1] };
            for mut value in traces::of(&trace)? {
                value["xaxis"] = json!(format!("x{number}"));
                value["yaxis"] = json!(format!("y{number}"));
                value["legendgroup"] = json!(name);
                value["showlegend"] = json!(entry && value["showlegend"] != json!(false));
                if let Some(text) = layer.legend() {
                    value["name"] = json!(text::label(text)?);
                }
                self.traces.push(value);
            }
            if let Layer::Slope(slope) = layer
                && let Some(label) = &slope.label
            {
                let [end_x, end_y] = slope.end();
                let at = [(slope.from[0], end_x, x), (slope.from[1], end_y, y)];
                let [middle_x, middle_y] = at.map(|(a, b, scale)| f64::midpoint(place(a, scale), place(b, scale)));
                let mut note = note(&number, text::label(label)?, [middle_x, middle_y]);
                note["yshift"] = json!(-16);
                note["xshift"] = json!(-26);
                self.annotations.push(note);
            }
        }
        self.annotations_of(panel, letter, &number, [x, y])?;
        let inset = letter.is_empty() && domain.x[1] - domain.x[0] < 0.3 && self.panels > 1;
        self.axes.push((format!("xaxis{number}"), axis(&panel.x, x, domain.x, &format!("y{number}"), inset)?));
        self.axes.push((format!("yaxis{number}"), axis(&panel.y, y, domain.y, &format!("x{number}"), inset)?));
        Ok(())
    }

    fn annotations_of(&mut self, panel: &Panel, letter: &str, number: &str, [x, y]: [Scale; 2]) -> Result<()> {
        let above = |text: String, x: f64, anchor: &str, shift: f64| {
            json!({
                "text": text, "showarrow": false, "xref": format!("x{number} domain"), "yref": format!("y{number} domain"),
                "x": x, "y": 1, "xanchor": anchor, "yanchor": "bottom", "xshift": shift, "yshift": 4,
            })
        };
        if !letter.is_empty() {
            self.annotations.push(above(format!("<b>{}</b>", text::escape(letter)), 0.0, "right", -30.0));
        }
        if let Some(title) = &panel.title {
            self.annotations.push(above(text::label(title)?, 0.5, "center", 0.0));
        }
        for annotation in &panel.annotations {
            let colour = annotation.colour.as_ref().map(palette::hex).transpose()?;
            let at = [place(annotation.at[0], x), place(annotation.at[1], y)];
            let mut note = note(number, text::label(&annotation.text)?, at);
            note["font"] = json!({"color": colour.as_deref().unwrap_or(palette::INK)});
            if let Some([tip_x, tip_y]) = annotation.arrow_to {
                note["showarrow"] = json!(true);
                note["arrowhead"] = json!(2);
                note["arrowwidth"] = json!(1);
                note["arrowcolor"] = note["font"]["color"].clone();
                note["ax"] = note["x"].take();
                note["ay"] = note["y"].take();
                note["axref"] = note["xref"].clone();
                note["ayref"] = note["yref"].clone();
                note["x"] = json!(place(tip_x, x));
                note["y"] = json!(place(tip_y, y));
            }
            self.annotations.push(note);
        }
        Ok(())
    }
}

fn note(number: &str, text: String, [x, y]: [f64; 2]) -> Value {
    json!({
        "text": text, "showarrow": false, "xref": format!("x{number}"), "yref": format!("y{number}"), "x": x, "y": y,
    })
}

/// The coordinate of annotations and ranges: on log axes plotly wants the logarithm.
fn place(value: f64, scale: Scale) -> f64 {
    match scale.kind {
        ScaleKind::Linear => value,
        ScaleKind::Log => value.log10(),
    }
}

fn axis(axis: &Axis, scale: Scale, domain: [f64; 2], anchor: &str, small: bool) -> Result<Value> {
    let size = if small { 10 } else { 13 };
    let mut value = json!({
        "domain": domain, "anchor": anchor, "range": [place(scale.low, scale), place(scale.high, scale)],
        "title": {"text": text::label(&axis.label)?, "standoff": if small { 2 } else { 8 }, "font": {"size": size + 2}},
        "ticks": "inside", "mirror": "allticks", "showline": true, "linecolor": "#1a1a1a", "linewidth": 1, "zeroline": false,
        "showgrid": false, "ticklen": if small { 4 } else { 6 }, "tickfont": {"size": size}, "exponentformat": "power",
        "minor": {"ticks": "inside", "ticklen": 3},
    });
    if small {
        value["nticks"] = json!(5);
    }
    if scale.kind == ScaleKind::Log {
        value["type"] = json!("log");
        let decades = (scale.high / scale.low).log10();
        if (2.0..10.0).contains(&decades) {
            let step = if decades > 6.0 || small && decades > 3.0 { 2 } else { 1 };
            value["dtick"] = json!(step);
            value["minor"]["dtick"] = if step == 1 { json!("D1") } else { json!(1) };
        }
    }
    if let Some(ticks) = &axis.ticks {
        value["tickvals"] = json!(ticks);
    }
    Ok(value)
}
