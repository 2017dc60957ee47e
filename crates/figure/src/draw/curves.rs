//! Lines, bands and densities.

use super::Canvas;
use crate::clip;
use crate::layer::{Band, Density, Line};
use crate::scene::Path;
use crate::series::Style;
use crate::simplify::simplify;

/// Opacity of bands, and of the area under a density.
pub(crate) const BAND: f64 = 0.2;
const UNDER_DENSITY: f64 = 0.08;

pub(super) fn line(canvas: &mut Canvas, line: &Line, style: &Style) {
    let width = line.width.unwrap_or(canvas.sizes.curve);
    let Some(at) = line.diverges_at.filter(|at| canvas.view.x.fraction(*at).is_finite()) else {
        return curve(canvas, &line.x, &line.y, style, width);
    };
    // Up to where it diverges, and from there up: far enough beyond the frame that the end is not seen.
    let until = line.x.iter().zip(line.y.iter()).take_while(|(x, y)| **x <= at && y.is_finite());
    let mut points: Vec<(f64, f64)> = until.map(|(&x, &y)| canvas.view.point(x, y)).collect();
    let frame = canvas.view.frame;
    let end = canvas.view.across(canvas.view.x.fraction(at));
    points.push((end, frame.top - frame.height()));
    stretches(canvas, &points, style, width);
    if let Some(tip) = leaves_at(&points, frame.top).filter(|x| (frame.left..=frame.right).contains(x)) {
        let reach = 3.5 * width;
        let mut head = Path::default();
        head.polygon(&[
            (tip, frame.top),
            (tip - 0.6 * reach, frame.top + 1.6 * reach),
            (tip + 0.6 * reach, frame.top + 1.6 * reach),
        ]);
        canvas.fill(head, &style.colour, 1.0);
    }
}

/// Where a curve passes a height on the page for the last time on its way up.
fn leaves_at(points: &[(f64, f64)], top: f64) -> Option<f64> {
    let crossing = points.windows(2).rev().find(|pair| pair[0].1 >= top && pair[1].1 < top)?;
    let along = (crossing[0].1 - top) / (crossing[0].1 - crossing[1].1);
    Some(crossing[0].0 + along * (crossing[1].0 - crossing[0].0))
}

pub(super) fn density(canvas: &mut Canvas, density: &Density, style: &Style) {
    let zero = vec![0.0; density.x.len()];
    region(canvas, &density.x, &zero, &density.y, &style.colour, UNDER_DENSITY);
    curve(canvas, &density.x, &density.y, style, canvas.sizes.curve);
}

pub(super) fn band(canvas: &mut Canvas, band: &Band, style: &Style) {
    region(canvas, &band.x, &band.lower, &band.upper, &style.colour, BAND);
}

fn curve(canvas: &mut Canvas, x: &[f64], y: &[f64], style: &Style, width: f64) {
    let points: Vec<(f64, f64)> = x.iter().zip(y).map(|(&x, &y)| canvas.view.point(x, y)).collect();
    stretches(canvas, &points, style, width);
}

/// The parts of a curve inside the frame.
fn stretches(canvas: &mut Canvas, points: &[(f64, f64)], style: &Style, width: f64) {
    // The cut lies outside the frame, so that the joints there are not seen.
    let area = canvas.view.frame.grown(4.0 * width);
    let mut path = Path::default();
    for stretch in clip::curve(points, &area) {
        let stretch = simplify(&stretch);
        canvas.occupancy.add_curve(&stretch);
        path.polyline(&stretch);
    }
    canvas.stroke(path, style, width);
}

/// The region between two curves, in one piece between gaps. Edges below a log axis are put on it.
fn region(canvas: &mut Canvas, x: &[f64], lower: &[f64], upper: &[f64], colour: &str, opacity: f64) {
    let view = canvas.view;
    let edges: Vec<[(f64, f64); 2]> = (0..x.len())
        .map(|i| {
            [lower[i], upper[i]]
                .map(|y| (view.across(view.x.fraction(x[i])), view.up(view.y.fraction_or_bottom(y))))
        })
        .collect();
    let finite = |edge: &[(f64, f64); 2]| edge.iter().all(|point| point.0.is_finite() && point.1.is_finite());
    let area = view.frame.grown(2.0);
    let mut path = Path::default();
    for run in edges.split(|edge| !finite(edge)) {
        let side = |which: usize| simplify(&run.iter().map(|edge| edge[which]).collect::<Vec<_>>());
        let (below, above) = (side(0), side(1));
        let outline: Vec<(f64, f64)> = above.into_iter().chain(below.into_iter().rev()).collect();
        let outline = clip::polygon(&outline, &area);
        if outline.len() >= 3 {
            canvas.occupancy.add_curve(&outline);
            path.polygon(&outline);
        }
    }
    canvas.fill(path, colour, opacity);
}
