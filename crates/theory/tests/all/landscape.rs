//! Hessians of full-batch gradient descent: theory against quadrature, against finite data, and against what must hold exactly.

#![allow(missing_docs)]

use didact_families::Family;
use didact_families::multi_index::MultiIndex;
use didact_math::gauss::GaussianRule;
use didact_math::linalg::dot;
use didact_math::spectra::SpectrumEnd;
use didact_model::loss::Loss;
use didact_model::{Kick, LocalRule, Sample};
use didact_theory::dmft::{Points, Process, Sampling};
use didact_theory::landscape::{
    Descent, EmpiricalDescent, LandscapeError, Preprocessing, at_start, one_step, sampled_spectral_method,
    spectral_method, weight_infimum,
};
use std::sync::Arc;

const HUBER: Loss = Loss::PseudoHuber { kappa: 1.0 };

fn single(activation: &str, link: &str, loss: Loss) -> Arc<dyn LocalRule> {
    MultiIndex::single(activation, link, loss).rule().unwrap()
}

fn descent(rule: &Arc<dyn LocalRule>, eta: f64) -> Descent {
    Descent::new(rule.clone(), eta, 1.0, 0.0).unwrap()
}

fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt())
}

#[test]
fn thresholds_before_the_first_step_are_those_of_the_reference() {
    for (activation, delta) in [("gelu", 1.6927566887), ("quadratic", 0.9230262845)] {
        let got = descent(&single(activation, "z^2", HUBER), 1.0).initial_threshold().unwrap();
        assert!((got - delta).abs() < 1e-9, "{activation}: {got}");
    }
}

#[test]
fn the_weights_are_bounded_by_the_slope_of_the_loss_and_the_curvature_of_the_unit() {
    // −a L max σ″: GeLU has max σ″ = 2 φ(0), z² has 2 (docs/derivations/gd-phase-transitions.md#s5-infimum).
    let cases = [
        ("gelu", HUBER, -0.7978845608028654),
        ("quadratic", HUBER, -2.0),
        ("gelu", Loss::LogCosh, -0.7978845608028654),
    ];
    for (activation, loss, infimum) in cases {
        let got = weight_infimum(single(activation, "z^2", loss).as_ref(), false).unwrap();
        assert!((got - infimum).abs() < 1e-9, "{activation}: {got}");
    }
    // Bounded labels bound the weights of the square loss too.
    assert!(weight_infimum(single("gelu", "tanh(z^2)", Loss::HALF_SQUARE).as_ref(), false).is_ok());
}

#[test]
fn steins_identity_and_the_antisymmetry_of_quadratic_units_hold_at_the_start() {
    let rule = single("gelu", "z^2", HUBER);
    let axis = GaussianRule::trapezoid(0.05, 9.0);
    let mut kick = Kick::new(rule.shape());
    let product = axis.average(|v| {
        axis.average(|w| {
            rule.kick(&Sample { fields: &[w, v], scalars: &[], noise: 0.0 }, &mut kick);
            kick.rows[0] * w
        })
    });
    let start = at_start(rule.as_ref(), 1.0, 0.0).unwrap();
    assert!((product - start.response).abs() < 1e-12, "E[φ W] = R_l(0,0) C(0,0)");
    let quadratic = at_start(single("quadratic", "z^2", HUBER).as_ref(), 1.0, 0.0).unwrap();
    assert!(quadratic.teacher_moment[0].abs() < 1e-9, "E[G v²] = {}", quadratic.teacher_moment[0]);
}

#[test]
fn the_effective_process_agrees_with_quadrature_at_the_first_two_steps() {
    let rule = single("gelu", "z^2", HUBER);
    let mut descent = descent(&rule, 0.4);
    descent.sampling = Sampling { samples: 1 << 15, ..descent.sampling };
    let (delta, hard) = (4.0, [vec![1.0]]);
    let sampled = descent.along(delta, &[0, 1], 0).unwrap();
    let exact = [
        at_start(rule.as_ref(), 1.0, 0.0).unwrap().ensemble,
        one_step(rule.as_ref(), 1.0, 0.0, delta, 0.4).unwrap().ensemble,
    ]
    .map(|ensemble| ensemble.hessian(0, delta, &hard).unwrap());
    for (sampled, exact) in sampled.iter().zip(&exact) {
        // Sampling errors at N = 32768 with wide teacher fields: 2e-4 on edges, 2e-3 on overlaps (five deviations).
        assert!((sampled[0].edge.position - exact.edge.position).abs() < 1e-3, "{sampled:?} {exact:?}");
        assert!((sampled[0].outliers[0].position - exact.outliers[0].position).abs() < 1e-3);
        assert!((sampled[0].outliers[0].overlap - exact.outliers[0].overlap).abs() < 1e-2);
    }
}

#[test]
fn two_directions_agree_with_the_effective_process_after_one_step() {
    // z1+z2+z1 z2 has an easy and a hard direction: the row has moved along (1,1).
    let (delta, eta) = (6.0, 0.8);
    for (link, easy) in [("z1*z2", 0), ("z1+z2+z1*z2", 1)] {
        let spec = MultiIndex { directions: 2, ..MultiIndex::single("gelu", link, HUBER) };
        let rule = spec.rule().unwrap();
        let mut descent = descent(&rule, eta);
        descent.sampling = Sampling { samples: 1 << 15, ..descent.sampling };
        assert_eq!(descent.split().easy.len(), easy);
        let exact = one_step(rule.as_ref(), 1.0, 0.0, delta, eta).unwrap();
        let (equations, mut points) =
            (descent.equations(delta), Points::sobol(&descent.sampling, 0, 2, 1, 3));
        let mut process = Process::new(&equations, &mut points);
        for _ in 0..=2 {
            assert!(process.advance());
        }
        let kernels = &process.kernels;
        let pairs = [
            (exact.correlation_10, kernels.weights[1][0][(0, 0)]),
            (exact.correlation_11, kernels.weights[1][1][(0, 0)]),
            (exact.correlation_20, kernels.weights[2][0][(0, 0)]),
            (exact.correlation_22, kernels.weights[2][2][(0, 0)]),
            (exact.response_11, kernels.kicks_response[1][1][(0, 0)]),
            (exact.response_10, kernels.kicks_response[1][0][(0, 0)]),
            (exact.kick_11, kernels.kicks[1][1][(0, 0)]),
            (exact.overlap_1[0], kernels.weights_frozen[1][(0, 0)]),
            (exact.overlap_1[1], kernels.weights_frozen[1][(0, 1)]),
            (exact.teacher_response[0], kernels.kicks_frozen[1][(0, 0)]),
        ];
        for (entry, (exact, sampled)) in pairs.iter().enumerate() {
            // Sampling errors at N = 32768 are below 3e-4.
            assert!((exact - sampled).abs() < 1.5e-3, "{link}, entry {entry}: {exact} {sampled}");
        }
        let (x, y) = (exact.ensemble, descent.ensemble(delta, 1, 0).unwrap());
        let hard = &descent.split().hard;
        let (x, y) = (x.hessian(0, delta, hard).unwrap(), y.hessian(0, delta, hard).unwrap());
        assert!((x.edge.position - y.edge.position).abs() < 2e-3, "{link}: {:?} {:?}", x.edge, y.edge);
        assert!((x.psi - y.psi).abs() < 3e-3, "{link}: {} {}", x.psi, y.psi);
    }
}

#[test]
fn the_outlier_detaches_at_the_threshold_and_rises_from_there() {
    let rule = single("gelu", "z^2", HUBER);
    let ensemble = at_start(rule.as_ref(), 1.0, 0.0).unwrap().ensemble;
    let hard = [vec![1.0]];
    let critical = 1.6927566887;
    let at = |delta: f64| ensemble.hessian(0, delta, &hard).unwrap();
    assert!(at(0.999 * critical).outliers.is_empty() && at(0.999 * critical).psi > 0.0);
    let mut last = (f64::INFINITY, 0.0);
    for factor in [1.001, 1.1, 1.5, 3.0, 8.0] {
        let spectrum = at(factor * critical);
        let outlier = &spectrum.outliers[0];
        assert!(spectrum.psi < last.0, "psi falls with delta near the root");
        assert!(outlier.overlap > last.1 && outlier.overlap < 1.0, "overlap rises: {outlier:?}");
        assert!(outlier.position < spectrum.edge.position);
        last = (if factor < 2.0 { spectrum.psi } else { f64::INFINITY }, outlier.overlap);
    }
    // Continuous transition: c < 0 here.
    assert!(at(1.0001 * critical).outliers[0].overlap < 2e-3);
}

#[test]
fn permuting_neurons_permutes_their_spectra() {
    let network = |order: [usize; 3]| {
        let pick = |list: [f64; 3]| Some(order.map(|i| list[i]).to_vec());
        let spec = MultiIndex {
            students: 3,
            directions: 2,
            weights: pick([1.5, -1.0, 0.7]),
            biases: pick([0.1, -0.3, 0.5]),
            ..MultiIndex::single("gelu", "z1+z2+z1*z2", HUBER)
        };
        let mut descent = descent(&spec.rule().unwrap(), 1.5);
        descent.sampling = Sampling { samples: 1 << 15, ..descent.sampling };
        assert_eq!(descent.split().hard.len(), 1);
        descent.along(10.0, &[3], 0).unwrap().remove(0)
    };
    let (straight, turned) = (network([0, 1, 2]), network([2, 0, 1]));
    for (place, row) in [2, 0, 1].into_iter().enumerate() {
        // Other columns of the same points: equal up to sampling, 2e-3 on psi (psi = −0.016 for a = −1,
        // docs/derivations/gd-phase-transitions.md#e1).
        assert!((straight[row].psi - turned[place].psi).abs() < 1e-2);
    }
    // Only the block with a < 0 has a direction of descent, and only with its sign.
    let informative: Vec<bool> = straight.iter().map(|s| !s.outliers.is_empty()).collect();
    assert_eq!(informative, [false, true, false]);
}

#[test]
fn the_bulk_has_the_eigenvalue_quantiles_of_matrices() {
    let rule = single("gelu", "z^2", HUBER);
    let ensemble = at_start(rule.as_ref(), 1.0, 0.0).unwrap().ensemble;
    let (x, density) = ensemble.density(0, 8.0, 2000).unwrap();
    let cell = x[1] - x[0];
    let mut mass = 0.0;
    let cumulative: Vec<f64> = density
        .iter()
        .map(|rho| {
            mass += cell * rho;
            mass
        })
        .collect();
    assert!((mass - 1.0).abs() < 1e-3, "{mass}");
    let mut quantiles = Vec::new();
    for seed in 0..4 {
        let run = EmpiricalDescent::new(rule.as_ref(), 300, 8.0, 1.0, 0.0, seed).unwrap();
        quantiles.push(run.hessian(0).eigen().values);
    }
    for share in [0.05, 0.25, 0.5, 0.75, 0.95] {
        let theory = x[cumulative.partition_point(|c| *c < share)];
        let (mean, error) =
            mean_and_error(&quantiles.iter().map(|v| v[(share * 300.0) as usize]).collect::<Vec<_>>());
        // Four runs give a rough error; quantiles move by 1/d = 0.003 of the width 0.9 between ranks.
        assert!((mean - theory).abs() < 5.0 * error + 0.01, "{share}: {mean} ± {error}, theory {theory}");
    }
}

#[test]
fn outliers_of_data_lie_where_the_effective_process_puts_them() {
    let rule = single("gelu", "z^2", HUBER);
    let descent = descent(&rule, 0.5);
    let theory = &descent.along(8.0, &[4], 0).unwrap()[0][0];
    let (d, mut positions, mut overlaps) = (400, Vec::new(), Vec::new());
    for seed in 0..6 {
        let mut run = EmpiricalDescent::new(rule.as_ref(), d, 8.0, 1.0, 0.0, seed).unwrap();
        run.descend(0.5, 4);
        let lowest = run.hessian(0).extreme(SpectrumEnd::Lowest, 1, seed).remove(0);
        positions.push(lowest.value);
        overlaps.push(run.overlap(&lowest.vector, &[vec![1.0]]));
    }
    let outlier = &theory.outliers[0];
    assert!(
        (outlier.position + 0.2964).abs() < 2e-3 && (outlier.overlap - 0.606).abs() < 1e-2,
        "{outlier:?}"
    );
    // Single runs fluctuate by O(1/√d); the mean is also shifted by O(1/d^{2/3}) = 0.018 of the scale.
    let (position, error) = mean_and_error(&positions);
    assert!((position - outlier.position).abs() < 5.0 * error + 0.02, "{position} ± {error}, {outlier:?}");
    let (overlap, error) = mean_and_error(&overlaps);
    assert!((overlap - outlier.overlap).abs() < 5.0 * error + 0.02, "{overlap} ± {error}, {outlier:?}");
}

#[test]
fn the_hessian_of_a_run_is_the_derivative_of_its_gradient() {
    let rule = single("gelu", "z^2", HUBER);
    let mut run = EmpiricalDescent::new(rule.as_ref(), 12, 3.0, 1.0, 0.0, 5).unwrap();
    let direction: Vec<f64> = (0..12).map(|i| f64::from(i).cos()).collect();
    let here = run.rows.clone();
    let mut gradient = |shift: f64| {
        run.rows = here.clone();
        run.rows.row_mut(0).iter_mut().zip(&direction).for_each(|(w, v)| *w += shift * v);
        let before = run.rows.row(0).to_vec();
        run.descend(1.0, 1);
        before.iter().zip(run.rows.row(0)).map(|(a, b)| a - b).collect::<Vec<f64>>()
    };
    let (above, below) = (gradient(1e-5), gradient(-1e-5));
    run.rows = here;
    let mut product = vec![0.0; 12];
    run.hessian(0).apply(&direction, &mut product);
    for ((a, b), h) in above.iter().zip(&below).zip(&product) {
        assert!(((a - b) / 2e-5 - h).abs() < 1e-8, "{} {h}", (a - b) / 2e-5);
    }
    // Lanczos and the dense solver see the same matrix.
    let (dense, lowest) =
        (run.hessian(0).eigen(), run.hessian(0).extreme(SpectrumEnd::Lowest, 1, 1).remove(0));
    assert!((dense.values[0] - lowest.value).abs() < 1e-10);
    let along: f64 = (0..12).map(|i| dense.vectors[(i, 0)] * lowest.vector[i]).sum();
    assert!((along.abs() - 1.0).abs() < 1e-9);
    assert!((dot(&lowest.vector, &lowest.vector) - 1.0).abs() < 1e-12);
}

#[test]
fn the_optimal_spectral_method_has_its_outlier_at_one_over_delta() {
    let link = |z: &[f64], _: f64| z[0] * z[0];
    let formula = Preprocessing::parse("1-1/y").unwrap();
    for (delta, overlap) in [(0.55, 0.020643282), (1.0, 0.23069704), (2.0, 0.63888128)] {
        for preprocessing in [&formula, &Preprocessing::Optimal] {
            let found = spectral_method(1, false, &link, preprocessing, delta).unwrap();
            let (position, own) = found.outlier.unwrap();
            assert!(
                (position - 1.0 / delta).abs() < 1e-9 && (own - overlap).abs() < 1e-7,
                "{delta}: {found:?}"
            );
        }
    }
    let below = spectral_method(1, false, &link, &formula, 0.45).unwrap();
    assert_eq!(below.outlier, None);
    assert!((below.right_edge - 1.0 / 0.45).abs() < 1e-9);
    // Mondelli and Montanari's, in general form and as the formula it is for z².
    let general = spectral_method(1, false, &link, &Preprocessing::MondelliMontanari, 2.0).unwrap();
    let special =
        spectral_method(1, false, &link, &Preprocessing::parse("(y-1)/(y+sqrt(2*delta)-1)").unwrap(), 2.0)
            .unwrap();
    assert!((general.outlier.unwrap().1 - 0.48582371).abs() < 1e-7);
    assert!((general.right_edge - special.right_edge).abs() < 1e-7);
}

#[test]
fn spectral_methods_on_data_reach_the_predicted_overlap() {
    let link = |z: &[f64], _: f64| z[0] * z[0];
    let runs: Vec<(f64, f64)> = (0..6)
        .map(|seed| sampled_spectral_method(1, &link, &Preprocessing::Optimal, 2.0, 300, seed).unwrap())
        .collect();
    let (position, error) = mean_and_error(&runs.iter().map(|r| r.0).collect::<Vec<_>>());
    assert!((position - 0.5).abs() < 5.0 * error + 0.02, "{position} ± {error}");
    let (overlap, error) = mean_and_error(&runs.iter().map(|r| r.1).collect::<Vec<_>>());
    assert!((overlap - 0.63888128).abs() < 5.0 * error + 0.02, "{overlap} ± {error}");
}

#[test]
fn questions_without_an_answer_are_refused() {
    let square = descent(&single("gelu", "z^2", Loss::HALF_SQUARE), 1.0);
    assert!(matches!(square.threshold(0, 2), Err(LandscapeError::Unbounded { .. })));
    let easy = descent(&single("gelu", "z^3-3z", HUBER), 1.0);
    assert_eq!(easy.threshold(0, 2), Err(LandscapeError::NothingHard));
    let kinked = descent(&single("relu", "z^2", HUBER), 1.0);
    assert_eq!(kinked.threshold(0, 2), Err(LandscapeError::Kinked));
    let wild = descent(&single("quadratic", "z^2", HUBER), 8.0);
    assert!(matches!(wild.along(4.0, &[30], 0), Err(LandscapeError::Diverges { .. })));
    assert!(Descent::new(single("gelu", "z^2", HUBER), -1.0, 1.0, 0.0).is_err());
    // The logistic loss is bounded for bounded labels alone.
    let logistic = descent(&single("gelu", "z^2", Loss::Logistic), 1.0);
    assert!(matches!(logistic.threshold(0, 2), Err(LandscapeError::Unbounded { .. })));
    let bounded = descent(&single("gelu", "min(z^2, 1)", Loss::Logistic), 1.0);
    assert!(bounded.initial_threshold().unwrap() > 0.0);
}

/// `e` in a link means a standard normal, as it does for the quantities that take a link alone.
#[test]
fn a_link_that_names_its_noise_has_it_unless_told_otherwise() {
    let threshold = |link: &str, noise: Option<f64>| {
        let all = didact_theory::quantities();
        let (_, found) = all.iter().find(|(g, q)| *g == "landscape" && q.name == "threshold").unwrap();
        let mut inputs = serde_json::json!({
            "model": {"family": "multi-index", "activation": "gelu", "link": link, "loss": HUBER},
            "eta": 1, "t": 0, "samples": 1024, "scrambles": 2,
        });
        if let Some(noise) = noise {
            inputs["label-noise"] = noise.into();
        }
        let answer = found.evaluate(inputs.as_object().unwrap()).unwrap();
        answer.iter().find(|(n, _)| *n == "delta").unwrap().1.as_f64().unwrap()
    };
    let named = threshold("z1^2 + e", None);
    assert_eq!(named, threshold("z1^2", Some(1.0)));
    assert_eq!(threshold("z1^2 + e", Some(0.5)), threshold("z1^2", Some(0.5)));
    assert_eq!(threshold("z1^2 + e", Some(0.0)), threshold("z1^2", None));
    assert!(named > threshold("z1^2", None) + 0.01, "{named}");
}
