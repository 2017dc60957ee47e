//! Closed forms of the phases of learning against the order-parameter equations
//! (docs/derivations/power-law-spectra.md#s13).

use crate::common::{columns, losses, problem, state_at};
use didact_families::committee::predictions::regression::{CurveSize, Regression};
use didact_families::committee::predictions::specialised::{error_rates, overlap_rates};
use didact_families::committee::predictions::symmetric::{SymmetricFlow, SymmetricState};
use didact_families::committee::predictions::teacher::{Plateau, equal_overlaps, growth_coefficient};
use didact_families::committee::{Committee, Output};
use didact_math::linalg::{Mat, eigenvalues_general};
use didact_math::ode::{Options, Saving};
use didact_model::{Needed, Overlaps, Problem, Spectrum, Training};
use didact_theory::{Numerical, OrderParameterOde};

fn erf(units: usize) -> Committee {
    Committee { output: Output::Scaled, ..Committee::soft(units, units, "erf(z/sqrt2)") }
}

fn precise(needed: Needed) -> OrderParameterOde {
    let options = Options { relative: 1e-11, absolute: 1e-14, saving: Saving::Landing, ..Options::default() };
    OrderParameterOde { options, needed, numerical: Numerical::Precise }
}

/// g_a = w_a [[Q, R], [Rᵀ, T]].
fn spread(units: usize, spectrum: &Spectrum, q: &Mat, r: &Mat, t: &Mat) -> Vec<Mat> {
    let whole = Mat::from_fn(2 * units, 2 * units, |i, j| match (i < units, j < units) {
        (true, true) => q[(i, j)],
        (true, false) => r[(i, j - units)],
        (false, true) => r[(j, i - units)],
        (false, false) => t[(i - units, j - units)],
    });
    spectrum.weights().iter().map(|w| whole.scaled(*w)).collect()
}

#[test]
fn linear_units_of_unequal_numbers_learn_as_one_from_one() {
    let spectrum = Spectrum::power_law(4, 1.0).unwrap();
    for (k, m) in [(2, 3), (4, 2)] {
        let spec = Committee { output: Output::Scaled, ..Committee::soft(k, m, "linear") };
        let blocks: Vec<Mat> = spectrum
            .weights()
            .iter()
            .map(|w| {
                Mat::from_fn(k + m, k + m, |i, j| {
                    if i != j {
                        0.0
                    } else if i < k {
                        0.2 * w
                    } else {
                        *w
                    }
                })
            })
            .collect();
        let run = problem(&spec, spectrum.clone(), Training::online(0.4), blocks);
        let ratio = m as f64 / k as f64;
        let curve = Regression::new(&spectrum, 0.4 * ratio, 0.2 * ratio).curve(CurveSize::Limit);
        let times = [1.0, 5.0];
        for (got, alpha) in losses(&precise(Needed::DriftAndNoise), &run, &times).iter().zip(times) {
            assert!((got / curve.error(alpha) - 1.0).abs() < 1e-8, "{k} {m} {alpha}");
        }
    }
}

#[test]
fn moments_close_by_the_theorem_of_cayley_and_hamilton() {
    // m^(L) = −Σ_k c_k m^(k) with Π (z − λ_a) = Σ c_k z^k: the closure of the paper
    // (docs/derivations/power-law-spectra.md#eq-3), on the derivative of the overlaps.
    let spectrum = Spectrum::power_law(4, 0.6).unwrap();
    let blocks = (0..4).map(|a| crate::common::random_gram(4, 0.5, 20 + a)).collect();
    let run = problem(&erf(2), spectrum.clone(), Training::online(0.7), blocks);
    let change = OrderParameterOde::default().initial_derivative(&run).unwrap();
    let mut c = vec![1.0];
    for lambda in spectrum.eigenvalues() {
        let mut next = vec![0.0; c.len() + 1];
        for (k, value) in c.iter().enumerate() {
            next[k + 1] += value;
            next[k] -= lambda * value;
        }
        c = next;
    }
    let mut sum = change.moment(&spectrum, 4);
    let scale = sum.max_abs();
    for (k, value) in c.iter().take(4).enumerate() {
        sum.add_scaled(*value, &change.moment(&spectrum, k as i32));
    }
    assert!(sum.max_abs() < 1e-12 * scale, "{}", sum.max_abs());
}

/// M units at the plateau of typical teachers, displaced by `amplitude` along the growing mode of unit 0 against 1.
fn near_plateau(units: usize, spectrum: &Spectrum, amplitude: f64) -> Problem {
    let plateau = Plateau::new(&equal_overlaps(units, 1.0, 0.0)).unwrap();
    // J_i = Σ_n (κ + δ_in) B_n with Σ_i δ_in = Σ_n δ_in = 0: δ_ii = x, δ_in = −x/(M−1).
    let mix = Mat::from_fn(units, units, |i, n| {
        plateau.mixture[0] + amplitude * if i == n { 1.0 } else { -1.0 / (units as f64 - 1.0) }
    });
    problem(
        &erf(units),
        spectrum.clone(),
        Training::online(0.5),
        spread(units, spectrum, &mix.gram(), &mix, &Mat::identity(units)),
    )
}

#[test]
fn the_plateau_is_left_at_the_rate_and_with_the_coefficient_of_the_closed_form() {
    let spectrum = Spectrum::power_law(3, 0.5).unwrap();
    for units in [2, 3] {
        let run = near_plateau(units, &spectrum, 1e-5);
        let rate = 0.5 * growth_coefficient(units as f64, 1.0, 0.0) * spectrum.moment(2);
        let times = [0.0, 20.0, 40.0, 60.0];
        let observed = columns(&precise(Needed::Drift), &run, &times, &["loss", "R[0,0]", "R[0,1]"]);
        let m = units as f64;
        // ρ_ii, from R_00 − R_01 = ρ_ii (1 + 1/(M−1)); order 1, so the mode has to settle over the eigenspaces first.
        let r: Vec<f64> = (0..4).map(|t| (observed[1][t] - observed[2][t]) * (m - 1.0) / m).collect();
        let grown = (r[3] / r[1]).ln() / 40.0;
        assert!((grown / rate - 1.0).abs() < 5e-3, "{units}: {grown} {rate}");
        let height = Plateau::new(&equal_overlaps(units, 1.0, 0.0)).unwrap().error;
        // ε* − ε = c r² is a difference of arcsines: its digits end at 1e-16, so it is looked at from a larger start.
        let larger = near_plateau(units, &spectrum, 3e-4);
        let at = columns(&precise(Needed::Drift), &larger, &times, &["loss", "R[0,0]", "R[0,1]"]);
        let c = growth_coefficient(m, 1.0, 0.0) * m * m / (2.0 * (m - 1.0));
        for t in 1..4 {
            let r = (at[1][t] - at[2][t]) * (m - 1.0) / m;
            let got = (height - at[0][t]) / (r * r);
            assert!((got / c - 1.0).abs() < 0.03, "{units} {t}: {got} {c}");
        }
    }
}

/// The Jacobian of the gradient flow at the specialised state, on overlaps (r, s, q, c) per eigenspace.
fn specialised_jacobian(units: usize, spectrum: &Spectrum, rate: f64, needed: Needed) -> Mat {
    let n = 4 * spectrum.len();
    let start = SymmetricState {
        cross: spectrum.weights().iter().map(|w| [*w, 0.0]).collect(),
        student: spectrum.weights().iter().map(|w| [*w, 0.0]).collect(),
    };
    let base: Vec<f64> =
        start.cross.iter().zip(&start.student).flat_map(|(r, q)| [r[0], r[1], q[0], q[1]]).collect();
    let mut flow = SymmetricFlow::new(units, spectrum, rate, needed);
    let mut jacobian = Mat::zeros(n, n);
    let (mut up, mut down) = (vec![0.0; n], vec![0.0; n]);
    for column in 0..n {
        let h = 1e-6;
        let mut state = base.clone();
        state[column] += h;
        didact_math::ode::VectorField::derivative(&mut flow, 0.0, &state, &mut up);
        state[column] -= 2.0 * h;
        didact_math::ode::VectorField::derivative(&mut flow, 0.0, &state, &mut down);
        for row in 0..n {
            jacobian[(row, column)] = (up[row] - down[row]) / (2.0 * h);
        }
    }
    jacobian
}

fn ascending(mut list: Vec<f64>) -> Vec<f64> {
    list.sort_by(f64::total_cmp);
    list
}

#[test]
fn rates_near_the_specialised_state_are_the_eigenvalues_of_the_jacobian() {
    let spectrum = Spectrum::power_law(3, 0.8).unwrap();
    for units in [2, 3, 4] {
        let jacobian = specialised_jacobian(units, &spectrum, 0.3, Needed::Drift);
        let got = ascending(eigenvalues_general(&jacobian).iter().map(|z| z.0).collect());
        // At O(η) the error rates are slow and fast coefficients; a tiny rate in `error_rates` drops its η² term.
        let tiny = 1e-9;
        let error = error_rates(units, &spectrum, tiny).into_iter().map(|r| r * 0.3 / tiny);
        let want = ascending(error.chain(overlap_rates(units, &spectrum, 0.3)).collect());
        for (g, w) in got.iter().zip(&want) {
            assert!((g - w).abs() < 1e-6 * want[0].abs(), "{units}: {got:?} {want:?}");
        }
        // With the η² term the error sector is that of docs/derivations/power-law-spectra.md#eq-53.
        let noisy = specialised_jacobian(units, &spectrum, 1.0, Needed::DriftAndNoise);
        let got = ascending(eigenvalues_general(&noisy).iter().map(|z| z.0).collect());
        let want = error_rates(units, &spectrum, 1.0);
        for w in &want {
            let nearest = got.iter().map(|g| (g - w).abs()).fold(f64::INFINITY, f64::min);
            assert!(nearest < 1e-6 * want[0].abs(), "{units}: {w} not in {got:?}");
        }
    }
}

#[test]
fn the_symmetric_flow_is_the_flow_of_all_overlaps() {
    let spectrum = Spectrum::power_law(5, 1.0).unwrap();
    let units = 3;
    let small = SymmetricState::small(units, &spectrum, 0.04, 0.02);
    let pair = |[a, b]: [f64; 2]| Mat::from_fn(units, units, |i, j| if i == j { a } else { b });
    let blocks: Vec<Mat> = (0..5)
        .map(|a| {
            let w = spectrum.weights()[a];
            let one = Spectrum::isotropic();
            spread(
                units,
                &one,
                &pair(small.student[a]),
                &pair(small.cross[a]),
                &Mat::identity(units).scaled(w),
            )
            .remove(0)
        })
        .collect();
    let run = problem(&erf(units), spectrum.clone(), Training::online(0.6), blocks);
    for needed in [Needed::Drift, Needed::DriftAndNoise] {
        let times = [5.0, 30.0, 80.0];
        let want = losses(&precise(needed), &run, &times);
        let mut flow = SymmetricFlow::new(units, &spectrum, 0.6, needed);
        let got = flow.solve(&small, &times, 1e-11, didact_math::ode::Method::Dop853).unwrap();
        for ((_, got), want) in got.iter().zip(&want) {
            assert!((got / want - 1.0).abs() < 1e-6, "{got} {want}");
        }
    }
}

#[test]
fn a_sampled_start_with_as_many_eigenvalues_as_dimensions_is_integrated_by_its_rows() {
    // Rank one per eigenspace: the flow of the rows and, through an infinitesimal decay that forbids it, of the overlaps.
    use didact_model::start::{FrozenRows, RandomRows, RowLaw};
    let start = RandomRows {
        trained: RowLaw::Gaussian { deviation: 0.1 },
        frozen: FrozenRows::Sampled,
        scalars: vec![],
    };
    let spectrum = Spectrum::power_law(24, 0.5).unwrap();
    let identity: Vec<Mat> = vec![Mat::identity(4); 24];
    let mut rows = problem(&erf(2), spectrum, Training::online(0.3), identity);
    (rows.dimension, rows.start) = (Some(24), std::sync::Arc::new(start));
    let mut overlaps = rows.clone();
    overlaps.training.constraint.weight_decay = 1e-300;
    let engine = precise(Needed::Drift);
    let times = [1.0, 10.0, 50.0];
    let (a, b) = (losses(&engine, &rows, &times), losses(&engine, &overlaps, &times));
    for (x, y) in a.iter().zip(&b) {
        assert!((x / y - 1.0).abs() < 1e-7, "{a:?} {b:?}");
    }
    let last: Overlaps = state_at(&engine, &rows, 50.0);
    assert!(last.blocks.iter().all(didact_math::linalg::is_psd));
}
