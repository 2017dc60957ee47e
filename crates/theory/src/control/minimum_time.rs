//! The shortest time in which a level can be reached (docs/derivations/optimal-protocols.md#s7).

use super::ControlError;
use super::baselines::scan_values;
use super::optimum::Optimum;
use super::problem::{ControlProblem, Objective, Protocol, knot_times};
use super::search::{Candidate, Search};
use didact_math::roots;
use didact_model::training::Course;
use didact_model::{Monitor, Overlaps};
use rayon::prelude::*;

/// Solves of the problem of the final loss at most.
const SOLVES: usize = 12;
/// Relative change of T at which Newton's iteration ends.
const CLOSE: f64 = 1e-6;
/// Looks for the level along a protocol.
const LOOKS: usize = 400;
/// Constant rates of each kind that are tried.
const SCANNED: usize = 40;

/// The shortest time, and the optimum of the final loss at that time.
#[derive(Debug, Clone, PartialEq)]
pub struct MinimumTime {
    /// T*.
    pub time: f64,
    /// The protocol over [0, T*].
    pub optimum: Optimum,
    /// The constant controls that reach the level soonest, and when; none where no constant does within the time.
    pub constant: Option<(Vec<f64>, f64)>,
    /// When the greedy rate reaches it.
    pub greedy: Option<f64>,
    /// When the problem as it is given does.
    pub given: Option<f64>,
}

impl ControlProblem<'_> {
    fn mean_observed(&self, states: &[&Overlaps]) -> f64 {
        states.iter().map(|state| self.observe(state)).sum::<f64>() / states.len() as f64
    }

    /// The first time, within the horizon, at which the mean observable is at or below a level under a protocol.
    pub fn time_to_level(&self, protocol: &[Course], level: f64) -> Option<f64> {
        let times: Vec<f64> = (0..=LOOKS).map(|i| self.horizon * i as f64 / LOOKS as f64).collect();
        // A protocol that diverges later may have reached the level before.
        let mut known: Vec<Vec<Overlaps>> = Vec::new();
        for start in 0..self.starts.len() {
            known.push(self.states(protocol, start, &times)?);
        }
        let at = |i: usize| self.mean_observed(&known.iter().map(|s| &s[i]).collect::<Vec<_>>());
        let after = (0..=LOOKS).find(|i| at(*i) <= level)?;
        if after == 0 {
            return Some(0.0);
        }
        let excess = |t: f64| {
            let mut sum = 0.0;
            for start in 0..self.starts.len() {
                sum += self.states(protocol, start, &[t]).map_or(f64::INFINITY, |s| self.observe(&s[0]));
            }
            (sum / self.starts.len() as f64 / level).ln()
        };
        roots::brent(excess, times[after - 1], times[after], 1e-9 * self.horizon).ok()
    }

    /// The constant learning rate that reaches a level soonest, and when.
    fn soonest_constant(&self, level: f64) -> Option<(Vec<f64>, f64)> {
        let index = self.rate_index()?;
        let others: Vec<f64> = self.given().iter().map(|course| course.values[0]).collect();
        let with = |x: f64| -> Protocol {
            let mut values = others.clone();
            values[index] = x;
            values.into_iter().map(Course::constant).collect()
        };
        let rates = scan_values(self.controls[index].bounds, SCANNED);
        let times: Vec<Option<f64>> =
            rates.par_iter().map(|x| self.time_to_level(&with(*x), level)).collect();
        let best = (0..rates.len()).filter(|i| times[*i].is_some()).min_by(|a, b| {
            times[*a].unwrap_or(f64::INFINITY).total_cmp(&times[*b].unwrap_or(f64::INFINITY))
        })?;
        let (low, high) = (rates[best.saturating_sub(1)], rates[(best + 1).min(rates.len() - 1)]);
        let refined = roots::minimum(
            |x| self.time_to_level(&with(x), level).unwrap_or(f64::INFINITY),
            low,
            high,
            1e-4 * (high - low),
        );
        let mut values = others;
        values[index] = refined.at;
        Some((values, refined.value.min(times[best]?)))
    }

    /// The smallest T at which the observable can be at a level, T at most the horizon of this problem: Newton's iteration for
    /// V(T) = level with V' = H, in ln V (docs/derivations/optimal-protocols.md#eq-12).
    pub fn minimum_time(&self, level: f64, search: &Search) -> Result<MinimumTime, ControlError> {
        self.check()?;
        let half = Half(self.monitor);
        let this = ControlProblem { objective: Objective::Final, monitor: &half, ..self.clone() };
        let starting = this.mean_observed(&this.starts.iter().collect::<Vec<_>>());
        if starting <= level {
            return Err(ControlError::ReachedAtStart {
                observable: this.observable.name(),
                level,
                value: starting,
            });
        }
        let constant = this.soonest_constant(level);
        let given = this.time_to_level(&this.given(), level);
        let greedy = this.greedy(200).and_then(|(_, course)| {
            let mut protocol = this.given();
            protocol[this.rate_index()?] = course;
            this.time_to_level(&protocol, level)
        });
        let known = [constant.as_ref().map(|c| c.1), greedy, given].into_iter().flatten().reduce(f64::min);
        let mut horizon = known.unwrap_or(this.horizon);
        let quick = Search { certify: false, ..search.clone() };
        if this.monitor.cancelled() {
            return Err(ControlError::Interrupted(search.resume.clone()));
        }
        let first = this.with_horizon(horizon).optimise(&quick)?;
        if first.value > level && known.is_none() {
            return Err(ControlError::NotReached {
                observable: this.observable.name(),
                level,
                within: this.horizon,
                smallest: first.value,
            });
        }
        let mut protocol = first.protocol.clone();
        let (mut late, mut early) = (horizon, 0.0);
        let mut at = this.with_horizon(horizon).differentiate(&protocol);
        for _ in 0..SOLVES {
            let Some(now) = &at else { break };
            if now.value <= level {
                late = horizon;
            } else {
                early = horizon;
            }
            let slope = now.momenta.iter().map(|m| m.hamiltonian).sum::<f64>() / now.momenta.len() as f64;
            let mut next = horizon + now.value * (level / now.value).ln() / slope;
            if !(next > early && next < late * (1.0 + 1e-9)) {
                next = f64::midpoint(early, late);
            }
            let change = (next - horizon).abs() / horizon;
            horizon = next;
            protocol = stretched(&protocol, horizon);
            if change < CLOSE {
                break;
            }
            let there = this.with_horizon(horizon);
            let mut goes_on = |_: usize, _: f64, _: &Protocol| !there.monitor.cancelled();
            if let Some(found) = there.minimise(&there.resampled(&protocol), search.iterations, &mut goes_on)
            {
                protocol = found.protocol;
            }
            at = there.differentiate(&protocol);
            if there.monitor.cancelled() {
                return Err(ControlError::Interrupted(first.starts));
            }
        }
        let there = this.with_horizon(horizon);
        let mut near = Candidate::new("shorter times", protocol.clone(), there.value(&protocol));
        // It was minimised at a time that differs by a millionth.
        near.levels = there.level_count() - 1;
        let optimum = there.optimise(&Search { resume: vec![near], ..search.clone() });
        let optimum = optimum.map_err(|error| match error {
            // What can be gone on with is the search at the first time.
            ControlError::Interrupted(_) => ControlError::Interrupted(first.starts.clone()),
            other => other,
        })?;
        Ok(MinimumTime { time: horizon, optimum, constant, greedy, given })
    }
}

/// Hears of half of the work: the problem is solved at a first time, and again with a certificate at the last.
struct Half<'a>(&'a dyn Monitor);

impl Monitor for Half<'_> {
    fn advance(&self, fraction: f64) {
        self.0.advance(0.5 * fraction);
    }
    fn describe(&self, line: &str) {
        self.0.describe(line);
    }
    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}

/// The same values over another time.
fn stretched(protocol: &[Course], horizon: f64) -> Protocol {
    let course = |course: &Course| Course {
        times: knot_times(course.times.len() - 1, horizon),
        values: course.values.clone(),
    };
    protocol.iter().map(course).collect()
}
