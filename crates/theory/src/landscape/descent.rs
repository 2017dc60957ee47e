//! Hessians along full-batch gradient descent: their law at every step from dynamical mean-field theory, and thresholds
//! in δ (docs/derivations/gd-phase-transitions.md#s5).

use super::easy_hard::{Split, split};
use super::ensemble::{Ensemble, HessianSpectrum};
use super::error::LandscapeError;
use super::start::{at_start, positive, weight_infimum};
use super::threshold::threshold_from;
use crate::dmft::{Equations, Points, Process, Sampling};
use didact_math::linalg::Mat;
use didact_math::random::statistics::SampleMean;
use didact_model::{LocalRule, Overlaps, Spectrum};
use std::sync::Arc;

/// Full-batch gradient descent on a rule, from rows of a given length in random directions, teacher directions orthonormal.
#[derive(Clone, Debug)]
pub struct Descent {
    rule: Arc<dyn LocalRule>,
    /// η.
    pub step: f64,
    /// Length of the trained rows at the start.
    pub start_length: f64,
    /// Standard deviation of the noise variable that the rule sees.
    pub label_noise: f64,
    /// How the effective process is sampled. Thresholds sit on the lower tail of the weights: draw the teacher fields wider (`spread`).
    pub sampling: Sampling,
    /// Independent scrambles: their scatter is the sampling error.
    pub scrambles: u32,
    split: Split,
}

/// The deviation with which thresholds draw the teacher fields: the error at t = 10 falls by three, any value from 1.3
/// to 2 does as well (docs/derivations/gd-phase-transitions.md#s11).
pub const THRESHOLD_SPREAD: f64 = 1.6;

/// A sampled number and its errors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampled {
    /// Mean over scrambles.
    pub value: f64,
    /// Its standard error (0 for one scramble).
    pub error: f64,
    /// How far a quarter of the samples was off: scrambles agree on what all of them miss, the tails.
    pub convergence: f64,
}

impl Sampled {
    /// By quadrature.
    fn exact(value: f64) -> Self {
        Self { value, error: 0.0, convergence: 0.0 }
    }
}

impl Descent {
    /// Checks the rule: it must have labels, and Hessian weights with a lower bound.
    pub fn new(
        rule: Arc<dyn LocalRule>,
        step: f64,
        start_length: f64,
        label_noise: f64,
    ) -> Result<Self, LandscapeError> {
        positive("the learning rate", step)?;
        positive("the length of the start", start_length)?;
        let shape = rule.shape();
        if shape.scalars > 0 {
            return Err(LandscapeError::TrainedScalars { scalars: shape.scalars });
        }
        if rule.label(&vec![0.1; shape.frozen], 0.0).is_none() {
            return Err(LandscapeError::NoLabel);
        }
        let link = |z: &[f64], e: f64| rule.label(z, label_noise * e).unwrap_or(f64::NAN);
        let split = split(shape.frozen, label_noise > 0.0, &link)?;
        let sampling = Sampling { spread: THRESHOLD_SPREAD, ..Sampling::default() };
        Ok(Self { rule, step, start_length, label_noise, sampling, scrambles: 2, split })
    }

    /// The easy and hard directions of the labels.
    pub fn split(&self) -> &Split {
        &self.split
    }

    /// Edges and thresholds need smooth units and weights that are bounded below.
    pub fn check_weights(&self) -> Result<f64, LandscapeError> {
        if self.rule.jumps().trained {
            return Err(LandscapeError::Kinked);
        }
        weight_infimum(self.rule.as_ref(), self.label_noise > 0.0)
    }

    /// The equations at n = δ d, with the responses to hard directions exactly 0.
    pub fn equations(&self, delta: f64) -> Equations {
        let shape = self.rule.shape();
        let square = self.start_length * self.start_length;
        let blocks = (
            &Mat::identity(shape.trained).scaled(square),
            &Mat::zeros(shape.trained, shape.frozen),
            &Mat::identity(shape.frozen),
        );
        let start = Overlaps::spread(shape, &Spectrum::isotropic(), blocks, vec![0.0; shape.scalars]);
        let start = start.expect("orthogonal rows have a Gram matrix");
        let hard = &self.split.hard;
        let projector =
            Mat::from_fn(shape.frozen, shape.frozen, |i, j| hard.iter().map(|u| u[i] * u[j]).sum());
        let equations = Equations::new(self.rule.clone(), self.step, delta, &start);
        Equations { label_noise: self.label_noise, hard: Some(projector), ..equations }
    }

    fn points(&self, scramble: u32, steps: usize) -> Points {
        let shape = self.rule.shape();
        Points::sobol(&self.sampling, scramble, shape.frozen, shape.trained, steps + 1)
    }

    /// What is sampled of the Hessian of one row at step t, once per scramble.
    pub fn spectra(&self, delta: f64, t: usize, row: usize) -> Result<Vec<HessianSpectrum>, LandscapeError> {
        let one = |scramble| self.ensemble(delta, t, scramble)?.hessian(row, delta, &self.split.hard);
        (0..self.scrambles.max(1)).map(one).collect()
    }

    /// Hessian weights and teacher fields of the training samples at step t, one scramble.
    pub fn ensemble(&self, delta: f64, t: usize, scramble: u32) -> Result<Ensemble, LandscapeError> {
        self.ensemble_with(delta, t, &mut self.points(scramble, t))
    }

    fn ensemble_with(&self, delta: f64, t: usize, points: &mut Points) -> Result<Ensemble, LandscapeError> {
        let equations = self.equations(delta);
        let mut process = Process::new(&equations, points);
        for step in 0..=t {
            if !process.advance() {
                return Err(LandscapeError::Diverges { delta, step });
            }
        }
        Ensemble::of_process(&process, self.rule.as_ref())
    }

    /// The Hessian block of every row at each of ascending steps: edge, ψ, outliers; one scramble.
    pub fn along(
        &self,
        delta: f64,
        steps: &[usize],
        scramble: u32,
    ) -> Result<Vec<Vec<HessianSpectrum>>, LandscapeError> {
        self.check_weights()?;
        let last = steps.last().copied().unwrap_or(0);
        let (equations, mut points) = (self.equations(delta), self.points(scramble, last));
        let mut process = Process::new(&equations, &mut points);
        let mut found = Vec::new();
        for step in 0..=last {
            if !process.advance() {
                return Err(LandscapeError::Diverges { delta, step });
            }
            if steps.contains(&step) {
                let ensemble = Ensemble::of_process(&process, self.rule.as_ref())?;
                let rows = 0..ensemble.rows();
                found.push(
                    rows.map(|row| ensemble.hessian(row, delta, &self.split.hard))
                        .collect::<Result<_, _>>()?,
                );
            }
        }
        Ok(found)
    }

    /// δ*_j(t): where the Hessian of row j at step t gets an informative direction of descent; by quadrature at t = 0 if the rule is simple
    /// enough. Every trial δ sees the same random numbers.
    pub fn threshold(&self, row: usize, t: usize) -> Result<Sampled, LandscapeError> {
        if self.split.hard.is_empty() {
            return Err(LandscapeError::NothingHard);
        }
        let shape = self.rule.shape();
        let simple = shape.trained == 1 && shape.rows() + usize::from(self.label_noise > 0.0) <= 2;
        if t == 0 && simple {
            return Ok(Sampled::exact(self.initial_threshold()?));
        }
        self.check_weights()?;
        // A small sample finds the place, the large ones start from there.
        let samples = (self.sampling.samples / 4).max(Sampling::FEWEST);
        let coarse = Self { sampling: Sampling { samples, ..self.sampling }, ..self.clone() };
        let first = if simple { 0.9 * self.initial_threshold()? } else { 0.3 };
        let place = coarse.root(row, t, 0, first, 1.5)?;
        let (mut guess, mut found) = (place, Vec::new());
        for scramble in 0..self.scrambles.max(1) {
            guess = self.root(row, t, scramble, 0.93 * guess, 1.15)?;
            found.push(guess);
        }
        let SampleMean { value, error, .. } = SampleMean::of(found.iter().copied());
        Ok(Sampled { value, error, convergence: (value - place).abs() })
    }

    fn root(
        &self,
        row: usize,
        t: usize,
        scramble: u32,
        start: f64,
        factor: f64,
    ) -> Result<f64, LandscapeError> {
        let mut points = self.points(scramble, t);
        threshold_from(start, factor, 1e-4, |delta| {
            self.ensemble_with(delta, t, &mut points)?.psi(row, delta, &self.split.hard)
        })
    }

    /// δ*(0) of one trained row by quadrature: exact.
    pub fn initial_threshold(&self) -> Result<f64, LandscapeError> {
        if self.split.hard.is_empty() {
            return Err(LandscapeError::NothingHard);
        }
        let infimum = self.check_weights()?;
        let start = at_start(self.rule.as_ref(), self.start_length, self.label_noise)?;
        let ensemble = start.ensemble.with_infimum(infimum)?;
        super::threshold(0.0, |delta| ensemble.psi(0, delta, &self.split.hard))
    }
}

impl Ensemble {
    /// Weights of every row of a rule at the training samples of the last step of its effective process.
    pub fn of_process(process: &Process, rule: &dyn LocalRule) -> Result<Self, LandscapeError> {
        let shape = rule.shape();
        let mut probabilities = Vec::new();
        let (mut weights, mut projections) =
            (vec![Vec::new(); shape.trained], vec![Vec::new(); shape.frozen]);
        process.for_every_sample(|sample, p| {
            probabilities.push(p);
            for (row, column) in weights.iter_mut().enumerate() {
                column.push(rule.row_weight(sample, row));
            }
            for (column, v) in projections.iter_mut().zip(&sample.fields[shape.trained..]) {
                column.push(*v);
            }
        });
        Self::from_samples(&probabilities, &weights, projections)
    }
}
