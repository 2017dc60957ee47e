//! The loadings c and ĉ: given, or drawn.

use super::start::{Lane, instance_stream};
use didact_math::random::unit_vector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A loading c on the unit sphere of R^k.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a loading is `quantised`, `sphere`, `typical`, or a list of numbers")]
pub enum Loading {
    /// By name, drawn from `instance`.
    Named(NamedLoading),
    /// As given.
    Given(Vec<f64>),
}

impl Default for Loading {
    fn default() -> Self {
        Self::Named(NamedLoading::Quantised)
    }
}

/// Laws of random loadings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NamedLoading {
    /// Independent signs ±1/√k.
    Quantised,
    /// Uniform on the sphere.
    Sphere,
    /// Signs with Σ b = Σ b̂ = Σ b b̂ = √k, the size that these sums have on random draws: instances of different width
    /// that can be compared. The sums are √k where that is whole and 0 or 1 modulo 4 (k = 16, 25, 64, 81, 144, …), and the
    /// nearest positive number that signs allow (k modulo 4) otherwise.
    Typical,
}

impl Loading {
    /// The loading of `units` units, drawn from the instance where it is random.
    pub(super) fn draw(&self, units: usize, instance: u64, lane: Lane) -> Vec<f64> {
        match self {
            Self::Given(list) => list.clone(),
            Self::Named(NamedLoading::Quantised) => {
                let mut stream = instance_stream(instance, lane);
                (0..units).map(|_| stream.sign() / (units as f64).sqrt()).collect()
            }
            Self::Named(NamedLoading::Typical) => typical_signs(units, lane),
            Self::Named(NamedLoading::Sphere) => {
                let mut list = vec![0.0; units.max(1)];
                unit_vector(&mut instance_stream(instance, lane), &mut list);
                list
            }
        }
    }
}

/// n₊₊ = (k + 3s)/4 pairs (+, +), then (k − s)/4 each of (+, −), (−, +) and (−, −): all three sums are s, the positive number
/// next to √k that makes these counts whole.
pub(super) fn typical_signs(units: usize, lane: Lane) -> Vec<f64> {
    let root = (units as f64).sqrt();
    let each = (((units as f64 - root) / 4.0).round() as usize).min(units.saturating_sub(1) / 4);
    let both = units - 3 * each;
    let sign = |i: usize| {
        let class = if i < both { 0 } else { 1 + (i - both) / each.max(1) };
        let positive = match lane {
            Lane::Loading => class <= 1,
            _ => class % 2 == 0,
        };
        if positive { 1.0 } else { -1.0 }
    };
    (0..units).map(|i| sign(i) / root).collect()
}

/// b and b̂ of `typical_signs`, as ±1.
pub(super) fn typical_sign_pair(units: usize) -> (Vec<f64>, Vec<f64>) {
    let signs = |lane| typical_signs(units, lane).iter().map(|c| c.signum()).collect();
    (signs(Lane::Loading), signs(Lane::StudentLoading))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typical_sums_are_the_nearest_to_the_root_of_k_that_signs_allow() {
        // Exact where √k is 0 or 1 modulo 4. k = 8: the sums of the reference instance.
        for (k, sum) in
            [(1, 1), (2, 2), (4, 4), (5, 1), (8, 4), (16, 4), (20, 4), (25, 5), (50, 6), (64, 8), (144, 12)]
        {
            let (c, own) = (typical_signs(k, Lane::Loading), typical_signs(k, Lane::StudentLoading));
            let root = (k as f64).sqrt();
            let sums = [
                root * c.iter().sum::<f64>(),
                root * own.iter().sum::<f64>(),
                k as f64 * c.iter().zip(&own).map(|(a, b)| a * b).sum::<f64>(),
            ];
            assert!(sums.iter().all(|s| (s - f64::from(sum)).abs() < 1e-9), "{k}: {sums:?}");
            assert!(c.iter().chain(&own).all(|x| (x.abs() * root - 1.0).abs() < 1e-12));
        }
    }
}
