//! Scene to SVG.

use std::collections::BTreeSet;
use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::fonts;
use crate::scene::{Fill, Item, Path, Pen, Rect, Role, Scene, Step, Text};
use crate::tex::Mark;

/// How glyphs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Glyphs {
    /// As outlines: looks the same everywhere and needs no font.
    Outlines,
    /// As characters of the KaTeX faces, each a font family of its own, for a converter that has them.
    #[cfg_attr(not(feature = "pdf"), allow(dead_code))]
    Characters,
}

pub(crate) fn write(scene: &Scene, glyphs: Glyphs) -> String {
    let mut writer = Writer { glyphs, outlines: BTreeSet::new(), clips: Vec::new(), body: String::new() };
    for item in &scene.items {
        writer.item(item);
    }
    writer.document(scene)
}

struct Writer {
    glyphs: Glyphs,
    /// Each (font, character) used.
    outlines: BTreeSet<(String, char)>,
    clips: Vec<Rect>,
    body: String,
}

// Writing to a String cannot fail, hence the ignored results of `write!` below.
impl Writer {
    fn document(self, scene: &Scene) -> String {
        let (width, height) = (number(scene.width), number(scene.height));
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}pt\" height=\"{height}pt\" viewBox=\"0 0 {width} {height}\">\n"
        );
        if let Some(title) = &scene.title {
            let _ = writeln!(out, "<title>{}</title>", escape(title));
        }
        if let Some(description) = &scene.description {
            let _ = writeln!(out, "<desc>{}</desc>", escape(description));
        }
        if !(self.outlines.is_empty() && self.clips.is_empty()) {
            out.push_str("<defs>\n");
            for (font, character) in &self.outlines {
                out.push_str(&outline(font, *character));
            }
            for clip in &self.clips {
                let _ = writeln!(
                    out,
                    "<clipPath id=\"{}\"><path d=\"{}\"/></clipPath>",
                    clip_id(clip),
                    path_data(&clip.path(), 2)
                );
            }
            out.push_str("</defs>\n");
        }
        let _ = writeln!(out, "<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>");
        out.push_str(&self.body);
        out.push_str("</svg>\n");
        out
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Path { path, fill, pen } => self.path(path, fill.as_ref(), pen.as_ref()),
            Item::Text(text) => self.text(text),
            Item::Image { place, png } => {
                // Browsers sharpen by the style, usvg by the attribute.
                let _ = writeln!(
                    self.body,
                    "<image x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" preserveAspectRatio=\"none\" image-rendering=\"optimizeSpeed\" style=\"image-rendering:pixelated\" href=\"data:image/png;base64,{}\"/>",
                    number(place.left),
                    number(place.top),
                    number(place.width()),
                    number(place.height()),
                    STANDARD.encode(png)
                );
            }
            Item::Clipped { to, items } => {
                if !self.clips.contains(to) {
                    self.clips.push(*to);
                }
                let _ = writeln!(self.body, "<g clip-path=\"url(#{})\">", clip_id(to));
                for item in items {
                    self.item(item);
                }
                self.body.push_str("</g>\n");
            }
            Item::Group { role, items } => {
                let _ = writeln!(self.body, "<g {}>", attributes(*role));
                for item in items {
                    self.item(item);
                }
                self.body.push_str("</g>\n");
            }
        }
    }

    fn path(&mut self, path: &Path, fill: Option<&Fill>, pen: Option<&Pen>) {
        if path.0.is_empty() {
            return;
        }
        let _ = write!(self.body, "<path d=\"{}\"", path_data(path, 2));
        match fill {
            Some(fill) => {
                let _ = write!(self.body, " fill=\"{}\"", fill.colour);
                if fill.opacity < 1.0 {
                    let _ = write!(self.body, " fill-opacity=\"{}\"", number(fill.opacity));
                }
            }
            None => self.body.push_str(" fill=\"none\""),
        }
        if let Some(pen) = pen {
            let _ = write!(self.body, " stroke=\"{}\" stroke-width=\"{}\"", pen.colour, number(pen.width));
            self.body.push_str(" stroke-linejoin=\"round\"");
            if !pen.dashes.is_empty() {
                let dashes: Vec<String> = pen.dashes.iter().map(|&length| number(length)).collect();
                let _ = write!(self.body, " stroke-dasharray=\"{}\"", dashes.join(" "));
            }
        }
        self.body.push_str("/>\n");
    }

    fn text(&mut self, text: &Text) {
        let turn = if text.upright { " rotate(-90)" } else { "" };
        // Outlines are drawn in thousandths of an em.
        let scale = match self.glyphs {
            Glyphs::Outlines => format!(" scale({})", rounded(text.size / 1000.0, 6)),
            Glyphs::Characters => String::new(),
        };
        let _ = write!(
            self.body,
            "<g transform=\"translate({} {}){turn}{scale}\" fill=\"{}\"><title>{}</title>",
            number(text.x),
            number(text.y),
            text.colour,
            escape(&text.typeset.source)
        );
        match self.glyphs {
            Glyphs::Outlines => {
                let marks = outlines(&text.typeset.marks, &text.colour, &mut self.outlines);
                self.body.push_str(&marks);
            }
            Glyphs::Characters => self.characters(text),
        }
        self.body.push_str("</g>\n");
    }

    fn characters(&mut self, text: &Text) {
        let size = text.size;
        for mark in &text.typeset.marks {
            match mark {
                Mark::Glyph { x, y, scale, font, character } => {
                    let _ = write!(
                        self.body,
                        "<text x=\"{}\" y=\"{}\" font-family=\"KaTeX_{font}\" font-size=\"{}\">{}</text>",
                        number(x * size),
                        number(y * size),
                        number(scale * size),
                        escape(&character.to_string())
                    );
                }
                Mark::Shape { path, filled } => {
                    let paint = if *filled { String::new() } else { rule(&text.colour, RULE * size) };
                    let data = path_data(&scaled(path, size), 3);
                    let _ = write!(self.body, "<path d=\"{data}\"{paint}/>");
                }
            }
        }
    }
}

/// Thickness of the rules of TeX in em.
const RULE: f64 = 0.04;

fn rule(colour: &str, width: f64) -> String {
    format!(" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{}\"", number(width))
}

/// The ink of a label in thousandths of an em, as outlines; `used` learns which glyphs must be defined.
pub(crate) fn outlines(marks: &[Mark], colour: &str, used: &mut BTreeSet<(String, char)>) -> String {
    let mut out = String::new();
    for mark in marks {
        match mark {
            Mark::Glyph { x, y, scale, font, character } => {
                used.insert((font.clone(), *character));
                let (id, x, y) = (glyph_id(font, *character), rounded(1000.0 * x, 0), rounded(1000.0 * y, 0));
                let _ = if *scale == 1.0 {
                    let x = if x == "0" { String::new() } else { format!(" x=\"{x}\"") };
                    let y = if y == "0" { String::new() } else { format!(" y=\"{y}\"") };
                    write!(out, "<use href=\"#{id}\"{x}{y}/>")
                } else {
                    let scale = rounded(*scale, 3);
                    write!(out, "<use href=\"#{id}\" transform=\"translate({x} {y}) scale({scale})\"/>")
                };
            }
            Mark::Shape { path, filled } => {
                let paint = if *filled { String::new() } else { rule(colour, 1000.0 * RULE) };
                let _ = write!(out, "<path d=\"{}\"{paint}/>", path_data(&scaled(path, 1000.0), 0));
            }
        }
    }
    out
}

// Ids are made of what they name. The same id in two figures of one page therefore stands for the same thing, and a figure has
// the same bytes in its own file and in the page.

/// Id of a glyph: `gi-78` for x of the ninth face.
pub(crate) fn glyph_id(font: &str, character: char) -> String {
    format!("g{}-{:x}", fonts::letter(font), u32::from(character))
}

/// The definition of a glyph, 1000 units to the em.
pub(crate) fn outline(font: &str, character: char) -> String {
    format!(
        "<path id=\"{}\" d=\"{}\"/>\n",
        glyph_id(font, character),
        path_data(&fonts::outline(font, character), 0)
    )
}

/// How the script of a page finds a group.
fn attributes(role: Role) -> String {
    match role {
        Role::Heading => "class=\"heading\"".to_owned(),
        Role::Panel(number) => format!("class=\"panel\" data-panel=\"{number}\""),
        Role::Layer { layer, series } => {
            let series = series.map_or(String::new(), |number| format!(" data-series=\"{number}\""));
            format!("data-layer=\"{layer}\"{series}")
        }
        Role::Bars => "class=\"bars\"".to_owned(),
        Role::Ticks => "class=\"ticks\"".to_owned(),
        Role::Note => "class=\"note\"".to_owned(),
        Role::Entry(series) => format!("class=\"entry\" data-series=\"{series}\""),
    }
}

fn clip_id(clip: &Rect) -> String {
    let corners = [clip.left, clip.top, clip.right, clip.bottom].map(number);
    format!("clip-{}", corners.join("-"))
}

fn scaled(path: &Path, by: f64) -> Path {
    Path(
        path.0
            .iter()
            .map(|step| match *step {
                Step::Move(x, y) => Step::Move(x * by, y * by),
                Step::Line(x, y) => Step::Line(x * by, y * by),
                Step::Quadratic(points) => Step::Quadratic(points.map(|value| value * by)),
                Step::Cubic(points) => Step::Cubic(points.map(|value| value * by)),
                Step::Close => Step::Close,
            })
            .collect(),
    )
}

pub(crate) fn path_data(path: &Path, digits: usize) -> String {
    let mut data = String::new();
    let mut put = |letter: char, values: &[f64]| {
        data.push(letter);
        for (index, &value) in values.iter().enumerate() {
            let text = rounded(value, digits);
            if index > 0 && !text.starts_with('-') {
                data.push(' ');
            }
            data.push_str(&text);
        }
    };
    for step in &path.0 {
        match *step {
            Step::Move(x, y) => put('M', &[x, y]),
            Step::Line(x, y) => put('L', &[x, y]),
            Step::Quadratic(points) => put('Q', &points),
            Step::Cubic(points) => put('C', &points),
            Step::Close => put('Z', &[]),
        }
    }
    data
}

/// A length in points to 1/100: the smallest step anyone can see is twenty times that.
fn number(value: f64) -> String {
    rounded(value, 2)
}

pub(crate) fn rounded(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML 1.0 has no other control characters.
            control if control.is_control() && !matches!(control, '\n' | '\t') => {}
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_never_minus_zero() {
        assert_eq!(
            [1.0, -0.001, 2.5, 4.14501, -7.0, 100.0].map(number),
            ["1", "0", "2.5", "4.15", "-7", "100"]
        );
    }

    #[test]
    fn path_data_separates_numbers() {
        let mut path = Path::default();
        path.polyline(&[(1.0, 2.0), (3.25, -4.0)]);
        assert_eq!(path_data(&path, 2), "M1 2L3.25-4");
    }

    #[test]
    fn control_characters_do_not_reach_the_document() {
        assert_eq!(escape("a<b>&\"\u{1}c"), "a&lt;b&gt;&amp;&quot;c");
    }
}
