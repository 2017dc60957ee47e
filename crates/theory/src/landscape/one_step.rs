//! After one step of full-batch gradient descent: exact kernels by quadrature, for one trained row.
//!
//! A few independent normals carry everything: V(0) = W(0) = r x₀, the teacher fields v (k of them), the label noise, and the
//! Gaussian part x₁ of the first step,
//!
//! ```text
//! W(1) = A₁ W(0) + B₁·v + η √(C_l(0,0)/δ) x₁,   A₁ = 1 − η R_l(0,0),   B₁ = −η R_l(0,*),
//! V(1) = W(1) − (η/δ) φ(0):
//! ```
//!
//! W is the field of a fresh sample, V that of a training sample, which remembers that it was used
//! (docs/derivations/gd-phase-transitions.md#s4-4).

use super::ensemble::Ensemble;
use super::error::LandscapeError;
use super::grid;
use super::start::{at_start, positive};
use didact_math::linalg::{Mat, dot};
use didact_math::spectra::WeightLaw;
use didact_model::rule::{Batch, Expansion, Kick, LocalRule, Sample};

/// Kernels of the effective process up to the parameters of step 2.
#[derive(Clone, Debug)]
pub struct OneStepKernels {
    /// C_θ(1,0).
    pub correlation_10: f64,
    /// C_θ(1,1).
    pub correlation_11: f64,
    /// C_θ(1,*), one per teacher direction.
    pub overlap_1: Vec<f64>,
    /// Training loss after one step.
    pub train: f64,
    /// Loss on fresh samples after one step.
    pub test: f64,
    /// R_l(1,1).
    pub response_11: f64,
    /// R_l(1,0).
    pub response_10: f64,
    /// R_l(1,*).
    pub teacher_response: Vec<f64>,
    /// C_l(1,1).
    pub kick_11: f64,
    /// C_l(1,0).
    pub kick_10: f64,
    /// R_θ(2,0).
    pub parameter_response_20: f64,
    /// C_θ(2,0).
    pub correlation_20: f64,
    /// C_θ(2,2).
    pub correlation_22: f64,
    /// Hessian weights at V(1), and v; without the infimum of the support.
    pub ensemble: Ensemble,
}

/// Spacing of the grid in three dimensions: it leaves 3e-10 on the kernels of z² units with a pseudo-Huber loss (κ = 1), 2e-7 at 0.1.
const SPACING: f64 = 0.07;
/// In four dimensions, along the trained field and along the others: GeLU units keep 1e-5 on every kernel.
const COARSE: [f64; 2] = [0.2, 0.15];

/// Kernels and Hessian weights after one step of size `eta` at n = δ d, from rows of length `norm`, for at most two teacher
/// directions (one, if labels are noisy).
pub fn one_step(
    rule: &dyn LocalRule,
    norm: f64,
    label_noise: f64,
    delta: f64,
    eta: f64,
) -> Result<OneStepKernels, LandscapeError> {
    positive("delta = n/d", delta)?;
    positive("the learning rate", eta)?;
    let start = at_start(rule, norm, label_noise)?;
    let shape = rule.shape();
    let k = shape.frozen;
    let a1 = 1.0 - eta * start.response;
    let b1: Vec<f64> = start.teacher_response.iter().map(|r| -eta * r).collect();
    let spread = eta * (start.correlation / delta).sqrt();

    let (mut probabilities, mut weights) = (Vec::new(), Vec::new());
    let mut projections = vec![Vec::new(); k];
    let mut sums = [0.0; 6];
    let mut teacher_response = vec![0.0; k];
    // φ(0) and its derivatives stay while x₁ runs along a line.
    let (mut kick, mut curvature) = (Kick::new(shape), Mat::zeros(1, 1 + k));
    grid::visit(&axes(k + usize::from(label_noise > 0.0), norm, spread), |line| {
        let (w0, v, size) = (norm * line.prefix[0], &line.prefix[1..=k], line.last.len());
        let e = label_noise * line.prefix.get(1 + k).copied().unwrap_or(0.0);
        let at_start = [&[w0], v].concat();
        let sample = Sample { fields: &at_start, scalars: &[], noise: e };
        rule.kick(&sample, &mut kick);
        rule.curvature(&sample, &mut curvature);
        let (phi0, slope0) = (kick.rows[0], curvature[(0, 0)]);

        let mean = a1 * w0 + dot(&b1, v);
        let mut fields: Vec<f64> = line.last.iter().map(|x| mean + spread * x).collect();
        v.iter().for_each(|v| fields.extend(std::iter::repeat_n(*v, size)));
        let (mut fresh, mut used) = (vec![0.0; size], vec![0.0; size]);
        let noise = vec![e; size];
        rule.loss_batch(&Batch::new(&fields, size, &[], &noise), &mut fresh);
        fields[..size].iter_mut().for_each(|field| *field -= eta / delta * phi0);
        let trained = Batch::new(&fields, size, &[], &noise);
        let (mut phi1, mut derivatives) = (vec![0.0; size], vec![0.0; (1 + k) * size]);
        let out =
            Expansion { losses: &mut used, kicks: &mut phi1, columns: 1 + k, curvature: &mut derivatives };
        rule.expand_batch(&trained, out);
        let (slope1, teacher1) = derivatives.split_at(size);
        for (l, p) in line.weights.iter().enumerate() {
            let memory = -eta / delta * slope1[l];
            let terms = [used[l], fresh[l], slope1[l], memory * slope0, phi1[l] * phi1[l], phi1[l] * phi0];
            sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += p * term);
            for (n, response) in teacher_response.iter_mut().enumerate() {
                *response += p * (teacher1[n * size + l] + memory * curvature[(0, 1 + n)]);
            }
        }
        probabilities.extend_from_slice(line.weights);
        weights.extend_from_slice(slope1);
        for (column, v) in projections.iter_mut().zip(v) {
            column.resize(column.len() + size, *v);
        }
    });
    let [train, test, response_11, response_10, kick_11, kick_10] = sums;
    let law = WeightLaw::from_parts(probabilities, weights)?;
    let ensemble = Ensemble::new(vec![law], projections)?;

    let a2 = a1 - eta * (response_10 + response_11 * a1);
    let b2: Vec<f64> =
        b1.iter().zip(&teacher_response).map(|(b, r)| b - eta * (response_11 * b + r)).collect();
    let echo = 1.0 - eta * response_11;
    let noise = echo * echo * start.correlation + 2.0 * echo * kick_10 + kick_11;
    let square = norm * norm;
    Ok(OneStepKernels {
        correlation_10: square * a1,
        correlation_11: square * a1 * a1 + dot(&b1, &b1) + spread * spread,
        overlap_1: b1,
        train,
        test,
        response_11,
        response_10,
        teacher_response,
        kick_11,
        kick_10,
        parameter_response_20: echo,
        correlation_20: square * a2,
        correlation_22: square * a2 * a2 + dot(&b2, &b2) + eta * eta / delta * noise,
        ensemble,
    })
}

/// Spacings along x₀, then `others` (teacher fields and noise), then x₁.
///
/// W(1) moves by `spread` per unit of x₁, so a coarser grid resolves the same fields; 0.5 still integrates the Gaussian to round-off.
fn axes(others: usize, norm: f64, spread: f64) -> Vec<f64> {
    let ([first, other], coarsest) = if others == 1 { ([SPACING; 2], 0.25) } else { (COARSE, 0.5) };
    let mut axes = vec![other; others];
    axes.insert(0, first / norm.max(1.0));
    axes.push((first / spread.max(1e-9)).min(coarsest));
    axes
}
