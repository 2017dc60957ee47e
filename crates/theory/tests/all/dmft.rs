//! Dynamical mean-field theory against what is known in closed form, and its symmetries.

use didact_families::Family;
use didact_families::multi_index::MultiIndex;
use didact_math::linalg::{Mat, is_psd};
use didact_model::loss::Loss;
use didact_model::{LocalRule, Overlaps};
use didact_theory::dmft::{Equations, LinearDescent, Points, Process, Sampling};
use std::sync::Arc;

const HUBER: Loss = Loss::PseudoHuber { kappa: 1.0 };

/// Rows of length `length`, orthogonal to each other and to orthonormal frozen rows.
fn start(rule: &Arc<dyn LocalRule>, length: f64) -> Overlaps {
    let shape = rule.shape();
    let square = |i: usize| if i < shape.trained { length * length } else { 1.0 };
    let entry = |i: usize, j: usize| if i == j { square(i) } else { 0.0 };
    Overlaps::new(shape, vec![Mat::from_fn(shape.rows(), shape.rows(), entry)], vec![], 1).unwrap()
}

fn equations(spec: &MultiIndex, step: f64, ratio: f64) -> Equations {
    let rule = spec.rule().unwrap();
    Equations::new(rule.clone(), step, ratio, &start(&rule, 1.0))
}

fn run<'a>(equations: &'a Equations, points: &'a mut Points, steps: usize) -> Process<'a> {
    let mut process = Process::new(equations, points);
    for _ in 0..=steps {
        assert!(process.advance());
    }
    process
}

fn points(equations: &Equations, samples: usize, steps: usize, scramble: u32) -> Points {
    let shape = equations.shape();
    let sampling = Sampling { samples, ..Sampling::default() };
    Points::sobol(&sampling, scramble, shape.frozen, shape.trained, steps + 1)
}

/// The example with three units of docs/derivations/gd-phase-transitions.md#s4-5: k = 2, easy (1,1), hard (1,-1).
fn three_units() -> MultiIndex {
    MultiIndex {
        students: 3,
        directions: 2,
        weights: Some(vec![1.5, -1.0, 0.7]),
        biases: Some(vec![0.1, -0.3, 0.5]),
        ..MultiIndex::single("gelu", "z1+z2+z1*z2", HUBER)
    }
}

/// Whatever an earlier process has left in the memory of the points, also one with other derivatives.
#[test]
fn earlier_processes_on_the_same_points_change_no_number() {
    let spec = MultiIndex::single("gelu", "z^2", HUBER);
    let (easy, hard) = (equations(&spec, 0.5, 8.0), equations(&spec, 0.3, 4.0).hard_only());
    let noisy = Equations { label_noise: 0.5, ..equations(&spec, 0.3, 4.0) };
    let numbers = |process: &Process| {
        let last = process.kernels.kicks_response.last().unwrap();
        (process.losses(), last.iter().map(|m| m[(0, 0)]).collect::<Vec<_>>())
    };
    let fresh = points(&easy, 512, 3, 1);
    let mut used = fresh.clone();
    for equations in [&easy, &hard, &noisy, &hard, &easy] {
        let again = numbers(&run(equations, &mut used, 3));
        assert_eq!(again, numbers(&run(equations, &mut fresh.clone(), 3)));
    }
}

#[test]
fn losses_found_on_the_way_are_the_losses() {
    for (equations, steps) in [
        (equations(&MultiIndex::single("gelu", "z^2", HUBER), 0.5, 8.0).hard_only(), 3),
        (Equations { label_noise: 0.5, ..equations(&three_units(), 0.3, 4.0) }, 2),
    ] {
        let mut points = points(&equations, 2048, steps + 1, 0);
        let slow = run(&equations, &mut points, steps + 1).losses();
        let mut process = run(&equations, &mut points, steps);
        assert!(process.advance_and_measure());
        let fast = process.losses();
        assert!((fast.0 - slow.0).abs() < 1e-14 && (fast.1 - slow.1).abs() < 1e-14, "{fast:?} {slow:?}");
        assert!(fast.0 != fast.1);
    }
}

/// With W drawn by substitution in a covariance that is singular to working precision, the loss of these samples rose after
/// step 40, to 0.524 after 64 steps, and its digits depended on the order of additions.
#[test]
fn losses_fall_for_many_steps() {
    let equations = equations(&MultiIndex::single("gelu", "z^2", HUBER), 0.3, 6.0).hard_only();
    let mut points = points(&equations, 4096, 64, 1);
    let mut process = Process::new(&equations, &mut points);
    let mut last = f64::INFINITY;
    for t in 0..=64 {
        assert!(process.advance());
        let (train, _) = process.losses();
        assert!(train < last, "{last} before step {t}, {train} after it");
        last = train;
    }
    // Four times as many samples of another scramble give 0.4468; losses of 4096 samples scatter by 0.0012.
    assert!((last - 0.4468).abs() < 0.003, "{last}");
}

#[test]
fn a_linear_student_follows_marchenko_and_pastur_at_any_number_of_samples() {
    for (ratio, step, noise) in [(0.5, 0.2, 1.0), (2.0, 0.3, 0.5), (4.0, 0.5, 0.0)] {
        let base = equations(&MultiIndex::single("linear", "z", Loss::HALF_SQUARE), step, ratio);
        let equations = Equations { label_noise: noise, ..base };
        let mut points = points(&equations, 256, 8, 0);
        let mut process = Process::new(&equations, &mut points);
        let law = LinearDescent { ratio, step, noise_variance: noise * noise, start_length: 1.0 };
        for t in 0..=8 {
            assert!(process.advance());
            let (expected, (train, test)) = (law.at(t), process.losses());
            let kernels = &process.kernels;
            for (got, expected) in [
                (kernels.weights_frozen[t][(0, 0)], expected.overlap),
                (kernels.weights[t][t][(0, 0)], expected.squared_length),
                (train, expected.train),
                (test, expected.test),
            ] {
                assert!((got - expected).abs() < 1e-9, "delta {ratio}, t {t}: {got} {expected}");
            }
            for s in 0..t {
                let got = kernels.weights_response[t][s][(0, 0)];
                assert!((got - law.response(t, s)).abs() < 1e-9, "{got} {}", law.response(t, s));
            }
        }
    }
}

#[test]
fn a_longer_horizon_changes_no_earlier_kernel() {
    let equations = equations(&three_units(), 1.5, 4.0);
    let (mut short, mut long) = (points(&equations, 1024, 3, 1), points(&equations, 1024, 7, 1));
    let (a, b) = (run(&equations, &mut short, 3).kernels, run(&equations, &mut long, 7).kernels);
    assert_eq!(a.weights[..], b.weights[..4]);
    assert_eq!(a.kicks[..], b.kicks[..4]);
    assert_eq!(a.kicks_response[..], b.kicks_response[..4]);
    assert_eq!(a.weights_response[..], b.weights_response[..4]);
}

#[test]
fn kernels_are_covariances_and_responses_start_at_one() {
    let equations = equations(&three_units(), 1.5, 4.0);
    let mut points = points(&equations, 2048, 5, 0);
    let kernels = run(&equations, &mut points, 5).kernels;
    let joint = |block: &dyn Fn(usize, usize) -> Mat| {
        let blocks: Vec<Vec<Mat>> = (0..6).map(|t| (0..6).map(|s| block(t, s)).collect()).collect();
        Mat::from_fn(18, 18, |i, j| blocks[i / 3][j / 3][(i % 3, j % 3)])
    };
    assert!(is_psd(&joint(&|t, s| kernels.weight_covariance(t, s))));
    for t in 0..6 {
        assert!(is_psd(&kernels.weights[t][t]) && kernels.weights[t][t].asymmetry() < 1e-12);
        assert!(is_psd(&kernels.kicks[t][t]));
        if t > 0 {
            assert_eq!(kernels.weights_response[t][t - 1], Mat::identity(3));
        }
    }
}

#[test]
fn the_mean_response_at_the_start_obeys_steins_lemma() {
    // E[φ(0) W(0)] = R_ℓ(0,0) C_θ(0,0) (docs/derivations/gd-phase-transitions.md#s4-stein).
    let equations = equations(&MultiIndex::single("gelu", "z^2", HUBER), 0.4, 4.0).hard_only();
    let mut points = points(&equations, 65_536, 0, 0);
    let process = run(&equations, &mut points, 0);
    let (mut product, mut kick) = (0.0, didact_model::Kick::new(equations.shape()));
    process.for_every_sample(|sample, probability| {
        equations.rule.kick(sample, &mut kick);
        product += probability * kick.rows[0] * sample.fields[0];
    });
    let response = process.kernels.kicks_response[0][0][(0, 0)];
    assert!((product - response).abs() < 2e-4, "{product} {response}");
}

#[test]
fn hard_directions_are_not_learned_and_easy_ones_are() {
    let base = equations(&three_units(), 1.5, 4.0);
    let hard = Mat::from_fn(2, 2, |i, j| if i == j { 0.5 } else { -0.5 });
    let equations = Equations { hard: Some(hard), ..base };
    let mut points = points(&equations, 8192, 6, 0);
    let kernels = run(&equations, &mut points, 6).kernels;
    let star = &kernels.weights_frozen[6];
    // C_θ(6,*) of docs/derivations/gd-phase-transitions.md#s4-5, rows (0.783, 0.784), (−0.370, −0.370), (0.494, 0.494),
    // to its third digit.
    for (row, expected) in [0.7835, -0.370, 0.494].into_iter().enumerate() {
        assert!((star[(row, 0)] - star[(row, 1)]).abs() < 1e-14, "the hard direction is (1,−1)");
        assert!((star[(row, 0)] - expected).abs() < 4e-3, "{} {expected}", star[(row, 0)]);
    }
}

#[test]
fn permuting_units_permutes_kernels() {
    let order = [2, 0, 1];
    let spec = three_units();
    let pick = |list: &Option<Vec<f64>>| list.as_ref().map(|l| order.iter().map(|&i| l[i]).collect());
    let permuted = MultiIndex { weights: pick(&spec.weights), biases: pick(&spec.biases), ..spec.clone() };
    // The normals of the units are not permuted with them, so the two agree to sampling error only.
    let kernels = |spec: &MultiIndex| {
        let equations = equations(spec, 1.5, 4.0);
        let mut points = points(&equations, 16_384, 3, 0);
        run(&equations, &mut points, 3).kernels
    };
    let (a, b) = (kernels(&spec), kernels(&permuted));
    for i in 0..3 {
        for j in 0..3 {
            let (x, y) = (b.weights[3][3][(i, j)], a.weights[3][3][(order[i], order[j])]);
            assert!((x - y).abs() < 5e-3, "{x} {y}");
        }
    }
}

#[test]
fn indicator_links_use_steins_lemma_for_the_latent_response() {
    // At the start R_ℓ(0,*) = E[φ v]: a kick of size ρ′ σ′ against the sign of v.
    let spec = MultiIndex::single("gelu", "1{z>0}", HUBER);
    let equations = equations(&spec, 0.4, 4.0);
    let mut points = points(&equations, 16_384, 1, 0);
    let kernels = run(&equations, &mut points, 1).kernels;
    // E[φ v] = E[σ′(W)(ρ′(f − 1) − ρ′(f))] E[v 1{v>0}], by one-dimensional quadrature over W.
    let rule = didact_math::gauss::quadrature::gauss_hermite(64);
    let unit = didact_math::activation::parse("gelu").unwrap();
    let mean =
        rule.average(|w| unit.slope(w) * (HUBER.slope(unit.value(w), 1.0) - HUBER.slope(unit.value(w), 0.0)));
    let expected = mean / (2.0 * std::f64::consts::PI).sqrt();
    let got = kernels.kicks_frozen[0][(0, 0)];
    assert!((got - expected).abs() < 1e-3, "{got} {expected}");
}
