//! The loop over steps, which is the same for every method: step control, saved states, events and reasons to stop.

use std::ops::ControlFlow;

use super::control::{Controller, Tolerance, first_step};
use super::events::{EventDetector, Occurrence};
use super::field::{Counted, VectorField};
use super::solution::{OdeReport, Solution, Stop};
use super::stages::{Stepper, all_within};
use super::{Request, Saving};

/// Shortest step, relative to |t|: a shorter one would be lost in the rounding of the time.
const TIME_RESOLUTION: f64 = 1e-14;

/// Integrates with a given method. The caller has checked the request.
pub(super) fn integrate(
    stepper: &mut dyn Stepper,
    field: &mut dyn VectorField,
    request: &Request<'_>,
    watch: &mut dyn FnMut(f64) -> ControlFlow<()>,
) -> Solution {
    let mut integration = Integration {
        stepper,
        field: Counted::new(field),
        request,
        direction: if request.end < request.start { -1.0 } else { 1.0 },
        time: request.start,
        interpolated: vec![0.0; request.state.len()],
        solution: Solution {
            times: Vec::with_capacity(request.save_at.len()),
            states: Vec::with_capacity(request.save_at.len()),
            occurrences: Vec::new(),
            last_time: request.start,
            last_state: request.state.to_vec(),
            report: OdeReport {
                steps: 0,
                rejected: 0,
                evaluations: 0,
                jacobians: 0,
                factorisations: 0,
                stop: Stop::ReachedEnd,
            },
        },
    };
    let stop = integration.run(watch);
    integration.finish(stop)
}

/// An integration in progress.
struct Integration<'a> {
    stepper: &'a mut dyn Stepper,
    field: Counted<'a>,
    request: &'a Request<'a>,
    /// +1 forwards, −1 backwards.
    direction: f64,
    time: f64,
    /// Buffer for an interpolated state.
    interpolated: Vec<f64>,
    solution: Solution,
}

impl Integration<'_> {
    fn run(&mut self, watch: &mut dyn FnMut(f64) -> ControlFlow<()>) -> Stop {
        let Request { start, state, end, options, events, .. } = *self.request;
        while self.next_save() == Some(start) {
            self.save(start, state.to_vec());
        }
        if start == end {
            return Stop::ReachedEnd;
        }
        if !self.stepper.begin(&mut self.field, start, state) {
            return Stop::Diverged { time: start };
        }
        let mut detector = EventDetector::new(events, start, state);
        let step_control = self.stepper.step_control();
        let mut controller = Controller::new(step_control);
        let tolerance = Tolerance { relative: options.relative, absolute: options.absolute };
        let largest = options.largest_step.unwrap_or(f64::INFINITY).min((end - start).abs());
        // Length of the next step as the controller chose it, before it is shortened to end on a target time.
        let mut wanted = options.first_step.unwrap_or_else(|| {
            let from = (start, self.direction);
            first_step(
                &mut self.field,
                from,
                state,
                self.stepper.slope(),
                step_control.order,
                (tolerance, largest),
            )
        });
        let mut last_error = 0.0;
        loop {
            let possible = self.stepper.longest_step(&mut self.field, self.time, tolerance);
            wanted = wanted.min(largest).min(possible);
            if wanted < (TIME_RESOLUTION * self.time.abs()).max(f64::MIN_POSITIVE) {
                return self.underflow(wanted, last_error);
            }
            if options.step_limit.is_some_and(|limit| self.solution.report.steps >= limit) {
                return Stop::StepLimit { time: self.time };
            }
            let target = self.target();
            let distance = (target - self.time).abs();
            // The step is lengthened by up to 1 % rather than leave a tiny remainder for another step.
            let lands = 1.01 * wanted >= distance;
            let length = if lands { distance } else { wanted };
            let step = self.direction * length;

            last_error = self.stepper.attempt(&mut self.field, self.time, step, tolerance);
            if last_error > 1.0 {
                self.solution.report.rejected += 1;
                let own = self.stepper.own_factor(last_error);
                wanted = length * own.unwrap_or_else(|| controller.rejected(last_error));
                continue;
            }
            self.solution.report.steps += 1;
            let arrival = if lands { target } else { self.time + step };
            if !all_within(self.stepper.candidate(), options.state_limit) {
                return Stop::Diverged { time: arrival };
            }
            if let Some(stop) = self.save_and_detect_events(&mut detector, step, arrival) {
                return stop;
            }
            let own = self.stepper.own_factor(last_error);
            let lengthened = length * own.unwrap_or_else(|| controller.accepted(last_error));
            self.stepper.advance();
            detector.advance();
            self.time = arrival;
            // A step that was shortened to end on a target does not reduce the length that the controller chose.
            wanted = if lands { lengthened.max(wanted) } else { lengthened };
            if watch(self.time).is_break() {
                return Stop::Interrupted { time: self.time };
            }
            if self.time == end {
                return Stop::ReachedEnd;
            }
        }
    }

    /// The time that the next step must not pass.
    fn target(&self) -> f64 {
        match self.request.options.saving {
            Saving::Dense => self.request.end,
            Saving::Landing => self.next_save().unwrap_or(self.request.end),
        }
    }

    /// Saves states and locates events within the accepted step. Returns the reason to stop if a terminal event happened.
    fn save_and_detect_events(
        &mut self,
        detector: &mut EventDetector<'_>,
        step: f64,
        arrival: f64,
    ) -> Option<Stop> {
        let crossed = detector.evaluate(arrival, self.stepper.candidate());
        let saves_inside = self.next_save().is_some_and(|save| self.direction * (arrival - save) > 0.0);
        if crossed || saves_inside {
            self.stepper.prepare_interpolant(&mut self.field, self.time, step);
        }
        let mut stop = None;
        if crossed {
            let crossings = detector.locate(self.stepper, self.time, step, &mut self.interpolated);
            for &(share, event) in crossings {
                // At the end of the step `arrival` is exact, whereas time + share · step is rounded.
                let time = if share == 1.0 { arrival } else { self.time + share * step };
                self.stepper.interpolate(step, share, &mut self.interpolated);
                self.solution.occurrences.push(Occurrence { event, time, state: self.interpolated.clone() });
            }
            if let Some(last) = self.solution.occurrences.last().filter(|o| detector.is_terminal(o.event)) {
                stop = Some(Stop::Event { index: last.event, time: last.time });
            }
        }
        let until = if let Some(Stop::Event { time, .. }) = stop { time } else { arrival };
        while let Some(save) = self.next_save().filter(|save| self.direction * (until - save) >= 0.0) {
            if save == arrival {
                self.save(save, self.stepper.candidate().to_vec());
            } else {
                self.stepper.interpolate(step, (save - self.time) / step, &mut self.interpolated);
                self.save(save, self.interpolated.clone());
            }
        }
        stop
    }

    fn next_save(&self) -> Option<f64> {
        self.request.save_at.get(self.solution.times.len()).copied()
    }

    fn save(&mut self, time: f64, state: Vec<f64>) {
        self.solution.times.push(time);
        self.solution.states.push(state);
    }

    /// Decides why the step fell below the resolution of the time: the solution has a singularity, or the method is
    /// unsuitable for the field.
    fn underflow(&self, step: f64, last_error: f64) -> Stop {
        let time = self.time;
        let largest = |v: &[f64]| v.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
        let (state, slope) = (self.stepper.state(), self.stepper.slope());
        // Near a pole at t*, a step of this length still changes the state by a fraction of about step/(t* − t), which is
        // small at tight tolerances but far above rounding. A stiff solution on its slow manifold changes by a fraction of about 1e-14.
        let outwards: f64 = state.iter().zip(slope).map(|(y, f)| y * f * self.direction).sum();
        let growth = largest(slope) * step / largest(state);
        if last_error.is_infinite() || (outwards > 0.0 && growth > 1e-6) {
            Stop::Diverged { time }
        } else {
            Stop::Stuck { time, step, hint: self.stepper.hint() }
        }
    }

    fn finish(self, stop: Stop) -> Solution {
        let mut solution = self.solution;
        if let Stop::Event { time, .. } = stop {
            solution.last_time = time;
            if let Some(last) = solution.occurrences.last() {
                solution.last_state.clone_from(&last.state);
            }
        } else {
            solution.last_time = self.time;
            if solution.report.steps > 0 {
                solution.last_state.copy_from_slice(self.stepper.state());
            }
        }
        solution.report.evaluations = self.field.evaluations;
        solution.report.jacobians = self.field.jacobians;
        solution.report.factorisations = self.field.factorisations;
        solution.report.stop = stop;
        solution
    }
}
