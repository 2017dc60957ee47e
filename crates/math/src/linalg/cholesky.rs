//! Cholesky factors of positive semi-definite matrices, which may be singular.

use super::{Mat, dot};

/// A matrix is not positive semi-definite: its quadratic form is negative in some direction.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("the matrix is not positive semi-definite: pivot {index} is {pivot:.3e} (scale {scale:.3e})")]
pub struct NotPositive {
    /// Row of the offending pivot.
    pub index: usize,
    /// Value of the pivot: the diagonal entry minus the part that lies in the span of the earlier rows.
    pub pivot: f64,
    /// The diagonal entry it is compared with.
    pub scale: f64,
}

/// Pivots below this fraction of their diagonal entry count as zero, because an inner product of a few rows is rounded
/// by about as much.
const ZERO_PIVOT: f64 = 1e-13;

/// Returns the lower-triangular L with L Lᵀ = A for a symmetric positive *semi*-definite A.
///
/// A zero pivot gives a zero column: row i then lies in the span of the rows before it, up to rounding. A Gram matrix of
/// linearly dependent rows therefore has a factor, and L z with z ~ N(0, 1) has covariance A at every rank.
///
/// Row i is Σ_j w_j (row j), j < i, plus a part orthogonal to these rows, whose squared length is the pivot. The rounding
/// error of the pivot is of order ε (√A_ii + Σ_j |w_j| √A_jj)², which is large when the earlier rows are nearly dependent.
/// Positive pivots below this size are set to zero, and negative ones are accepted as zero.
pub fn cholesky_psd(a: &Mat) -> Result<Mat, NotPositive> {
    let n = a.rows();
    assert_eq!(n, a.cols(), "square");
    let mut l = Mat::zeros(n, n);
    let mut weights = vec![0.0; n];
    for i in 0..n {
        for j in 0..i {
            let pivot = l[(j, j)];
            if pivot > 0.0 {
                l[(i, j)] = (a[(i, j)] - dot(&l.row(i)[..j], &l.row(j)[..j])) / pivot;
            }
        }
        let scale = a[(i, i)];
        let pivot = scale - dot(&l.row(i)[..i], &l.row(i)[..i]);
        // With a zero pivot in column j, L Lᵀ cannot reproduce a difference left in entry (i, j). If it is larger than
        // rounding, A is not positive semi-definite.
        let lost = (0..i)
            .filter(|&j| l[(j, j)] == 0.0)
            .map(|j| {
                (a[(i, j)] - dot(&l.row(i)[..j], &l.row(j)[..j])).powi(2) / a[(j, j)].max(f64::MIN_POSITIVE)
            })
            .fold(0.0, f64::max);
        let rounding = rounding(a, &l, i, &mut weights);
        let refused = rounding.max(1e-10 * scale.abs());
        if !pivot.is_finite() || pivot < -refused || lost > refused {
            return Err(NotPositive { index: i, pivot: pivot.min(-lost), scale });
        }
        if pivot > rounding.max(ZERO_PIVOT * scale) {
            l[(i, i)] = pivot.sqrt();
        }
    }
    Ok(l)
}

/// Returns a factor Y (n x rank) with Y Yᵀ = A for a symmetric positive semi-definite A of low rank; `None` when A is not
/// positive semi-definite.
///
/// This is a Cholesky factorisation with pivoting. The next pivot is the row whose part outside the span of the chosen
/// rows is largest relative to its length, so that short rows count as much as long ones and nearly dependent rows come
/// last. The factorisation ends, and the rank is found, when only rounding is left.
pub fn low_rank_factor(a: &Mat) -> Option<Mat> {
    let n = a.rows();
    assert_eq!(n, a.cols(), "square");
    let mut left: Vec<f64> = (0..n).map(|i| a[(i, i)]).collect();
    if left.iter().any(|d| !d.is_finite() || *d < 0.0) {
        return None;
    }
    let share = |left: &[f64], i: usize| if a[(i, i)] > 0.0 { left[i] / a[(i, i)] } else { 0.0 };
    let mut columns: Vec<Vec<f64>> = Vec::new();
    while columns.len() < n {
        let next = (0..n).max_by(|i, j| share(&left, *i).total_cmp(&share(&left, *j)))?;
        if share(&left, next) <= ZERO_PIVOT {
            break;
        }
        let pivot = left[next].sqrt();
        let column: Vec<f64> = (0..n)
            .map(|i| {
                let known: f64 = columns.iter().map(|c| c[i] * c[next]).sum();
                if i == next { pivot } else { (a[(i, next)] - known) / pivot }
            })
            .collect();
        for (l, c) in left.iter_mut().zip(&column) {
            *l -= c * c;
        }
        left[next] = 0.0;
        columns.push(column);
    }
    if (0..n).any(|i| share(&left, i) < -1e-9) {
        return None;
    }
    Some(Mat::from_fn(n, columns.len(), |i, j| columns[j][i]))
}

/// Bound on the rounding error of pivot i (see [`cholesky_psd`]): the weights w solve w L = (row i of L) on the rows with a
/// non-zero pivot.
fn rounding(a: &Mat, l: &Mat, i: usize, weights: &mut [f64]) -> f64 {
    let mut length = a[(i, i)].max(0.0).sqrt();
    for j in (0..i).rev() {
        weights[j] = 0.0;
        if l[(j, j)] > 0.0 {
            let later: f64 = (j + 1..i).map(|m| weights[m] * l[(m, j)]).sum();
            weights[j] = (l[(i, j)] - later) / l[(j, j)];
            length += weights[j].abs() * a[(j, j)].sqrt();
        }
    }
    8.0 * f64::EPSILON * length * length
}

/// Whether a matrix is symmetric, up to rounding, and positive semi-definite.
pub fn is_psd(a: &Mat) -> bool {
    a.asymmetry() <= 1e-12 * a.max_abs().max(f64::MIN_POSITIVE) && cholesky_psd(a).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_gram_matrix_of_low_rank_has_a_factor_of_that_rank() {
        for rank in [1, 2, 4] {
            let rows = Mat::from_fn(6, rank, |i, j| {
                let short = if i < 3 { 1e-6 } else { 1.0 };
                short * ((1 + i * i + 3 * j * i + 2 * j) as f64).sin()
            });
            let gram = rows.gram();
            let factor = low_rank_factor(&gram).unwrap();
            assert_eq!(factor.cols(), rank);
            let again = factor.gram();
            for i in 0..6 {
                for j in 0..6 {
                    let scale = (gram[(i, i)] * gram[(j, j)]).sqrt();
                    assert!((again[(i, j)] - gram[(i, j)]).abs() < 1e-13 * scale, "{rank}: {i} {j}");
                }
            }
        }
        assert_eq!(low_rank_factor(&Mat::identity(3).scaled(-1.0)), None);
        assert_eq!(low_rank_factor(&Mat::from_fn(2, 2, |i, j| if i == j { 1.0 } else { 2.0 })), None);
    }

    proptest! {
    #[test]
        fn the_factor_of_a_gram_matrix_of_any_rank_reproduces_it(
            entries in prop::collection::vec(-2.0..2.0f64, 24), rank in 1usize..5
        ) {
            let w = Mat::from_fn(6, rank, |i, j| entries[i * 4 + j]);
            let gram = w.gram();
            let l = cholesky_psd(&gram).unwrap();
            let mut difference = l.gram();
            difference.add_scaled(-1.0, &gram);
            prop_assert!(difference.max_abs() < 1e-6 * gram.max_abs(), "{difference:?}");
        }
    }

    #[test]
    fn a_duplicated_row_has_a_zero_pivot() {
        let w = Mat::from_rows(&[vec![1.0, 2.0], vec![1.0, 2.0], vec![0.5, -1.0]]).unwrap();
        let l = cholesky_psd(&w.gram()).unwrap();
        assert_eq!(l[(1, 1)], 0.0);
        assert!((l.gram()[(2, 1)] - w.gram()[(2, 1)]).abs() < 1e-14);
    }

    #[test]
    fn an_indefinite_matrix_is_refused() {
        let a = Mat::from_rows(&[vec![1.0, 2.0], vec![2.0, 1.0]]).unwrap();
        assert_eq!(cholesky_psd(&a).unwrap_err().index, 1);
        let hidden = Mat::from_rows(&[vec![0.0, 0.1], vec![0.1, 1.0]]).unwrap();
        assert!(cholesky_psd(&hidden).is_err());
    }
}
