//! Products of matrices on the processor: packed panels and a small block that stays in registers.

use super::{Operand, Product};
use rayon::prelude::*;

/// Rows of the block that stays in registers.
const ROWS: usize = 4;
/// Columns of it.
const COLUMNS: usize = 16;
/// Length of the sums that are done before the next panel is packed, so that panels stay in the caches.
const DEPTH: usize = 256;

/// The numbers of a processor.
pub trait Float: Copy + Send + Sync + Default + 'static {
    /// From a number of the host.
    fn of(value: f64) -> Self;
    /// To a number of the host.
    fn wide(self) -> f64;
    /// Adds a packed block of rows times packed panels to `c`.
    fn block(shape: [usize; 3], a: &[Self], b: &[Self], c: &mut [Self], row_stride: usize, scale: Self);
    /// Multiplication.
    fn times(self, other: Self) -> Self;
    /// Addition.
    fn plus(self, other: Self) -> Self;
}

macro_rules! scalar {
    ($type:ty, $block:ident) => {
        didact_math::dispatch! {
            fn $block(shape: [usize; 3], a: &[$type], b: &[$type], c: &mut [$type], row_stride: usize, scale: $type) {
                let [m, n, k] = shape;
                for (j0, panel) in (0..n).step_by(COLUMNS).zip(b.chunks_exact(COLUMNS * k)) {
                    for (i0, strip) in (0..m).step_by(ROWS).zip(a.chunks_exact(ROWS * k)) {
                        let mut sums = [[0.0; COLUMNS]; ROWS];
                        for (x, y) in strip.as_chunks::<ROWS>().0.iter().zip(panel.as_chunks::<COLUMNS>().0) {
                            for (sum, x) in sums.iter_mut().zip(x) {
                                for (sum, y) in sum.iter_mut().zip(y) {
                                    *sum += x * y;
                                }
                            }
                        }
                        let width = COLUMNS.min(n - j0);
                        for (i, sums) in sums.iter().enumerate().take(ROWS.min(m - i0)) {
                            let place = (i0 + i) * row_stride + j0;
                            for (c, sum) in c[place..place + width].iter_mut().zip(sums) {
                                *c += scale * sum;
                            }
                        }
                    }
                }
            }
        }

        impl Float for $type {
            fn of(value: f64) -> Self {
                value as $type
            }
            fn wide(self) -> f64 {
                f64::from(self)
            }
            fn block(shape: [usize; 3], a: &[Self], b: &[Self], c: &mut [Self], row_stride: usize, scale: Self) {
                $block(shape, a, b, c, row_stride, scale);
            }
            fn times(self, other: Self) -> Self {
                self * other
            }
            fn plus(self, other: Self) -> Self {
                self + other
            }
        }
    };
}

scalar!(f32, block_f32);
scalar!(f64, block_f64);

/// C ← scale A B (+ C) for every matrix of the batch. Every number of C is summed by one thread in one order.
pub(super) fn product<T: Float>(p: &Product, a: &[T], b: &[T], c: &mut [T]) {
    if p.m * p.n * p.batches == 0 {
        return;
    }
    let c = &mut c[p.c.offset..];
    // Many small matrices are shared out whole, few large ones by their rows.
    let strips = if p.batches >= 8 { 1 } else { p.m.div_ceil(64).min(64) };
    let rows = p.m.div_ceil(strips).next_multiple_of(ROWS);
    let count = p.batches;
    c.par_chunks_mut(p.c.batch_stride.max(1)).take(count).enumerate().for_each(|(batch, c)| {
        c.par_chunks_mut(rows * p.c.row_stride).take(p.m.div_ceil(rows)).enumerate().for_each(
            |(strip, c)| {
                let first = strip * rows;
                one(
                    p,
                    &a[p.a.offset + batch * p.a.batch_stride..],
                    &b[p.b.offset + batch * p.b.batch_stride..],
                    c,
                    first..p.m.min(first + rows),
                );
            },
        );
    });
}

/// Some rows of one product; `c` begins with the first of them.
fn one<T: Float>(p: &Product, a: &[T], b: &[T], c: &mut [T], rows: std::ops::Range<usize>) {
    let m = rows.len();
    if !p.accumulate {
        for i in 0..m {
            c[i * p.c.row_stride..i * p.c.row_stride + p.n].fill(T::default());
        }
    }
    let depth = DEPTH.min(p.k);
    let mut left = vec![T::default(); m.next_multiple_of(ROWS) * depth];
    let mut right = vec![T::default(); p.n.next_multiple_of(COLUMNS) * depth];
    for k0 in (0..p.k).step_by(DEPTH) {
        let k = DEPTH.min(p.k - k0);
        pack::<T, ROWS>(a, p.a, (rows.start, m), (k0, k), &mut left);
        // Panels of B run along its columns: those of its transpose along rows.
        pack::<T, COLUMNS>(b, p.b.transposed(), (0, p.n), (k0, k), &mut right);
        let (left, right) =
            (&left[..m.next_multiple_of(ROWS) * k], &right[..p.n.next_multiple_of(COLUMNS) * k]);
        T::block([m, p.n, k], left, right, c, p.c.row_stride, T::of(p.scale));
    }
}

/// Strips of `LANES` rows, stored by columns; rows that are not there are zeros.
fn pack<T: Float, const LANES: usize>(
    from: &[T],
    operand: Operand,
    (first, rows): (usize, usize),
    (k0, k): (usize, usize),
    to: &mut [T],
) {
    for (strip, to) in (0..rows).step_by(LANES).zip(to.chunks_exact_mut(LANES * k)) {
        let lanes = LANES.min(rows - strip);
        if operand.transposed {
            for (j, to) in to.chunks_exact_mut(LANES).enumerate() {
                let place = (k0 + j) * operand.row_stride + first + strip;
                to[..lanes].copy_from_slice(&from[place..place + lanes]);
                to[lanes..].fill(T::default());
            }
        } else {
            for lane in 0..LANES {
                let place = (first + strip + lane) * operand.row_stride + k0;
                for j in 0..k {
                    to[j * LANES + lane] = if lane < lanes { from[place + j] } else { T::default() };
                }
            }
        }
    }
}
