//! How teacher-student networks learn in high dimension: exact theory, finite-size simulation, and the comparison of the two.
//!
//! This is the one crate that a Rust program adds. It re-exports the crates of the workspace under short names, and the
//! [`prelude`] holds what most programs need.
//!
//! ```text
//!  Problem::of(family) ── learning rate, start, dimension ──►  .run(engine, &record)  ──►  Trajectory
//!        │                                                          │                        columns over time,
//!  families: Committee, LoRA, quadratic, …              Ode, Reduced, Direct,                one curve per replica,
//!  or your own LocalRule                                FullBatch, Dmft                      first passages, outcomes
//! ```
//!
//! # Theory and simulation of a committee
//!
//! Two erf units learn from two. The order-parameter equations give the limit d → ∞; `Reduced` simulates SGD in d = 1000
//! dimensions by its overlaps alone, exactly in law.
//!
//! ```
//! use didact::prelude::*;
//!
//! let problem = Problem::of(Committee::soft(2, 2, "erf(z/sqrt2)"))
//!     .start([[0.25, 0.0], [0.0, 0.25]], [[0.1, 0.0], [0.0, 0.1]])
//!     .learning_rate(1.0)
//!     .dimension(1000);
//! let record = Record::until(80.0, 9).observe(["loss", "R[0,0]"]).replicas(16);
//!
//! let theory = problem.run(Ode::default(), &record)?;
//! let sgd = problem.run(Reduced, &record)?;
//!
//! let (predicted, simulated) = (theory.mean("loss").unwrap(), sgd.mean("loss").unwrap());
//! for ((time, p), s) in theory.times.iter().zip(&predicted).zip(&simulated) {
//!     println!("{time:5.1}  {:.5}  {:.5} ± {:.5}", p.value, s.value, s.error);
//! }
//! # assert!(predicted[8].value < 0.02 * predicted[0].value);
//! # assert!((predicted[4].value - simulated[4].value).abs() < 0.1 * predicted[0].value);
//! # Ok::<(), BuildError>(())
//! ```
//!
//! # A rule of your own
//!
//! A model sees its input x only through projections h = W x, trained rows first. It says what the loss of a sample is and what
//! its gradient with respect to the trained fields is; Gaussian averages then come from quadrature, and every engine runs it.
//!
//! ```
//! use didact::prelude::*;
//!
//! /// One linear unit learns a linear label under the loss log cosh(w·x − v·x).
//! #[derive(Debug)]
//! struct RobustRegression;
//!
//! impl LocalRule for RobustRegression {
//!     fn shape(&self) -> Shape {
//!         Shape { trained: 1, frozen: 1, ..Shape::default() }
//!     }
//!     fn loss(&self, sample: &Sample) -> f64 {
//!         (sample.fields[0] - sample.fields[1] - sample.noise).cosh().ln()
//!     }
//!     fn kick(&self, sample: &Sample, out: &mut Kick) {
//!         out.rows[0] = (sample.fields[0] - sample.fields[1] - sample.noise).tanh();
//!     }
//! }
//!
//! let problem = Problem::of_rule(RobustRegression).start([[0.5]], [[0.0]]).learning_rate(0.5).dimension(200);
//! let record = Record::until(6.0, 3);
//! let (theory, sgd) = (problem.run(Ode::default(), &record)?, problem.run(Direct, &record)?);
//! assert!(theory.curves("loss").unwrap()[0][2] < 0.05);
//! assert!(sgd.curves("loss").unwrap()[0][2] < 0.1);
//! # Ok::<(), BuildError>(())
//! ```
//!
//! # Where to read on
//!
//! | question | crate |
//! |---|---|
//! | What is a rule, a problem, a record, a trajectory? | [`model`] |
//! | Which models are there, and how is one added? | [`families`] |
//! | What do the engines compute? | [`theory`], [`simulate`] |
//! | What does a curve say: passages, plateaus, exponents? | [`analysis`] |
//! | Gaussian averages, integrators, random numbers, spectra | [`math`] |
//! | Descriptions, run folders, claims, figures (feature `experiment`) | `experiment`, `figure` |

pub use didact_analysis as analysis;
#[cfg(feature = "experiment")]
pub use didact_experiment as experiment;
pub use didact_families as families;
#[cfg(feature = "experiment")]
pub use didact_figure as figure;
pub use didact_math as math;
pub use didact_model as model;
pub use didact_simulate as simulate;
pub use didact_theory as theory;

/// What most programs need: `use didact::prelude::*;`.
pub mod prelude {
    pub use didact_families::committee::Committee;
    pub use didact_families::formula::FormulaModel;
    pub use didact_families::lora::{LoraSingleIndex, LoraTwoLayer};
    pub use didact_families::low_rank::LowRank;
    pub use didact_families::multi_index::MultiIndex;
    pub use didact_families::quadratic::QuadraticNetworks;
    pub use didact_families::{Family, Model};
    pub use didact_math::linalg::Mat;
    pub use didact_model::record::{Crossing, linear_times, log_times};
    pub use didact_model::start::RowLaw;
    pub use didact_model::teacher_student::{Student, Teacher, TeacherStudent};
    pub use didact_model::{
        BuildError, Clock, Engine, Kick, LocalRule, Loss, NoMonitor, Outcome, Overlaps, Problem, Record,
        Sample, Shape, Spectrum, Training, Trajectory,
    };
    pub use didact_simulate::{Direct, FullBatch, Reduced};
    pub use didact_theory::OrderParameterOde as Ode;
    pub use didact_theory::dmft::Dmft;
}
