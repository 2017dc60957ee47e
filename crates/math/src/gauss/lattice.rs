//! A rank-1 lattice: x_i = frac(i g/n + shift), n a power of two.
//!
//! The generating vector g was found component by component (200 random odd candidates per component, the one whose
//! worst-case errors for the kernel ∏(1 + γⱼ 2π² B₂(x)), γⱼ = 1/j, are nearest to the best at every n = 2^8 … 2^18, so
//! that one vector serves every n). Random shifts make the average unbiased and give an error estimate; the tent
//! transform makes the integrand periodic, which buys the second order in 1/n for smooth functions.

/// Largest lattice the vector was built for.
pub(super) const LARGEST: usize = 1 << 18;

const VECTOR: [u64; 64] = [
    1, 13893, 18471, 107347, 66877, 94079, 81413, 57223, 105447, 65995, 121067, 107883, 23567, 76487, 39555,
    48801, 32117, 81143, 95499, 93789, 123795, 110965, 73305, 12903, 113513, 85839, 29271, 66271, 54309,
    12363, 34067, 13453, 27635, 102553, 22887, 121653, 51121, 3021, 67451, 96441, 127203, 37067, 124443,
    3977, 126311, 128567, 50061, 83011, 68903, 99679, 93815, 40581, 124035, 26351, 86477, 127361, 119645,
    72459, 96177, 27587, 75579, 75221, 105893, 104229,
];

/// The generating vector for any number of dimensions; past the table its components are hashed odd numbers.
pub(super) fn generator(dimension: usize) -> Vec<u64> {
    (0..dimension).map(|j| VECTOR.get(j).copied().unwrap_or_else(|| mix(j as u64) >> 46 | 1)).collect()
}

/// A number in [0, 1) addressed by two counters.
pub(super) fn uniform(a: u64, b: u64) -> f64 {
    (mix(mix(a) ^ b) >> 11) as f64 * (-53f64).exp2()
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014), with its increment.
fn mix(counter: u64) -> u64 {
    let mut z = counter.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
