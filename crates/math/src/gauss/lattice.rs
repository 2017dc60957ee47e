//! A rank-1 lattice: x_i = frac(i g/n + shift), n a power of two.
//!
//! The generating vector g was found component by component (random search over 96 odd candidates per component,
//! smallest worst-case error for the kernel ∏(1 + γⱼ 2π² B₂(x)), γⱼ = j^{−1.2}, over all n = 2^8 … 2^18 at once, so that
//! one vector serves every n). Random shifts make the average unbiased and give an error estimate; the tent
//! transform makes the integrand periodic, which buys the second order in 1/n for smooth functions.

/// Largest lattice the vector was built for.
pub(super) const LARGEST: usize = 1 << 18;

const VECTOR: [u64; 64] = [
    1, 25421, 7033, 32047, 108449, 67785, 119879, 130415, 79459, 127983, 74059, 103031, 50459, 88407, 3051,
    40513, 2959, 17657, 43733, 9069, 124223, 11793, 30623, 29131, 69869, 45835, 91755, 124545, 63525, 78773,
    66499, 96909, 86889, 43275, 39945, 12009, 84995, 129783, 2413, 112665, 90451, 111355, 99693, 15477,
    121683, 78187, 130847, 16439, 36745, 55517, 14861, 13093, 43069, 25283, 261, 61989, 40385, 43941, 48863,
    34563, 80287, 35343, 70795, 47965,
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
