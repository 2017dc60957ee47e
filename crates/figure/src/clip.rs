//! Cutting curves and regions at a rectangle, so that far-away points neither bloat the file nor overflow a renderer.

use crate::scene::Rect;

type Point = (f64, f64);

/// The stretches of a curve inside `area`. A point that is not finite ends a stretch.
pub(crate) fn curve(points: &[Point], area: &Rect) -> Vec<Vec<Point>> {
    let mut stretches: Vec<Vec<Point>> = Vec::new();
    for run in points.split(|point| !(point.0.is_finite() && point.1.is_finite())) {
        let mut open = false;
        for pair in run.windows(2) {
            let Some((from, to)) = segment(pair[0], pair[1], area) else {
                open = false;
                continue;
            };
            match stretches.last_mut() {
                Some(stretch) if open => stretch.push(to),
                _ => stretches.push(vec![from, to]),
            }
            open = to == pair[1];
        }
    }
    stretches
}

/// Liang–Barsky: the part of a segment inside the area.
fn segment(from: Point, to: Point, area: &Rect) -> Option<(Point, Point)> {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let (mut enter, mut leave) = (0.0f64, 1.0f64);
    for (step, room) in [
        (-dx, from.0 - area.left),
        (dx, area.right - from.0),
        (-dy, from.1 - area.top),
        (dy, area.bottom - from.1),
    ] {
        if step == 0.0 {
            if room < 0.0 {
                return None;
            }
        } else if step < 0.0 {
            enter = enter.max(room / step);
        } else {
            leave = leave.min(room / step);
        }
    }
    // Far-away ends lose digits, hence the clamp onto the side that was crossed.
    let at = |along: f64| {
        (
            (from.0 + along * dx).clamp(area.left, area.right),
            (from.1 + along * dy).clamp(area.top, area.bottom),
        )
    };
    let begin = if enter == 0.0 { from } else { at(enter) };
    let end = if leave == 1.0 { to } else { at(leave) };
    (enter <= leave).then_some((begin, end))
}

/// Sutherland–Hodgman: the part of a polygon inside the area.
pub(crate) fn polygon(points: &[Point], area: &Rect) -> Vec<Point> {
    let sides: [&dyn Fn(Point) -> f64; 4] = [
        &|point| point.0 - area.left,
        &|point| area.right - point.0,
        &|point| point.1 - area.top,
        &|point| area.bottom - point.1,
    ];
    let mut polygon = points.to_vec();
    for inside in sides {
        let before = std::mem::take(&mut polygon);
        for (index, &to) in before.iter().enumerate() {
            let from = before[(index + before.len() - 1) % before.len()];
            let (a, b) = (inside(from), inside(to));
            if (a < 0.0) != (b < 0.0) {
                let along = a / (a - b);
                polygon.push((from.0 + along * (to.0 - from.0), from.1 + along * (to.1 - from.1)));
            }
            if b >= 0.0 {
                polygon.push(to);
            }
        }
    }
    polygon
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const AREA: Rect = Rect { left: 0.0, top: 0.0, right: 10.0, bottom: 10.0 };

    #[test]
    fn a_curve_that_leaves_and_returns_becomes_two_stretches_and_gaps_stay() {
        let stretches = curve(&[(1.0, 5.0), (5.0, 5.0), (5.0, 15.0), (6.0, 15.0), (6.0, 5.0)], &AREA);
        assert_eq!(stretches, [vec![(1.0, 5.0), (5.0, 5.0), (5.0, 10.0)], vec![(6.0, 10.0), (6.0, 5.0)]]);
        assert_eq!(curve(&[(1.0, 1.0), (2.0, 2.0), (f64::NAN, 3.0), (4.0, 4.0), (5.0, 5.0)], &AREA).len(), 2);
    }

    #[test]
    fn a_segment_across_the_whole_area_is_cut_at_both_ends() {
        assert_eq!(curve(&[(-40.0, 5.0), (40.0, 5.0)], &AREA), [[(0.0, 5.0), (10.0, 5.0)]]);
    }

    #[test]
    fn a_square_around_the_area_is_cut_to_it() {
        let cut = polygon(&[(-5.0, -5.0), (15.0, -5.0), (15.0, 15.0), (-5.0, 15.0)], &AREA);
        let area: f64 = (0..cut.len())
            .map(|i| (cut[i], cut[(i + 1) % cut.len()]))
            .map(|(a, b)| (a.0 * b.1 - b.0 * a.1) / 2.0)
            .sum();
        assert!((area.abs() - 100.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn nothing_is_left_outside(points in prop::collection::vec((-30.0..30.0f64, -30.0..30.0f64), 2..20)) {
            let near = AREA.grown(1e-9);
            let inside = |point: &Point| (near.left..=near.right).contains(&point.0) && (near.top..=near.bottom).contains(&point.1);
            prop_assert!(curve(&points, &AREA).iter().flatten().all(inside));
            prop_assert!(polygon(&points, &AREA).iter().all(inside));
        }
    }
}
