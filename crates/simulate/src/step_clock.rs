//! The time of every step, and the rates of training at that time.

use didact_model::training::{StepScaling, Training, TrainingError, TrainingRates};
use didact_model::{Clock, Problem, Record};

/// Counts steps and tells the time of the clock at their beginning: step k uses the rates at t_k.
///
/// Times are even unless the clock is that of gradient flow and the rate varies; then t_{k+1} = t_k + s(t_k)/(1 − β(t_k))
/// (docs/derivations/training-rules.md#s4).
#[derive(Debug, Clone)]
pub(crate) struct StepClock {
    training: Training,
    /// s/η.
    step_per_rate: f64,
    begin: f64,
    /// Steps per unit of an even clock, flow time per unit of the clock otherwise.
    pace: f64,
    uneven: bool,
    step: u64,
    /// Time since the beginning, of an uneven clock.
    passed: f64,
    /// The rates, where they never change.
    fixed: Option<TrainingRates>,
}

impl StepClock {
    /// At the first step of a stage that begins at a time of the whole run.
    pub(crate) fn new(problem: &Problem, dimension: u64, begin: f64) -> Self {
        let training = problem.training.simplified();
        let flows = matches!(problem.clock, Clock::Flow | Clock::FlowPerUnit);
        let uneven = flows && training.has_uneven_flow();
        let step_per_rate = match training.scaling {
            StepScaling::PerDimension => 1.0 / dimension as f64,
            StepScaling::Plain => 1.0,
            StepScaling::Power(power) => (dimension as f64).powf(-power),
        };
        let varies = !training.schedule.is_constant()
            || !training.label_noise_schedule.is_constant()
            || !training.weight_decay_schedule.is_constant()
            || training.momentum.as_ref().is_some_and(|m| m.value.varies())
            || training.drift.as_ref().is_some_and(|d| !d.schedule.is_constant());
        Self {
            fixed: if varies { None } else { training.rates_at(begin).ok() },
            step_per_rate,
            begin,
            pace: if uneven { problem.flow_per_clock() } else { problem.steps_per_clock(dimension) },
            uneven,
            step: 0,
            passed: 0.0,
            training,
        }
    }

    /// s/η.
    pub(crate) fn step_per_rate(&self) -> f64 {
        self.step_per_rate
    }

    /// Steps done.
    pub(crate) fn step(&self) -> u64 {
        self.step
    }

    /// Time since the beginning of the stage.
    pub(crate) fn time(&self) -> f64 {
        if self.uneven { self.passed } else { self.step as f64 / self.pace }
    }

    /// The rates of the step that begins now.
    pub(crate) fn rates(&self) -> Result<TrainingRates, TrainingError> {
        match self.fixed {
            Some(rates) => Ok(rates),
            None => self.training.rates_at(self.begin + self.time()),
        }
    }

    /// Counts a step that was made with these rates.
    pub(crate) fn count(&mut self, rates: &TrainingRates) {
        self.step += 1;
        if self.uneven {
            let step = self.step_per_rate * rates.learning_rate;
            self.passed += step * self.training.effective_factor(rates.momentum) / self.pace;
        }
    }

    /// The numbers of steps after which increasing times are reached.
    pub(crate) fn steps_at(mut self, times: &[f64]) -> Result<Vec<u64>, TrainingError> {
        if !self.uneven {
            return Ok(times.iter().map(|t| (t * self.pace).round() as u64).collect());
        }
        let mut steps = Vec::with_capacity(times.len());
        for &time in times {
            let mut before = self.passed;
            while self.passed < time {
                before = self.passed;
                let rates = self.rates()?;
                if rates.learning_rate == 0.0 {
                    return Err(TrainingError::FlowStandsStill);
                }
                self.count(&rates);
            }
            // The nearer of the two steps around the time.
            let earlier = self.step > 0 && time - before < self.passed - time;
            steps.push(self.step - u64::from(earlier));
        }
        Ok(steps)
    }

    /// Steps between two looks that are this far apart, in a run of so many steps over a record.
    pub(crate) fn steps_in(&self, time: f64, end: u64, record: &Record) -> u64 {
        let steps = if self.uneven { time * end as f64 / record.end() } else { time * self.pace };
        (steps as u64).max(1)
    }

    /// Moves on to a later step.
    pub(crate) fn advance_to(&mut self, step: u64) {
        if !self.uneven {
            self.step = step;
            return;
        }
        while self.step < step {
            match self.rates() {
                Ok(rates) => self.count(&rates),
                Err(_) => self.step = step,
            }
        }
    }
}
