//! What is on the page, in points, y down: paths, text, images, clipped groups. Every output format starts here.

use std::rc::Rc;

use crate::plan::Margins;
use crate::scale::View;
use crate::tex::Typeset;

/// A page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scene {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) items: Vec<Item>,
    /// Where the panels are, each followed by its insets: the order of their numbers in [`Role::Panel`].
    pub(crate) panels: Vec<Placed>,
}

/// Where a panel or an inset is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    pub(crate) view: View,
    /// The frame with its labels.
    pub(crate) outer: Rect,
    pub(crate) inset: bool,
    /// Radius of its markers.
    pub(crate) marker: f64,
}

/// What a group of items is. The script of a page finds its parts by this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Heading above all panels.
    Heading,
    /// A panel or inset, by its number on the page.
    Panel(usize),
    /// A layer, by its place among the layers of the panel, and the number of its series in the figure.
    Layer { layer: usize, series: Option<usize> },
    /// Error bars of a layer.
    Bars,
    /// Ticks and their labels.
    Ticks,
    /// A label that belongs to a place in the panel.
    Note,
    /// A line of a legend, by the number of its series.
    Entry(usize),
}

/// One thing on the page.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Path {
        path: Path,
        fill: Option<Fill>,
        pen: Option<Pen>,
    },
    Text(Text),
    /// An image of square-cornered pixels, stretched over `place`.
    Image {
        place: Rect,
        png: Vec<u8>,
    },
    Clipped {
        to: Rect,
        items: Vec<Item>,
    },
    Group {
        role: Role,
        items: Vec<Item>,
    },
}

/// Filling of a path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fill {
    pub(crate) colour: String,
    pub(crate) opacity: f64,
}

/// Stroke of a path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pen {
    pub(crate) colour: String,
    pub(crate) width: f64,
    /// Lengths of dashes and gaps; empty for an unbroken line.
    pub(crate) dashes: &'static [f64],
}

/// A typeset label. (x, y) is the left end of its baseline; a label turned upright reads upwards.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) typeset: Rc<Typeset>,
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) size: f64,
    pub(crate) upright: bool,
    pub(crate) colour: String,
}

impl Text {
    #[cfg(test)]
    /// The box around the ink (by the font's own metrics).
    pub(crate) fn bounds(&self) -> Rect {
        let Typeset { width, height, depth, .. } = *self.typeset;
        let (width, height, depth) = (width * self.size, height * self.size, depth * self.size);
        if self.upright {
            Rect { left: self.x - height, top: self.y - width, right: self.x + depth, bottom: self.y }
        } else {
            Rect { left: self.x, top: self.y - height, right: self.x + width, bottom: self.y + depth }
        }
    }
}

/// A rectangle with sides along the axes, y down.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rect {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
}

impl Rect {
    pub(crate) fn width(&self) -> f64 {
        self.right - self.left
    }
    pub(crate) fn height(&self) -> f64 {
        self.bottom - self.top
    }
    pub(crate) fn centre(&self) -> (f64, f64) {
        (f64::midpoint(self.left, self.right), f64::midpoint(self.top, self.bottom))
    }
    pub(crate) fn grown(&self, by: f64) -> Self {
        Self { left: self.left - by, top: self.top - by, right: self.right + by, bottom: self.bottom + by }
    }
    /// The rectangle with room around it.
    pub(crate) fn with(&self, margins: &Margins) -> Self {
        Self {
            left: self.left - margins.left,
            right: self.right + margins.right,
            top: self.top - margins.top,
            bottom: self.bottom + margins.bottom,
        }
    }
    pub(crate) fn shifted(&self, dx: f64, dy: f64) -> Self {
        Self { left: self.left + dx, top: self.top + dy, right: self.right + dx, bottom: self.bottom + dy }
    }
    pub(crate) fn path(&self) -> Path {
        let mut path = Path::default();
        path.polygon(&[
            (self.left, self.top),
            (self.right, self.top),
            (self.right, self.bottom),
            (self.left, self.bottom),
        ]);
        path
    }
    #[cfg(test)]
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
    #[cfg(test)]
    pub(crate) fn contains(&self, other: &Self) -> bool {
        self.left <= other.left
            && self.top <= other.top
            && self.right >= other.right
            && self.bottom >= other.bottom
    }
}

/// A path of lines and Bézier curves.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Path(pub(crate) Vec<Step>);

/// One step of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Step {
    Move(f64, f64),
    Line(f64, f64),
    Quadratic([f64; 4]),
    Cubic([f64; 6]),
    Close,
}

impl Path {
    pub(crate) fn segment(&mut self, x0: f64, y0: f64, x1: f64, y1: f64) {
        self.0.extend([Step::Move(x0, y0), Step::Line(x1, y1)]);
    }
    pub(crate) fn polyline(&mut self, points: &[(f64, f64)]) {
        for (index, &(x, y)) in points.iter().enumerate() {
            self.0.push(if index == 0 { Step::Move(x, y) } else { Step::Line(x, y) });
        }
    }
    pub(crate) fn polygon(&mut self, points: &[(f64, f64)]) {
        self.polyline(points);
        self.0.push(Step::Close);
    }
    /// A circle as four cubic arcs; 0.5523 makes them meet the circle at their middles.
    pub(crate) fn circle(&mut self, x: f64, y: f64, radius: f64) {
        let handle = 0.552_284_75 * radius;
        self.0.push(Step::Move(x + radius, y));
        for (cos, sin) in [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)] {
            // From angle φ to φ + 90°: e = (cos, sin), e' = (−sin, cos).
            let at =
                |along: f64, across: f64| (x + along * cos - across * sin, y + along * sin + across * cos);
            let ((x1, y1), (x2, y2), (x3, y3)) = (at(radius, handle), at(handle, radius), at(0.0, radius));
            self.0.push(Step::Cubic([x1, y1, x2, y2, x3, y3]));
        }
        self.0.push(Step::Close);
    }
}

impl Scene {
    /// Every label on the page, clipped groups included.
    #[cfg(test)]
    pub(crate) fn texts(&self) -> Vec<&Text> {
        fn collect<'a>(items: &'a [Item], texts: &mut Vec<&'a Text>) {
            for item in items {
                match item {
                    Item::Text(text) => texts.push(text),
                    Item::Clipped { items, .. } | Item::Group { items, .. } => collect(items, texts),
                    Item::Path { .. } | Item::Image { .. } => {}
                }
            }
        }
        let mut texts = Vec::new();
        collect(&self.items, &mut texts);
        texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_stays_within_three_parts_in_ten_thousand_of_its_radius() {
        let mut path = Path::default();
        path.circle(2.0, -1.0, 3.0);
        let mut from = (5.0, -1.0);
        for step in &path.0 {
            if let Step::Cubic([x1, y1, x2, y2, x3, y3]) = *step {
                for i in 0..=8 {
                    let t = f64::from(i) / 8.0;
                    let blend = |a: f64, b: f64, c: f64, d: f64| {
                        let s = 1.0 - t;
                        s * s * s * a + 3.0 * s * s * t * b + 3.0 * s * t * t * c + t * t * t * d
                    };
                    let (x, y) = (blend(from.0, x1, x2, x3), blend(from.1, y1, y2, y3));
                    assert!(((x - 2.0).hypot(y + 1.0) / 3.0 - 1.0).abs() < 3e-4);
                }
                from = (x3, y3);
            }
        }
        assert!((from.0 - 5.0).abs() < 1e-12 && (from.1 + 1.0).abs() < 1e-12);
    }
}
