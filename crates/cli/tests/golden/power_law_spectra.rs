//! Cases of `power-law-spectra`: committee machines on inputs with a power-law spectrum.

use crate::compare::Answer;
use crate::inputs::Inputs;
use didact_families::Family;
use didact_families::committee::{Committee, Output};
use didact_math::gauss::erf;
use didact_math::linalg::Mat;
use didact_math::ode::{Options, Saving};
use didact_model::observable::{Observable, Risk};
use didact_model::start::{FrozenRows, Given, RandomRows, RowLaw};
use didact_model::{
    Averages, Clock, Engine, Law, LocalRule, Needed, NoFamily, NoMonitor, Overlaps, Problem, Record,
    Spectrum, Training, Trajectory,
};
use didact_simulate::{Direct, Reduced};
use didact_theory::{Numerical, OrderParameterOde};
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub fn answer(kind: &str, inputs: &Inputs) -> Option<Answer> {
    if let Some((quantity, entries)) = closed_form(kind) {
        return Some(Answer::exact(ask(quantity, entries, inputs)));
    }
    Some(match kind {
        "teacher-moment-variance" => Answer::exact(ask("spectrum", &["teacher-variance"], inputs)),
        "plateau-symmetric" => Answer::exact(symmetric_plateau(inputs, &["R", "Q", "loss"])),
        "plateau-escape" => {
            let mut all = symmetric_plateau(inputs, &["R", "Q", "loss"]);
            let escape =
                as_list(ask_with("escape", &["growth", "tau", "coefficient"], &uniform_teachers(inputs)));
            all.as_array_mut().expect("a list").extend(escape);
            Answer::exact(all)
        }
        "plateau-general-teacher" => {
            let mut all = as_list(ask("plateau-teacher", &["Q", "loss"], inputs));
            all.extend(as_list(ask("plateau-teacher", &["R"], inputs)));
            Answer::exact(all)
        }
        "plateau-moments" => {
            let pairs = as_list(ask("plateau-moments", &["R"], inputs)).into_iter().zip(as_list(ask(
                "plateau-moments",
                &["Q"],
                inputs,
            )));
            Answer::exact(pairs.map(|(r, q)| json!([r, q])).collect::<Vec<Value>>())
        }
        "specialised-critical-rate" => {
            let rate = |m: &f64| {
                let given = json!({"M": m, "output": "scaled"});
                ask_with("critical-rate", &["eta"], given.as_object().expect("inputs"))
            };
            Answer::exact(inputs.list("M").iter().map(rate).collect::<Vec<Value>>())
        }
        "erf-integrals" => {
            let c = inputs.matrix("C");
            Answer::exact(json!([erf::i2(&minor(&c)), erf::i3(&minor(&c)), erf::i4(&minor(&c))]))
        }
        "erf-error" => Answer::exact(committee(inputs).risk(&law(&inputs.matrix("C")))),
        "erf-drift" => Answer::exact(json!(averages(inputs).drift.scaled(-1.0).to_rows())),
        "erf-noise" => Answer::exact(json!(averages(inputs).noise.to_rows())),
        "erf-initial-derivative" => initial_derivative(inputs),
        "erf-error-ode" | "erf-error-ode-noise" => {
            let run = ode(inputs, vec![Arc::new(Risk)]);
            Answer::exact(per_alpha(inputs, run.columns[0].curves[0].clone()))
        }
        "erf-overlaps-ode" => Answer::exact(columns(inputs, &["R[0,0]", "R[0,1]", "Q[0,0]", "Q[0,1]"])),
        "erf-moments-ode" => {
            let names: Vec<String> =
                (0..4).flat_map(|l| [format!("Q{l}[0,0]"), format!("R{l}[0,0]")]).collect();
            let flat = columns(inputs, &names.iter().map(String::as_str).collect::<Vec<_>>());
            let flat = flat.as_array().expect("a list");
            Answer::exact(json!(flat.chunks(2).collect::<Vec<_>>()))
        }
        "sgd-error" => sampled(inputs, &problem(inputs), &Reduced),
        "sgd-error-linear" => sampled(inputs, &linear_problem(inputs), &Direct),
        _ => return None,
    })
}

/// The quantity of the family `committee` that answers a kind, and its entries in the order of the case.
fn closed_form(kind: &str) -> Option<(&'static str, &'static [&'static str])> {
    Some(match kind {
        "eigenvalues" => ("spectrum", &["eigenvalues"]),
        "spectral-moments" => ("spectrum", &["moments"]),
        "linear-error" | "linear-error-spectrum" | "linear-error-widths" => ("linear-error", &["exact"]),
        "linear-error-small-rate" => ("linear-error", &["small-rate"]),
        "linear-error-integral" => ("linear-error", &["integral"]),
        "linear-error-power-law" => ("linear-error", &["power-law"]),
        "linear-error-finite-size" => ("linear-error", &["finite-size"]),
        "euler-maclaurin" => ("linear-error", &["small-rate", "integral", "zeroth-order", "upper-bound"]),
        "linear-rates" => ("linear-modes", &["rates"]),
        "linear-overlaps-small-rate" => ("linear-overlaps", &["R", "Q"]),
        "power-law-window" => ("power-law-window", &["from", "to"]),
        "linear-critical-rate-finite-size" => ("linear-critical-rate", &["finite-size"]),
        "linear-optimal-rate" => ("linear-critical-rate", &["optimal", "optimal-decay"]),
        "linear-noise-floor" => ("linear-noise-floor", &["error"]),
        "feature-error-small-rate" => ("feature-error", &["small-rate"]),
        "feature-error-integral" => ("feature-error", &["integral"]),
        "feature-error-finite-size" => ("feature-error", &["finite-size"]),
        "feature-asymptote" => ("feature-asymptote", &["small-rate", "integral", "finite-rate"]),
        "feature-haar" => ("feature-asymptote", &["random-basis", "ridge"]),
        "feature-error-correlated" => ("feature-correlated", &["small-rate"]),
        "feature-error-correlated-finite-size" => ("feature-correlated", &["finite-size"]),
        "plateau-escape-typical" => ("escape-typical", &["T2", "tau", "tau-loss"]),
        "plateau-escape-rate-general" => ("plateau-teacher", &["rate"]),
        "plateau-length" => ("plateau-length", &["alpha"]),
        "specialised-rate-coefficients" => ("specialised-rates", &["slow", "fast"]),
        "specialised-rates-pc" => ("specialised-rates", &["error-rates"]),
        "specialised-rates-rs" => ("specialised-rates", &["overlap-rates"]),
        "specialised-error-quadratic" => ("specialised-error", &["error"]),
        "late-time-law" => ("late-law", &["error"]),
        _ => return None,
    })
}

/// Entries of `committee/<name>` with those inputs of the case that it knows: one value, or a list of them.
fn ask(name: &str, entries: &[&str], inputs: &Inputs) -> Value {
    ask_with(name, entries, inputs.0.as_object().expect("inputs"))
}

fn ask_with(name: &str, entries: &[&str], given: &Map<String, Value>) -> Value {
    let quantity = Committee::quantities().iter().find(|q| q.name == name).expect("a quantity");
    let known = |key: &str| quantity.inputs.iter().any(|input| input.name == key);
    let given = given.iter().filter(|(key, _)| known(key)).map(|(k, v)| (k.clone(), v.clone())).collect();
    let answer = quantity.evaluate(&given).unwrap_or_else(|e| panic!("{name}: {e}"));
    let entry = |wanted: &&str| {
        let found = answer.iter().find(|(name, _)| name == wanted);
        found.unwrap_or_else(|| panic!("{name} has no entry {wanted}")).1.clone()
    };
    if let [one] = entries { entry(one) } else { entries.iter().map(entry).collect() }
}

fn as_list(value: Value) -> Vec<Value> {
    let Value::Array(list) = value else { panic!("a list: {value}") };
    list
}

/// Teachers with equal overlaps, under the names that `committee/plateau` and `committee/escape` give them.
fn uniform_teachers(inputs: &Inputs) -> Map<String, Value> {
    let mut given = inputs.0.as_object().expect("inputs").clone();
    for (theirs, ours) in [("T1", "T"), ("D1", "D")] {
        let value = given.remove(theirs).expect("an input");
        given.insert(ours.into(), value);
    }
    given.insert("output".into(), json!("scaled"));
    given
}

fn symmetric_plateau(inputs: &Inputs, entries: &[&str]) -> Value {
    ask_with("plateau", entries, &uniform_teachers(inputs))
}

/// The covariance of the first N fields.
fn minor<const N: usize>(c: &Mat) -> [[f64; N]; N] {
    std::array::from_fn(|i| std::array::from_fn(|j| c[(i, j)]))
}

fn committee(inputs: &Inputs) -> Arc<dyn LocalRule> {
    let spec = Committee {
        output: Output::Scaled,
        ..Committee::soft(inputs.count("K"), inputs.count("M"), "erf(z/sqrt2)")
    };
    spec.rule().expect("a committee")
}

fn law(covariance: &Mat) -> Law<'_> {
    Law { covariance, scalars: &[], label_noise: 0.0 }
}

fn averages(inputs: &Inputs) -> Averages {
    let rule = committee(inputs);
    let mut out = Averages::new(rule.shape());
    rule.averages(&law(&inputs.matrix("C")), Needed::DriftAndNoise, &mut out);
    out
}

fn spectrum(inputs: &Inputs) -> Spectrum {
    let spectrum = if inputs.has("multiplicity") {
        let weights = inputs.list("multiplicity").iter().map(|n| n / inputs.number("N")).collect();
        Spectrum::new(inputs.list("lam"), weights)
    } else if inputs.has("lam") {
        Spectrum::new(inputs.list("lam"), inputs.list("weights"))
    } else {
        Spectrum::power_law(inputs.count("L"), inputs.number("beta"))
    };
    spectrum.expect("a spectrum")
}

fn problem(inputs: &Inputs) -> Problem {
    let (rule, spectrum) = (committee(inputs), spectrum(inputs));
    let blocks = (&inputs.matrix("Q0"), &inputs.matrix("R0"), &Mat::identity(inputs.count("M")));
    let start = Overlaps::spread(rule.shape(), &spectrum, blocks, vec![]).expect("overlaps");
    let label_noise = inputs.number_or("noise_var", 0.0).sqrt();
    Problem {
        rule,
        about: Arc::new(NoFamily),
        spectrum,
        dimension: inputs.has("N").then(|| inputs.count("N") as u64),
        training: Training { label_noise, ..Training::online(inputs.number("eta")) },
        start: Arc::new(Given(start)),
        clock: Clock::Alpha,
    }
}

fn engine(inputs: &Inputs) -> OrderParameterOde {
    let needed = if inputs.flag_or("quadratic_term", true) { Needed::DriftAndNoise } else { Needed::Drift };
    let options = Options { relative: 1e-11, absolute: 1e-13, saving: Saving::Landing, ..Options::default() };
    OrderParameterOde { options, needed, numerical: Numerical::Precise }
}

fn ode(inputs: &Inputs, observables: Vec<Arc<dyn Observable>>) -> Trajectory {
    let record = Record::new(inputs.list("alpha"), observables);
    engine(inputs).run(&problem(inputs), &record, &NoMonitor).expect("a solution")
}

fn columns(inputs: &Inputs, names: &[&str]) -> Value {
    let problem = problem(inputs);
    let parse = |name: &&str| didact_model::observable::parse(name, &problem).expect("an observable");
    let run = ode(inputs, names.iter().flat_map(parse).collect());
    json!(run.rows(0)[0])
}

/// A list over alpha, or one number when alpha is one.
fn per_alpha(inputs: &Inputs, values: Vec<f64>) -> Value {
    if inputs.0["alpha"].is_array() { json!(values) } else { json!(values[0]) }
}

fn initial_derivative(inputs: &Inputs) -> Answer {
    let problem = problem(inputs);
    let (k, p) = (inputs.count("K"), inputs.count("K") + inputs.count("M"));
    let first = &engine(inputs).initial_derivative(&problem).expect("a start").blocks[0];
    Answer::exact(json!([first.block(0..k, k..p).to_rows(), first.block(0..k, 0..k).to_rows()]))
}

/// One linear unit learns from one; teacher and student are drawn anew for every replica.
fn linear_problem(inputs: &Inputs) -> Problem {
    let start = RandomRows {
        trained: RowLaw::Gaussian { deviation: inputs.number("sigma_J") },
        frozen: FrozenRows::Sampled,
        scalars: vec![],
    };
    Problem {
        rule: Committee::soft(1, 1, "linear").rule().expect("a committee"),
        about: Arc::new(NoFamily),
        spectrum: spectrum(inputs),
        dimension: Some(inputs.count("N") as u64),
        training: Training::online(inputs.number("eta")),
        start: Arc::new(start),
        clock: Clock::Alpha,
    }
}

/// Runs replicas until the standard error is at most the tolerance over 5 √2: the tolerance of these cases is 5
/// combined standard errors for a run of the same size as the stored one.
fn sampled(inputs: &Inputs, problem: &Problem, engine: &dyn Engine) -> Answer {
    let goal: Vec<f64> = inputs.absolute_tolerance().iter().map(|t| t / (5.0 * 2f64.sqrt())).collect();
    let mut replicas = 4000;
    loop {
        let mut record = Record::new(inputs.list("alpha"), vec![Arc::new(Risk)]);
        (record.replicas, record.seed) = (replicas, 5);
        let run = engine.run(problem, &record, &NoMonitor).expect("a run");
        let mean = run.mean("loss").expect("the loss");
        let goals = (0..mean.len()).map(|i| goal[i.min(goal.len() - 1)]);
        if mean.iter().zip(goals).all(|(m, g)| m.error <= g) || replicas > 1_000_000 {
            let (values, errors): (Vec<f64>, Vec<f64>) = mean.iter().map(|m| (m.value, m.error)).unzip();
            return Answer::sampled(&values, &errors);
        }
        replicas *= 2;
    }
}
