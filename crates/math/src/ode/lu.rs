//! LU factorisation of a small dense matrix with partial pivoting.

/// The factorisation P A = L U of a row-major n × n matrix, in memory that is reused for the next matrix.
pub(super) struct Lu {
    n: usize,
    factors: Vec<f64>,
    /// Entry k is the row that was exchanged with row k at elimination step k.
    pivots: Vec<usize>,
}

impl Lu {
    pub(super) fn new(n: usize) -> Self {
        Lu { n, factors: vec![0.0; n * n], pivots: vec![0; n] }
    }

    /// Factorises scale · 1 − matrix. Returns `false` if it is singular or not finite.
    pub(super) fn factorise_shifted(&mut self, scale: f64, matrix: &[f64]) -> bool {
        for (out, value) in self.factors.iter_mut().zip(matrix) {
            *out = -value;
        }
        for i in 0..self.n {
            self.factors[i * self.n + i] += scale;
        }
        self.factorise()
    }

    fn factorise(&mut self) -> bool {
        let n = self.n;
        for k in 0..n {
            let mut pivot = k;
            for i in k + 1..n {
                if self.factors[i * n + k].abs() > self.factors[pivot * n + k].abs() {
                    pivot = i;
                }
            }
            self.pivots[k] = pivot;
            let (above, below) = self.factors.split_at_mut((k + 1) * n);
            let row = &mut above[k * n..];
            if pivot != k {
                row.swap_with_slice(&mut below[(pivot - k - 1) * n..][..n]);
            }
            let diagonal = row[k];
            if diagonal == 0.0 || !diagonal.is_finite() {
                return false;
            }
            for lower in below.chunks_exact_mut(n) {
                let factor = lower[k] / diagonal;
                lower[k] = factor;
                // Jacobians of weakly coupled systems have many zeros, whose row operation is skipped.
                if factor != 0.0 {
                    for (value, &upper) in lower[k + 1..].iter_mut().zip(&row[k + 1..]) {
                        *value -= factor * upper;
                    }
                }
            }
        }
        true
    }

    /// Overwrites `b` with the solution x of A x = b.
    pub(super) fn solve(&self, b: &mut [f64]) {
        let n = self.n;
        for k in 0..n {
            b.swap(k, self.pivots[k]);
        }
        for i in 1..n {
            let (known, rest) = b.split_at_mut(i);
            rest[0] -= dot(&self.factors[i * n..][..i], known);
        }
        for i in (0..n).rev() {
            let (head, known) = b.split_at_mut(i + 1);
            let row = &self.factors[i * n..][..n];
            head[i] = (head[i] - dot(&row[i + 1..], known)) / row[i];
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn solutions_satisfy_their_equations(
            entries in prop::collection::vec(-1.0..1.0f64, 36),
            exact in prop::collection::vec(-1.0..1.0f64, 6),
            scale in -0.5..0.5f64,
        ) {
            let n = 6;
            let shifted = |i: usize, j: usize| if i == j { scale - entries[i * n + j] } else { -entries[i * n + j] };
            let right: Vec<f64> = (0..n).map(|i| (0..n).map(|j| shifted(i, j) * exact[j]).sum()).collect();
            let mut lu = Lu::new(n);
            prop_assume!(lu.factorise_shifted(scale, &entries));
            let mut x = right.clone();
            lu.solve(&mut x);
            // Backward stability: the residual is rounding, of the size of A x, however ill-conditioned A is.
            let size = x.iter().fold(1.0_f64, |m, v| m.max(v.abs()));
            for i in 0..n {
                let residual: f64 = (0..n).map(|j| shifted(i, j) * x[j]).sum::<f64>() - right[i];
                prop_assert!(residual.abs() < 1e-13 * size, "{residual}");
            }
        }
    }

    #[test]
    fn a_zero_pivot_is_exchanged_and_a_singular_matrix_is_refused() {
        let mut lu = Lu::new(2);
        assert!(lu.factorise_shifted(0.0, &[0.0, -2.0, -3.0, 0.0]));
        let mut b = [4.0, 9.0];
        lu.solve(&mut b);
        assert_eq!(b, [3.0, 2.0]);
        assert!(!lu.factorise_shifted(1.0, &[1.0, 0.0, 0.0, 1.0]));
        assert!(!lu.factorise_shifted(1.0, &[f64::NAN, 0.0, 0.0, 1.0]));
    }
}
