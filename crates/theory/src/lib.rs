//! Predictions: what happens to the overlaps when the dimension goes to infinity.
//!
//! ```text
//!              ┌─ averages of kicks ──► equations of the overlaps ──► OrderParameterOde   one pass, d → ∞
//! LocalRule ───┼─ kick, curvature   ──► effective process         ──► dmft::Dmft          training set, n, d → ∞
//!              ├─ products of kicks ──► covariance of replicas    ──► fluctuations        one pass, order 1/√d
//!              └─ curvature         ──► Hessians, thresholds      ──► landscape           quantities, not curves
//!
//! equations of the overlaps ──► their transpose ──► control      rates as functions of time that make a loss smallest
//! ```
//!
//! The engines end in a [`didact_model::Trajectory`]; what is not a curve is a [`didact_model::quantity::Quantity`].
//!
//! One erf unit learns from another, d → ∞:
//!
//! ```
//! use didact_families::{Family, committee::Committee};
//! use didact_math::linalg::Mat;
//! use didact_model::{Clock, Engine, NoFamily, NoMonitor, Overlaps, Problem, Record, Spectrum, Training};
//! use didact_model::{observable, start::Given};
//! use didact_theory::OrderParameterOde;
//! use std::sync::Arc;
//!
//! let (rule, spectrum) = (Committee::soft(1, 1, "erf(z/sqrt2)").rule()?, Spectrum::isotropic());
//! let (q, r, t) = (Mat::identity(1).scaled(0.5), Mat::identity(1).scaled(0.1), Mat::identity(1));
//! let start = Arc::new(Given(Overlaps::spread(rule.shape(), &spectrum, (&q, &r, &t), vec![])?));
//! let (training, clock) = (Training::online(1.0), Clock::Alpha);
//! let problem = Problem { rule, about: Arc::new(NoFamily), spectrum, dimension: None, training, start, clock };
//! let record = Record::new(vec![0.0, 20.0], observable::parse("loss", &problem)?);
//! let trajectory = OrderParameterOde::default().run(&problem, &record, &NoMonitor)?;
//! let loss = &trajectory.curves("loss").unwrap()[0];
//! assert!(loss[1] < 0.5 * loss[0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod control;
pub mod dmft;
pub mod fluctuations;
pub mod landscape;
mod model_input;
pub mod order_parameters;

pub use order_parameters::{Numerical, OdeMethod, OdeOptions, OrderParameterOde};

use didact_model::quantity::Quantity;

/// Predictions that need the machinery of this crate, with the name of their group. Those of a single family are
/// registered by the family.
pub fn quantities() -> Vec<(&'static str, &'static Quantity)> {
    let training = dmft::TRAINING.iter().map(|quantity| ("training", quantity));
    landscape::quantities().into_iter().chain(training).chain(control::quantities()).collect()
}
