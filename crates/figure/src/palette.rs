//! Colours, dash patterns and marker shapes of the series.

use crate::error::{Error, Result};
use crate::layer::{Colour, Marker, Stroke};

/// The seven colours of Okabe & Ito (2008), "Color Universal Design", ordered so that the first four are far apart in hue and
/// lightness, and five darker ones after them for figures with many series.
pub const COLOURS: [&str; 12] = [
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#882255", "#8A8A1F",
    "#6A51A3", "#8C564B", "#8C8C8C",
];

/// Guides, arrows and annotations.
pub const INK: &str = "#333333";

const MARKERS: [Marker; 8] = [
    Marker::Circle,
    Marker::Square,
    Marker::Triangle,
    Marker::Diamond,
    Marker::TriangleDown,
    Marker::Pentagon,
    Marker::Cross,
    Marker::Plus,
];
const STROKES: [Stroke; 4] = [Stroke::Solid, Stroke::Dashed, Stroke::DashDotted, Stroke::Dotted];
const RULED: [Stroke; 4] = [Stroke::Dashed, Stroke::Dotted, Stroke::DashDotted, Stroke::Solid];

/// Colour of series number `index`.
pub fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

/// Dash pattern of the curve of rank `rank` in series number `index`: every round through the colours takes the next.
pub fn stroke(index: usize, rank: usize) -> Stroke {
    STROKES[(index / COLOURS.len() + rank) % STROKES.len()]
}

/// Dash pattern of guide number `index`.
pub(crate) fn ruled(index: usize) -> Stroke {
    RULED[index % RULED.len()]
}

/// Marker of series number `index`. Eight shapes and twelve colours: a pair repeats after 24 series.
pub fn marker(index: usize) -> Marker {
    MARKERS[index % MARKERS.len()]
}

/// The colour as `#rrggbb`.
pub(crate) fn hex(colour: &Colour) -> Result<String> {
    match colour {
        Colour::Palette(index) => Ok(self::colour(*index).to_owned()),
        Colour::Hex(text) => {
            let digits = text.strip_prefix('#').unwrap_or("");
            if digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                Ok(text.clone())
            } else {
                Err(Error::Colour(text.clone()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_48_series_look_different_as_lines_and_24_as_markers() {
        let lines: Vec<_> = (0..48).map(|index| (colour(index), stroke(index, 0))).collect();
        let points: Vec<_> = (0..24).map(|index| (colour(index), marker(index))).collect();
        assert!((0..48).all(|i| (0..i).all(|j| lines[i] != lines[j])));
        assert!((0..24).all(|i| (0..i).all(|j| points[i] != points[j])));
    }

    #[test]
    fn only_six_hexadecimal_digits_are_a_colour() {
        assert_eq!(hex(&Colour::Hex("#12aBcD".into())).unwrap(), "#12aBcD");
        for wrong in ["red", "#12345", "#12345g", "123456", "#\"/><x", "#ééé"] {
            assert!(hex(&Colour::Hex(wrong.into())).is_err(), "{wrong}");
        }
    }
}
