//! Hessians of a finite data set, for any rule: (1/n) Σᵢ Gᵢ xᵢ xᵢᵀ with the weights of one trained row, or of all of them.

use super::error::LandscapeError;
use super::start::positive;
use didact_math::linalg::{Eigen, Mat, dot, symmetric_eigen, weighted_gram};
use didact_math::random::{RngAddress, Stream, unit_vector};
use didact_math::spectra::{RitzPair, SpectralMeasure, SpectrumEnd, extreme_pairs, spectral_density};
use didact_model::rule::{Batch, Expansion, LocalRule, Sample};

/// m x m blocks (1/n) Σ G_ij(x) x xᵀ of d x d each, multiplied without being formed; one block for a single row.
#[derive(Debug, Clone)]
pub struct EmpiricalHessian<'a> {
    /// n x d.
    inputs: &'a Mat,
    /// m.
    rows: usize,
    /// G_ij of every sample, m x m x n.
    weights: Vec<f64>,
}

impl<'a> EmpiricalHessian<'a> {
    /// One block. Rows of `inputs` are the xᵢ.
    pub fn new(inputs: &'a Mat, weights: Vec<f64>) -> Self {
        Self::of_rows(inputs, 1, weights)
    }

    /// All blocks of m rows; `weights` is m x m x n and symmetric in its rows.
    pub fn of_rows(inputs: &'a Mat, rows: usize, weights: Vec<f64>) -> Self {
        assert_eq!(inputs.rows() * rows * rows, weights.len(), "one weight per block and input");
        Self { inputs, rows, weights }
    }

    /// m d, the size of the matrix.
    pub fn size(&self) -> usize {
        self.rows * self.inputs.cols()
    }

    /// out = H v.
    pub fn apply(&self, v: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        let (n, d, m) = (self.inputs.rows(), self.inputs.cols(), self.rows);
        let mut along = vec![0.0; m];
        for l in 0..n {
            let x = self.inputs.row(l);
            along.iter_mut().zip(v.chunks_exact(d)).for_each(|(a, v)| *a = dot(x, v) / n as f64);
            for (i, out) in out.chunks_exact_mut(d).enumerate() {
                let share: f64 =
                    along.iter().enumerate().map(|(j, a)| self.weights[(i * m + j) * n + l] * a).sum();
                out.iter_mut().zip(x).for_each(|(o, x)| *o += share * x);
            }
        }
    }

    /// All eigenvalues and eigenvectors, by the dense solver; m d up to a few thousand.
    pub fn eigen(&self) -> Eigen {
        let (n, d, m) = (self.inputs.rows(), self.inputs.cols(), self.rows);
        let mut whole = Mat::zeros(m * d, m * d);
        for i in 0..m {
            for j in 0..=i {
                let own = &self.weights[(i * m + j) * n..][..n];
                let weights: Vec<f64> = own.iter().map(|g| g / n as f64).collect();
                let block = weighted_gram(self.inputs, &weights);
                for a in 0..d {
                    for b in 0..d {
                        whole[(i * d + a, j * d + b)] = block[(a, b)];
                        whole[(j * d + b, i * d + a)] = block[(a, b)];
                    }
                }
            }
        }
        symmetric_eigen(&whole)
    }

    /// The `count` outermost eigenpairs at one end by Lanczos iteration; any d.
    pub fn extreme(&self, end: SpectrumEnd, count: usize, seed: u64) -> Vec<RitzPair> {
        let apply = |v: &[f64], out: &mut [f64]| self.apply(v, out);
        // Outliers converge first; 300 products are far more than they need.
        extreme_pairs(self.size(), count, end, 1e-8, 300, seed, apply)
    }

    /// The spectral density by stochastic Lanczos quadrature; any d.
    pub fn density(&self, probes: usize, steps: usize, seed: u64) -> SpectralMeasure {
        spectral_density(self.size(), probes, steps, seed, |v, out| self.apply(v, out))
    }
}

/// Full-batch gradient descent on one data set of a rule without trained scalars, kept as plain matrices so that the Hessian can be taken anywhere.
#[derive(Debug)]
pub struct EmpiricalDescent<'a> {
    rule: &'a dyn LocalRule,
    /// n x d, rows xᵢ ~ N(0, 1).
    pub inputs: Mat,
    noise: Vec<f64>,
    /// P x d: trained rows, then the teacher directions, which are the first unit vectors.
    pub rows: Mat,
}

impl<'a> EmpiricalDescent<'a> {
    /// n = round(δ d) inputs in d dimensions, trained rows of a given length in random directions.
    pub fn new(
        rule: &'a dyn LocalRule,
        d: usize,
        delta: f64,
        start_length: f64,
        label_noise: f64,
        seed: u64,
    ) -> Result<Self, LandscapeError> {
        positive("delta = n/d", delta)?;
        positive("the length of the start", start_length)?;
        let shape = rule.shape();
        if shape.scalars > 0 {
            return Err(LandscapeError::TrainedScalars { scalars: shape.scalars });
        }
        let n = (delta * d as f64).round() as usize;
        if n == 0 || d < shape.rows() {
            let rule = "at least as many dimensions as rows, and one sample, are needed";
            return Err(LandscapeError::Range { name: "d", value: d as f64, rule });
        }
        let stream = |lane: u16| Stream::at(RngAddress { seed, replica: 0, step: 0, lane });
        let inputs = gaussian_inputs(n, d, stream(1))?;
        let mut noise = vec![0.0; n];
        stream(2).fill_normal(&mut noise);
        noise.iter_mut().for_each(|e| *e *= label_noise);
        let mut rows = Mat::zeros(shape.rows(), d);
        let mut directions = stream(3);
        for i in 0..shape.trained {
            let mut direction = vec![0.0; d];
            unit_vector(&mut directions, &mut direction);
            rows.row_mut(i).iter_mut().zip(&direction).for_each(|(w, u)| *w = start_length * u);
        }
        for k in 0..shape.frozen {
            rows[(shape.trained + k, k)] = 1.0;
        }
        Ok(Self { rule, inputs, noise, rows })
    }

    /// Fields of all samples, field by field.
    fn fields(&self) -> Vec<f64> {
        let (n, p) = (self.inputs.rows(), self.rows.rows());
        let mut fields = vec![0.0; p * n];
        for i in 0..n {
            for k in 0..p {
                fields[k * n + i] = dot(self.inputs.row(i), self.rows.row(k));
            }
        }
        fields
    }

    /// Θ ← Θ − (η/n) Σ φ(xᵢ) xᵢ, `steps` times.
    pub fn descend(&mut self, eta: f64, steps: usize) {
        let (n, m) = (self.inputs.rows(), self.rule.shape().trained);
        let mut kicks = vec![0.0; m * n];
        for _ in 0..steps {
            let fields = self.fields();
            let batch = Batch::new(&fields, n, &[], &self.noise);
            self.rule.kick_batch(&batch, &mut kicks, &mut []);
            for j in 0..m {
                for i in 0..n {
                    let factor = -eta / n as f64 * kicks[j * n + i];
                    let (x, row) = (self.inputs.row(i), self.rows.row_mut(j));
                    row.iter_mut().zip(x).for_each(|(w, x)| *w += factor * x);
                }
            }
        }
    }

    /// The Hessian block of one trained row where the run stands.
    pub fn hessian(&self, row: usize) -> EmpiricalHessian<'_> {
        let (n, p) = (self.inputs.rows(), self.rows.rows());
        let all = self.fields();
        let mut fields = vec![0.0; p];
        let weight = |i: usize| {
            for (k, h) in fields.iter_mut().enumerate() {
                *h = all[k * n + i];
            }
            self.rule.row_weight(&Sample { fields: &fields, scalars: &[], noise: self.noise[i] }, row)
        };
        EmpiricalHessian::new(&self.inputs, (0..n).map(weight).collect())
    }

    /// The Hessian of the risk in all trained rows, m d x m d: blocks (1/n) Σ ∂kick_i/∂h_j x xᵀ.
    ///
    /// [`Self::hessian`] gives a block in the units of `row_weight` of a rule, which for many rows may be m times those of the risk.
    pub fn whole_hessian(&self) -> EmpiricalHessian<'_> {
        let (n, m) = (self.inputs.rows(), self.rule.shape().trained);
        let fields = self.fields();
        let batch = Batch::new(&fields, n, &[], &self.noise);
        let (mut kicks, mut weights) = (vec![0.0; m * n], vec![0.0; m * m * n]);
        let out = Expansion { losses: &mut [], kicks: &mut kicks, columns: m, curvature: &mut weights };
        self.rule.expand_batch(&batch, out);
        EmpiricalHessian::of_rows(&self.inputs, m, weights)
    }

    /// Squared length of the projection of a unit vector of R^d, or of R^{m d}, on hard directions, given in teacher coordinates.
    pub fn overlap(&self, vector: &[f64], hard: &[Vec<f64>]) -> f64 {
        // Teacher direction k is unit vector k.
        let rows = vector.chunks_exact(self.inputs.cols());
        rows.map(|row| hard.iter().map(|u| dot(u, &row[..u.len()]).powi(2)).sum::<f64>()).sum()
    }
}

/// Data sets may take this much memory.
const MOST_GIGABYTES: f64 = 8.0;

/// n inputs x ~ N(0, 1_d) as rows, if they fit.
pub(super) fn gaussian_inputs(n: usize, d: usize, mut stream: Stream) -> Result<Mat, LandscapeError> {
    let gigabytes = n as f64 * d as f64 * 8e-9;
    if gigabytes > MOST_GIGABYTES {
        return Err(LandscapeError::TooLarge { samples: n, dimension: d, gigabytes, most: MOST_GIGABYTES });
    }
    let mut inputs = Mat::zeros(n, d);
    stream.fill_normal(inputs.as_mut_slice());
    Ok(inputs)
}
