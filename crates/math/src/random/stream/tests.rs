use super::*;
use crate::random::statistics::{Moments, one_sample};
use crate::simd::{Path, on_path};
use proptest::prelude::*;

fn address(step: u64) -> RngAddress {
    RngAddress { seed: 0x0123_4567_89ab_cdef, replica: 3, step, lane: 2 }
}

fn normals(step: u64, count: usize) -> Vec<f64> {
    let mut out = vec![0.0; count];
    Stream::at(address(step)).fill_normal(&mut out);
    out
}

fn normal_distribution(z: f64) -> f64 {
    0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2)
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn counter_words_and_key_are_the_documented_ones() {
    let at = RngAddress { seed: 0x1111_2222_3333_4444, replica: 9, step: (5 << 32) | 6, lane: 7 };
    let key = [0x3333_4444, 0x1111_2222];
    let mut stream = Stream::at(at);
    let words: Vec<u32> = (0..8).map(|_| stream.next_u32()).collect();
    assert_eq!(words[..4], philox([0, 7 | (5 << 16), 6, 9], key));
    assert_eq!(words[4..], philox([1, 7 | (5 << 16), 6, 9], key));
}

#[test]
#[should_panic(expected = "not below 2^48")]
fn a_step_above_the_limit_is_refused() {
    Stream::at(address(1 << 48));
}

#[test]
#[should_panic(expected = "2^32 blocks")]
fn a_stream_panics_rather_than_repeat_itself() {
    let mut stream = Stream::at(address(0));
    stream.take_blocks((1 << 32) - 1);
    stream.take_blocks(2);
}

#[test]
fn both_instruction_sets_and_the_reference_give_the_same_bits() {
    let expected = normal_reference(address(1), 5000);
    for path in [Path::Portable, Path::Avx2] {
        let got = on_path(path, || normals(1, 5000));
        assert_eq!(bits(&got), bits(&expected), "{path:?}");
    }
}

proptest! {
    #[test]
    fn normals_do_not_depend_on_the_lengths_of_the_calls(
        lengths in prop::collection::vec(0usize..150, 1..12), step in 0u64..1 << 48,
    ) {
        let mut stream = Stream::at(address(step));
        let mut got = Vec::new();
        for length in lengths {
            let mut part = vec![0.0; length];
            stream.fill_normal(&mut part);
            got.extend(part);
            got.push(stream.normal());
        }
        prop_assert_eq!(bits(&got), bits(&normal_reference(address(step), got.len())));
    }

    #[test]
    fn uniforms_do_not_depend_on_the_lengths_of_the_calls(
        lengths in prop::collection::vec(0usize..300, 1..8), words in 0usize..6,
    ) {
        let (mut batched, mut single) = (Stream::at(address(0)), Stream::at(address(0)));
        for length in lengths {
            for _ in 0..words {
                prop_assert_eq!(batched.next_u32(), single.next_u32());
            }
            let mut part = vec![0.0; length];
            batched.fill_uniform(&mut part);
            for x in part {
                prop_assert_eq!(x.to_bits(), single.uniform().to_bits());
            }
        }
    }
}

#[test]
fn four_threads_read_the_same_numbers_as_one_thread() {
    let steps: Vec<u64> = (0..64).collect();
    let alone: Vec<Vec<f64>> = steps.iter().map(|&step| normals(step, 77)).collect();
    let shared: Vec<Vec<f64>> = std::thread::scope(|scope| {
        let workers: Vec<_> = steps
            .chunks(16)
            .map(|part| {
                scope
                    .spawn(move || part.iter().rev().map(|&step| normals(step, 77)).rev().collect::<Vec<_>>())
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker finishes")).collect()
    });
    assert_eq!(alone, shared);
}

#[test]
fn single_precision_normals_follow_their_definition_at_every_length() {
    let mut long = vec![0.0_f32; 1000];
    Stream::at(address(4)).fill_normal_f32(&mut long);
    for path in [Path::Portable, Path::Avx2] {
        for length in [1, 31, 32, 33, 500] {
            let mut short = vec![0.0_f32; length];
            on_path(path, || Stream::at(address(4)).fill_normal_f32(&mut short));
            assert_eq!(short, long[..length], "{path:?}");
        }
    }
    let mut counter = address(4).counter();
    for group in long.chunks_exact(NORMALS_PER_GROUP) {
        for i in 0..BLOCKS_PER_GROUP {
            let [(a, b), (c, d)] = normal_f32::pairs_of_block(philox(counter, address(4).key()));
            assert_eq!([a, b, c, d], [0, 1, 2, 3].map(|part| group[part * BLOCKS_PER_GROUP + i]));
            counter[0] += 1;
        }
    }
}

/// Asserts E z^{2k} = (2k−1)!! up to order 8, odd moments 0, and the tail probabilities up to 4.5 σ, within five standard
/// errors.
fn assert_standard_normal(values: &[f64]) {
    let count = values.len() as f64;
    let expected = [0.0, 1.0, 0.0, 3.0, 0.0, 15.0, 0.0, 105.0];
    for order in 1..=8 {
        let m: Moments = values.iter().map(|z| z.powi(order)).collect();
        let z = (m.mean() - expected[order as usize - 1]) / m.standard_error();
        assert!(z.abs() < 5.0, "moment {order}: {} ({z} standard errors)", m.mean());
    }
    for level in [0.5, 1.0, 2.0, 3.0, 4.0, 4.5] {
        let p = normal_distribution(-level);
        for side in [1.0, -1.0] {
            let seen = values.iter().filter(|&&z| side * z > level).count() as f64;
            let z = (seen - count * p) / (count * p * (1.0 - p)).sqrt();
            assert!(z.abs() < 5.0, "tail {side}·{level}: {seen} of {} ({z} standard errors)", count * p);
        }
    }
    let p = one_sample(&mut values.to_vec(), normal_distribution).p_value;
    assert!(p > 1e-5, "Kolmogorov–Smirnov p = {p}");
}

#[test]
fn double_precision_normals_are_standard() {
    assert_standard_normal(&normals(10, 4_000_000));
}

#[test]
fn single_precision_normals_are_standard() {
    let mut values = vec![0.0_f32; 4_000_000];
    Stream::at(address(11)).fill_normal_f32(&mut values);
    assert_standard_normal(&values.into_iter().map(f64::from).collect::<Vec<_>>());
}

/// Products z_i z_{i+lag}, z_i² z_{i+lag}² − 1 and z_i³ z_{i+lag} have mean 0. Lag 8 pairs the cosine with the sine
/// of a pair, lag 16 the two pairs of a block, lag 32 blocks of neighbouring groups.
#[test]
fn normals_are_independent_of_their_neighbours() {
    let values = normals(12, 1_000_000);
    for lag in [1, 7, 8, 9, 16, 24, 32] {
        let mut m = [Moments::new(); 3];
        for (a, b) in values.iter().zip(&values[lag..]) {
            m[0].push(a * b);
            m[1].push(a * a * b * b - 1.0);
            m[2].push(a * a * a * b);
        }
        for (kind, m) in m.iter().enumerate() {
            assert!(m.mean().abs() < 5.0 * m.standard_error(), "lag {lag}, kind {kind}: {m:?}");
        }
    }
}

/// The angle of a pair is uniform: 4096 sectors, χ² within 5 standard deviations.
#[test]
fn directions_of_pairs_are_uniform() {
    let values = normals(13, 4_000_000);
    let mut sectors = [0_u32; 4096];
    for group in values.chunks_exact(NORMALS_PER_GROUP) {
        for i in (0..8).chain(16..24) {
            let turn = libm::atan2(group[i + 8], group[i]) / std::f64::consts::TAU + 0.5;
            sectors[((turn * 4096.0) as usize).min(4095)] += 1;
        }
    }
    let expected = 2_000_000.0 / 4096.0;
    let chi_square: f64 = sectors.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
    assert!((chi_square - 4095.0).abs() < 5.0 * (2.0 * 4095.0_f64).sqrt(), "{chi_square}");
}

#[test]
fn neighbouring_addresses_are_uncorrelated() {
    let base = address(100);
    let others = [
        RngAddress { step: 101, ..base },
        RngAddress { replica: 4, ..base },
        RngAddress { lane: 3, ..base },
        RngAddress { seed: base.seed + 1, ..base },
        RngAddress { step: base.step + (1 << 32), ..base },
    ];
    let read = |at| {
        let mut out = vec![0.0; 100_000];
        Stream::at(at).fill_normal(&mut out);
        out
    };
    let first = read(base);
    for other in others {
        let m: Moments = first.iter().zip(read(other)).map(|(a, b)| a * b).collect();
        assert!(m.mean().abs() < 5.0 * m.standard_error(), "{other:?}: {m:?}");
    }
}

#[test]
fn uniform_exponential_and_sign_have_their_laws() {
    let mut stream = Stream::at(address(20));
    let mut uniform = vec![0.0; 200_000];
    stream.fill_uniform(&mut uniform);
    assert!(uniform.iter().all(|&u| 0.0 < u && u < 1.0));
    assert!(one_sample(&mut uniform, |u| u).p_value > 1e-5);
    let mut exponential: Vec<f64> = (0..200_000).map(|_| stream.exponential()).collect();
    assert!(one_sample(&mut exponential, |x| 1.0 - (-x).exp()).p_value > 1e-5);
    let signs: Moments = (0..100_000).map(|_| stream.sign()).collect();
    assert!(signs.mean().abs() < 5.0 * signs.standard_error());
    assert_eq!((unit(0), unit(!0)), (f64::EPSILON / 2.0, 1.0 - f64::EPSILON / 2.0));
}

/// The 24 orders of four things are equally likely: χ²₂₃ within its 1e-6 quantile, 71.
#[test]
fn permutations_are_uniform() {
    let mut stream = Stream::at(address(21));
    let mut seen = std::collections::BTreeMap::new();
    for _ in 0..24_000 {
        *seen.entry(stream.permutation(4)).or_insert(0_u32) += 1;
    }
    assert_eq!(seen.len(), 24);
    let chi_square: f64 = seen.values().map(|&n| (f64::from(n) - 1000.0).powi(2) / 1000.0).sum();
    assert!(chi_square < 71.0, "{chi_square}");
    assert_eq!(stream.permutation(0), Vec::<usize>::new());
}
