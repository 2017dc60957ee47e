//! Finite-size simulation: one-pass SGD in d dimensions, its overlaps alone, and full-batch gradient descent.
//!
//! ```text
//!                    ┌─ Direct     d-dimensional weights: the definition of right
//! Problem, Record ───┼─ Reduced    only their Gram matrices, exact in law, at a cost free of d       ───► Trajectory
//!                    └─ FullBatch  a fixed training set, visited whole at every step
//! ```
//!
//! Each engine is a [`Chain`] per replica. One loop ([`chain::run_replicas`]) steps chains, alone or in groups, and a
//! [`didact_model::Recorder`] writes down what they show. Random numbers have addresses, so that neither threads nor the
//! order of replicas change a bit.
//!
//! One erf unit learns from another in 1000 dimensions:
//!
//! ```
//! use didact_families::{Family, committee::Committee};
//! use didact_math::linalg::Mat;
//! use didact_model::{Clock, Engine, NoFamily, NoMonitor, Overlaps, Problem, Record, Spectrum, Training};
//! use didact_model::{observable, start::Given};
//! use didact_simulate::Reduced;
//! use std::sync::Arc;
//!
//! let (rule, spectrum) = (Committee::soft(1, 1, "erf(z/sqrt2)").rule()?, Spectrum::isotropic());
//! let (q, r, t) = (Mat::identity(1).scaled(0.5), Mat::identity(1).scaled(0.1), Mat::identity(1));
//! let start = Arc::new(Given(Overlaps::spread(rule.shape(), &spectrum, (&q, &r, &t), vec![])?));
//! let (dimension, training, clock) = (Some(1000), Training::online(1.0), Clock::Alpha);
//! let problem = Problem { rule, about: Arc::new(NoFamily), spectrum, dimension, training, start, clock };
//! let record = Record { replicas: 8, ..Record::new(vec![0.0, 20.0], observable::parse("loss", &problem)?) };
//! let loss = Reduced.run(&problem, &record, &NoMonitor)?.mean("loss").unwrap();
//! assert!(loss[1].value < 0.5 * loss[0].value);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod chain;
pub mod direct;
mod frozen_factor;
pub mod full_batch;
mod kernels;
pub mod noise;
pub mod reduced;
mod step_clock;
mod ways;
mod weights;

pub use chain::Chain;
pub use direct::{Direct, DirectOptions};
pub use full_batch::FullBatch;
pub use reduced::{Reduced, ReducedOptions};
