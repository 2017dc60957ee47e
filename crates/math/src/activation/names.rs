//! From names and formulas to activations.

use std::f64::consts::FRAC_1_SQRT_2;
use std::sync::Arc;

use super::recognise::recognise;
use super::{
    Abs, Activation, Erf, Formula, Gelu, HermitePolynomial, Linear, Polynomial, Relu, Sigmoid, Tanh,
};
use crate::expression::{Expression, ExpressionError, abbreviated, nearest};

/// Why a text is not an activation.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ActivationError {
    /// Two conventions are in use.
    #[error(
        "`erf` is ambiguous\nhint: write `erf(z)`, or `erf(z/sqrt2)` for the convention of Saad and Solla"
    )]
    AmbiguousErf,
    /// A bare word that is no known name.
    #[error("unknown activation `{name}`{}", hint(.nearest.as_deref()))]
    Unknown {
        /// The text.
        name: String,
        /// The nearest known name.
        nearest: Option<String>,
    },
    /// Hermite polynomials end at 60.
    #[error("`{name}`: Hermite activations go up to order {}", HermitePolynomial::LARGEST)]
    Order {
        /// The text.
        name: String,
    },
    /// A coefficient of `poly(...)` is not a finite number.
    #[error("coefficient {index} of `poly` is `{text}`, which is not a finite number")]
    Coefficient {
        /// Which, from 0 (the power it multiplies).
        index: usize,
        /// What was written.
        text: String,
    },
    /// The formula cannot be read.
    #[error(transparent)]
    Formula(#[from] ExpressionError),
    /// The formula does not depend on its argument, or on more than one.
    #[error("the formula `{}` must depend on exactly one of x and z, but it uses {found:?}", abbreviated(.formula))]
    Variables {
        /// The formula.
        formula: String,
        /// The variables it uses.
        found: Vec<String>,
    },
    /// The formula jumps.
    #[error(
        "`{}` jumps by {size} at {at}; an activation must be continuous\nhint: use a steep smooth step such as `erf(20*x)`",
        abbreviated(.formula)
    )]
    Jump {
        /// The formula.
        formula: String,
        /// Where it jumps.
        at: f64,
        /// By how much.
        size: f64,
    },
    /// Averages of the formula over Gaussian inputs are infinite, or too large to compute with.
    #[error("`{}` grows too fast: its mean square over Gaussian inputs is infinite or above 1e60", abbreviated(.formula))]
    Growth {
        /// The formula.
        formula: String,
    },
    /// A polynomial of too many coefficients.
    #[error("a polynomial of {found} coefficients; it goes up to {LARGEST_DEGREE} of them")]
    Degree {
        /// How many were given.
        found: usize,
    },
    /// The formula is infinite or undefined somewhere.
    #[error("`{formula}` is {value} at {at:.3}; an activation must be finite on the whole line")]
    NotFinite {
        /// The formula.
        formula: String,
        /// Where.
        at: f64,
        /// Its value there.
        value: f64,
    },
}

fn hint(nearest: Option<&str>) -> String {
    match nearest {
        Some(name) => format!("\nhint: did you mean `{name}`?"),
        None => "\nhint: give a name of the catalogue, or a formula in x such as `tanh(x) + 0.1*x^3`".into(),
    }
}

/// Name, one line for lists and help texts, and the instances that every test of activations runs over.
const CATALOGUE: [(&str, &str, &[&str]); 13] = [
    ("linear", "z (also `id`)", &["linear"]),
    ("erf(z)", "error function of z", &["erf(z)"]),
    ("erf(z/sqrt2)", "error function of z/√2, the convention of Saad and Solla", &["erf(z/sqrt2)"]),
    ("relu", "max(z, 0)", &["relu"]),
    ("sigmoid", "1/(1 + e^-z)", &["sigmoid"]),
    ("tanh", "hyperbolic tangent", &["tanh"]),
    ("gelu", "z Φ(z), the exact form with erf", &["gelu"]),
    ("quadratic", "z² (also `quad`)", &["quadratic"]),
    ("abs", "|z|", &["abs"]),
    ("He<k>", "Hermite polynomial He_k, k ≤ 60; He3 = z³ − 3z", &["He0", "He1", "He3", "He7"]),
    ("h<k>", "normalised Hermite polynomial He_k/√k!", &["h12", "h45"]),
    ("poly(c0, c1, ...)", "c0 + c1 z + c2 z² + ...", &["poly(1, -2, 0.5, 0.25)"]),
    (
        "<formula>",
        "any formula in x (or z), such as tanh(x) + 0.1*x^3",
        &["tanh(x) + 0.1*x^3", "max(x, -0.5) - 0.1*abs(x - 1)"],
    ),
];

/// Names with one line each, for lists and help texts.
pub fn catalogue() -> Vec<(&'static str, &'static str)> {
    CATALOGUE.iter().map(|(name, about, _)| (*name, *about)).collect()
}

/// Instances of everything in the catalogue.
#[cfg(test)]
pub(super) fn instances() -> impl Iterator<Item = &'static str> {
    CATALOGUE.iter().flat_map(|(_, _, instances)| instances.iter().copied())
}

/// Words that stand for an activation; the case of letters does not matter.
const WORDS: [&str; 11] =
    ["linear", "id", "identity", "relu", "sigmoid", "tanh", "gelu", "quadratic", "quad", "abs", "erf"];

/// Coefficients of `poly(...)`; as many as the largest Hermite polynomial has.
const LARGEST_DEGREE: usize = HermitePolynomial::LARGEST + 1;

/// Reads a name of the [`catalogue`] or a formula in x (or z).
pub fn parse(text: &str) -> Result<Arc<dyn Activation>, ActivationError> {
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    if let Some(hermite) = hermite(&compact) {
        return hermite;
    }
    let lower = compact.to_lowercase();
    Ok(match lower.as_str() {
        "erf" => return Err(ActivationError::AmbiguousErf),
        "linear" | "id" | "identity" => Arc::new(Linear),
        "erf(z/sqrt2)" | "erf(x/sqrt2)" => Arc::new(Erf { scale: FRAC_1_SQRT_2 }),
        "relu" => Arc::new(Relu),
        "sigmoid" => Arc::new(Sigmoid),
        "tanh" => Arc::new(Tanh),
        "gelu" => Arc::new(Gelu),
        "quadratic" | "quad" => Arc::new(Polynomial::quadratic()),
        "abs" => Arc::new(Abs),
        _ => {
            if let Some(inside) = lower.strip_prefix("poly(").and_then(|rest| rest.strip_suffix(')')) {
                return polynomial(inside);
            }
            return formula(text, &compact);
        }
    })
}

/// `He12` or `h12`, in exactly this case; `None` if the text is something else.
fn hermite(text: &str) -> Option<Result<Arc<dyn Activation>, ActivationError>> {
    let (digits, normalised) = text
        .strip_prefix("He")
        .map(|rest| (rest, false))
        .or_else(|| text.strip_prefix('h').map(|rest| (rest, true)))?;
    if digits.is_empty() || !digits.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    let order = digits.parse().ok().and_then(|order| HermitePolynomial::new(order, normalised));
    Some(order.map_or_else(
        || Err(ActivationError::Order { name: text.to_owned() }),
        |hermite| Ok(Arc::new(hermite) as Arc<dyn Activation>),
    ))
}

fn polynomial(inside: &str) -> Result<Arc<dyn Activation>, ActivationError> {
    let coefficient = |(index, text): (usize, &str)| {
        let value = text.parse().ok().filter(|c: &f64| c.is_finite());
        value.ok_or_else(|| ActivationError::Coefficient { index, text: text.to_owned() })
    };
    let coefficients: Vec<f64> = inside.split(',').enumerate().map(coefficient).collect::<Result<_, _>>()?;
    moderate(&coefficients, inside)
}

/// A polynomial whose averages over Gaussian inputs are numbers: (2k − 1)!!, the mean of z^{2k}, grows fast enough by itself.
fn moderate(coefficients: &[f64], formula: &str) -> Result<Arc<dyn Activation>, ActivationError> {
    if coefficients.len() > LARGEST_DEGREE {
        return Err(ActivationError::Degree { found: coefficients.len() });
    }
    if coefficients.iter().any(|c| c.is_nan() || c.abs() > 1e30) {
        return Err(ActivationError::Growth { formula: formula.to_owned() });
    }
    Ok(Arc::new(Polynomial::new(coefficients)))
}

fn formula(text: &str, compact: &str) -> Result<Arc<dyn Activation>, ActivationError> {
    let word = !compact.is_empty() && compact.chars().all(char::is_alphanumeric);
    let expression = match Expression::parse_free(text.trim()) {
        // A lone word is a mistyped name, not a formula of that variable.
        Ok(expression) if word && !matches!(compact, "x" | "z") => {
            return Err(unknown(compact, expression.variables().is_empty()));
        }
        // Parsed again with its variables declared, so that a wrong name is pointed at.
        Ok(expression) if expression.variables().iter().any(|v| v != "x" && v != "z") => {
            Expression::parse(text.trim(), &["x", "z"])?
        }
        other => other?,
    };
    if expression.variables().len() != 1 {
        let found = expression.variables().to_vec();
        return Err(ActivationError::Variables { formula: expression.text().to_owned(), found });
    }
    if let Some(scale) = expression.erf_scale() {
        // 1/sqrt(2) typed in any way is one and the same unit.
        let saad_solla = (scale - FRAC_1_SQRT_2).abs() <= f64::EPSILON;
        return Ok(Arc::new(Erf { scale: if saad_solla { FRAC_1_SQRT_2 } else { scale } }));
    }
    if let Some(coefficients) = expression.polynomial() {
        return moderate(&coefficients, expression.text());
    }
    let formula = Formula::new(expression)?;
    Ok(recognise(&formula).unwrap_or_else(|| Arc::new(formula)))
}

fn unknown(name: &str, constant: bool) -> ActivationError {
    if constant {
        return ActivationError::Variables { formula: name.to_owned(), found: Vec::new() };
    }
    // `he3` and `H3` are one letter's case away from a Hermite polynomial.
    let digits = name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let hermite = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
    let nearest = match name.to_lowercase().strip_suffix(digits) {
        Some("he") if hermite => Some(format!("He{digits}")),
        Some("h") if hermite => Some(format!("h{digits}")),
        _ => nearest(name, WORDS),
    };
    ActivationError::Unknown { name: name.to_owned(), nearest }
}
