//! Any way of training on overlaps alone, exact in law at a cost free of d.
//!
//! In every eigenspace the rows X = (v, w, p) are kept as a factor Y of their Gram, lower triangular with the frozen rows first. A sample
//! has normal coordinates z along its columns and, beyond them, a length: χ² with the remaining degrees of freedom. The step
//! X ← M X − c xᵀ adds c zᵀ to Y and one more column c √χ² (a batch: the Bartlett factor of a Wishart matrix), and a rotation
//! from the right makes Y lower triangular again (docs/derivations/training-rules.md#s2).

use super::{Coefficients, HUGE, MovingScalars, TrainedKick, exponential, step_stream};
use crate::chain::{Chain, ReplicaAddress};
use crate::step_clock::StepClock;
use didact_math::linalg::{Mat, cholesky_psd, dot};
use didact_math::random::{BartlettFactor, Stream};
use didact_model::constraint::{Retraction, pseudo_inverse};
use didact_model::overlaps::OverlapsError;
use didact_model::problem::ProblemError;
use didact_model::rule::Batch;
use didact_model::training::{Training, TrainingError};
use didact_model::{EngineError, Overlaps, Problem, Shape, Velocities};

/// The rows in one eigenspace.
#[derive(Debug)]
struct Space {
    lambda: f64,
    /// d_b.
    size: u64,
    /// Y: (v, w, p) x columns.
    rows: Mat,
    /// Whether its directions are trained.
    trained: bool,
    /// Dimensions beyond the columns; `None` when the columns are the coordinates themselves.
    rest: Option<u64>,
    /// L_b with L_b L_bᵀ = T_b of the teacher's rows at the start, where they diffuse.
    teachers: Mat,
}

/// What a step draws in one eigenspace.
struct Draw {
    /// x along the columns, columns x B: √λ z.
    inputs: Mat,
    /// What the student reads, x + ς ζ.
    noisy: Mat,
    /// The part of what the student reads beyond the columns: B x 1 for one sample, B x min(B, rest) for samples whose lengths
    /// are needed before their kicks. `None`: drawn after the kicks.
    beyond: Option<Mat>,
}

/// The chain of one replica.
pub(crate) struct WaysReducedChain {
    training: Training,
    shape: Shape,
    dimension: f64,
    kick: TrainedKick,
    spaces: Vec<Space>,
    scalars: MovingScalars,
    /// |w_i|² to be kept.
    lengths: Vec<f64>,
    barred: usize,
    clock: StepClock,
    address: ReplicaAddress,
    sound: bool,
    fault: Option<TrainingError>,
}

impl WaysReducedChain {
    pub(crate) fn new(
        problem: &Problem,
        start: &Overlaps,
        address: ReplicaAddress,
        begin: f64,
    ) -> Result<Self, EngineError> {
        problem.check_drift(start)?;
        let dimension = problem.finite_dimension("reduced")?;
        let training = problem.training.simplified();
        let shape = start.shape();
        let sizes = problem.spectrum.multiplicities(dimension).map_err(ProblemError::from)?;
        let moving = training.momentum.is_some();
        let trained = training.trained_eigenspaces(&problem.spectrum);
        let spaces = problem.spectrum.eigenvalues().iter().zip(&sizes).enumerate();
        let spaces = spaces
            .map(|(b, (&lambda, &size))| {
                Ok(Space { trained: trained[b], ..Space::new(start, b, lambda, size, moving)? })
            })
            .collect::<Result<_, EngineError>>()?;
        let plain = start.moment(&problem.spectrum, 0);
        let velocities = start.velocities.clone().unwrap_or_default();
        Ok(Self {
            shape,
            dimension: dimension as f64,
            kick: TrainedKick::new(problem, &training),
            spaces,
            scalars: MovingScalars::new(start.scalars.clone(), velocities.scalars),
            lengths: (0..shape.trained).map(|i| plain[(i, i)]).collect(),
            barred: training.constraint.barred(&*problem.rule),
            clock: StepClock::new(problem, dimension, begin),
            address,
            sound: true,
            fault: None,
            training,
        })
    }

    /// First row of w, and of p where there is one.
    fn places(&self) -> (usize, Option<usize>) {
        let Shape { trained: k, frozen: f, .. } = self.shape;
        (f, self.training.momentum.is_some().then_some(f + k))
    }

    fn draw(&self, stream: &mut Stream) -> Vec<Draw> {
        let (b, noise) = (self.training.batch, self.training.input_noise);
        let ahead = b == 1 || self.training.weight_noise > 0.0;
        let normals = |stream: &mut Stream, rows: usize, columns: usize, scale: f64| {
            let mut drawn = Mat::zeros(rows, columns);
            stream.fill_normal(drawn.as_mut_slice());
            drawn.scaled(scale)
        };
        let one = |space: &Space| {
            let columns = space.rows.cols();
            let inputs = normals(stream, columns, b, space.lambda.sqrt());
            let mut noisy = inputs.clone();
            if noise > 0.0 {
                noisy.add_scaled(1.0, &normals(stream, columns, b, noise));
            }
            let variance = space.lambda + noise * noise;
            let beyond = space.rest.filter(|_| ahead).map(|rest| {
                let factor = BartlettFactor::draw(stream, b, rest);
                Mat::from_fn(b, factor.columns(), |i, j| factor.row(i)[j]).scaled(variance.sqrt())
            });
            Draw { inputs, noisy, beyond }
        };
        self.spaces.iter().map(one).collect()
    }

    /// |x̃|²/d of sample j.
    fn squared_input(&self, draws: &[Draw], j: usize) -> f64 {
        let one = |draw: &Draw| {
            let inside: f64 = (0..draw.noisy.rows()).map(|c| draw.noisy[(c, j)].powi(2)).sum();
            inside + draw.beyond.as_ref().map_or(0.0, |beyond| dot(beyond.row(j), beyond.row(j)))
        };
        draws.iter().map(one).sum::<f64>() / self.dimension
    }

    /// Fields of all rows (v, w, p) x B, of clean and of noisy inputs.
    fn project(&self, draws: &[Draw]) -> (Mat, Mat) {
        let rows = self.spaces[0].rows.rows();
        let mut clean = Mat::zeros(rows, self.training.batch);
        let mut noisy = clean.clone();
        for (space, draw) in self.spaces.iter().zip(draws) {
            clean.add_product(1.0, &space.rows, &draw.inputs);
            noisy.add_product(1.0, &space.rows, &draw.noisy);
        }
        (clean, noisy)
    }

    fn make_step(&mut self) -> Result<(), TrainingError> {
        let rates = self.clock.rates()?;
        let Shape { trained: k, frozen: f, own_frozen, .. } = self.shape;
        let (b, d) = (self.training.batch, self.dimension);
        let mut stream = step_stream(self.address, self.clock.step(), 0);
        let coefficients = Coefficients::new(&self.training, &rates, self.clock.step_per_rate(), d);
        let (w, p) = self.places();
        let draws = self.draw(&mut stream);
        let (clean, noisy) = self.project(&draws);
        let beta = coefficients.beta.unwrap_or(0.0);
        let ahead = self.training.looks_ahead();

        // What the rule reads: trained fields, then frozen ones; teachers see clean inputs.
        let mut fields = vec![0.0; (k + f) * b];
        for j in 0..b {
            for i in 0..k {
                let mut h = noisy[(w + i, j)];
                if let (true, Some(p)) = (ahead, p) {
                    h += beta / d * noisy[(p + i, j)];
                }
                fields[i * b + j] = h;
            }
            for n in 0..f {
                fields[(k + n) * b + j] = if n < own_frozen { noisy[(n, j)] } else { clean[(n, j)] };
            }
            if self.training.weight_noise > 0.0 {
                let scale = self.training.weight_noise * self.squared_input(&draws, j).sqrt();
                (0..k).for_each(|i| fields[i * b + j] += scale * stream.normal());
            }
        }
        let mut labels = vec![0.0; b];
        if rates.label_noise > 0.0 {
            labels.iter_mut().for_each(|noise| *noise = rates.label_noise * stream.normal());
        }
        let (mut kicks, mut slopes) = (vec![0.0; k * b], vec![0.0; self.shape.scalars]);
        let scalars = if ahead { self.scalars.ahead(beta, 1.0 / d) } else { self.scalars.values.clone() };
        self.kick.fill(&Batch::new(&fields, b, &scalars, &labels), &mut stream, &mut kicks, &mut slopes);
        self.sound &= kicks.iter().all(|c| c.abs() < HUGE);
        slopes.iter_mut().for_each(|slope| *slope /= b as f64);
        let ratio = self.training.scalar_ratio;
        self.scalars.step(&self.training.constraint, &coefficients, ratio, &slopes, 1.0 / d);

        // c: what a sample adds to every row, and M.
        let rows = clean.rows();
        let mut c = Mat::zeros(rows, b);
        let mut m = Mat::identity(rows);
        let Coefficients { gain, decay, .. } = coefficients;
        for i in 0..k {
            for j in 0..b {
                let kick = -gain / b as f64 * kicks[i * b + j];
                match p {
                    None => c[(w + i, j)] = kick,
                    Some(p) => {
                        c[(p + i, j)] = kick;
                        c[(w + i, j)] = kick / d;
                    }
                }
            }
            match p {
                None => m[(w + i, w + i)] -= gain * decay,
                Some(p) => {
                    let reach = if ahead { beta / d } else { 0.0 };
                    m[(p + i, w + i)] = -gain * decay;
                    m[(p + i, p + i)] = beta - gain * decay * reach;
                    m[(w + i, w + i)] += m[(p + i, w + i)] / d;
                    m[(w + i, p + i)] = m[(p + i, p + i)] / d;
                }
            }
            if self.training.constraint.sphere == Some(Retraction::Tangent) {
                let along: f64 = (0..b).map(|j| c[(w + i, j)] * noisy[(w + i, j)]).sum();
                m[(w + i, w + i)] -= along / self.lengths[i];
            }
        }
        if self.barred > 0 {
            let mut gram = Mat::zeros(self.barred, self.barred);
            for space in &self.spaces {
                let rows = space.rows.block(0..self.barred, 0..space.rows.cols());
                gram.add_scaled(1.0, &rows.gram());
            }
            let share = pseudo_inverse(&gram).times(&noisy.block(0..self.barred, 0..b));
            for row in f..rows {
                for n in 0..self.barred {
                    m[(row, n)] -= (0..b).map(|j| c[(row, j)] * share[(n, j)]).sum::<f64>();
                }
            }
        }
        let noise = self.training.input_noise;
        for (space, draw) in self.spaces.iter_mut().zip(&draws).filter(|(space, _)| space.trained) {
            space.step(&m, &c, draw, noise, &mut stream);
        }
        if self.training.constraint.sphere.is_some() {
            for i in 0..k {
                let length: f64 = self.spaces.iter().map(|s| dot(s.rows.row(w + i), s.rows.row(w + i))).sum();
                let scale = (self.lengths[i] / length).sqrt();
                for space in &mut self.spaces {
                    space.rows.row_mut(w + i).iter_mut().for_each(|x| *x *= scale);
                }
            }
        }
        if let Some(drift) = &self.training.drift {
            let stay = 1.0 - drift.rate * rates.drift / d;
            if drift.rate > 0.0 {
                for space in &mut self.spaces {
                    space.diffuse(own_frozen..f, stay, &mut stream);
                }
            }
            if let Some(omega) = &drift.rotation {
                let turn = exponential(&omega.scaled(rates.drift / d));
                let whole = Mat::from_fn(rows, rows, |i, j| match (i < f, j < f) {
                    (true, true) => turn[(i, j)],
                    _ => f64::from(u8::from(i == j)),
                });
                for space in &mut self.spaces {
                    let turned = whole.times(&space.rows);
                    space.set(turned);
                }
            }
        }
        self.clock.count(&rates);
        Ok(())
    }
}

impl Space {
    fn new(
        start: &Overlaps,
        block: usize,
        lambda: f64,
        size: u64,
        moving: bool,
    ) -> Result<Self, EngineError> {
        let Shape { trained: k, frozen: f, own_frozen, .. } = start.shape();
        let rows = k + f + if moving { k } else { 0 };
        let gram = start.with_moving_rows(block);
        // (w, v, p) becomes (v, w, p).
        let order = |r: usize| match r {
            r if r < f => k + r,
            r if r < f + k => r - f,
            r => r,
        };
        let sorted = Mat::from_fn(rows, rows, |i, j| gram[(order(i), order(j))]);
        let lower =
            cholesky_psd(&sorted).map_err(|_| EngineError::Overlaps(OverlapsError::NotPositive { block }))?;
        let (columns, rest): (Vec<usize>, _) = if size > rows as u64 {
            ((0..rows).collect(), Some(size - rows as u64))
        } else {
            let mut used: Vec<usize> = (0..rows).filter(|&j| lower[(j, j)] > 0.0).collect();
            if used.len() as u64 > size {
                return Err(EngineError::Overlaps(OverlapsError::Rank { block, rank: used.len(), size }));
            }
            // Columns without a pivot are free coordinates, in which rows will move.
            used.extend((0..rows).filter(|&j| lower[(j, j)] == 0.0).take(size as usize - used.len()));
            (used, None)
        };
        let teachers = start.blocks[block].block(k + own_frozen..k + f, k + own_frozen..k + f);
        let teachers = cholesky_psd(&teachers)
            .map_err(|_| EngineError::Overlaps(OverlapsError::NotPositive { block }))?;
        let rows = Mat::from_fn(rows, columns.len(), |i, j| lower[(i, columns[j])]);
        Ok(Self { lambda, size, rows, trained: true, rest, teachers })
    }

    /// Y ← M Y + c xᵀ.
    fn step(&mut self, m: &Mat, c: &Mat, draw: &Draw, noise: f64, stream: &mut Stream) {
        let mut moved = m.times(&self.rows);
        moved.add_product_transposed(1.0, c, &draw.noisy);
        let Some(rest) = self.rest else {
            self.rows = moved;
            return;
        };
        let beyond = if let Some(beyond) = &draw.beyond {
            c.times(beyond)
        } else {
            // The Gram of c X beyond the columns is Wishart with the shape c cᵀ.
            let gram = c.gram();
            let factor = cholesky_psd(&gram).unwrap_or_else(|_| Mat::zeros(gram.rows(), gram.rows()));
            let bartlett = BartlettFactor::draw(stream, factor.rows(), rest);
            let drawn = Mat::from_fn(factor.rows(), bartlett.columns(), |i, j| bartlett.row(i)[j]);
            factor.times(&drawn).scaled((self.lambda + noise * noise).sqrt())
        };
        self.set(side_by_side(&moved, &beyond));
    }

    /// v ← c v + √(1 − c²) L g for some of the frozen rows.
    fn diffuse(&mut self, frozen: std::ops::Range<usize>, stay: f64, stream: &mut Stream) {
        let (count, columns) = (frozen.len(), self.rows.cols());
        let scale = ((1.0 - stay * stay) / self.size as f64).sqrt();
        let mut inside = Mat::zeros(count, columns);
        stream.fill_normal(inside.as_mut_slice());
        let inside = self.teachers.times(&inside);
        let beyond = self.rest.map(|rest| {
            let bartlett = BartlettFactor::draw(stream, count, rest);
            self.teachers.times(&Mat::from_fn(count, bartlett.columns(), |i, j| bartlett.row(i)[j]))
        });
        let mut wide = Mat::zeros(self.rows.rows(), beyond.as_ref().map_or(0, Mat::cols));
        for (at, n) in frozen.enumerate() {
            for (x, g) in self.rows.row_mut(n).iter_mut().zip(inside.row(at)) {
                *x = stay * *x + scale * g;
            }
            if let Some(beyond) = &beyond {
                for (x, g) in wide.row_mut(n).iter_mut().zip(beyond.row(at)) {
                    *x = scale * g;
                }
            }
        }
        let whole = if beyond.is_some() { side_by_side(&self.rows, &wide) } else { self.rows.clone() };
        self.set(whole);
    }

    /// Takes a factor with more columns, or one that is not triangular.
    fn set(&mut self, factor: Mat) {
        self.rows = if self.rest.is_some() { lower_triangular(factor) } else { factor };
    }
}

fn side_by_side(a: &Mat, b: &Mat) -> Mat {
    let columns = a.cols();
    Mat::from_fn(
        a.rows(),
        columns + b.cols(),
        |i, j| if j < columns { a[(i, j)] } else { b[(i, j - columns)] },
    )
}

/// The square lower triangular L with L Lᵀ = Y Yᵀ: reflections from the right (Householder). Rows that are triangular already stay
/// as they are, bit for bit.
fn lower_triangular(mut y: Mat) -> Mat {
    let (rows, columns) = (y.rows(), y.cols());
    let mut axis = vec![0.0; columns];
    for i in 0..rows.min(columns) {
        let tail = y.row(i)[i + 1..].iter().map(|x| x * x).sum::<f64>();
        if tail == 0.0 {
            continue;
        }
        let head = y[(i, i)];
        let norm = (head * head + tail).sqrt();
        // The reflection that keeps the sign of the pivot positive where it was.
        axis[i..].copy_from_slice(&y.row(i)[i..]);
        let target = if head > 0.0 { -norm } else { norm };
        axis[i] = head - target;
        let square = axis[i] * axis[i] + tail;
        for r in i..rows {
            let along = 2.0 * dot(&y.row(r)[i..], &axis[i..]) / square;
            y.row_mut(r)[i..].iter_mut().zip(&axis[i..]).for_each(|(x, a)| *x -= along * a);
        }
        y.row_mut(i)[i + 1..].fill(0.0);
    }
    y.block(0..rows, 0..rows.min(columns))
}

impl Chain for WaysReducedChain {
    fn step(&mut self) {
        if let Err(fault) = self.make_step() {
            self.fault = Some(fault);
            self.sound = false;
        }
    }

    fn overlaps(&self) -> Overlaps {
        let Shape { trained: k, frozen: f, .. } = self.shape;
        let moving = self.training.momentum.is_some();
        // (w, v, p) of (v, w, p).
        let order = |r: usize| match r {
            r if r < k => f + r,
            r if r < k + f => r - k,
            r => r,
        };
        let mut velocities = Vec::new();
        let mut blocks = Vec::new();
        for space in &self.spaces {
            let gram = space.rows.gram();
            blocks.push(Mat::from_fn(k + f, k + f, |i, j| gram[(order(i), order(j))]));
            if moving {
                velocities.push(Mat::from_fn(k, k + f + k, |i, j| gram[(f + k + i, order(j))]));
            }
        }
        let overlaps = Overlaps::from_engine(self.shape, blocks, self.scalars.values.clone());
        if !moving {
            return overlaps;
        }
        let scalars = self.scalars.velocities.clone();
        overlaps.with_velocities(Velocities { blocks: velocities, scalars, squares: Vec::new() })
    }

    fn is_sound(&self) -> bool {
        self.sound
    }

    fn fault(&self) -> Option<EngineError> {
        self.fault.clone().map(|fault| EngineError::Problem(fault.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G from rows equals G from the update M G Mᵀ − …, at any size.
    #[test]
    fn reflections_keep_the_gram_and_leave_triangular_rows_alone() {
        let y = Mat::from_fn(
            4,
            6,
            |i, j| {
                if i == 0 && j > 0 { 0.0 } else { ((i * 7 + j * 3) as f64 * 0.7).sin() }
            },
        );
        let lower = lower_triangular(y.clone());
        let (mut off, gram) = (lower.gram(), y.gram());
        off.add_scaled(-1.0, &gram);
        assert!(off.max_abs() < 1e-14);
        assert!((0..4).all(|i| (i + 1..4).all(|j| lower[(i, j)] == 0.0)));
        assert_eq!(lower[(0, 0)], y[(0, 0)]);
    }
}
