//! How the student space turns towards the teacher space, and which solution it ends in:
//! docs/derivations/quadratic-networks.md#s3-1 and docs/derivations/quadratic-networks.md#s6.

use super::state::State;
use didact_math::linalg::{Mat, svd, symmetric_eigen};
use didact_model::constraint::pseudo_inverse;

/// K = ρᵀ Q⁻¹ ρ (p* × p*): its eigenvalues are the squared cosines between student and teacher space. Dependent
/// students span the same space without those that depend: Q⁻¹ is the inverse on the range of Q.
pub fn alignment(state: &State) -> Mat {
    let k = state.rho.transpose().times(&pseudo_inverse(&state.q)).times(&state.rho);
    Mat::from_fn(k.rows(), k.cols(), |i, j| 0.5 * (k[(i, j)] + k[(j, i)]))
}

/// K(t) of the gradient flow from any K(0), t = η α: every eigenvector is conserved, and every eigenvalue k obeys
///
///   dk/dt = ω k (1 − k),   k(t) = k/(k + (1 − k) e^{−ω t}),   ω = 16/(p p*)
///
/// (docs/derivations/quadratic-networks.md#eq-10).
pub fn alignment_at(start: &Mat, students: usize, time: f64) -> Mat {
    let decay = (-16.0 / (students * start.rows()) as f64 * time).exp();
    let eigen = symmetric_eigen(start);
    let grown = |k: f64| {
        let k = k.clamp(0.0, 1.0);
        // At k = 0 the denominator may underflow to 0 after a long time; 0 stays 0.
        if k == 0.0 { 0.0 } else { k / (k + (1.0 - k) * decay) }
    };
    let values: Vec<f64> = eigen.values.iter().map(|&k| grown(k)).collect();
    eigen.vectors.times(&Mat::diagonal(&values)).times(&eigen.vectors.transpose())
}

/// The polar factor S = U Vᵀ of ρ = U diag(s) Vᵀ: for p ≥ p* it is ρ (ρᵀρ)^{−1/2}, else (ρ ρᵀ)^{−1/2} ρ
/// (docs/derivations/quadratic-networks.md#eq-25).
#[derive(Debug, Clone, PartialEq)]
pub struct Polar {
    /// S, p × p*.
    pub factor: Mat,
    /// s_i, descending.
    pub singular_values: Vec<f64>,
}

/// Singular values below this fraction of the largest leave S undetermined.
const RANK_TOLERANCE: f64 = 1e-8;

impl Polar {
    /// Number of singular values that count.
    pub fn rank(&self) -> usize {
        let largest = self.singular_values.first().copied().unwrap_or(0.0);
        self.singular_values.iter().filter(|s| **s > RANK_TOLERANCE * largest).count()
    }

    /// True when a direction of the smaller space is missing: S is not determined by ρ.
    pub fn is_rank_deficient(&self) -> bool {
        self.rank() < self.singular_values.len()
    }
}

/// The polar factor, by singular values: ρᵀρ is never inverted.
pub fn polar_factor(rho: &Mat) -> Polar {
    let svd = svd(rho);
    Polar { factor: svd.left.times(&svd.right.transpose()), singular_values: svd.values }
}

/// Where learning from ρ(0), Q(0) = 1 ends: the solution closest to the start for p ≥ p*
/// (docs/derivations/quadratic-networks.md#eq-25), the minimum of the risk for p < p*
/// (docs/derivations/quadratic-networks.md#eq-14a):
///
///   ρ̄ = √g S,   Q̄ = g S Sᵀ,   g = p/p* for p ≥ p*,   g = p (p*+2)/(p* (p+2)) for p < p*.
pub fn closest_solution(rho: &Mat) -> State {
    let (p, teachers) = (rho.rows() as f64, rho.cols() as f64);
    let scale = if p >= teachers { p / teachers } else { p * (teachers + 2.0) / (teachers * (p + 2.0)) };
    let rho = polar_factor(rho).factor.scaled(scale.sqrt());
    State { q: rho.gram(), rho }
}

/// min |W − W(0)|²/N over all perfect students:  p + tr Q(0) − 2 √(p/p*) Σ_i s_i(ρ(0))
/// (docs/derivations/quadratic-networks.md#eq-26).
pub(in crate::quadratic) fn squared_distance_to_solutions(start: &State) -> f64 {
    let (p, teachers) = (start.rho.rows() as f64, start.rho.cols() as f64);
    let sum: f64 = polar_factor(&start.rho).singular_values.iter().sum();
    p + start.q.trace() - 2.0 * (p / teachers).sqrt() * sum
}

/// Root mean square of ‖δS‖ when independent noise of variance σ² is added to every entry of ρ = U diag(s) Vᵀ, to first
/// order in σ, p ≥ p*:
///
///   ⟨‖δS‖²⟩ = σ² [Σ_{i<j} 4/(s_i + s_j)² + (p − p*) Σ_i 1/s_i²]
///
/// (docs/derivations/quadratic-networks.md#eq-26a). On the plateau SGD adds such noise with σ² = κ/(N Q̄) in units of
/// the start (κ: docs/derivations/quadratic-networks.md#eq-23), so S moves although the equations conserve it
/// (erratum E11, docs/derivations/quadratic-networks.md#e11).
pub(in crate::quadratic) fn polar_drift(rho: &Mat, variance: f64) -> f64 {
    let s = polar_factor(rho).singular_values;
    let turns: f64 = (0..s.len())
        .flat_map(|i| (0..i).map(move |j| (i, j)))
        .map(|(i, j)| 4.0 / (s[i] + s[j]).powi(2))
        .sum();
    let surplus = rho.rows().saturating_sub(rho.cols()) as f64;
    (variance * (turns + surplus * s.iter().map(|s| 1.0 / (s * s)).sum::<f64>())).sqrt()
}

/// ‖Q A − A Q‖ for A = ρ ρᵀ, the largest entry: zero where S is conserved and learning ends in the closest solution
/// (erratum E8, docs/derivations/quadratic-networks.md#e8).
pub(in crate::quadratic) fn commutator(start: &State) -> f64 {
    let product = start.q.times(&start.rho.gram());
    let mut difference = product.transpose();
    difference.add_scaled(-1.0, &product);
    difference.max_abs()
}

#[cfg(test)]
mod tests {
    use super::super::state::tests::random_state;
    use super::*;
    use didact_math::linalg::dot;
    use didact_math::random::{RngAddress, Stream, orthonormal_rows};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn cosines_lie_between_zero_and_one_and_grow(p in 1usize..5, teachers in 1usize..4, seed in 0u64..1000) {
            let state = random_state(p, teachers, 1.0, seed);
            let now = alignment(&state);
            let later = alignment_at(&now, p, 0.3);
            let (a, b) = (symmetric_eigen(&now).values, symmetric_eigen(&later).values);
            for (a, b) in a.iter().zip(&b) {
                prop_assert!(*a > -1e-10 && *b < 1.0 + 1e-10 && *b > a - 1e-10, "{} {}", a, b);
            }
            // The rate at time 0 is ω K (1 − K).
            let (h, omega) = (1e-6, 16.0 / (p * teachers) as f64);
            let mut rate = alignment_at(&now, p, h);
            rate.add_scaled(-1.0, &now);
            let mut expected = now.clone();
            expected.add_scaled(-1.0, &now.times(&now));
            rate.add_scaled(-h * omega, &expected);
            prop_assert!(rate.max_abs() < (h * omega).powi(2));
        }
    }

    #[test]
    fn no_perfect_student_is_closer_than_the_polar_one() {
        // The distance of docs/derivations/quadratic-networks.md#eq-26 against random orthonormal S:
        // |W − W(0)|² = p + tr Q − 2 √(p/p*) tr(Sᵀ ρ).
        let state = random_state(4, 2, 0.3, 8);
        let closest = squared_distance_to_solutions(&state);
        let root = 2.0_f64.sqrt();
        let distance = |s: &Mat| 4.0 + state.q.trace() - 2.0 * root * dot(s.as_slice(), state.rho.as_slice());
        let best = polar_factor(&state.rho).factor;
        assert!((distance(&best) - closest).abs() < 1e-12);
        let mut stream = Stream::at(RngAddress { seed: 2, replica: 0, step: 0, lane: 0 });
        for _ in 0..10_000 {
            let rows = orthonormal_rows(&mut stream, 2, 4);
            let s = Mat::from_fn(4, 2, |i, j| rows[j * 4 + i]);
            assert!(distance(&s) >= closest - 1e-12);
        }
    }

    #[test]
    fn the_predicted_end_is_stationary_and_has_the_predicted_risk() {
        for (p, teachers) in [(6, 3), (3, 3), (2, 4), (1, 3)] {
            let start = random_state(p, teachers, 0.1, 4);
            let end = closest_solution(&start.rho);
            assert!(end.flow_rho().max_abs() < 1e-13 && end.flow_q().max_abs() < 1e-13, "{p} {teachers}");
            let (wide, target) = (p as f64, teachers as f64);
            let missing = (target - wide).max(0.0);
            let risk = 2.0 * (target + 2.0) * missing / (target * target * (wide + 2.0));
            assert!((end.risk() - risk).abs() < 1e-13, "{p} {teachers}: {}", end.risk());
        }
    }

    #[test]
    fn the_drift_of_the_polar_factor_is_that_of_noisy_overlaps() {
        let rho = random_state(4, 2, 1.0, 6).rho;
        let (polar, sigma) = (polar_factor(&rho).factor, 1e-3);
        let mut stream = Stream::at(RngAddress { seed: 7, replica: 0, step: 0, lane: 0 });
        let mut moments = didact_math::random::statistics::Moments::default();
        for _ in 0..4000 {
            let noisy = Mat::from_fn(4, 2, |i, j| rho[(i, j)] + sigma * stream.normal());
            let mut moved = polar_factor(&noisy).factor;
            moved.add_scaled(-1.0, &polar);
            moments.push(dot(moved.as_slice(), moved.as_slice()));
        }
        let expected = polar_drift(&rho, sigma * sigma).powi(2);
        // Second order is sigma^2 of the first.
        assert!((moments.mean() - expected).abs() < 4.0 * moments.standard_error() + 1e-4 * expected);
    }

    #[test]
    fn a_repeated_column_has_no_polar_factor() {
        let rho = Mat::from_fn(3, 2, |i, _| 0.1 * (i + 1) as f64);
        assert!(polar_factor(&rho).is_rank_deficient());
    }
}
