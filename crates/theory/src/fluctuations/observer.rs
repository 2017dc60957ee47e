//! Gradients of observables in the space of states.

use super::error::FluctuationError;
use super::linearise::inside_cone;
use super::variables::{Variable, Variables};
use didact_math::linalg::{Mat, symmetric_eigen};
use didact_model::observable::{Observable, Snapshot};
use didact_model::rule::Law;
use didact_model::{Overlaps, Problem};
use std::sync::Arc;

/// Steps of differences, in units of the size of the number that is moved.
const STEP: f64 = 1e-4;
/// The same where what is differenced is itself a sum over samples.
const COARSE_STEP: f64 = 1e-2;
/// The relative accuracy that is asked of averages without a closed form before they are differenced.
const PRECISE: f64 = 1e-6;
/// Steps at which one-sided differences tell a jump from a curve.
const JUMP_STEPS: [f64; 2] = [1e-6, 1e-7];
/// A gradient jumps if its one-sided values differ by this share of the larger.
const JUMP: f64 = 1e-3;

/// Step of second differences along a direction of unit length.
pub(super) const CURVATURE_STEP: f64 = 2e-3;

/// Measures observables and their gradients.
pub(super) struct Observer<'a> {
    pub(super) problem: &'a Problem,
    pub(super) variables: &'a Variables,
    pub(super) observables: &'a [Arc<dyn Observable>],
}

/// The risk of a state, and its slopes by C_ij = C_ji and by the scalars.
struct RiskSlopes {
    risk: f64,
    /// Size of the terms of which it is the sum.
    terms: f64,
    by_entry: Mat,
    by_scalar: Vec<f64>,
}

impl Observer<'_> {
    /// The value of every observable, and its gradient in the variables.
    pub(super) fn gradients(
        &self,
        time: f64,
        state: &Overlaps,
    ) -> Result<Vec<(f64, Vec<f64>)>, FluctuationError> {
        let risk = self.risk_slopes(state);
        let fresh = self.fresh_loss(state);
        let base = self.snapshot(state, risk.risk, fresh);
        let values: Vec<f64> = self.observables.iter().map(|o| o.measure(&base)).collect();
        let sampled = base.quadrature_error() > 0.0;
        let mut gradients: Vec<(f64, Vec<f64>)> =
            values.iter().map(|value| (*value, Vec::with_capacity(self.variables.len()))).collect();
        for index in 0..self.variables.len() {
            let slopes = self.slopes(time, state, &risk, fresh, &values, index, sampled)?;
            gradients.iter_mut().zip(slopes).for_each(|((_, gradient), slope)| gradient.push(slope));
        }
        Ok(gradients)
    }

    fn snapshot<'s>(&'s self, state: &'s Overlaps, risk: f64, fresh: Option<f64>) -> Snapshot<'s> {
        let snapshot = Snapshot::new(state, self.problem).with_loss(risk);
        match fresh {
            Some(value) => snapshot.with_test_loss(value),
            None => snapshot,
        }
    }

    /// The mean loss of noisy fresh samples where an observable needs it: it differs from the risk by what does not fluctuate.
    fn fresh_loss(&self, state: &Overlaps) -> Option<f64> {
        let noisy = self.problem.training.label_noise > 0.0;
        let asked = self.observables.iter().any(|o| o.name().contains("test_loss"));
        (noisy && asked).then(|| Snapshot::new(state, self.problem).test_loss())
    }

    /// The derivatives of all observables, which have these values, by one number of the state.
    #[expect(clippy::too_many_arguments, reason = "the pieces of one difference")]
    fn slopes(
        &self,
        time: f64,
        state: &Overlaps,
        risk: &RiskSlopes,
        fresh: Option<f64>,
        values: &[f64],
        index: usize,
        sampled: bool,
    ) -> Result<Vec<f64>, FluctuationError> {
        let (by_risk, scale) = match self.variables.get(index) {
            Variable::Entry { block, i, j } => {
                let lambda = self.problem.spectrum.eigenvalues()[block];
                (lambda * risk.by_entry[(i, j)], self.variables.scale(state, index))
            }
            Variable::Scalar(s) => (risk.by_scalar[s], 1.0),
        };
        let mut moved = state.clone();
        // Moved from the state itself every time, so that no rounding is left behind.
        let mut at = |by: f64| -> Vec<f64> {
            moved.clone_from(state);
            self.variables.add(&mut moved, index, by);
            let change = by * by_risk;
            let snapshot = self.snapshot(&moved, risk.risk + change, fresh.map(|value| value + change));
            self.observables.iter().map(|o| o.measure(&snapshot)).collect()
        };
        if !sampled {
            let sides = JUMP_STEPS.map(|step| (step * scale, at(step * scale), at(-step * scale)));
            for (o, value) in values.iter().enumerate() {
                let [(wide, limit), (narrow, narrow_limit)] =
                    [&sides[0], &sides[1]].map(|(by, above, below)| {
                        let (up, down) = ((above[o] - value) / by, (value - below[o]) / by);
                        let size = up.abs().max(down.abs());
                        // Differences of this step are known to so much; a risk is a sum of terms that cancel.
                        let rounding = 1e-14 * (value.abs() + risk.terms) / by;
                        ((up - down).abs(), JUMP * size + 10.0 * rounding)
                    });
                if wide > limit && narrow > narrow_limit && narrow > 0.5 * wide {
                    return Err(FluctuationError::Jump {
                        observable: self.observables[o].name(),
                        clock: self.problem.clock.name(),
                        time,
                    });
                }
            }
        }
        let step = scale * if sampled { COARSE_STEP } else { STEP };
        let [a, b, c, d] = [step, -step, 2.0 * step, -2.0 * step].map(&mut at);
        Ok((0..values.len()).map(|o| (8.0 * (a[o] - b[o]) - (c[o] - d[o])) / (12.0 * step)).collect())
    }

    fn risk_slopes(&self, state: &Overlaps) -> RiskSlopes {
        let covariance = state.covariance(&self.problem.spectrum);
        let law = Law { covariance: &covariance, scalars: &state.scalars, label_noise: 0.0 };
        let (k, p) = (self.variables.shape.trained, self.variables.shape.rows());
        let here = self.problem.rule.risk_within(&law, PRECISE);
        let sampled = here.error > 0.0;
        let (inside, step) = inside_cone(&covariance);
        let step = if sampled { COARSE_STEP.min(step * COARSE_STEP / STEP) } else { step };
        let difference = |step: f64, at: &dyn Fn(f64) -> f64| {
            (8.0 * (at(step) - at(-step)) - (at(2.0 * step) - at(-2.0 * step))) / (12.0 * step)
        };
        let mut by_entry = Mat::zeros(p, p);
        for i in 0..p {
            for j in 0..=i {
                if j >= k && !self.variables.with_teachers {
                    continue;
                }
                let size = (inside[(i, i)] * inside[(j, j)]).sqrt();
                let slope = difference(step * if size > 0.0 { size } else { 1.0 }, &|by| {
                    let mut moved = inside.clone();
                    moved[(i, j)] += by;
                    if i != j {
                        moved[(j, i)] += by;
                    }
                    self.problem.rule.risk_within(&Law { covariance: &moved, ..law }, PRECISE).value
                });
                by_entry[(i, j)] = slope;
                by_entry[(j, i)] = slope;
            }
        }
        let by_scalar = (0..state.scalars.len())
            .map(|s| {
                let step = if sampled { COARSE_STEP } else { STEP } * state.scalars[s].abs().max(1.0);
                difference(step, &|by| {
                    let mut moved = state.scalars.clone();
                    moved[s] += by;
                    self.problem.rule.risk_within(&Law { scalars: &moved, ..law }, PRECISE).value
                })
            })
            .collect();
        let terms = (0..p).map(|i| covariance[(i, i)]).fold(0.0, f64::max);
        RiskSlopes { risk: here.value, terms, by_entry, by_scalar }
    }

    /// ½ H:Σ of every observable, H its Hessian: second differences along the principal directions of Σ.
    pub(super) fn half_curvature(&self, state: &Overlaps, covariance: &Mat) -> Vec<f64> {
        let eigen = symmetric_eigen(covariance);
        let largest = eigen.values.last().copied().unwrap_or(0.0);
        let mut sums = vec![0.0; self.observables.len()];
        if largest <= 0.0 {
            return sums;
        }
        let measure = |state: &Overlaps| -> Vec<f64> {
            let snapshot = Snapshot::new(state, self.problem).within(PRECISE);
            self.observables.iter().map(|o| o.measure(&snapshot)).collect()
        };
        let here = measure(state);
        for (column, value) in eigen.values.iter().enumerate().filter(|(_, v)| **v > 1e-12 * largest) {
            let direction: Vec<f64> = (0..covariance.rows()).map(|i| eigen.vectors[(i, column)]).collect();
            let [a, b, c, d] = [1.0, -1.0, 2.0, -2.0]
                .map(|by| measure(&self.variables.moved(state, &direction, by * CURVATURE_STEP)));
            for (index, sum) in sums.iter_mut().enumerate() {
                let near = 16.0 * (a[index] + b[index]) - (c[index] + d[index]) - 30.0 * here[index];
                *sum += 0.5 * value * near / (12.0 * CURVATURE_STEP * CURVATURE_STEP);
            }
        }
        sums
    }
}
