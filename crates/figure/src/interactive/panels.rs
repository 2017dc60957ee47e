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
use crate::ticks;

/// What has been collected for plotly so far.
#[derive(Default)]
pub(super) struct Plot {
    /// Width and height of the frames in CSS pixels.
    frame: [f64; 2],
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

/// Frames of one size with gaps for their labels, in CSS pixels.
pub(super) struct Grid {
    pub(super) columns: usize,
    pub(super) rows: usize,
    pub(super) frame: [f64; 2],
    pub(super) gap: [f64; 2],
}

impl Grid {
    /// Height of all rows with the gaps between them.
    pub(super) fn height(&self) -> f64 {
        self.rows as f64 * (self.frame[1] + self.gap[1]) - self.gap[1]
    }

    pub(super) fn domain(&self, index: usize) -> Domain {
        let cell = |index: usize, count: usize, frame: f64, gap: f64| {
            let whole = count as f64 * (frame + gap) - gap;
            let start = index as f64 * (frame + gap);
            [start / whole, (start + frame) / whole]
        };
        let [above, below] = cell(index / self.columns, self.rows, self.frame[1], self.gap[1]);
        let x = cell(index % self.columns, self.columns, self.frame[0], self.gap[0]);
        Domain { x, y: [1.0 - below, 1.0 - above] }
    }
}

impl Plot {
    /// Nothing yet, for frames of this size.
    pub(super) fn new(frame: [f64; 2]) -> Self {
        Self { frame, ..Self::default() }
    }

    pub(super) fn panel(
        &mut self,
        book: &Book,
        panel: &Panel,
        letter: &str,
        mut domain: Domain,
        legend: bool,
        inset: bool,
    ) -> Result<()> {
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
            if let Layer::HeatMap(map) = layer
                && let Some(bar) = &map.bar
            {
                self.annotations.push(json!({
                    "text": text::label(&bar.label)?, "showarrow": false, "xref": "paper", "yref": "paper", "xanchor": "right",
                    "yanchor": "bottom", "x": frame.x[1], "y": frame.y[1], "yshift": 4,
                }));
            }
            if let Layer::Slope(slope) = layer
                && let Some(label) = &slope.label
            {
                let [end_x, end_y] = slope.end();
                let at = [(slope.from[0], end_x, x), (slope.from[1], end_y, y)];
                let [middle_x, middle_y] =
                    at.map(|(a, b, scale)| f64::midpoint(place(a, scale), place(b, scale)));
                let mut note = note(&number, &text::label(label)?, [middle_x, middle_y]);
                note["yshift"] = json!(-16);
                note["xshift"] = json!(-26);
                self.annotations.push(note);
            }
        }
        self.annotations_of(panel, letter, &number, [x, y])?;
        let [width, height] = self.frame;
        let [across, up] = [format!("x{number}"), format!("y{number}")];
        self.axes.push((format!("xaxis{number}"), axis(&panel.x, x, (domain.x, width), &up, inset)?));
        self.axes.push((format!("yaxis{number}"), axis(&panel.y, y, (domain.y, height), &across, inset)?));
        Ok(())
    }

    /// Lines of the legend in `room` pixels, by a generous guess of the widths of its entries.
    pub(super) fn legend_lines(&self, room: f64) -> f64 {
        const SAMPLE: f64 = 55.0;
        const CHARACTER: f64 = 7.5;
        let width = |name: &String| SAMPLE + CHARACTER * text::plain(name).chars().count() as f64;
        (self.named.iter().map(width).sum::<f64>() / room).ceil()
    }

    fn annotations_of(
        &mut self,
        panel: &Panel,
        letter: &str,
        number: &str,
        [x, y]: [Scale; 2],
    ) -> Result<()> {
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
            let mut note = note(number, &text::label(&annotation.text)?, at);
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

fn note(number: &str, text: &str, [x, y]: [f64; 2]) -> Value {
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

fn axis(
    axis: &Axis,
    scale: Scale,
    (domain, room): ([f64; 2], f64),
    anchor: &str,
    small: bool,
) -> Result<Value> {
    let size = if small { 10.0 } else { 13.0 };
    // Values that differ far behind the point: our labels and their offset, which plotly has no words for.
    let ticks = ticks::choose(&scale, axis.ticks.as_deref(), room, |ticks| Ok(ticks.major.len() <= 6))?;
    let offset = ticks.note.as_ref().filter(|note| note.contains("} "));
    let label = offset.map_or_else(|| axis.label.clone(), |note| format!("{} ({note})", axis.label));
    let mut value = json!({
        "domain": domain, "anchor": anchor, "range": [place(scale.low, scale), place(scale.high, scale)],
        "title": {"text": text::wrapped(&label, size + 2.0, room)?, "standoff": if small { 2 } else { 8 }, "font": {"size": size + 2.0}},
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
    if let Some(given) = &axis.ticks {
        value["tickvals"] = json!(given);
    }
    if offset.is_some() {
        value["tickvals"] = ticks.major.iter().map(|tick| json!(tick.value)).collect();
        value["ticktext"] =
            ticks.major.iter().map(|tick| json!(tick.label.trim_matches('$').replace('-', "−"))).collect();
    }
    Ok(value)
}
