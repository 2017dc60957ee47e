//! Finding an empty place in a panel for a legend or an inset.

use crate::scene::Rect;

/// Size of the cells of the map, in points.
const CELL: f64 = 2.0;

/// How much ink lies where in a frame.
#[derive(Clone, Debug)]
pub(crate) struct Occupancy {
    frame: Rect,
    columns: usize,
    rows: usize,
    ink: Vec<f64>,
}

impl Occupancy {
    pub(crate) fn new(frame: Rect) -> Self {
        let columns = (frame.width() / CELL).ceil().max(1.0) as usize;
        let rows = (frame.height() / CELL).ceil().max(1.0) as usize;
        Self { frame, columns, rows, ink: vec![0.0; columns * rows] }
    }

    /// A curve: every cell that it crosses counts once.
    pub(crate) fn add_curve(&mut self, points: &[(f64, f64)]) {
        for pair in points.windows(2) {
            let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
            let steps = ((x1 - x0).hypot(y1 - y0) / CELL).ceil().clamp(1.0, 2000.0);
            for step in 0..=steps as usize {
                let along = step as f64 / steps;
                self.add_point((x0 + along * (x1 - x0), y0 + along * (y1 - y0)));
            }
        }
    }

    pub(crate) fn add_point(&mut self, (x, y): (f64, f64)) {
        let (column, row) = ((x - self.frame.left) / CELL, (y - self.frame.top) / CELL);
        if column >= 0.0 && row >= 0.0 && (column as usize) < self.columns && (row as usize) < self.rows {
            self.ink[row as usize * self.columns + column as usize] = 1.0;
        }
    }

    /// A filled region, such as other text (weight 1 or more) or a bar (less).
    pub(crate) fn add_box(&mut self, area: &Rect, weight: f64) {
        let (columns, rows) = self.cells(area);
        for row in rows {
            for column in columns.clone() {
                let ink = &mut self.ink[row * self.columns + column];
                *ink = ink.max(weight);
            }
        }
    }

    /// Ink under `area`.
    pub(crate) fn under(&self, area: &Rect) -> f64 {
        let (columns, rows) = self.cells(area);
        rows.map(|row| self.ink[row * self.columns..][columns.clone()].iter().sum::<f64>()).sum()
    }

    fn cells(&self, area: &Rect) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
        let range = |low: f64, high: f64, count: usize| {
            let first = (low / CELL).floor().clamp(0.0, count as f64) as usize;
            first..((high / CELL).ceil().clamp(0.0, count as f64) as usize).max(first)
        };
        (
            range(area.left - self.frame.left, area.right - self.frame.left, self.columns),
            range(area.top - self.frame.top, area.bottom - self.frame.top, self.rows),
        )
    }

    /// The place for a box of this size with least ink under it, and that ink: a corner if one is free, else the best
    /// of a lattice of places. `pad` is the distance to the frame.
    pub(crate) fn emptiest(&self, width: f64, height: f64, pad: f64) -> (Rect, f64) {
        let inner = self.frame.grown(-pad);
        let (slack_x, slack_y) = ((inner.width() - width).max(0.0), (inner.height() - height).max(0.0));
        let at = |across: f64, down: f64| {
            let (left, top) = (inner.left + across * slack_x, inner.top + down * slack_y);
            Rect { left, top, right: left + width, bottom: top + height }
        };
        // Reading habit: upper right first.
        let corners = [(1.0, 0.0), (0.0, 0.0), (1.0, 1.0), (0.0, 1.0)];
        let lattice =
            (0..=12).flat_map(|i| (0..=12).map(move |j| (f64::from(i) / 12.0, f64::from(j) / 12.0)));
        let mut best: Option<(f64, f64, Rect)> = None;
        for (across, down) in corners.into_iter().chain(lattice) {
            let place = at(across, down);
            let ink = self.under(&place.grown(CELL));
            // Away from a corner a place must be clearly emptier to be worth it.
            let off_corner = across.min(1.0 - across) + down.min(1.0 - down);
            let cost = ink + if off_corner > 0.0 { 3.0 + 4.0 * off_corner } else { 0.0 };
            if best.is_none_or(|(least, ..)| cost < least) {
                best = Some((cost, ink, place));
            }
        }
        best.map_or((at(1.0, 0.0), 0.0), |(_, ink, place)| (place, ink))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Rect = Rect { left: 10.0, top: 20.0, right: 210.0, bottom: 170.0 };

    #[test]
    fn a_falling_curve_leaves_the_upper_right_and_a_rising_one_the_upper_left() {
        let mut falling = Occupancy::new(FRAME);
        falling.add_curve(&[(10.0, 20.0), (210.0, 170.0)]);
        let (place, ink) = falling.emptiest(60.0, 40.0, 4.0);
        assert!(ink == 0.0 && place.right == 206.0 && place.top == 24.0, "{place:?}");
        let mut rising = Occupancy::new(FRAME);
        rising.add_curve(&[(10.0, 170.0), (210.0, 20.0)]);
        assert_eq!(rising.emptiest(60.0, 40.0, 4.0).0.left, 14.0);
    }

    #[test]
    fn with_all_corners_taken_the_middle_is_used() {
        let mut map = Occupancy::new(FRAME);
        for (x, y) in [(10.0, 20.0), (160.0, 20.0), (10.0, 120.0), (160.0, 120.0)] {
            map.add_box(&Rect { left: x, top: y, right: x + 50.0, bottom: y + 50.0 }, 1.0);
        }
        let (place, ink) = map.emptiest(40.0, 30.0, 4.0);
        assert!(ink == 0.0 && place.left > 60.0 && place.right < 160.0, "{place:?} {ink}");
    }

    #[test]
    fn points_outside_the_frame_count_nothing() {
        let mut map = Occupancy::new(FRAME);
        map.add_curve(&[(-50.0, -50.0), (5.0, 10.0)]);
        map.add_point((f64::NAN, 30.0));
        assert_eq!(map.under(&FRAME), 0.0);
    }
}
