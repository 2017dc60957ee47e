//! Philox4x32-10: a keyed bijection of 128-bit counters, used as a random number generator. The block of a counter is a
//! pure function of counter and key, so that numbers can be computed in any order.
//!
//! J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, *Parallel random numbers: as easy as 1, 2, 3*, SC'11 (2011).
//! One round maps (c₀, c₁, c₂, c₃) to
//!
//!   (hi(M₁c₂) ⊕ c₁ ⊕ k₀,  lo(M₁c₂),  hi(M₀c₀) ⊕ c₃ ⊕ k₁,  lo(M₀c₀)),
//!
//! where hi and lo are the halves of a 64-bit product, and a constant is added to the key between rounds (a Weyl
//! sequence).

const MULTIPLIER: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const LOW: u64 = 0xFFFF_FFFF;

/// The ten round keys of one key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule([[u64; 2]; 10]);

impl Schedule {
    pub(super) fn new(key: [u32; 2]) -> Self {
        let mut key = key;
        Self(std::array::from_fn(|_| {
            let round = [u64::from(key[0]), u64::from(key[1])];
            key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
            round
        }))
    }

    /// Applies ten rounds. The upper halves of the returned words have no meaning and must be discarded.
    #[inline(always)]
    pub(super) fn encrypt(&self, counter: [u64; 4]) -> [u64; 4] {
        let mut c = counter;
        for key in &self.0 {
            c = round(c, key);
        }
        c
    }

    /// Encrypts two counters together. The ten rounds of one counter are a chain of dependent operations; with two
    /// independent chains the processor overlaps their latencies.
    #[inline(always)]
    fn encrypt_two(&self, c: [u64; 4], d: [u64; 4]) -> ([u64; 4], [u64; 4]) {
        let (mut c, mut d) = (c, d);
        for key in &self.0 {
            c = round(c, key);
            d = round(d, key);
        }
        (c, d)
    }

    /// Writes the blocks `counter`, `counter + 1`, … as 64-bit numbers: words (0, 1) of every block to the first half of
    /// `out`, words (2, 3) to the second half. The number of blocks must be even.
    #[inline(always)]
    pub(super) fn fill_blocks(&self, counter: [u64; 4], out: &mut [u64]) {
        let half = out.len() / 4;
        let (first, second) = out.split_at_mut(2 * half);
        let (first_low, first_high) = first.split_at_mut(half);
        let (second_low, second_high) = second.split_at_mut(half);
        for i in 0..half {
            let low = [counter[0] + i as u64, counter[1], counter[2], counter[3]];
            let high = [counter[0] + (i + half) as u64, counter[1], counter[2], counter[3]];
            let (a, b) = self.encrypt_two(low, high);
            first_low[i] = join(a[0], a[1]);
            first_high[i] = join(b[0], b[1]);
            second_low[i] = join(a[2], a[3]);
            second_high[i] = join(b[2], b[3]);
        }
    }
}

/// Applies one round. Every 32-bit word is kept in a 64-bit integer whose upper half is ignored. A 64-bit product then has
/// its two halves where the next round needs them, and a vectorised loop over counters needs only `vpmuludq`, shift and
/// exclusive or, and no permutation of lanes.
#[inline(always)]
fn round(c: [u64; 4], key: &[u64; 2]) -> [u64; 4] {
    let p0 = (c[0] & LOW) * MULTIPLIER[0];
    let p1 = (c[2] & LOW) * MULTIPLIER[1];
    [(p1 >> 32) ^ c[1] ^ key[0], p1, (p0 >> 32) ^ c[3] ^ key[1], p0]
}

/// Joins two 32-bit words to a 64-bit number, the first one as its lower half.
#[inline(always)]
pub(super) fn join(low: u64, high: u64) -> u64 {
    (low & LOW) | (high << 32)
}

/// Returns the 128-bit block of a counter under a key, as four words, word 0 first.
pub fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    Schedule::new(key).encrypt(counter.map(u64::from)).map(|word| word as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_blocks_writes_the_words_of_consecutive_blocks() {
        let schedule = Schedule::new([7, 11]);
        let mut out = [0; 2 * 12];
        schedule.fill_blocks([5, 1, 2, 3], &mut out);
        for i in 0..12 {
            let [a, b, c, d] = philox([5 + i as u32, 1, 2, 3], [7, 11]).map(u64::from);
            assert_eq!((out[i], out[12 + i]), (join(a, b), join(c, d)));
        }
    }

    /// Known answers of the file `kat_vectors` that is published with Random123.
    #[test]
    fn blocks_match_the_published_known_answers() {
        let pi = [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344];
        let cases = [
            ([0; 4], [0; 2], [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]),
            ([!0; 4], [!0; 2], [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]),
            (pi, [0xa4093822, 0x299f31d0], [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]),
        ];
        for (counter, key, expected) in cases {
            assert_eq!(philox(counter, key), expected);
        }
    }
}
