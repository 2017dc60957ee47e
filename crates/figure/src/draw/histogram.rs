//! Histograms.

use super::Canvas;
use crate::clip;
use crate::layer::{Histogram, HistogramStyle};
use crate::scene::{Path, Rect};
use crate::series::Style;

/// Opacity of bars.
pub(crate) const BAR: f64 = 0.35;

pub(super) fn draw(canvas: &mut Canvas, histogram: &Histogram, style: &Style) {
    match histogram.style {
        HistogramStyle::Bars => bars(canvas, histogram, style),
        HistogramStyle::Steps => steps(canvas, histogram, style),
    }
}

fn bars(canvas: &mut Canvas, histogram: &Histogram, style: &Style) {
    let view = canvas.view;
    let ground = view.up(view.y.fraction_or_bottom(0.0).clamp(0.0, 1.0));
    let mut path = Path::default();
    for (edge, height) in histogram.edges.windows(2).zip(histogram.drawn_heights()) {
        let [left, right] = [edge[0], edge[1]].map(|x| view.across(view.x.fraction(x).clamp(0.0, 1.0)));
        let top = view.up(view.y.fraction_or_bottom(height).clamp(-0.01, 1.01));
        // A hair of white between bars, but never more than a quarter of one. NaN heights fail every comparison.
        let gap = (0.25f64).min((right - left) / 4.0) / 2.0;
        if right > left && (top - ground).abs() > 0.0 {
            let bar =
                Rect { left: left + gap, right: right - gap, top: top.min(ground), bottom: top.max(ground) };
            path.0.extend(bar.path().0);
            canvas.occupancy.add_box(&bar, 0.6);
        }
    }
    canvas.fill(path, &style.colour, BAR);
}

/// The outline: up, along each bin, and down to the ground at gaps and at the ends.
fn steps(canvas: &mut Canvas, histogram: &Histogram, style: &Style) {
    let view = canvas.view;
    let ground = view.up(view.y.fraction_or_bottom(0.0));
    let mut points = Vec::new();
    let heights = histogram.drawn_heights();
    for (i, edge) in histogram.edges.windows(2).enumerate() {
        let [left, right] = [edge[0], edge[1]].map(|x| view.across(view.x.fraction(x)));
        let top = view.up(view.y.fraction_or_bottom(heights[i]));
        let missing =
            |i: Option<usize>| i.and_then(|i| heights.get(i)).is_none_or(|height| !height.is_finite());
        if top.is_finite() {
            if missing(i.checked_sub(1)) {
                points.extend([(f64::NAN, f64::NAN), (left, ground)]);
            }
            points.extend([(left, top), (right, top)]);
            if missing(i.checked_add(1)) {
                points.push((right, ground));
            }
        }
    }
    let width = canvas.sizes.curve;
    let mut path = Path::default();
    for stretch in clip::curve(&points, &view.frame.grown(4.0 * width)) {
        canvas.occupancy.add_curve(&stretch);
        path.polyline(&stretch);
    }
    canvas.stroke(path, style, width);
}
