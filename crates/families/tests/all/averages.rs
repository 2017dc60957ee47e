//! The averages of every registered family: its own, quadrature of `kick`, and Monte Carlo agree.

use crate::examples;
use didact_families::committee::Committee;
use didact_families::{Family, Model};
use didact_math::linalg::{Mat, cholesky_psd};
use didact_math::random::statistics::Moments;
use didact_math::random::{RngAddress, Stream};
use didact_model::averages::{
    SAMPLED_ACCURACY, USUAL_ACCURACY, by_quadrature, other_class_by_quadrature, risk_by_quadrature,
};
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

/// Averages that need not be the best that quadrature can do: it states its error, and the tests take seconds.
fn moderate(rule: &dyn LocalRule) -> Averages {
    Averages { accuracy: Some(SAMPLED_ACCURACY), ..Averages::new(rule.shape()) }
}

fn for_every_example(test: impl Fn(&str, &dyn LocalRule, &Law, &mut Stream)) {
    for (model, mut stream) in examples(12) {
        let rule = model.rule().unwrap();
        let scalars: Vec<f64> = model.starting_scalars().iter().map(|a| a + 0.2 * stream.normal()).collect();
        for covariance in covariances(rule.shape().rows(), &mut stream) {
            let law = Law { covariance: &covariance, scalars: &scalars, label_noise: LABEL_NOISE };
            test(&format!("{model:?} at {covariance:?}"), &*rule, &law, &mut stream);
        }
    }
}

/// Formulas with random numbers in them, from a fixed seed: smooth ones, and ones with kinks.
fn random_formulas() -> [Vec<String>; 2] {
    let mut stream = Stream::at(RngAddress { seed: 27, replica: 0, step: 0, lane: 0 });
    let mut fill = |template: &str| {
        let mut text = template.to_owned();
        while let Some(at) = text.find('#') {
            let number = 0.3 + 0.9 * (0.5 * stream.normal()).tanh().abs();
            text.replace_range(at..=at, &format!("{number:.3}"));
        }
        text
    };
    let smooth = [
        "#*tanh(#*x) + 0.1*#*x^2",
        "x*sigmoid(#*x) - 0.2*x",
        "#*sin(#*x) + #*x",
        "log(1 + exp(#*x)) - #",
        "erf(#*x) + #*x*exp(-x^2)",
        "#*atan(x - #)",
    ];
    let kinked = [
        "max(x, #) - #*x",
        "abs(x - #)",
        "max(x, 0)*tanh(#*x)",
        "#*max(x, 0) - #*x",
        "max(x, -#*x)",
        "# + max(x - #, 0.1*(x - #))",
        "min(max(x, -#), #) + 0.1*x",
        "sampled[-8, !0, 8; 0; 4, 4](x - #)",
        "sampled[-6, !-1, !1, 6; -1; 0, 1; 1](x + #) - #*x",
        "sampled[-4, !0, 4; 0; 1.35, 1.6, 0.25](x - #)",
    ];
    [smooth.map(&mut fill).to_vec(), kinked.map(&mut fill).to_vec()]
}

fn for_every_formula(formulas: &[String], test: impl Fn(&str, &dyn LocalRule, &Law)) {
    for (index, formula) in formulas.iter().enumerate() {
        let rule = Committee::soft(2, 1, formula).rule().unwrap();
        let mut stream = Stream::at(RngAddress { seed: 28, replica: index as u32, step: 0, lane: 0 });
        for covariance in covariances(rule.shape().rows(), &mut stream) {
            let law = Law { covariance: &covariance, scalars: &[], label_noise: LABEL_NOISE };
            test(&format!("{formula} at {covariance:?}"), &*rule, &law);
        }
    }
}

#[test]
fn averages_of_random_formulas_are_those_of_their_kicks() {
    for formulas in random_formulas() {
        for_every_formula(&formulas, |name, rule, law| {
            let (mut known, mut slow) = (Averages::new(rule.shape()), moderate(rule));
            rule.averages(law, Needed::DriftAndNoise, &mut known);
            by_quadrature(rule, law, Needed::DriftAndNoise, &mut slow);
            let allowed = 1e-8 * slow.noise.max_abs() + 6.0 * (known.error + slow.error);
            let mut apart = known.noise.clone();
            apart.add_scaled(-1.0, &slow.noise);
            assert!(apart.max_abs() <= allowed, "{name}: N off by {:e}, {allowed:e}", apart.max_abs());
            let mut apart = fields_times_kicks(&known, law);
            apart.add_scaled(-1.0, &fields_times_kicks(&slow, law));
            assert!(
                apart.max_abs() <= 2.0 * allowed,
                "{name}: A C off by {:e}, {allowed:e}",
                apart.max_abs()
            );
            let risk = risk_by_quadrature(rule, law, SAMPLED_ACCURACY);
            let off = (rule.risk(law) - risk.value).abs();
            assert!(
                off <= 1e-9 * (1.0 + risk.value) + 6.0 * risk.error,
                "{name}: risk off by {off:e}, {risk:?}"
            );
        });
    }
}

/// What a run asks for when it is content with less than the best: errors keep to what was asked, and to what is stated.
#[test]
fn averages_of_formulas_keep_the_accuracy_that_is_asked_for() {
    let [smooth, kinked] = random_formulas();
    // Other functions with kinks reach what they state, which may be less.
    let linear =
        |formula: &String| didact_math::activation::parse(formula).unwrap().linear_pieces().is_some();
    let formulas: Vec<String> = smooth.into_iter().chain(kinked.into_iter().filter(linear)).collect();
    assert_eq!(formulas.len(), 14);
    for accuracy in [1e-4, 1e-6] {
        for_every_formula(&formulas, |name, rule, law| {
            let (mut best, mut quick) = (Averages::new(rule.shape()), Averages::new(rule.shape()));
            quick.accuracy = Some(accuracy);
            rule.averages(law, Needed::DriftAndNoise, &mut best);
            rule.averages(law, Needed::DriftAndNoise, &mut quick);
            let sizes = [best.noise.max_abs(), best.drift.max_abs()];
            for ((what, best_of, quick_of), size) in
                [("noise", &best.noise, &quick.noise), ("drift", &best.drift, &quick.drift)]
                    .into_iter()
                    .zip(sizes)
            {
                let mut apart = quick_of.clone();
                apart.add_scaled(-1.0, best_of);
                let off = apart.max_abs();
                assert!(
                    off <= 2.0 * accuracy * size + best.error,
                    "{name}: {what} off by {off:e} of {size:e}"
                );
                assert!(
                    off <= 2.0 * quick.error + best.error + 1e-11 * size,
                    "{name}: {what} off by {off:e}, stated {:e}",
                    quick.error
                );
            }
            let size = sizes[0].max(sizes[1]);
            assert!(quick.error <= 2.0 * accuracy * size, "{name}: stated {:e} of {size:e}", quick.error);
        });
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
        let (mut known, mut slow) = (Averages::new(shape), moderate(rule));
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
        let risk = risk_by_quadrature(rule, law, SAMPLED_ACCURACY);
        let (got, most) = (rule.risk(law), 1e-10 * (1.0 + risk.value) + 6.0 * risk.error);
        assert!((got - risk.value).abs() <= most, "{name}: risk {got} and {risk:?}");
    });
}

#[test]
fn drift_without_noise_is_the_same_drift() {
    for_every_example(|name, rule, law, _| {
        let (mut both, mut alone) = (moderate(rule), moderate(rule));
        rule.averages(law, Needed::DriftAndNoise, &mut both);
        rule.averages(law, Needed::Drift, &mut alone);
        // Without a closed form the two may choose different rules: six of the errors they state, as above; exact with one.
        let most = 6.0 * (both.error + alone.error);
        for (a, b) in both.scalars.iter().zip(&alone.scalars) {
            assert!((a - b).abs() <= most, "{name}: {a} and {b}, stated error {most:e}");
        }
        if most == 0.0 {
            assert_eq!(both.drift.as_slice(), alone.drift.as_slice(), "{name}");
        }
        let (a, b) = (fields_times_kicks(&both, law), fields_times_kicks(&alone, law));
        for i in 0..rule.shape().trained {
            for k in 0..rule.shape().rows() {
                let most = 2.0 * law.covariance[(k, k)].sqrt() * most;
                let off = (a[(i, k)] - b[(i, k)]).abs();
                assert!(off <= most, "{name}: A C [{i},{k}] differ by {off:e}, stated error {most:e}");
            }
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
const SPREAD: f64 = 2.0;

/// Fills z from the equal mixture of N(0, 1) and N(0, 2²) and returns the weight, at most 2, that makes averages those of N(0, 1).
///
/// The wide half finds the tails of polynomials of high degree, which as many plain samples miss together with the
/// variance that they cause.
fn weighted_normals(wide: bool, z: &mut [f64], stream: &mut Stream) -> f64 {
    stream.fill_normal(z);
    if wide {
        z.iter_mut().for_each(|z| *z *= SPREAD);
    }
    let square: f64 = z.iter().map(|z| z * z).sum();
    let ratio = SPREAD.powi(-(z.len() as i32)) * (0.5 * square * (1.0 - SPREAD.powi(-2))).exp();
    2.0 / (1.0 + ratio)
}

#[test]
fn averages_match_monte_carlo() {
    for_every_example(|name, rule, law, stream| match_monte_carlo(name, rule, law, 100_000, stream));
}

#[test]
fn averages_of_random_formulas_match_monte_carlo() {
    for formulas in random_formulas() {
        for_every_formula(&formulas, |name, rule, law| {
            let mut stream = Stream::at(RngAddress { seed: 29, replica: 0, step: 0, lane: 0 });
            match_monte_carlo(name, rule, law, 20_000, &mut stream);
        });
    }
}

fn match_monte_carlo(name: &str, rule: &dyn LocalRule, law: &Law, samples: usize, stream: &mut Stream) {
    let shape = rule.shape();
    let (k, p) = (shape.trained, shape.rows());
    let mut known = Averages::new(shape);
    rule.averages(law, Needed::DriftAndNoise, &mut known);
    let products = fields_times_kicks(&known, law);
    let check = |name: String, expected: f64| Check { name, expected, moments: Moments::default() };
    let mut checks = vec![check("risk".into(), rule.risk(law))];
    checks.extend((0..k * p).map(|e| check(format!("A C [{},{}]", e / p, e % p), products[(e / p, e % p)])));
    checks.extend((0..k * k).map(|e| check(format!("N [{},{}]", e / k, e % k), known.noise[(e / k, e % k)])));
    checks.extend(known.scalars.iter().enumerate().map(|(j, s)| check(format!("scalar {j}"), *s)));
    let lower = cholesky_psd(law.covariance).unwrap();
    let (mut z, mut kick) = (vec![0.0; p + 1], Kick::new(shape));
    for draw in 0..samples {
        let weight = weighted_normals(draw % 2 == 0, &mut z, stream);
        let fields: Vec<f64> = (0..p).map(|i| (0..=i).map(|j| lower[(i, j)] * z[j]).sum()).collect();
        let sample = Sample { fields: &fields, scalars: law.scalars, noise: law.label_noise * z[p] };
        rule.kick(&sample, &mut kick);
        let loss = rule.loss(&Sample { noise: 0.0, ..sample });
        let drifts = (0..k * p).map(|e| kick.rows[e / p] * fields[e % p]);
        let squares = (0..k * k).map(|e| kick.rows[e / k] * kick.rows[e % k]);
        let values = std::iter::once(loss).chain(drifts).chain(squares).chain(kick.scalars.iter().copied());
        for (check, value) in checks.iter_mut().zip(values) {
            check.moments.push(weight * value);
        }
    }
    for Check { name: what, expected, moments } in &checks {
        let z = (moments.mean() - expected) / moments.standard_error();
        assert!(z.abs() < 5.0, "{name}: {what} is {expected}, Monte Carlo {}, z = {z}", moments.mean());
    }
}

/// Three units with a robust loss were off by 3e-3 where a fine product rule was not, without a word.
#[test]
fn robust_losses_of_several_units_are_averaged_as_accurately_as_stated() {
    let model: Model = serde_json::from_value(serde_json::json!({
        "family": "multi-index", "students": 3, "directions": 2, "activation": "tanh(1.5*x)", "link": "tanh(z1) + 0.5*z2",
        "loss": { "kind": "pseudo-huber", "kappa": 0.8 }, "weights": [1.0, -0.5, 2.0], "biases": [0.1, 0.0, -0.3],
    }))
    .unwrap();
    let rule = model.rule().unwrap();
    let factor = Mat::from_fn(5, 5, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Less => 0.0,
        std::cmp::Ordering::Equal => 0.9,
        std::cmp::Ordering::Greater => 0.2 * ((i + 2 * j) as f64).cos(),
    });
    let covariance = factor.gram();
    let law = Law { covariance: &covariance, scalars: &[], label_noise: 0.0 };
    let found = rule.risk_within(&law, USUAL_ACCURACY);
    assert!(found.error < 2e-5 * found.value, "{found:?}");
    // The slow twin: a product of trapezoidal rules, cut off at a sphere.
    let rule_of_one = didact_math::gauss::GaussianRule::trapezoid(0.5, 5.5);
    let nodes: Vec<(f64, f64)> =
        rule_of_one.nodes.iter().copied().zip(rule_of_one.weights.iter().copied()).collect();
    let n = nodes.len();
    let (mut sum, mut total, mut fields) = (0.0, 0.0, vec![0.0; 5]);
    for point in 0..n.pow(5) {
        let z: [(f64, f64); 5] = std::array::from_fn(|j| nodes[point / n.pow(j as u32) % n]);
        if z.iter().map(|(z, _)| z * z).sum::<f64>() > 36.0 {
            continue;
        }
        let weight: f64 = z.iter().map(|(_, w)| w).product();
        for (i, h) in fields.iter_mut().enumerate() {
            *h = (0..5).map(|j| factor[(i, j)] * z[j].0).sum();
        }
        sum += weight * rule.loss(&Sample { fields: &fields, scalars: &[], noise: 0.0 });
        total += weight;
    }
    let off = (found.value / (sum / total) - 1.0).abs();
    assert!(off < 2e-5, "{found:?} against {}", sum / total);
}

/// Two units that only turn: labels differ in the wedge between them, arccos ρ/π of all inputs.
#[test]
fn the_classification_error_of_one_unit_is_the_angle_to_its_teacher() {
    let rule = Committee::soft(1, 1, "erf(z/sqrt2)").rule().unwrap();
    for rho in [-0.5f64, 0.2, 0.9] {
        let covariance = Mat::from_fn(2, 2, |i, j| if i == j { 1.0 } else { rho });
        let law = Law { covariance: &covariance, scalars: &[], label_noise: 0.0 };
        let found = other_class_by_quadrature(&*rule, &law, 1e-4);
        let exact = rho.acos() / std::f64::consts::PI;
        assert!(
            (found.value - exact).abs() < 6.0 * found.error && found.error < 1e-2,
            "{rho}: {found:?}, {exact}"
        );
    }
}
