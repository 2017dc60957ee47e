//! Before the first step: averages and Hessian weights by quadrature of any rule.
//!
//! At t = 0 the trained fields are V ~ N(0, r²) (r the length of the rows), independent of the teacher fields v ~ N(0, 1).

use super::ensemble::Ensemble;
use super::error::LandscapeError;
use super::grid;
use didact_math::roots::minimum;
use didact_math::spectra::WeightLaw;
use didact_model::rule::{Batch, Expansion, LocalRule, Sample};

/// Averages before the first step, in the notation of dynamical mean-field theory, for one trained row φ = kick.
#[derive(Clone, Debug)]
pub struct AtStart {
    /// `E[loss]`.
    pub loss: f64,
    /// R_l(0,0) = `E[∂φ/∂V]`.
    pub response: f64,
    /// R_l(0,*) = `E[∂φ/∂v_n]`.
    pub teacher_response: Vec<f64>,
    /// C_l(0,0) = `E[φ²]`.
    pub correlation: f64,
    /// `E[G²]`.
    pub second_moment: f64,
    /// E[G v_n²].
    pub teacher_moment: Vec<f64>,
    /// Weights and teacher fields; without the infimum of the support.
    pub ensemble: Ensemble,
    /// Relative difference of the averages to those of the next coarser grid.
    pub error: f64,
}

/// Gaussian variables that a product rule can afford here: every node becomes an atom of the law of the weights.
pub(super) const MOST: usize = 3;
/// First spacing of the grid, its refinement, and how often it is refined (unless two grids agree to `AGREED` first).
const SPACING: f64 = 0.05;
const REFINEMENTS: usize = 3;
const AGREED: f64 = 1e-11;

/// Averages and weights before the first step, for one trained row of length `norm` and at most two more Gaussian variables.
pub fn at_start(rule: &dyn LocalRule, norm: f64, label_noise: f64) -> Result<AtStart, LandscapeError> {
    let shape = rule.shape();
    if shape.trained != 1 {
        return Err(LandscapeError::NotOneRow { trained: shape.trained });
    }
    positive("the length of the start", norm)?;
    let dimension = shape.rows() + usize::from(label_noise > 0.0);
    if dimension > MOST {
        return Err(LandscapeError::TooManyFields { fields: dimension, most: MOST });
    }
    // Three dimensions: one pass at the spacing that the memory affords.
    let (mut spacing, refinements) = if dimension == MOST { (0.1, 0) } else { (SPACING, REFINEMENTS) };
    let mut now = at_spacing(rule, norm, label_noise, dimension, spacing)?;
    for _ in 0..refinements {
        spacing *= 0.6;
        let finer = at_spacing(rule, norm, label_noise, dimension, spacing)?;
        let scale = |a: f64, b: f64| (a - b).abs() / b.abs().max(1e-3);
        let error = scale(now.loss, finer.loss)
            .max(scale(now.response, finer.response))
            .max(scale(now.correlation, finer.correlation))
            .max(scale(now.second_moment, finer.second_moment));
        now = AtStart { error, ..finer };
        if error < AGREED {
            break;
        }
    }
    Ok(now)
}

pub(super) fn positive(name: &'static str, value: f64) -> Result<(), LandscapeError> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(LandscapeError::Range { name, value, rule: "it must be a positive number" })
}

fn at_spacing(
    rule: &dyn LocalRule,
    norm: f64,
    label_noise: f64,
    dimension: usize,
    spacing: f64,
) -> Result<AtStart, LandscapeError> {
    let shape = rule.shape();
    let (k, rows) = (shape.frozen, shape.rows());
    let (mut probabilities, mut weights) = (Vec::new(), Vec::new());
    let mut projections = vec![Vec::new(); k];
    let mut sums = [0.0; 4];
    let (mut teacher_response, mut teacher_moment) = (vec![0.0; k], vec![0.0; k]);
    // The trained field is r x: long rows need a finer grid in x.
    let mut axes = vec![spacing; dimension];
    axes[0] /= norm.max(1.0);
    grid::visit(&axes, |line| {
        let size = line.last.len();
        // Coordinates first: V/r, the v_n, then the noise if there is any.
        let mut fields = Vec::with_capacity(dimension * size);
        line.prefix.iter().for_each(|x| fields.extend(std::iter::repeat_n(*x, size)));
        fields.extend_from_slice(line.last);
        let mut noise = fields.split_off(rows * size);
        noise.iter_mut().for_each(|e| *e *= label_noise);
        noise.resize(size, 0.0);
        fields[..size].iter_mut().for_each(|v| *v *= norm);
        let batch = Batch::new(&fields, size, &[], &noise);
        let (mut loss, mut kick, mut curvature) = (vec![0.0; size], vec![0.0; size], vec![0.0; rows * size]);
        let out = Expansion { losses: &mut loss, kicks: &mut kick, columns: rows, curvature: &mut curvature };
        rule.expand_batch(&batch, out);
        // One trained row: its Hessian weight is ∂kick/∂V.
        let weight = &curvature[..size];
        for (l, p) in line.weights.iter().enumerate() {
            sums[0] += p * loss[l];
            sums[1] += p * weight[l];
            sums[2] += p * kick[l] * kick[l];
            sums[3] += p * weight[l] * weight[l];
        }
        probabilities.extend_from_slice(line.weights);
        weights.extend_from_slice(weight);
        for n in 0..k {
            let own = (1 + n) * size..(2 + n) * size;
            let (v, response) = (&fields[own.clone()], &curvature[own]);
            for (l, p) in line.weights.iter().enumerate() {
                teacher_response[n] += p * response[l];
                teacher_moment[n] += p * weight[l] * v[l] * v[l];
            }
            projections[n].extend_from_slice(v);
        }
    });
    let law = WeightLaw::from_parts(probabilities, weights)?;
    let ensemble = Ensemble::new(vec![law], projections)?;
    let [loss, response, correlation, second_moment] = sums;
    let error = f64::INFINITY;
    Ok(AtStart {
        loss,
        response,
        teacher_response,
        correlation,
        second_moment,
        teacher_moment,
        ensemble,
        error,
    })
}

/// inf supp G of the one trained row of a rule whose fields can take any value: what nodes and samples overestimate.
///
/// The trained field is scanned on |V| ≤ 40 and refined, the teacher fields, and the noise if there is any, along rays
/// out to 10⁸. `Unbounded` when the weights keep falling on the way out. Why the infimum of the law matters:
/// docs/derivations/gd-phase-transitions.md#s5-infimum and docs/derivations/gd-phase-transitions.md#s5-5.
pub fn weight_infimum(rule: &dyn LocalRule, noisy: bool) -> Result<f64, LandscapeError> {
    let shape = rule.shape();
    let mut fields = vec![0.0; shape.rows()];
    let mut smallest = |v: f64, ray: &[f64], noise: f64, reach: f64| {
        fields[..shape.trained].fill(v);
        for (field, direction) in fields[shape.trained..].iter_mut().zip(ray) {
            *field = reach * direction;
        }
        let sample = Sample { fields: &fields, scalars: &[], noise: noise * reach };
        let weights = (0..shape.trained).map(|row| rule.row_weight(&sample, row));
        weights.filter(|g| !g.is_nan()).fold(f64::INFINITY, f64::min)
    };
    let noises: &[f64] = if noisy { &[0.0, 1.0, -1.0] } else { &[0.0] };
    let mut lowest = f64::INFINITY;
    let mut by_reach = [f64::INFINITY; REACHES.len()];
    for ray in rays(shape.frozen) {
        for &noise in noises {
            for (slot, &reach) in by_reach.iter_mut().zip(&REACHES) {
                let mut at = (0.0, f64::INFINITY);
                for i in -800..=800 {
                    let v = 0.05 * f64::from(i);
                    let g = smallest(v, &ray, noise, reach);
                    if g < at.1 {
                        at = (v, g);
                    }
                }
                let refined = minimum(|v| smallest(v, &ray, noise, reach), at.0 - 0.05, at.0 + 0.05, 1e-12);
                *slot = slot.min(refined.value).min(at.1);
                lowest = lowest.min(*slot);
            }
        }
    }
    let [.., near, far] = by_reach;
    if far < 0.0 && far < 1.5 * near.min(0.0) - 1e-9 {
        return Err(LandscapeError::Unbounded { at_far: far, field: REACHES[REACHES.len() - 1] });
    }
    Ok(lowest)
}

/// Lengths of the rays; the last two decide whether the weights are bounded.
const REACHES: [f64; 6] = [0.0, 1.0, 5.0, 30.0, 1e5, 1e8];

/// Axes, diagonals and their opposites.
fn rays(dimension: usize) -> Vec<Vec<f64>> {
    if dimension == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    // Base three: every combination of −1, 0, 1; beyond five directions the axes and the diagonal.
    if dimension <= 5 {
        for code in 0..3usize.pow(dimension as u32) {
            all.push((0..dimension).map(|n| (code / 3usize.pow(n as u32) % 3) as f64 - 1.0).collect());
        }
    } else {
        for n in 0..dimension {
            for sign in [1.0, -1.0] {
                all.push((0..dimension).map(|i| if i == n { sign } else { 0.0 }).collect());
            }
        }
        all.push(vec![1.0; dimension]);
        all.push(vec![-1.0; dimension]);
    }
    all
}
