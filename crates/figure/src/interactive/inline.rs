//! Text of a page with its formulas drawn as small SVGs: no font and no script is needed.

use std::collections::BTreeSet;

use super::escape;
use super::plain::plain;
use crate::svg;
use crate::tex::{self, Piece, Typesetter};

/// Turns labels into HTML and remembers which glyphs the page must define.
#[derive(Default)]
pub struct Prose {
    typesetter: Typesetter,
    glyphs: BTreeSet<(String, char)>,
}

impl Prose {
    /// A label as HTML: text escaped, formulas drawn. What cannot be set as TeX stands there as it was written.
    pub fn html(&mut self, label: &str) -> String {
        let Ok(pieces) = tex::pieces(label) else { return escape(label) };
        let mut html = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => html.push_str(&escape(&text)),
                // A single character that the text fonts lack; the page has others.
                Piece::Math { tex, .. } if tex.chars().count() == 1 && !tex.is_ascii() => html.push_str(&tex),
                Piece::Math { tex, .. } => html.push_str(&self.formula(&tex)),
            }
        }
        html
    }

    fn formula(&mut self, tex: &str) -> String {
        // Italics and accents reach a little beyond their boxes.
        const EDGE: f64 = 0.06;
        let source = format!("${tex}$");
        let Ok(set) = self.typesetter.set(&source) else { return escape(&source) };
        let (width, height, depth) = (set.width + 2.0 * EDGE, set.height + EDGE, set.depth + EDGE);
        let mut drawing = format!(
            "<svg class=\"tex\" role=\"img\" aria-label=\"{}\" viewBox=\"{} {} {} {}\" style=\"width:{}em;height:{}em;vertical-align:{}em\">",
            escape(&plain(&source)),
            units(-EDGE),
            units(-height),
            units(width),
            units(height + depth),
            short(width),
            short(height + depth),
            short(-depth)
        );
        drawing.push_str(&svg::outlines(&set.marks, "currentColor", &mut self.glyphs));
        drawing + "</svg>"
    }

    /// The outlines that all formulas so far refer to; stands once on the page.
    pub fn definitions(&self) -> String {
        if self.glyphs.is_empty() {
            return String::new();
        }
        let outlines: String =
            self.glyphs.iter().map(|(font, character)| svg::outline(font, *character)).collect();
        format!(
            "<svg width=\"0\" height=\"0\" style=\"position:absolute\" aria-hidden=\"true\"><defs>\n{outlines}</defs></svg>\n"
        )
    }
}

/// Thousandths of an em.
fn units(length: f64) -> String {
    format!("{:.0}", 1000.0 * length)
}

fn short(length: f64) -> String {
    svg::rounded(length, 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_drawn_and_text_is_escaped() {
        let mut prose = Prose::default();
        let html = prose.html("a < b, σ and $\\beta^2$ <script>");
        assert!(
            html.starts_with("a &lt; b, σ and <svg class=\"tex\" role=\"img\" aria-label=\"β^2\""),
            "{html}"
        );
        assert!(html.ends_with("</svg> &lt;script&gt;"), "{html}");
        let id = html.split("href=\"#").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        assert!(prose.definitions().contains(&format!("id=\"{id}\"")), "every glyph is defined");
    }

    #[test]
    fn what_is_no_tex_stands_as_written() {
        let mut prose = Prose::default();
        assert_eq!(prose.html("it costs $5 <b>"), "it costs $5 &lt;b&gt;");
        assert_eq!(prose.html("$\\nosuch<$"), "$\\nosuch&lt;$");
        assert!(prose.definitions().is_empty());
    }

    #[test]
    fn tex_that_asks_for_addresses_and_styles_writes_neither() {
        let mut prose = Prose::default();
        for label in [
            "$\\href{javascript:alert(8)}{x}$",
            "$\\htmlStyle{background:url(http://evil.example/)}{x}$",
            "$\\url{http://evil.example/}$",
            "$\\includegraphics{http://evil.example/}$",
        ] {
            let html = prose.html(label);
            let tags: Vec<&str> = html.split('<').skip(1).collect();
            for tag in tags {
                let tag = tag.split('>').next().unwrap();
                let label = tag.split("aria-label=\"").nth(1).and_then(|rest| rest.split('"').next());
                let tag = tag.replace(label.unwrap_or("\0"), "");
                assert!(!tag.contains("http") && !tag.contains("javascript"), "{html}");
            }
        }
    }
}
