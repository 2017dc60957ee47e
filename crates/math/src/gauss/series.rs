//! Hermite series of an activation at a given variance: pair averages become scalar products.

use super::normal::density;
use super::pairs::PairAverages;
use super::quadrature::{HERMITE_REACH, spacing};
use crate::activation::Activation;

/// The coefficients of σ(√r z), σ′(√r z) and σ″(√r z) in the orthonormal Hermite polynomials h_k:
///
///   c_k = E[σ h_k],   c′_k = E[σ′ h_k],   c″_k = E[σ″ h_k],      √r c′_k = √(k+1) c_{k+1},   √r c″_k = √(k+1) c′_{k+1}.
///
/// One series per field serves every pair it is part of. Only for activations without kinks: a kink makes c_k fall
/// like k^{−5/4}, while a pole at distance p makes it fall like e^{−p√(k/r)}
/// (docs/derivations/low-rank-perturbation.md#s3).
#[derive(Clone, Debug)]
pub struct HermiteSeries {
    variance: f64,
    value: Vec<f64>,
    slope: Vec<f64>,
    curvature: Vec<f64>,
}

/// The series of tanh lengthens with the variance and still ends before this at r = 3; quadrature is cheaper than one
/// much longer.
const MOST_TERMS: usize = 700;
/// Terms whose squares stay below this fraction of E[σ′²], four in a row (parity makes every other one vanish). The
/// rest of the sum is then a few of them, also against a partner whose terms fall much more slowly.
const SMALL_TERM: f64 = 1e-17;
/// What Parseval's sum may lack: rounding of the sum is 1e-15, so this only catches series with gaps.
const PARSEVAL: f64 = 1e-12;
/// As [`SMALL_TERM`], for series that are themselves interpolated to 1e-7 or so: what is left out of a pair average is a few of these.
const NEGLIGIBLE: f64 = 1e-11;
/// Powers of ρ below this leave no trace in a sum whose coefficients fall as well.
const SMALL_POWER: f64 = 1e-18;
/// Below this variance c″ is averaged directly: c′_{k+1}/√r would magnify the rounding of c′.
const SMALL_VARIANCE: f64 = 1e-2;

impl HermiteSeries {
    /// The series of σ(√r z); `None` when σ has kinks or the series does not end within 700 terms.
    ///
    /// Its length is set by Parseval's identity Σ c′_k² = E[σ′²] and the decay of c′. The averages are trapezoidal sums
    /// over |z| ≤ 13 that resolve σ.
    pub fn of(activation: &dyn Activation, variance: f64) -> Option<Self> {
        if !activation.kinks().is_empty() {
            return None;
        }
        let grid = Grid::new(spacing(activation, variance));
        let deviation = variance.sqrt();
        let jets: Vec<_> = grid
            .nodes
            .iter()
            .map(|z| (activation.jet(deviation * z), activation.jet(-deviation * z)))
            .collect();
        let mean = grid.sum(|n| jets[n].0.0 + jets[n].1.0);
        let square = grid.sum(|n| jets[n].0.1.powi(2) + jets[n].1.1.powi(2));
        if !(mean.is_finite() && square.is_finite()) {
            return None;
        }
        let slope = grid.coefficients(|n| (jets[n].0.1, jets[n].1.1), |found| ended(found, square))?;
        let value = std::iter::once(mean);
        let value = value
            .chain(slope.iter().enumerate().map(|(k, c)| deviation * c / ((k + 1) as f64).sqrt()))
            .collect();
        let curvature = if variance < SMALL_VARIANCE {
            grid.coefficients(|n| (jets[n].0.2, jets[n].1.2), |found| found.len() == slope.len())?
        } else {
            slope.iter().enumerate().skip(1).map(|(k, c)| (k as f64).sqrt() * c / deviation).collect()
        };
        Some(Self { variance, value, slope, curvature })
    }

    /// The series from the coefficients c_k of σ(√r z), cut where they have become negligible. `None` where they have not by their
    /// end.
    pub(crate) fn from_values(variance: f64, mut value: Vec<f64>) -> Option<Self> {
        let deviation = variance.sqrt();
        let slope_size = |(k, c): (usize, &f64)| k as f64 * c * c;
        let whole: f64 = value.iter().enumerate().map(slope_size).sum();
        let last =
            value.iter().enumerate().rposition(|entry| slope_size(entry) > NEGLIGIBLE * whole).unwrap_or(0);
        if last + 4 >= value.len() {
            return None;
        }
        value.truncate(last + 4);
        let raised = |c: &[f64]| -> Vec<f64> {
            c.iter().enumerate().skip(1).map(|(k, c)| (k as f64).sqrt() * c / deviation).collect()
        };
        let slope = raised(&value);
        let curvature = raised(&slope);
        Some(Self { variance, value, slope, curvature })
    }

    /// r.
    pub fn variance(&self) -> f64 {
        self.variance
    }

    /// c_0, c_1, … of σ(√r z).
    pub fn coefficients(&self) -> &[f64] {
        &self.value
    }

    /// E[σ(√r z)].
    pub fn mean(&self) -> f64 {
        self.value[0]
    }

    /// The averages of a(u), b(v), u and v having the variances of the two series and the given covariance:
    /// E[a⁽ⁱ⁾ b⁽ʲ⁾] = Σ_k a⁽ⁱ⁾_k b⁽ʲ⁾_k ρ^k.
    pub fn with(&self, other: &Self, covariance: f64) -> PairAverages {
        let rho = self.correlation(other, covariance);
        let terms = self.curvature.len().min(other.curvature.len());
        let mut sums = [0.0; 4];
        let mut power = 1.0;
        for k in 0..terms {
            sums[0] += power * self.value[k] * other.value[k];
            sums[1] += power * self.slope[k] * other.slope[k];
            sums[2] += power * self.curvature[k] * other.value[k];
            sums[3] += power * self.value[k] * other.curvature[k];
            power *= rho;
            if power.abs() < SMALL_POWER {
                break;
            }
        }
        PairAverages {
            value_value: sums[0],
            slope_slope: sums[1],
            curvature_value: sums[2],
            value_curvature: sums[3],
        }
    }

    /// E[a(u) b(v)] alone.
    pub fn product(&self, other: &Self, covariance: f64) -> f64 {
        let rho = self.correlation(other, covariance);
        let (mut sum, mut power) = (0.0, 1.0);
        for (a, b) in self.value.iter().zip(&other.value) {
            sum += power * a * b;
            power *= rho;
            if power.abs() < SMALL_POWER {
                break;
            }
        }
        sum
    }

    fn correlation(&self, other: &Self, covariance: f64) -> f64 {
        let product = (self.variance * other.variance).sqrt();
        if product == 0.0 { 0.0 } else { (covariance / product).clamp(-1.0, 1.0) }
    }
}

fn ended(found: &[f64], square: f64) -> bool {
    let quiet = found.len() >= 4 && found[found.len() - 4..].iter().all(|c| c * c <= SMALL_TERM * square);
    quiet && square - found.iter().map(|c| c * c).sum::<f64>() <= PARSEVAL * square
}

/// The upper half z ≥ 0 of a trapezoidal grid, padded to whole vectors with nodes of no weight.
struct Grid {
    nodes: Vec<f64>,
    weights: Vec<f64>,
}

/// Independent partial sums, so that the compiler may use vectors.
const LANES: usize = 4;

impl Grid {
    fn new(spacing: f64) -> Self {
        let count = (HERMITE_REACH / spacing).ceil() as usize + 1;
        let mut nodes: Vec<f64> = (0..count).map(|i| i as f64 * spacing).collect();
        let mut weights: Vec<f64> = nodes.iter().map(|&z| spacing * density(z)).collect();
        weights[0] *= 0.5; // 0 is on both sides
        nodes.resize(count.next_multiple_of(LANES), 0.0);
        weights.resize(nodes.len(), 0.0);
        Self { nodes, weights }
    }

    fn sum(&self, f: impl Fn(usize) -> f64) -> f64 {
        self.weights.iter().enumerate().map(|(n, w)| w * f(n)).sum()
    }

    /// E[f h_k] for k = 0, 1, … until `end`; `f(n)` gives the values at ±z_n, and h_k(−z) = (−1)^k h_k(z).
    fn coefficients(
        &self,
        f: impl Fn(usize) -> (f64, f64),
        end: impl Fn(&[f64]) -> bool,
    ) -> Option<Vec<f64>> {
        let sided = |sign: f64| -> Vec<f64> {
            let fold = |(n, w): (usize, &f64)| w * (f(n).0 + sign * f(n).1);
            self.weights.iter().enumerate().map(fold).collect()
        };
        let folded = [sided(1.0), sided(-1.0)];
        let (mut now, mut before) = (vec![1.0; self.nodes.len()], vec![0.0; self.nodes.len()]);
        let mut found = vec![folded[0].iter().sum()];
        while !end(&found) {
            let k = found.len();
            if k == MOST_TERMS {
                return None;
            }
            let (up, down) = (1.0 / (k as f64).sqrt(), ((k - 1) as f64 / k as f64).sqrt());
            found.push(next_order(&self.nodes, &now, &mut before, up, down, &folded[k % 2]));
            std::mem::swap(&mut now, &mut before);
        }
        Some(found)
    }
}

crate::dispatch! {
    /// h_k = (z h_{k−1} − √(k−1) h_{k−2})/√k over the nodes, written over h_{k−2}; returns Σ f h_k.
    pub(super) fn next_order(z: &[f64], now: &[f64], before: &mut [f64], up: f64, down: f64, f: &[f64]) -> f64 {
        let mut sums = [0.0; LANES];
        let nodes = z.chunks_exact(LANES).zip(now.chunks_exact(LANES)).zip(f.chunks_exact(LANES));
        for (((z, h), f), old) in nodes.zip(before.chunks_exact_mut(LANES)) {
            for lane in 0..LANES {
                let next = up * z[lane] * h[lane] - down * old[lane];
                old[lane] = next;
                sums[lane] += f[lane] * next;
            }
        }
        sums.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activation::parse;
    use crate::gauss::pair_averages;
    use proptest::prelude::*;

    const SMOOTH: [&str; 9] = [
        "linear",
        "erf(z)",
        "erf(z/sqrt2)",
        "tanh",
        "sigmoid",
        "gelu",
        "He3",
        "x*sigmoid(x)",
        "tanh(x) + 0.2*sin(2*x)",
    ];

    /// Where the shorter series of a pair ends its terms are 3e-8 of its size, and those of the longer one up to 1e-4.
    const TOLERANCE: f64 = 1e-11;

    fn series_match_quadrature(first: &str, second: &str, c: &[[f64; 2]; 2]) {
        let (a, b) = (parse(first).unwrap(), parse(second).unwrap());
        let series =
            |s: &dyn Activation, r| HermiteSeries::of(s, r).unwrap_or_else(|| panic!("{} at {r}", s.name()));
        let got = series(&*a, c[0][0]).with(&series(&*b, c[1][1]), c[0][1]);
        let product = series(&*a, c[0][0]).product(&series(&*b, c[1][1]), c[0][1]);
        let exact = pair_averages(&*a, &*b, c);
        for (x, y) in [
            (got.value_value, exact.value_value),
            (product, exact.value_value),
            (got.slope_slope, exact.slope_slope),
            (got.curvature_value, exact.curvature_value),
            (got.value_curvature, exact.value_curvature),
        ] {
            assert!(
                (x - y).abs() <= TOLERANCE * (1.0 + y.abs()),
                "{first}, {second}, {c:?}\n{got:?}\n{exact:?}"
            );
        }
    }

    #[test]
    fn pairs_match_quadrature_up_to_parallel_fields() {
        let root = 1.6f64.sqrt();
        for c in [
            [[1.3, 0.4], [0.4, 0.8]],
            [[0.5, -0.45], [-0.45, 0.6]],
            [[2.0, 0.0], [0.0, 0.1]],
            [[1.0, 0.9999], [0.9999, 1.0]],
            [[1.6, -root], [-root, 1.0]],
            [[1e-7, 2e-4], [2e-4, 0.9]],
            [[0.0, 0.0], [0.0, 0.7]],
            [[0.0, 0.0], [0.0, 0.0]],
        ] {
            for first in SMOOTH {
                for second in SMOOTH {
                    series_match_quadrature(first, second, &c);
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn pairs_match_quadrature_at_random_covariances(
            i in 0..SMOOTH.len(), j in 0..SMOOTH.len(), q in 1e-3..3.0f64, r in 1e-3..3.0f64, rho in -1.0..1.0f64,
        ) {
            let cross = rho * (q * r).sqrt();
            series_match_quadrature(SMOOTH[i], SMOOTH[j], &[[q, cross], [cross, r]]);
        }
    }

    #[test]
    fn coefficients_are_those_of_the_closed_form() {
        let erf = parse("erf(z)").unwrap();
        let series = HermiteSeries::of(&*erf, 0.7).unwrap();
        for (k, c) in series.coefficients().iter().enumerate() {
            assert!((c - erf.hermite(k, 0.7)).abs() < 1e-15, "k = {k}: {c}");
        }
    }

    #[test]
    fn kinks_and_steep_units_have_no_series() {
        assert!(HermiteSeries::of(&*parse("relu").unwrap(), 1.0).is_none());
        assert!(HermiteSeries::of(&*parse("tanh").unwrap(), 50.0).is_none());
    }
}
