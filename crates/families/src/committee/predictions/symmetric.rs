//! K = M erf units with typical teachers on the permutation-symmetric manifold: four numbers per eigenspace, whatever M.
//!
//! With T_a = w_a 1 a start whose overlaps are R_a = r_a 1 + s_a (E − 1), Q_a = q_a 1 + c_a (E − 1) (E all ones) keeps this form: every matrix
//! of the equations commutes with permutations of the units. So the exact equations
//! (docs/derivations/power-law-spectra.md#eq-6) reduce from M² + M(M+1)/2 to 4 numbers per eigenspace
//! (docs/derivations/power-law-spectra.md#eq-18), and the cost of a right-hand side grows as L.

use super::late::LateState;
use crate::Family;
use crate::committee::{Committee, Output};
use didact_math::linalg::Mat;
use didact_math::ode::{Method, OdeError, Options, Saving, VectorField, solve};
use didact_model::rule::{Averages, Law, LocalRule, Needed};
use didact_model::spectrum::Spectrum;
use std::sync::Arc;

/// Steps of an integration. These flows need some thousand; one that needs more has a time scale far from the others.
const MOST_STEPS: u64 = 200_000;

/// x 1 + y (E − 1): diagonal and off-diagonal entry.
type Pair = [f64; 2];

/// The product of two such matrices of size m.
fn product(m: f64, [a, b]: Pair, [c, d]: Pair) -> Pair {
    [a * c + (m - 1.0) * b * d, a * d + b * c + (m - 2.0) * b * d]
}

/// R and Q of a symmetric state, one of each per eigenspace.
#[derive(Debug, Clone, PartialEq)]
pub struct SymmetricState {
    /// (R_ii, R_in) per eigenspace.
    pub cross: Vec<Pair>,
    /// (Q_ii, Q_ij) per eigenspace.
    pub student: Vec<Pair>,
}

impl SymmetricState {
    /// q_a = w_a σ² 1, and r_a = w_a times `asymmetry` on the diagonal and −`asymmetry`/(M−1) off it: students that
    /// hardly know their teachers, and among them first their own.
    pub fn small(units: usize, spectrum: &Spectrum, variance: f64, asymmetry: f64) -> Self {
        let off = if units > 1 { -asymmetry / (units as f64 - 1.0) } else { 0.0 };
        let spread = |pair: Pair| spectrum.weights().iter().map(|w| [w * pair[0], w * pair[1]]).collect();
        Self { cross: spread([asymmetry, off]), student: spread([variance, 0.0]) }
    }

    /// The distance from the specialised state, per eigenspace.
    pub fn late(&self, units: usize, spectrum: &Spectrum) -> LateState {
        let parts = self.cross.iter().zip(&self.student).zip(spectrum.weights());
        LateState { units, parts: parts.map(|((r, q), w)| [r[0] - w, r[1], q[0] - w, q[1]]).collect() }
    }
}

/// The equations.
#[derive(Debug, Clone)]
pub struct SymmetricFlow<'a> {
    units: usize,
    spectrum: &'a Spectrum,
    learning_rate: f64,
    needed: Needed,
    rule: Arc<dyn LocalRule>,
    averages: Averages,
    covariance: Mat,
}

impl<'a> SymmetricFlow<'a> {
    /// M units on a spectrum; `needed` says whether the η² term is kept.
    pub fn new(units: usize, spectrum: &'a Spectrum, learning_rate: f64, needed: Needed) -> Self {
        let spec = Committee { output: Output::Scaled, ..Committee::soft(units, units, "erf(z/sqrt2)") };
        let rule = spec.rule().expect("a committee of erf units");
        let averages = Averages::new(rule.shape());
        let covariance = Mat::zeros(2 * units, 2 * units);
        Self { units, spectrum, learning_rate, needed, rule, averages, covariance }
    }

    /// The states and errors at increasing times.
    pub fn solve(
        &mut self,
        start: &SymmetricState,
        times: &[f64],
        tolerance: f64,
        method: Method,
    ) -> Result<Vec<(SymmetricState, f64)>, OdeError> {
        let Some(&end) = times.last() else { return Ok(vec![]) };
        let state: Vec<f64> =
            start.cross.iter().zip(&start.student).flat_map(|(r, q)| [r[0], r[1], q[0], q[1]]).collect();
        let options = Options {
            method,
            relative: tolerance,
            absolute: 1e-3 * tolerance,
            saving: Saving::Landing,
            step_limit: Some(MOST_STEPS),
            ..Options::default()
        };
        let solution = solve(self, 0.0, &state, end, times, &[], &options)?;
        Ok(solution.states.iter().map(|state| (unpack(state), self.error(state))).collect())
    }

    /// ε_g of a state.
    fn error(&mut self, state: &[f64]) -> f64 {
        self.set_covariance(state);
        self.rule.risk(&Law { covariance: &self.covariance, scalars: &[], label_noise: 0.0 })
    }

    fn set_covariance(&mut self, state: &[f64]) {
        let (mut sums, m) = ([0.0; 4], self.units);
        for (part, lambda) in state.chunks_exact(4).zip(self.spectrum.eigenvalues()) {
            for (sum, x) in sums.iter_mut().zip(part) {
                *sum += lambda * x;
            }
        }
        let teacher = self.spectrum.moment(1);
        let entry = |own: f64, other: f64, i: usize, j: usize| if i % m == j % m { own } else { other };
        for i in 0..2 * m {
            for j in 0..2 * m {
                self.covariance[(i, j)] = match (i < m, j < m) {
                    (true, true) => entry(sums[2], sums[3], i, j),
                    (false, false) => entry(teacher, 0.0, i, j),
                    _ => entry(sums[0], sums[1], i, j),
                };
            }
        }
    }
}

fn unpack(state: &[f64]) -> SymmetricState {
    let parts = || state.chunks_exact(4);
    SymmetricState {
        cross: parts().map(|p| [p[0], p[1]]).collect(),
        student: parts().map(|p| [p[2], p[3]]).collect(),
    }
}

impl VectorField for SymmetricFlow<'_> {
    fn dimension(&self) -> usize {
        4 * self.spectrum.len()
    }

    /// dR_a = −ηλ_a (A_s R_a + w_a A_t), dQ_a = −2ηλ_a (A_s Q_a + A_t R_a) + η² λ_a w_a N, all in pairs.
    fn derivative(&mut self, _time: f64, state: &[f64], out: &mut [f64]) {
        self.set_covariance(state);
        let law = Law { covariance: &self.covariance, scalars: &[], label_noise: 0.0 };
        self.rule.averages(&law, self.needed, &mut self.averages);
        let (m, eta) = (self.units as f64, self.learning_rate);
        let pair = |matrix: &Mat, column: usize| {
            [matrix[(0, column)], if self.units > 1 { matrix[(0, column + 1)] } else { 0.0 }]
        };
        let (own, cross) = (pair(&self.averages.drift, 0), pair(&self.averages.drift, self.units));
        let noise = match self.needed {
            Needed::Drift => [0.0; 2],
            Needed::DriftAndNoise => pair(&self.averages.noise, 0),
        };
        let groups = self.spectrum.eigenvalues().iter().zip(self.spectrum.weights());
        for ((part, out), (lambda, w)) in state.chunks_exact(4).zip(out.chunks_exact_mut(4)).zip(groups) {
            let (r, q) = ([part[0], part[1]], [part[2], part[3]]);
            let (ar, aq, tr) = (product(m, own, r), product(m, own, q), product(m, cross, r));
            for x in 0..2 {
                out[x] = -eta * lambda * (ar[x] + w * cross[x]);
                out[2 + x] = -2.0 * eta * lambda * (aq[x] + tr[x]) + eta * eta * lambda * w * noise[x];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::committee::predictions::late;

    #[test]
    fn late_states_follow_the_linearised_flow() {
        // docs/derivations/power-law-spectra.md#f6: L = 9, β = 1, η = 0.25, M = 2 from α_0 = 1500 within 1.6%.
        let spectrum = Spectrum::power_law(9, 1.0).unwrap();
        let mut flow = SymmetricFlow::new(2, &spectrum, 0.25, Needed::Drift);
        let start = SymmetricState::small(2, &spectrum, 1e-4, 1e-3);
        let times: Vec<f64> = [0.0, 200.0, 600.0, 1500.0].iter().map(|t| 1500.0 + t).collect();
        let states = flow.solve(&start, &times, 1e-9, Method::Dop853).unwrap();
        let later: Vec<f64> = times.iter().map(|t| t - 1500.0).collect();
        let predicted = states[0].0.late(2, &spectrum).errors(&spectrum, 0.25, &later).unwrap();
        for ((_, error), predicted) in states.iter().zip(&predicted) {
            assert!((predicted / error - 1.0).abs() < 0.025, "{predicted} {error}");
        }
        // At α_0 = 1000 the error is 2.7e-4 (docs/derivations/power-law-spectra.md#f6).
        let at = flow.solve(&start, &[1000.0], 1e-9, Method::Dop853).unwrap()[0].1;
        assert!((at - 2.7e-4).abs() < 0.05e-4, "{at}");
    }

    #[test]
    fn the_late_law_describes_the_flow_after_the_plateau() {
        // docs/derivations/power-law-spectra.md#s7-4: ratio ODE/law = 1.02, 0.998, 0.992, 0.992 at α = 10, 20, 40, 80.
        let spectrum = Spectrum::power_law(256, 1.0).unwrap();
        let mut flow = SymmetricFlow::new(2, &spectrum, 0.5, Needed::Drift);
        let start = SymmetricState::small(2, &spectrum, 1e-4, 1e-3);
        let times = [10.0, 20.0, 40.0, 80.0];
        let states = flow.solve(&start, &times, 1e-6, Method::Stabilised).unwrap();
        for ((alpha, (_, error)), ratio) in times.iter().zip(&states).zip([1.02, 0.998, 0.992, 0.992]) {
            let got = error / late::law(2, &spectrum, 0.5, 1.0001, *alpha);
            assert!((got - ratio).abs() < 0.004, "{alpha}: {got} {ratio}");
        }
    }
}
