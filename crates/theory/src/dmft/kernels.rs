//! The kernels of the effective process and their linear half, the motion of a single weight.

use super::ways::{TrainedSteps, Velocities};
use didact_math::linalg::Mat;
use didact_model::constraint::{Constraint, Retraction, inverse_of_barred};
use didact_model::{LocalRule, Overlaps, Shape, Spectrum};
use std::sync::Arc;

/// What the equations need to know.
#[derive(Debug, Clone)]
pub struct Equations {
    /// kick and its derivative.
    pub rule: Arc<dyn LocalRule>,
    /// η.
    pub step: f64,
    /// s_a/s: how much faster the scalars learn than the rows.
    pub scalar_ratio: f64,
    /// δ = n/d.
    pub ratio: f64,
    /// What is imposed on the rows. In the limit it multiplies and adds rows with numbers that do not fluctuate.
    pub constraint: Constraint,
    /// Standard deviation of the label noise.
    pub label_noise: f64,
    /// Overlaps of all rows at the start (P x P, trained first), isotropic inputs.
    pub start: Mat,
    /// Scalars at the start.
    pub scalars: Vec<f64>,
    /// Projector (f x f, acting on responses to the frozen fields) on the directions whose response vanishes by symmetry.
    ///
    /// Without it the sampling error of R_ℓ(t,*) is amplified exponentially above threshold, and the process learns a hard
    /// direction from noise (docs/derivations/gd-phase-transitions.md#s4-hard).
    pub hard: Option<Mat>,
    /// Momentum, schedules, batches and noise, with their rates at every step; `None` for plain descent.
    pub ways: Option<Arc<TrainedSteps>>,
}

impl Equations {
    /// η and δ given, rows as they start; no constraint, no noise, nothing known to be hard.
    pub fn new(rule: Arc<dyn LocalRule>, step: f64, ratio: f64, start: &Overlaps) -> Self {
        Self {
            rule,
            step,
            scalar_ratio: 1.0,
            ratio,
            constraint: Constraint::none(),
            label_noise: 0.0,
            start: start.moment(&Spectrum::isotropic(), 0),
            scalars: start.scalars.clone(),
            hard: None,
            ways: None,
        }
    }

    /// All frozen directions are hard: R_ℓ(t,*) = 0.
    pub fn hard_only(self) -> Self {
        let hard = Some(Mat::identity(self.rule.shape().frozen));
        Self { hard, ..self }
    }

    /// Rows and scalars of the rule.
    pub fn shape(&self) -> Shape {
        self.rule.shape()
    }

    /// 1 − η γ, what weight decay leaves of a row.
    fn keep(&self) -> f64 {
        1.0 - self.step * self.constraint.weight_decay
    }

    fn block(&self, trained_rows: bool, trained_cols: bool) -> Mat {
        let (m, p) = (self.shape().trained, self.shape().rows());
        let range = |trained| if trained { 0..m } else { m..p };
        self.start.block(range(trained_rows), range(trained_cols))
    }

    /// T, the overlaps of the frozen rows.
    pub fn frozen(&self) -> Mat {
        self.block(false, false)
    }

    /// True when R_ℓ(t,*) vanishes altogether.
    pub(super) fn all_hard(&self) -> bool {
        self.hard.as_ref().is_some_and(|p| {
            let rest = Mat::from_fn(p.rows(), p.cols(), |i, j| f64::from(u8::from(i == j)) - p[(i, j)]);
            rest.max_abs() < 1e-12
        })
    }
}

/// All kernels up to a step t. Blocks are m x m over the trained rows, m x f for the frozen ones (`*`).
///
/// Effective process of one weight coordinate, Θ(t) ∈ R^m, with Gaussian Q of covariance C_ℓ/δ:
///
///   Θ(t+1) = (1 − ηγ) Θ(t) − η Σ_{s≤t} R_ℓ(t,s) Θ(s) − η R_ℓ(t,*) Θ_* + η Q(t).
///
/// It is linear, Θ(t) = A(t) Θ(0) + B(t) Θ_* + η Σ_s R_θ(t,s) Q(s), so nothing of it is sampled
/// (docs/derivations/gd-phase-transitions.md#eq-9; weight decay γ:
/// docs/derivations/gd-phase-transitions.md#s4-extensions).
#[derive(Debug, Clone, Default)]
pub struct Kernels {
    /// C_θ(t,s) for s ≤ t.
    pub weights: Vec<Vec<Mat>>,
    /// C_θ(t,*).
    pub weights_frozen: Vec<Mat>,
    /// R_θ(t,s) for s < t.
    pub weights_response: Vec<Vec<Mat>>,
    /// C_ℓ(t,s) for s ≤ t.
    pub kicks: Vec<Vec<Mat>>,
    /// R_ℓ(t,s) for s ≤ t.
    pub kicks_response: Vec<Vec<Mat>>,
    /// R_ℓ(t,*).
    pub kicks_frozen: Vec<Mat>,
    /// E[∂loss/∂a] of the last step.
    pub(super) scalar_slopes: Vec<f64>,
    /// A(t).
    pub(super) initial: Vec<Mat>,
    /// B(t).
    pub(super) drawn: Vec<Mat>,
    /// What momentum adds.
    pub(super) velocities: Velocities,
}

/// Θ(t) as a linear function of Θ(0), Θ_* and Q: A(t), B(t) and R_θ(t,s) for s < t.
#[derive(Debug, Clone)]
pub(super) struct Linear {
    pub(super) initial: Mat,
    pub(super) drawn: Mat,
    pub(super) response: Vec<Mat>,
}

impl Linear {
    /// Row i plus `factor` times row i of an earlier time.
    pub(super) fn add_to_row(
        &mut self,
        i: usize,
        factor: f64,
        (initial, drawn, response): (&Mat, &Mat, &[Mat]),
    ) {
        let add = |to: &mut Mat, from: &Mat| {
            to.row_mut(i).iter_mut().zip(from.row(i)).for_each(|(a, b)| *a += factor * b);
        };
        add(&mut self.initial, initial);
        add(&mut self.drawn, drawn);
        self.response.iter_mut().zip(response).for_each(|(to, from)| add(to, from));
    }

    pub(super) fn scale_row(&mut self, i: usize, factor: f64) {
        let all = [&mut self.initial, &mut self.drawn].into_iter().chain(&mut self.response);
        all.for_each(|mat| mat.row_mut(i).iter_mut().for_each(|a| *a *= factor));
    }
}

impl Kernels {
    /// Steps at which C_θ is known.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// True before the first step.
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// C_θ, R_θ of the next step from the data side of all steps before it.
    ///
    ///   R_θ(s+1,s) = 1,   R_θ(t+1,s) = (1−ηγ) R_θ(t,s) − η Σ_{r=s+1..t} R_ℓ(t,r) R_θ(r,s),
    ///   C_θ(t,*) = A(t) R_0 + B(t) T,
    ///   C_θ(t,s) = ⟨(A Θ_0 + B Θ_*)(t) (A Θ_0 + B Θ_*)(s)ᵀ⟩ + (η²/δ) Σ_{r<t, r'<s} R_θ(t,r) C_ℓ(r,r') R_θ(s,r')ᵀ,
    ///
    /// before constraints (docs/derivations/gd-phase-transitions.md#eq-10,
    /// docs/derivations/gd-phase-transitions.md#eq-11).
    pub(super) fn move_weights(&mut self, equations: &Equations) {
        let t = self.len();
        let ways = equations.ways.as_deref();
        let mut next = match ways {
            _ if t == 0 => {
                let (m, f) = (equations.shape().trained, equations.shape().frozen);
                Linear { initial: Mat::identity(m), drawn: Mat::zeros(m, f), response: Vec::new() }
            }
            None => self.unconstrained(t, equations),
            Some(ways) => self.next_in_ways(t, equations, ways),
        };
        match ways {
            None if t > 0 => self.constrain(&mut next, equations),
            None => {}
            Some(ways) => self.look_ahead(&next, equations, ways),
        }
        let (row, star) = self.correlate(&next, equations);
        self.initial.push(next.initial);
        self.drawn.push(next.drawn);
        self.weights_response.push(next.response);
        self.weights.push(row);
        self.weights_frozen.push(star);
    }

    fn unconstrained(&self, t: usize, equations: &Equations) -> Linear {
        let (eta, keep) = (equations.step, equations.keep());
        let mut initial = self.initial[t - 1].scaled(keep);
        let mut drawn = self.drawn[t - 1].scaled(keep);
        for (s, response) in self.kicks_response[t - 1].iter().enumerate() {
            initial.add_product(-eta, response, &self.initial[s]);
            drawn.add_product(-eta, response, &self.drawn[s]);
        }
        drawn.add_scaled(-eta, &self.kicks_frozen[t - 1]);
        let mut row = Vec::with_capacity(t);
        for s in 0..t - 1 {
            let mut next = self.weights_response[t - 1][s].scaled(keep);
            for r in s + 1..t {
                next.add_product(-eta, &self.kicks_response[t - 1][r], &self.weights_response[r][s]);
            }
            row.push(next);
        }
        row.push(Mat::identity(equations.shape().trained));
        Linear { initial, drawn, response: row }
    }

    /// Row operations of the constraints, in the order of a step: off the row itself (tangent), off barred frozen rows, back to the
    /// length at the start. Products of rows are C_θ, which is deterministic: a constraint has no response of its own.
    fn constrain(&self, next: &mut Linear, equations: &Equations) {
        let (t, m, constraint) = (self.len(), equations.shape().trained, &equations.constraint);
        let lengths: Vec<f64> = (0..m).map(|i| equations.start[(i, i)]).collect();
        if constraint.sphere == Some(Retraction::Tangent) {
            let (row, _) = self.correlate(next, equations);
            for (i, length) in lengths.iter().enumerate() {
                // η grad·θ, given back along θ.
                let along = equations.keep() * self.weights[t - 1][t - 1][(i, i)] - row[t - 1][(i, i)];
                let before = (&self.initial[t - 1], &self.drawn[t - 1], &self.weights_response[t - 1][..]);
                next.add_to_row(i, along / length, before);
            }
        }
        if let Some(inverse) = inverse_of_barred(constraint.barred(&*equations.rule), &equations.start, m) {
            let (_, star) = self.correlate(next, equations);
            let barred = inverse.rows();
            let moved = Mat::from_fn(m, barred, |i, n| {
                equations.keep() * self.weights_frozen[t - 1][(i, n)] - star[(i, n)]
            });
            let back = moved.times(&inverse);
            for i in 0..m {
                (0..barred).for_each(|n| next.drawn[(i, n)] += back[(i, n)]);
            }
        }
        if constraint.sphere.is_some() {
            let (row, _) = self.correlate(next, equations);
            for (i, length) in lengths.iter().enumerate() {
                next.scale_row(i, (length / row[t][(i, i)]).sqrt());
            }
        }
    }

    /// C_θ(t,s) for s ≤ t, and C_θ(t,*), of the next step t.
    pub(super) fn correlate(&self, next: &Linear, equations: &Equations) -> (Vec<Mat>, Mat) {
        let t = self.len();
        let (q, r, frozen) =
            (equations.block(true, true), equations.block(true, false), equations.block(false, false));
        let (a, b) = (&next.initial, &next.drawn);
        let mut star = a.times(&r);
        star.add_product(1.0, b, &frozen);
        // (A Θ_0 + B Θ_*)(t) against Θ_0, and against Θ_*.
        let mut start = a.times(&q);
        start.add_product_transposed(1.0, b, &r);
        // Σ_r R_θ(t,r) C_ℓ(r,r') for every r'.
        let driven: Vec<Mat> = (0..t)
            .map(|to| {
                let mut sum = Mat::zeros(a.rows(), a.rows());
                // C_ℓ(r,r') = C_ℓ(r',r)ᵀ.
                for (from, response) in next.response.iter().enumerate() {
                    let noise = equations.noise_weight(from, to);
                    if from >= to {
                        sum.add_product(noise, response, &self.kicks[from][to]);
                    } else {
                        sum.add_product_transposed(noise, response, &self.kicks[to][from]);
                    }
                }
                sum
            })
            .collect();
        let against = |initial: &Mat, drawn: &Mat, responses: &[Mat]| {
            let mut c = Mat::zeros(start.rows(), initial.rows());
            c.add_product_transposed(1.0, &start, initial);
            c.add_product_transposed(1.0, &star, drawn);
            for (response, driven) in responses.iter().zip(&driven) {
                c.add_product_transposed(1.0, driven, response);
            }
            c
        };
        let mut row: Vec<Mat> =
            (0..t).map(|s| against(&self.initial[s], &self.drawn[s], &self.weights_response[s])).collect();
        row.push(against(&next.initial, &next.drawn, &next.response));
        (row, star)
    }

    /// C_θ(t,s) in any order.
    pub fn weight_covariance(&self, t: usize, s: usize) -> Mat {
        if t >= s { self.weights[t][s].clone() } else { self.weights[s][t].transpose() }
    }

    /// The overlaps of all rows at step t: C_θ(t,t), C_θ(t,*) and T.
    pub fn gram(&self, t: usize, equations: &Equations) -> Mat {
        let (m, p) = (equations.shape().trained, equations.shape().rows());
        Mat::from_fn(p, p, |i, j| match (i < m, j < m) {
            (true, true) => 0.5 * (self.weights[t][t][(i, j)] + self.weights[t][t][(j, i)]),
            (true, false) => self.weights_frozen[t][(i, j - m)],
            (false, true) => self.weights_frozen[t][(j, i - m)],
            (false, false) => equations.start[(i, j)],
        })
    }
}
