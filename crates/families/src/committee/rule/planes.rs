//! The four-field integral of units without kinks, from tables: as accurate as a budget asks for, and much faster than
//! `conditional`, which is its slow twin.
//!
//! With h_i = L₁₁ x and h_j = L₂₁ x + L₂₂ y every other field has a mean m_f linear in (x, y) and a deviation s_f that does not
//! depend on them, so that
//!
//!   E[e² g'_i g'_j] = E_xy[ g'_i g'_j ( (Σ_f v_f T_0^f)² + Σ_f v_f² Var_f + Σ_{f≠h} v_f v_h Σ_{n≥1} ρ_fh^n T_n^f T_n^h ) ]
//!
//! with T_n^f = T_n(m_f; s_f) of the table of unit f ([`didact_math::gauss::smoothed`]). Values of the two fields of the plane are
//! read from the same tables (s = 0): errors of interpolation then cancel where a student has nearly learned its teacher, and
//! the result keeps its relative accuracy while e vanishes.

use didact_math::gauss::GaussianRule;
use didact_math::gauss::smoothed::{ORDERS, Ridge, Smoothed, WIDTHS};
use didact_math::linalg::Mat;
use std::ops::Range;

/// How fine the sums are in each of three respects; a step makes the error that it is about smaller by a factor of about five.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fineness {
    /// Distance of the nodes.
    pub(super) nodes: u32,
    /// Radius at which planes end.
    pub(super) reach: u32,
    /// Length of the series.
    pub(super) series: u32,
}

impl Fineness {
    /// The finest of all: the tables themselves are good to 1e-8.
    pub(super) const FINEST: Self = Self { nodes: 7, reach: 9, series: 8 };
    /// What the first sums of a run are tried with.
    pub(super) const FIRST: Self = Self { nodes: 2, reach: 2, series: 2 };

    /// Finer by two steps in every respect.
    pub(super) fn finer(self) -> Self {
        let Self { nodes, reach, series } = Self::FINEST;
        Self {
            nodes: (self.nodes + 2).min(nodes),
            reach: (self.reach + 2).min(reach),
            series: (self.series + 2).min(series),
        }
    }

    /// Spacing of the nodes in units of the resolution of a unit.
    fn spacing(self) -> f64 {
        2.5 * 0.9f64.powi(self.nodes as i32)
    }

    /// Spacing in units of the deviation of the fields, for units however wide.
    fn widest(self) -> f64 {
        0.85 * 0.93f64.powi(self.nodes as i32)
    }

    /// Lines are cheap, and the square of a slope is narrower than the slope: they are this much finer than planes, and longer.
    const LINES: f64 = 0.8;
    const BEYOND: f64 = 0.8;

    fn reach(self) -> f64 {
        4.2 + 0.35 * f64::from(self.reach)
    }

    /// Terms of the series that stay below this, summed, are left out.
    fn small_terms(self) -> f64 {
        3e-4 * 0.2f64.powi(self.series as i32)
    }
}

/// Series are extrapolated from so many of their last terms, a group of columns.
const TAIL: usize = 4;

/// What the integral is made of.
pub(super) struct FourFieldIntegral<'a> {
    /// Table of the unit of every field, trained fields first.
    pub(super) tables: &'a [&'a Smoothed],
    /// Resolution of the unit of every field.
    pub(super) resolutions: &'a [f64],
    /// v_f.
    pub(super) residual: &'a [f64],
    pub(super) covariance: &'a Mat,
}

/// Buffers that are kept from call to call with the same tables.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Per field: its columns at the deviation that it has given the plane,
    ridges: Vec<Ridge>,
    /// and at deviation 0, which the fields of the plane have.
    flat: Vec<Ridge>,
    /// Per field: its columns at some of the nodes.
    columns: Vec<Vec<f64>>,
    nodes: Nodes,
    means: Vec<f64>,
    centre: Vec<f64>,
    spread: Vec<f64>,
}

/// The nodes of a plane, row after row: coordinates, weights times g'_i g'_j, and what the fields of the plane give to e.
#[derive(Debug, Default)]
struct Nodes {
    x: Vec<f64>,
    y: Vec<f64>,
    weights: Vec<f64>,
    centre: Vec<f64>,
}

impl Nodes {
    fn clear(&mut self) {
        for list in [&mut self.x, &mut self.y, &mut self.weights, &mut self.centre] {
            list.clear();
        }
    }

    /// Leaves out nodes whose weight is below this fraction of the largest.
    fn keep_above(&mut self, fraction: f64) {
        let least = fraction * self.weights.iter().fold(0.0, |most: f64, w| most.max(w.abs()));
        let mut kept = 0;
        for n in 0..self.weights.len() {
            if self.weights[n].abs() >= least {
                for list in [&mut self.x, &mut self.y, &mut self.weights, &mut self.centre] {
                    list[kept] = list[n];
                }
                kept += 1;
            }
        }
        for list in [&mut self.x, &mut self.y, &mut self.weights, &mut self.centre] {
            list.truncate(kept);
        }
    }
}

/// A field given the two of the plane.
struct Field {
    weight: f64,
    along: [f64; 2],
    deviation: f64,
    /// Columns of its table that are read.
    columns: usize,
}

/// Two fields that are correlated given the plane, and 2 v_f v_h ρ^n for n = 1, 2, …, as long as a row of columns.
struct Pair {
    fields: [usize; 2],
    powers: Vec<f64>,
    /// Whether ρ^n is still large where the series is cut off.
    cut: bool,
}

impl FourFieldIntegral<'_> {
    /// E[e² g'_i g'_j] for the first fields i, j. `None` where a field is too wide for its table.
    pub(super) fn squared_errors(&self, trained: usize, fineness: Fineness, work: &mut Work) -> Option<Mat> {
        let mut out = Mat::zeros(trained, trained);
        for i in 0..trained {
            for j in 0..=i {
                out[(i, j)] = self.plane(i, j, fineness, work)?;
                out[(j, i)] = out[(i, j)];
            }
        }
        Some(out)
    }

    fn plane(&self, i: usize, j: usize, fineness: Fineness, work: &mut Work) -> Option<f64> {
        let c = self.covariance;
        let p = self.residual.len();
        let first = c[(i, i)].max(0.0).sqrt();
        let x = |f: usize| if first > 0.0 { c[(f, i)] / first } else { 0.0 };
        let second = independent(c[(j, j)] - x(j) * x(j), c[(j, j)]);
        let y = |f: usize| if second > 0.0 { (c[(f, j)] - x(f) * x(j)) / second } else { 0.0 };
        let rest = |f: usize, h: usize| c[(f, h)] - x(f) * x(h) - y(f) * y(h);
        let mut fields: Vec<Field> = (0..p)
            .map(|f| {
                let deviation = if f == i || f == j { 0.0 } else { independent(rest(f, f), c[(f, f)]) };
                Field { weight: self.residual[f], along: [x(f), y(f)], deviation, columns: 4 }
            })
            .collect();
        let pairs = self.pairs(&mut fields, rest, fineness.small_terms())?;
        // Tables come first: where they do not end before the fields do, sums have a moderate number of nodes.
        // The last node lies beyond the reach by less than one spacing.
        let (reach, shrink) = if second > 0.0 {
            (fineness.reach(), 1.0)
        } else {
            (fineness.reach() + Fineness::BEYOND, Fineness::LINES)
        };
        let last = reach + fineness.widest();
        let odd = self.tables.iter().all(|table| table.is_odd());
        work.ridges.resize_with(p.max(work.ridges.len()), Ridge::default);
        work.flat.resize_with(p.max(work.flat.len()), Ridge::default);
        for (f, field) in fields.iter().enumerate() {
            let farthest = last * field.along[0].hypot(field.along[1]);
            // Nodes of a line that lie on one side have means on one side.
            let range = match (odd && second == 0.0, field.along[0] < 0.0) {
                (true, false) => [0.0, farthest],
                (true, true) => [-farthest, 0.0],
                (false, _) => [-farthest, farthest],
            };
            if field.deviation > 0.0 {
                if !self.tables[f].ridge(field.deviation, range, field.columns, &mut work.ridges[f]) {
                    return None;
                }
            } else if !work.flat[f].covers(range) {
                let farther = BEFOREHAND * farthest;
                if !self.tables[f].ridge(0.0, [-farther, farther], 4, &mut work.flat[f]) {
                    return None;
                }
            }
        }
        // A smoothed unit varies over its deviation at least.
        let spacing = |axis: usize| {
            fields.iter().zip(self.resolutions).fold(fineness.widest(), |finest, (field, resolution)| {
                let width = (fineness.spacing() * resolution).hypot(field.deviation);
                finest.min(width / field.along[axis].abs().max(f64::MIN_POSITIVE))
            })
        };
        let outer = GaussianRule::trapezoid(shrink * spacing(0), reach);
        let inner = if second > 0.0 {
            GaussianRule::trapezoid(spacing(1), reach)
        } else {
            GaussianRule { nodes: vec![0.0], weights: vec![1.0] }
        };
        let own = read_flat(&work.flat[i], outer.nodes.iter().map(|x| first * x), &mut work.means);
        let nodes = &mut work.nodes;
        nodes.clear();
        for ((&x, &w), own) in outer.nodes.iter().zip(&outer.weights).zip(own.chunks_exact(4)) {
            // The integrand is even where all units are odd.
            if odd && x < 0.0 {
                continue;
            }
            let twice = if odd && x > 0.0 { 2.0 } else { 1.0 };
            let radius = (reach * reach - x * x).max(0.0).sqrt();
            let from = inner.nodes.partition_point(|y| *y < -radius);
            let to = inner.nodes.partition_point(|y| *y <= radius).max(from);
            let (value, slope) = (own[0], own[2]);
            let factor = twice * w * if i == j { slope * slope } else { slope };
            nodes.x.extend(std::iter::repeat_n(x, to - from));
            nodes.y.extend(&inner.nodes[from..to]);
            nodes.weights.extend(inner.weights[from..to].iter().map(|v| factor * v));
            nodes.centre.extend(std::iter::repeat_n(fields[i].weight * value, to - from));
        }
        if i != j {
            let Field { along, weight, .. } = fields[j];
            let means = nodes.x.iter().zip(&nodes.y).map(|(x, y)| along[0] * x + along[1] * y);
            let other = read_flat(&work.flat[j], means, &mut work.means);
            for ((row, w), centre) in other.chunks_exact(4).zip(&mut nodes.weights).zip(&mut nodes.centre) {
                *centre += weight * row[0];
                *w *= row[2];
            }
        }
        // Where slopes are small beside the reach, nodes count as little as those beyond it.
        nodes.keep_above(NEGLIGIBLE * (-0.5 * reach * reach).exp());
        work.columns.resize_with(p.max(work.columns.len()), Vec::new);
        let count = work.nodes.x.len();
        let parts = (0..count).step_by(TOGETHER);
        Some(parts.map(|from| sum(from..count.min(from + TOGETHER), [i, j], &fields, &pairs, work)).sum())
    }

    /// The pairs that are correlated given the plane, with series long enough; sets the columns that their fields need.
    fn pairs(
        &self,
        fields: &mut [Field],
        rest: impl Fn(usize, usize) -> f64,
        small: f64,
    ) -> Option<Vec<Pair>> {
        let sizes: Vec<&[f64; ORDERS]> = fields
            .iter()
            .zip(self.tables)
            .map(|(field, table)| table.sizes(field.deviation))
            .collect::<Option<_>>()?;
        let mut pairs = Vec::new();
        for f in 0..fields.len() {
            for h in 0..f {
                let product = fields[f].deviation * fields[h].deviation;
                let scale = 2.0 * fields[f].weight * fields[h].weight;
                let rho = if product > 0.0 { (rest(f, h) / product).clamp(-1.0, 1.0) } else { 0.0 };
                if rho == 0.0 || scale == 0.0 {
                    continue;
                }
                let terms = length(rho, sizes[f], sizes[h], small);
                if terms == 0 {
                    continue;
                }
                let columns = *WIDTHS.iter().find(|w| **w >= terms + 2).expect("at most all orders");
                let cut = columns >= 8 && rho.abs().powi(columns as i32) > LARGE_POWER;
                let mut powers = vec![0.0; columns];
                let mut power = scale;
                for slot in &mut powers[2..] {
                    power *= rho;
                    *slot = power;
                }
                pairs.push(Pair { fields: [f, h], powers, cut });
                for field in [f, h] {
                    fields[field].columns = fields[field].columns.max(columns);
                }
            }
        }
        Some(pairs)
    }
}

/// Series of fields more parallel than this at their end are extrapolated.
const LARGE_POWER: f64 = 0.02;

/// How many terms it takes until the rest of Σ ρ^n T_n T_n is small against the whole at ρ = 1, as far as the table goes.
fn length(rho: f64, a: &[f64; ORDERS], b: &[f64; ORDERS], small: f64) -> usize {
    let mut terms = [0.0; ORDERS];
    let (mut power, mut size) = (1.0, 0.0);
    for n in 0..ORDERS {
        size += a[n] * b[n];
        power *= rho.abs();
        terms[n] = power * a[n] * b[n];
    }
    let (mut left, mut count) = (0.0, ORDERS);
    while count > 0 && left + terms[count - 1] <= small * size {
        left += terms[count - 1];
        count -= 1;
    }
    count
}

/// The four columns of a field of the plane at these means.
fn read_flat(flat: &Ridge, at: impl Iterator<Item = f64>, means: &mut Vec<f64>) -> Vec<f64> {
    means.clear();
    means.extend(at);
    let mut out = vec![0.0; 4 * means.len()];
    flat.read(means, &mut out);
    out
}

/// Nodes are left out whose weight is below this fraction of what it is at the reach for slopes of 1.
const NEGLIGIBLE: f64 = 0.05;

/// Columns at deviation 0 are made for means so much larger than those that are needed, so that they serve the calls that follow.
const BEFOREHAND: f64 = 1.3;

/// Nodes that are summed together, so that columns stay in the cache that is nearest.
const TOGETHER: usize = 64;

/// Σ w g'_i g'_j E[e² | x, y] over some of the nodes.
fn sum(part: Range<usize>, plane: [usize; 2], fields: &[Field], pairs: &[Pair], work: &mut Work) -> f64 {
    let Work { ridges, flat, columns, nodes, means, centre, spread } = work;
    let n = part.len();
    let (xs, ys) = (&nodes.x[part.clone()], &nodes.y[part.clone()]);
    centre.clear();
    centre.extend(&nodes.centre[part.clone()]);
    spread.clear();
    spread.resize(n, 0.0);
    for (f, field) in fields.iter().enumerate().filter(|(f, _)| !plane.contains(f)) {
        let ridge = if field.deviation > 0.0 { &ridges[f] } else { &flat[f] };
        let out = &mut columns[f];
        let width = ridge.columns();
        out.resize(n * width, 0.0);
        means.clear();
        means.extend(xs.iter().zip(ys).map(|(x, y)| field.along[0] * x + field.along[1] * y));
        ridge.read(means, out);
        let variance = if field.deviation > 0.0 { field.weight * field.weight } else { 0.0 };
        for ((row, centre), spread) in out.chunks_exact(width).zip(&mut *centre).zip(&mut *spread) {
            *centre += field.weight * row[0];
            *spread += variance * row[1];
        }
    }
    for pair in pairs {
        let [f, h] = pair.fields;
        let (a, b) = (&columns[f], &columns[h]);
        let widths = (fields[f].columns, fields[h].columns);
        covariances(a, b, widths.0, widths.1, &pair.powers, spread);
        if pair.cut {
            extrapolate(a, b, widths.0, widths.1, &pair.powers, spread);
        }
    }
    let squares = centre.iter().zip(&*spread).map(|(centre, spread)| centre * centre + spread);
    squares.zip(&nodes.weights[part]).map(|(square, w)| w * square).sum()
}

didact_math::dispatch! {
    /// spread += Σ_c powers_c a_c b_c at every node.
    fn covariances(a: &[f64], b: &[f64], wide_a: usize, wide_b: usize, powers: &[f64], spread: &mut [f64]) {
        match powers.len() {
            4 => add_products::<4>(a, b, wide_a, wide_b, powers, spread),
            8 => add_products::<8>(a, b, wide_a, wide_b, powers, spread),
            12 => add_products::<12>(a, b, wide_a, wide_b, powers, spread),
            16 => add_products::<16>(a, b, wide_a, wide_b, powers, spread),
            24 => add_products::<24>(a, b, wide_a, wide_b, powers, spread),
            _ => add_products::<32>(a, b, wide_a, wide_b, powers, spread),
        }
    }
}

#[inline(always)]
fn add_products<const COUNT: usize>(
    a: &[f64],
    b: &[f64],
    wide_a: usize,
    wide_b: usize,
    powers: &[f64],
    spread: &mut [f64],
) {
    let powers: &[f64; COUNT] = powers.try_into().expect("as many powers");
    for ((a, b), spread) in a.chunks_exact(wide_a).zip(b.chunks_exact(wide_b)).zip(spread) {
        let (a, b) = (&a[..COUNT], &b[..COUNT]);
        let mut sums = [0.0; 4];
        for group in 0..COUNT / 4 {
            for lane in 0..4 {
                let c = 4 * group + lane;
                sums[lane] = (powers[c] * a[c]).mul_add(b[c], sums[lane]);
            }
        }
        *spread += (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
}

didact_math::dispatch! {
    /// Adds what the series of a pair of nearly parallel fields lack: terms past the end are taken to be like the last ones, scaled to
    /// what the two variances lack. Exact where the fields are the same, so that the error of a perfect student vanishes.
    fn extrapolate(a: &[f64], b: &[f64], wide_a: usize, wide_b: usize, powers: &[f64], spread: &mut [f64]) {
        let last = powers.len() - TAIL;
        let tail: &[f64; TAIL] = powers[last..].try_into().expect("the last group");
        for ((a, b), spread) in a.chunks_exact(wide_a).zip(b.chunks_exact(wide_b)).zip(spread) {
            let (lack_a, tail_a) = lack_and_tail(a, last);
            let (lack_b, tail_b) = lack_and_tail(b, last);
            let known = tail_a * tail_b;
            if known > 0.0 {
                let sum: f64 = (0..TAIL).map(|n| tail[n] * a[last + n] * b[last + n]).sum();
                *spread += sum * (lack_a * lack_b / known).sqrt();
            }
        }
    }
}

/// What the orders up to the group at `last` lack of the variance, and what that group gives to it.
#[inline(always)]
fn lack_and_tail(columns: &[f64], last: usize) -> (f64, f64) {
    let mut sums = [0.0, 0.0, columns[2] * columns[2], columns[3] * columns[3]];
    for group in columns[4..last].as_chunks::<TAIL>().0 {
        for lane in 0..TAIL {
            sums[lane] = group[lane].mul_add(group[lane], sums[lane]);
        }
    }
    let tail: f64 = columns[last..last + TAIL].iter().map(|t| t * t).sum();
    let known = (sums[0] + sums[1]) + (sums[2] + sums[3]) + tail;
    ((columns[1] - known).max(0.0), tail)
}

/// √(what is left of a variance); rounding noise is no variance.
fn independent(rest: f64, whole: f64) -> f64 {
    if rest <= 16.0 * f64::EPSILON * whole { 0.0 } else { rest.sqrt() }
}

/// Fields of two students and their two teachers: each student at its teacher's place but for a rotation by the angle t.
#[cfg(test)]
pub(super) fn nearly_learned(t: f64) -> Mat {
    let rows = Mat::from_fn(4, 4, |i, j| match (i < 2, i % 2 == j) {
        (true, true) => t.cos(),
        (true, false) if j == i + 2 => t.sin(),
        (false, true) => 1.0,
        _ => 0.0,
    });
    rows.gram()
}

#[cfg(test)]
mod tests {
    use super::super::conditional;
    use super::*;
    use didact_math::activation::{Activation, parse};
    use didact_math::random::{RngAddress, Stream};

    #[test]
    fn tables_match_the_slow_twin_at_every_stage_of_learning() {
        let mut stream = Stream::at(RngAddress { seed: 3, replica: 0, step: 0, lane: 0 });
        let mut random = |rows: usize| Mat::from_fn(rows, rows + 1, |_, _| 0.45 * stream.normal()).gram();
        let covariances = [
            random(4),
            random(4),
            random(3),
            nearly_learned(0.3),
            nearly_learned(1e-2),
            nearly_learned(1e-4),
        ];
        for name in ["tanh", "tanh(1.2*x) + 0.05*x^2", "gelu", "log(1+exp(x))"] {
            let unit = parse(name).unwrap();
            let table = Smoothed::new(unit.clone()).unwrap();
            let mut work = Work::default();
            for c in &covariances {
                let p = c.rows();
                let units: Vec<&dyn Activation> = vec![unit.as_ref(); p];
                let residual: Vec<f64> = (0..p).map(|f| if f < 2 { -1.0 } else { 1.0 }).collect();
                let slow = conditional::squared_errors(&units, &residual, 2, c);
                let fast = FourFieldIntegral {
                    tables: &vec![&table; p],
                    resolutions: &vec![unit.resolution(); p],
                    residual: &residual,
                    covariance: c,
                };
                for (fineness, tolerance) in [
                    (Fineness::FIRST, 2e-3),
                    (Fineness { nodes: 5, reach: 4, series: 5 }, 1e-5),
                    (Fineness::FINEST, 4e-7),
                ] {
                    let mut got = fast.squared_errors(2, fineness, &mut work).unwrap();
                    got.add_scaled(-1.0, &slow.value);
                    let allowed = tolerance * slow.value.max_abs() + slow.error;
                    assert!(
                        got.max_abs() <= allowed,
                        "{name}, {fineness:?}, {c:?}: off by {:e} of {:e}, slow twin {:e}",
                        got.max_abs(),
                        slow.value.max_abs(),
                        slow.error
                    );
                }
            }
        }
    }
}
