//! Several starts on their way through the levels of knots, the better ones to the end.

use super::direct::Found;
use super::problem::{ControlProblem, Protocol};
use didact_math::minimise::BoxStop;
use didact_model::Monitor;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// How an optimum is sought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SearchMethod {
    /// Direct transcription, checked and polished by sweeps.
    #[default]
    Direct,
    /// Sweeps, checked by direct transcription; for the learning rate alone.
    Sweep,
}

/// Options of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// Protocols to start from.
    pub starts: usize,
    /// Direct transcription or sweeps.
    pub method: SearchMethod,
    /// Of the certificate.
    pub tolerance: f64,
    /// Steps at most, per start and level of knots.
    pub iterations: usize,
    /// Of random protocols.
    pub seed: u64,
    /// Whether the certificate is computed; it costs as much as the search.
    pub certify: bool,
    /// Where an interrupted search stood ([`ControlError::Interrupted`](super::ControlError::Interrupted)): the new one goes on from there.
    pub resume: Vec<Candidate>,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            starts: 4,
            method: SearchMethod::Direct,
            tolerance: 1e-3,
            iterations: 300,
            seed: 0,
            certify: true,
            resume: Vec::new(),
        }
    }
}

/// How a minimisation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SearchOutcome {
    /// At a minimum.
    Converged,
    /// At the limit of iterations.
    Limit,
    /// By the user; the protocol is the best one so far.
    Interrupted,
}

impl SearchOutcome {
    /// As a word of a file.
    pub fn word(self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::Limit => "limit",
            Self::Interrupted => "interrupted",
        }
    }
}

impl From<BoxStop> for SearchOutcome {
    fn from(stop: BoxStop) -> Self {
        match stop {
            BoxStop::Converged => Self::Converged,
            BoxStop::Limit => Self::Limit,
            BoxStop::Interrupted => Self::Interrupted,
        }
    }
}

/// One start, and what became of it so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Which start.
    pub name: String,
    /// The best protocol so far.
    pub protocol: Protocol,
    /// Its J.
    pub value: f64,
    /// Levels of knots on which it was minimised.
    pub levels: usize,
    /// Steps taken, over all levels.
    pub iterations: usize,
    /// How the last minimisation ended.
    pub outcome: SearchOutcome,
    /// Length of the projected gradient of ln J in the metric of its second derivative; none before a minimisation, and of sweeps.
    pub projected: Option<f64>,
}

impl Candidate {
    /// A start of which nothing is done.
    pub(super) fn new(name: &str, protocol: Protocol, value: f64) -> Self {
        let (levels, iterations) = (0, 0);
        let outcome = SearchOutcome::Interrupted;
        Self { name: name.into(), protocol, value, levels, iterations, outcome, projected: None }
    }

    fn take(&mut self, found: Found) {
        self.iterations += found.iterations;
        self.outcome = found.stop.into();
        self.projected = Some(found.projected).filter(|length| length.is_finite());
        if found.value <= self.value {
            (self.protocol, self.value) = (found.protocol, found.value);
        }
    }
}

/// How many of the starts are minimised on a level of knots: all of them on the coarsest, half as many on every finer one, but two as long as
/// there are two. A start that is second on coarse knots may be first on fine ones, since coarse knots have minima of their own.
fn survivors(starts: usize, level: usize) -> usize {
    (starts >> level.min(63)).max(2).min(starts)
}

/// A part of the work of a monitor.
pub(super) struct WorkShare<'a> {
    monitor: &'a dyn Monitor,
    part: f64,
    told: f64,
}

impl<'a> WorkShare<'a> {
    pub(super) fn new(monitor: &'a dyn Monitor, part: f64) -> Self {
        Self { monitor, part, told: 0.0 }
    }

    /// So much of this part is done.
    pub(super) fn reach(&mut self, fraction: f64) {
        let fraction = fraction.min(1.0);
        if fraction > self.told {
            self.monitor.advance(self.part * (fraction - self.told));
            self.told = fraction;
        }
    }
}

impl ControlProblem<'_> {
    /// Levels of a search.
    fn rounds(&self, search: &Search) -> usize {
        match search.method {
            SearchMethod::Direct => self.level_count(),
            SearchMethod::Sweep => 1,
        }
    }

    /// Brings the starts through the levels of knots (docs/derivations/optimal-protocols.md#s3), the best first at the end. Ends early when the
    /// monitor asks for it: what is under way has then its best protocol so far, and another call goes on from there. `part` is the share of
    /// this work in all of the monitor's, `compared` what J is compared with in words for the user.
    pub(super) fn race(&self, candidates: &mut [Candidate], search: &Search, part: f64, compared: f64) {
        let (count, rounds) = (candidates.len(), self.rounds(search));
        let units: usize = (0..rounds).map(|level| survivors(count, level)).sum();
        let part = part / units as f64;
        for level in 0..rounds {
            candidates.sort_by(|a, b| a.value.total_cmp(&b.value));
            let kept = &mut candidates[..survivors(count, level)];
            kept.par_iter_mut().enumerate().for_each(|(place, candidate)| {
                let mut share = WorkShare::new(self.monitor, part);
                if candidate.levels == level {
                    let before = candidate.iterations;
                    let mut watch = |i: usize, value: f64, _: &Protocol| {
                        share.reach(i as f64 / search.iterations as f64);
                        self.monitor.describe(&self.progress_line(place, count, before + i, value, compared));
                        !self.monitor.cancelled()
                    };
                    self.minimise_on_level(candidate, level, search, &mut watch);
                }
                share.reach(1.0);
            });
            if self.monitor.cancelled() {
                return;
            }
        }
        candidates.sort_by(|a, b| a.value.total_cmp(&b.value));
    }

    fn minimise_on_level(
        &self,
        candidate: &mut Candidate,
        level: usize,
        search: &Search,
        watch: &mut dyn FnMut(usize, f64, &Protocol) -> bool,
    ) {
        let found = match search.method {
            SearchMethod::Direct => {
                self.direct(&candidate.protocol, level, level + 1, search.iterations, watch)
            }
            SearchMethod::Sweep => {
                self.sweep(&self.resampled(&candidate.protocol), search.iterations, watch).map(Found::from)
            }
        };
        if let Some(found) = found {
            candidate.take(found);
        }
        if self.monitor.cancelled() {
            candidate.outcome = SearchOutcome::Interrupted;
        } else {
            candidate.levels = level + 1;
        }
    }

    /// What a user reads while the search goes on.
    fn progress_line(
        &self,
        place: usize,
        count: usize,
        iteration: usize,
        value: f64,
        compared: f64,
    ) -> String {
        let name = self.observable.name();
        let gain = 100.0 * (1.0 - value / compared);
        format!(
            "start {} of {count}, iteration {iteration}, {name} {value:.3e}, {gain:.1}% below the best constant",
            place + 1
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_starts_go_on_to_the_next_level_and_two_to_the_last() {
        assert_eq!([0, 1, 2].map(|level| survivors(8, level)), [8, 4, 2]);
        assert_eq!([0, 1, 2].map(|level| survivors(3, level)), [3, 2, 2]);
        assert_eq!([0, 1, 9].map(|level| survivors(1, level)), [1, 1, 1]);
    }
}
