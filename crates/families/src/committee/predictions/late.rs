//! K = M erf units long after the plateau: the law of the error, and a late state propagated
//! (docs/derivations/power-law-spectra.md#s7-4, docs/derivations/power-law-spectra.md#s7-5).

use super::small_rate::decay;
use super::specialised::{overlap_flow, quadratic_error, rate_coefficients};
use didact_math::linalg::Mat;
use didact_math::ode::{FieldFn, Method, OdeError, Options, Saving, solve};
use didact_model::spectrum::Spectrum;

/// Steps of an integration. These flows need some thousand; one that needs more has a time scale far from the others.
const MOST_STEPS: u64 = 200_000;

/// (e/πM) { (1/√3 − ½)(M−1) Σ_a w_a λ_a e^{−slow_a α} + (1/√3 + (M−1)/2) Σ_a w_a λ_a e^{−fast_a α} }, e = 1 + σ_J².
///
/// Each sum is that of linear units with 2η replaced by η times a coefficient, hence α^{−β/(1+β)} in its own window. A
/// heuristic: couplings to the teachers' span are left out, and so is how long the symmetry took to break.
pub fn law(units: usize, spectrum: &Spectrum, learning_rate: f64, initial: f64, alpha: f64) -> f64 {
    let (m, root) = (units as f64, 1.0 / 3f64.sqrt());
    let (slow, fast) = rate_coefficients(m);
    let sum = |coefficient: f64| decay(spectrum, coefficient * learning_rate * alpha);
    let weights = ((root - 0.5) * (m - 1.0), root + 0.5 * (m - 1.0));
    initial / (std::f64::consts::PI * m) * (weights.0 * sum(slow) + weights.1 * sum(fast))
}

/// A permutation-symmetric state near the specialised fixed point, per eigenspace: r = R_ii − w, s = R_in, q = Q_ii − w,
/// c = Q_ij.
#[derive(Debug, Clone, PartialEq)]
pub struct LateState {
    /// M = K.
    pub units: usize,
    /// (r, s, q, c) per eigenspace.
    pub parts: Vec<[f64; 4]>,
}

impl LateState {
    /// Averages the overlaps of the rows over the symmetry: `blocks` are the Grams g_a, students first, student i nearest
    /// to teacher i.
    pub fn from_blocks(units: usize, blocks: &[Mat], spectrum: &Spectrum) -> Self {
        let m = units;
        let part = |(g, w): (&Mat, &f64)| {
            let mean = |f: &dyn Fn(usize, usize) -> f64| {
                let (mut own, mut other) = (0.0, 0.0);
                for i in 0..m {
                    for j in 0..m {
                        if i == j { own += f(i, i) } else { other += f(i, j) }
                    }
                }
                (own / m as f64, if m > 1 { other / (m * (m - 1)) as f64 } else { 0.0 })
            };
            let (r, s) = mean(&|i, n| g[(i, m + n)]);
            let (q, c) = mean(&|i, j| g[(i, j)]);
            [r - w, s, q - w, c]
        };
        Self { units, parts: blocks.iter().zip(spectrum.weights()).map(part).collect() }
    }

    /// ε_g at later times, shifted so that this state is at 0, to leading order in the distance from the fixed point.
    ///
    /// The part of δ along the teachers moves with (r, s), the rest decays as slow and fast modes; ε_g is the quadratic
    /// form with its s² terms (docs/derivations/power-law-spectra.md#eq-56). `times` ascend. Eq. 122 of the paper has
    /// the part that is linear in the order parameters only (erratum 21, docs/derivations/power-law-spectra.md#e21).
    pub fn errors(&self, spectrum: &Spectrum, rate: f64, times: &[f64]) -> Result<Vec<f64>, OdeError> {
        let m = self.units as f64;
        let start: Vec<f64> = self.parts.iter().flat_map(|p| [p[0], p[1]]).collect();
        let states = self.overlaps_at(spectrum, rate, &start, times)?;
        let perpendicular: Vec<(f64, f64)> = self
            .parts
            .iter()
            .zip(spectrum.weights())
            .map(|([r, s, q, c], w)| {
                let (p, pc) = (q - 2.0 * r, c - 2.0 * s);
                (p - along(m, *r, *s).0 / w, pc - along(m, *r, *s).1 / w)
            })
            .collect();
        let (slow, fast) = rate_coefficients(m);
        Ok(times
            .iter()
            .zip(&states)
            .map(|(time, state)| {
                let (mut p, mut pc, mut r, mut s) = (0.0, 0.0, 0.0, 0.0);
                let groups = spectrum.eigenvalues().iter().zip(spectrum.weights());
                for ((lambda, w), (state, (p0, pc0))) in groups.zip(state.chunks_exact(2).zip(&perpendicular))
                {
                    // p + (M−1) pc decays fast, p − pc slowly.
                    let quick = (p0 + (m - 1.0) * pc0) * (-rate * fast * lambda * time).exp();
                    let lasting = (p0 - pc0) * (-rate * slow * lambda * time).exp();
                    let (own, cross) = along(m, state[0], state[1]);
                    p += lambda * ((quick + (m - 1.0) * lasting) / m + own / w);
                    pc += lambda * ((quick - lasting) / m + cross / w);
                    r += lambda * state[0];
                    s += lambda * state[1];
                }
                let symmetric = |own: f64, other: f64| {
                    Mat::from_fn(self.units, self.units, |i, j| if i == j { own } else { other })
                };
                quadratic_error(&symmetric(p, pc), &symmetric(r, s))
            })
            .collect())
    }

    fn overlaps_at(
        &self,
        spectrum: &Spectrum,
        rate: f64,
        start: &[f64],
        times: &[f64],
    ) -> Result<Vec<Vec<f64>>, OdeError> {
        let Some(&end) = times.last() else { return Ok(vec![]) };
        let units = self.units;
        let mut field = FieldFn::new(start.len(), |_: f64, state: &[f64], out: &mut [f64]| {
            overlap_flow(units, spectrum, rate, state, out);
        });
        let options = Options {
            method: Method::Dop853,
            relative: 1e-10,
            absolute: 1e-14,
            saving: Saving::Landing,
            step_limit: Some(MOST_STEPS),
            ..Options::default()
        };
        Ok(solve(&mut field, 0.0, start, end, times, &[], &options)?.states)
    }
}

/// What the part of δ along the teachers adds to (p, pc), times w: (r² + (M−1)s², 2rs + (M−2)s²).
fn along(m: f64, r: f64, s: f64) -> (f64, f64) {
    (r * r + (m - 1.0) * s * s, 2.0 * r * s + (m - 2.0) * s * s)
}
