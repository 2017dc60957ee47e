//! Losses ℓ(y, f) of a single output f: of the residual f − y, with slopes that stay bounded when labels do not, and the logistic one.

use didact_math::dispatch;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// ℓ(y, f); all but the logistic loss are ρ(r) with r = f − y, so that ∂²ℓ/∂f∂y = −ρ″.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", deny_unknown_fields, rename_all = "kebab-case")]
pub enum OutputLoss {
    /// r²/2.
    Square,
    /// κ² (√(1 + r²/κ²) − 1): ρ′ = r/q, ρ″ = q⁻³, q = √(1 + r²/κ²), so |ρ′| < κ.
    PseudoHuber {
        /// κ > 0, where the square loss goes over into the absolute one.
        kappa: f64,
    },
    /// r²/2 for |r| ≤ κ, else κ|r| − κ²/2.
    Huber {
        /// κ > 0.
        kappa: f64,
    },
    /// log cosh r: ρ′ = tanh r.
    LogCosh,
    /// log(1 + eᶠ) − y f, the cross-entropy of a label y in [0, 1] and the probability s(f) = 1/(1 + e⁻ᶠ): its slope is s(f) − y,
    /// its curvature s (1 − s).
    Logistic,
}

impl OutputLoss {
    /// ℓ(y, f).
    pub fn value(self, output: f64, label: f64) -> f64 {
        let r = output - label;
        match self {
            Self::Square => 0.5 * r * r,
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
        }
    }

    /// ∂ℓ/∂f.
    pub fn slope(self, output: f64, label: f64) -> f64 {
        let r = output - label;
        match self {
            Self::Square => r,
            Self::PseudoHuber { kappa } => r / (1.0 + (r / kappa) * (r / kappa)).sqrt(),
            Self::Huber { kappa } => r.clamp(-kappa, kappa),
            Self::LogCosh => r.tanh(),
            Self::Logistic => probability(output) - label,
        }
    }

    /// ∂²ℓ/∂f², its regular part; at |r| = κ of Huber's loss the mean of the two sides.
    pub fn curvature(self, output: f64, label: f64) -> f64 {
        let r = output - label;
        match self {
            Self::Square => 1.0,
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
        }
    }

    /// ∂²ℓ/∂f∂y from ∂²ℓ/∂f²: their negative for residual losses, −1 for the logistic one.
    pub fn mixed(self, curvature: f64) -> f64 {
        if self == Self::Logistic { -1.0 } else { -curvature }
    }

    /// ℓ of many samples from their residuals f − y and labels. Residual losses do not read the labels.
    pub fn values(self, residuals: &[f64], labels: &[f64], out: &mut [f64]) {
        match self {
            Self::PseudoHuber { kappa } => pseudo_huber_values(kappa, residuals, out),
            Self::Logistic => {
                for (out, (r, y)) in out.iter_mut().zip(residuals.iter().zip(labels)) {
                    *out = self.value(r + y, *y);
                }
            }
            _ => out.iter_mut().zip(residuals).for_each(|(out, r)| *out = self.value(*r, 0.0)),
        }
    }

    /// ∂ℓ/∂f and ∂²ℓ/∂f² of many samples from their residuals f − y and labels. Residual losses do not read the labels.
    pub fn slopes(self, residuals: &[f64], labels: &[f64], slope: &mut [f64], curvature: &mut [f64]) {
        slopes(self, residuals, labels, slope, curvature);
    }

    /// True when the loss is not a function of f − y alone.
    pub fn reads_labels(self) -> bool {
        self == Self::Logistic
    }

    /// sup |∂ℓ/∂f| over labels of any size: infinite for the square and the logistic loss.
    pub fn steepest(self) -> f64 {
        match self {
            Self::Square | Self::Logistic => f64::INFINITY,
            Self::PseudoHuber { kappa } | Self::Huber { kappa } => kappa,
            Self::LogCosh => 1.0,
        }
    }

    /// κ, of the losses that have one.
    pub fn kappa(self) -> Option<f64> {
        match self {
            Self::PseudoHuber { kappa } | Self::Huber { kappa } => Some(kappa),
            Self::Square | Self::LogCosh | Self::Logistic => None,
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
            $crate::output_loss::OutputLoss::Square => {
                let $derivatives = |r: f64, _: f64| (r, 1.0);
                $work
            }
            $crate::output_loss::OutputLoss::PseudoHuber { kappa } => {
                let unit = 1.0 / kappa;
                let $derivatives = |r: f64, _: f64| $crate::output_loss::pseudo_huber(unit, r);
                $work
            }
            $crate::output_loss::OutputLoss::Huber { kappa } => {
                let $derivatives = |r: f64, _: f64| $crate::output_loss::huber(kappa, r);
                $work
            }
            $crate::output_loss::OutputLoss::LogCosh => {
                let $derivatives = |r: f64, _: f64| $crate::output_loss::log_cosh(r);
                $work
            }
            loss @ $crate::output_loss::OutputLoss::Logistic => {
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
    fn slopes(loss: OutputLoss, r: &[f64], y: &[f64], slope: &mut [f64], curvature: &mut [f64]) {
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

    const LOSSES: [OutputLoss; 6] = [
        OutputLoss::Square,
        OutputLoss::PseudoHuber { kappa: 1.0 },
        OutputLoss::PseudoHuber { kappa: 0.3 },
        OutputLoss::Huber { kappa: 1.5 },
        OutputLoss::LogCosh,
        OutputLoss::Logistic,
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
                    assert!(loss.slope(f, y).abs() <= loss.steepest());
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
        let small = OutputLoss::PseudoHuber { kappa: 1.0 }.value(1e-9, 0.0);
        assert!((small / 0.5e-18 - 1.0).abs() < 1e-12);
        assert!((OutputLoss::LogCosh.value(1e6, 0.0) - (1e6 - std::f64::consts::LN_2)).abs() < 1e-9);
        assert_eq!(OutputLoss::Logistic.value(1e6, 1.0), 0.0);
        assert_eq!(OutputLoss::Logistic.value(-1e6, 1.0), 1e6);
    }
}
