//! Answers to the cases of `golden/lora-single-index.json`.

use crate::compare::Answer;
use crate::inputs::Inputs;
use didact_families::Family;
use didact_families::lora::hermite::time_scale;
use didact_families::lora::two_layer::{LoraTwoLayer, PerUnit};
use didact_families::lora::{LoraSingleIndex, two_layer};
use didact_math::linalg::Mat;
use didact_math::ode::{Options, Saving};
use didact_math::random::statistics::Moments;
use didact_model::constraint::{Constraint, Retraction};
use didact_model::observable::{self, Risk};
use didact_model::problem::StepScaling;
use didact_model::quantity::Quantity;
use didact_model::start::Given;
use didact_model::{Clock, Engine, Needed, NoMonitor, Overlaps, Problem, Record, Spectrum, Training};
use didact_simulate::Reduced;
use didact_theory::{Numerical, OrderParameterOde};
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub fn answer(kind: &str, inputs: &Inputs) -> Option<Answer> {
    Some(match kind {
        "drift-coefficients" => entries(&pair("rates", inputs), &["A", "B", "lambda-plus", "tau"]),
        "drift-coefficients-hermite" => {
            let given = json!({"k": inputs.number("k"), "mu": inputs.number("mu")});
            entries(&compute("hermite-rates", &given), &["A", "B", "tau"])
        }
        "hermite-variance-polynomial" => {
            let answer = compute("variance-polynomial", &json!({"k": inputs.number("k")}));
            Answer::exact(answer["coefficients"].clone())
        }
        "singular-alignments" => {
            Answer::exact(compute("singular-alignments", &json!({"k": inputs.0["k"]}))["mu"].clone())
        }
        "loss-and-gradient" => entries(&pair("loss", inputs), &["loss", "by-u", "by-m"]),
        "flow" | "misaligned-flow" | "correlation-flow" => flow(kind, inputs),
        "flow-endpoint" => endpoint(inputs),
        "exit-times" => entries(&pair("exit-times", inputs), &["nonlinear", "linear"]),
        "misaligned-rate" => {
            entries(&pair("misaligned-rates", inputs), &["alpha", "beta", "G", "lambda-plus"])
        }
        "correlation-drift" => entries(&pair("rates", inputs), &["A", "B"]),
        "mechanics" => entries(&pair("mechanics", inputs), &["g", "speed", "V", "E", "power"]),
        "descent-rates" => entries(&pair("descent-rates", inputs), &["overlap", "amplitude"]),
        "hermite-mean" => {
            let given = json!({"k": inputs.number("k"), "r": inputs.number("r")});
            Answer::exact(compute("hermite-mean", &given)["mean"].clone())
        }
        "hermite-coefficients" => Answer::exact(pair("hermite-coefficients", inputs)["b"].clone()),
        "gradient-noise" => Answer::exact(pair("gradient-noise", inputs)["noise"].clone()),
        "large-batch-map" => entries(&pair("large-batch-map", inputs), &["u", "m"]),
        "sgd-moments" => sgd_moments(inputs),
        "two-layer-escape-rate" => {
            let activation = name(&inputs.0["activation"]);
            let rate = two_layer::escape_rate(&activation, &inputs.list("v"), &inputs.list("mu"));
            Answer::exact(rate.expect("a closed form"))
        }
        "two-layer-rhs" => two_layer_derivative(inputs),
        "two-layer-noise" => two_layer_noise(inputs),
        "two-layer-flow-loss" => two_layer_flow(inputs),
        "two-layer-final-loss" => {
            Answer::exact(two_layer::final_loss(inputs.count("K"), inputs.count("R"), inputs.number("mu")))
        }
        _ => return None,
    })
}

/// The name of an activation here: `erf` there is erf(z), `Heknorm` is He_k/√k!.
fn name(value: &Value) -> String {
    match value.as_str().expect("an activation") {
        "erf" => "erf(z)".into(),
        "erf_sqrt2" => "erf(z/sqrt2)".into(),
        other => match other.strip_suffix("norm").and_then(|rest| rest.strip_prefix("He")) {
            Some(order) => format!("h{order}"),
            None => other.into(),
        },
    }
}

/// A quantity of the single-index family.
fn compute(quantity: &str, given: &Value) -> Map<String, Value> {
    let found: &Quantity =
        LoraSingleIndex::quantities().iter().find(|q| q.name == quantity).expect("a quantity");
    let answer =
        found.evaluate(given.as_object().expect("inputs")).unwrap_or_else(|e| panic!("{given}: {e}"));
    answer.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
}

fn entries(answer: &Map<String, Value>, names: &[&str]) -> Answer {
    Answer::exact(json!(names.iter().map(|n| answer[*n].clone()).collect::<Vec<_>>()))
}

/// A quantity of a pair of activations, its inputs under their names here.
fn pair(quantity: &str, inputs: &Inputs) -> Map<String, Value> {
    let mut given = Map::new();
    let keys = [
        ("mu", "mu"),
        ("u", "u"),
        ("m", "m"),
        ("u0", "u0"),
        ("m0", "m0"),
        ("delta", "delta"),
        ("times", "times"),
        ("a", "a"),
        ("b", "b"),
        ("nu", "nu"),
        ("loss", "loss"),
        ("eta", "eta"),
        ("d_over_B", "d-over-B"),
        ("m_eff_sign", "sign"),
        ("r", "r"),
    ];
    for (there, here) in keys {
        if inputs.has(there) {
            given.insert(here.into(), inputs.0[there].clone());
        }
    }
    for (there, here) in [("activation", "activation"), ("student", "activation"), ("teacher", "teacher")] {
        if inputs.has(there) {
            given.insert(here.into(), json!(name(&inputs.0[there])));
        }
    }
    if inputs.flag_or("square_labels", false) {
        given.insert("labels".into(), json!("squared"));
    }
    match quantity {
        "large-batch-map" => drop(given.insert("steps".into(), inputs.0["T"].clone())),
        "hermite-coefficients" => drop(given.insert("terms".into(), inputs.0["K"].clone())),
        "rates" if !inputs.has("square_labels") => drop(given.insert("loss".into(), json!("correlation"))),
        _ => {}
    }
    compute(quantity, &Value::Object(given))
}

fn flow(kind: &str, inputs: &Inputs) -> Answer {
    let mut given = json!({"times": inputs.0["times"]});
    let set = |given: &mut Value, key: &str, value: Value| given[key] = value;
    match kind {
        "misaligned-flow" => {
            let start = inputs.list("y0");
            set(&mut given, "activation", json!(name(&inputs.0["activation"])));
            set(&mut given, "mu", inputs.0["a"].clone());
            set(&mut given, "misalignment", inputs.0["b"].clone());
            set(&mut given, "nu", inputs.0["nu"].clone());
            for (key, value) in ["u0", "m0", "q0"].iter().zip(start) {
                set(&mut given, key, json!(value));
            }
            let answer = compute("flow", &given);
            return entries(&answer, &["u", "m", "q"]);
        }
        "correlation-flow" => {
            // Linear activations: mu drops out.
            for (key, value) in
                [("activation", json!("linear")), ("mu", json!(0.5)), ("loss", json!("correlation"))]
            {
                set(&mut given, key, value);
            }
        }
        _ => {
            set(&mut given, "activation", json!(name(&inputs.0["student"])));
            set(&mut given, "teacher", json!(name(&inputs.0["teacher"])));
            set(&mut given, "mu", inputs.0["mu"].clone());
            set(&mut given, "delta", json!(inputs.number_or("delta", 1.0)));
            let squared = inputs.flag_or("square_labels", false);
            set(&mut given, "labels", json!(if squared { "squared" } else { "plain" }));
        }
    }
    set(&mut given, "u0", inputs.0["u0"].clone());
    set(&mut given, "m0", inputs.0["m0"].clone());
    let answer = compute("flow", &given);
    if kind == "correlation-flow" {
        let invariant =
            didact_families::lora::flow::correlation_invariant(inputs.number("u0"), inputs.number("m0"));
        return Answer::exact(json!([answer["u"], answer["m"], invariant]));
    }
    entries(&answer, &["u", "m"])
}

fn endpoint(inputs: &Inputs) -> Answer {
    let k = inputs.count("k");
    let given = json!({
        "activation": format!("He{k}"), "mu": inputs.0["mu"], "u0": inputs.0["u0"], "m0": inputs.0["m0"],
        "times": [inputs.number("T")], "delta": 1.0 / time_scale(k),
    });
    let answer = compute("flow", &given);
    Answer::exact(json!([answer["u"][0], answer["m"][0], answer["m-eff"][0]]))
}

/// Spherical SGD with step η, from given overlaps.
fn training(inputs: &Inputs, retraction: Retraction) -> Training {
    Training {
        scaling: StepScaling::Plain,
        batch: inputs.count("B"),
        constraint: Constraint { sphere: Some(retraction), ..Constraint::none() },
        ..Training::online(inputs.number("eta"))
    }
}

fn sgd_moments(inputs: &Inputs) -> Answer {
    let squared = inputs.flag_or("square_labels", false);
    let spec = LoraSingleIndex {
        teacher_activation: Some(name(&inputs.0["teacher"])),
        labels: if squared { "squared".into() } else { "plain".into() },
        ..LoraSingleIndex::matched(inputs.number("mu"), &name(&inputs.0["student"]))
    };
    let rule = spec.rule().expect("a rule");
    let retraction = match inputs.0["gradient"].as_str().expect("a gradient") {
        "euclidean" => Retraction::Euclidean,
        _ => Retraction::Tangent,
    };
    let overlap = Mat::from_fn(1, 1, |_, _| inputs.number("m0"));
    let blocks = (&Mat::identity(1), &overlap, &Mat::identity(1));
    let start = Overlaps::spread(rule.shape(), &Spectrum::isotropic(), blocks, vec![inputs.number("u0")]);
    let problem = Problem {
        rule,
        about: spec.about(),
        spectrum: Spectrum::isotropic(),
        dimension: Some(inputs.count("d") as u64),
        training: training(inputs, retraction),
        start: Arc::new(Given(start.expect("overlaps"))),
        clock: Clock::Steps,
    };
    let observables =
        ["u", "m"].iter().flat_map(|n| observable::parse(n, &problem).expect("a name")).collect();
    let mut record = Record::new(vec![inputs.number("T")], observables);
    (record.replicas, record.seed) = ((inputs.count("reps") as u32).min(20_000), 7);
    let run = Reduced.run(&problem, &record, &NoMonitor).expect("a run");
    let (mut values, mut errors) = (Vec::new(), Vec::new());
    for column in ["u", "m"] {
        let last: Vec<f64> = run.curves(column).expect("a column").iter().map(|r| r[0]).collect();
        let moments: Moments = last.iter().copied().collect();
        let squares: Moments = last.iter().map(|v| (v - moments.mean()).powi(2)).collect();
        values.extend([moments.mean(), moments.variance()]);
        errors.extend([moments.standard_error(), squares.standard_error()]);
    }
    Answer::sampled(&values, &errors)
}

fn two_layer_problem(inputs: &Inputs, [u, m, q]: [&str; 3]) -> Problem {
    let u = inputs.matrix(u);
    let spec = LoraTwoLayer {
        mu: PerUnit::Each(inputs.list("mu")),
        output_weights: PerUnit::Each(inputs.list("v")),
        activation: inputs.0.get("activation").map_or_else(|| "h2".into(), name),
        ..LoraTwoLayer::uniform(u.rows(), u.cols(), 0.5, "h2")
    };
    let rule = spec.rule().expect("a rule");
    let blocks = (&inputs.matrix(q), &inputs.matrix(m).transpose(), &Mat::identity(u.rows()));
    let start = Overlaps::spread(rule.shape(), &Spectrum::isotropic(), blocks, u.as_slice().to_vec());
    Problem {
        rule,
        about: spec.about(),
        spectrum: Spectrum::isotropic(),
        dimension: None,
        training: Training { constraint: Constraint::sphere(), ..Training::online(1.0) },
        start: Arc::new(Given(start.expect("overlaps"))),
        clock: Clock::Flow,
    }
}

fn gradient_flow() -> OrderParameterOde {
    let options = Options { relative: 1e-11, absolute: 1e-13, saving: Saving::Landing, ..Options::default() };
    OrderParameterOde { options, needed: Needed::Drift, numerical: Numerical::Precise }
}

fn two_layer_derivative(inputs: &Inputs) -> Answer {
    let problem = two_layer_problem(inputs, ["U", "M", "Q"]);
    let derivative = gradient_flow().initial_derivative(&problem).expect("a start");
    let (r, p) = (problem.rule.shape().trained, problem.rule.shape().rows());
    let block = &derivative.blocks[0];
    let record = Record::new(vec![0.0], vec![Arc::new(Risk)]);
    let loss = gradient_flow().run(&problem, &record, &NoMonitor).expect("a run").columns[0].curves[0][0];
    Answer::exact(json!({
        "loss": loss,
        "dU": derivative.scalars.chunks(r).collect::<Vec<_>>(),
        "dM": block.block(0..r, r..p).transpose().to_rows(),
        "dQ": block.block(0..r, 0..r).to_rows(),
    }))
}

fn two_layer_noise(inputs: &Inputs) -> Answer {
    let found = LoraTwoLayer::quantities().iter().find(|q| q.name == "averages").expect("a quantity");
    let given: Map<String, Value> =
        ["v", "mu", "U", "M", "Q"].iter().map(|k| ((*k).to_owned(), inputs.0[*k].clone())).collect();
    let answer = found.evaluate(&given).expect("averages");
    Answer::exact(answer.into_iter().find(|(n, _)| *n == "noise").expect("an entry").1)
}

fn two_layer_flow(inputs: &Inputs) -> Answer {
    let problem = two_layer_problem(inputs, ["U0", "M0", "Q0"]);
    let record = Record::new(inputs.list("times"), vec![Arc::new(Risk)]);
    let run = gradient_flow().run(&problem, &record, &NoMonitor).expect("a solution");
    Answer::exact(json!(run.columns[0].curves[0]))
}
