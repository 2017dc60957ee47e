//! The functions a formula may call, with their first two derivatives.

use std::f64::consts::FRAC_2_SQRT_PI;

use super::sampled::Sampled;
use crate::gauss::normal::{cdf, density};

/// Functions of one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Exp,
    Log,
    Sqrt,
    Abs,
    Sign,
    Step,
    Relu,
    Tanh,
    Sinh,
    Cosh,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Erf,
    Erfc,
    Gelu,
    Sigmoid,
    Softplus,
    Floor,
    /// A function that is known by numbers.
    Sampled(&'static Sampled),
}

/// Operations on two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
    Max,
    Min,
}

impl Binary {
    /// One line for lists.
    pub(super) fn about(self) -> &'static str {
        match self {
            Self::Add => "sum",
            Self::Subtract => "difference; -x alone is the negative of x",
            Self::Multiply => "product",
            Self::Divide => "quotient",
            Self::Power => "power, also written x**y; groups to the right and binds more tightly than a sign",
            Self::Max => "the larger one",
            Self::Min => "the smaller one",
        }
    }
}

/// What a function name stands for.
#[derive(Clone, Copy)]
pub(super) enum Callable {
    One(Function),
    Two(Binary),
}

/// Every name that can be called.
pub(super) const FUNCTIONS: [(&str, Callable); 26] = [
    ("exp", Callable::One(Function::Exp)),
    ("log", Callable::One(Function::Log)),
    ("ln", Callable::One(Function::Log)),
    ("sqrt", Callable::One(Function::Sqrt)),
    ("abs", Callable::One(Function::Abs)),
    ("sign", Callable::One(Function::Sign)),
    ("step", Callable::One(Function::Step)),
    ("heaviside", Callable::One(Function::Step)),
    ("relu", Callable::One(Function::Relu)),
    ("tanh", Callable::One(Function::Tanh)),
    ("sinh", Callable::One(Function::Sinh)),
    ("cosh", Callable::One(Function::Cosh)),
    ("sin", Callable::One(Function::Sin)),
    ("cos", Callable::One(Function::Cos)),
    ("tan", Callable::One(Function::Tan)),
    ("asin", Callable::One(Function::Asin)),
    ("acos", Callable::One(Function::Acos)),
    ("atan", Callable::One(Function::Atan)),
    ("erf", Callable::One(Function::Erf)),
    ("erfc", Callable::One(Function::Erfc)),
    ("gelu", Callable::One(Function::Gelu)),
    ("sigmoid", Callable::One(Function::Sigmoid)),
    ("softplus", Callable::One(Function::Softplus)),
    ("floor", Callable::One(Function::Floor)),
    ("max", Callable::Two(Binary::Max)),
    ("min", Callable::Two(Binary::Min)),
];

impl Function {
    /// f(u), given the side of its break on which u lies: `sign` is −1, 0 or 1, the sign of u.
    pub(super) fn value(self, u: f64, sign: f64) -> f64 {
        match self {
            Self::Exp => u.exp(),
            Self::Log => u.ln(),
            Self::Sqrt => u.sqrt(),
            Self::Abs => sign * u,
            Self::Sign => sign,
            Self::Step => f64::midpoint(1.0, sign),
            Self::Relu => f64::midpoint(1.0, sign) * u,
            Self::Tanh => u.tanh(),
            Self::Sinh => u.sinh(),
            Self::Cosh => u.cosh(),
            Self::Sin => u.sin(),
            Self::Cos => u.cos(),
            Self::Tan => u.tan(),
            Self::Asin => u.asin(),
            Self::Acos => u.acos(),
            Self::Atan => u.atan(),
            Self::Erf => libm::erf(u),
            Self::Erfc => libm::erfc(u),
            Self::Gelu => u * cdf(u),
            Self::Sigmoid => sigmoid(u),
            Self::Softplus => u.max(0.0) + (-u.abs()).exp().ln_1p(),
            Self::Floor => u.floor(),
            Self::Sampled(table) => table.value(u),
        }
    }

    /// (f′(u), f″(u)), the regular parts.
    pub(super) fn derivatives(self, u: f64, sign: f64) -> (f64, f64) {
        match self {
            Self::Exp => (u.exp(), u.exp()),
            Self::Log => (u.recip(), -(u * u).recip()),
            Self::Sqrt => (0.5 / u.sqrt(), -0.25 / (u * u.sqrt())),
            Self::Abs => (sign, 0.0),
            Self::Sign | Self::Step | Self::Floor => (0.0, 0.0),
            Self::Relu => (f64::midpoint(1.0, sign), 0.0),
            Self::Tanh => {
                let sech = u.cosh().recip();
                (sech * sech, -2.0 * u.tanh() * sech * sech)
            }
            Self::Sinh => (u.cosh(), u.sinh()),
            Self::Cosh => (u.sinh(), u.cosh()),
            Self::Sin => (u.cos(), -u.sin()),
            Self::Cos => (-u.sin(), -u.cos()),
            Self::Tan => {
                let slope = 1.0 + u.tan() * u.tan();
                (slope, 2.0 * u.tan() * slope)
            }
            Self::Asin | Self::Acos => {
                // 1 − u² loses its digits near |u| = 1; the product does not.
                let square = (1.0 - u) * (1.0 + u);
                let outer = if self == Self::Asin { 1.0 } else { -1.0 };
                (outer / square.sqrt(), outer * u / (square * square.sqrt()))
            }
            Self::Atan => {
                let slope = (1.0 + u * u).recip();
                (slope, -2.0 * u * slope * slope)
            }
            Self::Erf | Self::Erfc => {
                let outer = if self == Self::Erf { FRAC_2_SQRT_PI } else { -FRAC_2_SQRT_PI };
                let slope = outer * (-u * u).exp();
                (slope, -2.0 * u * slope)
            }
            Self::Gelu => (cdf(u) + u * density(u), (2.0 - u * u) * density(u)),
            Self::Sigmoid => {
                let (up, down) = (sigmoid(u), sigmoid(-u));
                (up * down, up * down * (down - up))
            }
            Self::Softplus => (sigmoid(u), sigmoid(u) * sigmoid(-u)),
            Self::Sampled(table) => {
                let jet = table.jet(u, 0.0);
                (jet.slope, jet.curvature)
            }
        }
    }

    /// One line for lists.
    pub(super) fn about(self) -> &'static str {
        match self {
            Self::Exp => "exponential function",
            Self::Log => "natural logarithm",
            Self::Sqrt => "square root",
            Self::Abs => "absolute value",
            Self::Sign => "-1, 0 or 1",
            Self::Step => "0 for negative x, 1 for positive x, 1/2 at 0",
            Self::Relu => "x for positive x, else 0",
            Self::Tanh => "hyperbolic tangent",
            Self::Sinh => "hyperbolic sine",
            Self::Cosh => "hyperbolic cosine",
            Self::Sin => "sine",
            Self::Cos => "cosine",
            Self::Tan => "tangent",
            Self::Asin => "inverse sine",
            Self::Acos => "inverse cosine",
            Self::Atan => "inverse tangent",
            Self::Erf => "error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x",
            Self::Erfc => "1 - erf(x)",
            Self::Gelu => "x times the standard normal distribution function",
            Self::Sigmoid => "1/(1 + exp(-x))",
            Self::Softplus => "log(1 + exp(x))",
            Self::Floor => "largest whole number that is at most x",
            Self::Sampled(_) => "a function given by Chebyshev coefficients on panels, as samples are fitted",
        }
    }

    /// Whether f or f′ jumps where its argument vanishes.
    pub(super) fn breaks_at_zero(self) -> bool {
        matches!(self, Self::Abs | Self::Sign | Self::Step | Self::Relu)
    }
}

/// −1, 0 or 1 (`f64::signum` has no 0). NaN stays NaN.
pub(super) fn sign(u: f64) -> f64 {
    if u == 0.0 { 0.0 } else { u.signum() }
}

/// u^v; small integer exponents by multiplication, so that x^2 is x·x to the last bit.
pub(super) fn power(u: f64, v: f64) -> f64 {
    if v.fract() == 0.0 && v.abs() <= 32.0 { u.powi(v as i32) } else { u.powf(v) }
}

/// 1/(1 + e^{−u}) without overflow; accurate for u → −∞ (and 1 − σ(u) = σ(−u) for u → ∞).
pub(crate) fn sigmoid(u: f64) -> f64 {
    if u >= 0.0 {
        (1.0 + (-u).exp()).recip()
    } else {
        let small = u.exp();
        small / (1.0 + small)
    }
}
