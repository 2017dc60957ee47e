//! Panels inside panels.

use super::guides::within;
use super::{Canvas, fill, panel};
use crate::error::{Error, Result};
use crate::figure::{Inset, Legend};
use crate::plan::{PanelPlan, Sizes};
use crate::scene::{Item, Placed, Rect};

/// Size of an automatic inset with its labels, as fractions of the outer frame.
const WIDTH: f64 = 0.42;
const HEIGHT: f64 = 0.4;

/// Draws an inset as the panel of this number and says where it went.
pub(super) fn draw(
    canvas: &mut Canvas,
    inset: &Inset,
    number: usize,
    items: &mut Vec<Item>,
) -> Result<Placed> {
    if !inset.panel.insets.is_empty() {
        return Err(Error::NestedInset { panel: canvas.name.to_owned() });
    }
    let outer = canvas.view.frame;
    let plan =
        |size| PanelPlan::new(canvas.context.typesetter, &inset.panel, canvas.name, size, Sizes::INSET, 0.0);
    let (cell, plan) = if let Some([left, bottom, width, height]) = inset.place {
        let (left, bottom) = (outer.left + left * outer.width(), outer.bottom - bottom * outer.height());
        let cell =
            Rect { left, bottom, right: left + width * outer.width(), top: bottom - height * outer.height() };
        (cell, plan((cell.width(), cell.height()))?)
    } else {
        let (width, height) = (WIDTH * outer.width(), HEIGHT * outer.height());
        // The labels hardly depend on the size of the frame, so two rounds settle them.
        let first = plan((width, height))?.margins;
        let inner = (
            (width - first.left - first.right).max(0.5 * width),
            (height - first.top - first.bottom).max(0.5 * height),
        );
        let plan = plan(inner)?;
        let margins = plan.margins;
        let whole = (inner.0 + margins.left + margins.right, inner.1 + margins.top + margins.bottom);
        let (place, _) = canvas.occupancy.emptiest(whole.0, whole.1, 1.5 * canvas.sizes.major);
        let (left, top) = (place.left + margins.left, place.top + margins.top);
        (Rect { left, top, right: left + inner.0, bottom: top + inner.1 }, plan)
    };
    // Its labels cover no tick of the outer frame, wherever it was asked to stand.
    let wanted = cell.with(&plan.margins);
    let whole = within(wanted, &outer.grown(-1.5 * canvas.sizes.major));
    let cell = cell.shifted(whole.left - wanted.left, whole.top - wanted.top);
    items.push(Item::Path { path: whole.path(), fill: Some(fill("#ffffff", 0.8)), pen: None });
    let drawn = panel(canvas.context, &inset.panel, canvas.name, &plan, cell, number, Legend::None)?;
    items.extend(drawn.items);
    canvas.occupancy.add_box(&whole, 3.0);
    Ok(Placed { inset: true, ..drawn.placed[0] })
}
