//! Batched standard normals in single precision.
//!
//! Box–Muller as for f64, with one 32-bit word for the radius and one for the angle: |z| ≤ √(66 ln 2) = 6.76 (exceeded
//! with probability 1.4e-11), 2³² radii and 2³² angles, four normals per Philox block. The map is accurate to about
//! 1e-6, relative. Groups of 32 and their order are those of the f64 normals.

use super::normal::{GROUP, GROUP_BLOCKS, LARGE};
use super::philox::Schedule;
use crate::dispatch;
use crate::simd::single::{minus_ln_word, sin_cos_word};

/// √(−2 ln u) of the word u·2³².
#[inline(always)]
fn radius_of(word: u32) -> f32 {
    (2.0 * minus_ln_word(word)).sqrt()
}

/// The two pairs of a block, one at a time: the definition that the batched path reproduces bit by bit.
#[cfg(test)]
pub(super) fn pairs_of_block(words: [u32; 4]) -> [(f32, f32); 2] {
    [0, 2].map(|i| {
        let r = radius_of(words[i]);
        let (s, c) = sin_cos_word(words[i + 1]);
        (r * c, r * s)
    })
}

/// Fills 2·PAIRS normals, whole groups; all lengths are known to the compiler, so that its loops have no remainders.
#[inline(always)]
fn run<const PAIRS: usize>(schedule: &Schedule, counter: [u64; 4], out: &mut [f32]) {
    let mut bits = [0; PAIRS];
    let (mut radius, mut angle) = ([0; PAIRS], [0; PAIRS]);
    let (mut length, mut x, mut y) = ([0.0; PAIRS], [0.0; PAIRS], [0.0; PAIRS]);
    schedule.planes(counter, &mut bits);
    for i in 0..PAIRS {
        radius[i] = bits[i] as u32;
        angle[i] = (bits[i] >> 32) as u32;
    }
    for i in 0..PAIRS {
        length[i] = radius_of(radius[i]);
    }
    for i in 0..PAIRS {
        let (s, c) = sin_cos_word(angle[i]);
        x[i] = length[i] * c;
        y[i] = length[i] * s;
    }
    let blocks = PAIRS / 2;
    let planes = [&x[..blocks], &y[..blocks], &x[blocks..], &y[blocks..]];
    for (g, group) in out.chunks_exact_mut(GROUP).enumerate() {
        let from = g * GROUP_BLOCKS;
        for (part, plane) in group.chunks_exact_mut(GROUP_BLOCKS).zip(planes) {
            part.copy_from_slice(&plane[from..from + GROUP_BLOCKS]);
        }
    }
}

dispatch! {
    /// Fills whole groups from consecutive blocks, beginning at `counter`.
    pub(super) fn fill_groups(schedule: &Schedule, counter: [u64; 4], out: &mut [f32]) {
        debug_assert_eq!(out.len() % GROUP, 0);
        let mut counter = counter;
        let (large, rest) = out.as_chunks_mut::<LARGE>();
        for chunk in large {
            run::<{ LARGE / 2 }>(schedule, counter, chunk);
            counter[0] += (LARGE / GROUP * GROUP_BLOCKS) as u64;
        }
        for group in rest.as_chunks_mut::<GROUP>().0 {
            run::<{ GROUP / 2 }>(schedule, counter, group);
            counter[0] += GROUP_BLOCKS as u64;
        }
    }
}
