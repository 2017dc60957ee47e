//! The model families, one file or folder each.
//!
//! A family is a struct of parameters that implements [`Family`]; one line of `families!` below registers it, and
//! descriptions, schema, command line and lists follow.

pub mod committee;
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
        /// The `[model]` of a description: any registered family, told apart by `family`.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "family", rename_all = "kebab-case")]
        pub enum Model {
            $(#[doc = concat!("See [`", stringify!($module), "::", stringify!($spec), "`].")]
              $variant($module::$spec),)+
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
    LoraSingleIndex(lora::LoraSingleIndex),
    LoraTwoLayer(lora::LoraTwoLayer),
    LowRankPerturbation(low_rank::LowRank),
    MultiIndex(multi_index::MultiIndex),
    QuadraticNetworks(quadratic::QuadraticNetworks),
}
