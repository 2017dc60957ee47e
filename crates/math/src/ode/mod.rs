//! Initial-value problems  y' = f(t, y)  for ordinary differential equations.
//!
//! The function [`solve`] integrates a [`VectorField`] with one of five methods: explicit Runge-Kutta pairs of order 5
//! and 8, Adams methods of variable order, a Rosenbrock method for stiff problems, and a stabilised explicit method for
//! large, mildly stiff ones. [`Method`] says when to use which. Every method controls its error, interpolates between
//! its steps, and locates events. The number of steps is unlimited unless [`Options::step_limit`] is set, because a
//! solution that stays on a plateau for a long time is not a failure.
//!
//! The methods follow E. Hairer, S. P. Nørsett and G. Wanner, *Solving Ordinary Differential Equations I* (2nd ed.,
//! 1993), and E. Hairer and G. Wanner, *Solving Ordinary Differential Equations II* (2nd ed., 1996); the file of each
//! method names its original papers.
//!
//! ```
//! use didact_math::ode::{solve, Options, VectorField};
//!
//! struct Oscillator;
//! impl VectorField for Oscillator {
//!     fn dimension(&self) -> usize { 2 }
//!     fn derivative(&mut self, _time: f64, y: &[f64], out: &mut [f64]) {
//!         out[0] = y[1];
//!         out[1] = -y[0];
//!     }
//! }
//! let solution = solve(&mut Oscillator, 0.0, &[1.0, 0.0], 10.0, &[5.0, 10.0], &[], &Options::default())?;
//! assert!((solution.states[0][0] - 5.0_f64.cos()).abs() < 1e-7);
//! # Ok::<(), didact_math::ode::OdeError>(())
//! ```

mod adams;
mod adjoint;
mod control;
mod dop853;
mod dop853_tableau;
mod dopri5;
mod driver;
mod events;
mod field;
mod lu;
mod rodas5p;
mod solution;
mod stabilised;
mod stages;

#[cfg(test)]
mod test_problems;
#[cfg(test)]
mod tests_behaviour;
#[cfg(test)]
mod tests_convergence;
#[cfg(test)]
mod trees;

use std::ops::ControlFlow;

use thiserror::Error;

pub use adjoint::{AdjointField, KeptOptions, KeptSteps, integrate_kept, pull_back_kept};
pub use events::{Direction, EventFunction, Occurrence, OdeEvent};
pub use field::{FieldFn, VectorField, forward_differences};
pub use solution::{OdeReport, Solution, Stop};

/// Which integrator advances the solution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Method {
    /// Dormand & Prince 5(4): cheap steps, for loose tolerances (above ~1e-6) or fields with little smoothness.
    Dopri5,
    /// Dormand & Prince 8(5,3): the default; the fewest evaluations of smooth fields at tolerances below ~1e-6.
    #[default]
    Dop853,
    /// Adams, order 1 to 13: two evaluations per step, for smooth fields over long times at tight tolerances. Use it with
    /// [`Saving::Dense`]: it is efficient while its steps have equal length, and ending steps on many saved times changes
    /// their length.
    Adams,
    /// Rodas5P, a Rosenbrock method of order 5: for stiff fields. Factorises a dense n × n matrix per step.
    Stiff,
    /// Runge-Kutta-Chebyshev of order 2: for mildly stiff fields with real negative spectrum in dimensions where
    /// n × n matrices do not fit. Cost grows as the square root of the stiffness; for moderate accuracy.
    Stabilised,
}

/// How states at the requested times are obtained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Saving {
    /// The interpolant of the step that contains the time is evaluated; the sequence of steps does not depend on the saved
    /// times.
    #[default]
    Dense,
    /// Steps are shortened to end on every requested time. The saved states carry no interpolation error, at the cost of
    /// more steps.
    Landing,
}

/// Method, tolerances and limits of an integration.
///
/// The local error of component i is kept below `absolute` + `relative` |y_i| in root mean square over the
/// components.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The integrator.
    pub method: Method,
    /// Relative tolerance.
    pub relative: f64,
    /// Absolute tolerance.
    pub absolute: f64,
    /// Length of the first step; chosen from the field if `None`.
    pub first_step: Option<f64>,
    /// Longest step allowed. Set it when an event could come and go within one step.
    pub largest_step: Option<f64>,
    /// Accepted steps after which to give up; `None`, the default, never does.
    pub step_limit: Option<u64>,
    /// How saved states are obtained.
    pub saving: Saving,
    /// A component beyond this in absolute value counts as divergence.
    pub state_limit: f64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            method: Method::default(),
            relative: 1e-8,
            absolute: 1e-10,
            first_step: None,
            largest_step: None,
            step_limit: None,
            saving: Saving::default(),
            state_limit: 1e100,
        }
    }
}

/// An invalid argument of [`solve`]. What happens *during* an integration is never an error: see [`Stop`].
#[derive(Clone, Debug, Error, PartialEq)]
pub enum OdeError {
    /// An option is out of range.
    #[error("option `{name}` is {value}; it must be {requirement}")]
    Option {
        /// Field of [`Options`].
        name: &'static str,
        /// Its value.
        value: f64,
        /// What it must be.
        requirement: &'static str,
    },
    /// The state does not have the dimension of the field.
    #[error("the initial state has {got} components, the field has dimension {expected}")]
    Dimension {
        /// Dimension of the field.
        expected: usize,
        /// Length of the state.
        got: usize,
    },
    /// A component of the initial state is not finite or exceeds the state limit.
    #[error(
        "component {index} of the initial state is {value}; it must be finite and below `state_limit` = {limit:e}"
    )]
    InitialState {
        /// Which component.
        index: usize,
        /// Its value.
        value: f64,
        /// The state limit.
        limit: f64,
    },
    /// The interval has a non-finite end.
    #[error("cannot integrate from {start} to {end}: both times must be finite")]
    Interval {
        /// Start time.
        start: f64,
        /// End time.
        end: f64,
    },
    /// A time to save lies outside the interval or out of order.
    #[error(
        "save time number {index} is {time}; save times must run from {start} towards {end} in the order of integration"
    )]
    SaveTime {
        /// Position in the list.
        index: usize,
        /// The time.
        time: f64,
        /// Start of the interval.
        start: f64,
        /// End of the interval.
        end: f64,
    },
}

/// The arguments of an integration other than the field.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Initial time.
    pub start: f64,
    /// Initial state.
    pub state: &'a [f64],
    /// Final time; before `start` to integrate backwards.
    pub end: f64,
    /// Times at which to keep the state, in the order of integration.
    pub save_at: &'a [f64],
    /// Events to locate.
    pub events: &'a [OdeEvent<'a>],
    /// How to integrate.
    pub options: &'a Options,
}

/// Integrate y' = f(t, y) from (`start`, `state`) to `end`, forwards or backwards in time.
///
/// The solution holds the states at the times of `save_at` that were reached and the events that happened, and says
/// why the integration stopped.
pub fn solve(
    field: &mut dyn VectorField,
    start: f64,
    state: &[f64],
    end: f64,
    save_at: &[f64],
    events: &[OdeEvent<'_>],
    options: &Options,
) -> Result<Solution, OdeError> {
    let request = Request { start, state, end, save_at, events, options };
    solve_watched(field, &request, &mut |_| ControlFlow::Continue(()))
}

/// Like [`solve`], but calls `watch` with the time after every accepted step and stops when it returns `Break`.
pub fn solve_watched(
    field: &mut dyn VectorField,
    request: &Request<'_>,
    watch: &mut dyn FnMut(f64) -> ControlFlow<()>,
) -> Result<Solution, OdeError> {
    request.check(field.dimension())?;
    let n = field.dimension();
    let mut stepper: Box<dyn stages::Stepper> = match request.options.method {
        Method::Dopri5 => Box::new(dopri5::Dopri5::new(n)),
        Method::Dop853 => Box::new(dop853::Dop853::new(n)),
        Method::Adams => Box::new(adams::Adams::new(n)),
        Method::Stiff => Box::new(rodas5p::Rodas5P::new(n)),
        Method::Stabilised => Box::new(stabilised::Chebyshev::new(n)),
    };
    Ok(driver::integrate(stepper.as_mut(), field, request, watch))
}

impl Request<'_> {
    fn check(&self, dimension: usize) -> Result<(), OdeError> {
        let Request { start, state, end, options, .. } = *self;
        options.check()?;
        if state.len() != dimension {
            return Err(OdeError::Dimension { expected: dimension, got: state.len() });
        }
        let limit = options.state_limit;
        if let Some(index) = state.iter().position(|v| !(v.abs() <= limit && v.is_finite())) {
            return Err(OdeError::InitialState { index, value: state[index], limit });
        }
        if !(start.is_finite() && end.is_finite()) {
            return Err(OdeError::Interval { start, end });
        }
        let sign = if end < start { -1.0 } else { 1.0 };
        let mut earliest = start;
        for (index, &time) in self.save_at.iter().enumerate() {
            if !(sign * (time - earliest) >= 0.0 && sign * (end - time) >= 0.0) {
                return Err(OdeError::SaveTime { index, time, start, end });
            }
            earliest = time;
        }
        Ok(())
    }
}

impl Options {
    fn check(&self) -> Result<(), OdeError> {
        let positive = "positive and finite";
        let mut checks = vec![
            ("relative", self.relative, (0.0..1.0).contains(&self.relative), "at least 0 and below 1"),
            ("absolute", self.absolute, self.absolute > 0.0 && self.absolute.is_finite(), positive),
            ("state_limit", self.state_limit, self.state_limit > 0.0, "positive"),
        ];
        for (name, step) in [("first_step", self.first_step), ("largest_step", self.largest_step)] {
            if let Some(value) = step {
                checks.push((name, value, value > 0.0 && value.is_finite(), positive));
            }
        }
        for (name, value, holds, requirement) in checks {
            if !holds {
                return Err(OdeError::Option { name, value, requirement });
            }
        }
        Ok(())
    }
}
