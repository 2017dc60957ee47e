//! Averages of two activations of a pair of Gaussian fields, Dirac terms of kinks included.

use super::hermite::{factorial_ratio_root, polynomials};
use super::normal::density;
use super::quadrature::{GaussianRule, HERMITE_REACH, PANEL, REACH, spacing};
use super::{erf, ramps, relu};
use crate::activation::{Activation, Form};

/// The averages that the equations of motion of a two-layer network are made of; (u, v) are the two fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairAverages {
    /// E[a(u) b(v)]
    pub value_value: f64,
    /// E[a′(u) b′(v)] = ∂E[a(u) b(v)]/∂C₁₂
    pub slope_slope: f64,
    /// E[a″(u) b(v)] = 2 ∂E[a(u) b(v)]/∂C₁₁
    pub curvature_value: f64,
    /// E[a(u) b″(v)] = 2 ∂E[a(u) b(v)]/∂C₂₂
    pub value_curvature: f64,
}

impl PairAverages {
    fn swapped(self) -> Self {
        Self { curvature_value: self.value_curvature, value_curvature: self.curvature_value, ..self }
    }
}

/// The averages of a(u), b(v) for fields of covariance C; |C₁₂| ≤ √(C₁₁C₂₂), zero variances and |ρ| = 1 included.
///
/// Closed forms if both are erf, both linear on either side of 0 (ReLU, |z|, leaky ReLU), or erf and ReLU; a finite Hermite series if either is a polynomial;
/// a one-dimensional integral if both are linear between kinks wherever these are; otherwise two-dimensional quadrature. A Dirac term of a field without variance counts as 0.
pub fn pair_averages(a: &dyn Activation, b: &dyn Activation, covariance: &[[f64; 2]; 2]) -> PairAverages {
    let c = covariance;
    if let Some(terms) = [a.degree(), b.degree()].into_iter().flatten().min().map(|degree| degree + 1) {
        return series(a, b, c, terms);
    }
    match (a.form(), b.form()) {
        (Form::Erf { scale: s }, Form::Erf { scale: t }) => erf_pair(s, t, c),
        (Form::Relu, Form::Relu) => PairAverages {
            value_value: relu::value_value(c),
            slope_slope: relu::slope_slope(c),
            curvature_value: relu::curvature_value(c),
            value_curvature: relu::curvature_value(&transposed(c)),
        },
        (Form::Abs, Form::Abs) => abs_pair(c),
        (Form::Erf { scale }, Form::Relu) => erf_relu(scale, c),
        (Form::Relu, Form::Erf { scale }) => erf_relu(scale, &transposed(c)).swapped(),
        (first, second) => match (first.sides(), second.sides()) {
            (Some(a), Some(b)) => piecewise_pair(a, b, c),
            _ => match (a.linear_pieces(), b.linear_pieces()) {
                (Some(a), Some(b)) if c[0][0] > 0.0 && c[1][1] > 0.0 => ramps::pair(&a, &b, c),
                _ => quadrature(a, b, c),
            },
        },
    }
}

pub(super) fn transposed(c: &[[f64; 2]; 2]) -> [[f64; 2]; 2] {
    [[c[1][1], c[0][1]], [c[0][1], c[0][0]]]
}

fn erf_pair(s: f64, t: f64, c: &[[f64; 2]; 2]) -> PairAverages {
    let (s, t) = (s * 2f64.sqrt(), t * 2f64.sqrt());
    let scaled = erf::rescaled(c, [s, t]);
    PairAverages {
        value_value: erf::i2(&scaled),
        slope_slope: s * t * erf::slope_slope(&scaled),
        curvature_value: s * s * erf::curvature_value(&scaled),
        value_curvature: t * t * erf::curvature_value(&transposed(&scaled)),
    }
}

/// |z| = z₊ + (−z)₊: four ReLU averages, equal in pairs.
fn abs_pair(c: &[[f64; 2]; 2]) -> PairAverages {
    let mirror = [[c[0][0], -c[0][1]], [-c[0][1], c[1][1]]];
    PairAverages {
        value_value: 2.0 * (relu::value_value(c) + relu::value_value(&mirror)),
        slope_slope: 2.0 * (relu::slope_slope(c) - relu::slope_slope(&mirror)),
        curvature_value: 4.0 * relu::curvature_value(c),
        value_curvature: 4.0 * relu::curvature_value(&transposed(c)),
    }
}

/// a = a₊ z₊ − a₋ (−z)₊ from its slopes [a₋, a₊] below and above 0, and b alike: four ReLU averages, equal in pairs.
fn piecewise_pair(
    [a_below, a_above]: [f64; 2],
    [b_below, b_above]: [f64; 2],
    c: &[[f64; 2]; 2],
) -> PairAverages {
    let mirror = [[c[0][0], -c[0][1]], [-c[0][1], c[1][1]]];
    let (same, opposite) = (a_above * b_above + a_below * b_below, a_above * b_below + a_below * b_above);
    let jumps = (a_above - a_below) * (b_above - b_below);
    PairAverages {
        value_value: same * relu::value_value(c) - opposite * relu::value_value(&mirror),
        slope_slope: same * relu::slope_slope(c) + opposite * relu::slope_slope(&mirror),
        curvature_value: jumps * relu::curvature_value(c),
        value_curvature: jumps * relu::curvature_value(&transposed(c)),
    }
}

/// erf is odd, so only the odd half v/2 of the ReLU counts: E[g b] = C₁₂ E[g′]/2, E[g′θ] = E[g′]/2,
/// E[g″b] = C₁₂ E[g‴]/2, and E[g δ(v)] = 0 because g(u) is odd given v = 0.
fn erf_relu(scale: f64, c: &[[f64; 2]; 2]) -> PairAverages {
    let width = 1.0 + 2.0 * scale * scale * c[0][0];
    let slope = std::f64::consts::FRAC_2_SQRT_PI * scale / width.sqrt();
    PairAverages {
        value_value: 0.5 * c[0][1] * slope,
        slope_slope: 0.5 * slope,
        curvature_value: -c[0][1] * scale * scale * slope / width,
        value_curvature: 0.0,
    }
}

/// E[a⁽ⁱ⁾(u) b⁽ʲ⁾(v)] = Σ_k α_k β_k ρ^k with the Hermite coefficients of the derivatives; finite if one is a polynomial.
fn series(a: &dyn Activation, b: &dyn Activation, c: &[[f64; 2]; 2], terms: usize) -> PairAverages {
    let product = (c[0][0] * c[1][1]).sqrt();
    let rho = if product == 0.0 { 0.0 } else { (c[0][1] / product).clamp(-1.0, 1.0) };
    let (alpha, beta) =
        (derivative_coefficients(a, c[0][0], terms), derivative_coefficients(b, c[1][1], terms));
    let sum = |i: usize, j: usize| {
        let mut power = 1.0;
        let mut sum = 0.0;
        for (x, y) in alpha[i].iter().zip(&beta[j]) {
            sum += x * y * power;
            power *= rho;
        }
        sum
    };
    PairAverages {
        value_value: sum(0, 0),
        slope_slope: sum(1, 1),
        curvature_value: sum(2, 0),
        value_curvature: sum(0, 2),
    }
}

/// E[σ⁽ʲ⁾(√r z) h_k(z)] for j = 0, 1, 2 and k < terms.
fn derivative_coefficients(activation: &dyn Activation, variance: f64, terms: usize) -> [Vec<f64>; 3] {
    if variance == 0.0 {
        let (value, slope, curvature) = activation.jet(0.0);
        return [value, slope, curvature].map(|first| {
            let mut coefficients = vec![0.0; terms];
            coefficients[0] = first;
            coefficients
        });
    }
    let closed = activation.degree().is_some() || !matches!(activation.form(), Form::General);
    if closed {
        // Integration by parts: E[σ⁽ʲ⁾h_k] = r^{−j/2} √((k+j)!/k!) E[σ h_{k+j}].
        let values: Vec<f64> = (0..terms + 2).map(|k| activation.hermite(k, variance)).collect();
        let shifted = |j: usize| {
            let scale = variance.powf(-0.5 * j as f64);
            (0..terms).map(|k| scale * factorial_ratio_root(k + j, k) * values[k + j]).collect()
        };
        return [shifted(0), shifted(1), shifted(2)];
    }
    let deviation = variance.sqrt();
    let mut sums = [vec![0.0; terms], vec![0.0; terms], vec![0.0; terms]];
    let mut hermite = vec![0.0; terms];
    let rule = GaussianRule::resolving(activation, variance, HERMITE_REACH);
    for (&z, &w) in rule.nodes.iter().zip(&rule.weights) {
        polynomials(z, &mut hermite);
        let (value, slope, curvature) = activation.jet(deviation * z);
        for (sum, f) in sums.iter_mut().zip([value, slope, curvature]) {
            for (sum, h) in sum.iter_mut().zip(&hermite) {
                *sum += w * f * h;
            }
        }
    }
    for kink in activation.kinks() {
        let z = kink.at / deviation;
        polynomials(z, &mut hermite);
        for (sum, h) in sums[2].iter_mut().zip(&hermite) {
            *sum += kink.jump * density(z) / deviation * h;
        }
    }
    sums
}

/// Fields written as u = √C₁₁ x, v = slope·x + spread·y with independent normals x, y.
pub(super) struct Fields {
    pub(super) deviation: f64,
    pub(super) slope: f64,
    pub(super) spread: f64,
}

impl Fields {
    pub(super) fn new(c: &[[f64; 2]; 2]) -> Self {
        let deviation = c[0][0].max(0.0).sqrt();
        let slope = if deviation == 0.0 { 0.0 } else { c[0][1] / deviation };
        let rest = c[1][1] - slope * slope;
        // Rounding noise is no variance: its root would blur a kink by 1e-8.
        let spread = if rest <= 4.0 * f64::EPSILON * c[1][1] { 0.0 } else { rest.sqrt() };
        Self { deviation, slope, spread }
    }
}

/// The slow way for any pair, as the test of faster ones.
#[cfg(test)]
pub(super) fn quadrature_of_pair(a: &dyn Activation, b: &dyn Activation, c: &[[f64; 2]; 2]) -> PairAverages {
    quadrature(a, b, c)
}

fn quadrature(a: &dyn Activation, b: &dyn Activation, c: &[[f64; 2]; 2]) -> PairAverages {
    let fields = Fields::new(c);
    let outer = outer_rule(a, b, c, &fields);
    let inner = InnerAverage::new(b, fields.spread);
    let mut sum =
        PairAverages { value_value: 0.0, slope_slope: 0.0, curvature_value: 0.0, value_curvature: 0.0 };
    for (&x, &w) in outer.nodes.iter().zip(&outer.weights) {
        let (value, slope, curvature) = a.jet(fields.deviation * x);
        let [mean, mean_slope, mean_curvature] = inner.at(fields.slope * x);
        sum.value_value += w * value * mean;
        sum.slope_slope += w * slope * mean_slope;
        sum.curvature_value += w * curvature * mean;
        sum.value_curvature += w * value * mean_curvature;
    }
    sum.curvature_value += dirac(a, b, c);
    sum.value_curvature += dirac(b, a, &transposed(c));
    sum
}

/// Σ over the kinks κ of a: jump · (density of u at κ) · E[b(v) | u = κ].
fn dirac(a: &dyn Activation, b: &dyn Activation, c: &[[f64; 2]; 2]) -> f64 {
    let fields = Fields::new(c);
    if fields.deviation == 0.0 {
        return 0.0;
    }
    let inner = InnerAverage::new(b, fields.spread);
    a.kinks()
        .iter()
        .map(|kink| {
            let x = kink.at / fields.deviation;
            kink.jump * density(x) / fields.deviation * inner.at(fields.slope * x)[0]
        })
        .sum()
}

/// The rule for x. It is split at the kinks of a, and where the mean of v crosses a kink of b: there the inner average
/// has a layer of width spread/slope, which is split too.
fn outer_rule(a: &dyn Activation, b: &dyn Activation, c: &[[f64; 2]; 2], fields: &Fields) -> GaussianRule {
    let fine = spacing(a, c[0][0]).min(spacing(b, c[1][1]));
    if a.kinks().is_empty() && b.kinks().is_empty() {
        return GaussianRule::trapezoid(fine, REACH);
    }
    let mut breaks = Vec::new();
    if fields.deviation > 0.0 {
        breaks.extend(a.kinks().iter().map(|kink| kink.at / fields.deviation));
    }
    if fields.slope != 0.0 {
        let layer = fields.spread / fields.slope.abs();
        for kink in b.kinks() {
            let centre = kink.at / fields.slope;
            breaks.extend((-3..=3).map(|i| centre + f64::from(3 * i) * layer));
        }
    }
    GaussianRule::panels(&breaks, PANEL * fine, REACH)
}

/// E[b(m + s y)] and the same for b′, b″ (regular part), as a function of m.
struct InnerAverage<'a> {
    activation: &'a dyn Activation,
    spread: f64,
    /// The rule in y, if it does not depend on m.
    smooth: Option<GaussianRule>,
}

impl<'a> InnerAverage<'a> {
    fn new(activation: &'a dyn Activation, spread: f64) -> Self {
        let smooth = activation.kinks().is_empty();
        let rule = || GaussianRule::trapezoid(spacing(activation, spread * spread), REACH);
        Self { activation, spread, smooth: smooth.then(rule) }
    }

    fn at(&self, mean: f64) -> [f64; 3] {
        if self.spread == 0.0 {
            let (value, slope, curvature) = self.activation.jet(mean);
            return [value, slope, curvature];
        }
        if let Some(rule) = &self.smooth {
            return self.sum(rule, mean);
        }
        let kinks: Vec<f64> =
            self.activation.kinks().iter().map(|kink| (kink.at - mean) / self.spread).collect();
        let width = PANEL * spacing(self.activation, self.spread * self.spread);
        self.sum(&GaussianRule::panels(&kinks, width, REACH), mean)
    }

    fn sum(&self, rule: &GaussianRule, mean: f64) -> [f64; 3] {
        let mut sum = [0.0; 3];
        for (&y, &w) in rule.nodes.iter().zip(&rule.weights) {
            let (value, slope, curvature) = self.activation.jet(mean + self.spread * y);
            sum[0] += w * value;
            sum[1] += w * slope;
            sum[2] += w * curvature;
        }
        sum
    }
}

#[cfg(test)]
mod tests;
