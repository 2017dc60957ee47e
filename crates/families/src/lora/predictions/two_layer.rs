//! Closed forms of the two-layer model: escape rates, final loss against rank, and gradient noise
//! (docs/derivations/lora.md#s11).

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Family;
    use crate::lora::two_layer::{LoraTwoLayer, PerUnit};
    use didact_math::linalg::{Mat, eigenvalues_general};
    use didact_model::rule::{Averages, Law, Needed};

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
