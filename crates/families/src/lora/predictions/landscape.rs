//! The loss as a function of what is trained: amplitude u, overlap m = w·w* and, when pre-training is misaligned, q = w·ξ.
//!
//! W = a w* + b ξ + u w with |w| = |w*| = |ξ| = 1 and ν = ξ·w* (a = μ; b = 0 when aligned). From
//! docs/derivations/lora.md#eq-1 (aligned) and docs/derivations/lora.md#s7 (misaligned):
//!
//!   c = a + bν + um,      r = |W|² = (u + p)² + |W0|² − p²  with p = W0·w = am + bq,
//!   ∂L/∂u = m L_c + 2(u + p) L_r,   ∂L/∂m = u(L_c + 2a L_r),   ∂L/∂q = 2ub L_r   (plain partial derivatives),
//!   u′ = −∂L/∂u,   m′ = −[(1 − m²)∂_m L + (ν − mq)∂_q L],   q′ = −[(1 − q²)∂_q L + (ν − mq)∂_m L].

use super::population::{FieldLaw, Population};
use didact_math::gauss::GaussianRule;
use didact_math::gauss::quadrature::{REACH, gauss_hermite};

/// Amplitude and overlaps of the adapter.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct AdapterState {
    /// u.
    pub amplitude: f64,
    /// m = w·w*.
    pub overlap: f64,
    /// q = w·ξ; 0 when pre-training is aligned.
    pub stray: f64,
}

impl AdapterState {
    /// Aligned pre-training: (u, m).
    pub fn aligned(amplitude: f64, overlap: f64) -> Self {
        Self { amplitude, overlap, stray: 0.0 }
    }
}

/// Partial derivatives of the loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gradient {
    /// ∂L/∂u.
    pub amplitude: f64,
    /// ∂L/∂m.
    pub overlap: f64,
    /// ∂L/∂q.
    pub stray: f64,
}

/// The frozen weights and the population they meet.
#[derive(Debug, Clone)]
pub struct Landscape {
    /// Loss of the pair of activations.
    pub population: Population,
    /// a = μ, the weight along w*.
    pub mu: f64,
    /// b, the weight along ξ.
    pub misalignment: f64,
    /// ν = ξ·w*.
    pub nu: f64,
}

impl Landscape {
    /// W0 = μ w*.
    pub fn aligned(population: Population, mu: f64) -> Self {
        Self { population, mu, misalignment: 0.0, nu: 0.0 }
    }

    /// Whether q matters.
    pub fn is_misaligned(&self) -> bool {
        self.misalignment != 0.0
    }

    /// (c, r) of a state; r in the form that cannot cancel.
    pub fn law(&self, state: AdapterState) -> FieldLaw {
        let AdapterState { amplitude: u, overlap: m, stray: q } = state;
        let (a, b, nu) = (self.mu, self.misalignment, self.nu);
        let along = a * m + b * q;
        let rest = if self.is_misaligned() {
            (a * a + b * b + 2.0 * a * b * nu - along * along).max(0.0)
        } else {
            a * a * (1.0 - m * m).max(0.0)
        };
        FieldLaw::unit(a + b * nu + u * m, (u + along) * (u + along) + rest)
    }

    /// L.
    pub fn loss(&self, state: AdapterState) -> f64 {
        self.population.loss(self.law(state))
    }

    /// ∂L/∂u, ∂L/∂m, ∂L/∂q.
    pub fn gradient(&self, state: AdapterState) -> Gradient {
        let AdapterState { amplitude: u, overlap: m, stray: q } = state;
        let slopes = self.population.slopes(self.law(state));
        let along = self.mu * m + self.misalignment * q;
        Gradient {
            amplitude: m * slopes.overlap + 2.0 * (u + along) * slopes.variance,
            overlap: u * (slopes.overlap + 2.0 * self.mu * slopes.variance),
            stray: 2.0 * u * self.misalignment * slopes.variance,
        }
    }

    /// Time derivative of gradient flow on the sphere, δ = 1.
    pub fn velocity(&self, state: AdapterState) -> AdapterState {
        let g = self.gradient(state);
        let (m, q) = (state.overlap, state.stray);
        let mixed = self.nu - m * q;
        AdapterState {
            amplitude: -g.amplitude,
            overlap: -((1.0 - m * m).max(0.0) * g.overlap
                + if self.is_misaligned() { mixed * g.stray } else { 0.0 }),
            stray: if self.is_misaligned() { -((1.0 - q * q) * g.stray + mixed * g.overlap) } else { 0.0 },
        }
    }

    /// (L, ∂L/∂u, ∂L/∂m) of aligned pre-training from `terms` Hermite coefficients.
    pub fn by_series(&self, state: AdapterState, terms: usize) -> (f64, Gradient) {
        let (loss, slopes) = self.population.by_series(self.law(state), terms);
        let AdapterState { amplitude: u, overlap: m, .. } = state;
        let gradient = Gradient {
            amplitude: m * slopes.overlap + 2.0 * (u + self.mu * m) * slopes.variance,
            overlap: u * (slopes.overlap + 2.0 * self.mu * slopes.variance),
            stray: 0.0,
        };
        (loss, gradient)
    }

    /// The same by quadrature of the sample gradient, without σ″ (docs/derivations/lora.md#eq-6); needs |m| < 1:
    /// ∂L/∂u = −E[eσ′(s)b], (1 − m²)∂L/∂m = −uE[eσ′(s)(λ* − mb)], b = w·x.
    pub fn by_quadrature(&self, state: AdapterState) -> (f64, Gradient) {
        let AdapterState { amplitude: u, overlap: m, .. } = state;
        let across = (1.0 - m * m).max(0.0).sqrt();
        let Population { teacher, student, loss, .. } = &self.population;
        let residual = if loss.has_residual() { 1.0 } else { 0.0 };
        let mut sums = [0.0; 3];
        let (outer, inner) = self.rules(u, m);
        for (&a, &wa) in outer.nodes.iter().zip(&outer.weights) {
            let label = teacher.value(a);
            let mean = (self.mu + u * m) * a;
            let inner = inner(mean, u * across);
            for (&z, &wz) in inner.nodes.iter().zip(&inner.weights) {
                let b = m * a + across * z;
                let (value, slope) = student.value_and_slope(self.mu * a + u * b);
                let error = label - residual * value;
                let one = if residual == 1.0 { 0.5 * error * error } else { 1.0 - label * value };
                for (sum, term) in
                    sums.iter_mut().zip([one, -error * slope * b, -u * error * slope * (a - m * b)])
                {
                    *sum += wa * wz * term;
                }
            }
        }
        (sums[0], Gradient { amplitude: sums[1], overlap: sums[2] / (across * across), stray: 0.0 })
    }

    /// Rules for λ* and, given the mean and spread of s, for z: split at kinks, exact for polynomials.
    fn rules(&self, u: f64, m: f64) -> (GaussianRule, impl Fn(f64, f64) -> GaussianRule + '_) {
        let Population { teacher, student, .. } = &self.population;
        let exact = teacher.degree().zip(student.degree()).map(|(t, s)| t.max(s) + s + 2);
        let fine = teacher.resolution().min(student.resolution()).min(0.2);
        let mut breaks: Vec<f64> = teacher.kinks().iter().map(|k| k.at).collect();
        let (slope, spread) = (self.mu + u * m, (u * (1.0 - m * m).max(0.0).sqrt()).abs());
        for kink in student.kinks() {
            // Given λ*, s has the mean `slope` λ*: where that crosses a kink there is a layer of width spread/slope.
            breaks.extend((-3..=3).map(|i| (kink.at + f64::from(3 * i) * spread) / slope));
        }
        breaks.retain(|z| z.is_finite());
        let outer = match exact {
            Some(nodes) => gauss_hermite(nodes).clone(),
            None if breaks.is_empty() => GaussianRule::trapezoid(fine, REACH),
            None => GaussianRule::panels(&breaks, 5.0 * fine, REACH),
        };
        let inner = move |mean: f64, spread: f64| match exact {
            Some(nodes) => gauss_hermite(nodes).clone(),
            None if student.kinks().is_empty() || spread == 0.0 => GaussianRule::trapezoid(fine, REACH),
            None => {
                let at: Vec<f64> = student.kinks().iter().map(|k| (k.at - mean) / spread).collect();
                GaussianRule::panels(&at, 5.0 * fine, REACH)
            }
        };
        (outer, inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::population::LossName;
    use super::*;
    use didact_math::activation::parse;
    use proptest::prelude::*;

    fn landscape(teacher: &str, labels: &str, student: &str, loss: LossName, mu: f64) -> Landscape {
        let population =
            Population::new(parse(teacher).unwrap(), labels, parse(student).unwrap(), loss).unwrap();
        Landscape::aligned(population, mu)
    }

    const PAIRS: [(&str, &str, &str); 14] = [
        ("linear", "plain", "linear"),
        ("erf(z)", "plain", "erf(z)"),
        ("erf(z)", "squared", "erf(z)"),
        ("erf(z/sqrt2)", "plain", "erf(z)"),
        ("relu", "plain", "relu"),
        ("relu", "squared", "relu"),
        ("erf(z)", "plain", "relu"),
        ("relu", "plain", "erf(z)"),
        ("sigmoid", "plain", "sigmoid"),
        ("He3", "plain", "He3"),
        ("He3", "squared", "He3"),
        ("He4", "squared", "He4"),
        ("He2", "abs(y)", "sigmoid"),
        ("tanh(x) + 0.1*x^3", "tanh(y)", "x*sigmoid(x)"),
    ];

    const STATES: [(f64, f64, f64); 3] = [(0.4, 0.3, 0.25), (0.7, -0.35, 0.6), (0.15, 0.8, -0.4)];

    #[test]
    fn gradients_are_finite_differences_of_the_loss() {
        for (teacher, labels, student) in PAIRS {
            for loss in [LossName::Half, LossName::Correlation] {
                for (mu, u, m) in STATES {
                    let l = landscape(teacher, labels, student, loss, mu);
                    let g = l.gradient(AdapterState::aligned(u, m));
                    let h = 1e-3;
                    let slope = |f: &dyn Fn(f64) -> f64| {
                        (8.0 * (f(h) - f(-h)) - (f(2.0 * h) - f(-2.0 * h))) / (12.0 * h)
                    };
                    let du = slope(&|x| l.loss(AdapterState::aligned(u + x, m)));
                    let dm = slope(&|x| l.loss(AdapterState::aligned(u, m + x)));
                    // h⁴ f⁗′/30 of He_4 and ReLU near its kink, and rounding of a loss of size E[φ²]: 2e-16/h.
                    let scale = 1.0 + g.amplitude.abs() + g.overlap.abs() + l.population.power(1.0);
                    let what = format!("{teacher} {labels} {student} {loss:?} at {mu} {u} {m}");
                    assert!((du - g.amplitude).abs() < 3e-10 * scale, "{what}: {du} {}", g.amplitude);
                    assert!((dm - g.overlap).abs() < 3e-10 * scale, "{what}: {dm} {}", g.overlap);
                }
            }
        }
    }

    #[test]
    fn closed_forms_and_quadrature_of_the_sample_gradient_agree() {
        for (teacher, labels, student) in PAIRS {
            for loss in [LossName::Half, LossName::Correlation] {
                for (mu, u, m) in STATES {
                    let (l, state) =
                        (landscape(teacher, labels, student, loss, mu), AdapterState::aligned(u, m));
                    let (value, slow) = l.by_quadrature(state);
                    let fast = l.gradient(state);
                    let scale = 1.0 + l.population.power(1.0);
                    let what = format!("{teacher} {labels} {student} {loss:?} at {mu} {u} {m}");
                    assert!(
                        (l.loss(state) - value).abs() < 1e-11 * scale,
                        "{what}: {} {value}",
                        l.loss(state)
                    );
                    assert!(
                        (fast.amplitude - slow.amplitude).abs() < 1e-11 * scale,
                        "{what} {fast:?} {slow:?}"
                    );
                    assert!((fast.overlap - slow.overlap).abs() < 1e-11 * scale, "{what} {fast:?} {slow:?}");
                }
            }
        }
    }

    #[test]
    fn hermite_series_agree_with_closed_forms() {
        for (teacher, labels, student, terms, error) in [
            ("erf(z)", "plain", "erf(z)", 60, 1e-11),
            ("erf(z)", "squared", "erf(z)", 120, 1e-11),
            ("He5", "plain", "He5", 6, 1e-12),
            ("He4", "squared", "He4", 9, 1e-12),
            ("sigmoid", "plain", "sigmoid", 60, 1e-9),
            // a_k² falls as k^{−5/2}: the rest of the sum after 200 terms is 1e-5
            // (docs/derivations/lora.md#s3-2).
            ("relu", "plain", "relu", 200, 3e-5),
        ] {
            for (mu, u, m) in STATES {
                let (l, state) =
                    (landscape(teacher, labels, student, LossName::Half, mu), AdapterState::aligned(u, m));
                let (loss, series) = l.by_series(state, terms);
                let exact = l.gradient(state);
                let scale = error * (1.0 + l.population.power(1.0));
                let what = format!("{teacher} {labels} {student} at {mu} {u} {m}");
                assert!((loss - l.loss(state)).abs() < scale, "{what}: {loss} {}", l.loss(state));
                assert!((series.amplitude - exact.amplitude).abs() < scale, "{what}: {series:?} {exact:?}");
                assert!((series.overlap - exact.overlap).abs() < scale, "{what}: {series:?} {exact:?}");
            }
        }
    }

    #[test]
    fn an_odd_student_learns_nothing_of_an_even_target() {
        for (teacher, student) in [("linear", "erf(z)"), ("He3", "He3"), ("erf(z)", "erf(z)")] {
            let slopes = landscape(teacher, "squared", student, LossName::Half, 0.4)
                .population
                .slopes(FieldLaw::unit(0.3, 0.5));
            assert!(slopes.overlap.abs() < 1e-13, "{teacher} {student}: {slopes:?}");
        }
    }

    #[test]
    fn without_stray_weights_the_misaligned_flow_is_the_aligned_one() {
        let aligned = landscape("erf(z)", "plain", "erf(z)", LossName::Half, 0.4);
        let tiny = Landscape { misalignment: 1e-300, nu: 0.3, ..aligned.clone() };
        let state = AdapterState { amplitude: 0.3, overlap: 0.2, stray: -0.5 };
        let (a, b) = (aligned.velocity(state), tiny.velocity(state));
        assert!((a.amplitude - b.amplitude).abs() < 1e-15 && (a.overlap - b.overlap).abs() < 1e-15);
    }

    proptest! {
        /// ξ → −ξ with b → −b leaves W, hence the loss: (b, ν, q) → (−b, −ν, −q).
        #[test]
        fn the_sign_of_the_stray_direction_is_a_symmetry(
            mu in 0.05..0.95f64, b in 0.0..1.0f64, nu in -0.9..0.9f64, u in -1.0..1.0f64,
            m in -0.7..0.7f64, q in -0.7..0.7f64,
        ) {
            let l = |sign: f64| {
                let aligned = landscape("erf(z)", "plain", "erf(z)", LossName::Half, mu);
                Landscape { misalignment: sign * b, nu: sign * nu, ..aligned }
            };
            let state = |sign: f64| AdapterState { amplitude: u, overlap: m, stray: sign * q };
            prop_assert!((l(1.0).loss(state(1.0)) - l(-1.0).loss(state(-1.0))).abs() < 1e-14);
            let (v, w) = (l(1.0).velocity(state(1.0)), l(-1.0).velocity(state(-1.0)));
            prop_assert!((v.amplitude - w.amplitude).abs() < 1e-14);
            prop_assert!((v.overlap - w.overlap).abs() < 1e-14 && (v.stray + w.stray).abs() < 1e-14);
        }

        /// (u, m, q) → (−u, −m, −q) leaves u w, hence the loss, unchanged.
        #[test]
        fn the_sign_of_the_adapter_is_a_symmetry(
            mu in 0.05..0.95f64, b in 0.0..1.0f64, nu in -0.9..0.9f64, u in -1.0..1.0f64,
            m in -0.7..0.7f64, q in -0.7..0.7f64,
        ) {
            let aligned = landscape("erf(z)", "plain", "erf(z)", LossName::Half, mu);
            let l = Landscape { misalignment: b, nu, ..aligned };
            let state = AdapterState { amplitude: u, overlap: m, stray: q };
            let mirror = AdapterState { amplitude: -u, overlap: -m, stray: -q };
            prop_assert!((l.loss(state) - l.loss(mirror)).abs() < 1e-14);
            let (v, w) = (l.velocity(state), l.velocity(mirror));
            prop_assert!((v.amplitude + w.amplitude).abs() < 1e-14);
            prop_assert!((v.overlap + w.overlap).abs() < 1e-14 && (v.stray + w.stray).abs() < 1e-14);
        }
    }
}
