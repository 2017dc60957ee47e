//! Two-stage training: squared labels until the overlap is m₁, then the labels as they are
//! (docs/derivations/lora.md#s8).

use super::flow::{Flow, FlowError};
use super::landscape::{AdapterState, Landscape};
use didact_math::activation::Form;
use didact_math::roots;

/// The two landscapes of a schedule, and how it is judged.
#[derive(Debug, Clone)]
pub struct TwoStage {
    /// Transformed labels.
    pub first: Landscape,
    /// Plain labels.
    pub second: Landscape,
    /// δ.
    pub delta: f64,
    /// Where learning starts.
    pub start: AdapterState,
    /// Time given to the second stage.
    pub time: f64,
    /// Whether u is set back to 0 at the switch.
    pub reset_amplitude: bool,
}

/// How a switch turned out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Switch {
    /// When the first stage ended.
    pub time: f64,
    /// The state at the switch.
    pub state: AdapterState,
    /// The state after the second stage.
    pub last: AdapterState,
    /// m_eff = W·w* at the end.
    pub effective: f64,
}

/// The switch that reaches a test error soonest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BestSwitch {
    /// When the first stage ends.
    pub time: f64,
    /// When the test error is reached, counted from the start of the first stage.
    pub total: f64,
}

/// Overlaps at which a switch is tried before the best one is refined: the total time is finite in windows only, and has several minima.
const TRIED_SWITCHES: usize = 120;

/// m_eff from which on the teacher counts as recovered.
const RECOVERED: f64 = 0.99;

impl TwoStage {
    /// Switches at |m| = `overlap`; `None` when the first stage never gets there within 1e6.
    pub fn switch_at(&self, overlap: f64) -> Result<Option<Switch>, FlowError> {
        let stage = Flow { landscape: &self.first, delta: self.delta };
        let Some((time, state)) = stage.first_passage(self.start, 1e6, |s| s.overlap.abs() - overlap)? else {
            return Ok(None);
        };
        let begin = if self.reset_amplitude { AdapterState { amplitude: 0.0, ..state } } else { state };
        let flow = Flow { landscape: &self.second, delta: self.delta };
        // Explicit steps are short for ever where averages without a closed form have arrived long before the time is over.
        let (student, teacher) = (&self.second.population.student, &self.second.population.teacher);
        let last = if student.form() == Form::General || student.form() != teacher.form() {
            flow.end(begin, self.time)?.state
        } else {
            flow.states(begin, &[self.time])?[0]
        };
        Ok(Some(Switch { time, state, last, effective: self.second.law(last).overlap }))
    }

    fn recovers(&self, overlap: f64) -> Result<bool, FlowError> {
        Ok(self.switch_at(overlap)?.is_some_and(|s| s.effective.abs() > RECOVERED))
    }

    /// The time from the start until the test error E[(y − f)²] falls to `error`, if the first stage ends at `time`; infinite where it does
    /// not within [`time`](Self::time).
    pub fn total_time(&self, time: f64, error: f64) -> Result<f64, FlowError> {
        let stage = Flow { landscape: &self.first, delta: self.delta };
        let state = if time > 0.0 { stage.states(self.start, &[time])?[0] } else { self.start };
        let begin = if self.reset_amplitude { AdapterState { amplitude: 0.0, ..state } } else { state };
        let second = Flow { landscape: &self.second, delta: self.delta };
        // The loss of a landscape is half of the test error.
        let short = |s: AdapterState| error - 2.0 * self.second.loss(s);
        let passage = second.first_passage(begin, self.time, short)?;
        Ok(passage.map_or(f64::INFINITY, |(after, _)| time + after))
    }

    /// The time of the switch that reaches a test error soonest: a scan over the overlaps of the first stage, whose windows are broad in
    /// the overlap and narrow in time, then a search between the neighbours of the best (docs/derivations/optimal-protocols.md#s8). `None` where
    /// no switch reaches it.
    pub fn best_switch(&self, error: f64) -> Result<Option<BestSwitch>, FlowError> {
        let stage = Flow { landscape: &self.first, delta: self.delta };
        let lowest = self.start.overlap.abs();
        let mut tried = vec![(0.0, self.total_time(0.0, error)?)];
        for i in 1..TRIED_SWITCHES {
            let overlap = lowest + (1.0 - lowest) * i as f64 / TRIED_SWITCHES as f64;
            let passage = stage.first_passage(self.start, self.time, |s| s.overlap.abs() - overlap)?;
            let Some((time, _)) = passage else { break };
            tried.push((time, self.total_time(time, error)?));
        }
        let best =
            (0..tried.len()).min_by(|a, b| tried[*a].1.total_cmp(&tried[*b].1)).expect("one switch is tried");
        if !tried[best].1.is_finite() {
            return Ok(None);
        }
        let (low, high) = (tried[best.saturating_sub(1)].0, tried[(best + 1).min(tried.len() - 1)].0);
        let mut failed = None;
        let found = roots::minimum(
            |time| {
                self.total_time(time, error).unwrap_or_else(|why| {
                    failed = Some(why);
                    f64::INFINITY
                })
            },
            low,
            high,
            1e-7 * high,
        );
        match failed {
            Some(why) => Err(why),
            None if found.value < tried[best].1 => {
                Ok(Some(BestSwitch { time: found.at, total: found.value }))
            }
            None => Ok(Some(BestSwitch { time: tried[best].0, total: tried[best].1 })),
        }
    }

    /// Intervals of m₁ from which the teacher is recovered in time: a scan of `points`, borders by bisection.
    pub fn windows(&self, points: usize) -> Result<Vec<(f64, f64)>, FlowError> {
        let lowest = self.start.overlap.abs();
        let grid = |i: usize| lowest + (1.0 - lowest) * (i as f64 + 0.5) / points as f64;
        let mut known = Vec::with_capacity(points);
        for i in 0..points {
            known.push((grid(i), self.recovers(grid(i))?));
        }
        let mut borders = Vec::new();
        if known.first().is_some_and(|k| k.1) {
            borders.push(lowest);
        }
        for pair in known.windows(2).filter(|p| p[0].1 != p[1].1) {
            let (mut low, mut high) = (pair[0].0, pair[1].0);
            while high - low > 1e-6 {
                let middle = f64::midpoint(low, high);
                if self.recovers(middle)? == pair[0].1 { low = middle } else { high = middle }
            }
            borders.push(f64::midpoint(low, high));
        }
        if known.last().is_some_and(|k| k.1) {
            borders.push(1.0);
        }
        Ok(borders.chunks_exact(2).map(|b| (b[0], b[1])).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::hermite::time_scale;
    use super::super::population::{LossName, Population};
    use super::*;
    use didact_math::activation::parse;

    fn third_hermite(reset_amplitude: bool) -> TwoStage {
        let unit = parse("He3").unwrap();
        let landscape = |labels: &str| {
            let population = Population::new(unit.clone(), labels, unit.clone(), LossName::Half).unwrap();
            Landscape::aligned(population, 0.325)
        };
        TwoStage {
            first: landscape("squared"),
            second: landscape("plain"),
            delta: 1.0 / time_scale(3),
            start: AdapterState::aligned(0.0316, 0.0316),
            time: 2500.0,
            reset_amplitude,
        }
    }

    #[test]
    fn the_switch_has_a_window() {
        // m₁ in (0.3746, 0.5761) recovers within 2500; later falls into W = 0; earlier is too slow
        // (docs/derivations/lora.md#s8).
        let windows = third_hermite(false).windows(60).unwrap();
        assert_eq!(windows.len(), 1, "{windows:?}");
        let (low, high) = windows[0];
        assert!((low - 0.3746).abs() < 1e-4 && (high - 0.5761).abs() < 1e-4, "{windows:?}");
        let late = third_hermite(false).switch_at(0.7).unwrap().unwrap();
        assert!(late.effective.abs() < 1e-3 && late.last.overlap.abs() > 0.99, "{late:?}");
        let early = third_hermite(false).switch_at(0.1).unwrap().unwrap();
        assert!((early.last.overlap - 0.106).abs() < 1e-3, "{early:?}");
    }

    #[test]
    fn the_best_switch_is_where_the_total_time_is_stationary() {
        let stages = third_hermite(false);
        let best = stages.best_switch(1e-3).unwrap().unwrap();
        for by in [-2.0, -0.2, 0.2, 2.0] {
            assert!(stages.total_time(best.time + by, 1e-3).unwrap() > best.total, "{best:?} {by}");
        }
        // It does not depend on the level, since all flows end alike.
        let other = stages.best_switch(1e-2).unwrap().unwrap();
        assert!(
            (best.time / other.time - 1.0).abs() < 1e-4 && other.total < best.total,
            "{best:?} {other:?}"
        );
        assert_eq!(stages.best_switch(-1.0).unwrap(), None);
    }

    #[test]
    fn resetting_the_amplitude_rescues_a_late_switch() {
        for overlap in [0.5, 0.9] {
            let switch = third_hermite(true).switch_at(overlap).unwrap().unwrap();
            assert!(switch.effective > 0.99, "{overlap}: {switch:?}");
        }
    }
}
