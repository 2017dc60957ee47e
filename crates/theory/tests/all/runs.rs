//! What a run of the order-parameter equations keeps, where it stops, and that integrators agree.

use crate::common::{assert_close, columns, distance, losses, problem, random_gram, state_at};
use didact_families::committee::Committee;
use didact_math::linalg::{Mat, symmetric_eigen};
use didact_math::ode::Method;
use didact_model::constraint::{Constraint, Retraction};
use didact_model::record::{Crossing, linear_times};
use didact_model::{Engine, Event, NoMonitor, Outcome, Problem, Record, Spectrum, Training, observable};
use didact_theory::OrderParameterOde;

fn two_levels(spec: &Committee, training: Training) -> Problem {
    let rows = spec.students + spec.teachers;
    let spectrum = Spectrum::new(vec![1.5, 0.5], vec![0.4, 0.6]).unwrap();
    problem(spec, spectrum, training, vec![random_gram(rows, 0.6, 31), random_gram(rows, 0.6, 32)])
}

fn erf(training: Training) -> Problem {
    two_levels(&Committee::soft(2, 2, "erf(z/sqrt2)"), training)
}

#[test]
fn overlaps_stay_positive() {
    let problem = erf(Training::online(1.5));
    for time in [0.1, 1.0, 5.0, 20.0, 100.0] {
        for g in state_at(&OrderParameterOde::default(), &problem, time).blocks {
            let least = symmetric_eigen(&g).values[0];
            // Learning drives an eigenvalue to 0, known to the tolerance of the integrator.
            assert!(least > -1e-8, "eigenvalue {least} at alpha = {time}");
        }
    }
}

#[test]
fn spherical_rows_keep_their_length() {
    let spec = Committee { train_output: true, ..Committee::soft(2, 2, "erf(z/sqrt2)") };
    for sphere in [Retraction::Euclidean, Retraction::Tangent] {
        let constraint = Constraint { sphere: Some(sphere), ..Constraint::none() };
        let problem = two_levels(&spec, Training { constraint, ..Training::online(1.0) });
        for lengths in columns(&OrderParameterOde::default(), &problem, &[0.0, 1.0, 10.0, 60.0], &["norm[*]"])
        {
            assert!(lengths.iter().all(|l| (l - lengths[0]).abs() < 1e-9), "{lengths:?}");
        }
    }
}

#[test]
fn rows_kept_off_the_frozen_ones_keep_their_overlaps_with_them() {
    let constraint = Constraint { off_frozen: true, ..Constraint::none() };
    let problem = erf(Training { constraint, ..Training::online(1.0) });
    let times = [0.0, 1.0, 10.0, 60.0];
    for overlap in columns(&OrderParameterOde::default(), &problem, &times, &["R0[*,*]"]) {
        assert!(overlap.iter().all(|r| (r - overlap[0]).abs() < 1e-9), "{overlap:?}");
    }
    let lengths = columns(&OrderParameterOde::default(), &problem, &times, &["Q0[0,0]"]);
    assert!((lengths[0][3] - lengths[0][0]).abs() > 1e-2, "the rows do move: {lengths:?}");
}

#[test]
fn a_batch_divides_the_noise() {
    let noise = |batch: usize| {
        let problem = erf(Training { batch, label_noise: 0.3, ..Training::online(1.0) });
        let mut full = OrderParameterOde::default().initial_derivative(&problem).unwrap().blocks;
        let drift = OrderParameterOde::gradient_flow().initial_derivative(&problem).unwrap().blocks;
        full.iter_mut().zip(&drift).for_each(|(f, d)| f.add_scaled(-1.0, d));
        full
    };
    for (one, four) in noise(1).iter().zip(&noise(4)) {
        assert!(one.max_abs() > 1e-2 && distance(&one.scaled(0.25), four) < 1e-15);
    }
}

#[test]
fn explicit_and_stiff_integrators_agree() {
    let times = linear_times(0.0, 40.0, 9);
    for training in [Training::online(0.7), Training { label_noise: 0.2, ..Training::online(0.7) }] {
        let problem = erf(training);
        let explicit = OrderParameterOde::default();
        let mut stiff = explicit.clone();
        stiff.options.method = Method::Stiff;
        assert_close(&losses(&stiff, &problem, &times), &losses(&explicit, &problem, &times), 1e-7, "losses");
    }
}

fn falls_below(problem: &Problem, level: f64, stops: bool) -> Event {
    let observable = observable::parse("loss", problem).unwrap().swap_remove(0);
    Event { name: "learned".into(), observable, level, crossing: Crossing::Falls, stops }
}

#[test]
fn an_event_is_located_and_a_stopping_one_ends_the_run_there() {
    let problem = erf(Training::online(0.7));
    let engine = OrderParameterOde::default();
    let level = 0.5 * losses(&engine, &problem, &[0.0])[0];
    let run = |stops: bool| {
        let mut record =
            Record::new(linear_times(0.0, 200.0, 3), observable::parse("loss", &problem).unwrap());
        record.events = vec![falls_below(&problem, level, stops)];
        engine.run_with_end_states(&problem, &record, &NoMonitor).unwrap()
    };
    let ((passing, _), (stopping, ends)) = (run(false), run(true));
    let at = passing.events[0].times[0].expect("the loss halves");
    assert_eq!(passing.outcomes[0], Outcome::Completed);
    // The slope of the loss turns an error of time into one of loss.
    let around = losses(&engine, &problem, &[at - 1e-6, at, at + 1e-6]);
    assert!(around[0] > level && around[2] < level, "{around:?} around {level}");
    assert!(
        matches!(&stopping.outcomes[0], Outcome::Stopped { by, at: t } if by == "learned" && (t - at).abs() < 1e-6)
    );
    assert!((ends[0].time - at).abs() < 1e-6 && stopping.columns[0].curves[0].len() == 1);
    assert!(distance(&ends[0].overlaps.blocks[0], &state_at(&engine, &problem, at).blocks[0]) < 1e-6);
}

#[test]
fn trained_output_weights_never_raise_the_loss_in_gradient_flow() {
    for activation in ["erf(z/sqrt2)", "relu", "tanh"] {
        let spec = Committee {
            train_output: true,
            student_weights: Some(vec![0.4, -0.3]),
            ..Committee::soft(2, 2, activation)
        };
        let problem = two_levels(&spec, Training { scalar_ratio: 2.0, ..Training::online(0.5) });
        let losses = losses(&OrderParameterOde::gradient_flow(), &problem, &linear_times(0.0, 40.0, 41));
        assert!(losses.windows(2).all(|w| w[1] <= w[0]), "{activation}: {losses:?}");
        assert!(losses[40] < 0.5 * losses[0], "{activation}: {losses:?}");
    }
}

#[test]
fn weight_decay_shrinks_what_is_not_learned() {
    // Without a signal (teachers of weight 0) and without noise |w|² falls at the rate 2γ and faster.
    let spec = Committee { teacher_weights: Some(vec![0.0]), ..Committee::soft(1, 1, "linear") };
    let constraint = Constraint { weight_decay: 0.3, ..Constraint::none() };
    let problem = two_levels(&spec, Training { constraint, ..Training::online(0.5) });
    let times = [0.0, 2.0];
    let blocks = state_at(&OrderParameterOde::gradient_flow(), &problem, times[1]).blocks;
    let before = state_at(&OrderParameterOde::gradient_flow(), &problem, times[0]).blocks;
    // Linear unit: dw/dt = −(λ_b + γ) w in eigenspace b, t = 0.5 α.
    for (b, lambda) in [1.5, 0.5].into_iter().enumerate() {
        let expected = before[b][(0, 0)] * (-2.0 * (lambda + 0.3) * 0.5 * 2.0f64).exp();
        assert!((blocks[b][(0, 0)] - expected).abs() < 1e-8, "{} and {expected}", blocks[b][(0, 0)]);
    }
}

#[test]
fn rows_that_start_equal_are_noted() {
    let gram = Mat::from_fn(4, 4, |i, j| if (i < 2) == (j < 2) && (i < 2 || i == j) { 1.0 } else { 0.1 });
    let spec = Committee::soft(2, 2, "erf(z/sqrt2)");
    let run = problem(&spec, Spectrum::isotropic(), Training::online(0.1), vec![gram]);
    let record = Record::new(vec![1.0], vec![]);
    let notes = |p: &Problem| OrderParameterOde::default().run(p, &record, &NoMonitor).unwrap().notes;
    assert!(notes(&run)[0].contains("rows 0 and 1 start equal"), "{:?}", notes(&run));
    assert!(!notes(&erf(Training::online(0.1))).iter().any(|note| note.contains("start equal")));
}
