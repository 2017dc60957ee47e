//! Closed forms of the two-layer model: escape rates, final loss against rank, and gradient noise
//! (docs/derivations/lora.md#s11).

use super::{LoraTwoLayer, PerUnit};
use crate::Family;
use didact_math::linalg::Mat;
use didact_model::overlaps::Overlaps;
use didact_model::quantity::{Answer, Arguments, Input, Kind, Quantity, QuantityError};
use didact_model::rule::{Averages, Law, Needed};
use didact_model::spectrum::Spectrum;
use serde_json::json;

/// Rate at which U and M leave the origin.
///
/// Linear units: with α = mean v²(1−μ)² and β = mean v², λ = (−β + √(β² + 4αβ))/2, whatever the rank.
/// He_2/√2: κ_i = (v_iμ_i/K)[2v_i(μ_i² − 1) + T₀], η_i = (v_i/K)[2v_iμ_i² + T₀], T₀ = Σ v_j(μ_j² − 1), and
/// λ = max_i (−η_i + √(η_i² + 4κ_i²))/2. `None` for other activations. docs/derivations/lora.md#eq-52.
pub fn escape_rate(activation: &str, output: &[f64], mu: &[f64]) -> Option<f64> {
    let k = output.len() as f64;
    let units = || output.iter().zip(mu);
    match activation {
        "linear" => {
            let alpha = units().map(|(v, m)| (v * (1.0 - m)).powi(2)).sum::<f64>() / k;
            let beta = output.iter().map(|v| v * v).sum::<f64>() / k;
            Some(growth(beta, (alpha * beta).sqrt()))
        }
        "h2" => {
            let trace: f64 = units().map(|(v, m)| v * (m * m - 1.0)).sum();
            let rate = |(v, m): (&f64, &f64)| {
                let kappa = v * m / k * (2.0 * v * (m * m - 1.0) + trace);
                let eta = v / k * (2.0 * v * m * m + trace);
                growth(eta, kappa)
            };
            Some(units().map(rate).fold(f64::NEG_INFINITY, f64::max))
        }
        _ => None,
    }
}

/// (−η + √(η² + 4κ²))/2 without cancellation.
fn growth(eta: f64, kappa: f64) -> f64 {
    let root = eta.hypot(2.0 * kappa);
    if eta > 0.0 { 2.0 * kappa * kappa / (root + eta) } else { 0.5 * (root - eta) }
}

/// L_final = (1−μ²)²(K−R)(K+2)/(2K(R+2)) for He_2/√2, v = 1, equal μ, R ≤ K: R directions are corrected, and overshoot to
/// offset the mean of the others. R = 0 gives the initial loss. docs/derivations/lora.md#eq-54.
pub fn final_loss(hidden: usize, rank: usize, mu: f64) -> f64 {
    let (k, r) = (hidden as f64, rank as f64);
    (1.0 - mu * mu).powi(2) * (k - r) * (k + 2.0) / (2.0 * k * (r + 2.0))
}

/// The loss at U = 0, (1−μ²)²(K+2)/4.
pub fn initial_loss(hidden: usize, mu: f64) -> f64 {
    final_loss(hidden, 0, mu)
}

const ACTIVATION: Input = Input {
    name: "activation",
    kind: Kind::Text,
    default: Some("\"h2\""),
    about: "h2 (He_2/sqrt 2), linear, or any other where no closed form is needed",
};
const HIDDEN: Input = Input { name: "K", kind: Kind::Count, default: None, about: "hidden units" };
const RANK: Input = Input { name: "R", kind: Kind::Count, default: None, about: "adapters" };
const MU: Input = Input {
    name: "mu",
    kind: Kind::Numbers,
    default: None,
    about: "strength of pre-training, one or one per unit",
};
const OUTPUT: Input = Input {
    name: "v",
    kind: Kind::Numbers,
    default: Some("[1]"),
    about: "output weights, one or one per unit",
};
const fn matrix(name: &'static str, kind: Kind, about: &'static str) -> Input {
    Input { name, kind, default: None, about }
}

pub(super) const QUANTITIES: &[Quantity] = &[
    Quantity {
        name: "escape-rate",
        summary: "rate and time of the escape of adapters from small U and M, linear and h2",
        inputs: &[
            ACTIVATION,
            Input {
                name: "K",
                kind: Kind::Count,
                default: Some("1"),
                about: "hidden units, when mu and v are single numbers",
            },
            MU,
            OUTPUT,
        ],
        compute: escape_rate_quantity,
    },
    Quantity {
        name: "final-loss",
        summary: "population loss after training of h2 units with v = 1 and equal mu, against rank",
        inputs: &[HIDDEN, RANK, Input { kind: Kind::Number, about: "strength of pre-training", ..MU }],
        compute: final_loss_quantity,
    },
    Quantity {
        name: "averages",
        summary: "loss, gradient of U and gradient noise at given U (K x R), M (K x R), Q (R x R)",
        inputs: &[
            ACTIVATION,
            MU,
            OUTPUT,
            matrix("U", Kind::Rows, "amplitudes, K x R"),
            matrix("M", Kind::Rows, "overlaps of teachers and adapters, K x R"),
            matrix("Q", Kind::Matrix, "overlaps of the adapters, R x R"),
        ],
        compute: averages_quantity,
    },
];

fn domain(message: impl Into<String>) -> QuantityError {
    QuantityError::Domain(message.into())
}

/// A list of K numbers; one number stands for K equal ones.
fn per_unit(arguments: &Arguments, name: &str, units: usize) -> Result<Vec<f64>, QuantityError> {
    let list = arguments.numbers(name);
    match list.len() {
        1 => Ok(vec![list[0]; units]),
        n if n == units => Ok(list),
        n => Err(domain(format!("`{name}` has {n} entries for {units} hidden units"))),
    }
}

fn strengths(arguments: &Arguments, units: usize) -> Result<Vec<f64>, QuantityError> {
    let mu = per_unit(arguments, "mu", units)?;
    match mu.iter().find(|m| !(**m > 0.0 && **m < 1.0)) {
        Some(bad) => Err(domain(format!("mu holds {bad}; strengths lie strictly between 0 and 1"))),
        None => Ok(mu),
    }
}

fn escape_rate_quantity(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let units = arguments.count("K").max(arguments.numbers("mu").len()).max(arguments.numbers("v").len());
    let (mu, v) = (strengths(arguments, units)?, per_unit(arguments, "v", units)?);
    let activation = arguments.text("activation");
    let rate = escape_rate(activation, &v, &mu).ok_or_else(|| {
        domain(format!("no closed form of the escape rate for `{activation}`; it is known for linear and h2"))
    })?;
    let distance = mu.iter().map(|m| (1.0 - m).powi(2)).sum::<f64>() / units as f64;
    Ok(vec![("rate", json!(rate)), ("tau", json!(1.0 / rate)), ("distance", json!(distance))])
}

fn final_loss_quantity(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (k, r, mu) = (arguments.count("K"), arguments.count("R"), arguments.number("mu"));
    if r > k {
        return Err(domain(format!("the closed form needs R <= K, but R = {r} and K = {k}")));
    }
    if !(mu > 0.0 && mu < 1.0) {
        return Err(domain(format!("mu is {mu}; strengths lie strictly between 0 and 1")));
    }
    Ok(vec![("loss", json!(final_loss(k, r, mu))), ("initial", json!(initial_loss(k, mu)))])
}

fn averages_quantity(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (u, m, q) = (arguments.matrix("U"), arguments.matrix("M"), arguments.matrix("Q"));
    let (k, r) = (u.rows(), u.cols());
    if m.rows() != k || m.cols() != r || q.rows() != r {
        return Err(domain(format!("U is {k} x {r}, so M must be {k} x {r} and Q {r} x {r}")));
    }
    if (0..r).any(|i| (q[(i, i)] - 1.0).abs() > 1e-9) {
        return Err(domain("the diagonal of Q must be 1: adapters are unit vectors"));
    }
    let spec = LoraTwoLayer {
        mu: PerUnit::Each(strengths(arguments, k)?),
        output_weights: PerUnit::Each(per_unit(arguments, "v", k)?),
        ..LoraTwoLayer::uniform(k, r, 0.5, arguments.text("activation"))
    };
    let rule = spec.rule().map_err(|e| domain(e.to_string()))?;
    let blocks = (&q, &m.transpose(), &Mat::identity(k));
    let scalars = u.as_slice().to_vec();
    let state = Overlaps::spread(rule.shape(), &Spectrum::isotropic(), blocks, scalars)
        .map_err(|e| domain(format!("impossible M and Q: {e}")))?;
    let law = Law { covariance: &state.blocks[0], scalars: &state.scalars, label_noise: 0.0 };
    let mut out = Averages::new(rule.shape());
    rule.averages(&law, Needed::DriftAndNoise, &mut out);
    let gradient: Vec<&[f64]> = out.scalars.chunks(r).collect();
    Ok(vec![
        ("loss", json!(rule.risk(&law))),
        ("gradient", json!(gradient)),
        ("noise", json!(out.noise.to_rows())),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use didact_math::linalg::eigenvalues_general;

    #[test]
    fn rates_of_ten_units_are_those_of_the_spec() {
        for (mu, second, linear) in
            [(0.1, 1.00208, 0.529563), (0.5, 0.920088, 0.207107), (0.9, 0.219677, 0.00990195)]
        {
            let (v, mu) = (vec![1.0; 10], vec![mu; 10]);
            assert!((escape_rate("h2", &v, &mu).unwrap() / second - 1.0).abs() < 1e-5);
            assert!((escape_rate("linear", &v, &mu).unwrap() / linear - 1.0).abs() < 1e-5);
        }
        assert_eq!(escape_rate("relu", &[1.0], &[0.5]), None);
    }

    /// The largest eigenvalue of the numerical Jacobian of (U, M) at U = M = 0, Q = 1.
    #[test]
    fn rates_are_eigenvalues_of_the_linearised_flow() {
        let (v, mu) = (vec![1.0, 0.7, -0.5], vec![0.2, 0.5, 0.7]);
        for name in ["linear", "h2"] {
            for r in [1, 2] {
                let spec = LoraTwoLayer {
                    mu: PerUnit::Each(mu.clone()),
                    output_weights: PerUnit::Each(v.clone()),
                    ..LoraTwoLayer::uniform(3, r, 0.5, name)
                };
                let rule = spec.rule().unwrap();
                // d/dt of (U, M) from U, M; to first order Q stays 1 and lengths do not matter.
                let velocity = |state: &[f64]| -> Vec<f64> {
                    let (u, m) = state.split_at(3 * r);
                    let p = r + 3;
                    let c = Mat::from_fn(p, p, |i, j| match (i < r, j < r) {
                        (true, false) => m[(j - r) * r + i],
                        (false, true) => m[(i - r) * r + j],
                        _ => f64::from(i == j),
                    });
                    let mut out = Averages::new(rule.shape());
                    rule.averages(
                        &Law { covariance: &c, scalars: u, label_noise: 0.0 },
                        Needed::Drift,
                        &mut out,
                    );
                    let motion = out.drift.times(&c);
                    let overlaps = (0..3 * r).map(|at| -motion[(at % r, r + at / r)]);
                    out.scalars.iter().map(|s| -s).chain(overlaps).collect()
                };
                let (n, h) = (6 * r, 1e-6);
                let columns: Vec<Vec<f64>> = (0..n)
                    .map(|j| {
                        let at = |by: f64| {
                            let mut state = vec![0.0; n];
                            state[j] = by;
                            velocity(&state)
                        };
                        at(h).iter().zip(at(-h)).map(|(a, b)| (a - b) / (2.0 * h)).collect()
                    })
                    .collect();
                let jacobian = Mat::from_fn(n, n, |i, j| columns[j][i]);
                let largest =
                    eigenvalues_general(&jacobian).iter().map(|z| z.0).fold(f64::NEG_INFINITY, f64::max);
                let expected = escape_rate(name, &v, &mu).unwrap();
                assert!((largest - expected).abs() < 1e-8, "{name}, R = {r}: {largest} and {expected}");
            }
        }
    }

    #[test]
    fn final_losses_are_those_of_the_spec() {
        for (r, half, tenth) in
            [(1, 1.0125, 1.76418), (3, 0.4725, 0.823284), (6, 0.16875, 0.29403), (9, 0.030682, 0.05346)]
        {
            assert!((final_loss(10, r, 0.5) / half - 1.0).abs() < 1e-5);
            assert!((final_loss(10, r, 0.1) / tenth - 1.0).abs() < 1e-5);
        }
        assert_eq!(final_loss(4, 4, 0.3), 0.0);
        assert!((initial_loss(10, 0.5) - 0.5625 * 3.0).abs() < 1e-15);
    }
}
