//! Problems and records from Rust, in a few words: [`Problem::of`] and [`Record::at`].
//!
//! Everything has the default that a description has: isotropic inputs, d → ∞, step size η/d, one fresh sample per step, teachers that
//! are orthonormal, students with Gaussian rows of unit length, time in steps/d. What is wrong is said when the problem is built or run.

use crate::clock::Clock;
use crate::engine::{Engine, EngineError, Monitor, NoMonitor};
use crate::family::{Family, ModelError, ModelInfo, NoFamily, Refusal};
use crate::observable::{self, Observable, ObservableError};
use crate::overlaps::{Overlaps, OverlapsError};
use crate::problem::{Problem, ProblemError, Samples, StepScaling, Training};
use crate::record::{Crossing, Event, Record, linear_times};
use crate::rule::{LocalRule, Shape};
use crate::spectrum::Spectrum;
use crate::start::{FrozenRows, Given, RandomRows, RowLaw, Start};
use crate::trajectory::Trajectory;
use didact_math::linalg::Mat;
use std::fmt;
use std::sync::Arc;

/// Why there is no problem, or no trajectory of it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BuildError {
    /// The parameters of the family make no model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The family does not admit this training, data or start.
    #[error("{0}\n\nhint: {hint}", hint = .0.hint)]
    Refused(#[from] Refusal),
    /// The rows of a matrix have different lengths.
    #[error("the rows of `{name}` have different lengths")]
    Ragged {
        /// Which matrix.
        name: &'static str,
    },
    /// Overlaps that no rows have.
    #[error(transparent)]
    Overlaps(#[from] OverlapsError),
    /// A number of the problem that makes no sense.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// An observable that the problem does not have.
    #[error(transparent)]
    Observable(#[from] ObservableError),
    /// An event needs one observable, not a list of them.
    #[error("the event `{event}` watches `{text}`, which is {count} observables; an event watches one")]
    EventObservable {
        /// The event.
        event: String,
        /// What it watches.
        text: String,
        /// How many that is.
        count: usize,
    },
    /// The engine refuses the problem or could not finish.
    #[error(transparent)]
    Engine(Box<EngineError>),
}

impl From<EngineError> for BuildError {
    fn from(error: EngineError) -> Self {
        Self::Engine(Box::new(error))
    }
}

/// The rows of a matrix, as arrays or vectors: `[[0.5]]`, `vec![vec![0.25, 0.0], vec![0.0, 0.25]]`.
pub trait Rows {
    /// One vector per row.
    fn into_rows(self) -> Vec<Vec<f64>>;
}

impl<R: Into<Vec<f64>>, const N: usize> Rows for [R; N] {
    fn into_rows(self) -> Vec<Vec<f64>> {
        self.into_iter().map(Into::into).collect()
    }
}

impl Rows for Vec<Vec<f64>> {
    fn into_rows(self) -> Vec<Vec<f64>> {
        self
    }
}

/// Where learning starts, before the shape of the rule is known.
#[derive(Debug, Clone)]
enum Beginning {
    /// The start of the family if it has one, else Gaussian rows of unit length.
    Default,
    /// Overlaps Q of the trained rows and R with the frozen ones.
    Overlaps(Vec<Vec<f64>>, Vec<Vec<f64>>),
    /// Random trained rows.
    Random(RowLaw),
    /// Any start.
    Custom(Arc<dyn Start>),
}

/// What is learned, before it is built.
type Model = Result<(Arc<dyn LocalRule>, Vec<f64>), ModelError>;

/// Whether the family admits a problem.
type Admission = Arc<dyn Fn(&Problem) -> Result<(), Refusal> + Send + Sync>;

/// A problem in the making; see [`Problem::of`].
#[derive(Clone)]
pub struct ProblemBuilder {
    model: Model,
    about: Arc<dyn ModelInfo>,
    admits: Admission,
    own_start: Result<Option<Arc<dyn Start>>, ModelError>,
    spectrum: Spectrum,
    dimension: Option<u64>,
    training: Training,
    beginning: Beginning,
    teachers: Option<Vec<Vec<f64>>>,
    scalars: Option<Vec<f64>>,
    clock: Option<Clock>,
}

impl fmt::Debug for ProblemBuilder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ProblemBuilder")
            .field("model", &self.model)
            .field("dimension", &self.dimension)
            .field("training", &self.training)
            .finish_non_exhaustive()
    }
}

impl Problem {
    /// Begins a problem with the model of a family. The learning rate is 1 until it is given.
    pub fn of<F: Family>(family: F) -> ProblemBuilder {
        let model = family.rule().map(|rule| (rule, family.starting_scalars()));
        let training = Training { label_noise: family.standard_noise(), ..Training::online(1.0) };
        let (about, own_start) = (family.about(), family.start());
        let admits: Admission = Arc::new(move |problem| family.admits(problem));
        ProblemBuilder::new(model, about, admits, own_start, training)
    }

    /// Begins a problem with a rule that belongs to no family. Trained scalars start at 0 unless they are given.
    pub fn of_rule(rule: impl LocalRule + 'static) -> ProblemBuilder {
        let scalars = vec![0.0; rule.shape().scalars];
        let model: Model = Ok((Arc::new(rule), scalars));
        ProblemBuilder::new(model, Arc::new(NoFamily), Arc::new(|_| Ok(())), Ok(None), Training::online(1.0))
    }

    /// Runs an engine on this problem.
    pub fn run(&self, engine: impl Engine, record: &RecordBuilder) -> Result<Trajectory, BuildError> {
        self.run_watched(engine, record, &NoMonitor)
    }

    /// Runs an engine on this problem, with a monitor that hears of progress and can end the run.
    pub fn run_watched(
        &self,
        engine: impl Engine,
        record: &RecordBuilder,
        monitor: &dyn Monitor,
    ) -> Result<Trajectory, BuildError> {
        Ok(engine.run(self, &record.build(self)?, monitor)?)
    }
}

impl ProblemBuilder {
    fn new(
        model: Model,
        about: Arc<dyn ModelInfo>,
        admits: Admission,
        own_start: Result<Option<Arc<dyn Start>>, ModelError>,
        training: Training,
    ) -> Self {
        Self {
            model,
            about,
            admits,
            own_start,
            spectrum: Spectrum::isotropic(),
            dimension: None,
            training,
            beginning: Beginning::Default,
            teachers: None,
            scalars: None,
            clock: None,
        }
    }

    /// Sets η.
    pub fn learning_rate(mut self, rate: f64) -> Self {
        self.training.learning_rate = rate;
        self
    }

    /// Sets d. Simulations and random starts need it; theory takes d → ∞ without it.
    pub fn dimension(mut self, dimension: u64) -> Self {
        self.dimension = Some(dimension);
        self
    }

    /// Sets the covariance of the inputs.
    pub fn spectrum(mut self, spectrum: Spectrum) -> Self {
        self.spectrum = spectrum;
        self
    }

    /// Sets B, the number of fresh samples per step; the gradient is their mean.
    pub fn batch(mut self, batch: usize) -> Self {
        self.training.batch = batch;
        self
    }

    /// Sets the standard deviation of the label noise.
    pub fn label_noise(mut self, deviation: f64) -> Self {
        self.training.label_noise = deviation;
        self
    }

    /// Trains by full-batch gradient descent on n = δ d samples that are drawn once, with step size η. Time is counted in steps.
    pub fn training_set(mut self, samples_per_dimension: f64) -> Self {
        self.training.samples = Some(Samples::PerDimension(samples_per_dimension));
        self.training.scaling = StepScaling::Plain;
        self
    }

    /// Replaces everything that is said of training.
    pub fn training(mut self, training: Training) -> Self {
        self.training = training;
        self
    }

    /// Starts at given overlaps: Q of the trained rows with each other, R of the trained with the frozen rows.
    pub fn start(mut self, q: impl Rows, r: impl Rows) -> Self {
        self.beginning = Beginning::Overlaps(q.into_rows(), r.into_rows());
        self
    }

    /// Starts at random trained rows.
    pub fn random_start(mut self, rows: RowLaw) -> Self {
        self.beginning = Beginning::Random(rows);
        self
    }

    /// Starts where `start` says.
    pub fn start_from(mut self, start: impl Start + 'static) -> Self {
        self.beginning = Beginning::Custom(Arc::new(start));
        self
    }

    /// Sets T, the overlaps of the frozen rows; they are orthonormal unless this is given.
    pub fn teachers(mut self, t: impl Rows) -> Self {
        self.teachers = Some(t.into_rows());
        self
    }

    /// Sets the trained scalars before training.
    pub fn scalars(mut self, scalars: impl Into<Vec<f64>>) -> Self {
        self.scalars = Some(scalars.into());
        self
    }

    /// Sets the unit of time; steps/d unless given, or steps on a training set.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// The problem, checked.
    pub fn build(&self) -> Result<Problem, BuildError> {
        let (rule, scalars) = self.model.clone()?;
        let scalars = self.scalars.clone().unwrap_or(scalars);
        let on_training_set = self.training.samples.is_some();
        let problem = Problem {
            start: self.starting(rule.shape(), scalars)?,
            rule,
            about: self.about.clone(),
            spectrum: self.spectrum.clone(),
            dimension: self.dimension,
            training: self.training.clone(),
            clock: self.clock.unwrap_or(if on_training_set { Clock::Steps } else { Clock::Alpha }),
        };
        problem.validate()?;
        (self.admits)(&problem)?;
        Ok(problem)
    }

    /// Builds the problem and runs an engine on it.
    pub fn run(&self, engine: impl Engine, record: &RecordBuilder) -> Result<Trajectory, BuildError> {
        self.build()?.run(engine, record)
    }

    fn starting(&self, shape: Shape, scalars: Vec<f64>) -> Result<Arc<dyn Start>, BuildError> {
        let teachers = match &self.teachers {
            Some(rows) => matrix(rows, "teachers")?,
            None => Mat::identity(shape.frozen),
        };
        let random = |trained: RowLaw| -> Arc<dyn Start> {
            let frozen = FrozenRows::Gram(teachers.clone());
            Arc::new(RandomRows { trained, frozen, scalars: scalars.clone() })
        };
        Ok(match &self.beginning {
            Beginning::Default => match self.own_start.clone()? {
                Some(own) if self.teachers.is_none() && self.scalars.is_none() => own,
                _ => random(RowLaw::Gaussian { deviation: 1.0 }),
            },
            Beginning::Random(law) => random(*law),
            Beginning::Custom(start) => start.clone(),
            Beginning::Overlaps(q, r) => {
                let (q, r) = (matrix(q, "q")?, matrix(r, "r")?);
                Arc::new(Given(Overlaps::spread(shape, &self.spectrum, (&q, &r, &teachers), scalars)?))
            }
        })
    }
}

fn matrix(rows: &[Vec<f64>], name: &'static str) -> Result<Mat, BuildError> {
    Mat::from_rows(rows).ok_or(BuildError::Ragged { name })
}

/// What to write down, in words: observables are named as in descriptions and found when the problem is known; see [`Record::at`].
#[derive(Debug, Clone, PartialEq)]
pub struct RecordBuilder {
    times: Vec<f64>,
    observe: Vec<String>,
    events: Vec<NamedEvent>,
    replicas: u32,
    seed: u64,
}

/// An event whose observable is still a text.
#[derive(Debug, Clone, PartialEq)]
struct NamedEvent {
    name: String,
    observable: String,
    level: f64,
    crossing: Crossing,
    stops: bool,
}

impl Record {
    /// Begins a record of the loss at these times, of one replica.
    pub fn at(times: impl Into<Vec<f64>>) -> RecordBuilder {
        RecordBuilder {
            times: times.into(),
            observe: vec!["loss".into()],
            events: Vec::new(),
            replicas: 1,
            seed: 0,
        }
    }

    /// Begins a record at n equally spaced times from 0 to `end`.
    pub fn until(end: f64, n: usize) -> RecordBuilder {
        Self::at(linear_times(0.0, end, n))
    }
}

impl RecordBuilder {
    /// Sets the columns: `loss`, `R[0,0]`, `Q[*,*]`, `abs(R[0,0] - R[0,1])`, …
    pub fn observe<S: Into<String>>(mut self, observables: impl IntoIterator<Item = S>) -> Self {
        self.observe = observables.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the number of independent replicas.
    pub fn replicas(mut self, replicas: u32) -> Self {
        self.replicas = replicas;
        self
    }

    /// Sets the seed of all random numbers.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Notes the first time at which an observable crosses a level.
    pub fn event(self, name: &str, observable: &str, crossing: Crossing, level: f64) -> Self {
        self.with_event(name, observable, crossing, level, false)
    }

    /// Ends a replica at the first time at which an observable crosses a level.
    pub fn stop_when(self, name: &str, observable: &str, crossing: Crossing, level: f64) -> Self {
        self.with_event(name, observable, crossing, level, true)
    }

    fn with_event(
        mut self,
        name: &str,
        observable: &str,
        crossing: Crossing,
        level: f64,
        stops: bool,
    ) -> Self {
        let (name, observable) = (name.into(), observable.into());
        self.events.push(NamedEvent { name, observable, level, crossing, stops });
        self
    }

    /// The record of a problem: its observables are found by their names.
    pub fn build(&self, problem: &Problem) -> Result<Record, BuildError> {
        let mut observables: Vec<Arc<dyn Observable>> = Vec::new();
        for text in &self.observe {
            observables.extend(observable::parse(text, problem)?);
        }
        let mut record = Record::new(self.times.clone(), observables);
        for event in &self.events {
            let found = observable::parse(&event.observable, problem)?;
            let [observable] = found.as_slice() else {
                return Err(BuildError::EventObservable {
                    event: event.name.clone(),
                    text: event.observable.clone(),
                    count: found.len(),
                });
            };
            record.events.push(Event {
                name: event.name.clone(),
                observable: observable.clone(),
                level: event.level,
                crossing: event.crossing,
                stops: event.stops,
            });
        }
        Ok(Record { replicas: self.replicas, seed: self.seed, ..record })
    }
}
