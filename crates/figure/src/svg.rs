//! Scene to SVG.

use std::collections::BTreeSet;
use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::fonts;
use crate::scene::{Fill, Item, Path, Pen, Rect, Scene, Step, Text};
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
        let _ = write!(
            self.body,
            "<g transform=\"translate({} {}){turn}\" fill=\"{}\"><title>{}</title>",
            number(text.x),
            number(text.y),
            text.colour,
            escape(&text.typeset.source)
        );
        let size = text.size;
        for mark in &text.typeset.marks {
            match mark {
                Mark::Glyph { x, y, scale, font, character } if self.glyphs == Glyphs::Outlines => {
                    self.outlines.insert((font.clone(), *character));
                    let scale = scale * size / 1000.0;
                    let _ = write!(
                        self.body,
                        "<use href=\"#{}\" transform=\"translate({} {}) scale({scale:.5})\"/>",
                        glyph_id(font, *character),
                        number(x * size),
                        number(y * size)
                    );
                }
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
                    let path = scaled(path, size);
                    let paint = if *filled {
                        String::new()
                    } else {
                        // Rules of TeX are 0.04 em thick.
                        format!(
                            " fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"",
                            text.colour,
                            number(0.04 * size)
                        )
                    };
                    let _ = write!(self.body, "<path d=\"{}\"{paint}/>", path_data(&path, 3));
                }
            }
        }
        self.body.push_str("</g>\n");
    }
}

// Ids are made of what they name. The same id in two figures of one page therefore stands for the same thing, and a figure has
// the same bytes in its own file and in the page.

/// Id of a glyph: `Main-Regular-78` for x.
pub(crate) fn glyph_id(font: &str, character: char) -> String {
    format!("{font}-{:x}", u32::from(character))
}

/// The definition of a glyph, 1000 units to the em.
pub(crate) fn outline(font: &str, character: char) -> String {
    format!(
        "<path id=\"{}\" d=\"{}\"/>\n",
        glyph_id(font, character),
        path_data(&fonts::outline(font, character), 0)
    )
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

fn path_data(path: &Path, digits: usize) -> String {
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

fn rounded(value: f64, digits: usize) -> String {
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
