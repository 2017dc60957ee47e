//! K = M erf units after the plateau: rates of approach, critical learning rate, error
//! (docs/derivations/power-law-spectra.md#s7).
//!
//! Fixed point J_i = B_i with teachers T_a = w_a 1 and ν_1 = 1. With δ_i = J_i − B_i: p_ij = δ_i Σ δ_j/N, s_in = δ_i Σ B_n/N.

use didact_math::linalg::{Mat, eigenvalues_general, solve};
use didact_model::spectrum::Spectrum;
use std::f64::consts::PI;

/// ε_g to second order in δ:
/// (1/πM) { (1/√3) Σ_i [p_ii − (2/3) s_ii²] + ½ Σ_{i≠j} [p_ij − ½(s_ii s_ji + s_ij s_jj)] }
/// (docs/derivations/power-law-spectra.md#eq-49).
pub fn quadratic_error(p: &Mat, s: &Mat) -> f64 {
    let m = p.rows();
    let mut sum = 0.0;
    for i in 0..m {
        sum += (p[(i, i)] - 2.0 / 3.0 * s[(i, i)].powi(2)) / 3f64.sqrt();
        for j in (0..m).filter(|&j| j != i) {
            let cross = s[(i, i)] * s[(j, i)] + s[(i, j)] * s[(j, j)];
            sum += 0.5 * (p[(i, j)] - 0.5 * cross);
        }
    }
    sum / (PI * m as f64)
}

/// Coefficients of ηλ in the decay rates of the error: (slow, fast) = (4/πM)(1/√3 − 1/2, 1/√3 + (M−1)/2)
/// (docs/derivations/power-law-spectra.md#eq-51).
pub fn rate_coefficients(units: f64) -> (f64, f64) {
    let (front, root) = (4.0 / (PI * units), 1.0 / 3f64.sqrt());
    (front * (root - 0.5), front * (root + 0.5 * (units - 1.0)))
}

/// Ap and Fp of d(p,pc)_a/dα = −ηλ_a Ap (p,pc)_a + η² λ_a w_a Fp Σ_b λ_b (p,pc)_b
/// (docs/derivations/power-law-spectra.md#eq-53).
pub fn drift_and_noise(units: f64) -> (Mat, Mat) {
    let m = units;
    let (root3, root12, root2) = (3f64.sqrt(), 12f64.sqrt(), 2f64.sqrt());
    let drift = [1.0 / root3, (m - 1.0) / 2.0, 0.5, 1.0 / root3 + (m - 2.0) / 2.0];
    let noise = [
        1.0 / 5f64.sqrt() + (m - 1.0) / 3.0,
        (m - 1.0) / root2 + (m - 1.0) * (m - 2.0) / root12,
        1.0 / root2 + (m - 2.0) / root12,
        2.0 / 3.0 + 4.0 * (m - 2.0) / root12 + (m - 2.0) * (m - 3.0) / 4.0,
    ];
    let square = |entries: [f64; 4], front: f64| Mat::from_fn(2, 2, |i, j| front * entries[2 * i + j]);
    (square(drift, 4.0 / (PI * m)), square(noise, 4.0 / (PI * PI * m * m)))
}

/// η_c = 1/(ν_1 max eig(Ap⁻¹ Fp)): above it SGD leaves the specialised state, whatever the spectrum
/// (docs/derivations/power-law-spectra.md#eq-54).
pub fn critical_rate(units: f64) -> f64 {
    let (drift, noise) = drift_and_noise(units);
    1.0 / largest_real(&solve(&drift, &noise))
}

fn largest_real(matrix: &Mat) -> f64 {
    eigenvalues_general(matrix).iter().map(|z| z.0).fold(f64::NEG_INFINITY, f64::max)
}

fn ascending(matrix: &Mat) -> Vec<f64> {
    let mut rates: Vec<f64> = eigenvalues_general(matrix).iter().map(|z| z.0).collect();
    rates.sort_by(f64::total_cmp);
    rates
}

/// Rates of the (p, pc) sector with the η² term, ascending: 2L of them, or L for one unit, where pc does not exist.
pub fn error_rates(units: usize, spectrum: &Spectrum, learning_rate: f64) -> Vec<f64> {
    let (drift, noise) = drift_and_noise(units as f64);
    let (size, eta) = (if units == 1 { 1 } else { 2 }, learning_rate);
    let (lambda, weight) = (spectrum.eigenvalues(), spectrum.weights());
    let dimension = size * spectrum.len();
    ascending(&Mat::from_fn(dimension, dimension, |row, column| {
        let ((a, i), (b, j)) = ((row / size, row % size), (column / size, column % size));
        let own = if a == b { -eta * lambda[a] * drift[(i, j)] } else { 0.0 };
        own + eta * eta * lambda[a] * weight[a] * noise[(i, j)] * lambda[b]
    }))
}

/// d(r, s)_a/dα at O(η), the overlaps with the teachers: r_a = R_a,ii − w_a, s_a = R_a,in (n ≠ i)
/// (docs/derivations/power-law-spectra.md#eq-52).
///
/// `state` and `out` hold r_a, s_a per eigenspace; s is ignored for one unit.
pub fn overlap_flow(units: usize, spectrum: &Spectrum, learning_rate: f64, state: &[f64], out: &mut [f64]) {
    let (m, root3) = (units as f64, 3f64.sqrt());
    let pairs = || spectrum.eigenvalues().iter().zip(spectrum.weights());
    let (mut r, mut s) = (0.0, 0.0);
    for (lambda, part) in spectrum.eigenvalues().iter().zip(state.chunks_exact(2)) {
        r += lambda * part[0];
        s += lambda * part[1];
    }
    if units == 1 {
        s = 0.0;
    }
    for ((&lambda, &w), (part, out)) in pairs().zip(state.chunks_exact(2).zip(out.chunks_exact_mut(2))) {
        let front = -learning_rate * lambda / (PI * m);
        let other = if units == 1 { 0.0 } else { part[1] };
        out[0] =
            front * (2.0 / root3 * part[0] - 4.0 / (3.0 * root3) * w * r + (m - 1.0) * (other - 0.5 * w * s));
        out[1] =
            if units == 1 { 0.0 } else { front * ((2.0 / root3 + m - 2.0) * other + part[0] - 0.5 * w * r) };
    }
}

/// Rates of the (r, s) sector at O(η), ascending: 2L of them, or L for one unit.
pub fn overlap_rates(units: usize, spectrum: &Spectrum, learning_rate: f64) -> Vec<f64> {
    let n = 2 * spectrum.len();
    let kept: Vec<usize> = (0..n).filter(|k| units > 1 || k % 2 == 0).collect();
    let mut columns = Mat::zeros(kept.len(), kept.len());
    let (mut unit, mut image) = (vec![0.0; n], vec![0.0; n]);
    for (column, &k) in kept.iter().enumerate() {
        unit[k] = 1.0;
        overlap_flow(units, spectrum, learning_rate, &unit, &mut image);
        unit[k] = 0.0;
        for (row, &l) in kept.iter().enumerate() {
            columns[(row, column)] = image[l];
        }
    }
    ascending(&columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_noise_the_error_decays_at_the_two_coefficients() {
        let spectrum = Spectrum::power_law(3, 0.8).unwrap();
        for units in [2, 3, 7] {
            let (slow, fast) = rate_coefficients(units as f64);
            let tiny = 1e-9;
            let got = error_rates(units, &spectrum, tiny);
            let mut want: Vec<f64> =
                spectrum.eigenvalues().iter().flat_map(|l| [-tiny * l * slow, -tiny * l * fast]).collect();
            want.sort_by(f64::total_cmp);
            for (g, w) in got.iter().zip(&want) {
                assert!((g / w - 1.0).abs() < 1e-7, "{units}: {g} {w}");
            }
        }
    }

    #[test]
    fn the_critical_rate_is_where_the_slowest_mode_stops_and_does_not_depend_on_beta() {
        for units in [2, 3, 4] {
            let critical = critical_rate(units as f64);
            for beta in [0.3, 0.8, 2.0] {
                let spectrum = Spectrum::power_law(5, beta).unwrap();
                let top = |rate: f64| *error_rates(units, &spectrum, rate).last().unwrap();
                assert!(top(critical * (1.0 - 1e-6)) < 0.0 && top(critical * (1.0 + 1e-6)) > 0.0);
            }
        }
        assert!((critical_rate(1.0) - PI * (5f64 / 3.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn one_unit_has_one_rate_per_eigenvalue() {
        let spectrum = Spectrum::power_law(4, 1.0).unwrap();
        assert_eq!(error_rates(1, &spectrum, 0.5).len(), 4);
        assert_eq!(overlap_rates(1, &spectrum, 0.5).len(), 4);
    }
}
