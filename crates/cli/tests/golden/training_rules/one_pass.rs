//! Kinds of one-pass training: the order-parameter equations and the exact simulation of overlaps.

use super::training;
use crate::compare::Answer;
use crate::inputs::Inputs;
use didact_families::Family;
use didact_families::committee::Committee;
use didact_math::linalg::Mat;
use didact_model::start::Given;
use didact_model::training::{Drift, GradientMap, Training};
use didact_model::{Clock, Engine, NoMonitor, Overlaps, Problem, Record, Spectrum, observable};
use didact_simulate::Reduced;
use didact_theory::OrderParameterOde;
use std::sync::Arc;

pub fn answer(kind: &str, inputs: &Inputs) -> Option<Answer> {
    Some(match kind {
        "linear-ode" => linear(inputs),
        "erf-ode" => erf(inputs),
        "clipped-linear" => clipped(inputs),
        "sign-linear" => signs(inputs),
        "sgd-mean-linear" => mean_linear(inputs),
        "sgd-simulation" => simulation(inputs),
        _ => return None,
    })
}

fn spectrum(inputs: &Inputs) -> Spectrum {
    if !inputs.has("lam") {
        return Spectrum::isotropic();
    }
    Spectrum::new(inputs.list("lam"), inputs.list("weights")).expect("a spectrum")
}

fn one_pass(inputs: &Inputs) -> Training {
    let base = Training {
        label_noise: inputs.number_or("noise_var", 0.0).sqrt(),
        ..Training::online(inputs.number("eta"))
    };
    training(inputs, base)
}

fn problem(family: &Committee, training: Training, spectrum: Spectrum, start: Overlaps) -> Problem {
    Problem {
        rule: family.rule().expect("a committee"),
        about: family.about(),
        spectrum,
        dimension: None,
        training,
        start: Arc::new(Given(start)),
        clock: Clock::Alpha,
    }
}

fn record(problem: &Problem, times: Vec<f64>, names: &[&str]) -> Record {
    let parse = |name: &&str| observable::parse(name, problem).expect("an observable");
    Record::new(times, names.iter().flat_map(parse).collect())
}

fn number(value: f64) -> Mat {
    Mat::identity(1).scaled(value)
}

/// A linear unit with overlaps q and r that are spread over the spectrum; `partners` silent rows follow the teacher.
fn linear_unit(partners: usize, spectrum: &Spectrum, q: f64, r: f64) -> (Committee, Overlaps) {
    let mut weights = vec![0.0; 1 + partners];
    weights[0] = 1.0;
    let family = Committee { teacher_weights: Some(weights), ..Committee::soft(1, 1 + partners, "linear") };
    let shape = family.rule().expect("a committee").shape();
    let cross = Mat::from_fn(1, 1 + partners, |_, n| if n == 0 { r } else { 0.0 });
    let teachers = Mat::identity(1 + partners);
    let start = Overlaps::spread(shape, spectrum, (&number(q), &cross, &teachers), Vec::new());
    (family, start.expect("overlaps"))
}

fn linear(inputs: &Inputs) -> Answer {
    let (spectrum, mut training) = (spectrum(inputs), one_pass(inputs));
    let rotates = inputs.has("rotation");
    if rotates {
        let omega = inputs.number("rotation");
        training.drift =
            Some(Drift::rotation(Mat::from_rows(&[vec![0.0, omega], vec![-omega, 0.0]]).expect("2 x 2")));
    } else if inputs.has("drift") {
        training.drift = Some(Drift::diffusion(inputs.number("drift")));
    }
    let (family, start) =
        linear_unit(usize::from(rotates), &spectrum, inputs.number("Q0"), inputs.number("R0"));
    let mut names = vec!["loss", "R[0,0]", "Q[0,0]"];
    if inputs.has("momentum_rate") {
        names.extend(["Rp[0,0]", "Qwp[0,0]", "Qpp[0,0]"]);
    }
    curves(&problem(&family, training, spectrum, start), inputs.list("alpha"), &names)
}

/// The first column at all times, the others at the last.
fn curves(problem: &Problem, times: Vec<f64>, names: &[&str]) -> Answer {
    let record = record(problem, times, names);
    let run = OrderParameterOde::default().run(problem, &record, &NoMonitor).expect("a run");
    let column = |at: usize| run.columns[at].curves[0].clone();
    let last = (1..run.columns.len()).map(|at| column(at).last().copied().expect("a time"));
    Answer::exact(column(0).into_iter().chain(last).collect::<Vec<f64>>())
}

fn committee(inputs: &Inputs, spectrum: &Spectrum) -> (Committee, Overlaps) {
    let (k, m) = (inputs.count("K"), inputs.count("M"));
    let family = Committee::soft(k, m, "erf(z/sqrt2)");
    let shape = family.rule().expect("a committee").shape();
    let parts = (&inputs.matrix("Q0"), &inputs.matrix("R0"), &Mat::identity(m));
    (family, Overlaps::spread(shape, spectrum, parts, Vec::new()).expect("overlaps"))
}

fn erf(inputs: &Inputs) -> Answer {
    let (spectrum, mut training) = (spectrum(inputs), one_pass(inputs));
    if inputs.has("rotation") {
        training.drift = Some(Drift::rotation(inputs.matrix("rotation")));
    } else if inputs.has("drift") {
        training.drift = Some(Drift::diffusion(inputs.number("drift")));
    }
    let (family, start) = committee(inputs, &spectrum);
    let mut names = vec!["loss", "Q[*,*]", "R[*,*]"];
    if inputs.has("momentum_rate") {
        names.extend(["Rp[*,*]", "Qwp[*,*]", "Qpp[*,*]"]);
    }
    curves(&problem(&family, training, spectrum, start), inputs.list("alpha"), &names)
}

fn clipped(inputs: &Inputs) -> Answer {
    let gradient =
        if inputs.has("clip") { GradientMap::Clip(inputs.number("clip")) } else { GradientMap::Normalised };
    let (family, start) = linear_unit(0, &Spectrum::isotropic(), 1.0 + inputs.number("a0"), 1.0);
    let training = Training { gradient, ..one_pass(inputs) };
    let problem = problem(&family, training, Spectrum::isotropic(), start);
    curves(&problem, inputs.list("alpha"), &["loss"])
}

fn signs(inputs: &Inputs) -> Answer {
    let spectrum = spectrum(inputs);
    let (family, mut start) = linear_unit(0, &spectrum, 2.0, 1.0);
    let weights = spectrum.weights().iter().zip(inputs.list("E0"));
    for (block, (weight, excess)) in start.blocks.iter_mut().zip(weights) {
        block[(0, 0)] = weight + excess;
    }
    let training = Training { gradient: GradientMap::Sign, ..one_pass(inputs) };
    let problem = problem(&family, training, spectrum, start);
    let mut numbers = Vec::new();
    for alpha in inputs.list("alpha") {
        let record = record(&problem, vec![alpha], &["loss"]);
        let engine = OrderParameterOde::default();
        let (run, ends) = engine.run_with_end_states(&problem, &record, &NoMonitor).expect("a run");
        numbers.push(run.columns[0].curves[0][0]);
        let distance = |g: &Mat| g[(0, 0)] - 2.0 * g[(0, 1)] + g[(1, 1)];
        numbers.extend(ends[0].overlaps.blocks.iter().map(distance));
    }
    Answer::exact(numbers)
}

/// Means and standard errors of columns at the last time.
fn sampled(problem: &Problem, record: &Record, names: &[&str], scale: &[f64]) -> Answer {
    let run = Reduced.run(problem, record, &NoMonitor).expect("a run");
    let (mut values, mut errors) = (Vec::new(), Vec::new());
    for (name, scale) in names.iter().zip(scale) {
        let mean = run.mean(name).expect("a column");
        let mean = mean.last().expect("a time");
        values.push(scale * mean.value);
        errors.push(scale.abs() * mean.error);
    }
    Answer::sampled(&values, &errors)
}

fn mean_linear(inputs: &Inputs) -> Answer {
    let d = inputs.count("d") as u64;
    let (family, start) = linear_unit(0, &Spectrum::isotropic(), 1.0 + inputs.number("a0"), 1.0);
    let problem = Problem {
        dimension: Some(d),
        clock: Clock::Steps,
        ..problem(&family, one_pass(inputs), Spectrum::isotropic(), start)
    };
    let names = ["loss", "Qwp[0,0] - Rp[0,0]", "Qpp[0,0]"];
    let record = Record { replicas: 6000, ..record(&problem, vec![inputs.number("steps")], &names) };
    // Raw velocities are those per alpha divided by d: d (w − v)·p = Qwp − Rp, d |p|² = Qpp/d.
    sampled(&problem, &record, &names, &[1.0, 1.0, 1.0 / d as f64])
}

fn simulation(inputs: &Inputs) -> Answer {
    let spectrum = Spectrum::isotropic();
    let (family, start) = committee(inputs, &spectrum);
    let problem = Problem {
        dimension: Some(inputs.count("d") as u64),
        ..problem(&family, one_pass(inputs), spectrum, start)
    };
    let record = Record { replicas: 400, ..record(&problem, inputs.list("alpha"), &["loss"]) };
    let run = Reduced.run(&problem, &record, &NoMonitor).expect("a run");
    let means = run.mean("loss").expect("a column");
    let (values, errors): (Vec<f64>, Vec<f64>) = means.iter().map(|m| (m.value, m.error)).unzip();
    Answer::sampled(&values, &errors)
}
