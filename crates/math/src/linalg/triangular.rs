//! Lower-triangular factors kept triangular by orthogonal column operations.
//!
//! A Gram matrix G = Y Yᵀ does not change when Y is multiplied from the right by an orthogonal matrix, so extra
//! columns can be rotated into a triangle. Nothing is subtracted: singular Grams stay accurate.

/// Rotates `extra` (n x e, row-major) into the lower-triangular `lower` (n x n, row-major; entries above the
/// diagonal are ignored and left zero), so that L' L'ᵀ = L Lᵀ + E Eᵀ. `extra` is destroyed.
///
/// Givens rotations, row by row: O(n² e).
pub fn absorb_columns(lower: &mut [f64], extra: &mut [f64], n: usize, e: usize) {
    for i in 0..n {
        for k in 0..e {
            let (a, b) = (lower[i * n + i], extra[i * e + k]);
            if b == 0.0 {
                continue;
            }
            let r = a.hypot(b);
            let (c, s) = (a / r, b / r);
            for row in i..n {
                let (x, y) = (lower[row * n + i], extra[row * e + k]);
                lower[row * n + i] = c * x + s * y;
                extra[row * e + k] = c * y - s * x;
            }
        }
    }
}

/// The n x n lower triangle L with L Lᵀ = Y Yᵀ for an n x m `rows`, m of any size (row-major slices).
pub fn lower_from_rows(rows: &[f64], n: usize, m: usize) -> Vec<f64> {
    let mut lower = vec![0.0; n * n];
    let mut extra = rows.to_vec();
    absorb_columns(&mut lower, &mut extra, n, m);
    lower
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Mat;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn absorbing_columns_keeps_the_gram(entries in prop::collection::vec(-2.0..2.0f64, 20), zero in 0usize..4) {
            let y = Mat::from_fn(4, 5, |i, j| if i == zero { 0.0 } else { entries[i * 5 + j] });
            let lower = lower_from_rows(y.as_slice(), 4, 5);
            let l = Mat::from_fn(4, 4, |i, j| lower[i * 4 + j]);
            for i in 0..4 {
                for j in i + 1..4 {
                    prop_assert_eq!(l[(i, j)], 0.0);
                }
            }
            let mut difference = l.gram();
            difference.add_scaled(-1.0, &y.gram());
            prop_assert!(difference.max_abs() < 1e-13 * (1.0 + y.gram().max_abs()));
        }
    }
}
