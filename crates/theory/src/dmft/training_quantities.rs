//! What the command line, scans and measures can ask about ways of training in closed form (`training/…`): least squares of a linear
//! unit on a training set, one sample at a time, and behind a moving teacher.

use super::{LinearTraining, MultiPass, SteadyTracking};
use didact_model::quantity::{Answer, Arguments, Input, Kind, Quantity, QuantityError};
use didact_model::training::{FactorSchedule, TimedNumber};
use serde_json::{Value, json};

const fn number(name: &'static str, default: Option<&'static str>, about: &'static str) -> Input {
    Input { name, kind: Kind::Number, default, about }
}

const fn list(name: &'static str, about: &'static str) -> Input {
    Input { name, kind: Kind::Numbers, default: None, about }
}

const DELTA: Input = number("delta", None, "n/d, samples per dimension");
const ETA: Input = number("eta", None, "learning rate");
const NOISE: Input = number("label-noise", Some("0"), "standard deviation of the label noise");
const LENGTH: Input = number("start-length", Some("1"), "length of the trained row at the start");

/// All of them.
pub(crate) static TRAINING: &[Quantity] = &[
    Quantity {
        name: "least-squares",
        summary: "linear unit on n = delta d samples: overlaps, test and train loss after some steps, with momentum, decay, batches",
        inputs: &[
            DELTA,
            ETA,
            list("steps", "numbers of steps"),
            NOISE,
            LENGTH,
            number("beta", Some("0"), "momentum"),
            Input {
                name: "nesterov",
                kind: Kind::Flag,
                default: Some("false"),
                about: "whether the gradient is taken ahead of the velocity",
            },
            number("weight-decay", Some("0"), "weight decay"),
            number("batch-fraction", Some("1"), "share of the samples that a step sees, drawn anew"),
            Input {
                name: "schedule",
                kind: Kind::Text,
                default: Some("\"1\""),
                about: "factor of the learning rate, a formula of the step t",
            },
        ],
        outputs: &["steps", "overlap", "squared-length", "start-overlap", "test", "train"],
        compute: least_squares,
    },
    Quantity {
        name: "multi-pass",
        summary: "linear unit, one sample per step drawn from n = delta d of them with replacement: overlaps and losses against alpha = steps/d",
        inputs: &[DELTA, ETA, list("alpha", "times, ascending"), NOISE, LENGTH],
        outputs: &["alpha", "overlap", "squared-length", "test", "train"],
        compute: multi_pass,
    },
    Quantity {
        name: "tracking",
        summary: "linear unit behind a teacher that diffuses or rotates: overlap and loss of the steady state",
        inputs: &[
            ETA,
            NOISE,
            number("drift", Some("null"), "rate of the diffusion of the teacher per alpha"),
            number("rotation", Some("null"), "angular velocity of the teacher per alpha"),
        ],
        outputs: &["overlap", "loss"],
        compute: tracking,
    },
];

/// The most steps of gradient descent: their cost grows as the third power.
const MOST_STEPS: f64 = 200.0;
/// The longest integration, in units of the fastest mode.
const LONGEST: f64 = 1e5;

fn refused<T>(message: String) -> Result<T, QuantityError> {
    Err(QuantityError::Domain(message))
}

/// A number for a list of one, as scans and measures want it.
fn one_or_all(values: Vec<f64>) -> Value {
    if let [only] = values.as_slice() { json!(only) } else { json!(values) }
}

/// An input within a range that is given in words.
fn within(
    arguments: &Arguments,
    name: &str,
    admits: impl Fn(f64) -> bool,
    range: &str,
) -> Result<f64, QuantityError> {
    let value = arguments.number(name);
    if admits(value) { Ok(value) } else { refused(format!("input `{name}` is {value}; it must be {range}")) }
}

fn positive(arguments: &Arguments, name: &str) -> Result<f64, QuantityError> {
    within(arguments, name, |v| v > 0.0, "positive")
}

fn not_negative(arguments: &Arguments, name: &str) -> Result<f64, QuantityError> {
    within(arguments, name, |v| v >= 0.0, "zero or positive")
}

fn least_squares(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let steps = arguments.numbers("steps");
    if let Some(wrong) = steps.iter().find(|t| !(0.0..=MOST_STEPS).contains(*t) || t.fract() != 0.0) {
        return refused(format!(
            "input `steps` has {wrong}; expected whole numbers from 0 to {MOST_STEPS}\n\nhint: engine `dmft` and scans of `training/multi-pass` go further"
        ));
    }
    if steps.len() > MOST_STEPS as usize + 1 {
        return refused(format!("input `steps` has {} numbers; {MOST_STEPS} are enough", steps.len()));
    }
    let schedule = FactorSchedule::formula(arguments.text("schedule"))
        .map_err(|error| QuantityError::Domain(format!("input `schedule`: {error}")))?;
    let last = steps.iter().copied().fold(0.0, f64::max) as usize;
    if let Some((t, factor)) =
        (0..last).map(|t| (t, schedule.value(t as f64))).find(|(_, f)| !(f.is_finite() && *f >= 0.0))
    {
        return refused(format!("input `schedule` is {factor} at t = {t}; it must be zero or positive"));
    }
    let noise = not_negative(arguments, "label-noise")?;
    let training = LinearTraining {
        schedule,
        noise_variance: noise * noise,
        start_length: not_negative(arguments, "start-length")?,
        beta: TimedNumber::Fixed(within(
            arguments,
            "beta",
            |b| (0.0..1.0).contains(&b),
            "at least 0 and below 1",
        )?),
        nesterov: arguments.flag("nesterov"),
        weight_decay: not_negative(arguments, "weight-decay")?,
        fraction: within(arguments, "batch-fraction", |b| b > 0.0 && b <= 1.0, "above 0 and at most 1")?,
        ..LinearTraining::new(positive(arguments, "delta")?, positive(arguments, "eta")?)
    };
    let states: Vec<_> = steps.iter().map(|t| training.at(*t as usize)).collect();
    let column = |of: fn(&super::LinearTrainingState) -> f64| one_or_all(states.iter().map(of).collect());
    Ok(vec![
        ("steps", one_or_all(steps)),
        ("overlap", column(|s| s.overlap)),
        ("squared-length", column(|s| s.squared_length)),
        ("start-overlap", column(|s| s.start_overlap)),
        ("test", column(|s| s.test)),
        ("train", column(|s| s.train)),
    ])
}

fn multi_pass(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let alpha = arguments.numbers("alpha");
    if alpha[0] < 0.0 || alpha.windows(2).any(|pair| pair[0] >= pair[1]) {
        return refused("input `alpha` needs times from 0 on, each larger than the one before".into());
    }
    let noise = not_negative(arguments, "label-noise")?;
    let multi = MultiPass {
        ratio: positive(arguments, "delta")?,
        rate: positive(arguments, "eta")?,
        noise_variance: noise * noise,
        start_length: not_negative(arguments, "start-length")?,
    };
    // The largest eigenvalue of the covariance of the samples is (1 + δ^{−1/2})².
    let fastest = multi.rate * (1.0 + multi.ratio.powf(-0.5)).powi(2) * alpha[alpha.len() - 1];
    if fastest.is_nan() || fastest > LONGEST {
        return refused(format!(
            "the last time is {fastest:.3e} in units of the fastest direction; up to {LONGEST:e} can be integrated"
        ));
    }
    let states = multi.at(&alpha).map_err(|error| QuantityError::Domain(error.to_string()))?;
    if states.len() < alpha.len() {
        return refused(format!(
            "training diverges before alpha = {}\n\nhint: use a smaller eta",
            alpha[states.len()]
        ));
    }
    let column = |of: fn(&super::MultiPassState) -> f64| one_or_all(states.iter().map(of).collect());
    Ok(vec![
        ("alpha", one_or_all(alpha)),
        ("overlap", column(|s| s.overlap)),
        ("squared-length", column(|s| s.squared_length)),
        ("test", column(|s| s.test)),
        ("train", column(|s| s.train)),
    ])
}

fn tracking(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let noise = not_negative(arguments, "label-noise")?;
    let rate = within(
        arguments,
        "eta",
        |eta| eta > 0.0 && eta < 2.0,
        "above 0 and below 2, where training is stable",
    )?;
    let steady = SteadyTracking { rate, noise_variance: noise * noise };
    let (overlap, loss) = match (arguments.given("drift"), arguments.given("rotation")) {
        (true, false) => steady.diffusion(not_negative(arguments, "drift")?),
        (false, true) => steady.rotation(arguments.number("rotation")),
        _ => return refused("give `drift` or `rotation`, one of the two".into()),
    };
    Ok(vec![("overlap", json!(overlap)), ("loss", json!(loss))])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(name: &str, inputs: &serde_json::Value) -> Result<Answer, QuantityError> {
        let quantity = TRAINING.iter().find(|q| q.name == name).unwrap();
        quantity.evaluate(inputs.as_object().unwrap())
    }

    /// Many samples per dimension are seen once each: multi-pass training becomes one pass, whose mean of |w − v|² follows
    /// a' = −2 η a + η² (a + s²).
    #[test]
    fn many_samples_are_one_pass() {
        let answer =
            ask("multi-pass", &json!({"delta": 1e6, "eta": 0.5, "alpha": [3.0], "label-noise": 0.4}))
                .unwrap();
        let (eta, s2) = (0.5, 0.16);
        let (floor, rate) = (eta * s2 / (2.0 - eta), eta * (2.0 - eta));
        let distance = floor + (2.0 - floor) * (-rate * 3.0_f64).exp();
        let test = answer.iter().find(|(name, _)| *name == "test").unwrap().1.as_f64().unwrap();
        assert!((test - 0.5 * (distance + s2)).abs() < 1e-5, "{test}");
    }

    #[test]
    fn what_has_no_answer_is_said_in_words() {
        for (name, inputs, words) in [
            ("least-squares", json!({"delta": 2, "eta": 0.5, "steps": [0.5]}), "whole numbers"),
            (
                "least-squares",
                json!({"delta": 2, "eta": 0.5, "steps": [3], "schedule": "1-t"}),
                "zero or positive",
            ),
            ("least-squares", json!({"delta": 2, "eta": 0.5, "steps": [3], "beta": 1}), "below 1"),
            ("multi-pass", json!({"delta": 2, "eta": 0.5, "alpha": [1, 0.5]}), "larger than the one before"),
            ("multi-pass", json!({"delta": 2, "eta": 0.5, "alpha": [1e9]}), "fastest direction"),
            ("tracking", json!({"eta": 2.5, "drift": 0.1}), "below 2"),
            ("tracking", json!({"eta": 0.5}), "one of the two"),
        ] {
            let error = ask(name, &inputs).unwrap_err().to_string();
            assert!(error.contains(words), "{name}: {error}");
        }
    }
}
