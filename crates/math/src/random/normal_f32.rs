//! Batched standard normal variables in single precision.
//!
//! The Box–Muller map as in `normal.rs`, with one 32-bit word for the radius and one for the angle: |z| ≤ √(66 ln 2) = 6.76 (exceeded
//! with probability 1.4e-11), 2³² radii and 2³² angles, four normals per Philox block. The relative
//! error of the map is about 1e-6. Groups of 32 and the order within them are those of the f64 normals.

use super::normal::{BLOCKS_PER_GROUP, NORMALS_PER_GROUP, NORMALS_PER_PASS};
use super::philox::Schedule;
use crate::dispatch;
#[cfg(test)]
use crate::simd::single::minus_ln_word;
use crate::simd::single::{minus_ln_reduced, reduce_word, sin_cos_word};

/// Returns the two pairs of a block, computed one at a time. This defines the normals; the batched code gives the same
/// bits, and a test compares them.
#[cfg(test)]
pub(super) fn pairs_of_block(words: [u32; 4]) -> [(f32, f32); 2] {
    [0, 2].map(|i| {
        let r = (2.0 * minus_ln_word(words[i])).sqrt();
        let (s, c) = sin_cos_word(words[i + 1]);
        (r * c, r * s)
    })
}

/// Buffers for the intermediate numbers of `PAIRS` pairs.
struct Pass<const PAIRS: usize> {
    bits: [u64; PAIRS],
    radius: [u32; PAIRS],
    angle: [u32; PAIRS],
    reduced: [[f32; PAIRS]; 3],
    x: [f32; PAIRS],
    y: [f32; PAIRS],
}

impl<const PAIRS: usize> Pass<PAIRS> {
    #[inline(always)]
    fn new() -> Self {
        let (words, zeros) = ([0; PAIRS], [0.0; PAIRS]);
        Self { bits: [0; PAIRS], radius: words, angle: words, reduced: [zeros; 3], x: zeros, y: zeros }
    }

    /// Fills 2·PAIRS normals, which are whole groups, in short loops of constant length, as for f64.
    #[inline(always)]
    fn run(&mut self, schedule: &Schedule, counter: [u64; 4], out: &mut [f32]) {
        let Self { bits, radius, angle, reduced: [k, f, s], x, y } = self;
        schedule.fill_blocks(counter, bits);
        for i in 0..PAIRS {
            radius[i] = bits[i] as u32;
            angle[i] = (bits[i] >> 32) as u32;
        }
        for i in 0..PAIRS {
            (k[i], f[i], s[i]) = reduce_word(radius[i]);
        }
        for i in 0..PAIRS {
            (y[i], x[i]) = sin_cos_word(angle[i]);
        }
        for i in 0..PAIRS {
            let r = (2.0 * minus_ln_reduced((k[i], f[i], s[i]))).sqrt();
            x[i] *= r;
            y[i] *= r;
        }
        let blocks = PAIRS / 2;
        let columns = [&x[..blocks], &y[..blocks], &x[blocks..], &y[blocks..]];
        for (g, group) in out.chunks_exact_mut(NORMALS_PER_GROUP).enumerate() {
            let from = g * BLOCKS_PER_GROUP;
            for (part, column) in group.chunks_exact_mut(BLOCKS_PER_GROUP).zip(columns) {
                part.copy_from_slice(&column[from..from + BLOCKS_PER_GROUP]);
            }
        }
    }
}

dispatch! {
    /// Fills `out`, which is made of whole groups, from consecutive blocks that begin at `counter`.
    pub(super) fn fill_groups(schedule: &Schedule, counter: [u64; 4], out: &mut [f32]) {
        debug_assert_eq!(out.len() % NORMALS_PER_GROUP, 0);
        let mut counter = counter;
        let (large, rest) = out.as_chunks_mut::<NORMALS_PER_PASS>();
        if !large.is_empty() {
            let mut pass = Pass::<{ NORMALS_PER_PASS / 2 }>::new();
            for chunk in large {
                pass.run(schedule, counter, chunk);
                counter[0] += (NORMALS_PER_PASS / NORMALS_PER_GROUP * BLOCKS_PER_GROUP) as u64;
            }
        }
        let mut pass = Pass::<{ NORMALS_PER_GROUP / 2 }>::new();
        for group in rest.as_chunks_mut::<NORMALS_PER_GROUP>().0 {
            pass.run(schedule, counter, group);
            counter[0] += BLOCKS_PER_GROUP as u64;
        }
    }
}
