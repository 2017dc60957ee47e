//! Points and weights for averages over the fields of one sample and its label noise.

use didact_math::gauss::quadrature::{gauss_hermite, gauss_legendre};
use didact_math::linalg::{Mat, cholesky_psd, solve, symmetric_eigen};
use didact_math::special::gamma;
use didact_model::rule::{Kick, Law, LocalRule, Sample};
use std::f64::consts::PI;

/// Some samples: fields are rows x size, with one noise and one weight each.
pub(super) struct Block<'a> {
    pub(super) fields: &'a [f64],
    pub(super) noise: &'a [f64],
    pub(super) weights: &'a [f64],
}

/// Samples that are handed over together.
const BLOCK: usize = 256;

/// Collects samples into blocks.
struct Collector<'s> {
    rows: usize,
    fields: Vec<f64>,
    noise: Vec<f64>,
    weights: Vec<f64>,
    sink: &'s mut dyn FnMut(&Block),
}

impl<'s> Collector<'s> {
    fn new(rows: usize, sink: &'s mut dyn FnMut(&Block)) -> Self {
        Self { rows, fields: vec![0.0; rows * BLOCK], noise: Vec::new(), weights: Vec::new(), sink }
    }

    fn push(&mut self, fields: &[f64], noise: f64, weight: f64) {
        let at = self.weights.len();
        for (j, h) in fields.iter().enumerate() {
            self.fields[j * BLOCK + at] = *h;
        }
        self.noise.push(noise);
        self.weights.push(weight);
        if self.weights.len() == BLOCK {
            (self.sink)(&Block { fields: &self.fields, noise: &self.noise, weights: &self.weights });
            self.noise.clear();
            self.weights.clear();
        }
    }

    fn finish(mut self) {
        let n = self.weights.len();
        if n == 0 {
            return;
        }
        let mut fields = vec![0.0; self.rows * n];
        for j in 0..self.rows {
            fields[j * n..(j + 1) * n].copy_from_slice(&self.fields[j * BLOCK..j * BLOCK + n]);
        }
        (self.sink)(&Block { fields: &fields, noise: &self.noise, weights: &self.weights });
        self.weights.clear();
    }
}

/// Label noise as nodes and weights: three where the kick is affine in it, which makes fourth moments exact.
fn noise_nodes(rule: &dyn LocalRule, law: &Law, nodes: usize) -> Vec<(f64, f64)> {
    if law.label_noise == 0.0 {
        return vec![(0.0, 1.0)];
    }
    let count = if is_affine_in_noise(rule, law) { 3 } else { nodes };
    let rule = gauss_hermite(count);
    rule.nodes.iter().zip(&rule.weights).map(|(z, w)| (law.label_noise * z, *w)).collect()
}

/// Product of Gauss-Hermite rules over the coordinates z of h = F z, and the nodes of the noise. False where that is beyond the budget.
pub(super) fn product(
    rule: &dyn LocalRule,
    law: &Law,
    factor: &Mat,
    nodes: usize,
    budget: usize,
    sink: &mut dyn FnMut(&Block),
) -> bool {
    let (p, r) = (factor.rows(), factor.cols());
    let noise = noise_nodes(rule, law, nodes);
    let points = nodes.checked_pow(r as u32).and_then(|n| n.checked_mul(noise.len()));
    let Some(total) = points.filter(|n| *n <= budget).map(|n| n / noise.len()) else { return false };
    let hermite = gauss_hermite(nodes);
    let mut collector = Collector::new(p, sink);
    let mut fields = vec![0.0; p];
    for point in 0..total {
        let (mut digits, mut weight) = (point, 1.0);
        fields.fill(0.0);
        for j in 0..r {
            let z = hermite.nodes[digits % nodes];
            weight *= hermite.weights[digits % nodes];
            digits /= nodes;
            for (i, h) in fields.iter_mut().enumerate() {
                *h += factor[(i, j)] * z;
            }
        }
        for (zeta, w) in &noise {
            collector.push(&fields, *zeta, weight * w);
        }
    }
    collector.finish();
    true
}

/// Fields h = r ω, orthant by orthant: Σ|ω_i| = 1, Gauss-Legendre over the simplex and, in x = r² (ωᵀC⁻¹ω)/2, three nodes of
/// Gauss-Laguerre, which are exact where products of the sample are of degree two in (h, noise)
/// (docs/derivations/fluctuations.md#s6). False beyond the budget or where C is singular.
pub(super) fn orthants(
    rule: &dyn LocalRule,
    law: &Law,
    nodes: usize,
    budget: usize,
    sink: &mut dyn FnMut(&Block),
) -> bool {
    let c = law.covariance;
    let p = c.rows();
    let Ok(lower) = cholesky_psd(c) else { return false };
    if p == 0 || p > 6 || (0..p).any(|i| lower[(i, i)] <= 0.0) {
        return false;
    }
    let noise = noise_nodes(rule, law, nodes);
    let radial = laguerre(0.5 * p as f64 - 1.0);
    let angles = nodes.checked_pow(p as u32 - 1);
    let total = angles.and_then(|n| n.checked_mul((1 << p) * radial.len() * noise.len()));
    if total.is_none_or(|n| n > budget) {
        return false;
    }
    let inverse = solve(c, &Mat::identity(p));
    let determinant: f64 = (0..p).map(|i| lower[(i, i)]).product();
    // (2π)^{−P/2} |C|^{−1/2} · ½ (2/s)^{P/2}, s = ωᵀ C⁻¹ ω.
    let constant = 0.5 * PI.powf(-0.5 * p as f64) / determinant;
    let legendre = gauss_legendre(nodes);
    let unit: Vec<(f64, f64)> =
        legendre.nodes.iter().zip(&legendre.weights).map(|(x, w)| (0.5 * (x + 1.0), 0.5 * w)).collect();
    let mut collector = Collector::new(p, sink);
    let (mut omega, mut fields) = (vec![0.0; p], vec![0.0; p]);
    for signs in 0..1usize << p {
        for angle in 0..nodes.pow(p as u32 - 1) {
            let (mut digits, mut rest, mut weight) = (angle, 1.0, 1.0);
            // ω_p = (1 − x_1) of what is left, and so on; the Jacobian of the last but m coordinates is the rest to that power.
            for level in (1..p).rev() {
                let (x, w) = unit[digits % nodes];
                digits /= nodes;
                omega[level] = rest * (1.0 - x);
                weight *= w * rest;
                rest *= x;
            }
            omega[0] = rest;
            for (i, o) in omega.iter_mut().enumerate() {
                if signs >> i & 1 == 1 {
                    *o = -*o;
                }
            }
            let mut s = 0.0;
            for i in 0..p {
                for j in 0..p {
                    s += omega[i] * inverse[(i, j)] * omega[j];
                }
            }
            let density = constant * s.powf(-0.5 * p as f64) * weight;
            for (x, w) in &radial {
                let r = (2.0 * x / s).sqrt();
                fields.iter_mut().zip(&omega).for_each(|(h, o)| *h = r * o);
                for (zeta, v) in &noise {
                    collector.push(&fields, *zeta, density * w * v);
                }
            }
        }
    }
    collector.finish();
    true
}

/// Nodes and weights of ∫ x^a e^{−x} f(x) dx, exact for f of degree five.
fn laguerre(a: f64) -> Vec<(f64, f64)> {
    // Golub and Welsch: eigenvalues of the Jacobi matrix, and the squared first components of its eigenvectors.
    let jacobi = Mat::from_fn(3, 3, |i, j| match i.abs_diff(j) {
        0 => 2.0 * i as f64 + a + 1.0,
        1 => {
            let k = i.max(j) as f64;
            (k * (k + a)).sqrt()
        }
        _ => 0.0,
    });
    let eigen = symmetric_eigen(&jacobi);
    let whole = gamma(a + 1.0);
    (0..3).map(|n| (eigen.values[n], whole * eigen.vectors[(0, n)].powi(2))).collect()
}

/// Fields at which properties of a rule are tried: fixed numbers without pattern, of all signs.
pub(super) fn trial_fields(rule: &dyn LocalRule, trial: usize) -> Vec<f64> {
    let rows = rule.shape().rows();
    (0..rows).map(|j| 4.0 * (((trial * rows + j + 1) as f64) * 0.754_877_666_246_693).fract() - 2.0).collect()
}

const TRIALS: usize = 12;

pub(super) fn kick_at(rule: &dyn LocalRule, scalars: &[f64], fields: &[f64], noise: f64) -> Vec<f64> {
    let mut kick = Kick::new(rule.shape());
    rule.kick(&Sample { fields, scalars, noise }, &mut kick);
    let Kick { mut rows, scalars } = kick;
    rows.extend(scalars);
    rows
}

/// Whether kick and scalar gradient are affine in the label noise, as those of every square loss are.
fn is_affine_in_noise(rule: &dyn LocalRule, law: &Law) -> bool {
    (0..TRIALS).all(|trial| {
        let fields = trial_fields(rule, trial);
        let [a, b, c, d] = [-1.0, 0.0, 1.0, 2.5].map(|zeta| kick_at(rule, law.scalars, &fields, zeta));
        (0..a.len()).all(|i| {
            let size = a[i].abs() + b[i].abs() + c[i].abs() + d[i].abs();
            let straight = (a[i] - 2.0 * b[i] + c[i]).abs() <= 1e-12 * size;
            straight && (d[i] - b[i] - 2.5 * (c[i] - b[i])).abs() <= 1e-12 * size
        })
    })
}

/// Whether all products of a sample are of degree two in fields and noise together: kicks of degree one, scalar gradients of degree two.
pub(super) fn is_homogeneous(rule: &dyn LocalRule, law: &Law) -> bool {
    let trained = rule.shape().trained;
    (0..TRIALS).all(|trial| {
        let fields = trial_fields(rule, trial);
        let zeta = if law.label_noise > 0.0 { 0.7 * (trial as f64 - 5.5) } else { 0.0 };
        let once = kick_at(rule, law.scalars, &fields, zeta);
        let doubled: Vec<f64> = fields.iter().map(|h| 2.0 * h).collect();
        let twice = kick_at(rule, law.scalars, &doubled, 2.0 * zeta);
        once.iter().zip(&twice).enumerate().all(|(i, (one, two))| {
            let factor = if i < trained { 2.0 } else { 4.0 };
            (two - factor * one).abs() <= 1e-12 * (two.abs() + one.abs())
        })
    })
}
