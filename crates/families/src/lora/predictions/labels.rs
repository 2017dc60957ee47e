//! Labels y → T(y): the teacher that is learned from is φ_T = T(φ), an activation of its own.

use crate::ModelError;
use didact_math::activation::{Activation, Kink};
use didact_math::expression::Expression;
use didact_math::gauss::GaussianRule;
use didact_math::gauss::quadrature::REACH;
use didact_math::roots::find_roots_by_scan;
use std::sync::Arc;

/// T(φ) for labels that are `plain`, `squared`, or a formula in y.
pub(in crate::lora) fn transformed(
    plain: Arc<dyn Activation>,
    labels: &str,
) -> Result<Arc<dyn Activation>, ModelError> {
    let invalid = |message: String| ModelError::Invalid { name: "labels", message };
    let text = match labels.trim() {
        "plain" | "y" => return Ok(plain),
        "squared" => "y^2",
        other => other,
    };
    let hint = "use `plain`, `squared`, or a formula in y such as `tanh(y)`";
    let transform = Expression::parse(text, &["y"]).map_err(|e| invalid(format!("{e}\n\nhint: {hint}")))?;
    if transform.polynomial().is_some_and(|c| c.len() < 2) {
        return Err(invalid(format!("labels `{text}` do not depend on y\n\nhint: {hint}")));
    }
    if let Some(jump) = transform.breaks().iter().find(|b| b.value_jump != 0.0) {
        let message = format!("labels `{text}` jump at y = {}; the transform must be continuous", jump.at);
        return Err(invalid(message));
    }
    let teacher = Transformed::new(plain, transform);
    for z in [-6.0, -3.0, -1.0, 0.0, 1.0, 3.0, 6.0] {
        let value = teacher.value(z);
        if !value.is_finite() {
            let message = format!("labels `{text}` of this teacher are {value} at a field of {z}");
            return Err(invalid(message));
        }
    }
    Ok(Arc::new(teacher))
}

/// T(φ(z)).
#[derive(Debug, Clone)]
pub(in crate::lora) struct Transformed {
    inner: Arc<dyn Activation>,
    transform: Expression,
    /// Degree of T, if it is a polynomial.
    degree: Option<usize>,
    kinks: Vec<Kink>,
    resolution: f64,
}

impl Transformed {
    fn new(inner: Arc<dyn Activation>, transform: Expression) -> Self {
        let degree = transform.polynomial().map(|c| c.len().saturating_sub(1));
        let kinks = kinks(inner.as_ref(), &transform);
        let mut made = Self { resolution: inner.resolution(), inner, transform, degree, kinks };
        made.resolution = made.resolved();
        made
    }

    /// The coarsest spacing, from that of φ downwards, at which averages of T² and T′² no longer change.
    fn resolved(&self) -> f64 {
        let at: Vec<f64> = self.kinks.iter().map(|kink| kink.at).collect();
        let averages = |spacing: f64| {
            let rule = if at.is_empty() {
                GaussianRule::trapezoid(spacing, REACH)
            } else {
                GaussianRule::panels(&at, 5.0 * spacing, REACH)
            };
            [rule.average(|z| self.value(z).powi(2)), rule.average(|z| self.slope(z).powi(2))]
        };
        let (mut spacing, mut coarse) = (self.inner.resolution().min(0.3), [0.0; 2]);
        for halved in 0..6 {
            let fine = averages(spacing);
            let same = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-13 * (1.0 + b.abs());
            if halved > 0 && coarse.iter().zip(&fine).all(same) {
                return 2.0 * spacing;
            }
            (spacing, coarse) = (0.5 * spacing, fine);
        }
        spacing
    }
}

/// Where the slope of T(φ) jumps, or its curvature does (a kink of weight 0, which quadrature still has to split at).
fn kinks(inner: &dyn Activation, transform: &Expression) -> Vec<Kink> {
    let breaks = transform.breaks();
    let mut all: Vec<Kink> = Vec::new();
    for kink in inner.kinks() {
        let value = inner.value(kink.at);
        let jump = if breaks.iter().any(|b| b.at == value) {
            // Both have a kink at this point: the slopes of its two sides are taken 1e-9 away from it.
            let slope = |z: f64| transform.jet(&[inner.value(z)], 0).slope * inner.slope(z);
            slope(kink.at + 1e-9) - slope(kink.at - 1e-9)
        } else {
            transform.jet(&[value], 0).slope * kink.jump
        };
        all.push(Kink { at: kink.at, jump });
    }
    for b in &breaks {
        for at in find_roots_by_scan(|z| inner.value(z) - b.at, -REACH, REACH, 3601) {
            // Where φ is flat, T(φ) is too.
            let slope = inner.slope(at);
            if slope != 0.0 && all.iter().all(|known| known.at != at) {
                all.push(Kink { at, jump: b.slope_jump * slope.abs() });
            }
        }
    }
    all.sort_by(|a, b| a.at.total_cmp(&b.at));
    all
}

impl Activation for Transformed {
    fn name(&self) -> String {
        format!("{} of {}", self.transform.text(), self.inner.name())
    }
    fn value(&self, z: f64) -> f64 {
        self.transform.value(&[self.inner.value(z)])
    }
    fn slope(&self, z: f64) -> f64 {
        self.jet(z).1
    }
    fn curvature(&self, z: f64) -> f64 {
        self.jet(z).2
    }
    fn kinks(&self) -> &[Kink] {
        &self.kinks
    }
    fn degree(&self) -> Option<usize> {
        Some(self.degree? * self.inner.degree()?)
    }
    /// T, T′φ′ and T″φ′² + T′φ″.
    fn jet(&self, z: f64) -> (f64, f64, f64) {
        let (value, slope, curvature) = self.inner.jet(z);
        let outer = self.transform.jet(&[value], 0);
        (outer.value, outer.slope * slope, outer.curvature * slope * slope + outer.slope * curvature)
    }
    fn resolution(&self) -> f64 {
        self.resolution
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use didact_math::activation::{Linear, parse};

    fn label(name: &str, labels: &str) -> Arc<dyn Activation> {
        transformed(parse(name).unwrap(), labels).unwrap()
    }

    #[test]
    fn squares_have_the_jet_of_a_square() {
        for name in ["erf(z)", "sigmoid", "He3", "relu", "tanh(x) + 0.1*x^3"] {
            let (plain, squared) = (label(name, "plain"), label(name, "squared"));
            for z in [-1.3, -0.2, 0.4, 2.1] {
                let ((v, s, c), (value, slope, curvature)) = (plain.jet(z), squared.jet(z));
                assert!((value - v * v).abs() < 1e-14 * (1.0 + v * v), "{name}");
                assert!((slope - 2.0 * v * s).abs() < 1e-14 * (1.0 + (v * s).abs()), "{name}");
                let exact = 2.0 * (s * s + v * c);
                assert!((curvature - exact).abs() < 1e-13 * (1.0 + exact.abs()), "{name}");
            }
        }
    }

    #[test]
    fn kinks_of_a_composition_carry_their_weights() {
        // relu²: the slope is continuous, but the curvature is not; quadrature must still split there.
        assert_eq!(label("relu", "squared").kinks(), [Kink { at: 0.0, jump: 0.0 }]);
        // |He_2| has kinks where z² = 1, by 2|slope| = 4.
        let kinks = label("He2", "abs(y)").kinks().to_vec();
        assert_eq!(kinks.len(), 2);
        for (kink, at) in kinks.iter().zip([-1.0, 1.0]) {
            assert!((kink.at - at).abs() < 1e-12 && (kink.jump - 4.0).abs() < 1e-10, "{kink:?}");
        }
        // |relu| is relu: both have their kink at 0.
        let kinks = label("relu", "abs(y)").kinks().to_vec();
        assert!(kinks.len() == 1 && (kinks[0].jump - 1.0).abs() < 1e-8, "{kinks:?}");
    }

    #[test]
    fn a_squared_polynomial_keeps_a_finite_hermite_series() {
        // He_k² = Σ_j j! C(k,j)² He_{2k−2j}: He_3² = 6 + 18 He_2 + 9 He_4 + He_6
        // (docs/derivations/lora.md#eq-12).
        let square = label("He3", "squared");
        assert_eq!(square.degree(), Some(6));
        let factorial = |k: usize| (1..=k).map(|i| i as f64).product::<f64>();
        for (k, expected) in [(0, 6.0), (2, 18.0), (4, 9.0), (6, 1.0), (1, 0.0), (3, 0.0)] {
            let got = square.hermite(k, 1.0) / factorial(k).sqrt();
            assert!((got - expected).abs() < 1e-12, "{k}: {got}");
        }
    }

    #[test]
    fn impossible_labels_are_refused() {
        for (labels, word) in [("3", "depend"), ("sign(y)", "jump"), ("z^2", "z"), ("log(y)", "field")] {
            let error = transformed(Arc::new(Linear), labels).unwrap_err().to_string();
            assert!(error.contains(word), "{labels}: {error}");
        }
    }
}
