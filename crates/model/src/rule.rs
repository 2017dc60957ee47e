//! What is learned: a rule that sees the input only through its projections.
//!
//! A model is three functions, [`shape`](LocalRule::shape), [`loss`](LocalRule::loss) and [`kick`](LocalRule::kick). From these follow
//! its curvature, its Gaussian averages and its risk, slowly; a rule overrides what it knows in closed form. What only some rules can
//! do stands in four small traits, which a rule names where it has them:
//!
//! | trait | what it adds | without it |
//! |---|---|---|
//! | [`BatchRule`] | kicks, losses and derivatives of many samples at once | sample after sample |
//! | [`LabelledRule`] | labels that depend on the frozen fields alone | the label is part of `kick` |
//! | [`CurvatureRule`] | where the kick jumps, averages of its derivative | no jump, quadrature |
//! | [`HiddenUnits`] | units whose outputs can be scaled | there are no units to leave out |
//!
//! Engines never ask which of them a rule has: the methods of `dyn LocalRule` (`kick_batch`, `labels`, `row_weight`, …) call the
//! trait if it is there and do the slow, obvious thing otherwise.

mod batch;
mod curvature;
mod hidden;
mod labelled;

pub use batch::{Batch, BatchRule, Expansion, expand_one_by_one, kicks_one_by_one};
pub use curvature::{CurvatureAverages, CurvatureRule, Jumps, KinkPlane, central_differences};
pub use hidden::{HiddenUnits, masked_rules};
pub use labelled::LabelledRule;

use crate::averages::{self, QuadratureEstimate};
use didact_math::linalg::Mat;
use std::any::Any;
use std::fmt::Debug;

/// How many numbers a rule reads and trains. Rows are ordered: trained first, then frozen (pre-trained, teacher).
///
/// `Shape { trained: 2, frozen: 1, ..Shape::default() }` is a student of two rows that learns from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shape {
    /// Rows w_i that move.
    pub trained: usize,
    /// Rows that only project the input.
    pub frozen: usize,
    /// Trained numbers that are not rows (output weights, a LoRA amplitude).
    pub scalars: usize,
    /// How many of the frozen rows, counted from the first, belong to the student: pre-trained weights that the constraint
    /// `off-own` keeps the trained rows away from.
    pub own_frozen: usize,
}

impl Shape {
    /// Number of local fields, P = trained + frozen.
    pub fn rows(&self) -> usize {
        self.trained + self.frozen
    }
}

/// One input as a rule sees it.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    /// Local fields h = (w_1·x, …, v_1·x, …).
    pub fields: &'a [f64],
    /// Trained scalars.
    pub scalars: &'a [f64],
    /// What is added to the label of this sample.
    pub noise: f64,
}

/// The gradient of the loss of one sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Kick {
    /// ∂loss/∂h_i for every trained row.
    pub rows: Vec<f64>,
    /// ∂loss/∂a_j for every trained scalar.
    pub scalars: Vec<f64>,
}

impl Kick {
    /// Zeros of the right shape.
    pub fn new(shape: Shape) -> Self {
        Self { rows: vec![0.0; shape.trained], scalars: vec![0.0; shape.scalars] }
    }
}

/// The Gaussian law of the fields at which averages are asked for.
#[derive(Debug, Clone, Copy)]
pub struct Law<'a> {
    /// C = Σ_b λ_b G_b, the covariance of the fields.
    pub covariance: &'a Mat,
    /// Trained scalars.
    pub scalars: &'a [f64],
    /// Standard deviation of the additive label noise.
    pub label_noise: f64,
}

/// Which averages a caller needs; the noise matrix is the expensive one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needed {
    /// A and the scalar gradient: the limit of vanishing learning rate.
    Drift,
    /// A, N and the scalar gradient.
    DriftAndNoise,
}

/// Gaussian averages of a rule, and room to compute them in.
#[derive(Debug, Clone)]
pub struct Averages {
    /// A = E[∂kick_i/∂h_k], trained x rows.
    pub drift: Mat,
    /// N = E[kick_i kick_j], trained x trained.
    pub noise: Mat,
    /// E[∂loss/∂a_j].
    pub scalars: Vec<f64>,
    /// Estimated absolute error of the worst entry, 0 for closed forms; of A that of E[kick zᵀ], z independent coordinates of the
    /// fields, because A itself is not unique where fields depend on each other.
    pub error: f64,
    /// Relative error that the caller is content with where there is no closed form; `None` asks for the best that the rule has.
    pub accuracy: Option<f64>,
    /// Buffer that closed forms may use, so that the right-hand side of an ODE allocates nothing.
    pub scratch: Vec<f64>,
    /// What a rule keeps from one call to the next.
    pub memory: Memory,
}

impl Averages {
    /// Zeros of the right shape.
    pub fn new(shape: Shape) -> Self {
        Self {
            drift: Mat::zeros(shape.trained, shape.rows()),
            noise: Mat::zeros(shape.trained, shape.trained),
            scalars: vec![0.0; shape.scalars],
            error: 0.0,
            accuracy: None,
            scratch: Vec::new(),
            memory: Memory::default(),
        }
    }
}

/// Whatever one rule keeps between calls with the same [`Averages`]: buffers, and how fine its sums have to be. Empty at first
/// and after a clone, so nothing but speed may depend on what was kept, up to the accuracy that was asked for.
#[derive(Default)]
pub struct Memory(Option<Box<dyn Any + Send>>);

impl Memory {
    /// What was kept, made new where it is of another type or nothing was.
    pub fn of<T: Default + Send + 'static>(&mut self) -> &mut T {
        if !self.0.as_ref().is_some_and(|kept| kept.is::<T>()) {
            self.0 = Some(Box::new(T::default()));
        }
        self.0.as_mut().and_then(|kept| kept.downcast_mut()).expect("of this type")
    }
}

impl Clone for Memory {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Memory(kept)" } else { "Memory(empty)" })
    }
}

/// A learning rule: `w_i ← w_i − s kick_i(h) x`, `a_j ← a_j − s_a ∂loss/∂a_j(h)`, with fields h = (rows)·x.
///
/// The model *is* `loss` and `kick`; simulators need nothing else, and theory averages them over Gaussian fields. Here is a
/// whole rule, one neuron a tanh(w·x) that learns a and w from tanh(v·x):
///
/// ```
/// use didact_model::averages::{USUAL_ACCURACY, risk_by_quadrature};
/// use didact_model::rule::{Kick, Law, LocalRule, Sample, Shape};
///
/// #[derive(Debug)]
/// struct Neuron;
///
/// impl LocalRule for Neuron {
///     fn shape(&self) -> Shape {
///         Shape { trained: 1, frozen: 1, scalars: 1, ..Shape::default() }
///     }
///     fn loss(&self, s: &Sample) -> f64 {
///         0.5 * (s.fields[1].tanh() + s.noise - s.scalars[0] * s.fields[0].tanh()).powi(2)
///     }
///     fn kick(&self, s: &Sample, out: &mut Kick) {
///         let unit = s.fields[0].tanh();
///         let slope = s.scalars[0] * unit - s.fields[1].tanh() - s.noise; // ∂loss/∂f
///         out.rows[0] = slope * s.scalars[0] * (1.0 - unit * unit);
///         out.scalars[0] = slope * unit;
///     }
/// }
///
/// // Everything else follows: here the generalisation error of a student that has learned its teacher.
/// let covariance = didact_math::linalg::Mat::from_fn(2, 2, |_, _| 1.0);
/// let law = Law { covariance: &covariance, scalars: &[1.0], label_noise: 0.0 };
/// assert!(Neuron.risk(&law) < 1e-20);
/// let far = Law { scalars: &[0.5], ..law };
/// assert!(Neuron.risk(&far) > 0.01 && Neuron.risk(&far) == risk_by_quadrature(&Neuron, &far, USUAL_ACCURACY).value);
/// ```
pub trait LocalRule: Send + Sync + Debug {
    /// Rows and scalars.
    fn shape(&self) -> Shape;

    /// The loss of one sample.
    fn loss(&self, sample: &Sample) -> f64;

    /// Its gradient with respect to the trained fields and scalars.
    fn kick(&self, sample: &Sample, out: &mut Kick);

    /// ∂kick_i/∂h_k (trained x rows), for dynamical mean-field theory and Hessians; central differences unless given.
    fn curvature(&self, sample: &Sample, out: &mut Mat) {
        central_differences(self, sample, out);
    }

    /// Gaussian averages; quadrature of `kick` unless a closed form is given.
    fn averages(&self, law: &Law, needed: Needed, out: &mut Averages) {
        averages::by_quadrature(self, law, needed, out);
    }

    /// `E[loss]` over the fields, label noise excluded: the generalisation error, with its error; quadrature of `loss` unless a
    /// closed form is given. Quadrature stops where its relative error is within `accuracy`, or where that would take too long.
    fn risk_within(&self, law: &Law, accuracy: f64) -> QuadratureEstimate {
        averages::risk_by_quadrature(self, law, accuracy)
    }

    /// The generalisation error to the usual accuracy. Rules give [`risk_within`](Self::risk_within), not this.
    fn risk(&self, law: &Law) -> f64 {
        self.risk_within(law, averages::USUAL_ACCURACY).value
    }

    /// Whether output and label of a sample are in the same class; `None` where a rule has no output to compare with a label. Classes
    /// are told by the sign, and by 1/2 for labels of the logistic loss.
    fn same_class(&self, _sample: &Sample) -> Option<bool> {
        None
    }

    /// Work on many samples at once, if the rule has it; then `Some(self)`.
    fn batch(&self) -> Option<&dyn BatchRule> {
        None
    }

    /// Labels that depend on the frozen fields alone, if the rule has them; then `Some(self)`.
    fn labelled(&self) -> Option<&dyn LabelledRule> {
        None
    }

    /// What is known of the derivative of `kick` beyond [`curvature`](Self::curvature), if anything is; then `Some(self)`.
    fn curved(&self) -> Option<&dyn CurvatureRule> {
        None
    }

    /// Hidden units whose outputs can be scaled, if the rule has them; then `Some(self)`.
    fn hidden(&self) -> Option<&dyn HiddenUnits> {
        None
    }
}
