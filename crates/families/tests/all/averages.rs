//! The averages of every registered family: its own, quadrature of `kick`, and Monte Carlo agree.

use didact_families::Model;
use didact_math::linalg::{Mat, cholesky_psd};
use didact_math::random::statistics::Moments;
use didact_math::random::{Address, Stream};
use didact_model::averages::{by_quadrature, risk_by_quadrature};
use didact_model::rule::LocalRule;
use didact_model::{Averages, Kick, Law, Needed, Sample};

const LABEL_NOISE: f64 = 0.3;

/// Two random covariances and a singular one, of variances around 0.7.
fn covariances(rows: usize, stream: &mut Stream) -> Vec<Mat> {
    let mut random = |independent: usize| {
        let scale = (0.7 / independent as f64).sqrt();
        Mat::from_fn(rows, independent, |_, _| scale * stream.normal()).gram()
    };
    vec![random(rows), random(2 * rows), random(rows - 1)]
}

fn for_every_example(test: impl Fn(&str, &dyn LocalRule, &Law, &mut Stream)) {
    for (index, model) in Model::examples().iter().enumerate() {
        let rule = model.rule().unwrap();
        let mut stream = Stream::at(Address { seed: 12, replica: index as u32, step: 0, lane: 0 });
        let scalars: Vec<f64> = model.starting_scalars().iter().map(|a| a + 0.2 * stream.normal()).collect();
        for covariance in covariances(rule.shape().rows(), &mut stream) {
            let law = Law { covariance: &covariance, scalars: &scalars, label_noise: LABEL_NOISE };
            test(&format!("{model:?} at {covariance:?}"), &*rule, &law, &mut stream);
        }
    }
}

/// E[kick_i h_k] = (A C)_ik by Stein's lemma; A itself is not unique when C is singular.
fn fields_times_kicks(averages: &Averages, law: &Law) -> Mat {
    averages.drift.times(law.covariance)
}

#[test]
fn averages_of_a_rule_are_those_of_its_kick() {
    for_every_example(|name, rule, law, _| {
        let shape = rule.shape();
        let (mut known, mut slow) = (Averages::new(shape), Averages::new(shape));
        rule.averages(law, Needed::DriftAndNoise, &mut known);
        by_quadrature(rule, law, Needed::DriftAndNoise, &mut slow);
        // Stated errors are differences of two rules or standard errors of lattices; A C sums √C_kk times as much.
        let size = slow.noise.max_abs() + slow.drift.max_abs();
        let allowed = |scale: f64| 1e-10 * size + 6.0 * scale * (known.error + slow.error);
        let (a, b) = (fields_times_kicks(&known, law), fields_times_kicks(&slow, law));
        for i in 0..shape.trained {
            for k in 0..shape.rows() {
                let difference = (a[(i, k)] - b[(i, k)]).abs();
                let most = allowed(2.0 * law.covariance[(k, k)].sqrt());
                assert!(
                    difference <= most,
                    "{name}: A C [{i},{k}] {} and {}, {most:e}",
                    a[(i, k)],
                    b[(i, k)]
                );
            }
            for j in 0..shape.trained {
                let (n, m) = (known.noise[(i, j)], slow.noise[(i, j)]);
                assert!((n - m).abs() <= allowed(1.0), "{name}: N [{i},{j}] {n} and {m}, {:e}", allowed(1.0));
            }
        }
        for (a, b) in known.scalars.iter().zip(&slow.scalars) {
            assert!((a - b).abs() <= allowed(1.0), "{name}: scalars {a} and {b}");
        }
        let risk = risk_by_quadrature(rule, law);
        let (got, most) = (rule.risk(law), 1e-10 * (1.0 + risk.value) + 6.0 * risk.error);
        assert!((got - risk.value).abs() <= most, "{name}: risk {got} and {risk:?}");
    });
}

#[test]
fn drift_without_noise_is_the_same_drift() {
    for_every_example(|name, rule, law, _| {
        let (mut both, mut alone) = (Averages::new(rule.shape()), Averages::new(rule.shape()));
        rule.averages(law, Needed::DriftAndNoise, &mut both);
        rule.averages(law, Needed::Drift, &mut alone);
        // Without a closed form the two may choose different rules: six of the errors they state, as above; exact with one.
        let most = 6.0 * (both.error + alone.error);
        let pairs = both.drift.as_slice().iter().zip(alone.drift.as_slice());
        for (a, b) in pairs.chain(both.scalars.iter().zip(&alone.scalars)) {
            assert!((a - b).abs() <= most, "{name}: {a} and {b}, stated error {most:e}");
        }
    });
}

/// Monte Carlo moments of named numbers, and what they should be.
struct Check {
    name: String,
    expected: f64,
    moments: Moments,
}

/// Deviation of the wider of two Gaussians.
const WIDE: f64 = 2.0;

/// Fills z from the equal mixture of N(0, 1) and N(0, 2²) and returns the weight, at most 2, that makes averages those of N(0, 1).
///
/// The wide half finds the tails of polynomials of high degree, which as many plain samples miss together with the
/// variance that they cause.
fn weighted_normals(wide: bool, z: &mut [f64], stream: &mut Stream) -> f64 {
    stream.fill_normal(z);
    if wide {
        z.iter_mut().for_each(|z| *z *= WIDE);
    }
    let square: f64 = z.iter().map(|z| z * z).sum();
    let ratio = WIDE.powi(-(z.len() as i32)) * (0.5 * square * (1.0 - WIDE.powi(-2))).exp();
    2.0 / (1.0 + ratio)
}

#[test]
fn averages_match_monte_carlo() {
    const SAMPLES: usize = 100_000;
    for_every_example(|name, rule, law, stream| {
        let shape = rule.shape();
        let (k, p) = (shape.trained, shape.rows());
        let mut known = Averages::new(shape);
        rule.averages(law, Needed::DriftAndNoise, &mut known);
        let products = fields_times_kicks(&known, law);
        let check = |name: String, expected: f64| Check { name, expected, moments: Moments::default() };
        let mut checks = vec![check("risk".into(), rule.risk(law))];
        checks.extend(
            (0..k * p).map(|e| check(format!("A C [{},{}]", e / p, e % p), products[(e / p, e % p)])),
        );
        checks.extend(
            (0..k * k).map(|e| check(format!("N [{},{}]", e / k, e % k), known.noise[(e / k, e % k)])),
        );
        checks.extend(known.scalars.iter().enumerate().map(|(j, s)| check(format!("scalar {j}"), *s)));
        let lower = cholesky_psd(law.covariance).unwrap();
        let (mut z, mut kick) = (vec![0.0; p + 1], Kick::new(shape));
        for draw in 0..SAMPLES {
            let weight = weighted_normals(draw % 2 == 0, &mut z, stream);
            let fields: Vec<f64> = (0..p).map(|i| (0..=i).map(|j| lower[(i, j)] * z[j]).sum()).collect();
            let sample = Sample { fields: &fields, scalars: law.scalars, noise: law.label_noise * z[p] };
            rule.kick(&sample, &mut kick);
            let loss = rule.loss(&Sample { noise: 0.0, ..sample });
            let drifts = (0..k * p).map(|e| kick.rows[e / p] * fields[e % p]);
            let squares = (0..k * k).map(|e| kick.rows[e / k] * kick.rows[e % k]);
            let values =
                std::iter::once(loss).chain(drifts).chain(squares).chain(kick.scalars.iter().copied());
            for (check, value) in checks.iter_mut().zip(values) {
                check.moments.push(weight * value);
            }
        }
        for Check { name: what, expected, moments } in &checks {
            let z = (moments.mean() - expected) / moments.standard_error();
            assert!(z.abs() < 5.0, "{name}: {what} is {expected}, Monte Carlo {}, z = {z}", moments.mean());
        }
    });
}
