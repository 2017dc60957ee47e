//! Events: times at which a function of the solution changes sign.

use std::fmt;

use super::stages::Stepper;
use crate::roots::brent_between;

/// Which sign changes count. Signs are compared in the direction of integration, also when time runs backwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From negative to positive.
    Rising,
    /// From positive to negative.
    Falling,
    /// Both.
    #[default]
    Either,
}

/// A function of (time, state).
pub type EventFunction<'a> = Box<dyn Fn(f64, &[f64]) -> f64 + 'a>;

/// A sign change of `function(time, state)` to be located.
///
/// Signs are compared once per step, so a function that changes sign twice within a step is missed; where that can
/// happen, set [`super::Options::largest_step`]. A function that is exactly 0 at the start does not fire there. NaN
/// never fires.
pub struct OdeEvent<'a> {
    /// Name for reports.
    pub name: String,
    /// The function whose zeros are the event.
    pub function: EventFunction<'a>,
    /// Which sign changes count.
    pub direction: Direction,
    /// Whether the integration stops at the first one.
    pub terminal: bool,
}

impl<'a> OdeEvent<'a> {
    /// Creates an event that counts sign changes in both directions and does not stop the integration.
    pub fn new(name: &str, function: impl Fn(f64, &[f64]) -> f64 + 'a) -> Self {
        OdeEvent {
            name: name.to_owned(),
            function: Box::new(function),
            direction: Direction::Either,
            terminal: false,
        }
    }

    /// Counts only sign changes in this direction.
    pub fn direction(self, direction: Direction) -> Self {
        OdeEvent { direction, ..self }
    }

    /// Stops the integration at the first occurrence.
    pub fn terminal(self) -> Self {
        OdeEvent { terminal: true, ..self }
    }
}

impl fmt::Debug for OdeEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OdeEvent { name, direction, terminal, .. } = self;
        write!(f, "OdeEvent {{ name: {name:?}, direction: {direction:?}, terminal: {terminal} }}")
    }
}

/// An event that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Occurrence {
    /// Position of the event in the list of events.
    pub event: usize,
    /// Time of the sign change.
    pub time: f64,
    /// State at that time.
    pub state: Vec<f64>,
}

/// Detects sign changes of a list of events from step to step.
pub(super) struct EventDetector<'a> {
    events: &'a [OdeEvent<'a>],
    /// Values of the event functions at the beginning of the current step.
    before: Vec<f64>,
    /// Values at its end.
    after: Vec<f64>,
    /// Sign changes within the current step, as (fraction of the step, event), in order of time.
    crossings: Vec<(f64, usize)>,
}

impl<'a> EventDetector<'a> {
    pub(super) fn new(events: &'a [OdeEvent<'a>], time: f64, state: &[f64]) -> Self {
        let before: Vec<f64> = events.iter().map(|e| (e.function)(time, state)).collect();
        EventDetector { events, after: before.clone(), before, crossings: Vec::new() }
    }

    /// Evaluates all events at the end of a step. Returns whether any changed sign in its direction.
    pub(super) fn evaluate(&mut self, time: f64, state: &[f64]) -> bool {
        let mut seen = false;
        for (i, event) in self.events.iter().enumerate() {
            self.after[i] = (event.function)(time, state);
            seen |= self.fires(i);
        }
        seen
    }

    fn fires(&self, i: usize) -> bool {
        let (before, after) = (self.before[i], self.after[i]);
        let rises = before < 0.0 && after >= 0.0;
        let falls = before > 0.0 && after <= 0.0;
        match self.events[i].direction {
            Direction::Rising => rises,
            Direction::Falling => falls,
            Direction::Either => rises || falls,
        }
    }

    /// Locates the sign changes within the step on its interpolant. Returns them as (fraction of the step, event) in order
    /// of time, up to the first terminal one.
    pub(super) fn locate(
        &mut self,
        stepper: &dyn Stepper,
        time: f64,
        step: f64,
        interpolated: &mut [f64],
    ) -> &[(f64, usize)] {
        self.crossings.clear();
        // This tolerance on the fraction resolves the time to rounding.
        let tolerance = 2.0 * f64::EPSILON * (time.abs() + step.abs()) / step.abs();
        for i in 0..self.events.len() {
            if !self.fires(i) {
                continue;
            }
            let along = |share: f64| {
                stepper.interpolate(step, share, interpolated);
                (self.events[i].function)(time + share * step, interpolated)
            };
            // If the function is NaN inside the step, the sign change is placed at the end of the step.
            let share =
                brent_between(along, (0.0, self.before[i]), (1.0, self.after[i]), tolerance).unwrap_or(1.0);
            self.crossings.push((share, i));
        }
        self.crossings.sort_by(|a, b| a.0.total_cmp(&b.0));
        if let Some(first) = self.crossings.iter().position(|&(_, i)| self.events[i].terminal) {
            self.crossings.truncate(first + 1);
        }
        &self.crossings
    }

    pub(super) fn is_terminal(&self, event: usize) -> bool {
        self.events[event].terminal
    }

    /// Makes the end of this step the beginning of the next.
    pub(super) fn advance(&mut self) {
        std::mem::swap(&mut self.before, &mut self.after);
    }
}
