//! The spectrum itself: eigenvalues, moments, fluctuations of sampled teachers, coarse-graining.

use super::inputs::{DIMENSION, dimension, optional, refuse, refused, spectrum_up_to, with_spectrum};
use didact_math::fits::{Noise, power_law};
use didact_model::quantity::{Answer, Arguments, Kind, Quantity, QuantityError};
use serde_json::json;

pub(super) const QUANTITIES: &[Quantity] = &[Quantity {
    name: "spectrum",
    summary: "a spectrum of the inputs: eigenvalues, moments, fitted exponent; truncated or coarse-grained if asked",
    inputs: with_spectrum![
        DIMENSION,
        optional("truncate", Kind::Count, "keep only so many of the largest eigenvalues"),
        optional("groups", Kind::Count, "merge neighbouring eigenvalues into so many groups"),
        optional("normalise", Kind::Flag, "scale to (1/N) Tr = 1"),
        optional("ranks", Kind::Numbers, "first and last rank of the fit of beta; all unless given"),
    ],
    outputs: &[
        "eigenvalues",
        "weights",
        "rank",
        "moments",
        "merged",
        "dropped",
        "beta-fit",
        "N",
        "teacher-variance",
        "curve-error",
        "second-moment-error",
    ],
    compute: describe,
}];

fn describe(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let given = spectrum_up_to(arguments, 1_000_000)?;
    let dimension = dimension(arguments, &given);
    let mut shown = given.spectrum;
    if arguments.given("truncate") {
        shown = shown.truncated(arguments.count("truncate")).map_err(refused)?;
    }
    if arguments.given("normalise") && arguments.flag("normalise") {
        shown = shown.normalised();
    }
    let mut coarse = None;
    if arguments.given("groups") {
        let (spectrum, error) = shown.coarse_grained(arguments.count("groups")).map_err(refused)?;
        (shown, coarse) = (spectrum, Some(error));
    }
    if let Some(n) = dimension.filter(|_| coarse.is_none() && !arguments.given("truncate")) {
        shown.multiplicities(n).map_err(refused)?;
    }
    let window = match arguments.given("ranks").then(|| arguments.numbers("ranks")).as_deref() {
        None => (0.0, f64::INFINITY),
        Some([first, last]) if 1.0 <= *first && first < last => (*first, *last),
        Some(_) => return refuse("`ranks` are the first and the last rank of the fit, such as [10, 100]"),
    };
    let moments: Vec<f64> = (0..4).map(|order| shown.moment(order)).collect();
    let ranks: Vec<f64> = (1..=shown.len()).map(|k| k as f64).collect();
    let mut answer: Answer = vec![
        ("eigenvalues", json!(shown.eigenvalues())),
        ("weights", json!(shown.weights())),
        ("rank", json!(ranks)),
        ("moments", json!(moments)),
        ("merged", json!(given.merged)),
        ("dropped", json!(given.dropped)),
    ];
    // A power law of the eigenvalues over their ranks: λ_l ∝ l^{−(1+β)}.
    if let Ok(fit) = power_law(&ranks, shown.eigenvalues(), Noise::Estimated, window) {
        answer.push(("beta-fit", json!(-1.0 - fit.exponent)));
    }
    if let Some(n) = dimension {
        let pair = |order: i32| {
            let nu = shown.moment(2 * order);
            [2.0 * nu / n as f64, nu / n as f64]
        };
        answer.push(("N", json!(n)));
        answer.push(("teacher-variance", json!([pair(0), pair(1), pair(2)])));
    }
    if let Some(error) = coarse {
        answer.push(("curve-error", json!(error.curve)));
        answer.push(("second-moment-error", json!(error.second_moment)));
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn entry(inputs: &Value, name: &str) -> Value {
        let inputs = inputs.as_object().unwrap().clone();
        let answer = QUANTITIES[0].evaluate(&inputs).unwrap();
        answer.into_iter().find(|(entry, _)| *entry == name).unwrap().1
    }

    /// Two power laws that meet at rank 20: the fit sees the one that it is asked for.
    #[test]
    fn the_fit_of_beta_sees_the_ranks_that_it_is_given() {
        let kinked = |l: f64| if l <= 20.0 { l.powf(-1.5) } else { 20.0 * l.powf(-2.5) };
        let values: Vec<f64> = (1..=100).map(|l| kinked(f64::from(l))).collect();
        let fit =
            |ranks: [f64; 2]| entry(&json!({"lam": values, "ranks": ranks}), "beta-fit").as_f64().unwrap();
        assert!((fit([1.0, 20.0]) - 0.5).abs() < 1e-9 && (fit([21.0, 100.0]) - 1.5).abs() < 1e-9);
    }

    #[test]
    fn a_measured_spectrum_is_found_by_its_name() {
        assert_eq!(entry(&json!({"measured": "cifar-10"}), "N"), json!(1024));
        let wrong = json!({"measured": "cifar-5m"});
        let message = QUANTITIES[0].evaluate(wrong.as_object().unwrap()).unwrap_err().to_string();
        assert!(
            message.contains("cifar-5m") && message.contains("cifar-10, fashion-mnist, mnist"),
            "{message}"
        );
    }
}
