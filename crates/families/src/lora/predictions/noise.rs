//! Gradient noise: E[c²] of the per-sample coefficient c = e σ′(s) (docs/derivations/lora.md#s9-3).
//!
//! The orthogonal part of a mini-batch gradient has the squared length (d/B) E[c²]: this, not the square of the mean,
//! is what lowers the overlap at a finite step (docs/derivations/lora.md#e9).

use super::population::{FieldLaw, Population};
use didact_math::activation::Form;
use didact_math::gauss::pair_averages;
use std::f64::consts::PI;

impl Population {
    /// E[e² σ′(s)²] with the residual e = φ_T(λ*) − σ(s); for the correlation loss e is the label alone.
    pub fn gradient_noise(&self, law: FieldLaw) -> f64 {
        let matched_relu = self.student.form() == Form::Relu && self.teacher.form() == Form::Relu;
        match self.student.form() {
            Form::Erf { scale } => self.erf_noise(law, scale),
            Form::Relu if matched_relu && self.loss.has_residual() => relu_noise(law),
            _ => self.noise_by_quadrature(law),
        }
    }

    /// σ′² = (4κ²/π) e^{−2κ²s²} is a Gaussian weight: what is left is the squared error at a smaller covariance,
    /// r → r/w, c → c/w, t → t − 4κ²c²/w with w = 1 + 4κ²r.
    fn erf_noise(&self, law: FieldLaw, scale: f64) -> f64 {
        let width = 4.0 * scale * scale;
        let w = 1.0 + width * law.student;
        let inner = FieldLaw::new(
            law.teacher - width * law.overlap * law.overlap / w,
            law.overlap / w,
            law.student / w,
        );
        let FieldLaw { teacher, overlap, student } = inner;
        let squared = if self.loss.has_residual() {
            let cross =
                pair_averages(&*self.student, &*self.teacher, &[[student, overlap], [overlap, teacher]]);
            self.power(teacher) + self.own(student).value_value - 2.0 * cross.value_value
        } else {
            self.power(teacher)
        };
        width / PI / w.sqrt() * squared.max(0.0)
    }

    /// The same from its definition.
    pub(in crate::lora) fn noise_by_quadrature(&self, law: FieldLaw) -> f64 {
        let residual = if self.loss.has_residual() { 1.0 } else { 0.0 };
        let degree = match (self.teacher.degree(), self.student.degree()) {
            (Some(teacher), Some(student)) => 2 * teacher.max(student) + 2 * student,
            _ => 0,
        };
        self.average(law, degree, |label, s| {
            let (value, slope) = self.student.value_and_slope(s);
            ((self.teacher.value(label) - residual * value) * slope).powi(2)
        })
    }
}

/// E[θ(s)(λ*₊ − s₊)²] with cos θ = ρ: (t/2π)(π − θ + sin θ cos θ) − (√(tr)/π)(sin θ + (π − θ)cos θ) + r/2
/// (docs/derivations/lora.md#eq-43 at t = 1).
fn relu_noise(law: FieldLaw) -> f64 {
    let (t, r, cos) = (law.teacher, law.student, law.correlation());
    let (angle, sin) = (cos.acos(), (1.0 - cos * cos).max(0.0).sqrt());
    let open = PI - angle;
    (t * (open + sin * cos) / (2.0 * PI) - (t * r).sqrt() / PI * (sin + open * cos) + 0.5 * r).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::super::population::LossName;
    use super::*;
    use didact_math::activation::parse;

    fn pair(teacher: &str, labels: &str, student: &str, loss: LossName) -> Population {
        Population::new(parse(teacher).unwrap(), labels, parse(student).unwrap(), loss).unwrap()
    }

    #[test]
    fn closed_forms_of_the_noise_match_quadrature() {
        let law = FieldLaw::new(0.9, 0.35, 0.4);
        for (teacher, labels, student) in [
            ("erf(z)", "plain", "erf(z)"),
            ("erf(z)", "squared", "erf(z/sqrt2)"),
            ("sigmoid", "plain", "erf(z)"),
            ("relu", "plain", "relu"),
            ("relu", "squared", "erf(z)"),
        ] {
            for loss in [LossName::Half, LossName::Correlation] {
                let population = pair(teacher, labels, student, loss);
                let (closed, slow) = (population.gradient_noise(law), population.noise_by_quadrature(law));
                assert!((closed - slow).abs() < 1e-12, "{teacher} {labels} {student}: {closed} {slow}");
            }
        }
    }

    #[test]
    fn noise_of_squared_third_hermite_labels_is_that_of_a_finer_rule() {
        // Degree 16 in each field: 9 nodes are exact, so 40 nodes change nothing but rounding.
        let population = pair("He3", "squared", "He3", LossName::Half);
        let law = FieldLaw::unit(0.205, 0.0675);
        let fine = population.average(law, 78, |label, s| {
            let (value, slope) = population.student.value_and_slope(s);
            ((population.teacher.value(label) - value) * slope).powi(2)
        });
        let got = population.gradient_noise(law);
        assert!((got - fine).abs() < 1e-12 * fine, "{got} {fine}");
    }

    #[test]
    fn a_perfect_student_has_no_gradient_noise() {
        for name in ["erf(z)", "relu", "He4", "sigmoid"] {
            let noise = pair(name, "plain", name, LossName::Half).gradient_noise(FieldLaw::unit(1.0, 1.0));
            assert!(noise.abs() < 1e-12, "{name}: {noise}");
        }
    }
}
