//! The loop over steps: the same for every method.

use std::ops::ControlFlow;

use super::control::{Controller, Tolerance, first_step};
use super::events::{Lookout, Occurrence};
use super::field::{Counted, VectorField};
use super::solution::{OdeReport, Solution, Stop};
use super::stages::{Stepper, all_within};
use super::{Request, Saving};

/// Shortest step, relative to the time: below it the clock would not move by a meaningful amount.
const CLOCK_RESOLUTION: f64 = 1e-14;

/// Integrate with a given method; the request has been checked.
pub(super) fn integrate(
    stepper: &mut dyn Stepper,
    field: &mut dyn VectorField,
    request: &Request<'_>,
    watch: &mut dyn FnMut(f64) -> ControlFlow<()>,
) -> Solution {
    let mut run = Run {
        stepper,
        field: Counted::new(field),
        request,
        direction: if request.end < request.start { -1.0 } else { 1.0 },
        time: request.start,
        probe: vec![0.0; request.state.len()],
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
    let stop = run.run(watch);
    run.finish(stop)
}

struct Run<'a> {
    stepper: &'a mut dyn Stepper,
    field: Counted<'a>,
    request: &'a Request<'a>,
    /// +1 forwards, −1 backwards.
    direction: f64,
    time: f64,
    /// An interpolated state.
    probe: Vec<f64>,
    solution: Solution,
}

impl Run<'_> {
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
        let mut lookout = Lookout::new(events, start, state);
        let law = self.stepper.law();
        let mut controller = Controller::new(law);
        let tolerance = Tolerance { relative: options.relative, absolute: options.absolute };
        let largest = options.largest_step.unwrap_or(f64::INFINITY).min((end - start).abs());
        // Length of the next step as the controller wants it, before it is cut to land on a target.
        let mut wanted = options.first_step.unwrap_or_else(|| {
            let clock = (start, self.direction);
            first_step(&mut self.field, clock, state, self.stepper.slope(), law.order, (tolerance, largest))
        });
        let mut last_error = 0.0;
        loop {
            let possible = self.stepper.longest_step(&mut self.field, self.time, tolerance);
            wanted = wanted.min(largest).min(possible);
            if wanted < (CLOCK_RESOLUTION * self.time.abs()).max(f64::MIN_POSITIVE) {
                return self.underflow(wanted, last_error);
            }
            if options.step_limit.is_some_and(|limit| self.solution.report.steps >= limit) {
                return Stop::StepLimit { time: self.time };
            }
            let target = self.target();
            let distance = (target - self.time).abs();
            // Stretch by up to 1 % rather than leave a crumb for another step.
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
            if let Some(stop) = self.look_inside(&mut lookout, step, arrival) {
                return stop;
            }
            let own = self.stepper.own_factor(last_error);
            let lengthened = length * own.unwrap_or_else(|| controller.accepted(last_error));
            self.stepper.advance();
            lookout.advance();
            self.time = arrival;
            // A step cut short to land says nothing against the length that was wanted.
            wanted = if lands { lengthened.max(wanted) } else { lengthened };
            if watch(self.time).is_break() {
                return Stop::Interrupted { time: self.time };
            }
            if self.time == end {
                return Stop::ReachedEnd;
            }
        }
    }

    /// The time on which a step must not overshoot.
    fn target(&self) -> f64 {
        match self.request.options.saving {
            Saving::Dense => self.request.end,
            Saving::Landing => self.next_save().unwrap_or(self.request.end),
        }
    }

    /// Saves and events of the step just accepted; a reason to stop if a terminal event happened.
    fn look_inside(&mut self, lookout: &mut Lookout<'_>, step: f64, arrival: f64) -> Option<Stop> {
        let crossed = lookout.look(arrival, self.stepper.candidate());
        let saves_inside = self.next_save().is_some_and(|save| self.direction * (arrival - save) > 0.0);
        if crossed || saves_inside {
            self.stepper.prepare_interpolant(&mut self.field, self.time, step);
        }
        let mut stop = None;
        if crossed {
            let crossings = lookout.locate(self.stepper, self.time, step, &mut self.probe);
            for &(share, event) in crossings {
                // Where the whole step is taken, its end is known better than by multiplication.
                let time = if share == 1.0 { arrival } else { self.time + share * step };
                self.stepper.interpolate(step, share, &mut self.probe);
                self.solution.occurrences.push(Occurrence { event, time, state: self.probe.clone() });
            }
            if let Some(last) = self.solution.occurrences.last().filter(|o| lookout.is_terminal(o.event)) {
                stop = Some(Stop::Event { index: last.event, time: last.time });
            }
        }
        let until = if let Some(Stop::Event { time, .. }) = stop { time } else { arrival };
        while let Some(save) = self.next_save().filter(|save| self.direction * (until - save) >= 0.0) {
            if save == arrival {
                self.save(save, self.stepper.candidate().to_vec());
            } else {
                self.stepper.interpolate(step, (save - self.time) / step, &mut self.probe);
                self.save(save, self.probe.clone());
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

    /// Why the step fell below the resolution of the clock: a singularity, or a method that cannot cope.
    fn underflow(&self, step: f64, last_error: f64) -> Stop {
        let time = self.time;
        let largest = |v: &[f64]| v.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
        let (state, slope) = (self.stepper.state(), self.stepper.slope());
        // Near a pole at t*, a step of the resolution still changes the state by ~ step/(t* − t), which tight
        // tolerances make small but not tiny; a stiff solution on its slow manifold changes by ~ 1e-14.
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
