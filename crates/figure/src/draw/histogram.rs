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
        let [left, right] =
            [edge[0], edge[1]].map(|x| view.across(view.x.fraction_or_bottom(x).clamp(0.0, 1.0)));
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
    // A bin that starts below a log axis starts at its left end.
    let across = |x: f64| view.across(view.x.fraction_or_bottom(x));
    let bins: Vec<[f64; 3]> = histogram
        .edges
        .windows(2)
        .zip(histogram.drawn_heights())
        .map(|(edge, height)| [across(edge[0]), across(edge[1]), view.up(view.y.fraction_or_bottom(height))])
        .collect();
    let mut points = Vec::new();
    for run in bins.split(|bin| !bin[2].is_finite()).filter(|run| !run.is_empty()) {
        points.extend([(f64::NAN, f64::NAN), (run[0][0], ground)]);
        points.extend(run.iter().flat_map(|&[left, right, top]| [(left, top), (right, top)]));
        points.push((run[run.len() - 1][1], ground));
    }
    let width = canvas.sizes.curve;
    let mut path = Path::default();
    for stretch in clip::curve(&points, &view.frame.grown(4.0 * width)) {
        canvas.occupancy.add_curve(&stretch);
        path.polyline(&stretch);
    }
    canvas.stroke(path, style, width);
}
