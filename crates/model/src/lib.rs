//! The vocabulary of didact: what is learned, from which inputs, how, and what is observed.
//!
//! ```text
//!  Problem                                    Record                 Trajectory
//!    rule: LocalRule  (what is learned)         times, events          columns over time,
//!    about: ModelInfo (names and remarks)       observables     ──►    per replica
//!    spectrum         (the inputs)              replicas, seed
//!    training, start, clock            ──►  Engine (other crates)
//! ```
//!
//! Everything passes through two small things. A [`rule::LocalRule`] says what is learned: it sees the input only
//! through its projections and answers with one number per trained row. A [`trajectory::Trajectory`] says what was
//! observed. Engines, in other crates, turn the first into the second.
//!
//! Most models are a [`teacher_student::Student`] and a [`teacher_student::Teacher`] that are joined by a [`loss::Loss`]; see
//! [`teacher_student`] for a whole one. A [`family::Family`] makes rules from parameters that a user writes.

pub mod averages;
pub mod builder;
pub mod clock;
pub mod composed_start;
pub mod constraint;
pub mod engine;
pub mod family;
pub mod files;
pub mod linearised;
pub mod link;
pub mod loss;
mod machine;
pub mod observable;
pub mod overlaps;
pub mod plain_words;
pub mod problem;
pub mod quantity;
pub mod record;
pub mod recorder;
pub mod rule;
pub mod spectrum;
pub mod start;
pub mod teacher_student;
pub mod timed;
pub mod training;
pub mod trajectory;

pub use builder::{BuildError, ProblemBuilder, RecordBuilder};
pub use clock::Clock;
pub use constraint::Constraint;
pub use engine::{Cost, Engine, EngineError, EngineOptions, Monitor, NoMonitor, OptionError};
pub use family::{ModelInfo, NoFamily, Reference};
pub use link::Link;
pub use loss::Loss;
pub use overlaps::{Overlaps, Velocities};
pub use problem::{Problem, Samples, Training};
pub use record::{Event, Record};
pub use recorder::Recorder;
pub use rule::{
    Averages, BatchRule, CurvatureRule, Jumps, Kick, LabelledRule, Law, LocalRule, Needed, Sample, Shape,
};
pub use spectrum::Spectrum;
pub use training::{GradientMap, Momentum, Way};
pub use trajectory::{EndState, Outcome, Statistics, Trajectory};
