//! Curves with fewer points that look the same.

type Point = (f64, f64);

/// Points closer than this (in pt) look the same: a quarter of a pixel at 600 dpi.
const TOLERANCE: f64 = 0.03;
/// Width of the columns of [`thin_columns`]: half the thinnest line.
const COLUMN: f64 = 0.25;

/// The same curve with fewer points: first the extremes per column, then without points on straight stretches.
pub(crate) fn simplify(points: &[Point]) -> Vec<Point> {
    if points.len() < 3 {
        return points.to_vec();
    }
    straighten(&thin_columns(points))
}

/// Of consecutive points in one narrow column, keeps the first, lowest, highest and last, in their order. A column that
/// the curve leaves and enters again counts anew, so any curve keeps its shape.
fn thin_columns(points: &[Point]) -> Vec<Point> {
    let mut kept = Vec::new();
    let column = |point: Point| (point.0 / COLUMN).floor();
    for run in points.chunk_by(|a, b| column(*a) == column(*b)) {
        let by_height = |a: &usize, b: &usize| run[*a].1.total_cmp(&run[*b].1);
        let lowest = (0..run.len()).min_by(by_height).unwrap_or(0);
        let highest = (0..run.len()).max_by(by_height).unwrap_or(0);
        let mut indices = [0, lowest, highest, run.len() - 1];
        indices.sort_unstable();
        kept.extend(
            indices
                .iter()
                .enumerate()
                .filter(|&(i, index)| i == 0 || indices[i - 1] != *index)
                .map(|(_, &i)| run[i]),
        );
    }
    kept
}

/// Ramer–Douglas–Peucker: drops points within [`TOLERANCE`] of the chord between the kept ones.
fn straighten(points: &[Point]) -> Vec<Point> {
    let mut keep = vec![false; points.len()];
    keep[0] = true;
    keep[points.len() - 1] = true;
    let mut stretches = vec![(0, points.len() - 1)];
    while let Some((first, last)) = stretches.pop() {
        let farthest = (first + 1..last)
            .map(|index| (index, distance(points[index], points[first], points[last])))
            .max_by(|a, b| a.1.total_cmp(&b.1));
        if let Some((index, distance)) = farthest
            && distance > TOLERANCE
        {
            keep[index] = true;
            stretches.extend([(first, index), (index, last)]);
        }
    }
    points.iter().zip(keep).filter(|&(_, keep)| keep).map(|(&point, _)| point).collect()
}

/// Distance of `point` from the segment `from`–`to`.
fn distance(point: Point, from: Point, to: Point) -> f64 {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length_squared = dx * dx + dy * dy;
    let along = if length_squared > 0.0 {
        (((point.0 - from.0) * dx + (point.1 - from.1) * dy) / length_squared).clamp(0.0, 1.0)
    } else {
        0.0
    };
    (point.0 - from.0 - along * dx).hypot(point.1 - from.1 - along * dy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_straight_line_needs_two_points() {
        let points: Vec<Point> = (0..1000).map(|i| (f64::from(i) * 0.1, f64::from(i) * 0.05)).collect();
        assert_eq!(simplify(&points), [points[0], points[999]]);
    }

    #[test]
    fn a_hundred_thousand_noisy_points_become_a_few_thousand_with_the_same_extremes() {
        let points: Vec<Point> = (0..100_000)
            .map(|i| {
                (
                    f64::from(i) * 0.002,
                    50.0 + 40.0 * (f64::from(i) * 12.9898).sin().mul_add(43758.5453, 0.0).fract(),
                )
            })
            .collect();
        let thin = simplify(&points);
        assert!(thin.len() < 4 * 801, "{}", thin.len());
        let highest = |points: &[Point]| points.iter().map(|point| point.1).fold(f64::MIN, f64::max);
        assert_eq!(highest(&thin), highest(&points));
    }

    proptest! {
        #[test]
        fn every_dropped_point_lies_near_the_kept_curve(heights in prop::collection::vec(0.0..100.0f64, 3..200), step in 0.01..5.0f64) {
            let points: Vec<Point> = heights.iter().enumerate().map(|(i, &y)| (i as f64 * step, y)).collect();
            let thin = simplify(&points);
            prop_assert_eq!(thin[0], points[0]);
            prop_assert_eq!(thin[thin.len() - 1], points[points.len() - 1]);
            for &point in &points {
                let nearest = thin.windows(2).map(|pair| distance(point, pair[0], pair[1])).fold(f64::MAX, f64::min);
                // Sideways within a column the curve may move by its width.
                prop_assert!(nearest <= COLUMN + TOLERANCE, "{nearest}");
            }
        }
    }
}
