//! Quadratic networks: the equations of motion against their exact solutions and limits
//! (docs/derivations/quadratic-networks.md#s13).

use crate::common::{assert_close, columns, distance, losses, state_at};
use didact_families::quadratic::{
    QuadraticNetworks, SingularFlow, State, alignment, alignment_at, closest_solution, polar_factor,
};
use didact_families::{Family, Model};
use didact_math::linalg::{Mat, symmetric_eigen};
use didact_math::ode::{Method, Options, Saving};
use didact_math::random::{RngAddress, Stream};
use didact_model::start::Given;
use didact_model::{Clock, Constraint, Needed, Overlaps, Problem, Spectrum, Training};
use didact_theory::{Numerical, OrderParameterOde};
use serde_json::{Value, json};
use std::sync::Arc;

/// Tolerances that survive the amplification of an escape.
fn engine(needed: Needed) -> OrderParameterOde {
    let options = Options { relative: 1e-12, absolute: 1e-15, saving: Saving::Landing, ..Options::default() };
    OrderParameterOde { options, needed, numerical: Numerical::Precise }
}

fn problem(start: &State, learning_rate: Option<f64>) -> Problem {
    let spec = QuadraticNetworks::new(start.rho.rows(), start.rho.cols());
    let (rule, spectrum) = (spec.rule().unwrap(), Spectrum::isotropic());
    let t = Mat::identity(start.rho.cols());
    let overlaps = Overlaps::spread(rule.shape(), &spectrum, (&start.q, &start.rho, &t), vec![]).unwrap();
    let clock = if learning_rate.is_some() { Clock::Alpha } else { Clock::Flow };
    let training = Training::online(learning_rate.unwrap_or(1.0));
    Problem {
        rule,
        about: spec.about(),
        spectrum,
        dimension: None,
        training,
        start: Arc::new(Given(overlaps)),
        clock,
    }
}

/// The engine that goes with a learning rate, or with none.
fn engine_of(learning_rate: Option<f64>) -> OrderParameterOde {
    engine(if learning_rate.is_some() { Needed::DriftAndNoise } else { Needed::Drift })
}

fn later(start: &State, learning_rate: Option<f64>, time: f64) -> State {
    let p = start.rho.rows();
    let end = state_at(&engine_of(learning_rate), &problem(start, learning_rate), time);
    let g = &end.blocks[0];
    State { rho: g.block(0..p, p..g.rows()), q: g.block(0..p, 0..p) }
}

fn gaussian(p: usize, teachers: usize, deviation: f64, seed: u64) -> Mat {
    let mut stream = Stream::at(RngAddress { seed, replica: 0, step: 0, lane: 0 });
    Mat::from_fn(p, teachers, |_, _| deviation * stream.normal())
}

/// Random students of norm about 1 that overlap a little with the teachers.
fn generic(p: usize, teachers: usize, seed: u64) -> State {
    let w = gaussian(p, 3 * p, (1.0 / (3 * p) as f64).sqrt(), seed);
    let rho = gaussian(p, teachers, 0.05, seed + 1);
    let mut q = w.gram();
    q.add_scaled(1.0, &rho.gram());
    State { rho, q }
}

fn quantity(name: &str, inputs: Value, entry: &str) -> f64 {
    let all = Model::quantities();
    let (_, found) = all.iter().find(|(f, q)| *f == "quadratic-networks" && q.name == name).unwrap();
    let answer = found.evaluate(inputs.as_object().unwrap()).unwrap();
    answer.iter().find(|(n, _)| *n == entry).unwrap().1.as_f64().unwrap()
}

#[test]
fn singular_values_follow_the_full_equations_at_any_learning_rate() {
    for (p, teachers) in [(4, 2), (3, 3), (2, 4)] {
        let rho = gaussian(p, teachers, 0.05, 3);
        for rate in [None, Some(0.15)] {
            let times = if rate.is_some() { [10.0, 40.0, 120.0] } else { [1.0, 5.0, 15.0] };
            let start = State::orthonormal(rho.clone());
            let full = losses(&engine_of(rate), &problem(&start, rate), &times);
            let fast = SingularFlow::new(&rho, 1.0, rate).run(&times).unwrap();
            assert_close(&full, &fast.iter().map(|f| f.1).collect::<Vec<_>>(), 1e-9, "risk");
            let last = later(&start, rate, times[2]);
            assert!(distance(&last.rho, &fast[2].0) < 1e-9, "{p} {teachers} {rate:?}");
        }
    }
}

#[test]
fn the_alignment_of_any_start_is_logistic() {
    for (p, teachers) in [(3, 2), (3, 3), (2, 3)] {
        let start = generic(p, teachers, 11);
        for time in [0.5, 3.0, 8.0] {
            let got = alignment(&later(&start, None, time));
            let expected = alignment_at(&alignment(&start), p, time);
            assert!(distance(&got, &expected) < 1e-9, "{p} {teachers} {time}");
        }
    }
}

#[test]
fn the_polar_factor_is_conserved_from_orthonormal_students_only() {
    let rho = gaussian(6, 3, 0.02, 5);
    let polar = polar_factor(&rho).factor;
    let start = State::orthonormal(rho);
    for rate in [None, Some(0.27)] {
        let time = if rate.is_some() { 150.0 } else { 40.0 };
        let end = later(&start, rate, time);
        assert!(distance(&polar_factor(&end.rho).factor, &polar) < 1e-9, "{rate:?}");
        assert!(end.risk() < 1e-2, "{rate:?}: the run must have escaped");
    }
    // Erratum E8 (docs/derivations/quadratic-networks.md#e8): with other students it moves.
    let other = generic(3, 2, 21);
    let moved =
        distance(&polar_factor(&later(&other, None, 60.0).rho).factor, &polar_factor(&other.rho).factor);
    assert!(moved > 0.01, "{moved}");
}

#[test]
fn learning_ends_where_the_polar_factor_says() {
    let over = State::orthonormal(gaussian(6, 3, 0.02, 8));
    let end = later(&over, None, 2000.0);
    // ‖ρ − ρ̄‖ t of the tail, plus its relative correction of order escape time over t.
    let tail = quantity("tail", json!({"p": 6, "p_star": 3}), "distance");
    let target = closest_solution(&over.rho).rho;
    let left = end.rho.as_slice().iter().zip(target.as_slice());
    let left = left.map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
    assert!((2000.0 * left / tail - 1.0).abs() < 0.02, "{}", 2000.0 * left / tail);
    let under = State::orthonormal(gaussian(2, 4, 0.1, 8));
    let (end, predicted) = (later(&under, None, 60.0), closest_solution(&under.rho));
    assert!(distance(&end.rho, &predicted.rho) < 1e-9 && distance(&end.q, &predicted.q) < 1e-9);
}

#[test]
fn norms_are_learned_first_and_overlaps_grow_meanwhile() {
    let (p, teachers) = (4, 2);
    let start = State::orthonormal(gaussian(p, teachers, 1e-7, 2));
    for time in [0.1, 0.7, 2.0] {
        let now = later(&start, None, time);
        let inputs = json!({"p": p, "p_star": teachers, "t": time});
        assert!((now.q[(0, 0)] - quantity("norm-learning", inputs.clone(), "norm")).abs() < 1e-11);
        let gain = now.rho[(1, 1)] / start.rho[(1, 1)];
        assert!((gain / quantity("norm-learning", inputs, "gain") - 1.0).abs() < 1e-10);
    }
}

#[test]
fn on_the_plateau_student_overlaps_decay_and_the_loss_follows_the_linear_theory() {
    // docs/derivations/quadratic-networks.md#eq-18: off-diagonal Q decays (erratum E1,
    // docs/derivations/quadratic-networks.md#e1) while ρ grows.
    let (p, teachers, off) = (3usize, 2usize, 1e-5);
    let (wide, target) = (p as f64, teachers as f64);
    let norm = wide / (wide + 2.0);
    let q = Mat::from_fn(p, p, |i, j| if i == j { norm } else { off });
    let start = State { rho: gaussian(p, teachers, 3e-6, 4), q };
    let (grow, decay) = (8.0 / (wide * target), 16.0 / (wide * (wide + 2.0)));
    let n2: f64 = start.rho.as_slice().iter().map(|r| r * r).sum();
    let level = 2.0 / target + 2.0 / (wide + 2.0);
    for time in [0.5, 1.5, 3.0] {
        let now = later(&start, None, time);
        if time < 2.0 {
            // Later the growing overlaps, of second order in ρ, take over.
            assert!((now.q[(0, 1)] / (off * (-decay * time).exp()) - 1.0).abs() < 2e-3, "{}", now.q[(0, 1)]);
        }
        let predicted = level + 2.0 / (wide * wide) * (-2.0 * decay * time).exp() * 6.0 * off * off
            - 4.0 / (wide * target) * (2.0 * grow * time).exp() * n2;
        // Corrections are of third order in the overlaps: 1e-5 of the second-order terms, times e^{ωt}.
        assert!(((now.risk() - level) / (predicted - level) - 1.0).abs() < 2e-3, "{time}");
    }
}

#[test]
fn the_linear_escape_time_is_that_of_the_equations() {
    let rho = gaussian(3, 2, 1e-4, 6);
    let n2: f64 = rho.as_slice().iter().map(|r| r * r).sum();
    let level = 2.0 / 2.0 + 2.0 / 5.0;
    for (delta, relative) in [(1e-4, 1e-4), (1e-2, 4e-3), (0.1, 3e-2)] {
        let inputs = json!({"p": 3, "p_star": 2, "sum_rho2": n2, "delta": delta});
        let time = quantity("escape-time", inputs, "from-orthonormal");
        let near = |shift: f64| SingularFlow::new(&rho, 1.0, None).run(&[time * (1.0 + shift)]).unwrap()[0].1;
        let wanted = (1.0 - delta) * level;
        assert!(near(-relative) > wanted && near(relative) < wanted, "{delta}");
    }
}

#[test]
fn tails_are_power_laws_with_their_prefactors() {
    // t = 10⁴: corrections of relative order (escape time)/t.
    let rho = gaussian(6, 3, 0.03, 9);
    for (rate, inputs) in
        [(None, json!({"p": 6, "p_star": 3})), (Some(0.5), json!({"p": 6, "p_star": 3, "eta": 0.5}))]
    {
        let time = 1e4;
        let clock = time / rate.unwrap_or(1.0);
        let options =
            Options { method: Method::Stiff, relative: 1e-10, absolute: 1e-14, ..Options::default() };
        let stiff = OrderParameterOde { options, ..engine_of(rate) };
        let start = State::orthonormal(rho.clone());
        let risk = losses(&stiff, &problem(&start, rate), &[clock])[0];
        let predicted = quantity("tail", inputs, "risk");
        assert!(
            (risk * time * time / predicted - 1.0).abs() < 5e-3,
            "{rate:?}: {}",
            risk * time * time / predicted
        );
    }
}

#[test]
fn equal_widths_end_exponentially() {
    let (rate, start) = (0.2, State::orthonormal(gaussian(3, 3, 0.05, 10)));
    // Small enough for linear equations, large enough that the rounding of a risk, 1e-15, is no part of it.
    let times = [130.0, 150.0];
    let risk = losses(&engine_of(Some(rate)), &problem(&start, Some(rate)), &times);
    assert!(risk[0] < 1e-8 && risk[1] > 1e-11, "{risk:?}");
    let slope = (risk[1] / risk[0]).ln() / 20.0;
    let predicted = quantity("final-rate", json!({"p": 3, "p_star": 3, "eta": rate}), "rate");
    assert!((slope / predicted - 1.0).abs() < 2e-4, "{slope} {predicted}");
}

#[test]
fn the_finite_rate_plateau_is_reached_and_never_left_without_overlaps() {
    let inputs = json!({"p": 6, "p_star": 3, "eta": 0.6});
    let start = State { rho: Mat::zeros(6, 3), q: Mat::identity(6) };
    let end = later(&start, Some(0.6), 200.0);
    let norm = quantity("plateau-finite-rate", inputs, "norm");
    assert!(distance(&end.q, &Mat::identity(6).scaled(norm)) < 1e-10);
    let here = problem(&start, Some(0.6));
    let overlaps = here.start.draw(&here.setting(0, 0)).unwrap();
    let remark = here.about.invariance(&overlaps).unwrap();
    assert!(remark.contains("noise-seeded-escape"), "{remark}");
    assert_eq!(here.about.warning(&here), None);
    let fast = problem(&start, Some(0.95));
    let warning = fast.about.warning(&fast).unwrap();
    assert!(warning.contains("0.9") && warning.contains("divergence is expected"), "{warning}");
}

#[test]
fn a_missing_direction_is_never_learned_and_separated_ones_make_a_staircase() {
    // Rank 1 of 3 at p = 6: R_1 = 0.55556 (docs/derivations/quadratic-networks.md#eq-21a). The remark says so.
    let rho = Mat::from_fn(6, 3, |i, j| if j == 0 { 0.01 * (i + 1) as f64 } else { 0.0 });
    let start = State::orthonormal(rho);
    assert!((later(&start, None, 400.0).risk() - 5.0 / 9.0).abs() < 1e-6);
    let here = problem(&start, None);
    let remark = here.about.invariance(&here.start.draw(&here.setting(0, 0)).unwrap()).unwrap();
    assert!(remark.contains("rank 1 of 3") && remark.contains("0.55556"), "{remark}");
    // Singular values 0.1, 1e-6, 1e-11: each step of ln 10⁵ takes 2.25 ln(10¹⁰) in t.
    let steps = Mat::from_fn(6, 3, |i, j| if i == j { [0.1, 1e-6, 1e-11][j] } else { 0.0 });
    let risks: Vec<f64> =
        SingularFlow::new(&steps, 1.0, None).run(&[25.0, 50.0]).unwrap().iter().map(|r| r.1).collect();
    assert!((risks[0] - 5.0 / 9.0).abs() < 5e-3 && (risks[1] - 0.25).abs() < 5e-3, "{risks:?}");
}

fn symmetric(m: &Mat) -> Mat {
    Mat::from_fn(m.rows(), m.cols(), |i, j| 0.5 * (m[(i, j)] + m[(j, i)]))
}

#[test]
fn rotated_starts_stay_rotated() {
    let (start, angle) = (generic(3, 2, 31), 0.8_f64);
    let turn = |n: usize| {
        Mat::from_fn(n, n, |i, j| match (i, j) {
            (0, 0) | (1, 1) => angle.cos(),
            (0, 1) => -angle.sin(),
            (1, 0) => angle.sin(),
            _ => f64::from(i == j),
        })
    };
    let (o, v) = (turn(3), turn(2));
    let rotate = |s: &State| State {
        rho: o.times(&s.rho).times(&v),
        q: symmetric(&o.times(&s.q).times(&o.transpose())),
    };
    for rate in [None, Some(0.1)] {
        let time = if rate.is_some() { 60.0 } else { 6.0 };
        let a = rotate(&later(&start, rate, time));
        let b = later(&rotate(&start), rate, time);
        assert!(distance(&a.rho, &b.rho) < 1e-9 && distance(&a.q, &b.q) < 1e-9, "{rate:?}");
    }
}

#[test]
fn the_flow_never_climbs() {
    let times: Vec<f64> = (0..200).map(|i| 0.1 * f64::from(i)).collect();
    for seed in 0..4 {
        let risk = losses(&engine(Needed::Drift), &problem(&generic(4, 2, 40 + seed), None), &times);
        assert!(risk.windows(2).all(|w| w[1] <= w[0] + 1e-14), "{seed}");
    }
}

#[test]
fn spherical_students_escape_at_their_own_rate() {
    let mut here = problem(&State::orthonormal(gaussian(4, 2, 1e-7, 3)), Some(0.2));
    here.training.constraint = Constraint::sphere();
    let r = columns(&engine(Needed::DriftAndNoise), &here, &[5.0, 25.0], &["R[0,0]", "Q[0,0]"]);
    let growth = (r[0][1] / r[0][0]).ln() / 20.0;
    let predicted = quantity("spherical-rate", json!({"p": 4, "p_star": 2, "eta": 0.2}), "growth");
    assert!((growth - predicted).abs() < 1e-9, "{growth} {predicted}");
    assert!((r[1][1] - 1.0).abs() < 1e-12);
}

#[test]
fn label_noise_and_batches_enter_the_noise_term_alone() {
    // Δ adds (16 η²/p²) Δ Q; a batch divides the noise: both seen in the first derivative.
    let (start, eta) = (generic(3, 2, 51), 0.1);
    let base = engine(Needed::DriftAndNoise).initial_derivative(&problem(&start, Some(eta))).unwrap();
    let mut noisy = problem(&start, Some(eta));
    noisy.training.label_noise = 0.5;
    let noisy = engine(Needed::DriftAndNoise).initial_derivative(&noisy).unwrap();
    let mut difference = noisy.blocks[0].block(0..3, 0..3);
    difference.add_scaled(-1.0, &base.blocks[0].block(0..3, 0..3));
    assert!(distance(&difference, &start.q.scaled(16.0 * eta * eta / 9.0 * 0.25)) < 1e-14);
    let mut batched = problem(&start, Some(eta));
    batched.training.batch = 4;
    let batched = engine(Needed::DriftAndNoise).initial_derivative(&batched).unwrap();
    let mut expected = start.flow_q().scaled(eta);
    expected.add_scaled(16.0 * eta * eta / 36.0, &start.noise());
    assert!(distance(&batched.blocks[0].block(0..3, 0..3), &expected) < 1e-13);
    assert!(symmetric_eigen(&start.noise()).values[0] > 0.0);
}

#[test]
fn time_per_unit_is_flow_time_over_width() {
    let start = generic(4, 2, 61);
    let mut here = problem(&start, Some(0.1));
    here.clock = Clock::FlowPerUnit;
    let per_unit = losses(&engine(Needed::DriftAndNoise), &here, &[0.5, 1.5]);
    here.clock = Clock::Flow;
    let flow = losses(&engine(Needed::DriftAndNoise), &here, &[2.0, 6.0]);
    assert_close(&per_unit, &flow, 1e-10, "loss");
    // Steps of a simulation at d = 50: s = 0.1/50, so t/p = 1 is 4/s steps.
    here.clock = Clock::FlowPerUnit;
    assert!((here.steps_per_clock(50) - 4.0 / 0.002).abs() < 1e-9);
}
