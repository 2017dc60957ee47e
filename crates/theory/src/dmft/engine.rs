//! The engine `dmft`: curves of observables in the limit, with the error of their sampling.

use super::kernels::Equations;
use super::points::{Points, Sampling};
use super::process::Process;
use crate::landscape::split;
use didact_math::linalg::Mat;
use didact_model::engine::{Cost, EngineOptions, OptionError};
use didact_model::observable::Snapshot;
use didact_model::{
    EndState, Engine, EngineError, Monitor, Outcome, Overlaps, Problem, Record, Recorder, Trajectory,
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

    fn cost(&self, problem: &Problem, record: &Record) -> Cost {
        let shape = problem.rule.shape();
        let (t, m, rows) = (problem.steps_of(record), shape.trained as f64, shape.rows() as f64);
        let scrambles = f64::from(self.scrambles);
        let samples = scrambles * self.sampling.samples as f64;
        let work = samples * (t.powi(3) / 6.0 + 20.0 * t) * m.powi(3);
        Cost {
            steps: Some(scrambles * t),
            memory: samples * t * m * (2.0 + rows) * 2.0,
            seconds: work * 1e-9,
        }
    }

    fn takes_infinite_dimension(&self) -> bool {
        true
    }

    fn admits(&self, problem: &Problem, record: &Record) -> Result<(), EngineError> {
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
        if problem.rule.jumps().trained {
            return refuse(
                "the unit has a kink, so that its mean response is not the mean of its derivative",
                "use a smooth activation, or engine `full-batch`",
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
        let (equations, note) = equations(problem)?;
        let solve = |scramble| self.solve_scramble(problem, &equations, record, scramble, monitor);
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
}

fn steps_per_clock(problem: &Problem) -> f64 {
    problem.steps_per_clock(problem.dimension.unwrap_or(1))
}

fn last_step(problem: &Problem, record: &Record) -> usize {
    (record.end() * steps_per_clock(problem)).round() as usize
}

/// The equations of a problem, and what was found out about its directions.
///
/// Where labels are a function of the latent fields, the hard directions are found, and their responses set to 0, provided that the
/// rows start without overlap with them.
pub fn equations(problem: &Problem) -> Result<(Equations, String), EngineError> {
    let shape = problem.rule.shape();
    let start = problem.start.limit(shape, &problem.spectrum)?;
    let ratio = problem.sample_ratio().ok_or(EngineError::FullBatch { engine: NAME })?;
    let t = &problem.training;
    let mut equations = Equations {
        scalar_ratio: t.scalar_ratio,
        constraint: t.constraint,
        label_noise: t.label_noise,
        ..Equations::new(problem.rule.clone(), t.learning_rate, ratio, &start)
    };
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

impl Dmft {
    fn gigabytes(&self, problem: &Problem, record: &Record) -> f64 {
        let shape = problem.rule.shape();
        let (m, p) = (shape.trained as f64, shape.rows() as f64);
        let steps = last_step(problem, record) as f64 + 1.0;
        // Normals, kicks and derivatives of every step.
        self.sampling.samples as f64 * steps * (m + m + m * p) * 8e-9
    }

    /// All steps of one scramble of the samples.
    fn solve_scramble<'r>(
        &self,
        problem: &Problem,
        equations: &Equations,
        record: &'r Record,
        scramble: u32,
        monitor: &dyn Monitor,
    ) -> Result<Recorder<'r>, EngineError> {
        let shape = equations.shape();
        let (per_clock, end) = (steps_per_clock(problem), last_step(problem, record));
        let saves: Vec<usize> = record.times.iter().map(|t| (t * per_clock).round() as usize).collect();
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
            let time = step as f64 / per_clock;
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
