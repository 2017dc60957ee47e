//! Averages along a trajectory, from those at a few of its earlier points.
//!
//! A right-hand side is asked for at thousands of points of one smooth curve. An expensive average N(C) is computed at some of them
//! and continued to the others: with the last points C_0, C_1, … and differences u_j = C_j − C_0 made orthogonal to each other,
//!
//!   C − C_0 = Σ_j c_j u_j + rest,      N(C) ≈ N_0 + Σ_j c_j n_j,
//!
//! n_j being the same combinations of N_j − N_0. The terms are those of a polynomial in the arc length of rising degree, so the last
//! one shows the error, and so does the rest. Where either is too large the average is computed.

use didact_math::linalg::{Mat, dot};

/// Points that are kept. A multistep method follows the curve with polynomials of up to twelfth degree, so fewer points would see less of it.
const KEPT: usize = 16;
/// Terms with larger factors than this would continue the curve too far beyond what is known.
const FARTHEST: f64 = 5.0;

/// The last points at which an average was computed, newest last.
#[derive(Debug, Default)]
pub struct Nearby {
    points: Vec<(Vec<f64>, Mat)>,
}

impl Nearby {
    /// Remembers a point and its average.
    pub fn push(&mut self, place: Vec<f64>, value: Mat) {
        if self.points.len() == KEPT {
            self.points.remove(0);
        }
        self.points.push((place, value));
    }

    /// Forgets all points: averages of another accuracy do not go on smoothly.
    pub fn clear(&mut self) {
        self.points.clear();
    }

    /// The average at a new point, if it is known to `accuracy`, relative to its largest entry and to that of the place.
    pub fn predict(&self, place: &[f64], accuracy: f64) -> Option<Mat> {
        let ((origin, first), older) = self.points.split_last()?;
        let largest = |v: &[f64]| v.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let close = accuracy * largest(place);
        let mut rest: Vec<f64> = place.iter().zip(origin).map(|(a, b)| a - b).collect();
        let mut value = first.clone();
        if largest(&rest) <= close {
            return Some(value);
        }
        let mut basis: Vec<(Vec<f64>, Mat)> = Vec::with_capacity(older.len());
        for (place, other) in older.iter().rev() {
            let mut along: Vec<f64> = place.iter().zip(origin).map(|(a, b)| a - b).collect();
            let mut change = other.clone();
            change.add_scaled(-1.0, first);
            let whole = dot(&along, &along);
            for (known, known_change) in &basis {
                let share = dot(&along, known) / dot(known, known);
                along.iter_mut().zip(known).for_each(|(a, b)| *a -= share * b);
                change.add_scaled(-share, known_change);
            }
            let square = dot(&along, &along);
            // Directions that are rounding noise say nothing.
            if square <= 1e-22 * whole {
                continue;
            }
            let factor = dot(&rest, &along) / square;
            if factor.is_nan() || factor.abs() > FARTHEST {
                return None;
            }
            rest.iter_mut().zip(&along).for_each(|(a, b)| *a -= factor * b);
            value.add_scaled(factor, &change);
            if largest(&rest) <= close && factor.abs() * change.max_abs() <= accuracy * value.max_abs() {
                return Some(value);
            }
            basis.push((along, change));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(t: f64) -> Vec<f64> {
        (0..12).map(|k| (0.4 * f64::from(k) * t + 0.1).cos() / f64::from(k + 1)).collect()
    }

    fn value(p: &[f64]) -> Mat {
        Mat::from_fn(2, 2, |i, j| (p[1] + i as f64 * p[2]).tanh() + p[5] * p[3] + j as f64 * p[4] * p[1])
    }

    #[test]
    fn a_smooth_average_is_continued_within_its_accuracy_and_computed_rarely() {
        for accuracy in [1e-5, 1e-7] {
            let (mut nearby, mut computed) = (Nearby::default(), 0);
            for step in 0..1000 {
                let p = place(1e-3 * f64::from(step));
                let exact = value(&p);
                if let Some(mut got) = nearby.predict(&p, accuracy) {
                    got.add_scaled(-1.0, &exact);
                    assert!(
                        got.max_abs() <= 10.0 * accuracy * exact.max_abs(),
                        "{step}: {:e}",
                        got.max_abs()
                    );
                } else {
                    computed += 1;
                    nearby.push(p, exact);
                }
            }
            assert!(computed < 60, "{computed} at {accuracy:e}");
        }
    }

    #[test]
    fn a_turn_is_not_foretold() {
        let mut nearby = Nearby::default();
        for step in 0..5 {
            let p = place(0.01 * f64::from(step));
            nearby.push(p.clone(), value(&p));
        }
        let mut aside = place(0.05);
        aside[3] += 1e-3;
        assert!(nearby.predict(&aside, 1e-6).is_none());
        assert!(Nearby::default().predict(&aside, 1e-6).is_none());
    }
}
