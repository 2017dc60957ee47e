//! W4 and W5: phase retrieval with one GeLU neuron and pseudo-Huber loss, by full-batch gradient descent (W4) and by dynamical
//! mean-field theory (W5).

use crate::harness::{Times, best_of, best_of_3, report, timed};
use crate::portable;
use didact_families::Family;
use didact_families::multi_index::MultiIndex;
use didact_math::linalg::{Mat, cholesky_psd, dot};
use didact_math::simd::prefetch;
use didact_model::loss::Loss;
use didact_model::start::Given;
use didact_model::{Clock, Overlaps, Problem, Samples, Spectrum, Training};
use didact_simulate::full_batch::{Precision, Trainer};
use didact_theory::dmft::{Equations, Points, Process, Sampling};
use rayon::prelude::*;
use serde_json::json;
use std::sync::Arc;

/// Learning rate η (`eta`).
const RATE: f64 = 0.5;

fn spec() -> MultiIndex {
    MultiIndex::single("gelu", "z^2", Loss::PseudoHuber { kappa: 1.0 })
}

fn overlaps() -> Overlaps {
    let rule = spec().rule().expect("a rule");
    Overlaps::new(rule.shape(), vec![Mat::identity(2)], vec![], 1).expect("orthonormal rows")
}

fn unit(seed: u64, d: usize) -> Vec<f64> {
    let v = portable::normals(seed, d);
    let length = dot(&v, &v).sqrt();
    v.iter().map(|x| x / length).collect()
}

/// Sums `numbers` repeatedly until `bytes` bytes are read, to measure the speed of memory. Cache lines are prefetched `ahead`
/// numbers before they are read; with 0 this is left to the processor.
fn read(numbers: &[f64], bytes: usize, ahead: usize) -> f64 {
    let sum = |part: &[f64]| {
        let mut lanes = [0.0; 32];
        for chunk in part.chunks_exact(32) {
            if ahead > 0 {
                for line in (0..32).step_by(8) {
                    prefetch(chunk.as_ptr().wrapping_add(ahead + line));
                }
            }
            for (lane, x) in lanes.iter_mut().zip(chunk) {
                *lane += x;
            }
        }
        lanes.iter().sum::<f64>()
    };
    let part = numbers.len().div_ceil(rayon::current_num_threads());
    (0..bytes / (8 * numbers.len())).map(|_| numbers.par_chunks(part).map(sum).sum::<f64>()).sum()
}

/// W4: d = 1000, n = 8000, 200 steps, in double and single precision. Reports also the speed at which X is read, compared with
/// the speed of memory.
pub(crate) fn full_batch(threads: usize) {
    const D: usize = 1000;
    const N: usize = 8000;
    const STEPS: usize = 200;
    const ROUNDS: usize = 4;
    let numbers = vec![1.0_f64; 64 << 20];
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
    let x = portable::normals(4, N * D);
    let weights = Mat::from_rows(&[unit(42, D), unit(41, D)]).expect("two rows");
    let problem = Problem {
        rule: spec().rule().expect("a rule"),
        about: spec().about(),
        spectrum: Spectrum::isotropic(),
        dimension: Some(D as u64),
        training: Training { samples: Some(Samples::Count(N as u64)), ..Training::full_batch(RATE, 1.0) },
        start: Arc::new(Given(overlaps())),
        clock: Clock::Steps,
    };
    let new_trainer =
        |precision| Trainer::new(&problem, weights.clone(), vec![], &x, precision, true).expect("a trainer");
    for (precision, name, bytes, tolerance) in
        [(Precision::Double, "f64", 8, 1e-9), (Precision::Single, "f32", 4, 1e-5)]
    {
        // The trainers are made beforehand, so that copying X is not timed.
        let mut fresh: Vec<Trainer> = (0..ROUNDS).map(|_| new_trainer(precision)).collect();
        let bytes = N * D * bytes * STEPS;
        // Training and reading of as many bytes alternate, so that other load of the machine affects both.
        let mut best = None;
        let mut fastest_read = f64::INFINITY;
        while let Some(mut trainer) = fresh.pop() {
            let (times, ()) = timed(|| pool.install(|| (0..STEPS).for_each(|_| trainer.step())));
            if best.as_ref().is_none_or(|(least, _): &(Times, Trainer)| times.wall < least.wall) {
                best = Some((times, trainer));
            }
            for ahead in [0, 128] {
                let (times, total) = timed(|| pool.install(|| read(&numbers, bytes, ahead)));
                assert!(total > 0.0);
                fastest_read = fastest_read.min(times.wall);
            }
        }
        let (times, trained) = best.expect("at least one round");
        let overlaps = trained.overlaps();
        let (square, cosine) = (overlaps.blocks[0][(0, 0)], overlaps.blocks[0][(0, 1)]);
        let loss = pool.install(move || trained.train_loss());
        let right = |got: f64, expected: f64| (got / expected - 1.0).abs() < tolerance;
        let ok =
            right(loss, 0.3698972299535) && right(square, 2.6328158169512) && right(cosine, -1.5871241084450);
        let rate = |seconds: f64| bytes as f64 / seconds / 1e9;
        let work = json!({"d": D, "n": N, "steps": STEPS, "precision": name, "threads": threads,
                          "X_GBps": rate(times.wall), "read_GBps": rate(fastest_read),
                          "share": fastest_read / times.wall});
        let result = json!({"train": loss, "norm2": square, "overlap": cosine});
        report("W4", &format!("didact full-batch, {name}"), times, &work, result, ok);
    }
}

/// Returns the sample points of W5: quasi-random numbers mapped to normals by Box-Muller, whose rows are then made exactly
/// uncorrelated with unit variance, in their order. Row 0 is the field v of the frozen row, the others are innovations.
fn points(n: usize, rows: usize) -> Vec<Vec<f64>> {
    let primes = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61];
    let half = rows / 2;
    let uniform = |k: usize, i: usize| (0.5 + i as f64 * f64::from(primes[k]).sqrt().fract()).fract();
    let mut table = vec![vec![0.0; n]; rows];
    for j in 0..half {
        for i in 1..=n {
            let radius = (-2.0 * (1.0 - uniform(2 * j, i)).ln()).sqrt();
            let (sine, cosine) = (std::f64::consts::TAU * uniform(2 * j + 1, i)).sin_cos();
            table[j][i - 1] = radius * cosine;
            table[half + j][i - 1] = radius * sine;
        }
    }
    for row in &mut table {
        let mean = row.iter().sum::<f64>() / n as f64;
        row.iter_mut().for_each(|z| *z -= mean);
    }
    let covariance = Mat::from_fn(rows, rows, |i, j| dot(&table[i], &table[j]) / n as f64);
    let lower = cholesky_psd(&covariance).expect("a covariance");
    for j in 0..rows {
        let (done, rest) = table.split_at_mut(j);
        for (k, other) in done.iter().enumerate() {
            rest[0].iter_mut().zip(other).for_each(|(z, o)| *z -= lower[(j, k)] * o);
        }
        rest[0].iter_mut().for_each(|z| *z /= lower[(j, j)]);
    }
    table
}

/// W5: δ = 8 (`delta`), T = 16 steps, N = 65536 points.
pub(crate) fn mean_field(threads: usize) {
    const N: usize = 65_536;
    const T: usize = 16;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
    let equations = Equations::new(spec().rule().expect("a rule"), RATE, 8.0, &overlaps()).hard_only();
    let mut table = points(N, T + 2);
    // Row 1 is the label noise, which is zero here.
    table.insert(1, vec![0.0; N]);
    let mut points = Points::given(&table, 1, 1);
    let (times, found) = best_of_3(|| {
        pool.install(|| {
            let mut process = Process::new(&equations, &mut points);
            for _ in 0..T {
                assert!(process.advance(), "no divergence");
            }
            assert!(process.advance_and_measure(), "no divergence");
            let ((train, test), k) = (process.losses(), &process.kernels);
            let at = |m: &Mat| m[(0, 0)];
            [
                train,
                test,
                at(&k.weights[T][T]),
                at(&k.weights[T][0]),
                at(&k.weights_response[T][0]),
                at(&k.kicks_response[T][T]),
                at(&k.kicks_response[T][0]),
                at(&k.kicks[T][T]),
            ]
        })
    });
    let expected =
        [0.51148675, 0.61523785, 1.08623135, 0.70232090, 0.68593884, 0.18566990, -0.00382213, 0.15746869];
    let ok = found.iter().zip(expected).all(|(got, want)| (got - want).abs() < 1e-7);
    let work = json!({"N": N, "T": T, "precision": "f64", "threads": threads});
    let names = ["train", "test", "C(T,T)", "C(T,0)", "R_theta(T,0)", "R_l(T,T)", "R_l(T,0)", "C_l(T,T)"];
    let result = serde_json::Value::Object(
        names.iter().zip(found).map(|(n, v)| ((*n).to_string(), json!(v))).collect(),
    );
    report("W5", "didact dmft", times, &work, result, ok);
}

/// Prints nanoseconds per sample and step, on one thread, of the mean-field theory of other rules, which use other code paths.
pub(crate) fn other_rules() {
    let single = MultiIndex::single;
    let huber = Loss::PseudoHuber { kappa: 1.0 };
    let three = MultiIndex { students: 3, directions: 2, ..single("gelu", "z1+z2+z1*z2", huber) };
    let cases = [
        ("three gelu units, z1+z2+z1*z2, pseudo-Huber", three, 8),
        ("tanh unit, z, log cosh", single("tanh", "z", Loss::LogCosh), 16),
        ("relu unit, z^2, square", single("relu", "z^2", Loss::HALF_SQUARE), 16),
    ];
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
    for (name, spec, steps) in cases {
        let rule = spec.rule().expect("a rule");
        let shape = rule.shape();
        let start =
            Overlaps::new(shape, vec![Mat::identity(shape.rows())], vec![], 1).expect("orthonormal rows");
        let equations = Equations::new(rule, 0.1, 8.0, &start);
        let sampling = Sampling { samples: 16_384, ..Sampling::default() };
        let mut points = Points::sobol(&sampling, 0, shape.frozen, shape.trained, steps + 1);
        let (times, losses) = best_of(12, || {
            pool.install(|| {
                let mut process = Process::new(&equations, &mut points);
                let went = (0..steps).all(|_| process.advance()) && process.advance_and_measure();
                went.then(|| process.losses())
            })
        });
        let nanoseconds = 1e9 * times.wall / sampling.samples as f64 / (steps + 1) as f64;
        let (train, test) = losses.unwrap_or((f64::NAN, f64::NAN));
        let result = json!({"ns_per_sample_and_step": nanoseconds, "train": train, "test": test});
        let work = json!({"N": sampling.samples, "T": steps, "precision": "f64", "threads": 1});
        report("mean-field", name, times, &work, result, losses.is_some());
    }
}
