//! Sobol points with Owen's scrambling: quasi-random numbers whose averages converge faster than 1/√N.
//!
//! The first 2ᵏ points of a Sobol sequence (I. M. Sobol, 1967) visit every cell [c, c+1)/2ᵏ once along every axis. Owen's
//! nested uniform scrambling (A. B. Owen, *Randomly permuted (t,m,s)-nets and (t,s)-sequences*, 1995) permutes these cells
//! so that halves, quarters, … stay together, and places the point uniformly within its cell. Every point is then uniform
//! on the cube, averages are unbiased, and the scatter of independent scrambles estimates their error.
//!
//! A column, that is one coordinate of all points, is a function of (seed, scramble, axis) alone, so that using more axes
//! does not change the first ones.

use super::{RngAddress, Stream};
use std::sync::OnceLock;

/// Highest degree of the primitive polynomials, which gives 1 + 160 axes.
const DEGREE: u32 = 10;

/// Bits of a direction number.
const BITS: usize = 32;

/// Lane (see [`RngAddress`]) of the random bits of the nested scrambling.
const FLIP_LANE: u16 = 0x5f10;
/// Lane of the positions within cells.
const POSITION_LANE: u16 = 0x5f11;

/// Keys of the initial direction numbers (see [`initial`]), axis by axis; axes past the table have key 0.
///
/// They were found by a search, axis by axis: each is the one of 24 keys with the least sum of t-values for 2⁸, 2¹² and 2¹⁶
/// points over the pairs with the five axes before it and with the first three. The t-value of a pair of axes measures how
/// far the projection on them is from a net of best quality, t = 0.
const KEYS: [u16; 65] = [
    0, 0, 0, 0, 0, 3, 0, 10, 11, 6, 1, 20, 5, 13, 7, 20, 7, 19, 15, 3, 11, 17, 14, 2, 14, 22, 12, 1, 4, 2, 4,
    10, 4, 10, 9, 11, 3, 6, 12, 7, 18, 17, 5, 0, 3, 6, 8, 5, 14, 8, 14, 7, 19, 8, 6, 1, 13, 15, 16, 2, 23, 0,
    17, 0, 5,
];

/// Number of axes that follow Sobol's construction. Columns of later axes are random permutations of the cells (Latin
/// hypercube sampling).
pub fn sobol_axes() -> usize {
    directions().len()
}

/// Fills `out`, whose length N is a power of two, with coordinate `axis` of N scrambled Sobol points in (0, 1). `seed` and
/// `scramble` choose one of the independent scrambles. Panics when N is not a power of two or is above 2²⁴.
pub fn sobol_column(seed: u64, scramble: u32, axis: usize, out: &mut [f64]) {
    let n = out.len();
    assert!(n.is_power_of_two() && n <= 1 << 24, "Sobol points come in powers of two up to 2^24, not {n}");
    let address = |lane| RngAddress { seed, replica: scramble, step: axis as u64, lane };
    let mut flips = Stream::at(address(FLIP_LANE));
    Stream::at(address(POSITION_LANE)).fill_uniform(out);
    let place = |u: &mut f64, cell: u32| *u = (f64::from(cell) + *u) / n as f64;
    let Some(direction) = directions().get(axis) else {
        for (u, cell) in out.iter_mut().zip(flips.permutation(n)) {
            place(u, cell as u32);
        }
        return;
    };
    let k = n.trailing_zeros();
    let cells = nested_permutation(k, &mut flips);
    // The points are made in the order of the Gray code, in which neighbours differ by one direction number.
    let mut x = 0_u32;
    for (i, u) in out.iter_mut().enumerate() {
        if i > 0 {
            x ^= direction[i.trailing_zeros() as usize];
        }
        place(u, cells[(u64::from(x) >> (BITS as u32 - k)) as usize]);
    }
}

/// Returns a random permutation of 2ᵏ cells that keeps halves, quarters, … together: at every node of the binary tree a
/// random bit decides whether the two halves are exchanged.
fn nested_permutation(k: u32, flips: &mut Stream) -> Vec<u32> {
    let mut cells = vec![0];
    for _ in 0..k {
        let mut next = Vec::with_capacity(2 * cells.len());
        for chunk in cells.chunks(32) {
            let mut bits = flips.next_u32();
            for &parent in chunk {
                let flip = bits & 1;
                bits >>= 1;
                next.extend([2 * parent + flip, 2 * parent + (1 - flip)]);
            }
        }
        cells = next;
    }
    cells
}

/// Direction numbers v_1, v_2, … of every axis, as 32-bit fractions.
fn directions() -> &'static [[u32; BITS]] {
    static TABLE: OnceLock<Vec<[u32; BITS]>> = OnceLock::new();
    TABLE.get_or_init(|| {
        // Axis 0 is van der Corput's sequence.
        let first = std::array::from_fn(|i| 1 << (BITS - 1 - i));
        let rest = (1..=DEGREE).flat_map(primitive_polynomials).enumerate();
        let key = |axis: usize| KEYS.get(axis).copied().unwrap_or(0);
        std::iter::once(first).chain(rest.map(|(i, p)| direction_numbers(p, i + 1, key(i + 1)))).collect()
    })
}

/// Returns v_i = m_i/2^i with the recurrence m_i = 2 a_1 m_{i−1} ⊕ 4 a_2 m_{i−2} ⊕ … ⊕ 2^s m_{i−s} ⊕ m_{i−s} for the polynomial
/// x^s + a_1 x^{s−1} + … + 1, which starts from odd numbers m_1 < 2, …, m_s < 2^s (I. M. Sobol, 1967).
fn direction_numbers(polynomial: u32, axis: usize, key: u16) -> [u32; BITS] {
    let s = polynomial.ilog2() as usize;
    let mut m = [0_u32; BITS];
    for i in 0..BITS {
        m[i] = if i < s {
            initial(axis, key, i)
        } else {
            let mut sum = m[i - s] ^ (m[i - s] << s);
            for j in 1..s {
                if polynomial >> (s - j) & 1 == 1 {
                    sum ^= m[i - j] << j;
                }
            }
            sum
        };
    }
    std::array::from_fn(|i| m[i] << (BITS - 1 - i))
}

/// Returns the initial number m_{i+1}: an odd number below 2^{i+1}, a hash of axis, key and i.
fn initial(axis: usize, key: u16, i: usize) -> u32 {
    let hash = super::philox([axis as u32, u32::from(key), i as u32, 0], [0x50b0, 0x1967])[0];
    (hash & ((2 << i) - 1)) | 1
}

/// Returns the primitive polynomials of a degree over GF(2). Bit s of a number is the coefficient of x^s.
fn primitive_polynomials(degree: u32) -> Vec<u32> {
    let (top, order) = (1_u32 << degree, (1_u32 << degree) - 1);
    let primitive = |p: &u32| {
        // A polynomial is primitive if the powers of x return to 1 after 2^s − 1 multiplications and not before.
        let mut power = 1;
        let returns = (1..=order).find(|_| {
            power <<= 1;
            if power & top != 0 {
                power ^= p;
            }
            power == 1
        });
        returns == Some(order)
    };
    (top + 1..2 * top).step_by(2).filter(primitive).collect()
}

#[cfg(test)]
mod tests;
