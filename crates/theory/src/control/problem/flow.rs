//! The equations of the overlaps under a protocol, forward and transposed, and under the greedy rule.

use super::{ControlKey, ControlProblem, Momenta, Objective, best_rate};
use crate::control::split_flow::SplitFlow;
use didact_math::ode::{AdjointField, KeptOptions, KeptSteps, pull_back_kept};
use didact_model::Overlaps;
use didact_model::training::{Course, TrainingRates};

/// Relative change of the observable that the error of one step may make.
const OBSERVABLE_TOLERANCE: f64 = 1e-6;
/// What is rounding in a loss of size 1.
const ROUNDING: f64 = 1e-15;
/// What is small for other observables, which may pass through 0.
const SMALL: f64 = 1e-9;
/// Tolerance of a step where averages are sums, whose errors a smaller one would follow.
const COARSE: f64 = 1e-5;

/// The equations under a protocol; an integral objective adds its running value to the state.
pub(super) struct ControlledFlow<'a> {
    control: &'a ControlProblem<'a>,
    protocol: &'a [Course],
    pub(super) flow: SplitFlow<'a>,
    /// Whether the observable is the risk, whose gradient is known through C.
    of_loss: bool,
    f1: Vec<f64>,
    f2: Vec<f64>,
    pub(super) gradient: Vec<Vec<f64>>,
    pub(super) curvature: Vec<Vec<f64>>,
}

impl<'a> ControlledFlow<'a> {
    pub(super) fn new(control: &'a ControlProblem<'a>, protocol: &'a [Course], start: &Overlaps) -> Self {
        let flow = SplitFlow::new(&control.problem, start);
        let n = flow.dimension();
        let zeros = || protocol.iter().map(|course| vec![0.0; course.times.len()]).collect();
        Self {
            control,
            protocol,
            flow,
            of_loss: control.observable.name() == "loss",
            f1: vec![0.0; n],
            f2: vec![0.0; n],
            gradient: zeros(),
            curvature: zeros(),
        }
    }

    pub(super) fn start_state(&self, start: &Overlaps) -> Vec<f64> {
        let mut state = self.flow.pack(start);
        if self.is_integral() {
            state.push(0.0);
        }
        state
    }

    pub(super) fn objective_of(&self, last: &[f64]) -> f64 {
        if self.is_integral() { last[last.len() - 1] } else { self.observe(last) }
    }

    /// η, γ and σ at a time.
    fn rates(&self, time: f64) -> TrainingRates {
        let problem = &self.control.problem;
        let mut rates = problem.training.rates_at(time).expect("rates were checked before");
        for (control, course) in self.control.controls.iter().zip(self.protocol) {
            let value = course.value(time);
            match control.key {
                ControlKey::LearningRate => rates.learning_rate = value,
                ControlKey::WeightDecay => rates.weight_decay = value,
                ControlKey::LabelNoise => rates.label_noise = value,
            }
        }
        rates
    }

    /// Tolerances of the steps.
    pub(super) fn options(&self) -> KeptOptions {
        let given = self.control.options;
        if self.flow.closed {
            return given;
        }
        KeptOptions {
            relative: given.relative.max(COARSE),
            absolute: given.absolute.max(1e-2 * COARSE),
            ..given
        }
    }

    fn is_integral(&self) -> bool {
        self.control.objective == Objective::Integral
    }

    /// The observable of a state, without its running integral.
    pub(super) fn observe(&self, state: &[f64]) -> f64 {
        let state = &state[..self.flow.dimension()];
        if self.of_loss { self.flow.risk(state) } else { self.control.observe(&self.flow.unpack(state)) }
    }

    fn observable_gradient(&self, state: &[f64]) -> Vec<f64> {
        let state = &state[..self.flow.dimension()];
        if self.of_loss {
            return self.flow.risk_gradient(state);
        }
        self.flow.gradient_of(state, |moved| self.control.observe(&self.flow.unpack(moved)))
    }

    /// Averages, f1 and f2 at a time and state.
    fn evaluate(&mut self, time: f64, state: &[f64]) -> TrainingRates {
        let rates = self.rates(time);
        let state = &state[..self.flow.dimension()];
        self.flow.evaluate(state, rates.weight_decay, rates.label_noise);
        self.flow.parts(state, &mut self.f1, &mut self.f2);
        rates
    }

    /// The cotangents at all times of the grid, while the gradients by the knots are summed.
    pub(super) fn pull_back_all(&mut self, kept: &KeptSteps, share: f64) -> Vec<(usize, Vec<f64>)> {
        let last = kept.last();
        let mut cotangent = vec![0.0; last.len()];
        match self.control.objective {
            Objective::Final => cotangent.copy_from_slice(&self.observable_gradient(last)),
            Objective::Integral => cotangent[last.len() - 1] = 1.0,
        }
        cotangent.iter_mut().for_each(|c| *c *= share);
        let mut seen = Vec::with_capacity(kept.grid.len());
        pull_back_kept(self, kept, &cotangent, &mut |index, c| seen.push((index, c.to_vec())));
        seen
    }

    pub(super) fn momenta(&mut self, time: f64, state: &[f64], cotangent: &[f64]) -> Momenta {
        let rate = self.evaluate(time, state).learning_rate;
        let product = |f: &[f64]| f.iter().zip(cotangent).map(|(f, c)| f * c).sum::<f64>();
        let (drift, noise) = (product(&self.f1), product(&self.f2));
        let running =
            if self.is_integral() { cotangent[cotangent.len() - 1] * self.observe(state) } else { 0.0 };
        Momenta { time, rate, drift, noise, hamiltonian: running + rate * drift + rate * rate * noise }
    }

    /// ∇ε·f1 and ∇ε·f2.
    pub(super) fn greedy_products(&mut self, time: f64, state: &[f64]) -> (f64, f64) {
        self.evaluate(time, state);
        let gradient = self.observable_gradient(state);
        let product = |f: &[f64]| f.iter().zip(&gradient).map(|(f, c)| f * c).sum::<f64>();
        (product(&self.f1), product(&self.f2))
    }
}

impl AdjointField for ControlledFlow<'_> {
    fn dimension(&self) -> usize {
        self.flow.dimension() + usize::from(self.is_integral())
    }

    fn derivative(&mut self, time: f64, state: &[f64], out: &mut [f64]) {
        if self.control.monitor.cancelled() {
            // An integration that is not wanted any more ends as one that diverges does.
            out.fill(f64::NAN);
            return;
        }
        let rate = self.evaluate(time, state).learning_rate;
        for ((o, f1), f2) in out.iter_mut().zip(&self.f1).zip(&self.f2) {
            *o = rate * f1 + rate * rate * f2;
        }
        if self.is_integral() {
            out[state.len() - 1] = self.observe(state);
        }
    }

    fn pull_back(&mut self, time: f64, state: &[f64], cotangent: &[f64], out: &mut [f64]) {
        if self.control.monitor.cancelled() {
            return;
        }
        let rates = self.evaluate(time, state);
        let (rate, n) = (rates.learning_rate, self.flow.dimension());
        let product = |f: &[f64]| f.iter().zip(cotangent).map(|(f, c)| f * c).sum::<f64>();
        let (drift, noise) = (product(&self.f1), product(&self.f2));
        let controls = &self.control.controls;
        let noisy = controls.iter().any(|c| c.key == ControlKey::LabelNoise);
        let slopes = self.flow.pull_back(&state[..n], rate, &cotangent[..n], &mut out[..n], noisy);
        if self.is_integral() {
            let weight = cotangent[n];
            let gradient = self.observable_gradient(state);
            out[..n].iter_mut().zip(gradient).for_each(|(o, g)| *o += weight * g);
        }
        for (index, (control, course)) in controls.iter().zip(self.protocol).enumerate() {
            let (slope, curvature) = match control.key {
                ControlKey::LearningRate => (drift + 2.0 * rate * noise, 2.0 * noise),
                ControlKey::WeightDecay => (slopes.decay, 0.0),
                ControlKey::LabelNoise => (slopes.noise, 0.0),
            };
            let (k, share) = course.place(time);
            self.gradient[index][k] += (1.0 - share) * slope;
            self.curvature[index][k] += (1.0 - share) * curvature;
            if share > 0.0 {
                self.gradient[index][k + 1] += share * slope;
                self.curvature[index][k + 1] += share * curvature;
            }
        }
    }

    fn excess(&mut self, fifth: &[f64], fourth: &[f64]) -> f64 {
        if !self.flow.closed {
            return 0.0;
        }
        let (value, other) = (self.observe(fifth), self.observe(fourth));
        let floor = if self.of_loss { ROUNDING } else { SMALL };
        (value - other).abs() / (OBSERVABLE_TOLERANCE * value.abs() + floor)
    }
}

/// The equations under the greedy rule.
pub(super) struct Greedy<'a> {
    pub(super) inner: ControlledFlow<'a>,
    pub(super) bounds: (f64, f64),
}

impl Greedy<'_> {
    pub(super) fn rate(&mut self, time: f64, state: &[f64]) -> f64 {
        let (drift, noise) = self.inner.greedy_products(time, state);
        best_rate(drift, noise, self.bounds)
    }
}

impl AdjointField for Greedy<'_> {
    fn dimension(&self) -> usize {
        self.inner.dimension()
    }

    fn derivative(&mut self, time: f64, state: &[f64], out: &mut [f64]) {
        if self.inner.control.monitor.cancelled() {
            out.fill(f64::NAN);
            return;
        }
        let rate = self.rate(time, state);
        for ((o, f1), f2) in out.iter_mut().zip(&self.inner.f1).zip(&self.inner.f2) {
            *o = rate * f1 + rate * rate * f2;
        }
        if self.inner.is_integral() {
            out[state.len() - 1] = self.inner.observe(state);
        }
    }

    fn pull_back(&mut self, _time: f64, _state: &[f64], _cotangent: &[f64], _out: &mut [f64]) {
        unreachable!("a baseline is not differentiated");
    }
}
