//! What to save and when to stop: values shared by every engine.

use crate::observable::Observable;
use std::sync::Arc;

/// Which way an observable crosses a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Crossing {
    /// From below.
    Rises,
    /// From above.
    Falls,
}

/// A named first passage of an observable through a level.
#[derive(Debug, Clone)]
pub struct Event {
    /// Name in tables.
    pub name: String,
    /// What is watched.
    pub observable: Arc<dyn Observable>,
    /// The level.
    pub level: f64,
    /// The direction.
    pub crossing: Crossing,
    /// Whether the replica ends there.
    pub stops: bool,
}

impl Event {
    /// Positive once the event has happened.
    pub fn excess(&self, value: f64) -> f64 {
        match self.crossing {
            Crossing::Rises => value - self.level,
            Crossing::Falls => self.level - value,
        }
    }
}

/// What an engine writes down.
#[derive(Debug, Clone)]
pub struct Record {
    /// Times to save at, in the clock of the problem; increasing, from 0 on.
    pub times: Vec<f64>,
    /// Columns.
    pub observables: Vec<Arc<dyn Observable>>,
    /// First passages to note.
    pub events: Vec<Event>,
    /// Independent repetitions.
    pub replicas: u32,
    /// Number of the first of them: replica r has the same random numbers whichever replicas run beside it.
    pub first_replica: u32,
    /// RngAddress of the random numbers.
    pub seed: u64,
    /// How often simulations look for events, in the clock; the spacing of 2000 looks over the run unless given.
    pub watch_every: Option<f64>,
    /// Position in a schedule: streams of different stages never overlap.
    pub stage: u16,
    /// Time of the whole run at which this part of it begins: schedules of rates count from the start of the run.
    pub begin: f64,
}

impl Record {
    /// One replica, no events.
    pub fn new(times: Vec<f64>, observables: Vec<Arc<dyn Observable>>) -> Self {
        Self {
            times,
            observables,
            events: Vec::new(),
            replicas: 1,
            first_replica: 0,
            seed: 0,
            watch_every: None,
            stage: 0,
            begin: 0.0,
        }
    }

    /// Checks that times increase from 0 on and that something is asked for.
    pub fn validate(&self) -> Result<(), RecordError> {
        if self.times.is_empty() {
            return Err(RecordError::NoTimes);
        }
        if self.replicas == 0 {
            return Err(RecordError::NoReplicas);
        }
        if let Some(index) = self.times.iter().position(|t| !(t.is_finite() && *t >= 0.0)) {
            return Err(RecordError::BadTime { index, time: self.times[index] });
        }
        match self.times.windows(2).position(|w| w[1] <= w[0]) {
            Some(i) => Err(RecordError::NotIncreasing {
                index: i + 1,
                before: self.times[i],
                time: self.times[i + 1],
            }),
            None => Ok(()),
        }
    }

    /// True when an observable or an event is an average over the training set.
    pub fn needs_training_set(&self) -> bool {
        self.events_need_training_set() || self.observables.iter().any(|o| o.needs_training_set())
    }

    /// True when an event watches an average over the training set.
    pub fn events_need_training_set(&self) -> bool {
        self.events.iter().any(|e| e.observable.needs_training_set())
    }

    /// True when an observable or an event is an overlap of velocities.
    pub fn needs_velocities(&self) -> bool {
        self.observables.iter().chain(self.events.iter().map(|e| &e.observable)).any(|o| o.needs_velocities())
    }

    /// Bytes of the saved values of all replicas.
    pub fn bytes(&self) -> f64 {
        f64::from(self.replicas) * self.times.len() as f64 * self.observables.len() as f64 * 8.0
    }

    /// Numbers of the replicas.
    pub fn replica_numbers(&self) -> std::ops::Range<u32> {
        self.first_replica..self.first_replica + self.replicas
    }

    /// The last saved time.
    pub fn end(&self) -> f64 {
        self.times.last().copied().unwrap_or(0.0)
    }
}

/// What is wrong with a record.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RecordError {
    /// Nothing to save.
    #[error("no times to save at")]
    NoTimes,
    /// No replica.
    #[error("0 replicas; run at least 1")]
    NoReplicas,
    /// Negative or not finite.
    #[error("saved time {index} is {time}; times are finite and not negative")]
    BadTime {
        /// Position.
        index: usize,
        /// Its value.
        time: f64,
    },
    /// Not increasing.
    #[error("saved time {index} is {time}, not after {before}; times must increase")]
    NotIncreasing {
        /// Position.
        index: usize,
        /// The time before it.
        before: f64,
        /// Its value.
        time: f64,
    },
}

/// n equally spaced times from a to b.
pub fn linear_times(a: f64, b: f64, n: usize) -> Vec<f64> {
    let last = n.saturating_sub(1).max(1) as f64;
    (0..n).map(|i| if i + 1 == n { b } else { a + (b - a) * i as f64 / last }).collect()
}

/// n logarithmically spaced times from a > 0 to b.
pub fn log_times(a: f64, b: f64, n: usize) -> Vec<f64> {
    let last = n.saturating_sub(1).max(1) as f64;
    let at = |i: usize| (a.ln() + (b / a).ln() * i as f64 / last).exp();
    (0..n).map(|i| if i + 1 == n { b } else { at(i) }).collect()
}
