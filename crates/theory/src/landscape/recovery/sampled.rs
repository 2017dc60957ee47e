//! Any link: samples sorted by their label, conditional moments from cells of neighbours.

use super::{KernelSum, Link, Method};
use crate::landscape::error::LandscapeError;
use didact_math::linalg::{Mat, symmetric_eigen};
use didact_math::random::{Address, Stream};

/// Samples per group, groups, and cells.
const SAMPLES: usize = 1 << 18;
const GROUPS: usize = 8;
const CELLS: usize = 512;

/// E[K ⊗ K], the standard error of its largest eigenvalue, and the name of the method.
///
/// The samples of two independent groups fall into common cells of y, and K ⊗ K is the product of their two estimates: unbiased, where the
/// square of one estimate would add its variance. Cells have equal numbers of samples; equal labels share a cell.
pub(super) fn kernel(k: usize, link: Link) -> Result<(Mat, f64, Method), LandscapeError> {
    let mut mean = Mat::zeros(k * k, k * k);
    let mut largest = Vec::new();
    for pair in 0..GROUPS / 2 {
        let (one, other) = (group(k, link, 2 * pair)?, group(k, link, 2 * pair + 1)?);
        let borders = borders(&one);
        let (one, other) = (moments(&one, &borders, k), moments(&other, &borders, k));
        let mut sum = KernelSum::new(k);
        for (a, b) in one.iter().zip(&other) {
            if a.0 > 0.0 && b.0 > 0.0 {
                let probability = (a.0 + b.0) / (2 * SAMPLES) as f64;
                sum.add_product(probability, &a.1.scaled(1.0 / a.0), &b.1.scaled(1.0 / b.0));
            }
        }
        let kernel = sum.symmetric();
        largest.push(*symmetric_eigen(&kernel).values.last().expect("k is at least 1"));
        mean.add_scaled(2.0 / GROUPS as f64, &kernel);
    }
    let n = largest.len() as f64;
    let centre = largest.iter().sum::<f64>() / n;
    let variance = largest.iter().map(|l| (l - centre).powi(2)).sum::<f64>() / (n - 1.0);
    Ok((mean, (variance / n).sqrt(), Method::Sampled))
}

/// (label, z) of independent samples, sorted by label.
fn group(k: usize, link: Link, number: usize) -> Result<Vec<(f64, Vec<f64>)>, LandscapeError> {
    let mut stream = Stream::at(Address { seed: 23, replica: number as u32, step: 0, lane: 0 });
    let mut samples = Vec::with_capacity(SAMPLES);
    let mut x = vec![0.0; k + 1];
    for _ in 0..SAMPLES {
        stream.fill_normal(&mut x);
        let y = link(&x[..k], x[k]);
        if !y.is_finite() {
            return Err(LandscapeError::LinkNotFinite { at: x[..k].to_vec(), value: y });
        }
        samples.push((y, x[..k].to_vec()));
    }
    samples.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(samples)
}

/// Upper ends of the cells but the last, strictly ascending.
fn borders(sorted: &[(f64, Vec<f64>)]) -> Vec<f64> {
    let mut borders: Vec<f64> = (1..CELLS).map(|i| sorted[i * sorted.len() / CELLS].0).collect();
    borders.dedup();
    borders
}

/// Per cell: how many samples, and Σ z zᵀ. A label on a border belongs to the cell above it.
fn moments(sorted: &[(f64, Vec<f64>)], borders: &[f64], k: usize) -> Vec<(f64, Mat)> {
    let mut cells = vec![(0.0, Mat::zeros(k, k)); borders.len() + 1];
    let mut cell = 0;
    for (y, z) in sorted {
        while cell < borders.len() && *y >= borders[cell] {
            cell += 1;
        }
        cells[cell].0 += 1.0;
        for i in 0..k {
            for j in 0..k {
                cells[cell].1[(i, j)] += z[i] * z[j];
            }
        }
    }
    cells
}
