//! Times the vectorised functions and the samplers, then tests the law of many normals: `cargo run --release --example normals -- [millions]`.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use didact_math::random::statistics::Moments;
use didact_math::random::{RngAddress, Stream};
use didact_math::simd::{self, Path};

const COUNT: usize = 2048;

/// Prints the best time per number over many short repetitions, because interruptions only make times longer.
fn time(name: &str, numbers: usize, mut work: impl FnMut()) {
    let best = (0..2000)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min);
    println!("  {name:<24} {:6.2} ns", best * 1e9 / numbers as f64);
}

fn stream(replica: u32, step: u64) -> Stream {
    Stream::at(RngAddress { seed: 1, replica, step, lane: 0 })
}

fn timings(path: Path) {
    simd::choose(path);
    println!("{:?}, per number:", simd::path());
    let x: Vec<f64> = (0..COUNT).map(|i| (i as f64 + 0.5) / COUNT as f64).collect();
    let (mut y, mut z, mut single) = (vec![0.0; COUNT], vec![0.0; COUNT], vec![0.0_f32; COUNT]);
    time("exp", COUNT, || simd::exp(&x, &mut y));
    time("ln", COUNT, || simd::ln(&x, &mut y));
    time("sin_cos_turns (two)", COUNT, || simd::sin_cos_turns(&x, &mut y, &mut z));
    time("asin", COUNT, || simd::asin(&x, &mut y));
    time("erf", COUNT, || simd::erf(&x, &mut y));
    time("exp_minus_square", COUNT, || simd::exp_minus_square(&x, &mut y));
    time("uniform", COUNT, || stream(0, 0).fill_uniform(&mut y));
    time("normal", COUNT, || stream(0, 0).fill_normal(&mut y));
    time("normal, 100 at a time", 100, || stream(0, 0).fill_normal(&mut y[..100]));
    time("normal, one by one", COUNT, || {
        let mut stream = stream(0, 0);
        y.fill_with(|| stream.normal());
    });
    time("normal, f32", COUNT, || stream(0, 0).fill_normal_f32(&mut single));
    time("chi-square, 10 dof", COUNT, || stream(0, 0).fill_chi_square(10.0, &mut y));
    time("chi-square, 1000 dof", COUNT, || stream(0, 0).fill_chi_square(1e3, &mut y));
    time("chi-square, one by one", COUNT, || {
        let mut stream = stream(0, 0);
        y.fill_with(|| stream.chi_square(1e3));
    });
}

/// Prints moments and two-sided tail probabilities of many normals, and how many standard errors they differ from the exact
/// values.
fn test_normals(millions: u64) {
    const LEVELS: [f64; 5] = [1.0, 2.0, 3.0, 4.0, 5.0];
    let mut moments = [Moments::new(); 8];
    let mut beyond = [0_u64; LEVELS.len()];
    let mut values = vec![0.0; 1 << 20];
    let batches = (millions * 1_000_000).div_ceil(1 << 20);
    for step in 0..batches {
        stream(1, step).fill_normal(&mut values);
        let mut sums = [0.0; 8];
        for &z in &values {
            let mut power = 1.0;
            for sum in &mut sums {
                power *= z;
                *sum += power;
            }
            for (count, level) in beyond.iter_mut().zip(LEVELS) {
                *count += u64::from(z.abs() > level);
            }
        }
        for (moment, sum) in moments.iter_mut().zip(sums) {
            moment.push(sum / values.len() as f64);
        }
    }
    let total = (batches << 20) as f64;
    println!("{total:.3e} normals:");
    for (i, (m, exact)) in moments.iter().zip([0.0, 1.0, 0.0, 3.0, 0.0, 15.0, 0.0, 105.0]).enumerate() {
        let errors = (m.mean() - exact) / m.standard_error();
        println!("  moment {}    {:12.8}  {errors:+.2} standard errors", i + 1, m.mean());
    }
    for (count, level) in beyond.iter().zip(LEVELS) {
        let p = libm::erfc(level * std::f64::consts::FRAC_1_SQRT_2);
        let errors = (*count as f64 - total * p) / (total * p).sqrt();
        println!("  P(|z| > {level})  {:.6e}  {errors:+.2} standard errors", *count as f64 / total);
    }
}

fn main() {
    let millions = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100);
    timings(Path::Portable);
    timings(Path::Avx2);
    test_normals(millions);
}
