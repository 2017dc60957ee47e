//! What a model family is: parameters that make a [`LocalRule`], with what to cite and what to refuse.

use crate::composed_start::ScalarLaw;
use crate::observable::Observable;
use crate::overlaps::Overlaps;
use crate::problem::Problem;
use crate::quantity::Quantity;
use crate::rule::LocalRule;
use crate::start::Start;
use didact_math::activation::ActivationError;
use didact_math::expression::ExpressionError;
use std::fmt::Debug;
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
    /// A formula that cannot be read.
    #[error("{name}: {source}")]
    Formula {
        /// Which parameter.
        name: &'static str,
        /// What is wrong, and at which character.
        source: Box<ExpressionError>,
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
            | Self::Formula { name, .. }
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
///
/// Required are what a list prints, the rule, its starting scalars and a few examples; the rest is for families that have more to say.
pub trait Family: Debug + Clone + Send + Sync + 'static {
    /// Name in descriptions.
    const NAME: &'static str;
    /// One line for lists.
    const SUMMARY: &'static str;

    /// What to cite.
    fn references(&self) -> Vec<Reference>;

    /// The rule of these parameters.
    fn rule(&self) -> Result<Arc<dyn LocalRule>, ModelError>;

    /// The rule that a check looks at: shape and refusals of [`Self::rule`], without numbers that take long to compute. It must
    /// not be run; an expensive number that is missing is NaN.
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

    /// Observables that only this family has, found by their names. They are asked for after [`Self::rule`] or [`Self::draft`] has
    /// accepted the parameters.
    fn observables(&self) -> Vec<Arc<dyn Observable>> {
        Vec::new()
    }

    /// Standard deviation of the label noise where a description says nothing of it: 1 if the formula of the label names its
    /// noise, rather than having it added.
    fn standard_noise(&self) -> f64 {
        0.0
    }

    /// What a user should know before waiting for this run, such as a learning rate at which divergence is expected. The
    /// run goes on all the same.
    fn warning(&self, problem: &Problem) -> Option<String> {
        let _ = problem;
        None
    }

    /// Why the order-parameter equations never leave a start (an invariant subspace), and what to do instead.
    fn invariance(&self, start: &Overlaps) -> Option<String> {
        let _ = start;
        None
    }

    /// Predictions that are not trajectories.
    fn quantities() -> &'static [Quantity] {
        &[]
    }

    /// Small instances on which every registered family is tested (gradient, averages).
    fn examples() -> Vec<Self>;

    /// What a problem keeps of the family.
    fn about(&self) -> Arc<dyn ModelInfo> {
        Arc::new(self.clone())
    }
}

/// What a [`Problem`] keeps of the family that its rule is from: names and words, which no engine computes with.
///
/// Every [`Family`] is one; [`NoFamily`] stands for a rule that has none.
pub trait ModelInfo: Send + Sync + Debug {
    /// See [`Family::observables`].
    fn observables(&self) -> Vec<Arc<dyn Observable>>;
    /// See [`Family::warning`].
    fn warning(&self, problem: &Problem) -> Option<String>;
    /// See [`Family::invariance`].
    fn invariance(&self, start: &Overlaps) -> Option<String>;
}

impl<F: Family> ModelInfo for F {
    fn observables(&self) -> Vec<Arc<dyn Observable>> {
        Family::observables(self)
    }
    fn warning(&self, problem: &Problem) -> Option<String> {
        Family::warning(self, problem)
    }
    fn invariance(&self, start: &Overlaps) -> Option<String> {
        Family::invariance(self, start)
    }
}

/// A rule that belongs to no family: no observables of its own and nothing to say.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFamily;

impl ModelInfo for NoFamily {
    fn observables(&self) -> Vec<Arc<dyn Observable>> {
        Vec::new()
    }
    fn warning(&self, _problem: &Problem) -> Option<String> {
        None
    }
    fn invariance(&self, _start: &Overlaps) -> Option<String> {
        None
    }
}
