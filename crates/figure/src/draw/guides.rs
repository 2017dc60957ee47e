//! Vertical and horizontal guides, and slopes with their labels.

use super::Canvas;
use crate::clip;
use crate::error::Result;
use crate::label::text;
use crate::layer::{Guide, Slope};
use crate::scene::{Path, Rect};
use crate::series::Style;

/// Width of guides relative to curves.
const THIN: f64 = 0.75;

pub(super) fn guide(canvas: &mut Canvas, guide: &Guide, style: &Style) {
    let frame = canvas.view.frame;
    let mut path = Path::default();
    if let Some(x) = guide.x {
        let x = canvas.view.across(canvas.view.x.fraction(x));
        if (frame.left..=frame.right).contains(&x) {
            path.segment(x, frame.bottom, x, frame.top);
            canvas.occupancy.add_curve(&[(x, frame.bottom), (x, frame.top)]);
        }
    }
    if let Some(y) = guide.y {
        let y = canvas.view.up(canvas.view.y.fraction(y));
        if (frame.top..=frame.bottom).contains(&y) {
            path.segment(frame.left, y, frame.right, y);
            canvas.occupancy.add_curve(&[(frame.left, y), (frame.right, y)]);
        }
    }
    canvas.stroke(path, style, THIN * canvas.sizes.curve);
}

fn ends(canvas: &Canvas, slope: &Slope) -> [(f64, f64); 2] {
    [slope.from, slope.end()].map(|[x, y]| canvas.view.point(x, y))
}

pub(super) fn slope(canvas: &mut Canvas, slope: &Slope, style: &Style) {
    let mut path = Path::default();
    for stretch in clip::curve(&ends(canvas, slope), &canvas.view.frame) {
        canvas.occupancy.add_curve(&stretch);
        path.polyline(&stretch);
    }
    canvas.stroke(path, style, THIN * canvas.sizes.curve);
}

/// Puts the label of a slope on the emptier side of its middle.
pub(super) fn label(canvas: &mut Canvas, slope: &Slope, style: &Style) -> Result<()> {
    let Some(label) = &slope.label else { return Ok(()) };
    let typeset = canvas.context.typesetter.set(label)?;
    let [(x0, y0), (x1, y1)] = ends(canvas, slope);
    let (middle_x, middle_y) = (f64::midpoint(x0, x1), f64::midpoint(y0, y1));
    if !(middle_x.is_finite() && middle_y.is_finite()) {
        return Ok(());
    }
    let size = 0.95 * canvas.sizes.label;
    let (half_width, half_height) =
        (typeset.width * size / 2.0, (typeset.height + typeset.depth) * size / 2.0);
    let length = (x1 - x0).hypot(y1 - y0).max(1e-9);
    // Unit normal, and how far the box reaches along it.
    let (nx, ny) = ((y1 - y0) / length, (x0 - x1) / length);
    let reach = nx.abs() * half_width + ny.abs() * half_height + 4.0;
    let at = |side: f64| {
        let (x, y) = (middle_x + side * reach * nx, middle_y + side * reach * ny);
        let area = Rect {
            left: x - half_width,
            right: x + half_width,
            top: y - half_height,
            bottom: y + half_height,
        };
        within(area, &canvas.view.frame.grown(-2.0))
    };
    let (first, second) = (at(1.0), at(-1.0));
    let area = if canvas.occupancy.under(&first) <= canvas.occupancy.under(&second) { first } else { second };
    canvas.above.push(text(
        &typeset,
        area.left,
        area.top + typeset.height * size,
        size,
        false,
        &style.colour,
    ));
    canvas.occupancy.add_box(&area, 2.0);
    Ok(())
}

/// The box moved into the frame, as far as it fits.
pub(super) fn within(area: Rect, frame: &Rect) -> Rect {
    let dx = (frame.left - area.left).max(0.0) + (frame.right - area.right).min(0.0);
    let dy = (frame.top - area.top).max(0.0) + (frame.bottom - area.bottom).min(0.0);
    area.shifted(dx, dy)
}
