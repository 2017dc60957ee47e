//! Addresses of random numbers, and the stream that reads the numbers of one address in order.

use super::normal::{self, BLOCKS_PER_GROUP, NORMALS_PER_GROUP, unit};
use super::normal_f32;
use super::philox::{Schedule, join, philox};
use crate::dispatch;
use crate::simd::scalar::ln_normal;

/// The address of a stream of random numbers. The numbers are a function of the address, so they do not depend on thread,
/// order of execution or batch size.
///
/// The counter of Philox is (block, lane + 2¹⁶ ⌊step/2³²⌋, step mod 2³², replica) and its key is the seed, so different
/// addresses never share a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RngAddress {
    /// Seed of the experiment.
    pub seed: u64,
    /// Index of the independent repetition inside a run.
    pub replica: u32,
    /// Learning step, below 2⁴⁸.
    pub step: u64,
    /// Separates the uses of random numbers within a step (inputs, noise, …). It has nothing to do with SIMD lanes.
    pub lane: u16,
}

impl RngAddress {
    /// Philox counter of block 0. Panics when the step is not below 2⁴⁸.
    fn counter(self) -> [u32; 4] {
        assert!(self.step < 1 << 48, "step {} is not below 2^48: use another seed to go on", self.step);
        [0, u32::from(self.lane) | (((self.step >> 32) as u32) << 16), self.step as u32, self.replica]
    }

    fn key(self) -> [u32; 2] {
        [self.seed as u32, (self.seed >> 32) as u32]
    }
}

/// Reads the numbers of one [`RngAddress`], in order.
///
/// Integers, uniforms and what is made of them use the next bits of the current block. Normals are made from whole groups
/// of blocks: the k-th normal of a stream is the same number whether it is read by [`normal`](Self::normal) or by calls of
/// [`fill_normal`](Self::fill_normal) of any lengths, as long as nothing else is read in between. Reading beyond 2³² blocks
/// (1.7e10 normals) panics.
#[derive(Clone, Debug)]
pub struct Stream {
    pub(super) schedule: Schedule,
    /// Counter of the next unread block.
    counter: [u64; 4],
    /// The current block, of which the last `words_left` words are unread.
    words: [u32; 4],
    words_left: usize,
    /// The current group of normals, of which the last `normals_left` are unread.
    normals: [f64; NORMALS_PER_GROUP],
    normals_left: usize,
}

impl Stream {
    /// Creates a stream at the first number of an address.
    pub fn at(address: RngAddress) -> Self {
        Self {
            schedule: Schedule::new(address.key()),
            counter: address.counter().map(u64::from),
            words: [0; 4],
            words_left: 0,
            normals: [0.0; NORMALS_PER_GROUP],
            normals_left: 0,
        }
    }

    /// Reserves the next `blocks` blocks and returns the counter of the first.
    #[inline]
    pub(super) fn take_blocks(&mut self, blocks: usize) -> [u64; 4] {
        let first = self.counter;
        self.counter[0] += blocks as u64;
        assert!(self.counter[0] <= 1 << 32, "a random stream has 2^32 blocks and no more: use another lane");
        first
    }

    /// Returns 32 random bits.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        if self.words_left == 0 {
            let counter = self.take_blocks(1);
            self.words = self.schedule.encrypt(counter).map(|word| word as u32);
            self.words_left = 4;
        }
        self.words_left -= 1;
        self.words[3 - self.words_left]
    }

    /// Returns 64 random bits; the first of the two words that it reads becomes the lower half.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let low = self.next_u32();
        let high = self.next_u32();
        join(u64::from(low), u64::from(high))
    }

    /// Draws a uniform number of the open interval (0, 1): an odd multiple of 2⁻⁵³, never 0 or 1.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        unit(self.next_u64())
    }

    /// Draws a standard normal variable.
    #[inline]
    pub fn normal(&mut self) -> f64 {
        if self.normals_left == 0 {
            let counter = self.take_blocks(BLOCKS_PER_GROUP);
            normal::fill_groups(&self.schedule, counter, &mut self.normals);
            self.normals_left = NORMALS_PER_GROUP;
        }
        self.normals_left -= 1;
        self.normals[NORMALS_PER_GROUP - 1 - self.normals_left]
    }

    /// Draws an exponential variable of mean 1.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        -ln_normal(self.uniform())
    }

    /// Draws +1 or −1 with equal probability.
    #[inline]
    pub fn sign(&mut self) -> f64 {
        if self.next_u32() >> 31 == 0 { 1.0 } else { -1.0 }
    }

    /// Draws an integer of 0, …, bound − 1 uniformly, without bias (D. Lemire, ACM Trans. Model. Comput. Simul. 29, 3, 2019).
    /// Panics at bound 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "no whole number lies below 0");
        // Some integers have one product more than the others. Rejecting the products whose low half is below
        // 2⁶⁴ mod bound leaves equally many for each.
        let excess = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            if product as u64 >= excess {
                return (product >> 64) as u64;
            }
        }
    }

    /// Draws a uniform permutation of 0, …, n − 1 (R. A. Fisher and F. Yates).
    pub fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            order.swap(i, self.below(i as u64 + 1) as usize);
        }
        order
    }

    /// Fills `out` with the uniform numbers that repeated calls of [`uniform`](Self::uniform) would return.
    pub fn fill_uniform(&mut self, out: &mut [f64]) {
        // Uniforms that are read one at a time before whole blocks: those left in the current block, or all of them if
        // an odd number of words is left there.
        let begun =
            if self.words_left.is_multiple_of(2) { (self.words_left / 2).min(out.len()) } else { out.len() };
        let (head, rest) = out.split_at_mut(begun);
        let whole = rest.len() / 4 * 4;
        let (body, tail) = rest.split_at_mut(whole);
        head.fill_with(|| self.uniform());
        let counter = self.take_blocks(whole / 2);
        fill_uniform_blocks(&self.schedule, counter, body);
        tail.fill_with(|| self.uniform());
    }

    /// Fills `out` with the standard normals that repeated calls of [`normal`](Self::normal) would return.
    pub fn fill_normal(&mut self, out: &mut [f64]) {
        let (head, rest) = out.split_at_mut(self.normals_left.min(out.len()));
        let from = NORMALS_PER_GROUP - self.normals_left;
        head.copy_from_slice(&self.normals[from..from + head.len()]);
        self.normals_left -= head.len();
        let (body, tail) = rest.split_at_mut(rest.len() / NORMALS_PER_GROUP * NORMALS_PER_GROUP);
        let counter = self.take_blocks(body.len() / NORMALS_PER_GROUP * BLOCKS_PER_GROUP);
        normal::fill_groups(&self.schedule, counter, body);
        tail.fill_with(|| self.normal());
    }

    /// Fills `out` with standard normals in single precision. A shorter call gives the first numbers of a longer one, and
    /// every call begins at a new group of blocks.
    pub fn fill_normal_f32(&mut self, out: &mut [f32]) {
        let (body, tail) = out.split_at_mut(out.len() / NORMALS_PER_GROUP * NORMALS_PER_GROUP);
        let counter = self.take_blocks(body.len() / NORMALS_PER_GROUP * BLOCKS_PER_GROUP);
        normal_f32::fill_groups(&self.schedule, counter, body);
        if !tail.is_empty() {
            let mut group = [0.0; NORMALS_PER_GROUP];
            let counter = self.take_blocks(BLOCKS_PER_GROUP);
            normal_f32::fill_groups(&self.schedule, counter, &mut group);
            tail.copy_from_slice(&group[..tail.len()]);
        }
    }
}

dispatch! {
    /// Fills `out` with two uniforms per block, for an even number of blocks.
    pub(super) fn fill_uniform_blocks(schedule: &Schedule, counter: [u64; 4], out: &mut [f64]) {
        // Initialising the large buffer takes as long as a hundred uniforms.
        if out.len() <= 64 {
            uniform_passes::<64>(schedule, counter, out);
        } else {
            uniform_passes::<256>(schedule, counter, out);
        }
    }
}

/// Fills `out` in passes of at most `SIZE` uniforms.
#[inline(always)]
fn uniform_passes<const SIZE: usize>(schedule: &Schedule, counter: [u64; 4], out: &mut [f64]) {
    let mut buffer = [0; SIZE];
    let mut counter = counter;
    for chunk in out.chunks_mut(SIZE) {
        let blocks = chunk.len() / 2;
        let words = &mut buffer[..2 * blocks];
        schedule.fill_blocks(counter, words);
        for (i, pair) in chunk.chunks_exact_mut(2).enumerate() {
            pair[0] = unit(words[i]);
            pair[1] = unit(words[blocks + i]);
        }
        counter[0] += blocks as u64;
    }
}

/// Returns the first `count` normals of an address, computed one block at a time. It is the slow reference for
/// [`Stream::fill_normal`], which gives the same bits; a test compares them.
pub fn normal_reference(address: RngAddress, count: usize) -> Vec<f64> {
    let mut out = Vec::with_capacity(count.next_multiple_of(NORMALS_PER_GROUP));
    let mut counter = address.counter();
    while out.len() < count {
        let mut group = [0.0; NORMALS_PER_GROUP];
        for i in 0..BLOCKS_PER_GROUP {
            let [(a, b), (c, d)] = normal::pairs_of_block(philox(counter, address.key()));
            for (part, value) in [a, b, c, d].into_iter().enumerate() {
                group[part * BLOCKS_PER_GROUP + i] = value;
            }
            counter[0] += 1;
        }
        out.extend(group);
    }
    out.truncate(count);
    out
}

#[cfg(test)]
mod tests;
