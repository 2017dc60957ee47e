//! What speaks for an optimum: seven numbers, each of which a wrong protocol would fail.

use super::direct::Found;
use super::problem::{ControlProblem, Differentiated, Momenta};
use super::search::Search;
use didact_math::linalg::{Mat, symmetric_eigen};
use rayon::prelude::*;

/// Sweeps of the polishing at most.
const POLISHING: usize = 80;
/// Points of the polishing per knot: between two of them H is constant to the second order of their distance.
const POLISHED_PER_KNOT: usize = 8;
/// Steps on twice as many knots at most.
const DOUBLED: usize = 100;
/// Step of the differences of gradients, in units of a knot's value.
const STEP: f64 = 1e-2;
/// What two searches of the same optimum may differ by, relative to it.
const SAME: f64 = 1e-8;

/// The certificate of an optimum (docs/derivations/optimal-protocols.md#s5). Numbers that were not computed are none.
#[derive(Debug, Clone, PartialEq)]
pub struct Certificate {
    /// 1: length of the projected gradient of ln J in the metric of its second derivative.
    pub projected_gradient: f64,
    /// 2: relative difference of the objectives of both methods.
    pub sweep_difference: Option<f64>,
    /// 3: spread of H over the interval, relative to its mean; none where another key has a schedule.
    pub hamiltonian_spread: Option<f64>,
    /// 4: smallest p·f2 where the rate is within its bounds.
    pub curvature: Option<f64>,
    /// 4: smallest eigenvalue of the second derivative by the knots that are within their bounds.
    pub hessian: Option<f64>,
    /// 5: relative difference of the last rate from the greedy one.
    pub end_rate: Option<f64>,
    /// 6: smallest excess of a baseline or start over the optimum, relative to it.
    pub margin: f64,
    /// 7: relative decrease of the objective with twice as many knots.
    pub knots_difference: Option<f64>,
    /// J after polishing by sweeps and on twice as many knots, where that is lower.
    pub polished: Option<f64>,
    /// Whether all of them hold.
    pub certified: bool,
    /// Those that do not, in words.
    pub failures: Vec<String>,
}

impl Certificate {
    /// Of a search that was not checked.
    pub(super) fn unchecked(projected_gradient: f64, value: f64, others: &[f64]) -> Self {
        Self {
            projected_gradient,
            sweep_difference: None,
            hamiltonian_spread: None,
            curvature: None,
            hessian: None,
            end_rate: None,
            margin: margin(value, others),
            knots_difference: None,
            polished: None,
            certified: false,
            failures: vec!["it was not checked".into()],
        }
    }
}

fn margin(value: f64, others: &[f64]) -> f64 {
    others.iter().map(|other| (other - value) / value.abs()).fold(f64::INFINITY, f64::min)
}

impl ControlProblem<'_> {
    pub(super) fn certify(
        &self,
        found: &Found,
        at: &Differentiated,
        others: &[f64],
        search: &Search,
    ) -> Certificate {
        let goes_on = || !self.monitor.cancelled();
        let only_rate = self.controls.len() == 1 && self.rate_index() == Some(0);
        let finer = self.with_finer_knots(2);
        let doubled = finer.minimise(&finer.resampled(&found.protocol), DOUBLED, &mut |_, _, _| goes_on());
        let knots_difference = doubled.as_ref().map(|d| (found.value - d.value) / found.value.abs());
        let swept = if only_rate {
            let finest = finer.with_finer_knots(POLISHED_PER_KNOT / 2);
            let start = finest.resampled(doubled.as_ref().map_or(&found.protocol, |d| &d.protocol));
            finest.sweep(&start, POLISHING, &mut |_, _, _| goes_on())
        } else {
            None
        };
        let sweep_difference = swept.as_ref().map(|s| (found.value - s.at.value).abs() / found.value.abs());
        let autonomous = self.problem.training.breaks(0.0, self.horizon).is_empty()
            && self.problem.training.weight_decay_schedule.is_constant()
            && self.problem.training.label_noise_schedule.is_constant();
        let hamiltonian_spread = swept.as_ref().filter(|_| autonomous).map(|s| spread(&s.at.momenta));
        let bounds = self.rate_index().map(|i| self.controls[i].bounds);
        let inner = |m: &&Momenta| bounds.is_some_and(|(low, high)| m.rate > low && m.rate < high);
        let curvature = self.rate_index().map(|_| {
            let inside = at.momenta.iter().filter(inner);
            // Where p vanishes with a running cost there is nothing to compare.
            inside.filter(|m| m.noise != 0.0).map(|m| m.noise).fold(f64::INFINITY, f64::min)
        });
        let curvature = curvature.filter(|c| c.is_finite());
        let end_rate = if only_rate { self.end_rate(found) } else { None };
        let hessian = self.smallest_curvature(found, at);
        let polished = [doubled.as_ref().map(|d| d.value), swept.as_ref().map(|s| s.at.value)];
        let polished = polished.into_iter().flatten().reduce(f64::min).filter(|v| *v < found.value);
        // A baseline that is no function on the knots, greedy where it is optimal, may be lower by what the knots cost.
        let lowest = polished.unwrap_or(found.value);
        let below = -margin(lowest, others);
        let margin = margin(found.value, others);
        let mut failures = Vec::new();
        let mut demand = |holds: bool, what: String| {
            if !holds {
                failures.push(what);
            }
        };
        let tolerance = search.tolerance;
        if let Some(difference) = sweep_difference {
            demand(
                difference < tolerance,
                format!("sweeps reach another objective, by {difference:.1e} of it"),
            );
        } else {
            demand(!only_rate, "sweeps diverged".into());
        }
        if let Some(spread) = hamiltonian_spread {
            demand(spread < 10.0 * tolerance, format!("the Hamiltonian varies by {spread:.1e} of its mean"));
        }
        demand(
            curvature.is_none_or(|c| c > 0.0),
            "p.f2 is not positive where the rate is within its bounds".into(),
        );
        demand(hessian.is_none_or(|h| h > 0.0), "the second derivative by the knots is not positive".into());
        demand(below <= SAME, format!("a baseline or start is lower, by {below:.1e} of the objective"));
        match knots_difference {
            Some(by) => {
                demand(by < tolerance, format!("twice as many knots lower the objective by {by:.1e} of it"));
            }
            None => demand(false, "twice as many knots diverge".into()),
        }
        Certificate {
            projected_gradient: found.projected,
            sweep_difference,
            hamiltonian_spread,
            curvature,
            hessian,
            end_rate,
            margin,
            knots_difference,
            polished,
            certified: failures.is_empty(),
            failures,
        }
    }

    /// |η(T) − greedy(y(T))| relative to the greedy rate, means over the starts.
    fn end_rate(&self, found: &Found) -> Option<f64> {
        let bounds = self.controls[0].bounds;
        let mut greedy = 0.0;
        for start in 0..self.starts.len() {
            let states = self.states(&found.protocol, start, &[self.horizon])?;
            greedy += self.greedy_rate(self.horizon, &states[0], bounds) / self.starts.len() as f64;
        }
        let last = *found.protocol[0].values.last()?;
        Some(if greedy > 0.0 { (last - greedy).abs() / greedy } else { (last - greedy).abs() })
    }

    /// The smallest eigenvalue of ∂²J/∂x_k∂x_l on the knots that are within their bounds, by differences of gradients; none where there
    /// are no such knots, or a displaced protocol diverges.
    fn smallest_curvature(&self, found: &Found, at: &Differentiated) -> Option<f64> {
        let mut free = Vec::new();
        for (c, (control, course)) in self.controls.iter().zip(&found.protocol).enumerate() {
            let (low, high) = control.bounds;
            let slack = 1e-6 * (high - low);
            for (k, x) in course.values.iter().enumerate() {
                // The last knot of a running cost hardly matters, and its second derivative is of the size of the errors.
                if *x > low + slack && *x < high - slack && at.gradient[c][k] != 0.0 {
                    free.push((c, k));
                }
            }
        }
        if free.is_empty() {
            return None;
        }
        let columns: Option<Vec<Vec<f64>>> = free
            .par_iter()
            .map(|&(c, k)| {
                let x = found.protocol[c].values[k];
                let (low, high) = self.controls[c].bounds;
                let h = (STEP * x.abs().max(1e-2 * (high - low))).min(x - low).min(high - x);
                let gradient = |by: f64| {
                    let mut moved = found.protocol.clone();
                    moved[c].values[k] += by;
                    self.differentiate(&moved).map(|d| d.gradient)
                };
                let (up, down) = (gradient(h)?, gradient(-h)?);
                Some(free.iter().map(|&(c, k)| (up[c][k] - down[c][k]) / (2.0 * h)).collect())
            })
            .collect();
        let columns = columns?;
        let n = free.len();
        let symmetric = Mat::from_fn(n, n, |i, j| 0.5 * (columns[i][j] + columns[j][i]));
        symmetric_eigen(&symmetric).values.first().copied()
    }
}

/// (max − min)/|mean| of H.
fn spread(momenta: &[Momenta]) -> f64 {
    let values = || momenta.iter().map(|m| m.hamiltonian);
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let mean = values().sum::<f64>() / momenta.len() as f64;
    (high - low) / mean.abs()
}
