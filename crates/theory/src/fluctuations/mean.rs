//! The mean of replicas at order 1/d.

use super::error::FluctuationError;
use super::linearise::{Linearisation, Lineariser};
use super::observer::CURVATURE_STEP;
use super::path::{self, Asked, Path};
use super::theory::FluctuationTheory;
use super::variables::Variable;
use didact_math::linalg::{Mat, dot, symmetric_eigen};
use didact_model::constraint::{Retraction, pseudo_inverse};
use didact_model::observable::Observable;
use didact_model::{Monitor, Needed, NoMonitor, Overlaps, Problem};
use std::sync::Arc;

impl FluctuationTheory<'_> {
    /// Whether the correction of the mean is known.
    pub fn admits_mean_correction(problem: &Problem) -> Result<(), FluctuationError> {
        let constraint = &problem.training.constraint;
        let with = if constraint.off_frozen {
            Some("off-frozen")
        } else if constraint.off_own {
            Some("off-own")
        } else if constraint.scalar_sphere.is_some() {
            Some("scalar-sphere")
        } else if constraint.sphere == Some(Retraction::Tangent) {
            Some("sphere")
        } else if problem.start.spread().is_some_and(|spread| spread.earlier.is_some()) {
            Some("stage")
        } else {
            None
        };
        with.map_or(Ok(()), |with| Err(FluctuationError::NoMeanCorrection { with }))
    }

    /// The same path with the shift of the mean, m in E[g_d] = g + m/d.
    pub(super) fn follow_with_shift(
        &self,
        times: &[f64],
        monitor: &dyn Monitor,
    ) -> Result<Path, FluctuationError> {
        Self::admits_mean_correction(self.problem)?;
        let mut lineariser = self.lineariser();
        let sigma = self.start_sigma(&lineariser);
        let mut reference = self.lineariser();
        reference.prepare(&self.centre);
        let free = self.problem.training.constraint.sphere.map(|_| {
            let mut problem = self.problem.clone();
            problem.training.constraint.sphere = None;
            problem
        });
        let free = free.as_ref().map(|problem| {
            let mut free =
                Lineariser::new(problem, self.variables.clone(), self.needed, &self.centre, self.accuracy);
            free.prepare(&self.centre);
            free
        });
        let source = |state: &Overlaps, node: &Linearisation, sigma: &Mat| {
            self.shift_source(&reference, free.as_ref(), state, node, sigma)
        };
        let asked = Asked { times, source: Some(&source), ..Asked::default() };
        Ok(path::follow(&mut lineariser, &self.centre, sigma, asked, self.path_options(), monitor)?)
    }

    /// lim d (E\[o_d\] − o) at every time.
    pub fn mean_correction(
        &self,
        times: &[f64],
        observables: &[Arc<dyn Observable>],
    ) -> Result<Vec<Vec<f64>>, FluctuationError> {
        let path = self.follow_with_shift(times, &NoMonitor)?;
        Self::reached(&path, times)?;
        let observer = self.observer(observables);
        path.points
            .iter()
            .map(|point| {
                let gradients = observer.gradients(point.time, &point.state)?;
                let curvature = observer.half_curvature(&point.state, &point.covariance);
                Ok(gradients.iter().zip(curvature).map(|((_, g), c)| dot(g, &point.shift) + c).collect())
            })
            .collect()
    }

    /// ½ F″:Σ + F_1 − ½ J F per unit of the clock (docs/derivations/fluctuations.md#eq-14, docs/derivations/fluctuations.md#eq-15).
    fn shift_source(
        &self,
        lineariser: &Lineariser,
        free: Option<&Lineariser>,
        state: &Overlaps,
        node: &Linearisation,
        sigma: &Mat,
    ) -> Vec<f64> {
        let n = self.variables.len();
        // alpha that passes per unit of the clock.
        let alpha = self.problem.flow_per_clock() / self.problem.step_times_dimension();
        let mut source = self.half_curvature_of_drift(lineariser, state, sigma);
        for (i, out) in source.iter_mut().enumerate() {
            *out -= 0.5 * dot(node.jacobian.row(i), &node.drift) / alpha;
        }
        let mut extra = self.extra_drift(lineariser, state);
        if let Some(free) = free {
            if let Some(projection) = lineariser.projection(state) {
                extra = (0..n).map(|i| dot(projection.row(i), &extra)).collect();
            }
            let raw = free.at(state);
            let second = Mat::from_fn(n, n, |i, j| {
                raw.diffusion[(i, j)] / alpha + raw.drift[i] * raw.drift[j] / (alpha * alpha)
            });
            self.add_retraction(state, &second, &mut extra);
        }
        source.iter_mut().zip(&extra).for_each(|(out, extra)| *out += alpha * extra);
        source
    }

    /// ½ F″:Σ by second differences along the principal directions of Σ.
    fn half_curvature_of_drift(&self, lineariser: &Lineariser, state: &Overlaps, sigma: &Mat) -> Vec<f64> {
        let eigen = symmetric_eigen(sigma);
        let largest = eigen.values.last().copied().unwrap_or(0.0);
        let mut sum = vec![0.0; sigma.rows()];
        if largest <= 0.0 {
            return sum;
        }
        let here = lineariser.drift_at(state);
        for (column, value) in eigen.values.iter().enumerate().filter(|(_, v)| **v > 1e-12 * largest) {
            let direction: Vec<f64> = (0..sigma.rows()).map(|i| eigen.vectors[(i, column)]).collect();
            let [a, b, c, d] = [1.0, -1.0, 2.0, -2.0]
                .map(|by| lineariser.drift_at(&self.variables.moved(state, &direction, by * CURVATURE_STEP)));
            for (i, sum) in sum.iter_mut().enumerate() {
                let near = 16.0 * (a[i] + b[i]) - (c[i] + d[i]) - 30.0 * here[i];
                *sum += 0.5 * value * near / (12.0 * CURVATURE_STEP * CURVATURE_STEP);
            }
        }
        sum
    }

    /// F_1: what the mean of a step has beyond F/d, times d², without spheres.
    fn extra_drift(&self, lineariser: &Lineariser, state: &Overlaps) -> Vec<f64> {
        let shape = self.variables.shape;
        let (k, p) = (shape.trained, shape.rows());
        let (moments, averages) = lineariser.averages_at(state);
        let index = moments.index;
        let covariance = state.covariance(&self.problem.spectrum);
        let inverse = pseudo_inverse(&covariance);
        let training = &self.problem.training;
        let (eta, batch) = (self.problem.step_times_dimension(), training.batch as f64);
        let decay = training.constraint.weight_decay;
        let noisy = self.needed == Needed::DriftAndNoise;
        let mut out = vec![0.0; self.variables.len()];
        for (block, (g, lambda)) in state.blocks.iter().zip(self.problem.spectrum.eigenvalues()).enumerate() {
            let weights = inverse.times(g).times(&inverse);
            let trace = inverse.times(g).trace();
            let pull = averages.drift.times(g);
            let squared = pull.times(&averages.drift.transpose());
            for i in 0..k {
                for j in 0..=i {
                    let at = self.variables.position(block, i, j).expect("trained rows are variables");
                    let mut value = eta * eta * (1.0 - 1.0 / batch) * lambda * lambda * squared[(i, j)];
                    value += eta * eta * decay * lambda * (pull[(i, j)] + pull[(j, i)]);
                    value += eta * eta * decay * decay * g[(i, j)];
                    if noisy {
                        // The squared length of an input and its fields are correlated.
                        let mut correlated = -trace * moments.mean[index.kick_kick(i, j)];
                        for a in 0..p {
                            for b in 0..p {
                                let both = moments.second[(index.kick_field(i, a), index.kick_field(j, b))];
                                correlated += weights[(a, b)] * both;
                            }
                        }
                        value += eta * eta * lambda * lambda / batch * correlated;
                    }
                    out[at] = value;
                }
            }
        }
        out
    }

    /// What renormalised rows add at second order, from the second moments of a raw step.
    fn add_retraction(&self, state: &Overlaps, second: &Mat, out: &mut [f64]) {
        let k = self.variables.shape.trained;
        let own = |i: usize| -> Vec<usize> {
            (0..self.variables.blocks)
                .map(|b| self.variables.position(b, i, i).expect("trained rows are variables"))
                .collect()
        };
        let squared: Vec<f64> = (0..k).map(|i| state.blocks.iter().map(|g| g[(i, i)]).sum()).collect();
        let with = |row: usize, i: usize| -> f64 {
            own(i).iter().map(|at| second[(row, *at)]).sum::<f64>() / squared[i]
        };
        let both =
            |i: usize, j: usize| -> f64 { own(i).iter().map(|at| with(*at, j)).sum::<f64>() / squared[i] };
        for (row, variable) in self.variables.iter() {
            let Variable::Entry { block, i, j } = variable else { continue };
            let ends: Vec<usize> = [i, j].into_iter().filter(|end| *end < k).collect();
            let mut factor = 0.0;
            for end in &ends {
                factor += 0.375 * both(*end, *end);
                out[row] -= 0.5 * with(row, *end);
            }
            if let [first, last] = ends.as_slice() {
                factor += 0.25 * both(*first, *last);
            }
            out[row] += state.blocks[block][(i, j)] * factor;
        }
    }
}
