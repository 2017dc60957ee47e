//! After one step of full-batch gradient descent: exact kernels by quadrature, for one trained row and one teacher direction.
//!
//! Three independent normals carry everything: V(0) = W(0) = r x₀, v, and the Gaussian part x₁ of the first step,
//!
//! ```text
//! W(1) = A₁ W(0) + B₁ v + η √(C_l(0,0)/δ) x₁,   A₁ = 1 − η R_l(0,0),   B₁ = −η R_l(0,*),
//! V(1) = W(1) − (η/δ) φ(0):
//! ```
//!
//! W is the field of a fresh sample, V that of a training sample, which remembers that it was used.

use super::ensemble::Ensemble;
use super::error::LandscapeError;
use super::grid;
use super::start::{at_start, positive};
use didact_math::linalg::Mat;
use didact_math::spectra::WeightLaw;
use didact_model::rule::{Batch, Kick, LocalRule, Sample};

/// Kernels of the effective process up to the parameters of step 2.
#[derive(Clone, Debug)]
pub struct OneStep {
    /// C_θ(1,0).
    pub correlation_10: f64,
    /// C_θ(1,1).
    pub correlation_11: f64,
    /// C_θ(1,*).
    pub overlap_1: f64,
    /// Training loss after one step.
    pub train: f64,
    /// Loss on fresh samples after one step.
    pub test: f64,
    /// R_l(1,1).
    pub response_11: f64,
    /// R_l(1,0).
    pub response_10: f64,
    /// R_l(1,*).
    pub teacher_response: f64,
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

/// Spacing of the grid: it leaves 3e-10 on the kernels of z² units with a pseudo-Huber loss (κ = 1), 2e-7 at 0.1.
const SPACING: f64 = 0.07;

/// Kernels and Hessian weights after one step of size `eta` at n = δ d, from rows of length `norm`.
pub fn one_step(rule: &dyn LocalRule, norm: f64, delta: f64, eta: f64) -> Result<OneStep, LandscapeError> {
    let shape = rule.shape();
    if (shape.trained, shape.frozen) != (1, 1) {
        return Err(LandscapeError::NotScalar { trained: shape.trained, directions: shape.frozen });
    }
    positive("delta = n/d", delta)?;
    positive("the learning rate", eta)?;
    let start = at_start(rule, norm, 0.0)?;
    let (a1, b1) = (1.0 - eta * start.response, -eta * start.teacher_response[0]);
    let spread = eta * (start.correlation / delta).sqrt();

    let (mut probabilities, mut weights, mut projections) = (Vec::new(), Vec::new(), Vec::new());
    let mut sums = [0.0; 7];
    // φ(0) and its derivatives stay while x₁ runs along a line.
    let (mut kick, mut curvature) = (Kick::new(shape), Mat::zeros(1, 2));
    // W(1) moves by `spread` per unit of x₁, so a coarser grid resolves the same fields; 0.25 still integrates the Gaussian to round-off.
    let axes = [SPACING / norm.max(1.0), SPACING, (SPACING / spread.max(1e-9)).min(0.25)];
    grid::visit(&axes, |line| {
        let (w0, v, size) = (norm * line.prefix[0], line.prefix[1], line.last.len());
        let sample = Sample { fields: &[w0, v], scalars: &[], noise: 0.0 };
        rule.kick(&sample, &mut kick);
        rule.curvature(&sample, &mut curvature);
        let (phi0, slope0, teacher0) = (kick.rows[0], curvature[(0, 0)], curvature[(0, 1)]);

        let mut fields: Vec<f64> = line.last.iter().map(|x| a1 * w0 + b1 * v + spread * x).collect();
        fields.resize(2 * size, v);
        let (mut fresh, mut used) = (vec![0.0; size], vec![0.0; size]);
        let noise = vec![0.0; size];
        rule.loss_batch(&Batch { fields: &fields, size, scalars: &[], noise: &noise }, &mut fresh);
        fields[..size].iter_mut().for_each(|field| *field -= eta / delta * phi0);
        let trained = Batch { fields: &fields, size, scalars: &[], noise: &noise };
        let (mut phi1, mut derivatives) = (vec![0.0; size], vec![0.0; 2 * size]);
        rule.loss_batch(&trained, &mut used);
        rule.curvature_batch(&trained, 2, &mut phi1, &mut derivatives);
        let (slope1, teacher1) = derivatives.split_at(size);
        for (l, p) in line.weights.iter().enumerate() {
            let terms = [
                used[l],
                fresh[l],
                slope1[l],
                -eta / delta * slope1[l] * slope0,
                teacher1[l] - eta / delta * slope1[l] * teacher0,
                phi1[l] * phi1[l],
                phi1[l] * phi0,
            ];
            sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += p * term);
        }
        probabilities.extend_from_slice(line.weights);
        weights.extend_from_slice(slope1);
        projections.resize(projections.len() + size, v);
    });
    let [train, test, response_11, response_10, teacher_response, kick_11, kick_10] = sums;
    let law = WeightLaw::from_parts(probabilities, weights)?;
    let ensemble = Ensemble::new(vec![law], vec![projections])?;

    let a2 = a1 - eta * (response_10 + response_11 * a1);
    let b2 = b1 - eta * (response_11 * b1 + teacher_response);
    let echo = 1.0 - eta * response_11;
    let noise = echo * echo * start.correlation + 2.0 * echo * kick_10 + kick_11;
    let square = norm * norm;
    Ok(OneStep {
        correlation_10: square * a1,
        correlation_11: square * a1 * a1 + b1 * b1 + spread * spread,
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
        correlation_22: square * a2 * a2 + b2 * b2 + eta * eta / delta * noise,
        ensemble,
    })
}
