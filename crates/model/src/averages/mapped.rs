//! Averages of kicks that have been clipped, normalised or reduced to their signs.
//!
//! Such a kick has kinks or jumps, which no rule for smooth functions sees. But along any line of the space of fields the places are
//! found where they happen, and between them the kick is smooth. So one coordinate is integrated panel by panel between these
//! places, and what is left of the others is a smooth function again.
//!
//! The coordinate is the one along which the kick changes most. Coordinates along which it does not change at all are left out:
//! kicks that are linear in the fields, however many there are, need one dimension per trained row.

use super::Coordinates;
use crate::rule::{Averages, Kick, Law, LocalRule, Needed, Sample};
use crate::training::GradientMap;
use didact_math::gauss::quadrature::{GaussianRule, REACH};
use didact_math::gauss::{expectation, quadrature::gauss_hermite};
use didact_math::linalg::{Mat, symmetric_eigen};
use didact_math::roots::brent_between;

/// Lines that are integrated, about: 8 per axis of three others.
const LINES: usize = 1024;
/// Points of a line at which the kick is looked at to find its breaks.
const LOOKS: usize = 32;
/// Widest panel of a line, in standard deviations; it has 16 nodes.
const PANEL: f64 = 4.5;
/// The same where there is one line alone.
const FINE_PANEL: f64 = 1.0;
/// Coordinates with less of the squared gradient than this, relative to the largest, do not matter: rounding of the differences.
const INACTIVE: f64 = 1e-9;
/// Increment of the differences that find out which coordinates matter.
const INCREMENT: f64 = 1e-5;

/// The kick of a rule at points of independent normal coordinates, as linear combinations of the coordinates of the law.
struct Mapped<'a, R: ?Sized> {
    rule: &'a R,
    law: &'a Law<'a>,
    gradient: GradientMap,
    coordinates: Coordinates,
    fields: Vec<f64>,
    kick: Kick,
}

impl<R: LocalRule + ?Sized> Mapped<'_, R> {
    /// The kick as the rule gives it.
    fn plain(&mut self, z: &[f64]) -> &[f64] {
        let noise = self.coordinates.fields(z, &mut self.fields);
        let sample = Sample { fields: &self.fields, scalars: self.law.scalars, noise };
        self.rule.kick(&sample, &mut self.kick);
        &self.kick.rows
    }

    /// The kick after the map.
    fn mapped(&mut self, z: &[f64]) -> &[f64] {
        self.plain(z);
        match self.gradient {
            GradientMap::Sign => self.kick.rows.iter_mut().for_each(|kick| *kick = sign(*kick)),
            map => map.map(&mut self.kick.rows),
        }
        &self.kick.rows
    }

    /// Functions that change sign where the mapped kick breaks.
    fn switches(&mut self, z: &[f64], out: &mut [f64]) {
        let gradient = self.gradient;
        let kicks = self.plain(z);
        match gradient {
            GradientMap::Clip(at) => out[0] = kicks.iter().map(|k| k * k).sum::<f64>() - at * at,
            GradientMap::Plain | GradientMap::Normalised | GradientMap::Sign | GradientMap::Adam(_) => {
                out.copy_from_slice(kicks);
            }
        }
    }

    /// An orthonormal frame in which the kick depends on the first coordinates alone, on the first of them most.
    fn active_frame(&mut self, dimension: usize) -> Mat {
        let rows = self.kick.rows.len();
        let mut gram = Mat::zeros(dimension, dimension);
        let (mut z, mut slopes) = (vec![0.0; dimension], Mat::zeros(dimension, rows));
        // A few points off all symmetries: those of a golden-ratio sequence, through the normal quantile.
        for point in 0..4 * dimension + 8 {
            for (j, z) in z.iter_mut().enumerate() {
                let place =
                    (0.5 + (point + 1) as f64 * 0.618_033_988_749_895 * (1.0 + j as f64 * 0.37)).fract();
                *z = 1.5 * didact_math::gauss::normal::quantile(place.clamp(0.02, 0.98));
            }
            for j in 0..dimension {
                let here = z[j];
                z[j] = here + INCREMENT;
                let above = self.plain(&z).to_vec();
                z[j] = here - INCREMENT;
                let below = self.plain(&z);
                for i in 0..rows {
                    slopes[(j, i)] = (above[i] - below[i]) / (2.0 * INCREMENT);
                }
                z[j] = here;
            }
            gram.add_product_transposed(1.0, &slopes, &slopes);
        }
        let eigen = symmetric_eigen(&gram);
        let largest = eigen.values.last().copied().unwrap_or(0.0);
        let active: Vec<usize> =
            (0..dimension).rev().filter(|&k| eigen.values[k] > INACTIVE * largest).collect();
        Mat::from_fn(active.len(), dimension, |i, j| eigen.vectors[(j, active[i])])
    }
}

fn sign(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { x.signum() }
}

/// A, N and the scalar gradient of the mapped kicks of a rule. The scalar gradient is that of the rule itself.
pub fn mapped_averages<R: LocalRule + ?Sized>(
    rule: &R,
    law: &Law,
    gradient: GradientMap,
    needed: Needed,
    out: &mut Averages,
) {
    let shape = rule.shape();
    if shape.scalars > 0 {
        rule.averages(law, Needed::Drift, out);
    }
    if !law.covariance.is_finite() {
        out.drift.fill(f64::NAN);
        out.noise.fill(f64::NAN);
        return;
    }
    let coordinates = Coordinates::of(law);
    let dimension = coordinates.dimension();
    let (k, r) = (shape.trained, coordinates.owners.len());
    let mut mapped =
        Mapped { rule, law, gradient, coordinates, fields: vec![0.0; shape.rows()], kick: Kick::new(shape) };
    let frame = mapped.active_frame(dimension);
    let active = frame.rows();
    let outputs = k * active + k * k;
    let (mut z, mut along) = (vec![0.0; dimension], vec![0.0; active]);
    let switches = match gradient {
        GradientMap::Clip(_) => 1,
        GradientMap::Plain | GradientMap::Normalised | GradientMap::Sign | GradientMap::Adam(_) => k,
    };
    let mut line = |others: &[f64], values: &mut [f64]| {
        values.fill(0.0);
        if active == 0 {
            return;
        }
        along[1..].copy_from_slice(others);
        let place = |along: &mut [f64], u: f64, z: &mut [f64]| {
            along[0] = u;
            z.fill(0.0);
            for (u, axis) in along.iter().zip((0..active).map(|i| frame.row(i))) {
                z.iter_mut().zip(axis).for_each(|(z, e)| *z += u * e);
            }
        };
        let mut breaks = Vec::new();
        let (mut left, mut right) = (vec![0.0; switches], vec![0.0; switches]);
        let look = |i: usize| REACH * (2.0 * i as f64 / LOOKS as f64 - 1.0);
        place(&mut along, look(0), &mut z);
        mapped.switches(&z, &mut left);
        for i in 0..LOOKS {
            place(&mut along, look(i + 1), &mut z);
            mapped.switches(&z, &mut right);
            for which in 0..switches {
                if left[which] * right[which] < 0.0 {
                    let mut value = |u: f64| {
                        place(&mut along, u, &mut z);
                        let mut all = vec![0.0; switches];
                        mapped.switches(&z, &mut all);
                        all[which]
                    };
                    let ends = ((look(i), left[which]), (look(i + 1), right[which]));
                    breaks.extend(brent_between(&mut value, ends.0, ends.1, 0.0).ok());
                }
            }
            std::mem::swap(&mut left, &mut right);
        }
        let rule = GaussianRule::panels(&breaks, if active == 1 { FINE_PANEL } else { PANEL }, REACH);
        for (&u, weight) in rule.nodes.iter().zip(&rule.weights) {
            place(&mut along, u, &mut z);
            let kicks = mapped.mapped(&z);
            let (drift, square) = values.split_at_mut(k * active);
            for i in 0..k {
                for (sum, a) in drift[i * active..(i + 1) * active].iter_mut().zip(&along) {
                    *sum += weight * kicks[i] * a;
                }
                if needed == Needed::DriftAndNoise {
                    for j in 0..k {
                        square[i * k + j] += weight * kicks[i] * kicks[j];
                    }
                }
            }
        }
    };
    let average = match active {
        0 | 1 => {
            let mut values = vec![0.0; outputs];
            line(&[], &mut values);
            (values, 0.0)
        }
        2 => {
            // One other coordinate: a product rule of fixed size, compared with a coarser one.
            let sum = |nodes: usize, line: &mut dyn FnMut(&[f64], &mut [f64])| {
                let rule = gauss_hermite(nodes);
                let (mut sum, mut values) = (vec![0.0; outputs], vec![0.0; outputs]);
                for (z, w) in rule.nodes.iter().zip(&rule.weights) {
                    line(&[*z], &mut values);
                    sum.iter_mut().zip(&values).for_each(|(s, v)| *s += w * v);
                }
                sum
            };
            let (coarse, fine) = (sum(32, &mut line), sum(64, &mut line));
            let error = coarse.iter().zip(&fine).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            (fine, error)
        }
        _ => {
            let average = expectation(active - 1, outputs, line, LINES);
            let error = average.error.iter().copied().fold(0.0, f64::max);
            (average.mean, error)
        }
    };
    let (mean, error) = average;
    // E[kick zᵀ] = E[kick uᵀ] · frame: coordinates that do not matter have no part in it. Label noise has no column.
    let d = Mat::from_fn(k, r, |i, j| (0..active).map(|a| mean[i * active + a] * frame[(a, j)]).sum());
    mapped.coordinates.drift(&d, &mut out.drift);
    out.noise = Mat::from_fn(k, k, |i, j| mean[k * active + i * k + j]);
    out.error = error.max(if shape.scalars > 0 { out.error } else { 0.0 });
}
