//! The risk of committees whose units have kinks and no closed form.

use super::{CommitteeRule, activation_of};
use didact_math::gauss::truncated::TruncatedSeries;
use didact_math::linalg::Mat;
use std::sync::Arc;

/// Σ_kl v_k v_l E[g_k g_l] from the first Hermite coefficients of the units, and a bound on its error. It takes tens of microseconds, where
/// quadrature over pairs of fields takes tens of milliseconds.
pub(super) fn squared_error(rule: &CommitteeRule, covariance: &Mat, residual: &[f64]) -> (f64, f64) {
    let mut series: Vec<TruncatedSeries> = Vec::with_capacity(residual.len());
    for row in 0..residual.len() {
        // Teachers of equal length share one series.
        let same = |&k: &usize| {
            Arc::ptr_eq(activation_of(rule, k), activation_of(rule, row))
                && covariance[(k, k)] == covariance[(row, row)]
        };
        let known = (0..row).find(same).map(|k| series[k].clone());
        let own = || TruncatedSeries::of(activation_of(rule, row).as_ref(), covariance[(row, row)]);
        series.push(known.unwrap_or_else(own));
    }
    let (mut sum, mut bound) = (0.0, 0.0);
    for (k, v) in residual.iter().enumerate() {
        sum += v * v * series[k].square();
        for l in 0..k {
            let (product, error) = series[k].product(&series[l], covariance[(k, l)]);
            let scale = 2.0 * v * residual[l];
            sum += scale * product;
            bound += scale.abs() * error;
        }
    }
    (sum, bound)
}

#[cfg(test)]
mod tests {
    use super::super::planes::nearly_learned;
    use super::super::{Hidden, Labels, rule};
    use didact_math::activation::parse;
    use didact_math::linalg::Mat;
    use didact_math::random::{RngAddress, Stream};
    use didact_model::loss::Loss;
    use didact_model::rule::{Law, LocalRule};

    #[test]
    fn the_risk_is_that_of_quadrature_over_pairs_within_its_stated_error() {
        let mut stream = Stream::at(RngAddress { seed: 21, replica: 0, step: 0, lane: 0 });
        for name in ["tanh(max(x,0))", "abs(tanh(x))+0.2*x"] {
            let unit = parse(name).unwrap();
            let rule = rule(
                Hidden { activation: unit.clone(), weights: vec![1.0, -0.6], trained: false },
                Labels { activation: unit, weights: vec![1.0; 2] },
                Loss::Square { weight: 1.0 },
            );
            let random = Mat::from_fn(4, 5, |_, _| 0.5 * stream.normal()).gram();
            // Nearly learned, the bound is too large and the pairs go to quadrature.
            for covariance in [random, nearly_learned(0.3), nearly_learned(1e-3)] {
                let law = Law { covariance: &covariance, scalars: &[], label_noise: 0.0 };
                let (fast, slow) = (rule.risk_within(&law, 1e-4), rule.risk_within(&law, 1e-11));
                assert!(fast.error <= 1e-3 * fast.value, "{name}: {fast:?}");
                let off = (fast.value - slow.value).abs();
                assert!(off <= fast.error + slow.error, "{name}, {covariance:?}: {fast:?} {slow:?}");
            }
        }
    }
}
