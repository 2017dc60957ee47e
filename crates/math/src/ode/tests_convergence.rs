//! Tests of the orders of convergence, and of every method on problems with known solutions.

use super::control::Tolerance;
use super::field::Counted;
use super::stages::Stepper;
use super::test_problems::{Robertson, arenstorf, coupled, oscillator, van_der_pol};
use super::{FieldFn, Method, Options, VectorField, dop853, dopri5, rodas5p, solve, stabilised};

/// Takes `steps` equal steps over [0, 2] and returns the largest error at the ends of steps, and the largest error of the
/// interpolant at three points of every step.
fn fixed_steps(stepper: &mut dyn Stepper, steps: usize) -> (f64, f64) {
    let mut problem = coupled();
    let mut field = Counted::new(&mut problem.field);
    let loose = Tolerance { relative: 0.0, absolute: 1e300 };
    let h = 2.0 / steps as f64;
    let (mut ends, mut inside) = (0.0_f64, 0.0_f64);
    let distance = |state: &[f64], time: f64| {
        let exact = (problem.exact)(time);
        state.iter().zip(exact).fold(0.0_f64, |m, (y, e)| m.max((y - e).abs()))
    };
    assert!(stepper.begin(&mut field, 0.0, &(problem.exact)(0.0)));
    let mut out = [0.0; 2];
    for i in 0..steps {
        let time = i as f64 * h;
        assert!(stepper.longest_step(&mut field, time, loose) > h);
        assert!(stepper.attempt(&mut field, time, h, loose) <= 1.0);
        stepper.prepare_interpolant(&mut field, time, h);
        for share in [0.2, 0.5, 0.8] {
            stepper.interpolate(h, share, &mut out);
            inside = inside.max(distance(&out, time + share * h));
        }
        stepper.advance();
        ends = ends.max(distance(stepper.state(), time + h));
    }
    (ends, inside)
}

type Maker = fn() -> Box<dyn Stepper>;

/// Returns the orders of convergence of the solution and of the interpolant, measured from `coarse` and 2 `coarse` steps.
fn measured_orders(make: Maker, coarse: usize) -> (f64, f64) {
    let (end1, inside1) = fixed_steps(make().as_mut(), coarse);
    let (end2, inside2) = fixed_steps(make().as_mut(), 2 * coarse);
    ((end1 / end2).log2(), (inside1 / inside2).log2())
}

#[test]
fn every_method_and_interpolant_converges_with_its_order() {
    // Inside a step an interpolant of order q adds an error of order h^(q+1) to the global error h^p.
    let cases: [(&str, Maker, usize, f64, f64); 4] = [
        ("dopri5", || Box::new(dopri5::Dopri5::new(2)), 80, 5.0, 5.0),
        ("dop853", || Box::new(dop853::Dop853::new(2)), 8, 8.0, 8.0),
        ("rodas5p", || Box::new(rodas5p::Rodas5P::new(2)), 40, 5.0, 5.0),
        ("stabilised", || Box::new(stabilised::Chebyshev::new(2)), 100, 2.0, 2.0),
    ];
    for (name, make, coarse, order, interpolant) in cases {
        let (end, inside) = measured_orders(make, coarse);
        assert!((end - order).abs() < 0.4, "{name}: measured order {end}");
        assert!((inside - interpolant).abs() < 0.5, "{name}: measured order {inside} of the interpolant");
    }
}

#[test]
fn the_error_stays_within_a_multiple_of_the_tolerance() {
    // The error per step is controlled. Over a fixed time, a method of order p whose error estimate has the same order
    // (the stabilised one) makes about tolerance^{−1/(p+1)} steps, and its error is proportional to tolerance^{p/(p+1)}.
    // In the other methods the estimate has a lower order than the solution, and the error is below the tolerance.
    for (method, tightest, allowance, power) in [
        (Method::Dopri5, 1e-10, 30.0, 1.0),
        (Method::Dop853, 1e-12, 30.0, 1.0),
        // The local errors, near half the tolerance, add up over some hundred steps.
        (Method::Adams, 1e-12, 100.0, 1.0),
        (Method::Stiff, 1e-9, 30.0, 1.0),
        (Method::Stabilised, 1e-6, 10.0, 2.0 / 3.0),
    ] {
        let mut tolerance = 1e-4_f64;
        while tolerance >= tightest {
            let options = Options { method, relative: tolerance, absolute: tolerance, ..Options::default() };
            let end = 20.0;
            let solution =
                solve(&mut oscillator(), 0.0, &[1.0, 0.0], end, &[end], &[], &options).expect("valid");
            let error = (solution.states[0][0] - end.cos()).abs();
            assert!(
                error < allowance * tolerance.powf(power),
                "{method:?} at {tolerance:e}: error {error:e}"
            );
            tolerance /= 10.0;
        }
    }
}

#[test]
fn the_arenstorf_orbit_closes() {
    let (mut field, start, period) = arenstorf();
    for (method, most) in [(Method::Dopri5, 4000), (Method::Dop853, 1000), (Method::Adams, 400)] {
        let options = Options { method, relative: 1e-11, absolute: 1e-11, ..Options::default() };
        let solution = solve(&mut field, 0.0, &start, period, &[], &[], &options).expect("valid");
        let gap = (0..4).fold(0.0_f64, |m, i| m.max((solution.last_state[i] - start[i]).abs()));
        // Two close encounters amplify errors by ~1e5.
        assert!(gap < 1e-5, "{method:?}: gap {gap:e}, {}", solution.report);
        assert!(solution.report.evaluations < 12 * most, "{}", solution.report);
    }
}

#[test]
fn stiff_van_der_pol_matches_the_reference() {
    // ε = 1e-6; reference of Hairer & Wanner II, §IV.10, at t = 1 and 2.
    let options = Options { method: Method::Stiff, relative: 1e-8, absolute: 1e-8, ..Options::default() };
    let mut field = van_der_pol(1e-6);
    let solution = solve(&mut field, 0.0, &[2.0, -0.66], 2.0, &[1.0, 2.0], &[], &options).expect("valid");
    let exact = [[-1.863646254808130, 0.7535430865435460], [1.706167732170483, -0.8928097010247975]];
    for (state, exact) in solution.states.iter().zip(exact) {
        for (got, want) in state.iter().zip(exact) {
            assert!((got - want).abs() < 1e-6, "{state:?}, {}", solution.report);
        }
    }
    assert!(solution.report.steps < 3000, "{}", solution.report);
}

#[test]
fn robertson_runs_over_eleven_decades_of_time() {
    let options = Options { method: Method::Stiff, relative: 1e-7, absolute: 1e-14, ..Options::default() };
    let solution =
        solve(&mut Robertson, 0.0, &[1.0, 0.0, 0.0], 1e11, &[40.0, 1e11], &[], &options).expect("valid");
    // A Jacobian by forward differences must not need many more steps.
    let mut exact_field = Robertson;
    let mut plain = FieldFn::new(3, |t: f64, y: &[f64], out: &mut [f64]| exact_field.derivative(t, y, out));
    let differences = solve(&mut plain, 0.0, &[1.0, 0.0, 0.0], 1e11, &[], &[], &options).expect("valid");
    assert!(differences.report.steps < solution.report.steps + 20, "{}", differences.report);
    // t = 40: 7.158270688e-1, 9.185534764e-6, 2.841637457e-1; t = 1e11: Hairer & Wanner II, §IV.10.
    let exact = [
        [7.158270688e-1, 9.185534764e-6, 2.841637457e-1],
        [0.2083340149701255e-7, 0.8333360770334713e-13, 0.9999999791665050],
    ];
    for (state, exact) in solution.states.iter().zip(exact) {
        for (got, want) in state.iter().zip(exact) {
            assert!((got / want - 1.0).abs() < 1e-4, "{state:?}, {}", solution.report);
        }
    }
    assert!(solution.report.steps < 1000, "{}", solution.report);
}

#[test]
fn rates_over_six_decades_cost_few_stiff_steps() {
    // y_i' = −λ_i (y_i − cos t): after the transient y_i = (λ² cos t + λ sin t)/(λ² + 1).
    let rates: Vec<f64> = (0..13).map(|i| 10f64.powf(-1.0 + 0.5 * f64::from(i))).collect();
    let copy = rates.clone();
    let mut field = FieldFn::new(13, move |t: f64, y: &[f64], out: &mut [f64]| {
        for i in 0..13 {
            out[i] = -copy[i] * (y[i] - t.cos());
        }
    });
    let options = Options { method: Method::Stiff, relative: 1e-7, absolute: 1e-9, ..Options::default() };
    let end = 50.0;
    let solution = solve(&mut field, 0.0, &[0.0; 13], end, &[], &[], &options).expect("valid");
    for (y, &rate) in solution.last_state.iter().zip(&rates) {
        let forced = |t: f64| (rate * rate * t.cos() + rate * t.sin()) / (rate * rate + 1.0);
        let exact = forced(end) - forced(0.0) * (-rate * end).exp();
        assert!((y - exact).abs() < 1e-6, "rate {rate}: {y} {exact}");
    }
    assert!(solution.report.steps < 1000, "{}", solution.report);
}

#[test]
fn the_stabilised_method_pays_the_square_root_of_the_stiffness() {
    // Ten thousand rates up to 1e6.
    let n = 10_000;
    let rate = move |i: usize| 1e6 * ((i + 1) as f64 / n as f64).powi(2);
    let mut field = FieldFn::new(n, move |_t, y: &[f64], out: &mut [f64]| {
        for i in 0..n {
            out[i] = -rate(i) * y[i];
        }
    });
    let options =
        Options { method: Method::Stabilised, relative: 1e-5, absolute: 1e-7, ..Options::default() };
    let end = 1.0;
    let start = vec![1.0; n];
    let solution = solve(&mut field, 0.0, &start, end, &[end], &[], &options).expect("valid");
    for (i, y) in solution.last_state.iter().enumerate() {
        assert!((y - (-rate(i) * end).exp()).abs() < 1e-4, "component {i}: {y}");
    }
    // An explicit method of order 5 needs h λ < 3.3: 1.8e6 evaluations.
    assert!(solution.report.evaluations < 40_000, "{}", solution.report);
}
