//! Any way of training on d-dimensional weights, as it is written: the definition of right.

use super::{Coefficients, HUGE, MovingScalars, TrainedKick, exponential, step_stream};
use crate::chain::{Chain, ReplicaAddress};
use crate::kernels;
use crate::step_clock::StepClock;
use crate::weights::fill_coordinates;
use didact_math::linalg::{Mat, cholesky_psd, dot};
use didact_math::random::{Stream, orthonormal_rows};
use didact_math::simd::add_scaled;
use didact_model::constraint::{Retraction, pseudo_inverse};
use didact_model::overlaps::OverlapsError;
use didact_model::problem::ProblemError;
use didact_model::rule::Batch;
use didact_model::training::{Adam, GradientMap, InputLaw, Training, TrainingError};
use didact_model::{EngineError, Overlaps, Problem, Shape, Velocities};
use std::ops::Range;

/// The chain of one replica.
pub(crate) struct WaysDirectChain {
    training: Training,
    shape: Shape,
    kick: TrainedKick,
    /// Rows (w, v) x d.
    weights: Mat,
    /// Velocities per unit of alpha, trained x d; no row without momentum.
    velocities: Mat,
    /// Adam's running means of the gradient and of its square, trained x d.
    moments: Option<(Mat, Mat)>,
    /// Steps over which the mean of squares has run; `None` when it goes on from an earlier stage.
    seen: Option<u64>,
    scalars: MovingScalars,
    /// First coordinate of every eigenspace, and d.
    bounds: Vec<usize>,
    /// √λ per coordinate.
    roots: Vec<f64>,
    /// Coordinates that are trained, as ranges.
    trained: Vec<Range<usize>>,
    /// L_b of the teacher's rows at the start.
    teachers: Vec<Mat>,
    lengths: Vec<f64>,
    barred: usize,
    clock: StepClock,
    address: ReplicaAddress,
    sound: bool,
    fault: Option<TrainingError>,
}

impl WaysDirectChain {
    pub(crate) fn new(
        problem: &Problem,
        start: &Overlaps,
        address: ReplicaAddress,
        begin: f64,
    ) -> Result<Self, EngineError> {
        problem.check_drift(start)?;
        let dimension = problem.finite_dimension("direct")?;
        let training = problem.training.simplified();
        let shape = start.shape();
        let Shape { trained: k, frozen: f, own_frozen, .. } = shape;
        let sizes = problem.spectrum.multiplicities(dimension).map_err(ProblemError::from)?;
        let moving = training.momentum.is_some();
        let rows = k + f + if moving { k } else { 0 };
        let d = dimension as usize;
        let mut all = Mat::zeros(rows, d);
        let (mut bounds, mut roots, mut teachers) = (vec![0], Vec::with_capacity(d), Vec::new());
        // Maps by coordinate, and inputs without the symmetry of Gaussian ones, need rows that are spread over all coordinates.
        let spread = training.gradient.acts_by_coordinate() || training.inputs != InputLaw::Gaussian;
        let mut stream = step_stream(address, 0, 1);
        for (block, (&size, lambda)) in sizes.iter().zip(problem.spectrum.eigenvalues()).enumerate() {
            let positive = |gram: &Mat| {
                cholesky_psd(gram).map_err(|_| EngineError::Overlaps(OverlapsError::NotPositive { block }))
            };
            let gram = start.with_moving_rows(block);
            let lower = positive(&gram.block(0..rows, 0..rows))?;
            let used: Vec<usize> = (0..rows).filter(|&j| lower[(j, j)] > 0.0).collect();
            if used.len() as u64 > size {
                return Err(EngineError::Overlaps(OverlapsError::Rank { block, rank: used.len(), size }));
            }
            let first = bounds[block];
            let frame = spread.then(|| orthonormal_rows(&mut stream, used.len(), size as usize));
            for i in 0..rows {
                for (at, &j) in used.iter().enumerate() {
                    match &frame {
                        None => all[(i, first + at)] = lower[(i, j)],
                        Some(frame) => {
                            let axis = &frame[at * size as usize..(at + 1) * size as usize];
                            add_scaled(
                                &mut all.row_mut(i)[first..first + size as usize],
                                lower[(i, j)],
                                axis,
                            );
                        }
                    }
                }
            }
            let teacher = k + own_frozen..k + f;
            teachers.push(positive(&start.blocks[block].block(teacher.clone(), teacher))?);
            bounds.push(first + size as usize);
            roots.resize(roots.len() + size as usize, lambda.sqrt());
        }
        if let InputLaw::Rows(table) = &training.inputs
            && table.cols() != d
        {
            return Err(EngineError::Unsupported {
                engine: "direct",
                reason: format!("the rows of the file have {} features, but d = {d}", table.cols()),
                hint: format!("set `dimension = {}` in [data]", table.cols()),
            });
        }
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for (space, trained) in bounds.windows(2).zip(training.trained_eigenspaces(&problem.spectrum)) {
            match ranges.last_mut() {
                _ if !trained => {}
                Some(last) if last.end == space[0] => last.end = space[1],
                _ => ranges.push(space[0]..space[1]),
            }
        }
        let state = start.velocities.clone().unwrap_or_default();
        let plain = start.moment(&problem.spectrum, 0);
        let adam = matches!(training.gradient, GradientMap::Adam(_));
        let continued = state.squares.len() == k && k > 0;
        let moments = adam.then(|| {
            let squares =
                Mat::from_fn(
                    k,
                    d,
                    |i, j| {
                        if continued { state.squares[i] * roots[j] * roots[j] } else { 0.0 }
                    },
                );
            (Mat::zeros(k, d), squares)
        });
        Ok(Self {
            shape,
            kick: TrainedKick::new(problem, &training),
            weights: all.block(0..k + f, 0..d),
            velocities: all.block(k + f..rows, 0..d),
            moments,
            seen: (!continued).then_some(0),
            scalars: MovingScalars::new(start.scalars.clone(), state.scalars),
            bounds,
            roots,
            trained: ranges,
            teachers,
            lengths: (0..k).map(|i| plain[(i, i)]).collect(),
            barred: training.constraint.barred(&*problem.rule),
            clock: StepClock::new(problem, dimension, begin),
            address,
            sound: true,
            fault: None,
            training,
        })
    }

    fn draw_inputs(&self, stream: &mut Stream) -> Vec<f64> {
        let (b, d) = (self.training.batch, self.roots.len());
        let mut x = vec![0.0; b * d];
        if let InputLaw::Rows(table) = &self.training.inputs {
            for x in x.chunks_exact_mut(d) {
                x.copy_from_slice(table.row(stream.below(table.rows() as u64) as usize));
            }
            return x;
        }
        fill_coordinates(&self.training.inputs, stream, &mut x);
        for x in x.chunks_exact_mut(d) {
            x.iter_mut().zip(&self.roots).for_each(|(x, r)| *x *= r);
        }
        x
    }

    fn make_step(&mut self) -> Result<(), TrainingError> {
        let rates = self.clock.rates()?;
        let Shape { trained: k, frozen: f, own_frozen, .. } = self.shape;
        let (b, d) = (self.training.batch, self.roots.len());
        let mut stream = step_stream(self.address, self.clock.step(), 0);
        let coefficients = Coefficients::new(&self.training, &rates, self.clock.step_per_rate(), d as f64);
        let per_velocity = 1.0 / d as f64;
        let beta = coefficients.beta.unwrap_or(0.0);
        let ahead = self.training.looks_ahead();
        let clean = self.draw_inputs(&mut stream);
        let mut noisy = clean.clone();
        if self.training.input_noise > 0.0 {
            let mut zeta = vec![0.0; noisy.len()];
            stream.fill_normal(&mut zeta);
            add_scaled(&mut noisy, self.training.input_noise, &zeta);
        }
        let mut fields = vec![0.0; (k + f) * b];
        kernels::project(&self.weights, &noisy, b, &mut fields);
        if ahead {
            let mut speeds = vec![0.0; k * b];
            kernels::project(&self.velocities, &noisy, b, &mut speeds);
            fields.iter_mut().zip(&speeds).for_each(|(h, speed)| *h += beta * per_velocity * speed);
        }
        let mut read = fields.clone();
        if self.training.input_noise > 0.0 {
            let mut seen = vec![0.0; (k + f) * b];
            kernels::project(&self.weights, &clean, b, &mut seen);
            let teachers = (k + own_frozen) * b..;
            read[teachers.clone()].copy_from_slice(&seen[teachers]);
        }
        if self.training.weight_noise > 0.0 {
            for j in 0..b {
                let x = &noisy[j * d..(j + 1) * d];
                let scale = self.training.weight_noise * (dot(x, x) / d as f64).sqrt();
                (0..k).for_each(|i| read[i * b + j] += scale * stream.normal());
            }
        }
        let mut labels = vec![0.0; b];
        if rates.label_noise > 0.0 {
            labels.iter_mut().for_each(|noise| *noise = rates.label_noise * stream.normal());
        }
        let (mut kicks, mut slopes) = (vec![0.0; k * b], vec![0.0; self.shape.scalars]);
        let scalars =
            if ahead { self.scalars.ahead(beta, per_velocity) } else { self.scalars.values.clone() };
        self.kick.fill(&Batch::new(&read, b, &scalars, &labels), &mut stream, &mut kicks, &mut slopes);
        self.sound &= kicks.iter().all(|c| c.abs() < HUGE);
        slopes.iter_mut().for_each(|slope| *slope /= b as f64);
        let ratio = self.training.scalar_ratio;
        self.scalars.step(&self.training.constraint, &coefficients, ratio, &slopes, per_velocity);

        // The gradient of the batch, trained x d.
        kicks.iter_mut().for_each(|c| *c /= b as f64);
        let mut gradient = Mat::zeros(k, d);
        kernels::add_samples(&mut gradient, k, &kicks, &noisy, b);
        self.project_gradient(&mut gradient);
        self.map_by_coordinate(&mut gradient);
        let Coefficients { gain, decay, .. } = coefficients;
        for i in 0..k {
            for range in &self.trained {
                let row = &mut self.weights.row_mut(i)[range.clone()];
                let gradient = &gradient.row(i)[range.clone()];
                if coefficients.beta.is_none() {
                    if decay != 0.0 {
                        row.iter_mut().for_each(|w| *w *= 1.0 - gain * decay);
                    }
                    add_scaled(row, -gain, gradient);
                } else {
                    let reach = if ahead { beta * per_velocity } else { 0.0 };
                    let velocity = &mut self.velocities.row_mut(i)[range.clone()];
                    for ((w, p), g) in row.iter_mut().zip(velocity).zip(gradient) {
                        *p = beta * *p - gain * (g + decay * (*w + reach * *p));
                        *w += *p * per_velocity;
                    }
                }
            }
            if self.training.constraint.sphere.is_some() {
                let row = self.weights.row_mut(i);
                let scale = (self.lengths[i] / dot(row, row)).sqrt();
                row.iter_mut().for_each(|w| *w *= scale);
            }
        }
        self.drift(rates.drift, &mut stream);
        self.clock.count(&rates);
        Ok(())
    }

    /// Takes out what a constraint forbids.
    fn project_gradient(&self, gradient: &mut Mat) {
        let k = self.shape.trained;
        if self.training.constraint.sphere == Some(Retraction::Tangent) {
            for i in 0..k {
                let along = dot(gradient.row(i), self.weights.row(i)) / self.lengths[i];
                add_scaled(gradient.row_mut(i), -along, self.weights.row(i));
            }
        }
        if self.barred > 0 {
            let d = self.weights.cols();
            let rows = self.weights.block(k..k + self.barred, 0..d);
            let mut products = Mat::zeros(k, self.barred);
            products.add_product_transposed(1.0, gradient, &rows);
            let share = products.times(&pseudo_inverse(&rows.gram()));
            gradient.add_product(-1.0, &share, &rows);
        }
    }

    /// Signs, or Adam's quotient of running means.
    fn map_by_coordinate(&mut self, gradient: &mut Mat) {
        match self.training.gradient {
            GradientMap::Sign => {
                let sign = |g: &mut f64| *g = if *g == 0.0 { 0.0 } else { g.signum() };
                gradient.as_mut_slice().iter_mut().for_each(sign);
            }
            GradientMap::Adam(adam) => {
                let (mean, square) = self.moments.as_mut().expect("Adam keeps moments");
                let forget = adam.rate / self.roots.len() as f64;
                let steps = self.clock.step() + 1;
                // Both means start at 0 and are divided by the weight that they have seen.
                let of_mean = 1.0 - adam.beta.powf(steps as f64);
                let of_square = match &mut self.seen {
                    Some(seen) => {
                        *seen += 1;
                        -(*seen as f64 * (-forget).ln_1p()).exp_m1()
                    }
                    None => 1.0,
                };
                let moments = mean.as_mut_slice().iter_mut().zip(square.as_mut_slice());
                for (g, (mean, square)) in gradient.as_mut_slice().iter_mut().zip(moments) {
                    *mean += (1.0 - adam.beta) * (*g - *mean);
                    *square += forget * (*g * *g - *square);
                    *g = (*mean / of_mean) / ((*square / of_square).sqrt() + Adam::EPSILON);
                }
            }
            _ => {}
        }
    }

    fn drift(&mut self, factor: f64, stream: &mut Stream) {
        let Some(drift) = &self.training.drift else { return };
        let Shape { trained: k, frozen: f, own_frozen, .. } = self.shape;
        let d = self.weights.cols();
        let stay = 1.0 - drift.rate * factor / d as f64;
        if drift.rate > 0.0 {
            for (b, teachers) in self.teachers.iter().enumerate() {
                let range = self.bounds[b]..self.bounds[b + 1];
                let scale = ((1.0 - stay * stay) / range.len() as f64).sqrt();
                let mut drawn = Mat::zeros(f - own_frozen, range.len());
                stream.fill_normal(drawn.as_mut_slice());
                let moves = teachers.times(&drawn);
                for n in own_frozen..f {
                    let row = &mut self.weights.row_mut(k + n)[range.clone()];
                    for (v, g) in row.iter_mut().zip(moves.row(n - own_frozen)) {
                        *v = stay * *v + scale * g;
                    }
                }
            }
        }
        if let Some(omega) = &drift.rotation {
            let turn = exponential(&omega.scaled(factor / d as f64));
            let turned = turn.times(&self.weights.block(k..k + f, 0..d));
            for n in 0..f {
                self.weights.row_mut(k + n).copy_from_slice(turned.row(n));
            }
        }
    }
}

impl Chain for WaysDirectChain {
    fn step(&mut self) {
        if let Err(fault) = self.make_step() {
            self.fault = Some(fault);
            self.sound = false;
        }
    }

    fn overlaps(&self) -> Overlaps {
        let (k, p) = (self.shape.trained, self.shape.rows());
        let moving = self.velocities.rows() > 0;
        let row = |i: usize| if i < p { self.weights.row(i) } else { self.velocities.row(i - p) };
        let (mut blocks, mut velocities) = (Vec::new(), Vec::new());
        for range in self.bounds.windows(2) {
            let product = |i: usize, j: usize| dot(&row(i)[range[0]..range[1]], &row(j)[range[0]..range[1]]);
            blocks.push(Mat::from_fn(p, p, product));
            if moving {
                velocities.push(Mat::from_fn(k, p + k, |i, j| product(p + i, j)));
            }
        }
        let overlaps = Overlaps::from_engine(self.shape, blocks, self.scalars.values.clone());
        if !moving && self.moments.is_none() {
            return overlaps;
        }
        let squares = match (&self.moments, self.training.gradient) {
            (Some((_, square)), GradientMap::Adam(adam)) => {
                let seen = self.seen.map_or(1.0, |seen| {
                    let forget = adam.rate / self.roots.len() as f64;
                    -(seen as f64 * (-forget).ln_1p()).exp_m1()
                });
                let mean = |i: usize| {
                    let scaled = square.row(i).iter().zip(&self.roots).map(|(v, r)| v / (r * r));
                    scaled.sum::<f64>() / (self.roots.len() as f64 * seen.max(f64::MIN_POSITIVE))
                };
                (0..k).map(mean).collect()
            }
            _ => Vec::new(),
        };
        let scalars = self.scalars.velocities.clone();
        overlaps.with_velocities(Velocities { blocks: velocities, scalars, squares })
    }

    fn is_sound(&self) -> bool {
        self.sound
    }

    fn fault(&self) -> Option<EngineError> {
        self.fault.clone().map(|fault| EngineError::Problem(fault.into()))
    }
}
