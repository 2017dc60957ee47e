//! Batched standard normal variables by the Box–Muller map of Philox blocks.
//!
//! G. E. P. Box and M. E. Muller, *A note on the generation of random normal deviates*, Ann. Math. Stat. 29, 610 (1958).
//!
//! A pair of normals is z = √(−2 ln u) (cos θ, sin θ). It is made of 64 random bits, so a Philox block gives two pairs:
//!
//! - bits 63…12 give u on the midpoints of a grid of 2⁵² cells, so |z| ≤ √(106 ln 2) = 8.57 (a normal exceeds it with
//!   probability 1e-17);
//! - bits 23…0 give θ on the midpoints of a grid of 2²⁴ angles.
//!
//! The twelve bits 23…12 are used in both: given θ, u lies on a grid of spacing 2⁻⁴⁰ whose offset depends on θ. There are
//! 2⁶⁴ different pairs. A whole block per pair would take a third more time, and the difference is not visible in 2·10⁸
//! samples (moments up to order 8, tails up to 5 σ). The relative error of the map is below 1e-14.
//!
//! Normals are made in groups of 32 from 8 consecutive blocks, in an order that needs no permutation of vector lanes:
//! the 8 cosines and then the 8 sines of the first pairs of the blocks, then those of the second pairs. The work is split
//! into short loops over arrays that fit in the first-level cache. The time is limited by the latency of dependent
//! operations, and the shorter a loop body, the more iterations the processor overlaps.

use super::philox::Schedule;
use crate::dispatch;

/// Number of normals in a group.
pub(super) const NORMALS_PER_GROUP: usize = 32;
/// Number of normals in a pass of a large batch: enough iterations to overlap, and few enough for the first-level cache.
pub(super) const NORMALS_PER_PASS: usize = 256;
/// Number of Philox blocks that give a group.
pub(super) const BLOCKS_PER_GROUP: usize = 8;

/// Bits of the double 1.0.
const ONE: u64 = 0x3ff0_0000_0000_0000;
/// Bits of the double 0.25.
const QUARTER: u64 = 0x3fd0_0000_0000_0000;
/// Mask of the mantissa of a double.
const MANTISSA: u64 = (1 << 52) - 1;

/// Maps 64 bits to a midpoint of one of 2⁵² cells of (0, 1): the 52 leading bits become the mantissa of a number in [1, 2).
#[inline(always)]
pub(super) fn unit(bits: u64) -> f64 {
    f64::from_bits((bits >> 12) | ONE) - (1.0 - f64::EPSILON / 2.0)
}

/// Returns (k, s) with u = 2ᵏ(1+f), 1+f in [√½, √2), s = f/(2+f): the part of ln u that needs a division.
#[inline(always)]
fn reduced(bits: u64) -> (f64, f64) {
    const SQRT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    let lifted = unit(bits).to_bits().wrapping_add(ONE - SQRT_HALF);
    // The biased exponent is converted to a double by writing it into the mantissa of 2⁵², which is then subtracted.
    let k = f64::from_bits((lifted >> 52) | 0x4330_0000_0000_0000) - (4503599627370496.0 + 1023.0);
    let f = f64::from_bits((lifted & MANTISSA).wrapping_add(SQRT_HALF)) - 1.0;
    (k, f / (2.0 + f))
}

/// Returns √(−2 ln u), with −2 ln u = −2k ln 2 − 4 artanh s. The relative error of the fit of −4 artanh(s)/s is 7e-16.
#[inline(always)]
fn radius(k: f64, s: f64) -> f64 {
    const SERIES: [f64; 7] = [
        -0.3324363430571785636,
        -0.3628038760573198218,
        -0.4444572456021743110,
        -0.5714284827664832116,
        -0.8000000002241301264,
        -1.3333333333332416644,
        -4.0,
    ];
    k.mul_add(-2.0 * std::f64::consts::LN_2, s * horner(s * s, SERIES)).sqrt()
}

/// c₀ zⁿ + … + cₙ by Horner's rule, which has the fewest operations. Its long chain of dependent operations does not
/// matter here, because the processor overlaps several iterations of the loops that call it.
#[inline(always)]
fn horner<const N: usize>(z: f64, coefficients: [f64; N]) -> f64 {
    let mut sum = coefficients[0];
    for c in &coefficients[1..] {
        sum = sum.mul_add(z, *c);
    }
    sum
}

/// Returns a unit vector: 22 bits give an angle 2πf in (−π/4, π/4), one bit the sign of its cosine, and one bit exchanges
/// sine and cosine. The errors of the fits are 4e-15 (sine, relative) and 2e-16 (cosine).
#[inline(always)]
fn direction(bits: u64) -> (f64, f64) {
    const SINE: [f64; 6] = [
        -14.91656511881911836,
        42.05556925594498725,
        -76.70583445845128526,
        81.60524918348394031,
        -41.34170224027578049,
        6.283185307179559573,
    ];
    const COSINE: [f64; 7] = [
        7.823560405842184941,
        -26.424853147906644885,
        60.24463000814386799,
        -85.456817165094417027,
        64.939394022612588429,
        -19.73920880217870515,
        1.0,
    ];
    let f = f64::from_bits(((bits << 30) & MANTISSA) | QUARTER) - (0.375 - 0.5 / 16777216.0);
    let w = f * f;
    let s = f * horner(w, SINE);
    let c = horner(w, COSINE);
    let c = f64::from_bits(c.to_bits() ^ ((bits << 41) & (1 << 63)));
    if bits & (1 << 23) == 0 { (c, s) } else { (s, c) }
}

/// Returns the two pairs of a block, computed one at a time. This defines the normals; the batched code gives the same
/// bits, and a test compares them.
pub(super) fn pairs_of_block(words: [u32; 4]) -> [(f64, f64); 2] {
    [0, 2].map(|i| {
        let bits = u64::from(words[i]) | (u64::from(words[i + 1]) << 32);
        let (k, s) = reduced(bits);
        let (x, y) = direction(bits);
        let r = radius(k, s);
        (x * r, y * r)
    })
}

/// Buffers for the intermediate numbers of `PAIRS` pairs.
struct Pass<const PAIRS: usize> {
    bits: [u64; PAIRS],
    exponent: [f64; PAIRS],
    ratio: [f64; PAIRS],
    x: [f64; PAIRS],
    y: [f64; PAIRS],
}

impl<const PAIRS: usize> Pass<PAIRS> {
    #[inline(always)]
    fn new() -> Self {
        let zeros = [0.0; PAIRS];
        Self { bits: [0; PAIRS], exponent: zeros, ratio: zeros, x: zeros, y: zeros }
    }

    /// Fills 2·PAIRS normals, which are whole groups. All lengths are constants, so that the vectorised loops have no
    /// remainder.
    #[inline(always)]
    fn run(&mut self, schedule: &Schedule, counter: [u64; 4], out: &mut [f64]) {
        let Self { bits, exponent: k, ratio: s, x, y } = self;
        schedule.fill_blocks(counter, bits);
        for i in 0..PAIRS {
            (k[i], s[i]) = reduced(bits[i]);
        }
        for i in 0..PAIRS {
            (x[i], y[i]) = direction(bits[i]);
        }
        // Each part holds the cosines and the sines of 8 blocks: first those of the first pairs, then of the second pairs.
        let parts = out.as_chunks_mut::<{ 2 * BLOCKS_PER_GROUP }>().0;
        for half in 0..2 {
            let from = half * PAIRS / (2 * BLOCKS_PER_GROUP);
            for (g, part) in parts.iter_mut().skip(half).step_by(2).enumerate() {
                *part = scaled(
                    &chunks(k)[from + g],
                    &chunks(s)[from + g],
                    &chunks(x)[from + g],
                    &chunks(y)[from + g],
                );
            }
        }
    }
}

/// One number for each block of a group.
type Chunk = [f64; BLOCKS_PER_GROUP];

#[inline(always)]
fn chunks(numbers: &[f64]) -> &[Chunk] {
    numbers.as_chunks().0
}

/// Returns r x for the blocks of a group, then r y, with r = √(−2 ln u).
#[inline(always)]
fn scaled(k: &Chunk, s: &Chunk, x: &Chunk, y: &Chunk) -> [f64; 2 * BLOCKS_PER_GROUP] {
    let mut out = [0.0; 2 * BLOCKS_PER_GROUP];
    for j in 0..BLOCKS_PER_GROUP {
        let r = radius(k[j], s[j]);
        out[j] = x[j] * r;
        out[BLOCKS_PER_GROUP + j] = y[j] * r;
    }
    out
}

dispatch! {
    /// Fills `out`, which is made of whole groups, from consecutive blocks that begin at `counter`.
    pub(super) fn fill_groups(schedule: &Schedule, counter: [u64; 4], out: &mut [f64]) {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The pair of normals of 64 bits, computed from the definition with `libm`.
    fn by_libm(bits: u64) -> (f64, f64) {
        let u = unit(bits);
        let r = (-2.0 * libm::log(u)).sqrt();
        let f = ((bits & 0x3f_ffff) as f64 + 0.5) / 16777216.0 - 0.125;
        let (s, c) = libm::sincos(std::f64::consts::TAU * f);
        let c = if bits >> 22 & 1 == 1 { -c } else { c };
        if bits >> 23 & 1 == 1 { (r * s, r * c) } else { (r * c, r * s) }
    }

    #[test]
    fn pairs_follow_the_box_muller_map_to_1e_14() {
        let mut bits = 0x1234_5678_9abc_def0_u64;
        for _ in 0..200_000 {
            bits = bits.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let words = [bits as u32, (bits >> 32) as u32, 0, 0];
            let ((x, y), (a, b)) = (pairs_of_block(words)[0], by_libm(bits));
            assert!(
                (x - a).abs() <= 1e-14 * a.abs() && (y - b).abs() <= 1e-14 * b.abs(),
                "{bits:x}: {x} {a}, {y} {b}"
            );
        }
    }

    #[test]
    fn extreme_bits_give_finite_normals_and_the_stated_largest_radius() {
        let [(x, y), _] = pairs_of_block([0; 4]);
        assert!((x.hypot(y) / (106.0 * std::f64::consts::LN_2).sqrt() - 1.0).abs() < 1e-14);
        let [(x, y), _] = pairs_of_block([!0; 4]);
        // u = 1 − 2⁻⁵³, so −2 ln u = 2⁻⁵².
        assert!((x.hypot(y) * 67108864.0 - 1.0).abs() < 1e-14);
    }
}
