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
//!   E_B[e_0⁴] = 3 E_B[e_0²]² + χ_B,   χ_B = 6 ∫_0^1 dt Σ_ab v_a v_b B_ab ( X_ab(t) − h_ab(t) E_{tB}[e_0²] )/(1 + t B_aa),
//!   X_ab(t) = E_{tB}[g′_a g′_b e_0²],   h_ab(t) = E_{tB}[g′_a g′_b].
//!
//! The first two follow from Stein's lemma. For the last, d/dt E_{tB}[e_0⁴] = ½ Σ_ab B_ab E_{tB}[∂_a ∂_b e_0⁴] with g″_a = −u_a g′_a and
//! Stein's lemma again, minus the same for 3 E_{tB}[e_0²]². All averages of e_0² are sums of arcsines ([`angles`]). Derived in
//! docs/derivations/fluctuations.md#s7-erf.
//!
//! A band needs χ to few digits, because it is a small part of E[c c c c], which is a small part of the covariance of a step:
//! [`FourthRule`] says to how many, and whether the excess kurtosis χ_B/E_B[e_0²]² is computed for every four rows or interpolated
//! between those in which every row is taken an even number of times.

use super::closed::Averaged;
use super::fourths::{
    FourthRule, Integral, Nodes, Tilted, even_kurtoses, fourfolds, interpolated, kurtosis, negligible,
};
use super::points::kick_at;
use super::products::triangle;
use didact_math::gauss::angles;
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

    /// The cheapest rule that is good enough at this law and near it: E[c c c c] to a relative accuracy.
    pub(super) fn rule(&self, law: &Law, accuracy: f64) -> FourthRule {
        let plain = Tilted::plain(&self.scales, law.covariance);
        let v = &self.weights;
        let mut room = vec![0.0; angles::room(plain.fields).max(2 * plain.fields)];
        let mut excess = |law: &Tilted, count: usize| {
            let square = law.square(v, &mut room);
            (Integral::new(&plain, Nodes::Count(count, 0.0)).excess(law, v, &mut room), square)
        };
        // One node more is so much better that the difference is the error.
        let mut of_nodes = [0.0_f64; 2];
        let mut kurtoses = Vec::new();
        for rows in fourfolds(self.factors.len()) {
            let law = rows.iter().fold(plain.clone(), |law, row| law.by(*row));
            let (first, square) = excess(&law, 1);
            kurtoses.push((rows, kurtosis(first, square, v)));
            if rows[0] == rows[3] {
                let [second, third] = [2, 3].map(|count| excess(&law, count).0);
                let size = (third + 3.0 * square * square).abs().max(f64::MIN_POSITIVE);
                if !negligible(square, v) {
                    of_nodes[0] = of_nodes[0].max((first - third).abs() / size);
                    of_nodes[1] = of_nodes[1].max((second - third).abs() / size);
                }
            }
        }
        let even = even_kurtoses(&kurtoses, self.factors.len());
        let of_interpolation = kurtoses
            .iter()
            .map(|(rows, known)| (interpolated(*rows, &even) - known).abs() / (3.0 + known).abs().max(1.0))
            .fold(0.0, f64::max);
        let every = of_interpolation > 0.5 * accuracy;
        let left = if every { accuracy } else { accuracy - of_interpolation };
        let nodes = match of_nodes.iter().position(|error| *error <= left) {
            Some(at) => Nodes::Count(at + 1, of_nodes[at] + if every { 0.0 } else { of_interpolation }),
            None => Nodes::Within(left),
        };
        FourthRule { nodes, every }
    }

    /// The averages of products of kicks and fields.
    pub(super) fn averaged(&self, law: &Law, rule: FourthRule) -> Averaged<'_> {
        let table = Tables::new(self, law, rule);
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
    fn new(kick: &ErfKick, law: &Law, rule: FourthRule) -> Self {
        let (p, k) = (kick.scales.len(), kick.factors.len());
        let (s, v) = (&kick.scales, &kick.weights);
        let noise = law.label_noise * law.label_noise;
        let plain = Tilted::plain(s, law.covariance);
        let mut room = vec![0.0; angles::room(p).max(2 * p)];
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
        plain.squares(v, &mut room, &mut of_two);
        let (mut two, mut second) = (Vec::with_capacity(pairs), Vec::with_capacity(pairs));
        let (mut third, mut fourth) = (vec![Vec::new(); k.pow(3)], vec![0.0; k.pow(4)]);
        let mut of_four = vec![0.0; p * (p + 1) / 2];
        let path = Integral::new(&plain, rule.nodes);
        // Rows, weight and E[e_0²] of the multisets whose kurtosis is interpolated, and the kurtoses that are known.
        let (mut rest, mut known) = (Vec::new(), Vec::new());
        let with_noise = |excess: f64, square: f64| {
            excess + 3.0 * square * square + 6.0 * noise * square + 3.0 * noise * noise
        };
        for i in 0..k {
            for j in 0..=i {
                let law = plain.by(i).by(j);
                let square = of_two[triangle(i, j)] + noise;
                two.push(law.weight * square);
                second.push(second_moments(&law, v, s, square));
                law.squares(v, &mut room, &mut of_four);
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
                        let (rows, square) = ([i, j, n, l], of_four[triangle(n, l)]);
                        if rule.every || (i == j && n == l) {
                            let excess = path.excess(&law, v, &mut room);
                            fourth[sorted(rows, k)] = law.weight * with_noise(excess, square);
                            known.push((rows, kurtosis(excess, square, v)));
                        } else {
                            rest.push((rows, law.weight, square));
                        }
                    }
                }
            }
        }
        let even = even_kurtoses(&known, k);
        for (rows, weight, square) in rest {
            let excess = interpolated(rows, &even) * square * square;
            fourth[sorted(rows, k)] = weight * with_noise(excess, square);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Three units of two teachers; `near` is how much the students have learned.
    fn example(size: f64, near: f64) -> (ErfKick, Mat) {
        let kick = ErfKick {
            factors: vec![1.0, 0.8, 1.1],
            scales: vec![1.0; 5],
            weights: vec![1.0, 0.8, 1.1, -1.0, -1.2],
        };
        let rows = Mat::from_rows(&[
            vec![near, 0.2, 0.3, 0.1],
            vec![0.1, near, -0.2, 0.3],
            vec![near, 0.1, 0.2, -0.3],
            vec![1.0, 0.0, 0.0, 0.0],
            vec![0.0, 1.0, 0.0, 0.0],
        ])
        .unwrap();
        let covariance = Mat::from_fn(5, 5, |i, j| {
            size * rows.row(i).iter().zip(rows.row(j)).map(|(x, y)| x * y).sum::<f64>()
        });
        (kick, covariance)
    }

    /// The largest relative error of E[c c c c] by a rule, against all integrals with many nodes.
    fn largest_error(kick: &ErfKick, law: &Law, rule: FourthRule) -> f64 {
        let exact = Tables::new(kick, law, FourthRule::every(1e-13));
        let found = Tables::new(kick, law, rule);
        let errors = fourfolds(3).map(|rows| {
            let place = sorted(rows, 3);
            (found.fourth[place] / exact.fourth[place] - 1.0).abs()
        });
        errors.fold(0.0, f64::max)
    }

    #[test]
    fn fourth_moments_are_as_accurate_as_asked() {
        for (size, near) in [(1.0, 0.2), (1.0, 0.9), (0.4, 0.5), (6.0, 0.6)] {
            for noise in [0.0, 0.2] {
                let (kick, covariance) = example(size, near);
                let law = Law { covariance: &covariance, scalars: &[], label_noise: noise };
                let mut interpolates = 0;
                for accuracy in [1e-1, 1e-2, 1e-3, 1e-4, 1e-6] {
                    let bound = largest_error(&kick, &law, FourthRule::every(accuracy));
                    assert!(bound < accuracy, "{size} {near} {noise}: {bound:.1e} of {accuracy:.0e}");
                    let rule = kick.rule(&law, accuracy);
                    interpolates += usize::from(!rule.every);
                    let error = largest_error(&kick, &law, rule);
                    assert!(
                        error < accuracy,
                        "{size} {near} {noise}, {rule:?}: {error:.1e} of {accuracy:.0e}"
                    );
                }
                // Kurtoses of steep units depend on the rows too much; to six digits all are computed.
                let some = if size <= 1.0 { 1..5 } else { 0..5 };
                assert!(some.contains(&interpolates), "{size} {near}: {interpolates}");
            }
        }
    }
}
