//! Homogeneous links of two variables, y = r^p g(θ): along every ray there is one preimage.

use super::{KernelSum, Link, close, probes, tanh_sinh};
use didact_math::linalg::Mat;
use didact_math::roots::{brent, minimum};
use std::f64::consts::{PI, TAU};

/// Cells of the scan for zeros of g, and nodes of the circle when there is none.
const CELLS: usize = 1440;
/// Spacing of ln|y|/p.
const SPACING: f64 = 0.05;
/// Range of ln r: below, the mass r² is under 1e-33; above, the Gaussian is.
const RANGE: (f64, f64) = (-38.0, 2.3);

/// E[K ⊗ K] for two variables and a link with h(λz) = λ^p h(z), p > 0.
pub(super) fn kernel(k: usize, link: Link) -> Option<Mat> {
    if k != 2 {
        return None;
    }
    let power = power(link)?;
    let profile = |angle: f64| link(&[angle.cos(), angle.sin()], 0.0);
    let rays = rays(&profile);
    let mut sum = KernelSum::new(2);
    for sign in [1.0, -1.0] {
        let rays: Vec<&Ray> = rays.iter().filter(|ray| ray.value * sign > 0.0).collect();
        let logs: Vec<f64> = rays.iter().map(|ray| ray.value.abs().ln() / power).collect();
        let Some(largest) = logs.iter().copied().reduce(f64::max) else { continue };
        // s = ln|y|/p = ln r + ln|g|/p.
        let cells = ((RANGE.1 - RANGE.0) / SPACING) as i64;
        for cell in 0..=cells {
            let s = RANGE.0 + SPACING * cell as f64 + largest;
            let (mut mass, mut second) = (0.0, Mat::zeros(2, 2));
            for (ray, log) in rays.iter().zip(&logs) {
                let square = (2.0 * (s - log)).exp();
                let p = ray.weight * square * (-0.5 * square).exp();
                mass += p;
                for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                    second[(i, j)] += p * square * ray.unit[i] * ray.unit[j];
                }
            }
            if mass > 1e-300 {
                sum.add(mass * SPACING, &second.scaled(1.0 / mass));
            }
        }
    }
    Some(sum.symmetric())
}

struct Ray {
    unit: [f64; 2],
    value: f64,
    /// Share of the circle.
    weight: f64,
}

fn power(link: Link) -> Option<f64> {
    let degree = |z: &Vec<f64>, factor: f64| {
        let scaled: Vec<f64> = z.iter().map(|x| factor * x).collect();
        let ratio = link(&scaled, 0.0) / link(z, 0.0);
        (ratio > 0.0).then(|| ratio.ln() / factor.ln())
    };
    let probes = probes(2, 20);
    let first = degree(&probes[0], 2.0)?;
    let same =
        |z: &Vec<f64>| [0.3, 2.0].iter().all(|factor| degree(z, *factor).is_some_and(|p| close(p, first)));
    (first > 1e-6 && probes.iter().all(same)).then_some(first)
}

/// Nodes on the circle: sectors between zeros of g by tanh-sinh, the whole circle evenly if there is none.
fn rays(profile: &dyn Fn(f64) -> f64) -> Vec<Ray> {
    let zeros = zeros(profile);
    let ray =
        |angle: f64, weight: f64| Ray { unit: [angle.cos(), angle.sin()], value: profile(angle), weight };
    if zeros.is_empty() {
        return (0..CELLS).map(|i| ray(TAU * i as f64 / CELLS as f64, 1.0 / CELLS as f64)).collect();
    }
    let rule = tanh_sinh::nodes();
    let mut all = Vec::new();
    for (n, &from) in zeros.iter().enumerate() {
        let to = if n + 1 < zeros.len() { zeros[n + 1] } else { zeros[0] + TAU };
        for (share, rest, w) in &rule {
            // From the nearer end, so that the distance to it keeps its digits.
            let angle = if share < rest { from + (to - from) * share } else { to - (to - from) * rest };
            all.push(ray(angle, w * (to - from) / TAU));
        }
    }
    all.retain(|ray| ray.value != 0.0);
    all
}

/// Where g vanishes, with or without a change of sign.
fn zeros(profile: &dyn Fn(f64) -> f64) -> Vec<f64> {
    // Starts off the axes and diagonals, where zeros like to be.
    let at = |i: usize| 0.1234 * PI + TAU * i as f64 / CELLS as f64;
    let values: Vec<f64> = (0..=CELLS + 1).map(|i| profile(at(i))).collect();
    let size = values.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    let mut zeros = Vec::new();
    for i in 1..=CELLS {
        if (values[i - 1] > 0.0) != (values[i] > 0.0) {
            zeros.extend(brent(profile, at(i - 1), at(i), 0.0));
        } else if values[i].abs() <= values[i - 1].abs() && values[i].abs() < values[i + 1].abs() {
            let touch = minimum(|x| profile(x).abs(), at(i - 1), at(i + 1), 1e-14);
            if touch.value < 1e-12 * size {
                zeros.push(touch.at);
            }
        }
    }
    zeros
}
