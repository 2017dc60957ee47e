//! Why a question about a landscape has no answer.

use didact_math::spectra::WeightLawError;
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
    /// Quadrature is for one trained row.
    #[error("exact averages need one trained row, not {trained}\n\nhint: use the engine `dmft`")]
    NotOneRow {
        /// Trained rows.
        trained: usize,
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
    /// Training diverges before the step asked for.
    #[error(
        "gradient descent diverges at step {step} for delta = {delta}\n\nhint: use a smaller learning rate"
    )]
    Diverges {
        /// δ.
        delta: f64,
        /// First step without a law.
        step: usize,
    },
    /// The root finder met a value that is no number.
    #[error("psi is not a number near delta = {delta}")]
    NotANumber {
        /// δ.
        delta: f64,
    },
    /// A data set that would not fit into memory.
    #[error(
        "{samples} inputs in d = {dimension} would need {gigabytes:.1} GB; data sets up to {most} GB are kept\n\nhint: use a smaller d"
    )]
    TooLarge {
        /// n.
        samples: usize,
        /// d.
        dimension: usize,
        /// Needed.
        gigabytes: f64,
        /// Allowed.
        most: f64,
    },
    /// The loss depends on the frozen fields not through a label alone.
    #[error(
        "this student reads frozen directions itself, not through a label alone: there are no easy and hard directions\n\n\
         hint: use a student without pre-trained rows"
    )]
    NoLabel,
    /// Numbers that are not rows are trained too.
    #[error(
        "this model trains {scalars} numbers beside its rows; the Hessians here are those of rows alone\n\n\
         hint: use a model with fixed output weights"
    )]
    TrainedScalars {
        /// How many.
        scalars: usize,
    },
    /// σ″ has Dirac terms.
    #[error(
        "the units have kinks, where the second derivative is a Dirac term: their Hessian has no bounded weights\n\n\
         hint: use a smooth activation (gelu, tanh, quadratic, softplus)"
    )]
    Kinked,
    /// Optimal preprocessing is known for one direction.
    #[error(
        "optimal preprocessing is for links of one direction without noise and without flat pieces, not for {directions} \
         directions\n\nhint: give a formula in y and delta"
    )]
    NotOneDirection {
        /// How many.
        directions: usize,
    },
    /// A preprocessing without an upper bound.
    #[error(
        "the preprocessing reaches {value} on large labels: the bulk has no right edge\n\nhint: use a bounded function of y"
    )]
    UnboundedPreprocessing {
        /// Its value far out.
        value: f64,
    },
    /// From the spectrum.
    #[error(transparent)]
    Spectrum(#[from] WeightLawError),
}
