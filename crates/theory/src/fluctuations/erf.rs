//! Second moments of the products of a sample for erf units under the square loss: closed forms, but for E[c c c c], which is one
//! integral over the closed forms of lower order.
//!
//! In scaled fields u_a = s_a h_a, with g(u) = erf(u/√2) and C their covariance, a kick is
//!
//!   c_i = κ_i φ(u_i) e,   φ(u) = e^{−u²/2} = √(π/2) g′(u),   e = e_0 − ζ,   e_0 = Σ_a v_a g(u_a).
//!
//! Every φ(u_i) is a Gaussian weight: E[φ(u_i) f] = (1+C_ii)^{−1/2} E_{C′}[f] with C′ = C − C_{·i} C_{i·}/(1+C_ii). With B what C
//! becomes by the weights of all kicks of an average, w the product of their factors and σ² the variance of ζ,
//!
//!   E[c_i c_k u_j u_l]   = κ_i κ_k w ( B_jl E_B[e²] + (B H B)_jl ),      H_ab = 2 v_a v_b E_B[g′_a g′_b] + 2 δ_ab v_a E_B[g″_a e_0],
//!   E[c_i c_j c_k u_l]   = κ_i κ_j κ_k w Σ_a B_la 3 v_a E_B[g′_a e²],
//!   E[c_i c_j c_k c_l]   = κ_i κ_j κ_k κ_l w ( E_B[e_0⁴] + 6 σ² E_B[e_0²] + 3 σ⁴ ),
//!   E_B[e_0⁴] = 6 ∫_0^1 dt Σ_ab v_a v_b B_ab X_ab(t)/(1 + t B_aa),   X_ab(t) = E_{tB}[g′_a g′_b e_0²].
//!
//! The first two follow from Stein's lemma. The last is d/dt E_{tB}[e_0⁴] = ½ Σ_ab B_ab E_{tB}[∂_a ∂_b e_0⁴] with g″_a = −u_a g′_a and
//! Stein's lemma again. All averages of e_0² are sums of arcsines ([`angles`]). Derived in docs/derivations/fluctuations.md#s7-erf.

use super::closed::Averaged;
use super::points::kick_at;
use super::products::triangle;
use didact_math::gauss::angles;
use didact_math::gauss::quadrature::gauss_legendre;
use didact_math::linalg::Mat;
use didact_math::simd::scalar;
use didact_model::rule::{Law, LocalRule};
use std::f64::consts::FRAC_2_PI;

/// c_i = κ_i e^{−(s_i h_i)²/2} (Σ_a v_a erf(s_a h_a/√2) − ζ).
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ErfKick {
    /// κ_i.
    pub(super) factors: Vec<f64>,
    /// s_a, of every field.
    scales: Vec<f64>,
    /// v_a.
    weights: Vec<f64>,
}

/// A field at which erf is one but for rounding, whatever its scale.
const FAR: f64 = 1e6;
/// A field at which erf is linear but for rounding.
const SMALL: f64 = 1e-6;
/// What multiplies ρ^{−2n} in the error of the integral over t: ten in examples of all kinds, at variances from 0.3 to 30.
const FRONT: f64 = 20.0;
/// Nodes of the integral over t at most.
const MOST_NODES: usize = 48;

impl ErfKick {
    /// The constants that explain the kick of a rule at a few fields; whether they explain it everywhere is for the caller to try.
    pub(super) fn guess(rule: &dyn LocalRule) -> Option<Self> {
        let shape = rule.shape();
        let (k, p) = (shape.trained, shape.rows());
        let at = |entries: &[(usize, f64)], noise: f64| {
            let mut fields = vec![0.0; p];
            entries.iter().for_each(|(a, h)| fields[*a] = *h);
            kick_at(rule, &[], &fields, noise)
        };
        // At h = 0 the error is −ζ and every weight φ is one.
        let factors = at(&[], -1.0);
        let first = factors.iter().position(|x| *x != 0.0)?;
        let density = std::f64::consts::SQRT_2 * std::f64::consts::FRAC_2_SQRT_PI / 2.0;
        let (mut scales, mut weights) = (vec![1.0; p], vec![0.0; p]);
        for a in 0..p {
            // Seen by a row whose own field is 0; the first row is seen by itself.
            let slope = at(&[(a, SMALL)], 0.0)[first] / (factors[first] * SMALL);
            if a < k && factors[a] != 0.0 {
                let (with, without) = (at(&[(a, 1.0)], -1.0)[a], at(&[(a, 1.0)], 0.0)[a]);
                scales[a] = (-2.0 * ((with - without) / factors[a]).ln()).sqrt();
                weights[a] = slope / (density * scales[a]);
            } else if a != first {
                weights[a] = at(&[(a, FAR)], 0.0)[first] / factors[first];
                if weights[a] != 0.0 {
                    scales[a] = slope / (density * weights[a]);
                }
            }
        }
        let found = Self { factors, scales, weights };
        let sound = found.scales.iter().all(|s| *s > 0.0 && s.is_finite());
        (sound && found.weights.iter().all(|v| v.is_finite())).then_some(found)
    }

    pub(super) fn kick(&self, fields: &[f64], noise: f64) -> Vec<f64> {
        let unit = |(h, s): (&f64, &f64)| scalar::erf(s * h * std::f64::consts::FRAC_1_SQRT_2);
        let error: f64 =
            fields.iter().zip(&self.scales).map(unit).zip(&self.weights).map(|(g, v)| v * g).sum::<f64>()
                - noise;
        self.factors
            .iter()
            .zip(fields.iter().zip(&self.scales))
            .map(|(factor, (h, s))| factor * (-0.5 * (s * h).powi(2)).exp() * error)
            .collect()
    }

    /// The averages of products of kicks and fields, E[c c c c] to this relative accuracy.
    pub(super) fn averaged(&self, law: &Law, accuracy: f64) -> Averaged<'_> {
        let table = Tables::new(self, law, accuracy);
        let (p, k) = (self.scales.len(), self.factors.len());
        let Tables { one, two, second, third, fourth, error } = table;
        Averaged {
            factors: &self.factors,
            one: Box::new(move |i, j| one[(i, j)]),
            two: Box::new(move |i, j| two[triangle(i, j)]),
            four: Box::new(move |kicks, [i, j, n, l]| match kicks {
                2 => second[triangle(i, j)][(n, l)],
                3 => third[sorted([i, j, n], k)][l],
                _ => fourth[sorted([i, j, n, l], k)],
            }),
            error,
            rows: p,
        }
    }
}

/// The place of a multiset of trained rows in a table of k^N entries, of which those of ascending rows are filled.
fn sorted<const N: usize>(mut rows: [usize; N], k: usize) -> usize {
    rows.sort_unstable();
    rows.iter().fold(0, |place, row| place * k + row)
}

/// A Gaussian law under the weights φ of some fields: its covariance, and the average of the weights.
#[derive(Clone)]
struct Tilted {
    fields: usize,
    covariance: Vec<f64>,
    weight: f64,
}

impl Tilted {
    fn at(&self, a: usize, b: usize) -> f64 {
        self.covariance[a * self.fields + b]
    }

    /// The law under one more weight.
    fn by(&self, i: usize) -> Self {
        let p = self.fields;
        let own = 1.0 + self.at(i, i);
        let row = &self.covariance[i * p..(i + 1) * p];
        let mut covariance = self.covariance.clone();
        for (out, x) in covariance.chunks_exact_mut(p).zip(row) {
            out.iter_mut().zip(row).for_each(|(c, y)| *c -= x * y / own);
        }
        Self { fields: p, covariance, weight: self.weight / own.sqrt() }
    }

    /// E[g′_a g′_b].
    fn slopes(&self, a: usize, b: usize) -> f64 {
        let x = self.at(a, b);
        FRAC_2_PI / ((1.0 + self.at(a, a)) * (1.0 + self.at(b, b)) - x * x).sqrt()
    }
}

/// Everything that second moments are made of, without the factors κ.
struct Tables {
    one: Mat,
    two: Vec<f64>,
    second: Vec<Mat>,
    third: Vec<Vec<f64>>,
    fourth: Vec<f64>,
    error: f64,
}

impl Tables {
    fn new(kick: &ErfKick, law: &Law, accuracy: f64) -> Self {
        let (p, k) = (kick.scales.len(), kick.factors.len());
        let (s, v) = (&kick.scales, &kick.weights);
        let noise = law.label_noise * law.label_noise;
        let covariance =
            (0..p * p).map(|at| s[at / p] * s[at % p] * law.covariance[(at / p, at % p)]).collect();
        let plain = Tilted { fields: p, covariance, weight: 1.0 };
        let mut room = vec![0.0; angles::room(p)];
        // E[e_0²] under the weights of the pairs (a, b) of the first fields.
        let mut squares = |law: &Tilted, of: &mut [f64]| {
            angles::weighted_angles(&law.covariance, v, &mut room, of);
            of.iter_mut().for_each(|x| *x *= FRAC_2_PI);
        };
        let density = FRAC_2_PI.sqrt();
        let mut one = Mat::zeros(k, p);
        for i in 0..k {
            let law = plain.by(i);
            for j in 0..p {
                let sum: f64 = (0..p).map(|a| law.at(j, a) * v[a] / (1.0 + law.at(a, a)).sqrt()).sum();
                one[(i, j)] = law.weight * density * sum / s[j];
            }
        }
        let pairs = k * (k + 1) / 2;
        let mut of_two = vec![0.0; pairs];
        squares(&plain, &mut of_two);
        let (mut two, mut second) = (Vec::with_capacity(pairs), Vec::with_capacity(pairs));
        let (mut third, mut fourth) = (vec![Vec::new(); k.pow(3)], vec![0.0; k.pow(4)]);
        let mut of_four = vec![0.0; p * (p + 1) / 2];
        let path = Path::new(&plain, accuracy);
        for i in 0..k {
            for j in 0..=i {
                let law = plain.by(i).by(j);
                let square = of_two[triangle(i, j)] + noise;
                two.push(law.weight * square);
                second.push(second_moments(&law, v, s, square));
                squares(&law, &mut of_four);
                // Rows n ≤ j ≤ i, and l ≤ n.
                for n in 0..=j {
                    let law = law.by(n);
                    let slopes: Vec<f64> = (0..p)
                        .map(|a| density * (of_four[triangle(n, a)] + noise) / (1.0 + law.at(a, a)).sqrt())
                        .collect();
                    third[sorted([i, j, n], k)] = (0..p)
                        .map(|l| {
                            let sum: f64 = (0..p).map(|a| law.at(l, a) * v[a] * slopes[a]).sum();
                            3.0 * law.weight * sum / s[l]
                        })
                        .collect();
                    for l in 0..=n {
                        let law = law.by(l);
                        let square = of_four[triangle(n, l)];
                        let own = path.fourth_power(&law, v, &mut squares);
                        fourth[sorted([i, j, n, l], k)] =
                            law.weight * (own + 6.0 * noise * square + 3.0 * noise * noise);
                    }
                }
            }
        }
        Self { one, two, second, third, fourth, error: path.error }
    }
}

/// w ( B_jl E_B[e²] + (B H B)_jl )/(s_j s_l), for the average `square` of e².
fn second_moments(law: &Tilted, v: &[f64], s: &[f64], square: f64) -> Mat {
    let p = law.fields;
    let mut h = Mat::zeros(p, p);
    for a in 0..p {
        let mut curvature = 0.0;
        for b in 0..p {
            let slopes = law.slopes(a, b);
            h[(a, b)] += 2.0 * v[a] * v[b] * slopes;
            curvature -= v[b] * slopes * law.at(a, b);
        }
        h[(a, a)] += 2.0 * v[a] * curvature / (1.0 + law.at(a, a));
    }
    let b = Mat::from_fn(p, p, |x, y| law.at(x, y));
    let around = b.times(&h).times(&b);
    Mat::from_fn(p, p, |j, l| law.weight * (b[(j, l)] * square + around[(j, l)]) / (s[j] * s[l]))
}

/// Nodes and weights of the integral over t.
struct Path {
    nodes: Vec<(f64, f64)>,
    error: f64,
}

impl Path {
    /// Gauss and Legendre in x with t = ((1+4V)^x − 1)/(4V), V the largest variance. The integrand is singular where 1 + 4 t B_aa ≤ 0 at
    /// most (four equal fields), which in x are the lines Im x = ±π/ln(1+4V): with σ = 2π/ln(1+4V) and ρ = σ + √(σ²+1) the error falls
    /// as ρ^{−2n}. Weights only make variances smaller, so that those of C decide.
    fn new(plain: &Tilted, accuracy: f64) -> Self {
        let reach = 4.0 * (0..plain.fields).map(|a| plain.at(a, a)).fold(1e-3, f64::max);
        let length = reach.ln_1p();
        let width = 2.0 * std::f64::consts::PI / length;
        let rate = 2.0 * (width + (width * width + 1.0).sqrt()).ln();
        let error = |count: usize| FRONT * (-rate * count as f64).exp();
        let asked = ((FRONT / accuracy.max(1e-14)).ln() / rate).ceil();
        let count = (asked.max(2.0) as usize).min(MOST_NODES);
        let rule = gauss_legendre(count);
        let node = |(x, w): (&f64, &f64)| {
            let grown = (0.5 * (x + 1.0) * length).exp_m1();
            (grown / reach, 0.5 * w * length * (1.0 + grown) / reach)
        };
        Self { nodes: rule.nodes.iter().zip(&rule.weights).map(node).collect(), error: error(count) }
    }

    /// E_B[e_0⁴].
    fn fourth_power(&self, law: &Tilted, v: &[f64], squares: &mut impl FnMut(&Tilted, &mut [f64])) -> f64 {
        let p = law.fields;
        let mut of_pairs = vec![0.0; p * (p + 1) / 2];
        let mut part = law.clone();
        let mut sum = 0.0;
        for (t, weight) in &self.nodes {
            for (x, whole) in part.covariance.iter_mut().zip(&law.covariance) {
                *x = t * whole;
            }
            squares(&part, &mut of_pairs);
            let mut inner = 0.0;
            for a in 0..p {
                for b in 0..=a {
                    let ends = 1.0 / (1.0 + part.at(a, a)) + 1.0 / (1.0 + part.at(b, b));
                    let twice = if a == b { 0.5 } else { 1.0 };
                    let x = part.slopes(a, b) * of_pairs[triangle(a, b)];
                    inner += twice * ends * v[a] * v[b] * law.at(a, b) * x;
                }
            }
            sum += weight * inner;
        }
        6.0 * sum
    }
}
