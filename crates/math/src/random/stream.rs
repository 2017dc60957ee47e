//! The sequential reader of one address.

use super::normal::{self, GROUP, GROUP_BLOCKS, unit};
use super::normal_f32;
use super::philox::{Schedule, join, philox};
use crate::dispatch;
use crate::simd::scalar::ln_normal;

/// Where a stream of random numbers lives: the same numbers whatever the thread, order or batch size.
///
/// The counter of Philox is (block, lane + 2¹⁶ ⌊step/2³²⌋, step mod 2³², replica) and its key is the seed, so different
/// addresses never share a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// One per experiment.
    pub seed: u64,
    /// Independent copy of the experiment.
    pub replica: u32,
    /// Learning step, below 2⁴⁸.
    pub step: u64,
    /// Purpose of the numbers within a step (inputs, noise, dropout, …).
    pub lane: u16,
}

impl Address {
    /// Philox counter of block 0. Panics when the step does not fit.
    fn counter(self) -> [u32; 4] {
        assert!(self.step < 1 << 48, "step {} is not below 2^48: use another seed to go on", self.step);
        [0, u32::from(self.lane) | (((self.step >> 32) as u32) << 16), self.step as u32, self.replica]
    }

    fn key(self) -> [u32; 2] {
        [self.seed as u32, (self.seed >> 32) as u32]
    }
}

/// Reads the numbers of one [`Address`], in order.
///
/// Words, uniforms and what is made of them take the next bits of the current block. Normals come from whole
/// groups of blocks: the k-th normal asked of a stream is the same number whether it comes from [`normal`](Self::normal) or
/// from calls of [`fill_normal`](Self::fill_normal) of any lengths, as long as nothing else is read in between.
/// A stream ends, with a panic, after 2³² blocks (1.7e10 normals).
#[derive(Clone, Debug)]
pub struct Stream {
    pub(super) schedule: Schedule,
    /// Counter of the next unread block.
    counter: [u64; 4],
    words: [u32; 4],
    words_left: usize,
    normals: [f64; GROUP],
    normals_left: usize,
}

impl Stream {
    /// The beginning of an address.
    pub fn at(address: Address) -> Self {
        Self {
            schedule: Schedule::new(address.key()),
            counter: address.counter().map(u64::from),
            words: [0; 4],
            words_left: 0,
            normals: [0.0; GROUP],
            normals_left: 0,
        }
    }

    /// Takes the next `blocks` blocks and returns the counter of the first.
    #[inline]
    pub(super) fn take_blocks(&mut self, blocks: usize) -> [u64; 4] {
        let first = self.counter;
        self.counter[0] += blocks as u64;
        assert!(self.counter[0] <= 1 << 32, "a random stream has 2^32 blocks and no more: use another lane");
        first
    }

    /// 32 random bits.
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

    /// 64 random bits, the first word low.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let low = self.next_u32();
        let high = self.next_u32();
        join(u64::from(low), u64::from(high))
    }

    /// A uniform number of the open interval (0, 1): an odd multiple of 2⁻⁵³, never 0 or 1.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        unit(self.next_u64())
    }

    /// A standard normal.
    #[inline]
    pub fn normal(&mut self) -> f64 {
        if self.normals_left == 0 {
            let counter = self.take_blocks(GROUP_BLOCKS);
            normal::fill_groups(&self.schedule, counter, &mut self.normals);
            self.normals_left = GROUP;
        }
        self.normals_left -= 1;
        self.normals[GROUP - 1 - self.normals_left]
    }

    /// An exponential variable of mean 1.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        -ln_normal(self.uniform())
    }

    /// +1 or −1.
    #[inline]
    pub fn sign(&mut self) -> f64 {
        if self.next_u32() >> 31 == 0 { 1.0 } else { -1.0 }
    }

    /// A whole number of 0, …, bound − 1, without bias (D. Lemire, ACM Trans. Model. Comput. Simul. 29, 3, 2019).
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "no whole number lies below 0");
        // Products whose low half falls under 2⁶⁴ mod bound are the ones that some outcomes have in excess.
        let excess = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            if product as u64 >= excess {
                return (product >> 64) as u64;
            }
        }
    }

    /// A uniform permutation of 0, …, n − 1 (Fisher and Yates).
    pub fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            order.swap(i, self.below(i as u64 + 1) as usize);
        }
        order
    }

    /// Uniform numbers, those that repeated calls of [`uniform`](Self::uniform) give.
    pub fn fill_uniform(&mut self, out: &mut [f64]) {
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

    /// Standard normals, those that repeated calls of [`normal`](Self::normal) give.
    pub fn fill_normal(&mut self, out: &mut [f64]) {
        let (head, rest) = out.split_at_mut(self.normals_left.min(out.len()));
        let from = GROUP - self.normals_left;
        head.copy_from_slice(&self.normals[from..from + head.len()]);
        self.normals_left -= head.len();
        let (body, tail) = rest.split_at_mut(rest.len() / GROUP * GROUP);
        let counter = self.take_blocks(body.len() / GROUP * GROUP_BLOCKS);
        normal::fill_groups(&self.schedule, counter, body);
        tail.fill_with(|| self.normal());
    }

    /// Standard normals in single precision; a shorter call gives the beginning of a longer one, and the next call
    /// begins at a new group of blocks.
    pub fn fill_normal_f32(&mut self, out: &mut [f32]) {
        let (body, tail) = out.split_at_mut(out.len() / GROUP * GROUP);
        let counter = self.take_blocks(body.len() / GROUP * GROUP_BLOCKS);
        normal_f32::fill_groups(&self.schedule, counter, body);
        if !tail.is_empty() {
            let mut group = [0.0; GROUP];
            let counter = self.take_blocks(GROUP_BLOCKS);
            normal_f32::fill_groups(&self.schedule, counter, &mut group);
            tail.copy_from_slice(&group[..tail.len()]);
        }
    }
}

dispatch! {
    /// Two uniforms per block, for an even number of blocks.
    pub(super) fn fill_uniform_blocks(schedule: &Schedule, counter: [u64; 4], out: &mut [f64]) {
        // Clearing the large workspace costs as much as a hundred uniforms.
        if out.len() <= 64 {
            uniform_passes::<64>(schedule, counter, out);
        } else {
            uniform_passes::<256>(schedule, counter, out);
        }
    }
}

#[inline(always)]
fn uniform_passes<const SIZE: usize>(schedule: &Schedule, counter: [u64; 4], out: &mut [f64]) {
    let mut planes = [0; SIZE];
    let mut counter = counter;
    for chunk in out.chunks_mut(SIZE) {
        let blocks = chunk.len() / 2;
        let planes = &mut planes[..2 * blocks];
        schedule.planes(counter, planes);
        for (i, pair) in chunk.chunks_exact_mut(2).enumerate() {
            pair[0] = unit(planes[i]);
            pair[1] = unit(planes[blocks + i]);
        }
        counter[0] += blocks as u64;
    }
}

/// The first `count` normals of an address, one block at a time: slow, and bit by bit what [`Stream::fill_normal`] gives.
pub fn normal_reference(address: Address, count: usize) -> Vec<f64> {
    let mut out = Vec::with_capacity(count.next_multiple_of(GROUP));
    let mut counter = address.counter();
    while out.len() < count {
        let mut group = [0.0; GROUP];
        for i in 0..GROUP_BLOCKS {
            let [(a, b), (c, d)] = normal::pairs_of_block(philox(counter, address.key()));
            for (part, value) in [a, b, c, d].into_iter().enumerate() {
                group[part * GROUP_BLOCKS + i] = value;
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
