use super::FluctuationTheory;
use didact_families::Model;
use didact_math::linalg::Mat;
use didact_model::start::Given;
use didact_model::{Clock, Needed, Overlaps, Problem, Spectrum, Training, observable};
use serde_json::json;
use std::sync::Arc;

/// Erf units that leave their plateau, with label noise.
fn committee(units: usize) -> Problem {
    let model =
        json!({"family": "committee", "students": units, "teachers": units, "activation": "erf(z/sqrt2)"});
    let model: Model = serde_json::from_value(model).unwrap();
    let rule = model.rule().unwrap();
    let spectrum = Spectrum::isotropic();
    let q = Mat::from_fn(units, units, |i, j| if i == j { 0.4 } else { 0.05 });
    let r = Mat::from_fn(units, units, |i, j| if i == j { 0.1 } else { 0.01 * ((3 * i + 5 * j) % 4) as f64 });
    let t = Mat::identity(units);
    let start = Overlaps::spread(rule.shape(), &spectrum, (&q, &r, &t), model.starting_scalars()).unwrap();
    Problem {
        rule,
        about: model.about(),
        spectrum,
        dimension: None,
        training: Training { label_noise: 0.2, ..Training::online(1.0) },
        start: Arc::new(Given(start)),
        clock: Clock::Alpha,
    }
}

/// Panels of a band may be rough and its derivatives are of low order: its covariances are within a thousandth of those of nine digits.
#[test]
fn bands_are_within_a_thousandth() {
    const ALLOWED: f64 = 1e-3;
    let problem = committee(2);
    let names = ["loss", "R[0,0]", "R[0,1]", "Q[0,1]"];
    let observables: Vec<_> = names.iter().flat_map(|n| observable::parse(n, &problem).unwrap()).collect();
    let times = [0.5, 3.0, 10.0, 30.0, 60.0];
    let of = |accuracy: f64| {
        let theory = FluctuationTheory::new(&problem, Needed::DriftAndNoise, accuracy).unwrap();
        theory.covariances(&times, &observables).unwrap()
    };
    for ((band, fine), time) in of(1e-4).iter().zip(&of(1e-9)).zip(times) {
        for a in 0..names.len() {
            for b in 0..=a {
                let size = (fine[(a, a)] * fine[(b, b)]).sqrt();
                let error = (band[(a, b)] - fine[(a, b)]).abs() / size;
                assert!(
                    error < ALLOWED,
                    "alpha = {time}: Cov[{}, {}] is off by {error:.1e}",
                    names[a],
                    names[b]
                );
            }
        }
    }
}
