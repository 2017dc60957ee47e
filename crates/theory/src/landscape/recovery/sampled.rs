//! Any link: samples sorted by their label, conditional moments from cells of neighbours.

use super::{ConditionalMethod, KernelSum, Link};
use crate::landscape::error::LandscapeError;
use didact_math::linalg::{Mat, symmetric_eigen};
use didact_math::random::{RngAddress, Stream};

/// Samples per group, groups, and cells.
const SAMPLES: usize = 1 << 18;
const GROUPS: usize = 8;
const CELLS: usize = 512;

/// E[K ⊗ K], the standard error of its largest eigenvalue, and the name of the method.
///
/// The samples of two independent groups fall into common cells of y, and K ⊗ K is the product of their two estimates: unbiased, where the
/// square of one estimate would add its variance. Cells have equal numbers of samples; equal labels share a cell.
pub(super) fn kernel(k: usize, link: Link) -> Result<(Mat, f64, ConditionalMethod), LandscapeError> {
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
    Ok((mean, (variance / n).sqrt(), ConditionalMethod::Sampled))
}

/// Independent samples, and their order by label.
struct Group {
    labels: Vec<f64>,
    latent: Vec<f64>,
    order: Vec<usize>,
}

fn group(k: usize, link: Link, number: usize) -> Result<Group, LandscapeError> {
    let mut stream = Stream::at(RngAddress { seed: 23, replica: number as u32, step: 0, lane: 0 });
    let (mut labels, mut latent) = (Vec::with_capacity(SAMPLES), Vec::with_capacity(k * SAMPLES));
    let mut x = vec![0.0; k + 1];
    for _ in 0..SAMPLES {
        stream.fill_normal(&mut x);
        let y = link(&x[..k], x[k]);
        if !y.is_finite() {
            return Err(LandscapeError::LinkNotFinite { at: x[..k].to_vec(), value: y });
        }
        labels.push(y);
        latent.extend_from_slice(&x[..k]);
    }
    let mut order: Vec<usize> = (0..SAMPLES).collect();
    order.sort_unstable_by(|a, b| labels[*a].total_cmp(&labels[*b]));
    Ok(Group { labels, latent, order })
}

/// Upper ends of the cells but the last, strictly ascending.
fn borders(group: &Group) -> Vec<f64> {
    let mut borders: Vec<f64> = (1..CELLS).map(|i| group.labels[group.order[i * SAMPLES / CELLS]]).collect();
    borders.dedup();
    borders
}

/// Per cell: how many samples, and Σ z zᵀ. A label on a border belongs to the cell above it.
fn moments(group: &Group, borders: &[f64], k: usize) -> Vec<(f64, Mat)> {
    let mut cells = vec![(0.0, Mat::zeros(k, k)); borders.len() + 1];
    let mut cell = 0;
    for &sample in &group.order {
        while cell < borders.len() && group.labels[sample] >= borders[cell] {
            cell += 1;
        }
        let z = &group.latent[k * sample..k * (sample + 1)];
        cells[cell].0 += 1.0;
        for i in 0..k {
            for j in 0..k {
                cells[cell].1[(i, j)] += z[i] * z[j];
            }
        }
    }
    cells
}
