//! What a finite learning rate changes: the plateau, its stability, the fastest escape
//! (docs/derivations/quadratic-networks.md#s5).

use super::plateau::Widths;

/// h = 2η/p, k = (p+4)/(p+2), c = 1 + 2/p*: the plateau is Q = x p/(p+2) with h k x² − (1 + 2h) x + 1 + h c = 0
/// (docs/derivations/quadratic-networks.md#eq-22).
#[derive(Debug, Clone, Copy)]
struct Plateau {
    k: f64,
    c: f64,
}

impl Plateau {
    fn of(widths: Widths) -> Self {
        let p = widths.student;
        Self { k: (p + 4.0) / (p + 2.0), c: 1.0 + 2.0 / widths.teacher }
    }

    /// The smaller root x, stable against moving norms; `None` when norms run away.
    fn root(self, h: f64) -> Option<f64> {
        let discriminant = (1.0 + 2.0 * h).powi(2) - 4.0 * h * self.k * (1.0 + h * self.c);
        let x = 2.0 * (1.0 + h * self.c) / (1.0 + 2.0 * h + discriminant.max(0.0).sqrt());
        (discriminant >= 0.0).then_some(x)
    }

    /// The largest h with a root: (1 + 2h)² = 4 h k (1 + h c).
    fn largest(self) -> f64 {
        let k = self.k - 1.0;
        0.5 / (k + (k * k + self.k * self.c - 1.0).sqrt())
    }
}

/// The plateau at a learning rate below [`Rates::plateau`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::quadratic) struct FinitePlateau {
    /// Q̄_η.
    pub norm: f64,
    /// Γ: ρ grows as exp(Γ α), the loss drop as exp(2 Γ α). Negative when the plateau is stable.
    pub growth: f64,
    /// V = ⟨e² λ_k² u_l²⟩, the variance of the noise that makes overlaps grow from 0 at finite N (docs/derivations/quadratic-networks.md#eq-23).
    pub noise_variance: f64,
    /// κ (`kappa`) = 8 η² V/(p² Γ), the overlap that the noise stands for at the start: N⟨ρ²⟩(α) = (N ρ(0)² + κ) e^{2Γα} − κ.
    pub noise_floor: f64,
}

impl Widths {
    /// The plateau Q = Q̄_η 1, ρ = 0 at learning rate η; `None` where norms run away.
    pub(in crate::quadratic) fn finite_plateau(self, learning_rate: f64) -> Option<FinitePlateau> {
        let Self { student: p, teacher } = self;
        let (plateau, h) = (Plateau::of(self), 2.0 * learning_rate / p);
        let x = plateau.root(h)?;
        let norm = x * self.plateau_norm();
        let growth = 2.0 * h * (plateau.c - x);
        let noise_variance = norm
            * ((teacher + 2.0) * (teacher + 4.0) / (teacher * teacher) - 2.0 * x * (teacher + 2.0) / teacher
                + x * x * plateau.k);
        let noise_floor = 8.0 * (learning_rate / p).powi(2) * noise_variance / growth;
        Some(FinitePlateau { norm, growth, noise_variance, noise_floor })
    }

    /// η_sol = p p*/(4 (p*+2)): perfect students are linearly stable below it, p ≥ p*
    /// (docs/derivations/quadratic-networks.md#eq-22e).
    pub(in crate::quadratic) fn solution_rate(self) -> f64 {
        self.student * self.teacher / (4.0 * (self.teacher + 2.0))
    }

    /// η_pl: above it there is no plateau, norms run away (docs/derivations/quadratic-networks.md#eq-22b).
    pub(in crate::quadratic) fn plateau_rate(self) -> f64 {
        0.5 * self.student * Plateau::of(self).largest()
    }

    /// η_0 where Γ = 0, if that happens below η_pl: p p*(p+2)/(2 (p*+2)(p+p*+4))
    /// (docs/derivations/quadratic-networks.md#eq-22c).
    pub(in crate::quadratic) fn stable_plateau_rate(self) -> Option<f64> {
        let Self { student: p, teacher } = self;
        let rate = p * teacher * (p + 2.0) / (2.0 * (teacher + 2.0) * (p + teacher + 4.0));
        let (Plateau { k, c }, h) = (Plateau::of(self), 2.0 * rate / p);
        (1.0 + h * c > h * k * c * c).then_some(rate)
    }

    /// η_fast and Γ_max: the fastest escape from the plateau (docs/derivations/quadratic-networks.md#eq-22d).
    pub(in crate::quadratic) fn fastest_escape(self) -> (f64, f64) {
        let Plateau { k, c } = Plateau::of(self);
        let a = k * (1.0 + c) - 2.0;
        let x = (c * (k - 1.0) + (c * c * (k - 1.0).powi(2) + a * c * (c - 1.0)).sqrt()) / a;
        let denominator = k * x * x - 2.0 * x + c;
        (0.5 * self.student * (x - 1.0) / denominator, 2.0 * (x - 1.0) * (c - x) / denominator)
    }

    /// d ln R/dα at the end of learning, p = p*:  −(16 η/(p p*)) (1 − η/η_sol)
    /// (docs/derivations/quadratic-networks.md#eq-14).
    pub(in crate::quadratic) fn final_rate(self, learning_rate: f64) -> f64 {
        -2.0 * self.growth() * learning_rate * (1.0 - learning_rate / self.solution_rate())
    }

    /// What multiplies the R t² of docs/derivations/quadratic-networks.md#eq-12 at a finite learning rate:
    /// [1 − 8η/(p p*)]/[1 − η/η_sol] (docs/derivations/quadratic-networks.md#eq-13).
    pub(in crate::quadratic) fn tail_factor(self, learning_rate: f64) -> f64 {
        (1.0 - self.growth() * learning_rate) / (1.0 - learning_rate / self.solution_rate())
    }

    /// Growth of ρ per unit α with rows kept at norm 1, at Q = 1, ρ = 0:
    ///
    ///   8 η/(p p*) − (8 η²/p²)(2/p* + 2/p + 8/p²)
    ///
    /// (docs/derivations/quadratic-networks.md#eq-23a).
    pub(in crate::quadratic) fn spherical_growth(self, learning_rate: f64) -> f64 {
        let p = self.student;
        self.growth() * learning_rate
            - 8.0 * (learning_rate / p).powi(2) * (self.initial_risk() + 8.0 / (p * p))
    }

    /// The largest learning rate at which rows of norm 1 escape: p/[p* (2/p* + 2/p + 8/p²)].
    pub(in crate::quadratic) fn spherical_rate(self) -> f64 {
        let p = self.student;
        p / (self.teacher * (self.initial_risk() + 8.0 / (p * p)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::state::State;
    use super::*;
    use didact_math::linalg::{Mat, eigenvalues_general};
    use didact_math::roots::minimum;

    /// p, p*, η_sol, η_pl, η_fast, Γ_max: the table of docs/derivations/quadratic-networks.md#s5.
    const TABLE: [(usize, usize, [f64; 4]); 5] = [
        (1, 1, [0.083_333_3, 0.090_094_9, 0.076_184_5, 0.414_213_6]),
        (2, 1, [0.166_666_7, 0.205_213_1, 0.172_546_4, 0.463_850_1]),
        (3, 3, [0.45, 0.462_386_4, 0.294_615_2, 0.154_700_5]),
        (6, 3, [0.9, 1.135_988_4, 0.722_634_1, 0.187_542_2]),
        (10, 3, [1.5, 2.168_858_7, 1.377_840_7, 0.212_678_1]),
    ];

    #[test]
    fn learning_rates_are_those_of_the_table_and_of_a_search() {
        for (p, teachers, [sol, pl, fast, best]) in TABLE {
            let widths = Widths::new(p, teachers);
            let (rate, growth) = widths.fastest_escape();
            for (got, want) in
                [(widths.solution_rate(), sol), (widths.plateau_rate(), pl), (rate, fast), (growth, best)]
            {
                assert!((got - want).abs() < 6e-8, "{p} {teachers}: {got} {want}");
            }
            let slow = |eta: f64| widths.finite_plateau(eta).map_or(0.0, |f| -f.growth);
            let found = minimum(slow, 0.0, pl, 1e-9);
            assert!((found.at - rate).abs() < 1e-6 && (found.value + growth).abs() < 1e-12);
        }
    }

    #[test]
    fn the_finite_rate_plateau_is_a_fixed_point_of_the_norms() {
        for (p, teachers, eta) in [(3, 3, 0.3), (6, 3, 0.6), (1, 2, 0.05), (4, 1, 0.2)] {
            let widths = Widths::new(p, teachers);
            let found = widths.finite_plateau(eta).unwrap();
            let state = State { rho: Mat::zeros(p, teachers), q: Mat::identity(p).scaled(found.norm) };
            assert!(state.rate_q(eta, 0.0, None).max_abs() < 1e-14, "{p} {teachers}");
            // Γ is the rate of a small overlap: docs/derivations/quadratic-networks.md#eq-3 is linear in ρ.
            let mut moved = state.clone();
            moved.rho[(0, 0)] = 1.0;
            let growth = eta * moved.flow_rho()[(0, 0)];
            assert!((growth - found.growth).abs() < 1e-14);
        }
        assert!(Widths::new(3, 3).finite_plateau(0.463).is_none());
    }

    #[test]
    fn the_plateau_is_stable_beyond_eta_0_where_that_exists() {
        for (p, teachers, exists) in [
            (1, 3, true),
            (2, 5, true),
            (3, 3, true),
            (6, 3, true),
            (1, 1, false),
            (2, 2, false),
            (4, 1, false),
        ] {
            let widths = Widths::new(p, teachers);
            assert_eq!(widths.stable_plateau_rate().is_some(), exists, "{p} {teachers}");
            if let Some(rate) = widths.stable_plateau_rate() {
                assert!(widths.finite_plateau(0.99 * rate).unwrap().growth > 0.0);
                assert!(widths.finite_plateau(1.01 * rate).unwrap().growth < 0.0);
            }
        }
    }

    /// Largest real part of the eigenvalues of the linearised equations at a perfect student, its manifold excluded.
    fn stability(p: usize, teachers: usize, eta: f64) -> f64 {
        // Perturbations of ρ and of the upper triangle of Q, by differences of the equations of motion
        // (docs/derivations/quadratic-networks.md#eq-3, docs/derivations/quadratic-networks.md#eq-4).
        let start = Mat::from_fn(p, teachers, |i, j| f64::from(i == j));
        let rho = start.scaled((p as f64 / teachers as f64).sqrt());
        let end = State { q: rho.gram(), rho };
        let pairs: Vec<(usize, usize)> = (0..p).flat_map(|i| (i..p).map(move |j| (i, j))).collect();
        let size = p * teachers + pairs.len();
        let rate = |state: &State| -> Vec<f64> {
            let (rho, q) = (state.flow_rho().scaled(eta), state.rate_q(eta, 0.0, None));
            rho.as_slice().iter().copied().chain(pairs.iter().map(|&at| q[at])).collect()
        };
        let mut jacobian = Mat::zeros(size, size);
        let h = 1e-6;
        for column in 0..size {
            let moved = |by: f64| {
                let mut state = end.clone();
                if column < p * teachers {
                    state.rho.as_mut_slice()[column] += by;
                } else {
                    let (i, j) = pairs[column - p * teachers];
                    state.q[(i, j)] += by;
                    state.q[(j, i)] = state.q[(i, j)];
                }
                rate(&state)
            };
            for (row, (a, b)) in moved(h).iter().zip(moved(-h)).enumerate() {
                jacobian[(row, column)] = (a - b) / (2.0 * h);
            }
        }
        eigenvalues_general(&jacobian).iter().map(|z| z.0).fold(f64::NEG_INFINITY, f64::max)
    }

    #[test]
    fn perfect_students_lose_stability_at_the_solution_rate() {
        for (p, teachers) in [(1, 1), (2, 1), (2, 2), (3, 2), (4, 3)] {
            let rate = Widths::new(p, teachers).solution_rate();
            // The growth 1% above is 0.04/(p*+2). Below it zero modes remain; those of surplus students are defective, so
            // that differences with errors near 1e-9 move them by the root of that.
            let growth = 0.04 / (teachers as f64 + 2.0);
            assert!(stability(p, teachers, 0.99 * rate) < 0.1 * growth, "{p} {teachers}");
            let above = stability(p, teachers, 1.01 * rate);
            assert!((above / growth - 1.0).abs() < 0.05, "{p} {teachers}: {above} {growth}");
        }
    }

    #[test]
    fn phase_retrieval_has_its_known_rates() {
        let widths = Widths::new(1, 1);
        assert_eq!(widths.growth(), 8.0);
        assert!((widths.solution_rate() - 1.0 / 12.0).abs() < 1e-16);
    }
}
