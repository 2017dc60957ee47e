//! Spectral estimators D = (1/n) Σ T(yᵢ) xᵢ xᵢᵀ: their top eigenvector as a guess of the latent directions.
//!
//! The theory is that of a Hessian with weights G = −T(y), without the condition that the outlier be negative
//! (docs/derivations/gd-phase-transitions.md#s7-spectral): Y. M. Lu and G. Li, Inf. Inference 9, 507 (2020);
//! M. Mondelli and A. Montanari, Found. Comput. Math. 19, 703 (2019).

use super::empirical::{EmpiricalHessian, gaussian_inputs};
use super::error::LandscapeError;
use super::recovery::{self, Link};
use super::{grid, start::positive};
use didact_math::expression::Expression;
use didact_math::random::{RngAddress, Stream};
use didact_math::spectra::{Bulk, Ceiling, SpectrumEnd, Spiked, WeightLaw};

/// What is done with the labels.
#[derive(Clone, Debug)]
pub enum Preprocessing {
    /// T = 1 − 1/E[z²|y]: the largest overlap at every δ (one direction).
    Optimal,
    /// T = √δ_alg T̄/(√δ − (√δ − √δ_alg) T̄), T̄ = 1 − 1/E[z²|y], of Mondelli and Montanari (one direction).
    MondelliMontanari,
    /// A formula in `y` and `delta`.
    Formula(Expression),
}

/// Spectrum of the estimator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpectralMethod {
    /// Right end of the bulk.
    pub right_edge: f64,
    /// Top eigenvalue and squared overlap of its eigenvector with the latent space, if it has left the bulk.
    pub outlier: Option<(f64, f64)>,
}

/// Labels this close to 0 are moved there: T may have a pole at 0, and its average has none.
const FLOOR: f64 = 1e-12;
/// Spacing of the quadrature in one dimension, and in more.
const SPACING: [f64; 3] = [0.02, 0.05, 0.12];

impl Preprocessing {
    /// Reads `optimal`, `mondelli-montanari` or a formula in `y` and `delta`.
    pub fn parse(text: &str) -> Result<Self, didact_math::expression::ExpressionError> {
        Ok(match text {
            "optimal" => Self::Optimal,
            "mondelli-montanari" => Self::MondelliMontanari,
            formula => Self::Formula(Expression::parse(formula, &["y", "delta"])?),
        })
    }

    /// T as a function of the label.
    fn function<'a>(
        &'a self,
        k: usize,
        link: Link<'a>,
        delta: f64,
    ) -> Result<Box<dyn Fn(f64) -> f64 + 'a>, LandscapeError> {
        if let Self::Formula(formula) = self {
            return Ok(Box::new(move |y: f64| {
                formula.value(&[if y.abs() < FLOOR { FLOOR } else { y }, delta])
            }));
        }
        let excess = recovery::one_direction(k, link)?;
        let plain = move |y: f64| 1.0 - 1.0 / (1.0 + excess(y)).max(FLOOR);
        if matches!(self, Self::Optimal) {
            return Ok(Box::new(plain));
        }
        let (root, alg) = (delta.sqrt(), recovery::weak_recovery(k, link)?.delta.sqrt());
        if root <= alg {
            return Err(LandscapeError::Range {
                name: "delta",
                value: delta,
                rule: "this preprocessing needs delta above delta_alg",
            });
        }
        Ok(Box::new(move |y| {
            let t = plain(y);
            alg * t / (root - (root - alg) * t)
        }))
    }
}

/// Right edge, outlier and overlap at n = δ d, for y = h(z, ε) with k latent variables.
pub fn spectral_method(
    k: usize,
    noisy: bool,
    link: Link,
    preprocessing: &Preprocessing,
    delta: f64,
) -> Result<SpectralMethod, LandscapeError> {
    positive("delta = n/d", delta)?;
    let fields = k + usize::from(noisy);
    if fields > SPACING.len() {
        return Err(LandscapeError::TooManyFields { fields, most: SPACING.len() });
    }
    let function = preprocessing.function(k, link, delta)?;
    let (mut probabilities, mut weights) = (Vec::new(), Vec::new());
    let mut projections = vec![Vec::new(); k];
    let mut point = vec![0.0; fields];
    grid::visit(&vec![SPACING[fields - 1]; fields], |line| {
        point[..fields - 1].copy_from_slice(line.prefix);
        for (x, p) in line.last.iter().zip(line.weights) {
            point[fields - 1] = *x;
            let y = link(&point[..k], if noisy { *x } else { 0.0 });
            probabilities.push(*p);
            weights.push(-function(y));
            projections.iter_mut().zip(&point).for_each(|(column, z)| column.push(*z));
        }
    });
    let law = WeightLaw::from_parts(probabilities, weights)?;
    let supremum = supremum(k, link, &function)?.max(-law.infimum());
    let law = law.with_infimum(-supremum)?;
    let bulk = Bulk::new(&law, delta)?;
    let spiked = Spiked::new(bulk, &projections)?;
    let outlier = spiked.outliers(Ceiling::Edge).first().map(|outlier| (-outlier.position, outlier.overlap));
    Ok(SpectralMethod { right_edge: -bulk.left_edge().position, outlier })
}

/// sup T, approached on labels far out if not on the nodes.
fn supremum(k: usize, link: Link, function: &dyn Fn(f64) -> f64) -> Result<f64, LandscapeError> {
    let far = |reach: f64| {
        let mut best = f64::NEG_INFINITY;
        for axis in 0..=k {
            for sign in [1.0, -1.0] {
                let z: Vec<f64> =
                    (0..k).map(|i| if i == axis || axis == k { sign * reach } else { 0.3 }).collect();
                let value = function(link(&z, 0.0));
                best = if value.is_nan() { best } else { best.max(value) };
            }
        }
        best
    };
    let (near, distant) = (far(1e4), far(1e8));
    if distant > 10.0 && distant > 2.0 * near {
        return Err(LandscapeError::UnboundedPreprocessing { value: distant });
    }
    Ok(near.max(distant))
}

/// The same at finite size: top eigenvalue and squared overlap with the latent space, one data set.
pub fn sampled_spectral_method(
    k: usize,
    link: Link,
    preprocessing: &Preprocessing,
    delta: f64,
    d: usize,
    seed: u64,
) -> Result<(f64, f64), LandscapeError> {
    positive("delta = n/d", delta)?;
    let n = (delta * d as f64).round() as usize;
    if n == 0 || d < k {
        return Err(LandscapeError::Range {
            name: "d",
            value: d as f64,
            rule: "it must be at least k, with one sample or more",
        });
    }
    let function = preprocessing.function(k, link, delta)?;
    let inputs = gaussian_inputs(n, d, Stream::at(RngAddress { seed, replica: 0, step: 0, lane: 1 }))?;
    let mut noise = Stream::at(RngAddress { seed, replica: 0, step: 0, lane: 2 });
    // The latent directions are the first unit vectors.
    let weights = (0..n).map(|i| function(link(&inputs.row(i)[..k], noise.normal()))).collect();
    let top = EmpiricalHessian::new(&inputs, weights).extreme(SpectrumEnd::Highest, 1, seed).remove(0);
    Ok((top.value, top.vector[..k].iter().map(|x| x * x).sum()))
}
