//! Drift, Jacobian and diffusion of the overlaps at a state: the coefficients of the linear equation of fluctuations.

use super::closed::ClosedKick;
use super::fourths::{FourthRule, Nodes};
use super::moments::{Averager, Moments};
use super::path::FINE;
use super::products::ProductIndex;
use super::variables::{Variable, Variables};
use crate::order_parameters::overlap_flow::OverlapFlow;
use didact_math::linalg::{Mat, dot, symmetric_eigen};
use didact_model::constraint::{inverse_of_barred, pseudo_inverse};
use didact_model::rule::{Averages, Law, Needed};
use didact_model::{Overlaps, Problem};

/// F, J = ∂F/∂g and D at a state, per unit of the clock (docs/derivations/fluctuations.md#eq-1, docs/derivations/fluctuations.md#eq-3).
#[derive(Debug, Clone)]
pub(super) struct Linearisation {
    pub(super) drift: Vec<f64>,
    pub(super) jacobian: Mat,
    pub(super) diffusion: Mat,
    /// Relative error of the diffusion, as far as averages have one.
    pub(super) error: f64,
}

/// Makes [`Linearisation`]s along a trajectory.
pub(super) struct Lineariser<'a> {
    pub(super) problem: &'a Problem,
    pub(super) variables: Variables,
    pub(super) needed: Needed,
    pub(super) averager: Averager,
    /// Whether averages of the rule have closed forms, which can be differenced.
    pub(super) closed: bool,
    /// The kick as one whose second moments need no sums over samples.
    kick: Option<ClosedKick>,
    /// Relative accuracy of second moments.
    accuracy: f64,
    /// How E[c c c c] of erf units is averaged, and its share of the diffusion.
    fourths: (FourthRule, f64),
}

/// How E[c c c c] is averaged to see how much it matters.
const ROUGH_FOURTHS: FourthRule = FourthRule { nodes: Nodes::Count(1, 1.0), every: false };
/// The error that E[c c c c] may bring into a variance of D, in units of the accuracy of averages: half of what the coefficients of a band
/// may be rough by.
const ALLOWED_FOURTHS: f64 = 5.0;
/// Shares below this are taken for it.
const SMALLEST_SHARE: f64 = 1e-6;
/// The largest relative error of E[c c c c], however little it matters.
const LARGEST_ERROR: f64 = 0.1;
/// Steps of differences, in units of the size of what is differenced.
const STEP: f64 = 1e-4;
/// The same for averages without a closed form.
const COARSE_STEP: f64 = 1e-2;
/// The smallest such step: rounding then leaves nine digits of a derivative.
const SMALLEST_STEP: f64 = 1e-7;
/// Relative accuracy of averages where a rule has none in closed form.
const AVERAGES: f64 = 1e-6;
/// The same where a difference with large steps is made of them.
const ROUGH: f64 = 1e-4;

impl<'a> Lineariser<'a> {
    pub(super) fn new(
        problem: &'a Problem,
        variables: Variables,
        needed: Needed,
        start: &Overlaps,
        accuracy: f64,
    ) -> Self {
        // Whether there are closed forms is seen at any accuracy.
        let mut averages = Averages { accuracy: Some(ROUGH), ..Averages::new(variables.shape) };
        let covariance = start.covariance(&problem.spectrum);
        problem.rule.averages(&law(problem, &covariance, &start.scalars), needed, &mut averages);
        let closed = averages.error == 0.0;
        let kick = if closed { ClosedKick::of(&*problem.rule) } else { None };
        let averager = Averager::new(accuracy);
        let fourths = (FourthRule::every(accuracy), 1.0);
        Self { problem, variables, needed, averager, closed, kick, accuracy, fourths }
    }

    fn index(&self) -> ProductIndex {
        ProductIndex::new(self.variables.shape, !self.closed)
    }

    /// Second moments of the products of a sample.
    fn moments(&self, law: &Law) -> Moments {
        match &self.kick {
            Some(kick) => kick.moments(law, self.index(), self.fourths.0),
            None => self.averager.average(&*self.problem.rule, law, self.index()),
        }
    }

    /// Chooses the quadrature that serves at this state and those near it.
    pub(super) fn prepare(&mut self, state: &Overlaps) {
        let covariance = state.covariance(&self.problem.spectrum);
        let index = self.index();
        let law = law(self.problem, &covariance, &state.scalars);
        if let Some(kick) = &self.kick {
            if let (ClosedKick::Erf(erf), false) = (kick, self.accuracy < FINE) {
                let share =
                    self.share_of_fourths(state, &covariance, &kick.moments(&law, index, ROUGH_FOURTHS));
                let rule = erf.rule(
                    &law,
                    (ALLOWED_FOURTHS * self.accuracy / share.max(SMALLEST_SHARE)).min(LARGEST_ERROR),
                );
                self.fourths = (rule, share);
            }
            return;
        }
        self.averager.choose(&*self.problem.rule, &law, index);
    }

    pub(super) fn at(&self, state: &Overlaps) -> Linearisation {
        let covariance = state.covariance(&self.problem.spectrum);
        let law = law(self.problem, &covariance, &state.scalars);
        let moments = self.moments(&law);
        let averages = self.averages(&law, &moments);
        let n = self.variables.len();
        let mut drift = vec![0.0; n];
        self.drift(state, &averages, &mut drift[..self.variables.moving]);
        Linearisation {
            jacobian: self.jacobian(state, &law, &averages, &moments),
            diffusion: self.diffusion(state, &covariance, &moments),
            drift,
            error: moments.error * if self.kick.is_some() { self.fourths.1 } else { 1.0 },
        }
    }

    /// The largest part that E[c c c c] has in a variance of D, at most one; so much of its relative error reaches a band. It is doubled,
    /// because it changes before the next choice is made.
    fn share_of_fourths(&self, state: &Overlaps, covariance: &Mat, moments: &Moments) -> f64 {
        if self.needed == Needed::Drift {
            return 0.0;
        }
        let diffusion = self.diffusion(state, covariance, moments);
        let training = &self.problem.training;
        let per_clock =
            self.problem.flow_per_clock() * self.problem.step_times_dimension() / training.batch as f64;
        let mut share: f64 = 0.0;
        for (row, variable) in self.variables.iter() {
            if let Variable::Entry { block, i, j } = variable
                && i.max(j) < self.variables.shape.trained
            {
                let weight = self.problem.noise_weight(block) * self.problem.spectrum.eigenvalues()[block];
                let own = moments.index.kick_kick(i, j);
                let part = per_clock * weight * weight * moments.second[(own, own)];
                // Not a number where nothing scatters.
                let of_all = part / diffusion[(row, row)];
                share = share.max(if of_all.is_nan() { 0.0 } else { of_all });
            }
        }
        (2.0 * share).min(1.0)
    }

    /// F alone.
    pub(super) fn drift_at(&self, state: &Overlaps) -> Vec<f64> {
        let covariance = state.covariance(&self.problem.spectrum);
        let law = law(self.problem, &covariance, &state.scalars);
        let mut averages = Averages { accuracy: Some(AVERAGES), ..Averages::new(self.variables.shape) };
        self.problem.rule.averages(&law, self.needed, &mut averages);
        let mut drift = vec![0.0; self.variables.len()];
        self.drift(state, &averages, &mut drift[..self.variables.moving]);
        drift
    }

    /// Second moments, A and N at a state.
    pub(super) fn averages_at(&self, state: &Overlaps) -> (Moments, Averages) {
        let covariance = state.covariance(&self.problem.spectrum);
        let law = law(self.problem, &covariance, &state.scalars);
        let moments = self.moments(&law);
        let averages = self.averages(&law, &moments);
        (moments, averages)
    }

    /// A, N and E[q]: closed forms, or those of the same samples as the diffusion.
    fn averages(&self, law: &Law, moments: &Moments) -> Averages {
        let mut averages = Averages::new(self.variables.shape);
        if self.closed {
            self.problem.rule.averages(law, Needed::DriftAndNoise, &mut averages);
            return averages;
        }
        let (k, p) = (self.variables.shape.trained, self.variables.shape.rows());
        let index = moments.index;
        let correlation = Mat::from_fn(k, p, |i, j| moments.mean[index.kick_field(i, j)]);
        averages.drift = correlation.times(&pseudo_inverse(law.covariance));
        averages.noise = Mat::from_fn(k, k, |i, j| moments.mean[index.kick_kick(i, j)]);
        for (s, q) in averages.scalars.iter_mut().enumerate() {
            *q = moments.mean[index.scalar(s)];
        }
        averages
    }

    fn drift(&self, state: &Overlaps, averages: &Averages, out: &mut [f64]) {
        let mut flow = OverlapFlow::new(self.problem, state, self.needed);
        flow.drift_with(averages, &state.scalars, out);
    }

    /// J column by column: every entry of a block moves F directly and through C = Σ_b λ_b G_b, on which alone the averages depend
    /// (docs/derivations/fluctuations.md#eq-6).
    fn jacobian(&self, state: &Overlaps, law: &Law, averages: &Averages, moments: &Moments) -> Mat {
        let (n, moving, p) = (self.variables.len(), self.variables.moving, self.variables.shape.rows());
        let slopes = self.slopes(law, averages, moments);
        let eigenvalues = self.problem.spectrum.eigenvalues();
        let mut jacobian = Mat::zeros(n, n);
        let (mut up, mut down) = (vec![0.0; moving], vec![0.0; moving]);
        for (column, variable) in self.variables.iter() {
            let (slope, weight) = match variable {
                Variable::Entry { block, i, j } => {
                    (&slopes.by_entry[i.max(j) * p + i.min(j)], eigenvalues[block])
                }
                Variable::Scalar(s) => (&slopes.by_scalar[s], 1.0),
            };
            let Some(slope) = slope else { continue };
            // F is a polynomial of second degree in blocks and averages but for spheres, so that the step is no matter of accuracy
            // without them and may be small with them.
            let step = 1e-5 * self.variables.scale(state, column);
            for (sign, out) in [(1.0, &mut up), (-1.0, &mut down)] {
                let mut moved = state.clone();
                self.variables.add(&mut moved, column, sign * step);
                let mut averages = averages.clone();
                averages.drift.add_scaled(sign * step * weight, &slope.drift);
                averages.noise.add_scaled(sign * step * weight, &slope.noise);
                for (q, by) in averages.scalars.iter_mut().zip(&slope.scalars) {
                    *q += sign * step * weight * by;
                }
                self.drift(&moved, &averages, out);
            }
            for row in 0..moving {
                jacobian[(row, column)] = (up[row] - down[row]) / (2.0 * step);
            }
        }
        jacobian
    }

    /// Derivatives of A, N and E[q] by every entry of C that can move, and by the scalars.
    fn slopes(&self, law: &Law, averages: &Averages, moments: &Moments) -> Slopes {
        let (k, p) = (self.variables.shape.trained, self.variables.shape.rows());
        let mut by_entry: Vec<Option<Slope>> = (0..p * p).map(|_| None).collect();
        let differences = Differences::new(self.problem, law, self.accuracy);
        for i in 0..p {
            for j in 0..=i {
                if j >= k && !self.variables.with_teachers {
                    continue;
                }
                by_entry[i * p + j] = Some(if self.closed {
                    differences.by_entry(i, j)
                } else {
                    self.slope_by_weights(law, averages, moments, (i, j))
                });
            }
        }
        // Sums over samples are not differenced at steps at which their error would show.
        let step = if self.closed { STEP } else { COARSE_STEP };
        let by_scalar = (0..law.scalars.len()).map(|s| Some(differences.by_scalar(s, step))).collect();
        Slopes { by_entry, by_scalar }
    }

    /// dE[f] = ½ E[f(h) (hᵀC⁻¹dC C⁻¹h − tr C⁻¹dC)], without a derivative of f (docs/derivations/fluctuations.md#eq-7).
    fn slope_by_weights(
        &self,
        law: &Law,
        averages: &Averages,
        moments: &Moments,
        (i, j): (usize, usize),
    ) -> Slope {
        let (k, p) = (self.variables.shape.trained, self.variables.shape.rows());
        let index = moments.index;
        let inverse = pseudo_inverse(law.covariance);
        // dC has a one at (i, j) and at its mirror: C⁻¹ dC C⁻¹ and the trace of C⁻¹ dC.
        let column = |a: usize| -> Vec<f64> { inverse.row(a).to_vec() };
        let (x, y) = (column(i), column(j));
        let both = if i == j { 1.0 } else { 2.0 };
        let trace = both * inverse[(i, j)];
        let weighted = |product: usize| -> f64 {
            let mut sum = 0.0;
            for a in 0..p {
                for b in 0..p {
                    sum += both * x[a] * y[b] * moments.second[(product, index.field_field(a, b))];
                }
            }
            0.5 * (sum - trace * moments.mean[product])
        };
        let mut correlation = Mat::from_fn(k, p, |a, b| weighted(index.kick_field(a, b)));
        // dA = (dE[c hᵀ] − A dC) C⁻¹.
        for a in 0..k {
            correlation[(a, j)] -= averages.drift[(a, i)];
            if i != j {
                correlation[(a, i)] -= averages.drift[(a, j)];
            }
        }
        Slope {
            drift: correlation.times(&inverse),
            noise: Mat::from_fn(k, k, |a, b| weighted(index.kick_kick(a, b))),
            scalars: (0..law.scalars.len()).map(|s| weighted(index.scalar(s))).collect(),
        }
    }

    /// D: the covariance of the packed increment of one sample, times the noise per unit of the clock
    /// (docs/derivations/fluctuations.md#eq-8).
    fn diffusion(&self, state: &Overlaps, covariance: &Mat, moments: &Moments) -> Mat {
        let (k, p, n) = (self.variables.shape.trained, self.variables.shape.rows(), self.variables.len());
        let index = moments.index;
        let training = &self.problem.training;
        let eigenvalues = self.problem.spectrum.eigenvalues();
        let inverse = pseudo_inverse(covariance);
        let barred = training.constraint.barred(&*self.problem.rule);
        let plain = state.moment(&self.problem.spectrum, 0);
        let barred_inverse = inverse_of_barred(barred, &plain, k);
        // E[h_b | h] = X_b h, without what constraints keep the rows away from.
        let conditional: Vec<Mat> = state
            .blocks
            .iter()
            .zip(eigenvalues)
            .map(|(g, lambda)| {
                let mut x = g.times(&inverse).scaled(*lambda);
                if let Some(t) = &barred_inverse {
                    let along = g.block(0..p, k..k + barred).times(t);
                    for a in 0..p {
                        for b in 0..barred {
                            x[(a, k + b)] -= along[(a, b)];
                        }
                    }
                }
                x
            })
            .collect();
        // The increment as a linear map of the products of a sample.
        let mut increment = Mat::zeros(n, index.len());
        for (row, variable) in self.variables.iter() {
            match variable {
                Variable::Entry { block, i, j } => {
                    let x = &conditional[block];
                    for (kicked, other) in [(i, j), (j, i)] {
                        if kicked < k {
                            for l in 0..p {
                                increment[(row, index.kick_field(kicked, l))] -= x[(other, l)];
                            }
                        }
                    }
                    if self.needed == Needed::DriftAndNoise && i < k && j < k {
                        let weight = self.problem.noise_weight(block) * eigenvalues[block];
                        increment[(row, index.kick_kick(i, j))] += weight;
                    }
                }
                Variable::Scalar(s) => increment[(row, index.scalar(s))] = -training.scalar_ratio,
            }
        }
        let m = index.len();
        let products = Mat::from_fn(m, m, |a, b| moments.second[(a, b)] - moments.mean[a] * moments.mean[b]);
        let mut half = Mat::zeros(n, m);
        half.add_product(1.0, &increment, &products);
        let mut diffusion = Mat::zeros(n, n);
        diffusion.add_product_transposed(1.0, &half, &increment);
        if self.variables.blocks > 1 {
            self.add_scatter_of_blocks(state, &inverse, moments, &mut diffusion);
        }
        let projection = self.projection(state);
        if let Some(projection) = projection {
            let mut left = Mat::zeros(n, n);
            left.add_product(1.0, &projection, &diffusion);
            diffusion.fill(0.0);
            diffusion.add_product_transposed(1.0, &left, &projection);
        }
        let per_clock =
            self.problem.flow_per_clock() * self.problem.step_times_dimension() / training.batch as f64;
        Mat::from_fn(n, n, |a, b| 0.5 * per_clock * (diffusion[(a, b)] + diffusion[(b, a)]))
    }

    /// Adds N_ik S_jl + N_il S_jk + N_jk S_il + N_jl S_ik, S_bb′ the covariance of (h_b, h_b′) given h: fields of single eigenspaces
    /// scatter where their sum is known.
    fn add_scatter_of_blocks(&self, state: &Overlaps, inverse: &Mat, moments: &Moments, out: &mut Mat) {
        let k = self.variables.shape.trained;
        let eigenvalues = self.problem.spectrum.eigenvalues();
        let noise = |i: usize, j: usize| {
            if i < k && j < k { moments.mean[moments.index.kick_kick(i, j)] } else { 0.0 }
        };
        let halves: Vec<Mat> = state.blocks.iter().map(|g| g.times(inverse)).collect();
        for block in 0..state.blocks.len() {
            for other in 0..=block {
                let mut scatter = halves[block]
                    .times(&state.blocks[other])
                    .scaled(-eigenvalues[block] * eigenvalues[other]);
                if block == other {
                    scatter.add_scaled(eigenvalues[block], &state.blocks[block]);
                }
                let entries = |b: usize| {
                    self.variables.iter().filter_map(move |(index, variable)| match variable {
                        Variable::Entry { block, i, j } if block == b && i.min(j) < k => Some((index, i, j)),
                        _ => None,
                    })
                };
                for (a, i, j) in entries(block) {
                    for (b, m, l) in entries(other) {
                        let value = noise(i, m) * scatter[(j, l)]
                            + noise(i, l) * scatter[(j, m)]
                            + noise(j, m) * scatter[(i, l)]
                            + noise(j, l) * scatter[(i, m)];
                        out[(a, b)] += value;
                        if block != other {
                            out[(b, a)] += value;
                        }
                    }
                }
            }
        }
    }

    /// The linear map that spheres make of an increment (docs/derivations/fluctuations.md#eq-4); `None` without spheres.
    pub(super) fn projection(&self, state: &Overlaps) -> Option<Mat> {
        let constraint = &self.problem.training.constraint;
        if constraint.sphere.is_none() && constraint.scalar_sphere.is_none() {
            return None;
        }
        let k = self.variables.shape.trained;
        let mut map = Mat::identity(self.variables.len());
        if constraint.sphere.is_some() {
            let squared: Vec<f64> =
                (0..k).map(|i| state.blocks.iter().map(|g| g[(i, i)]).sum::<f64>()).collect();
            for (row, variable) in self.variables.iter() {
                let Variable::Entry { block, i, j } = variable else { continue };
                for end in [i, j].into_iter().filter(|end| *end < k) {
                    for b in 0..self.variables.blocks {
                        let own = self.variables.position(b, end, end).expect("trained rows are variables");
                        map[(row, own)] -= state.blocks[block][(i, j)] / (2.0 * squared[end]);
                    }
                }
            }
        }
        let length = dot(&state.scalars, &state.scalars);
        if constraint.scalar_sphere.is_some() && length > 0.0 {
            for (s, a) in state.scalars.iter().enumerate() {
                for (t, b) in state.scalars.iter().enumerate() {
                    map[(self.variables.scalar(s), self.variables.scalar(t))] -= a * b / length;
                }
            }
        }
        Some(map)
    }
}

pub(super) fn law<'a>(problem: &Problem, covariance: &'a Mat, scalars: &'a [f64]) -> Law<'a> {
    Law { covariance, scalars, label_noise: problem.training.label_noise }
}

/// Derivatives of A, N and E[q] in one direction.
pub(super) struct Slope {
    drift: Mat,
    noise: Mat,
    scalars: Vec<f64>,
}

struct Slopes {
    /// By C_ij = C_ji, at i * rows + j with i ≥ j.
    by_entry: Vec<Option<Slope>>,
    by_scalar: Vec<Option<Slope>>,
}

/// Differences of closed forms with steps that stay among covariances.
struct Differences<'a> {
    problem: &'a Problem,
    law: &'a Law<'a>,
    /// C, moved inside the cone of positive matrices where it is at its border.
    inside: Mat,
    /// Step in units of √(C_ii C_jj).
    step: f64,
    /// Of fourth order, for more digits than a band shows.
    fine: bool,
}

impl<'a> Differences<'a> {
    fn new(problem: &'a Problem, law: &'a Law, accuracy: f64) -> Self {
        let (inside, step) = inside_cone(law.covariance);
        Self { problem, law, inside, step, fine: accuracy < FINE }
    }

    fn averages(&self, covariance: &Mat, scalars: &[f64]) -> Averages {
        let mut out = Averages { accuracy: Some(ROUGH), ..Averages::new(self.problem.rule.shape()) };
        let law = Law { covariance, scalars, ..*self.law };
        self.problem.rule.averages(&law, Needed::DriftAndNoise, &mut out);
        out
    }

    fn by_entry(&self, i: usize, j: usize) -> Slope {
        let size = (self.inside[(i, i)] * self.inside[(j, j)]).sqrt();
        self.difference(self.step * if size > 0.0 { size } else { 1.0 }, |by| {
            let mut moved = self.inside.clone();
            moved[(i, j)] += by;
            if i != j {
                moved[(j, i)] += by;
            }
            self.averages(&moved, self.law.scalars)
        })
    }

    /// A central difference, of second order for bands and of fourth order otherwise.
    fn difference(&self, step: f64, at: impl Fn(f64) -> Averages) -> Slope {
        const SECOND: [(f64, f64); 2] = [(1.0, 0.5), (-1.0, -0.5)];
        const FOURTH: [(f64, f64); 4] =
            [(1.0, 8.0 / 12.0), (-1.0, -8.0 / 12.0), (2.0, -1.0 / 12.0), (-2.0, 1.0 / 12.0)];
        combined(if self.fine { &FOURTH } else { &SECOND }, step, at)
    }

    fn by_scalar(&self, s: usize, step: f64) -> Slope {
        self.difference(step * self.law.scalars[s].abs().max(1.0), |by| {
            let mut moved = self.law.scalars.to_vec();
            moved[s] += by;
            self.averages(self.law.covariance, &moved)
        })
    }
}

/// A covariance with room for differences around it, and the step for them in units of √(C_ii C_jj).
pub(super) fn inside_cone(covariance: &Mat) -> (Mat, f64) {
    let n = covariance.rows();
    if n == 0 {
        return (covariance.clone(), STEP);
    }
    // The room is that of the matrix of correlations; rows without length count as uncorrelated ones.
    let size: Vec<f64> = (0..n).map(|i| covariance[(i, i)].max(0.0).sqrt()).collect();
    let correlations = Mat::from_fn(n, n, |i, j| {
        let scale = size[i] * size[j];
        if i == j && scale == 0.0 {
            0.0
        } else if scale > 0.0 {
            covariance[(i, j)] / scale
        } else {
            0.0
        }
    });
    let least = symmetric_eigen(&correlations).values[0].max(0.0);
    let step = (0.1 * least).clamp(SMALLEST_STEP, STEP);
    let mut inside = covariance.clone();
    if least < 5.0 * step {
        let largest = size.iter().copied().fold(0.0, f64::max).max(1e-3);
        for i in 0..n {
            let own = if size[i] > 0.0 { size[i] * size[i] } else { largest * largest };
            inside[(i, i)] += (5.0 * step - least) * own;
        }
    }
    (inside, step)
}

/// Σ_k weights_k averages(points_k step)/step, points and weights being those of a central difference.
fn combined(points: &[(f64, f64)], step: f64, at: impl Fn(f64) -> Averages) -> Slope {
    let parts: Vec<(f64, Averages)> =
        points.iter().map(|(point, weight)| (weight / step, at(point * step))).collect();
    let matrix = |of: fn(&Averages) -> &Mat| {
        let mut sum = Mat::zeros(of(&parts[0].1).rows(), of(&parts[0].1).cols());
        parts.iter().for_each(|(weight, averages)| sum.add_scaled(*weight, of(averages)));
        sum
    };
    let scalars = parts[0].1.scalars.len();
    Slope {
        drift: matrix(|x| &x.drift),
        noise: matrix(|x| &x.noise),
        scalars: (0..scalars).map(|s| parts.iter().map(|(weight, x)| weight * x.scalars[s]).sum()).collect(),
    }
}
