//! Momentum, mini-batches, maps of the kick and noise on a training set.

use super::{FullBatchChain, LARGEST_SQUARED_GROWTH};
use crate::chain::ReplicaAddress;
use crate::full_batch::kernels::Number;
use crate::step_clock::StepClock;
use crate::ways::{Coefficients, MovingScalars};
use didact_math::linalg::{Mat, dot};
use didact_math::random::{RngAddress, Stream};
use didact_model::rule::{Batch, masked_rules};
use didact_model::training::{BatchOrder, Batches, Training, TrainingError, TrainingRates};
use didact_model::{EngineError, Kick, LocalRule, Overlaps, Problem};
use std::sync::Arc;

/// First lane of the random numbers of steps on a training set.
const LANE: u16 = 0x6f10;
const BATCHES: u16 = 0;
const MASKS: u16 = 1;
const INPUT_NOISE: u16 = 2;
const WEIGHT_NOISE: u16 = 3;

/// A stream for some samples of one step, whichever thread meets them.
fn stream(address: ReplicaAddress, step: u64, at: usize, purpose: u16) -> Stream {
    let ReplicaAddress { seed, replica, stage } = address;
    let lane = LANE + purpose + 8 * (stage % 64);
    Stream::at(RngAddress { seed, replica, step: (step << 32) | at as u64, lane })
}

/// Everything beyond plain descent that a chain remembers.
#[derive(Debug)]
pub(super) struct WaysOfTraining {
    training: Training,
    clock: StepClock,
    address: ReplicaAddress,
    /// Trained x d, what a step adds to the rows; no row without momentum.
    velocities: Mat,
    scalars: MovingScalars,
    chooser: Option<Chooser>,
    masked: Vec<(f64, Arc<dyn LocalRule>)>,
    fault: Option<TrainingError>,
}

impl WaysOfTraining {
    pub(super) fn new(
        problem: &Problem,
        start: &Overlaps,
        velocities: Option<Mat>,
        address: ReplicaAddress,
        begin: f64,
    ) -> Result<Self, EngineError> {
        let dimension = problem.finite_dimension(crate::full_batch::NAME)?;
        let training = problem.training.simplified();
        let samples = problem.sample_count().unwrap_or(0) as usize;
        let rows = if training.momentum.is_some() { start.shape().trained } else { 0 };
        let masked = training.dropout.and_then(|keep| masked_rules(&problem.rule, keep)).unwrap_or_default();
        let mut sum = 0.0;
        let masked = masked.into_iter().map(|(probability, rule)| {
            sum += probability;
            (sum, rule)
        });
        let state = start.velocities.clone().unwrap_or_default();
        Ok(Self {
            clock: StepClock::new(problem, dimension, begin),
            address,
            velocities: velocities
                .filter(|given| given.rows() == rows)
                .unwrap_or_else(|| Mat::zeros(rows, dimension as usize)),
            scalars: MovingScalars::new(start.scalars.clone(), state.scalars),
            chooser: training.batches.map(|batches| Chooser::new(batches, samples, address)),
            masked: masked.collect(),
            fault: None,
            training,
        })
    }

    /// Rows with those of the velocities behind them.
    pub(super) fn with_velocities(&self, weights: &Mat) -> Mat {
        let rows = weights.rows();
        Mat::from_fn(rows + self.velocities.rows(), weights.cols(), |i, j| {
            if i < rows { weights[(i, j)] } else { self.velocities[(i - rows, j)] }
        })
    }

    pub(super) fn scalar_velocities(&self) -> &[f64] {
        &self.scalars.velocities
    }

    pub(super) fn fault(&self) -> Option<EngineError> {
        self.fault.clone().map(|fault| EngineError::Problem(fault.into()))
    }

    /// The samples of the next step, where it does not see all.
    pub(super) fn mask(&self) -> Option<&[bool]> {
        self.chooser.as_ref().map(|chooser| chooser.seen.as_slice())
    }

    fn pass(&self) -> Pass<'_> {
        Pass {
            training: &self.training,
            mask: self.mask(),
            masked: &self.masked,
            address: self.address,
            step: self.clock.step(),
        }
    }
}

/// Which samples the next step sees.
#[derive(Debug)]
struct Chooser {
    batches: Batches,
    address: ReplicaAddress,
    step: u64,
    seen: Vec<bool>,
    /// Part of the epoch in which a sample is visited, for orders that have epochs.
    parts: Vec<usize>,
}

impl Chooser {
    fn new(batches: Batches, samples: usize, address: ReplicaAddress) -> Self {
        let mut chooser =
            Self { batches, address, step: 0, seen: vec![false; samples], parts: vec![0; samples] };
        chooser.choose();
        chooser
    }

    fn advance(&mut self) {
        self.step += 1;
        self.choose();
    }

    fn choose(&mut self) {
        let b = self.batches.fraction;
        let mut stream = stream(self.address, self.step, 0, BATCHES);
        if let Some((leave, enter)) = self.batches.leave_and_enter() {
            for seen in &mut self.seen {
                let place = stream.uniform();
                *seen = match (self.step, *seen) {
                    (0, _) => place < b,
                    (_, true) => place >= leave,
                    (_, false) => place < enter,
                };
            }
            return;
        }
        let Some(count) = self.batches.batches_per_epoch() else {
            self.seen.iter_mut().for_each(|seen| *seen = stream.uniform() < b);
            return;
        };
        let (n, part) = (self.seen.len(), (self.step % count as u64) as usize);
        let begins = self.step == 0 || (part == 0 && self.batches.order == BatchOrder::Reshuffled);
        if begins {
            for (place, sample) in stream.permutation(n).into_iter().enumerate() {
                self.parts[sample] = place * count / n;
            }
        }
        self.seen.iter_mut().zip(&self.parts).for_each(|(seen, own)| *seen = *own == part);
    }

    /// What multiplies the sum over the batch: 1/(b n) where its size varies, so that an empty batch makes no step.
    fn weight(&self) -> f64 {
        let size = self.seen.iter().filter(|seen| **seen).count();
        match self.batches.batches_per_epoch() {
            Some(_) => 1.0 / size.max(1) as f64,
            None => 1.0 / (self.batches.fraction * self.seen.len() as f64),
        }
    }
}

/// What one step does to its samples, shared by all threads.
pub(super) struct Pass<'a> {
    training: &'a Training,
    mask: Option<&'a [bool]>,
    masked: &'a [(f64, Arc<dyn LocalRule>)],
    address: ReplicaAddress,
    step: u64,
}

impl Pass<'_> {
    /// Inputs with fresh noise, where there is any.
    pub(super) fn noisy<T: Number>(&self, x: &[T], at: usize, d: usize) -> Option<Vec<T>> {
        let deviation = self.training.input_noise;
        (deviation > 0.0).then(|| {
            let mut zeta = vec![0.0; x.len() / d * d];
            stream(self.address, self.step, at, INPUT_NOISE).fill_normal(&mut zeta);
            x.iter().zip(zeta).map(|(x, z)| T::from_double(x.to_double() + deviation * z)).collect()
        })
    }

    /// Fields as the student reads them: noise on the weights, and its own frozen rows at noisy inputs.
    pub(super) fn disturb<T: Number>(
        &self,
        chain: &FullBatchChain<T>,
        x: &[T],
        at: usize,
        size: usize,
        fields: &mut [f64],
    ) {
        let (k, d) = (chain.shape.trained, chain.dimension());
        if self.training.weight_noise > 0.0 {
            let mut stream = stream(self.address, self.step, at, WEIGHT_NOISE);
            for (j, x) in x.chunks_exact(d).enumerate() {
                let square: f64 = x.iter().map(|x| x.to_double() * x.to_double()).sum();
                let scale = self.training.weight_noise * (square / d as f64).sqrt();
                (0..k).for_each(|i| fields[i * size + j] += scale * stream.normal());
            }
        }
        if self.training.input_noise > 0.0 {
            for n in 0..chain.shape.own_frozen {
                let row = chain.weights.row(k + n);
                for (j, x) in x.chunks_exact(d).enumerate() {
                    let field = x.iter().zip(row).map(|(x, v)| x.to_double() * v).sum();
                    fields[(k + n) * size + j] = field;
                }
            }
        }
    }

    /// Kicks of some samples, zero for those that the step does not see, and the sum of the slopes of the scalars.
    pub(super) fn kicks<T: Number>(
        &self,
        chain: &FullBatchChain<T>,
        batch: &Batch,
        at: usize,
        kicks: &mut [f64],
        slopes: &mut [f64],
    ) {
        let (size, shape) = (batch.size, chain.shape);
        let seen = |j: usize| self.mask.is_none_or(|mask| mask[at + j]);
        if self.masked.is_empty() && (self.mask.is_none() || shape.scalars == 0) {
            // Labels are those of the whole network, from clean inputs.
            chain.rule.kick_batch(batch, kicks, slopes);
            for j in (0..size).filter(|j| !seen(*j)) {
                kicks.iter_mut().skip(j).step_by(size).for_each(|kick| *kick = 0.0);
            }
        } else {
            let mut stream = stream(self.address, self.step, at, MASKS);
            let (mut fields, mut kick) = (vec![0.0; shape.rows()], Kick::new(shape));
            slopes.fill(0.0);
            for j in 0..size {
                let place = stream.uniform();
                let rule = match self.masked {
                    [] => &chain.rule,
                    all => &all[all.partition_point(|(sum, _)| *sum < place).min(all.len() - 1)].1,
                };
                if !seen(j) {
                    kicks.iter_mut().skip(j).step_by(size).for_each(|kick| *kick = 0.0);
                    continue;
                }
                rule.kick(&batch.sample(j, &mut fields), &mut kick);
                for (i, c) in kick.rows.iter().enumerate() {
                    kicks[i * size + j] = *c;
                }
                slopes.iter_mut().zip(&kick.scalars).for_each(|(sum, s)| *sum += s);
            }
        }
        self.training.gradient.map_batch(kicks, size);
    }
}

impl<T: Number> FullBatchChain<T> {
    /// One step: p ← β p − η g, w ← w + p, with g of the batch at the rows, or ahead of them
    /// (docs/derivations/training-rules.md#eq-9).
    pub(super) fn step_in_ways(&mut self) {
        let Some(mut ways) = self.ways.take() else { return };
        match ways.clock.rates() {
            Ok(rates) => {
                self.make_step(&mut ways, &rates);
                ways.clock.count(&rates);
                ways.chooser.iter_mut().for_each(Chooser::advance);
            }
            Err(fault) => {
                ways.fault = Some(fault);
                self.sound = false;
            }
        }
        self.ways = Some(ways);
    }

    fn make_step(&mut self, ways: &mut WaysOfTraining, rates: &TrainingRates) {
        let k = self.shape.trained;
        let training = &ways.training;
        let ahead = training.looks_ahead();
        let (eta, beta) = (ways.clock.step_per_rate() * rates.learning_rate, rates.momentum);
        let mut read = self.weights.clone();
        if ahead {
            for i in 0..k {
                let velocity = ways.velocities.row(i);
                read.row_mut(i).iter_mut().zip(velocity).for_each(|(w, p)| *w += beta * p);
            }
            self.scalars = ways.scalars.ahead(beta, 1.0);
        }
        let (mut gradient, mut slopes, sound) = self.gradient_at(&read, Some(&ways.pass()));
        let weight = ways.chooser.as_ref().map_or(1.0 / self.samples as f64, Chooser::weight);
        self.constrain(&mut gradient);
        for i in 0..k {
            let row = self.weights.row_mut(i);
            if training.momentum.is_some() {
                let steps = ways.velocities.row_mut(i).iter_mut().zip(gradient.row(i)).zip(read.row(i));
                for (w, ((p, g), y)) in row.iter_mut().zip(steps) {
                    *p = beta * *p - eta * (weight * g + rates.weight_decay * y);
                    *w += *p;
                }
            } else {
                let keep = 1.0 - eta * rates.weight_decay;
                for (w, g) in row.iter_mut().zip(gradient.row(i)) {
                    *w = keep * *w - eta * weight * g;
                }
            }
            let square = dot(self.weights.row(i), self.weights.row(i));
            self.sound = self.sound && square < LARGEST_SQUARED_GROWTH * self.lengths[i].max(1.0);
            if self.constraint.sphere.is_some() {
                let back = (self.lengths[i] / square).sqrt();
                self.weights.row_mut(i).iter_mut().for_each(|w| *w *= back);
            }
        }
        slopes.iter_mut().for_each(|slope| *slope *= weight);
        let beta = training.momentum.is_some().then_some(beta);
        let coefficients = Coefficients { beta, gain: eta, decay: rates.weight_decay };
        ways.scalars.step(&self.constraint, &coefficients, ways.training.scalar_ratio, &slopes, 1.0);
        self.scalars.clone_from(&ways.scalars.values);
        self.sound &= sound;
    }
}
