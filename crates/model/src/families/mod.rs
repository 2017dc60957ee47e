//! The model families, one file or folder each.
//!
//! A family is a struct of parameters that implements [`Family`]; one line of `families!` below registers it, and
//! descriptions, schema, command line and lists follow.

pub mod committee;
pub mod lora;
pub mod low_rank;
pub mod multi_index;
pub mod quadratic;

use crate::composed_start::ScalarLaw;
use crate::problem::Problem;
use crate::quantity::Quantity;
use crate::rule::LocalRule;
use crate::start::Start;
use didact_math::activation::ActivationError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A paper or book.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    /// Key for bibliographies.
    pub key: &'static str,
    /// Authors, title, journal, year.
    pub citation: &'static str,
    /// DOI or arXiv number, with its prefix.
    pub locator: &'static str,
}

/// Why the parameters of a family make no model.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// A count that must be positive.
    #[error("{name} is 0; at least 1 is needed")]
    Zero {
        /// Which parameter.
        name: &'static str,
    },
    /// A list of the wrong length.
    #[error("{name} has {given} entries, expected {expected}")]
    Length {
        /// Which parameter.
        name: &'static str,
        /// Given.
        given: usize,
        /// Expected.
        expected: usize,
    },
    /// A number that is not finite.
    #[error("{name} holds {value}, which is not a finite number")]
    NotFinite {
        /// Which parameter.
        name: &'static str,
        /// The value.
        value: f64,
    },
    /// A bad activation.
    #[error("{name}: {source}")]
    Activation {
        /// Which parameter.
        name: &'static str,
        /// What is wrong.
        source: ActivationError,
    },
    /// Anything else that a family refuses.
    #[error("{message}")]
    Invalid {
        /// Which parameter.
        name: &'static str,
        /// What is wrong and what to do.
        message: String,
    },
}

impl ModelError {
    /// The key of `[model]` that is wrong.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Zero { name }
            | Self::Length { name, .. }
            | Self::NotFinite { name, .. }
            | Self::Activation { name, .. }
            | Self::Invalid { name, .. } => name,
        }
    }
}

/// Why a family does not admit a problem that is otherwise well posed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// Dotted key of the description that is wrong, such as `training.constraint`.
    pub key: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
}

/// A model family: parameters that make a rule.
pub trait Family {
    /// Name in descriptions.
    const NAME: &'static str;
    /// One line for lists.
    const SUMMARY: &'static str;

    /// What to cite.
    fn references(&self) -> Vec<Reference>;

    /// The rule of these parameters.
    fn rule(&self) -> Result<Arc<dyn LocalRule>, ModelError>;

    /// The rule that a check looks at: shape, observables and refusals of [`Self::rule`], without numbers that take long to
    /// compute. It must not be run; an expensive number that is missing is NaN.
    fn draft(&self) -> Result<Arc<dyn LocalRule>, ModelError> {
        self.rule()
    }

    /// Values of the trained scalars before training.
    fn starting_scalars(&self) -> Vec<f64>;

    /// The law of the scalars of a description that gives none, in a finite dimension; `None`: [`Self::starting_scalars`].
    fn scalar_law(&self) -> Option<ScalarLaw> {
        None
    }

    /// Where learning starts when a description has no `[start]`; `None`: the default of descriptions.
    fn start(&self) -> Result<Option<Arc<dyn Start>>, ModelError> {
        Ok(None)
    }

    /// Whether training, data and start make sense for these parameters.
    fn admits(&self, problem: &Problem) -> Result<(), Refusal> {
        let _ = problem;
        Ok(())
    }

    /// Predictions that are not trajectories.
    fn quantities() -> &'static [Quantity] {
        &[]
    }

    /// Small instances on which every registered family is tested (gradient, averages).
    fn examples() -> Vec<Self>
    where
        Self: Sized;
}

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
