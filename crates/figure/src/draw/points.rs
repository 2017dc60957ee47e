//! Markers and error bars.

use super::{Canvas, fill, pen};
use crate::error_bars::ErrorBars;
use crate::layer::{Marker, Markers, Stroke};
use crate::scene::{Item, Path, Rect, Role};
use crate::series::Style;

pub(super) fn draw(canvas: &mut Canvas, markers: &Markers, style: &Style) {
    let view = canvas.view;
    let radius = canvas.sizes.marker;
    let cap = 0.7 * radius;
    let near = view.frame.grown(0.01);
    let (mut bars, mut shapes) = (Path::default(), Path::default());
    let error = |bars: &Option<ErrorBars>, i: usize| {
        Some(ErrorBars::at(bars.as_ref(), i)).filter(|lengths| *lengths != [0.0; 2])
    };
    for (i, (&x, &y)) in markers.x.iter().zip(markers.y.iter()).enumerate() {
        let (px, py) = view.point(x, y);
        if !(px.is_finite() && py.is_finite()) || px < near.left || px > near.right {
            continue;
        }
        if let Some([below, above]) = error(&markers.y_error, i) {
            let ends = [y - below, y + above].map(|y| view.y.fraction_or_bottom(y));
            // A cap belongs to a real end, not to a cut one.
            if let Some((low, high)) = cut(ends) {
                let (low_y, high_y) = (view.up(low), view.up(high));
                bars.segment(px, low_y, px, high_y);
                for (end, y) in [(ends[0], low_y), (ends[1], high_y)] {
                    if (0.0..=1.0).contains(&end) && !(end == 0.0 && low_y == view.frame.bottom) {
                        bars.segment(px - cap, y, px + cap, y);
                    }
                }
                canvas.occupancy.add_curve(&[(px, low_y), (px, high_y)]);
            }
        }
        if py < near.top || py > near.bottom {
            continue;
        }
        if let Some([left, right]) = error(&markers.x_error, i) {
            let ends = [x - left, x + right].map(|x| view.x.fraction_or_bottom(x));
            if let Some((low, high)) = cut(ends) {
                let (low_x, high_x) = (view.across(low), view.across(high));
                bars.segment(low_x, py, high_x, py);
                for (end, x) in [(ends[0], low_x), (ends[1], high_x)] {
                    if end > 0.0 && end <= 1.0 {
                        bars.segment(x, py - cap, x, py + cap);
                    }
                }
                canvas.occupancy.add_curve(&[(low_x, py), (high_x, py)]);
            }
        }
        shape(&mut shapes, style.marker, px, py, radius);
        canvas.occupancy.add_box(&Rect { left: px, top: py, right: px, bottom: py }.grown(radius), 1.0);
    }
    let width = 0.75 * canvas.sizes.curve;
    let bars = Item::Path { path: bars, fill: None, pen: Some(pen(&style.colour, width, Stroke::Solid)) };
    canvas.above.push(Item::Group { role: Role::Bars, items: vec![bars] });
    canvas.above.push(marks(shapes, style.marker, &style.colour, 0.8 * canvas.sizes.curve));
}

/// The part of an error bar on the axis.
fn cut([low, high]: [f64; 2]) -> Option<(f64, f64)> {
    (low <= 1.0 && high >= 0.0).then(|| (low.max(0.0), high.min(1.0)))
}

/// Open shapes are filled white; crosses have no inside.
pub(super) fn marks(path: Path, marker: Marker, colour: &str, width: f64) -> Item {
    let hollow = !matches!(marker, Marker::Cross | Marker::Plus);
    Item::Path {
        path,
        fill: hollow.then(|| fill("#ffffff", 1.0)),
        pen: Some(pen(colour, width, Stroke::Solid)),
    }
}

/// A marker of about the area of a circle of this radius.
pub(super) fn shape(path: &mut Path, marker: Marker, x: f64, y: f64, radius: f64) {
    let regular = |corners: usize, radius: f64, first: f64| -> Vec<(f64, f64)> {
        (0..corners)
            .map(|i| first + std::f64::consts::TAU * i as f64 / corners as f64)
            .map(|angle: f64| (x + radius * angle.cos(), y + radius * angle.sin()))
            .collect()
    };
    let (up, diagonal) = (-std::f64::consts::FRAC_PI_2, std::f64::consts::FRAC_PI_4);
    match marker {
        Marker::Circle => path.circle(x, y, radius),
        Marker::Square => path.polygon(&regular(4, 1.25 * radius, diagonal)),
        Marker::Triangle => path.polygon(&regular(3, 1.4 * radius, up)),
        Marker::Diamond => path.polygon(&regular(4, 1.3 * radius, up)),
        Marker::TriangleDown => path.polygon(&regular(3, 1.4 * radius, -up)),
        Marker::Pentagon => path.polygon(&regular(5, 1.2 * radius, up)),
        Marker::Cross => {
            path.segment(x - radius, y - radius, x + radius, y + radius);
            path.segment(x - radius, y + radius, x + radius, y - radius);
        }
        Marker::Plus => {
            path.segment(x - 1.2 * radius, y, x + 1.2 * radius, y);
            path.segment(x, y - 1.2 * radius, x, y + 1.2 * radius);
        }
    }
}
