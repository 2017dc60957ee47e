//! Frozen ĉ, orthonormal W, large d at finite step: the drift with its noise term, what it leads to, and how large a
//! step is useful (docs/derivations/low-rank-perturbation.md#s5-1, docs/derivations/low-rank-perturbation.md#s5-3
//! and docs/derivations/low-rank-perturbation.md#s8).

use super::network::Network;
use super::noise::{GradientNoise, NoiseError, NoiseTable, check_noise, classes};
use super::orthonormal::Signal;
use didact_math::ode::{self, FieldFn, OdeEvent, Options, Stop};
use didact_math::roots::brent;
use std::f64::consts::PI;

/// Steps of an integration. These flows need some thousand; one that needs more has a time scale far from the others.
const MOST_STEPS: u64 = 10_000;

/// dm/dα = γ h(m)(1 − m²) − (γ²/2) m V(m), with α = steps/d_⊥ and γ = η d_⊥
/// (docs/derivations/low-rank-perturbation.md#eq-32).
#[derive(Debug, Clone)]
pub struct FiniteStep<'a> {
    network: &'a Network,
    signal: Signal<'a>,
    loading: Vec<f64>,
    student_loading: Vec<f64>,
    /// V at Chebyshev nodes of [−1, 1].
    noise: Chebyshev,
    /// V_u there.
    along: Chebyshev,
    label_noise: f64,
    /// 1/d_⊥; zero for d → ∞.
    inverse_dimension: f64,
}

impl<'a> FiniteStep<'a> {
    /// For signs b, b̂ (c = b/√k) on an orthonormal base.
    pub fn new(
        network: &'a Network,
        signs: &[f64],
        student_signs: &[f64],
        label_noise: f64,
    ) -> Result<Self, NoiseError> {
        let root = (network.units() as f64).sqrt();
        let scaled = |signs: &[f64]| -> Vec<f64> { signs.iter().map(|b| b / root).collect() };
        let (loading, student_loading) = (scaled(signs), scaled(student_signs));
        // V of a polynomial of degree n has degree 4n − 2 in m; a kink leaves half-integer powers of 1 ∓ m.
        let nodes = match network.activation.degree() {
            Some(degree) if 4 * degree <= 33 => 4 * degree,
            _ if network.activation.kinks().is_empty() => 25,
            _ => 49,
        };
        let (classes, counts) = classes(network, &loading, &student_loading);
        let nodes = Chebyshev::nodes(nodes);
        let (mut noise, mut along) = (Vec::new(), Vec::new());
        for &m in &nodes {
            let here = NoiseTable::new(network, &classes, m)?.average(&counts);
            // b² is independent of F, so label noise adds the same to both.
            let labels = 4.0 * label_noise * label_noise * here.gain;
            noise.push(here.whole + labels);
            along.push(here.along + labels);
        }
        Ok(Self {
            network,
            signal: Signal::of(network, signs, student_signs),
            loading,
            student_loading,
            noise: Chebyshev { nodes: nodes.clone(), values: noise },
            along: Chebyshev { nodes, values: along },
            label_noise,
            inverse_dimension: 0.0,
        })
    }

    /// The same in d_⊥ dimensions: V becomes [(d_⊥ − 2) V + V_u]/d_⊥, the squared length of a gradient there
    /// (docs/derivations/low-rank-perturbation.md#eq-31).
    pub fn in_dimension(mut self, perpendicular: f64) -> Self {
        self.inverse_dimension = perpendicular.recip();
        self
    }

    /// h.
    pub fn signal(&self) -> &Signal<'a> {
        &self.signal
    }

    /// V(m), interpolated.
    pub fn noise(&self, m: f64) -> f64 {
        self.effective(self.noise.at(m), || self.along.at(m))
    }

    fn effective(&self, whole: f64, along: impl Fn() -> f64) -> f64 {
        if self.inverse_dimension == 0.0 {
            return whole;
        }
        whole + self.inverse_dimension * (along() - 2.0 * whole)
    }

    fn exact_noise(&self, m: f64) -> f64 {
        let GradientNoise { whole, along, .. } = super::noise::gradient_noise(
            self.network,
            &self.loading,
            &self.student_loading,
            m,
            self.label_noise,
        )
        .expect("the table was made from the same classes");
        self.effective(whole, || along)
    }

    /// The right-hand side.
    pub fn drift(&self, m: f64, gamma: f64) -> f64 {
        gamma * self.signal.at(m) * (1.0 - m * m).max(0.0) - 0.5 * gamma * gamma * m * self.noise(m)
    }

    /// m(α) from m0 at ascending times: as many of them as are reached in a bounded number of steps.
    pub fn trajectory(&self, gamma: f64, from: f64, times: &[f64]) -> Vec<f64> {
        let mut field = FieldFn::new(1, |_, m: &[f64], out: &mut [f64]| {
            out[0] = self.drift(m[0].clamp(-1.0, 1.0), gamma);
        });
        let end = times.last().copied().unwrap_or(0.0);
        let options =
            Options { relative: 1e-10, absolute: 1e-12, step_limit: Some(MOST_STEPS), ..Options::default() };
        let solution = ode::solve(&mut field, 0.0, &[from], end, times, &[], &options)
            .expect("a flow of one number from a finite start");
        solution.states.iter().map(|m| m[0]).collect()
    }

    /// The first α with |m| ≥ level, from m0; `None` when the flow settles below it.
    pub fn passage(&self, gamma: f64, from: f64, level: f64) -> Option<f64> {
        if from.abs() >= level {
            return Some(0.0);
        }
        // In units of the slowest time scale near zero the flow is over after a few hundred.
        let scale = 1.0 / (gamma * (self.signal.at(from).abs() + self.signal.at(0.5).abs()).max(1e-300));
        let mut field = FieldFn::new(1, |_, m: &[f64], out: &mut [f64]| {
            out[0] = self.drift(m[0].clamp(-1.0, 1.0), gamma);
        });
        let events = [OdeEvent::new("passage", |_, m: &[f64]| m[0].abs() - level).terminal()];
        let options =
            Options { relative: 1e-10, absolute: 1e-12, step_limit: Some(MOST_STEPS), ..Options::default() };
        let solution = ode::solve(&mut field, 0.0, &[from], 1e4 * scale, &[], &events, &options).ok()?;
        match solution.report.stop {
            Stop::Event { time, .. } => Some(time),
            _ => None,
        }
    }

    /// m*: the limit from m = 0, i.e. the first zero of the drift in the direction of h(0); `None` when h(0) = 0.
    ///
    /// To first order in γ, 1 − m* = γ V(1)/(4 h(1)) (docs/derivations/low-rank-perturbation.md#eq-33).
    pub fn stationary(&self, gamma: f64) -> Option<f64> {
        if self.signal.vanishes_at_zero() {
            return None;
        }
        let sign = self.signal.at(0.0).signum();
        // Steps that shrink towards 1, where m* sits for small γ.
        let grid = (1..=400).map(|i| sign * (0.5 * PI * f64::from(i) / 400.0).sin());
        let mut before = 0.0;
        for m in grid {
            if sign * self.drift(m, gamma) <= 0.0 {
                let balance = |m: f64| {
                    self.signal.at(m) * (1.0 - m * m).max(0.0) - 0.5 * gamma * m * self.exact_noise(m)
                };
                return brent(balance, before, m, 1e-13).ok().or(Some(m));
            }
            before = m;
        }
        Some(sign)
    }

    /// The largest useful step: min over 0 < m ≤ 0.9 of 2 h (1 − m²)/(m V), along the sign of h(0). The step rule
    /// (docs/derivations/low-rank-perturbation.md#eq-53) is γ = g times this, g = 0.25. `None` when the minimum is not
    /// positive: condition 3 fails.
    pub fn largest_step(&self) -> Option<f64> {
        self.largest_step_to(USEFUL)
    }

    /// γ and α of the fastest way from `from` to |m| = 1 − ε at a constant step; `None` where no step gets there.
    ///
    /// α(γ) = ∫ dm/(γ h (1 − m²) − γ² m V/2) is convex between 0 and the largest step that gains up to 1 − ε, at both of which
    /// it diverges: one minimum, found by golden section. For ε → 0 and ĉ ≠ ±c, γ ~ ε and α ~ 1/ε.
    pub fn fastest_step(&self, from: f64, accuracy: f64) -> Option<(f64, f64)> {
        let level = 1.0 - accuracy;
        let time = |gamma: f64| self.passage(gamma, from, level).unwrap_or(f64::INFINITY);
        let golden = 0.5 * (5f64.sqrt() - 1.0);
        let (mut low, mut high) = (0.0, self.largest_step_to(level)?);
        // Each turn keeps 0.618 of the interval; near a minimum the time is flat, so 1e-8 of γ is more than enough.
        for _ in 0..40 {
            let (a, b) = (high - golden * (high - low), low + golden * (high - low));
            if time(a) <= time(b) { high = b } else { low = a }
        }
        let gamma = f64::midpoint(low, high);
        let alpha = time(gamma);
        alpha.is_finite().then_some((gamma, alpha))
    }

    fn largest_step_to(&self, level: f64) -> Option<f64> {
        if self.signal.vanishes_at_zero() {
            return None;
        }
        let sign = self.signal.at(0.0).signum();
        let bound =
            |m: f64| 2.0 * sign * self.signal.at(sign * m) * (1.0 - m * m) / (m * self.noise(sign * m));
        let smallest = way(level).map(bound).fold(f64::INFINITY, f64::min);
        (smallest > 0.0).then_some(smallest)
    }
}

/// A step is useful if it gains overlap all the way to this one.
const USEFUL: f64 = 0.9;

/// Overlaps between 0 and `level` at which gain and loss are weighed.
fn way(level: f64) -> impl Iterator<Item = f64> {
    (1..=360).map(move |i| level * f64::from(i) / 360.0)
}

/// Whether there is a [`FiniteStep::largest_step`], found without its noise: V is positive, so a small enough step gains wherever
/// the signal has the sign of h(0).
pub fn has_useful_step(network: &Network, signs: &[f64], student_signs: &[f64]) -> Result<bool, NoiseError> {
    check_noise(network, &classes(network, signs, student_signs).0)?;
    let signal = Signal::of(network, signs, student_signs);
    let sign = signal.at(0.0).signum();
    Ok(!signal.vanishes_at_zero() && way(USEFUL).all(|m| sign * signal.at(sign * m) > 0.0))
}

/// Barycentric interpolation at Chebyshev points of the second kind on [−1, 1].
#[derive(Debug, Clone)]
struct Chebyshev {
    nodes: Vec<f64>,
    values: Vec<f64>,
}

impl Chebyshev {
    fn nodes(count: usize) -> Vec<f64> {
        (0..count).map(|i| -(PI * i as f64 / (count - 1) as f64).cos()).collect()
    }

    fn at(&self, x: f64) -> f64 {
        let last = self.nodes.len() - 1;
        let (mut above, mut below) = (0.0, 0.0);
        for (i, (node, value)) in self.nodes.iter().zip(&self.values).enumerate() {
            if x == *node {
                return *value;
            }
            let end = if i == 0 || i == last { 0.5 } else { 1.0 };
            let weight = if i % 2 == 0 { end } else { -end } / (x - node);
            above += weight * value;
            below += weight;
        }
        above / below
    }
}

/// The draws of one step of the restricted chain with frozen ĉ (docs/derivations/low-rank-perturbation.md#s5-1).
#[derive(Debug, Clone, Copy)]
pub struct Draws<'a> {
    /// y = W x.
    pub base: &'a [f64],
    /// a = û·x.
    pub along: f64,
    /// b, the component of x along u − m û.
    pub across: f64,
    /// |x|² outside W, u and û: χ² with d_⊥ − 2 degrees of freedom.
    pub rest: f64,
}

/// m ← (m + e √(1−m²) b)/√(1 + e²(b² + q)), e = 2 η D F; returns (m, D, F)
/// (docs/derivations/low-rank-perturbation.md#eq-28).
///
/// This is what `reduced` does for one trained row off W, written out: it is the test of that engine.
pub fn chain_step(
    network: &Network,
    (loading, student_loading): (&[f64], &[f64]),
    m: f64,
    step: f64,
    draws: &Draws,
) -> (f64, f64, f64) {
    let Draws { base, along, across, rest } = *draws;
    let spread = (1.0 - m * m).max(0.0).sqrt();
    let z = m * along + spread * across;
    let d = network.output(base, loading, z) - network.output(base, student_loading, along);
    let slopes = network.second_layer.iter().zip(base).zip(student_loading).map(|((l, y), c)| {
        l * c * network.activation.slope(network.scale * (y + network.strength * c * along))
    });
    let f = network.output_scale * network.scale * network.strength * slopes.sum::<f64>();
    let e = 2.0 * step * d * f;
    ((m + e * spread * across) / (1.0 + e * e * (across * across + rest)).sqrt(), d, f)
}

#[cfg(test)]
mod tests {
    use super::super::network::Mode;
    use super::*;
    use didact_math::activation::parse;

    const B: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -1.0, -1.0];
    const S: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 1.0, -1.0, -1.0, 1.0];

    fn network(name: &str) -> Network {
        Network::new(parse(name).unwrap(), vec![1.0; 8], 8f64.sqrt(), Mode::Normalised)
    }

    #[test]
    fn the_step_rule_gives_the_steps_of_the_reference_instance() {
        // docs/derivations/low-rank-perturbation.md#exp1: γ from g = 0.25.
        for (name, gamma, alpha) in [
            ("relu", 0.01856, 10.46),
            ("sigmoid", 0.6840, 2.73),
            ("quad", 7.337e-4, 38.05),
            ("He3", 1.649e-4, 147.5),
            ("h4", 6.856e-5, 2403.0),
        ] {
            let network = network(name);
            let flow = FiniteStep::new(&network, &B, &S, 0.0).unwrap();
            let step = 0.25 * flow.largest_step().unwrap();
            assert!((step / gamma - 1.0).abs() < 1e-3, "{name}: {step} {gamma}");
            // Threshold 0.8 from m = 0; h4 goes through a slow passage that magnifies the rounding of γ.
            let passage = flow.passage(gamma, 0.0, 0.8).unwrap();
            assert!((passage / alpha - 1.0).abs() < 2e-3, "{name}: {passage} {alpha}");
        }
    }

    #[test]
    fn stationary_overlaps_are_those_of_the_spec() {
        for (name, gamma, m) in [("sigmoid", 0.3, 0.999698), ("relu", 0.01, 0.997232), ("h4", 3.09e-4, 0.19)]
        {
            let network = network(name);
            let flow = FiniteStep::new(&network, &B, &S, 0.0).unwrap();
            let got = flow.stationary(gamma).unwrap();
            // Printed to so many digits; the zero of h4 is "near 0.19".
            assert!((got - m).abs() < if name == "h4" { 0.01 } else { 1e-6 }, "{name}: {got}");
        }
        // First order in γ: slope V(1)/(4 h(1)), docs/derivations/low-rank-perturbation.md#exp6.
        for (name, slope) in [("sigmoid", 8.9e-4), ("relu", 0.2434)] {
            let network = network(name);
            let flow = FiniteStep::new(&network, &B, &S, 0.0).unwrap();
            let got = (1.0 - flow.stationary(1e-4).unwrap()) / 1e-4;
            assert!((got / slope - 1.0).abs() < 0.02, "{name}: {got}");
        }
    }

    #[test]
    fn no_step_is_faster_than_the_fastest_and_accuracy_costs_its_inverse() {
        let network = network("relu");
        let flow = FiniteStep::new(&network, &B, &S, 0.0).unwrap();
        let (gamma, alpha) = flow.fastest_step(0.05, 0.02).unwrap();
        for factor in [0.5, 0.8, 0.98, 1.02, 1.2, 1.5] {
            let other = flow.passage(factor * gamma, 0.05, 0.98);
            assert!(other.is_none_or(|other| other > alpha * (1.0 - 1e-9)), "{factor}: {other:?} {alpha}");
        }
        // γ ~ ε and α ~ 1/ε up to the logarithm of the approach, once ε is far below what the largest step reaches.
        let (gamma, alpha) = flow.fastest_step(0.05, 0.002).unwrap();
        let (finer, longer) = flow.fastest_step(0.05, 0.0002).unwrap();
        let (shorter, slower) = (gamma / finer, longer / alpha);
        assert!((7.0..14.0).contains(&shorter) && (8.0..16.0).contains(&slower), "{shorter} {slower}");
    }

    #[test]
    fn the_mirror_image_goes_to_the_mirror_image() {
        let network = network("relu");
        let mirrored: Vec<f64> = S.iter().map(|s| -s).collect();
        let plus = FiniteStep::new(&network, &B, &S, 0.0).unwrap();
        let minus = FiniteStep::new(&network, &B, &mirrored, 0.0).unwrap();
        assert!((plus.stationary(0.02).unwrap() + minus.stationary(0.02).unwrap()).abs() < 1e-10);
        assert!((plus.largest_step().unwrap() / minus.largest_step().unwrap() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn interpolated_noise_is_the_noise() {
        for name in ["relu", "sigmoid", "He3"] {
            let network = network(name);
            let flow = FiniteStep::new(&network, &B, &S, 0.3).unwrap();
            for m in [-0.93, -0.2, 0.11, 0.77, 0.99] {
                let (a, b) = (flow.noise(m), flow.exact_noise(m));
                assert!((a / b - 1.0).abs() < 1e-5, "{name} at {m}: {a} {b}");
            }
            // d_⊥ = 10: the weights of V and V_u are 8/10 and 1/10.
            let small = flow.clone().in_dimension(10.0);
            let expected = 0.8 * flow.noise(0.3) + 0.1 * flow.along.at(0.3);
            assert!((small.noise(0.3) / expected - 1.0).abs() < 1e-12, "{name}");
            assert!((small.noise(0.3) / small.exact_noise(0.3) - 1.0).abs() < 1e-5, "{name}");
        }
    }

    #[test]
    fn whether_a_step_is_useful_is_known_without_the_noise() {
        let mut seen = [0, 0];
        for name in ["relu", "sigmoid", "quad", "He3", "h4"] {
            let network = network(name);
            for pattern in 0..16u32 {
                // Student signs that agree with the teacher on 1 to 8 neurons, in several places.
                let student: Vec<f64> =
                    (0..8).map(|i| if (pattern * 37) >> i & 1 == 1 { -B[i] } else { B[i] }).collect();
                let expected = FiniteStep::new(&network, &B, &student, 0.0).unwrap().largest_step().is_some();
                assert_eq!(has_useful_step(&network, &B, &student), Ok(expected), "{name} {student:?}");
                seen[usize::from(expected)] += 1;
            }
        }
        assert!(seen.iter().all(|n| *n >= 10), "{seen:?}");
        let kinked = network("abs(x) + 0.1*x^2");
        let refused = FiniteStep::new(&kinked, &B, &S, 0.0).unwrap_err();
        assert_eq!(has_useful_step(&kinked, &B, &S), Err(refused));
    }
}
