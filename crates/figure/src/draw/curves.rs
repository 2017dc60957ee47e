//! Lines, bands and densities.

use super::Canvas;
use crate::clip;
use crate::layer::{Band, Density, Line};
use crate::scale::View;
use crate::scene::Path;
use crate::series::Style;
use crate::simplify::simplify;

/// Opacity of bands, and of the area under a density.
pub(crate) const BAND: f64 = 0.2;
const UNDER_DENSITY: f64 = 0.08;

pub(super) fn line(canvas: &mut Canvas, line: &Line, style: &Style) {
    let width = line.width.unwrap_or(canvas.sizes.curve);
    if line.diverges_at.is_empty() {
        return curve(canvas, &line.x, &line.y, style, width);
    }
    let (points, tips) = with_poles(line, &canvas.view);
    stretches(canvas, &points, style, width);
    let top = canvas.view.frame.top;
    let (half, length) = (2.1 * width, 5.6 * width);
    for tip in tips {
        let mut head = Path::default();
        head.polygon(&[(tip, top), (tip - half, top + length), (tip + half, top + length)]);
        canvas.fill(head, &style.colour, 1.0);
    }
}

/// A curve on the page with its rises to the top of the frame, in stretches between points that are none, and where it leaves the frame.
fn with_poles(line: &Line, view: &View) -> (Vec<(f64, f64)>, Vec<f64>) {
    // Far enough above the frame that the way there is upright.
    let beyond = view.frame.top - 20.0 * view.frame.height();
    let places = line.diverges_at.iter().map(|at| (*at, view.across(view.x.fraction(*at))));
    let mut places = places.filter(|(_, x)| (view.frame.left..=view.frame.right).contains(x)).peekable();
    let (mut points, mut tips) = (Vec::new(), Vec::new());
    let mut rise = |points: &mut Vec<(f64, f64)>, x: f64| {
        // What is not finite before the rise says no more than that it begins.
        while points.last().is_some_and(|point: &(f64, f64)| !(point.0.is_finite() && point.1.is_finite())) {
            points.pop();
        }
        points.push((x, beyond));
        // The last time that the curve passes the top of the frame on its way up: it may have left long before it diverges.
        let upward = |pair: &&[(f64, f64)]| pair[0].1 >= view.frame.top && pair[1].1 < view.frame.top;
        let whole = |pair: &&[(f64, f64)]| pair.iter().all(|point| point.1.is_finite());
        if let Some([from, to]) = points.windows(2).rev().take_while(whole).find(upward) {
            let along = (from.1 - view.frame.top) / (from.1 - to.1);
            tips.push(from.0 + along * (to.0 - from.0));
        }
        points.extend([(f64::NAN, f64::NAN), (x, beyond)]);
    };
    for (&x, &y) in line.x.iter().zip(line.y.iter()) {
        while let Some((_, at)) = places.next_if(|(at, _)| *at < x) {
            rise(&mut points, at);
        }
        points.push(view.point(x, y));
    }
    places.for_each(|(_, at)| rise(&mut points, at));
    (points, tips)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::ScaleKind;
    use crate::scale::Scale;
    use crate::scene::Rect;

    fn view() -> View {
        let frame = Rect { left: 0.0, top: 0.0, right: 100.0, bottom: 100.0 };
        let x = Scale { kind: ScaleKind::Linear, low: 0.0, high: 10.0 };
        View { frame, x, y: Scale { kind: ScaleKind::Log, low: 1.0, high: 100.0 } }
    }

    #[test]
    fn a_curve_rises_to_the_top_where_it_diverges_and_comes_down_behind_it() {
        let line = Line {
            x: vec![2.0, 4.0, 6.0, 8.0].into(),
            y: vec![1.0, 10.0, 10.0, 1.0].into(),
            diverges_at: vec![5.0],
            ..Line::default()
        };
        let (points, tips) = with_poles(&line, &view());
        let finite: Vec<_> = points.split(|point| point.0.is_nan()).collect();
        assert_eq!((finite.len(), finite[0].len(), finite[1].len()), (2, 3, 3));
        assert!(finite[0][2].0 == 50.0 && finite[0][2].1 < 0.0 && finite[1][0] == finite[0][2]);
        assert!(tips.len() == 1 && tips[0] > 40.0 && tips[0] < 41.0, "on the way from x = 4: {tips:?}");
    }

    #[test]
    fn the_arrow_stands_where_the_curve_leaves_the_frame_and_not_where_it_ends() {
        let line = Line {
            x: vec![2.0, 4.0, 6.0, 8.0].into(),
            y: vec![1.0, 1e4, 1e20, 1e40].into(),
            diverges_at: vec![9.0],
            ..Line::default()
        };
        // From 1 to 10^4 in two units of x: the top, 100, is passed at x = 3.
        let (_, tips) = with_poles(&line, &view());
        assert!(tips.len() == 1 && (tips[0] - 30.0).abs() < 1e-9, "{tips:?}");
    }

    #[test]
    fn a_curve_that_ends_by_diverging_has_one_arrow_and_nothing_behind_it() {
        let line = Line {
            x: vec![2.0, 4.0, 6.0].into(),
            y: vec![1.0, 10.0, f64::INFINITY].into(),
            diverges_at: vec![6.0, 30.0],
            ..Line::default()
        };
        let (points, tips) = with_poles(&line, &view());
        assert_eq!(tips.len(), 1, "what lies outside the frame has no arrow");
        let first = points.split(|point| !point.0.is_finite() || !point.1.is_finite()).next().unwrap();
        assert_eq!(first.len(), 3);
    }
}
