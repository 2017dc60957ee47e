//! The model families: parameters that become a learning rule, with what is known about it in closed form.
//!
//! ```text
//!  [model] of a description                      who uses it
//!        │
//!        ▼
//!  ┌───────────────────────────────┐
//!  │ Model ── one line per family  │
//!  │   Family: parameters          │
//!  │     rule.rs       LocalRule ──┼──► every engine: ode, reduced, direct, full-batch, dmft
//!  │     predictions/  closed forms│──► rule.rs (averages, risk) and quantities
//!  │     quantities    by name   ──┼──► `didact compute`, [[scan]], measures
//!  │     observables, warnings   ──┼──► the columns and the remarks of a run
//!  └───────────────────────────────┘
//! ```
//!
//! A family is a struct of parameters that implements [`Family`]. It is registered with its `mod` and one line of `families!` in this
//! file; descriptions, the JSON schema, the command line and lists follow, and the tests in `tests/all` run over its examples: `kick` is
//! the gradient of `loss`, batches equal single samples, closed-form averages equal quadrature and sampling.
//!
//! | family | module | what learns |
//! |---|---|---|
//! | `committee` | [`committee`] | K hidden units learn from M |
//! | `formula` | [`formula`] | whatever a formula of the loss says; the template of a family |
//! | `lora-single-index`, `lora-two-layer` | [`lora`] | a low-rank adapter on a pre-trained student |
//! | `low-rank-perturbation` | [`low_rank`] | a rank-one change of a wide network |
//! | `multi-index` | [`multi_index`] | a two-layer network learns a formula of a few projections |
//! | `quadratic-networks` | [`quadratic`] | p units z² learn from p* |
//!
//! # A new family
//!
//! This is a whole family, as it would stand in a file of its own: the product of two linear units learns a product.
//!
//! ```
//! use didact_families::{Family, ModelError, Reference};
//! use didact_model::loss::Loss;
//! use didact_model::rule::{Kick, LocalRule, Shape};
//! use didact_model::teacher_student::{Student, Teacher, TeacherStudent};
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//! use std::sync::Arc;
//!
//! /// f = g (w_1·x)(w_2·x) learns from y = (v_1·x)(v_2·x).
//! #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
//! #[serde(deny_unknown_fields, rename_all = "kebab-case")]
//! pub struct Bilinear {
//!     /// g, the gain of the student.
//!     pub gain: f64,
//! }
//!
//! impl Family for Bilinear {
//!     const NAME: &'static str = "bilinear";
//!     const SUMMARY: &'static str = "a product of two linear units learns from another";
//!
//!     fn references(&self) -> Vec<Reference> {
//!         Vec::new()
//!     }
//!     fn rule(&self) -> Result<Arc<dyn LocalRule>, ModelError> {
//!         if !self.gain.is_finite() {
//!             return Err(ModelError::NotFinite { name: "gain", value: self.gain });
//!         }
//!         Ok(Arc::new(TeacherStudent::new(Product { gain: self.gain }, Product { gain: 1.0 }, Loss::HALF_SQUARE)))
//!     }
//!     fn starting_scalars(&self) -> Vec<f64> {
//!         Vec::new()
//!     }
//!     fn examples() -> Vec<Self> {
//!         vec![Self { gain: 1.0 }, Self { gain: -0.5 }]
//!     }
//! }
//!
//! #[derive(Debug)]
//! struct Product {
//!     gain: f64,
//! }
//!
//! impl Student for Product {
//!     fn shape(&self) -> Shape {
//!         Shape { trained: 2, ..Shape::default() }
//!     }
//!     fn output(&self, h: &[f64], _scalars: &[f64]) -> f64 {
//!         self.gain * h[0] * h[1]
//!     }
//!     fn gradient(&self, h: &[f64], scalars: &[f64], out: &mut Kick) -> f64 {
//!         (out.rows[0], out.rows[1]) = (self.gain * h[1], self.gain * h[0]);
//!         self.output(h, scalars)
//!     }
//! }
//!
//! impl Teacher for Product {
//!     fn directions(&self) -> usize {
//!         2
//!     }
//!     fn label(&self, h: &[f64]) -> f64 {
//!         self.gain * h[0] * h[1]
//!     }
//! }
//!
//! // Students that know nothing of their teachers, all rows of unit length: E[(y − f)²]/2 = 1 by independence.
//! let rule = Bilinear { gain: 1.0 }.rule()?;
//! let covariance = didact_math::linalg::Mat::identity(rule.shape().rows());
//! let law = didact_model::Law { covariance: &covariance, scalars: &[], label_noise: 0.0 };
//! assert!((rule.risk(&law) - 1.0).abs() < 1e-10);
//! # Ok::<(), ModelError>(())
//! ```

pub mod committee;
pub mod formula;
pub mod lora;
pub mod low_rank;
pub mod multi_index;
pub mod quadratic;

use didact_model::composed_start::ScalarLaw;
pub use didact_model::family::{Family, ModelError, ModelInfo, Reference, Refusal};
use didact_model::problem::Problem;
use didact_model::quantity::Quantity;
use didact_model::rule::LocalRule;
use didact_model::start::Start;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

macro_rules! families {
    ($($variant:ident($module:ident::$spec:ident)),+ $(,)?) => {
        /// The `[model]` of a description: any registered family, distinguished by `family`.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "family", rename_all = "kebab-case")]
        // A variant without a comment of its own has that of its parameters in the schema and in the option reference.
        #[allow(missing_docs)]
        pub enum Model {
            $($variant($module::$spec),)+
        }

        impl Model {
            /// Name of the family.
            pub fn family(&self) -> &'static str {
                match self { $(Self::$variant(_) => <$module::$spec as Family>::NAME,)+ }
            }
            /// What to cite.
            pub fn references(&self) -> Vec<Reference> {
                match self { $(Self::$variant(spec) => spec.references(),)+ }
            }
            /// The rule.
            pub fn rule(&self) -> Result<Arc<dyn LocalRule>, ModelError> {
                match self { $(Self::$variant(spec) => spec.rule(),)+ }
            }
            /// The rule as far as a check needs it; not to be run.
            pub fn draft(&self) -> Result<Arc<dyn LocalRule>, ModelError> {
                match self { $(Self::$variant(spec) => spec.draft(),)+ }
            }
            /// What a problem keeps of the family: observables and remarks.
            pub fn about(&self) -> Arc<dyn ModelInfo> {
                match self { $(Self::$variant(spec) => spec.about(),)+ }
            }
            /// Standard deviation of the label noise where a description says nothing of it.
            pub fn standard_noise(&self) -> f64 {
                match self { $(Self::$variant(spec) => spec.standard_noise(),)+ }
            }
            /// Values of the trained scalars before training.
            pub fn starting_scalars(&self) -> Vec<f64> {
                match self { $(Self::$variant(spec) => spec.starting_scalars(),)+ }
            }
            /// The law of the scalars of a description that gives none, in a finite dimension, if it is not those.
            pub fn scalar_law(&self) -> Option<ScalarLaw> {
                match self { $(Self::$variant(spec) => spec.scalar_law(),)+ }
            }
            /// The family's own start, if it has one.
            pub fn start(&self) -> Result<Option<Arc<dyn Start>>, ModelError> {
                match self { $(Self::$variant(spec) => spec.start(),)+ }
            }
            /// Whether training, data and start make sense for these parameters.
            pub fn admits(&self, problem: &Problem) -> Result<(), Refusal> {
                match self { $(Self::$variant(spec) => spec.admits(problem),)+ }
            }
            /// Small instances of every family, for tests that run over all of them.
            pub fn examples() -> Vec<Self> {
                let mut all = Vec::new();
                $(all.extend(<$module::$spec as Family>::examples().into_iter().map(Self::$variant));)+
                all
            }
            /// What to cite for a family known by its name; nothing for an unknown one.
            pub fn references_of(family: &str) -> Vec<Reference> {
                Self::examples().iter().find(|m| m.family() == family).map(Self::references).unwrap_or_default()
            }
            /// Every quantity with the name of its family.
            pub fn quantities() -> Vec<(&'static str, &'static Quantity)> {
                let mut all = Vec::new();
                $(all.extend(<$module::$spec as Family>::quantities().iter().map(|q| (<$module::$spec as Family>::NAME, q)));)+
                all
            }
            /// Name and summary of every family.
            pub fn catalogue() -> Vec<(&'static str, &'static str)> {
                vec![$((<$module::$spec as Family>::NAME, <$module::$spec as Family>::SUMMARY)),+]
            }
        }
    };
}

families! {
    Committee(committee::Committee),
    Formula(formula::FormulaModel),
    LoraSingleIndex(lora::LoraSingleIndex),
    LoraTwoLayer(lora::LoraTwoLayer),
    LowRankPerturbation(low_rank::LowRank),
    MultiIndex(multi_index::MultiIndex),
    QuadraticNetworks(quadratic::QuadraticNetworks),
}
