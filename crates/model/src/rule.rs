//! What is learned: a rule that sees the input only through its projections.

use crate::averages;
use crate::observable::Observable;
use crate::overlaps::Overlaps;
use crate::problem::Problem;
use didact_math::linalg::Mat;
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

/// How many numbers a rule reads and trains. Rows are ordered: trained first, then frozen (teacher, pre-trained).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Rows w_i that move.
    pub trained: usize,
    /// Rows that only project the input.
    pub frozen: usize,
    /// Trained numbers that are not rows (output weights, a LoRA amplitude).
    pub scalars: usize,
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

/// A mini-batch, fields first: `fields[k * size + j]` is field k of sample j, so that a rule can run over samples.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// P x size, row-major.
    pub fields: &'a [f64],
    /// Number of samples.
    pub size: usize,
    /// Trained scalars, the same for every sample.
    pub scalars: &'a [f64],
    /// Label noise per sample.
    pub noise: &'a [f64],
    /// Labels, noise included, where the caller has them from [`LocalRule::labels`]: those of a training set do not
    /// change. Empty otherwise.
    pub labels: &'a [f64],
    /// ∂label/∂v_n (frozen x size), where the caller has them from [`LocalRule::label_slopes`]. Empty otherwise.
    pub label_slopes: &'a [f64],
}

impl<'a> Batch<'a> {
    /// A batch whose labels are not known yet.
    pub fn new(fields: &'a [f64], size: usize, scalars: &'a [f64], noise: &'a [f64]) -> Self {
        Self { fields, size, scalars, noise, labels: &[], label_slopes: &[] }
    }

    /// Sample j, its fields copied to `fields`.
    pub fn sample<'b>(&'b self, j: usize, fields: &'b mut [f64]) -> Sample<'b> {
        for (k, h) in fields.iter_mut().enumerate() {
            *h = self.fields[k * self.size + j];
        }
        Sample { fields, scalars: self.scalars, noise: self.noise[j] }
    }
}

/// Room for the losses of a mini-batch to second order in the fields, samples last as in [`Batch`].
#[derive(Debug)]
pub struct Expansion<'a> {
    /// The losses; they are not asked for where this is empty.
    pub losses: &'a mut [f64],
    /// Kicks, trained x size.
    pub kicks: &'a mut [f64],
    /// How many fields, counted from the first, are asked about.
    pub columns: usize,
    /// ∂kick_i/∂h_k for these fields, trained x columns x size.
    pub curvature: &'a mut [f64],
}

/// Where `kick` jumps, so that the mean of its derivative is not the mean of `curvature`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Jumps {
    /// Along a trained field: the unit has a kink (relu).
    pub trained: bool,
    /// Along a frozen field: the label jumps (an indicator).
    pub frozen: bool,
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

/// Which averages a caller needs; the noise matrix is the dear one.
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
    /// Estimated absolute error of the worst entry: 0 for closed forms.
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

/// Averages of ∂kick_i/∂h_j over trained i, j: what the population Hessian is made of.
///
/// With isotropic inputs and h = F z, z the coordinates of the input in an orthonormal frame of the space that the rows
/// span, Stein's lemma gives the blocks of the Hessian of `E[loss]` in the weights,
///
///   `H_ij = E[c_ij] 1 + frame · E[c_ij (z zᵀ − 1)] · frameᵀ`,   `c_ij = ∂kick_i/∂h_j`.
#[derive(Debug, Clone)]
pub struct CurvatureAverages {
    /// `E[c_ij]`, trained x trained.
    pub mean: Mat,
    /// `E[c_ij (z zᵀ − 1)]`, a matrix for every pair i, j (row-major).
    pub second: Vec<Mat>,
    /// Estimated absolute error of the worst entry: 0 for closed forms.
    pub error: f64,
}

impl CurvatureAverages {
    /// Zeros for so many trained rows in a span of so many dimensions.
    pub fn new(trained: usize, span: usize) -> Self {
        let second = vec![Mat::zeros(span, span); trained * trained];
        Self { mean: Mat::zeros(trained, trained), second, error: 0.0 }
    }
}

/// A learning rule: `w_i ← w_i − s kick_i(h) x`, `a_j ← a_j − s_a ∂loss/∂a_j(h)`, with fields h = (rows)·x.
///
/// The model *is* `loss` and `kick`; simulators need nothing else, and theory averages them over Gaussian fields.
pub trait LocalRule: Send + Sync + Debug {
    /// Rows and scalars.
    fn shape(&self) -> Shape;

    /// The loss of one sample.
    fn loss(&self, sample: &Sample) -> f64;

    /// Its gradient with respect to the trained fields and scalars.
    fn kick(&self, sample: &Sample, out: &mut Kick);

    /// The kicks of a mini-batch: `rows` (trained x size, row-major) per sample, `scalars` summed over samples.
    fn kick_batch(&self, batch: &Batch, rows: &mut [f64], scalars: &mut [f64]) {
        one_by_one(self, batch, rows, scalars);
    }

    /// Whether `kick_batch` gives every sample the kick that `kick` gives it, to the last bit, and takes less time: replicas
    /// may then step side by side, a sample each, and none depends on its company.
    fn steps_abreast(&self) -> bool {
        false
    }

    /// ∂kick_i/∂h_k (trained x rows), for dynamical mean-field theory and Hessians; central differences unless given.
    fn curvature(&self, sample: &Sample, out: &mut Mat) {
        central_differences(self, sample, out);
    }

    /// The losses of a mini-batch.
    fn loss_batch(&self, batch: &Batch, out: &mut [f64]) {
        let mut fields = vec![0.0; self.shape().rows()];
        for (j, out) in out.iter_mut().enumerate() {
            *out = self.loss(&batch.sample(j, &mut fields));
        }
    }

    /// Kicks and their derivatives for a mini-batch, and its losses if they are asked for.
    fn expand_batch(&self, batch: &Batch, out: Expansion) {
        let Expansion { losses, kicks, columns, curvature } = out;
        if !losses.is_empty() {
            self.loss_batch(batch, losses);
        }
        let shape = self.shape();
        let (mut fields, mut kick) = (vec![0.0; shape.rows()], Kick::new(shape));
        let mut one = Mat::zeros(shape.trained, shape.rows());
        for j in 0..batch.size {
            let sample = batch.sample(j, &mut fields);
            self.kick(&sample, &mut kick);
            self.curvature(&sample, &mut one);
            for i in 0..shape.trained {
                kicks[i * batch.size + j] = kick.rows[i];
                for k in 0..columns {
                    curvature[(i * columns + k) * batch.size + j] = one[(i, k)];
                }
            }
        }
    }

    /// Where `kick` jumps; nowhere unless said.
    fn jumps(&self) -> Jumps {
        Jumps::default()
    }

    /// The label of an input, if the loss depends on the frozen fields through it alone: then the latent directions have easy and
    /// hard parts. None for students that read frozen fields themselves (pre-trained rows).
    fn label(&self, _frozen: &[f64], _noise: f64) -> Option<f64> {
        None
    }

    /// The labels of the samples of a batch, for callers that meet the same samples again. False, with nothing written,
    /// where [`label`](Self::label) knows none.
    fn labels(&self, batch: &Batch, out: &mut [f64]) -> bool {
        let shape = self.shape();
        let mut fields = vec![0.0; shape.rows()];
        out.iter_mut().enumerate().all(|(j, out)| {
            let sample = batch.sample(j, &mut fields);
            let label = self.label(&sample.fields[shape.trained..], sample.noise);
            label.map(|y| *out = y).is_some()
        })
    }

    /// The derivatives of the labels along the frozen fields (frozen x size), for callers that meet the same samples again. False,
    /// with nothing written, where they are not known.
    fn label_slopes(&self, _batch: &Batch, _out: &mut [f64]) -> bool {
        false
    }

    /// Whether kicks, losses and derivatives of a batch with labels, and with their slopes where derivatives along frozen fields
    /// are asked for, leave its frozen fields unread: what stands there need not be true.
    fn labels_suffice(&self) -> bool {
        false
    }

    /// G_i, the weight of block i of the Hessian (1/n) Σ G_i x xᵀ with respect to row i.
    ///
    /// For one trained row it is ∂kick/∂h. For many rows a family may give what is left of it, in units of the step that moves
    /// a row by O(1), when the number of rows is large.
    fn row_weight(&self, sample: &Sample, row: usize) -> f64 {
        let shape = self.shape();
        let mut one = Mat::zeros(shape.trained, shape.rows());
        self.curvature(sample, &mut one);
        one[(row, row)]
    }

    /// Gaussian averages; quadrature of `kick` unless a closed form is given.
    fn averages(&self, law: &Law, needed: Needed, out: &mut Averages) {
        averages::by_quadrature(self, law, needed, out);
    }

    /// Averages of the curvature over h = F z, F rows x span; quadrature of `curvature` unless a closed form is given.
    ///
    /// The curvature must be a function: a kick that jumps (relu) has deltas that quadrature does not see.
    fn curvature_averages(&self, factor: &Mat, scalars: &[f64], out: &mut CurvatureAverages) {
        averages::curvature_by_quadrature(self, factor, scalars, out);
    }

    /// Standard deviation of the label noise where nothing is said of it: 1 if the formula of the label names its noise, rather than
    /// having it added.
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

    /// How many of the frozen rows, counted from the first, belong to the student (pre-trained weights).
    fn own_frozen(&self) -> usize {
        0
    }

    /// Observables that only this family has, found by their names.
    fn observables(&self) -> Vec<Arc<dyn Observable>> {
        Vec::new()
    }

    /// `E[loss]` over the fields, label noise excluded: the generalisation error.
    fn risk(&self, law: &Law) -> f64 {
        averages::risk_by_quadrature(self, law).value
    }
}

/// The obvious batch: sample after sample.
pub fn one_by_one<R: LocalRule + ?Sized>(rule: &R, batch: &Batch, rows: &mut [f64], scalars: &mut [f64]) {
    let shape = rule.shape();
    let mut fields = vec![0.0; shape.rows()];
    let mut kick = Kick::new(shape);
    scalars.fill(0.0);
    for j in 0..batch.size {
        rule.kick(&batch.sample(j, &mut fields), &mut kick);
        for (i, c) in kick.rows.iter().enumerate() {
            rows[i * batch.size + j] = *c;
        }
        for (sum, c) in scalars.iter_mut().zip(&kick.scalars) {
            *sum += c;
        }
    }
}

/// ∂kick/∂h by central differences with an increment near the cube root of the machine precision.
pub fn central_differences<R: LocalRule + ?Sized>(rule: &R, sample: &Sample, out: &mut Mat) {
    let shape = rule.shape();
    let mut fields = sample.fields.to_vec();
    let (mut above, mut below) = (Kick::new(shape), Kick::new(shape));
    for k in 0..shape.rows() {
        let step = 6e-6 * sample.fields[k].abs().max(1.0);
        fields[k] = sample.fields[k] + step;
        rule.kick(&Sample { fields: &fields, ..*sample }, &mut above);
        fields[k] = sample.fields[k] - step;
        rule.kick(&Sample { fields: &fields, ..*sample }, &mut below);
        fields[k] = sample.fields[k];
        for i in 0..shape.trained {
            out[(i, k)] = (above.rows[i] - below.rows[i]) / (2.0 * step);
        }
    }
}
