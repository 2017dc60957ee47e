//! Population loss of a neuron against a teacher, and its slopes, in terms of the law of the two fields.
//!
//! From docs/derivations/lora.md#eq-3 and docs/derivations/lora.md#eq-4: with λ* the teacher's field, s the student's,
//!
//!   L   = ½E\[φ_T²\] + ½E[σ(s)²] − E[φ_T(λ*)σ(s)],      L_c = ∂L/∂c = −E[φ_T′(λ*)σ′(s)],
//!   L_r = ∂L/∂r = ½E[σ′(s)² + σ(s)σ″(s)] − ½E[φ_T(λ*)σ″(s)],
//!
//! where c = Cov(λ*, s) and r = Var(s). The correlation loss 1 − yf keeps the last term of each alone.

use didact_math::activation::{Activation, Form};
use didact_math::gauss::hermite::factorial_ratio_root;
use didact_math::gauss::quadrature::{REACH, gauss_hermite};
use didact_math::gauss::{GaussianRule, HermiteSeries, PairAverages, pair_averages};
use didact_model::loss::Loss;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;
use std::sync::Arc;

use super::labels::transformed;
use crate::ModelError;

/// The losses that the closed forms of this family are for, by their names in descriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossName {
    /// (y − f)²/2.
    #[default]
    Half,
    /// (y − f)²: the same gradient with twice the step.
    One,
    /// 1 − y f.
    Correlation,
}

impl LossName {
    /// What multiplies the gradient of the half-squared (or correlation) loss.
    pub fn weight(self) -> f64 {
        match self {
            Self::Half | Self::Correlation => 1.0,
            Self::One => 2.0,
        }
    }

    /// The loss itself.
    pub fn loss(self) -> Loss {
        match self {
            Self::Half | Self::One => Loss::Square { weight: self.weight() },
            Self::Correlation => Loss::Correlation,
        }
    }

    /// Whether the student's own output is part of the error.
    pub(in crate::lora) fn has_residual(self) -> bool {
        self != Self::Correlation
    }
}

/// Covariance of the pair (λ*, s).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FieldLaw {
    /// Var λ*, 1 for a unit teacher.
    pub teacher: f64,
    /// c = Cov(λ*, s).
    pub overlap: f64,
    /// r = Var s.
    pub student: f64,
}

impl FieldLaw {
    /// A unit teacher. Rounding is taken out: r ≥ 0 and |c| ≤ √r.
    pub fn unit(overlap: f64, student: f64) -> Self {
        Self::new(1.0, overlap, student)
    }

    /// Any pair; r ≥ 0 and |c| ≤ √(t r) are imposed.
    pub fn new(teacher: f64, overlap: f64, student: f64) -> Self {
        let (teacher, student) = (teacher.max(0.0), student.max(0.0));
        let largest = (teacher * student).sqrt();
        // NaN of a diverging run stays NaN.
        let overlap = if overlap.abs() > largest { largest.copysign(overlap) } else { overlap };
        Self { teacher, overlap, student }
    }

    /// ρ = c/√(t r).
    pub(in crate::lora) fn correlation(&self) -> f64 {
        let product = (self.teacher * self.student).sqrt();
        if product > 0.0 { (self.overlap / product).clamp(-1.0, 1.0) } else { 0.0 }
    }
}

/// ∂L/∂c and ∂L/∂r.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slopes {
    /// L_c.
    pub overlap: f64,
    /// L_r.
    pub variance: f64,
}

/// A student activation σ, the teacher φ_T that labels (its transform included), and the loss.
#[derive(Debug, Clone)]
pub struct Population {
    /// φ_T.
    pub teacher: Arc<dyn Activation>,
    /// σ.
    pub student: Arc<dyn Activation>,
    /// What is minimised; [`LossName::One`] counts as [`LossName::Half`] here.
    pub loss: LossName,
    /// relu student on squared labels of a relu teacher, which is known in closed form.
    relu_on_squares: bool,
    /// The series of a unit teacher, for pairs without kinks and without closed form.
    series: Option<HermiteSeries>,
}

impl Population {
    /// Labels are `plain`, `squared`, or a formula in y of the plain ones.
    pub fn new(
        teacher: Arc<dyn Activation>,
        labels: &str,
        student: Arc<dyn Activation>,
        loss: LossName,
    ) -> Result<Self, ModelError> {
        let relu = |a: &Arc<dyn Activation>| a.form() == Form::Relu;
        let squared = matches!(labels.trim(), "squared" | "y^2");
        let relu_on_squares = squared && relu(&teacher) && relu(&student);
        let teacher = transformed(teacher, labels)?;
        let series = series_of(&*teacher, &*student);
        Ok(Self { teacher, student, loss, relu_on_squares, series })
    }

    /// Teacher and student of one activation, plain labels, half-squared loss.
    pub fn matched(activation: Arc<dyn Activation>) -> Self {
        let (student, series) = (activation.clone(), series_of(&*activation, &*activation));
        Self { teacher: activation, student, loss: LossName::Half, relu_on_squares: false, series }
    }

    /// L.
    pub fn loss(&self, law: FieldLaw) -> f64 {
        let cross = self.cross(law).value_value;
        if !self.loss.has_residual() {
            return 1.0 - cross;
        }
        0.5 * (self.power(law.teacher) + self.own(law.student).value_value) - cross
    }

    /// E\[φ_T²\].
    pub fn power(&self, variance: f64) -> f64 {
        pair_averages(&*self.teacher, &*self.teacher, &[[variance; 2]; 2]).value_value
    }

    /// L_c and L_r.
    pub fn slopes(&self, law: FieldLaw) -> Slopes {
        let cross = self.cross(law);
        let own = if self.loss.has_residual() {
            let own = self.own(law.student);
            own.slope_slope + own.curvature_value
        } else {
            0.0
        };
        Slopes { overlap: -cross.slope_slope, variance: 0.5 * (own - cross.curvature_value) }
    }

    /// E[σ′(s)²].
    pub fn squared_slope(&self, variance: f64) -> f64 {
        self.own(variance).slope_slope
    }

    /// Averages of σ(s) with itself.
    pub(in crate::lora) fn own(&self, variance: f64) -> PairAverages {
        pair_averages(&*self.student, &*self.student, &[[variance; 2]; 2])
    }

    /// Averages of σ(s) with φ_T(λ*): first the student.
    fn cross(&self, law: FieldLaw) -> PairAverages {
        if self.relu_on_squares && law.student > 0.0 && law.teacher > 0.0 {
            return relu_on_squares(law);
        }
        let FieldLaw { teacher, overlap, student } = law;
        // Series of both fields cost a tenth of a two-dimensional rule.
        if let Some(known) = self.series.as_ref().filter(|_| teacher == 1.0 && student > 0.0)
            && let Some(own) = HermiteSeries::of(&*self.student, student)
        {
            return own.with(known, overlap);
        }
        pair_averages(&*self.student, &*self.teacher, &[[student, overlap], [overlap, teacher]])
    }

    /// L, L_c, L_r from the first `terms` Hermite coefficients of both activations
    /// (docs/derivations/lora.md#eq-7, docs/derivations/lora.md#eq-8),
    ///
    ///   L = ½Σ(a_k² + b_k² − 2a_k b_k ρ^k),   L_c = −(1/√(tr)) Σ k a_k b_k ρ^{k−1},
    ///   L_r = (1/2r) Σ_{k≥0} [(b_k − a_k ρ^k) b̄_k + k a_k b_k ρ^k],      b̄_k = E[√r z σ′(√r z) h_k].
    ///
    /// Converges geometrically for erf, but only as terms^{−3/2} for ReLU: a cross-check there, not the method.
    pub fn by_series(&self, law: FieldLaw, terms: usize) -> (f64, Slopes) {
        let (r, rho) = (law.student, law.correlation());
        let a: Vec<f64> = (0..terms).map(|k| self.teacher.hermite(k, law.teacher)).collect();
        let b: Vec<f64> = (0..terms + 2).map(|k| self.student.hermite(k, r)).collect();
        let residual = if self.loss.has_residual() { 1.0 } else { 0.0 };
        let (mut loss, mut overlap, mut variance) = (1.0 - residual, 0.0, 0.0);
        let mut power = 1.0;
        for k in 0..terms {
            // b̄_k = k b_k + √((k+1)(k+2)) b_{k+2}, from √r z h_k and an integration by parts
            // (docs/derivations/lora.md#eq-9).
            let bar = k as f64 * b[k] + factorial_ratio_root(k + 2, k) * b[k + 2];
            loss += 0.5 * residual * (a[k] * a[k] + b[k] * b[k]) - a[k] * b[k] * power;
            if k > 0 && rho != 0.0 {
                overlap -= k as f64 * a[k] * b[k] * power / (rho * (law.teacher * r).sqrt());
            } else if k == 1 {
                overlap -= a[1] * b[1] / (law.teacher * r).sqrt();
            }
            variance += ((residual * b[k] - a[k] * power) * bar + k as f64 * a[k] * b[k] * power) / (2.0 * r);
            power *= rho;
        }
        (loss, Slopes { overlap, variance })
    }

    /// E[F(λ*, s)] for a smooth, kinked or polynomial pair, F being made of φ_T, σ and σ′: the obvious way.
    ///
    /// s first, then λ* given s; both rules end at the kinks, and the outer one also resolves the layer in which
    /// the mean of λ* crosses a kink of the teacher.
    pub(in crate::lora) fn average(&self, law: FieldLaw, degree: usize, f: impl Fn(f64, f64) -> f64) -> f64 {
        let deviation = law.student.sqrt();
        let slope = if deviation > 0.0 { law.overlap / deviation } else { 0.0 };
        let spread = (law.teacher - slope * slope).max(0.0).sqrt();
        let polynomial = self.teacher.degree().is_some() && self.student.degree().is_some();
        let fine = |a: &dyn Activation, deviation: f64| (a.resolution() / deviation.max(1e-300)).min(0.3);
        let at = |a: &dyn Activation, mean: f64, deviation: f64| -> Vec<f64> {
            a.kinks().iter().map(|k| (k.at - mean) / deviation).filter(|z| z.is_finite()).collect()
        };
        let rule = |breaks: &[f64], spacing: f64| -> GaussianRule {
            if polynomial {
                gauss_hermite(degree / 2 + 1).clone()
            } else if breaks.is_empty() {
                GaussianRule::trapezoid(spacing, REACH)
            } else {
                GaussianRule::panels(breaks, 5.0 * spacing, REACH)
            }
        };
        let mut breaks = at(&*self.student, 0.0, deviation);
        if slope != 0.0 {
            let layer = spread / slope.abs();
            let centres = self.teacher.kinks().iter().map(|k| k.at / slope);
            breaks.extend(centres.flat_map(|c| (-3..=3).map(move |i| c + f64::from(3 * i) * layer)));
        }
        let spacing = fine(&*self.student, deviation).min(fine(&*self.teacher, law.teacher.sqrt()));
        let outer = rule(&breaks, spacing);
        let steady = self.teacher.kinks().is_empty().then(|| rule(&[], fine(&*self.teacher, spread)));
        outer.average(|x| {
            let (s, mean) = (deviation * x, slope * x);
            if spread == 0.0 {
                return f(mean, s);
            }
            let inner = |z: f64| f(mean + spread * z, s);
            match &steady {
                Some(rule) => rule.average(inner),
                None => rule(&at(&*self.teacher, mean, spread), fine(&*self.teacher, spread)).average(inner),
            }
        })
    }
}

/// The teacher's series, where neither a finite sum nor a closed form is known.
fn series_of(teacher: &dyn Activation, student: &dyn Activation) -> Option<HermiteSeries> {
    let closed = |a: &dyn Activation| a.form() != Form::General;
    let finite = teacher.degree().is_some() || student.degree().is_some();
    if finite || (closed(teacher) && closed(student)) { None } else { HermiteSeries::of(teacher, 1.0) }
}

/// relu student, (relu)² labels, ρ = c/√(tr): E[φ_Tσ] = t√r (1+ρ)²/(2√(2π)), E[φ_T′σ′] = √t(1+ρ)/√(2π),
/// E[φ_Tσ″] = t(1−ρ²)/(2√(2πr)) (docs/derivations/lora.md#eq-16 at t = 1; the teacher is homogeneous of degree 2).
fn relu_on_squares(law: FieldLaw) -> PairAverages {
    let (t, r, rho) = (law.teacher, law.student, law.correlation());
    let root = (2.0 * PI).sqrt();
    let slope_slope = t.sqrt() * (1.0 + rho) / root;
    PairAverages {
        value_value: 0.5 * t * r.sqrt() * (1.0 + rho) * (1.0 + rho) / root,
        slope_slope,
        curvature_value: 0.5 * t * (1.0 - rho * rho) / (root * r.sqrt()),
        // E[φ_T″σ] = 2E[θ(λ*)σ(s)] = √r (1+ρ)/√(2π).
        value_curvature: r.sqrt() * (1.0 + rho) / root,
    }
}
