//! Rules for E[f(z)], z ~ N(0, 1), and the Gauss-Legendre rule they are built from.
//!
//! Which rule: *Gauss-Hermite* is exact for polynomials and nearly so for entire functions. It is poor for tanh and
//! sigmoid (poles at ±iπ/2, ±iπ): 160 nodes err by 3e-4 in E[σ′σ′] of tanh(3z). The *trapezoidal* rule errs by
//! e^{−2πd/δ} at spacing δ if the nearest pole is at distance d, so it is the default; *panels* of Gauss-Legendre
//! are for functions with kinks, which end at panel borders.

use std::f64::consts::PI;
use std::sync::OnceLock;

use super::normal::density;
use crate::activation::Activation;
use crate::linalg::{Mat, symmetric_eigen};

/// Largest number of nodes of the tabulated rules.
pub const LARGEST_RULE: usize = 400;
/// The same of rules for the weight x².
pub const LARGEST_SQUARED: usize = 48;
/// Averages of moderate functions stop here: P(|z| > 9) = 2e-19.
pub const REACH: f64 = 9.0;
/// Averages against Hermite polynomials stop here: |h_k(z)| φ(z) ≤ e^{−z²/4} = 5e-19 whatever k.
pub const HERMITE_REACH: f64 = 13.0;

/// Nodes and weights with Σ wᵢ f(zᵢ) ≈ E[f(z)], z ~ N(0, 1).
#[derive(Clone, Debug)]
pub struct GaussianRule {
    /// Ascending.
    pub nodes: Vec<f64>,
    /// Sum to one.
    pub weights: Vec<f64>,
}

/// Nodes and weights with Σ wᵢ f(xᵢ) ≈ ∫₋₁¹ f(x) dx.
#[derive(Clone, Debug)]
pub struct LegendreRule {
    /// Ascending, inside (−1, 1).
    pub nodes: Vec<f64>,
    /// Sum to two.
    pub weights: Vec<f64>,
}

impl GaussianRule {
    /// The trapezoidal rule of spacing δ on |z| ≤ reach: wᵢ = δ φ(iδ).
    pub fn trapezoid(spacing: f64, reach: f64) -> Self {
        let side = (reach / spacing).ceil() as i64;
        let nodes: Vec<f64> = (-side..=side).map(|i| i as f64 * spacing).collect();
        let weights = nodes.iter().map(|&z| spacing * density(z)).collect();
        Self { nodes, weights }
    }

    /// Gauss-Legendre on panels no wider than `width` that end at every given break; |z| ≤ reach.
    pub fn panels(breaks: &[f64], width: f64, reach: f64) -> Self {
        let mut borders: Vec<f64> = breaks.iter().copied().filter(|z| z.abs() < reach).collect();
        borders.extend([-reach, reach]);
        borders.sort_by(f64::total_cmp);
        borders.dedup();
        let base = gauss_legendre(16);
        let (mut nodes, mut weights) = (Vec::new(), Vec::new());
        for pair in borders.windows(2) {
            let panels = ((pair[1] - pair[0]) / width).ceil().max(1.0);
            let half = 0.5 * (pair[1] - pair[0]) / panels;
            for panel in 0..panels as usize {
                let centre = pair[0] + (2 * panel + 1) as f64 * half;
                for (x, w) in base.nodes.iter().zip(&base.weights) {
                    let z = centre + half * x;
                    nodes.push(z);
                    weights.push(half * w * density(z));
                }
            }
        }
        Self { nodes, weights }
    }

    /// The default for E[f(σ(√r z))]: trapezoid if σ is smooth, panels split at its kinks, Gauss-Hermite
    /// (exact for products of four factors) if it is a polynomial.
    pub fn for_activation<A: Activation + ?Sized>(activation: &A, variance: f64) -> Self {
        match activation.degree() {
            Some(degree) if 2 * degree + 2 <= LARGEST_RULE => gauss_hermite(2 * degree + 2).clone(),
            _ => Self::resolving(activation, variance, REACH),
        }
    }

    pub(crate) fn resolving<A: Activation + ?Sized>(activation: &A, variance: f64, reach: f64) -> Self {
        let deviation = variance.sqrt();
        let spacing = spacing(activation, variance);
        if activation.kinks().is_empty() || deviation == 0.0 {
            Self::trapezoid(spacing, reach)
        } else {
            let breaks: Vec<f64> = activation.kinks().iter().map(|kink| kink.at / deviation).collect();
            Self::panels(&breaks, PANEL * spacing, reach)
        }
    }

    /// Σ wᵢ f(zᵢ).
    pub fn average(&self, mut f: impl FnMut(f64) -> f64) -> f64 {
        self.nodes.iter().zip(&self.weights).map(|(&z, w)| w * f(z)).sum()
    }
}

/// Spacing in units of the standard deviation that resolves both σ(√r z) and the Gaussian itself (for which 0.3
/// leaves e^{−2π²/δ²} = 1e-95, also after multiplication with Hermite polynomials of high order).
pub(crate) fn spacing<A: Activation + ?Sized>(activation: &A, variance: f64) -> f64 {
    (activation.resolution() / variance.sqrt()).min(0.3)
}

/// Panel width in units of the trapezoidal spacing: 16 Gauss-Legendre nodes on 5 spacings converge at least as well
/// (poles of tanh at distance 1.57 = 3 half-widths: 6.2⁻³² = 4e-26).
pub(crate) const PANEL: f64 = 5.0;

/// The n-point Gauss-Hermite rule for the weight φ, exact for polynomials of degree 2n − 1.
///
/// Nodes: roots of the normalised h_n, isolated by Sturm counts (sign changes of h_0..h_n), polished by Newton.
/// Weights: w = 1/(n h_{n−1}²).
pub fn gauss_hermite(n: usize) -> &'static GaussianRule {
    static RULES: [OnceLock<GaussianRule>; LARGEST_RULE + 1] = [const { OnceLock::new() }; LARGEST_RULE + 1];
    assert!((1..=LARGEST_RULE).contains(&n), "Gauss-Hermite rules have 1 to {LARGEST_RULE} nodes, not {n}");
    RULES[n].get_or_init(|| {
        let (mut nodes, mut weights) = (vec![0.0; n], vec![0.0; n]);
        for i in 0..n.div_ceil(2) {
            let (z, last) = hermite_root(n, i);
            // 1/(n h²) in an order that cannot overflow.
            let weight = 1.0 / last / last / n as f64;
            (nodes[i], nodes[n - 1 - i]) = (-z, z);
            (weights[i], weights[n - 1 - i]) = (weight, weight);
        }
        GaussianRule { nodes, weights }
    })
}

/// The root of h_n with `above` roots above it, and h_{n−1} there.
fn hermite_root(n: usize, above: usize) -> (f64, f64) {
    if n == 2 * above + 1 {
        return (0.0, hermite_pair(n, 0.0).1);
    }
    let bound = 2.0 * (n as f64).sqrt(); // all roots lie below √(4n + 2) − ..., inside this bound
    let (mut low, mut high) = (0.0, bound);
    // 20 halvings isolate a root (spacings exceed π/√(4n)), Newton does the rest.
    for _ in 0..20 {
        let middle = f64::midpoint(low, high);
        if roots_above(n, middle) > above { low = middle } else { high = middle }
    }
    let mut z = f64::midpoint(low, high);
    for _ in 0..8 {
        let (value, last) = hermite_pair(n, z);
        z -= value / ((n as f64).sqrt() * last); // h_n′ = √n h_{n−1}
    }
    (z, hermite_pair(n, z).1)
}

/// (h_n(z), h_{n−1}(z)) by the recurrence h_{k+1} = (z h_k − √k h_{k−1})/√(k+1).
fn hermite_pair(n: usize, z: f64) -> (f64, f64) {
    (0..n).fold((1.0, 0.0), |(h, before), k| {
        ((z * h - (k as f64).sqrt() * before) / ((k + 1) as f64).sqrt(), h)
    })
}

fn roots_above(n: usize, z: f64) -> usize {
    let (mut h, mut before, mut changes) = (1.0f64, 0.0f64, 0);
    for k in 0..n {
        let next = (z * h - (k as f64).sqrt() * before) / ((k + 1) as f64).sqrt();
        changes += usize::from(next.is_sign_negative() != h.is_sign_negative());
        (h, before) = (next, h);
    }
    changes
}

/// The n-point Gauss-Legendre rule, exact for polynomials of degree 2n − 1.
pub fn gauss_legendre(n: usize) -> &'static LegendreRule {
    static RULES: [OnceLock<LegendreRule>; LARGEST_RULE + 1] = [const { OnceLock::new() }; LARGEST_RULE + 1];
    assert!((1..=LARGEST_RULE).contains(&n), "Gauss-Legendre rules have 1 to {LARGEST_RULE} nodes, not {n}");
    RULES[n].get_or_init(|| {
        let (mut nodes, mut weights) = (vec![0.0; n], vec![0.0; n]);
        for i in 0..n.div_ceil(2) {
            let mut x = if n == 2 * i + 1 { 0.0 } else { (PI * (i as f64 + 0.75) / (n as f64 + 0.5)).cos() };
            for _ in 0..8 {
                let (value, slope) = legendre(n, x);
                x -= value / slope;
            }
            let slope = legendre(n, x).1;
            let weight = 2.0 / ((1.0 - x) * (1.0 + x) * slope * slope);
            (nodes[i], nodes[n - 1 - i]) = (-x, x);
            (weights[i], weights[n - 1 - i]) = (weight, weight);
        }
        LegendreRule { nodes, weights }
    })
}

/// (P_n(x), P_n′(x)) for |x| < 1.
fn legendre(n: usize, x: f64) -> (f64, f64) {
    let (p, before) = (0..n).fold((1.0, 0.0), |(p, before), k| {
        let k = k as f64;
        (((2.0 * k + 1.0) * x * p - k * before) / (k + 1.0), p)
    });
    (p, n as f64 * (before - x * p) / ((1.0 - x) * (1.0 + x)))
}

/// The n-point rule of Gauss for ∫₀¹ x² f(x) dx, nodes and weights, exact for polynomials f of degree 2n − 1.
///
/// Golub and Welsch (1969): the nodes are eigenvalues of the tridiagonal matrix of the recurrence of the orthogonal polynomials, those of
/// Jacobi with exponents 0 and 2; a weight is the square of the first component of its eigenvector times ∫₀¹ x² dx = 1/3.
pub fn gauss_squared(n: usize) -> &'static [(f64, f64)] {
    static RULES: [OnceLock<Vec<(f64, f64)>>; LARGEST_SQUARED + 1] =
        [const { OnceLock::new() }; LARGEST_SQUARED + 1];
    assert!(
        (1..=LARGEST_SQUARED).contains(&n),
        "rules for the weight x² have 1 to {LARGEST_SQUARED} nodes, not {n}"
    );
    RULES[n].get_or_init(|| {
        let matrix = Mat::from_fn(n, n, |i, j| {
            let k = i.max(j) as f64;
            match i.abs_diff(j) {
                0 => 1.0 / ((k + 1.0) * (k + 2.0)),
                1 => k * (k + 2.0) / ((k + 1.0) * ((2.0 * k + 1.0) * (2.0 * k + 3.0)).sqrt()),
                _ => 0.0,
            }
        });
        let eigen = symmetric_eigen(&matrix);
        let first = |column: usize| eigen.vectors[(0, column)];
        (0..n).map(|c| (0.5 * (eigen.values[c] + 1.0), first(c) * first(c) / 3.0)).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gauss::hermite;

    #[test]
    fn the_rule_for_squares_integrates_powers() {
        // n = 1: ∫x³/∫x² = 3/4.
        assert!(
            (gauss_squared(1)[0].0 - 0.75).abs() < 1e-15 && (gauss_squared(1)[0].1 - 1.0 / 3.0).abs() < 1e-15
        );
        for n in [1, 2, 3, 8, 48] {
            for p in 0..2 * n {
                let got: f64 = gauss_squared(n).iter().map(|(x, w)| w * x.powi(p as i32)).sum();
                assert!((got - 1.0 / (p + 3) as f64).abs() < 2e-15, "n = {n}, p = {p}: {got}");
            }
        }
    }

    #[test]
    fn gauss_hermite_integrates_moments_exactly() {
        for n in [1, 2, 3, 5, 10, 20, 41, 80, 127, 200, 300] {
            let rule = gauss_hermite(n);
            // E[z^{2p}] = (2p − 1)!!, up to the degree where the moment overflows.
            let mut moment = 1.0;
            for p in 0..n.min(80) {
                let got = rule.average(|z| z.powi(2 * p as i32));
                // Error of z^{2p}: 2p relative errors of the nodes (1e-16) add up.
                let tolerance = 1e-14 * (1.0 + p as f64 / 10.0);
                assert!((got / moment - 1.0).abs() < tolerance, "n = {n}, 2p = {}: {got} {moment}", 2 * p);
                moment *= (2 * p + 1) as f64;
            }
        }
    }

    #[test]
    fn gauss_hermite_keeps_hermite_polynomials_orthonormal() {
        for n in [20, 100, 200] {
            let rule = gauss_hermite(n);
            for (j, k) in [(0, 1), (3, 3), (5, 9), (n / 2, n / 2), (n / 2, n / 2 - 2), (n - 1, n - 1)] {
                let got = rule.average(|z| hermite::polynomial(j, z) * hermite::polynomial(k, z));
                let exact = f64::from(u8::from(j == k));
                assert!((got - exact).abs() < 1e-13, "n = {n}: <h_{j} h_{k}> = {got}");
            }
        }
    }

    #[test]
    fn known_nodes_are_reproduced() {
        // n = 3: 0, ±√3 with weights 2/3, 1/6; Legendre n = 3: 0, ±√(3/5) with 8/9, 5/9.
        let (hermite, legendre) = (gauss_hermite(3), gauss_legendre(3));
        assert!(
            (hermite.nodes[2] - 3f64.sqrt()).abs() < 1e-15 && (hermite.weights[0] - 1.0 / 6.0).abs() < 1e-16
        );
        assert!((hermite.weights[1] - 2.0 / 3.0).abs() < 1e-15 && hermite.nodes[1] == 0.0);
        assert!((legendre.nodes[2] - 0.6f64.sqrt()).abs() < 2e-16);
        assert!(
            (legendre.weights[1] - 8.0 / 9.0).abs() < 2e-15
                && (legendre.weights[0] - 5.0 / 9.0).abs() < 2e-15
        );
    }

    #[test]
    fn gauss_legendre_integrates_powers() {
        for n in [1, 4, 16, 33, 64, 200] {
            for p in 0..n.min(60) {
                let rule = gauss_legendre(n);
                let got: f64 =
                    rule.nodes.iter().zip(&rule.weights).map(|(x, w)| w * x.powi(2 * p as i32)).sum();
                assert!((got - 2.0 / (2 * p + 1) as f64).abs() < 4e-15, "n = {n}, 2p = {}", 2 * p);
            }
        }
    }

    #[test]
    fn trapezoid_and_panels_agree_on_tanh() {
        let f = |z: f64| (3.0 * z).tanh().powi(2);
        let fine = GaussianRule::trapezoid(0.01, REACH).average(f);
        assert!((GaussianRule::trapezoid(0.2 / 3.0, REACH).average(f) - fine).abs() < 1e-14);
        assert!((GaussianRule::panels(&[], 5.0 * 0.2 / 3.0, REACH).average(f) - fine).abs() < 1e-14);
        // Why the trapezoid is the default: Gauss-Hermite with as many nodes is far worse.
        assert!((gauss_hermite(160).average(f) - fine).abs() > 1e-9);
    }

    #[test]
    fn panels_see_kinks_exactly() {
        let got = GaussianRule::panels(&[0.7], 1.0, REACH).average(|z| (z - 0.7).abs());
        // E|z − a| = 2φ(a) + a(2Φ(a) − 1).
        let exact = 2.0 * density(0.7) + 0.7 * (2.0 * crate::gauss::normal::cdf(0.7) - 1.0);
        assert!((got - exact).abs() < 1e-15);
    }
}
