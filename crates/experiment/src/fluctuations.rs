//! Quantities about fluctuations (`fluctuations/…`), for any model, inputs, training and start that a description can name.

use crate::build;
use crate::source::{Diagnostic, Source};
use didact_math::gauss::normal;
use didact_math::linalg::Mat;
use didact_model::observable::{self, Observable};
use didact_model::quantity::{Answer, Arguments, Input, Kind, Quantity, QuantityError};
use didact_model::{Needed, Problem};
use didact_theory::fluctuations::{EscapeLaw, FluctuationError, FluctuationTheory, PassageLaw, Seed};
use serde_json::{Value, json};
use std::sync::Arc;

/// All of them, with the name of their group.
pub fn quantities() -> impl Iterator<Item = (&'static str, &'static Quantity)> {
    QUANTITIES.iter().map(|quantity| ("fluctuations", quantity))
}

/// Relative accuracy of the covariances; where averages have no closed form it is what a million samples give.
const ACCURACY: f64 = 1e-8;

const fn any(name: &'static str, default: Option<&'static str>, about: &'static str) -> Input {
    Input { name, kind: Kind::Any, default, about }
}

const MODEL: Input = any("model", None, "the model, as under [model] of a description");
const DATA: Input = any("data", Some("{}"), "the inputs, as under [data]; isotropic unless given");
const TRAINING: Input = any("training", None, "how it is learned, as under [training]");
const START: Input = any("start", Some("{}"), "where learning starts, as under [start]");
const OBSERVE: Input = any("observe", None, "a list of observables");
const OBSERVABLE: Input =
    Input { name: "observable", kind: Kind::Text, default: None, about: "one observable" };
const TIMES: Input =
    Input { name: "times", kind: Kind::Numbers, default: None, about: "values of alpha, ascending" };

const fn number(name: &'static str, default: Option<&'static str>, about: &'static str) -> Input {
    Input { name, kind: Kind::Number, default, about }
}

static QUANTITIES: &[Quantity] = &[
    Quantity {
        name: "start-covariance",
        summary: "d times the covariance of observables over random starts",
        inputs: &[MODEL, DATA, START, OBSERVE],
        outputs: &["covariance"],
        compute: start_covariance,
    },
    Quantity {
        name: "diffusion",
        summary: "d^2 times the covariance of the changes of observables in one step",
        inputs: &[MODEL, DATA, TRAINING, START, OBSERVE],
        outputs: &["diffusion"],
        compute: diffusion,
    },
    Quantity {
        name: "covariance",
        summary: "d times the covariance of observables over runs, at given times",
        inputs: &[MODEL, DATA, TRAINING, START, TIMES, OBSERVE],
        outputs: &["covariance"],
        compute: covariance,
    },
    Quantity {
        name: "loss-band",
        summary: "d times the variance of the loss over runs, at given times",
        inputs: &[MODEL, DATA, TRAINING, START, TIMES],
        outputs: &["variance"],
        compute: loss_band,
    },
    Quantity {
        name: "passage-time",
        summary: "when an observable first crosses a level, and d times the variance of that time over runs",
        inputs: &[
            MODEL,
            DATA,
            TRAINING,
            START,
            OBSERVABLE,
            number("level", None, "the level"),
            number("until", Some("10000"), "alpha at which to give up"),
        ],
        outputs: &["time", "variance"],
        compute: passage_time,
    },
    Quantity {
        name: "required-dimension",
        summary: "the d at which one run is within a given share of the limit, with a given probability",
        inputs: &[
            MODEL,
            DATA,
            TRAINING,
            START,
            OBSERVABLE,
            number("time", None, "alpha"),
            number("relative", None, "half the width of the interval, in units of the observable"),
            number(
                "probability",
                Some(ONE_DEVIATION),
                "that one run is in the interval; the default is that of one standard deviation",
            ),
        ],
        outputs: &["dimension"],
        compute: required_dimension,
    },
    Quantity {
        name: "seed",
        summary: "rate of escape from an unstable fixed point, and the variance that sampling noise feeds into it",
        inputs: &[MODEL, DATA, TRAINING, START, OBSERVABLE],
        outputs: &["rate", "variance"],
        compute: seed,
    },
    Quantity {
        name: "escape-law",
        summary: "mean and standard deviation of the time at which runs leave a plateau",
        inputs: &[
            number("rate", None, "rate of growth per unit of alpha"),
            number("level", None, "distance from the plateau that counts as escape"),
            number("dimension", None, "d"),
            number(
                "variance",
                None,
                "d times the variance that the noise and the start feed into the direction",
            ),
            number("mean", Some("0"), "sqrt(d) times the mean distance at the start"),
            Input {
                name: "directions",
                kind: Kind::Count,
                default: Some("1"),
                about: "unstable directions of this rate",
            },
        ],
        outputs: &["mean", "deviation"],
        compute: escape_law,
    },
    Quantity {
        name: "mean-correction",
        summary: "d times the difference between the mean over runs and the limit, at given times",
        inputs: &[MODEL, DATA, TRAINING, START, TIMES, OBSERVE],
        outputs: &["shift"],
        compute: mean_correction,
    },
];

fn refused(error: impl ToString) -> QuantityError {
    QuantityError::Domain(error.to_string())
}

/// What is wrong with a section, without the file that there is none of.
fn of_section(error: &Diagnostic) -> QuantityError {
    let hint = error.hint.as_ref().map_or(String::new(), |hint| format!("\n\nhint: {hint}"));
    refused(format!("{}{hint}", error.message))
}

/// The problem that the sections describe, with the rule that can be run.
fn problem(arguments: &Arguments, with_training: bool) -> Result<Problem, QuantityError> {
    for name in ["model", "data", "start"].into_iter().chain(with_training.then_some("training")) {
        if !arguments.value(name).is_object() {
            let hint = format!("write it as the table [{name}] of a description");
            return Err(refused(format!("input `{name}` is no table\n\nhint: {hint}")));
        }
    }
    let training =
        if with_training { arguments.value("training").clone() } else { json!({ "learning-rate": 1.0 }) };
    if training.get("stage").is_some() {
        return Err(refused(
            "input `training`: fluctuations of a schedule are those of a run, not of a quantity",
        ));
    }
    let description = json!({
        "title": "quantity",
        "model": arguments.value("model"),
        "data": arguments.value("data"),
        "training": training,
        "start": arguments.value("start"),
        "record": { "times": [0, 1] },
    });
    let source = Source::of_value(&description);
    let description = source.description().map_err(|error| of_section(&error))?;
    let draft = build::problem(&description, &source).map_err(|error| of_section(&error))?;
    let model = description.model.expect("a description with a model");
    let rule = model.rule().map_err(|error| refused(format!("input `model`: {error}")))?;
    Ok(Problem { rule, ..draft })
}

fn theory(problem: &Problem) -> Result<FluctuationTheory<'_>, QuantityError> {
    FluctuationTheory::new(problem, Needed::DriftAndNoise, ACCURACY).map_err(refused)
}

fn observables(arguments: &Arguments, problem: &Problem) -> Result<Vec<Arc<dyn Observable>>, QuantityError> {
    let names: Vec<String> = serde_json::from_value(arguments.value("observe").clone())
        .map_err(|_| refused("input `observe` is no list of observables such as [\"loss\", \"R[0,0]\"]"))?;
    if names.is_empty() {
        return Err(refused("input `observe` is empty; name at least one observable"));
    }
    let mut found = Vec::new();
    for name in &names {
        found.extend(observable::parse(name, problem).map_err(refused)?);
    }
    plain(&found)?;
    Ok(found)
}

fn one_observable(arguments: &Arguments, problem: &Problem) -> Result<Arc<dyn Observable>, QuantityError> {
    let name = arguments.text("observable");
    let found = observable::parse(name, problem).map_err(refused)?;
    plain(&found)?;
    match found.as_slice() {
        [one] => Ok(one.clone()),
        _ => Err(refused(format!("input `observable` is `{name}`, which stands for several; name one"))),
    }
}

/// Refuses what a state of overlaps does not have.
fn plain(observables: &[Arc<dyn Observable>]) -> Result<(), QuantityError> {
    match observables.iter().find(|o| o.needs_training_set() || o.needs_velocities()) {
        Some(other) => {
            Err(refused(format!("`{}` is no observable of plain one-pass training", other.name())))
        }
        None => Ok(()),
    }
}

fn times(arguments: &Arguments) -> Result<Vec<f64>, QuantityError> {
    let times = arguments.numbers("times");
    let ascending = times.windows(2).all(|pair| pair[0] < pair[1]);
    if times.iter().any(|t| *t < 0.0) || !ascending {
        return Err(refused("input `times` must ascend from 0 on"));
    }
    followed("times", times.last().copied().unwrap_or(0.0))?;
    Ok(times)
}

/// The last value of alpha up to which a covariance is followed: explicit integrators take steps of order one.
const LONGEST: f64 = 1e5;

fn followed(name: &str, time: f64) -> Result<(), QuantityError> {
    if time <= LONGEST {
        return Ok(());
    }
    Err(refused(format!("input `{name}` reaches {time:e}; up to alpha = {LONGEST:e} can be followed")))
}

fn positive(arguments: &Arguments, name: &'static str) -> Result<f64, QuantityError> {
    let value = arguments.number(name);
    if value > 0.0 {
        return Ok(value);
    }
    Err(refused(format!("input `{name}` is {value}; expected a positive number")))
}

fn rows(matrix: &Mat) -> Value {
    json!(matrix.to_rows())
}

fn start_covariance(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let problem = problem(arguments, false)?;
    let observables = observables(arguments, &problem)?;
    let found = theory(&problem)?.start_covariance(&observables).map_err(refused)?;
    Ok(vec![("covariance", rows(&found))])
}

fn diffusion(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let problem = problem(arguments, true)?;
    let observables = observables(arguments, &problem)?;
    let found = theory(&problem)?.diffusion(&observables).map_err(refused)?;
    Ok(vec![("diffusion", rows(&found))])
}

fn covariance(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (problem, times) = (problem(arguments, true)?, times(arguments)?);
    let observables = observables(arguments, &problem)?;
    let found = theory(&problem)?.covariances(&times, &observables).map_err(refused)?;
    Ok(vec![("covariance", found.iter().map(rows).collect())])
}

fn loss_band(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (problem, times) = (problem(arguments, true)?, times(arguments)?);
    let loss = observable::parse("loss", &problem).map_err(refused)?;
    let found = theory(&problem)?.covariances(&times, &loss).map_err(refused)?;
    let variances: Vec<f64> = found.iter().map(|matrix| matrix[(0, 0)]).collect();
    Ok(vec![("variance", json!(variances))])
}

fn passage_time(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let problem = problem(arguments, true)?;
    let observable = one_observable(arguments, &problem)?;
    let until = positive(arguments, "until")?;
    followed("until", until)?;
    let found = theory(&problem)?.passage(&observable, arguments.number("level"), until);
    let PassageLaw { time, variance } = found.map_err(refused)?;
    Ok(vec![("time", json!(time)), ("variance", json!(variance))])
}

/// P(|z| < 1) for a standard normal z.
const ONE_DEVIATION: &str = "0.6826894921370859";

/// Fluctuations are Gaussian: one run is within x of the limit with probability p where its standard deviation is x/z_p, with
/// z_p = Φ⁻¹((1 + p)/2).
fn required_dimension(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let problem = problem(arguments, true)?;
    let observable = one_observable(arguments, &problem)?;
    let (time, relative) = (arguments.number("time"), positive(arguments, "relative")?);
    if time < 0.0 {
        return Err(refused(format!("input `time` is {time}; expected zero or a positive number")));
    }
    followed("time", time)?;
    let probability = arguments.number("probability");
    if !(probability > 0.0 && probability < 1.0) {
        return Err(refused(format!(
            "input `probability` is {probability}; expected a number between 0 and 1, without these"
        )));
    }
    let deviations = normal::quantile(0.5 * (1.0 + probability));
    if !(deviations > 0.0 && deviations.is_finite()) {
        return Err(refused(format!(
            "input `probability` is {probability}, which is {} to the accuracy of numbers here",
            if deviations > 0.0 { "1" } else { "0" }
        )));
    }
    let found =
        theory(&problem)?.required_dimension(&observable, time, relative / deviations).map_err(refused)?;
    Ok(vec![("dimension", json!(found))])
}

fn seed(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let problem = problem(arguments, true)?;
    let observable = one_observable(arguments, &problem)?;
    let Seed { rate, variance } = theory(&problem)?.seed(&observable).map_err(refused)?;
    Ok(vec![("rate", json!(rate)), ("variance", json!(variance))])
}

/// Directions, and standard deviations from the plateau, whose law is summed.
const MOST_DIRECTIONS: usize = 1_000_000;
const FARTHEST: f64 = 1e5;

fn escape_law(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let law = EscapeLaw {
        rate: positive(arguments, "rate")?,
        level: positive(arguments, "level")?,
        dimension: positive(arguments, "dimension")?,
        variance: positive(arguments, "variance")?,
        mean: arguments.number("mean"),
        directions: arguments.count_up_to("directions", MOST_DIRECTIONS)?,
    };
    if law.mean.abs() > FARTHEST * law.variance.sqrt() {
        let message = format!(
            "input `mean` is {}, more than {FARTHEST} standard deviations: the start alone decides when it escapes",
            law.mean
        );
        return Err(refused(message));
    }
    let (mean, deviation) = law.mean_and_deviation();
    Ok(vec![("mean", json!(mean)), ("deviation", json!(deviation))])
}

fn mean_correction(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (problem, times) = (problem(arguments, true)?, times(arguments)?);
    let observables = observables(arguments, &problem)?;
    let correction = |theory: FluctuationTheory<'_>| -> Result<Vec<Vec<f64>>, FluctuationError> {
        theory.mean_correction(&times, &observables)
    };
    let found = correction(theory(&problem)?).map_err(refused)?;
    Ok(vec![("shift", json!(found))])
}
