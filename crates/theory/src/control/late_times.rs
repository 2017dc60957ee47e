//! Closed forms: a linear unit with label noise at all times, any isolated perfect solution with label noise at late times.

use super::ControlError;
use didact_math::gauss::quadrature::gauss_legendre;
use didact_math::linalg::{Mat, symmetric_eigen};
use didact_model::Spectrum;
use didact_model::rule::{Averages, Law, LocalRule, Needed};

/// Optimal (and greedy) rate and loss of a linear unit with the loss (y − f)²/2 on isotropic inputs after a time alpha, from a loss and
/// label noise of standard deviation σ (docs/derivations/optimal-protocols.md#eq-9):
///
///   η = 1/(1 + z),  ε = s/z,  z + ln z = α + z₀ + ln z₀,  z₀ = s/ε₀,  s = σ²/2;      s = 0:  η = 1,  ε = ε₀ e^{−α}.
pub fn linear_unit(loss: f64, label_noise: f64, alpha: f64) -> (f64, f64) {
    let s = 0.5 * label_noise * label_noise;
    if s == 0.0 {
        return (1.0, loss * (-alpha).exp());
    }
    let first = s / loss;
    let sum = alpha + first + first.ln();
    // In w = ln z the function e^w + w is convex and increasing, so that Newton's iteration from above converges at any alpha; z itself
    // would overflow in the exponential of its closed form.
    let mut w = if sum > 1.0 { sum.ln() } else { sum };
    for _ in 0..100 {
        let z = w.exp();
        let step = (z + w - sum) / (z + 1.0);
        w -= step;
        if step.abs() < 1e-16 * (1.0 + w.abs()) {
            break;
        }
    }
    let z = w.exp();
    (1.0 / (1.0 + z), s / z)
}

/// The laws of late times at an isolated perfect solution with label noise (docs/derivations/optimal-protocols.md#eq-8).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LateTimes {
    /// lim T ε*(T) = Φ².
    pub loss: f64,
    /// lim T η*(T) = Φ/√φ(0).
    pub final_rate: f64,
    /// lim α η*(α) for 1 ≪ α ≪ T.
    pub inner_rate: f64,
}

/// Largest loss that counts as a perfect solution.
const PERFECT: f64 = 1e-12;

impl LateTimes {
    /// Of a rule whose students can equal its teachers one by one, with orthonormal teachers spread over the eigenspaces by their weights.
    pub fn of(rule: &dyn LocalRule, spectrum: &Spectrum, label_noise: f64) -> Result<Self, ControlError> {
        let refuse = |why: &str| Err(ControlError::LateTimes(why.into()));
        let shape = rule.shape();
        let k = shape.trained;
        if k == 0 || shape.frozen != k || shape.scalars > 0 {
            return refuse(
                "late times need as many students as teachers and no trained scalars\n\nhint: set students = teachers",
            );
        }
        if label_noise.is_nan() || label_noise <= 0.0 {
            return refuse(
                "without label noise the loss falls exponentially and no rate of 1/alpha is best\n\nhint: give label_noise > 0",
            );
        }
        let mean: f64 = spectrum.eigenvalues().iter().zip(spectrum.weights()).map(|(l, w)| l * w).sum();
        let covariance = Mat::from_fn(2 * k, 2 * k, |i, j| if i % k == j % k { mean } else { 0.0 });
        let law = Law { covariance: &covariance, scalars: &[], label_noise };
        if rule.risk(&law).abs() > PERFECT * mean {
            return refuse("a student that equals its teacher has a loss, so there is no perfect solution");
        }
        let mut averages = Averages::new(shape);
        rule.averages(&law, Needed::DriftAndNoise, &mut averages);
        if averages.error > 0.0 {
            return refuse("the averages of this model have no closed form, which late times need");
        }
        if !averages.drift.is_finite() || !averages.noise.is_finite() {
            return refuse(
                "the averages of the model at the perfect solution are not finite\n\nhint: use a spectrum of order one",
            );
        }
        let hessian = averages.drift.block(0..k, 0..k);
        let eigen = symmetric_eigen(&hessian);
        // N is proportional to A there; its diagonal in the basis of A.
        let turned = eigen.vectors.transpose().times(&averages.noise).times(&eigen.vectors);
        let noise: Vec<f64> = (0..k).map(|i| turned[(i, i)]).collect();
        if eigen.values.iter().any(|h| *h <= 1e-12 * eigen.values[k - 1]) {
            return refuse("the perfect solution is not isolated: the loss is flat in some direction");
        }
        // φ(u) = ½ Σ_b w_b λ_b² Σ_i h_i n_i e^{−2 λ_b h_i u}.
        let mut terms = Vec::new();
        for (lambda, weight) in spectrum.eigenvalues().iter().zip(spectrum.weights()) {
            for (h, n) in eigen.values.iter().zip(&noise) {
                terms.push((0.5 * weight * lambda * lambda * h * n, 2.0 * lambda * h));
            }
        }
        let phi = |u: f64| terms.iter().map(|(size, rate)| size * (-rate * u).exp()).sum::<f64>();
        let slowest = terms.iter().map(|t| t.1).fold(f64::INFINITY, f64::min);
        let fastest = terms.iter().map(|t| t.1).fold(0.0, f64::max);
        let integral = root_integral(phi, slowest, fastest);
        Ok(Self {
            loss: integral * integral,
            final_rate: integral / phi(0.0).sqrt(),
            inner_rate: 2.0 / slowest,
        })
    }
}

/// ∫_0^∞ √φ for a sum φ of exponentials whose rates lie between two: panels that double from a part of the fastest time.
fn root_integral(phi: impl Fn(f64) -> f64, slowest: f64, fastest: f64) -> f64 {
    let rule = gauss_legendre(24);
    // √φ falls at least as e^{−slowest u/2}: beyond this it is below 1e-18 of its integral.
    let end = 90.0 / slowest;
    let (mut low, mut high, mut sum) = (0.0, 0.5 / fastest, 0.0);
    while low < end {
        let (middle, half) = (f64::midpoint(low, high), 0.5 * (high - low));
        let nodes = rule.nodes.iter().zip(&rule.weights);
        sum += nodes.map(|(x, w)| half * w * phi(middle + half * x).sqrt()).sum::<f64>();
        // Panels longer than a few times of decay would lose digits.
        (low, high) = (high, high + (2.0 * (high - low)).min(4.0 / slowest));
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_linear_unit_solves_its_equation_at_all_times() {
        // dε/dα = −2ηε + η²(ε + s) by central differences, at early, middle and very late times.
        for alpha in [0.1, 3.0, 50.0, 5000.0] {
            let (loss, noise) = (1.3, 0.4);
            let (eta, eps) = linear_unit(loss, noise, alpha);
            let h = 1e-4 * alpha;
            let slope =
                (linear_unit(loss, noise, alpha + h).1 - linear_unit(loss, noise, alpha - h).1) / (2.0 * h);
            let want = -2.0 * eta * eps + eta * eta * (eps + 0.5 * noise * noise);
            assert!((slope / want - 1.0).abs() < 1e-6, "{alpha}: {slope} {want}");
        }
        assert_eq!(linear_unit(0.3, 0.0, 2.0), (1.0, 0.3 * (-2.0_f64).exp()));
        assert!((linear_unit(0.7, 0.5, 0.0).1 - 0.7).abs() < 1e-14);
    }

    #[test]
    fn roots_of_sums_of_exponentials_are_integrated() {
        // One rate: ∫ √(a e^{−2hu}) = √a/h. Two: ∫ √(e^{−2u} + e^{−4u}) du = ½ (√2 + asinh 1).
        assert!(
            (root_integral(|u| 3.0 * (-2.0 * 0.7 * u).exp(), 1.4, 1.4) - 3f64.sqrt() / 0.7).abs() < 1e-12
        );
        let two = root_integral(|u| (-2.0 * u).exp() + (-4.0 * u).exp(), 2.0, 4.0);
        let want = 0.5 * (2f64.sqrt() + 1f64.asinh());
        assert!((two - want).abs() < 1e-12, "{two} {want}");
        // Rates five decades apart: the fast one adds less than its own integral, 1e-2 at most.
        let apart = root_integral(|u| (-2e-3 * u).exp() + (-2e2 * u).exp(), 2e-3, 2e2);
        assert!(apart > 1000.0 && apart < 1000.01, "{apart}");
    }
}
