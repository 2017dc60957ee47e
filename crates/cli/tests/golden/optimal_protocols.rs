//! Cases of `optimal-protocols`: learning rates as functions of time that make a loss smallest.

use crate::compare::Answer;
use crate::inputs::Inputs;
use didact_families::Model;
use didact_families::lora::hermite::time_scale;
use didact_families::lora::landscape::{AdapterState, Landscape};
use didact_families::lora::population::{LossName, Population};
use didact_families::lora::two_stage::TwoStage;
use didact_math::linalg::Mat;
use didact_math::ode::KeptOptions;
use didact_model::observable::Risk;
use didact_model::start::Given;
use didact_model::training::Course;
use didact_model::{Clock, NoMonitor, Overlaps, Problem, Spectrum, Training};
use didact_theory::control::{
    Control, ControlKey, ControlProblem, LateTimes, Objective, Search, SearchMethod, linear_unit,
};
use serde_json::json;
use std::sync::Arc;

/// Knots of an optimum, and points of the sweeps that polish it.
const KNOTS: usize = 40;

pub fn answer(kind: &str, inputs: &Inputs) -> Option<Answer> {
    Some(match kind {
        "linear-noise" => {
            let (loss, noise) = (inputs.number("loss0"), inputs.number("label_noise"));
            let all = inputs.list("alpha").into_iter().map(|alpha| linear_unit(loss, noise, alpha));
            let (rates, losses): (Vec<f64>, Vec<f64>) = all.unzip();
            Answer::exact(json!([rates, losses]))
        }
        "final-loss" => final_loss(inputs),
        "gradient" => gradient(inputs),
        "asymptotic-rate" => {
            let rule = model(inputs).rule().expect("a rule");
            let late =
                LateTimes::of(&*rule, &spectrum(inputs), inputs.number("label_noise")).expect("late times");
            Answer::exact(json!([late.loss, late.final_rate, late.inner_rate]))
        }
        "minimum-time" => minimum_time(inputs),
        "switch-time" => switch_time(inputs),
        _ => return None,
    })
}

fn model(inputs: &Inputs) -> Model {
    serde_json::from_value(inputs.0["model"].clone()).expect("a model")
}

fn spectrum(inputs: &Inputs) -> Spectrum {
    if !inputs.has("spectrum") {
        return Spectrum::isotropic();
    }
    let given = Inputs(&inputs.0["spectrum"], inputs.1);
    let eigenvalues = given.list("eigenvalues");
    let equal = vec![1.0 / eigenvalues.len() as f64; eigenvalues.len()];
    let weights = if given.has("weights") { given.list("weights") } else { equal };
    Spectrum::new(eigenvalues, weights).expect("a spectrum")
}

/// The problem of a case over a time, with one controlled rate.
fn control(inputs: &Inputs, horizon: f64, bounds: (f64, f64), knots: usize) -> ControlProblem<'static> {
    let (model, spectrum) = (model(inputs), spectrum(inputs));
    let rule = model.rule().expect("a rule");
    let start = Inputs(&inputs.0["start"], inputs.1);
    let teachers =
        if start.has("teachers") { start.matrix("teachers") } else { Mat::identity(rule.shape().frozen) };
    let (q, r) = (start.matrix("q"), start.matrix("r"));
    let overlaps = Overlaps::spread(rule.shape(), &spectrum, (&q, &r, &teachers), model.starting_scalars());
    let overlaps = overlaps.expect("overlaps");
    let training =
        Training { label_noise: inputs.number_or("label_noise", 0.0), ..Training::online(0.5 * bounds.1) };
    let problem = Problem {
        rule,
        about: model.about(),
        spectrum,
        dimension: None,
        training,
        start: Arc::new(Given(overlaps.clone())),
        clock: Clock::Alpha,
    };
    let objective = match inputs.0.get("objective").and_then(|o| o.as_str()).unwrap_or("final") {
        "final" => Objective::Final,
        "integral" => Objective::Integral,
        other => panic!("unknown objective {other}"),
    };
    ControlProblem {
        problem,
        starts: vec![overlaps],
        observable: Arc::new(Risk),
        objective,
        horizon,
        controls: vec![Control { key: ControlKey::LearningRate, bounds, knots }],
        options: KeptOptions::default(),
        monitor: &NoMonitor,
    }
}

fn bounds(inputs: &Inputs) -> (f64, f64) {
    let given = inputs.list("bounds");
    (given[0], given[1])
}

/// The optimum is over all functions: knots can only be above it.
fn final_loss(inputs: &Inputs) -> Answer {
    let control = control(inputs, inputs.number("horizon"), bounds(inputs), KNOTS);
    let search = Search { starts: 3, certify: false, ..Search::default() };
    let optimum = control.optimise(&search).expect("an optimum");
    let greedy = optimum.greedy.expect("greedy learns").0;
    Answer::exact(json!([optimum.value, optimum.constant.value, optimum.constant.values[0], greedy]))
}

fn gradient(inputs: &Inputs) -> Answer {
    let course = Course { times: inputs.list("knots"), values: inputs.list("values") };
    let horizon = *course.times.last().expect("knots");
    let mut control = control(inputs, horizon, (0.0, 10.0), course.times.len() - 1);
    control.options = KeptOptions { relative: 1e-10, absolute: 1e-13, ..control.options };
    let at = control.differentiate(&[course]).expect("a finite objective");
    let mut all = vec![at.value];
    all.extend(&at.gradient[0]);
    Answer::exact(json!(all))
}

fn minimum_time(inputs: &Inputs) -> Answer {
    let (level, bounds) = (inputs.number("level"), bounds(inputs));
    let search = Search { starts: 1, certify: false, method: SearchMethod::Direct, ..Search::default() };
    // No time is given within which the level is to be reached: it is doubled until it is.
    let mut within = 10.0;
    for _ in 0..20 {
        let control = control(inputs, within, bounds, KNOTS);
        if control.best_constant().is_some_and(|constant| constant.value < level) {
            return Answer::exact(control.minimum_time(level, &search).expect("a time").time);
        }
        within *= 2.0;
    }
    panic!("the level is never reached");
}

fn switch_time(inputs: &Inputs) -> Answer {
    let unit = didact_math::activation::parse("He3").expect("an activation");
    let landscape = |labels: &str| {
        let population = Population::new(unit.clone(), labels, unit.clone(), LossName::Half).expect("labels");
        Landscape::aligned(population, inputs.number("mu"))
    };
    let begin = inputs.number("dimension").powf(-0.5);
    let stages = TwoStage {
        first: landscape("squared"),
        second: landscape("plain"),
        delta: 1.0 / time_scale(3),
        start: AdapterState::aligned(begin, begin),
        time: 3000.0,
        reset_amplitude: inputs.flag_or("restart_scalars", false),
    };
    let best = stages.best_switch(inputs.number("level")).expect("a flow").expect("a switch");
    Answer::exact(json!([best.time, best.total]))
}
