//! Feature scaling: N_l trained directions of N.

use super::inputs::{
    ALPHA, DIMENSION, ETA, VARIANCE, default, initial, learning_rate, needed_dimension, optional, refuse,
    refused, required, spectrum, times, with_spectrum,
};
use super::linear::stable;
use crate::committee::predictions::correlated::{
    CorrelatedFeatures, exponential_covariance, in_basis, random_basis,
};
use crate::committee::predictions::feature::{Features, integral, integral_asymptote, random_basis_ratio};
use crate::committee::predictions::regression::CurveSize;
use crate::committee::predictions::small_rate::PowerLaw;
use didact_math::linalg::Mat;
use didact_model::quantity::{Answer, Arguments, Input, Kind, Quantity, QuantityError};
use serde_json::json;

const TRAINED: Input = required("Nl", Kind::Number, "trained directions, 0 to N");

pub(super) const QUANTITIES: &[Quantity] = &[
    Quantity {
        name: "feature-error",
        summary: "linear units of which the N_l largest directions are trained: mean error against alpha",
        inputs: with_spectrum![DIMENSION, TRAINED, ETA, VARIANCE, ALPHA],
        outputs: &[
            "alpha",
            "small-rate",
            "exact",
            "finite-size",
            "asymptote",
            "asymptote-finite-rate",
            "integral",
        ],
        compute: error,
    },
    Quantity {
        name: "feature-asymptote",
        summary: "error that N_l trained directions leave: in the eigenbasis (small and finite rate) and in a random basis",
        inputs: with_spectrum![
            DIMENSION,
            TRAINED,
            default("eta", Kind::Number, "0", "learning rate"),
            VARIANCE
        ],
        outputs: &["small-rate", "integral", "ratio-limit", "finite-rate", "random-basis", "ridge", "ratio"],
        compute: asymptote,
    },
    Quantity {
        name: "feature-correlated",
        summary: "the first N_l coordinates of correlated inputs are trained: mean error against alpha",
        inputs: with_spectrum![
            DIMENSION,
            TRAINED,
            ETA,
            VARIANCE,
            ALPHA,
            optional("rho", Kind::Number, "inputs with Sigma_ij = rho^|i-j|"),
            optional("covariance", Kind::Matrix, "any covariance of the inputs"),
            optional("seed", Kind::Number, "of the random basis in which the inputs have the given spectrum"),
        ],
        outputs: &["alpha", "small-rate", "finite-size", "asymptote"],
        compute: correlated,
    },
];

/// N_l, a whole number from 0 to N.
fn trained(arguments: &Arguments, dimension: u64) -> Result<u64, QuantityError> {
    let value = arguments.number("Nl");
    if value.fract() != 0.0 || value < 0.0 || value > dimension as f64 {
        return refuse(format!("`Nl` is {value}; it must be a whole number from 0 to N = {dimension}"));
    }
    Ok(value as u64)
}

fn error(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let given = spectrum(arguments)?;
    let (rate, start, times) = (learning_rate(arguments)?, initial(arguments)?, times(arguments)?);
    let n = needed_dimension(arguments, &given)?;
    stable(rate, &given.spectrum, Some(n))?;
    let features = Features::new(&given.spectrum, n, trained(arguments, n)?).map_err(refused)?;
    let regression = features.regression(rate, start);
    let (limit, finite) =
        (regression.curve(CurveSize::Limit), regression.curve(CurveSize::Dimension(n as f64)));
    let mut answer: Answer = vec![
        ("alpha", times.answer(|a| a)),
        ("small-rate", times.answer(|a| features.small_rate(rate, start, a))),
        ("exact", times.answer(|a| limit.error(a))),
        ("finite-size", times.answer(|a| finite.error(a))),
        ("asymptote", json!(features.asymptote(start))),
        ("asymptote-finite-rate", json!(features.asymptote_at(rate, start))),
    ];
    if let Some((levels, beta)) = given.law.filter(|(levels, _)| *levels as u64 == n && features.trained > 0)
    {
        let law = PowerLaw::new(levels, beta, rate, start).map_err(refused)?;
        answer.push(("integral", times.answer(|a| integral(&law, features.trained, a))));
    }
    Ok(answer)
}

fn asymptote(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (given, start) = (spectrum(arguments)?, initial(arguments)?);
    let rate = arguments.number("eta");
    if rate < 0.0 {
        return refuse(format!(
            "the learning rate is {rate}; it must be positive, or 0 for the limit of small rates"
        ));
    }
    let n = needed_dimension(arguments, &given)?;
    let features = Features::new(&given.spectrum, n, trained(arguments, n)?).map_err(refused)?;
    let mut answer: Answer = vec![("small-rate", json!(features.asymptote(start)))];
    if let Some((levels, beta)) = given.law.filter(|(levels, _)| *levels as u64 == n && features.trained > 0)
    {
        let law = PowerLaw::new(levels, beta, 1.0, start).map_err(refused)?;
        answer.push(("integral", json!(integral_asymptote(&law, features.trained))));
        answer.push(("ratio-limit", json!(random_basis_ratio(beta))));
    }
    let random = features.random_basis_asymptote(start);
    answer.extend([
        ("finite-rate", json!(features.asymptote_at(rate, start))),
        ("random-basis", json!(random)),
        ("ridge", json!(features.random_basis_ridge())),
        ("ratio", json!(random / features.asymptote(start))),
    ]);
    Ok(answer)
}

fn correlated(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (rate, start, times) = (learning_rate(arguments)?, initial(arguments)?, times(arguments)?);
    let covariance = covariance(arguments)?;
    let n = covariance.rows() as u64;
    let trained = trained(arguments, n)?;
    let Some(features) = CorrelatedFeatures::new(&covariance, trained as usize) else {
        return refuse("the covariance of the trained inputs is not positive definite");
    };
    let finite = features.regression(rate, start).curve(CurveSize::Dimension(n as f64));
    Ok(vec![
        ("alpha", times.answer(|a| a)),
        ("small-rate", times.answer(|a| features.small_rate(rate, start, a))),
        ("finite-size", times.answer(|a| finite.error(a))),
        ("asymptote", json!(features.asymptote(start))),
    ])
}

/// Inputs of a covariance that is diagonalised, at a cost that grows with their cube.
const MOST_INPUTS: usize = 2000;

/// `covariance`, or `N` and `rho`, or a spectrum in a random basis.
fn covariance(arguments: &Arguments) -> Result<Mat, QuantityError> {
    if arguments.given("covariance") {
        let covariance = arguments.matrix("covariance");
        if covariance.rows() > MOST_INPUTS {
            return refuse(format!(
                "`covariance` has {} rows; up to {MOST_INPUTS} can be computed",
                covariance.rows()
            ));
        }
        if !didact_math::linalg::is_psd(&covariance) {
            return refuse("`covariance` is not symmetric, or has a negative direction");
        }
        return Ok(covariance);
    }
    if arguments.given("rho") {
        let rho = arguments.number("rho");
        if !(rho > -1.0 && rho < 1.0) {
            return refuse(format!("`rho` is {rho}; correlations lie strictly between -1 and 1"));
        }
        if !arguments.given("N") {
            return refuse("`rho` needs `N`, the input dimension");
        }
        return Ok(exponential_covariance(arguments.count_up_to("N", MOST_INPUTS)?, rho));
    }
    let given = spectrum(arguments)?;
    let n = needed_dimension(arguments, &given)?;
    if n > MOST_INPUTS as u64 {
        return refuse(format!("`N` is {n}; a random basis of up to {MOST_INPUTS} inputs can be computed"));
    }
    let sizes = given.spectrum.multiplicities(n).map_err(refused)?;
    let seed = if arguments.given("seed") { arguments.number("seed") } else { 0.0 };
    if seed < 0.0 || seed.fract() != 0.0 {
        return refuse(format!("`seed` is {seed}; it must be a whole number, not negative"));
    }
    Ok(in_basis(&given.spectrum, &sizes, &random_basis(n as usize, seed as u64)))
}
