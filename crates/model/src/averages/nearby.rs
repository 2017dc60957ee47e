//! Averages along a trajectory, from those at a few of its earlier points.
//!
//! A right-hand side is asked for at thousands of points of one smooth curve. An expensive average N(C) is computed at some of them
//! and continued to the others: with the last points C_0, C_1, … and differences u_j = C_j − C_0 made orthogonal to each other,
//!
//!   C − C_0 = Σ_j c_j u_j + rest,      N(C) ≈ N_0 + Σ_j c_j n_j,
//!
//! n_j being the same combinations of N_j − N_0. The terms are those of a polynomial in the arc length of rising degree, so the last
//! one shows the error, and so does the rest. Where either is too large the average is computed.

use didact_math::linalg::dot;

/// Points that are kept. A multistep method follows the curve with polynomials of up to twelfth degree, so fewer points would see less of it.
const KEPT: usize = 16;
/// Terms with larger factors than this would continue the curve too far beyond what is known.
const FARTHEST: f64 = 5.0;
/// Directions whose squared length is below this fraction of that of the difference that they are made of are rounding noise.
const NOISE: f64 = 1e-22;

/// The last points at which averages were computed, newest last.
///
/// An average is a list of numbers in one or several parts (drift, noise, …), each of which is to be known relative to its own size.
#[derive(Debug, Default)]
pub struct Nearby {
    points: Vec<(Vec<f64>, Vec<f64>)>,
    /// Where each part of an average ends.
    ends: Vec<usize>,
    /// The directions u_j and changes n_j from the newest point, as many as were asked for since then.
    basis: Vec<Direction>,
    /// How many points before the newest one have been looked at for the basis.
    seen: usize,
    rest: Vec<f64>,
    value: Vec<f64>,
}

/// u_j, n_j and |u_j|².
#[derive(Debug)]
struct Direction {
    along: Vec<f64>,
    square: f64,
    change: Vec<f64>,
    /// The largest change of every part.
    largest: Vec<f64>,
}

impl Nearby {
    /// Remembers a point and its average, the parts of which end at these places of the list.
    pub fn push(&mut self, place: Vec<f64>, value: Vec<f64>, ends: &[usize]) {
        if self.ends != ends {
            self.clear();
            self.ends = ends.to_vec();
        }
        if self.points.len() == KEPT {
            self.points.remove(0);
        }
        self.points.push((place, value));
        self.basis.clear();
        self.seen = 0;
    }

    /// Forgets all points: averages of another accuracy do not go on smoothly.
    pub fn clear(&mut self) {
        self.points.clear();
        self.basis.clear();
        self.seen = 0;
    }

    /// The average at a new point, if every part is known to `accuracy`, relative to its largest entry, and the place to the same
    /// relative to its own.
    pub fn predict(&mut self, place: &[f64], accuracy: f64) -> Option<&[f64]> {
        let (origin, first) = self.points.last()?;
        let close = accuracy * largest(place);
        self.rest.clear();
        self.rest.extend(place.iter().zip(origin).map(|(a, b)| a - b));
        self.value.clear();
        self.value.extend_from_slice(first);
        if largest(&self.rest) <= close {
            return Some(&self.value);
        }
        let mut next = 0;
        loop {
            if next == self.basis.len() && !self.add_direction() {
                return None;
            }
            let Direction { along, square, change, largest: changes } = &self.basis[next];
            let factor = dot(&self.rest, along) / square;
            if factor.is_nan() || factor.abs() > FARTHEST {
                return None;
            }
            add_scaled(&mut self.rest, -factor, along);
            add_scaled(&mut self.value, factor, change);
            let small = || {
                let mut from = 0;
                self.ends.iter().zip(changes).all(|(&end, change)| {
                    let part = &self.value[from..end];
                    from = end;
                    factor.abs() * change <= accuracy * largest(part)
                })
            };
            if largest(&self.rest) <= close && small() {
                return Some(&self.value);
            }
            next += 1;
        }
    }

    /// Makes the difference to the next older point that is no combination of those before orthogonal to them. False where there is none.
    fn add_direction(&mut self) -> bool {
        let Some(((origin, first), older)) = self.points.split_last() else { return false };
        while self.seen < older.len() {
            let (place, other) = &older[older.len() - 1 - self.seen];
            self.seen += 1;
            let mut along: Vec<f64> = place.iter().zip(origin).map(|(a, b)| a - b).collect();
            let mut change: Vec<f64> = other.iter().zip(first).map(|(a, b)| a - b).collect();
            let whole = dot(&along, &along);
            for known in &self.basis {
                let share = dot(&along, &known.along) / known.square;
                add_scaled(&mut along, -share, &known.along);
                add_scaled(&mut change, -share, &known.change);
            }
            let square = dot(&along, &along);
            if square <= NOISE * whole {
                continue;
            }
            let mut from = 0;
            let part = |&end: &usize| {
                let size = largest(&change[from..end]);
                from = end;
                size
            };
            let sizes = self.ends.iter().map(part).collect();
            self.basis.push(Direction { along, square, change, largest: sizes });
            return true;
        }
        false
    }
}

fn largest(v: &[f64]) -> f64 {
    v.iter().fold(0.0, |most: f64, x| most.max(x.abs()))
}

fn add_scaled(out: &mut [f64], factor: f64, other: &[f64]) {
    out.iter_mut().zip(other).for_each(|(a, b)| *a += factor * b);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(t: f64) -> Vec<f64> {
        (0..12).map(|k| (0.4 * f64::from(k) * t + 0.1).cos() / f64::from(k + 1)).collect()
    }

    fn value(p: &[f64]) -> Vec<f64> {
        let entry =
            |i: usize, j: usize| (p[1] + i as f64 * p[2]).tanh() + p[5] * p[3] + j as f64 * p[4] * p[1];
        [entry(0, 0), entry(0, 1), entry(1, 0), entry(1, 1), 1e-3 * entry(0, 1) + 1e-3 * entry(1, 0)].to_vec()
    }

    /// Every part is judged by its own size: the last one is a thousand times smaller than the first.
    #[test]
    fn a_smooth_average_is_continued_within_its_accuracy_and_computed_rarely() {
        for accuracy in [1e-5, 1e-7] {
            let (mut nearby, mut computed) = (Nearby::default(), 0);
            for step in 0..1000 {
                let p = place(1e-3 * f64::from(step));
                let exact = value(&p);
                if let Some(got) = nearby.predict(&p, accuracy) {
                    for part in [0..4, 4..5] {
                        let off: Vec<f64> =
                            got[part.clone()].iter().zip(&exact[part.clone()]).map(|(a, b)| a - b).collect();
                        let (off, size) = (largest(&off), largest(&exact[part]));
                        assert!(off <= 10.0 * accuracy * size, "{step}: {off:e} of {size}");
                    }
                } else {
                    computed += 1;
                    nearby.push(p, exact, &[4, 5]);
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
            nearby.push(p.clone(), value(&p), &[4, 5]);
        }
        let mut aside = place(0.05);
        aside[3] += 1e-3;
        assert!(nearby.predict(&aside, 1e-6).is_none());
        assert!(Nearby::default().predict(&aside, 1e-6).is_none());
    }
}
