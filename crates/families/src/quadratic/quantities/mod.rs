//! Predictions of this family by name. Times are t = η α unless an input or entry says α.

mod half_loss;
mod landscape;
mod plateau;
mod solution;
mod states;

use super::plateau::Widths;
use super::state::State;
use didact_math::linalg::{Mat, is_psd};
use didact_model::quantity::{Arguments, Input, Kind, Quantity, QuantityError};

pub(super) const ALL: &[Quantity] = &[
    states::RISK,
    states::RATES,
    states::ONE_STEP,
    plateau::PLATEAU,
    plateau::NORM_LEARNING,
    plateau::LOSS_REDUCTION,
    plateau::ESCAPE_TIME,
    plateau::ESCAPE_STATISTICS,
    plateau::FINITE_RATE,
    plateau::LEARNING_RATES,
    plateau::NOISE_SEEDED,
    plateau::SPHERICAL,
    half_loss::TIME,
    half_loss::STATISTICS,
    half_loss::OPTIMUM,
    half_loss::TRAJECTORY,
    solution::ALIGNMENT,
    solution::ENDPOINT,
    solution::POLAR,
    solution::POLAR_DRIFT,
    solution::TAIL,
    solution::FINAL_RATE,
    landscape::POINT,
    landscape::RISKS,
    landscape::FREEDOM,
    landscape::MANIFOLD,
];

const fn required(name: &'static str, kind: Kind, about: &'static str) -> Input {
    Input { name, kind, default: None, about }
}

const fn optional(name: &'static str, kind: Kind, about: &'static str) -> Input {
    Input { name, kind, default: Some("null"), about }
}

/// Hidden units where a list over units, or a matrix of them, is computed.
const MOST_UNITS: usize = 2048;

const STUDENTS: Input = required("p", Kind::Count, "hidden units of the student");
const TEACHERS: Input = required("p_star", Kind::Count, "hidden units of the teacher");
const RATE: Input = required("eta", Kind::Number, "learning rate; the step is eta/N");
const EPSILON: Input = required(
    "epsilon",
    Kind::Number,
    "standard deviation of the overlaps rho_kl at the start; 1/sqrt(N) is a random start",
);
const DELTA: Input =
    required("delta", Kind::Number, "drop of the loss as a fraction of the plateau, in (0, 1)");
const DIMENSION: Input = required("N", Kind::Count, "input dimension");
const RHO: Input = required("rho", Kind::Rows, "overlaps of students with teachers, p rows of p*");
const RHO0: Input = required("rho0", Kind::Rows, "overlaps at the start, p rows of p*");
const Q: Input = optional("Q", Kind::Matrix, "overlaps of the students, p x p; identity unless given");
const Q0: Input =
    optional("Q0", Kind::Matrix, "overlaps of the students at the start; identity unless given");
const OR_FLOW: Input = optional(
    "eta",
    Kind::Number,
    "learning rate, with times in alpha; gradient flow with times t unless given",
);

fn domain<T>(message: impl Into<String>) -> Result<T, QuantityError> {
    Err(QuantityError::Domain(message.into()))
}

fn widths(arguments: &Arguments) -> Widths {
    Widths::new(arguments.count("p"), arguments.count("p_star"))
}

/// A learning rate, positive.
fn rate(arguments: &Arguments) -> Result<f64, QuantityError> {
    let eta = arguments.number("eta");
    if eta > 0.0 { Ok(eta) } else { domain(format!("eta is {eta}; a learning rate is positive")) }
}

/// A learning rate, or none for the gradient flow.
fn rate_or_flow(arguments: &Arguments) -> Result<Option<f64>, QuantityError> {
    if arguments.given("eta") { rate(arguments).map(Some) } else { Ok(None) }
}

/// ε ≥ 0, and not 0: zero overlaps never grow.
fn epsilon(arguments: &Arguments) -> Result<f64, QuantityError> {
    match arguments.number("epsilon") {
        eps if eps < 0.0 => domain(format!("epsilon is {eps}; it is a standard deviation, not negative")),
        0.0 => domain(
            "epsilon is 0: without overlaps the equations stay on the plateau for ever; use a finite epsilon, or `noise-seeded-escape` at finite N",
        ),
        eps => Ok(eps),
    }
}

/// δ in (0, 1).
fn delta(arguments: &Arguments) -> Result<f64, QuantityError> {
    let delta = arguments.number("delta");
    if delta > 0.0 && delta < 1.0 {
        Ok(delta)
    } else {
        domain(format!("delta is {delta}; it is a fraction of the plateau, between 0 and 1"))
    }
}

/// ρ and Q = 1 that belong to real weights.
fn orthonormal(arguments: &Arguments, rho: &str) -> Result<State, QuantityError> {
    checked(arguments.matrix(rho), None, rho, "1")
}

/// ρ and Q that belong to real weights.
fn state(arguments: &Arguments, rho: &str, q: &str) -> Result<State, QuantityError> {
    checked(arguments.matrix(rho), arguments.given(q).then(|| arguments.matrix(q)), rho, q)
}

fn checked(matrix: Mat, students: Option<Mat>, rho: &str, q: &str) -> Result<State, QuantityError> {
    let students = students.unwrap_or_else(|| Mat::identity(matrix.rows()));
    if students.rows() != matrix.rows() {
        return domain(format!(
            "{q} is {0} x {0}, but {rho} has {1} rows, one per student",
            students.rows(),
            matrix.rows()
        ));
    }
    if students.asymmetry() > 1e-10 * students.max_abs() {
        return domain(format!(
            "{q} is not symmetric: entries differ from their mirror by up to {:.1e}",
            students.asymmetry()
        ));
    }
    let state = State { rho: matrix, q: students };
    if !is_psd(&state.outside()) {
        return domain(format!(
            "{q} - {rho} {rho}^T has a negative direction: students cannot overlap with the teachers by more than their norms; use smaller overlaps"
        ));
    }
    Ok(state)
}

/// Overlaps from which the flow reaches every direction it can.
fn full_rank(rho: &Mat) -> Result<(), QuantityError> {
    let polar = super::polar_factor(rho);
    if polar.is_rank_deficient() {
        return domain(format!(
            "the overlaps have rank {} of {}: the equations never learn the missing directions, and no solution is selected; use independent overlaps",
            polar.rank(),
            polar.singular_values.len()
        ));
    }
    Ok(())
}
