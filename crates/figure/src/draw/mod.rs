//! Drawing a planned panel: one file per kind of layer.

mod annotation;
mod axes;
mod curves;
mod guides;
mod heat;
mod histogram;
mod inset;
pub(crate) mod legend;
mod points;

use crate::error::Result;
use crate::figure::{Figure, Legend, Panel};
use crate::layer::{Layer, Marker, Stroke};
use crate::place::Occupancy;
use crate::plan::{PanelPlan, Sizes};
use crate::scale::View;
use crate::scene::{Fill, Item, Path, Pen, Placed, Rect, Role};
use crate::series::{Book, Page, Style};
use crate::tex::Typesetter;

/// Frames, ticks and labels.
pub(crate) const BLACK: &str = "#1a1a1a";

/// What every panel of a figure shares.
pub(crate) struct Context<'a> {
    pub(crate) typesetter: &'a Typesetter,
    pub(crate) figure: &'a Figure,
    pub(crate) book: &'a Book,
}

/// A drawn panel, and where it and its insets went.
pub(crate) struct Drawn {
    pub(crate) items: Vec<Item>,
    pub(crate) placed: Vec<Placed>,
    /// Fraction of the frame to leave empty at the top for the legend, if there was no room for it.
    pub(crate) headroom: f64,
}

impl Drawn {
    /// Puts a legend below the panel, as a part of it: it moves with the panel on narrow pages.
    pub(crate) fn add_legend(&mut self, legend: &legend::Layout, (left, top): (f64, f64)) {
        if let (Some(Item::Group { items, .. }), Some(placed)) =
            (self.items.first_mut(), self.placed.first_mut())
        {
            legend.draw(items, left, top, &Sizes::PANEL);
            placed.outer.left = placed.outer.left.min(left);
            placed.outer.right = placed.outer.right.max(left + legend.width());
            placed.outer.bottom = top + legend.height();
        }
    }
}

/// A panel being drawn.
pub(crate) struct Canvas<'a> {
    context: &'a Context<'a>,
    /// Letter of the panel, for errors.
    name: &'a str,
    view: View,
    sizes: Sizes,
    /// Cut at the frame.
    inside: Vec<Item>,
    /// Above the frame, not cut.
    above: Vec<Item>,
    occupancy: Occupancy,
}

/// Draws `panel` in `cell`, the frame together with its colour bar.
pub(crate) fn panel(
    context: &Context,
    panel: &Panel,
    name: &str,
    plan: &PanelPlan,
    cell: Rect,
    number: usize,
    legend: Legend,
) -> Result<Drawn> {
    let frame = Rect { right: cell.right - plan.bar.as_ref().map_or(0.0, |bar| bar.room), ..cell };
    let view = View { frame, x: plan.x.scale, y: plan.y.scale };
    let mut canvas = Canvas {
        context,
        name,
        view,
        sizes: plan.sizes,
        inside: Vec::new(),
        above: Vec::new(),
        occupancy: Occupancy::new(frame),
    };
    let Page { styles, entries, .. } = &context.book.pages[number];
    let mut layers: Vec<(usize, (&Layer, &Style))> = panel.layers.iter().zip(styles).enumerate().collect();
    layers.sort_by_key(|(_, (layer, _))| depth(layer));
    for (index, (layer, style)) in layers {
        canvas.layer(index, layer, style, entries[index])?;
    }
    // Labels of slopes choose their side once all data are known.
    for (layer, style) in panel.layers.iter().zip(styles) {
        if let Layer::Slope(slope) = layer {
            let before = canvas.above.len();
            guides::label(&mut canvas, slope, style)?;
            group(&mut canvas.above, before, Role::Note);
        }
    }
    for annotation in &panel.annotations {
        let before = canvas.above.len();
        annotation::draw(&mut canvas, annotation)?;
        group(&mut canvas.above, before, Role::Note);
    }
    let mut later = Vec::new();
    let outer = cell.with(&plan.margins);
    let mut placed = vec![Placed { view, outer, inset: false, marker: plan.sizes.marker }];
    for inset in &panel.insets {
        placed.push(inset::draw(&mut canvas, inset, number + placed.len(), &mut later)?);
    }
    let mut headroom = 0.0;
    if legend == Legend::Inside {
        headroom = legend::inside(&mut canvas, &context.book.inside(context.figure, number), &mut later)?;
    }
    let mut items = vec![Item::Clipped { to: frame, items: canvas.inside }];
    axes::draw(&mut items, plan, frame);
    items.extend(canvas.above);
    items.extend(later);
    let items = vec![Item::Group { role: Role::Panel(number), items }];
    Ok(Drawn { items, placed, headroom })
}

/// Makes one group of the items from the `first` on.
pub(crate) fn group(items: &mut Vec<Item>, first: usize, role: Role) {
    let members = items.split_off(first);
    if !members.is_empty() {
        items.push(Item::Group { role, items: members });
    }
}

/// The outline of a marker at the origin.
pub(crate) fn marker(path: &mut Path, marker: Marker, radius: f64) {
    points::shape(path, marker, 0.0, 0.0, radius);
}

/// Lower depths are drawn first.
fn depth(layer: &Layer) -> u8 {
    match layer {
        Layer::HeatMap(_) => 0,
        Layer::Band(_) => 1,
        Layer::Histogram(_) => 2,
        Layer::Guide(_) | Layer::Slope(_) => 3,
        Layer::Line(_) | Layer::Density(_) => 4,
        Layer::Markers(_) => 5,
    }
}

impl Canvas<'_> {
    fn layer(&mut self, index: usize, layer: &Layer, style: &Style, series: Option<usize>) -> Result<()> {
        let (inside, above) = (self.inside.len(), self.above.len());
        match layer {
            Layer::Line(line) => curves::line(self, line, style),
            Layer::Density(density) => curves::density(self, density, style),
            Layer::Band(band) => curves::band(self, band, style),
            Layer::Markers(markers) => points::draw(self, markers, style),
            Layer::Histogram(histogram) => histogram::draw(self, histogram, style),
            Layer::HeatMap(map) => heat::draw(self, map)?,
            Layer::Guide(guide) => guides::guide(self, guide, style),
            Layer::Slope(slope) => guides::slope(self, slope, style),
        }
        let role = Role::Layer { layer: index, series };
        group(&mut self.inside, inside, role);
        group(&mut self.above, above, role);
        Ok(())
    }

    fn stroke(&mut self, path: Path, style: &Style, width: f64) {
        let pen = pen(&style.colour, width, style.stroke);
        self.inside.push(Item::Path { path, fill: None, pen: Some(pen) });
    }

    fn fill(&mut self, path: Path, colour: &str, opacity: f64) {
        self.inside.push(Item::Path { path, fill: Some(fill(colour, opacity)), pen: None });
    }
}

pub(crate) fn pen(colour: &str, width: f64, stroke: Stroke) -> Pen {
    let dashes: &[f64] = match stroke {
        Stroke::Solid => &[],
        Stroke::Dashed => &[4.5, 2.2],
        Stroke::Dotted => &[1.2, 1.8],
        Stroke::DashDotted => &[5.0, 1.8, 1.2, 1.8],
    };
    Pen { colour: colour.to_owned(), width, dashes }
}

pub(crate) fn fill(colour: &str, opacity: f64) -> Fill {
    Fill { colour: colour.to_owned(), opacity }
}
