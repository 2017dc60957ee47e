//! Dense linear algebra: one matrix type, and the factorisations that the theory needs.
//!
//! Most matrices of the workspace are small (Gram matrices of a few rows), so [`Mat`] is a row-major array with plain
//! loops. Symmetric and general eigenproblems, singular values and linear systems are solved by the crate `faer`, which
//! only the file `dense.rs` uses. Positive semi-definite matrices of any rank have [`cholesky_psd`] and
//! [`low_rank_factor`]; a diagonal matrix plus a rank-one term has [`RankOneEigen`].

mod cholesky;
mod dense;
mod secular;

pub use cholesky::{NotPositive, cholesky_psd, is_psd, low_rank_factor};
pub use dense::{Eigen, Svd, eigenvalues_general, solve, svd, symmetric_eigen, weighted_gram};
pub use secular::{RankOneEigen, largest_rank_one_eigenvalue};

use std::ops::{Index, IndexMut};

/// A dense row-major matrix of `f64`.
#[derive(Clone, PartialEq, Default)]
pub struct Mat {
    rows: usize,
    cols: usize,
    data: Vec<f64>,
}

impl Mat {
    /// Creates the rows x cols matrix of zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self { rows, cols, data: vec![0.0; rows * cols] }
    }

    /// Creates the n x n identity matrix.
    pub fn identity(n: usize) -> Self {
        Self::from_fn(n, n, |i, j| f64::from(i == j))
    }

    /// Creates the matrix with entries f(i, j).
    pub fn from_fn(rows: usize, cols: usize, mut f: impl FnMut(usize, usize) -> f64) -> Self {
        let mut m = Self::zeros(rows, cols);
        for i in 0..rows {
            for j in 0..cols {
                m[(i, j)] = f(i, j);
            }
        }
        m
    }

    /// Creates a matrix from its rows; `None` when they have different lengths.
    pub fn from_rows(rows: &[Vec<f64>]) -> Option<Self> {
        let cols = rows.first().map_or(0, Vec::len);
        rows.iter().all(|r| r.len() == cols).then(|| Self { rows: rows.len(), cols, data: rows.concat() })
    }

    /// Creates a diagonal matrix.
    pub fn diagonal(entries: &[f64]) -> Self {
        Self::from_fn(entries.len(), entries.len(), |i, j| if i == j { entries[i] } else { 0.0 })
    }

    /// Number of rows.
    #[inline]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    #[inline]
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Row i as a slice.
    #[inline]
    pub fn row(&self, i: usize) -> &[f64] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// Row i as a mutable slice.
    #[inline]
    pub fn row_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// All entries, row by row.
    #[inline]
    pub fn as_slice(&self) -> &[f64] {
        &self.data
    }

    /// All entries, row by row, mutable.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [f64] {
        &mut self.data
    }

    /// The rows as nested vectors (for output).
    pub fn to_rows(&self) -> Vec<Vec<f64>> {
        (0..self.rows).map(|i| self.row(i).to_vec()).collect()
    }

    /// Sets every entry to `value`.
    #[inline]
    pub fn fill(&mut self, value: f64) {
        self.data.fill(value);
    }

    /// The transpose.
    pub fn transpose(&self) -> Self {
        Self::from_fn(self.cols, self.rows, |i, j| self[(j, i)])
    }

    /// The matrix product `self · other`.
    pub fn times(&self, other: &Self) -> Self {
        let mut out = Self::zeros(self.rows, other.cols);
        out.add_product(1.0, self, other);
        out
    }

    /// `self += factor · a · b`.
    pub fn add_product(&mut self, factor: f64, a: &Self, b: &Self) {
        assert_eq!((self.rows, a.cols, self.cols), (a.rows, b.rows, b.cols), "shapes");
        for i in 0..self.rows {
            for (k, &a) in a.row(i).iter().enumerate() {
                for (o, &b) in self.row_mut(i).iter_mut().zip(b.row(k)) {
                    *o += factor * a * b;
                }
            }
        }
    }

    /// `self += factor · a · bᵀ`.
    pub fn add_product_transposed(&mut self, factor: f64, a: &Self, b: &Self) {
        assert_eq!((self.rows, a.cols, self.cols), (a.rows, b.cols, b.rows), "shapes");
        for i in 0..self.rows {
            for (j, o) in self.row_mut(i).iter_mut().enumerate() {
                let product: f64 = a.row(i).iter().zip(b.row(j)).map(|(a, b)| a * b).sum();
                *o += factor * product;
            }
        }
    }

    /// The Gram matrix of the rows, `self · selfᵀ`; it is exactly symmetric.
    pub fn gram(&self) -> Self {
        let mut out = Self::zeros(self.rows, self.rows);
        for i in 0..self.rows {
            for j in 0..=i {
                let dot = dot(self.row(i), self.row(j));
                out[(i, j)] = dot;
                out[(j, i)] = dot;
            }
        }
        out
    }

    /// `self += factor · other`.
    #[inline]
    pub fn add_scaled(&mut self, factor: f64, other: &Self) {
        assert_eq!((self.rows, self.cols), (other.rows, other.cols), "shapes");
        for (a, &b) in self.data.iter_mut().zip(&other.data) {
            *a += factor * b;
        }
    }

    /// `factor · self`.
    pub fn scaled(&self, factor: f64) -> Self {
        Self { data: self.data.iter().map(|a| factor * a).collect(), ..*self }
    }

    /// Sum of the diagonal.
    pub fn trace(&self) -> f64 {
        (0..self.rows.min(self.cols)).map(|i| self[(i, i)]).sum()
    }

    /// Largest absolute entry (0 for an empty matrix).
    pub fn max_abs(&self) -> f64 {
        self.data.iter().fold(0.0, |m, x| x.abs().max(m))
    }

    /// Largest |A_ij − A_ji|; infinite when not square.
    pub fn asymmetry(&self) -> f64 {
        if self.rows != self.cols {
            return f64::INFINITY;
        }
        let pairs = (0..self.rows).flat_map(|i| (0..i).map(move |j| (i, j)));
        pairs.fold(0.0, |m, (i, j)| (self[(i, j)] - self[(j, i)]).abs().max(m))
    }

    /// True when every entry is finite.
    pub fn is_finite(&self) -> bool {
        self.data.iter().all(|x| x.is_finite())
    }

    /// The sub-matrix of the given row and column ranges.
    pub fn block(&self, rows: std::ops::Range<usize>, cols: std::ops::Range<usize>) -> Self {
        let (r0, c0) = (rows.start, cols.start);
        Self::from_fn(rows.len(), cols.len(), |i, j| self[(r0 + i, c0 + j)])
    }
}

impl Index<(usize, usize)> for Mat {
    type Output = f64;
    #[inline]
    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        debug_assert!(i < self.rows && j < self.cols);
        &self.data[i * self.cols + j]
    }
}

impl IndexMut<(usize, usize)> for Mat {
    #[inline]
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut f64 {
        debug_assert!(i < self.rows && j < self.cols);
        &mut self.data[i * self.cols + j]
    }
}

impl std::fmt::Debug for Mat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries((0..self.rows).map(|i| self.row(i))).finish()
    }
}

/// The scalar product Σ_i a_i b_i.
#[inline]
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}
