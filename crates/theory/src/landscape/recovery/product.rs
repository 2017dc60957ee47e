//! Links that are products of powers, h(z) = ± c ∏ |z_i|^{p_i}: ln|y| is a sum of independent variables t_i = p_i ln|z_i|.

use super::{KernelSum, Link, close, probes};
use didact_math::gauss::normal::density;
use didact_math::linalg::Mat;

/// Spacing in t: the density of ln|z| is analytic for |Im| < π/4, so the trapezoidal rule errs by e^{−π²/(2·0.05)} = 1e-43.
const SPACING: f64 = 0.05;
/// e^{−38} = 3e-17 of the mass of ln|z| lies below −38.
const DEPTH: f64 = 38.0;
/// |z| = 9 is the largest that matters.
const TOP: f64 = 2.2;

/// E[K ⊗ K] if the link is such a product.
pub(super) fn kernel(k: usize, link: Link) -> Option<Mat> {
    let powers = powers(k, link)?;
    let signs = signs(k, link)?;
    let second = |i: usize, j: usize| convolution(&powers, |n| f64::from(n == i) + f64::from(n == j));
    let total = convolution(&powers, |_| 0.0);
    let moments: Vec<Vec<Vec<f64>>> = (0..k).map(|i| (0..=i).map(|j| second(i, j)).collect()).collect();
    let mut sum = KernelSum::new(k);
    for (share, correlation) in &signs {
        for (cell, p) in total.iter().enumerate() {
            if *p > 1e-300 {
                let entry = |i: usize, j: usize| moments[i.max(j)][i.min(j)][cell] / p * correlation[(i, j)];
                sum.add(share * p * SPACING, &Mat::from_fn(k, k, entry));
            }
        }
    }
    Some(sum.symmetric())
}

/// p_i ≥ 0, not all 0.
fn powers(k: usize, link: Link) -> Option<Vec<f64>> {
    let mut powers: Option<Vec<f64>> = None;
    for z in probes(k, 20) {
        let value = link(&z, 0.0);
        let mut here = Vec::with_capacity(k);
        for i in 0..k {
            let mut scaled = z.clone();
            scaled[i] *= 2.0;
            let ratio = link(&scaled, 0.0) / value;
            if !(ratio.is_finite() && ratio > 0.0) {
                return None;
            }
            here.push(ratio.log2());
        }
        match &powers {
            Some(known) if !known.iter().zip(&here).all(|(a, b)| close(*a, *b)) => return None,
            Some(_) => {}
            None => powers = Some(here),
        }
    }
    powers.filter(|p| p.iter().all(|p| *p > -1e-9) && p.iter().any(|p| *p > 1e-6))
}

/// For every sign of the label: its probability, and E[sign z_i sign z_j] given it. `None` if |h| depends on the signs.
fn signs(k: usize, link: Link) -> Option<Vec<(f64, Mat)>> {
    let mut found: Vec<(f64, f64, Mat)> = Vec::new();
    let size = link(&vec![1.0; k], 0.0).abs();
    for code in 0..1usize << k {
        let z: Vec<f64> = (0..k).map(|i| if code >> i & 1 == 1 { -1.0 } else { 1.0 }).collect();
        let y = link(&z, 0.0);
        if !close(y.abs(), size) {
            return None;
        }
        let outer = Mat::from_fn(k, k, |i, j| z[i] * z[j]);
        match found.iter_mut().find(|(sign, ..)| *sign == y.signum()) {
            Some((_, count, sum)) => {
                *count += 1.0;
                sum.add_scaled(1.0, &outer);
            }
            None => found.push((y.signum(), 1.0, outer)),
        }
    }
    let all = (1u64 << k) as f64;
    Some(found.into_iter().map(|(_, count, sum)| (count / all, sum.scaled(1.0 / count))).collect())
}

/// On a grid of Σ t_i: the density of the sum, every factor weighted with |z_n|^{tilt(n)}. Factors of power 0 only contribute their mean.
fn convolution(powers: &[f64], tilt: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut result: Option<Vec<f64>> = None;
    let mut constant = 1.0;
    for (n, &p) in powers.iter().enumerate() {
        let at = |t: f64, p: f64| {
            let z = (t / p).exp();
            2.0 * density(z) * z / p * z.powf(tilt(n))
        };
        if p <= 1e-6 {
            let cells = ((DEPTH + TOP) / SPACING) as i64;
            constant *= (0..cells).map(|i| SPACING * at(i as f64 * SPACING - DEPTH, 1.0)).sum::<f64>();
            continue;
        }
        let cells = ((DEPTH + TOP) * p / SPACING).ceil() as i64;
        let factor: Vec<f64> = (0..cells).map(|i| at(i as f64 * SPACING - DEPTH * p, p)).collect();
        result = Some(match result {
            None => factor,
            Some(before) => {
                let mut sum = vec![0.0; before.len() + factor.len() - 1];
                for (i, b) in before.iter().enumerate() {
                    for (slot, f) in sum[i..].iter_mut().zip(&factor) {
                        *slot += SPACING * b * f;
                    }
                }
                sum
            }
        });
    }
    let mut result = result.expect("a power is positive");
    result.iter_mut().for_each(|x| *x *= constant);
    result
}
