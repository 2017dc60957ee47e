//! Norm learning, the plateau and the way out of it, for gradient flow from small overlaps:
//! docs/derivations/quadratic-networks.md#s4.

/// p and p*, as the formulas use them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::quadratic) struct Widths {
    /// p.
    pub student: f64,
    /// p*.
    pub teacher: f64,
}

impl Widths {
    pub(in crate::quadratic) fn new(student: usize, teacher: usize) -> Self {
        Self { student: student as f64, teacher: teacher as f64 }
    }

    /// ω_ρ = 8/(p p*): overlaps with the teacher grow as exp(ω_ρ t) on the plateau
    /// (docs/derivations/quadratic-networks.md#eq-17).
    pub(in crate::quadratic) fn growth(self) -> f64 {
        8.0 / (self.student * self.teacher)
    }

    /// ω_Q = 16/(p (p+2)): overlaps between students *decay* as exp(−ω_Q t) there
    /// (erratum E1, docs/derivations/quadratic-networks.md#e1).
    pub(in crate::quadratic) fn decay(self) -> f64 {
        16.0 / (self.student * (self.student + 2.0))
    }

    /// Q̄ = p/(p+2), the squared norm of every student on the plateau.
    pub(in crate::quadratic) fn plateau_norm(self) -> f64 {
        self.student / (self.student + 2.0)
    }

    /// R_pl = 2/p* + 2/(p+2).
    pub(in crate::quadratic) fn plateau_risk(self) -> f64 {
        2.0 / self.teacher + 2.0 / (self.student + 2.0)
    }

    /// R at Q = 1, ρ = 0.
    pub(in crate::quadratic) fn initial_risk(self) -> f64 {
        2.0 / self.teacher + 2.0 / self.student
    }

    /// The risk that training can reach: 0 for p ≥ p*, else 2 (p*+2)(p*−p)/(p*² (p+2))
    /// (docs/derivations/quadratic-networks.md#eq-14a).
    pub(in crate::quadratic) fn least_risk(self) -> f64 {
        staircase(self, self.student.min(self.teacher))
    }

    /// Norms and overlaps while the norms are learned, from uniform norms q0
    /// (docs/derivations/quadratic-networks.md#eq-16):
    ///
    ///   q(t) = Q̄ x0/(x0 + (1 − x0) e^{−8t/p}),  x0 = q0/Q̄,   ρ(t)/ρ(0) = √(q(t)/q0) e^{ω_ρ t}.
    pub(in crate::quadratic) fn norm_learning(self, norm: f64, time: f64) -> (f64, f64) {
        let x = norm / self.plateau_norm();
        let q = self.plateau_norm() * x / (x + (1.0 - x) * (-8.0 * time / self.student).exp());
        (q, (q / norm).sqrt() * (self.growth() * time).exp())
    }

    /// ⟨(R(0) − R(t))/R(0)⟩ from the plateau with overlaps N(0, ε²): 4 ε² (e^{2 ω_ρ t} − 1)/R_pl
    /// (docs/derivations/quadratic-networks.md#eq-19).
    pub(in crate::quadratic) fn loss_reduction(self, deviation: f64, time: f64) -> f64 {
        4.0 * deviation * deviation * (2.0 * self.growth() * time).exp_m1() / self.plateau_risk()
    }

    /// Time to a loss drop of δ R_pl for n2 = ‖ρ(0)‖², from the plateau and from Q(0) = 1
    /// (docs/derivations/quadratic-networks.md#eq-20).
    pub(in crate::quadratic) fn escape_times(self, squared_overlap: f64, drop: f64) -> (f64, f64) {
        let Self { student: p, teacher } = self;
        let scale = p * teacher / 16.0;
        let ratio = drop * self.plateau_risk() * p * teacher / (4.0 * squared_overlap);
        (scale * ratio.ln_1p(), scale * (ratio * (p + 2.0) / p).ln())
    }

    /// Mean and spread of the time from Q(0) = 1 over overlaps N(0, ε²)
    /// (docs/derivations/quadratic-networks.md#eq-21).
    pub(in crate::quadratic) fn escape_statistics(self, deviation: f64, drop: f64) -> (f64, f64) {
        let Self { student: p, teacher } = self;
        let (scale, shape) = (p * teacher / 16.0, p * teacher / 2.0);
        let level = drop * self.plateau_risk() * teacher * (p + 2.0) / 4.0;
        let mean = level.ln() - (2.0 * deviation * deviation).ln() - digamma(shape);
        (scale * mean, scale * trigamma(shape).sqrt())
    }

    /// R t², q_j t and ‖ρ − ρ̄‖ t for t → ∞ at p > p* (docs/derivations/quadratic-networks.md#eq-12): power laws, one
    /// surplus norm j.
    pub(in crate::quadratic) fn tail(self) -> (f64, f64, f64) {
        let Self { student: p, teacher } = self;
        let surplus = p - teacher;
        let norm = p * p * (teacher + 2.0) / (16.0 * (p + 2.0));
        let distance = teacher * surplus * p.powf(1.5) / (32.0 * (p + 2.0));
        (surplus * norm / 8.0, norm, distance)
    }
}

/// R_s = 2 (p*−s)(p*+p−s+2)/(p*² (p+2)): the risk with s directions learned and all other students on the plateau
/// (docs/derivations/quadratic-networks.md#eq-21a).
pub(in crate::quadratic) fn staircase(widths: Widths, learned: f64) -> f64 {
    let Widths { student: p, teacher } = widths;
    2.0 * (teacher - learned) * (teacher + p - learned + 2.0) / (teacher * teacher * (p + 2.0))
}

/// ψ(x), x > 0: recurrence up to 10, then the asymptotic series (Abramowitz & Stegun 6.3.18), to rounding.
fn digamma(x: f64) -> f64 {
    let (mut shift, mut x) = (0.0, x);
    while x < 10.0 {
        shift -= 1.0 / x;
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let series = y
        * (1.0 / 12.0
            - y * (1.0 / 120.0
                - y * (1.0 / 252.0 - y * (1.0 / 240.0 - y * (1.0 / 132.0 - y * 691.0 / 32760.0)))));
    shift + x.ln() - 0.5 / x - series
}

/// ψ'(x), x > 0 (Abramowitz & Stegun 6.4.12).
fn trigamma(x: f64) -> f64 {
    let (mut shift, mut x) = (0.0, x);
    while x < 10.0 {
        shift += 1.0 / (x * x);
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let series = y
        * (1.0 / 6.0
            - y * (1.0 / 30.0 - y * (1.0 / 42.0 - y * (1.0 / 30.0 - y * (5.0 / 66.0 - y * 691.0 / 2730.0)))));
    shift + (1.0 + 0.5 / x + series) / x
}

#[cfg(test)]
mod tests {
    use super::*;
    use didact_math::random::statistics::Moments;
    use didact_math::random::{RngAddress, Stream};

    #[test]
    fn digamma_and_trigamma_have_their_known_values() {
        let euler = 0.577_215_664_901_532_9;
        assert!((digamma(1.0) + euler).abs() < 1e-14);
        assert!((digamma(0.5) + euler + 2.0 * 2f64.ln()).abs() < 1e-14);
        let basel = std::f64::consts::PI.powi(2) / 6.0;
        assert!((trigamma(1.0) - basel).abs() < 1e-14);
        assert!((trigamma(0.5) - 3.0 * basel).abs() < 1e-13);
        assert!((trigamma(12.5) - (trigamma(11.5) - 1.0 / (11.5 * 11.5))).abs() < 1e-15);
    }

    #[test]
    fn escape_statistics_are_those_of_random_starts() {
        let (widths, eps, drop) = (Widths::new(3, 2), 1e-3, 0.01);
        let (mean, spread) = widths.escape_statistics(eps, drop);
        let mut stream = Stream::at(RngAddress { seed: 4, replica: 0, step: 0, lane: 0 });
        let mut moments = Moments::default();
        for _ in 0..100_000 {
            let n2: f64 = (0..6).map(|_| (eps * stream.normal()).powi(2)).sum();
            moments.push(widths.escape_times(n2, drop).1);
        }
        assert!((moments.mean() - mean).abs() < 4.0 * moments.standard_error());
        // The relative error of a standard deviation is near 1/sqrt(2n), more for a skewed law: 1% is > 3 of them.
        assert!((moments.variance().sqrt() / spread - 1.0).abs() < 0.01);
    }

    #[test]
    fn the_staircase_starts_at_the_plateau_and_ends_at_the_least_risk() {
        let widths = Widths::new(6, 3);
        assert!((staircase(widths, 0.0) - widths.plateau_risk()).abs() < 1e-15);
        for (s, risk) in [(0.0, 0.916667), (1.0, 0.555556), (2.0, 0.25), (3.0, 0.0)] {
            assert!((staircase(widths, s) - risk).abs() < 1e-6, "{s}");
        }
        assert!((Widths::new(2, 3).least_risk() - 10.0 / 36.0).abs() < 1e-15);
    }

    #[test]
    fn norms_relax_to_the_plateau_from_above_and_below() {
        for norm in [0.1, 1.0, 3.0] {
            let (q, grown) = Widths::new(4, 2).norm_learning(norm, 40.0);
            assert!((q - 2.0 / 3.0).abs() < 1e-12);
            assert!((grown / ((2.0 / 3.0 / norm).sqrt() * 40f64.exp()) - 1.0).abs() < 1e-12);
        }
    }
}
