//! Batched standard normals in single precision.
//!
//! Box–Muller as for f64, with one 32-bit word for the radius and one for the angle: |z| ≤ √(66 ln 2) = 6.76 (exceeded
//! with probability 1.4e-11), 2³² radii and 2³² angles, four normals per Philox block. The map is accurate to about
//! 1e-6, relative. Groups of 32 and their order are those of the f64 normals.

use super::normal::{GROUP, GROUP_BLOCKS, LARGE};
use super::philox::Schedule;
use crate::dispatch;
#[cfg(test)]
use crate::simd::single::minus_ln_word;
use crate::simd::single::{minus_ln_reduced, reduce_word, sin_cos_word};

/// The two pairs of a block, one at a time: the definition that the batched path reproduces bit by bit.
#[cfg(test)]
pub(super) fn pairs_of_block(words: [u32; 4]) -> [(f32, f32); 2] {
    [0, 2].map(|i| {
        let r = (2.0 * minus_ln_word(words[i])).sqrt();
        let (s, c) = sin_cos_word(words[i + 1]);
        (r * c, r * s)
    })
}

/// The intermediate numbers of so many pairs.
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

    /// Fills 2·PAIRS normals, whole groups, in short loops of known length, as for f64.
    #[inline(always)]
    fn run(&mut self, schedule: &Schedule, counter: [u64; 4], out: &mut [f32]) {
        let Self { bits, radius, angle, reduced: [k, f, s], x, y } = self;
        schedule.planes(counter, bits);
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
        let planes = [&x[..blocks], &y[..blocks], &x[blocks..], &y[blocks..]];
        for (g, group) in out.chunks_exact_mut(GROUP).enumerate() {
            let from = g * GROUP_BLOCKS;
            for (part, plane) in group.chunks_exact_mut(GROUP_BLOCKS).zip(planes) {
                part.copy_from_slice(&plane[from..from + GROUP_BLOCKS]);
            }
        }
    }
}

dispatch! {
    /// Fills whole groups from consecutive blocks, beginning at `counter`.
    pub(super) fn fill_groups(schedule: &Schedule, counter: [u64; 4], out: &mut [f32]) {
        debug_assert_eq!(out.len() % GROUP, 0);
        let mut counter = counter;
        let (large, rest) = out.as_chunks_mut::<LARGE>();
        if !large.is_empty() {
            let mut pass = Pass::<{ LARGE / 2 }>::new();
            for chunk in large {
                pass.run(schedule, counter, chunk);
                counter[0] += (LARGE / GROUP * GROUP_BLOCKS) as u64;
            }
        }
        let mut pass = Pass::<{ GROUP / 2 }>::new();
        for group in rest.as_chunks_mut::<GROUP>().0 {
            pass.run(schedule, counter, group);
            counter[0] += GROUP_BLOCKS as u64;
        }
    }
}
