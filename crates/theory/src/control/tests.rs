use super::*;
use crate::OrderParameterOde;
use didact_families::Model;
use didact_math::linalg::Mat;
use didact_math::ode::KeptOptions;
use didact_model::constraint::{Constraint, Retraction};
use didact_model::observable::Risk;
use didact_model::start::Given;
use didact_model::training::Course;
use didact_model::{
    Clock, Engine, Monitor, NoMonitor, Overlaps, Problem, Record, Spectrum, Training, observable,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A problem that starts from the same overlaps in every eigenspace, spread by weight.
fn learning(model: Value, spectrum: Spectrum, training: Training, q: &[Vec<f64>], r: &[Vec<f64>]) -> Problem {
    let model: Model = serde_json::from_value(model).unwrap();
    let rule = model.rule().unwrap();
    let (q, r) = (Mat::from_rows(q).unwrap(), Mat::from_rows(r).unwrap());
    let t = Mat::identity(rule.shape().frozen);
    let start = Overlaps::spread(rule.shape(), &spectrum, (&q, &r, &t), model.starting_scalars()).unwrap();
    Problem {
        rule,
        about: model.about(),
        spectrum,
        dimension: None,
        training,
        start: Arc::new(Given(start)),
        clock: Clock::Alpha,
    }
}

fn erf(k: usize, noise: f64, q: f64, r: f64) -> Problem {
    let model = json!({"family": "committee", "students": k, "teachers": k, "activation": "erf(z/sqrt2)"});
    let diagonal = |x: f64| Mat::identity(k).scaled(x).to_rows();
    let training = Training { label_noise: noise, ..Training::online(0.5) };
    learning(model, Spectrum::isotropic(), training, &diagonal(q), &diagonal(r))
}

fn linear(spectrum: Spectrum, noise: f64) -> Problem {
    let model = json!({"family": "committee", "students": 1, "teachers": 1, "activation": "linear"});
    let training = Training { label_noise: noise, ..Training::online(0.5) };
    learning(model, spectrum, training, &[vec![1.0]], &[vec![0.0]])
}

fn control(problem: Problem, horizon: f64, high: f64, knots: usize) -> ControlProblem<'static> {
    let start = problem.start.draw(&problem.setting(0, 0)).unwrap();
    ControlProblem {
        problem,
        starts: vec![start],
        observable: Arc::new(Risk),
        objective: Objective::Final,
        horizon,
        controls: vec![Control { key: ControlKey::LearningRate, bounds: (0.0, high), knots }],
        options: KeptOptions::default(),
        monitor: &NoMonitor,
    }
}

/// The same course, displaced at one knot.
fn displaced(protocol: &[Course], control: usize, knot: usize, by: f64) -> Protocol {
    let mut moved = protocol.to_vec();
    moved[control].values[knot] += by;
    moved
}

/// Every entry of the gradient against central differences of J, relative to the largest.
fn assert_gradient(control: &ControlProblem, protocol: &[Course], tolerance: f64) {
    let at = control.differentiate(protocol).unwrap();
    let largest = at.gradient.iter().flatten().fold(0.0_f64, |m, g| m.max(g.abs()));
    for (c, gradient) in at.gradient.iter().enumerate() {
        for (k, g) in gradient.iter().enumerate() {
            let h = 1e-4;
            let value = |by: f64| control.value(&displaced(protocol, c, k, by));
            let want = (8.0 * (value(h) - value(-h)) - (value(2.0 * h) - value(-2.0 * h))) / (12.0 * h);
            assert!((g - want).abs() < tolerance * largest, "control {c}, knot {k}: {g} {want} of {largest}");
        }
    }
}

#[test]
fn the_split_equations_are_those_of_the_engine() {
    // Two eigenspaces, weight decay, a sphere, motion off frozen rows, trained scalars on a sphere, batch 3.
    let model = json!({"family": "committee", "students": 2, "teachers": 2, "activation": "erf(z/sqrt2)",
        "output": "scaled", "train-output": true});
    let spectrum = Spectrum::new(vec![1.6, 0.4], vec![0.5, 0.5]).unwrap();
    for constraint in [
        Constraint { weight_decay: 0.2, ..Constraint::none() },
        Constraint { sphere: Some(Retraction::Euclidean), weight_decay: 0.1, ..Constraint::none() },
        Constraint { off_frozen: true, scalar_sphere: Some(Retraction::Tangent), ..Constraint::none() },
    ] {
        let training =
            Training { label_noise: 0.3, batch: 3, scalar_ratio: 0.7, constraint, ..Training::online(0.8) };
        let (q, r) = (vec![vec![0.5, 0.1], vec![0.1, 0.4]], vec![vec![0.2, 0.05], vec![0.0, 0.15]]);
        let problem = learning(model.clone(), spectrum.clone(), training, &q, &r);
        let start = problem.start.draw(&problem.setting(0, 0)).unwrap();
        let mut flow = split_flow::SplitFlow::new(&problem, &start);
        let state = flow.pack(&start);
        assert_eq!(flow.unpack(&state), start);
        flow.evaluate(&state, constraint.weight_decay, 0.3);
        let (mut f1, mut f2) = (vec![0.0; state.len()], vec![0.0; state.len()]);
        flow.parts(&state, &mut f1, &mut f2);
        let want = flow.pack(&OrderParameterOde::default().initial_derivative(&problem).unwrap());
        for i in 0..state.len() {
            let got = 0.8 * f1[i] + 0.64 * f2[i];
            assert!((got - want[i]).abs() < 1e-13, "{constraint:?} {i}: {got} {}", want[i]);
        }
        // The transposed derivative, against differences of the equations along a direction.
        let cotangent: Vec<f64> = (0..state.len()).map(|i| ((i * 7 + 3) % 11) as f64 / 11.0 - 0.4).collect();
        let mut pulled = vec![0.0; state.len()];
        let slopes = flow.pull_back(&state, 0.8, &cotangent, &mut pulled, true);
        let mut along = |state: &[f64], decay: f64, noise: f64| -> f64 {
            flow.evaluate(state, decay, noise);
            flow.parts(state, &mut f1, &mut f2);
            (0..state.len()).map(|i| cotangent[i] * (0.8 * f1[i] + 0.64 * f2[i])).sum()
        };
        let (decay, h) = (constraint.weight_decay, 1e-5);
        for i in 0..state.len() {
            let mut moved = state.clone();
            moved[i] += h;
            let up = along(&moved, decay, 0.3);
            moved[i] -= 2.0 * h;
            let want = (up - along(&moved, decay, 0.3)) / (2.0 * h);
            assert!((pulled[i] - want).abs() < 1e-8, "{constraint:?} {i}: {} {want}", pulled[i]);
        }
        let by_decay = (along(&state, decay + h, 0.3) - along(&state, decay - h, 0.3)) / (2.0 * h);
        let by_noise = (along(&state, decay, 0.3 + h) - along(&state, decay, 0.3 - h)) / (2.0 * h);
        assert!((slopes.decay - by_decay).abs() < 1e-8 && (slopes.noise - by_noise).abs() < 1e-7);
    }
}

#[test]
fn gradients_by_knots_are_those_of_differences() {
    let mut two = control(erf(2, 0.2, 0.4, 0.1), 20.0, 5.0, 4);
    // Differences of J see that its steps change with the protocol: they are as exact as the steps.
    two.options = KeptOptions { relative: 1e-11, absolute: 1e-14, ..two.options };
    let course =
        |values: &[f64]| Course { times: knot_times(values.len() - 1, 20.0), values: values.to_vec() };
    assert_gradient(&two, &[course(&[0.5, 1.1, 0.9, 0.6, 0.2])], 1e-6);
    two.objective = Objective::Integral;
    assert_gradient(&two, &[course(&[0.5, 1.1, 0.9, 0.6, 0.2])], 1e-6);
    // Any observable, and several controls at once.
    two.objective = Objective::Final;
    two.observable = observable::parse("loss + 0.1*Q[0,1]^2 - 0.2*R[0,0]", &two.problem).unwrap().remove(0);
    two.problem.training.constraint.weight_decay = 0.01;
    for key in [ControlKey::WeightDecay, ControlKey::LabelNoise] {
        two.controls.push(Control { key, bounds: (0.0, 1.0), knots: 2 });
    }
    assert_gradient(
        &two,
        &[course(&[0.5, 1.1, 0.9, 0.6, 0.2]), course(&[0.02, 0.01, 0.03]), course(&[0.1, 0.2, 0.3])],
        1e-6,
    );
}

#[test]
fn the_objective_is_what_the_engine_runs_with_the_course_as_its_schedule() {
    let control = control(erf(2, 0.1, 0.5, 0.1), 30.0, 5.0, 6);
    let course = Course { times: knot_times(6, 30.0), values: vec![0.3, 1.2, 1.5, 0.8, 0.4, 0.1, 0.0] };
    let mut problem = control.problem.clone();
    problem.training.learning_rate = 1.0;
    let spec = json!({"kind": "course", "times": course.times, "values": course.values});
    let schedule = serde_json::from_value(spec).unwrap();
    problem.training.schedule = didact_model::training::FactorSchedule::new(schedule).unwrap();
    let observed = observable::parse("loss", &problem).unwrap();
    let run =
        OrderParameterOde::default().run(&problem, &Record::new(vec![30.0], observed), &NoMonitor).unwrap();
    let (engine, value) = (run.curves("loss").unwrap()[0][0], control.value(&[course]));
    assert!((engine / value - 1.0).abs() < 1e-6, "{engine} {value}");
}

#[test]
fn a_linear_unit_has_its_closed_form_and_greedy_is_optimal() {
    let control = control(linear(Spectrum::isotropic(), 0.5), 20.0, 2.0, 20);
    let optimum = control.optimise(&Search { starts: 1, ..Search::default() }).unwrap();
    let (last_rate, loss) = linear_unit(1.0, 0.5, 20.0);
    let (greedy, course) = optimum.greedy.clone().unwrap();
    assert!((greedy / loss - 1.0).abs() < 1e-6, "{greedy} {loss}");
    for (time, rate) in course.times.iter().zip(&course.values) {
        assert!((rate / linear_unit(1.0, 0.5, *time).0 - 1.0).abs() < 1e-5, "{time}: {rate}");
    }
    // Knots make it worse than the optimum over all functions, and by little.
    assert!(optimum.value > loss * (1.0 - 1e-7) && optimum.value < loss * (1.0 + 2e-4), "{}", optimum.value);
    assert!((optimum.protocol[0].values[20] / last_rate - 1.0).abs() < 0.02);
    let certificate = &optimum.certificate;
    assert!(certificate.certified, "{certificate:?}");
    assert!(certificate.hamiltonian_spread.unwrap() < 1e-3, "{certificate:?}");
    assert!((certificate.polished.unwrap() / loss - 1.0).abs() < 2e-6, "{certificate:?} {loss}");
    assert!(optimum.constant.value > 1.5 * optimum.value && optimum.given > optimum.value);
}

#[test]
fn more_knots_wider_bounds_and_longer_times_never_raise_the_objective() {
    let base = control(erf(1, 0.3, 0.25, 0.05), 20.0, 4.0, 10);
    let best = |control: &ControlProblem| {
        let constant = control.best_constant().unwrap();
        let start = control.constant(&constant.values);
        let mut last = f64::INFINITY;
        let mut falls = |_: usize, value: f64, _: &Protocol| {
            assert!(value <= last * (1.0 + 1e-9), "{value} after {last}");
            last = value;
            true
        };
        let found = control.direct(&start, 0, control.level_count(), 100, &mut falls).unwrap();
        let (low, high) = control.controls[0].bounds;
        assert!(found.protocol[0].values.iter().all(|x| (low..=high).contains(x)));
        found.value
    };
    let narrow = ControlProblem {
        controls: vec![Control { bounds: (0.1, 0.5), ..base.controls[0].clone() }],
        ..base.clone()
    };
    let fine =
        ControlProblem { controls: vec![Control { knots: 20, ..base.controls[0].clone() }], ..base.clone() };
    let value = best(&base);
    assert!(best(&narrow) > value && best(&fine) <= value * (1.0 + 1e-8));
    assert!(best(&base.with_horizon(25.0)) < value);
}

#[test]
fn rate_and_batch_are_one_control_per_sample_and_permuted_students_have_one_protocol() {
    // B = 4, η four times as large, a quarter of the steps: the same per sample (docs/derivations/optimal-protocols.md#s6).
    let mut single = control(erf(2, 0.2, 0.5, 0.1), 16.0, 4.0, 4);
    let values = [0.3, 0.6, 0.5, 0.3, 0.1];
    let course = |horizon: f64, factor: f64| {
        vec![Course { times: knot_times(4, horizon), values: values.iter().map(|v| factor * v).collect() }]
    };
    let one = single.value(&course(16.0, 1.0));
    single.problem.training.batch = 4;
    single.horizon = 4.0;
    let four = single.value(&course(4.0, 4.0));
    assert!((one / four - 1.0).abs() < 1e-7, "{one} {four}");
    // A permutation of the students.
    let model = json!({"family": "committee", "students": 2, "teachers": 2, "activation": "erf(z/sqrt2)"});
    let (q, r) = ([[0.4, 0.05], [0.05, 0.3]], [[0.2, 0.05], [0.02, 0.15]]);
    let rows = |m: [[f64; 2]; 2]| m.map(|row| row.to_vec()).to_vec();
    let swapped = |m: [[f64; 2]; 2]| rows([[m[1][1], m[1][0]], [m[0][1], m[0][0]]]);
    let training = Training { label_noise: 0.2, ..Training::online(0.5) };
    let gradient = |q: Vec<Vec<f64>>, r: Vec<Vec<f64>>| {
        let problem = learning(model.clone(), Spectrum::isotropic(), training.clone(), &q, &r);
        control(problem, 16.0, 4.0, 4).differentiate(&course(16.0, 1.0)).unwrap().gradient
    };
    let swapped_rows = rows([r[1], r[0]]);
    let (a, b) = (gradient(rows(q), rows(r)), gradient(swapped(q), swapped_rows));
    for (x, y) in a[0].iter().zip(&b[0]) {
        assert!((x - y).abs() < 1e-9, "{a:?} {b:?}");
    }
}

#[test]
fn a_linear_unit_scales_with_its_eigenvalues() {
    // λ_b and σ² times c, η over c: the loss is c times as large (docs/derivations/optimal-protocols.md#s4).
    let c: f64 = 2.5;
    let spectrum = |scale: f64| Spectrum::new(vec![1.75 * scale, 0.25 * scale], vec![0.5, 0.5]).unwrap();
    let value = |scale: f64| {
        let control = control(linear(spectrum(scale), 0.3 * scale.sqrt()), 12.0, 1.0 / scale, 4);
        let values = [0.7, 0.5, 0.4, 0.2, 0.1].map(|v| v / scale).to_vec();
        control.value(&[Course { times: knot_times(4, 12.0), values }])
    };
    assert!((value(c) / value(1.0) - c).abs() < 1e-6);
}

#[test]
fn the_hamiltonian_is_the_slope_of_the_best_value_and_the_last_rate_is_greedy() {
    let control = control(erf(1, 0.3, 0.25, 0.05), 20.0, 10.0, 20);
    let best = |horizon: f64| {
        let there = control.with_horizon(horizon);
        let start = there.constant(&there.best_constant().unwrap().values);
        let found = there.direct(&start, 0, 2, 200, &mut |_, _, _| true).unwrap();
        let finest = there.with_finer_knots(4);
        finest.sweep(&finest.resampled(&found.protocol), 60, &mut |_, _, _| true).unwrap()
    };
    let (middle, early, late) = (best(20.0), best(19.5), best(20.5));
    let slope = (late.at.value - early.at.value) / 1.0;
    // Known from independent code: -1.919199e-4.
    let hamiltonian = middle.at.momenta[10].hamiltonian;
    assert!((hamiltonian / -1.919199e-4 - 1.0).abs() < 2e-3, "{hamiltonian}");
    assert!((slope / hamiltonian - 1.0).abs() < 5e-3, "{slope} {hamiltonian}");
    let last = *middle.protocol[0].values.last().unwrap();
    let state = &control.states(&middle.protocol, 0, &[20.0]).unwrap()[0];
    assert!((last / control.greedy_rate(20.0, state, (0.0, 10.0)) - 1.0).abs() < 1e-3);
}

#[test]
fn minimum_time_and_final_loss_are_inverse_to_each_other() {
    let control = control(linear(Spectrum::isotropic(), 0.5), 60.0, 2.0, 20);
    // T = s (1/ε − 1/ε₀) + ln(ε₀/ε) of a linear unit (docs/derivations/optimal-protocols.md#eq-13).
    let level = 0.02;
    let want = 0.125 * (1.0 / level - 1.0) + (1.0_f64 / level).ln();
    let search = Search { starts: 1, certify: false, ..Search::default() };
    let found = control.minimum_time(level, &search).unwrap();
    assert!((found.time / want - 1.0).abs() < 1e-3, "{} {want}", found.time);
    assert!((found.optimum.value / level - 1.0).abs() < 1e-4);
    assert!(found.constant.unwrap().1 > found.time && found.greedy.unwrap() > 0.999 * found.time);
    let refused = control.minimum_time(2.0, &search).unwrap_err();
    assert!(matches!(refused, ControlError::ReachedAtStart { .. }), "{refused}");
    let refused = control.with_horizon(5.0).minimum_time(level, &search).unwrap_err();
    assert!(matches!(refused, ControlError::NotReached { .. }), "{refused}");
}

#[test]
fn sweeps_and_direct_transcription_find_one_optimum() {
    let spectrum = Spectrum::new(vec![1.75, 0.25], vec![0.5, 0.5]).unwrap();
    for (problem, horizon, high) in [
        (linear(spectrum, 0.3), 50.0, 1.0),
        (erf(1, 0.3, 0.25, 0.05), 50.0, 10.0),
        (erf(2, 0.1, 0.5, 0.1), 40.0, 10.0),
    ] {
        let control = control(problem, horizon, high, 40);
        let found = |method: SearchMethod| {
            let search = Search { starts: 2, certify: false, method, ..Search::default() };
            control.optimise(&search).unwrap()
        };
        let (direct, sweep) = (found(SearchMethod::Direct), found(SearchMethod::Sweep));
        // Sweeps have four times as many points: they may only be lower, by what 40 knots cost, which is at most 2e-4 in these problems.
        let excess = direct.value / sweep.value - 1.0;
        assert!(excess.abs() < 1e-3, "{} {}", direct.value, sweep.value);
        // The protocols agree where the objective feels them: in the mean over time.
        let difference = |i: usize| {
            let time = horizon * (f64::from(i as u32) + 0.5) / 200.0;
            (direct.protocol[0].value(time) - sweep.protocol[0].value(time)).abs()
        };
        let mean = (0..200).map(difference).sum::<f64>() / 200.0;
        let scale =
            (0..200).map(|i| sweep.protocol[0].value(horizon * f64::from(i) / 200.0)).sum::<f64>() / 200.0;
        assert!(mean < 0.05 * scale, "{mean} of {scale}");
    }
}

/// Asks for the end after so many questions.
struct Impatient {
    asked: AtomicUsize,
    limit: usize,
}

impl Monitor for Impatient {
    fn advance(&self, _fraction: f64) {}
    fn cancelled(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed) >= self.limit
    }
}

#[test]
fn an_interrupted_search_goes_on_where_it_stood() {
    let control = control(erf(1, 0.3, 0.25, 0.05), 20.0, 4.0, 20);
    let search = Search { starts: 3, certify: false, ..Search::default() };
    let whole = control.optimise(&search).unwrap();
    let counter = Impatient { asked: AtomicUsize::new(0), limit: usize::MAX };
    ControlProblem { monitor: &counter, ..control.clone() }.optimise(&search).unwrap();
    let all = counter.asked.load(Ordering::Relaxed);
    let mut kept = Vec::new();
    for share in [0.05, 0.6, 0.9] {
        let monitor = Impatient { asked: AtomicUsize::new(0), limit: (share * all as f64) as usize };
        let stopped = ControlProblem { monitor: &monitor, ..control.clone() }.optimise(&search);
        let Err(ControlError::Interrupted(left)) = stopped else { panic!("{stopped:?}") };
        kept.push(left);
    }
    assert!(kept[0].is_empty() && kept[1].len() == 3, "{kept:?}");
    assert!(kept[2].iter().any(|start| start.levels > 0), "{kept:?}");
    for resume in kept {
        let before: usize = resume.iter().map(|start| start.iterations).sum();
        let search = Search { resume, ..search.clone() };
        let resumed = control.optimise(&search).unwrap();
        assert!((resumed.value / whole.value - 1.0).abs() < 1e-4, "{} {}", resumed.value, whole.value);
        let steps: usize = resumed.starts.iter().map(|start| start.iterations).sum();
        assert!(steps >= before && resumed.starts[0].levels == control.level_count());
    }
}
