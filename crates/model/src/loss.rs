//! Losses ℓ(y, f) of a single output f: the one notion of loss that all families share.

use didact_math::dispatch;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// ℓ(y, f). All but the last two are functions ρ(r) of the residual r = f − y, so that ∂²ℓ/∂f∂y = −ρ″.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", deny_unknown_fields, rename_all = "kebab-case")]
pub enum Loss {
    /// weight r²/2, the half-squared error unless a weight is given.
    Square {
        /// What multiplies r²/2: 1 is the half-squared error, 2 the squared error.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        weight: f64,
    },
    /// κ² (√(1 + r²/κ²) − 1), κ = `kappa`: ρ′ = r/q, ρ″ = q⁻³, q = √(1 + r²/κ²), so |ρ′| < κ.
    PseudoHuber {
        /// κ > 0, where the square loss goes over into the absolute one.
        kappa: f64,
    },
    /// r²/2 for |r| ≤ κ, else κ|r| − κ²/2, κ = `kappa`.
    Huber {
        /// κ > 0.
        kappa: f64,
    },
    /// log cosh r: ρ′ = tanh r.
    LogCosh,
    /// log(1 + eᶠ) − y f, the cross-entropy of a label y in [0, 1] and the probability s(f) = 1/(1 + e⁻ᶠ): its slope is s(f) − y,
    /// its curvature s (1 − s).
    Logistic,
    /// 1 − y f: its slope is −y, its curvature 0.
    Correlation,
}

fn one() -> f64 {
    1.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_one(weight: &f64) -> bool {
    *weight == 1.0
}

/// What multiplies the squared error, for families that know their averages for this loss alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Prefactor {
    /// loss = (label − output)² / 2.
    #[default]
    Half,
    /// loss = (label − output)².
    One,
}

impl Prefactor {
    /// ∂loss/∂f = −weight (label − f): 1 for [`Prefactor::Half`], 2 for [`Prefactor::One`].
    pub fn weight(self) -> f64 {
        match self {
            Self::Half => 1.0,
            Self::One => 2.0,
        }
    }
}

/// A loss in a description: the squared error by the name of its prefactor, or any loss as a table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "`loss` is `half`, `one`, or a table such as `{ kind = \"huber\", kappa = 1.0 }`"
)]
pub enum AnyLoss {
    /// weight (y − f)²/2.
    Squared(Prefactor),
    /// Any loss.
    Other(Loss),
}

impl Default for AnyLoss {
    fn default() -> Self {
        Self::Squared(Prefactor::Half)
    }
}

impl From<AnyLoss> for Loss {
    fn from(loss: AnyLoss) -> Self {
        match loss {
            AnyLoss::Squared(prefactor) => prefactor.into(),
            AnyLoss::Other(loss) => loss,
        }
    }
}

impl From<Prefactor> for Loss {
    fn from(prefactor: Prefactor) -> Self {
        Self::Square { weight: prefactor.weight() }
    }
}

impl Loss {
    /// (f − y)²/2.
    pub const HALF_SQUARE: Self = Self::Square { weight: 1.0 };

    /// (f − y)².
    pub const SQUARE: Self = Self::Square { weight: 2.0 };

    /// ℓ(y, f).
    pub fn value(self, output: f64, label: f64) -> f64 {
        let r = output - label;
        match self {
            Self::Square { weight } => 0.5 * weight * r * r,
            Self::PseudoHuber { kappa } => {
                // κ²(q − 1) = r²/(q + 1): no cancellation at small r.
                r * r / (1.0 + (1.0 + (r / kappa) * (r / kappa)).sqrt())
            }
            Self::Huber { kappa } if r.abs() <= kappa => 0.5 * r * r,
            Self::Huber { kappa } => kappa * r.abs() - 0.5 * kappa * kappa,
            // cosh overflows at |r| = 710.
            Self::LogCosh => r.abs() + (-2.0 * r.abs()).exp().ln_1p() - std::f64::consts::LN_2,
            // exp overflows at the same place.
            Self::Logistic => output.max(0.0) + (-output.abs()).exp().ln_1p() - label * output,
            Self::Correlation => 1.0 - label * output,
        }
    }

    /// ∂ℓ/∂f.
    #[inline]
    pub fn slope(self, output: f64, label: f64) -> f64 {
        let r = output - label;
        match self {
            Self::Square { weight } => weight * r,
            Self::PseudoHuber { kappa } => r / (1.0 + (r / kappa) * (r / kappa)).sqrt(),
            Self::Huber { kappa } => r.clamp(-kappa, kappa),
            Self::LogCosh => r.tanh(),
            Self::Logistic => probability(output) - label,
            Self::Correlation => -label,
        }
    }

    /// ∂²ℓ/∂f², its regular part; at |r| = κ of Huber's loss the mean of the two sides.
    pub fn curvature(self, output: f64, label: f64) -> f64 {
        let r = output - label;
        match self {
            Self::Square { weight } => weight,
            Self::PseudoHuber { kappa } => {
                let q = 1.0 + (r / kappa) * (r / kappa);
                1.0 / (q * q.sqrt())
            }
            Self::Huber { kappa } => match r.abs().partial_cmp(&kappa) {
                Some(std::cmp::Ordering::Less) => 1.0,
                Some(std::cmp::Ordering::Equal) => 0.5,
                _ => 0.0,
            },
            Self::LogCosh => 1.0 - r.tanh() * r.tanh(),
            Self::Logistic => probability(output) * probability(-output),
            Self::Correlation => 0.0,
        }
    }

    /// ∂²ℓ/∂f∂y from ∂²ℓ/∂f²: its negative for functions of the residual, −1 for the other two.
    pub fn mixed(self, curvature: f64) -> f64 {
        if matches!(self, Self::Logistic | Self::Correlation) { -1.0 } else { -curvature }
    }

    /// ℓ of many samples from their residuals f − y and labels. Functions of the residual do not read the labels.
    pub fn values(self, residuals: &[f64], labels: &[f64], out: &mut [f64]) {
        match self {
            Self::PseudoHuber { kappa } => pseudo_huber_values(kappa, residuals, out),
            Self::Logistic | Self::Correlation => {
                for (out, (r, y)) in out.iter_mut().zip(residuals.iter().zip(labels)) {
                    *out = self.value(r + y, *y);
                }
            }
            _ => out.iter_mut().zip(residuals).for_each(|(out, r)| *out = self.value(*r, 0.0)),
        }
    }

    /// ∂ℓ/∂f and ∂²ℓ/∂f² of many samples from their residuals f − y and labels. Functions of the residual do not read the labels.
    pub fn slopes(self, residuals: &[f64], labels: &[f64], slope: &mut [f64], curvature: &mut [f64]) {
        slopes(self, residuals, labels, slope, curvature);
    }

    /// Whether output and label are in the same class: both positive or neither, where the logistic loss counts labels from 1/2.
    pub fn same_class(self, output: f64, label: f64) -> bool {
        let border = if matches!(self, Self::Logistic) { 0.5 } else { 0.0 };
        (output > 0.0) == (label > border)
    }

    /// Name and value of the parameter, of the losses that have one. It must be positive and finite.
    pub fn parameter(self) -> Option<(&'static str, f64)> {
        match self {
            Self::Square { weight } => Some(("weight", weight)),
            Self::PseudoHuber { kappa } | Self::Huber { kappa } => Some(("kappa", kappa)),
            Self::LogCosh | Self::Logistic | Self::Correlation => None,
        }
    }
}

/// s(f) = 1/(1 + e⁻ᶠ).
fn probability(output: f64) -> f64 {
    1.0 / (1.0 + (-output).exp())
}

dispatch! {
    fn pseudo_huber_values(kappa: f64, r: &[f64], out: &mut [f64]) {
        let (unit, out) = (1.0 / kappa, &mut out[..r.len()]);
        for i in 0..r.len() {
            let scaled = r[i] * unit;
            out[i] = r[i] * r[i] / (1.0 + (1.0 + scaled * scaled).sqrt());
        }
    }
}

/// Evaluates the last expression with a function (f − y, y) ↦ (∂ℓ/∂f, ∂²ℓ/∂f²) that belongs to one kind of loss: which one is decided
/// once, and loops over samples inside the expression have no branch left.
#[macro_export]
macro_rules! with_derivatives {
    ($loss:expr, $derivatives:ident => $work:expr) => {
        match $loss {
            $crate::loss::Loss::HALF_SQUARE => {
                let $derivatives = |r: f64, _: f64| (r, 1.0);
                $work
            }
            $crate::loss::Loss::Square { weight } => {
                let $derivatives = |r: f64, _: f64| (weight * r, weight);
                $work
            }
            $crate::loss::Loss::PseudoHuber { kappa } => {
                let unit = 1.0 / kappa;
                let $derivatives = |r: f64, _: f64| $crate::loss::pseudo_huber(unit, r);
                $work
            }
            $crate::loss::Loss::Huber { kappa } => {
                let $derivatives = |r: f64, _: f64| $crate::loss::huber(kappa, r);
                $work
            }
            $crate::loss::Loss::LogCosh => {
                let $derivatives = |r: f64, _: f64| $crate::loss::log_cosh(r);
                $work
            }
            $crate::loss::Loss::Correlation => {
                let $derivatives = |_: f64, y: f64| (-y, 0.0);
                $work
            }
            loss @ $crate::loss::Loss::Logistic => {
                let $derivatives = |r: f64, y: f64| (loss.slope(r + y, y), loss.curvature(r + y, y));
                $work
            }
        }
    };
}
/// ρ′ = r/q, ρ″ = q⁻³ of the pseudo-Huber loss from 1/κ.
#[inline(always)]
pub fn pseudo_huber(inverse_kappa: f64, r: f64) -> (f64, f64) {
    let scaled = r * inverse_kappa;
    // The division before the root: ρ″ is then one product.
    let inverse_square = 1.0 / (1.0 + scaled * scaled);
    let inverse = inverse_square.sqrt();
    (r * inverse, inverse * inverse_square)
}

/// ρ′ = r within ±κ, ρ″ = 1 there and 1/2 at the ends.
#[inline(always)]
pub fn huber(kappa: f64, r: f64) -> (f64, f64) {
    let curvature = 0.5 * (f64::from(r.abs() < kappa) + f64::from(r.abs() <= kappa));
    (r.clamp(-kappa, kappa), curvature)
}

/// ρ′ = tanh r, ρ″ = 1 − tanh² r of the loss log cosh r.
#[inline(always)]
pub fn log_cosh(r: f64) -> (f64, f64) {
    didact_math::simd::scalar::tanh_and_slope(r)
}

dispatch! {
    fn slopes(loss: Loss, r: &[f64], y: &[f64], slope: &mut [f64], curvature: &mut [f64]) {
        let n = r.len();
        let (y, slope, curvature) = (&y[..n], &mut slope[..n], &mut curvature[..n]);
        with_derivatives!(loss, derivatives => {
            for i in 0..n {
                (slope[i], curvature[i]) = derivatives(r[i], y[i]);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOSSES: [Loss; 8] = [
        Loss::HALF_SQUARE,
        Loss::SQUARE,
        Loss::Correlation,
        Loss::PseudoHuber { kappa: 1.0 },
        Loss::PseudoHuber { kappa: 0.3 },
        Loss::Huber { kappa: 1.5 },
        Loss::LogCosh,
        Loss::Logistic,
    ];

    #[test]
    fn slopes_and_curvatures_are_derivatives() {
        let h = 1e-4;
        for loss in LOSSES {
            for y in [-0.65, 0.0, 0.35] {
                for f in [-7.3, -1.2, -0.4, 0.0, 0.7, 1.1, 4.0] {
                    let difference = |g: &dyn Fn(f64) -> f64| (g(h) - g(-h)) / (2.0 * h);
                    let slope = difference(&|e| loss.value(f + e, y));
                    let curvature = difference(&|e| loss.slope(f + e, y));
                    let mixed = difference(&|e| loss.slope(f, y + e));
                    let own = loss.curvature(f, y);
                    assert!((loss.slope(f, y) - slope).abs() < 1e-7, "{loss:?} at {f}, {y}: {slope}");
                    assert!((own - curvature).abs() < 1e-6, "{loss:?} at {f}, {y}");
                    assert!((loss.mixed(own) - mixed).abs() < 1e-6, "{loss:?} at {f}, {y}");
                }
            }
        }
    }

    #[test]
    fn many_residuals_are_the_residuals_one_by_one() {
        let r: Vec<f64> = (0..41).map(|i| 0.31 * f64::from(i) - 6.0).collect();
        let y: Vec<f64> = (0..41).map(|i| f64::from(i % 3) / 2.0).collect();
        for loss in LOSSES {
            let (mut slope, mut curvature) = (vec![0.0; 41], vec![0.0; 41]);
            loss.slopes(&r, &y, &mut slope, &mut curvature);
            let mut value = vec![0.0; 41];
            loss.values(&r, &y, &mut value);
            for (i, (r, y)) in r.iter().zip(&y).enumerate() {
                // f − y is rounded when f = r + y is.
                assert!((value[i] - loss.value(r + y, *y)).abs() < 1e-14 * (1.0 + r * r), "{loss:?}");
                assert!((slope[i] - loss.slope(r + y, *y)).abs() < 3e-15 * (1.0 + r.abs()), "{loss:?}");
                assert!((curvature[i] - loss.curvature(r + y, *y)).abs() < 3e-15, "{loss:?}");
            }
        }
    }

    #[test]
    fn small_and_huge_residuals_keep_their_digits() {
        let small = Loss::PseudoHuber { kappa: 1.0 }.value(1e-9, 0.0);
        assert!((small / 0.5e-18 - 1.0).abs() < 1e-12);
        assert!((Loss::LogCosh.value(1e6, 0.0) - (1e6 - std::f64::consts::LN_2)).abs() < 1e-9);
        assert_eq!(Loss::Logistic.value(1e6, 1.0), 0.0);
        assert_eq!(Loss::Logistic.value(-1e6, 1.0), 1e6);
    }

    #[test]
    fn the_half_square_is_what_a_description_without_a_weight_means() {
        let read = |text: &str| serde_json::from_str::<Loss>(text).unwrap();
        assert_eq!(read(r#"{ "kind": "square" }"#), Loss::HALF_SQUARE);
        assert_eq!(read(r#"{ "kind": "square", "weight": 2 }"#), Loss::from(Prefactor::One));
        assert_eq!(serde_json::to_string(&Loss::HALF_SQUARE).unwrap(), r#"{"kind":"square"}"#);
        assert!(serde_json::from_str::<Loss>(r#"{ "kind": "square", "kappa": 1 }"#).is_err());
    }
}
