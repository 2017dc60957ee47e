//! Gradient and Hessian of the population risk at any weights, for any rule on isotropic inputs.
//!
//! The risk depends on the weights through their Gram matrix alone, so its Hessian is known from averages over the few
//! fields. By Stein's lemma, with rows = F · frame, frame an orthonormal basis of the span of all rows,
//!
//!   grad_i R = Σ_k A_ik row_k,      `H_ij = E[c_ij] 1 + frameᵀ E[c_ij (z zᵀ − 1)] frame`,
//!
//! `A = E[∂kick/∂h]`, c_ij = ∂kick_i/∂h_j over trained rows. Outside the span H is `E[c] ⊗ 1`: the spectrum in N
//! dimensions costs an eigenproblem of trained × span, whatever N. Trained scalars are held fixed.

pub(crate) mod quantities;
pub mod stationary;

use didact_math::linalg::{Mat, svd, symmetric_eigen};
use didact_model::rule::CurvatureAverages;
use didact_model::{Averages, Law, LocalRule, Needed};

/// Largest dense Hessian unless asked for more: 4000 x 4000 takes 128 MB and minutes.
pub const SIZE_LIMIT: usize = 4000;

/// Why there is no Hessian.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum HessianError {
    /// Too large to write down.
    #[error(
        "the Hessian is {size} x {size}, more than the limit of {limit}\n\nhint: the spectrum of the Gram matrix needs no dense Hessian; or raise the limit"
    )]
    TooLarge {
        /// trained x N.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// Weights of the wrong shape.
    #[error("{given} rows of weights for a model of {expected} (trained rows first, then frozen ones)")]
    Rows {
        /// Given.
        given: usize,
        /// Expected.
        expected: usize,
    },
    /// Rows that do not fit.
    #[error("rows that span {span} dimensions do not fit in N = {dimension}")]
    Dimension {
        /// Rank of the rows.
        span: usize,
        /// N.
        dimension: usize,
    },
}

/// An eigenvalue and how often it occurs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RepeatedEigenvalue {
    /// The eigenvalue.
    pub value: f64,
    /// Its multiplicity.
    pub count: usize,
}

/// The population risk at weights (trained rows first, then frozen ones), label noise excluded.
pub fn risk(rule: &dyn LocalRule, rows: &Mat, scalars: &[f64]) -> f64 {
    rule.risk(&Law { covariance: &rows.gram(), scalars, label_noise: 0.0 })
}

/// The gradient of the population risk in the trained rows, trained x N.
pub fn gradient(rule: &dyn LocalRule, rows: &Mat, scalars: &[f64]) -> Mat {
    let mut averages = Averages::new(rule.shape());
    let law = Law { covariance: &rows.gram(), scalars, label_noise: 0.0 };
    rule.averages(&law, Needed::Drift, &mut averages);
    averages.drift.times(rows)
}

/// The Hessian of the population risk in the trained rows: entry (i N + a, j N + b) is ∂²R/∂w_ia ∂w_jb.
pub fn hessian(rule: &dyn LocalRule, rows: &Mat, scalars: &[f64], limit: usize) -> Result<Mat, HessianError> {
    check_rows(rule, rows.rows())?;
    let (trained, n) = (rule.shape().trained, rows.cols());
    if trained * n > limit {
        return Err(HessianError::TooLarge { size: trained * n, limit });
    }
    let (factor, frame) = factor_and_frame(rows);
    let curvature = curvature(rule, &factor, scalars);
    let mut hessian = Mat::zeros(trained * n, trained * n);
    for i in 0..trained {
        for j in 0..trained {
            let inside = frame.transpose().times(&curvature.second[i * trained + j]).times(&frame);
            for a in 0..n {
                for b in 0..n {
                    hessian[(i * n + a, j * n + b)] = inside[(a, b)];
                }
                hessian[(i * n + a, j * n + a)] += curvature.mean[(i, j)];
            }
        }
    }
    Ok(hessian)
}

/// All eigenvalues of the Hessian in N dimensions from the Gram matrix of the rows, ascending, equal ones merged.
pub fn spectrum(
    rule: &dyn LocalRule,
    gram: &Mat,
    dimension: usize,
    scalars: &[f64],
) -> Result<Vec<RepeatedEigenvalue>, HessianError> {
    check_rows(rule, gram.rows())?;
    let trained = rule.shape().trained;
    let factor = factor_of_gram(gram);
    let span = factor.cols();
    if span > dimension {
        return Err(HessianError::Dimension { span, dimension });
    }
    let curvature = curvature(rule, &factor, scalars);
    let inside = Mat::from_fn(trained * span, trained * span, |row, column| {
        let ((i, a), (j, b)) = ((row / span, row % span), (column / span, column % span));
        curvature.second[i * trained + j][(a, b)] + if a == b { curvature.mean[(i, j)] } else { 0.0 }
    });
    let once =
        symmetric_eigen(&inside).values.into_iter().map(|value| RepeatedEigenvalue { value, count: 1 });
    let outside = symmetric_eigen(&curvature.mean).values.into_iter();
    let outside = outside.map(|value| RepeatedEigenvalue { value, count: dimension - span });
    Ok(merge(once.chain(outside).collect()))
}

/// Sorts levels, drops empty ones, and merges those that differ by no more than the rounding of an eigenproblem.
pub fn merge(mut levels: Vec<RepeatedEigenvalue>) -> Vec<RepeatedEigenvalue> {
    levels.retain(|l| l.count > 0);
    levels.sort_by(|a, b| a.value.total_cmp(&b.value));
    let scale = levels.iter().map(|l| l.value.abs()).fold(0.0, f64::max);
    let mut merged: Vec<RepeatedEigenvalue> = Vec::new();
    for level in levels {
        match merged.last_mut() {
            Some(last) if level.value - last.value <= 1e-10 * scale => {
                // The mean of the merged eigenvalues, weighted by their number.
                let count = last.count + level.count;
                last.value += (level.value - last.value) * level.count as f64 / count as f64;
                last.count = count;
            }
            _ => merged.push(level),
        }
    }
    merged
}

fn check_rows(rule: &dyn LocalRule, given: usize) -> Result<(), HessianError> {
    let expected = rule.shape().rows();
    if given == expected { Ok(()) } else { Err(HessianError::Rows { given, expected }) }
}

fn curvature(rule: &dyn LocalRule, factor: &Mat, scalars: &[f64]) -> CurvatureAverages {
    let mut out = CurvatureAverages::new(rule.shape().trained, factor.cols());
    rule.curvature_averages(factor, scalars, &mut out);
    out
}

/// Directions with less than this of the largest length are rounding.
const SPAN: f64 = 1e-12;

/// rows = F · frame with orthonormal rows of `frame`.
fn factor_and_frame(rows: &Mat) -> (Mat, Mat) {
    let svd = svd(rows);
    let largest = svd.values.first().copied().unwrap_or(0.0);
    let span = svd.values.iter().filter(|s| **s > SPAN * largest).count();
    let factor = Mat::from_fn(rows.rows(), span, |i, a| svd.left[(i, a)] * svd.values[a]);
    let frame = Mat::from_fn(span, rows.cols(), |a, j| svd.right[(j, a)]);
    (factor, frame)
}

/// F with F Fᵀ = gram, without the directions of no length.
fn factor_of_gram(gram: &Mat) -> Mat {
    let eigen = symmetric_eigen(gram);
    let largest = eigen.values.last().copied().unwrap_or(0.0);
    // Eigenvalues are squared lengths, but their rounding is ε of the largest, not ε².
    let kept: Vec<usize> = (0..gram.rows()).filter(|&a| eigen.values[a] > SPAN * largest).collect();
    Mat::from_fn(gram.rows(), kept.len(), |i, a| eigen.vectors[(i, kept[a])] * eigen.values[kept[a]].sqrt())
}
