//! Orthonormal W, quantised loadings, normalised mode: the signal in closed form, its zeros, basins and flow
//! (docs/derivations/low-rank-perturbation.md#s4-3, docs/derivations/low-rank-perturbation.md#s4-4).

use super::network::{Kernel, Network};
use didact_math::activation::Activation;
use didact_math::gauss::quadrature::gauss_legendre;
use didact_math::ode::{self, FieldFn, Options};
use didact_math::roots::{brent, minimum};

/// What the signal depends on: sums over neurons, with b = √k c, b̂ = √k ĉ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sums {
    /// BB = (Σ λ b)(Σ λ b̂).
    pub product: f64,
    /// O = Σ λ² b b̂, which is k ω for λ = 1.
    pub overlap: f64,
    /// (Σ λ)², which is k² for λ = 1.
    pub total: f64,
    /// |λ|², which is k for λ = 1.
    pub square: f64,
}

impl Sums {
    /// λ = 1.
    pub fn plain(units: usize, product: f64, overlap: f64) -> Self {
        let k = units as f64;
        Self { product, overlap, total: k * k, square: k }
    }

    /// From the second layer and the signs.
    pub fn of(second_layer: &[f64], signs: &[f64], student_signs: &[f64]) -> Self {
        let mut sums = [0.0; 5];
        for ((l, b), s) in second_layer.iter().zip(signs).zip(student_signs) {
            for (sum, term) in sums.iter_mut().zip([l * b, l * s, l * l * b * s, *l, l * l]) {
                *sum += term;
            }
        }
        Self { product: sums[0] * sums[1], overlap: sums[2], total: sums[3] * sums[3], square: sums[4] }
    }
}

/// Whether signs b, b̂ of k units with (Σb)(Σb̂) = `product` and Σ b b̂ = `overlap` exist.
pub fn sums_are_possible(units: usize, product: i64, overlap: i64) -> bool {
    let k = units as i64;
    let counts = |b: i64, s: i64| {
        [k + b + s + overlap, k + b - s - overlap, k - b + s - overlap, k - b - s + overlap]
            .iter()
            .all(|&n| n >= 0 && n % 4 == 0)
    };
    (-k..=k).any(|b| (-k..=k).any(|s| b * s == product && counts(b, s)))
}

/// h(m) and the flow it drives, dm/dτ = h(m)(1 − m²).
#[derive(Debug, Clone)]
pub struct Signal<'a> {
    activation: &'a dyn Activation,
    kernel: Kernel<'a>,
    sums: Sums,
    theta: f64,
    /// A².
    factor: f64,
}

/// Why no flow leads from one overlap to another.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Unreachable {
    /// A fixed point is in the way.
    #[error("the flow stops at the zero m = {at} of h")]
    Zero {
        /// Where.
        at: f64,
    },
    /// The flow leads away.
    #[error("h has the wrong sign: the flow from {from} leads away from {to}")]
    Direction {
        /// m0.
        from: f64,
        /// m1.
        to: f64,
    },
    /// Fixed points are reached after infinite time, and never left.
    #[error("m = {at} is a fixed point: it is neither left nor reached in finite time")]
    End {
        /// Which.
        at: f64,
    },
}

impl<'a> Signal<'a> {
    /// The signal of given sums at θ = ξ²/(k + ξ²).
    pub fn new(activation: &'a dyn Activation, sums: Sums, theta: f64) -> Self {
        Self { activation, kernel: Kernel::new(activation, 1.0), sums, theta, factor: 1.0 }
    }

    /// The signal of a network with signs b and b̂.
    pub fn of(network: &'a Network, signs: &[f64], student_signs: &[f64]) -> Self {
        let sums = Sums::of(&network.second_layer, signs, student_signs);
        let factor = network.output_scale.powi(2);
        Self { factor, ..Self::new(&*network.activation, sums, network.theta()) }
    }

    /// h(m) = 2θ { [(k²+BB) − (k+O)]/2 K′(θm) − [(k²−BB) − (k−O)]/2 K′(−θm)
    ///            + (k+O)/2 K′(1−θ+θm) − (k−O)/2 K′(1−θ−θm) }  (docs/derivations/low-rank-perturbation.md#eq-19).
    pub fn at(&self, m: f64) -> f64 {
        let (theta, kernel) = (self.theta, &self.kernel);
        self.combine([
            kernel.slope(theta * m),
            kernel.slope(-theta * m),
            kernel.slope(1.0 - theta + theta * m),
            kernel.slope(1.0 - theta - theta * m),
        ])
    }

    /// The same from K′ at θm, −θm, 1−θ+θm, 1−θ−θm.
    fn combine(&self, slopes: [f64; 4]) -> f64 {
        let Sums { product, overlap, total, square } = self.sums;
        let weights = [
            total + product - square - overlap,
            -(total - product - square + overlap),
            square + overlap,
            -(square - overlap),
        ];
        self.factor * self.theta * weights.iter().zip(slopes).map(|(w, s)| w * s).sum::<f64>()
    }

    /// Whether h(0) vanishes: exact cancellations of the sums leave rounding, 1e-12 of the terms.
    pub fn vanishes_at_zero(&self) -> bool {
        let (zero, base) = (self.kernel.slope(0.0), self.kernel.slope(1.0 - self.theta));
        let terms = 2.0 * self.theta * self.factor * (self.sums.total * zero + self.sums.square * base);
        self.at(0.0).abs() <= 1e-12 * terms
    }

    /// Zeros of h in (−1, 1), ascending, each once, double ones included.
    pub fn zeros(&self) -> Vec<f64> {
        self.cubic_zeros().unwrap_or_else(|| self.scanned_zeros())
    }

    /// Pure He₃ units: with x = θm/(1−θ), O + 2k x + BB x² = 0; the discriminant k² − O·BB is exact for whole sums.
    fn cubic_zeros(&self) -> Option<Vec<f64>> {
        let pure = self.activation.degree() == Some(3)
            && (1..3).all(|p| {
                self.activation.hermite(p, 1.0).abs() < 1e-14 * self.activation.hermite(3, 1.0).abs()
            });
        if !pure {
            return None;
        }
        let Sums { product, overlap, square, .. } = self.sums;
        let discriminant = square * square - overlap * product;
        let mut roots = match discriminant {
            d if d < 0.0 => vec![],
            _ if product == 0.0 => vec![-overlap / (2.0 * square)],
            0.0 => vec![-square / product],
            d => {
                // q and O/q, BB/q avoid the cancellation of −k + √d.
                let q = -(square + d.sqrt());
                vec![q / product, overlap / q]
            }
        };
        roots.iter_mut().for_each(|x| *x *= (1.0 - self.theta) / self.theta);
        roots.retain(|m| m.abs() < 1.0);
        roots.sort_by(f64::total_cmp);
        Some(roots)
    }

    fn scanned_zeros(&self) -> Vec<f64> {
        let grid: Vec<f64> = (0..=SCAN).map(|i| 2.0 * i as f64 / SCAN as f64 - 1.0).collect();
        let values: Vec<f64> = grid.iter().map(|&m| self.at(m)).collect();
        let largest = values.iter().fold(0.0, |s: f64, v| s.max(v.abs()));
        let mut zeros: Vec<f64> = Vec::new();
        for i in 0..SCAN {
            if values[i] == 0.0 {
                zeros.push(grid[i]);
            } else if values[i] * values[i + 1] < 0.0
                && let Ok(root) = brent(|m| self.at(m), grid[i], grid[i + 1], 0.0)
            {
                zeros.push(root);
            }
            // |h| has a dip without a change of sign: a double zero if it goes down to rounding.
            if i > 0
                && values[i - 1] * values[i] > 0.0
                && values[i] * values[i + 1] > 0.0
                && values[i].abs() <= values[i - 1].abs()
                && values[i].abs() <= values[i + 1].abs()
            {
                let dip = minimum(|m| self.at(m).abs(), grid[i - 1], grid[i + 1], 1e-12);
                if dip.value <= 1e-12 * largest {
                    zeros.push(dip.at);
                }
            }
        }
        zeros.retain(|m| m.abs() < 1.0);
        zeros
    }

    /// τ(m0 → m1) = ∫ dm/(h(m)(1 − m²)), the time η t of gradient flow.
    pub fn flow_time(&self, from: f64, to: f64) -> Result<f64, Unreachable> {
        if let Some(&at) = [from, to].iter().find(|m| m.abs() >= 1.0) {
            return Err(Unreachable::End { at });
        }
        if from == to {
            return Ok(0.0);
        }
        let (low, high) = (from.min(to), from.max(to));
        let blocked = |m: f64| m >= low && m <= high;
        if let Some(at) = self.zeros().into_iter().find(|&m| blocked(m)) {
            return Err(Unreachable::Zero { at });
        }
        if self.at(from) * (to - from) < 0.0 {
            return Err(Unreachable::Direction { from, to });
        }
        // x = artanh m takes the factor 1 − m² out.
        Ok(integral(|x| 1.0 / self.at(x.tanh()), from.atanh(), to.atanh()))
    }

    /// m(τ) of the population flow from m0, at ascending times: as many of them as are reached in a bounded number of steps.
    pub fn flow(&self, from: f64, times: &[f64]) -> Vec<f64> {
        if from.abs() >= 1.0 {
            return vec![from; times.len()];
        }
        let mut field = FieldFn::new(1, |_, x: &[f64], out: &mut [f64]| out[0] = self.at(x[0].tanh()));
        let options =
            Options { relative: 1e-12, absolute: 1e-13, step_limit: Some(MOST_STEPS), ..Options::default() };
        let end = times.last().copied().unwrap_or(0.0);
        let solution = ode::solve(&mut field, 0.0, &[from.atanh()], end, times, &[], &options)
            .expect("a flow of one number from a finite start");
        solution.states.iter().map(|x| x[0].tanh()).collect()
    }
}

/// Steps of an integration. Flows of a few numbers need some thousand; one that needs more has a time scale far from the others.
const MOST_STEPS: u64 = 20_000;

/// Intervals of the scan for zeros; an analytic h has no finer structure at moderate θ.
const SCAN: usize = 2000;

/// ∫_a^b f by Gauss-Legendre panels, halved until two refinements agree to 1e-13.
fn integral(f: impl Fn(f64) -> f64, a: f64, b: f64) -> f64 {
    let rule = gauss_legendre(32);
    let with = |panels: usize| -> f64 {
        let half = 0.5 * (b - a) / panels as f64;
        (0..panels)
            .map(|p| {
                let centre = a + (2 * p + 1) as f64 * half;
                half * rule
                    .nodes
                    .iter()
                    .zip(&rule.weights)
                    .map(|(x, w)| w * f(centre + half * x))
                    .sum::<f64>()
            })
            .sum()
    };
    let mut last = with(1);
    for level in 1..16 {
        let next = with(1 << level);
        if (next - last).abs() <= 1e-13 * next.abs() {
            return next;
        }
        last = next;
    }
    last
}

/// Condition 3 of the convergence theorem over uniform signs (λ = 1): s h(s m) ≥ |h(0)|/2 on [0, 1], s = sign h(0)
/// (docs/derivations/low-rank-perturbation.md#eq-23).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConditionProbability {
    /// P(condition 3).
    pub holds: f64,
    /// P(h(0) = 0), where it fails.
    pub zero: f64,
}

/// Enumerates the four classes of sign pairs with their multinomial weights k!/(Π n!) 4^{−k}; the grid is m = i/200.
pub fn condition_probability(activation: &dyn Activation, units: usize, theta: f64) -> ConditionProbability {
    let kernel = Kernel::new(activation, 1.0);
    let slopes: Vec<[f64; 4]> = (0..=200)
        .map(|i| theta * f64::from(i) / 200.0)
        .map(|x| [x, -x, 1.0 - theta + x, 1.0 - theta - x].map(|rho| kernel.slope(rho)))
        .collect();
    let logs: Vec<f64> = std::iter::once(0.0)
        .chain((1..=units).scan(0.0, |sum: &mut f64, n| {
            *sum += (n as f64).ln();
            Some(*sum)
        }))
        .collect();
    let mut weights = std::collections::BTreeMap::<(i64, i64), f64>::new();
    for pp in 0..=units {
        for pm in 0..=units - pp {
            for mp in 0..=units - pp - pm {
                let mm = units - pp - pm - mp;
                let [a, b, c, d] = [pp, pm, mp, mm].map(|n| n as i64);
                let log = logs[units] - [pp, pm, mp, mm].map(|n| logs[n]).iter().sum::<f64>();
                let weight = (log - units as f64 * 4f64.ln()).exp();
                *weights.entry(((a + b - c - d) * (a - b + c - d), a + d - b - c)).or_default() += weight;
            }
        }
    }
    let mut result = ConditionProbability { holds: 0.0, zero: 0.0 };
    for ((product, overlap), weight) in weights {
        let sums = Sums::plain(units, product as f64, overlap as f64);
        let signal = Signal { activation, kernel: kernel.clone(), sums, theta, factor: 1.0 };
        if signal.vanishes_at_zero() {
            result.zero += weight;
            continue;
        }
        let start = signal.combine(slopes[0]);
        let sign = start.signum();
        // At −m the arguments ±θm exchange their places.
        let at = |s: &[f64; 4]| sign * signal.combine(if sign > 0.0 { *s } else { [s[1], s[0], s[3], s[2]] });
        if slopes.iter().all(|s| at(s) >= 0.5 * start.abs()) {
            result.holds += weight;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::super::network::Mode;
    use super::super::population::Instance;
    use super::*;
    use didact_math::activation::parse;
    use didact_math::linalg::Mat;

    const B: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -1.0, -1.0];
    const S: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 1.0, -1.0, -1.0, 1.0];

    #[test]
    fn the_closed_form_is_the_double_sum() {
        let lambda: Vec<f64> = (0..8).map(|i| 0.4 + 0.2 * f64::from(i)).collect();
        for name in ["relu", "He3", "quad", "sigmoid", "abs", "h4", "tanh"] {
            let mut network = Network::new(parse(name).unwrap(), lambda.clone(), 2.2, Mode::Normalised);
            network.output_scale = 0.7;
            let root = 8f64.sqrt();
            let it = Instance {
                network: network.clone(),
                gram: Mat::identity(8),
                loading: B.iter().map(|b| b / root).collect(),
                student_loading: S.iter().map(|b| b / root).collect(),
            };
            let signal = Signal::of(&network, &B, &S);
            for m in [-0.8, 0.0, 0.5, 1.0] {
                let (closed, sum) = (signal.at(m), it.signal(&[m])[0]);
                assert!((closed - sum).abs() < 1e-11 * (1.0 + sum.abs()), "{name} at {m}: {closed} {sum}");
            }
        }
    }

    #[test]
    fn cubic_and_quadratic_units_are_polynomials() {
        let (k, bb, o, theta) = (8.0f64, 16.0, 4.0, 0.5f64);
        let (he3, quad) = (parse("He3").unwrap(), parse("quad").unwrap());
        let sums = Sums::plain(8, bb, o);
        for m in [-0.9f64, -0.2, 0.6] {
            let cubic = 36.0
                * theta
                * (o * (1.0 - theta).powi(2)
                    + 2.0 * k * theta * (1.0 - theta) * m
                    + bb * (theta * m).powi(2));
            let square = 8.0 * theta * (o * (1.0 - theta) + k * k * theta * m);
            assert!((Signal::new(&*he3, sums, theta).at(m) - cubic).abs() < 1e-12 * cubic.abs().max(1.0));
            assert!((Signal::new(&*quad, sums, theta).at(m) - square).abs() < 1e-12 * square.abs().max(1.0));
        }
    }

    #[test]
    fn zeros_are_found_once_each_double_ones_too() {
        let he3 = parse("He3").unwrap();
        // k² = O·BB: one double zero at x = −k/BB.
        assert_eq!(Signal::new(&*he3, Sums::plain(8, 16.0, 4.0), 0.5).zeros(), vec![-0.5]);
        // The scan finds the same double zero when it does not know the formula.
        let scanned = Signal::new(&*he3, Sums::plain(8, 16.0, 4.0), 0.5).scanned_zeros();
        assert!(scanned.len() == 1 && (scanned[0] + 0.5).abs() < 1e-6, "{scanned:?}");
        let two = Signal::new(&*he3, Sums::plain(16, -12.0, 4.0), 0.8);
        assert_eq!(two.zeros().len(), two.scanned_zeros().len());
        for (a, b) in two.zeros().iter().zip(two.scanned_zeros()) {
            assert!((a - b).abs() < 1e-12 && two.at(*a).abs() < 1e-10);
        }
    }

    #[test]
    fn times_across_a_zero_are_unreachable_not_numbers() {
        let relu = parse("relu").unwrap();
        let signal = Signal::new(&*relu, Sums::plain(8, 16.0, 4.0), 0.5);
        let zero = signal.zeros()[0];
        assert!(matches!(signal.flow_time(-0.9, 0.5), Err(Unreachable::Zero { at }) if at == zero));
        assert!(matches!(signal.flow_time(0.5, 0.1), Err(Unreachable::Direction { .. })));
        assert!(matches!(signal.flow_time(0.0, 1.0), Err(Unreachable::End { .. })));
        assert!(signal.flow_time(-0.9, -0.95).unwrap() > 0.0);
        let tau = signal.flow_time(0.05, 0.9).unwrap();
        assert!((signal.flow(0.05, &[tau])[0] - 0.9).abs() < 1e-10);
    }

    #[test]
    fn the_probability_of_condition_three_is_that_of_brute_force() {
        for (name, theta) in [("relu", 0.5), ("He3", 0.8), ("quad", 0.3), ("relu", 0.2)] {
            let activation = parse(name).unwrap();
            let k = 4;
            let (mut holds, mut zero) = (0.0, 0.0);
            for bits in 0..256usize {
                let signs = |shift: usize| -> Vec<f64> {
                    (0..k).map(|i| if bits >> (shift + i) & 1 == 1 { 1.0 } else { -1.0 }).collect()
                };
                let signal = Signal::new(&*activation, Sums::of(&[1.0; 4], &signs(0), &signs(4)), theta);
                let start = signal.at(0.0);
                if signal.vanishes_at_zero() {
                    zero += 1.0 / 256.0;
                } else if (0..=200).all(|i| {
                    let s = start.signum();
                    s * signal.at(s * f64::from(i) / 200.0) >= 0.5 * start.abs()
                }) {
                    holds += 1.0 / 256.0;
                }
            }
            let got = condition_probability(&*activation, k, theta);
            assert!((got.holds - holds).abs() < 1e-12 && (got.zero - zero).abs() < 1e-12, "{name}: {got:?}");
        }
    }

    #[test]
    fn exact_cancellations_of_the_signal_are_seen() {
        // ReLU at θ = 1/2: 3 BB + O = 0 cancels exactly (docs/derivations/low-rank-perturbation.md#s4-4).
        let relu = parse("relu").unwrap();
        for (k, zero) in [(5, 0.1171875), (16, 0.0628312)] {
            assert!((condition_probability(&*relu, k, 0.5).zero - zero).abs() < 6e-8, "{k}");
        }
        assert!((condition_probability(&*parse("He3").unwrap(), 16, 0.8).holds - 0.719486).abs() < 6e-7);
    }

    #[test]
    fn near_the_single_index_limit_the_signal_is_that_of_one_neuron() {
        // θ → 1: h → 2 [(k² + BB)/2 K′(m) − (k² − BB)/2 K′(−m)].
        for name in ["relu", "He3", "sigmoid"] {
            let activation = parse(name).unwrap();
            let kernel = Kernel::new(&*activation, 1.0);
            let h = Signal::new(&*activation, Sums::plain(8, 16.0, 4.0), 1.0 - 1e-9).at(0.4);
            let limit = (64.0 + 16.0) * kernel.slope(0.4) - (64.0 - 16.0) * kernel.slope(-0.4);
            assert!((h - limit).abs() < 1e-6 * limit.abs(), "{name}: {h} {limit}");
        }
    }

    #[test]
    fn impossible_sums_are_known() {
        assert!(sums_are_possible(8, 16, 4) && sums_are_possible(64, 64, 8));
        assert!(!sums_are_possible(8, 64, 4) && !sums_are_possible(8, 16, 5));
    }
}
