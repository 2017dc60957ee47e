//! The search for an optimum: baselines, several starts, refinement, and the certificate.

use super::ControlError;
use super::baselines::Constant;
use super::certificate::Certificate;
use super::direct::Found;
use super::problem::{ControlProblem, Momenta, Protocol};
use super::search::{Candidate, Search, SearchMethod, SearchOutcome, WorkShare};
use didact_math::minimise::BoxStop;
use didact_model::training::Course;

/// Share of the certificate in the work of a search.
const CERTIFICATE_SHARE: f64 = 0.4;
/// Points of a sweep per knot of the direct solution.
pub(super) const SWEPT_PER_KNOT: usize = 4;

/// An optimal protocol, what it is compared with, and how far it can be trusted.
#[derive(Debug, Clone, PartialEq)]
pub struct Optimum {
    /// The controls on their knots.
    pub protocol: Protocol,
    /// J.
    pub value: f64,
    /// p·f1, p·f2 and H at the knots.
    pub momenta: Vec<Momenta>,
    /// The best constant controls.
    pub constant: Constant,
    /// J and course of the greedy rate; none without a learning rate among the controls, or where it diverges.
    pub greedy: Option<(f64, Course)>,
    /// J of the problem as it is given.
    pub given: f64,
    /// Every start, the best first.
    pub starts: Vec<Candidate>,
    /// What speaks for it.
    pub certificate: Certificate,
    /// How the minimisation of the best start ended.
    pub outcome: SearchOutcome,
}

impl ControlProblem<'_> {
    /// The problem with other numbers of knots.
    pub(super) fn with_finer_knots(&self, factor: usize) -> Self {
        let mut fine = self.clone();
        fine.controls.iter_mut().for_each(|c| c.knots *= factor);
        fine
    }

    /// Seeks the optimum (docs/derivations/optimal-protocols.md#s3): baselines, every start on the coarsest knots, the better ones on finer knots,
    /// then the certificate. [`ControlError::Interrupted`] has what was found when the monitor asks for the end.
    pub fn optimise(&self, search: &Search) -> Result<Optimum, ControlError> {
        self.check()?;
        let interrupted = |so_far: &[Candidate]| {
            let asked = self.monitor.cancelled();
            if asked { Err(ControlError::Interrupted(so_far.to_vec())) } else { Ok(()) }
        };
        let constant = self.best_constant();
        interrupted(&search.resume)?;
        let constant = constant.ok_or_else(|| self.all_diverge())?;
        let only_rate = self.controls.len() == 1 && self.rate_index() == Some(0);
        let greedy = if only_rate { self.greedy(self.controls[0].knots) } else { None };
        let given = self.value(&self.given());
        let mut candidates = search.resume.clone();
        if candidates.is_empty() {
            let course = greedy.as_ref().map(|(_, course)| course);
            candidates = self.starting_protocols(search.starts, &constant, course, search.seed);
        }
        interrupted(&search.resume)?;
        if candidates.is_empty() {
            return Err(self.all_diverge());
        }
        let sweeping = search.method == SearchMethod::Sweep;
        let fine = if sweeping { self.with_finer_knots(SWEPT_PER_KNOT) } else { self.clone() };
        let certificate_share = if search.certify { CERTIFICATE_SHARE } else { 0.0 };
        fine.race(&mut candidates, search, 1.0 - certificate_share, constant.value);
        interrupted(&candidates)?;
        let best = candidates[0].clone();
        let protocol = fine.resampled(&best.protocol);
        let at = fine.differentiate(&protocol);
        interrupted(&candidates)?;
        let at = at.ok_or_else(|| self.all_diverge())?;
        let others: Vec<f64> = [Some(constant.value), greedy.as_ref().map(|g| g.0)]
            .into_iter()
            .flatten()
            .chain(candidates.iter().map(|c| c.value))
            .filter(|v| v.is_finite())
            .collect();
        let projected = best.projected.unwrap_or(f64::NAN);
        let certificate = if search.certify {
            let found = Found {
                protocol: protocol.clone(),
                value: at.value,
                projected,
                iterations: best.iterations,
                stop: BoxStop::Converged,
            };
            let mut share = WorkShare::new(self.monitor, certificate_share);
            let certificate = fine.certify(&found, &at, &others, search);
            share.reach(1.0);
            certificate
        } else {
            Certificate::unchecked(projected, at.value, &others)
        };
        interrupted(&candidates)?;
        Ok(Optimum {
            protocol,
            value: at.value,
            momenta: at.momenta,
            constant,
            greedy,
            given,
            starts: candidates,
            certificate,
            outcome: best.outcome,
        })
    }

    /// What no type can check.
    pub fn check(&self) -> Result<(), ControlError> {
        if !(self.horizon.is_finite() && self.horizon > 0.0) {
            return Err(ControlError::Horizon(self.horizon));
        }
        for control in &self.controls {
            let (low, high) = control.bounds;
            if !(low >= 0.0 && low < high && high.is_finite()) {
                return Err(ControlError::Bounds { key: control.key.path(), low, high });
            }
            if control.knots < 2 {
                return Err(ControlError::Knots { key: control.key.path(), knots: control.knots });
            }
        }
        if self.rate_index().is_some()
            && matches!(self.problem.clock, didact_model::Clock::Flow | didact_model::Clock::FlowPerUnit)
        {
            return Err(ControlError::FlowClock);
        }
        if self.problem.training.samples.is_some() {
            return Err(ControlError::TrainingSet);
        }
        let mut plain = self.problem.training.clone();
        plain.schedule = didact_model::training::FactorSchedule::default();
        plain.weight_decay_schedule = didact_model::training::FactorSchedule::default();
        plain.label_noise_schedule = didact_model::training::FactorSchedule::default();
        if !plain.is_plain() {
            return Err(ControlError::WayOfTraining);
        }
        for start in &self.starts {
            if let Some(reason) = self.problem.about.invariance(start) {
                return Err(ControlError::Invariant(reason));
            }
        }
        Ok(())
    }

    fn all_diverge(&self) -> ControlError {
        let high = self.controls.first().map_or(0.0, |c| c.bounds.1);
        ControlError::AllDiverge { key: self.controls.first().map_or("", |c| c.key.path()), high }
    }
}
