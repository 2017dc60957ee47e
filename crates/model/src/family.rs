//! What a model family is: parameters that make a [`LocalRule`], with what to cite and what to refuse.

use crate::composed_start::ScalarLaw;
use crate::problem::Problem;
use crate::quantity::Quantity;
use crate::rule::LocalRule;
use crate::start::Start;
use didact_math::activation::ActivationError;
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
