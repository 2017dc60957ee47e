//! The KaTeX fonts: bytes and outlines.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use ttf_parser::{Face, OutlineBuilder};

use crate::scene::{Path, Step};

/// Every KaTeX face by the name that the layout engine gives it, `Main-Regular` for `KaTeX_Main-Regular.ttf`.
static FACES: LazyLock<BTreeMap<&'static str, Cow<'static, [u8]>>> = LazyLock::new(|| {
    NAMES
        .iter()
        .filter_map(|&name| Some((name, ratex_katex_fonts::ttf_bytes(&format!("KaTeX_{name}.ttf"))?)))
        .collect()
});

const NAMES: [&str; 20] = [
    "AMS-Regular",
    "Caligraphic-Bold",
    "Caligraphic-Regular",
    "Fraktur-Bold",
    "Fraktur-Regular",
    "Main-Bold",
    "Main-BoldItalic",
    "Main-Italic",
    "Main-Regular",
    "Math-BoldItalic",
    "Math-Italic",
    "SansSerif-Bold",
    "SansSerif-Italic",
    "SansSerif-Regular",
    "Script-Regular",
    "Size1-Regular",
    "Size2-Regular",
    "Size3-Regular",
    "Size4-Regular",
    "Typewriter-Regular",
];

/// The licence of the fonts (SIL Open Font License 1.1), to be shipped with every program that carries them.
pub fn font_licence() -> String {
    ratex_katex_fonts::ttf_bytes("OFL.txt")
        .map_or_else(String::new, |text| String::from_utf8_lossy(&text).into_owned())
}

/// Names and files of all faces.
#[cfg(feature = "pdf")]
pub(crate) fn files() -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    FACES.iter().map(|(&name, bytes)| (name, bytes.to_vec()))
}

/// A letter that stands for a face in ids.
pub(crate) fn letter(font: &str) -> char {
    let place = NAMES.iter().position(|name| *name == font).unwrap_or(NAMES.len());
    char::from(b'a' + place as u8)
}

/// Whether `font` has a glyph for `character`.
pub(crate) fn has(font: &str, character: char) -> bool {
    face(font).and_then(|face| face.glyph_index(character)).is_some()
}

/// Outline of a glyph, 1 em = 1000 units, y down. Empty when the face has no such glyph.
pub(crate) fn outline(font: &str, character: char) -> Path {
    let Some(face) = face(font) else { return Path::default() };
    let Some(glyph) = face.glyph_index(character) else { return Path::default() };
    let mut pen = Outline { scale: 1000.0 / f64::from(face.units_per_em()), path: Path::default() };
    face.outline_glyph(glyph, &mut pen);
    pen.path
}

fn face(font: &str) -> Option<Face<'static>> {
    FACES.get(font).and_then(|bytes| Face::parse(bytes, 0).ok())
}

struct Outline {
    scale: f64,
    path: Path,
}

impl Outline {
    fn point(&self, x: f32, y: f32) -> (f64, f64) {
        (f64::from(x) * self.scale, -f64::from(y) * self.scale)
    }
}

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.point(x, y);
        self.path.0.push(Step::Move(x, y));
    }
    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.point(x, y);
        self.path.0.push(Step::Line(x, y));
    }
    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.point(x1, y1), self.point(x, y));
        self.path.0.push(Step::Quadratic([x1, y1, x, y]));
    }
    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.point(x1, y1), self.point(x2, y2), self.point(x, y));
        self.path.0.push(Step::Cubic([x1, y1, x2, y2, x, y]));
    }
    fn close(&mut self) {
        self.path.0.push(Step::Close);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_face_is_carried_and_the_licence_with_them() {
        for name in NAMES {
            assert!(face(name).is_some(), "{name}");
        }
        assert!(font_licence().contains("SIL OPEN FONT LICENSE"));
    }

    #[test]
    fn a_letter_has_an_outline_above_its_baseline() {
        let outline = outline("Main-Regular", 'x');
        assert!(outline.0.iter().any(|step| matches!(step, Step::Line(_, y) if *y < -100.0)));
        assert!(!has("Main-Regular", '\u{4e00}'));
    }
}
