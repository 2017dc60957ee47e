//! Eigenvalues, singular values and linear systems of dense matrices, by the crate `faer`. No other file uses `faer`.

use super::Mat;
use faer::Side;
use faer::linalg::solvers::Solve;

/// The eigendecomposition A = V diag(values) Vᵀ of a real symmetric matrix.
#[derive(Debug, Clone)]
pub struct Eigen {
    /// Eigenvalues, ascending.
    pub values: Vec<f64>,
    /// Column k is the unit eigenvector of `values[k]`.
    pub vectors: Mat,
}

/// The thin singular value decomposition A = U diag(values) Vᵀ.
#[derive(Debug, Clone)]
pub struct Svd {
    /// U, with orthonormal columns: rows(A) x min(rows, cols).
    pub left: Mat,
    /// Singular values, descending and not negative.
    pub values: Vec<f64>,
    /// V, with orthonormal columns: cols(A) x min(rows, cols).
    pub right: Mat,
}

fn to_faer(a: &Mat) -> faer::Mat<f64> {
    faer::Mat::from_fn(a.rows(), a.cols(), |i, j| a[(i, j)])
}

fn from_faer(a: faer::MatRef<'_, f64>) -> Mat {
    Mat::from_fn(a.nrows(), a.ncols(), |i, j| a[(i, j)])
}

/// A matrix with entries whose squares neither overflow nor vanish, and the power of two by which it was divided: 1 for all but extreme
/// ones. Decompositions square their entries.
fn of_moderate_size(a: &Mat) -> (faer::Mat<f64>, f64) {
    let largest = a.max_abs();
    if largest == 0.0 || (1e-100..=1e100).contains(&largest) {
        return (to_faer(a).to_owned(), 1.0);
    }
    let scale = largest.log2().floor().exp2();
    (faer::Mat::from_fn(a.rows(), a.cols(), |i, j| a[(i, j)] / scale), scale)
}

/// Computes eigenvalues (ascending) and eigenvectors of a symmetric matrix; only the lower triangle is read.
///
/// # Panics
/// On non-finite entries.
pub fn symmetric_eigen(a: &Mat) -> Eigen {
    assert!(a.is_finite(), "eigenvalues of a matrix with non-finite entries");
    let (moderate, scale) = of_moderate_size(a);
    let eigen = moderate.self_adjoint_eigen(Side::Lower).expect("a finite symmetric matrix has eigenvalues");
    let values = eigen.S().column_vector().iter().map(|value| value * scale).collect();
    Eigen { values, vectors: from_faer(eigen.U()) }
}

/// Computes the thin singular value decomposition.
///
/// # Panics
/// On non-finite entries.
pub fn svd(a: &Mat) -> Svd {
    assert!(a.is_finite(), "singular values of a matrix with non-finite entries");
    let (moderate, scale) = of_moderate_size(a);
    let svd = moderate.thin_svd().expect("a finite matrix has singular values");
    let values = svd.S().column_vector().iter().map(|value| value * scale).collect();
    Svd { left: from_faer(svd.U()), values, right: from_faer(svd.V()) }
}

/// Computes the eigenvalues of a general real matrix as (real, imaginary) pairs, in no particular order.
///
/// # Panics
/// On non-finite entries.
pub fn eigenvalues_general(a: &Mat) -> Vec<(f64, f64)> {
    assert!(a.is_finite(), "eigenvalues of a matrix with non-finite entries");
    let (moderate, scale) = of_moderate_size(a);
    let values = moderate.eigenvalues().expect("a finite matrix has eigenvalues");
    values.into_iter().map(|z| (scale * z.re, scale * z.im)).collect()
}

/// Solves A X = B for a square invertible A, by LU factorisation with partial pivoting.
pub fn solve(a: &Mat, b: &Mat) -> Mat {
    from_faer(to_faer(a).partial_piv_lu().solve(to_faer(b)).as_ref())
}

/// Computes Σ_i weights_i xᵢ xᵢᵀ over the rows xᵢ of a matrix.
pub fn weighted_gram(rows: &Mat, weights: &[f64]) -> Mat {
    assert_eq!(rows.rows(), weights.len(), "one weight per row");
    let plain = to_faer(rows);
    let scaled = faer::Mat::from_fn(rows.rows(), rows.cols(), |i, j| weights[i] * rows[(i, j)]);
    from_faer((plain.transpose() * scaled).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn random(entries: &[f64], rows: usize, cols: usize) -> Mat {
        Mat::from_fn(rows, cols, |i, j| entries[i * cols + j])
    }

    /// The decompositions square entries; a matrix with an entry of 1e305 had no singular values.
    #[test]
    fn extreme_matrices_have_the_decompositions_of_moderate_ones() {
        let entries = [0.4, -1.2, 0.7, 2.0, 0.3, -0.9, 1.1, 0.2, -0.5];
        let moderate = random(&entries, 3, 3);
        for scale in [2.0_f64.powi(1010), 2.0_f64.powi(-1010)] {
            let extreme = moderate.scaled(scale);
            let (found, expected) = (svd(&extreme), svd(&moderate));
            let (general, values) = (eigenvalues_general(&extreme), eigenvalues_general(&moderate));
            for i in 0..3 {
                assert!((found.values[i] / scale - expected.values[i]).abs() < 1e-14 * expected.values[0]);
                assert!(
                    (general[i].0 / scale - values[i].0).abs() < 1e-13
                        && (general[i].1 / scale - values[i].1).abs() < 1e-13
                );
            }
            let symmetric = moderate.gram();
            let found = symmetric_eigen(&symmetric.scaled(scale)).values;
            let expected = symmetric_eigen(&symmetric).values;
            assert!((0..3).all(|i| (found[i] / scale - expected[i]).abs() < 1e-14 * expected[2]));
        }
        let uneven = Mat::from_rows(&[vec![-2.4e305, 1.0], vec![0.5, -9e18], vec![1.0, 2.0]]).unwrap();
        assert!(svd(&uneven).values.iter().all(|value| value.is_finite()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn the_product_of_the_factors_is_the_matrix(entries in prop::collection::vec(-3.0..3.0f64, 20)) {
            let a = random(&entries, 4, 5);
            let gram = a.gram();
            let eigen = symmetric_eigen(&gram);
            prop_assert!(eigen.values.is_sorted());
            let mut back = eigen.vectors.times(&Mat::diagonal(&eigen.values)).times(&eigen.vectors.transpose());
            back.add_scaled(-1.0, &gram);
            prop_assert!(back.max_abs() < 1e-12 * (1.0 + gram.max_abs()));

            let svd = svd(&a);
            let mut back = svd.left.times(&Mat::diagonal(&svd.values)).times(&svd.right.transpose());
            back.add_scaled(-1.0, &a);
            prop_assert!(back.max_abs() < 1e-12 * (1.0 + a.max_abs()));

            let mut regular = gram;
            for i in 0..4 {
                regular[(i, i)] += 1.0;
            }
            let mut back = regular.times(&solve(&regular, &a));
            back.add_scaled(-1.0, &a);
            prop_assert!(back.max_abs() < 1e-11);
        }
    }

    #[test]
    fn a_weighted_gram_is_the_sum_over_rows() {
        let x = Mat::from_fn(7, 3, |i, j| ((3 * i + j) as f64).sin());
        let weights: Vec<f64> = (0..7).map(|i| f64::from(i) - 2.5).collect();
        let sum = |a: usize, b: usize| (0..7).map(|i| weights[i] * x[(i, a)] * x[(i, b)]).sum::<f64>();
        let mut difference = weighted_gram(&x, &weights);
        difference.add_scaled(-1.0, &Mat::from_fn(3, 3, sum));
        assert!(difference.max_abs() < 1e-13);
    }

    #[test]
    fn a_rotation_has_complex_eigenvalues() {
        let a = Mat::from_rows(&[vec![0.0, -2.0], vec![2.0, 0.0]]).unwrap();
        let mut imaginary: Vec<f64> = eigenvalues_general(&a).iter().map(|z| z.1).collect();
        imaginary.sort_by(f64::total_cmp);
        assert!((imaginary[0] + 2.0).abs() < 1e-14 && (imaginary[1] - 2.0).abs() < 1e-14);
    }
}
