//! An activation smoothed by a Gaussian, tabulated over the mean and the deviation of its argument.
//!
//!   T_n(m; s) = E[σ(m + s u) h_n(u)],   u ~ N(0, 1),   h_n = He_n/√n!
//!
//! are the Hermite coefficients of σ around a mean m. Averages over several correlated fields ask for them at thousands of
//! means and a few deviations at a time, so they are computed once on a grid of (m, s), tile by tile as they are needed, and
//! interpolated by polynomials of degree seven in each variable. A tile depends on nothing but its place: which thread fills it,
//! and when, changes no number.

use std::sync::{Arc, OnceLock};

use super::hermite::polynomials;
use super::normal::density;
use super::quadrature::{GaussianRule, HERMITE_REACH};
use super::series::HermiteSeries;
use crate::activation::Activation;

/// Numbers per node of the table: T_0, variance/s², T_1/s, T_2, T_3, … Variance and T_1 are divided by what they vanish with, so
/// that they keep their digits where s is small, and are σ′² and σ′ at s = 0.
pub const COLUMNS: usize = 32;
/// The highest order n of T_n.
pub const ORDERS: usize = COLUMNS - 2;
/// Points of the interpolation per variable.
const STENCIL: usize = 8;
/// Means per tile.
const TILE: usize = 32;
/// Tiles on either side of the mean 0.
const BLOCKS: usize = 40;
/// Deviations of the table, 0 included.
const ROWS: usize = 128;
/// |h_n(u)| φ(u) ≤ e^{−u²/4} = 7e-14 here, whatever n.
const REACH: f64 = 11.0;
/// The finest spacing of u, which resolves the Gaussian times h_30.
const FINEST: f64 = 0.3;
/// Terms of the Hermite series around the mean 0. A bump of an eighth of the deviation of the field needs about 400.
const LONGEST: usize = 448;
/// Spacing of the sums for these, which resolves h_448 with its wavelength 2π/√448 beside σ.
const SERIES_SPACING: f64 = 0.15;
/// Largest error of the interpolation in units of the size of σ, between two nodes. Its sign changes from node to node, so that
/// sums over many places are off by much less.
const ACCURACY: f64 = 2e-8;

/// Four columns, as vector registers hold them.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
struct Group([f64; 4]);

/// Groups per node of the table.
const GROUPS: usize = COLUMNS / 4;

/// The table of one activation without kinks.
#[derive(Debug)]
pub struct Smoothed {
    activation: Arc<dyn Activation>,
    /// Distance of neighbouring means.
    spacing: f64,
    /// Distance of neighbouring deviations.
    step: f64,
    /// Whether σ(−z) = −σ(z).
    odd: bool,
    tiles: Vec<OnceLock<Box<[Group]>>>,
    /// E[σ(s z) h_k(z)], k < [`LONGEST`], for every deviation s of the table.
    series: Vec<OnceLock<Box<[f64]>>>,
    /// How large every order is, for every deviation of the table.
    sizes: Vec<OnceLock<[f64; ORDERS]>>,
}

/// T_n(m; s) at one deviation s as a function of m: rows of columns at equally spaced means.
///
/// Columns: T_0, the variance of σ(m + s u), T_1, T_2, …; at s = 0 they are σ, 0, σ′ (not T_1, which vanishes there).
#[derive(Clone, Debug, Default)]
pub struct Ridge {
    values: Vec<Group>,
    columns: usize,
    /// Mean of the first row in units of the spacing.
    first: i64,
    inverse_spacing: f64,
}

impl Smoothed {
    /// A table for σ, empty as yet. `None` when σ has kinks, or changes too fast for a table of this size.
    pub fn new(activation: Arc<dyn Activation>) -> Option<Self> {
        if !activation.kinks().is_empty() {
            return None;
        }
        let opposite = |k: i32| {
            let z = 0.37 * f64::from(k);
            (activation.value(z) + activation.value(-z)).abs() <= 1e-15 * activation.value(z).abs()
        };
        let odd = (0..24).all(opposite);
        let (mut spacing, mut step) = (0.5 * activation.resolution(), activation.resolution() / 3.0);
        // The error of the interpolation is of eighth order; the second round only confirms what the first has found.
        for _ in 0..3 {
            let (along_means, along_deviations) = interpolation_errors(activation.as_ref(), spacing, step);
            if !(along_means.is_finite() && along_deviations.is_finite()) {
                return None;
            }
            if along_means <= ACCURACY && along_deviations <= ACCURACY {
                let tiles = (0..2 * BLOCKS * ROWS).map(|_| OnceLock::new()).collect();
                let series = (0..ROWS).map(|_| OnceLock::new()).collect();
                let sizes = (0..ROWS).map(|_| OnceLock::new()).collect();
                return Some(Self { activation, spacing, step, odd, tiles, series, sizes });
            }
            let shorter = |error: f64| 0.95 * (ACCURACY / error).powf(1.0 / STENCIL as f64).min(1.0 / 0.95);
            spacing *= shorter(along_means);
            step *= shorter(along_deviations);
        }
        None
    }

    /// Whether σ(−z) = −σ(z).
    pub fn is_odd(&self) -> bool {
        self.odd
    }

    /// The Hermite series of σ(√r z), interpolated. `None` where r is too large for the table, or the series too long.
    pub fn hermite_series(&self, variance: f64) -> Option<HermiteSeries> {
        let row = variance.sqrt() / self.step;
        // At small variances derivatives are quotients of small numbers; far from 0 the stencil never meets the other sign.
        if !((STENCIL / 2) as f64..(ROWS - STENCIL) as f64).contains(&row) {
            return None;
        }
        let base = row.floor();
        let mut value = vec![0.0; LONGEST];
        for (k, weight) in weights(row - base).iter().enumerate() {
            let row = base as usize + k - 3;
            let known = self.series[row].get_or_init(|| self.coefficients(row as f64 * self.step));
            crate::simd::add_scaled(&mut value, *weight, known);
        }
        HermiteSeries::from_values(variance, value)
    }

    /// E[σ(s z) h_k(z)].
    fn coefficients(&self, deviation: f64) -> Box<[f64]> {
        let rule = GaussianRule::trapezoid(
            SERIES_SPACING.min(self.activation.resolution() / deviation),
            HERMITE_REACH,
        );
        let mut samples: Vec<f64> = rule.nodes.iter().map(|u| deviation * u).collect();
        self.activation.values(&mut samples);
        let (mut orders, mut out) = (vec![0.0; LONGEST], vec![0.0; LONGEST]);
        for ((u, w), sample) in rule.nodes.iter().zip(&rule.weights).zip(&samples) {
            polynomials(*u, &mut orders);
            crate::simd::add_scaled(&mut out, w * sample, &orders);
        }
        out.into_boxed_slice()
    }

    /// The values at deviation s for means from the first to the last of a range, so many columns of them (a multiple of four). False,
    /// and `out` unchanged, where the table ends before.
    pub fn ridge(&self, deviation: f64, [low, high]: [f64; 2], columns: usize, out: &mut Ridge) -> bool {
        let side = STENCIL as i64 / 2;
        let first = (low / self.spacing).floor() as i64 - side;
        let last = (high / self.spacing).ceil() as i64 + side;
        let row = deviation / self.step;
        let edge = (BLOCKS * TILE) as i64;
        if -first >= edge || last >= edge || row.is_nan() || row >= (ROWS - STENCIL) as f64 {
            return false;
        }
        let width = columns / 4;
        out.values.resize((last - first + 1) as usize * width, Group::default());
        (out.columns, out.first, out.inverse_spacing) = (columns, first, self.spacing.recip());
        let base = row.floor();
        let rows: [i64; STENCIL] = std::array::from_fn(|k| base as i64 + k as i64 - 3);
        let even = weights(row - base);
        // T_n of odd order changes its sign with s.
        let odd: [f64; STENCIL] = std::array::from_fn(|k| if rows[k] < 0 { -even[k] } else { even[k] });
        // Means −m of an odd function are those at m, as far as these are there.
        let mirrored = if self.odd && first < 0 && last > 0 { last.min(-first) } else { 0 };
        let mut mean = first;
        while mean <= last {
            if mean == -mirrored && mirrored > 0 {
                mean = 0;
            }
            let (block, inside) = ((mean + edge) as usize / TILE, (mean + edge) as usize % TILE);
            let end = if mean < -mirrored { -mirrored } else { last + 1 };
            let count = (TILE - inside).min((end - mean) as usize);
            let tiles = rows.map(|row| {
                &self.tile(row.unsigned_abs() as usize, block)[inside * GROUPS..(inside + count) * GROUPS]
            });
            let at = (mean - first) as usize * width;
            let target = &mut out.values[at..at + count * width];
            if row == 0.0 && columns == 4 {
                target.iter_mut().zip(tiles[3].iter().step_by(GROUPS)).for_each(|(out, node)| *out = *node);
            } else {
                match columns {
                    4 => combine_1(target, &tiles, &even, &odd),
                    8 => combine_2(target, &tiles, &even, &odd),
                    12 => combine_3(target, &tiles, &even, &odd),
                    16 => combine_4(target, &tiles, &even, &odd),
                    24 => combine_6(target, &tiles, &even, &odd),
                    32 => combine_8(target, &tiles, &even, &odd),
                    other => unreachable!("ridges have 4 to 32 columns, not {other}"),
                }
            }
            mean += count as i64;
        }
        let zero = (-first) as usize * width;
        for m in 1..=mirrored as usize {
            let (before, after) = out.values.split_at_mut(zero);
            let target = &mut before[zero - m * width..][..width];
            for (g, (Group(out), Group(node))) in target.iter_mut().zip(&after[m * width..]).enumerate() {
                // T_n(−m) = −(−1)ⁿ T_n(m), and the variance is even.
                let signs = if g == 0 { [-1.0, 1.0, 1.0, -1.0] } else { [1.0, -1.0, 1.0, -1.0] };
                *out = std::array::from_fn(|c| signs[c] * node[c]);
            }
        }
        if deviation > 0.0 {
            for Group(row) in out.values.iter_mut().step_by(width) {
                row[1] *= deviation * deviation;
                row[2] *= deviation;
            }
        }
        true
    }

    /// How large T_n is at about this deviation, n = 1, 2, …: its largest value over typical means. `None` past the table.
    pub fn sizes(&self, deviation: f64) -> Option<&[f64; ORDERS]> {
        let row = (deviation / self.step).ceil() as usize;
        let known = self.sizes.get(row)?;
        Some(known.get_or_init(|| {
            let s = row as f64 * self.step;
            let mut out = [0.0f64; ORDERS];
            for block in [BLOCKS - 1, BLOCKS] {
                for node in self.tile(row, block).chunks_exact(GROUPS).step_by(4) {
                    let columns = node.iter().flat_map(|group| group.0);
                    for (c, (size, t)) in out.iter_mut().zip(columns.skip(2)).enumerate() {
                        *size = size.max(if c == 0 { (s * t).abs() } else { t.abs() });
                    }
                }
            }
            out
        }))
    }

    fn tile(&self, row: usize, block: usize) -> &[Group] {
        self.tiles[row * 2 * BLOCKS + block].get_or_init(|| {
            self.compute(row, block).as_chunks::<4>().0.iter().map(|columns| Group(*columns)).collect()
        })
    }

    /// One tile: samples of σ on a grid that the sums over u of all its means share.
    fn compute(&self, row: usize, block: usize) -> Vec<f64> {
        let first = (block as i64 - BLOCKS as i64) * TILE as i64;
        let mut out = vec![0.0; TILE * COLUMNS];
        if row == 0 {
            let means: Vec<f64> = (0..TILE).map(|k| (first + k as i64) as f64 * self.spacing).collect();
            let mut jets = [vec![0.0; TILE], vec![0.0; TILE], vec![0.0; TILE]];
            let [value, slope, curvature] = &mut jets;
            self.activation.jets(&means, value, slope, curvature);
            for (k, node) in out.chunks_exact_mut(COLUMNS).enumerate() {
                (node[0], node[1], node[2]) = (value[k], slope[k] * slope[k], slope[k]);
            }
            return out;
        }
        let deviation = row as f64 * self.step;
        // u in steps of stride·(spacing/parts)/s, which resolves both σ and the Gaussian.
        let (stride, parts) = if deviation * FINEST >= 2.0 * self.spacing {
            (2, 1)
        } else {
            (1, (self.spacing / (deviation * FINEST)).ceil() as usize)
        };
        let pitch = self.spacing / parts as f64;
        let step = stride as f64 * pitch / deviation;
        let side = (REACH / step).ceil() as usize;
        let mut projection = vec![0.0; (2 * side + 1) * COLUMNS];
        let mut orders = [0.0; ORDERS + 1];
        for (k, columns) in projection.chunks_exact_mut(COLUMNS).enumerate() {
            let u = (k as f64 - side as f64) * step;
            let weight = step * density(u);
            polynomials(u, &mut orders);
            columns[0] = weight;
            for (column, h) in columns[2..].iter_mut().zip(&orders[1..]) {
                *column = weight * h;
            }
        }
        let before = side * stride;
        let count = (TILE - 1) * parts + 2 * before + 1;
        let mut samples: Vec<f64> =
            (0..count).map(|k| first as f64 * self.spacing + (k as f64 - before as f64) * pitch).collect();
        self.activation.values(&mut samples);
        for (k, node) in out.chunks_exact_mut(COLUMNS).enumerate() {
            let samples = &samples[k * parts..];
            project(&projection, samples, stride, node);
            let mean = node[0];
            let squares = projection.chunks_exact(COLUMNS).enumerate().map(|(k, column)| {
                let apart = samples[k * stride] - mean;
                column[0] * apart * apart
            });
            node[1] = squares.sum::<f64>() / (deviation * deviation);
            node[2] /= deviation;
        }
        out
    }
}

/// The columns at one point, without the table: the slow way, and the test of the table.
pub fn direct(activation: &dyn Activation, mean: f64, deviation: f64) -> [f64; COLUMNS] {
    let mut out = [0.0; COLUMNS];
    if deviation == 0.0 {
        let (value, slope, _) = activation.jet(mean);
        (out[0], out[1], out[2]) = (value, slope * slope, slope);
        return out;
    }
    let spacing = FINEST.min(activation.resolution() / deviation);
    let rule = GaussianRule::trapezoid(spacing, REACH);
    let mut samples: Vec<f64> = rule.nodes.iter().map(|u| mean + deviation * u).collect();
    activation.values(&mut samples);
    let mut orders = [0.0; ORDERS + 1];
    for ((u, w), sample) in rule.nodes.iter().zip(&rule.weights).zip(&samples) {
        polynomials(*u, &mut orders);
        out[0] += w * sample;
        for (out, h) in out[2..].iter_mut().zip(&orders[1..]) {
            *out += w * sample * h;
        }
    }
    let squares = rule.weights.iter().zip(&samples).map(|(w, s)| w * (s - out[0]) * (s - out[0]));
    out[1] = squares.sum::<f64>() / (deviation * deviation);
    out[2] /= deviation;
    out
}

/// The largest errors of interpolation over means and over deviations, seen at a few places between the nodes, in units of the
/// size of σ there.
fn interpolation_errors(activation: &dyn Activation, spacing: f64, step: f64) -> (f64, f64) {
    let mut worst = (0.0f64, 0.0f64);
    let middle = weights(0.5);
    for (mean, deviation) in
        [(0.0, 0.0), (0.7, 0.0), (-1.1, 0.0), (1.9, 0.0), (0.3, 0.5), (-0.9, 1.0), (2.1, 1.4)]
    {
        let exact = direct(activation, mean, deviation);
        let size = exact[..3].iter().fold(1e-300f64, |size, c| size.max(c.abs()));
        // An order enters sums by its square, so an error of a small one counts for little.
        let scale = |column: usize| {
            if column < 3 { size } else { size * (size / exact[column].abs().max(1e-3 * size)).min(1e3) }
        };
        let compare = |node: &dyn Fn(f64) -> [f64; COLUMNS], worst: &mut f64| {
            let mut sum = [0.0; COLUMNS];
            for (k, w) in middle.iter().enumerate() {
                let value = node(k as f64 - 3.5);
                sum.iter_mut().zip(value).for_each(|(sum, v)| *sum += w * v);
            }
            for (c, (got, want)) in sum.iter().zip(exact).enumerate() {
                let error = (got - want).abs() / scale(c);
                *worst = if error.is_finite() { worst.max(error) } else { f64::NAN };
            }
        };
        compare(&|k| direct(activation, mean + k * spacing, deviation), &mut worst.0);
        if deviation > 3.5 * step {
            compare(&|k| direct(activation, mean, deviation + k * step), &mut worst.1);
        }
    }
    worst
}

impl Ridge {
    /// Columns per row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Whether it can be read at these means.
    pub fn covers(&self, [low, high]: [f64; 2]) -> bool {
        let rows = self.values.len() / (self.columns / 4).max(1);
        let place = |mean: f64| (mean * self.inverse_spacing).floor() as i64 - self.first;
        place(low) >= STENCIL as i64 / 2 - 1 && place(high) + (STENCIL as i64) / 2 < rows as i64
    }

    /// The columns at every given mean, one row of [`columns`](Self::columns) numbers after the other.
    pub fn read(&self, means: &[f64], out: &mut [f64]) {
        let first = self.first as f64;
        match self.columns {
            4 => read_1(&self.values, first, self.inverse_spacing, means, out),
            8 => read_2(&self.values, first, self.inverse_spacing, means, out),
            12 => read_3(&self.values, first, self.inverse_spacing, means, out),
            16 => read_4(&self.values, first, self.inverse_spacing, means, out),
            24 => read_6(&self.values, first, self.inverse_spacing, means, out),
            32 => read_8(&self.values, first, self.inverse_spacing, means, out),
            other => unreachable!("ridges have 4 to 32 columns, not {other}"),
        }
    }
}

/// The numbers of columns that a [`Ridge`] may have.
pub const WIDTHS: [usize; 6] = [4, 8, 12, 16, 24, 32];

/// 1/Π_{m≠k}(k − m), k = 0, …, 7.
const DENOMINATORS: [f64; STENCIL] = [
    -1.0 / 5040.0,
    1.0 / 720.0,
    -1.0 / 240.0,
    1.0 / 144.0,
    -1.0 / 144.0,
    1.0 / 240.0,
    -1.0 / 720.0,
    1.0 / 5040.0,
];

/// Lagrange weights of the nodes −3, −2, …, 4 at places 0 ≤ t < 1, for several places at once.
#[inline(always)]
fn weights_of<const N: usize>(t: &[f64; N]) -> [[f64; N]; STENCIL] {
    let mut out = [[0.0; N]; STENCIL];
    let mut product = [1.0; N];
    for k in 0..STENCIL {
        for lane in 0..N {
            out[k][lane] = product[lane] * DENOMINATORS[k];
            product[lane] *= t[lane] + (3.0 - k as f64);
        }
    }
    product = [1.0; N];
    for k in (0..STENCIL).rev() {
        for lane in 0..N {
            out[k][lane] *= product[lane];
            product[lane] *= t[lane] + (3.0 - k as f64);
        }
    }
    out
}

fn weights(t: f64) -> [f64; STENCIL] {
    weights_of(&[t]).map(|[w]| w)
}

crate::dispatch! {
    /// out_c = Σ_k samples_{k stride} projection_kc.
    fn project(projection: &[f64], samples: &[f64], stride: usize, out: &mut [f64]) {
        let mut sums = [0.0; COLUMNS];
        for (columns, sample) in projection.chunks_exact(COLUMNS).zip(samples.iter().step_by(stride)) {
            for c in 0..COLUMNS {
                sums[c] = sample.mul_add(columns[c], sums[c]);
            }
        }
        out.copy_from_slice(&sums);
    }
}

/// out = Σ_k weights_k tile_k for the first groups of every node; in groups after the first, columns 0 and 2 are of odd order.
#[inline(always)]
fn combine<const WIDTH: usize>(
    out: &mut [Group],
    tiles: &[&[Group]; STENCIL],
    even: &[f64; STENCIL],
    odd: &[f64; STENCIL],
) {
    for (node, out) in out.chunks_exact_mut(WIDTH).enumerate() {
        let mut sums = [[0.0; 4]; WIDTH];
        for k in 0..STENCIL {
            let row = &tiles[k][node * GROUPS..node * GROUPS + WIDTH];
            for g in 0..WIDTH {
                let other = if g == 0 { even[k] } else { odd[k] };
                let factors = [other, even[k], other, even[k]];
                for c in 0..4 {
                    sums[g][c] = factors[c].mul_add(row[g].0[c], sums[g][c]);
                }
            }
        }
        for g in 0..WIDTH {
            out[g].0 = sums[g];
        }
    }
}

/// Means whose weights are computed together.
const LANES: usize = 8;

#[inline(always)]
fn read<const WIDTH: usize>(values: &[Group], first: f64, inverse: f64, means: &[f64], out: &mut [f64]) {
    for (means, out) in means.chunks(LANES).zip(out.chunks_mut(LANES * 4 * WIDTH)) {
        let mut place = [0.0; LANES];
        place[..means.len()].copy_from_slice(means);
        let mut base = [0.0; LANES];
        for lane in 0..LANES {
            place[lane] = place[lane].mul_add(inverse, -first);
            base[lane] = place[lane].floor();
            place[lane] -= base[lane];
        }
        let weights = weights_of(&place);
        for (lane, out) in out.chunks_exact_mut(4 * WIDTH).enumerate() {
            let from = (base[lane] as usize - 3) * WIDTH;
            let rows = &values[from..from + STENCIL * WIDTH];
            let mut sums = [[0.0; 4]; WIDTH];
            for k in 0..STENCIL {
                for g in 0..WIDTH {
                    for c in 0..4 {
                        sums[g][c] = weights[k][lane].mul_add(rows[k * WIDTH + g].0[c], sums[g][c]);
                    }
                }
            }
            for (out, sum) in out.chunks_exact_mut(4).zip(&sums) {
                out.copy_from_slice(sum);
            }
        }
    }
}

macro_rules! by_width {
    ($($read:ident $combine:ident $width:literal)*) => {$(
        crate::dispatch! {
            fn $read(values: &[Group], first: f64, inverse: f64, means: &[f64], out: &mut [f64]) {
                read::<$width>(values, first, inverse, means, out);
            }
        }
        crate::dispatch! {
            fn $combine(out: &mut [Group], tiles: &[&[Group]; STENCIL], even: &[f64; STENCIL], odd: &[f64; STENCIL]) {
                combine::<$width>(out, tiles, even, odd);
            }
        }
    )*};
}

by_width! { read_1 combine_1 1 read_2 combine_2 2 read_3 combine_3 3 read_4 combine_4 4 read_6 combine_6 6 read_8 combine_8 8 }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activation::parse;

    /// Pair averages of interpolated series against those of a series of its own, also for fields that are nearly the same.
    #[test]
    fn interpolated_series_are_those_of_the_variance() {
        for name in ["tanh", "gelu", "tanh(1.2*x) + 0.05*x^2", "tanh(x)+0.3*exp(-2*(x-1)^2)", "log(1+exp(x))"]
        {
            let unit = parse(name).unwrap();
            let table = Smoothed::new(unit.clone()).unwrap();
            for variances in [[0.31, 0.5], [0.97, 1.2], [1.0, 1.0]] {
                let [a, b] = variances.map(|r| table.hermite_series(r).unwrap());
                let [exact_a, exact_b] = variances.map(|r| HermiteSeries::of(unit.as_ref(), r).unwrap());
                for rho in [0.0, -0.4, 0.9, 0.9999, 1.0] {
                    let covariance = rho * (variances[0] * variances[1]).sqrt();
                    let (got, want) = (a.with(&b, covariance), exact_a.with(&exact_b, covariance));
                    let size = want.value_value.abs() + want.slope_slope.abs() + want.curvature_value.abs();
                    let off = [
                        got.value_value - want.value_value,
                        got.slope_slope - want.slope_slope,
                        got.curvature_value - want.curvature_value,
                    ];
                    for off in off {
                        assert!(off.abs() < 1e-6 * size, "{name}, {variances:?}, {rho}: {off:e} of {size}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_table_is_the_average_that_it_stands_for() {
        for name in
            ["tanh", "gelu", "sigmoid", "tanh(1.2*x) + 0.05*x^2", "x*sigmoid(x)", "sin(2*x)", "log(1+exp(x))"]
        {
            let unit = parse(name).unwrap();
            let table = Smoothed::new(unit.clone()).unwrap();
            let mut ridge = Ridge::default();
            for deviation in [0.0, 0.013, 0.11, 0.4, 0.93, 1.7] {
                assert!(table.ridge(deviation, [-5.0, 5.0], COLUMNS, &mut ridge), "{name} at {deviation}");
                let means: Vec<f64> = (0..60).map(|k| 0.1677 * f64::from(k) - 5.0).collect();
                let mut got = vec![0.0; 60 * COLUMNS];
                ridge.read(&means, &mut got);
                for (mean, got) in means.iter().zip(got.chunks_exact(COLUMNS)) {
                    let mut want = direct(unit.as_ref(), *mean, deviation);
                    if deviation > 0.0 {
                        want[1] *= deviation * deviation;
                        want[2] *= deviation;
                    }
                    let size = 1.0 + want[0].abs();
                    for (c, (got, want)) in got.iter().zip(want).enumerate() {
                        // Variance and T_1 vanish with s and keep their digits.
                        let scale = if matches!(c, 1 | 2) && deviation > 0.0 {
                            size * deviation.min(1.0)
                        } else {
                            size
                        };
                        assert!(
                            (got - want).abs() < 5e-7 * scale,
                            "{name}, T({mean}; {deviation}), column {c}: {got} {want}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn kinks_have_no_table_and_no_table_is_endless() {
        assert!(Smoothed::new(parse("relu").unwrap()).is_none());
        let table = Smoothed::new(parse("tanh").unwrap()).unwrap();
        assert!(!table.ridge(0.5, [0.0, 1e4], 4, &mut Ridge::default()));
        assert!(!table.ridge(100.0, [-1.0, 1.0], 4, &mut Ridge::default()));
    }
}
