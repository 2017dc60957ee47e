//! Gaussian averages of the two-layer rule.
//!
//! The 2K units g are the student's fields F_k and the teacher's a_k, g = Γh, with coefficients o = (−v, v) in y − f. Then
//!
//!   G_kj = E[∂(e σ′_k)/∂h_j] = Σ_l o_l E[σ′_k g′_l] Γ_lj + E[e σ″_k] Γ_kj,      E[e σ″_k] = Σ_l o_l E[σ″_k g_l],
//!   A_rj = −(1/K) Σ_k v_k U_kr G_kj,      E[∂loss/∂U_kr] = −(v_k/K) Σ_j G_kj C_jr,      loss = Σ o_l o_m E[g_l g_m]/(2K).
//!
//! (docs/derivations/lora.md#eq-48). For φ = σ = He_2/√2 the pair averages are 2C_kl and C_ll − 1, which are the closed
//! forms of docs/derivations/lora.md#s11-he2 with the corrected factors (docs/derivations/lora.md#e11); for linear
//! units they are 1 and 0.

use super::AdapterRule;
use didact_math::activation::{Activation, Form};
use didact_math::gauss::{HermiteSeries, PairAverages, pair_averages};
use didact_math::linalg::{Mat, dot};
use didact_model::averages::by_quadrature;
use didact_model::rule::{Averages, Law, Needed};

/// How pairs of units are averaged, and whether the noise has a closed form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::lora) enum Route {
    /// φ = σ = z.
    Linear,
    /// φ = σ = He_2/√2.
    SecondHermite,
    /// Pair by pair; noise by quadrature.
    Pairs,
}

impl Route {
    pub(in crate::lora) fn of(student: &dyn Activation, teacher: &dyn Activation) -> Self {
        let linear = |a: &dyn Activation| a.form() == Form::Linear;
        match () {
            () if linear(student) && linear(teacher) => Self::Linear,
            () if student.name() == "h2" && teacher.name() == "h2" => Self::SecondHermite,
            () => Self::Pairs,
        }
    }
}

/// The units at one law of the fields.
struct Units<'a> {
    rule: &'a AdapterRule,
    /// Γ, 2K x P.
    map: Mat,
    /// Γ C Γᵀ.
    covariance: Mat,
    /// o_l.
    residual: Vec<f64>,
    series: Vec<Option<HermiteSeries>>,
}

impl<'a> Units<'a> {
    fn new(rule: &'a AdapterRule, law: &Law) -> Self {
        let (k, r) = (rule.mu.len(), rule.rank);
        let map = Mat::from_fn(2 * k, r + k, |unit, field| match (unit < k, field < r) {
            (true, true) => law.scalars[unit * r + field],
            (true, false) => rule.mu[unit] * f64::from(field - r == unit),
            (false, true) => 0.0,
            (false, false) => f64::from(field - r == unit - k),
        });
        let covariance = map.times(law.covariance).times(&map.transpose());
        let residual = rule.output.iter().map(|v| -v).chain(rule.output.iter().copied()).collect();
        let mut units = Self { rule, map, covariance, residual, series: Vec::new() };
        if rule.route == Route::Pairs {
            units.series = (0..2 * k)
                .map(|l| HermiteSeries::of(units.activation(l), units.covariance[(l, l)].max(0.0)))
                .collect();
        }
        units
    }

    fn activation(&self, unit: usize) -> &'a dyn Activation {
        if unit < self.rule.mu.len() { &*self.rule.student } else { &*self.rule.teacher }
    }

    /// Averages of unit k with unit l.
    fn pair(&self, k: usize, l: usize) -> PairAverages {
        let c = |i: usize, j: usize| self.covariance[(i, j)];
        match self.rule.route {
            Route::Linear => PairAverages {
                value_value: c(k, l),
                slope_slope: 1.0,
                curvature_value: 0.0,
                value_curvature: 0.0,
            },
            Route::SecondHermite => PairAverages {
                value_value: c(k, l) * c(k, l) + 0.5 * (c(k, k) - 1.0) * (c(l, l) - 1.0),
                slope_slope: 2.0 * c(k, l),
                curvature_value: c(l, l) - 1.0,
                value_curvature: c(k, k) - 1.0,
            },
            Route::Pairs => {
                if let (Some(a), Some(b)) = (&self.series[k], &self.series[l]) {
                    return a.with(b, c(k, l));
                }
                let minor = [[c(k, k).max(0.0), c(k, l)], [c(k, l), c(l, l).max(0.0)]];
                pair_averages(self.activation(k), self.activation(l), &minor)
            }
        }
    }

    /// G, K x P.
    fn slopes(&self) -> Mat {
        let k = self.rule.mu.len();
        let mut weights = Mat::zeros(k, 2 * k);
        for unit in 0..k {
            let mut curvature = 0.0;
            for other in 0..2 * k {
                let pair = self.pair(unit, other);
                weights[(unit, other)] = self.residual[other] * pair.slope_slope;
                curvature += self.residual[other] * pair.curvature_value;
            }
            weights[(unit, unit)] += curvature;
        }
        weights.times(&self.map)
    }

    /// E[e²].
    fn squared_error(&self) -> f64 {
        let mut sum = 0.0;
        for l in 0..self.residual.len() {
            for m in 0..=l {
                let twice = if m < l { 2.0 } else { 1.0 };
                sum += twice * self.residual[l] * self.residual[m] * self.pair(l, m).value_value;
            }
        }
        sum
    }

    /// Rows Σ_k v_k U_kr Γ_k·: what multiplies e (linear), or √2 e (He_2), in the kick of adapter r. R x P.
    fn directions(&self, scalars: &[f64]) -> Mat {
        let (k, r) = (self.rule.mu.len(), self.rule.rank);
        let gains = Mat::from_fn(r, k, |adapter, unit| self.rule.output[unit] * scalars[unit * r + adapter]);
        gains.times(&self.map.block(0..k, 0..r + k))
    }
}

pub(in crate::lora) fn fill(rule: &AdapterRule, law: &Law, needed: Needed, out: &mut Averages) {
    let (k, r, weight) = (rule.mu.len(), rule.rank, rule.weight());
    out.error = 0.0;
    let noisy = needed == Needed::DriftAndNoise;
    if noisy && rule.route == Route::Pairs {
        by_quadrature(rule, law, needed, out);
    }
    let units = Units::new(rule, law);
    let slopes = units.slopes();
    for adapter in 0..r {
        for field in 0..r + k {
            let unit = |u: usize| rule.output[u] * law.scalars[u * r + adapter] * slopes[(u, field)];
            out.drift[(adapter, field)] = -weight * (0..k).map(unit).sum::<f64>();
        }
        for unit in 0..k {
            let along = dot(slopes.row(unit), law.covariance.row(adapter));
            out.scalars[unit * r + adapter] = -weight * rule.output[unit] * along;
        }
    }
    if noisy && rule.route != Route::Pairs {
        out.noise = noise(&units, law);
    }
}

/// N_rs = E[D_r D_s] of the per-sample coefficients D of x in −∇_{w_r} loss.
///
/// Linear: (s_r s_s/K²) (E[e²] + σ²), s_r = Σ_k v_k U_kr. He_2: e = xᵀSx/√2, D_r = (1/K) xᵀSx p_r·x, and Wick's theorem gives
/// E[D_r D_s] = (1/K²) p_rᵀ[8S² + 4 tr S S + (2 tr S² + (tr S)²)1]p_s, here in the fields' own coordinates
/// (docs/derivations/lora.md#eq-55).
fn noise(units: &Units, law: &Law) -> Mat {
    let (rule, extra) = (units.rule, law.label_noise * law.label_noise);
    let scale = rule.weight() * rule.weight();
    if rule.route == Route::Linear {
        let (k, r) = (rule.mu.len(), rule.rank);
        let gain =
            |adapter: usize| (0..k).map(|u| rule.output[u] * law.scalars[u * r + adapter]).sum::<f64>();
        let squared = units.squared_error() + extra;
        return Mat::from_fn(r, r, |a, b| scale * gain(a) * gain(b) * squared);
    }
    let form = units.map.transpose().times(&Mat::diagonal(&units.residual)).times(&units.map);
    let z = form.times(law.covariance);
    let zz = z.times(&z);
    let (trace, square) = (z.trace(), zz.trace());
    let mut middle = zz.scaled(8.0);
    middle.add_scaled(4.0 * trace, &z);
    middle.add_scaled(2.0 * square + trace * trace + 2.0 * extra, &Mat::identity(z.rows()));
    let directions = units.directions(law.scalars);
    directions.times(law.covariance).times(&middle).times(&directions.transpose()).scaled(scale)
}

pub(in crate::lora) fn risk(rule: &AdapterRule, law: &Law) -> f64 {
    0.5 * rule.weight() * Units::new(rule, law).squared_error()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Family;
    use crate::lora::LoraSingleIndex;
    use crate::lora::LoraTwoLayer;
    use crate::lora::two_layer::PerUnit;
    use didact_model::rule::LocalRule;
    use std::sync::Arc;

    fn law(covariance: &Mat, scalars: &'static [f64]) -> Law<'static> {
        let covariance: &'static Mat = Box::leak(Box::new(covariance.clone()));
        Law { covariance, scalars, label_noise: 0.2 }
    }

    fn averages(rule: &Arc<dyn LocalRule>, law: &Law) -> Averages {
        let mut out = Averages::new(rule.shape());
        rule.averages(law, Needed::DriftAndNoise, &mut out);
        out
    }

    #[test]
    fn one_unit_and_one_adapter_are_the_single_index_model() {
        let covariance = Mat::from_rows(&[vec![1.0, 0.3], vec![0.3, 1.0]]).unwrap();
        let law = law(&covariance, &[0.4]);
        for name in ["h2", "linear", "erf(z)", "relu", "sigmoid"] {
            let two = LoraTwoLayer::uniform(1, 1, 0.35, name).rule().unwrap();
            let one = LoraSingleIndex::matched(0.35, name).rule().unwrap();
            let (a, b) = (averages(&two, &law), averages(&one, &law));
            assert!((two.risk(&law) - one.risk(&law)).abs() < 1e-11, "{name}");
            assert!((a.scalars[0] - b.scalars[0]).abs() < 1e-11, "{name}");
            for j in 0..2 {
                assert!((a.drift[(0, j)] - b.drift[(0, j)]).abs() < 1e-11, "{name}");
            }
            let most = 1e-11 + 6.0 * (a.error + b.error);
            assert!((a.noise[(0, 0)] - b.noise[(0, 0)]).abs() < most, "{name}");
        }
    }

    #[test]
    fn closed_forms_of_the_second_hermite_unit_are_its_pair_averages() {
        let covariance = Mat::from_fn(4, 4, |i, j| {
            if i == j { 1.0 } else { 0.1 * (1 + i + j) as f64 * if i > 1 && j > 1 { 0.0 } else { 0.5 } }
        });
        let law = law(&covariance, &[0.3, -0.1, 0.2, 0.4]);
        let spec = LoraTwoLayer {
            mu: PerUnit::Each(vec![0.2, 0.6]),
            output_weights: PerUnit::Each(vec![1.0, -0.7]),
            ..LoraTwoLayer::uniform(2, 2, 0.5, "h2")
        };
        // The same polynomial under a name that has no closed form.
        let slow = LoraTwoLayer { activation: "(x^2 - 1)/sqrt(2)".into(), ..spec.clone() };
        let (fast, slow) = (spec.rule().unwrap(), slow.rule().unwrap());
        let (a, b) = (averages(&fast, &law), averages(&slow, &law));
        assert!((fast.risk(&law) - slow.risk(&law)).abs() < 1e-12);
        for i in 0..2 {
            for j in 0..4 {
                assert!((a.drift[(i, j)] - b.drift[(i, j)]).abs() < 1e-12);
            }
        }
        for (a, b) in a.scalars.iter().zip(&b.scalars) {
            assert!((a - b).abs() < 1e-12);
        }
    }
}
