//! Lanczos iteration: extreme eigenpairs and spectral densities of symmetric matrices that are given by their products with
//! vectors.
//!
//! C. Lanczos (1950); B. N. Parlett, *The Symmetric Eigenvalue Problem* (1980), for the residual bound and full
//! reorthogonalisation; G. H. Golub and J. H. Welsch (1969) and S. Ubaru, J. Chen and Y. Saad (2017) for the density.

use crate::linalg::{Mat, dot, symmetric_eigen};
use crate::random::{RngAddress, Stream};

/// An end of a spectrum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpectrumEnd {
    /// The smallest eigenvalues.
    Lowest,
    /// The largest eigenvalues.
    Highest,
}

/// An approximate eigenpair.
#[derive(Clone, Debug)]
pub struct RitzPair {
    /// Ritz value λ, an approximate eigenvalue.
    pub value: f64,
    /// Ritz vector v of norm 1.
    pub vector: Vec<f64>,
    /// |A v − λ v|; an eigenvalue of A lies within this distance of λ.
    pub residual: f64,
}

/// An orthonormal basis of a Krylov space of A, and the tridiagonal matrix of A in this basis.
#[derive(Clone, Debug)]
pub struct Tridiagonal {
    /// Basis vectors; the first one is the normalised start vector.
    pub basis: Vec<Vec<f64>>,
    /// Diagonal of the tridiagonal matrix.
    pub diagonal: Vec<f64>,
    /// Off-diagonal entries: entry k couples vectors k and k + 1. The last one is the norm of the part of A v that lies outside
    /// of the space, v the last basis vector.
    pub coupling: Vec<f64>,
}

/// A spectral measure Σ_k w_k δ(x − x_k): nodes x_k with weights w_k.
#[derive(Clone, Debug, PartialEq)]
pub struct SpectralMeasure {
    /// Positions of the nodes.
    pub nodes: Vec<f64>,
    /// Weights, whose sum is one.
    pub weights: Vec<f64>,
}

/// A coupling below this fraction of the largest entry ends the iteration, because the Krylov space is then invariant.
const INVARIANT_TOLERANCE: f64 = 1e-13;

/// Builds a Krylov basis of up to `steps` vectors from a start vector; `apply(v, out)` writes A v to `out`.
pub fn tridiagonalise(start: &[f64], steps: usize, mut apply: impl FnMut(&[f64], &mut [f64])) -> Tridiagonal {
    let mut krylov = Krylov::new(start);
    for _ in 0..steps.min(start.len()) {
        if !krylov.grow(&mut apply) {
            break;
        }
    }
    krylov.tridiagonal
}

/// A Krylov basis that grows by one vector per product with A.
struct Krylov {
    tridiagonal: Tridiagonal,
    /// The next basis vector.
    next: Vec<f64>,
    /// Buffer for A times the next basis vector.
    image: Vec<f64>,
    /// Largest entry of the tridiagonal matrix so far, which measures the size of A.
    scale: f64,
}

impl Krylov {
    fn new(start: &[f64]) -> Self {
        let norm = dot(start, start).sqrt();
        assert!(norm > 0.0 && norm.is_finite(), "Lanczos starts from a vector of finite positive length");
        Self {
            tridiagonal: Tridiagonal { basis: Vec::new(), diagonal: Vec::new(), coupling: Vec::new() },
            next: start.iter().map(|x| x / norm).collect(),
            image: vec![0.0; start.len()],
            scale: 0.0,
        }
    }

    /// Adds one vector to the basis. Returns `false` when the space is then invariant.
    fn grow(&mut self, apply: &mut impl FnMut(&[f64], &mut [f64])) -> bool {
        apply(&self.next, &mut self.image);
        let diagonal = dot(&self.next, &self.image);
        let Tridiagonal { basis, diagonal: diagonals, coupling } = &mut self.tridiagonal;
        basis.push(std::mem::replace(&mut self.next, self.image.clone()));
        diagonals.push(diagonal);
        // Full reorthogonalisation, without which copies of converged eigenpairs appear. Two passes are enough (Parlett).
        for _ in 0..2 {
            for vector in basis.iter() {
                let part = dot(vector, &self.next);
                self.next.iter_mut().zip(vector).for_each(|(x, v)| *x -= part * v);
            }
        }
        let left = dot(&self.next, &self.next).sqrt();
        self.scale = self.scale.max(diagonal.abs()).max(left);
        coupling.push(left);
        if left <= INVARIANT_TOLERANCE * self.scale || basis.len() == self.next.len() {
            return false;
        }
        self.next.iter_mut().for_each(|x| *x /= left);
        true
    }
}

impl Tridiagonal {
    /// Eigenvalues and eigenvectors of the tridiagonal matrix.
    fn eigen(&self) -> crate::linalg::Eigen {
        let n = self.diagonal.len();
        symmetric_eigen(&Mat::from_fn(n, n, |i, j| match (i, j) {
            _ if i == j => self.diagonal[i],
            _ if i == j + 1 => self.coupling[j],
            _ if j == i + 1 => self.coupling[i],
            _ => 0.0,
        }))
    }

    /// The Gauss quadrature of the spectral measure of the start vector (Golub and Welsch).
    pub fn measure(&self) -> SpectralMeasure {
        let eigen = self.eigen();
        let weights = (0..eigen.values.len()).map(|k| eigen.vectors[(0, k)].powi(2)).collect();
        SpectralMeasure { nodes: eigen.values, weights }
    }

    /// The `count` Ritz pairs at one end of the spectrum, outermost first.
    fn pairs(&self, end: SpectrumEnd, count: usize) -> Vec<RitzPair> {
        let eigen = self.eigen();
        let n = eigen.values.len();
        let last = self.coupling.last().copied().unwrap_or(0.0);
        (0..count.min(n))
            .map(|rank| {
                let k = if end == SpectrumEnd::Lowest { rank } else { n - 1 - rank };
                let mut vector = vec![0.0; self.basis[0].len()];
                for (i, base) in self.basis.iter().enumerate() {
                    let share = eigen.vectors[(i, k)];
                    vector.iter_mut().zip(base).for_each(|(x, b)| *x += share * b);
                }
                RitzPair { value: eigen.values[k], vector, residual: last * eigen.vectors[(n - 1, k)].abs() }
            })
            .collect()
    }
}

/// Computes the `count` eigenpairs at one end of the spectrum of a symmetric `dimension` x `dimension` matrix, outermost first.
///
/// The iteration stops when every residual is below `tolerance` times the size of the matrix, or after `most` products; the
/// pairs carry their residuals. The start vector is random and a function of `seed`.
pub fn extreme_pairs(
    dimension: usize,
    count: usize,
    end: SpectrumEnd,
    tolerance: f64,
    most: usize,
    seed: u64,
    mut apply: impl FnMut(&[f64], &mut [f64]),
) -> Vec<RitzPair> {
    let mut krylov = Krylov::new(&random_start(seed, 0, dimension));
    for step in 1..=most.min(dimension) {
        let growing = krylov.grow(&mut apply);
        // The eigenproblem of the tridiagonal matrix costs O(step³) operations, so convergence is tested at every tenth
        // step only.
        if growing && step % 10 != 0 {
            continue;
        }
        let pairs = krylov.tridiagonal.pairs(end, count);
        let done = step >= count && pairs.iter().all(|p| p.residual <= tolerance * krylov.scale);
        if done || !growing {
            return pairs;
        }
    }
    krylov.tridiagonal.pairs(end, count)
}

/// Estimates the spectral density of a symmetric matrix by stochastic Lanczos quadrature, from `probes` random vectors and
/// `steps` products with each. The nodes ascend. For a probe vector v, the moments |v|⁻² vᵀ Aᵏ v up to order
/// k = 2 `steps` − 1 are exact.
pub fn spectral_density(
    dimension: usize,
    probes: usize,
    steps: usize,
    seed: u64,
    mut apply: impl FnMut(&[f64], &mut [f64]),
) -> SpectralMeasure {
    let mut all: Vec<(f64, f64)> = Vec::new();
    for probe in 0..probes.max(1) {
        let start = random_start(seed, probe as u32 + 1, dimension);
        let SpectralMeasure { nodes, weights } = tridiagonalise(&start, steps, &mut apply).measure();
        all.extend(nodes.into_iter().zip(weights.iter().map(|w| w / probes.max(1) as f64)));
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (nodes, weights) = all.into_iter().unzip();
    SpectralMeasure { nodes, weights }
}

impl SpectralMeasure {
    /// The measure as a smooth density at `points`, with every node replaced by a Gaussian of the given width.
    pub fn smoothed(&self, points: &[f64], width: f64) -> Vec<f64> {
        let gaussian = |z: f64| crate::gauss::normal::density(z / width) / width;
        points
            .iter()
            .map(|x| self.nodes.iter().zip(&self.weights).map(|(n, w)| w * gaussian(x - n)).sum())
            .collect()
    }
}

fn random_start(seed: u64, probe: u32, dimension: usize) -> Vec<f64> {
    let mut start = vec![0.0; dimension];
    Stream::at(RngAddress { seed, replica: probe, step: 0, lane: 0 }).fill_normal(&mut start);
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symmetric(n: usize, seed: u64) -> Mat {
        let mut entries = vec![0.0; n * n];
        Stream::at(RngAddress { seed, replica: 0, step: 1, lane: 3 }).fill_normal(&mut entries);
        Mat::from_fn(n, n, |i, j| 0.5 * (entries[i * n + j] + entries[j * n + i]))
    }

    fn times(a: &Mat) -> impl FnMut(&[f64], &mut [f64]) + '_ {
        |v, out| (0..a.rows()).for_each(|i| out[i] = dot(a.row(i), v))
    }

    #[test]
    fn both_ends_agree_with_the_dense_solver() {
        let a = symmetric(80, 5);
        let dense = symmetric_eigen(&a);
        for (end, k) in [(SpectrumEnd::Lowest, 0), (SpectrumEnd::Highest, 79)] {
            let pairs = extreme_pairs(80, 3, end, 1e-11, 80, 1, times(&a));
            assert!((pairs[0].value - dense.values[k]).abs() < 1e-10);
            let overlap: f64 = (0..80).map(|i| dense.vectors[(i, k)] * pairs[0].vector[i]).sum();
            assert!((overlap.abs() - 1.0).abs() < 1e-9);
            assert!(pairs.iter().all(|p| p.residual < 1e-9));
        }
    }

    #[test]
    fn the_returned_residual_is_the_norm_of_the_residual_vector() {
        let a = symmetric(60, 9);
        let pair = extreme_pairs(60, 1, SpectrumEnd::Lowest, 0.0, 15, 2, times(&a)).remove(0);
        let mut image = vec![0.0; 60];
        times(&a)(&pair.vector, &mut image);
        let gap =
            image.iter().zip(&pair.vector).map(|(y, v)| (y - pair.value * v).powi(2)).sum::<f64>().sqrt();
        assert!(pair.residual > 1e-6, "15 steps do not converge");
        assert!((gap - pair.residual).abs() < 1e-12);
    }

    #[test]
    fn an_invariant_space_ends_the_iteration() {
        let a = Mat::diagonal(&[1.0, 1.0, 2.0, 2.0, 2.0]);
        let tridiagonal = tridiagonalise(&[1.0, 0.0, 1.0, 0.0, 0.0], 5, times(&a));
        assert_eq!(tridiagonal.diagonal.len(), 2);
        let SpectralMeasure { nodes, weights } = tridiagonal.measure();
        assert!((nodes[0] - 1.0).abs() < 1e-14 && (nodes[1] - 2.0).abs() < 1e-14);
        assert!((weights[0] - 0.5).abs() < 1e-14);
    }

    #[test]
    fn the_density_has_the_moments_of_the_matrix() {
        let a = symmetric(200, 3);
        let ritz = spectral_density(200, 40, 20, 7, times(&a));
        assert!((ritz.weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let second: f64 = ritz.nodes.iter().zip(&ritz.weights).map(|(x, w)| w * x * x).sum();
        let exact = a.times(&a).trace() / 200.0;
        // A probe estimates Tr A²/d with a relative deviation of about √(2 Tr A⁴/(Tr A²)²) ≈ √(4/d) for a semicircle.
        assert!((second / exact - 1.0).abs() < 5.0 * (4.0f64 / 200.0 / 40.0).sqrt(), "{second} {exact}");
        let mass: f64 =
            ritz.smoothed(&(-60..60).map(|i| 0.5 * f64::from(i)).collect::<Vec<_>>(), 1.0).iter().sum();
        assert!((0.5 * mass - 1.0).abs() < 1e-6);
    }
}
