//! Theory and simulation agree for every way of training, on several families.

use didact_families::Model;
use didact_math::linalg::Mat;
use didact_model::constraint::{Constraint, Retraction};
use didact_model::start::Given;
use didact_model::training::{
    Adam, BatchOrder, Batches, Drift, FactorSchedule, GradientMap, InputLaw, Momentum, ScheduleSpec,
};
use didact_model::{
    Clock, Engine, NoMonitor, Overlaps, Problem, Record, Spectrum, Training, Trajectory, observable,
};
use didact_simulate::{Direct, FullBatch, Reduced};
use didact_theory::dmft::Dmft;
use didact_theory::{Numerical, OrderParameterOde};
use serde_json::{Value, json};
use std::sync::Arc;

fn model(value: &Value) -> Model {
    serde_json::from_value(value.clone()).unwrap()
}

/// Families of different kinds: erf units with closed forms, quadratic units, an adapter with a trained scalar.
fn families() -> Vec<Value> {
    vec![
        json!({"family": "committee", "students": 2, "teachers": 2, "activation": "erf(z/sqrt2)", "train-output": true}),
        json!({"family": "quadratic-networks", "students": 2, "teachers": 2}),
        json!({"family": "lora-single-index", "activation": "tanh", "mu": 0.5}),
    ]
}

fn problem(family: &Value, spectrum: Spectrum, training: Training) -> Problem {
    let model = model(family);
    let rule = model.rule().unwrap();
    let shape = rule.shape();
    let (k, f) = (shape.trained, shape.frozen);
    let q = Mat::from_fn(k, k, |i, j| if i == j { 0.5 - 0.1 * i as f64 } else { 0.1 });
    let r = Mat::from_fn(k, f, |i, n| if i == n { 0.3 } else { 0.05 });
    let scalars = model.starting_scalars().iter().map(|a| if *a == 0.0 { 0.3 } else { *a }).collect();
    let start = Overlaps::spread(shape, &spectrum, (&q, &r, &Mat::identity(f)), scalars).unwrap();
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

fn record(problem: &Problem, times: &[f64], replicas: u32) -> Record {
    let shape = problem.rule.shape();
    let mut names = vec!["loss", "Q[0,0]", "R[0,0]"];
    if shape.scalars > 0 {
        names.push("scalar[0]");
    }
    let observables = names.iter().flat_map(|n| observable::parse(n, problem).unwrap()).collect();
    Record { seed: 5, replicas, ..Record::new(times.to_vec(), observables) }
}

/// |mean over replicas − theory| < 4.5 standard errors plus a bias of order 1/d, for every column and time.
fn assert_agree(name: &str, theory: &Trajectory, simulation: &Trajectory, bias: f64) {
    for column in theory.column_names() {
        let exact = theory.mean(column).unwrap();
        for ((mean, exact), time) in simulation.mean(column).unwrap().iter().zip(exact).zip(&theory.times) {
            let off = (mean.value - exact.value).abs();
            assert!(
                off < 4.5 * mean.error.hypot(exact.error) + bias,
                "{name}: {column} at {time}: {} +- {} and {} +- {}",
                mean.value,
                mean.error,
                exact.value,
                exact.error
            );
        }
    }
}

fn schedule(value: Value) -> FactorSchedule {
    FactorSchedule::new(serde_json::from_value::<ScheduleSpec>(value).unwrap()).unwrap()
}

/// Quadratic units diverge at rates that suit the others.
fn at_rate_of(family: &Value, training: &Training) -> Training {
    let slower = if family["family"] == "quadratic-networks" { 0.1 } else { 1.0 };
    Training { learning_rate: slower * training.learning_rate, ..training.clone() }
}

/// Equations whose averages are sums need not be integrated finely.
fn coarse() -> OrderParameterOde {
    let numerical = Numerical::Budget { error: 1e-4, any_method: true };
    OrderParameterOde { numerical, ..OrderParameterOde::default() }
}

#[test]
fn the_equations_of_every_way_are_the_means_of_reduced() {
    let rotation = Mat::from_rows(&[vec![0.0, 0.5], vec![-0.5, 0.0]]).unwrap();
    let two = || Spectrum::new(vec![2.0, 0.5], vec![0.25, 0.75]).unwrap();
    let base = || Training { label_noise: 0.2, scalar_ratio: 0.5, ..Training::online(0.3) };
    let sphere = Constraint { sphere: Some(Retraction::Euclidean), ..Constraint::none() };
    let decay = Constraint { weight_decay: 0.3, ..Constraint::none() };
    let ways: Vec<(&str, Training)> = vec![
        ("beta", Training { momentum: Some(Momentum::heavy_ball(0.5)), ..base() }),
        ("rate", Training { momentum: Some(Momentum::rate(2.0)), constraint: decay, ..base() }),
        ("rate, sphere", Training { momentum: Some(Momentum::rate(2.0)), constraint: sphere, ..base() }),
        (
            "schedule",
            Training {
                schedule: schedule(
                    json!({"kind": "warm-up", "until": 0.5, "then": {"kind": "inverse", "tau": 1.0}}),
                ),
                label_noise_schedule: schedule(json!("exp(-t)")),
                constraint: decay,
                weight_decay_schedule: schedule(json!({"kind": "cosine", "end": 1.0})),
                ..base()
            },
        ),
        ("drift", Training { drift: Some(Drift::diffusion(0.5)), ..base() }),
        ("trained levels", Training { trained_levels: Some(1), constraint: decay, ..base() }),
        (
            "trained levels, rate",
            Training { trained_levels: Some(1), momentum: Some(Momentum::rate(2.0)), ..base() },
        ),
        ("input noise", Training { input_noise: 0.6, ..base() }),
        ("weight noise", Training { weight_noise: 0.6, batch: 2, ..base() }),
    ];
    for family in families() {
        for (name, training) in &ways {
            let theory = problem(&family, two(), at_rate_of(&family, training));
            let record = record(&theory, &[0.5, 2.0], 24);
            let finite = Problem { dimension: Some(2000), ..theory.clone() };
            let prediction = OrderParameterOde::default().run(&theory, &record, &NoMonitor).unwrap();
            let simulation = Reduced.run(&finite, &record, &NoMonitor).unwrap();
            assert_agree(&format!("{name} of {}", family["family"]), &prediction, &simulation, 2e-3);
        }
    }
    // Ways that need two teachers or hidden units.
    let multi_index = json!({"family": "multi-index", "students": 2, "directions": 2, "activation": "tanh", "link": "z1 + tanh(z2)"});
    let with_units = [&families()[..2], &[multi_index]].concat();
    for family in &with_units {
        for (name, training) in [
            ("rotation", Training { drift: Some(Drift::rotation(rotation.clone())), ..base() }),
            ("dropout", Training { dropout: Some(0.7), ..base() }),
        ] {
            let theory = problem(family, two(), at_rate_of(family, &training));
            let record = record(&theory, &[0.5, 2.0], 24);
            let finite = Problem { dimension: Some(2000), ..theory.clone() };
            let prediction = OrderParameterOde::default().run(&theory, &record, &NoMonitor).unwrap();
            let simulation = Reduced.run(&finite, &record, &NoMonitor).unwrap();
            assert_agree(&format!("{name} of {}", family["family"]), &prediction, &simulation, 2e-3);
        }
    }
}

#[test]
fn clipped_and_normalised_kicks_have_the_limit_of_their_averages() {
    let families = [
        json!({"family": "committee", "students": 1, "teachers": 1, "activation": "erf(z/sqrt2)"}),
        json!({"family": "committee", "students": 2, "teachers": 1, "activation": "linear"}),
        json!({"family": "quadratic-networks", "students": 1, "teachers": 1}),
        json!({"family": "lora-single-index", "activation": "tanh", "mu": 0.5}),
    ];
    for family in families {
        for gradient in [GradientMap::Clip(0.3), GradientMap::Normalised] {
            let training = at_rate_of(&family, &Training { gradient, ..Training::online(0.3) });
            let theory = problem(&family, Spectrum::isotropic(), training);
            let record = record(&theory, &[1.0, 2.0], 24);
            let finite = Problem { dimension: Some(2000), ..theory.clone() };
            let prediction = coarse().run(&theory, &record, &NoMonitor).unwrap();
            let simulation = Reduced.run(&finite, &record, &NoMonitor).unwrap();
            assert_agree(&format!("{gradient:?} of {family}"), &prediction, &simulation, 2e-3);
        }
    }
}

/// Signs and Adam act by coordinate: the limit is approached as d grows, for erf, relu, linear and quadratic units and an adapter.
#[test]
fn signs_and_adam_approach_their_limit_as_the_dimension_grows() {
    let unit = |activation: &str| json!({"family": "committee", "students": 1, "teachers": 1, "activation": activation});
    let families = [
        unit("erf(z/sqrt2)"),
        unit("relu"),
        unit("linear"),
        json!({"family": "quadratic-networks", "students": 1, "teachers": 1}),
        json!({"family": "lora-single-index", "activation": "tanh", "mu": 0.5}),
    ];
    for family in families {
        for gradient in [GradientMap::Sign, GradientMap::Adam(Adam { rate: 2.0, beta: 0.9 })] {
            let spectrum = Spectrum::new(vec![2.0, 0.5], vec![0.25, 0.75]).unwrap();
            let training = Training { gradient, label_noise: 0.3, ..Training::online(0.2) };
            let theory = problem(&family, spectrum, at_rate_of(&family, &training));
            let at = record(&theory, &[1.0, 2.0], 1);
            let prediction = coarse().run(&theory, &at, &NoMonitor).unwrap();
            for (dimension, replicas, bias) in [(100, 48, 0.03), (400, 16, 0.008)] {
                let finite = Problem { dimension: Some(dimension), ..theory.clone() };
                let record = Record { replicas, ..at.clone() };
                let simulation = Direct.run(&finite, &record, &NoMonitor).unwrap();
                assert_agree(
                    &format!("{gradient:?} of {family}, d = {dimension}"),
                    &prediction,
                    &simulation,
                    bias,
                );
            }
        }
    }
}

/// The projections of Rademacher and Laplace inputs on spread rows are nearly Gaussian.
#[test]
fn other_input_laws_follow_the_gaussian_theory_of_spread_rows() {
    for family in families() {
        for inputs in [InputLaw::Rademacher, InputLaw::Laplace] {
            let training = at_rate_of(&family, &Training { inputs: inputs.clone(), ..Training::online(1.0) });
            let theory = problem(&family, Spectrum::isotropic(), training);
            let at = record(&theory, &[1.0, 3.0], 16);
            let prediction = OrderParameterOde::default().run(&theory, &at, &NoMonitor).unwrap();
            let finite = Problem { dimension: Some(400), ..theory.clone() };
            let simulation = Direct.run(&finite, &at, &NoMonitor).unwrap();
            let name = format!("{} inputs of {}", inputs.name(), family["family"]);
            assert_agree(&name, &prediction, &simulation, 6e-3);
        }
    }
}

/// Mean-field theory against simulated training sets.
#[test]
fn mean_field_theory_of_every_way_is_the_mean_of_training_sets() {
    let base = || Training { label_noise: 0.2, scalar_ratio: 0.5, ..Training::full_batch(0.4, 2.0) };
    let batches = |order, persistence| Some(Batches { fraction: 0.5, order, persistence });
    let ways: Vec<(&str, Training)> = vec![
        ("heavy ball", Training { momentum: Some(Momentum::heavy_ball(0.5)), ..base() }),
        (
            "nesterov, batches",
            Training {
                momentum: Some(Momentum::nesterov(0.5)),
                batches: batches(BatchOrder::Independent, None),
                ..base()
            },
        ),
        (
            "reshuffled, cosine",
            Training {
                batches: batches(BatchOrder::Reshuffled, None),
                schedule: schedule(json!({"kind": "cosine", "end": 5.0, "final": 0.2})),
                ..base()
            },
        ),
        (
            "cyclic, decay",
            Training {
                batches: batches(BatchOrder::Cyclic, None),
                constraint: Constraint { weight_decay: 0.2, ..Constraint::none() },
                ..base()
            },
        ),
        (
            "persistent, sphere",
            Training {
                batches: batches(BatchOrder::Independent, Some(4.0)),
                momentum: Some(Momentum::heavy_ball(0.3)),
                constraint: Constraint::sphere(),
                ..base()
            },
        ),
        ("clip", Training { gradient: GradientMap::Clip(0.25), ..base() }),
        ("dropout", Training { dropout: Some(0.7), ..base() }),
        ("input noise", Training { input_noise: 0.5, momentum: Some(Momentum::nesterov(0.4)), ..base() }),
        (
            "weight noise",
            Training { weight_noise: 0.5, batches: batches(BatchOrder::Independent, None), ..base() },
        ),
    ];
    let families = [
        json!({"family": "multi-index", "students": 2, "activation": "tanh", "link": "z"}),
        json!({"family": "multi-index", "students": 2, "activation": "relu", "link": "z", "train-output": true, "train-biases": true}),
        json!({"family": "committee", "students": 1, "teachers": 1, "activation": "erf(z/sqrt2)", "train-output": true}),
        json!({"family": "quadratic-networks", "students": 1, "teachers": 1}),
    ];
    for family in &families {
        for (name, training) in &ways {
            // Whole gradients of quadratic units are large: they diverge sooner than one-pass steps.
            let slower = if family["family"] == "quadratic-networks" { 0.05 } else { 1.0 };
            let training = Training { learning_rate: slower * training.learning_rate, ..training.clone() };
            let theory = Problem { clock: Clock::Steps, ..problem(family, Spectrum::isotropic(), training) };
            let mut at = record(&theory, &[5.0], 24);
            at.observables.extend(observable::parse("train_loss", &theory).unwrap());
            let engine = Dmft {
                sampling: didact_theory::dmft::Sampling { samples: 4096, ..Default::default() },
                scrambles: 4,
            };
            let prediction = engine.run(&theory, &at, &NoMonitor).unwrap();
            let finite = Problem { dimension: Some(300), ..theory.clone() };
            let simulation = FullBatch::default().run(&finite, &at, &NoMonitor).unwrap();
            assert_agree(&format!("{name} of {}", family["family"]), &prediction, &simulation, 4e-3);
        }
    }
}
