//! The engine `ode` with fluctuations: one curve, and beside every column its standard deviation at a finite dimension.

use super::error::FluctuationError;
use super::path::{Path, Point};
use super::theory::{FluctuationTheory, quadratic_forms};
use crate::order_parameters::OrderParameterOde;
use didact_math::linalg::symmetric_eigen;
use didact_model::engine::Cost;
use didact_model::problem::StepScaling;
use didact_model::start::{Continued, StateSpread};
use didact_model::trajectory::{Passages, RecordedColumn};
use didact_model::{EndState, Engine, EngineError, Monitor, Outcome, Problem, Record, Trajectory, Way};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The key `fluctuations` of the engine `ode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "`fluctuations` is `true`, `false` or \"scaled\"")]
pub enum FluctuationsKey {
    /// Standard deviations at `data.dimension`, or none.
    Flag(bool),
    /// By name.
    Named(FluctuationsWord),
}

/// What `fluctuations` may be beside `true` and `false`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FluctuationsWord {
    /// Standard deviations times √d in the limit, which need no dimension.
    Scaled,
    /// The columns without numbers, for a drawing that moves.
    Later,
}

impl Default for FluctuationsKey {
    fn default() -> Self {
        Self::Flag(false)
    }
}

/// The equations of the overlaps, and the covariance of replicas around them.
#[derive(Debug, Clone)]
pub struct FluctuatingOde {
    /// The mean.
    pub mean: OrderParameterOde,
    /// Whether and when standard deviations are computed.
    pub deviations: Deviations,
    /// Whether columns are lim √d sd rather than sd.
    pub scaled: bool,
    /// Whether columns are moved by the shift of the mean at order 1/d.
    pub mean_correction: bool,
}

/// Whether and when standard deviations are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deviations {
    /// Not asked for: a correction of the mean without them is refused.
    Never,
    /// Not yet: their columns are there without numbers, for a drawing that moves.
    Later,
    /// With the mean.
    Now,
}

/// Relative accuracy of averages, and a tenth of what the interpolation of coefficients may add: a band is a line on paper.
const ACCURACY: f64 = 1e-4;
/// Above this ratio of quadratic to linear terms a band is not to be trusted.
const LARGE_KAPPA: f64 = 0.1;
/// Times at which that ratio is computed.
const KAPPA_TIMES: usize = 16;
/// Cost of a run in units of that of its mean.
const RELATIVE_COST: f64 = 15.0;

impl FluctuatingOde {
    fn sd_name(&self, of: &str) -> String {
        if self.scaled { format!("scaled-sd({of})") } else { format!("sd({of})") }
    }

    /// The problem of the mean: replicas that start in different states are followed from the centre of their law.
    fn centred(problem: &Problem) -> Result<Problem, EngineError> {
        let mut centred = problem.clone();
        if problem.start.is_random() {
            let overlaps = problem.start.centre(&problem.setting(0, 0))?;
            centred.start = Arc::new(Continued { overlaps, weights: None, spread: None });
        }
        Ok(centred)
    }

    fn refuse(&self, problem: &Problem) -> Result<(), FluctuationError> {
        FluctuationTheory::admits(problem)?;
        if self.mean_correction {
            FluctuationTheory::admits_mean_correction(problem)?;
        }
        Ok(())
    }
}

impl From<FluctuationError> for EngineError {
    fn from(error: FluctuationError) -> Self {
        match error {
            FluctuationError::Engine(error) => *error,
            FluctuationError::Start(error) => Self::Start(error),
            FluctuationError::Problem(error) => Self::Problem(error),
            other => Self::Fluctuations(other.to_string()),
        }
    }
}

/// One curve stands for all replicas.
fn one_curve(record: &Record) -> Record {
    Record { replicas: 1, ..record.clone() }
}

impl Engine for FluctuatingOde {
    fn name(&self) -> &'static str {
        "ode"
    }

    fn memory(&self, problem: &Problem, record: &Record) -> f64 {
        let shape = problem.rule.shape();
        let (k, f) = (shape.trained, shape.frozen);
        let n = (problem.spectrum.len() * (k * f + k * (k + 1) / 2) + shape.scalars) as f64;
        // Some twenty matrices of coefficients on a panel, the stages of the integrator, and a covariance per saved time.
        let matrices = (60.0 + record.times.len() as f64) * n * n * 8.0;
        2.0 * self.mean.memory(problem, &one_curve(record)) + matrices
    }

    fn cost(&self, problem: &Problem, record: &Record) -> Cost {
        let mean = self.mean.cost(problem, &one_curve(record));
        Cost { memory: self.memory(problem, record), seconds: RELATIVE_COST * mean.seconds, ..mean }
    }

    fn stays_at_fixed_points(&self) -> bool {
        true
    }

    fn refuses(&self, way: Way) -> Option<(&'static str, &'static str)> {
        self.mean.refuses(way)
    }

    fn admits(&self, problem: &Problem, record: &Record) -> Result<(), EngineError> {
        let refused = |text: &str| Err(EngineError::Fluctuations(text.into()));
        if self.deviations == Deviations::Never {
            return refused("`mean-correction` needs `fluctuations`");
        }
        if problem.training.samples.is_some() {
            return Err(FluctuationError::TrainingSet.into());
        }
        self.mean.admits(problem, record)?;
        if self.scaled && problem.training.scaling != StepScaling::PerDimension {
            return refused("`fluctuations = \"scaled\"` needs `scaling = \"per-dimension\"`");
        }
        if !self.scaled && problem.dimension.is_none() {
            return refused("a band needs `data.dimension`\n\nhint: or `fluctuations = \"scaled\"`");
        }
        Ok(self.refuse(problem)?)
    }

    fn admits_stages(&self) -> Result<(), EngineError> {
        if self.mean_correction {
            return Err(FluctuationError::NoMeanCorrection { with: "stage" }.into());
        }
        Ok(())
    }

    fn takes_infinite_dimension(&self) -> bool {
        true
    }

    fn follows_the_mean(&self) -> bool {
        true
    }

    fn added_columns(&self, record: &Record) -> Vec<String> {
        let names: Vec<String> = record.observables.iter().map(|o| o.name()).collect();
        let shifts = names.iter().filter(|_| self.scaled && self.mean_correction);
        let shifts: Vec<String> = shifts.map(|name| format!("scaled-shift({name})")).collect();
        names.iter().map(|name| self.sd_name(name)).chain(shifts).collect()
    }

    fn added_events(&self, record: &Record) -> Vec<String> {
        record.events.iter().map(|event| self.sd_name(&event.name)).collect()
    }

    fn run_with_end_states(
        &self,
        problem: &Problem,
        record: &Record,
        monitor: &dyn Monitor,
    ) -> Result<(Trajectory, Vec<EndState>), EngineError> {
        record.validate()?;
        self.admits(problem, record)?;
        let halves = HalfOfWork { monitor };
        let one = Record { replicas: 1, ..record.clone() };
        let centred = Self::centred(problem)?;
        let (mut trajectory, mut ends) = self.mean.run_with_end_states(&centred, &one, &halves)?;
        if self.deviations == Deviations::Later {
            self.write_nothing(record, &mut trajectory);
            return Ok((trajectory, ends));
        }
        let theory = FluctuationTheory::new(problem, self.mean.needed, ACCURACY)?;
        let end = ends.first().map_or(0.0, |end| end.time);
        let saved = trajectory.columns.first().map_or(record.times.len(), |column| column.curves[0].len());
        let passages: Vec<Option<f64>> = trajectory.events.iter().map(|event| event.times[0]).collect();
        let mut times: Vec<f64> = record.times[..saved].to_vec();
        times.extend(passages.iter().flatten().filter(|t| **t <= end));
        times.push(end);
        times.sort_by(f64::total_cmp);
        times.dedup();
        let path = if self.mean_correction {
            theory.follow_with_shift(&times, &halves)?
        } else {
            theory.follow(&times, &halves)?
        };
        let at = |time: f64| path.points.iter().find(|point| point.time == time);
        self.write_columns(&theory, &path, problem, record, saved, &mut trajectory)?;
        let lineariser = theory.lineariser();
        for (event, passage) in record.events.iter().zip(&passages) {
            let found = passage.and_then(at);
            let variance = found
                .map(|point| theory.passage_variance(&lineariser, point, &event.observable))
                .transpose()?;
            let time = variance.map(|variance| (variance * self.per_replica(problem)).max(0.0).sqrt());
            trajectory.events.push(Passages { name: self.sd_name(&event.name), times: vec![time] });
        }
        self.remark(&theory, &path, problem, record, &mut trajectory)?;
        if let (Some(last), Some(point)) = (ends.first_mut(), at(end)) {
            let crossing = match &trajectory.outcomes[0] {
                Outcome::Stopped { by, .. } => {
                    let event = record.events.iter().find(|event| event.name == *by);
                    event.map(|event| crossing(&theory, point, &event.observable)).transpose()?
                }
                _ => None,
            };
            let with_teachers = theory.variables.with_teachers;
            let covariance = point.covariance.clone();
            last.spread = Some(Arc::new(StateSpread { covariance, crossing, with_teachers }));
        }
        Ok((trajectory, ends))
    }
}

/// Drift of the state, and gradient of the observable that ended a stage.
fn crossing(
    theory: &FluctuationTheory,
    point: &Point,
    observable: &Arc<dyn didact_model::observable::Observable>,
) -> Result<(Vec<f64>, Vec<f64>), FluctuationError> {
    let observables = [observable.clone()];
    let mut gradients = theory.observer(&observables).gradients(point.time, &point.state)?;
    let (_, gradient) = gradients.pop().expect("one observable has one gradient");
    Ok((theory.lineariser().drift_at(&point.state), gradient))
}

impl FluctuatingOde {
    /// What a variance times d is multiplied with.
    fn per_replica(&self, problem: &Problem) -> f64 {
        if self.scaled { 1.0 } else { 1.0 / problem.dimension.unwrap_or(u64::MAX) as f64 }
    }

    /// Appends the columns and events of standard deviations without numbers.
    fn write_nothing(&self, record: &Record, trajectory: &mut Trajectory) {
        let saved = trajectory.columns.first().map_or(record.times.len(), |column| column.curves[0].len());
        let columns = self.added_columns(record).into_iter();
        trajectory
            .columns
            .extend(columns.map(|name| RecordedColumn { name, curves: vec![vec![f64::NAN; saved]] }));
        let events = self.added_events(record).into_iter();
        trajectory.events.extend(events.map(|name| Passages { name, times: vec![None] }));
    }

    /// Appends a column of standard deviations for every observable, and moves or adds those of the mean.
    fn write_columns(
        &self,
        theory: &FluctuationTheory,
        path: &Path,
        problem: &Problem,
        record: &Record,
        saved: usize,
        trajectory: &mut Trajectory,
    ) -> Result<(), EngineError> {
        let observer = theory.observer(&record.observables);
        let count = record.observables.len();
        let (mut deviations, mut shifts) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        for time in &record.times[..saved] {
            let Some(point) = path.points.iter().find(|point| point.time == *time) else { break };
            let gradients = observer.gradients(point.time, &point.state)?;
            let variances = quadratic_forms(&gradients, &point.covariance);
            for (index, column) in deviations.iter_mut().enumerate() {
                // Zero where the gradient vanishes, but for rounding.
                column.push((variances[(index, index)].max(0.0) * self.per_replica(problem)).sqrt());
            }
            if self.mean_correction {
                let curvature = observer.half_curvature(&point.state, &point.covariance);
                for (index, column) in shifts.iter_mut().enumerate() {
                    let moved = gradients[index].1.iter().zip(&point.shift).map(|(g, m)| g * m).sum::<f64>();
                    column.push(moved + curvature[index]);
                }
            }
        }
        let pad = |mut curve: Vec<f64>| {
            curve.resize(saved, f64::NAN);
            vec![curve]
        };
        for (observable, curve) in record.observables.iter().zip(deviations) {
            let name = self.sd_name(&observable.name());
            trajectory.columns.push(RecordedColumn { name, curves: pad(curve) });
        }
        if self.mean_correction && self.scaled {
            for (observable, curve) in record.observables.iter().zip(shifts) {
                let name = format!("scaled-shift({})", observable.name());
                trajectory.columns.push(RecordedColumn { name, curves: pad(curve) });
            }
        } else if self.mean_correction {
            for (column, shift) in trajectory.columns.iter_mut().zip(&shifts) {
                for (value, shift) in column.curves[0].iter_mut().zip(shift) {
                    *value += shift * self.per_replica(problem);
                }
            }
        }
        Ok(())
    }

    /// What there is to say of the covariance: where it cannot be trusted, and how well it is known.
    fn remark(
        &self,
        theory: &FluctuationTheory,
        path: &Path,
        problem: &Problem,
        record: &Record,
        trajectory: &mut Trajectory,
    ) -> Result<(), EngineError> {
        let clock = problem.clock.name();
        let observer = theory.observer(&record.observables);
        let stride = path.points.len().div_ceil(KAPPA_TIMES).max(1);
        let mut largest: Option<(f64, String, f64)> = None;
        let mut first_large: Option<(f64, String, f64)> = None;
        for point in path.points.iter().rev().step_by(stride).collect::<Vec<_>>().into_iter().rev() {
            let gradients = observer.gradients(point.time, &point.state)?;
            let variances = quadratic_forms(&gradients, &point.covariance);
            let curvature = observer.half_curvature(&point.state, &point.covariance);
            for (index, observable) in record.observables.iter().enumerate() {
                let linear = variances[(index, index)].max(0.0).sqrt();
                let kappa = curvature[index].abs() * self.per_replica(problem).sqrt() / linear;
                // Where the gradient vanishes there is no linear term to compare with.
                if linear <= 1e-12 * gradients[index].0.abs() || !kappa.is_finite() {
                    continue;
                }
                if largest.as_ref().is_none_or(|(known, ..)| kappa > *known) {
                    largest = Some((kappa, observable.name(), point.time));
                }
                if !self.scaled && kappa > LARGE_KAPPA && first_large.is_none() {
                    first_large = Some((kappa, observable.name(), point.time));
                }
            }
        }
        let last = path.points.last();
        let ratio = last.map_or(0.0, |point| {
            let values = symmetric_eigen(&point.covariance).values;
            let largest = values.last().copied().unwrap_or(0.0);
            if largest > 0.0 { values[0] / largest } else { 0.0 }
        });
        let word = if self.scaled { "kappa sqrt(d)" } else { "kappa" };
        let nonlinear = largest.map_or_else(
            || "no linear term to compare with".to_string(),
            |(kappa, name, time)| format!("largest {word} {kappa:.2e} (`{name}` at {clock} = {time})"),
        );
        trajectory.notes.push(format!(
            "fluctuations: {nonlinear}, smallest eigenvalue of Sigma {ratio:.1e} of the largest, relative error of the \
             covariance of a step {:.1e}",
            path.error
        ));
        if let Some((kappa, name, time)) = first_large {
            trajectory.notes.push(format!(
                "the band of `{name}` is not to be trusted from {clock} = {time} on: kappa {kappa:.2}"
            ));
        }
        if let (Some(d), Some((time, growth))) = (problem.dimension, path.growth.last())
            && !self.scaled
            && *growth > 0.5 * (d as f64).ln()
        {
            trajectory.notes.push(format!(
                "fluctuations grow by e^{growth:.1} until {clock} = {time}, to the size of the state: see `fluctuations/escape-law`"
            ));
        }
        Ok(())
    }
}

/// Half of the work is the mean, half the covariance.
struct HalfOfWork<'a> {
    monitor: &'a dyn Monitor,
}

impl Monitor for HalfOfWork<'_> {
    fn advance(&self, fraction: f64) {
        self.monitor.advance(0.5 * fraction);
    }
    fn cancelled(&self) -> bool {
        self.monitor.cancelled()
    }
}
