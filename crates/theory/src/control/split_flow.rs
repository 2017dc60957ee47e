//! The equations of the overlaps split by powers of the learning rate, with the transpose of their derivative.

mod transpose;

use didact_math::linalg::{Mat, dot};
use didact_model::constraint::inverse_of_barred;
use didact_model::{Averages, Law, Needed, Overlaps, Problem, Shape};

/// f = η f1 + η² f2 per unit of the clock (docs/derivations/optimal-protocols.md#eq-1): f1 is the drift of the overlaps with decay and the
/// drift part of the sphere, f2 the noise of the steps with its part of the sphere and with 1/B. The equations are those of
/// [`OrderParameterOde`](crate::OrderParameterOde), written so that they can be transposed; a test compares both.
pub(super) struct SplitFlow<'a> {
    problem: &'a Problem,
    shape: Shape,
    start: Overlaps,
    blocks: Vec<Mat>,
    covariance: Mat,
    averages: Averages,
    /// B_b G_b without the sphere.
    motion: Vec<Mat>,
    /// T⁻¹ of the frozen rows along which motion is forbidden, and what takes that motion out.
    barred: Option<Mat>,
    back: Mat,
    /// Σ_b G_b[i,i].
    lengths: Vec<f64>,
    /// What multiplies η and η².
    scales: (f64, f64),
    /// Averages of displaced arguments.
    displaced: Averages,
    /// Whether averages have closed forms.
    pub(super) closed: bool,
    decay: f64,
    noise: f64,
}

impl<'a> SplitFlow<'a> {
    pub(super) fn new(problem: &'a Problem, start: &Overlaps) -> Self {
        let shape = start.shape();
        let plain = start.moment(&problem.spectrum, 0);
        let count = problem.training.constraint.barred(&*problem.rule);
        let rate = problem.training.learning_rate;
        let (per_clock, step) = (problem.flow_per_clock(), problem.step_times_dimension());
        let scales = (per_clock / rate, per_clock * step / (rate * rate * problem.training.batch as f64));
        let mut flow = Self {
            problem,
            shape,
            start: start.clone(),
            blocks: start.blocks.clone(),
            covariance: Mat::zeros(shape.rows(), shape.rows()),
            averages: Averages::new(shape),
            motion: vec![Mat::zeros(shape.trained, shape.rows()); start.blocks.len()],
            barred: inverse_of_barred(count, &plain, shape.trained),
            back: Mat::zeros(shape.trained, count),
            lengths: vec![0.0; shape.trained],
            scales,
            displaced: Averages::new(shape),
            closed: true,
            decay: problem.training.constraint.weight_decay,
            noise: problem.training.label_noise,
        };
        let state = flow.pack(start);
        flow.evaluate(&state, flow.decay, flow.noise);
        flow.closed = flow.averages.error == 0.0;
        flow
    }

    fn per_block(&self) -> usize {
        self.shape.trained * self.shape.frozen + self.shape.trained * (self.shape.trained + 1) / 2
    }

    /// Where the scalars begin in the state.
    fn rows_end(&self) -> usize {
        self.blocks.len() * self.per_block()
    }

    pub(super) fn dimension(&self) -> usize {
        self.rows_end() + self.shape.scalars
    }

    /// The entries (row, column) of a block in the order of the state: per trained row those with frozen rows, then those with
    /// trained rows up to itself.
    fn entries(shape: Shape) -> impl Iterator<Item = (usize, usize)> {
        let (k, f) = (shape.trained, shape.frozen);
        (0..k).flat_map(move |i| (k..k + f).chain(0..=i).map(move |j| (i, j)))
    }

    pub(super) fn pack(&self, overlaps: &Overlaps) -> Vec<f64> {
        let blocks = overlaps.blocks.iter();
        let rows = blocks.flat_map(|g| Self::entries(self.shape).map(move |at| g[at]));
        rows.chain(overlaps.scalars.iter().copied()).collect()
    }

    pub(super) fn unpack(&self, state: &[f64]) -> Overlaps {
        let mut overlaps = self.start.clone();
        let mut values = state.iter();
        for g in &mut overlaps.blocks {
            for (i, j) in Self::entries(self.shape) {
                let value = *values.next().expect("an entry");
                g[(i, j)] = value;
                g[(j, i)] = value;
            }
        }
        overlaps.scalars.copy_from_slice(&state[self.rows_end()..]);
        overlaps
    }

    /// Blocks, covariance, averages and motion of the rows at a state.
    pub(super) fn evaluate(&mut self, state: &[f64], decay: f64, noise: f64) {
        (self.decay, self.noise) = (decay, noise);
        let (k, p) = (self.shape.trained, self.shape.rows());
        let mut values = state.iter();
        self.covariance.fill(0.0);
        self.lengths.fill(0.0);
        for (g, lambda) in self.blocks.iter_mut().zip(self.problem.spectrum.eigenvalues()) {
            for (i, j) in Self::entries(self.shape) {
                let value = *values.next().expect("an entry");
                g[(i, j)] = value;
                g[(j, i)] = value;
            }
            self.covariance.add_scaled(*lambda, g);
            for (i, length) in self.lengths.iter_mut().enumerate() {
                *length += g[(i, i)];
            }
        }
        let law = Law {
            covariance: &self.covariance,
            scalars: &state[self.blocks.len() * self.per_block()..],
            label_noise: noise,
        };
        self.problem.rule.averages(&law, Needed::DriftAndNoise, &mut self.averages);
        for ((g, motion), lambda) in
            self.blocks.iter().zip(&mut self.motion).zip(self.problem.spectrum.eigenvalues())
        {
            motion.fill(0.0);
            motion.add_product(-lambda, &self.averages.drift, g);
            for i in 0..k {
                for j in 0..p {
                    motion[(i, j)] -= decay * g[(i, j)];
                }
            }
        }
        let Some(inverse) = &self.barred else { return };
        let last = k + inverse.rows();
        let mut along = Mat::zeros(k, inverse.rows());
        for motion in &self.motion {
            along.add_scaled(1.0, &motion.block(0..k, k..last));
        }
        self.back = along.times(inverse).scaled(-1.0);
        for (g, motion) in self.blocks.iter().zip(&mut self.motion) {
            motion.add_product(1.0, &self.back, &g.block(k..last, 0..p));
        }
    }

    /// w_b λ_b, what multiplies N.
    fn diffusion(&self, b: usize) -> f64 {
        self.problem.spectrum.weights()[b] * self.problem.spectrum.eigenvalues()[b]
    }

    fn on_sphere(&self) -> bool {
        self.problem.training.constraint.sphere.is_some()
    }

    /// ν of the drift and of the noise.
    fn shrinking(&self) -> (Vec<f64>, Vec<f64>) {
        let k = if self.on_sphere() { self.shape.trained } else { 0 };
        let drift =
            (0..k).map(|i| self.motion.iter().map(|m| m[(i, i)]).sum::<f64>() / self.lengths[i]).collect();
        let weight: f64 = (0..self.blocks.len()).map(|b| self.diffusion(b)).sum();
        let noise = (0..k).map(|i| weight * self.averages.noise[(i, i)] / (2.0 * self.lengths[i])).collect();
        (drift, noise)
    }

    /// a·s/|a|², where the scalars stay on a sphere.
    fn along(&self, scalars: &[f64]) -> f64 {
        let length = dot(scalars, scalars);
        let kept = self.problem.training.constraint.scalar_sphere.is_some() && length > 0.0;
        if kept { dot(scalars, &self.averages.scalars) / length } else { 0.0 }
    }

    /// f1 and f2 at the state that was evaluated.
    pub(super) fn parts(&self, state: &[f64], f1: &mut [f64], f2: &mut [f64]) {
        let k = self.shape.trained;
        let (first, second) = self.scales;
        let (nu1, nu2) = self.shrinking();
        let of = |nu: &[f64], i: usize| nu.get(i).copied().unwrap_or(0.0);
        let mut at = 0;
        for (b, (g, motion)) in self.blocks.iter().zip(&self.motion).enumerate() {
            let diffusion = self.diffusion(b);
            for (i, j) in Self::entries(self.shape) {
                if j >= k {
                    f1[at] = first * (motion[(i, j)] - of(&nu1, i) * g[(i, j)]);
                    f2[at] = -second * of(&nu2, i) * g[(i, j)];
                } else {
                    let (both1, both2) = (of(&nu1, i) + of(&nu1, j), of(&nu2, i) + of(&nu2, j));
                    f1[at] = first * (motion[(i, j)] + motion[(j, i)] - both1 * g[(i, j)]);
                    f2[at] = second * (diffusion * self.averages.noise[(i, j)] - both2 * g[(i, j)]);
                }
                at += 1;
            }
        }
        let scalars = &state[at..];
        let along = self.along(scalars);
        for (s, value) in scalars.iter().enumerate() {
            f1[at + s] =
                -first * self.problem.training.scalar_ratio * (self.averages.scalars[s] - along * value);
            f2[at + s] = 0.0;
        }
    }
}
