//! Why a question about a landscape has no answer.

use didact_math::spectra::SpectrumError;
use thiserror::Error;

/// Why a question about a landscape has no answer.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum LandscapeError {
    /// No bulk edge exists, hence no threshold.
    #[error(
        "the Hessian weights have no lower bound ({at_far} where a teacher field is {field:e}): the bulk reaches −∞ and no \
         threshold exists\n\nhint: use a loss of bounded slope (pseudo-huber, huber, log-cosh), or bounded labels"
    )]
    Unbounded {
        /// The smallest weight seen there.
        at_far: f64,
        /// How far.
        field: f64,
    },
    /// Every direction shows at first order.
    #[error(
        "this link has no hard direction: every direction is learned in a few steps\n\n\
         hint: nothing to detect; thresholds are for links such as z^2 or z1*z2"
    )]
    NothingHard,
    /// The number of fields is beyond a product rule.
    #[error(
        "{fields} Gaussian variables are too many for a product rule, which serves up to {most}\n\nhint: use the engine `dmft`, \
         which samples them"
    )]
    TooManyFields {
        /// How many.
        fields: usize,
        /// How many are possible.
        most: usize,
    },
    /// One-step kernels are for one trained row and one direction.
    #[error(
        "exact kernels after one step need one trained row and one teacher direction, not {trained} and {directions}\n\nhint: use the engine `dmft`"
    )]
    NotScalar {
        /// Trained rows.
        trained: usize,
        /// Frozen rows.
        directions: usize,
    },
    /// A link that is not finite on a node.
    #[error("the link is {value} at z = {at:?}; it must be finite for Gaussian z")]
    LinkNotFinite {
        /// Where.
        at: Vec<f64>,
        /// Its value.
        value: f64,
    },
    /// Labels that say nothing about z zᵀ.
    #[error(
        "the label carries no second-order information (largest eigenvalue {information:.2e}): spectral methods never see these \
         directions\n\nhint: look at the easy directions, or at estimators of higher order"
    )]
    NoSecondOrder {
        /// 1/δ_alg.
        information: f64,
    },
    /// A number outside its range.
    #[error("{name} is {value}; {rule}")]
    Range {
        /// Which.
        name: &'static str,
        /// Its value.
        value: f64,
        /// What is allowed.
        rule: &'static str,
    },
    /// ψ keeps its sign.
    #[error(
        "no threshold between delta = {low} and {high}: psi is {value_low} and {value_high} there{}",
        if *.value_high > 0.0 { ", so that no outlier appears" } else { ", so that the outlier is always there" }
    )]
    NoThreshold {
        /// First δ tried.
        low: f64,
        /// ψ there.
        value_low: f64,
        /// Last δ tried.
        high: f64,
        /// ψ there.
        value_high: f64,
    },
    /// The dynamics gave no law of weights.
    #[error("no law of Hessian weights at delta = {delta}: {reason}")]
    NoDynamics {
        /// δ.
        delta: f64,
        /// Why.
        reason: String,
    },
    /// From the spectrum.
    #[error(transparent)]
    Spectrum(#[from] SpectrumError),
}
