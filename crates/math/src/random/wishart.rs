//! Random matrices with rotation-invariant laws: factors of Wishart matrices, unit vectors and orthonormal rows.

use super::stream::Stream;

/// A factor T of a Wishart matrix: T Tᵀ ~ Wishart_K(dof, I), the law of X Xᵀ for a K × dof matrix X of normals.
///
/// For dof ≥ K this is Bartlett's decomposition: T is lower triangular, K × K, with independent entries
///
///   T_ii = √χ²_{dof−i}  (i = 0, …, K−1),   T_ij ~ N(0, 1)  (j < i),
///
/// at a cost that does not depend on dof (M. S. Bartlett, Proc. R. Soc. Edinburgh 53, 260, 1933). For dof < K it is X
/// itself, K × dof.
#[derive(Clone, Debug, PartialEq)]
pub struct BartlettFactor {
    rows: usize,
    columns: usize,
    entries: Vec<f64>,
}

impl BartlettFactor {
    /// Draws a factor of a Wishart_rows(dof, I) matrix.
    pub fn draw(stream: &mut Stream, rows: usize, dof: u64) -> Self {
        let mut factor = Self { rows, columns: 0, entries: Vec::new() };
        factor.redraw(stream, dof);
        factor
    }

    /// Draws another factor with the same number of rows, in the same memory.
    pub fn redraw(&mut self, stream: &mut Stream, dof: u64) {
        let size = self.rows;
        if dof < size as u64 {
            self.columns = dof as usize;
            self.entries.resize(size * self.columns, 0.0);
            stream.fill_normal(&mut self.entries);
            return;
        }
        self.columns = size;
        self.entries.clear();
        self.entries.resize(size * size, 0.0);
        for (i, row) in self.entries.chunks_exact_mut(size.max(1)).enumerate() {
            stream.fill_normal(&mut row[..i]);
            row[i] = stream.chi_square((dof - i as u64) as f64).sqrt();
        }
    }

    /// Number of rows, K.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns, min(K, dof).
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The entries of T, row by row.
    pub fn entries(&self) -> &[f64] {
        &self.entries
    }

    /// Row i of T.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.entries[i * self.columns..(i + 1) * self.columns]
    }

    /// The Wishart matrix T Tᵀ, row by row.
    pub fn gram(&self) -> Vec<f64> {
        let k = self.rows;
        (0..k * k).map(|at| dot(self.row(at / k), self.row(at % k))).collect()
    }
}

/// Fills `out` with a uniformly distributed point of the unit sphere. Panics when `out` is empty.
pub fn unit_vector(stream: &mut Stream, out: &mut [f64]) {
    assert!(!out.is_empty(), "the sphere in dimension 0 has no points");
    loop {
        stream.fill_normal(out);
        if normalise(out) {
            return;
        }
    }
}

/// Draws `rows` orthonormal vectors of R^dimension, row by row, with the Haar law (invariant under rotations from either
/// side).
///
/// The method is Gram–Schmidt orthogonalisation of normal rows. Each row is projected twice, after which the rows are
/// orthogonal to rounding (L. Giraud et al. 2005). Panics when rows > dimension.
pub fn orthonormal_rows(stream: &mut Stream, rows: usize, dimension: usize) -> Vec<f64> {
    assert!(rows <= dimension, "{rows} orthonormal rows do not fit in dimension {dimension}");
    let mut matrix = vec![0.0; rows * dimension];
    for i in 0..rows {
        let (above, rest) = matrix.split_at_mut(i * dimension);
        let row = &mut rest[..dimension];
        loop {
            stream.fill_normal(row);
            for _ in 0..2 {
                for other in above.chunks_exact(dimension) {
                    let overlap = dot(row, other);
                    row.iter_mut().zip(other).for_each(|(x, y)| *x -= overlap * y);
                }
            }
            if normalise(row) {
                break;
            }
        }
    }
    matrix
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Scales the row to norm 1. Returns `false` if the norm is so small that the direction is rounding.
fn normalise(row: &mut [f64]) -> bool {
    let norm = dot(row, row).sqrt();
    if norm < 1e-8 {
        return false;
    }
    for x in row {
        *x /= norm;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::statistics::Moments;
    use super::super::stream::RngAddress;
    use super::*;

    fn stream(step: u64) -> Stream {
        Stream::at(RngAddress { seed: 2024, replica: 0, step, lane: 0 })
    }

    /// Checks E W_ij = dof δ_ij, Var W_ii = 2 dof, Var W_ij = dof, and cov(W_00, W_11) = 0.
    #[test]
    fn wishart_moments_hold_on_both_sides_of_dof_equal_rows() {
        const ROWS: usize = 3;
        for dof in [1, 2, 3, 4, 7, 1_000_000_000] {
            let n = dof as f64;
            let mut stream = stream(dof);
            let mut factor = BartlettFactor::draw(&mut stream, ROWS, dof);
            let mut diagonal = [Moments::new(); ROWS];
            let mut crossed = [Moments::new(); 3];
            let mut product = Moments::new();
            for _ in 0..20_000 {
                factor.redraw(&mut stream, dof);
                let w = factor.gram();
                for i in 0..ROWS {
                    diagonal[i].push((w[i * ROWS + i] - n) / (2.0 * n).sqrt());
                }
                for (k, at) in [1, 2, 5].into_iter().enumerate() {
                    crossed[k].push(w[at] / n.sqrt());
                }
                product.push((w[0] - n) * (w[4] - n) / (2.0 * n));
            }
            for m in diagonal.iter().chain(&crossed) {
                assert!(m.mean().abs() < 5.0 * m.standard_error(), "dof {dof}: {m:?}");
                // Excess kurtosis is at most 12 (χ²₁), so the standard error of the variance is at most √(14/20000).
                assert!((m.variance() - 1.0).abs() < 5.0 * (14.0_f64 / 20_000.0).sqrt(), "dof {dof}: {m:?}");
            }
            assert!(product.mean().abs() < 5.0 * product.standard_error(), "dof {dof}: {product:?}");
        }
    }

    #[test]
    fn factor_is_lower_triangular_or_thin() {
        let square = BartlettFactor::draw(&mut stream(1), 4, 9);
        assert_eq!((square.rows(), square.columns()), (4, 4));
        for i in 0..4 {
            assert!(square.row(i)[i] > 0.0 && square.row(i)[i + 1..].iter().all(|&t| t == 0.0));
        }
        let thin = BartlettFactor::draw(&mut stream(1), 4, 2);
        assert_eq!((thin.rows(), thin.columns(), thin.entries().len()), (4, 2, 8));
        let none = BartlettFactor::draw(&mut stream(1), 2, 0);
        assert_eq!(none.gram(), [0.0; 4]);
        assert!(BartlettFactor::draw(&mut stream(1), 0, 5).entries().is_empty());
    }

    #[test]
    fn rows_are_orthonormal_to_rounding() {
        let (rows, dimension) = (20, 20);
        let matrix = orthonormal_rows(&mut stream(2), rows, dimension);
        for i in 0..rows {
            for j in 0..rows {
                let product =
                    dot(&matrix[i * dimension..][..dimension], &matrix[j * dimension..][..dimension]);
                assert!((product - f64::from(u8::from(i == j))).abs() < 1e-14, "({i}, {j}): {product}");
            }
        }
    }

    /// Entries of a Haar matrix have mean 0 and variance 1/d, and different entries are uncorrelated.
    #[test]
    fn entries_of_haar_rows_have_the_moments_of_the_sphere() {
        let mut stream = stream(3);
        let mut square = Moments::new();
        let mut crossed = Moments::new();
        let mut fourth = Moments::new();
        for _ in 0..20_000 {
            let m = orthonormal_rows(&mut stream, 2, 3);
            square.push(m[5] * m[5]);
            crossed.push(m[0] * m[3]);
            let mut v = [0.0; 3];
            unit_vector(&mut stream, &mut v);
            fourth.push(v[0].powi(4));
        }
        assert!((square.mean() - 1.0 / 3.0).abs() < 5.0 * square.standard_error());
        assert!(crossed.mean().abs() < 5.0 * crossed.standard_error());
        assert!((fourth.mean() - 0.2).abs() < 5.0 * fourth.standard_error());
    }
}
