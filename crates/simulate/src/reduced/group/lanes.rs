//! The arithmetic of a step, lane by lane: the operations of a single chain, in their order.

use super::{LANES, PerLane, Space, Work};
use crate::reduced::HUGE;
use didact_math::dispatch;

/// a ← a + b.
#[inline(always)]
pub(super) fn add(a: &mut PerLane, b: &PerLane) {
    for l in 0..LANES {
        a[l] += b[l];
    }
}

/// a ← a + x y.
#[inline(always)]
fn add_product(a: &mut PerLane, x: &PerLane, y: &PerLane) {
    for l in 0..LANES {
        a[l] += x[l] * y[l];
    }
}

/// The scalar products, terms in their order, from the −0 that the sum of an iterator starts at.
#[inline(always)]
pub(super) fn dot(a: &[PerLane], b: &[PerLane]) -> PerLane {
    let mut sum = [-0.0; LANES];
    for (x, y) in a.iter().zip(b) {
        add_product(&mut sum, x, y);
    }
    sum
}

/// The scalar products in four sums, as those of frozen rows are taken in `frozen_factor.rs`.
#[inline(always)]
fn dot_in_four(a: &[PerLane], b: &[PerLane]) -> PerLane {
    let (a, a_rest) = a.as_chunks::<4>();
    let (b, b_rest) = b.as_chunks::<4>();
    let mut sums = [[0.0; LANES]; 4];
    for (x, y) in a.iter().zip(b) {
        for i in 0..4 {
            add_product(&mut sums[i], &x[i], &y[i]);
        }
    }
    let tail = dot(a_rest, b_rest);
    let mut total = [0.0; LANES];
    for l in 0..LANES {
        total[l] = (sums[0][l] + sums[1][l]) + (sums[2][l] + sums[3][l]) + tail[l];
    }
    total
}

dispatch! {
    /// Adds √λ (rows · z) to the fields, rows x LANES.
    pub(super) fn project(space: &Space, k: usize, z: &[PerLane], fields: &mut [f64]) {
        let (fields, _) = fields.as_chunks_mut::<LANES>();
        let (shared, own) = z.split_at(space.shared);
        let (trained, frozen) = fields.split_at_mut(k);
        let root = space.root;
        for (i, h) in trained.iter_mut().enumerate() {
            let mut sum = dot(&space.along[i * space.shared..(i + 1) * space.shared], shared);
            add(&mut sum, &dot(&space.own[i * k..=i * k + i], &own[..=i]));
            for l in 0..LANES {
                h[l] += root * sum[l];
            }
        }
        for (n, h) in frozen.iter_mut().enumerate() {
            let row = &space.frozen[n * space.shared..(n + 1) * space.shared];
            if space.diagonal {
                for l in 0..LANES {
                    h[l] += root * row[n][l] * shared[n][l];
                }
            } else {
                let sum = dot_in_four(&row[..space.reach[n]], &shared[..space.reach[n]]);
                for l in 0..LANES {
                    h[l] += root * sum[l];
                }
            }
        }
    }
}

dispatch! {
    /// −s kick, and whether all of them are below [`HUGE`].
    pub(super) fn coefficients(s: f64, kicks: &[f64], out: &mut [PerLane]) -> bool {
        let (kicks, _) = kicks.as_chunks::<LANES>();
        let mut sound = [true; LANES];
        for (c, kick) in out.iter_mut().zip(kicks) {
            for l in 0..LANES {
                c[l] = -s * kick[l];
                sound[l] &= c[l].abs() < HUGE;
            }
        }
        sound == [true; LANES]
    }
}

dispatch! {
    /// Adds c x to the rows in one eigenspace: along the shared coordinates as it is, beyond them up to a rotation,
    /// as the factor of the new Gram.
    pub(super) fn advance(space: &mut Space, k: usize, z: &[PerLane], norm: &PerLane, work: &mut Work) {
        let (shared, own) = z.split_at(space.shared);
        let root = space.root;
        for (i, c) in work.coefficients.iter().enumerate() {
            let mut factor = [0.0; LANES];
            for l in 0..LANES {
                factor[l] = root * c[l];
            }
            let along = &mut space.along[i * space.shared..(i + 1) * space.shared];
            if space.moves.is_empty() {
                for (a, z) in along.iter_mut().zip(shared) {
                    add_product(a, &factor, z);
                }
            } else {
                for ((a, z), moves) in along.iter_mut().zip(shared).zip(&space.moves) {
                    if *moves {
                        add_product(a, &factor, z);
                    }
                }
            }
            for (j, z) in own.iter().enumerate() {
                let moved = &mut work.moved[i * k + j];
                *moved = space.own[i * k + j];
                add_product(moved, &factor, z);
            }
        }
        for i in 0..k {
            for j in 0..=i {
                let mut gram = dot(&work.moved[i * k..(i + 1) * k], &work.moved[j * k..(j + 1) * k]);
                let (ci, cj) = (&work.coefficients[i], &work.coefficients[j]);
                for l in 0..LANES {
                    gram[l] += ci[l] * cj[l] * (root * root * norm[l]);
                }
                work.gram[i * k + j] = gram;
            }
        }
        cholesky(k, &work.gram, &mut space.own);
    }
}

/// Lower Cholesky factors, zero pivots to zero columns: `cholesky_into` of a single chain.
#[inline(always)]
fn cholesky(n: usize, a: &[PerLane], out: &mut [PerLane]) {
    for i in 0..n {
        let (above, rows) = out.split_at_mut(i * n);
        let row = &mut rows[..n];
        for j in 0..i {
            let other = &above[j * n..(j + 1) * n];
            let product = dot(&row[..j], &other[..j]);
            for l in 0..LANES {
                let rest = a[i * n + j][l] - product[l];
                row[j][l] = if other[j][l] > 0.0 { rest / other[j][l] } else { 0.0 };
            }
        }
        let product = dot(&row[..i], &row[..i]);
        let whole = &a[i * n + i];
        for l in 0..LANES {
            let pivot = whole[l] - product[l];
            row[i][l] = if pivot > 1e-15 * whole[l] { pivot.sqrt() } else { 0.0 };
        }
        row[i + 1..].fill([0.0; LANES]);
    }
}
