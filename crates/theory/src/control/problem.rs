//! A problem of optimal control: what is minimised, over which functions of the clock, and the gradient of it.

mod flow;

use didact_math::ode::{KeptOptions, integrate_kept};
use didact_model::observable::{Observable, Snapshot};
use didact_model::training::{Course, TrainingRates};
use didact_model::{Monitor, Overlaps, Problem};
use flow::{ControlledFlow, Greedy};
use std::sync::Arc;

/// A number of the training that may be a function of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlKey {
    /// η.
    LearningRate,
    /// γ of the weight decay.
    WeightDecay,
    /// σ, the standard deviation of the label noise.
    LabelNoise,
}

impl ControlKey {
    /// Its key in a description.
    pub fn path(self) -> &'static str {
        match self {
            Self::LearningRate => "training.learning-rate",
            Self::WeightDecay => "training.constraint.weight-decay",
            Self::LabelNoise => "training.label-noise",
        }
    }

    /// The last part of the key: the name of its column.
    pub fn column(self) -> &'static str {
        self.path().rsplit('.').next().expect("a path has a last part")
    }

    /// The key of a description that it is, if it is one.
    pub fn of_path(path: &str) -> Option<Self> {
        [Self::LearningRate, Self::WeightDecay, Self::LabelNoise].into_iter().find(|key| key.path() == path)
    }
}

/// A control, its bounds and how finely it is described.
#[derive(Debug, Clone, PartialEq)]
pub struct Control {
    /// What is controlled.
    pub key: ControlKey,
    /// Smallest and largest value.
    pub bounds: (f64, f64),
    /// Intervals between knots.
    pub knots: usize,
}

/// What is made small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objective {
    /// The observable at the horizon.
    Final,
    /// Its integral from 0 to the horizon.
    Integral,
}

/// The controls as functions of the clock, in the order of [`ControlProblem::controls`].
pub type Protocol = Vec<Course>;

/// A problem of optimal control (docs/derivations/optimal-protocols.md#s1).
#[derive(Clone)]
pub struct ControlProblem<'m> {
    /// What is learned, and the keys that are not controlled.
    pub problem: Problem,
    /// Where it starts; of several starts the mean objective is minimised.
    pub starts: Vec<Overlaps>,
    /// What is observed.
    pub observable: Arc<dyn Observable>,
    /// What is made of it.
    pub objective: Objective,
    /// T, in units of the clock.
    pub horizon: f64,
    /// What may be chosen.
    pub controls: Vec<Control>,
    /// Tolerances of the integration.
    pub options: KeptOptions,
    /// Who may end a computation: once it asks for the end, objectives are infinite and gradients are none.
    pub monitor: &'m dyn Monitor,
}

/// The times α_k = T (1 − cos(πk/n))/2 of n + 1 knots: dense at both ends, where protocols bend.
pub fn knot_times(intervals: usize, horizon: f64) -> Vec<f64> {
    let n = intervals as f64;
    let mut times: Vec<f64> = (0..=intervals)
        .map(|k| 0.5 * horizon * (1.0 - (std::f64::consts::PI * k as f64 / n).cos()))
        .collect();
    (times[0], times[intervals]) = (0.0, horizon);
    times
}

/// p·f1, p·f2 and H at a time of a protocol (docs/derivations/optimal-protocols.md#eq-2), means over the starts.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Momenta {
    /// The time.
    pub time: f64,
    /// η there.
    pub rate: f64,
    /// p·f1.
    pub drift: f64,
    /// p·f2.
    pub noise: f64,
    /// H = l + η p·f1 + η² p·f2.
    pub hamiltonian: f64,
}

/// The objective of a protocol and what it does when the protocol changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Differentiated {
    /// J.
    pub value: f64,
    /// ∂J/∂x_k of every control (docs/derivations/optimal-protocols.md#eq-5).
    pub gradient: Vec<Vec<f64>>,
    /// ∫ 2 p·f2 φ_k of the learning rate: the explicit part of the second derivative, lumped; 0 for other controls.
    pub curvature: Vec<Vec<f64>>,
    /// At every knot of every control, ascending.
    pub momenta: Vec<Momenta>,
}

impl ControlProblem<'_> {
    /// The place of the learning rate among the controls.
    pub fn rate_index(&self) -> Option<usize> {
        self.controls.iter().position(|c| c.key == ControlKey::LearningRate)
    }

    /// The same problem over another time.
    pub fn with_horizon(&self, horizon: f64) -> Self {
        Self { horizon, ..self.clone() }
    }

    /// All controls constant in time.
    pub fn constant(&self, values: &[f64]) -> Protocol {
        let courses = self.controls.iter().zip(values);
        courses
            .map(|(c, v)| Course { times: knot_times(c.knots, self.horizon), values: vec![*v; c.knots + 1] })
            .collect()
    }

    /// The controls as the problem itself has them.
    pub fn given(&self) -> Protocol {
        let rate = |t: f64, key: ControlKey| {
            let rates = self.problem.training.rates_at(t);
            rates.map_or(f64::NAN, |rates| of_key(&rates, key))
        };
        let course = |c: &Control| {
            let times = knot_times(c.knots, self.horizon);
            let values = times.iter().map(|t| rate(*t, c.key)).collect();
            Course { times, values }
        };
        self.controls.iter().map(course).collect()
    }

    /// All knots of all controls, ascending.
    fn grid(&self, protocol: &[Course]) -> Vec<f64> {
        let mut grid: Vec<f64> = protocol.iter().flat_map(|course| course.times.iter().copied()).collect();
        grid.extend([0.0, self.horizon]);
        grid.extend(self.problem.training.breaks(0.0, self.horizon));
        grid.retain(|t| (0.0..=self.horizon).contains(t));
        grid.sort_by(f64::total_cmp);
        grid.dedup_by(|a, b| (*a - *b).abs() <= 1e-12 * self.horizon);
        grid
    }

    /// J of a protocol; infinite where learning diverges.
    pub fn value(&self, protocol: &[Course]) -> f64 {
        let grid = self.grid(protocol);
        let mut sum = 0.0;
        for start in &self.starts {
            let mut flow = ControlledFlow::new(self, protocol, start);
            let (state, flow_options) = (flow.start_state(start), flow.options());
            let Some(kept) = integrate_kept(&mut flow, &state, &grid, &flow_options) else {
                return f64::INFINITY;
            };
            let value = flow.objective_of(kept.last());
            if !value.is_finite() {
                return f64::INFINITY;
            }
            sum += value;
        }
        sum / self.starts.len() as f64
    }

    /// J and its derivatives; `None` where learning diverges.
    pub fn differentiate(&self, protocol: &[Course]) -> Option<Differentiated> {
        let grid = self.grid(protocol);
        let share = 1.0 / self.starts.len() as f64;
        let zeros = || protocol.iter().map(|course| vec![0.0; course.times.len()]).collect::<Vec<_>>();
        let mut all = Differentiated {
            value: 0.0,
            gradient: zeros(),
            curvature: zeros(),
            momenta: grid.iter().map(|time| Momenta { time: *time, ..Momenta::default() }).collect(),
        };
        for start in &self.starts {
            let mut flow = ControlledFlow::new(self, protocol, start);
            let (state, flow_options) = (flow.start_state(start), flow.options());
            let kept = integrate_kept(&mut flow, &state, &grid, &flow_options)?;
            let value = flow.objective_of(kept.last());
            if !value.is_finite() {
                return None;
            }
            all.value += share * value;
            let cotangents = flow.pull_back_all(&kept, share);
            for (sum, own) in all.gradient.iter_mut().zip(&flow.gradient) {
                sum.iter_mut().zip(own).for_each(|(a, b)| *a += b);
            }
            for (sum, own) in all.curvature.iter_mut().zip(&flow.curvature) {
                sum.iter_mut().zip(own).for_each(|(a, b)| *a += b);
            }
            for (index, cotangent) in cotangents {
                let (time, state) = (grid[index], &kept.states[kept.grid[index]]);
                let momenta = flow.momenta(time, state, &cotangent);
                let at = &mut all.momenta[index];
                at.rate = momenta.rate;
                at.drift += momenta.drift;
                at.noise += momenta.noise;
                at.hamiltonian += momenta.hamiltonian;
            }
        }
        // What was summed when the end was asked for is not whole.
        let whole = !self.monitor.cancelled() && all.gradient.iter().flatten().all(|g| g.is_finite());
        whole.then_some(all)
    }

    /// The states of a start at some ascending times under a protocol; `None` where learning diverges before the last.
    pub fn states(&self, protocol: &[Course], start: usize, times: &[f64]) -> Option<Vec<Overlaps>> {
        let mut grid = self.grid(protocol);
        grid.extend(times);
        grid.sort_by(f64::total_cmp);
        grid.dedup();
        let last = times.last().copied().unwrap_or(0.0);
        grid.retain(|t| *t <= last);
        let mut flow = ControlledFlow::new(self, protocol, &self.starts[start]);
        let (state, flow_options) = (flow.start_state(&self.starts[start]), flow.options());
        let kept = integrate_kept(&mut flow, &state, &grid, &flow_options)?;
        let n = flow.flow.dimension();
        let at = |t: &f64| {
            let place = grid.partition_point(|g| g < t);
            flow.flow.unpack(&kept.states[kept.grid[place]][..n])
        };
        Some(times.iter().map(at).collect())
    }

    /// The observable of a state.
    pub fn observe(&self, overlaps: &Overlaps) -> f64 {
        self.observable.measure(&Snapshot::new(overlaps, &self.problem))
    }

    /// The rate that lowers the observable fastest at a state, within bounds (docs/derivations/optimal-protocols.md#eq-4 with p = ∇ε).
    pub fn greedy_rate(&self, time: f64, overlaps: &Overlaps, bounds: (f64, f64)) -> f64 {
        let protocol = self.given();
        let mut flow = ControlledFlow::new(self, &protocol, overlaps);
        let state = flow.flow.pack(overlaps);
        let (drift, noise) = flow.greedy_products(time, &state);
        best_rate(drift, noise, bounds)
    }

    /// J along the greedy rule, a feedback η(y), and its course on the given knots; `None` where it diverges.
    pub fn greedy(&self, knots: usize) -> Option<(f64, Course)> {
        let bounds = self.rate_index().map(|i| self.controls[i].bounds)?;
        let protocol = self.given();
        let times = knot_times(knots, self.horizon);
        let (mut value, mut values) = (0.0, vec![0.0; times.len()]);
        let share = 1.0 / self.starts.len() as f64;
        for start in &self.starts {
            let mut feedback = Greedy { inner: ControlledFlow::new(self, &protocol, start), bounds };
            let state = feedback.inner.start_state(start);
            // A clipped feedback has kinks, at which an adaptive method of high order loses its order: looser steps suffice.
            let options = KeptOptions { relative: 1e-7, absolute: 1e-10, ..self.options };
            let kept = integrate_kept(&mut feedback, &state, &times, &options)?;
            value += share * feedback.inner.objective_of(kept.last());
            for (index, at) in kept.grid.iter().enumerate() {
                values[index] += share * feedback.rate(times[index], &kept.states[*at]);
            }
        }
        value.is_finite().then_some((value, Course { times, values }))
    }
}

/// The minimum of η p·f1 + η² p·f2 within bounds (docs/derivations/optimal-protocols.md#eq-4).
pub fn best_rate(drift: f64, noise: f64, (low, high): (f64, f64)) -> f64 {
    if noise > 0.0 {
        return (-drift / (2.0 * noise)).clamp(low, high);
    }
    let hamiltonian = |rate: f64| rate * drift + rate * rate * noise;
    if hamiltonian(high) < hamiltonian(low) { high } else { low }
}

/// The value of a control among the rates of a training.
pub(super) fn of_key(rates: &TrainingRates, key: ControlKey) -> f64 {
    match key {
        ControlKey::LearningRate => rates.learning_rate,
        ControlKey::WeightDecay => rates.weight_decay,
        ControlKey::LabelNoise => rates.label_noise,
    }
}
