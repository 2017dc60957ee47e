//! Direct transcription: the values of the controls at their knots are the variables of a minimisation.

use super::problem::{ControlProblem, Differentiated, Protocol, knot_times};
use super::sweep::Swept;
use didact_math::minimise::{BoxOptions, BoxStop, minimise_in_box};
use didact_model::training::Course;

/// Smallest entry of the metric, in units of its largest.
const METRIC_FLOOR: f64 = 1e-4;
/// An objective below this is rounding, and its logarithm says nothing.
const SMALLEST: f64 = 1e-15;
/// Intervals of the coarsest level of knots.
const COARSEST: usize = 10;
/// Relative decrease of the objective below which two steps in a row end a level. Steps of the integration change with the protocol, so
/// that smaller differences are not those of the objective.
const DECREASE: f64 = 1e-9;
/// Length of the projected gradient of ln J, in the metric, below which a level ends.
const GRADIENT: f64 = 1e-6;

/// A protocol that a minimisation found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The protocol.
    pub protocol: Protocol,
    /// Its objective.
    pub value: f64,
    /// Length of the projected gradient of ln J (of J where it is not positive) in the metric of its second derivative.
    pub projected: f64,
    /// Steps taken, over all levels.
    pub iterations: usize,
    /// Why it stopped.
    pub stop: BoxStop,
}

impl From<Swept> for Found {
    fn from(swept: Swept) -> Self {
        Self {
            value: swept.at.value,
            protocol: swept.protocol,
            projected: f64::NAN,
            iterations: swept.sweeps,
            stop: if swept.converged { BoxStop::Converged } else { BoxStop::Limit },
        }
    }
}

/// Numbers of intervals from coarse to fine: halved while at least ten are left.
pub(super) fn levels(knots: usize) -> Vec<usize> {
    let mut all = vec![knots];
    while all[all.len() - 1] / 2 >= COARSEST {
        all.push(all[all.len() - 1] / 2);
    }
    all.reverse();
    all
}

impl ControlProblem<'_> {
    /// The problem with `share` of its knots: level 0 is the coarsest.
    fn at_level(&self, level: usize) -> Self {
        let mut coarse = self.clone();
        for control in &mut coarse.controls {
            let all = levels(control.knots);
            // Controls with fewer levels stay at their coarsest one until the others have come down to it.
            let deepest = self.level_count();
            let own = (level + all.len()).saturating_sub(deepest);
            control.knots = all[own];
        }
        coarse
    }

    /// How many levels of knots there are.
    pub(super) fn level_count(&self) -> usize {
        self.controls.iter().map(|c| levels(c.knots).len()).max().unwrap_or(1)
    }

    /// The protocol on the knots of this problem.
    pub(super) fn resampled(&self, protocol: &[Course]) -> Protocol {
        let pairs = self.controls.iter().zip(protocol);
        pairs.map(|(c, course)| course.resampled(&knot_times(c.knots, self.horizon))).collect()
    }

    /// Minimises from a protocol over the levels of knots `from`.., each started from the one before it. `watch` hears of every step (over
    /// all levels), its objective and its protocol, and answers whether to go on. `None` where the start diverges.
    pub fn direct(
        &self,
        start: &[Course],
        from: usize,
        to: usize,
        iterations: usize,
        watch: &mut dyn FnMut(usize, f64, &Protocol) -> bool,
    ) -> Option<Found> {
        let mut found: Option<Found> = None;
        for level in from..to {
            let coarse = self.at_level(level);
            let begin = coarse.resampled(found.as_ref().map_or(start, |f| f.protocol.as_slice()));
            let before = found.as_ref().map_or(0, |f| f.iterations);
            let mut next = coarse.minimise(&begin, iterations, &mut |i, v, p| watch(before + i, v, p))?;
            next.iterations += before;
            let stopped = next.stop == BoxStop::Interrupted;
            found = Some(next);
            if stopped {
                break;
            }
        }
        found
    }

    /// Minimises on the knots of this problem.
    pub(super) fn minimise(
        &self,
        start: &[Course],
        iterations: usize,
        watch: &mut dyn FnMut(usize, f64, &Protocol) -> bool,
    ) -> Option<Found> {
        let first = self.differentiate(start)?;
        let logarithmic = first.value > 0.0;
        let metric = self.metric(&first);
        let split = |z: &[f64]| -> Protocol {
            let mut values = z.iter().zip(&metric).map(|(z, m)| z / m);
            let mut courses = start.to_vec();
            for (course, control) in courses.iter_mut().zip(&self.controls) {
                for value in &mut course.values {
                    // The division may leave the box by a rounding.
                    *value = values.next().expect("a value").clamp(control.bounds.0, control.bounds.1);
                }
            }
            courses
        };
        let flat = |of: &dyn Fn(usize) -> f64| -> Vec<f64> {
            let each = start.iter().enumerate().flat_map(|(c, course)| vec![of(c); course.values.len()]);
            each.zip(&metric).map(|(bound, m)| bound * m).collect()
        };
        let (low, high) = (flat(&|c| self.controls[c].bounds.0), flat(&|c| self.controls[c].bounds.1));
        let z: Vec<f64> =
            start.iter().flat_map(|c| c.values.iter().copied()).zip(&metric).map(|(x, m)| x * m).collect();
        let function = |z: &[f64]| {
            let d = self.differentiate(&split(z))?;
            let scale = if logarithmic { d.value.max(SMALLEST) } else { 1.0 };
            let value = if logarithmic { scale.ln() } else { d.value };
            let gradient = d.gradient.iter().flatten().zip(&metric).map(|(g, m)| g / (m * scale)).collect();
            Some((value, gradient))
        };
        let options = BoxOptions { memory: 30, iterations, decrease: DECREASE, gradient: GRADIENT };
        let value_of = |v: f64| if logarithmic { v.exp() } else { v };
        let found = minimise_in_box(function, &z, (&low, &high), &options, |i, v, z| {
            watch(i, value_of(v), &split(z))
        })?;
        let protocol = split(&found.at);
        Some(Found {
            value: value_of(found.value),
            protocol,
            projected: found.projected,
            iterations: found.iterations,
            stop: found.stop,
        })
    }

    /// √D of every variable, D the explicit second derivative of ln J (docs/derivations/optimal-protocols.md#eq-7); controls that enter linearly
    /// have none and get the size that moves them over their bounds.
    fn metric(&self, at: &Differentiated) -> Vec<f64> {
        let scale = if at.value > 0.0 { at.value } else { 1.0 };
        let mut all = Vec::new();
        for (control, curvature) in self.controls.iter().zip(&at.curvature) {
            let largest = curvature.iter().fold(0.0_f64, |m, c| m.max(c.abs())) / scale;
            if largest > 0.0 {
                all.extend(curvature.iter().map(|c| (c / scale).max(METRIC_FLOOR * largest).sqrt()));
            } else {
                let width = control.bounds.1 - control.bounds.0;
                all.extend(curvature.iter().map(|_| 1.0 / (width * (curvature.len() as f64).sqrt())));
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_halve_down_to_ten() {
        assert_eq!(levels(40), [10, 20, 40]);
        assert_eq!(levels(4), [4]);
        assert_eq!(levels(126), [15, 31, 63, 126]);
    }
}
