//! What stands around one frame of a given size, and how much room it needs.

use std::rc::Rc;

use crate::error::Result;
use crate::figure::{Axis, Panel};
use crate::label::Block;
use crate::layer::{ColourMap, HeatMap, Layer};
use crate::scale::{self, Scale};
use crate::tex::{Typeset, Typesetter};
use crate::ticks::{self, Ticks};

/// Sizes in points.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) label: f64,
    pub(crate) tick_label: f64,
    pub(crate) major: f64,
    pub(crate) minor: f64,
    /// From the frame to tick labels, and from these to the axis label.
    pub(crate) gap: f64,
    pub(crate) pen: f64,
    pub(crate) curve: f64,
    pub(crate) marker: f64,
}

impl Sizes {
    pub(crate) const PANEL: Self = Self {
        label: 9.0,
        tick_label: 8.0,
        major: 4.0,
        minor: 2.2,
        gap: 3.5,
        pen: 0.7,
        curve: 1.2,
        marker: 2.3,
    };
    pub(crate) const INSET: Self = Self {
        label: 7.0,
        tick_label: 6.0,
        major: 2.6,
        minor: 1.5,
        gap: 2.4,
        pen: 0.5,
        curve: 0.8,
        marker: 1.5,
    };
}

/// Room around a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Margins {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
}

/// An axis ready to be drawn.
#[derive(Clone, Debug)]
pub(crate) struct AxisPlan {
    pub(crate) scale: Scale,
    pub(crate) ticks: Ticks,
    pub(crate) labels: Vec<Rc<Typeset>>,
    pub(crate) note: Option<Rc<Typeset>>,
    pub(crate) label: Block,
    /// Size of the tick labels.
    pub(crate) size: f64,
}

/// A colour bar ready to be drawn.
#[derive(Clone, Debug)]
pub(crate) struct BarPlan {
    pub(crate) axis: AxisPlan,
    pub(crate) map: ColourMap,
    /// Whether the label stands above the bar, or else upright beside it.
    pub(crate) above: bool,
    /// Room from the frame of the panel to the end of the bar's labels.
    pub(crate) room: f64,
}

/// A panel ready to be drawn in a frame.
#[derive(Clone, Debug)]
pub(crate) struct PanelPlan {
    pub(crate) sizes: Sizes,
    pub(crate) x: AxisPlan,
    pub(crate) y: AxisPlan,
    pub(crate) bar: Option<BarPlan>,
    pub(crate) letter: Option<Rc<Typeset>>,
    pub(crate) title: Block,
    pub(crate) margins: Margins,
}

/// From the frame to its colour bar, and the width of the bar.
pub(crate) const BAR_GAP: f64 = 6.0;
pub(crate) const BAR_WIDTH: f64 = 8.0;
/// Size of the panel letter.
pub(crate) const LETTER: f64 = 10.0;

impl PanelPlan {
    /// Plans `panel` for a frame of `width` × `height`; a colour bar takes its room from the width. An automatic y axis leaves the
    /// fraction `headroom` of the frame empty at the top.
    pub(crate) fn new(
        typesetter: &Typesetter,
        panel: &Panel,
        letter: &str,
        (width, height): (f64, f64),
        sizes: Sizes,
        headroom: f64,
    ) -> Result<Self> {
        let [x, mut y] = scale::scales(panel, letter)?;
        let fixed =
            panel.y.range.is_some() || panel.layers.iter().any(|layer| matches!(layer, Layer::HeatMap(_)));
        if !fixed {
            y = y.with_headroom(headroom);
        }
        let bar = panel.layers.iter().find_map(|layer| match layer {
            Layer::HeatMap(map) if map.bar.is_some() => Some(map),
            _ => None,
        });
        let bar = bar.map(|map| BarPlan::new(typesetter, map, letter, height, sizes)).transpose()?;
        let frame_width = width - bar.as_ref().map_or(0.0, |bar| bar.room);
        let x = AxisPlan::new(typesetter, &panel.x, x, frame_width, Direction::Across, sizes)?;
        let y = AxisPlan::new(typesetter, &panel.y, y, height, Direction::Up, sizes)?;
        let title = Block::fit(typesetter, panel.title.as_deref().unwrap_or(""), sizes.label, frame_width)?;
        let shown = if sizes.label == Sizes::INSET.label { "" } else { letter };
        let letter = (!shown.is_empty()).then(|| typesetter.set_bold(shown)).transpose()?;
        let mut plan = Self { sizes, x, y, bar, letter, title, margins: Margins::default() };
        plan.margins = plan.measure((frame_width, height));
        Ok(plan)
    }

    fn measure(&self, (width, height): (f64, f64)) -> Margins {
        let Self { sizes, x, y, bar, letter, title, .. } = self;
        let gap = sizes.gap;
        let mut left = y.widest() + gap;
        if !y.label.is_empty() {
            left += y.label.height() + gap;
        }
        if let Some(letter) = letter {
            left = left.max(letter.width * LETTER + gap);
        }
        let (mut right, mut bottom) = (1.0, 2.0 * gap);
        for (tick, label) in x.ticks.major.iter().zip(&x.labels) {
            let (place, half) = (x.scale.fraction(tick.value) * width, label.width * sizes.tick_label / 2.0);
            left = left.max(half - place);
            right = f64::max(right, place + half - width);
        }
        if bar.is_some() {
            right = 0.0;
        }
        if !x.labels.is_empty() {
            bottom = x_label_gap(sizes) + x.tallest() + gap;
        }
        bottom += self.x_note_line(width) + x.label.height();
        if let (0.0, Some(note)) = (self.x_note_line(width), &x.note) {
            bottom += ((note.height + note.depth) * sizes.tick_label - x.label.height()).max(0.0);
        }
        let mut top = 1.0;
        for (tick, label) in y.ticks.major.iter().zip(&y.labels) {
            let half = (label.height + label.depth) * sizes.tick_label / 2.0;
            let place = y.scale.fraction(tick.value) * height;
            top = f64::max(top, place + half - height);
            bottom = bottom.max(half - place);
        }
        // Directly above the frame stand the letter (to its left), the factor of the y axis, or a title, and (to its right)
        // what belongs to the bar. A title gives way to the factor.
        let letter = letter.as_ref().map_or(0.0, |letter| (letter.height + letter.depth) * LETTER + gap);
        let title = if title.is_empty() { 0.0 } else { title.height() + gap };
        let above_bar = bar.as_ref().map_or(0.0, |bar| bar.above(height, sizes));
        top = top.max(letter).max(self.note_line() + title).max(above_bar);
        Margins { left, right, top, bottom }
    }

    /// Height of the line that the factor of the x axis needs for itself; zero if it fits beside the label, at the right end
    /// of its line.
    pub(crate) fn x_note_line(&self, width: f64) -> f64 {
        let Some(note) = &self.x.note else { return 0.0 };
        let size = self.sizes.tick_label;
        let beside = self.x.label.width() + 2.0 * (note.width * size + self.sizes.gap) <= width;
        if beside { 0.0 } else { (note.height + note.depth) * size + self.sizes.gap }
    }

    /// Height of the factor above the y axis, with its gap.
    pub(crate) fn note_line(&self) -> f64 {
        self.y
            .note
            .as_ref()
            .map_or(0.0, |note| (note.height + note.depth) * self.sizes.tick_label + self.sizes.gap)
    }
}

/// From the frame to the tops of the tick labels below it: more than half the height of a tick label, so that the
/// first label of x and the lowest of y cannot meet.
pub(crate) fn x_label_gap(sizes: &Sizes) -> f64 {
    sizes.gap + 0.2 * sizes.tick_label
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Across,
    Up,
}

impl AxisPlan {
    fn new(
        typesetter: &Typesetter,
        axis: &Axis,
        scale: Scale,
        length: f64,
        direction: Direction,
        sizes: Sizes,
    ) -> Result<Self> {
        let size = sizes.tick_label;
        let set = |ticks: &Ticks| {
            ticks.major.iter().map(|tick| typesetter.set(&tick.label)).collect::<Result<Vec<_>>>()
        };
        let ticks = ticks::choose(&scale, axis.ticks.as_deref(), length, |ticks| {
            let labels = set(ticks)?;
            let spans: Vec<(f64, f64)> = ticks
                .major
                .iter()
                .zip(&labels)
                .map(|(tick, label)| {
                    let half =
                        size * if direction == Direction::Across {
                            label.width
                        } else {
                            label.height + label.depth
                        } / 2.0;
                    let place = scale.fraction(tick.value) * length;
                    (place - half, place + half)
                })
                .collect();
            // Room between labels: a good two thirds of their height.
            Ok(spans.windows(2).all(|pair| pair[1].0 - pair[0].1 >= 0.9 * size))
        })?;
        let labels = set(&ticks)?;
        let note = ticks.note.as_deref().map(|note| typesetter.set(note)).transpose()?;
        let label = Block::fit(typesetter, &axis.label, sizes.label, length.max(20.0))?;
        Ok(Self { scale, ticks, labels, note, label, size })
    }

    /// Width of the widest tick label.
    pub(crate) fn widest(&self) -> f64 {
        self.labels.iter().fold(0.0f64, |widest, label| widest.max(label.width)) * self.size
    }

    /// Height of the tick labels on a common baseline: (above it, below it).
    pub(crate) fn rise(&self) -> (f64, f64) {
        let above = self.labels.iter().fold(0.0f64, |above, label| above.max(label.height));
        let below = self.labels.iter().fold(0.0f64, |below, label| below.max(label.depth));
        (above * self.size, below * self.size)
    }

    fn tallest(&self) -> f64 {
        let (above, below) = self.rise();
        above + below
    }
}

impl BarPlan {
    fn new(typesetter: &Typesetter, map: &HeatMap, panel: &str, height: f64, sizes: Sizes) -> Result<Self> {
        let values = map.values.iter().flat_map(|row| row.iter().copied());
        let scale = scale::colour_scale(values, map.range, map.map == ColourMap::Diverging, panel)?;
        let label = map.bar.as_ref().map_or("", |bar| &bar.label);
        let axis = Axis { label: label.to_owned(), ..Axis::default() };
        let axis = AxisPlan::new(typesetter, &axis, scale, height, Direction::Up, sizes)?;
        let beside = BAR_GAP + BAR_WIDTH + sizes.gap + axis.widest();
        // A short label stands above the bar; a long one would hang over the panel.
        let above = axis.label.width() <= BAR_WIDTH + axis.widest();
        let upright = if above { 0.0 } else { sizes.gap + axis.label.height() };
        let note = axis.note.as_ref().map_or(0.0, |note| note.width * sizes.tick_label);
        // The factor starts at the bar and must not pass the room on the right.
        let room = (beside + upright).max(BAR_GAP + note) + 1.0;
        Ok(Self { axis, map: map.map, above, room })
    }

    /// From the top of the bar to what stands above it: a tick label at its end rises beside wide text.
    pub(crate) fn clearance(&self, height: f64, sizes: &Sizes) -> f64 {
        let widest = self.axis.note.as_ref().map_or(0.0, |note| note.width * sizes.tick_label);
        let widest = widest.max(if self.above { self.axis.label.width() } else { 0.0 });
        if widest <= BAR_WIDTH {
            return sizes.gap;
        }
        let tops = self.axis.ticks.major.iter().zip(&self.axis.labels).map(|(tick, label)| {
            let half = (label.height + label.depth) * sizes.tick_label / 2.0;
            self.axis.scale.fraction(tick.value) * height + half - height
        });
        sizes.gap + tops.fold(0.0, f64::max)
    }

    /// Room that label and factor need above the bar.
    fn above(&self, height: f64, sizes: &Sizes) -> f64 {
        let note = self
            .axis
            .note
            .as_ref()
            .map_or(0.0, |note| (note.height + note.depth) * sizes.tick_label + sizes.gap);
        let label = if self.above { self.axis.label.height() } else { 0.0 };
        if note + label > 0.0 { self.clearance(height, sizes) + note + label } else { 0.0 }
    }
}
