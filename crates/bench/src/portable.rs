//! Normal variables that are easy to reproduce in every language, so that other programs can use the same inputs: SplitMix64 of
//! a counter, and the Box-Muller map.

/// The first `count` normals of the stream of a seed.
pub(crate) fn normals(seed: u64, count: usize) -> Vec<f64> {
    let uniform = |j: u64| {
        let state = seed
            .wrapping_mul(0xD134_2543_DE82_EF95)
            .wrapping_add((j + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        ((mix(state) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    };
    let normal =
        |k: u64| (-2.0 * uniform(2 * k).ln()).sqrt() * (std::f64::consts::TAU * uniform(2 * k + 1)).cos();
    (0..count as u64).map(normal).collect()
}

/// The output function of SplitMix64 (G. L. Steele, D. Lea and C. H. Flood 2014).
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
