//! The search phase: the linearised flow at (u, m) = (0, 0), its rates, limits and exit times
//! (docs/derivations/lora.md#s5, misaligned docs/derivations/lora.md#s7).

use super::flow::{Flow, FlowError};
use super::landscape::{AdapterState, Landscape};
use super::population::{FieldLaw, Population};
use didact_math::gauss::GaussianRule;
use didact_math::roots::brent;

/// u′ = B u + A m, m′ = A u: the linearised flow. Misaligned pre-training adds a coupling β to ξ (A is α, B is G there).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// A = −(L_c + 2μ L_r): what u and m do to each other.
    pub coupling: f64,
    /// β = −2b L_r: the same for q; 0 when aligned.
    pub stray: f64,
    /// B = −2L_r: growth of u alone.
    pub self_coupling: f64,
    /// λ₊ ≥ 0 (`lambda_plus`), the rate of escape.
    pub growth: f64,
    /// λ₋ ≤ 0 (`lambda_minus`).
    pub decay: f64,
}

impl Rates {
    /// At u = m = q = 0, in time rescaled by δ.
    pub fn of(landscape: &Landscape, delta: f64) -> Self {
        let slopes = landscape.population.slopes(landscape.law(AdapterState::default()));
        let coupling = -delta * (slopes.overlap + 2.0 * landscape.mu * slopes.variance);
        let stray = -2.0 * delta * landscape.misalignment * slopes.variance;
        Self::from_coefficients(coupling, stray, -2.0 * delta * slopes.variance, landscape.nu)
    }

    /// λ_± = (B ± √(B² + 4A²))/2, in the form that does not cancel; A² is α² + β² + 2ναβ when misaligned
    /// (docs/derivations/lora.md#eq-26, docs/derivations/lora.md#eq-36).
    pub fn from_coefficients(coupling: f64, stray: f64, self_coupling: f64, nu: f64) -> Self {
        let square = (coupling * coupling + stray * stray + 2.0 * nu * coupling * stray).max(0.0);
        let root = self_coupling.hypot(2.0 * square.sqrt());
        let (growth, decay) = if self_coupling > 0.0 {
            (
                0.5 * (self_coupling + root),
                if square > 0.0 { -2.0 * square / (root + self_coupling) } else { 0.0 },
            )
        } else {
            (
                if square > 0.0 { 2.0 * square / (root - self_coupling) } else { 0.0 },
                0.5 * (self_coupling - root),
            )
        };
        Self { coupling, stray, self_coupling, growth, decay }
    }

    /// τ = 1/λ_+; infinite where A = 0 and B ≤ 0.
    pub fn escape_time(&self) -> f64 {
        1.0 / self.growth
    }

    /// Time at which the linearised flow reaches |(u, m)| = `radius` (Euclidean); infinite if it never does.
    ///
    /// The largest root of p²e^{2λ_+t} + q²e^{2λ_−t} = R², p and q being the parts of the start along the eigenvectors,
    /// which are orthogonal: the unstable one is (λ_+, A).
    pub fn linear_exit(&self, start: AdapterState, radius: f64) -> f64 {
        let (u, m) = (start.amplitude, start.overlap);
        if u.hypot(m) >= radius {
            return 0.0;
        }
        let length = self.growth.hypot(self.coupling);
        if self.growth == 0.0 || length == 0.0 {
            return f64::INFINITY;
        }
        let along = (self.growth * u + self.coupling * m) / length;
        let across = (self.growth * m - self.coupling * u) / length;
        if along == 0.0 {
            return f64::INFINITY;
        }
        let latest = (radius / along.abs()).ln() / self.growth;
        let excess = |t: f64| {
            (along * (self.growth * t).exp()).powi(2) + (across * (self.decay * t).exp()).powi(2)
                - radius * radius
        };
        brent(excess, 0.0, latest, 0.0).unwrap_or(latest)
    }
}

/// First time at which max(|u|, |m|) = `radius` along the flow itself; `None` within `cap`.
pub fn exit(
    landscape: &Landscape,
    delta: f64,
    start: AdapterState,
    radius: f64,
    cap: f64,
) -> Result<Option<f64>, FlowError> {
    let excess = |s: AdapterState| s.amplitude.abs().max(s.overlap.abs()) - radius;
    Ok(Flow { landscape, delta }.first_passage(start, cap, excess)?.map(|(time, _)| time))
}

/// E[σ′(z)²] and E[z²σ′(z)²] at unit variance.
pub fn slope_moments(population: &Population) -> (f64, f64) {
    let rule = GaussianRule::for_activation(&*population.student, 1.0);
    let square = |z: f64| population.student.slope(z).powi(2);
    (rule.average(square), rule.average(|z| z * z * square(z)))
}

/// K_σ in τ ~ K_σ/(1 − μ)² as μ → 1, matched pairs: E[σ′²]/E[z²σ′²]² (docs/derivations/lora.md#eq-27).
pub fn strong_pretraining_constant(population: &Population) -> f64 {
    let (square, weighted) = slope_moments(population);
    square / (weighted * weighted)
}

/// The rates in the limit μ → 0 of a smooth student: A = σ′(0)E[φ_T′], B = σ″(0)E[φ_T − σ(0)] − σ′(0)².
///
/// Not for a student with a kink at 0, where B diverges or jumps. docs/derivations/lora.md#s5-limits.
pub fn without_pretraining(population: &Population) -> Rates {
    let slopes = population.slopes(FieldLaw::unit(0.0, 0.0));
    Rates::from_coefficients(-slopes.overlap, 0.0, -2.0 * slopes.variance, 0.0)
}

/// Rates of the descent into the minimum with m_eff = ±1, matched pairs: of 1 − |m| and of u,
/// 2(1 ∓ μ)²E[σ′²] and E[z²σ′²] (docs/derivations/lora.md#eq-32). The minus sign exists for even students only.
pub fn descent(population: &Population, mu: f64, sign: f64) -> (f64, f64) {
    let (square, weighted) = slope_moments(population);
    (2.0 * (1.0 - sign * mu).powi(2) * square, weighted)
}

/// The search phase as a particle in a potential: g = atanh m, g″ − B g′ + V′(g) = 0 (docs/derivations/lora.md#eq-46).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mechanics {
    /// g.
    pub position: f64,
    /// g′ = A u.
    pub speed: f64,
    /// V(g) = −A² log cosh g.
    pub potential: f64,
    /// E = g′²/2 + V.
    pub energy: f64,
    /// dE/dt = B g′².
    pub power: f64,
}

impl Mechanics {
    /// Of a state; |m| < 1.
    pub fn of(rates: &Rates, state: AdapterState) -> Self {
        let (position, speed) = (state.overlap.atanh(), rates.coupling * state.amplitude);
        let potential = potential(rates, position);
        let energy = 0.5 * speed * speed + potential;
        Self { position, speed, potential, energy, power: rates.self_coupling * speed * speed }
    }
}

/// V(g) = −A² log cosh g, with log cosh g = |g| + log(1 + e^{−2|g|}) − log 2.
pub fn potential(rates: &Rates, position: f64) -> f64 {
    let size = position.abs();
    -rates.coupling * rates.coupling * (size + (-2.0 * size).exp().ln_1p() - std::f64::consts::LN_2)
}

#[cfg(test)]
mod tests {
    use super::super::hermite::{central, drift, time_scale};
    use super::super::population::LossName;
    use super::*;
    use didact_math::activation::parse;
    use std::f64::consts::PI;

    fn landscape(name: &str, labels: &str, mu: f64) -> Landscape {
        let unit = parse(name).unwrap();
        Landscape::aligned(Population::new(unit.clone(), labels, unit, LossName::Half).unwrap(), mu)
    }

    fn tau(name: &str, labels: &str, mu: f64) -> f64 {
        Rates::of(&landscape(name, labels, mu), 1.0).escape_time()
    }

    #[test]
    fn rates_are_the_slopes_of_the_flow_at_the_origin() {
        for (name, labels) in
            [("erf(z)", "plain"), ("relu", "plain"), ("sigmoid", "squared"), ("He4", "squared")]
        {
            let l = landscape(name, labels, 0.37);
            let rates = Rates::of(&l, 1.0);
            let h = 1e-6;
            let by_u = l.velocity(AdapterState::aligned(h, 0.0));
            let by_m = l.velocity(AdapterState::aligned(0.0, h));
            let scale = l.population.power(1.0);
            // ReLU has no second derivative at the origin of the adapter: its first-order error is h times a curvature.
            for (got, expected) in [
                (by_u.amplitude / h, rates.self_coupling),
                (by_u.overlap / h, rates.coupling),
                (by_m.amplitude / h, rates.coupling),
            ] {
                assert!((got - expected).abs() < 3e-5 * scale, "{name} {labels}: {got} {expected}");
            }
        }
    }

    #[test]
    fn escape_times_are_those_of_the_table_and_increase() {
        let table = [
            ("linear", [1.8883, 2.7760, 4.8284, 25.963, 100.99]),
            ("erf(z)", [4.4802, 12.7425, 45.594, 663.55, 3434.0]),
            ("relu", [3.7767, 5.5520, 9.6569, 51.926, 201.98]),
            ("sigmoid", [43.059, 77.922, 178.61, 1544.0, 6999.2]),
        ];
        for (name, expected) in table {
            for (mu, expected) in [0.1, 0.3, 0.5, 0.8, 0.9].iter().zip(expected) {
                let got = tau(name, "plain", *mu);
                // Printed to five digits.
                assert!((got / expected - 1.0).abs() < 3e-5, "{name} {mu}: {got}");
            }
        }
        for i in 1..50 {
            let mu = 0.02 * f64::from(i);
            assert!((tau("relu", "plain", mu) / tau("linear", "plain", mu) - 2.0).abs() < 1e-12);
        }
    }

    #[test]
    fn growth_solves_its_characteristic_equation() {
        for mu in [0.05, 0.3, 0.6, 0.95] {
            for (name, labels) in
                [("erf(z)", "plain"), ("He2", "squared"), ("He3", "plain"), ("He6", "squared")]
            {
                let r = Rates::of(&landscape(name, labels, mu), 1.0);
                assert!((r.growth * r.escape_time() - 1.0).abs() < 1e-15);
                let residual = r.growth * r.growth - r.self_coupling * r.growth - r.coupling * r.coupling;
                assert!(
                    residual.abs()
                        < 1e-13 * (r.growth.powi(2) + r.self_coupling.powi(2) + r.coupling.powi(2))
                );
                assert!(
                    (r.growth * r.decay + r.coupling * r.coupling).abs() < 1e-12 * (1.0 + r.coupling.powi(2))
                );
            }
        }
        assert_eq!(Rates::from_coefficients(0.0, 0.0, -0.5, 0.0).escape_time(), f64::INFINITY);
        assert_eq!(Rates::from_coefficients(0.0, 0.0, 0.5, 0.0).escape_time(), 2.0);
    }

    #[test]
    fn squared_labels_have_their_closed_forms() {
        for mu in [0.2, 0.5, 0.9] {
            let rates = |name: &str| Rates::of(&landscape(name, "squared", mu), 1.0);
            let close = |got: Rates, a: f64, b: f64| {
                assert!((got.coupling - a).abs() < 1e-12 * (1.0 + a.abs()), "{got:?} {a}");
                assert!((got.self_coupling - b).abs() < 1e-12 * (1.0 + b.abs()), "{got:?} {b}");
            };
            close(rates("linear"), -mu, -1.0);
            close(rates("relu"), (2.0 / PI).sqrt() - 0.5 * mu, -0.5);
            close(rates("He2"), 2.0 * mu * (11.0 - 3.0 * mu * mu), 6.0 * (1.0 - mu * mu));
            let p = 1.0 + 2.0 * mu * mu;
            let self_coupling = -4.0 / PI / (p * (1.0 + 4.0 * mu * mu).sqrt());
            close(rates("erf(z)"), mu * self_coupling, self_coupling);
            // Squaring the labels of a sigmoid changes nothing: σ² and σ have the same odd part.
            let plain = Rates::of(&landscape("sigmoid", "plain", mu), 1.0);
            close(rates("sigmoid"), plain.coupling, plain.self_coupling);
            // Odd He_k: B = −D_k, A = μB in rescaled time.
            let third = Rates::of(&landscape("He3", "squared", mu), 1.0 / time_scale(3));
            let (_, b) = drift(3, mu);
            close(third, mu * b, b);
        }
    }

    #[test]
    fn the_two_limits_are_approached() {
        for (name, constant) in
            [("linear", 1.0), ("relu", 2.0), ("erf(z)", 43.90509207), ("sigmoid", 79.77781931)]
        {
            let got = strong_pretraining_constant(&landscape(name, "plain", 0.5).population);
            assert!((got / constant - 1.0).abs() < 1e-9, "{name}: {got}");
            let ratio = tau(name, "plain", 0.999) * 1e-6 / got;
            assert!((ratio - 1.0).abs() < 0.012, "{name}: {ratio}");
        }
        for k in 2..=7 {
            // Even: 1/c_p; odd: 1/(c_p μ²).
            let mu = 1e-3;
            let (a, b) = drift(k, mu);
            let tau = Rates::from_coefficients(a, 0.0, b, 0.0).escape_time();
            let limit = if k % 2 == 0 { 1.0 } else { mu.powi(-2) } / central(k / 2);
            assert!((tau / limit - 1.0).abs() < 0.005, "He_{k}: {tau} {limit}");
            let slow =
                Rates::of(&landscape(&format!("He{k}"), "plain", mu), 1.0 / time_scale(k)).escape_time();
            assert!((tau / slow - 1.0).abs() < 1e-9, "He_{k}: {tau} {slow}");
        }
        let linear = without_pretraining(&landscape("linear", "plain", 0.5).population);
        assert!((linear.escape_time() - f64::midpoint(1.0, 5f64.sqrt())).abs() < 1e-14);
    }

    #[test]
    fn misaligned_escape_times_are_those_of_the_spec() {
        for (name, at_40, at_90) in [
            ("linear", 2.062, 50.98),
            ("erf(z)", 3.83, 147.9),
            ("relu", 5.858, 102.26),
            ("sigmoid", 44.5, 1582.0),
        ] {
            for (mu, expected) in [(0.4, at_40), (0.9, at_90)] {
                let l = Landscape { misalignment: 1.0 - mu, ..landscape(name, "plain", mu) };
                let tau = Rates::of(&l, 1.0).escape_time();
                assert!((tau / expected - 1.0).abs() < 2e-3, "{name} {mu}: {tau}");
            }
        }
    }

    #[test]
    fn linear_exit_is_where_the_linear_solution_is() {
        let rates = Rates::of(&landscape("linear", "plain", 0.2), 1.0);
        let start = AdapterState::aligned(0.0316, 0.0316);
        let time = rates.linear_exit(start, 0.2);
        assert!((time - 3.468911092478082).abs() < 1e-9, "{time}");
        assert_eq!(rates.linear_exit(AdapterState::aligned(0.3, 0.0), 0.2), 0.0);
        let frozen = Rates::from_coefficients(0.0, 0.0, -1.0, 0.0);
        assert_eq!(frozen.linear_exit(start, 0.2), f64::INFINITY);
    }

    #[test]
    fn energy_changes_at_the_rate_of_its_friction() {
        // Along the linear flow, which is the mechanical one exactly: dE/dt by differences.
        let l = landscape("linear", "plain", 0.3);
        let rates = Rates::of(&l, 1.0);
        let at = |t: f64| {
            let s =
                Flow { landscape: &l, delta: 1.0 }.states(AdapterState::aligned(0.2, 0.4), &[t]).unwrap()[0];
            Mechanics::of(&rates, s)
        };
        let (before, now, after) = (at(0.999), at(1.0), at(1.001));
        let slope = (after.energy - before.energy) / 0.002;
        assert!((slope - now.power).abs() < 1e-6, "{slope} {}", now.power);
        assert!(((after.position - before.position) / 0.002 - now.speed).abs() < 1e-6);
    }

    #[test]
    fn descent_rates_are_those_of_the_jacobian_at_the_minimum() {
        for (name, mu, sign) in [("erf(z)", 0.3, 1.0), ("He3", 0.6, 1.0), ("He2", 0.3, -1.0)] {
            let l = landscape(name, "plain", mu);
            let (of_overlap, of_amplitude) = descent(&l.population, mu, sign);
            let (u, h) = (sign - mu, 1e-5);
            // m = 1 − ε: m′ = rate ε; u′ = −rate (u − u*).
            let near = l.velocity(AdapterState::aligned(u, 1.0 - h));
            assert!((near.overlap / h / of_overlap - 1.0).abs() < 1e-3, "{name}: {near:?} {of_overlap}");
            let off = l.velocity(AdapterState::aligned(u + h, 1.0));
            assert!((-off.amplitude / h / of_amplitude - 1.0).abs() < 1e-3, "{name}: {off:?} {of_amplitude}");
        }
    }
}
