//! Functions of one number that the instructions of a tape apply, without branches so that loops over samples become vector
//! instructions.

use crate::simd::scalar;
use std::f64::consts::FRAC_2_SQRT_PI;

/// Calls the macro `$each!(Name, about, |u| value)` for every function.
///
/// The list is closed under differentiation: the derivative of each is made of these and of arithmetic (`gradient.rs`).
/// Functions of the standard library are called number by number; the others are those of [`scalar`], within a few ulp.
macro_rules! for_each_function {
    ($each:ident) => {
        $each! {
            Negate "-u" |u| -u;
            Square "u^2" |u| u * u;
            Reciprocal "1/u" |u| 1.0 / u;
            Exp "exp(u)" |u| scalar::exp(u);
            Log "log(u)" |u| scalar::ln(u);
            Sqrt "sqrt(u)" |u| u.sqrt();
            Abs "abs(u)" |u| u.abs();
            Sign "-1, 0 or 1" |u| sign(u);
            Step "0, 1/2 or 1" |u| 0.5 + 0.5 * sign(u);
            Relu "u for positive u, else 0" |u| if u < 0.0 { 0.0 } else { u };
            Tanh "tanh(u)" |u| scalar::tanh_and_slope(u).0;
            Sinh "sinh(u)" |u| u.sinh();
            Cosh "cosh(u)" |u| u.cosh();
            Sin "sin(u)" |u| u.sin();
            Cos "cos(u)" |u| u.cos();
            Tan "tan(u)" |u| u.tan();
            Asin "asin(u)" |u| scalar::asin(u);
            Acos "acos(u)" |u| u.acos();
            Atan "atan(u)" |u| u.atan();
            Erf "erf(u)" |u| scalar::erf(u);
            Erfc "1 - erf(u)" |u| libm::erfc(u);
            ErfSlope "2/sqrt(pi) exp(-u^2), the derivative of erf" |u| FRAC_2_SQRT_PI * scalar::exp_minus_square(u);
            NormalCdf "the distribution function of the standard normal" |u| normal_cdf(u);
            NormalDensity "the density of the standard normal" |u| scalar::normal_density(u);
            Sigmoid "1/(1 + exp(-u))" |u| 1.0 / (1.0 + scalar::exp(-u));
            Softplus "log(1 + exp(u))" |u| softplus(u);
            Floor "the largest whole number that is at most u" |u| u.floor();
        }
    };
}

macro_rules! define {
    ($($name:ident $about:literal |$u:ident| $value:expr;)*) => {
        /// A function of one number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub(super) enum Elementary {
            $(#[doc = $about] $name,)*
        }

        impl Elementary {
            /// f(u) of one number.
            pub(super) fn value(self, u: f64) -> f64 {
                let mut out = [0.0];
                self.values(&[u], &mut out);
                out[0]
            }

            /// f of every number of a short vector.
            #[inline(always)]
            pub(super) fn values<const W: usize>(self, u: &[f64; W], out: &mut [f64; W]) {
                match self {
                    $(Self::$name => {
                        for l in 0..W {
                            let $u = u[l];
                            out[l] = $value;
                        }
                    })*
                }
            }
        }

        /// Every function, for tests.
        #[cfg(test)]
        pub(super) const ALL: &[Elementary] = &[$(Elementary::$name),*];
    };
}

for_each_function!(define);

/// −1, 0 or 1; NaN stays NaN.
#[inline(always)]
fn sign(u: f64) -> f64 {
    let side = f64::from(u > 0.0) - f64::from(u < 0.0);
    if u.is_nan() { u } else { side }
}

#[inline(always)]
fn normal_cdf(u: f64) -> f64 {
    scalar::normal_cdf(u, scalar::normal_density(u), scalar::mills_ratio(u))
}

/// log(1 + eᵘ) = max(u, 0) + log(1 + t), t = e^{−|u|}. With w = 1 + t rounded, log(1 + t) = t log(w)/(w − 1) keeps the digits of a
/// small t.
#[inline(always)]
fn softplus(u: f64) -> f64 {
    let t = scalar::exp(-u.abs());
    let w = 1.0 + t;
    let log = if w == 1.0 { t } else { t * (scalar::ln(w) / (w - 1.0)) };
    (if u < 0.0 { 0.0 } else { u }) + log
}
