//! The order-parameter equations of one-pass SGD, for any rule.

use crate::flow::Flow;
use didact_math::dispatch;
use didact_math::linalg::{Mat, dot};
use didact_math::ode::{self, Direction, Method, Options, Saving, Solution, Stop, VectorField};
use didact_model::observable::Snapshot;
use didact_model::start::Setting;
use didact_model::trajectory::Replica;
use didact_model::{
    Averages, Engine, EngineError, Law, Monitor, Needed, Outcome, Overlaps, Problem, Record, Shape,
    Trajectory,
};
use rayon::prelude::*;
use std::ops::ControlFlow;

/// Products of a right-hand side below which threads cost more than they give.
pub(crate) const WORTH_THREADS: usize = 2_000_000;

/// The limit d → ∞ of the overlaps, integrated with error control.
#[derive(Debug, Clone)]
pub struct OrderParameterOde {
    /// Integrator and tolerances.
    pub options: Options,
    /// Without the term of second order in the learning rate this is gradient flow on the population loss.
    pub needed: Needed,
    /// What is done where averages have no closed form.
    pub numerical: Numerical,
}

/// How a run is integrated when its averages are sums, which cost much more than closed forms and are not exact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Numerical {
    /// With the same options as closed forms, and averages as accurate as the rule can make them.
    Precise,
    /// With this relative error, shared between integrator and averages: the integrator is given a tenth of it per step, the
    /// averages a third. The method is Adams', which needs the fewest averages, if `any_method`.
    Budget {
        /// Relative error of the run.
        error: f64,
        /// Whether the method of the options may be replaced.
        any_method: bool,
    },
}

impl Numerical {
    /// The relative error of a run where nothing is said.
    pub const USUAL_ERROR: f64 = 1e-6;
    /// The usual budget.
    pub const USUAL: Self = Self::Budget { error: Self::USUAL_ERROR, any_method: true };

    fn accuracy(self) -> Option<f64> {
        match self {
            Self::Precise => None,
            Self::Budget { error, .. } => Some(error / 3.0),
        }
    }

    /// The options of a run with numerical averages.
    fn options(self, options: &Options) -> Options {
        let Self::Budget { error, any_method } = self else { return options.clone() };
        let relative = (0.1 * error).max(options.relative);
        let mut options = Options { relative, absolute: 1e-3 * relative, ..options.clone() };
        if any_method {
            (options.method, options.saving) = (Method::Adams, Saving::Dense);
        }
        options
    }
}

impl Default for OrderParameterOde {
    /// Eighth order, relative tolerance 1e-9, steps that land on the saved times, quadratic term included.
    fn default() -> Self {
        let options = Options {
            method: Method::Dop853,
            relative: 1e-9,
            absolute: 1e-12,
            saving: Saving::Landing,
            ..Options::default()
        };
        Self { options, needed: Needed::DriftAndNoise, numerical: Numerical::USUAL }
    }
}

impl OrderParameterOde {
    /// The equations without the term of second order in the learning rate.
    pub fn gradient_flow() -> Self {
        Self { needed: Needed::Drift, ..Self::default() }
    }
}

impl OrderParameterOde {
    /// The time derivative (per unit of the clock) of the overlaps at the start of replica 0; frozen blocks are 0.
    pub fn initial_derivative(&self, problem: &Problem) -> Result<Overlaps, EngineError> {
        problem.validate()?;
        let start = problem.start.draw(&setting(problem, 0, 0))?;
        let mut flow = OverlapFlow::new(problem, &start, self.needed);
        let state = flow.layout.pack(&start);
        let mut derivative = vec![0.0; state.len()];
        flow.derivative(0.0, &state, &mut derivative);
        let p = start.shape().rows();
        let still = Overlaps::from_engine(
            start.shape(),
            vec![Mat::zeros(p, p); start.blocks.len()],
            vec![0.0; start.scalars.len()],
        );
        Ok(Layout { shape: start.shape(), start: still }.unpack(&derivative))
    }
}

fn setting(problem: &Problem, seed: u64, replica: u32) -> Setting<'_> {
    Setting {
        shape: problem.rule.shape(),
        spectrum: &problem.spectrum,
        dimension: problem.dimension,
        seed,
        replica,
    }
}

impl Engine for OrderParameterOde {
    fn name(&self) -> &'static str {
        "ode"
    }

    fn takes_infinite_dimension(&self) -> bool {
        true
    }

    fn run(
        &self,
        problem: &Problem,
        record: &Record,
        monitor: &dyn Monitor,
    ) -> Result<Trajectory, EngineError> {
        problem.validate()?;
        record.validate()?;
        self.admits(problem, record)?;
        // A start that is the same for all needs one solution only.
        let numbers = record.replica_numbers();
        let numbers = if problem.start.is_random() { numbers } else { numbers.start..numbers.start + 1 };
        let replicas = numbers.len() as u32;
        let runs: Result<Vec<(Replica, String)>, EngineError> =
            numbers.into_par_iter().map(|r| self.integrate(problem, record, r, replicas, monitor)).collect();
        let (replicas, notes): (Vec<_>, Vec<_>) = runs?.into_iter().unzip();
        Ok(Trajectory {
            engine: self.name().into(),
            clock: problem.clock,
            times: record.times.clone(),
            columns: record.observables.iter().map(|o| o.name()).collect(),
            events: record.events.iter().map(|e| e.name.clone()).collect(),
            replicas,
            notes,
        })
    }
}

impl OrderParameterOde {
    fn integrate(
        &self,
        problem: &Problem,
        record: &Record,
        replica: u32,
        replicas: u32,
        monitor: &dyn Monitor,
    ) -> Result<(Replica, String), EngineError> {
        let start = problem.start.draw(&setting(problem, record.seed, replica))?;
        let (mut flow, state) = Flow::new(problem, &start, self.needed);
        flow.set_accuracy(self.numerical.accuracy());
        let mut first = vec![0.0; state.len()];
        flow.field().derivative(0.0, &state, &mut first);
        let options =
            if flow.worst_error() > 0.0 { self.numerical.options(&self.options) } else { self.options.clone() };
        let layout = flow.layout();
        let events: Vec<ode::Event> = record
            .events
            .iter()
            .map(|event| ode::Event {
                name: event.name.clone(),
                function: Box::new(|_, state: &[f64]| {
                    let overlaps = layout.unpack(state);
                    event.excess(event.observable.measure(&Snapshot::new(&overlaps, problem)))
                }),
                direction: Direction::Rising,
                terminal: event.stops,
            })
            .collect();
        let end = record.end();
        let mut done = 0.0;
        let mut watch = |time: f64| {
            let fraction = if end > 0.0 { time / end } else { 1.0 };
            monitor.advance((fraction - done) / f64::from(replicas));
            done = fraction;
            if monitor.cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let request = ode::Request {
            start: 0.0,
            state: &state,
            end,
            save_at: &record.times,
            events: &events,
            options: &options,
        };
        let solution = ode::solve_watched(flow.field(), &request, &mut watch)?;
        let error = flow.worst_error();
        let outcome = outcome(&solution, record, replica)?;
        let measure = |state: &Vec<f64>| {
            let overlaps = layout.unpack(state);
            let snapshot = Snapshot::new(&overlaps, problem);
            record.observables.iter().map(|o| o.measure(&snapshot)).collect()
        };
        let first = |index: usize| solution.occurrences.iter().find(|o| o.event == index).map(|o| o.time);
        let mut note = format!("replica {replica}: {}", solution.report);
        if error > 0.0 {
            note = format!("{note}; Gaussian averages by quadrature, estimated error {error:.1e}");
        }
        for remark in problem.rule.warning(problem).into_iter().chain(problem.rule.invariance(&start)) {
            note = format!("{note}; {remark}");
        }
        if let Some((i, j)) = equal_rows(&start) {
            note += &format!("; rows {i} and {j} start equal, so only rounding can tell them apart");
        }
        let run = Replica {
            rows: solution.states.iter().map(measure).collect(),
            outcome,
            events: (0..record.events.len()).map(first).collect(),
            last: layout.unpack(&solution.last_state),
            weights: None,
            last_time: solution.last_time,
        };
        Ok((run, note))
    }
}

/// Two trained rows with the same overlaps in every eigenspace: the equations never break their symmetry.
fn equal_rows(start: &Overlaps) -> Option<(usize, usize)> {
    let Shape { trained: k, frozen, .. } = start.shape();
    let equal = |i: usize, j: usize| {
        start.blocks.iter().all(|g| {
            let same = g[(i, i)] == g[(j, j)] && g[(i, i)] == g[(i, j)];
            same && (k..k + frozen).all(|n| g[(i, n)] == g[(j, n)])
        })
    };
    (0..k).flat_map(|i| (0..i).map(move |j| (j, i))).find(|&(i, j)| equal(i, j))
}

fn outcome(solution: &Solution, record: &Record, replica: u32) -> Result<Outcome, EngineError> {
    match &solution.report.stop {
        Stop::ReachedEnd => Ok(Outcome::Completed),
        Stop::Event { index, time } => {
            Ok(Outcome::Stopped { by: record.events[*index].name.clone(), at: *time })
        }
        Stop::Diverged { time } => Ok(Outcome::Diverged { at: *time }),
        Stop::Interrupted { .. } => Err(EngineError::Interrupted),
        Stop::Stuck { .. } | Stop::StepLimit { .. } => {
            Err(EngineError::Stuck { replica, reason: solution.report.to_string() })
        }
    }
}

/// Where the overlaps stand in the state vector: per eigenspace R_b (row by row) and the lower triangle of Q_b, then
/// the scalars. T_b does not move and is kept aside.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    shape: Shape,
    start: Overlaps,
}

impl Layout {
    fn per_block(&self) -> usize {
        let Shape { trained: k, frozen: f, .. } = self.shape;
        k * f + k * (k + 1) / 2
    }

    pub(crate) fn dimension(&self) -> usize {
        self.start.blocks.len() * self.per_block() + self.shape.scalars
    }

    pub(crate) fn pack(&self, overlaps: &Overlaps) -> Vec<f64> {
        let mut state = vec![0.0; self.dimension()];
        for (g, part) in overlaps.blocks.iter().zip(state.chunks_exact_mut(self.per_block())) {
            self.pack_block(g, part);
        }
        let scalars = self.dimension() - self.shape.scalars;
        state[scalars..].copy_from_slice(&overlaps.scalars);
        state
    }

    fn pack_block(&self, g: &Mat, part: &mut [f64]) {
        let k = self.shape.trained;
        let mut at = 0;
        for i in 0..k {
            let width = self.shape.frozen;
            part[at..at + width].copy_from_slice(&g.row(i)[k..]);
            part[at + width..=at + width + i].copy_from_slice(&g.row(i)[..=i]);
            at += width + i + 1;
        }
    }

    /// Writes the moving entries of a block, mirrored.
    fn unpack_block(&self, part: &[f64], g: &mut Mat) {
        let Shape { trained: k, frozen: f, .. } = self.shape;
        let mut at = 0;
        for i in 0..k {
            g.row_mut(i)[k..].copy_from_slice(&part[at..at + f]);
            g.row_mut(i)[..=i].copy_from_slice(&part[at + f..=at + f + i]);
            for n in 0..f {
                g[(k + n, i)] = part[at + n];
            }
            for j in 0..i {
                g[(j, i)] = part[at + f + j];
            }
            at += f + i + 1;
        }
    }

    pub(crate) fn unpack(&self, state: &[f64]) -> Overlaps {
        let mut overlaps = self.start.clone();
        for (g, part) in overlaps.blocks.iter_mut().zip(state.chunks_exact(self.per_block())) {
            self.unpack_block(part, g);
        }
        let scalars = self.dimension() - self.shape.scalars;
        overlaps.scalars.copy_from_slice(&state[scalars..]);
        overlaps
    }
}

/// Drift of the overlaps, per eigenspace b of the input covariance, in gradient-flow time t = s x steps:
///
///   dG_b/dt = B_b G_b + G_b B_bᵀ + (s d_b/B) λ_b N,        B_b = −λ_b A − γ 1 + [0 | M T⁻¹] − diag(ν),
///   A = E[∂kick],  N = E[kick kickᵀ],  fields ~ N(0, C),  C = Σ_b λ_b G_b;  A and N vanish on frozen rows,
///   da/dt = −(s_a/s) E[∂loss/∂a], projected off a when the scalars are kept on a sphere.
///
/// The constraints are row operations: γ is weight decay; M T⁻¹, with M = Σ_b λ_b (A G_b)[·, frozen] and T the plain
/// Gram of the frozen rows, takes out motion along the frozen rows; ν_i = (d/dt |w_i|²)/(2|w_i|²) keeps lengths.
/// One eigenspace, erf units: Saad & Solla (1995).
pub(crate) struct OverlapFlow<'a> {
    problem: &'a Problem,
    needed: Needed,
    pub(crate) layout: Layout,
    blocks: Vec<Mat>,
    covariance: Mat,
    pub(crate) averages: Averages,
    /// B_b G_b of every eigenspace, trained x rows.
    motion: Vec<Mat>,
    /// T⁻¹ of the frozen rows along which motion is forbidden.
    barred: Option<Mat>,
    pub(crate) worst_error: f64,
}

impl<'a> OverlapFlow<'a> {
    pub(crate) fn new(problem: &'a Problem, start: &Overlaps, needed: Needed) -> Self {
        let shape = start.shape();
        let count = problem.training.constraint.barred(&*problem.rule);
        let plain = start.moment(&problem.spectrum, 0);
        let barred = didact_model::constraint::inverse_of_barred(count, &plain, shape.trained);
        Self {
            problem,
            needed,
            layout: Layout { shape, start: start.clone() },
            blocks: start.blocks.clone(),
            covariance: Mat::zeros(shape.rows(), shape.rows()),
            averages: Averages::new(shape),
            motion: vec![Mat::zeros(shape.trained, shape.rows()); start.blocks.len()],
            barred,
            worst_error: 0.0,
        }
    }

    /// Blocks and covariance of a state, then the averages of the rule.
    fn average(&mut self, state: &[f64]) {
        let per_block = self.layout.per_block();
        self.covariance.fill(0.0);
        for (b, (g, part)) in self.blocks.iter_mut().zip(state.chunks_exact(per_block)).enumerate() {
            self.layout.unpack_block(part, g);
            self.covariance.add_scaled(self.problem.spectrum.eigenvalues()[b], g);
        }
        let law = Law {
            covariance: &self.covariance,
            scalars: &state[self.blocks.len() * per_block..],
            label_noise: self.problem.training.label_noise,
        };
        self.problem.rule.averages(&law, self.needed, &mut self.averages);
        self.worst_error = self.worst_error.max(self.averages.error);
    }

    /// B_b G_b without the sphere: −λ_b A G_b − γ G_b + M T⁻¹ G_b[frozen, ·].
    fn move_rows(&mut self) {
        let Shape { trained: k, .. } = self.layout.shape;
        let decay = self.problem.training.constraint.weight_decay;
        let (a, p) = (self.averages.drift.as_slice(), self.layout.shape.rows());
        let one = |((g, motion), &lambda): ((&Mat, &mut Mat), &f64)| {
            drift(lambda, a, decay, g.as_slice(), motion.as_mut_slice(), p);
        };
        let eigenvalues = self.problem.spectrum.eigenvalues();
        if self.blocks.len() * k * p * p > WORTH_THREADS {
            let pairs = self.blocks.par_iter().zip(self.motion.par_iter_mut());
            pairs.zip(eigenvalues.par_iter()).for_each(one);
        } else {
            self.blocks.iter().zip(&mut self.motion).zip(eigenvalues).for_each(one);
        }
        let Some(inverse) = &self.barred else { return };
        // Motion of the rows along the frozen ones, summed over eigenspaces, is taken out again.
        let last = k + inverse.rows();
        let mut along = Mat::zeros(k, inverse.rows());
        for motion in &self.motion {
            along.add_scaled(1.0, &motion.block(0..k, k..last));
        }
        let back = along.times(inverse);
        for (g, motion) in self.blocks.iter().zip(&mut self.motion) {
            motion.add_scaled(-1.0, &back.times(&g.block(k..last, 0..p)));
        }
    }
}

dispatch! {
    /// −λ A G − γ G for the rows of A, G being P x P.
    fn drift(lambda: f64, a: &[f64], decay: f64, g: &[f64], out: &mut [f64], p: usize) {
        for (i, (a, out)) in a.chunks_exact(p).zip(out.chunks_exact_mut(p)).enumerate() {
            for (o, x) in out.iter_mut().zip(&g[i * p..]) {
                *o = -decay * x;
            }
            for (a, g) in a.iter().zip(g.chunks_exact(p)) {
                let factor = -lambda * a;
                for (o, x) in out.iter_mut().zip(g) {
                    *o = factor.mul_add(*x, *o);
                }
            }
        }
    }
}

impl VectorField for OverlapFlow<'_> {
    fn dimension(&self) -> usize {
        self.layout.dimension()
    }

    fn derivative(&mut self, _time: f64, state: &[f64], out: &mut [f64]) {
        self.average(state);
        self.move_rows();
        let Shape { trained: k, frozen: f, .. } = self.layout.shape;
        let per_clock = self.problem.flow_per_clock();
        let noisy = self.needed == Needed::DriftAndNoise;
        let spectrum = &self.problem.spectrum;
        let diffusion =
            |b: usize| if noisy { self.problem.noise_weight(b) * spectrum.eigenvalues()[b] } else { 0.0 };
        let mut shrink = vec![0.0; if self.problem.training.constraint.sphere.is_some() { k } else { 0 }];
        for (i, nu) in shrink.iter_mut().enumerate() {
            let (mut rate, mut length) = (0.0, 0.0);
            for (b, (g, motion)) in self.blocks.iter().zip(&self.motion).enumerate() {
                rate += 2.0 * motion[(i, i)] + diffusion(b) * self.averages.noise[(i, i)];
                length += g[(i, i)];
            }
            *nu = rate / (2.0 * length);
        }
        for (b, part) in out.chunks_exact_mut(self.layout.per_block()).take(self.blocks.len()).enumerate() {
            let (g, motion, diffusion) = (&self.blocks[b], &self.motion[b], diffusion(b));
            let mut at = 0;
            for i in 0..k {
                let nu = shrink.get(i).copied().unwrap_or(0.0);
                for n in k..k + f {
                    part[at] = per_clock * (motion[(i, n)] - nu * g[(i, n)]);
                    at += 1;
                }
                for j in 0..=i {
                    let both = nu + shrink.get(j).copied().unwrap_or(0.0);
                    let noise = if noisy { diffusion * self.averages.noise[(i, j)] } else { 0.0 };
                    part[at] = per_clock * (motion[(i, j)] + motion[(j, i)] - both * g[(i, j)] + noise);
                    at += 1;
                }
            }
        }
        let scalars = self.blocks.len() * self.layout.per_block();
        let (values, slopes) = (&state[scalars..], &self.averages.scalars);
        let length = dot(values, values);
        let on_sphere = self.problem.training.constraint.scalar_sphere.is_some() && length > 0.0;
        let along = if on_sphere { dot(values, slopes) / length } else { 0.0 };
        for ((o, slope), value) in out[scalars..].iter_mut().zip(slopes).zip(values) {
            *o = -per_clock * self.problem.training.scalar_ratio * (slope - along * value);
        }
    }
}
