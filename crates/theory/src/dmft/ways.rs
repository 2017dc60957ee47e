//! Momentum, schedules, mini-batches and noise in the mean-field equations (docs/derivations/training-rules.md#s5-2).
//!
//! The weight side stays linear: A, B and R_θ carry velocities. On the data side the kick of a sample is multiplied by s(t)/b, where
//! s is an indicator with the law of its batches, and read where the gradient is taken, with the noise of the step.

use super::LANES;
use super::kernels::{Equations, Kernels, Linear};
use super::lanes::per_sample;
use super::step::{Buffers, Step};
use didact_math::gauss::normal::quantile;
use didact_math::linalg::{Mat, cholesky_psd};
use didact_math::random::sobol_column;
use didact_model::constraint::{Retraction, inverse_of_barred};
use didact_model::rule::{Batch, Expansion, masked_rules};
use didact_model::training::{GradientMap, Training, TrainingError, TrainingRates};
use didact_model::{Kick, LocalRule};
use std::sync::Arc;

/// Ways of training, one after the other, with their rates at every step.
#[derive(Debug, Clone)]
pub struct TrainedSteps {
    /// First step of every stage, and how rows move in it.
    stages: Vec<(usize, Training)>,
    /// Rates of steps 0, 1, …
    rates: Vec<TrainingRates>,
}

impl TrainedSteps {
    /// First step and training of every stage, and times of the clock at the beginning of every step; `None` for plain descent in one
    /// stage.
    pub(super) fn new(stages: &[(usize, &Training)], times: &[f64]) -> Result<Option<Self>, TrainingError> {
        if let [(_, training)] = stages
            && training.is_plain()
        {
            return Ok(None);
        }
        let stages = stages.iter().map(|(begin, training)| (*begin, training.simplified())).collect();
        let mut steps = Self { stages, rates: Vec::new() };
        let rates = times.iter().enumerate().map(|(step, t)| steps.training_at(step).rates_at(*t));
        steps.rates = rates.collect::<Result<_, _>>()?;
        Ok(Some(steps))
    }

    fn at(&self, t: usize) -> TrainingRates {
        self.rates[t.min(self.rates.len() - 1)]
    }

    /// Number of the stage that a step belongs to.
    fn stage_at(&self, t: usize) -> usize {
        self.stages.partition_point(|(begin, _)| *begin <= t) - 1
    }

    fn training_at(&self, t: usize) -> &Training {
        &self.stages[self.stage_at(t)].1
    }

    /// Whether the gradient of some step is taken ahead of the rows.
    fn looks_ahead(&self) -> bool {
        self.stages.iter().any(|(_, training)| training.looks_ahead())
    }

    fn has_input_noise(&self) -> bool {
        self.stages.iter().any(|(_, training)| training.input_noise > 0.0)
    }

    /// 1 + ς² of input noise: what it adds to the part of the gradient that is white in the weights.
    fn widening(&self, t: usize) -> f64 {
        1.0 + self.training_at(t).input_noise.powi(2)
    }
}

impl Equations {
    /// The same equations for another way of training, over so many steps with the clock in steps.
    pub fn trained(self, training: &Training, steps: usize) -> Result<Self, TrainingError> {
        let times: Vec<f64> = (0..=steps).map(|t| t as f64).collect();
        self.trained_at(&[(0, training)], &times)
    }

    /// The same with the first step and the training of every stage, and given times of the clock at the beginning of every step.
    pub(super) fn trained_at(
        self,
        stages: &[(usize, &Training)],
        times: &[f64],
    ) -> Result<Self, TrainingError> {
        Ok(Self { ways: TrainedSteps::new(stages, times)?.map(Arc::new), ..self })
    }

    /// η of a step.
    pub(super) fn step_at(&self, t: usize) -> f64 {
        self.ways.as_ref().map_or(self.step, |ways| ways.at(t).learning_rate)
    }

    /// β of a step.
    fn beta_at(&self, t: usize) -> f64 {
        self.ways.as_ref().map_or(0.0, |ways| ways.at(t).momentum)
    }

    /// η_r η_r' /δ, with what input noise adds at equal times.
    pub(super) fn noise_weight(&self, from: usize, to: usize) -> f64 {
        match &self.ways {
            None => self.step * self.step / self.ratio,
            Some(ways) => {
                let wide = if from == to { ways.widening(from) } else { 1.0 };
                ways.at(from).learning_rate * ways.at(to).learning_rate / self.ratio * wide
            }
        }
    }

    /// Scalars after a step, from their velocities and mean slopes.
    pub(super) fn move_scalars(&self, t: usize, scalars: &mut [f64], speeds: &mut Vec<f64>, slopes: &[f64]) {
        let Some(ways) = &self.ways else {
            let rate = self.step_at(t) * self.scalar_ratio;
            scalars.iter_mut().zip(slopes).for_each(|(a, g)| *a -= rate * g);
            return;
        };
        let rate = self.step_at(t) * ways.training_at(t).scalar_ratio;
        speeds.resize(scalars.len(), 0.0);
        let beta = self.beta_at(t);
        for ((a, q), g) in scalars.iter_mut().zip(&mut *speeds).zip(slopes) {
            *q = beta * *q - rate * g;
            *a += *q;
        }
        if ways.training_at(t).momentum.is_none() {
            speeds.clear();
        }
    }
}

/// What momentum adds to the kernels.
#[derive(Debug, Clone, Default)]
pub(super) struct Velocities {
    /// A, B and R_θ of the velocity at the last step.
    velocity: Option<Linear>,
    /// Those of Y(t), where the gradient is taken, at every step; empty when that is Θ(t).
    ahead: Vec<Linear>,
    /// ρ_i(t), what the sphere made of every row.
    scales: Vec<Vec<f64>>,
    /// Cov Y(t), where input noise needs it.
    covariance: Vec<Mat>,
    /// C_Y(t,*).
    frozen: Vec<Mat>,
}

impl Kernels {
    /// Θ(t) as a linear function from all steps before t ≥ 1: docs/derivations/training-rules.md#eq-11.
    pub(super) fn next_in_ways(&mut self, t: usize, equations: &Equations, ways: &TrainedSteps) -> Linear {
        let (now, m) = (t - 1, equations.shape().trained);
        let TrainingRates { learning_rate: eta, momentum: beta, weight_decay: decay, .. } = ways.at(now);
        let response = |r: usize| {
            let own = &self.kicks_response[now][r];
            if r == now { own.scaled(ways.widening(now)) } else { own.clone() }
        };
        // The part of the gradient that comes from kicks.
        let mut kick = Linear {
            initial: Mat::zeros(m, m),
            drawn: Mat::zeros(m, equations.shape().frozen),
            response: Vec::new(),
        };
        for r in 0..=now {
            let (own, read) = (response(r), self.read(r));
            kick.initial.add_product(-eta, &own, read.0);
            kick.drawn.add_product(-eta, &own, read.1);
        }
        kick.drawn.add_scaled(-eta, &self.kicks_frozen[now]);
        for s in 0..now {
            let mut sum = Mat::zeros(m, m);
            for r in s + 1..=now {
                sum.add_product(-eta, &response(r), &self.read(r).2[s]);
            }
            kick.response.push(sum);
        }
        kick.response.push(Mat::identity(m));
        self.constrain_kick(&mut kick, equations);
        // p ← β p + kick − η κ Y.
        let mut velocity = kick;
        if let Some(before) = &self.velocities.velocity {
            velocity.add(beta, (&before.initial, &before.drawn, &before.response));
        }
        velocity.add(-eta * decay, self.read(now));
        let mut next = velocity.clone();
        next.add(1.0, self.theta(now));
        let mut scales = vec![1.0; m];
        if equations.constraint.sphere.is_some() {
            let (row, _) = self.correlate(&next, equations);
            for (i, scale) in scales.iter_mut().enumerate() {
                *scale = (equations.start[(i, i)] / row[t][(i, i)]).sqrt();
                next.scale_row(i, *scale);
            }
        }
        self.velocities.scales.push(scales);
        self.velocities.velocity = ways.training_at(now).momentum.is_some().then_some(velocity);
        next
    }

    /// Notes where the gradient of step t is taken; to be called before Θ(t) is one of the steps.
    pub(super) fn look_ahead(&mut self, next: &Linear, equations: &Equations, ways: &TrainedSteps) {
        let t = self.len();
        if t == 0 {
            self.velocities.scales.push(vec![1.0; equations.shape().trained]);
        }
        let mut read = next.clone();
        if ways.looks_ahead() {
            if let Some(velocity) = &self.velocities.velocity
                && ways.training_at(t).looks_ahead()
            {
                read.add(ways.at(t).momentum, (&velocity.initial, &velocity.drawn, &velocity.response));
            }
            let (row, star) = self.correlate(&read, equations);
            self.velocities.covariance.push(row[t].clone());
            self.velocities.frozen.push(star);
            self.velocities.ahead.push(read);
        } else if ways.has_input_noise() {
            let (row, _) = self.correlate(&read, equations);
            self.velocities.covariance.push(row[t].clone());
        }
    }

    fn theta(&self, t: usize) -> (&Mat, &Mat, &[Mat]) {
        (&self.initial[t], &self.drawn[t], &self.weights_response[t])
    }

    /// A, B and R_θ of Y(t).
    fn read(&self, t: usize) -> (&Mat, &Mat, &[Mat]) {
        match self.velocities.ahead.get(t) {
            Some(ahead) => (&ahead.initial, &ahead.drawn, &ahead.response),
            None => self.theta(t),
        }
    }

    /// R_Y(t,s).
    pub(super) fn read_response(&self, t: usize, s: usize) -> &Mat {
        &self.read(t).2[s]
    }

    /// C_Y(t,*).
    pub(super) fn read_frozen(&self, t: usize) -> &Mat {
        self.velocities.frozen.get(t).unwrap_or(&self.weights_frozen[t])
    }

    /// Takes out of the kick what constraints forbid: motion along the row (tangent) and along barred frozen rows.
    fn constrain_kick(&self, kick: &mut Linear, equations: &Equations) {
        let (t, m) = (self.len(), equations.shape().trained);
        if equations.constraint.sphere == Some(Retraction::Tangent) {
            let (row, _) = self.correlate(kick, equations);
            for i in 0..m {
                let along = row[t - 1][(i, i)] / equations.start[(i, i)];
                kick.add_to_row(i, -along, self.theta(t - 1));
            }
        }
        let count = equations.constraint.barred(&*equations.rule);
        if let Some(inverse) = inverse_of_barred(count, &equations.start, m) {
            let (_, star) = self.correlate(kick, equations);
            let back = star.block(0..m, 0..inverse.rows()).times(&inverse);
            for i in 0..m {
                (0..inverse.rows()).for_each(|n| kick.drawn[(i, n)] -= back[(i, n)]);
            }
        }
    }

    /// Coefficients (a, b) in V_Y(t) = a V(t) + b V(t−1) of unit i: Y = Θ + β (Θ/ρ − Θ before).
    pub(super) fn ahead_of(&self, t: usize, i: usize, ways: &TrainedSteps) -> Option<(f64, f64)> {
        let beta = ways.at(t).momentum;
        // A stage that begins after one without momentum begins at rest.
        let moves = t > 0 && ways.training_at(t - 1).momentum.is_some();
        (ways.training_at(t).looks_ahead() && moves)
            .then(|| (1.0 + beta / self.velocities.scales[t][i], -beta))
    }

    /// The factor of Cov Y(t), for noise on the inputs.
    fn read_factor(&self, t: usize) -> Mat {
        let covariance = &self.velocities.covariance[t];
        let m = covariance.rows();
        let symmetric = Mat::from_fn(m, m, |i, j| 0.5 * (covariance[(i, j)] + covariance[(j, i)]));
        cholesky_psd(&symmetric).unwrap_or_else(|_| Mat::zeros(m, m))
    }
}

impl Linear {
    /// Adds `factor` times another function of the same or an earlier time.
    pub(super) fn add(&mut self, factor: f64, (initial, drawn, response): (&Mat, &Mat, &[Mat])) {
        self.initial.add_scaled(factor, initial);
        self.drawn.add_scaled(factor, drawn);
        self.response.iter_mut().zip(response).for_each(|(to, from)| to.add_scaled(factor, from));
    }
}

/// First axis of the random numbers of visits, past all axes of the points: their columns are permutations of their own.
const FIRST_AXIS: usize = 1 << 20;
/// Axes of one step.
const AXES_PER_STEP: usize = 1 << 10;

/// What is drawn for every sample at one step.
#[derive(Debug, Default)]
pub(super) struct Visit {
    /// s(t)/b per sample; empty when every step sees all samples.
    pub(super) shares: Vec<f64>,
    /// What is added to every trained field where kicks are taken, m columns; none without noise.
    noise: Vec<Vec<f64>>,
    /// Rules that samples may see, and which of them each does.
    rules: Vec<Arc<dyn LocalRule>>,
    chosen: Vec<usize>,
    gradient: GradientMap,
}

/// The visits of all samples, step after step.
#[derive(Debug)]
pub(super) struct Visits {
    ways: Arc<TrainedSteps>,
    origin: (u64, u32),
    samples: usize,
    /// s(t), where batches persist.
    seen: Vec<bool>,
    /// Place of every sample in its epoch.
    slots: Vec<usize>,
    /// The rules that samples may see in every stage, with their probabilities.
    masked: Vec<Vec<(f64, Arc<dyn LocalRule>)>>,
}

impl Visits {
    pub(super) fn new(equations: &Equations, origin: (u64, u32), samples: usize) -> Option<Self> {
        let ways = equations.ways.clone()?;
        let masked = |(_, training): &(usize, Training)| {
            training.dropout.and_then(|keep| masked_rules(&equations.rule, keep)).unwrap_or_default()
        };
        Some(Self {
            origin,
            samples,
            seen: vec![false; samples],
            slots: vec![0; samples],
            masked: ways.stages.iter().map(masked).collect(),
            ways,
        })
    }

    fn column(&self, t: usize, which: usize) -> Vec<f64> {
        let mut column = vec![0.0; self.samples];
        let (seed, scramble) = self.origin;
        sobol_column(seed, scramble, FIRST_AXIS + t * AXES_PER_STEP + which, &mut column);
        column
    }

    /// A column of normals of mean 0 and variance 1.
    fn normals(&self, t: usize, which: usize) -> Vec<f64> {
        let mut column = self.column(t, which);
        column.iter_mut().for_each(|u| *u = quantile(u.clamp(1e-300, 1.0 - f64::EPSILON / 2.0)));
        let n = column.len() as f64;
        let mean = column.iter().sum::<f64>() / n;
        column.iter_mut().for_each(|z| *z -= mean);
        let scale = (column.iter().map(|z| z * z).sum::<f64>() / n).sqrt();
        column.iter_mut().for_each(|z| *z /= scale);
        column
    }

    /// What is drawn at step t; steps come in their order.
    pub(super) fn next(&mut self, t: usize, kernels: &Kernels) -> Visit {
        let (stage, (begin, training)) = (self.ways.stage_at(t), &self.ways.stages[self.ways.stage_at(t)]);
        // Epochs begin anew with every stage.
        let since = t - begin;
        let mut visit = Visit { gradient: training.gradient, ..Visit::default() };
        if let Some(batches) = training.batches {
            let b = batches.fraction;
            if let Some(parts) = batches.batches_per_epoch() {
                let (epoch, part) = (since / parts, since % parts);
                let begins = since == 0
                    || (part == 0 && batches.order == didact_model::training::BatchOrder::Reshuffled);
                if begins {
                    let column = self.column(begin + epoch * parts, 0);
                    let slots = column.iter().map(|u| ((u * parts as f64) as usize).min(parts - 1));
                    self.slots = slots.collect();
                }
                self.seen = self.slots.iter().map(|slot| *slot == part).collect();
            } else {
                let column = self.column(t, 0);
                let stay = batches.leave_and_enter();
                for (seen, place) in self.seen.iter_mut().zip(column) {
                    *seen = match (stay, since, *seen) {
                        (None, _, _) | (_, 0, _) => place < b,
                        (Some((leave, _)), _, true) => place >= leave,
                        (Some((_, enter)), _, false) => place < enter,
                    };
                }
            }
            visit.shares = self.seen.iter().map(|seen| if *seen { 1.0 / b } else { 0.0 }).collect();
        }
        let m = kernels.weights[t][t].rows();
        let (input, weight) = (training.input_noise, training.weight_noise);
        if input > 0.0 || weight > 0.0 {
            visit.noise = vec![vec![0.0; self.samples]; m];
            if input > 0.0 {
                let factor = kernels.read_factor(t).scaled(input);
                let drawn: Vec<Vec<f64>> = (0..m).map(|k| self.normals(t, 8 + k)).collect();
                for (i, noise) in visit.noise.iter_mut().enumerate() {
                    for (k, drawn) in drawn.iter().enumerate().take(i + 1) {
                        noise.iter_mut().zip(drawn).for_each(|(sum, z)| *sum += factor[(i, k)] * z);
                    }
                }
            }
            if weight > 0.0 {
                // |x̃|²/d = 1 + ς² for isotropic inputs.
                let scale = weight * (1.0 + input * input).sqrt();
                for (i, noise) in visit.noise.iter_mut().enumerate() {
                    let drawn = self.normals(t, 8 + m + i);
                    noise.iter_mut().zip(drawn).for_each(|(sum, z)| *sum += scale * z);
                }
            }
        }
        let masked = &self.masked[stage];
        if !masked.is_empty() {
            let mut sums = Vec::with_capacity(masked.len());
            let mut sum = 0.0;
            for (probability, rule) in masked {
                sum += probability;
                sums.push(sum);
                visit.rules.push(rule.clone());
            }
            let last = sums.len() - 1;
            let place = |u: f64| sums.partition_point(|sum| *sum < u).min(last);
            visit.chosen = self.column(t, 1).into_iter().map(place).collect();
        }
        visit
    }
}

impl Visit {
    /// Whether samples see masked rules, which read the frozen fields themselves.
    pub(super) fn is_masked(&self) -> bool {
        !self.rules.is_empty()
    }

    /// φ̃ of the samples with these numbers, at the fields of a batch.
    pub(super) fn kicks(
        &self,
        rule: &Arc<dyn LocalRule>,
        batch: &Batch,
        samples: &[usize],
        kicks: &mut [f64],
    ) {
        let (shape, n) = (rule.shape(), batch.size);
        if self.rules.is_empty() {
            rule.kick_batch(batch, kicks, &mut vec![0.0; shape.scalars]);
        } else {
            let (mut fields, mut kick) = (vec![0.0; shape.rows()], Kick::new(shape));
            for (column, sample) in samples.iter().enumerate() {
                self.rules[self.chosen[*sample]].kick(&batch.sample(column, &mut fields), &mut kick);
                kick.rows.iter().enumerate().for_each(|(i, c)| kicks[i * n + column] = *c);
            }
        }
        for (column, sample) in samples.iter().enumerate() {
            let mut factor = self.shares.get(*sample).copied().unwrap_or(1.0);
            if self.gradient.scales_kicks() {
                let square = (0..shape.trained).map(|i| kicks[i * n + column].powi(2)).sum();
                factor *= self.gradient.factor(square).unwrap_or(1.0);
            }
            (0..shape.trained).for_each(|i| kicks[i * n + column] *= factor);
        }
    }

    /// φ̃(t), its derivatives and the slopes of the scalars of a chunk whose fields V_Y(t) are in place.
    pub(super) fn sample(
        &self,
        step: &Step,
        chunk: usize,
        blocks: &mut [f64],
        weights: &[f64],
        buffers: &mut Buffers,
    ) {
        let (m, columns) = (step.layout.trained, step.layout.columns);
        let here = chunk * LANES..(chunk + 1) * LANES;
        for (i, noise) in self.noise.iter().enumerate() {
            let noise = &per_sample(noise)[chunk];
            buffers.fields[i * LANES..(i + 1) * LANES].iter_mut().zip(noise).for_each(|(h, z)| *h += z);
        }
        let (kicks, curvature) = step.layout.now(blocks, step.t);
        let batch = step.batch(chunk, &mut buffers.fields);
        let rule = |lane: usize| match self.rules.as_slice() {
            [] => &step.equations.rule,
            rules => &rules[self.chosen[here.start + lane]],
        };
        if self.rules.is_empty() {
            let out = Expansion { losses: &mut [], kicks, columns, curvature };
            step.equations.rule.expand_batch(&batch, out);
        } else {
            expand_chosen(&self.rules, &self.chosen[here.clone()], &batch, (m, columns), kicks, curvature);
        }
        map(self.gradient, m, columns, kicks, curvature);
        if !step.scalars.is_empty() {
            let shape = step.equations.shape();
            let (mut fields, mut kick) = (vec![0.0; shape.rows()], Kick::new(shape));
            for lane in 0..LANES {
                let share = self.shares.get(here.start + lane).copied().unwrap_or(1.0) * weights[lane];
                if share != 0.0 {
                    rule(lane).kick(&batch.sample(lane, &mut fields), &mut kick);
                    let slopes = buffers.scalars.iter_mut().zip(&kick.scalars);
                    slopes.for_each(|(sum, slope)| *sum += share * slope);
                }
            }
        }
        if !self.shares.is_empty() {
            let shares = &self.shares[here];
            for numbers in kicks.chunks_exact_mut(LANES).chain(curvature.chunks_exact_mut(LANES)) {
                numbers.iter_mut().zip(shares).for_each(|(x, share)| *x *= share);
            }
        }
    }
}

/// Kicks and derivatives of a chunk whose samples see different rules.
fn expand_chosen(
    rules: &[Arc<dyn LocalRule>],
    chosen: &[usize],
    batch: &Batch,
    (m, columns): (usize, usize),
    kicks: &mut [f64],
    curvature: &mut [f64],
) {
    let (mut own, mut slopes) = (vec![0.0; m * LANES], vec![0.0; m * columns * LANES]);
    for (index, rule) in rules.iter().enumerate() {
        if !chosen.contains(&index) {
            continue;
        }
        let out = Expansion { losses: &mut [], kicks: &mut own, columns, curvature: &mut slopes };
        rule.expand_batch(batch, out);
        for (lane, _) in chosen.iter().enumerate().filter(|(_, own)| **own == index) {
            for (to, from) in kicks.chunks_exact_mut(LANES).zip(own.chunks_exact(LANES)) {
                to[lane] = from[lane];
            }
            for (to, from) in curvature.chunks_exact_mut(LANES).zip(slopes.chunks_exact(LANES)) {
                to[lane] = from[lane];
            }
        }
    }
}

/// Maps kicks φ ← f(|φ|²) φ, and their derivatives: D ← f (1 + 2 ε φφᵀ/|φ|²) D with ε = d ln f/d ln |φ|². Clipping has f = c/|φ| and
/// ε = −1/2 where |φ| > c.
fn map(gradient: GradientMap, m: usize, columns: usize, kicks: &mut [f64], curvature: &mut [f64]) {
    if !gradient.scales_kicks() {
        return;
    }
    for lane in 0..LANES {
        let square: f64 = (0..m).map(|i| kicks[i * LANES + lane].powi(2)).sum();
        let Some(factor) = gradient.factor(square) else { continue };
        for k in 0..columns {
            let at = |i: usize| (i * columns + k) * LANES + lane;
            let along: f64 = (0..m).map(|i| kicks[i * LANES + lane] * curvature[at(i)]).sum::<f64>() / square;
            for i in 0..m {
                curvature[at(i)] = factor
                    * (curvature[at(i)]
                        + 2.0 * gradient.elasticity(square) * along * kicks[i * LANES + lane]);
            }
        }
        (0..m).for_each(|i| kicks[i * LANES + lane] *= factor);
    }
}
