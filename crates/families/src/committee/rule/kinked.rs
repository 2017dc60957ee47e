//! The four-field integral of units that are linear between kinks, wherever these are.
//!
//! With h_i = L₁₁ x and h_j = L₂₁ x + L₂₂ y every other field has a mean m_f linear in (x, y) and a deviation s_f that does not
//! depend on them, and
//!
//!   E[e² g'_i g'_j] = E_xy[ g'_i g'_j ( (Σ_f v_f E g_f)² + Σ_f v_f² Var g_f + 2 Σ_{f<h} v_f v_h Cov(g_f, g_h) ) ],
//!
//! means, variances and covariances given (x, y) being those of [`didact_math::gauss::ramps`]. The panels of x and y end at the kinks
//! of the two fields and are short where those of others are hardly smoothed ([`super::edges`]). All terms keep their digits where a
//! student has nearly learned its teacher, so that the result has a small relative error while e vanishes.

use super::edges::{Edge, Feature, Nodes, after_integration, along_x, along_y};
use didact_math::activation::LinearPieces;
use didact_math::gauss::ramps::{LANES, Plackett, Ramps, values_and_slopes};
use didact_math::linalg::Mat;
use didact_math::simd::scalar::exp_of_negative;
use std::f64::consts::PI;
use std::ops::Range;

/// How fine the sums are; a step makes their error smaller by a factor of about five.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fineness(pub(super) u32);

impl Fineness {
    /// What the first sums of a run are tried with.
    pub(super) const FIRST: Self = Self(2);
    /// The finest of all.
    pub(super) const FINEST: Self = Self(9);

    pub(super) fn finer(self) -> Self {
        Self((self.0 + 1).min(Self::FINEST.0))
    }

    pub(super) fn two_coarser(self) -> Self {
        Self(self.0.saturating_sub(2))
    }

    fn level(self) -> f64 {
        f64::from(self.0)
    }

    /// Nodes of a panel of a length in units of the width of the integrand.
    fn nodes(self, length: f64) -> f64 {
        (2.2 + 0.4 * self.level() + (0.9 + 0.12 * self.level()) * length).ceil()
    }

    /// Radius at which planes end.
    fn reach(self) -> f64 {
        4.6 + 0.35 * self.level()
    }

    /// Nodes of the integrals that covariances are.
    fn of_covariances(self) -> usize {
        4 + self.0.div_ceil(2) as usize
    }
}

/// What the integral is made of.
pub(super) struct KinkedIntegral<'a> {
    /// Unit of every field, trained fields first.
    pub(super) units: &'a [&'a LinearPieces],
    /// v_f.
    pub(super) residual: &'a [f64],
    pub(super) covariance: &'a Mat,
}

/// Buffers that are kept from call to call.
#[derive(Debug, Default)]
pub(super) struct Work {
    outer: Nodes,
    inner: Nodes,
    features: Vec<Feature>,
    /// Coordinates and weights of all nodes of the plane, those times g'_i g'_j; a multiple of [`LANES`] of them.
    x: Vec<f64>,
    y: Vec<f64>,
    plane: Vec<f64>,
    means: Vec<f64>,
    values: Vec<f64>,
    slopes: Vec<f64>,
    centre: Vec<f64>,
    spread: Vec<f64>,
    ramps: Vec<Ramps>,
}

/// A field given the two of the plane.
struct Field {
    along: [f64; 2],
    deviation: f64,
}

/// Two fields that are correlated given the plane.
struct Pair {
    fields: [usize; 2],
    rho: f64,
    integral: Plackett,
}

/// All fields given h_i and h_j.
struct Given {
    fields: Vec<Field>,
    pairs: Vec<Pair>,
    /// Whether h_j is not determined by h_i.
    two: bool,
}

impl KinkedIntegral<'_> {
    /// E[e² g'_i g'_j] for the first fields i, j.
    pub(super) fn squared_errors(&self, trained: usize, fineness: Fineness, work: &mut Work) -> Mat {
        let mut out = Mat::zeros(trained, trained);
        for i in 0..trained {
            for j in 0..=i {
                out[(i, j)] = self.average([i, j], fineness, work);
                out[(j, i)] = out[(i, j)];
            }
        }
        out
    }

    fn given(&self, [i, j]: [usize; 2], fineness: Fineness) -> Given {
        let c = self.covariance;
        let first = c[(i, i)].max(0.0).sqrt();
        let x = |f: usize| if first > 0.0 { c[(f, i)] / first } else { 0.0 };
        let second = independent(c[(j, j)] - x(j) * x(j), c[(j, j)]);
        let y = |f: usize| if second > 0.0 { (c[(f, j)] - x(f) * x(j)) / second } else { 0.0 };
        let rest = |f: usize, h: usize| c[(f, h)] - x(f) * x(h) - y(f) * y(h);
        let fields: Vec<Field> = (0..self.units.len())
            .map(|f| {
                let deviation = if f == i || f == j { 0.0 } else { independent(rest(f, f), c[(f, f)]) };
                Field { along: [x(f), if f == i { 0.0 } else { y(f) }], deviation }
            })
            .collect();
        let mut pairs = Vec::new();
        for f in 0..fields.len() {
            for h in 0..f {
                let product = fields[f].deviation * fields[h].deviation;
                if product > 0.0 && self.residual[f] * self.residual[h] != 0.0 {
                    let rho = (rest(f, h) / product).clamp(-1.0, 1.0);
                    let integral = Plackett::new(rho, fineness.of_covariances());
                    pairs.push(Pair { fields: [f, h], rho, integral });
                }
            }
        }
        Given { fields, pairs, two: second > 0.0 }
    }

    /// Where the integrand changes its form: at the kinks of all fields, and where kinks of two nearly parallel fields coincide.
    fn edges(&self, given: &Given) -> Vec<Edge> {
        let mut edges = Vec::new();
        for (field, unit) in given.fields.iter().zip(self.units) {
            let Field { along, deviation } = *field;
            edges.extend(unit.kinks.iter().map(|kink| Edge { along, at: kink.at, deviation }));
        }
        for pair in given.pairs.iter().filter(|pair| pair.rho.abs() > NEARLY_PARALLEL) {
            let [(one, unit), (other, partner)] = pair.fields.map(|f| (&given.fields[f], self.units[f]));
            // In units of the deviations, h_f − m_f and ±(h_h − m_h) differ by a normal variable of this deviation at most.
            let deviation = ((1.0 - pair.rho) * (1.0 + pair.rho)).max(0.0).sqrt();
            let ratio = 1f64.copysign(pair.rho) / other.deviation;
            let along = [0, 1].map(|axis| one.along[axis] / one.deviation - ratio * other.along[axis]);
            for kink in &unit.kinks {
                for second in &partner.kinks {
                    edges.push(Edge { along, at: kink.at / one.deviation - ratio * second.at, deviation });
                }
            }
        }
        edges
    }

    fn average(&self, plane: [usize; 2], fineness: Fineness, work: &mut Work) -> f64 {
        let given = self.given(plane, fineness);
        let edges = self.edges(&given);
        let reach = fineness.reach();
        let count = |length: f64| fineness.nodes(length);
        // The integrand is even where all units are odd.
        let odd = self.units.iter().all(|unit| unit.is_odd());
        let (ends, times) = if odd { ([0.0, reach], 2.0) } else { ([-reach, reach], 1.0) };
        let Work { outer, inner, features, x: xs, y: ys, plane: weights, .. } = work;
        for list in [&mut *xs, &mut *ys, &mut *weights] {
            list.clear();
        }
        let [i, j] = plane;
        let slope = |f: usize, x: f64, y: f64| {
            let along = given.fields[f].along;
            self.units[f].slope(along[0] * x + along[1] * y)
        };
        if given.two {
            after_integration(&edges, reach, features);
            outer.fill(features, ends, count);
            for (&x, &w) in outer.at.iter().zip(&outer.weights) {
                let w = w * slope(i, x, 0.0);
                // Many units are flat on one side of a kink.
                if w == 0.0 {
                    continue;
                }
                along_y(&edges, x, features);
                let radius = (reach * reach - x * x).max(0.0).sqrt();
                inner.fill(features, [-radius, radius], count);
                for (&y, v) in inner.at.iter().zip(&inner.weights) {
                    let weight = w * v * slope(j, x, y);
                    if weight != 0.0 {
                        xs.push(x);
                        ys.push(y);
                        weights.push(weight);
                    }
                }
            }
            multiply_by_density(xs, ys, (2.0 * PI).recip(), weights);
        } else {
            along_x(&edges, features);
            outer.fill(features, ends, count);
            for (&x, w) in outer.at.iter().zip(&outer.weights) {
                let weight = w * slope(i, x, 0.0) * slope(j, x, 0.0);
                if weight != 0.0 {
                    xs.push(x);
                    weights.push(weight);
                }
            }
            ys.resize(xs.len(), 0.0);
            multiply_by_density(xs, ys, (2.0 * PI).sqrt().recip(), weights);
        }
        let n = xs.len().next_multiple_of(LANES);
        for list in [&mut *xs, &mut *ys, &mut *weights] {
            list.resize(n, 0.0);
        }
        let parts = (0..n).step_by(TOGETHER);
        times * parts.map(|from| self.sum(&given, from..n.min(from + TOGETHER), work)).sum::<f64>()
    }

    /// Σ weight E[e² | node] over some of the nodes, slopes being in the weights.
    fn sum(&self, given: &Given, part: Range<usize>, work: &mut Work) -> f64 {
        let Work { x, y, plane, means, values, slopes, centre, spread, ramps, .. } = work;
        let n = part.len();
        for list in [&mut *centre, &mut *spread] {
            list.clear();
            list.resize(n, 0.0);
        }
        for list in [&mut *means, &mut *values, &mut *slopes] {
            list.resize(n, 0.0);
        }
        ramps.resize_with(given.fields.len().max(ramps.len()), Ramps::default);
        for (f, field) in given.fields.iter().enumerate() {
            let (unit, v) = (self.units[f], self.residual[f]);
            combine(field.along, &x[part.clone()], &y[part.clone()], means);
            if field.deviation == 0.0 {
                values_and_slopes(unit, means, values, slopes);
                centre.iter_mut().zip(&*values).for_each(|(centre, value)| *centre += v * value);
            } else if v != 0.0 {
                let ramps = &mut ramps[f];
                ramps.fill(unit, means, field.deviation);
                for (k, (centre, spread)) in centre.iter_mut().zip(&mut *spread).enumerate() {
                    *centre += v * ramps.mean[k];
                    *spread += v * v * ramps.variance[k];
                }
            }
        }
        for Pair { fields: [f, h], integral, .. } in &given.pairs {
            let scale = 2.0 * self.residual[*f] * self.residual[*h];
            ramps[*f].add_covariances(&ramps[*h], integral, scale, spread);
        }
        let squares = centre.iter().zip(&*spread).map(|(centre, spread)| centre * centre + spread);
        squares.zip(&plane[part]).map(|(square, weight)| weight * square).sum()
    }
}

/// Nodes that are summed together, so that lists stay in the cache that is nearest.
const TOGETHER: usize = 16 * LANES;

didact_math::dispatch! {
    /// weight *= factor e^{−(x² + y²)/2}.
    fn multiply_by_density(x: &[f64], y: &[f64], factor: f64, weights: &mut [f64]) {
        for ((x, y), weight) in x.iter().zip(y).zip(weights) {
            *weight *= factor * exp_of_negative(-0.5 * x.mul_add(*x, y * y));
        }
    }
}

didact_math::dispatch! {
    /// a x + b y.
    fn combine(along: [f64; 2], x: &[f64], y: &[f64], out: &mut [f64]) {
        for ((x, y), out) in x.iter().zip(y).zip(out) {
            *out = along[0].mul_add(*x, along[1] * y);
        }
    }
}

/// Covariances of less correlated fields vary no faster than their factors.
const NEARLY_PARALLEL: f64 = 0.7;

/// √(what is left of a variance); rounding noise is no variance.
fn independent(rest: f64, whole: f64) -> f64 {
    if rest <= 16.0 * f64::EPSILON * whole { 0.0 } else { rest.sqrt() }
}

#[cfg(test)]
mod tests;
