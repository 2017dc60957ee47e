//! Losses of the residual r = f − y: square, and those whose derivative stays bounded when labels do not.

use didact_math::dispatch;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// ρ(r) with r = f − y. Derivatives in f are those in r; ∂²ρ/∂f∂y = −ρ″.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", deny_unknown_fields, rename_all = "kebab-case")]
pub enum ResidualLoss {
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
}

impl ResidualLoss {
    /// ρ(r).
    pub fn value(self, r: f64) -> f64 {
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
        }
    }

    /// ρ′(r).
    pub fn slope(self, r: f64) -> f64 {
        match self {
            Self::Square => r,
            Self::PseudoHuber { kappa } => r / (1.0 + (r / kappa) * (r / kappa)).sqrt(),
            Self::Huber { kappa } => r.clamp(-kappa, kappa),
            Self::LogCosh => r.tanh(),
        }
    }

    /// ρ″(r), its regular part; at |r| = κ of Huber's loss the mean of the two sides.
    pub fn curvature(self, r: f64) -> f64 {
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
        }
    }

    /// ρ of many residuals, which it replaces.
    pub fn values(self, r: &mut [f64]) {
        if let Self::PseudoHuber { kappa } = self {
            return pseudo_huber_values(kappa, r);
        }
        r.iter_mut().for_each(|r| *r = self.value(*r));
    }

    /// ρ′ and ρ″ of many residuals.
    pub fn slopes(self, r: &[f64], slope: &mut [f64], curvature: &mut [f64]) {
        if let Self::PseudoHuber { kappa } = self {
            return pseudo_huber(kappa, r, slope, curvature);
        }
        for (i, &r) in r.iter().enumerate() {
            (slope[i], curvature[i]) = (self.slope(r), self.curvature(r));
        }
    }

    /// sup |ρ′|, infinite for the square loss.
    pub fn steepest(self) -> f64 {
        match self {
            Self::Square => f64::INFINITY,
            Self::PseudoHuber { kappa } | Self::Huber { kappa } => kappa,
            Self::LogCosh => 1.0,
        }
    }

    /// κ, of the losses that have one.
    pub fn kappa(self) -> Option<f64> {
        match self {
            Self::PseudoHuber { kappa } | Self::Huber { kappa } => Some(kappa),
            Self::Square | Self::LogCosh => None,
        }
    }
}

dispatch! {
    fn pseudo_huber_values(kappa: f64, r: &mut [f64]) {
        let unit = 1.0 / kappa;
        for r in r {
            let scaled = *r * unit;
            *r = *r * *r / (1.0 + (1.0 + scaled * scaled).sqrt());
        }
    }
}

dispatch! {
    fn pseudo_huber(kappa: f64, r: &[f64], slope: &mut [f64], curvature: &mut [f64]) {
        let n = r.len();
        let (slope, curvature) = (&mut slope[..n], &mut curvature[..n]);
        let unit = 1.0 / kappa;
        for i in 0..n {
            let square = 1.0 + (r[i] * unit) * (r[i] * unit);
            let inverse = 1.0 / square.sqrt();
            slope[i] = r[i] * inverse;
            curvature[i] = inverse * inverse * inverse;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOSSES: [ResidualLoss; 5] = [
        ResidualLoss::Square,
        ResidualLoss::PseudoHuber { kappa: 1.0 },
        ResidualLoss::PseudoHuber { kappa: 0.3 },
        ResidualLoss::Huber { kappa: 1.5 },
        ResidualLoss::LogCosh,
    ];

    #[test]
    fn slopes_and_curvatures_are_derivatives() {
        for loss in LOSSES {
            for r in [-7.3, -1.2, -0.4, 0.0, 0.7, 1.1, 4.0] {
                let h = 1e-4;
                let slope = (loss.value(r + h) - loss.value(r - h)) / (2.0 * h);
                let curvature = (loss.slope(r + h) - loss.slope(r - h)) / (2.0 * h);
                assert!((loss.slope(r) - slope).abs() < 1e-7, "{loss:?} at {r}: {} {slope}", loss.slope(r));
                assert!((loss.curvature(r) - curvature).abs() < 1e-6, "{loss:?} at {r}");
                assert!(loss.slope(r).abs() <= loss.steepest());
            }
        }
    }

    #[test]
    fn many_residuals_are_the_residuals_one_by_one() {
        let r: Vec<f64> = (0..41).map(|i| 0.31 * f64::from(i) - 6.0).collect();
        for loss in LOSSES {
            let (mut slope, mut curvature) = (vec![0.0; 41], vec![0.0; 41]);
            loss.slopes(&r, &mut slope, &mut curvature);
            let mut values = r.clone();
            loss.values(&mut values);
            for (i, &r) in r.iter().enumerate() {
                assert!((values[i] - loss.value(r)).abs() < 1e-15 * (1.0 + loss.value(r)));
                assert!((slope[i] - loss.slope(r)).abs() < 1e-15 * (1.0 + r.abs()));
                assert!((curvature[i] - loss.curvature(r)).abs() < 1e-15);
            }
        }
    }

    #[test]
    fn small_and_huge_residuals_keep_their_digits() {
        let small = ResidualLoss::PseudoHuber { kappa: 1.0 }.value(1e-9);
        assert!((small / 0.5e-18 - 1.0).abs() < 1e-12);
        assert!((ResidualLoss::LogCosh.value(1e6) - (1e6 - std::f64::consts::LN_2)).abs() < 1e-9);
    }
}
