//! erf units after the plateau.

use super::inputs::{
    ALPHA, ETA, LEVELS, MOST_HIDDEN, UNITS, VARIANCE, default, initial, learning_rate, optional, refuse,
    refused, required, spectrum, spectrum_up_to, times, with_spectrum,
};
use crate::committee::predictions::late;
use crate::committee::predictions::specialised::{
    critical_rate, error_rates, overlap_rates, quadratic_error, rate_coefficients,
};
use crate::committee::predictions::symmetric::{SymmetricFlow, SymmetricState};
use didact_math::ode::Method;
use didact_model::quantity::{Answer, Arguments, Kind, Quantity, QuantityError};
use didact_model::rule::Needed;
use serde_json::json;

pub(super) const QUANTITIES: &[Quantity] = &[
    Quantity {
        name: "specialised-rates",
        summary: "erf units, K = M, near the specialised state: slow and fast coefficients, rates of error and overlaps, critical rate",
        inputs: with_spectrum![UNITS, optional("eta", Kind::Number, "learning rate, for the rates")],
        outputs: &["slow", "fast", "critical", "error-rates", "overlap-rates"],
        compute: rates,
    },
    Quantity {
        name: "specialised-error",
        summary: "erf units, K = M: error to second order in the distance from the teachers",
        inputs: &[
            required("p", Kind::Matrix, "p_ij = delta_i Sigma delta_j/N, M x M"),
            required("s", Kind::Matrix, "s_in = delta_i Sigma B_n/N, M x M"),
        ],
        outputs: &["error"],
        compute: error,
    },
    Quantity {
        name: "late-law",
        summary: "erf units, K = M: law of the error long after the plateau, a sum of a slow and a fast group",
        inputs: with_spectrum![UNITS, ETA, VARIANCE, ALPHA],
        outputs: &["alpha", "error"],
        compute: law,
    },
    Quantity {
        name: "symmetric-flow",
        summary: "erf units, K = M, typical teachers, symmetric start: error against alpha from the exact equations, any L and M",
        inputs: with_spectrum![
            UNITS,
            ETA,
            default("sigma_J2", Kind::Number, "1e-4", "variance of the student's components at the start"),
            default(
                "asymmetry",
                Kind::Number,
                "1e-3",
                "overlap of every student with its teacher at the start"
            ),
            default("quadratic", Kind::Flag, "false", "keep the term of second order in the learning rate"),
            default("tolerance", Kind::Number, "1e-7", "of the integration"),
            optional("from", Kind::Number, "propagate the state at this alpha by the linearised equations"),
            ALPHA,
        ],
        outputs: &["shifted", "propagated", "ratio", "alpha", "error", "late-law"],
        compute: flow,
    },
];

fn rates(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let units = arguments.count("M");
    let (slow, fast) = rate_coefficients(units as f64);
    let mut answer: Answer =
        vec![("slow", json!(slow)), ("fast", json!(fast)), ("critical", json!(critical_rate(units as f64)))];
    let asked = ["beta", "lam", "file", LEVELS.name].iter().any(|name| arguments.given(name));
    if arguments.given("eta") && asked {
        // A dense matrix of as many rows is diagonalised.
        let (rate, given) = (learning_rate(arguments)?, spectrum_up_to(arguments, 512)?);
        normalised(given.spectrum.moment(1))?;
        answer.push(("error-rates", json!(error_rates(units, &given.spectrum, rate))));
        answer.push(("overlap-rates", json!(overlap_rates(units, &given.spectrum, rate))));
    } else if arguments.given("eta") || asked {
        return refuse("rates need both `eta` and a spectrum");
    }
    Ok(answer)
}

/// The closed forms are about teachers with T^(1) = 1.
fn normalised(mean: f64) -> Result<(), QuantityError> {
    if (mean - 1.0).abs() > 1e-9 {
        return refuse(format!(
            "the mean eigenvalue is {mean}, so T^(1) is not the identity, which the specialised phase needs\n\n\
             hint: divide the eigenvalues by {mean} and multiply eta by it"
        ));
    }
    Ok(())
}

fn error(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (p, s) = (arguments.matrix("p"), arguments.matrix("s"));
    if p.rows() != s.rows() {
        return refuse(format!("`p` is {0} x {0} and `s` is {1} x {1}", p.rows(), s.rows()));
    }
    if p.asymmetry() > 1e-10 * p.max_abs() {
        return refuse("`p` is not symmetric");
    }
    Ok(vec![("error", json!(quadratic_error(&p, &s)))])
}

/// The most terms of the late-time law, one for each eigenvalue and time.
const MOST_TERMS: usize = 100_000_000;

fn law(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let units = arguments.count_up_to("M", MOST_HIDDEN)?;
    let (given, times) = (spectrum_up_to(arguments, 1_000_000)?, times(arguments)?);
    let (levels, count) = (given.spectrum.len(), times.values.len());
    if levels * count > MOST_TERMS {
        return refuse(format!(
            "{levels} eigenvalues at {count} times are {:e} terms; up to {MOST_TERMS:e} can be computed",
            levels as f64 * count as f64
        ));
    }
    let (rate, start) = (learning_rate(arguments)?, initial(arguments)?);
    normalised(given.spectrum.moment(1))?;
    Ok(vec![
        ("alpha", times.answer(|a| a)),
        ("error", times.answer(|a| late::law(units, &given.spectrum, rate, start, a))),
    ])
}

/// The learning curve, the late-time law beside it and, from `from` on, the late state propagated.
fn flow(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (units, given, times) =
        (arguments.count_up_to("M", MOST_HIDDEN)?, spectrum(arguments)?, times(arguments)?);
    let (rate, start) = (learning_rate(arguments)?, initial(arguments)?);
    normalised(given.spectrum.moment(1))?;
    let (asymmetry, tolerance) = (arguments.number("asymmetry"), arguments.number("tolerance"));
    if asymmetry == 0.0 && units > 1 {
        return refuse("without asymmetry the students stay on the plateau for ever\n\nhint: use 1e-3, say");
    }
    if asymmetry.powi(2) > (start - 1.0) {
        return refuse(format!(
            "an overlap of {asymmetry} with the teacher needs students of variance `sigma_J2` above {}",
            asymmetry.powi(2)
        ));
    }
    if !(tolerance > 0.0 && tolerance < 1.0) {
        return refuse(format!("`tolerance` is {tolerance}; use a number between 0 and 1"));
    }
    let needed = if arguments.flag("quadratic") { Needed::DriftAndNoise } else { Needed::Drift };
    let origin = arguments.given("from").then(|| arguments.number("from"));
    if origin.is_some_and(|o| times.values[0] < o) {
        return refuse("`alpha` starts before `from`");
    }
    if times.values.iter().any(|a| a.is_infinite()) {
        return refuse("a curve is integrated to finite `alpha` only");
    }
    let mut flow = SymmetricFlow::new(units, &given.spectrum, rate, needed);
    let state = SymmetricState::small(units, &given.spectrum, start - 1.0, asymmetry);
    let all: Vec<f64> = origin.into_iter().chain(times.values.iter().copied()).collect();
    // Rates spread over L^{1+beta}: from a few dozen eigenvalues on the stabilised method is the faster one.
    let method = if given.spectrum.len() > 32 { Method::Stabilised } else { Method::Dop853 };
    let mut states = flow.solve(&state, &all, tolerance, method).map_err(refused)?;
    if let Some(time) = all.get(states.len()) {
        return refuse(format!(
            "the flow cannot be followed to alpha = {time:e}; ask for earlier times or a smaller eta"
        ));
    }
    let mut answer: Answer = Vec::new();
    if let Some(origin) = origin {
        let late = states.remove(0).0.late(units, &given.spectrum);
        let shifted: Vec<f64> = times.values.iter().map(|a| a - origin).collect();
        let errors = late.errors(&given.spectrum, rate, &shifted).map_err(refused)?;
        if let Some(time) = times.values.get(errors.len()) {
            return refuse(format!(
                "the late law cannot be followed to alpha = {time:e}; ask for earlier times"
            ));
        }
        let ratio: Vec<f64> = errors.iter().zip(&states).map(|(e, s)| e / s.1).collect();
        answer.push(("shifted", times.list(&shifted)));
        answer.push(("propagated", times.list(&errors)));
        answer.push(("ratio", times.list(&ratio)));
    }
    answer.push(("alpha", times.answer(|a| a)));
    answer.push(("error", times.list(&states.iter().map(|s| s.1).collect::<Vec<f64>>())));
    answer.push(("late-law", times.answer(|a| late::law(units, &given.spectrum, rate, start, a))));
    Ok(answer)
}
