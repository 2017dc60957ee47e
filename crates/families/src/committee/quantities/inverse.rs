//! Inverse questions: examples and features needed, exponents that can be measured.

use super::inputs::{
    ALPHA, DIMENSION, ETA, VARIANCE, default, dimension, initial, learning_rate, needed_dimension, optional,
    positive, refuse, refused, required, spectrum, times, with_spectrum,
};
use super::linear::stable;
use crate::committee::predictions::inverse::{features_needed, first_below};
use crate::committee::predictions::regression::{CurveSize, Regression};
use crate::committee::predictions::small_rate::{self, PowerLaw};
use crate::committee::predictions::{feature::Features, late};
use didact_model::quantity::{Answer, Arguments, Input, Kind, Quantity, QuantityError, explained};
use serde_json::{Value, json};

const TARGET: Input = required("target", Kind::Number, "generalisation error to reach");

pub(super) const QUANTITIES: &[Quantity] = &[
    Quantity {
        name: "examples-needed",
        summary: "examples per dimension after which the error of linear (or late erf) units is down to a target",
        inputs: with_spectrum![
            TARGET,
            ETA,
            VARIANCE,
            DIMENSION,
            optional("M", Kind::Count, "hidden units of erf committees, for the late-time law"),
        ],
        outputs: &["alpha", "alpha-small-rate", "alpha-erf-late", "alpha-finite-size", "examples"],
        compute: examples,
    },
    Quantity {
        name: "features-needed",
        summary: "fewest trained directions N_l that leave an error below a target, in the eigenbasis and in a random basis",
        inputs: with_spectrum![
            TARGET,
            DIMENSION,
            default("eta", Kind::Number, "0", "learning rate"),
            VARIANCE
        ],
        outputs: &["Nl", "Nl-random-basis"],
        compute: features,
    },
    Quantity {
        name: "effective-exponent",
        summary: "local exponent of the error in alpha, beside the one of the power law and the window in which it is admissible",
        inputs: with_spectrum![ETA, ALPHA],
        outputs: &["alpha", "exponent", "small-rate", "integral", "power-law", "window", "admissible"],
        compute: exponent,
    },
];

fn examples(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let given = spectrum(arguments)?;
    let (rate, start) = (learning_rate(arguments)?, initial(arguments)?);
    let (target, dimension) = (positive(arguments, "target")?, dimension(arguments, &given));
    stable(rate, &given.spectrum, dimension)?;
    let regression = Regression::new(&given.spectrum, rate, start - 1.0);
    let curve = regression.curve(CurveSize::Limit);
    let found = |curve: &dyn Fn(f64) -> f64| first_below(curve, target).map_or(Value::Null, |a| json!(a));
    let mut answer: Answer = vec![
        ("alpha", found(&|a| curve.error(a))),
        ("alpha-small-rate", found(&|a| small_rate::error(&given.spectrum, rate, start, a))),
    ];
    if arguments.given("M") {
        let units = arguments.count("M");
        answer.push(("alpha-erf-late", found(&|a| late::law(units, &given.spectrum, rate, start, a))));
    }
    if let Some(n) = dimension {
        given.spectrum.multiplicities(n).map_err(refused)?;
        let finite = regression.curve(CurveSize::Dimension(n as f64));
        // The mean over runs is defined at whole steps; between them its modes interpolate.
        let alpha = first_below(|a| finite.between_steps(a), target);
        answer.push(("alpha-finite-size", alpha.map_or(Value::Null, |a| json!(a))));
        answer.push(("examples", alpha.map_or(Value::Null, |a| json!((a * n as f64).ceil()))));
    }
    let never = "the error does not fall to the target";
    let all = ["alpha", "alpha-small-rate", "alpha-erf-late", "alpha-finite-size", "examples"];
    Ok(explained(answer, &all.map(|name| (name, never))))
}

fn features(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (given, start) = (spectrum(arguments)?, initial(arguments)?);
    let (target, rate) = (positive(arguments, "target")?, arguments.number("eta"));
    if rate < 0.0 {
        return refuse(format!(
            "the learning rate is {rate}; it must be positive, or 0 for the limit of small rates"
        ));
    }
    let n = needed_dimension(arguments, &given)?;
    let fewest = |asymptote: &dyn Fn(&Features) -> f64| {
        let found = features_needed(&given.spectrum, n, target, asymptote).map_err(refused)?;
        Ok::<Value, QuantityError>(found.map_or(Value::Null, |k| json!(k)))
    };
    let answer = vec![
        ("Nl", fewest(&|f| f.asymptote_at(rate, start))?),
        ("Nl-random-basis", fewest(&|f| f.random_basis_asymptote(start))?),
    ];
    let never = "even all N directions leave a larger error";
    Ok(explained(answer, &[("Nl", never), ("Nl-random-basis", never)]))
}

fn exponent(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (given, rate, times) = (spectrum(arguments)?, learning_rate(arguments)?, times(arguments)?);
    stable(rate, &given.spectrum, None)?;
    if let Some(bad) = times.values.iter().find(|a| **a <= 0.0 || a.is_infinite()) {
        return refuse(format!("a local exponent at alpha = {bad} does not exist"));
    }
    let exact = Regression::new(&given.spectrum, rate, 0.0).curve(CurveSize::Limit);
    let small = |alpha: f64| {
        let step = 1e-4;
        let at = |x: f64| small_rate::error(&given.spectrum, rate, 1.0, alpha * x).ln();
        (at(1.0 + step) - at(1.0 - step)) / ((1.0f64 + step).ln() - (1.0f64 - step).ln())
    };
    let mut answer: Answer = vec![
        ("alpha", times.answer(|a| a)),
        ("exponent", times.answer(|a| exact.local_exponent(a))),
        ("small-rate", times.answer(small)),
    ];
    if let Some((levels, beta)) = given.law {
        let law = PowerLaw::new(levels, beta, rate, 1.0).map_err(refused)?;
        let window = law.window();
        answer.extend([
            ("integral", times.answer(|a| law.local_exponent(a))),
            ("power-law", json!(-law.exponent())),
            ("window", json!([window.from, window.to])),
            ("admissible", json!([window.from, 0.01 * law.levels_reached()])),
        ]);
    }
    Ok(answer)
}
