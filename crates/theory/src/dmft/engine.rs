//! The engine `dmft`: curves of observables in the limit, with the error of their sampling.

use super::kernels::Equations;
use super::points::{Points, Sampling};
use super::process::Process;
use crate::landscape::split;
use didact_math::linalg::Mat;
use didact_model::engine::{Cost, EngineOptions, EngineStage, OptionError};
use didact_model::observable::Snapshot;
use didact_model::problem::ProblemError;
use didact_model::timed::{Losses, seconds_of_looks};
use didact_model::training::TrainingError;
use didact_model::{
    Clock, EndState, Engine, EngineError, Monitor, Outcome, Overlaps, Problem, Record, Recorder, Trajectory,
    Way,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Dynamical mean-field theory. Every scramble of the samples is a replica of its trajectory: their mean is the prediction and
/// their standard error the error of the sampling.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dmft {
    /// How samples are drawn; the seed is that of the record.
    pub sampling: Sampling,
    /// Independent scrambles.
    pub scrambles: u32,
}

impl Default for Dmft {
    fn default() -> Self {
        Self { sampling: Sampling::default(), scrambles: 4 }
    }
}

/// The options of the engine `dmft`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct DmftOptions {
    /// Samples per scramble, a power of two.
    pub samples: usize,
    /// Independent scrambles, whose standard error is that of the sampling.
    pub scrambles: u32,
    /// Deviation with which latent fields are drawn (importance sampling of their tails).
    pub spread: f64,
}

impl Default for DmftOptions {
    fn default() -> Self {
        let Dmft { sampling, scrambles } = Dmft::default();
        Self { samples: sampling.samples, scrambles, spread: sampling.spread }
    }
}

impl EngineOptions for DmftOptions {
    const ABOUT: &'static str =
        "dynamical mean-field theory of full-batch: the limit of infinite n and d, with sampling errors";

    fn engine(&self) -> Result<Box<dyn Engine>, OptionError> {
        let Self { samples, scrambles, spread } = *self;
        Ok(Box::new(Dmft { sampling: Sampling { samples, spread, ..Sampling::default() }, scrambles }))
    }
}

const NAME: &str = "dmft";

/// Samples and their history may take this much memory.
const MEMORY_LIMIT: f64 = 8.0;

/// Overlaps with a hard direction below this are rounding.
const NO_OVERLAP: f64 = 1e-12;

impl Engine for Dmft {
    fn name(&self) -> &'static str {
        NAME
    }

    fn memory(&self, problem: &Problem, record: &Record) -> f64 {
        let (shape, samples) =
            (problem.rule.shape(), f64::from(self.scrambles) * self.sampling.samples as f64);
        samples * problem.steps_of(record) * shape.trained as f64 * (2.0 + shape.rows() as f64) * 2.0
    }

    fn cost(&self, problem: &Problem, record: &Record) -> Cost {
        let (t, m) = (problem.steps_of(record), problem.rule.shape().trained as f64);
        let scrambles = f64::from(self.scrambles);
        let samples = scrambles * self.sampling.samples as f64;
        let work = samples * (t.powi(3) / 6.0 + 20.0 * t) * m.powi(3);
        Cost {
            steps: Some(scrambles * t),
            memory: self.memory(problem, record),
            seconds: work * 1e-9 + scrambles * seconds_of_looks(problem, record, Losses::Samples),
        }
    }

    fn takes_infinite_dimension(&self) -> bool {
        true
    }

    fn refuses(&self, way: Way) -> Option<(&'static str, &'static str)> {
        match way {
            Way::Normalised => Some((
                "follow normalised kicks: they jump, so that their response is not the mean of their derivative",
                "use \"full-batch\", or clip",
            )),
            Way::Sign | Way::Adam => Some((
                "move every coordinate of a training set by eta: such a step has length eta sqrt(d)",
                "use one-pass training with \"ode\" or \"direct\"",
            )),
            Way::Rate => Some(("scale the momentum with d on a training set", "use \"beta\"")),
            Way::Drift | Way::Rotation | Way::LabelNoiseSchedule => {
                Some(("change the labels of a training set, which are drawn once", "use one-pass training"))
            }
            Way::TrainedLevels => Some((
                "hold directions of a training set",
                "use one-pass training with \"ode\", \"reduced\" or \"direct\"",
            )),
            _ => None,
        }
    }

    fn admits(&self, problem: &Problem, record: &Record) -> Result<(), EngineError> {
        if problem.sample_ratio().is_some() {
            self.admits_training(problem, record)?;
        }
        let refuse = |reason: &str, hint: &str| {
            Err(EngineError::Unsupported { engine: NAME, reason: reason.into(), hint: hint.into() })
        };
        if problem.sample_ratio().is_none() {
            return Err(EngineError::FullBatch { engine: NAME });
        }
        let Sampling { samples, spread, .. } = self.sampling;
        if !samples.is_power_of_two() || !(Sampling::FEWEST..=1 << 24).contains(&samples) {
            return refuse(
                &format!("{samples} samples"),
                &format!("use a power of two from {} to 2^24", Sampling::FEWEST),
            );
        }
        if self.scrambles == 0 {
            return refuse("0 scrambles of the samples", "use at least 2: they tell the sampling error");
        }
        if !(spread.is_finite() && spread >= 1.0) {
            return refuse(
                &format!("a spread of {spread}"),
                "use 1, or up to 2 to see the tails of the labels",
            );
        }
        if spread != 1.0 && problem.rule.shape().scalars > 0 {
            return refuse("importance sampling with trained scalars", "leave `spread` at 1");
        }
        if problem.rule.shape().trained == 0 {
            return refuse(
                "the model trains scalars alone: there is no row whose effective process could be followed",
                "use engine `full-batch`, or `ode` for fresh samples",
            );
        }
        if problem.spectrum.eigenvalues() != [1.0] {
            return refuse(
                "with several eigenvalues of the inputs every eigenspace has memory kernels of its own, coupled through the fields; \
                 the equations are those of one",
                "use engine `full-batch`",
            );
        }
        if problem.training.constraint.scalar_sphere.is_some() {
            return refuse("the equations know no sphere of scalars", "use engine `full-batch`");
        }
        let scalars = vec![1.0; problem.rule.shape().scalars];
        if problem.rule.jumps().trained && problem.rule.kink_planes(&scalars).is_none() {
            return refuse(
                "the kick jumps on a curved surface of the fields, so that its mean response is not the mean of its derivative; \
                 what is added is known for kinks of units, which are planes",
                "write the kinks as functions of weighted sums of fields, or use engine `full-batch`",
            );
        }
        let gigabytes = self.gigabytes(problem, record);
        if gigabytes > MEMORY_LIMIT {
            return Err(EngineError::TooLarge {
                engine: NAME,
                what: format!("{samples} samples of {} steps", last_step(problem, record)),
                gigabytes,
                available: MEMORY_LIMIT,
                hint: "use fewer `samples` in the run, or fewer steps".into(),
            });
        }
        Ok(())
    }

    fn run_with_end_states(
        &self,
        problem: &Problem,
        record: &Record,
        monitor: &dyn Monitor,
    ) -> Result<(Trajectory, Vec<EndState>), EngineError> {
        problem.validate()?;
        record.validate()?;
        self.admits(problem, record)?;
        let end = steps_until(problem, record)?;
        let (equations, note) = equations(problem, end)?;
        let times = step_times(problem, end)?;
        self.solve((problem, &equations, note), record, &times, monitor)
    }

    fn remembers_stages(&self) -> bool {
        true
    }

    fn run_stages(
        &self,
        stages: &[EngineStage],
        record: &Record,
        monitor: &dyn Monitor,
    ) -> Option<Result<Trajectory, EngineError>> {
        Some(self.solve_stages(stages, record, monitor))
    }
}

fn steps_per_clock(problem: &Problem) -> f64 {
    problem.steps_per_clock(problem.dimension.unwrap_or(1))
}

fn last_step(problem: &Problem, record: &Record) -> usize {
    (record.end() * steps_per_clock(problem)).round() as usize
}

/// Times of the clock at the beginning of so many steps, and at the end of the last.
fn step_times(problem: &Problem, steps: usize) -> Result<Vec<f64>, EngineError> {
    let per_clock = steps_per_clock(problem);
    if !(problem.training.has_uneven_flow() && matches!(problem.clock, Clock::Flow | Clock::FlowPerUnit)) {
        return Ok((0..=steps).map(|step| step as f64 / per_clock).collect());
    }
    // The clock of gradient flow at rates that vary: t_{k+1} = t_k + η_k/(1 − β_k).
    let mut times = vec![0.0];
    for step in 0..steps {
        let rates = problem.training.rates_at(times[step]).map_err(ProblemError::from)?;
        let factor = problem.training.effective_factor(rates.momentum);
        times.push(times[step] + rates.learning_rate * factor / problem.flow_per_clock());
    }
    Ok(times)
}

/// The number of steps after which the last time of a record is reached.
fn steps_until(problem: &Problem, record: &Record) -> Result<usize, EngineError> {
    if !(problem.training.has_uneven_flow() && matches!(problem.clock, Clock::Flow | Clock::FlowPerUnit)) {
        return Ok(last_step(problem, record));
    }
    let (mut steps, end) = (64, record.end());
    while step_times(problem, steps)?[steps] < end {
        if steps > LARGEST_STEPS {
            return Err(ProblemError::Training(TrainingError::FlowStandsStill).into());
        }
        steps *= 2;
    }
    let times = step_times(problem, steps)?;
    Ok(times.partition_point(|t| *t < end * (1.0 - 1e-12)))
}

/// Steps beyond which no effective process is followed.
const LARGEST_STEPS: usize = 1 << 20;

/// The equations of a problem over so many steps, and what was found out about its directions.
///
/// Where labels are a function of the latent fields, the hard directions are found, and their responses set to 0, provided that the
/// rows start without overlap with them.
pub fn equations(problem: &Problem, steps: usize) -> Result<(Equations, String), EngineError> {
    let shape = problem.rule.shape();
    let start = problem.start.limit(shape, &problem.spectrum)?;
    let ratio = problem.sample_ratio().ok_or(EngineError::FullBatch { engine: NAME })?;
    let t = &problem.training;
    let times = step_times(problem, steps)?;
    let mut equations = Equations {
        scalar_ratio: t.scalar_ratio,
        constraint: t.constraint,
        label_noise: t.label_noise,
        ..Equations::new(problem.rule.clone(), t.learning_rate, ratio, &start)
    }
    .trained_at(&[(0, t)], &times)
    .map_err(ProblemError::from)?;
    let orthonormal = {
        let mut rest = equations.frozen();
        rest.add_scaled(-1.0, &Mat::identity(shape.frozen));
        rest.max_abs() < NO_OVERLAP
    };
    let labelled = problem.rule.label(&vec![0.3; shape.frozen], 0.0).is_some();
    if !labelled || !orthonormal {
        return Ok((equations, "responses to all frozen directions are sampled".into()));
    }
    let label = |z: &[f64], noise: f64| problem.rule.label(z, t.label_noise * noise).unwrap_or(f64::NAN);
    let directions = match split(shape.frozen, t.label_noise > 0.0, &label) {
        Ok(found) => found,
        Err(error) => {
            return Ok((equations, format!("responses to all frozen directions are sampled: {error}")));
        }
    };
    let overlap = |hard: &Vec<f64>| {
        (0..shape.trained).any(|i| {
            let along: f64 =
                hard.iter().enumerate().map(|(n, h)| h * equations.start[(i, shape.trained + n)]).sum();
            along.abs() > NO_OVERLAP
        })
    };
    let hard: Vec<&Vec<f64>> = directions.hard.iter().filter(|h| !overlap(h)).collect();
    let mut projector = Mat::zeros(shape.frozen, shape.frozen);
    for h in &hard {
        for i in 0..shape.frozen {
            for j in 0..shape.frozen {
                projector[(i, j)] += h[i] * h[j];
            }
        }
    }
    let note = format!("{} of {} latent directions are hard: no response to them", hard.len(), shape.frozen);
    equations.hard = (!hard.is_empty()).then_some(projector);
    Ok((equations, note))
}

/// Times of the clock at the beginning of every step until the end of a record and after the last, and the first step of every stage.
/// Steps of a stage are as long as its rates say.
fn times_of_stages(stages: &[EngineStage], end: f64) -> Result<(Vec<f64>, Vec<usize>), EngineError> {
    let (mut times, mut begins) = (vec![0.0_f64], Vec::new());
    for stage in stages {
        begins.push(times.len() - 1);
        let problem = &stage.problem;
        let until = stage.until.min(end);
        let uneven =
            problem.training.has_uneven_flow() && matches!(problem.clock, Clock::Flow | Clock::FlowPerUnit);
        loop {
            let now = times[times.len() - 1];
            // A stage lasts as many steps as come nearest to its end.
            let length = if uneven {
                let rates = problem.training.rates_at(now).map_err(ProblemError::from)?;
                let factor = problem.training.effective_factor(rates.momentum);
                rates.learning_rate * factor / problem.flow_per_clock()
            } else {
                1.0 / steps_per_clock(problem)
            };
            if now + 0.5 * length > until {
                break;
            }
            if times.len() > LARGEST_STEPS {
                return Err(ProblemError::Training(TrainingError::FlowStandsStill).into());
            }
            times.push(now + length);
        }
    }
    Ok((times, begins))
}

impl Dmft {
    /// All scrambles of the samples.
    fn solve(
        &self,
        (problem, equations, note): (&Problem, &Equations, String),
        record: &Record,
        times: &[f64],
        monitor: &dyn Monitor,
    ) -> Result<(Trajectory, Vec<EndState>), EngineError> {
        let solve = |scramble| self.solve_scramble(problem, equations, record, (scramble, times), monitor);
        let replicas: Vec<Recorder> = (0..self.scrambles).map(solve).collect::<Result<_, _>>()?;
        let (mut trajectory, end_states) = Trajectory::of_replicas(NAME, problem, record, replicas);
        trajectory.notes = vec![
            format!(
                "{} scrambles of {} samples; replicas are scrambles, and their standard error is that of the sampling",
                self.scrambles, self.sampling.samples
            ),
            note,
        ];
        Ok((trajectory, end_states))
    }

    /// Stages that differ in training alone: the kernels go on, with other rates.
    fn solve_stages(
        &self,
        stages: &[EngineStage],
        record: &Record,
        monitor: &dyn Monitor,
    ) -> Result<Trajectory, EngineError> {
        record.validate()?;
        for stage in stages {
            stage.problem.validate()?;
            self.admits(&stage.problem, record)?;
        }
        let first = &stages[0].problem;
        let (times, begins) = times_of_stages(stages, record.end())?;
        let (mut equations, note) = equations(first, 0)?;
        let trained: Vec<_> =
            begins.iter().zip(stages).map(|(begin, stage)| (*begin, &stage.problem.training)).collect();
        equations = equations.trained_at(&trained, &times).map_err(ProblemError::from)?;
        Ok(self.solve((first, &equations, note), record, &times, monitor)?.0)
    }

    fn gigabytes(&self, problem: &Problem, record: &Record) -> f64 {
        let shape = problem.rule.shape();
        let (m, p) = (shape.trained as f64, shape.rows() as f64);
        let steps = last_step(problem, record) as f64 + 1.0;
        // Normals, kicks and derivatives of every step.
        let history = steps * (m + m + m * p) * 8e-9;
        // Where kicks jump, about every second step a pair of paths begins on a plane, and remembers all steps after and before it.
        let scalars = vec![1.0; shape.scalars];
        let planes = problem.rule.kink_planes(&scalars).map_or(0, |planes| planes.len()) as f64;
        let crossings = 0.5 * steps * planes * (1.5 * steps * m + 30.0) * 8e-9;
        self.sampling.samples as f64 * (history + crossings)
    }

    /// All steps of one scramble of the samples.
    fn solve_scramble<'r>(
        &self,
        problem: &Problem,
        equations: &Equations,
        record: &'r Record,
        (scramble, step_times): (u32, &[f64]),
        monitor: &dyn Monitor,
    ) -> Result<Recorder<'r>, EngineError> {
        let shape = equations.shape();
        let end = step_times.len() - 1;
        // The nearer of the two steps around every saved time.
        let nearest = |t: &f64| {
            let after = step_times.partition_point(|time| time < t).min(end);
            let before = after.saturating_sub(1);
            if (step_times[after] - t).abs() <= (t - step_times[before]).abs() { after } else { before }
        };
        let saves: Vec<usize> = record.times.iter().map(nearest).collect();
        let sampling = Sampling { seed: record.seed, ..self.sampling };
        let mut points = Points::sobol(&sampling, scramble, shape.frozen, shape.trained, end + 1);
        let mut process = Process::new(equations, &mut points);
        let mut recorder = Recorder::new(record);
        let start = Overlaps::from_engine(shape, vec![equations.start.clone()], equations.scalars.clone());
        let (mut last, mut last_time) = (start, 0.0);
        for step in 0..=end {
            if monitor.cancelled() {
                return Err(EngineError::Interrupted);
            }
            let time = step_times[step];
            let due = saves[recorder.saved()..].iter().filter(|&&at| at == step).count();
            let measuring = due > 0 || record.events_need_training_set();
            if !(if measuring { process.advance_and_measure() } else { process.advance() }) {
                recorder.end(Outcome::Diverged { at: time }, last_time, last, None);
                return Ok(recorder);
            }
            let gram = process.kernels.gram(step, equations);
            let overlaps = Overlaps::from_engine(shape, vec![gram], process.scalars.clone());
            let mut snapshot = Snapshot::new(&overlaps, problem);
            if measuring {
                let (train, test) = process.losses();
                snapshot = snapshot.with_train_loss(train).with_test_loss(test);
                let batch = if process.has_batch() { process.batch_loss() } else { Some(train) };
                snapshot = batch.into_iter().fold(snapshot, Snapshot::with_batch_loss);
            }
            let outcome = recorder.observe(time, due, &snapshot);
            monitor.advance(1.0 / (end + 1) as f64 / f64::from(self.scrambles));
            (last, last_time) = (overlaps, time);
            if let Some(outcome) = outcome {
                recorder.end(outcome, last_time, last, None);
                return Ok(recorder);
            }
        }
        recorder.end(Outcome::Completed, last_time, last, None);
        Ok(recorder)
    }
}
