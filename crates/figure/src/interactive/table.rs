//! The numbers of a figure as a table, for readers who cannot see it or want them.

use super::data::{Data, evenly};
use super::escape;

/// Rows that the page shows without its script, about, and the most and least of one layer. The script shows all.
const ROWS: usize = 120;
const OF_ONE: [usize; 2] = [12, 2];

/// The table without its script. Columns: panel, series, x, y, and the ends of error bars or edges of bands.
pub(super) fn html(data: &Data) -> String {
    let mut rows = String::new();
    let several = data.panels.len() > 1;
    let layers: usize = data.panels.iter().map(|panel| panel.layers.len()).sum();
    let most = (ROWS / layers.max(1)).clamp(OF_ONE[1], OF_ONE[0]);
    for panel in &data.panels {
        for layer in &panel.layers {
            let length = layer.columns.first().map_or(0, |(_, values)| values.len());
            for i in evenly(length, most) {
                let cell = |name: &str| {
                    let value = layer.column(name).map_or(f64::NAN, |values| values[i]);
                    format!("<td>{}", number(value))
                };
                let panel = if several { format!("<td>{}", escape(&panel.name)) } else { String::new() };
                rows.push_str(&format!(
                    "<tr>{panel}<td>{}{}{}{}{}\n",
                    escape(&layer.name),
                    cell("x"),
                    cell("y"),
                    cell("low"),
                    cell("high")
                ));
            }
        }
    }
    let panel = if several { "<th>panel" } else { "" };
    let [x, y] = match data.panels.as_slice() {
        [only] => [only.x_label.as_str(), only.y_label.as_str()],
        _ => ["x", "y"],
    };
    let [x, y] =
        [(x, "x"), (y, "y")].map(|(label, short)| escape(if label.is_empty() { short } else { label }));
    format!(
        "<table>\n<thead><tr>{panel}<th>series<th>{x}<th>{y}<th>low<th>high</thead>\n<tbody>\n{rows}</tbody></table>\n"
    )
}

fn number(value: f64) -> String {
    if !value.is_finite() {
        return String::new();
    }
    // The digits of the data block.
    let short: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    let (plain, power) = (format!("{short}"), format!("{short:e}"));
    if plain.len() <= power.len() + 3 { plain } else { power }
}
