//! The loops over samples: vectors of [`LANES`](super::LANES) numbers that stay in the first-level cache.

use super::LANES;
use didact_math::dispatch;

/// Sums that run side by side: enough to hide the latency of an addition.
const WIDE: usize = 32;

dispatch! {
    /// out = Σ_k coefficients[k] arrays[k], with arrays one after the other, LANES long each.
    pub(super) fn combine(coefficients: &[f64], arrays: &[f64], out: &mut [f64]) {
        let out: &mut [f64; LANES] = out.try_into().expect("one vector");
        for at in (0..LANES).step_by(WIDE) {
            let mut sums = [0.0; WIDE];
            for (c, array) in coefficients.iter().zip(arrays.chunks_exact(LANES)) {
                let part: &[f64; WIDE] = array[at..at + WIDE].try_into().expect("a part of a vector");
                for lane in 0..WIDE {
                    sums[lane] = c.mul_add(part[lane], sums[lane]);
                }
            }
            out[at..at + WIDE].copy_from_slice(&sums);
        }
    }
}

dispatch! {
    /// Σ a b.
    pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
        let (a, b): (&[f64; LANES], &[f64; LANES]) = (a.try_into().expect("one vector"), b.try_into().expect("one vector"));
        let mut sums = [0.0; WIDE];
        for at in (0..LANES).step_by(WIDE) {
            for lane in 0..WIDE {
                sums[lane] = a[at + lane].mul_add(b[at + lane], sums[lane]);
            }
        }
        fold(&sums)
    }
}

dispatch! {
    /// out = a b, or out += a b; returns the sum of the products.
    pub(super) fn multiply_into(a: &[f64], b: &[f64], out: &mut [f64], overwrite: bool) -> f64 {
        let (a, b): (&[f64; LANES], &[f64; LANES]) = (a.try_into().expect("one vector"), b.try_into().expect("one vector"));
        let out: &mut [f64; LANES] = out.try_into().expect("one vector");
        if overwrite {
            out.fill(0.0);
        }
        let mut sums = [0.0; WIDE];
        for at in (0..LANES).step_by(WIDE) {
            for lane in 0..WIDE {
                let product = a[at + lane] * b[at + lane];
                sums[lane] += product;
                out[at + lane] += product;
            }
        }
        fold(&sums)
    }
}

dispatch! {
    /// out = a weights.
    pub(super) fn weigh(a: &[f64], weights: &[f64], out: &mut [f64]) {
        for ((out, a), w) in out.iter_mut().zip(a).zip(weights) {
            *out = a * w;
        }
    }
}

/// Σ a.
pub(super) fn sum(a: &[f64]) -> f64 {
    let mut sums = [0.0; WIDE];
    for part in a.chunks_exact(WIDE) {
        for lane in 0..WIDE {
            sums[lane] += part[lane];
        }
    }
    fold(&sums)
}

#[inline(always)]
fn fold(sums: &[f64; WIDE]) -> f64 {
    let mut width = WIDE;
    let mut sums = *sums;
    while width > 1 {
        width /= 2;
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
    }
    sums[0]
}
