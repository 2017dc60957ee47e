//! Forward-backward sweeps: the rate that minimises H at every time, under the costate of the present protocol.

use super::problem::{ControlProblem, Differentiated, Protocol, best_rate};
use didact_model::training::Course;

/// Relative decrease of the objective below which three sweeps in a row end the search. The spread of H, which sweeps are to make small, is of
/// first order in what is left of the way, the objective of second order.
const DECREASE: f64 = 1e-10;
/// The smallest step of the line search.
const SMALLEST: f64 = 1e-4;
/// Growth of the step after a success.
const GROWTH: f64 = 1.3;

/// A protocol that sweeps found.
#[derive(Debug, Clone, PartialEq)]
pub struct Swept {
    /// The protocol.
    pub protocol: Protocol,
    /// J and the costate along it.
    pub at: Differentiated,
    /// Sweeps made.
    pub sweeps: usize,
    /// Whether they ended by themselves.
    pub converged: bool,
}

impl ControlProblem<'_> {
    /// The rate that minimises H at every knot.
    fn swept_rate(&self, course: &Course, at: &Differentiated, bounds: (f64, f64)) -> Vec<f64> {
        let mut new = Vec::with_capacity(course.times.len());
        for time in &course.times {
            let place = at.momenta.partition_point(|m| m.time < *time - 1e-12 * self.horizon);
            let momenta = &at.momenta[place.min(at.momenta.len() - 1)];
            new.push(best_rate(momenta.drift, momenta.noise, bounds));
        }
        // With a running cost p vanishes at the end; the limit of the ratio is the value before it.
        let last = new.len() - 1;
        let end = at.momenta[at.momenta.len() - 1];
        if end.drift == 0.0 && end.noise == 0.0 && last > 0 {
            new[last] = new[last - 1];
        }
        new
    }

    /// Sweeps from a protocol whose learning rate is given on the knots on which it is sought (docs/derivations/optimal-protocols.md#s3).
    /// `watch` hears of every sweep and answers whether to go on. `None` where the start diverges or no rate is controlled.
    pub fn sweep(
        &self,
        start: &[Course],
        limit: usize,
        watch: &mut dyn FnMut(usize, f64, &Protocol) -> bool,
    ) -> Option<Swept> {
        let index = self.rate_index()?;
        let bounds = self.controls[index].bounds;
        let mut protocol = start.to_vec();
        let mut at = self.differentiate(&protocol)?;
        let (mut theta, mut sweeps, mut small) = (1.0_f64, 0, 0);
        while sweeps < limit && watch(sweeps, at.value, &protocol) {
            sweeps += 1;
            let new = self.swept_rate(&protocol[index], &at, bounds);
            let moved = |theta: f64| {
                let mut trial = protocol.clone();
                let values = trial[index].values.iter_mut().zip(&new);
                values.for_each(|(x, y)| *x = (*x + theta * (y - *x)).clamp(bounds.0, bounds.1));
                trial
            };
            let mut better = None;
            while better.is_none() && theta >= SMALLEST {
                let trial = moved(theta);
                if self.value(&trial) < at.value {
                    better = Some(trial);
                } else {
                    theta *= 0.5;
                }
            }
            let Some(trial) = better else {
                return Some(Swept { protocol, at, sweeps, converged: true });
            };
            let next = self.differentiate(&trial)?;
            let decrease = (at.value - next.value) / at.value.abs();
            (protocol, at) = (trial, next);
            theta = (theta * GROWTH).min(1.0);
            small = if decrease < DECREASE { small + 1 } else { 0 };
            if small > 2 {
                return Some(Swept { protocol, at, sweeps, converged: true });
            }
        }
        Some(Swept { protocol, at, sweeps, converged: false })
    }
}
