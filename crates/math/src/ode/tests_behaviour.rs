//! Tests of saving, events, reasons to stop and invalid requests, for every method.

use std::ops::ControlFlow;

use proptest::prelude::*;

use super::test_problems::{logistic, oscillator};
use super::{
    Direction, FieldFn, Method, OdeError, OdeEvent, Options, Request, Saving, Stop, VectorField, solve,
    solve_watched,
};

const METHODS: [Method; 5] =
    [Method::Dopri5, Method::Dop853, Method::Adams, Method::Stiff, Method::Stabilised];

fn with_tolerance(method: Method, tolerance: f64) -> Options {
    Options { method, relative: tolerance, absolute: tolerance, ..Options::default() }
}

/// A tolerance, and the accuracy to expect with it. The stabilised method is for moderate accuracy only.
fn accuracy(method: Method) -> (f64, f64) {
    if method == Method::Stabilised { (1e-7, 1e-3) } else { (1e-10, 1e-7) }
}

fn grid(start: f64, end: f64, points: usize) -> Vec<f64> {
    (0..points).map(|i| start + (end - start) * i as f64 / (points - 1) as f64).collect()
}

#[test]
fn dense_and_landing_agree_with_the_exact_solution_at_every_time() {
    let times = grid(0.0, 6.0, 37);
    for method in METHODS {
        let (tolerance, expected) = accuracy(method);
        for saving in [Saving::Dense, Saving::Landing] {
            let options = Options { saving, ..with_tolerance(method, tolerance) };
            let solution =
                solve(&mut oscillator(), 0.0, &[1.0, 0.0], 6.0, &times, &[], &options).expect("valid");
            assert_eq!(solution.times, times);
            for (t, state) in times.iter().zip(&solution.states) {
                let error = (state[0] - t.cos()).abs().max((state[1] + t.sin()).abs());
                assert!(error < expected, "{method:?} {saving:?} at {t}: {error:e}");
            }
            assert_eq!(solution.last_time, 6.0);
            assert_eq!(solution.last_state, solution.states[36]);
        }
    }
}

#[test]
fn evaluations_are_spent_on_steps_and_on_interpolants_that_are_used() {
    let options = with_tolerance(Method::Dop853, 1e-10);
    let run = |times: &[f64]| {
        solve(&mut oscillator(), 0.0, &[1.0, 0.0], 50.0, times, &[], &options).expect("valid").report
    };
    let bare = run(&[]);
    // Two evaluations at the start, twelve per step, eleven per rejected step.
    assert_eq!(bare.evaluations, 2 + 12 * bare.steps + 11 * bare.rejected);
    // Saving at the end of a step needs no evaluation; any number of times within one step needs three.
    assert_eq!(run(&[50.0]).evaluations, bare.evaluations);
    assert_eq!(run(&[25.0, 25.001, 25.002]).evaluations, bare.evaluations + 3);
    let dopri5 = solve(
        &mut oscillator(),
        0.0,
        &[1.0, 0.0],
        50.0,
        &grid(0.0, 50.0, 99),
        &[],
        &with_tolerance(Method::Dopri5, 1e-8),
    )
    .expect("valid")
    .report;
    assert_eq!(dopri5.evaluations, 2 + 6 * (dopri5.steps + dopri5.rejected));
}

#[test]
fn a_terminal_event_stops_at_the_time_known_in_closed_form() {
    // Logistic growth from 1e-6 reaches 1/2 at ln((1 − y0)/y0).
    let start = 1e-6_f64;
    let exact = ((1.0 - start) / start).ln();
    let times = grid(0.0, 40.0, 81);
    for method in METHODS {
        let (_, expected) = accuracy(method);
        let options = Options { absolute: 1e-14, ..with_tolerance(method, accuracy(method).0) };
        let half = OdeEvent::new("half", |_t, y: &[f64]| y[0] - 0.5).direction(Direction::Rising).terminal();
        let solution = solve(&mut logistic(), 0.0, &[start], 40.0, &times, &[half], &options).expect("valid");
        let Stop::Event { index: 0, time } = solution.report.stop else {
            panic!("{method:?}: {}", solution.report)
        };
        assert!((time - exact).abs() < 10.0 * expected, "{method:?}: {time} {exact}");
        assert!((solution.last_state[0] - 0.5).abs() < 1e-13, "{method:?}: {:?}", solution.last_state);
        assert_eq!(solution.last_time, time);
        // States are saved up to the event and not after it.
        assert_eq!(solution.times, times.iter().copied().filter(|&t| t <= time).collect::<Vec<_>>());
    }
}

#[test]
fn events_that_do_not_stop_are_all_found_in_order() {
    // cos t and −sin t over ten periods.
    let end = 20.0 * std::f64::consts::PI - 0.1;
    let events = [
        OdeEvent::new("cos falls", |_t, y: &[f64]| y[0]).direction(Direction::Falling),
        OdeEvent::new("cos rises", |_t, y: &[f64]| y[0]).direction(Direction::Rising),
        OdeEvent::new("sin", |_t, y: &[f64]| y[1]),
        OdeEvent::new("clock", |t, _y: &[f64]| t - 3.0),
    ];
    for method in [Method::Dopri5, Method::Dop853, Method::Adams, Method::Stiff] {
        let options = with_tolerance(method, 1e-9);
        let solution =
            solve(&mut oscillator(), 0.0, &[1.0, 0.0], end, &[], &events, &options).expect("valid");
        let count = |event| solution.occurrences.iter().filter(|o| o.event == event).count();
        // y[1] = −sin t is exactly 0 at the start, which does not count.
        assert_eq!((count(0), count(1), count(2), count(3)), (10, 10, 19, 1), "{method:?}");
        assert!(solution.occurrences.windows(2).all(|pair| pair[0].time <= pair[1].time));
        for o in solution.occurrences.iter().filter(|o| o.event == 2) {
            let turns = o.time / std::f64::consts::PI;
            assert!((turns - turns.round()).abs() < 1e-6, "{method:?}: {}", o.time);
            assert!((o.state[0].abs() - 1.0).abs() < 1e-6);
        }
        let clock = solution.occurrences.iter().find(|o| o.event == 3).expect("once");
        assert!((clock.time - 3.0).abs() < 4e-15, "{}", clock.time);
    }
}

#[test]
fn events_after_a_terminal_one_in_the_same_step_did_not_happen() {
    // y' = 1 takes one long step; the thresholds are passed in the order 1, 2, 3.
    let mut field = FieldFn::new(1, |_t: f64, _y: &[f64], out: &mut [f64]| out[0] = 1.0);
    let at = |level: f64| OdeEvent::new("level", move |_t, y: &[f64]| y[0] - level);
    let events = [at(3.0), at(2.0).terminal(), at(1.0)];
    let options = Options { first_step: Some(10.0), ..Options::default() };
    let solution =
        solve(&mut field, 0.0, &[0.0], 10.0, &[0.5, 1.5, 2.0, 2.5], &events, &options).expect("valid");
    let order: Vec<usize> = solution.occurrences.iter().map(|o| o.event).collect();
    assert_eq!(order, [2, 1]);
    assert_eq!(solution.report.steps, 1);
    assert!((solution.last_time - 2.0).abs() < 1e-14);
    assert_eq!(solution.times, [0.5, 1.5, 2.0]);
}

#[test]
fn a_finite_time_blow_up_diverges_at_the_right_time() {
    let mut field = FieldFn::new(1, |_t: f64, y: &[f64], out: &mut [f64]| out[0] = y[0] * y[0]);
    for method in METHODS {
        let (tolerance, expected) = accuracy(method);
        let solution =
            solve(&mut field, 0.0, &[1.0], 2.0, &[0.5, 1.5], &[], &with_tolerance(method, tolerance))
                .expect("valid");
        let Stop::Diverged { time } = solution.report.stop else { panic!("{method:?}: {}", solution.report) };
        assert!((time - 1.0).abs() < expected, "{method:?}: {time}");
        assert_eq!(solution.times, [0.5]);
        assert!((solution.states[0][0] - 2.0).abs() < 10.0 * expected);
        assert!(solution.report.steps < 20_000, "{method:?}: {}", solution.report);
    }
}

#[test]
fn exponential_growth_diverges_at_the_state_limit() {
    let mut field = FieldFn::new(1, |_t: f64, y: &[f64], out: &mut [f64]| out[0] = -y[0]);
    let options = Options { state_limit: 1e6, ..Options::default() };
    // Backwards in time, e^{−t} grows.
    let solution = solve(&mut field, 0.0, &[1.0], -50.0, &[], &[], &options).expect("valid");
    let Stop::Diverged { time } = solution.report.stop else { panic!("{}", solution.report) };
    assert!(time < -(1e6_f64.ln()) && time > -16.0, "{time}");
    assert!(solution.last_state[0] <= 1e6 && solution.last_time > time);
}

#[test]
fn a_field_that_stops_being_finite_diverges_there() {
    for method in METHODS {
        let mut field = FieldFn::new(1, |t: f64, _y: &[f64], out: &mut [f64]| out[0] = (1.0 - t).sqrt());
        let solution =
            solve(&mut field, 0.0, &[0.0], 2.0, &[], &[], &with_tolerance(method, 1e-6)).expect("valid");
        let Stop::Diverged { time } = solution.report.stop else { panic!("{method:?}: {}", solution.report) };
        assert!((time - 1.0).abs() < 1e-7, "{method:?}: {time}");
        assert!((solution.last_state[0] - 2.0 / 3.0).abs() < 1e-3);
        let mut nowhere = FieldFn::new(1, |_t: f64, _y: &[f64], out: &mut [f64]| out[0] = f64::NAN);
        let solution =
            solve(&mut nowhere, 0.5, &[0.0], 2.0, &[0.5], &[], &with_tolerance(method, 1e-6)).expect("valid");
        assert_eq!(solution.report.stop, Stop::Diverged { time: 0.5 });
        assert_eq!(solution.times, [0.5]);
    }
}

#[test]
fn an_integration_stuck_at_a_discontinuity_gives_a_hint() {
    // The flow runs into y = 0 from both sides at t = 1 and has no solution beyond.
    let mut field = FieldFn::new(1, |_t: f64, y: &[f64], out: &mut [f64]| out[0] = -y[0].signum());
    let options = Options { absolute: 1e-17, ..Options::default() };
    let solution = solve(&mut field, 0.0, &[1.0], 2.0, &[], &[], &options).expect("valid");
    let Stop::Stuck { time, step, .. } = solution.report.stop else { panic!("{}", solution.report) };
    assert!((time - 1.0).abs() < 1e-7 && step < 1e-13, "{time} {step}");
    let text = solution.report.to_string();
    assert!(text.contains("Method::Stiff") && text.contains("rejected"), "{text}");
    assert!(!solution.is_complete());
}

#[test]
fn long_plateaus_complete_without_a_step_limit() {
    for method in METHODS {
        let options = Options { relative: 1e-6, absolute: 1e-16, method, ..Options::default() };
        let solution =
            solve(&mut logistic(), 0.0, &[1e-12], 1e5, &[20.0, 1e5], &[], &options).expect("valid");
        assert_eq!(solution.report.stop, Stop::ReachedEnd, "{method:?}");
        let exact = 1.0 / (1.0 + (-20.0_f64).exp() * (1.0 - 1e-12) / 1e-12);
        let relative = solution.states[0][0] / exact - 1.0;
        assert!(relative.abs() < 1e-2, "{method:?}: {relative:e}");
        assert!((solution.states[1][0] - 1.0).abs() < 1e-5);
    }
    // Rodas5P crosses the plateau in few steps.
    let options = Options { method: Method::Stiff, ..Options::default() };
    let solution = solve(&mut logistic(), 0.0, &[1e-12], 1e6, &[], &[], &options).expect("valid");
    assert!(solution.report.steps < 300, "{}", solution.report);
}

#[test]
fn step_limits_and_watch_functions_stop_the_integration() {
    let options = Options { step_limit: Some(7), ..Options::default() };
    let solution = solve(&mut oscillator(), 0.0, &[1.0, 0.0], 1e3, &[], &[], &options).expect("valid");
    assert_eq!(solution.report.steps, 7);
    assert_eq!(solution.report.stop, Stop::StepLimit { time: solution.last_time });

    let options = Options::default();
    let request =
        Request { start: 0.0, state: &[1.0, 0.0], end: 1e3, save_at: &[], events: &[], options: &options };
    let mut seen = Vec::new();
    let mut watch = |time: f64| {
        seen.push(time);
        if time > 5.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let solution = solve_watched(&mut oscillator(), &request, &mut watch).expect("valid");
    assert_eq!(solution.report.stop, Stop::Interrupted { time: solution.last_time });
    assert_eq!(seen.len() as u64, solution.report.steps);
    assert_eq!(seen.last(), Some(&solution.last_time));
    assert!((solution.last_state[0] - solution.last_time.cos()).abs() < 1e-7);
}

#[test]
fn an_interval_of_no_length_returns_the_start() {
    let solution = solve(&mut oscillator(), 2.0, &[1.0, 3.0], 2.0, &[2.0, 2.0], &[], &Options::default())
        .expect("valid");
    assert_eq!(solution.report.stop, Stop::ReachedEnd);
    assert_eq!(solution.states, [[1.0, 3.0], [1.0, 3.0]]);
    assert_eq!((solution.report.steps, solution.report.evaluations), (0, 0));
}

#[test]
fn no_step_exceeds_the_largest_allowed() {
    let options = Options { largest_step: Some(0.05), ..Options::default() };
    let request =
        Request { start: 0.0, state: &[0.5], end: 4.0, save_at: &[], events: &[], options: &options };
    let mut last = 0.0;
    let mut longest = 0.0_f64;
    let mut watch = |time: f64| {
        longest = longest.max(time - last);
        last = time;
        ControlFlow::Continue(())
    };
    solve_watched(&mut logistic(), &request, &mut watch).expect("valid");
    // The last step may be stretched by 1 % to land on the end.
    assert!(longest <= 0.05 * 1.011 && longest > 0.04, "{longest}");
}

#[test]
fn invalid_requests_are_refused() {
    let run = |state: &[f64], end: f64, times: &[f64], options: &Options| {
        solve(&mut oscillator(), 0.0, state, end, times, &[], options).expect_err("refused")
    };
    let fine = Options::default();
    assert_eq!(run(&[1.0], 1.0, &[], &fine), OdeError::Dimension { expected: 2, got: 1 });
    assert!(matches!(run(&[1.0, f64::NAN], 1.0, &[], &fine), OdeError::InitialState { index: 1, .. }));
    assert!(matches!(run(&[1.0, 0.0], f64::INFINITY, &[], &fine), OdeError::Interval { .. }));
    assert!(matches!(run(&[1.0, 0.0], 1.0, &[0.5, 0.2], &fine), OdeError::SaveTime { index: 1, .. }));
    assert!(matches!(run(&[1.0, 0.0], -1.0, &[0.5], &fine), OdeError::SaveTime { index: 0, .. }));
    let zero = Options { absolute: 0.0, ..Options::default() };
    assert!(matches!(run(&[1.0, 0.0], 1.0, &[], &zero), OdeError::Option { name: "absolute", .. }));
    let backwards = Options { first_step: Some(-0.1), ..Options::default() };
    assert!(matches!(run(&[1.0, 0.0], 1.0, &[], &backwards), OdeError::Option { name: "first_step", .. }));
}

#[test]
fn a_given_jacobian_is_used() {
    struct Decay(u64);
    impl VectorField for Decay {
        fn dimension(&self) -> usize {
            1
        }
        fn derivative(&mut self, _time: f64, y: &[f64], out: &mut [f64]) {
            out[0] = -1e4 * y[0];
        }
        fn jacobian(&mut self, _time: f64, _y: &[f64], out: &mut [f64]) {
            self.0 += 1;
            out[0] = -1e4;
        }
    }
    let mut field = Decay(0);
    let solution =
        solve(&mut field, 0.0, &[1.0], 1.0, &[], &[], &with_tolerance(Method::Stiff, 1e-6)).expect("valid");
    assert_eq!(field.0, solution.report.jacobians);
    // One Jacobian per point, also when steps from it are rejected.
    assert_eq!(solution.report.jacobians, solution.report.steps);
    assert!(solution.last_state[0].abs() < 1e-6);
}

proptest! {
    #[test]
    fn integrating_backwards_returns_to_the_start(angle in 0.0..6.0f64, span in 0.1..20.0f64, start in -5.0..5.0f64) {
        let state = [angle.cos(), angle.sin()];
        for method in [Method::Dopri5, Method::Dop853, Method::Adams, Method::Stiff] {
            let options = with_tolerance(method, 1e-9);
            let there =
                solve(&mut oscillator(), start, &state, start + span, &[], &[], &options).expect("valid");
            let back = solve(
                &mut oscillator(), start + span, &there.last_state, start, &[start + 0.5 * span, start], &[], &options,
            )
            .expect("valid");
            prop_assert_eq!(back.times.len(), 2);
            for i in 0..2 {
                prop_assert!((back.last_state[i] - state[i]).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn saved_states_do_not_depend_on_what_else_is_saved(times in prop::collection::vec(0.0..10.0f64, 1..20)) {
        let mut times = times;
        times.sort_by(f64::total_cmp);
        let options = Options::default();
        let together =
            solve(&mut oscillator(), 0.0, &[1.0, 0.0], 10.0, &times, &[], &options).expect("valid");
        for (i, &time) in times.iter().enumerate() {
            let alone =
                solve(&mut oscillator(), 0.0, &[1.0, 0.0], 10.0, &[time], &[], &options).expect("valid");
            prop_assert_eq!(&alone.states[0], &together.states[i]);
        }
    }
}
