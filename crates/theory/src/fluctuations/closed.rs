//! Second moments without sums over samples, for the kinds of kick that have them: those of linear units, of units z² and of erf units
//! under the square loss.
//!
//! Which of them a rule is, is found by trying its kick, so that no family is named and rules written as formulas are found too.

use super::erf::ErfKick;
use super::fourths::FourthRule;
use super::moments::Moments;
use super::points::{kick_at, trial_fields};
use super::products::ProductIndex;
use didact_math::linalg::{Mat, dot};
use didact_model::rule::{Law, LocalRule};

/// A kick that is the slope of a squared error, of units that enter it linearly.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ClosedKick {
    /// c_i = α_i (u·h − ζ).
    Linear { factors: Vec<f64>, error: Vec<f64> },
    /// c_i = α_i h_i (hᵀ U h − ζ).
    Quadratic { factors: Vec<f64>, error: Mat },
    /// c_i = κ_i e^{−(s_i h_i)²/2} (Σ_a v_a erf(s_a h_a/√2) − ζ).
    Erf(ErfKick),
}

/// Trials beyond those that a form is found from, at which it must hold.
const TRIALS: usize = 20;
/// Relative accuracy with which it must hold there.
const ROUNDING: f64 = 1e-11;

impl ClosedKick {
    /// The form of a rule, if it has one of these. Rules with trained scalars have none.
    pub(super) fn of(rule: &dyn LocalRule) -> Option<Self> {
        let shape = rule.shape();
        if shape.scalars > 0 || shape.trained == 0 {
            return None;
        }
        Self::linear(rule).or_else(|| Self::quadratic(rule)).or_else(|| {
            let found = Self::Erf(ErfKick::guess(rule)?);
            found.holds(rule).then_some(found)
        })
    }

    fn linear(rule: &dyn LocalRule) -> Option<Self> {
        let rows = rule.shape().rows();
        let origin = vec![0.0; rows];
        // At h = 0 and ζ = −1 the kick is α.
        let factors = kick_at(rule, &[], &origin, -1.0);
        let first = factors.iter().position(|a| *a != 0.0)?;
        let along = |j: usize| {
            let mut fields = origin.clone();
            fields[j] = 1.0;
            kick_at(rule, &[], &fields, 0.0)[first] / factors[first]
        };
        let error: Vec<f64> = (0..rows).map(along).collect();
        let found = Self::Linear { factors, error };
        found.holds(rule).then_some(found)
    }

    fn quadratic(rule: &dyn LocalRule) -> Option<Self> {
        let shape = rule.shape();
        let (k, rows) = (shape.trained, shape.rows());
        // The difference of the kicks at ζ = −1 and 0 is α_i h_i.
        let ones = vec![1.0; rows];
        let (with, without) = (kick_at(rule, &[], &ones, -1.0), kick_at(rule, &[], &ones, 0.0));
        let factors: Vec<f64> = with.iter().zip(&without).map(|(a, b)| a - b).collect();
        let first = (0..k).find(|i| factors[*i] != 0.0)?;
        // hᵀ U h at ζ = 0, read off row `first`, whose field must not vanish.
        let form = |fields: &[f64]| kick_at(rule, &[], fields, 0.0)[first] / (factors[first] * fields[first]);
        let unit = |entries: &[(usize, f64)]| {
            let mut fields = vec![0.0; rows];
            fields[first] = 1.0;
            entries.iter().for_each(|(j, x)| fields[*j] = *x);
            form(&fields)
        };
        let own = unit(&[]);
        let mut error = Mat::zeros(rows, rows);
        error[(first, first)] = own;
        for j in (0..rows).filter(|j| *j != first) {
            let (up, down) = (unit(&[(j, 1.0)]), unit(&[(j, -1.0)]));
            error[(j, j)] = 0.5 * (up + down) - own;
            error[(first, j)] = 0.25 * (up - down);
            error[(j, first)] = error[(first, j)];
        }
        for i in (0..rows).filter(|i| *i != first) {
            for j in (0..i).filter(|j| *j != first) {
                let signs = [(1.0, 1.0), (-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0)];
                let [a, b, c, d] = signs.map(|(x, y)| unit(&[(i, x), (j, y)]));
                error[(i, j)] = 0.125 * (a + b - c - d);
                error[(j, i)] = error[(i, j)];
            }
        }
        let found = Self::Quadratic { factors, error };
        found.holds(rule).then_some(found)
    }

    /// Whether this is the kick at fields that it was not made from.
    fn holds(&self, rule: &dyn LocalRule) -> bool {
        (0..TRIALS).all(|trial| {
            let fields = trial_fields(rule, trial);
            let noise = 0.3 * (trial as f64 - 7.5);
            let kick = kick_at(rule, &[], &fields, noise);
            let size: f64 = fields.iter().map(|h| h.abs()).sum::<f64>() + noise.abs();
            let own = self.kick(&fields, noise);
            let largest = own.iter().fold(0.0, |worst: f64, c| worst.max(c.abs()));
            kick.iter().zip(&own).all(|(a, b)| (a - b).abs() <= ROUNDING * (largest + size.powi(3)))
        })
    }

    fn kick(&self, fields: &[f64], noise: f64) -> Vec<f64> {
        match self {
            Self::Linear { factors, error } => {
                let e = dot(error, fields) - noise;
                factors.iter().map(|a| a * e).collect()
            }
            Self::Quadratic { factors, error } => {
                let e: f64 =
                    (0..fields.len()).map(|i| fields[i] * dot(error.row(i), fields)).sum::<f64>() - noise;
                factors.iter().zip(fields).map(|(a, h)| a * h * e).collect()
            }
            Self::Erf(kick) => kick.kick(fields, noise),
        }
    }

    /// E[u] and E[u uᵀ] over fields of this law; the rule is for what is not closed.
    pub(super) fn moments(&self, law: &Law, index: ProductIndex, rule: FourthRule) -> Moments {
        let moments = match self {
            Self::Linear { factors, error } => of_linear(factors, error, law),
            Self::Quadratic { factors, error } => of_quadratic(factors, error, law),
            Self::Erf(kick) => kick.averaged(law, rule),
        };
        moments.assemble(index)
    }
}

/// Averages of products of kicks and fields, by their indices.
pub(super) struct Averaged<'a> {
    pub(super) factors: &'a [f64],
    /// Fields.
    pub(super) rows: usize,
    /// E[c_i h_j]/α_i.
    pub(super) one: Box<dyn Fn(usize, usize) -> f64 + 'a>,
    /// E[c_i c_j]/(α_i α_j).
    pub(super) two: Box<dyn Fn(usize, usize) -> f64 + 'a>,
    /// E[c_i c_k h_j h_l], E[c_i c_j c_k h_l], E[c_i c_j c_k c_l] without their α, kicks first.
    pub(super) four: Box<dyn Fn(usize, [usize; 4]) -> f64 + 'a>,
    /// Relative error of the last of them.
    pub(super) error: f64,
}

impl Averaged<'_> {
    fn assemble(&self, index: ProductIndex) -> Moments {
        let (a, k, rows, m) = (self.factors, self.factors.len(), self.rows, index.len());
        let mut mean = vec![0.0; m];
        let mut second = Mat::zeros(m, m);
        let mut set = |x: usize, y: usize, value: f64| {
            second[(x, y)] = value;
            second[(y, x)] = value;
        };
        for i in 0..k {
            for j in 0..rows {
                let own = index.kick_field(i, j);
                mean[own] = a[i] * (self.one)(i, j);
                for n in 0..k {
                    for l in 0..rows {
                        set(own, index.kick_field(n, l), a[i] * a[n] * (self.four)(2, [i, n, j, l]));
                    }
                    for o in 0..=n {
                        set(own, index.kick_kick(n, o), a[i] * a[n] * a[o] * (self.four)(3, [n, o, i, j]));
                    }
                }
            }
        }
        for i in 0..k {
            for j in 0..=i {
                let own = index.kick_kick(i, j);
                mean[own] = a[i] * a[j] * (self.two)(i, j);
                for n in 0..k {
                    for o in 0..=n {
                        set(
                            own,
                            index.kick_kick(n, o),
                            a[i] * a[j] * a[n] * a[o] * (self.four)(4, [i, j, n, o]),
                        );
                    }
                }
            }
        }
        Moments { index, mean, second, error: self.error }
    }
}

/// Wick's theorem for kicks that are all multiples of one Gaussian error e, E[e²] = ε, E[e h] = m.
fn of_linear<'a>(factors: &'a [f64], error: &[f64], law: &'a Law) -> Averaged<'a> {
    let c = law.covariance;
    let m: Vec<f64> = (0..c.rows()).map(|i| dot(c.row(i), error)).collect();
    let square = dot(error, &m) + law.label_noise * law.label_noise;
    let of_one = m.clone();
    Averaged {
        factors,
        rows: c.rows(),
        error: 0.0,
        one: Box::new(move |_, j| of_one[j]),
        two: Box::new(move |_, _| square),
        four: Box::new(move |kicks, [_, _, third, fourth]| match kicks {
            2 => square * c[(third, fourth)] + 2.0 * m[third] * m[fourth],
            3 => 3.0 * square * m[fourth],
            _ => 3.0 * square * square,
        }),
    }
}

/// From E[e^{te} h h h h]: under the weight e^{te} the fields are Gaussian with covariance Σ_r t^r C_r, C_r = 2^r (C U)^r C, and
/// E[e^{te}] = Σ_n z_n t^n.
fn of_quadratic<'a>(factors: &'a [f64], error: &Mat, law: &Law) -> Averaged<'a> {
    const ORDERS: usize = 5;
    let c = law.covariance;
    let step = c.times(error);
    let mut tilted = vec![c.clone()];
    let mut powers = vec![step.clone()];
    for r in 1..ORDERS {
        let next = step.times(&tilted[r - 1]).scaled(2.0);
        tilted.push(next);
        powers.push(powers[r - 1].times(&step));
    }
    let noise = law.label_noise * law.label_noise;
    // Cumulants over (k − 1)!: 2^{k−1} tr (C U)^k, and the variance of the noise.
    let cumulant = |k: usize| {
        let factor = f64::from(1_u32 << (k - 1));
        factor * powers[k - 1].trace() + if k == 2 { noise } else { 0.0 }
    };
    let mut z = vec![1.0];
    for n in 1..ORDERS {
        let sum: f64 = (1..=n).map(|k| cumulant(k) * z[n - k]).sum();
        z.push(sum / n as f64);
    }
    let factorial = |m: usize| (1..=m).map(|x| x as f64).product::<f64>();
    let (pairs, weights) = (tilted.clone(), z.clone());
    let two_fields = move |m: usize, i: usize, j: usize| -> f64 {
        (0..=m).map(|r| weights[m - r] * pairs[r][(i, j)]).sum::<f64>() * factorial(m)
    };
    let again = two_fields.clone();
    Averaged {
        factors,
        rows: c.rows(),
        error: 0.0,
        one: Box::new(move |i, j| two_fields(1, i, j)),
        two: Box::new(move |i, j| again(2, i, j)),
        four: Box::new(move |m, [i, j, n, l]| {
            let mut sum = 0.0;
            for r in 0..=m {
                for t in 0..=m - r {
                    let (a, b) = (&tilted[r], &tilted[t]);
                    let wick = a[(i, j)] * b[(n, l)] + a[(i, n)] * b[(j, l)] + a[(i, l)] * b[(j, n)];
                    sum += z[m - r - t] * wick;
                }
            }
            sum * factorial(m)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fluctuations::moments::Averager;
    use didact_families::Model;
    use serde_json::{Value, json};

    fn rule(model: Value) -> std::sync::Arc<dyn LocalRule> {
        serde_json::from_value::<Model>(model).unwrap().rule().unwrap()
    }

    fn committee(activation: &str) -> std::sync::Arc<dyn LocalRule> {
        rule(json!({ "family": "committee", "students": 2, "teachers": 1, "activation": activation }))
    }

    #[test]
    fn closed_forms_are_the_sums_over_samples() {
        let covariance =
            Mat::from_rows(&[vec![0.8, 0.2, 0.4], vec![0.2, 0.6, -0.3], vec![0.4, -0.3, 1.0]]).unwrap();
        let quadratic = rule(json!({ "family": "quadratic-networks", "students": 2, "teachers": 1 }));
        let erf = || committee("erf(z/sqrt2)");
        let steep = committee("erf(z)");
        let rules = [
            (committee("linear"), 0.3),
            (committee("quadratic"), 0.3),
            (quadratic, 0.0),
            (erf(), 0.0),
            (erf(), 0.3),
            (steep, 0.3),
        ];
        for (rule, noise) in rules {
            let law = Law { covariance: &covariance, scalars: &[], label_noise: noise };
            let index = ProductIndex::new(rule.shape(), false);
            let closed =
                ClosedKick::of(&*rule).expect("a closed form").moments(&law, index, FourthRule::every(1e-13));
            let summed = Averager::new(1e-12).choose(&*rule, &law, index);
            // Sums of polynomials are exact, others have the error that they state.
            assert!(summed.error < 1e-5, "{rule:?}: {}", summed.error);
            let allowed = 1e-11 + summed.error;
            for a in 0..index.len() {
                assert!((closed.mean[a] - summed.mean[a]).abs() < allowed * summed.second[(a, a)].sqrt());
                for b in 0..index.len() {
                    let size = (summed.second[(a, a)] * summed.second[(b, b)]).sqrt();
                    let (x, y) = (closed.second[(a, b)], summed.second[(a, b)]);
                    assert!((x - y).abs() < allowed * size, "{rule:?}: {a} {b}: {x} {y}");
                }
            }
        }
    }

    #[test]
    fn other_kicks_are_not_taken_for_closed_ones() {
        for activation in ["tanh", "relu", "He3", "h2"] {
            assert_eq!(ClosedKick::of(&*committee(activation)), None, "{activation}");
        }
    }
}
