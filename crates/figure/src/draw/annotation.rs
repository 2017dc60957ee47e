//! Text in a panel, with or without an arrow.

use super::guides::within;
use super::{Canvas, fill, pen};
use crate::error::Result;
use crate::figure::Annotation;
use crate::label::text;
use crate::layer::Stroke;
use crate::palette;
use crate::scene::{Item, Path, Rect};

pub(super) fn draw(canvas: &mut Canvas, annotation: &Annotation) -> Result<()> {
    let colour = match &annotation.colour {
        Some(colour) => palette::hex(colour)?,
        None => super::BLACK.to_owned(),
    };
    let typeset = canvas.context.typesetter.set(&annotation.text)?;
    let size = 0.95 * canvas.sizes.label;
    let view = canvas.view;
    let (x, y) = view.point(annotation.at[0], annotation.at[1]);
    if !(x.is_finite() && y.is_finite()) {
        return Ok(());
    }
    let (half_width, half_height) =
        (typeset.width * size / 2.0, (typeset.height + typeset.depth) * size / 2.0);
    let area =
        Rect { left: x - half_width, right: x + half_width, top: y - half_height, bottom: y + half_height };
    let area = within(area, &view.frame.grown(-3.0));
    canvas.above.push(text(&typeset, area.left, area.top + typeset.height * size, size, false, &colour));
    canvas.occupancy.add_box(&area.grown(2.0), 2.0);
    if let Some([x, y]) = annotation.arrow_to {
        let tip = view.point(x, y);
        if tip.0.is_finite() && tip.1.is_finite() {
            arrow(canvas, area.grown(2.5), tip, &colour);
        }
    }
    Ok(())
}

/// An arrow from the edge of the box to the tip.
fn arrow(canvas: &mut Canvas, from: Rect, tip: (f64, f64), colour: &str) {
    const HEAD: f64 = 5.5;
    let (centre_x, centre_y) = from.centre();
    let (dx, dy) = (tip.0 - centre_x, tip.1 - centre_y);
    // Where the line from the centre leaves the box.
    let out = (from.width() / 2.0 / dx.abs().max(1e-9)).min(from.height() / 2.0 / dy.abs().max(1e-9));
    let length = dx.hypot(dy) * (1.0 - out);
    if out >= 1.0 || length < HEAD {
        return;
    }
    let start = (centre_x + out * dx, centre_y + out * dy);
    let (ux, uy) = ((tip.0 - start.0) / length, (tip.1 - start.1) / length);
    let neck = (tip.0 - HEAD * ux, tip.1 - HEAD * uy);
    let mut shaft = Path::default();
    shaft.segment(start.0, start.1, neck.0, neck.1);
    canvas.occupancy.add_curve(&[start, tip]);
    let mut head = Path::default();
    let half = 0.3 * HEAD;
    head.polygon(&[tip, (neck.0 - half * uy, neck.1 + half * ux), (neck.0 + half * uy, neck.1 - half * ux)]);
    canvas.above.push(Item::Path { path: shaft, fill: None, pen: Some(pen(colour, 0.8, Stroke::Solid)) });
    canvas.above.push(Item::Path { path: head, fill: Some(fill(colour, 1.0)), pen: None });
}
