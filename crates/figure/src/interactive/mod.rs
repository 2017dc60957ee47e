//! Figures in a web page: the drawing of [`crate::to_svg`], to the byte, brought to life by a small script.
//!
//! A reader sees the nearest point, zooms, switches series off by the legend, steps through the points with the keyboard, copies the
//! numbers and saves the figure. A page carries [`STYLE`] and [`SCRIPT`] once and a [`Framed`] figure wherever it likes; it needs
//! neither network nor fonts. Without the script the drawing, its caption and a table of its numbers are still there.

mod data;
mod inline;
mod plain;
mod table;

pub use inline::Prose;

use crate::error::Result;
use crate::figure::Figure;
use crate::series::Book;
use crate::{layout, svg};

/// The style of figures and formulas; stands once in the head of a page, in a `style` element.
pub const STYLE: &str = include_str!("figure.css");

/// What brings the figures to life; stands once at the end of a page, in a `script` element.
pub const SCRIPT: &str = include_str!("figure.js");

/// A figure of a page.
pub struct Framed<'a> {
    /// What is shown.
    pub figure: &'a Figure,
    /// Name of its files, without the ending.
    pub name: &'a str,
    /// Whether `<name>.pdf` and `<name>.png` lie beside the page.
    pub files: bool,
    /// Bytes that its numbers may take. Beyond that points of long curves are left out of them, evenly; the drawing stays whole.
    pub room: usize,
}

impl Framed<'_> {
    /// The figure with its caption, tools, table and numbers.
    pub fn html(&self, prose: &mut Prose) -> Result<String> {
        let page = layout::page(self.figure)?;
        let data = data::Data::new(self.figure, &Book::new(self.figure)?, &page);
        let drawing = svg::write(&page, svg::Glyphs::Outlines);
        let name = escape(self.name);
        let links: String = if self.files {
            ["pdf", "png"]
                .map(|ending| {
                    let file = format!("./{}.{ending}", encoded(self.name));
                    format!("<a href=\"{file}\" download>{}</a>", ending.to_uppercase())
                })
                .concat()
        } else {
            String::new()
        };
        let caption =
            self.figure.caption.as_deref().map_or(String::new(), |caption| {
                format!("<figcaption>{}</figcaption>\n", prose.html(caption))
            });
        Ok(format!(
            "<figure class=\"didact-figure\" data-name=\"{name}\">\n\
             <div class=\"drawing\" style=\"--width:{:.0}\" tabindex=\"0\" role=\"group\" aria-label=\"{}\">\n{drawing}<div class=\"readout\" role=\"status\" hidden></div></div>\n\
             <div class=\"tools\"><button data-do=\"reset\">Whole view</button><button data-do=\"copy\">Copy data</button>\
             <button data-do=\"csv\">CSV</button><button data-do=\"svg\">SVG</button>{links}\
             <span class=\"hint\">drag: zoom · shift-drag: pan · double click: back · arrow keys: step</span></div>\n\
             {caption}<details class=\"numbers\"><summary>Numbers of this figure</summary><div class=\"scroll\">\n{}</div></details>\n\
             <script type=\"application/json\" class=\"data\">{}</script>\n</figure>\n",
            page.width,
            escape(&self.alternative(&data)),
            table::html(&data),
            data.json(self.room)
        ))
    }

    /// What a reader who cannot see the figure is told of it.
    fn alternative(&self, data: &data::Data) -> String {
        let Figure { title, caption, .. } = self.figure;
        let mut text: Vec<String> =
            [title, caption].into_iter().flatten().map(|text| plain::plain(text)).collect();
        if text.is_empty() {
            let shown = |panel: &data::PanelData| format!("{} against {}", panel.y_label, panel.x_label);
            text.push(format!(
                "Figure {}: {}",
                self.name,
                data.panels.iter().map(shown).collect::<Vec<_>>().join("; ")
            ));
        }
        text.join(". ")
    }
}

/// A page with one figure: a single file that works without network.
pub fn to_html(figure: &Figure) -> Result<String> {
    let mut prose = Prose::default();
    let framed = Framed { figure, name: "figure", files: false, room: 200_000 }.html(&mut prose)?;
    let title = escape(&plain::plain(figure.title.as_deref().unwrap_or("Figure")));
    Ok(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{}{framed}\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        prose.definitions()
    ))
}

/// A label in characters alone: Greek letters by themselves, fractions as a/b.
pub fn plain_text(label: &str) -> String {
    plain::plain(label)
}

/// Text that is safe in HTML, inside quoted attributes too.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// A file name as part of an address: everything but letters, digits, `-`, `_` and `.` as %XX.
pub fn encoded(name: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    name.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, HeatMap, Layer, Line, Markers, Panel};
    use serde_json::Value;

    fn figure() -> Figure {
        let line = Line {
            x: vec![1.0, 2.0, f64::NAN, 4.0].into(),
            y: vec![1.0, 0.123456789, 3.0, 1e-9].into(),
            legend: Some("</script> $\\beta$".into()),
            ..Line::default()
        };
        let points = Markers {
            x: vec![1.0, 2.0, 4.0].into(),
            y: vec![1.0, 2.0, 3.0].into(),
            y_error: Some(vec![0.5, 0.0, 0.25].into()),
            ..Markers::default()
        };
        let panel = Panel {
            x: Axis::log("ratio $\\alpha$"),
            layers: vec![Layer::Line(line), Layer::Markers(points)],
            ..Panel::default()
        };
        Figure { panels: vec![panel], caption: Some("a < b and $\\gamma$".into()), ..Figure::default() }
    }

    fn framed(figure: &Figure, room: usize) -> String {
        Framed { figure, name: "f 1\"", files: true, room }.html(&mut Prose::default()).unwrap()
    }

    fn data(html: &str) -> Value {
        let start = html.split("class=\"data\">").nth(1).unwrap();
        serde_json::from_str(start.split("</script>").next().unwrap()).unwrap()
    }

    #[test]
    fn the_page_has_the_very_drawing_of_the_file() {
        let (figure, page) = (figure(), to_html(&figure()).unwrap());
        assert!(page.contains(&crate::to_svg(&figure).unwrap()));
        assert!(page.len() < 120_000, "{} bytes", page.len());
    }

    #[test]
    fn the_data_say_where_every_point_is() {
        let html = framed(&figure(), usize::MAX);
        let data = data(&html);
        let panel = &data["panels"][0];
        let names = [0, 1].map(|layer: usize| panel["layers"][layer]["name"].as_str().unwrap());
        assert_eq!(names, ["</script> β", "markers"]);
        assert_eq!(panel["x"]["log"], true);
        assert_eq!(panel["x"]["label"], "ratio α");
        let column = |layer: usize, name: &str| {
            let place = panel["layers"][layer][name].as_u64().unwrap() as usize;
            data["columns"][place].clone()
        };
        assert_eq!(column(0, "x"), serde_json::json!([1, 2, null, 4]));
        assert_eq!(column(0, "y"), serde_json::json!([1, 0.123457, 3, 1e-9]));
        assert_eq!(
            (column(1, "low"), column(1, "high")),
            (serde_json::json!([0.5, 2, 2.75]), serde_json::json!([1.5, 2, 3.25]))
        );
        assert!(panel["layers"][0]["series"] == 0 && panel["layers"][1]["series"].is_null());
        assert!(panel["layers"][1]["marker"].as_str().unwrap().starts_with('M'));
        // The drawing has the groups that the data speak of.
        for part in [
            "data-panel=\"0\"",
            "data-layer=\"0\" data-series=\"0\"",
            "data-layer=\"1\"",
            "class=\"bars\"",
            "class=\"ticks\"",
            "class=\"entry\" data-series=\"0\"",
        ] {
            assert!(html.contains(part), "{part}");
        }
    }

    #[test]
    fn panels_and_insets_are_numbered_as_in_the_drawing() {
        let mut two = figure();
        let inset = crate::Inset { panel: figure().panels.remove(0), place: None };
        two.panels[0].insets.push(inset);
        two.panels.push(figure().panels.remove(0));
        let html = framed(&two, usize::MAX);
        let panels = data(&html)["panels"].clone();
        let insets: Vec<bool> =
            panels.as_array().unwrap().iter().map(|p| p["inset"].as_bool().unwrap()).collect();
        assert_eq!(insets, [false, true, false]);
        for (number, panel) in panels.as_array().unwrap().iter().enumerate() {
            let group = html.split(&format!("data-panel=\"{number}\"")).nth(1).unwrap();
            let frame: Vec<f64> =
                panel["frame"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
            let clip = group.split("url(#clip-").nth(1).unwrap().split(')').next().unwrap();
            assert_eq!(
                clip,
                frame.iter().map(f64::to_string).collect::<Vec<_>>().join("-"),
                "panel {number}"
            );
        }
    }

    #[test]
    fn a_group_is_called_in_each_panel_as_its_legend_there() {
        let panel = |legend: Option<&str>| {
            let (x, y) = (vec![1.0, 2.0].into(), vec![1.0, 2.0].into());
            let line =
                Line { x, y, group: Some("1".into()), legend: legend.map(Into::into), ..Line::default() };
            Panel { layers: vec![Layer::Line(line)], ..Panel::default() }
        };
        let mut first = panel(Some("$k = 2$"));
        first.insets.push(crate::Inset { panel: panel(None), place: None });
        let panels = vec![first, panel(Some("linear")), panel(None)];
        let data =
            data(&framed(&Figure { panels, legend: crate::Legend::Inside, ..Figure::default() }, usize::MAX));
        let names: Vec<&str> =
            (0..4).map(|panel: usize| data["panels"][panel]["layers"][0]["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["k = 2", "k = 2", "linear", "line"]);
    }

    #[test]
    fn text_of_users_is_never_markup() {
        let mut bad = figure();
        bad.title = Some("</script><img src=x onerror=alert(1)>".into());
        bad.panels[0].title = Some("<a href='javascript:alert(7)'>x</a>".into());
        bad.caption = Some("--><script>alert(2)</script> $\\href{javascript:alert(8)}{x}$".into());
        let html = framed(&bad, usize::MAX);
        assert_eq!(html.matches("<script").count(), 1, "the data alone");
        assert!(!html.contains("<img") && !html.contains("<a href='") && !html.contains("href=\"javascript"));
        assert!(html.contains("href=\"./f%201%22.pdf\"") && html.contains("data-name=\"f 1&quot;\""));
    }

    #[test]
    fn a_page_asks_nothing_of_the_network() {
        let page = to_html(&figure()).unwrap();
        for part in ["<link", "src=", "@import", "url(http", "fetch(", "XMLHttpRequest"] {
            assert!(!page.contains(part), "{part}");
        }
        let addresses: Vec<&str> = page.split("http").skip(1).collect();
        assert!(
            addresses.iter().all(|rest| rest.starts_with("://www.w3.org/2000/svg")),
            "only the name of SVG"
        );
    }

    #[test]
    fn long_curves_and_large_maps_are_thinned_to_their_room() {
        let x: Vec<f64> = (0..5000).map(|i| f64::from(i) / 7.0).collect();
        let line = Line { y: x.iter().map(|x| x.sin()).collect(), x: x.into(), ..Line::default() };
        let map = HeatMap {
            values: (0..100).map(|i| (0..100).map(|j| f64::from(i * j).sqrt()).collect()).collect(),
            x: [0.0, 1.0],
            y: [0.0, 1.0],
            ..HeatMap::default()
        };
        for layer in [Layer::Line(line), Layer::HeatMap(map)] {
            let figure = Figure {
                panels: vec![Panel { layers: vec![layer], ..Panel::default() }],
                ..Figure::default()
            };
            let (whole, small) = (data(&framed(&figure, usize::MAX)), data(&framed(&figure, 10_000)));
            assert!(whole.to_string().len() > 50_000 && small.to_string().len() <= 10_000);
            if let Some(kept) = small["columns"][0].as_array() {
                let all = whole["columns"][0].as_array().unwrap();
                assert!(kept.iter().all(|value| all.contains(value)) && kept.last() == all.last());
                assert_eq!(small["panels"][0]["layers"][0]["of"], 5000);
            }
        }
    }

    #[test]
    fn the_table_stands_there_without_the_script() {
        let html = framed(&figure(), usize::MAX);
        let table = html.split("<table>").nth(1).unwrap().split("</table>").next().unwrap();
        assert!(table.contains("<th>ratio α<th>y"), "{table}");
        assert!(table.contains("<td>&lt;/script&gt; β<td>2<td>0.123457<td><td>"), "{table}");
        assert!(table.contains("<td>markers<td>4<td>3<td>2.75<td>3.25"), "{table}");
    }

    #[test]
    fn the_caption_is_the_alternative_text() {
        assert!(framed(&figure(), 9).contains("aria-label=\"a &lt; b and γ\""));
        let nameless = Figure { caption: None, ..figure() };
        assert!(framed(&nameless, 9).contains("against ratio α"));
    }

    #[test]
    fn a_bad_label_is_found_here_too() {
        let mut bad = figure();
        bad.panels[0].x.label = "$\\nosuch$".into();
        assert!(to_html(&bad).unwrap_err().to_string().contains("\\nosuch"));
    }
}
