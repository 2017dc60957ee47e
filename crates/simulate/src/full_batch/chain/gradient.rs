//! The gradient over the training set, in one pass over its inputs.

use super::ways::Pass;
use super::{FullBatchChain, round};
use crate::full_batch::data::Inputs;
use crate::full_batch::kernels::{Number, ROWS_PER_PASS};
use didact_math::linalg::Mat;
use didact_math::simd::prefetch;
use didact_model::rule::Batch;
use std::ops::Range;

/// Bytes of rows that are projected before they are added to the gradient: they must still be in the second-level cache.
const BLOCK_BYTES: usize = 1 << 17;
/// Rows of such a block, at most.
pub(super) const LARGEST_BLOCK: usize = 64;

/// What one piece of the training set adds up to.
struct Sums<T> {
    /// m x d.
    gradient: Vec<T>,
    scalars: Vec<f64>,
    sound: bool,
}

impl<T: Number> FullBatchChain<T> {
    fn block_rows(&self) -> usize {
        let rows = BLOCK_BYTES / (self.dimension() * size_of::<T>()).max(1);
        (rows / ROWS_PER_PASS * ROWS_PER_PASS).clamp(ROWS_PER_PASS, LARGEST_BLOCK)
    }

    /// Kicks (m x size) of a block of samples, whose trained fields are in place.
    fn kicks(
        &self,
        samples: Range<usize>,
        fields: &mut [f64],
        kicks: &mut [f64],
        sums: &mut Sums<T>,
        room: &mut [f64],
        pass: Option<(&Pass, &[T])>,
    ) {
        let (k, f) = (self.shape.trained, self.shape.frozen);
        let (at, size) = (samples.start, samples.len());
        for n in 0..f {
            fields[(k + n) * size..(k + n + 1) * size]
                .copy_from_slice(&self.frozen[n * self.samples + at..][..size]);
        }
        if let Some((pass, x)) = pass {
            pass.disturb(self, x, at, size, fields);
        }
        let noise = &self.noise[at..at + size];
        let batch = Batch::new(&fields[..(k + f) * size], size, &self.scalars, noise);
        let batch = Batch { labels: self.labels_of(at, size), ..batch };
        match pass {
            None => self.rule.kick_batch(&batch, &mut kicks[..k * size], room),
            Some((pass, _)) => pass.kicks(self, &batch, at, &mut kicks[..k * size], room),
        }
        sums.sound &= kicks[..k * size].iter().all(|c| c.abs() < 1e100);
        sums.scalars.iter_mut().zip(room).for_each(|(sum, g)| *sum += *g);
    }

    fn piece_sums(&self) -> Sums<T> {
        Sums {
            gradient: vec![T::default(); self.shape.trained * self.dimension()],
            scalars: vec![0.0; self.shape.scalars],
            sound: true,
        }
    }

    /// One row, inputs in memory: projections of a block run together with the additions of the block before it.
    fn piece_of_one_row(&self, x: &[T], weights: &[T], (first, last): (usize, usize)) -> Sums<T> {
        let (d, rows) = (self.dimension(), self.block_rows());
        let mut sums = self.piece_sums();
        let (mut fields, mut kicks) = (vec![0.0; self.shape.rows() * rows], vec![0.0; rows]);
        let mut scalars = vec![0.0; self.shape.scalars];
        let mut before: Vec<T> = vec![T::default(); rows];
        let whole = first + (last - first) / rows * rows;
        for at in (first..whole).step_by(rows) {
            for quad in (0..rows).step_by(ROWS_PER_PASS) {
                let now = &x[(at + quad) * d..(at + quad + ROWS_PER_PASS) * d];
                let mut out = [T::default(); ROWS_PER_PASS];
                if at == first {
                    T::project(now, weights, &mut out);
                } else {
                    let past = &x[(at - rows + quad) * d..(at - rows + quad + ROWS_PER_PASS) * d];
                    let kick = before[quad..quad + ROWS_PER_PASS].try_into().expect("four kicks");
                    T::sweep(now, weights, &mut out, past, kick, &mut sums.gradient);
                }
                for (h, z) in fields[quad..].iter_mut().zip(out) {
                    *h = z.to_double();
                }
            }
            ask_for(&x[((at + rows) * d).min(x.len())..], d);
            self.kicks(at..at + rows, &mut fields, &mut kicks, &mut sums, &mut scalars, None);
            before.iter_mut().zip(&kicks).for_each(|(b, c)| *b = T::from_double(*c));
        }
        if whole > first {
            for quad in (0..rows).step_by(ROWS_PER_PASS) {
                let at = whole - rows + quad;
                let kick = before[quad..quad + ROWS_PER_PASS].try_into().expect("four kicks");
                T::add(&x[at * d..(at + ROWS_PER_PASS) * d], kick, &mut sums.gradient);
            }
        }
        if whole < last {
            let rest = self.piece(&[weights.to_vec()], (whole, last), None);
            add_to(&mut sums.gradient, &rest.gradient);
            sums.scalars.iter_mut().zip(&rest.scalars).for_each(|(a, b)| *a += b);
            sums.sound &= rest.sound;
        }
        sums
    }

    /// Any rows, any inputs: a block is projected, kicked and added while it is in cache.
    fn piece(&self, weights: &[Vec<T>], (first, last): (usize, usize), pass: Option<&Pass>) -> Sums<T> {
        let (d, k) = (self.dimension(), self.shape.trained);
        let mut sums = self.piece_sums();
        let rows = self.block_rows();
        let (mut room, mut tail) = (Vec::new(), Vec::new());
        let mut fields = vec![0.0; self.shape.rows() * rows];
        let mut kicks = vec![0.0; k * rows];
        let mut scalars = vec![0.0; self.shape.scalars];
        for at in (first..last).step_by(rows) {
            let size = rows.min(last - at);
            let x = self.inputs.rows(at, size, d, &mut room);
            let noisy = pass.and_then(|pass| pass.noisy(x, at, d));
            let x = noisy.as_deref().unwrap_or(x);
            let padded;
            let x = if size.is_multiple_of(ROWS_PER_PASS) {
                x
            } else {
                tail.clear();
                tail.extend_from_slice(x);
                tail.resize(size.next_multiple_of(ROWS_PER_PASS) * d, T::default());
                padded = &tail;
                padded
            };
            for (quad, x) in x.chunks_exact(ROWS_PER_PASS * d).enumerate() {
                for (i, w) in weights.iter().enumerate() {
                    let mut out = [T::default(); ROWS_PER_PASS];
                    T::project(x, w, &mut out);
                    for (lane, h) in out.iter().enumerate().take(size - quad * ROWS_PER_PASS) {
                        fields[i * size + quad * ROWS_PER_PASS + lane] = h.to_double();
                    }
                }
            }
            let shown = pass.map(|pass| (pass, &x[..size * d]));
            self.kicks(at..at + size, &mut fields, &mut kicks, &mut sums, &mut scalars, shown);
            for (quad, x) in x.chunks_exact(ROWS_PER_PASS * d).enumerate() {
                for (i, gradient) in sums.gradient.chunks_exact_mut(d).enumerate() {
                    let mut four = [T::default(); ROWS_PER_PASS];
                    for (lane, c) in four.iter_mut().enumerate().take(size - quad * ROWS_PER_PASS) {
                        *c = T::from_double(kicks[i * size + quad * ROWS_PER_PASS + lane]);
                    }
                    T::add(x, &four, gradient);
                }
            }
        }
        sums
    }

    /// Σ_μ kick_i x_μ and Σ_μ ∂loss/∂a_j.
    pub(super) fn gradient(&self) -> (Mat, Vec<f64>, bool) {
        self.gradient_at(&self.weights, None)
    }

    /// The same at other trained rows, of the samples and with the noise of one step.
    pub(super) fn gradient_at(&self, rows: &Mat, pass: Option<&Pass>) -> (Mat, Vec<f64>, bool) {
        let (d, k) = (self.dimension(), self.shape.trained);
        let weights: Vec<Vec<T>> = (0..k).map(|i| round(rows.row(i))).collect();
        let pieces = self.over_pieces(|piece| match (&self.inputs, weights.as_slice()) {
            (Inputs::Kept(x), [only]) if pass.is_none() => self.piece_of_one_row(x, only, piece),
            _ => self.piece(&weights, piece, pass),
        });
        let mut gradient = Mat::zeros(k, d);
        let (mut scalars, mut sound) = (vec![0.0; self.shape.scalars], true);
        for piece in &pieces {
            for (g, part) in gradient.as_mut_slice().iter_mut().zip(&piece.gradient) {
                *g += part.to_double();
            }
            scalars.iter_mut().zip(&piece.scalars).for_each(|(a, b)| *a += b);
            sound &= piece.sound;
        }
        (gradient, scalars, sound)
    }
}

/// Asks for the beginnings of the next four rows, so that memory is not idle while kicks are computed.
fn ask_for<T: Number>(x: &[T], d: usize) {
    const LINE: usize = 64;
    /// Of each row: together what memory delivers in the time of the kicks of a block.
    const LINES: usize = 32;
    for row in x.chunks(d.max(1)).take(ROWS_PER_PASS) {
        for line in row.chunks(LINE / size_of::<T>()).take(LINES) {
            prefetch(line.as_ptr().cast());
        }
    }
}

fn add_to<T: Number>(sum: &mut [T], part: &[T]) {
    for (s, p) in sum.iter_mut().zip(part) {
        *s = T::from_double(s.to_double() + p.to_double());
    }
}
