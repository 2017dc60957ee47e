//! Additive Gaussian noise: the density of y is a sum of Gaussians of width s, one per node of z.

use super::{KernelSum, Link};
use didact_math::gauss::normal::density;
use didact_math::linalg::Mat;

/// Points of y per noise width.
const PER_WIDTH: f64 = 5.0;
/// A Gaussian ends after this many widths.
const REACH: f64 = 8.5;
/// Work that is refused: evaluations of the Gaussian.
const MOST: f64 = 3e9;
/// Cells of y that are refused.
const MOST_CELLS: f64 = 3e6;

/// E[K ⊗ K] for h(z, ε) = h(z, 0) + s ε, up to three latent variables; `None` when the noise is too small for the grid.
pub(super) fn kernel(k: usize, link: Link, s: f64) -> Option<Mat> {
    let spacing = spacing(k, link, s);
    let side = (REACH / spacing).ceil() as i64;
    let (axis, shares): (Vec<f64>, Vec<f64>) =
        (-side..=side).map(|i| (i as f64 * spacing, spacing * density(i as f64 * spacing))).unzip();
    let nodes = axis.len().pow(k as u32);
    let window = (2.0 * REACH * PER_WIDTH) as usize;
    if nodes as f64 * window as f64 > MOST {
        return None;
    }
    let step = s / PER_WIDTH;
    let entries = 1 + k * (k + 1) / 2;
    let mut z = vec![0.0; k];
    let mut visit = |each: &mut dyn FnMut(f64, &[f64], f64)| {
        for code in 0..nodes {
            let (mut digits, mut p) = (code, 1.0);
            for slot in &mut z {
                *slot = axis[digits % axis.len()];
                p *= shares[digits % axis.len()];
                digits /= axis.len();
            }
            if p >= 1e-17 * spacing.powi(k as i32) {
                each(p, &z, link(&z, 0.0));
            }
        }
    };
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    visit(&mut |_, _, label| (low, high) = (low.min(label), high.max(label)));
    let count = ((high - low) / step).ceil() + 2.0 * REACH * PER_WIDTH + 2.0;
    if !count.is_finite() || count >= MOST_CELLS {
        return None;
    }
    let origin = low - REACH * s;
    let mut cells = vec![0.0; count as usize * entries];
    let mut row = vec![0.0; entries];
    visit(&mut |p, z, label| {
        row[0] = p;
        let mut entry = 1;
        for i in 0..k {
            for j in 0..=i {
                row[entry] = p * z[i] * z[j];
                entry += 1;
            }
        }
        let first = ((label - low) / step).ceil() as usize;
        for (cell, slot) in cells.chunks_exact_mut(entries).enumerate().skip(first).take(window) {
            let gauss = density((origin + cell as f64 * step - label) / s);
            slot.iter_mut().zip(&row).for_each(|(slot, x)| *slot += gauss * x);
        }
    });
    let mut sum = KernelSum::new(k);
    let total: f64 = cells.chunks_exact(entries).map(|row| row[0]).sum();
    for row in cells.chunks_exact(entries).filter(|row| row[0] > 1e-200) {
        let entry = |i: usize, j: usize| {
            let (high, low) = (i.max(j), i.min(j));
            row[1 + high * (high + 1) / 2 + low] / row[0]
        };
        sum.add(row[0] / total, &Mat::from_fn(k, k, entry));
    }
    Some(sum.symmetric())
}

/// A grid of z that moves the label by less than the noise from node to node, where there is weight (|z| < 6).
fn spacing(k: usize, link: Link, s: f64) -> f64 {
    let mut steepest: f64 = 0.0;
    for z in super::probes(k, 400) {
        let stretch = 2.0;
        for i in 0..k {
            let at = |shift: f64| {
                let mut point: Vec<f64> = z.iter().map(|x| stretch * x).collect();
                point[i] += shift;
                link(&point, 0.0)
            };
            steepest = steepest.max(((at(1e-4) - at(-1e-4)) / 2e-4).abs());
        }
    }
    (0.7 * s / steepest.max(1e-9)).min(0.1)
}
