//! Full-batch gradient descent against its definition, for every registered family; threads and storage change nothing.

use didact_families::Family;
use didact_families::Model;
use didact_families::multi_index::MultiIndex;
use didact_math::linalg::{Mat, dot};
use didact_math::random::{RngAddress, Stream};
use didact_model::constraint::{Constraint, Retraction};
use didact_model::loss::Loss;
use didact_model::observable;
use didact_model::start::{FrozenRows, RandomRows, RowLaw};
use didact_model::{
    Clock, EndState, Engine, Kick, LocalRule, NoFamily, NoMonitor, Overlaps, Problem, Record, Sample,
    Samples, Spectrum, Training, Trajectory,
};
use didact_simulate::FullBatch;
use didact_simulate::full_batch::{InputStorage, Precision, Trainer};
use std::sync::Arc;

fn problem(rule: Arc<dyn LocalRule>, dimension: u64, training: Training, scalars: Vec<f64>) -> Problem {
    let frozen = rule.shape().frozen;
    let start = RandomRows {
        trained: RowLaw::Sphere { radius: 1.0 },
        frozen: FrozenRows::Gram(Mat::identity(frozen)),
        scalars,
    };
    Problem {
        rule,
        about: Arc::new(NoFamily),
        spectrum: Spectrum::isotropic(),
        dimension: Some(dimension),
        training,
        start: Arc::new(start),
        clock: Clock::Steps,
    }
}

fn phase_retrieval(dimension: u64, ratio: f64, rate: f64) -> Problem {
    let spec = MultiIndex::single("gelu", "z^2", Loss::PseudoHuber { kappa: 1.0 });
    problem(spec.rule().unwrap(), dimension, Training::full_batch(rate, ratio), vec![])
}

fn normals(lane: u16, count: usize) -> Vec<f64> {
    let mut out = vec![0.0; count];
    Stream::at(RngAddress { seed: 4, replica: 0, step: 0, lane }).fill_normal(&mut out);
    out
}

/// The definition: w_i − (η/n) Σ kick_i x, a_j − (η/n) Σ ∂loss/∂a_j, and the mean loss before.
fn plain_step(problem: &Problem, weights: &mut Mat, scalars: &mut [f64], x: &[f64]) -> f64 {
    let shape = problem.rule.shape();
    let (d, p) = (weights.cols(), shape.rows());
    let n = x.len() / d;
    let rate = problem.training.learning_rate / n as f64;
    let mut gradient = Mat::zeros(shape.trained, d);
    let (mut kick, mut loss, mut slopes) = (Kick::new(shape), 0.0, vec![0.0; scalars.len()]);
    for x in x.chunks_exact(d) {
        let fields: Vec<f64> = (0..p).map(|i| dot(weights.row(i), x)).collect();
        let sample = Sample { fields: &fields, scalars, noise: 0.0 };
        loss += problem.rule.loss(&sample) / n as f64;
        problem.rule.kick(&sample, &mut kick);
        for (i, c) in kick.rows.iter().enumerate() {
            gradient.row_mut(i).iter_mut().zip(x).for_each(|(g, x)| *g += c * x);
        }
        slopes.iter_mut().zip(&kick.scalars).for_each(|(s, k)| *s += k);
    }
    for i in 0..shape.trained {
        weights.row_mut(i).iter_mut().zip(gradient.row(i)).for_each(|(w, g)| *w -= rate * g);
    }
    scalars.iter_mut().zip(&slopes).for_each(|(a, s)| *a -= rate * s);
    loss
}

#[test]
fn every_family_descends_along_the_mean_of_its_kicks() {
    // 1027 samples: several pieces, a last block that is not whole, and three rows that make no four.
    let (d, n) = (37, 1027);
    for model in Model::examples() {
        let (rule, start) = (model.rule().unwrap(), model.starting_scalars());
        let training =
            Training { samples: Some(Samples::Count(n as u64)), ..Training::full_batch(0.01, 1.0) };
        let problem = problem(rule, d as u64, training, start.clone());
        let p = problem.rule.shape().rows();
        let x = normals(1, n * d);
        let mut weights = Mat::from_fn(p, d, |i, j| 0.08 * normals(2, p * d)[i * d + j]);
        let mut scalars = start.clone();
        let mut fast =
            Trainer::new(&problem, weights.clone(), start.clone(), &x, Precision::Double, false).unwrap();
        let mut single =
            Trainer::new(&problem, weights.clone(), start, &x, Precision::Single, false).unwrap();
        for _ in 0..3 {
            let trained = fast.train_loss();
            let loss = plain_step(&problem, &mut weights, &mut scalars, &x);
            assert!((trained - loss).abs() < 1e-12 * (1.0 + loss), "{model:?}: loss {trained} {loss}");
            fast.step();
            single.step();
        }
        let gram = weights.gram();
        let compare = |overlaps: &Overlaps, tolerance: f64| {
            for (a, b) in overlaps.blocks[0].as_slice().iter().zip(gram.as_slice()) {
                assert!((a - b).abs() < tolerance * (1.0 + b.abs()), "{model:?}: {a} {b}");
            }
            for (a, b) in overlaps.scalars.iter().zip(&scalars) {
                assert!((a - b).abs() < tolerance, "{model:?}: scalar {a} {b}");
            }
        };
        compare(&fast.overlaps(), 1e-12);
        // Inputs and fields of 24 bits.
        compare(&single.overlaps(), 2e-5);
    }
}

fn run(engine: FullBatch, problem: &Problem, replicas: u32) -> (Trajectory, Vec<EndState>) {
    let observe = |name: &str| observable::parse(name, problem).unwrap();
    let observables = ["train_loss", "loss", "Q[0,0]", "R[0,0]"].into_iter().flat_map(observe).collect();
    let record = Record { replicas, seed: 5, ..Record::new(vec![0.0, 1.0, 6.0], observables) };
    engine.run_with_end_states(problem, &record, &NoMonitor).unwrap()
}

fn rows((trajectory, _): &(Trajectory, Vec<EndState>)) -> Vec<Vec<Vec<f64>>> {
    (0..trajectory.replicas()).map(|replica| trajectory.rows(replica)).collect()
}

#[test]
fn threads_order_and_storage_change_no_bit() {
    let problem = phase_retrieval(60, 20.0, 0.5);
    for precision in [Precision::Double, Precision::Single] {
        let engine = |storage| FullBatch { precision, storage };
        let known = rows(&run(engine(InputStorage::Keep), &problem, 2));
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            for replicas in [1, 2] {
                let again = rows(&pool.install(|| run(engine(InputStorage::Keep), &problem, replicas)));
                assert_eq!(again[..], known[..replicas as usize]);
            }
        }
        let drawn = rows(&run(engine(InputStorage::Draw), &problem, 1));
        // Drawn inputs take the unfused loop: another order of additions within a piece, nothing else.
        for (a, b) in drawn[0].iter().flatten().zip(known[0].iter().flatten()) {
            let tolerance = if precision == Precision::Double { 1e-12 } else { 1e-5 };
            assert!((a - b).abs() < tolerance, "{a} {b}");
        }
    }
}

#[test]
fn twin_units_with_twice_the_step_are_one_unit() {
    // m = 2 with equal (a, b) and equal rows: the gradient of each carries 1/m.
    let (d, n) = (25, 100);
    let one = MultiIndex::single("gelu", "z^2", Loss::LogCosh);
    let two = MultiIndex { students: 2, ..one.clone() };
    let samples = Some(Samples::Count(n as u64));
    let alone = problem(
        one.rule().unwrap(),
        d as u64,
        Training { samples, ..Training::full_batch(0.4, 1.0) },
        vec![],
    );
    let twins = problem(
        two.rule().unwrap(),
        d as u64,
        Training { samples, ..Training::full_batch(0.8, 1.0) },
        vec![],
    );
    let (x, w) = (normals(1, n * d), normals(2, 2 * d));
    let row = |i: usize, j: usize| 0.2 * w[i * d + j];
    let single = Mat::from_fn(2, d, row);
    let double = Mat::from_fn(3, d, |i, j| row(i.saturating_sub(1), j));
    let mut alone = Trainer::new(&alone, single, vec![], &x, Precision::Double, false).unwrap();
    let mut twins = Trainer::new(&twins, double, vec![], &x, Precision::Double, false).unwrap();
    for _ in 0..20 {
        alone.step();
        twins.step();
    }
    let (a, b) = (alone.overlaps(), twins.overlaps());
    assert!((a.blocks[0][(0, 0)] - b.blocks[0][(0, 0)]).abs() < 1e-12);
    assert!((a.blocks[0][(0, 1)] - b.blocks[0][(1, 2)]).abs() < 1e-12);
}

/// x ← x − 2 u (u·x) for every row: a reflection, hence a rotation of everything.
fn reflect(rows: &mut [f64], u: &[f64]) {
    for x in rows.chunks_exact_mut(u.len()) {
        let along = 2.0 * dot(x, u) / dot(u, u);
        x.iter_mut().zip(u).for_each(|(x, u)| *x -= along * u);
    }
}

#[test]
fn rotating_inputs_and_rows_and_permuting_samples_changes_nothing() {
    // So the law of a run depends on the start through its overlaps alone.
    let (d, n) = (30, 240);
    let spec = MultiIndex {
        students: 2,
        directions: 2,
        weights: Some(vec![1.5, -1.0]),
        ..MultiIndex::single("gelu", "z1+z2+z1*z2", Loss::PseudoHuber { kappa: 1.0 })
    };
    let samples = Some(Samples::Count(n as u64));
    let training = Training { samples, ..Training::full_batch(0.8, 1.0) };
    let problem = problem(spec.rule().unwrap(), d as u64, training, vec![]);
    let (x, w) = (normals(1, n * d), normals(2, 4 * d));
    let start = Mat::from_fn(4, d, |i, j| 0.2 * w[i * d + j]);
    let (mut turned, mut rows) = (x.clone(), start.clone());
    for u in normals(3, 3 * d).chunks_exact(d) {
        reflect(&mut turned, u);
        reflect(rows.as_mut_slice(), u);
    }
    // Sample i becomes sample 7 i mod n.
    let moved: Vec<f64> = (0..n).flat_map(|i| turned[(7 * i % n) * d..][..d].to_vec()).collect();
    let mut plain = Trainer::new(&problem, start, vec![], &x, Precision::Double, false).unwrap();
    let mut other = Trainer::new(&problem, rows, vec![], &moved, Precision::Double, false).unwrap();
    for _ in 0..15 {
        plain.step();
        other.step();
    }
    assert!((plain.train_loss() - other.train_loss()).abs() < 1e-12);
    let (a, b) = (plain.overlaps(), other.overlaps());
    for (a, b) in a.blocks[0].as_slice().iter().zip(b.blocks[0].as_slice()) {
        assert!((a - b).abs() < 1e-11, "{a} {b}");
    }
}

#[test]
fn every_constraint_is_kept() {
    let barred = Constraint { off_own: true, ..Constraint::none() };
    let spheres = Constraint {
        sphere: Some(Retraction::Tangent),
        scalar_sphere: Some(Retraction::Euclidean),
        ..Constraint::none()
    };
    let mut seen = 0;
    for model in Model::examples() {
        let (rule, scalars) = (model.rule().unwrap(), model.starting_scalars());
        let (shape, own) = (rule.shape(), rule.shape().own_frozen);
        // Before and after six steps.
        let ends = |constraint: Constraint| {
            // Steep units (He_3) leave every reasonable range with larger steps.
            let training = Training { constraint, ..Training::full_batch(0.002, 6.0) };
            let problem = problem(rule.clone(), 40, training, scalars.clone());
            let first = problem.start.draw(&problem.setting(5, 0)).unwrap();
            (first, run(FullBatch::default(), &problem, 1).1.remove(0).overlaps)
        };
        if shape.trained == 0 || own == 0 {
            continue;
        }
        seen += 1;
        let (first, last) = ends(barred);
        for i in 0..shape.trained {
            for n in shape.trained..shape.trained + own {
                let (a, b) = (first.blocks[0][(i, n)], last.blocks[0][(i, n)]);
                // Rounding is that of the gradient, which moves the row itself.
                assert!((a - b).abs() < 1e-12 * (1.0 + last.blocks[0][(i, i)]), "{model:?}: {a} {b}");
            }
        }
        let (first, last) = ends(spheres);
        for i in 0..shape.trained {
            assert!((first.blocks[0][(i, i)] - last.blocks[0][(i, i)]).abs() < 1e-12, "{model:?}");
        }
        let length = |overlaps: &Overlaps| dot(&overlaps.scalars, &overlaps.scalars);
        assert!((length(&first) - length(&last)).abs() < 1e-12, "{model:?}");
    }
    assert!(seen > 0, "no example has frozen rows of its own");
}

#[test]
fn far_above_threshold_the_direction_is_found_and_far_below_it_is_not() {
    // d = 100: random overlaps are 0.1; δ*(t) grows from 1.7 to about 7 for GeLU and pseudo-Huber(1)
    // (docs/derivations/gd-phase-transitions.md#s6).
    let last = |ratio: f64| {
        let problem = phase_retrieval(100, ratio, 1.0);
        let observables = observable::parse("abs(alignment[0,0])", &problem).unwrap();
        let record = Record { replicas: 4, seed: 2, ..Record::new(vec![0.0, 400.0], observables) };
        let trajectory = FullBatch::default().run(&problem, &record, &NoMonitor).unwrap();
        trajectory.columns[0].curves.iter().map(|curve| curve[1]).collect::<Vec<f64>>()
    };
    assert!(last(20.0).iter().all(|c| *c > 0.9), "{:?}", last(20.0));
    assert!(last(1.0).iter().all(|c| *c < 0.5), "{:?}", last(1.0));
}
