//! A factor of a covariance that grows row by row, for processes so smooth that it is singular to working precision.

use didact_math::linalg::{Mat, dot, svd};

/// Variances below this fraction of the whole are rounding. Singular values of the factor are compared with its root.
const ROUNDING: f64 = 1e-14;

/// Substitution is trusted as long as it reproduces covariances to this fraction of the variances. What is fitted instead is good to
/// the root of [`ROUNDING`], the smallest singular value that counts.
const MISFIT: f64 = 1e-11;

/// Rows L with L Lᵀ = C, lower triangular: row r has r + 1 entries, and the last one, its pivot, belongs to what is new in it.
///
/// Rows never change once they stand. As long as C is well conditioned this is the Cholesky factor. Rows of a smooth process are soon
/// combinations of the rows before them but for a small rest. Substitution then extrapolates from the *first* rows, which
/// multiplies rounding from row to row until L Lᵀ has nothing to do with C: with the GeLU unit of the tests, a learning rate of 0.3 and
/// pivots that count as 0 below 1e-14 of the diagonal, covariances are off by 1e-4 to 6e-3 after 32 steps and by 0.04 to 0.2 after 64. Where L Lᵀ
/// leaves C, the row is fitted to *all* rows before it by least squares, in the directions that those rows are known to span, and
/// what is missing from its variance is new.
#[derive(Debug)]
pub(super) struct Factor {
    rows: Vec<Vec<f64>>,
}

impl Factor {
    /// The factor that a lower triangular matrix is.
    pub(super) fn new(lower: &Mat) -> Self {
        Self { rows: (0..lower.rows()).map(|r| lower.row(r)[..=r].to_vec()).collect() }
    }

    /// All rows.
    pub(super) fn rows(&self) -> &[Vec<f64>] {
        &self.rows
    }

    /// Appends a row, given its covariances with the rows before it, and its variance.
    pub(super) fn push(&mut self, covariances: &[f64], variance: f64) {
        let mut row = self.substitute(covariances);
        if !self.reproduces(&row, covariances, variance) {
            row = self.fit(covariances);
        }
        let rest = variance - dot(&row, &row);
        row.push(if rest > ROUNDING * variance { rest.sqrt() } else { 0.0 });
        self.rows.push(row);
    }

    /// Entries that give the covariances with all rows that have a pivot; 0 in the columns of the others.
    fn substitute(&self, covariances: &[f64]) -> Vec<f64> {
        let mut row: Vec<f64> = Vec::with_capacity(covariances.len() + 1);
        for (before, covariance) in self.rows.iter().zip(covariances) {
            let pivot = before[before.len() - 1];
            let known: f64 = row.iter().zip(before).map(|(a, b)| a * b).sum();
            row.push(if pivot > 0.0 { (covariance - known) / pivot } else { 0.0 });
        }
        row
    }

    fn reproduces(&self, row: &[f64], covariances: &[f64], variance: f64) -> bool {
        let fits = |(before, covariance): (&Vec<f64>, &f64)| {
            let (length, own) = (dot(before, before), dot(&row[..before.len()], before));
            (own - covariance).abs() <= MISFIT * (length * variance).sqrt()
        };
        dot(row, row) <= (1.0 + MISFIT) * variance && self.rows.iter().zip(covariances).all(fits)
    }

    /// Entries that fit the covariances with all rows in the sense of least squares, and that have no part in directions in which
    /// the rows are rounding.
    fn fit(&self, covariances: &[f64]) -> Vec<f64> {
        let n = covariances.len();
        let columns: Vec<usize> = (0..n).filter(|&c| self.rows[c][c] > 0.0).collect();
        let entry = |r: usize, c: usize| self.rows[r].get(columns[c]).copied().unwrap_or(0.0);
        let parts = svd(&Mat::from_fn(n, columns.len(), entry));
        let smallest = ROUNDING.sqrt() * parts.values.first().copied().unwrap_or(0.0);
        let mut row = vec![0.0; n];
        for (k, value) in parts.values.iter().enumerate().take_while(|(_, value)| **value > smallest) {
            let along: f64 = covariances.iter().enumerate().map(|(r, c)| parts.left[(r, k)] * c).sum();
            for (c, &column) in columns.iter().enumerate() {
                row[column] += parts.right[(c, k)] * along / value;
            }
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use didact_math::linalg::cholesky_psd;

    fn factor(covariance: &Mat) -> Factor {
        let mut factor = Factor { rows: Vec::new() };
        for r in 0..covariance.rows() {
            factor.push(&covariance.row(r)[..r], covariance[(r, r)]);
        }
        factor
    }

    /// max |L Lᵀ − C|.
    fn misfit(factor: &Factor, covariance: &Mat) -> f64 {
        let rows = &factor.rows;
        let off = |r: usize, s: usize| (dot(&rows[r][..=s], &rows[s]) - covariance[(r, s)]).abs();
        (0..rows.len()).flat_map(|r| (0..=r).map(move |s| off(r, s))).fold(0.0, f64::max)
    }

    #[test]
    fn a_well_conditioned_covariance_has_its_cholesky_factor() {
        let covariance = Mat::from_fn(12, 12, |i, j| (-(i.abs_diff(j) as f64)).exp());
        let (lower, factor) = (cholesky_psd(&covariance).unwrap(), factor(&covariance));
        for r in 0..12 {
            assert!(factor.rows[r].iter().zip(lower.row(r)).all(|(a, b)| (a - b).abs() < 1e-14));
        }
    }

    /// A Gaussian kernel, whose eigenvalues decay faster than exponentially, and one of finite rank.
    #[test]
    fn smooth_covariances_are_reproduced_however_long_they_are() {
        let gaussian = Mat::from_fn(150, 150, |i, j| (-(i.abs_diff(j) as f64 / 15.0).powi(2)).exp());
        let cubic = Mat::from_fn(60, 60, |i, j| (1.0 + (i * j) as f64 / 3600.0).powi(3));
        for covariance in [&gaussian, &cubic] {
            let off = misfit(&factor(covariance), covariance);
            assert!(off < 1e-6, "{off:e}");
        }
        // The reason for all this: substitution alone is off by 30.
        let mut plain = Factor { rows: Vec::new() };
        for r in 0..gaussian.rows() {
            let mut row = plain.substitute(&gaussian.row(r)[..r]);
            let rest = gaussian[(r, r)] - dot(&row, &row);
            row.push(if rest > ROUNDING { rest.sqrt() } else { 0.0 });
            plain.rows.push(row);
        }
        assert!(misfit(&plain, &gaussian) > 1.0);
    }
}
