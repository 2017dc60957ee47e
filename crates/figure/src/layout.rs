//! From a figure to a page: panels on a grid with margins measured from their labels.

use crate::check;
use crate::draw::{self, Context, legend};
use crate::error::{Error, Result};
use crate::figure::{Figure, Width};
use crate::label::Block;
use crate::plan::{Margins, PanelPlan, Sizes};
use crate::scene::{Rect, Role, Scene};
use crate::series::{Book, legend_of};
use crate::tex::Typesetter;

/// Lengths in points: around the page, between columns and rows of panels, and above the legend.
const PAD: f64 = 4.0;
const COLUMN_GAP: f64 = 12.0;
const ROW_GAP: f64 = 9.0;
const LEGEND_GAP: f64 = 9.0;
/// From the labels of a panel to the legend of its own.
const OWN_LEGEND_GAP: f64 = 4.0;
/// Height of a frame divided by its width.
pub(crate) const ASPECT: f64 = 0.7;
/// A frame narrower than this shows nothing.
const NARROWEST: f64 = 40.0;

/// Draws a figure on a page.
pub(crate) fn page(figure: &Figure) -> Result<Scene> {
    check::figure(figure)?;
    let (page, headroom) = attempt(figure, &vec![0.0; figure.panels.len()])?;
    // A legend that found no room gets some above the data.
    if headroom.iter().any(|&headroom| headroom > 0.0) { Ok(attempt(figure, &headroom)?.0) } else { Ok(page) }
}

/// Draws a figure, leaving a fraction of each panel empty at the top, and says which fractions its legends would need.
fn attempt(figure: &Figure, headroom: &[f64]) -> Result<(Scene, Vec<f64>)> {
    let typesetter = Typesetter::default();
    let book = Book::new(figure)?;
    let width = width(figure);
    let grid = Grid::new(figure, &typesetter, width, headroom)?;
    let mut wanted = Vec::new();
    let letters = letters(figure);
    let legend = legend::Layout::below(&typesetter, book.below_all(figure), width - 2.0 * PAD)?;
    let title = Block::fit(
        &typesetter,
        figure.title.as_deref().unwrap_or(""),
        1.15 * Sizes::PANEL.label,
        width - 2.0 * PAD,
    )?;

    let (mut items, mut placed) = (Vec::new(), Vec::new());
    title.draw(&mut items, width / 2.0, PAD, draw::BLACK);
    draw::group(&mut items, 0, Role::Heading);
    let mut top = PAD + if title.is_empty() { 0.0 } else { title.height() + ROW_GAP };
    let context = Context { typesetter: &typesetter, figure, book: &book };
    let (frame_width, frame_height) = grid.frame;
    for (row, panels) in figure.panels.chunks(grid.columns).enumerate() {
        let (above, below) = grid.row(row);
        top += above;
        let mut deepest = 0.0f64;
        let mut left = PAD;
        for (column, panel) in panels.iter().enumerate() {
            let index = row * grid.columns + column;
            let (before, after) = grid.column(column);
            left += before;
            let cell = Rect { left, top, right: left + frame_width, bottom: top + frame_height };
            let mut plan = grid.plans[index].clone();
            // Letters of a column stand below each other.
            plan.margins.left = before;
            let legend = legend_of(figure, panel);
            let mut drawn = draw::panel(&context, panel, &letters[index], &plan, cell, placed.len(), legend)?;
            let room = before + frame_width + after;
            let own = legend::Layout::below(&typesetter, book.below_panel(figure, placed.len()), room)?;
            if own.height() > 0.0 {
                let corner =
                    (left - before + (room - own.width()) / 2.0, cell.bottom + below + OWN_LEGEND_GAP);
                drawn.add_legend(&own, corner);
                deepest = deepest.max(OWN_LEGEND_GAP + own.height());
            }
            items.extend(drawn.items);
            placed.extend(drawn.placed);
            wanted.push(drawn.headroom);
            left += frame_width + after + COLUMN_GAP;
        }
        top += frame_height + below + deepest + ROW_GAP;
    }
    let mut height = top - ROW_GAP;
    if legend.height() > 0.0 {
        height += LEGEND_GAP;
        legend.draw(&mut items, (width - legend.width()) / 2.0, height, &Sizes::PANEL);
        height += legend.height();
    }
    let (title, description) = (figure.title.clone(), figure.caption.clone());
    Ok((Scene { width, height: height + PAD, title, description, items, panels: placed }, wanted))
}

fn width(figure: &Figure) -> f64 {
    let automatic = if figure.panels.len() == 1 { Width::ONE_COLUMN } else { Width::TWO_COLUMN };
    figure.width.unwrap_or(automatic).points()
}

/// Panels per row.
pub(crate) fn columns(figure: &Figure) -> usize {
    let automatic = match figure.panels.len() {
        0 | 1 => 1,
        2..=4 => 2,
        _ => 3,
    };
    figure.columns.unwrap_or(automatic).clamp(1, figure.panels.len().max(1))
}

/// The letter of every panel: as given, or (a), (b), …, (z), (aa), …
pub(crate) fn letters(figure: &Figure) -> Vec<String> {
    let letter = |index: usize| {
        let mut text = String::new();
        let mut rest = index + 1;
        while rest > 0 {
            rest -= 1;
            text.insert(0, char::from(b'a' + (rest % 26) as u8));
            rest /= 26;
        }
        format!("({text})")
    };
    let several = figure.panels.len() > 1;
    let given = |index: usize| figure.panels[index].label.clone();
    (0..figure.panels.len())
        .map(|i| given(i).unwrap_or_else(|| if several { letter(i) } else { String::new() }))
        .collect()
}

/// The panels planned for frames of one size.
struct Grid {
    columns: usize,
    frame: (f64, f64),
    plans: Vec<PanelPlan>,
    margins: Vec<Margins>,
}

impl Grid {
    /// Margins depend on the labels, these on the ticks, and these on the size of the frames, which the margins leave. The
    /// margins only grow from round to round, so this settles.
    fn new(figure: &Figure, typesetter: &Typesetter, width: f64, headroom: &[f64]) -> Result<Self> {
        let columns = columns(figure);
        let letters = letters(figure);
        let mut grid = Self {
            columns,
            frame: (0.0, 0.0),
            plans: Vec::new(),
            margins: vec![Margins::default(); figure.panels.len()],
        };
        for _ in 0..20 {
            let around: f64 =
                (0..columns).map(|column| grid.column(column)).map(|(left, right)| left + right).sum();
            let left = (width - 2.0 * PAD - around - COLUMN_GAP * (columns - 1) as f64) / columns as f64;
            if left < NARROWEST {
                return Err(Error::NoRoom { columns, width, left });
            }
            grid.frame = (left, figure.aspect.unwrap_or(ASPECT) * left);
            let plan = |(index, panel): (usize, _)| {
                PanelPlan::new(typesetter, panel, &letters[index], grid.frame, Sizes::PANEL, headroom[index])
            };
            grid.plans = figure.panels.iter().enumerate().map(plan).collect::<Result<_>>()?;
            let mut settled = true;
            for (known, plan) in grid.margins.iter_mut().zip(&grid.plans) {
                let grown = known.union(&plan.margins);
                settled &= grown == *known;
                *known = grown;
            }
            if settled {
                break;
            }
        }
        Ok(grid)
    }

    /// Room left and right of the frames of a column.
    fn column(&self, column: usize) -> (f64, f64) {
        let margins = self.margins.iter().skip(column).step_by(self.columns);
        let whole = margins.fold(Margins::default(), |whole, margins| whole.union(margins));
        (whole.left, whole.right)
    }

    /// Room above and below the frames of a row.
    fn row(&self, row: usize) -> (f64, f64) {
        let margins = self.margins.iter().skip(row * self.columns).take(self.columns);
        let whole = margins.fold(Margins::default(), |whole, margins| whole.union(margins));
        (whole.top, whole.bottom)
    }
}

impl Margins {
    fn union(&self, other: &Self) -> Self {
        Self {
            left: self.left.max(other.left),
            right: self.right.max(other.right),
            top: self.top.max(other.top),
            bottom: self.bottom.max(other.bottom),
        }
    }
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
