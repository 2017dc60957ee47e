//! The equations of the overlaps for every way of training that is not plain descent at a constant rate.

use super::{OrderParameterOde, equal_rows, outcome, statistics};
use didact_math::linalg::{Mat, dot};
use didact_math::ode::{self, Direction, Saving, Stop, VectorField};
use didact_model::constraint::inverse_of_barred;
use didact_model::observable::Snapshot;
use didact_model::problem::ProblemError;
use didact_model::training::{
    Adam, GradientMap, MomentumScale, TrainedAverages, Training, TrainingError, TrainingRates,
};
use didact_model::{
    Averages, Clock, EngineError, Law, Monitor, Needed, Overlaps, Problem, Record, Recorder, Shape,
    Statistics, Velocities, Way,
};
use std::f64::consts::FRAC_2_PI;
use std::ops::ControlFlow;

/// What the limit does not have although the engine runs the way of training.
pub(super) fn admits(problem: &Problem, record: &Record) -> Result<(), EngineError> {
    let training = problem.training.simplified();
    if training.gradient.acts_by_coordinate() && training.batch > 1 && training.gradient == GradientMap::Sign
    {
        return Err(EngineError::Training {
            engine: "ode",
            way: Way::Sign,
            reason: "take the sign of a batch: signs have a limit for one sample per step only",
            instead: "use batch = 1, or \"direct\"",
        });
    }
    let vanish = training.momentum.as_ref().is_none_or(|m| m.scale == MomentumScale::Beta);
    if record.needs_velocities() && vanish {
        let why = Some("at fixed beta they vanish in the limit; use \"rate\", \"reduced\" or \"direct\"");
        return Err(EngineError::NoVelocities { engine: "ode", why });
    }
    Ok(())
}

/// Where everything stands in the state vector: per eigenspace the lower triangle of the Gram of (w, v, p), then the scalars, their
/// velocities, the running means of squared kicks, and alpha where those need it.
#[derive(Debug, Clone)]
struct WaysLayout {
    shape: Shape,
    eigenspaces: usize,
    /// Whether velocities are part of the state.
    moving: bool,
    /// Whether running means of squared kicks are.
    squares: bool,
}

impl WaysLayout {
    /// Rows of a Gram.
    fn rows(&self) -> usize {
        self.shape.rows() + if self.moving { self.shape.trained } else { 0 }
    }

    fn per_block(&self) -> usize {
        self.rows() * (self.rows() + 1) / 2
    }

    fn scalars(&self) -> usize {
        self.eigenspaces * self.per_block()
    }

    fn scalar_velocities(&self) -> usize {
        self.scalars() + self.shape.scalars
    }

    fn squares(&self) -> usize {
        self.scalar_velocities() + if self.moving { self.shape.scalars } else { 0 }
    }

    fn dimension(&self) -> usize {
        self.squares() + if self.squares { self.shape.trained + 1 } else { 0 }
    }

    fn unpack_block(&self, part: &[f64], gram: &mut Mat) {
        let mut entries = part.iter();
        for i in 0..self.rows() {
            for j in 0..=i {
                let value = *entries.next().expect("a triangle of entries");
                gram[(i, j)] = value;
                gram[(j, i)] = value;
            }
        }
    }

    fn unpack(&self, state: &[f64]) -> Overlaps {
        let (k, p, rows) = (self.shape.trained, self.shape.rows(), self.rows());
        let mut grams = vec![Mat::zeros(rows, rows); self.eigenspaces];
        for (gram, part) in grams.iter_mut().zip(state.chunks_exact(self.per_block())) {
            self.unpack_block(part, gram);
        }
        let blocks = grams.iter().map(|gram| gram.block(0..p, 0..p)).collect();
        let scalars = state[self.scalars()..self.scalar_velocities()].to_vec();
        let overlaps = Overlaps::from_engine(self.shape, blocks, scalars);
        if !(self.moving || self.squares) {
            return overlaps;
        }
        let velocities = if self.moving {
            grams.iter().map(|gram| gram.block(p..p + k, 0..p + k)).collect()
        } else {
            Vec::new()
        };
        overlaps.with_velocities(Velocities {
            blocks: velocities,
            scalars: state[self.scalar_velocities()..self.squares()].to_vec(),
            squares: if self.squares {
                state[self.squares()..self.squares() + k].to_vec()
            } else {
                Vec::new()
            },
        })
    }
}

/// Drift of the overlaps of X = (w, v, p) per unit of alpha = steps/d (docs/derivations/training-rules.md#eq-2),
///
///   dG_b = B_b G_b + G_b B_bᵀ + w_b λ_b D N Dᵀ/B,      B_b = m − λ_b D A,
///
/// with A = E[∂kick/∂h] and N = E[kick kickᵀ] of the kick as it moves the rows: clipped, masked, at noisy fields. Rows of m and D:
///
/// - plain and fixed β: D = e on w, m = −e κ, e = s d/(1 − β) (docs/derivations/training-rules.md#s3-beta);
/// - 1 − β = γ/d: w moves by p, D = γ e on p, m = −γ on p and −γ e κ on w (docs/derivations/training-rules.md#eq-6);
/// - drifting teachers: −ν on v, fed by 2ν T_b, and the rotation Ω (docs/derivations/training-rules.md#s7);
/// - signs and Adam: √(2λ_b/π) and √λ_b in place of λ_b in the drift, 1 in the noise (docs/derivations/training-rules.md#s6);
/// - noisy inputs: λ_b + ς² between rows of the student (docs/derivations/training-rules.md#s8).
struct WaysFlow<'a> {
    problem: &'a Problem,
    training: Training,
    needed: Needed,
    layout: WaysLayout,
    /// Time of the run at which this stage begins.
    begin: f64,
    /// Times of the stage between which no rate has a kink or jump, open ends.
    window: (f64, f64),
    /// Averages of the kick as it moves the rows.
    trained: TrainedAverages,
    averages: Averages,
    covariance: Mat,
    grams: Vec<Mat>,
    motion: Vec<Mat>,
    /// T_b at the start, where teachers diffuse.
    teachers: Vec<Mat>,
    /// T⁻¹ of the frozen rows along which motion is forbidden.
    barred: Option<Mat>,
    /// Which eigenspaces are trained: the others have B_b = 0 on the student's rows, and no noise.
    trained_spaces: Vec<bool>,
    /// Whether running means of squares go on from an earlier stage.
    continued: bool,
    worst_error: f64,
    fault: Option<TrainingError>,
}

impl<'a> WaysFlow<'a> {
    fn new(problem: &'a Problem, start: &Overlaps, needed: Needed, begin: f64) -> (Self, Vec<f64>) {
        let training = problem.training.simplified();
        let shape = start.shape();
        let moving = training.momentum.as_ref().is_some_and(|m| m.scale == MomentumScale::Rate);
        let squares = matches!(training.gradient, GradientMap::Adam(_));
        let layout = WaysLayout { shape, eigenspaces: start.blocks.len(), moving, squares };
        let plain = start.moment(&problem.spectrum, 0);
        let count = training.constraint.barred(&*problem.rule);
        let kept = start.velocities.as_ref().map_or(&[][..], |v| &v.squares);
        let rows = layout.rows();
        let mut flow = Self {
            problem,
            needed,
            begin,
            window: (f64::NEG_INFINITY, f64::INFINITY),
            trained: TrainedAverages::new(&problem.rule, &training),
            averages: Averages::new(shape),
            covariance: Mat::zeros(shape.rows(), shape.rows()),
            grams: vec![Mat::zeros(rows, rows); start.blocks.len()],
            motion: vec![Mat::zeros(rows, rows); start.blocks.len()],
            teachers: start.blocks.clone(),
            barred: inverse_of_barred(count, &plain, shape.trained),
            trained_spaces: training.trained_eigenspaces(&problem.spectrum),
            continued: !kept.is_empty(),
            worst_error: 0.0,
            fault: None,
            training,
            layout,
        };
        let state = flow.start_state(start);
        (flow, state)
    }

    fn start_state(&mut self, start: &Overlaps) -> Vec<f64> {
        let mut state = Vec::with_capacity(self.layout.dimension());
        for b in 0..self.layout.eigenspaces {
            let gram = start.with_moving_rows(b);
            for i in 0..self.layout.rows() {
                state.extend_from_slice(&gram.row(i)[..=i]);
            }
        }
        state.extend_from_slice(&start.scalars);
        let velocities = start.velocities.clone().unwrap_or_default();
        if self.layout.moving {
            let mut scalars = velocities.scalars;
            scalars.resize(start.scalars.len(), 0.0);
            state.extend(scalars);
        }
        if self.layout.squares {
            let k = self.layout.shape.trained;
            if self.continued {
                state.extend_from_slice(&velocities.squares);
            } else {
                // The mean of squares starts at that of the first kicks: so does the corrected one of a simulation.
                state.resize(self.layout.squares() + k + 1, 0.0);
                if let Ok(rates) = self.training.rates_at(self.begin) {
                    self.average(&state, &rates);
                }
                state.truncate(self.layout.squares());
                let batch = self.training.batch as f64;
                state.extend((0..k).map(|i| self.averages.noise[(i, i)] / batch));
            }
            state.push(0.0);
        }
        state
    }

    /// The error of the last averages relative to the largest of them.
    fn relative_error(&self) -> f64 {
        let size = self.averages.drift.max_abs().max(self.averages.noise.max_abs());
        if size > 0.0 { self.averages.error / size } else { 0.0 }
    }

    /// Rows of the student: they read noisy inputs.
    fn is_student(&self, row: usize) -> bool {
        let Shape { trained, frozen, own_frozen, .. } = self.layout.shape;
        row < trained + own_frozen || row >= trained + frozen
    }

    /// Grams and covariance of the fields, then the averages of the kick.
    fn average(&mut self, state: &[f64], rates: &TrainingRates) {
        let p = self.layout.shape.rows();
        let extra = self.training.input_noise * self.training.input_noise;
        self.covariance.fill(0.0);
        for (b, part) in state.chunks_exact(self.layout.per_block()).take(self.layout.eigenspaces).enumerate()
        {
            self.layout.unpack_block(part, &mut self.grams[b]);
            let lambda = self.problem.spectrum.eigenvalues()[b];
            for i in 0..p {
                for j in 0..p {
                    let noisy = self.is_student(i) && self.is_student(j);
                    let weight = if noisy { lambda + extra } else { lambda };
                    self.covariance[(i, j)] += weight * self.grams[b][(i, j)];
                }
            }
        }
        let law = Law {
            covariance: &self.covariance,
            scalars: &state[self.layout.scalars()..self.layout.scalar_velocities()],
            label_noise: rates.label_noise,
        };
        let needed = if self.layout.squares { Needed::DriftAndNoise } else { self.needed };
        let trace = self.problem.spectrum.moment(1) + extra;
        self.trained.fill(&law, trace, needed, &mut self.averages);
        self.worst_error = self.worst_error.max(self.averages.error);
    }

    /// What multiplies A in eigenspace b, for column j: the covariance of the input with what the row moves along.
    fn response(&self, lambda: f64, column: usize) -> f64 {
        match self.training.gradient {
            GradientMap::Sign => (FRAC_2_PI * lambda).sqrt(),
            GradientMap::Adam(_) => lambda.sqrt(),
            _ if self.is_student(column) => lambda + self.training.input_noise * self.training.input_noise,
            _ => lambda,
        }
    }

    /// s d of now, and what the flow clock counts per alpha.
    fn speed(&self, rates: &TrainingRates) -> (f64, f64) {
        let e = self.problem.step_times_dimension() * (rates.learning_rate / self.training.learning_rate);
        let effective = e * self.training.effective_factor(rates.momentum);
        (if self.layout.moving { e } else { effective }, effective)
    }

    fn alpha_per_clock(&self, flow: f64) -> f64 {
        match self.problem.clock {
            Clock::Alpha => 1.0,
            Clock::Steps => 1.0 / self.problem.dimension.unwrap_or(u64::MAX) as f64,
            Clock::Flow => 1.0 / flow,
            Clock::FlowPerUnit => self.layout.shape.trained as f64 / flow,
        }
    }

    /// B_b G_b of all rows.
    fn move_rows(&mut self, rates: &TrainingRates, gain: f64, roots: &[f64]) {
        let Shape { trained: k, frozen, own_frozen, .. } = self.layout.shape;
        let (p, rows) = (self.layout.shape.rows(), self.layout.rows());
        // Kicks move the velocities where there are any, the rows themselves otherwise.
        let first = if self.layout.moving { p } else { 0 };
        let mut along = self.barred.as_ref().map(|inverse| Mat::zeros(k, inverse.rows()));
        for b in 0..self.grams.len() {
            let lambda = self.problem.spectrum.eigenvalues()[b];
            let factors: Vec<f64> = (0..p).map(|j| self.response(lambda, j)).collect();
            let (gram, motion) = (&self.grams[b], &mut self.motion[b]);
            motion.fill(0.0);
            if !self.trained_spaces[b] {
                continue;
            }
            for i in 0..k {
                for (j, factor) in factors.iter().enumerate() {
                    let c = -gain * factor * self.averages.drift[(i, j)] / roots[i];
                    for (m, g) in motion.row_mut(first + i).iter_mut().zip(gram.row(j)) {
                        *m += c * g;
                    }
                }
            }
            if let Some(along) = &mut along {
                let barred = along.cols();
                along.add_scaled(1.0, &motion.block(first..first + k, k..k + barred));
            }
        }
        let back = along.zip(self.barred.as_ref()).map(|(along, inverse)| along.times(inverse));
        let decay = gain * rates.weight_decay;
        let drift = self.training.drift.as_ref();
        let nu = drift.map_or(0.0, |drift| drift.rate * rates.drift);
        for ((gram, motion), trained) in self.grams.iter().zip(&mut self.motion).zip(&self.trained_spaces) {
            let mut add = |row: usize, factor: f64, of: usize| {
                for (m, g) in motion.row_mut(row).iter_mut().zip(gram.row(of)) {
                    *m += factor * g;
                }
            };
            for i in (0..k).filter(|_| *trained) {
                if let Some(back) = &back {
                    (0..back.cols()).for_each(|n| add(first + i, -back[(i, n)], k + n));
                }
                if decay != 0.0 {
                    add(first + i, -decay, i);
                }
                if self.layout.moving {
                    add(i, 1.0, p + i);
                    add(p + i, -rates.momentum, p + i);
                }
            }
            for n in own_frozen..frozen {
                if nu != 0.0 {
                    add(k + n, -nu, k + n);
                }
            }
            if let Some(omega) = drift.and_then(|drift| drift.rotation.as_ref()) {
                for n in 0..frozen {
                    for m in 0..frozen {
                        add(k + n, rates.drift * omega[(n, m)], k + m);
                    }
                }
            }
        }
        debug_assert_eq!(self.motion.first().map_or(rows, Mat::rows), rows);
    }
}

impl VectorField for WaysFlow<'_> {
    fn dimension(&self) -> usize {
        self.layout.dimension()
    }

    fn derivative(&mut self, time: f64, state: &[f64], out: &mut [f64]) {
        let rates = match self.training.rates_at(self.begin + time.clamp(self.window.0, self.window.1)) {
            Ok(rates) => rates,
            Err(fault) => {
                self.fault.get_or_insert(fault);
                out.fill(f64::NAN);
                return;
            }
        };
        self.average(state, &rates);
        let Shape { trained: k, frozen, own_frozen, .. } = self.layout.shape;
        let (p, rows) = (self.layout.shape.rows(), self.layout.rows());
        let moving = self.layout.moving;
        let (speed, flow) = self.speed(&rates);
        let gain = if moving { rates.momentum * speed } else { speed };
        // A kick that begins at 0 (a scalar in front of it does) grows with its mean of squares: ε keeps the quotient finite meanwhile.
        let roots: Vec<f64> = if self.layout.squares {
            let squares = &state[self.layout.squares()..][..k];
            squares.iter().map(|v| v.max(0.0).sqrt() + Adam::EPSILON).collect()
        } else {
            vec![1.0; k]
        };
        self.move_rows(&rates, gain, &roots);
        let per_clock = self.alpha_per_clock(flow);
        let noisy = self.needed == Needed::DriftAndNoise;
        let first = if moving { p } else { 0 };
        let spectrum = &self.problem.spectrum;
        let diffusion = |b: usize, i: usize, j: usize| {
            if !noisy || !self.trained_spaces[b] {
                return 0.0;
            }
            let own = match self.training.gradient {
                GradientMap::Sign | GradientMap::Adam(_) => 1.0,
                _ => spectrum.eigenvalues()[b] + self.training.input_noise * self.training.input_noise,
            };
            let weight = gain * gain * spectrum.weights()[b] / self.training.batch as f64;
            weight * own * self.averages.noise[(i, j)] / (roots[i] * roots[j])
        };
        let mut shrink = vec![0.0; rows];
        if self.training.constraint.sphere.is_some() {
            for (i, nu) in shrink.iter_mut().enumerate().take(k) {
                let (mut rate, mut length) = (0.0, 0.0);
                for (b, (gram, motion)) in self.grams.iter().zip(&self.motion).enumerate() {
                    rate += 2.0 * motion[(i, i)] + if moving { 0.0 } else { diffusion(b, i, i) };
                    length += gram[(i, i)];
                }
                *nu = rate / (2.0 * length);
            }
        }
        let nu = self.training.drift.as_ref().map_or(0.0, |drift| drift.rate * rates.drift);
        let drifting = |row: usize| row >= k + own_frozen && row < k + frozen;
        for (b, part) in out.chunks_exact_mut(self.layout.per_block()).take(self.grams.len()).enumerate() {
            let (gram, motion) = (&self.grams[b], &self.motion[b]);
            let mut at = 0;
            for i in 0..rows {
                for j in 0..=i {
                    let mut change = motion[(i, j)] + motion[(j, i)] - (shrink[i] + shrink[j]) * gram[(i, j)];
                    let kicked = |row: usize| row.checked_sub(first).filter(|row| *row < k);
                    if let (Some(i), Some(j)) = (kicked(i), kicked(j)) {
                        change += diffusion(b, i, j);
                    }
                    if nu != 0.0 && drifting(i) && drifting(j) {
                        change += 2.0 * nu * self.teachers[b][(i, j)];
                    }
                    part[at] = per_clock * change;
                    at += 1;
                }
            }
        }
        let (a, q, squares_at) =
            (self.layout.scalars(), self.layout.scalar_velocities(), self.layout.squares());
        let (values, slopes) = (&state[a..q], &self.averages.scalars);
        let length = dot(values, values);
        let on_sphere = self.training.constraint.scalar_sphere.is_some() && length > 0.0;
        let gain = gain * self.training.scalar_ratio;
        if moving {
            let speeds = &state[q..squares_at];
            let along = if on_sphere { dot(values, speeds) / length } else { 0.0 };
            for j in 0..values.len() {
                out[a + j] = per_clock * (speeds[j] - along * values[j]);
                out[q + j] = -per_clock * (rates.momentum * speeds[j] + gain * slopes[j]);
            }
        } else {
            let along = if on_sphere { dot(values, slopes) / length } else { 0.0 };
            for j in 0..values.len() {
                out[a + j] = -per_clock * gain * (slopes[j] - along * values[j]);
            }
        }
        if let GradientMap::Adam(adam) = self.training.gradient {
            let alpha = state[squares_at + k];
            // The corrected mean V/(1 − e^{−γα}) of a mean that starts at 0, or V itself where it goes on.
            let seen = if self.continued { 1.0 } else { -(-adam.rate * alpha).exp_m1() };
            for i in 0..k {
                let target = self.averages.noise[(i, i)] / self.training.batch as f64;
                let change = adam.rate * (target - state[squares_at + i]);
                out[squares_at + i] = if seen > 1e-12 { per_clock * change / seen } else { 0.0 };
            }
            out[squares_at + k] = per_clock;
        }
    }
}

/// One replica, and what there is to remark about it. The integration is cut where a rate has a kink or a jump: a step across it
/// would lose the order of the method.
pub(super) fn integrate<'r>(
    engine: &OrderParameterOde,
    problem: &Problem,
    record: &'r Record,
    (replica, replicas): (u32, u32),
    monitor: &dyn Monitor,
) -> Result<(Recorder<'r>, Vec<String>), EngineError> {
    let start = problem.start.draw(&problem.setting(record.seed, replica))?;
    problem.check_drift(&start)?;
    let (mut flow, mut state) = WaysFlow::new(problem, &start, engine.needed, record.begin);
    let layout = flow.layout.clone();
    let events: Vec<ode::OdeEvent> = record
        .events
        .iter()
        .map(|event| ode::OdeEvent {
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
    let mut recorder = Recorder::new(record);
    let mut work = Statistics::default();
    let mut borders: Vec<f64> =
        flow.training.breaks(record.begin, record.begin + end).iter().map(|t| t - record.begin).collect();
    borders.push(end);
    let (mut from, mut saved) = (0.0, 0);
    let mut options = engine.options.clone();
    flow.trained.set_accuracy(engine.numerical.accuracy());
    // The first average tells whether averages have closed forms.
    flow.derivative(0.0, &state, &mut vec![0.0; state.len()]);
    if flow.worst_error > 0.0 {
        options = engine.numerical.at_best(flow.relative_error()).options(&options);
    }
    if borders.len() > 1 {
        // Many short pieces: a multistep method would start anew in each of them all the same.
        options.saving = Saving::Landing;
    }
    let solution = loop {
        let to = borders.remove(0);
        // Kinks and jumps are seen from inside.
        let inside = 1e-12 * (1.0 + to.abs());
        flow.window = if to - from > 4.0 * inside { (from + inside, to - inside) } else { (from, to) };
        let until = record.times[saved..].iter().take_while(|t| **t <= to).count();
        let request = ode::Request {
            start: from,
            state: &state,
            end: to,
            save_at: &record.times[saved..saved + until],
            events: &events,
            options: &options,
        };
        let solution = ode::solve_watched(&mut flow, &request, &mut watch)?;
        if let Some(fault) = flow.fault.take() {
            return Err(EngineError::Problem(ProblemError::Training(fault)));
        }
        for state in &solution.states {
            recorder.save(&Snapshot::new(&layout.unpack(state), problem));
        }
        for occurrence in &solution.occurrences {
            recorder.note_passage(occurrence.event, occurrence.time);
        }
        work.add(&statistics(&solution, flow.worst_error));
        saved += until;
        if borders.is_empty() || !matches!(solution.report.stop, Stop::ReachedEnd) {
            break solution;
        }
        state.clone_from(&solution.last_state);
        from = to;
    };
    let outcome = outcome(&solution, record, replica)?;
    recorder.set_statistics(work);
    recorder.end(outcome, solution.last_time, layout.unpack(&solution.last_state), None);
    let mut remarks: Vec<String> =
        problem.about.warning(problem).into_iter().chain(problem.about.invariance(&start)).collect();
    if let Some((i, j)) = equal_rows(&start) {
        remarks.push(format!("rows {i} and {j} start equal, so only rounding can tell them apart"));
    }
    if let Some(momentum) = flow.training.momentum.as_ref().filter(|m| m.scale == MomentumScale::Beta) {
        let beta = momentum.value.value(0.0);
        let rate = flow.training.learning_rate / (1.0 - beta);
        remarks.push(format!(
            "momentum beta = {beta}: the limit is that of plain descent with the learning rate {rate}"
        ));
    }
    Ok((recorder, remarks))
}
