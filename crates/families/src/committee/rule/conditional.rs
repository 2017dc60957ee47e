//! The four-field integral of units without kinks.
//!
//! Given the two fields h_i and h_j, written as h_i = L₁₁ x, h_j = L₂₁ x + L₂₂ y, every other field is Gaussian with a
//! mean linear in (x, y) and a covariance D that does not depend on them. So with e = Σ_f v_f g_f(h_f)
//!
//!   E[e² g'_i g'_j] = E_xy[ g'_i g'_j E[e² | x, y] ],      E[g_f g_h | x, y] = Σ_k a_k b_k ρ_fh^k,
//!
//! a_k and b_k being the Hermite coefficients of g_f and g_h around their means and ρ the correlation of D. The cost is
//! K² planes of nodes times P lines, whatever P is, where a product rule over all fields would need n^P nodes.

use didact_math::activation::Activation;
use didact_math::gauss::GaussianRule;
use didact_math::gauss::hermite::polynomials;
use didact_math::linalg::Mat;

/// E[e² g'_i g'_j] for all trained i, j.
pub(super) struct SquaredErrors {
    pub(super) value: Mat,
    /// Largest difference to the same sums on a grid coarser by [`COARSER`], cut off earlier, with shorter series.
    pub(super) error: f64,
}

/// Planes end at this radius, which leaves P = 2e-11 outside, 1e-9 after multiplication with z².
const REACH: f64 = 7.0;
/// Spacing in units of [`Activation::resolution`]: e^{−49/1.75} = 7e-13 for tanh, times 10⁴ for a product of four.
const SPACING: f64 = 1.75;
/// Resolves the Gaussian itself and products of a few of the same width.
const WIDEST: f64 = 0.6;
/// The grid of the error estimate.
const COARSER: f64 = 4.0 / 3.0;
/// It also ends earlier, so that the estimate covers what is outside.
const SHORTER_REACH: f64 = 6.5;
/// Longest series: at |ρ| = 1 they lack 1e-6 of the conditional variance of tanh at unit deviation, which is
/// extrapolated from the last [`TAIL`] terms.
const MOST_TERMS: usize = 40;
/// Terms that stand for those left out; parity makes every other one vanish.
const TAIL: usize = 4;
/// A series ends where ρ^k falls below this.
const SMALL_POWER: f64 = 1e-9;

pub(super) fn squared_errors(
    units: &[&dyn Activation],
    residual: &[f64],
    trained: usize,
    covariance: &Mat,
) -> SquaredErrors {
    let spacing = units.iter().enumerate().fold(WIDEST, |finest, (f, unit)| {
        finest.min(SPACING * unit.resolution() / covariance[(f, f)].max(0.0).sqrt())
    });
    let on_grid = |spacing: f64, reach: f64, longest: usize| {
        let line = Line::new(spacing, reach);
        let mut value = Mat::zeros(trained, trained);
        for i in 0..trained {
            for j in 0..=i {
                value[(i, j)] = Given::new(units, residual, covariance, (i, j), longest).average(&line);
                value[(j, i)] = value[(i, j)];
            }
        }
        value
    };
    let shorter = (MOST_TERMS as f64 / COARSER) as usize;
    let value = on_grid(spacing, REACH, MOST_TERMS);
    let mut difference = on_grid(spacing * COARSER, SHORTER_REACH, shorter);
    difference.add_scaled(-1.0, &value);
    SquaredErrors { error: difference.max_abs(), value }
}

/// A grid of z, with w h_k(z) for every order: k-th row of `projection`.
struct Line {
    reach: f64,
    rule: GaussianRule,
    projection: Vec<f64>,
}

impl Line {
    fn new(spacing: f64, reach: f64) -> Self {
        let rule = GaussianRule::trapezoid(spacing, reach);
        let n = rule.nodes.len();
        let mut projection = vec![0.0; MOST_TERMS * n];
        let mut orders = [0.0; MOST_TERMS];
        for (at, (&z, w)) in rule.nodes.iter().zip(&rule.weights).enumerate() {
            polynomials(z, &mut orders);
            for (k, h) in orders.iter().enumerate() {
                projection[k * n + at] = w * h;
            }
        }
        Self { reach, rule, projection }
    }
}

/// A field given the two of the plane: mean along·(x, y), deviation, and how many orders its partners ask for.
struct Field<'a> {
    unit: &'a dyn Activation,
    weight: f64,
    along: [f64; 2],
    deviation: f64,
    terms: usize,
}

/// Two fields that are correlated given the plane: 2 v_f v_h ρ^k, k = 1, 2, …
struct Correlated {
    fields: [usize; 2],
    powers: Vec<f64>,
    /// Whether the powers were cut off while still of some size.
    cut: bool,
}

impl Correlated {
    /// 2 v_f v_h Σ_{k≥1} a_k b_k ρ^k.
    ///
    /// Terms beyond the last are taken to be those of the tail, scaled to what the two variances lack. Exact where the
    /// fields are the same, so that the error of a perfect student vanishes whatever the length of the series.
    fn covariance(&self, a: Conditional, b: Conditional) -> f64 {
        let terms = self.powers.len();
        let term = |k: usize| self.powers[k] * a.coefficients[k] * b.coefficients[k];
        let sum: f64 = (0..terms).map(term).sum();
        if !self.cut {
            return sum;
        }
        let tail: f64 = (terms - TAIL..terms).map(term).sum();
        let ([lack_a, tail_a], [lack_b, tail_b]) = (a.lack(terms), b.lack(terms));
        let known = (tail_a * tail_b).sqrt();
        if known > 0.0 { sum + tail * (lack_a * lack_b).sqrt() / known } else { sum }
    }
}

/// What is known of a unit at one point of the plane.
#[derive(Clone, Copy)]
struct Conditional<'a> {
    /// Orders 1, 2, …
    coefficients: &'a [f64],
    variance: f64,
}

impl Conditional<'_> {
    /// What the first terms lack of the variance, and what the last [`TAIL`] of them give to it.
    fn lack(&self, terms: usize) -> [f64; 2] {
        let squares =
            |range: std::ops::Range<usize>| -> f64 { self.coefficients[range].iter().map(|c| c * c).sum() };
        [(self.variance - squares(0..terms)).max(0.0), squares(terms - TAIL..terms)]
    }
}

/// All fields given h_i and h_j.
struct Given<'a> {
    plane: (usize, usize),
    fields: Vec<Field<'a>>,
    correlated: Vec<Correlated>,
}

impl<'a> Given<'a> {
    fn new(
        units: &[&'a dyn Activation],
        residual: &[f64],
        c: &Mat,
        (i, j): (usize, usize),
        longest: usize,
    ) -> Self {
        let first = c[(i, i)].max(0.0).sqrt();
        let x = |f: usize| if first > 0.0 { c[(f, i)] / first } else { 0.0 };
        let second = independent(c[(j, j)] - x(j) * x(j), c[(j, j)]);
        let y = |f: usize| if second > 0.0 { (c[(f, j)] - x(f) * x(j)) / second } else { 0.0 };
        let rest = |f: usize, h: usize| c[(f, h)] - x(f) * x(h) - y(f) * y(h);
        let mut fields: Vec<Field> = (0..units.len())
            .map(|f| {
                let deviation = if f == i || f == j { 0.0 } else { independent(rest(f, f), c[(f, f)]) };
                Field { unit: units[f], weight: residual[f], along: [x(f), y(f)], deviation, terms: 1 }
            })
            .collect();
        let mut correlated = Vec::new();
        for f in 0..fields.len() {
            for h in 0..f {
                let product = fields[f].deviation * fields[h].deviation;
                let rho = if product > 0.0 { (rest(f, h) / product).clamp(-1.0, 1.0) } else { 0.0 };
                let count = orders(rho).min(longest - 1);
                if count == 0 {
                    continue;
                }
                let scale = 2.0 * residual[f] * residual[h];
                let powers = (1..=count)
                    .scan(scale, |power, _| {
                        *power *= rho;
                        Some(*power)
                    })
                    .collect();
                correlated.push(Correlated { fields: [f, h], powers, cut: orders(rho) > count });
                for field in [f, h] {
                    fields[field].terms = fields[field].terms.max(count + 1);
                }
            }
        }
        Self { plane: (i, j), fields, correlated }
    }

    fn average(&self, line: &Line) -> f64 {
        let (i, j) = self.plane;
        let (one, other) = (&self.fields[i], &self.fields[j]);
        let mut work = Work::new(self.fields.len(), line.rule.nodes.len());
        let nodes = || line.rule.nodes.iter().zip(&line.rule.weights);
        let mut sum = 0.0;
        for (&x, w) in nodes() {
            let slope = w * one.unit.slope(one.along[0] * x);
            // A plane only if h_j is not determined by h_i.
            if other.along[1] == 0.0 {
                sum += slope
                    * other.unit.slope(other.along[0] * x)
                    * self.squared_error([x, 0.0], line, &mut work);
                continue;
            }
            for (&y, v) in nodes() {
                if x * x + y * y > line.reach * line.reach {
                    continue;
                }
                let both = slope * v * other.unit.slope(other.along[0] * x + other.along[1] * y);
                sum += both * self.squared_error([x, y], line, &mut work);
            }
        }
        sum
    }

    /// E[e² | x, y] = (Σ v_f E g_f)² + Σ v_f² Var g_f + Σ_{f≠h} v_f v_h Cov(g_f, g_h).
    fn squared_error(&self, at: [f64; 2], line: &Line, work: &mut Work) -> f64 {
        let (mut mean, mut spread) = (0.0, 0.0);
        let places = work.coefficients.chunks_exact_mut(MOST_TERMS).zip(&mut work.variances);
        for (field, (coefficients, variance)) in self.fields.iter().zip(places) {
            let centre = field.along[0] * at[0] + field.along[1] * at[1];
            if field.deviation == 0.0 {
                mean += field.weight * field.unit.value(centre);
                continue;
            }
            for (sample, z) in work.samples.iter_mut().zip(&line.rule.nodes) {
                *sample = field.unit.value(centre + field.deviation * z);
            }
            project(&line.projection, &work.samples, &mut coefficients[..field.terms]);
            mean += field.weight * coefficients[0];
            *variance = weighted_square(&line.rule.weights, &work.samples, coefficients[0]);
            spread += field.weight * field.weight * *variance;
        }
        for pair in &self.correlated {
            let [a, b] = pair.fields.map(|f| Conditional {
                coefficients: &work.coefficients[f * MOST_TERMS + 1..(f + 1) * MOST_TERMS],
                variance: work.variances[f],
            });
            spread += pair.covariance(a, b);
        }
        mean * mean + spread
    }
}

/// Orders k ≥ 1 that count at correlation ρ.
fn orders(rho: f64) -> usize {
    match rho.abs() {
        0.0 => 0,
        1.0.. => usize::MAX,
        rho => (SMALL_POWER.ln() / rho.ln()).ceil() as usize,
    }
}

/// √(what is left of a variance); rounding noise is no variance.
fn independent(rest: f64, whole: f64) -> f64 {
    if rest <= 16.0 * f64::EPSILON * whole { 0.0 } else { rest.sqrt() }
}

/// Room for one point of the plane.
struct Work {
    samples: Vec<f64>,
    /// [`MOST_TERMS`] per field.
    coefficients: Vec<f64>,
    variances: Vec<f64>,
}

impl Work {
    fn new(fields: usize, nodes: usize) -> Self {
        Self {
            samples: vec![0.0; nodes],
            coefficients: vec![0.0; fields * MOST_TERMS],
            variances: vec![0.0; fields],
        }
    }
}

didact_math::dispatch! {
    /// out_k = Σ_n projection_kn samples_n.
    fn project(projection: &[f64], samples: &[f64], out: &mut [f64]) {
        for (out, row) in out.iter_mut().zip(projection.chunks_exact(samples.len())) {
            let mut sums = [0.0; 4];
            for (row, samples) in row.chunks_exact(4).zip(samples.chunks_exact(4)) {
                for lane in 0..4 {
                    sums[lane] += row[lane] * samples[lane];
                }
            }
            let done = samples.len() / 4 * 4;
            *out = sums.iter().sum::<f64>() + didact_math::linalg::dot(&row[done..], &samples[done..]);
        }
    }
}

/// Σ w (s − mean)².
fn weighted_square(weights: &[f64], samples: &[f64], mean: f64) -> f64 {
    weights.iter().zip(samples).map(|(w, s)| w * (s - mean) * (s - mean)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use didact_math::activation::parse;
    use didact_math::linalg::cholesky_psd;

    /// The slow way: a fine grid over all three fields.
    fn on_a_cube(units: &[&dyn Activation; 3], residual: &[f64; 3], c: &Mat) -> Mat {
        let lower = cholesky_psd(c).unwrap();
        let rule = GaussianRule::trapezoid(0.2, 8.0);
        let line: Vec<(f64, f64)> = rule.nodes.iter().copied().zip(rule.weights.iter().copied()).collect();
        let mut sum = Mat::zeros(2, 2);
        for &(x, u) in &line {
            let first = lower[(0, 0)] * x;
            for &(y, v) in &line {
                let second = lower[(1, 0)] * x + lower[(1, 1)] * y;
                let slopes = [units[0].slope(first), units[1].slope(second)];
                let known = residual[0] * units[0].value(first) + residual[1] * units[1].value(second);
                let square: f64 = line
                    .iter()
                    .map(|&(z, w)| {
                        let third = lower[(2, 0)] * x + lower[(2, 1)] * y + lower[(2, 2)] * z;
                        w * (known + residual[2] * units[2].value(third)).powi(2)
                    })
                    .sum();
                for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                    sum[(i, j)] += u * v * slopes[i] * slopes[j] * square;
                }
            }
        }
        sum
    }

    #[test]
    fn squared_errors_match_a_grid_over_all_fields_within_their_stated_error() {
        let covariances = [
            vec![vec![0.5, 0.1, 0.3], vec![0.1, 0.4, -0.2], vec![0.3, -0.2, 1.0]],
            // A student that has nearly learned the teacher, and one parallel to it.
            vec![vec![1.0, 0.2, 0.999], vec![0.2, 0.8, 0.2], vec![0.999, 0.2, 1.0]],
            vec![vec![1.0, 0.5, 1.0], vec![0.5, 0.8, 0.5], vec![1.0, 0.5, 1.0]],
        ];
        for (name, tolerance) in [("tanh", 2e-7), ("sigmoid", 1e-9), ("gelu", 5e-7), ("x*sigmoid(x)", 1e-8)] {
            let (own, teacher) = (parse(name).unwrap(), parse("tanh").unwrap());
            let units = [own.as_ref(), own.as_ref(), teacher.as_ref()];
            let residual = [-1.0, -0.7, 1.2];
            for c in &covariances {
                let c = Mat::from_rows(c).unwrap();
                let got = squared_errors(&units, &residual, 2, &c);
                let mut difference = on_a_cube(&units, &residual, &c);
                difference.add_scaled(-1.0, &got.value);
                let error = difference.max_abs();
                assert!(error < tolerance, "{name}, {c:?}: error {error:e}");
                assert!(error <= got.error + 1e-13, "{name}, {c:?}: error {error:e}, stated {:e}", got.error);
            }
        }
    }

    /// The limit of learning: e vanishes on every field, though series are cut off.
    #[test]
    fn a_perfect_student_makes_no_error() {
        let tanh = parse("tanh").unwrap();
        let units = [tanh.as_ref(); 4];
        let c = Mat::from_fn(4, 4, |i, j| if i % 2 == j % 2 { 2.0 } else { 0.6 });
        let got = squared_errors(&units, &[-1.0, -1.0, 1.0, 1.0], 2, &c);
        assert!(got.value.max_abs() < 1e-14, "{:?}", got.value);
    }
}
