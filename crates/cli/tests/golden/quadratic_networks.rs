//! Cases of `quadratic-networks`: p quadratic units learn from p*.

use crate::compare::Answer;
use crate::inputs::Inputs;
use didact_families::quadratic::{QuadraticNetworks, State};
use didact_families::{Family, Model};
use didact_math::linalg::Mat;
use didact_math::ode::{Options, Saving};
use didact_model::observable::{self, Observable, Risk};
use didact_model::start::Given;
use didact_model::trajectory::RecordedColumn;
use didact_model::{
    Clock, Constraint, Engine, LocalRule, Needed, NoMonitor, Overlaps, Problem, Record, Spectrum, Training,
    Trajectory,
};
use didact_simulate::Reduced;
use didact_theory::landscape::population;
use didact_theory::{Numerical, OrderParameterOde};
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex};

pub fn answer(kind: &str, inputs: &Inputs) -> Option<Answer> {
    let value = match kind {
        "risk" => ask("risk", inputs, &["rho", "Q"], &["risk"]),
        "flow-rho" => ask("rates", inputs, &["rho", "Q"], &["rho"]),
        "flow-q" => ask("rates", inputs, &["rho", "Q"], &["Q"]),
        "noise-matrix" => ask("rates", inputs, &["rho", "Q"], &["noise"]),
        "rhs-q" | "rhs-q-label-noise" | "one-step-mean-q" => {
            ask("rates", inputs, &["rho", "Q", "eta", "label_noise_variance", "N"], &["Q"])
        }
        "one-step-mean" => ask("one-step", inputs, &["rho", "Q", "eta", "N"], &["mean"]),
        "one-step-covariance" => ask("one-step", inputs, &["rho", "Q", "eta", "N"], &["covariance"]),
        "plateau-constants" => ask("plateau", inputs, WIDTHS, &["growth", "decay", "norm", "risk"]),
        "norm-learning" => ask("norm-learning", inputs, &["p", "p_star", "t", "q0"], &["norm", "gain"]),
        "plateau-loss-reduction" => {
            ask("plateau-loss-reduction", inputs, &["p", "p_star", "epsilon", "t"], &["from-plateau"])
        }
        "escape-time-linear" => {
            let entries = ["from-plateau", "from-orthonormal"];
            ask("escape-time", inputs, &["p", "p_star", "sum_rho2", "delta"], &entries)
        }
        "escape-time-statistics" => {
            let keys = ["p", "p_star", "epsilon", "delta"];
            ask("escape-time-statistics", inputs, &keys, &["mean", "deviation"])
        }
        "plateau-finite-rate" => ask("plateau-finite-rate", inputs, WITH_RATE, &["norm", "growth"]),
        "learning-rate-thresholds" => {
            ask("learning-rates", inputs, WIDTHS, &["solution", "plateau", "fastest", "largest-growth"])
        }
        "noise-seeded-escape" => ask("noise-seeded-escape", inputs, WITH_RATE, &["feed", "kappa"]),
        "alignment-logistic" => ask("alignment", inputs, &["rho0", "Q0", "t"], &["K"]),
        "endpoint-rho" | "endpoint-rho-underparameterised" => {
            ask("endpoint", inputs, &["rho0", "Q0"], &["rho"])
        }
        "endpoint-q" => ask("endpoint", inputs, &["rho0", "Q0"], &["Q"]),
        "endpoint-distance" => ask("endpoint", inputs, &["rho0", "Q0"], &["squared-distance"]),
        "tail-flow" => ask("tail", inputs, WIDTHS, &["risk", "norm", "distance"]),
        "tail-finite-rate" => ask("tail", inputs, WITH_RATE, &["risk"]),
        "final-rate" => ask("final-rate", inputs, WITH_RATE, &["rate"]),
        "hessian-stationary" => {
            ask("stationary-point", inputs, &["p", "p_star", "N", "r", "s"], &["spectrum"])
        }
        "plateau-hessian-ratio" => {
            let plateau =
                merged(inputs, &["p", "p_star", "N"], &[("r", inputs.0["p"].clone()), ("s", json!(0))]);
            entry("stationary-point", &plateau, "negative-per-null")
        }
        "stationary-risk" => ask("stationary-risk", inputs, &["p_star", "r_s"], &["risk"]),
        "degrees-of-freedom" => over_widths("degrees-of-freedom", inputs, &["N"], "count"),
        "manifold-dimension" => over_widths("manifold-dimension", inputs, &["N", "p_star"], "dimension"),
        "spherical-rate" => ask("spherical-rate", inputs, WITH_RATE, &["growth"]),
        "half-loss-alpha" => {
            let at = |eta: &f64| {
                entry("half-loss-time", &merged(inputs, &["rho0"], &[("eta", json!(eta))]), "time")
            };
            per_number(inputs, "eta", inputs.list("eta").iter().map(at).collect())
        }
        "half-loss-flow-time" => ask("half-loss-time", inputs, &["rho0"], &["time"]),
        "hessian-generic" => {
            let hessian = population::hessian(&*rule(inputs), &rows(inputs), &[], population::SIZE_LIMIT);
            json!(didact_math::linalg::symmetric_eigen(&hessian.expect("a Hessian")).values)
        }
        "gradient-generic" => json!(population::gradient(&*rule(inputs), &rows(inputs), &[]).to_rows()),
        "trajectory-risk" | "spherical-trajectory-risk" => {
            let run = ode(inputs, vec![Arc::new(Risk)], kind.starts_with("spherical"));
            json!(run.columns[0].curves[0])
        }
        "trajectory-rho" => json!(matrix_at_end(inputs, "R")),
        "polar-factor" => json!(matrix_at_end(inputs, "S")),
        "polar-factor-drift" => {
            let run = ode(inputs, columns(inputs, "S"), false);
            let (first, last) = (start_polar(inputs), run.rows(0).pop().expect("times"));
            let moved = first.as_slice().iter().zip(&last).map(|(a, b)| (a - b).abs());
            json!(moved.fold(0.0, f64::max))
        }
        "sgd-risk" => return Some(sgd(inputs, Statistic::Risk)),
        "sgd-mean" => return Some(sgd(inputs, Statistic::Mean)),
        "sgd-variance" => return Some(sgd(inputs, Statistic::Variance)),
        _ => return None,
    };
    Some(Answer::exact(value))
}

const WIDTHS: &[&str] = &["p", "p_star"];
const WITH_RATE: &[&str] = &["p", "p_star", "eta"];

/// The inputs of a case that a quantity takes; `"identity"` is its default.
fn merged(inputs: &Inputs, keys: &[&str], more: &[(&str, Value)]) -> Map<String, Value> {
    let own = keys.iter().filter(|k| inputs.has(k) && inputs.0[**k] != json!("identity"));
    let own = own.map(|k| ((*k).to_string(), inputs.0[*k].clone()));
    own.chain(more.iter().map(|(k, v)| ((*k).to_string(), v.clone()))).collect()
}

fn entry(quantity: &str, given: &Map<String, Value>, name: &str) -> Value {
    let all = Model::quantities();
    let (_, found) = all
        .iter()
        .find(|(family, q)| *family == QuadraticNetworks::NAME && q.name == quantity)
        .expect("a quantity");
    let answer = found.evaluate(given).unwrap_or_else(|e| panic!("{quantity}: {e}"));
    answer.into_iter().find(|(n, _)| *n == name).expect("an entry").1
}

/// One entry, or several as a list.
fn ask(quantity: &str, inputs: &Inputs, keys: &[&str], entries: &[&str]) -> Value {
    let given = merged(inputs, keys, &[]);
    match entries {
        [one] => entry(quantity, &given, one),
        several => several.iter().map(|name| entry(quantity, &given, name)).collect(),
    }
}

fn over_widths(quantity: &str, inputs: &Inputs, keys: &[&str], name: &str) -> Value {
    let at = |p: &f64| entry(quantity, &merged(inputs, keys, &[("p", json!(p))]), name);
    per_number(inputs, "p", inputs.list("p").iter().map(at).collect())
}

/// A list where the input is one, else its only entry.
fn per_number(inputs: &Inputs, key: &str, values: Vec<Value>) -> Value {
    if inputs.0[key].is_array() { Value::Array(values) } else { values[0].clone() }
}

fn spec(inputs: &Inputs) -> QuadraticNetworks {
    QuadraticNetworks::new(inputs.count("p"), inputs.count("p_star"))
}

fn rule(inputs: &Inputs) -> Arc<dyn LocalRule> {
    spec(inputs).rule().expect("widths")
}

/// Student rows, then the teacher on the first axes.
fn rows(inputs: &Inputs) -> Mat {
    let w = inputs.matrix("W");
    let axis = |l: usize| (0..w.cols()).map(|i| f64::from(i == l)).collect::<Vec<f64>>();
    let all: Vec<Vec<f64>> = w.to_rows().into_iter().chain((0..inputs.count("p_star")).map(axis)).collect();
    Mat::from_rows(&all).expect("rows of N numbers")
}

fn start(inputs: &Inputs) -> State {
    let rho = inputs.matrix("rho0");
    let given = inputs.has("Q0") && inputs.0["Q0"] != json!("identity");
    if given { State { rho, q: inputs.matrix("Q0") } } else { State::orthonormal(rho) }
}

fn is_flow(inputs: &Inputs) -> bool {
    inputs.0["eta"] == json!("gradient flow")
}

fn problem(inputs: &Inputs, sphere: bool) -> Problem {
    let (rule, spectrum, start) = (rule(inputs), Spectrum::isotropic(), start(inputs));
    let blocks = (&start.q, &start.rho, &Mat::identity(inputs.count("p_star")));
    let overlaps = Overlaps::spread(rule.shape(), &spectrum, blocks, vec![]).expect("overlaps");
    let constraint = if sphere { Constraint::sphere() } else { Constraint::none() };
    let learning_rate = if is_flow(inputs) { 1.0 } else { inputs.number("eta") };
    Problem {
        rule,
        about: spec(inputs).about(),
        spectrum,
        dimension: inputs.has("N").then(|| inputs.count("N") as u64),
        training: Training { constraint, ..Training::online(learning_rate) },
        start: Arc::new(Given(overlaps)),
        clock: if is_flow(inputs) { Clock::Flow } else { Clock::Alpha },
    }
}

fn ode(inputs: &Inputs, observables: Vec<Arc<dyn Observable>>, sphere: bool) -> Trajectory {
    let options = Options { relative: 1e-12, absolute: 1e-15, saving: Saving::Landing, ..Options::default() };
    let needed = if is_flow(inputs) { Needed::Drift } else { Needed::DriftAndNoise };
    let times = inputs.list(if is_flow(inputs) { "t" } else { "alpha" });
    let record = Record::new(times, observables);
    let engine = OrderParameterOde { options, needed, numerical: Numerical::Precise };
    engine.run(&problem(inputs, sphere), &record, &NoMonitor).expect("a solution")
}

fn parse(name: &str, problem: &Problem) -> Vec<Arc<dyn Observable>> {
    observable::parse(name, problem).expect("an observable")
}

/// All entries of a p x p* matrix of observables, row by row.
fn columns(inputs: &Inputs, letter: &str) -> Vec<Arc<dyn Observable>> {
    parse(&format!("{letter}[*,*]"), &problem(inputs, false))
}

fn matrix_at_end(inputs: &Inputs, letter: &str) -> Vec<Vec<f64>> {
    let run = ode(inputs, columns(inputs, letter), false);
    let last = run.rows(0).pop().expect("times");
    last.chunks(inputs.count("p_star")).map(<[f64]>::to_vec).collect()
}

fn start_polar(inputs: &Inputs) -> Mat {
    didact_families::quadratic::polar_factor(&inputs.matrix("rho0")).factor
}

/// "order": rho row by row, then Q_ij with i <= j.
fn order(problem: &Problem) -> Vec<Arc<dyn Observable>> {
    let p = problem.rule.shape().trained;
    let upper = (0..p).flat_map(|i| (i..p).map(move |j| format!("Q[{i},{j}]")));
    std::iter::once("R[*,*]".to_string()).chain(upper).flat_map(|name| parse(&name, problem)).collect()
}

#[derive(Clone, Copy)]
enum Statistic {
    Risk,
    Mean,
    Variance,
}

/// Three times as many runs as the reference, so that its tolerance (5 of its own errors) is 4.3 errors of the difference.
fn sgd(inputs: &Inputs, statistic: Statistic) -> Answer {
    let run = ensemble(inputs);
    let column = |column: &RecordedColumn| run.mean(&column.name).expect("a column")[0];
    let (loss, order) = run.columns.split_first().expect("columns");
    let (values, errors): (Vec<f64>, Vec<f64>) = match statistic {
        Statistic::Risk => {
            let risk = column(loss);
            return Answer { value: json!(risk.value), standard_error: Some(json!(risk.error)) };
        }
        Statistic::Mean => order.iter().map(column).map(|m| (m.value, m.error)).unzip(),
        Statistic::Variance => order.iter().map(column).map(|m| (m.deviation.powi(2), m.error)).unzip(),
    };
    Answer::sampled(&values, &errors)
}

/// Loss and overlaps of the runs of a case; cases that differ in what they ask of the same runs share them.
fn ensemble(inputs: &Inputs) -> Arc<Trajectory> {
    static KNOWN: Mutex<Vec<(Value, Arc<Trajectory>)>> = Mutex::new(Vec::new());
    let mut key = inputs.0.clone();
    key.as_object_mut().expect("inputs").remove("order");
    let mut known = KNOWN.lock().expect("no panic elsewhere");
    if let Some((_, run)) = known.iter().find(|(k, _)| *k == key) {
        return run.clone();
    }
    let problem = problem(inputs, false);
    let observables = parse("loss", &problem).into_iter().chain(order(&problem)).collect();
    let mut record = Record::new(inputs.list("alpha"), observables);
    (record.replicas, record.seed) = (3 * inputs.count("runs") as u32, 17);
    let run = Arc::new(Reduced.run(&problem, &record, &NoMonitor).expect("a run"));
    known.push((key, run.clone()));
    run
}
