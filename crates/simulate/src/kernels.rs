//! The loops over d of direct simulation.
//!
//! Sums run in eight lanes so that the compiler may use vector registers without changing the order of any addition:
//! the numbers are the same on every processor.

use didact_math::dispatch;
use didact_math::linalg::Mat;

const LANES: usize = 8;

#[inline(always)]
fn fold(lanes: [f64; LANES]) -> f64 {
    ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) + ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]))
}

/// R dot products with the same x.
#[inline(always)]
fn dots<const R: usize>(rows: [&[f64]; R], x: &[f64]) -> [f64; R] {
    let mut lanes = [[0.0; LANES]; R];
    let whole = x.len() / LANES * LANES;
    for at in (0..whole).step_by(LANES) {
        let xs: &[f64; LANES] = x[at..at + LANES].try_into().expect("a whole chunk");
        for (row, sums) in rows.iter().zip(&mut lanes) {
            let ws: &[f64; LANES] = row[at..at + LANES].try_into().expect("a whole chunk");
            for lane in 0..LANES {
                sums[lane] += ws[lane] * xs[lane];
            }
        }
    }
    let mut out = [0.0; R];
    for ((row, sums), out) in rows.iter().zip(lanes).zip(&mut out) {
        *out = fold(sums);
        for at in whole..x.len() {
            *out += row[at] * x[at];
        }
    }
    out
}

dispatch! {
    /// The scalar product.
    pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
        dots([a], b)[0]
    }
}

dispatch! {
    fn dots4(a: &[f64], b: &[f64], c: &[f64], d: &[f64], x: &[f64]) -> [f64; 4] {
        dots([a, b, c, d], x)
    }
}

dispatch! {
    /// y ← y + factor x.
    pub(crate) fn add_scaled(y: &mut [f64], factor: f64, x: &[f64]) {
        for (y, x) in y.iter_mut().zip(x) {
            *y += factor * x;
        }
    }
}

/// Fields of every row for every sample: `out` is rows x batch, `inputs` batch x d.
pub(crate) fn project(weights: &Mat, inputs: &[f64], batch: usize, out: &mut [f64]) {
    let (rows, d) = (weights.rows(), weights.cols());
    for (j, x) in inputs.chunks_exact(d).enumerate() {
        let mut i = 0;
        while i + 4 <= rows {
            let four = dots4(weights.row(i), weights.row(i + 1), weights.row(i + 2), weights.row(i + 3), x);
            for (r, h) in four.into_iter().enumerate() {
                out[(i + r) * batch + j] = h;
            }
            i += 4;
        }
        for i in i..rows {
            out[i * batch + j] = dot(weights.row(i), x);
        }
    }
}

/// w_i ← w_i + Σ_j coefficients_ij x_j for the trained rows.
pub(crate) fn add_samples(
    weights: &mut Mat,
    trained: usize,
    coefficients: &[f64],
    inputs: &[f64],
    batch: usize,
) {
    let d = weights.cols();
    for (j, x) in inputs.chunks_exact(d).enumerate() {
        for i in 0..trained {
            add_scaled(weights.row_mut(i), coefficients[i * batch + j], x);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_match_plain_loops_at_every_length() {
        for d in [1, 7, 8, 9, 31, 64] {
            let weights = Mat::from_fn(6, d, |i, j| ((i * 31 + j * 7) % 13) as f64 - 6.0);
            let inputs: Vec<f64> = (0..2 * d).map(|j| ((j * 5) % 11) as f64 - 5.0).collect();
            let mut fields = vec![0.0; 12];
            project(&weights, &inputs, 2, &mut fields);
            for i in 0..6 {
                for (j, x) in inputs.chunks_exact(d).enumerate() {
                    // Integers: every order of summation is exact.
                    assert_eq!(fields[i * 2 + j], didact_math::linalg::dot(weights.row(i), x));
                }
            }
            let mut moved = weights.clone();
            add_samples(&mut moved, 1, &[2.0, -1.0], &inputs, 2);
            for at in 0..d {
                assert_eq!(moved[(0, at)], weights[(0, at)] + 2.0 * inputs[at] - inputs[d + at]);
                assert_eq!(moved[(1, at)], weights[(1, at)]);
            }
        }
    }
}
