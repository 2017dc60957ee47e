//! Answers to the cases of `golden/low-rank-perturbation.json`.

use crate::compare::Answer;
use crate::inputs::Inputs;
use didact_families::Family;
use didact_families::low_rank::dynamics::{Draws, FiniteStep, chain_step};
use didact_families::low_rank::lazy::{LazyLoss, moment_estimator, refit_floor};
use didact_families::low_rank::network::{Kernel, Mode, Network, gaussian_pair, hermite_coefficient};
use didact_families::low_rank::noise::{gradient_noise, single_index};
use didact_families::low_rank::orthonormal::{Signal, Sums, condition_probability};
use didact_families::low_rank::population::{Instance, signal_variance};
use didact_families::low_rank::theorem::{orthogonal_teacher_gram, theorem_constants, two_optima};
use didact_families::low_rank::{
    Base, Loading, LowRank, NamedBase, OutputScale, StartLaw, StudentKind, rank_of_gram,
};
use didact_math::activation::{Activation, parse};
use didact_model::constraint::{Constraint, Retraction};
use didact_model::problem::StepScaling;
use didact_model::record::Crossing;
use didact_model::trajectory::Trajectory;
use didact_model::{Clock, Engine, Event, NoMonitor, Problem, Record, Spectrum, Training, observable};
use didact_simulate::Reduced;
use serde_json::{Value, json};
use std::sync::Arc;

pub fn answer(kind: &str, inputs: &Inputs) -> Option<Answer> {
    Some(match kind {
        "hermite-coefficients" => {
            let (sigma, r) = (activation(inputs), inputs.number("R"));
            per_entry(inputs, "p", |p| hermite_coefficient(&*sigma, p as usize, r))
        }
        "kernel" => {
            let sigma = activation(inputs);
            let kernel = Kernel::new(&*sigma, inputs.number("R"));
            per_entry(inputs, "rho", |rho| kernel.value(rho))
        }
        "kernel-slope" => {
            let sigma = activation(inputs);
            let kernel = Kernel::new(&*sigma, inputs.number("R"));
            per_entry(inputs, "rho", |rho| kernel.slope(rho))
        }
        "gaussian-product" => Answer::exact(pair(inputs).value_value),
        "gaussian-slope-product" => Answer::exact(pair(inputs).slope_slope),
        "signal" => whole(inputs, "m", &instance(inputs).signal(&inputs.list("m"))),
        "loss" => whole(inputs, "m", &instance(inputs).loss(&inputs.list("m"))),
        "signal-series" => Answer::exact(json!(instance(inputs).signal_series(inputs.count("n")))),
        "interaction-tensor" => {
            let (it, pairs) = (instance(inputs), inputs.matrix("pairs"));
            let value = |i: usize| it.interaction(pairs[(i, 0)] as usize, pairs[(i, 1)] as usize);
            Answer::exact(json!((0..pairs.rows()).map(value).collect::<Vec<_>>()))
        }
        "signal-orthonormal" => {
            let sigma = activation(inputs);
            let signal = orthonormal(inputs, &*sigma);
            per_entry(inputs, "m", |m| signal.at(m))
        }
        "signal-variance" => Answer::exact(signal_variance(&network(inputs), &inputs.matrix("G"))),
        "condition-probability" => {
            let p = condition_probability(&*activation(inputs), inputs.count("k"), inputs.number("theta"));
            Answer::exact(json!([p.holds, p.zero]))
        }
        "signal-zeros" => Answer::exact(json!(orthonormal(inputs, &*activation(inputs)).zeros())),
        "flow-time" => {
            let time =
                orthonormal(inputs, &*activation(inputs)).flow_time(inputs.number("m0"), inputs.number("m1"));
            Answer::exact(time.map_or(Value::Null, Value::from))
        }
        "flow" => {
            let m = orthonormal(inputs, &*activation(inputs)).flow(inputs.number("m0"), &inputs.list("tau"));
            whole(inputs, "tau", &m)
        }
        "gradient-noise" => noise(inputs),
        "ode" => {
            let network = network(inputs);
            let flow = finite_step(inputs, &network);
            let m = flow.trajectory(inputs.number("gamma"), inputs.number("m0"), &inputs.list("alpha"));
            whole(inputs, "alpha", &m)
        }
        "ode-fixed-point" => {
            let network = network(inputs);
            let stationary = finite_step(inputs, &network).stationary(inputs.number("gamma"));
            Answer::exact(stationary.map_or(Value::Null, Value::from))
        }
        "single-index-baseline" => {
            let values = single_index(&*activation(inputs), inputs.number_or("A", 1.0), inputs.number("m"));
            Answer::exact(json!(values.expect("an activation with known noise")))
        }
        "one-step" => one_step(inputs),
        "chain-moments" => chain_moments(inputs),
        "first-passage" => first_passage(inputs),
        "joint-training" => joint_training(inputs),
        "from-scratch" => from_scratch(inputs),
        "lazy-losses" => {
            let it = instance(inputs);
            let lazy = LazyLoss::new(&it.network, &it.gram, &it.loading);
            let signal = lazy.rank_one_signal(it.network.strength, &it.student_loading);
            let rank_one = lazy.rank_one_loss(it.network.strength, &it.student_loading, signal.signum());
            Answer::exact(json!([lazy.base, lazy.floor(), rank_one, signal]))
        }
        "ntk-flow" => {
            let lazy = LazyLoss::new(&network(inputs), &inputs.matrix("G"), &inputs.list("c"));
            per_entry(inputs, "tau", |tau| lazy.flow(tau))
        }
        "moment-estimator" => {
            let (network, gram, c) = (network(inputs), inputs.matrix("G"), inputs.list("c"));
            let got = moment_estimator(&network, &gram, &c, inputs.number("n_over_d"));
            Answer::exact(json!([got.signal, got.squared_overlap]))
        }
        "loading-gradient" => Answer::exact(json!(instance(inputs).loading_gradient(inputs.number("m")))),
        "second-layer-refit" => {
            let (network, gram, c) = (network(inputs), inputs.matrix("G"), inputs.list("c"));
            whole(inputs, "m", &refit_floor(&network, &gram, &c, &inputs.list("m")))
        }
        "orthogonal-teacher-signal" => orthogonal_teacher(inputs),
        "two-optima" => {
            let c = two_optima(&inputs.list("u"), &inputs.list("u_prime"));
            Answer::exact(c.map_or(Value::Null, Value::from))
        }
        "theorem-constants" => {
            let number = |key| inputs.number(key);
            let moment = inputs.number_or("mu1c", 1.0);
            let t = theorem_constants(number("d"), number("Sk"), number("Vk"), number("eps"), moment);
            Answer::exact(json!([t.delta, t.rate, t.alpha, t.steps, t.weak_steps]))
        }
        _ => return None,
    })
}

/// Names of the file: `erf` means erf(z/sqrt2).
fn name<'a>(inputs: &'a Inputs) -> &'a str {
    match inputs.0["activation"].as_str().expect("an activation") {
        "erf" => "erf(z/sqrt2)",
        other => other,
    }
}

fn activation(inputs: &Inputs) -> Arc<dyn Activation> {
    parse(name(inputs)).expect("an activation")
}

fn pair(inputs: &Inputs) -> didact_math::gauss::PairAverages {
    gaussian_pair(&*activation(inputs), inputs.number("q11"), inputs.number("q12"), inputs.number("q22"))
}

/// A number for a number, a list for a list.
fn whole(inputs: &Inputs, key: &str, values: &[f64]) -> Answer {
    Answer::exact(if inputs.0[key].is_array() { json!(values) } else { json!(values[0]) })
}

fn per_entry(inputs: &Inputs, key: &str, f: impl Fn(f64) -> f64) -> Answer {
    whole(inputs, key, &inputs.list(key).into_iter().map(f).collect::<Vec<_>>())
}

fn mode(inputs: &Inputs) -> Mode {
    let name = inputs.0.get("mode").cloned().unwrap_or_else(|| json!("normalised"));
    serde_json::from_value(name).expect("a mode")
}

/// λ: given, or ones as many as there are loadings.
fn second_layer(inputs: &Inputs) -> Vec<f64> {
    if inputs.0.get("lambda_").is_some_and(Value::is_array) {
        return inputs.list("lambda_");
    }
    let key = ["b", "c", "b_hat"].into_iter().find(|k| inputs.has(k)).expect("a loading");
    vec![1.0; inputs.list(key).len()]
}

fn network(inputs: &Inputs) -> Network {
    // Where only the interaction is asked for, no activation is given.
    let sigma = if inputs.has("activation") { activation(inputs) } else { parse("id").expect("identity") };
    let mut network = Network::new(sigma, second_layer(inputs), inputs.number_or("xi", 1.0), mode(inputs));
    network.output_scale = inputs.number_or("A", 1.0);
    network
}

fn instance(inputs: &Inputs) -> Instance {
    Instance {
        network: network(inputs),
        gram: inputs.matrix("G"),
        loading: inputs.list("c"),
        student_loading: inputs.list("c_hat"),
    }
}

fn orthonormal<'a>(inputs: &Inputs, sigma: &'a dyn Activation) -> Signal<'a> {
    let sums = Sums::plain(inputs.count("k"), inputs.number("BB"), inputs.number("O"));
    Signal::new(sigma, sums, inputs.number("theta"))
}

/// c = b/√k.
fn loading(inputs: &Inputs, key: &str) -> Vec<f64> {
    let signs = inputs.list(key);
    let root = (signs.len() as f64).sqrt();
    signs.iter().map(|b| b / root).collect()
}

fn noise(inputs: &Inputs) -> Answer {
    let network = network(inputs);
    let (c, own) = (loading(inputs, "b"), loading(inputs, "b_hat"));
    let at = |m: f64| {
        let noise = gradient_noise(&network, &c, &own, m, 0.0).expect("an activation with known noise");
        [noise.whole, noise.along]
    };
    let values: Vec<[f64; 2]> = inputs.list("m").into_iter().map(at).collect();
    Answer::exact(if inputs.0["m"].is_array() { json!(values) } else { json!(values[0]) })
}

fn finite_step<'a>(inputs: &Inputs, network: &'a Network) -> FiniteStep<'a> {
    FiniteStep::new(network, &inputs.list("b"), &inputs.list("b_hat"), 0.0).expect("known noise")
}

fn one_step(inputs: &Inputs) -> Answer {
    let network = Network {
        activation: activation(inputs),
        second_layer: inputs.list("lam"),
        strength: inputs.number("xi"),
        scale: inputs.number("kap"),
        output_scale: inputs.number("A"),
    };
    let base = inputs.list("y");
    let draws = Draws {
        base: &base,
        along: inputs.number("a"),
        across: inputs.number("b"),
        rest: inputs.number("q"),
    };
    let loadings = (inputs.list("c"), inputs.list("ch"));
    let (m, d, f) =
        chain_step(&network, (&loadings.0, &loadings.1), inputs.number("m"), inputs.number("eta"), &draws);
    Answer::exact(json!([m, d, f]))
}

fn orthogonal_teacher(inputs: &Inputs) -> Answer {
    let own = loading(inputs, "b_hat");
    let c = alternating(own.len());
    let it = Instance {
        network: Network::new(activation(inputs), vec![1.0; own.len()], 1.0, Mode::Normalised),
        gram: orthogonal_teacher_gram(&c),
        loading: c,
        student_loading: own,
    };
    whole(inputs, "m", &it.signal(&inputs.list("m")))
}

/// c_i = (−1)^i/√k, i = 1..k.
fn alternating(k: usize) -> Vec<f64> {
    (1..=k).map(|i| if i % 2 == 1 { -1.0 } else { 1.0 } / (k as f64).sqrt()).collect()
}

/// A problem in steps; û on the sphere, off W if `off_own`.
fn problem(spec: &LowRank, dimension: u64, step: f64, off_own: bool, scalar_ratio: f64) -> Problem {
    let constraint = Constraint {
        sphere: Some(Retraction::Tangent),
        scalar_sphere: Some(Retraction::Tangent),
        off_own,
        ..Constraint::none()
    };
    let training =
        Training { scaling: StepScaling::Plain, scalar_ratio, constraint, ..Training::online(step) };
    Problem {
        rule: spec.rule().expect("a rule"),
        about: spec.about(),
        spectrum: Spectrum::isotropic(),
        dimension: Some(dimension),
        training,
        start: spec.start().expect("a start").expect("this family has one"),
        clock: Clock::Steps,
    }
}

fn run(
    problem: &Problem,
    times: Vec<f64>,
    observe: &[&str],
    replicas: u32,
    event: Option<f64>,
) -> Trajectory {
    let parse = |name: &str| observable::parse(name, problem).expect("an observable");
    let mut record = Record::new(times, observe.iter().flat_map(|n| parse(n)).collect());
    (record.replicas, record.seed) = (replicas, 11);
    if let Some(level) = event {
        let observable = parse("abs(m)")[0].clone();
        record.events.push(Event {
            name: "passage".into(),
            observable,
            level,
            crossing: Crossing::Rises,
            stops: true,
        });
        // Looks are placed linearly between: half a step of bias.
        record.watch_every = Some(2.0);
    }
    Reduced.run(problem, &record, &NoMonitor).expect("a run")
}

/// The description of an instance with given Gram and loadings.
fn spec(inputs: &Inputs, student: &str) -> LowRank {
    LowRank {
        mode: mode(inputs),
        output_scale: OutputScale::Given(inputs.number_or("A", 1.0)),
        second_layer: Some(second_layer(inputs)),
        base: Base::Gram(inputs.matrix("G").to_rows()),
        loading: Loading::Given(inputs.list("c")),
        student_loading: Loading::Given(inputs.list(student)),
        start: StartLaw::Overlap(inputs.number("m0")),
        ..LowRank::new(name(inputs), inputs.list("c").len(), inputs.number("xi"))
    }
}

/// Runs of the files: at least as many as any `method` names.
const RUNS: u32 = 4000;

/// Means with their errors, then standard deviations (whose own error is at most that of the mean).
fn moments(run: &Trajectory, columns: &[(&str, usize)]) -> Answer {
    let entries: Vec<_> =
        columns.iter().map(|(name, at)| run.mean(name).expect("a column").swap_remove(*at)).collect();
    let values: Vec<f64> =
        entries.iter().map(|m| m.value).chain(entries.iter().map(|m| m.deviation)).collect();
    let errors: Vec<f64> = entries.iter().chain(&entries).map(|m| m.error).collect();
    Answer::sampled(&values, &errors)
}

fn chain_moments(inputs: &Inputs) -> Answer {
    let spec = spec(inputs, "c_hat");
    let (steps, rank) = (inputs.count("T"), rank_of_gram(&inputs.matrix("G")).expect("a Gram matrix"));
    let dimension = (inputs.count("d_perp") + rank) as u64;
    let problem = problem(&spec, dimension, inputs.number("eta"), true, 1.0);
    let run = run(&problem, vec![(steps / 2) as f64, steps as f64], &["m"], RUNS, None);
    moments(&run, &[("m", 0), ("m", 1)])
}

fn joint_training(inputs: &Inputs) -> Answer {
    let spec = LowRank { train_loading: true, ..spec(inputs, "c_hat0") };
    let off_own = inputs.flag_or("uhat_restricted_to_W_complement", true);
    let ratio = inputs.number("eta_c") / inputs.number("eta_u");
    let problem = problem(&spec, inputs.count("d") as u64, inputs.number("eta_u"), off_own, ratio);
    let run = run(&problem, vec![inputs.number("T")], &["m", "omega"], RUNS, None);
    moments(&run, &[("m", 0), ("omega", 0)])
}

fn from_scratch(inputs: &Inputs) -> Answer {
    let k = inputs.count("k");
    let spec = LowRank {
        student: StudentKind::FromScratch,
        base: Base::Named(NamedBase::OrthogonalTeacher),
        loading: Loading::Given(alternating(k)),
        ..LowRank::new(name(inputs), k, 1.0)
    };
    let steps = inputs.count("T");
    let problem = problem(&spec, inputs.count("d") as u64, inputs.number("eta"), false, 1.0);
    let times = vec![0.0, (steps / 2) as f64, steps as f64];
    let run = run(&problem, times, &["matched"], RUNS, None);
    let (values, errors): (Vec<f64>, Vec<f64>) =
        run.mean("matched").expect("a column").iter().map(|m| (m.value, m.error)).unzip();
    Answer::sampled(&values, &errors)
}

fn first_passage(inputs: &Inputs) -> Answer {
    let (c, own) = (loading(inputs, "b"), loading(inputs, "b_hat"));
    let k = c.len();
    let spec = LowRank {
        mode: mode(inputs),
        output_scale: OutputScale::Given(inputs.number_or("A", 1.0)),
        second_layer: Some(second_layer(inputs)),
        loading: Loading::Given(c),
        student_loading: Loading::Given(own),
        start: StartLaw::Scaled { scaled: 1.0 },
        ..LowRank::new(name(inputs), k, inputs.number("xi"))
    };
    let (mut values, mut errors) = (Vec::new(), Vec::new());
    for d in inputs.list("d") {
        let outside = d - k as f64;
        let problem = problem(&spec, d as u64, inputs.number("gamma") / outside, true, 1.0);
        // Long enough for every run: passages that do not happen would be missing from the mean.
        let run = run(&problem, vec![1e9], &[], 400, Some(inputs.number("threshold")));
        let mut sample = didact_math::random::statistics::Moments::default();
        for passage in &run.events[0].times {
            let steps = passage.expect("every replica passes");
            sample.push(steps.ceil() / outside);
        }
        values.push(sample.mean());
        errors.push(sample.standard_error());
    }
    Answer::sampled(&values, &errors)
}
