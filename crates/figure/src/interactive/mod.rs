//! Figures for the browser: zoom, hover, click on a legend entry to hide its series.
//!
//! A page carries [`page_assets`] once and a [`div`] per figure, and works without network: plotly.js and MathJax come
//! from the `plotly` crate. Data are written to seven digits.

mod panels;
mod text;
mod traces;

use serde_json::{Value, json};

use crate::error::Result;
use crate::figure::{Figure, Legend};
use crate::layout;
use crate::scene::Scene;
use crate::series::{Book, legend_of};

/// Draws all figures of the page; the style fits a plain page of text.
const LOADER: &str = r#"<style>
figure.didact-figure { margin: 1.5em auto; }
figure.didact-figure figcaption { font: 15px/1.45 serif; margin: 0.4em 1.5em; }
</style>
<script>
window.addEventListener("DOMContentLoaded", async () => {
  await MathJax.startup.promise;
  for (const source of document.querySelectorAll("script.didact-figure-data")) {
    const figure = JSON.parse(source.textContent);
    await Plotly.newPlot(source.dataset.target, figure.data, figure.layout, figure.config);
  }
  await MathJax.typesetPromise([...document.querySelectorAll("figure.didact-figure figcaption")]);
});
</script>
"#;

/// What a page needs once, in its head: plotly.js, MathJax, a little style, and the script that draws every [`div`].
pub fn page_assets() -> String {
    let settings = r#"<script>window.MathJax={startup:{typeset:false},options:{enableMenu:false},tex:{inlineMath:[["$","$"]]}}</script>"#;
    format!("{settings}\n{}{LOADER}", plotly::Plot::offline_js_sources())
}

/// One figure with its caption, for a page that has [`page_assets`]. `id` must be unique on the page.
pub fn div(figure: &Figure, id: &str) -> Result<String> {
    // The static page finds every error, and free places for the insets.
    let page = layout::page(figure)?;
    let id = text::escape(id);
    // In a script element nothing ends the data but `</`.
    let data = description(figure, &page)?.to_string().replace('<', "\\u003c");
    let caption = figure
        .caption
        .as_deref()
        .map(|caption| format!("<figcaption>{}</figcaption>\n", text::escape(caption)));
    Ok(format!(
        "<figure class=\"didact-figure\" style=\"max-width:{:.0}px\">\n<div id=\"{id}\"></div>\n{}<script type=\"application/json\" class=\"didact-figure-data\" data-target=\"{id}\">{data}</script>\n</figure>\n",
        width(&page),
        caption.unwrap_or_default()
    ))
}

/// A page with one figure and all it needs: a single file of about 7 MB that works without network.
pub fn to_html(figure: &Figure) -> Result<String> {
    let title = text::escape(&text::plain(figure.title.as_deref().unwrap_or("Figure")));
    Ok(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n{}</head>\n<body>\n{}</body>\n</html>\n",
        page_assets(),
        div(figure, "figure")?
    ))
}

/// CSS pixels per point of the static figure.
const PIXELS: f64 = 2.2;
/// Room in CSS pixels: left and right of all panels, above them, between columns and rows, from the panels to the legend,
/// and a line of the legend.
const SIDES: [f64; 2] = [85.0, 30.0];
const TOP: f64 = 60.0;
const GAPS: [f64; 2] = [95.0, 95.0];
const BELOW: f64 = 75.0;
const LEGEND_LINE: f64 = 27.0;

/// Widest the figure is shown.
fn width(page: &Scene) -> f64 {
    PIXELS * page.width
}

/// The figure in the words of plotly.js: traces, layout, configuration.
fn description(figure: &Figure, page: &Scene) -> Result<Value> {
    let book = Book::new(figure)?;
    let columns = layout::columns(figure);
    let room = width(page) - SIDES[0] - SIDES[1];
    let frame = ((room + GAPS[0]) / columns as f64 - GAPS[0]).max(60.0);
    let grid = panels::Grid {
        columns,
        rows: figure.panels.len().div_ceil(columns),
        frame: [frame, frame * figure.aspect.unwrap_or(layout::ASPECT)],
        gap: GAPS,
    };
    let mut plot = panels::Plot::new(grid.frame);
    let letters = layout::letters(figure);
    for (index, panel) in figure.panels.iter().enumerate() {
        let domain = grid.domain(index);
        let legend = legend_of(figure, panel) != Legend::None;
        plot.panel(&book, panel, &letters[index], domain, legend, false)?;
        for (inset, place) in panel.insets.iter().zip(&page.insets[index]) {
            plot.panel(&book, &inset.panel, "", domain.part(*place), false, true)?;
        }
    }
    let bottom = BELOW + LEGEND_LINE * plot.legend_lines(room);
    let mut layout = json!({
        "height": TOP + grid.height() + bottom,
        "margin": {"l": SIDES[0], "r": SIDES[1], "t": TOP, "b": bottom, "autoexpand": false},
        "paper_bgcolor": "#ffffff",
        "plot_bgcolor": "#ffffff",
        "font": {"family": "Latin Modern Roman, CMU Serif, Times New Roman, serif", "size": 14, "color": "#1a1a1a"},
        "barmode": "overlay",
        "hovermode": "closest",
        "legend": {"orientation": "h", "x": 0.5, "xanchor": "center", "y": -BELOW / grid.height(), "yanchor": "top"},
        "annotations": plot.annotations,
    });
    if let Some(title) = &figure.title {
        layout["title"] =
            json!({"text": text::label(title)?, "x": 0.5, "y": 1, "yanchor": "top", "pad": {"t": 8}});
    }
    for (name, axis) in plot.axes {
        layout[name] = axis;
    }
    Ok(json!({
        "data": plot.traces,
        "layout": layout,
        "config": {"responsive": true, "displaylogo": false},
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Line, Panel};

    fn figure() -> Figure {
        let line = Line {
            x: vec![1.0, 2.0, f64::NAN, 4.0].into(),
            y: vec![1.0, 0.123456789, 3.0, 1e-9].into(),
            legend: Some("</script> $\\beta$".into()),
            ..Line::default()
        };
        let panel = Panel {
            x: Axis::log("ratio $\\alpha$"),
            layers: vec![crate::Layer::Line(line)],
            ..Panel::default()
        };
        Figure { panels: vec![panel], caption: Some("a < b".into()), ..Figure::default() }
    }

    #[test]
    fn a_label_cannot_end_the_script_and_gaps_are_null() {
        let div = div(&figure(), "f1").unwrap();
        assert_eq!(div.matches("</script>").count(), 1);
        assert!(div.contains("[1.0,2.0,null,4.0]") && div.contains("0.1234568") && div.contains("a &lt; b"));
        assert!(div.contains(r"$\\text{ratio }\\alpha$"), "a formula holds the words too");
    }

    #[test]
    fn a_page_has_the_scripts_once_and_asks_nothing_of_the_network() {
        let page = to_html(&figure()).unwrap();
        assert!(!page.contains("<script src") && !page.contains("<link"));
        assert_eq!(page.matches("class=\"didact-figure-data\"").count(), 1);
        assert!(page.len() < 8_000_000);
    }

    #[test]
    fn a_bad_label_is_found_here_too() {
        let mut bad = figure();
        bad.panels[0].x.label = "$\\nosuch$".into();
        assert!(to_html(&bad).unwrap_err().to_string().contains("\\nosuch"));
    }
}
