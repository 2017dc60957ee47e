//! The weak-recovery threshold: how few samples allow any efficient method to see the directions of a link at all.
//!
//! With K(y) = E[z zᵀ | y] − 1,
//!
//! ```text
//! 1/δ_alg = largest eigenvalue of the map M ↦ E_y[ K(y) M K(y) ];      one direction: 1/δ_alg = E_y[ (E[z²|y] − 1)² ].
//! ```
//!
//! (docs/derivations/gd-phase-transitions.md#eq-28). M. Mondelli and A. Montanari, Found. Comput. Math. 19, 703 (2019)
//! for one direction; E. Troiani et al., arXiv:2405.15480 (2024) for several. Directions that show at first order
//! ([`split`](super::split) calls them easy) are seen with any δ > 0: the number is then the threshold of second-order
//! information alone.
//!
//! The conditional law of z given y is exact where the link has a structure that makes it one-dimensional, and sampled elsewhere.

mod angular;
mod line;
mod noisy;
mod product;
mod sampled;
mod tanh_sinh;

use super::error::LandscapeError;
use didact_math::linalg::{Mat, symmetric_eigen};
use didact_math::random::{RngAddress, Stream};

/// A link y = h(z, ε).
pub type Link<'a> = &'a dyn Fn(&[f64], f64) -> f64;

/// δ_alg and how it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct WeakRecovery {
    /// n/d.
    pub delta: f64,
    /// Standard error when sampled; 0 when by quadrature.
    pub error: f64,
    /// Which structure of the link was used.
    pub method: ConditionalMethod,
}

/// How the conditional law of z given y was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionalMethod {
    /// y is a product of powers: ln|y| is a sum of independent variables.
    Product,
    /// y depends on |z| alone, or on one z: all preimages of y on a line.
    Line,
    /// y = |z|^p g(angle), two directions.
    Angular,
    /// Additive Gaussian noise: y-densities add up.
    Noisy,
    /// Anything else: samples sorted by y.
    Sampled,
}

/// The weak-recovery threshold of y = h(z, ε) with k latent variables.
pub fn weak_recovery(k: usize, link: Link) -> Result<WeakRecovery, LandscapeError> {
    let (kernel, error, method) = match noise(k, link)? {
        Noise::Additive(s) if k <= 3 => match noisy::kernel(k, link, s) {
            Some(kernel) => (kernel, 0.0, ConditionalMethod::Noisy),
            None => sampled::kernel(k, link)?,
        },
        Noise::Absent => {
            if let Some(kernel) = product::kernel(k, link) {
                (kernel, 0.0, ConditionalMethod::Product)
            } else if let Some(kernel) = line::kernel(k, link) {
                (kernel, 0.0, ConditionalMethod::Line)
            } else if let Some(kernel) = angular::kernel(k, link) {
                (kernel, 0.0, ConditionalMethod::Angular)
            } else {
                sampled::kernel(k, link)?
            }
        }
        _ => sampled::kernel(k, link)?,
    };
    let largest = *symmetric_eigen(&kernel).values.last().expect("k is at least 1");
    if largest <= 1e-12_f64.max(3.0 * error) {
        return Err(LandscapeError::NoSecondOrder { information: largest });
    }
    Ok(WeakRecovery { delta: 1.0 / largest, error: error / (largest * largest), method })
}

/// E[z²|y] − 1 as a function of y, for one latent direction without noise.
pub(super) fn one_direction<'a>(
    k: usize,
    link: Link<'a>,
) -> Result<Box<dyn Fn(f64) -> f64 + 'a>, LandscapeError> {
    if k != 1 || !matches!(noise(k, link)?, Noise::Absent) {
        return Err(LandscapeError::NotOneDirection { directions: k });
    }
    line::excess(link).ok_or(LandscapeError::NotOneDirection { directions: k })
}

/// E[K ⊗ K], the map M ↦ E[K M K] as a matrix on k x k matrices, built up label by label.
struct KernelSum {
    k: usize,
    sum: Mat,
}

impl KernelSum {
    fn new(k: usize) -> Self {
        Self { k, sum: Mat::zeros(k * k, k * k) }
    }

    /// Adds a label of this probability whose moments are `second[i][j]` = E[z_i z_j; y]/P(y).
    fn add(&mut self, probability: f64, second: &Mat) {
        self.add_product(probability, second, second);
    }

    /// As [`Self::add`] with the two factors from independent estimates.
    fn add_product(&mut self, probability: f64, one: &Mat, other: &Mat) {
        let k = self.k;
        let entry = |m: &Mat, i: usize, j: usize| m[(i, j)] - f64::from(i == j);
        for a in 0..k {
            for b in 0..k {
                for c in 0..k {
                    for d in 0..k {
                        self.sum[(a * k + b, c * k + d)] +=
                            probability * entry(one, a, c) * entry(other, b, d);
                    }
                }
            }
        }
    }

    fn symmetric(self) -> Mat {
        let mut sum = self.sum.scaled(0.5);
        let half = sum.transpose();
        sum.add_scaled(1.0, &half);
        sum
    }
}

enum Noise {
    Absent,
    /// h(z, ε) = h(z, 0) + s ε.
    Additive(f64),
    Other,
}

/// Probes of the structure of a link: addressed, so that the answer never changes.
fn probes(k: usize, count: usize) -> Vec<Vec<f64>> {
    let mut stream = Stream::at(RngAddress { seed: 11, replica: 0, step: 0, lane: 0 });
    (0..count)
        .map(|_| {
            let mut z = vec![0.0; k];
            stream.fill_normal(&mut z);
            z
        })
        .collect()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-10 * (1.0 + a.abs().max(b.abs()))
}

fn noise(k: usize, link: Link) -> Result<Noise, LandscapeError> {
    let mut slopes = Vec::new();
    for z in probes(k, 40) {
        let plain = link(&z, 0.0);
        for e in [-2.0, 0.5, 1.0] {
            let value = link(&z, e);
            if !value.is_finite() {
                return Err(LandscapeError::LinkNotFinite { at: z, value });
            }
            slopes.push((value - plain) / e);
        }
    }
    let first = slopes[0];
    if !slopes.iter().all(|s| close(*s, first)) {
        return Ok(Noise::Other);
    }
    Ok(if close(first, 0.0) { Noise::Absent } else { Noise::Additive(first.abs()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(k: usize, link: impl Fn(&[f64], f64) -> f64) -> (f64, ConditionalMethod) {
        let found = weak_recovery(k, &link).unwrap();
        (found.delta, found.method)
    }

    fn near(got: (f64, ConditionalMethod), want: f64, tolerance: f64, method: ConditionalMethod) {
        assert!(
            (got.0 - want).abs() <= tolerance * want && got.1 == method,
            "{got:?}, expected {want} by {method:?}"
        );
    }

    #[test]
    fn published_values_are_met() {
        near(delta(1, |z, _| z[0] * z[0]), 0.5, 1e-12, ConditionalMethod::Product);
        near(delta(2, |z, _| z[0] * z[1]), 0.5937510982222554, 1e-9, ConditionalMethod::Product);
        near(delta(3, |z, _| z.iter().map(|x| x * x).sum()), 1.5, 1e-12, ConditionalMethod::Line);
        near(delta(1, |z, e| z[0] * z[0] + 0.5 * e), 0.5416441747635379, 1e-8, ConditionalMethod::Noisy);
    }

    #[test]
    fn a_function_of_the_label_changes_nothing() {
        near(delta(1, |z, _| (z[0] * z[0] - 3.0).exp()), 0.5, 1e-10, ConditionalMethod::Line);
        near(delta(2, |z, _| (z[0] * z[1]).powi(3)), 0.5937510982222554, 1e-9, ConditionalMethod::Product);
    }

    #[test]
    fn a_rotated_product_is_a_product() {
        // z1² − z2² = 2 u v in rotated axes, seen by the angular rule.
        near(
            delta(2, |z, _| z[0] * z[0] - z[1] * z[1]),
            0.5937510982222554,
            1e-8,
            ConditionalMethod::Angular,
        );
    }

    #[test]
    fn preimages_on_several_branches_are_weighed() {
        // y = (z² − 1)² forgets on which side of 1 z² lies (for y < 1): against sorted samples.
        let link = |z: &[f64], _: f64| (z[0] * z[0] - 1.0).powi(2);
        let exact = weak_recovery(1, &link).unwrap();
        assert_eq!(exact.method, ConditionalMethod::Line);
        let (kernel, error, _) = sampled::kernel(1, &link).unwrap();
        assert!(
            (kernel[(0, 0)] - 1.0 / exact.delta).abs() < 5.0 * error + 1e-4,
            "{} {exact:?} {error}",
            kernel[(0, 0)]
        );
    }

    #[test]
    fn sampling_agrees_with_every_exact_route() {
        let links: [(usize, Link); 4] = [
            (3, &|z, _| z[0] * z[1] * z[2]),
            (2, &|z, _| z[0] * z[1]),
            (2, &|z, _| z[0] * z[0] + 2.0 * z[1] * z[1]),
            (2, &|z, e| z[0] * z[1] + 0.3 * e),
        ];
        for (k, link) in links {
            let exact = weak_recovery(k, link).unwrap();
            assert_ne!(exact.method, ConditionalMethod::Sampled);
            let (kernel, error, _) = sampled::kernel(k, link).unwrap();
            let sampled = symmetric_eigen(&kernel).values.pop().unwrap();
            // Bins of finite width lose a little information: 1e-3 of it.
            assert!(
                (sampled * exact.delta - 1.0).abs() < 5.0 * error * exact.delta + 2e-3,
                "{sampled} {exact:?} {error}"
            );
        }
    }

    #[test]
    fn labels_without_second_order_information_are_refused() {
        let error = weak_recovery(1, &|z, _| f64::from(z[0] > 0.0)).unwrap_err();
        assert!(matches!(error, LandscapeError::NoSecondOrder { .. }));
    }
}
