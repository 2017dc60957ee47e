//! The eigenproblem of a diagonal matrix plus a rank-one term, D + ρ z zᵀ, in O(n²) operations and O(n) memory.
//!
//! Its eigenvalues are the roots of the secular equation 1 + ρ Σ_a z_a²/(d_a − μ) = 0, one between each pair of
//! neighbouring d_a and one above the largest; eigenvector k is u_k ∝ z_a/(d_a − μ_k). A root is stored as its distance
//! from the nearest d_a, so that d_a − μ_k is accurate to all digits. R.-C. Li, *Solving secular equations stably and
//! efficiently*, LAPACK Working Note 89 (1993).

/// Eigenvalues and eigenvectors of D + ρ z zᵀ. The eigenvectors are not stored; [`Self::project`] applies them to a vector.
#[derive(Debug, Clone)]
pub struct RankOneEigen {
    poles: Vec<f64>,
    vector: Vec<f64>,
    /// For every root, the index of the nearest pole and the distance from it.
    roots: Vec<(usize, f64)>,
    /// For every root, the inverse norm of the vector with entries z_a/(d_a − μ_k).
    norms: Vec<f64>,
}

impl RankOneEigen {
    /// Solves the eigenproblem for D = diag(`poles`), ρ = `weight` and z = `vector`.
    ///
    /// # Panics
    /// When the poles do not ascend strictly, the lengths differ, ρ is not positive and finite, or an entry of z is zero or
    /// not finite.
    pub fn new(poles: Vec<f64>, weight: f64, vector: Vec<f64>) -> Self {
        assert_eq!(poles.len(), vector.len(), "one entry of z per pole");
        assert!(poles.windows(2).all(|w| w[0] < w[1]), "poles ascend strictly");
        assert!(weight > 0.0 && weight.is_finite(), "a positive rank-one term");
        assert!(vector.iter().all(|z| *z != 0.0 && z.is_finite()), "entries of z are finite and not zero");
        let squares: Vec<f64> = vector.iter().map(|z| weight * z * z).collect();
        let roots: Vec<(usize, f64)> = (0..poles.len()).map(|k| root(&poles, &squares, k)).collect();
        let mut found = Self { poles, vector, roots, norms: Vec::new() };
        found.norms = (0..found.roots.len())
            .map(|k| found.unscaled(k).map(|u| u * u).sum::<f64>().sqrt().recip())
            .collect();
        found
    }

    /// The eigenvalues μ_k, ascending.
    pub fn values(&self) -> Vec<f64> {
        self.roots.iter().map(|&(pole, offset)| self.poles[pole] + offset).collect()
    }

    /// The projections u_k · x on every unit eigenvector u_k.
    pub fn project(&self, x: &[f64]) -> Vec<f64> {
        assert_eq!(x.len(), self.poles.len(), "length");
        (0..self.roots.len())
            .map(|k| self.norms[k] * self.unscaled(k).zip(x).map(|(u, x)| u * x).sum::<f64>())
            .collect()
    }

    /// The entries z_a/(d_a − μ_k) of eigenvector k before normalisation.
    fn unscaled(&self, k: usize) -> impl Iterator<Item = f64> + '_ {
        let (pole, offset) = self.roots[k];
        let origin = self.poles[pole];
        self.poles.iter().zip(&self.vector).map(move |(d, z)| z / ((d - origin) - offset))
    }
}

/// Computes the largest eigenvalue of D + ρ z zᵀ alone, in O(n) operations per iteration.
///
/// # Panics
/// When there are no poles, or the lengths differ. Entries of z may be zero.
pub fn largest_rank_one_eigenvalue(poles: &[f64], weight: f64, vector: &[f64]) -> f64 {
    assert!(!poles.is_empty() && poles.len() == vector.len(), "one entry of z per pole, at least one");
    let squares: Vec<f64> = vector.iter().map(|z| weight * z * z).collect();
    let (pole, offset) = root(poles, &squares, poles.len() - 1);
    poles[pole] + offset
}

/// Returns f(τ) = 1 + Σ_a s_a/((d_a − origin) − τ) with τ = `offset` and s_a = ρ z_a², and two parts of its slope: from the
/// poles up to k, and from those above k.
fn secular(poles: &[f64], squares: &[f64], origin: f64, k: usize, offset: f64) -> (f64, f64, f64) {
    let part = |range: std::ops::Range<usize>| {
        let (mut sum, mut slope) = (0.0, 0.0);
        for (d, s) in poles[range.clone()].iter().zip(&squares[range]) {
            let ratio = s / ((d - origin) - offset);
            sum += ratio;
            slope += ratio * ratio / s;
        }
        (sum, slope)
    };
    let ((below, below_slope), (above, above_slope)) = (part(0..k + 1), part(k + 1..poles.len()));
    (1.0 + below + above, below_slope, above_slope)
}

/// Returns the root between pole k and the next one, as (nearest pole, distance from it).
///
/// Between the poles f rises from −∞ to +∞ (to 1 above the last pole), so its sign brackets the root. Each iteration
/// proposes the root of c + s/(d_k − x) + S/(d_{k+1} − x), with c, s and S such that this function agrees with f in value
/// and in the two parts of the slope (the "middle way" of Li). A proposal outside the bracket is replaced by its middle.
fn root(poles: &[f64], squares: &[f64], k: usize) -> (usize, f64) {
    let last = k + 1 == poles.len();
    let gap = if last { squares.iter().sum::<f64>() } else { poles[k + 1] - poles[k] };
    let middle = secular(poles, squares, poles[k], k, 0.5 * gap).0;
    // The origin is the nearer pole: the root lies in the half of the interval in which f changes sign.
    let from_below = last || middle >= 0.0;
    let pole = if from_below { k } else { k + 1 };
    let (mut low, mut high) = match (from_below, middle >= 0.0) {
        (true, true) => (0.0, 0.5 * gap),
        (true, false) => (0.5 * gap, gap),
        (false, _) => (-0.5 * gap, 0.0),
    };
    let origin = poles[pole];
    let mut offset = 0.5 * (low + high);
    for _ in 0..200 {
        let (value, below, above) = secular(poles, squares, origin, k, offset);
        if value < 0.0 {
            low = offset;
        } else {
            high = offset;
        }
        let (d1, d2) =
            ((poles[k] - origin) - offset, if last { 0.0 } else { (poles[k + 1] - origin) - offset });
        let step = if last {
            // Above the last pole the model function has one pole and a constant: s/(d_k − x) + c.
            let constant = value - d1 * below;
            d1 + d1 * d1 * below / constant
        } else {
            let slope = below + above;
            let a = (d1 + d2) * value - d1 * d2 * slope;
            let b = d1 * d2 * value;
            let c = value - d1 * below - d2 * above;
            let inside = (a * a - 4.0 * b * c).max(0.0).sqrt();
            if a <= 0.0 { (a - inside) / (2.0 * c) } else { 2.0 * b / (a + inside) }
        };
        let proposal = offset + step;
        let next = if proposal > low && proposal < high { proposal } else { f64::midpoint(low, high) };
        if (next - offset).abs() <= f64::EPSILON * next.abs() || next <= low || next >= high {
            return (pole, next);
        }
        offset = next;
    }
    (pole, offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{Mat, symmetric_eigen};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_secular_equation_has_the_eigenvalues_of_the_dense_matrix(
            gaps in prop::collection::vec(-8.0..1.0f64, 1..24),
            entries in prop::collection::vec(-6.0..0.5f64, 24),
            weight in -3.0..1.0f64,
        ) {
            let poles: Vec<f64> = gaps.iter().scan(-1.0, |d, g| { *d += 10f64.powf(*g); Some(*d) }).collect();
            let n = poles.len();
            let z: Vec<f64> = entries[..n].iter().enumerate().map(|(i, e)| if i % 3 == 0 { -10f64.powf(*e) } else { 10f64.powf(*e) }).collect();
            let rho = 10f64.powf(weight);
            let dense = Mat::from_fn(n, n, |i, j| rho * z[i] * z[j] + if i == j { poles[i] } else { 0.0 });
            let found = RankOneEigen::new(poles.clone(), rho, z.clone());
            let scale = dense.max_abs();
            for (got, want) in found.values().iter().zip(symmetric_eigen(&dense).values) {
                prop_assert!((got - want).abs() <= 1e-13 * n as f64 * scale, "{got} {want}");
            }
            let top = largest_rank_one_eigenvalue(&poles, rho, &z);
            prop_assert!((top - found.values()[n - 1]).abs() <= 1e-14 * scale);
            // The projections on an orthonormal basis preserve the length (Parseval's identity).
            let x: Vec<f64> = (0..n).map(|i| 1.0 + (i % 4) as f64).collect();
            let projected = found.project(&x);
            let length: f64 = x.iter().map(|v| v * v).sum();
            let kept: f64 = projected.iter().map(|v| v * v).sum();
            prop_assert!((kept - length).abs() <= 1e-9 * length, "{kept} {length}");
        }
    }

    #[test]
    fn a_single_pole_moves_by_the_rank_one_term() {
        let found = RankOneEigen::new(vec![-2.0], 0.5, vec![3.0]);
        assert!((found.values()[0] - 2.5).abs() < 1e-15);
        assert!((found.project(&[4.0])[0].abs() - 4.0).abs() < 1e-15);
    }
}
