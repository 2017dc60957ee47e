//! Legends: rows below the figure, or columns inside a panel.

use super::{BLACK, Canvas, curves, fill, group, histogram, pen, points};
use crate::entries::Entry;
use crate::error::Result;
use crate::label::Block;
use crate::layer::Stroke;
use crate::plan::Sizes;
use crate::scene::{Item, Path, Rect, Role};
use crate::tex::Typesetter;

/// Lengths in points: the sample of line and marker, from it to the text, between columns and between rows.
const SAMPLE: f64 = 20.0;
const GAP: f64 = 5.0;
const COLUMN_GAP: f64 = 14.0;
const ROW_GAP: f64 = 2.5;

/// A legend laid out in columns.
pub(crate) struct Layout {
    entries: Vec<(Entry, Block)>,
    columns: usize,
    /// Filled row by row (below a figure) or column by column (inside a panel).
    by_rows: bool,
    column_widths: Vec<f64>,
    row_heights: Vec<f64>,
}

impl Layout {
    fn new(entries: Vec<(Entry, Block)>, columns: usize, by_rows: bool) -> Self {
        let columns = columns.clamp(1, entries.len().max(1));
        let rows = entries.len().div_ceil(columns);
        // Filling column by column may leave the last ones empty.
        let columns = if by_rows { columns } else { entries.len().div_ceil(rows.max(1)).max(1) };
        let mut layout = Self {
            entries,
            columns,
            by_rows,
            column_widths: vec![0.0; columns],
            row_heights: vec![0.0; rows],
        };
        for index in 0..layout.entries.len() {
            let (column, row) = layout.place(index);
            let text = &layout.entries[index].1;
            layout.column_widths[column] = layout.column_widths[column].max(SAMPLE + GAP + text.width());
            layout.row_heights[row] = layout.row_heights[row].max(text.height());
        }
        layout
    }

    /// The fewest rows whose columns fit into `room`.
    pub(crate) fn below(typesetter: &Typesetter, entries: Vec<Entry>, room: f64) -> Result<Self> {
        let blocks = set(typesetter, entries, Sizes::PANEL.label, room)?;
        let count = blocks.len().max(1);
        let mut layout = Self::new(blocks, count, true);
        for rows in 2..=count {
            if layout.width() <= room {
                break;
            }
            layout = Self::new(layout.entries, count.div_ceil(rows), true);
        }
        Ok(layout)
    }

    fn place(&self, index: usize) -> (usize, usize) {
        if self.by_rows {
            (index % self.columns, index / self.columns)
        } else {
            (index / self.row_heights.len(), index % self.row_heights.len())
        }
    }

    pub(crate) fn width(&self) -> f64 {
        self.column_widths.iter().sum::<f64>() + COLUMN_GAP * (self.columns - 1) as f64
    }

    pub(crate) fn height(&self) -> f64 {
        self.row_heights.iter().sum::<f64>() + ROW_GAP * self.row_heights.len().saturating_sub(1) as f64
    }

    /// Draws the legend with its upper left corner at (left, top).
    pub(crate) fn draw(&self, items: &mut Vec<Item>, left: f64, top: f64, sizes: &Sizes) {
        for (index, (entry, text)) in self.entries.iter().enumerate() {
            let (column, row) = self.place(index);
            let x = left + self.column_widths[..column].iter().sum::<f64>() + COLUMN_GAP * column as f64;
            let y = top + self.row_heights[..row].iter().sum::<f64>() + ROW_GAP * row as f64;
            let text_top = y + (self.row_heights[row] - text.height()) / 2.0;
            let first = items.len();
            sample(items, entry, x, y + self.row_heights[row] / 2.0, sizes);
            text.draw_left(items, x + SAMPLE + GAP, text_top, BLACK);
            group(items, first, Role::Entry(entry.number));
        }
    }
}

fn set(typesetter: &Typesetter, entries: Vec<Entry>, size: f64, room: f64) -> Result<Vec<(Entry, Block)>> {
    let block = |entry: &Entry| Block::fit(typesetter, &entry.text, size, (room - SAMPLE - GAP).max(20.0));
    entries.into_iter().map(|entry| Ok((entry.clone(), block(&entry)?))).collect()
}

/// The parts of a series in small.
fn sample(items: &mut Vec<Item>, entry: &Entry, left: f64, y: f64, sizes: &Sizes) {
    let right = left + SAMPLE;
    let centre = f64::midpoint(left, right);
    if let Some(colour) = &entry.band {
        let band = Rect { left, right, top: y - 3.0, bottom: y + 3.0 };
        items.push(Item::Path { path: band.path(), fill: Some(fill(colour, curves::BAND)), pen: None });
    }
    if let Some(colour) = &entry.bar {
        let bar = Rect { left: left + 3.0, right: right - 3.0, top: y - 3.0, bottom: y + 3.0 };
        items.push(Item::Path { path: bar.path(), fill: Some(fill(colour, histogram::BAR)), pen: None });
    }
    if let Some((colour, stroke)) = &entry.line {
        let mut path = Path::default();
        path.segment(left, y, right, y);
        items.push(Item::Path { path, fill: None, pen: Some(pen(colour, sizes.curve, *stroke)) });
    }
    if let Some((colour, marker)) = &entry.marker {
        if entry.line.is_none() && entry.errors {
            let mut path = Path::default();
            path.segment(centre, y - 4.0, centre, y + 4.0);
            items.push(Item::Path {
                path,
                fill: None,
                pen: Some(pen(colour, 0.75 * sizes.curve, Stroke::Solid)),
            });
        }
        let mut path = Path::default();
        points::shape(&mut path, *marker, centre, y, sizes.marker);
        items.push(points::marks(path, *marker, colour, 0.8 * sizes.curve));
    }
}

/// A legend may hide this many cells of ink (2 pt wide each): a curve that grazes its corner.
const GRAZING: f64 = 4.0;

/// Draws a legend inside a panel, in as many columns and at such a place that it hides least. If it still hides data, the
/// answer is the fraction of the frame that would have to be empty at the top; zero otherwise.
pub(super) fn inside(canvas: &mut Canvas, entries: &[Entry], items: &mut Vec<Item>) -> Result<f64> {
    if entries.is_empty() {
        return Ok(0.0);
    }
    let frame = canvas.view.frame;
    let pad = 1.5 * canvas.sizes.major;
    let room = frame.width() - 2.0 * pad;
    let blocks = set(canvas.context.typesetter, entries.to_vec(), 0.9 * canvas.sizes.label, room)?;
    let mut best: Option<(f64, f64, Rect, Layout)> = None;
    let mut lowest = f64::INFINITY;
    for columns in 1..=4.min(entries.len()) {
        let layout = Layout::new(blocks.clone(), columns, false);
        let too_large =
            (layout.width() - room).max(0.0) + (layout.height() - frame.height() + 2.0 * pad).max(0.0);
        let (place, ink) = canvas.occupancy.emptiest(layout.width(), layout.height(), pad);
        if layout.width() <= room {
            lowest = lowest.min(layout.height());
        }
        // One column reads best; a second must save something. Reaching over the frame is worst.
        let cost = ink + 2.0 * (columns - 1) as f64 + 1e3 * too_large;
        if best.as_ref().is_none_or(|(least, ..)| cost < *least) {
            best = Some((cost, ink, place, layout));
        }
    }
    let mut headroom = 0.0;
    if let Some((_, ink, place, layout)) = best {
        items.push(Item::Path { path: place.grown(2.0).path(), fill: Some(fill("#ffffff", 0.8)), pen: None });
        layout.draw(items, place.left, place.top, &canvas.sizes);
        canvas.occupancy.add_box(&place, 3.0);
        if ink > GRAZING && lowest.is_finite() {
            headroom = ((lowest + 2.0 * pad) / frame.height()).min(0.5);
        }
    }
    Ok(headroom)
}
