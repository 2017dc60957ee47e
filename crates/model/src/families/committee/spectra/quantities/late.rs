//! erf units after the plateau.

use super::inputs::{
    ALPHA, ETA, LEVELS, UNITS, VARIANCE, initial, learning_rate, optional, refuse, required, spectrum, times,
    with_spectrum,
};
use crate::families::committee::spectra::late;
use crate::families::committee::spectra::specialised::{
    critical_rate, error_rates, overlap_rates, quadratic_error, rate_coefficients,
};
use crate::quantity::{Answer, Arguments, Kind, Quantity, QuantityError};
use serde_json::json;

pub(super) const QUANTITIES: &[Quantity] = &[
    Quantity {
        name: "specialised-rates",
        summary: "erf units, K = M, near the specialised state: slow and fast coefficients, rates of error and overlaps, critical rate",
        inputs: with_spectrum![UNITS, optional("eta", Kind::Number, "learning rate, for the rates")],
        compute: rates,
    },
    Quantity {
        name: "specialised-error",
        summary: "erf units, K = M: error to second order in the distance from the teachers",
        inputs: &[
            required("p", Kind::Matrix, "p_ij = delta_i Sigma delta_j/N, M x M"),
            required("s", Kind::Matrix, "s_in = delta_i Sigma B_n/N, M x M"),
        ],
        compute: error,
    },
    Quantity {
        name: "late-law",
        summary: "erf units, K = M: law of the error long after the plateau, a sum of a slow and a fast group",
        inputs: with_spectrum![UNITS, ETA, VARIANCE, ALPHA],
        compute: law,
    },
];

fn rates(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let units = arguments.count("M");
    let (slow, fast) = rate_coefficients(units as f64);
    let mut answer: Answer =
        vec![("slow", json!(slow)), ("fast", json!(fast)), ("critical", json!(critical_rate(units as f64)))];
    let asked = ["beta", "lam", "file", LEVELS.name].iter().any(|name| arguments.given(name));
    if arguments.given("eta") && asked {
        let (rate, given) = (learning_rate(arguments)?, spectrum(arguments)?);
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

fn law(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (units, given, times) = (arguments.count("M"), spectrum(arguments)?, times(arguments)?);
    let (rate, start) = (learning_rate(arguments)?, initial(arguments)?);
    normalised(given.spectrum.moment(1))?;
    Ok(vec![
        ("alpha", times.answer(|a| a)),
        ("error", times.answer(|a| late::law(units, &given.spectrum, rate, start, a))),
    ])
}
