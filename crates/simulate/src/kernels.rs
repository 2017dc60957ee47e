//! The loops over d of direct simulation.
//!
//! Sums run in eight lanes so that the compiler may use vector registers without changing the order of any addition:
//! the numbers are the same on every processor.

use didact_math::dispatch;
use didact_math::linalg::Mat;
use didact_math::simd::add_scaled;

const LANES: usize = 8;

#[inline(always)]
fn fold(lanes: [f64; LANES]) -> f64 {
    ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) + ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]))
}

/// R dot products with the same x.
#[inline(always)]
fn dots<const R: usize>(rows: [&[f64]; R], x: &[f64]) -> [f64; R] {
    let mut lanes = [[0.0; LANES]; R];
    let whole = x.len() / LANES * LANES;
    for at in (0..whole).step_by(LANES) {
        let xs: &[f64; LANES] = x[at..at + LANES].try_into().expect("a whole chunk");
        for (row, sums) in rows.iter().zip(&mut lanes) {
            let ws: &[f64; LANES] = row[at..at + LANES].try_into().expect("a whole chunk");
            for lane in 0..LANES {
                sums[lane] = ws[lane].mul_add(xs[lane], sums[lane]);
            }
        }
    }
    let mut out = [0.0; R];
    for ((row, sums), out) in rows.iter().zip(lanes).zip(&mut out) {
        *out = fold(sums);
        for at in whole..x.len() {
            *out += row[at] * x[at];
        }
    }
    out
}

dispatch! {
    /// The scalar product.
    pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
        dots([a], b)[0]
    }
}

/// Number of inputs that are projected, or added, in one pass over the weights.
pub(crate) const INPUTS_PER_PASS: usize = 4;

/// Columns per tile of a pass: a tile of the inputs stays in the first-level cache while all rows go by.
const TILE: usize = 512;

/// Partial sums of one product, in lanes.
pub(crate) type Lanes = [f64; 4];

/// Adds the products of R rows with four inputs, in lanes; every number that is loaded is used several times.
#[inline(always)]
fn add_products<const R: usize>(
    rows: [&[f64]; R],
    inputs: [&[f64]; INPUTS_PER_PASS],
    out: &mut [[Lanes; INPUTS_PER_PASS]],
) {
    let d = inputs[0].len();
    let (rows, inputs) = (rows.map(|row| &row[..d]), inputs.map(|x| &x[..d]));
    let mut sums = [[[0.0; 4]; INPUTS_PER_PASS]; R];
    let whole = d / 4 * 4;
    for at in (0..whole).step_by(4) {
        let xs: [Lanes; INPUTS_PER_PASS] = inputs.map(|x| x[at..at + 4].try_into().expect("a whole chunk"));
        for (row, sums) in rows.iter().zip(&mut sums) {
            let ws: Lanes = row[at..at + 4].try_into().expect("a whole chunk");
            for (x, sums) in xs.iter().zip(sums) {
                for lane in 0..4 {
                    sums[lane] = ws[lane].mul_add(x[lane], sums[lane]);
                }
            }
        }
    }
    for ((row, sums), out) in rows.iter().zip(&sums).zip(out) {
        for ((x, sum), out) in inputs.iter().zip(sums).zip(out) {
            for lane in 0..4 {
                out[lane] += sum[lane];
            }
            for at in whole..d {
                out[at - whole] += row[at] * x[at];
            }
        }
    }
}

dispatch! {
    /// `out[i]` becomes the products of row i with four inputs, in lanes; rows and inputs have length d.
    ///
    /// The lanes are folded elsewhere: a sum over them in this loop would tempt the compiler to vectorise across rows.
    fn products(rows: &[f64], inputs: &[f64], d: usize, out: &mut [[Lanes; INPUTS_PER_PASS]]) {
        out.fill([[0.0; 4]; INPUTS_PER_PASS]);
        for from in (0..d).step_by(TILE) {
            let tile = from..(from + TILE).min(d);
            let x = |j: usize| &inputs[j * d..][tile.clone()];
            let row = |i: usize| &rows[i * d..][tile.clone()];
            let xs = [x(0), x(1), x(2), x(3)];
            let mut i = 0;
            while i + 2 <= out.len() {
                add_products([row(i), row(i + 1)], xs, &mut out[i..i + 2]);
                i += 2;
            }
            if i < out.len() {
                add_products([row(i)], xs, &mut out[i..]);
            }
        }
    }
}

#[inline(always)]
fn accumulate(x: &Lanes, y: &Lanes, sums: &mut Lanes) {
    for lane in 0..4 {
        sums[lane] = x[lane].mul_add(y[lane], sums[lane]);
    }
}

dispatch! {
    /// Products of four inputs with each other, in lanes: (0,1), (0,2), (0,3), (1,2), (1,3), (2,3).
    fn mutual_products(inputs: &[f64], d: usize, out: &mut [[Lanes; 2]; 6]) {
        let [a, b, c, e] = [&inputs[..d], &inputs[d..2 * d], &inputs[2 * d..3 * d], &inputs[3 * d..4 * d]];
        // Two sums per product, taken in turn: one would wait for its own last addition.
        let mut sums = [[[0.0; 4]; 2]; 6];
        let whole = d / 8 * 8;
        for at in (0..whole).step_by(8) {
            for half in 0..2 {
                let part = |x: &[f64]| -> Lanes { x[at + 4 * half..][..4].try_into().expect("a whole chunk") };
                let (a, b, c, e) = (part(a), part(b), part(c), part(e));
                accumulate(&a, &b, &mut sums[0][half]);
                accumulate(&a, &c, &mut sums[1][half]);
                accumulate(&a, &e, &mut sums[2][half]);
                accumulate(&b, &c, &mut sums[3][half]);
                accumulate(&b, &e, &mut sums[4][half]);
                accumulate(&c, &e, &mut sums[5][half]);
            }
        }
        for at in whole..d {
            let (half, lane) = ((at - whole) / 4, (at - whole) % 4);
            for (sums, (x, y)) in sums.iter_mut().zip([(a, b), (a, c), (a, e), (b, c), (b, e), (c, e)]) {
                sums[half][lane] += x[at] * y[at];
            }
        }
        *out = sums;
    }
}

#[inline(never)]
fn fold_lanes(lanes: &[[Lanes; INPUTS_PER_PASS]], out: &mut [[f64; INPUTS_PER_PASS]]) {
    for (lanes, out) in lanes.iter().zip(out) {
        *out = lanes.map(|l| (l[0] + l[2]) + (l[1] + l[3]));
    }
}

dispatch! {
    /// w ← w + Σ_j factor_j x_j for four inputs.
    fn add_four(w: &mut [f64], factors: &[f64; INPUTS_PER_PASS], inputs: &[f64]) {
        let d = w.len();
        let (a, b) = (&inputs[..d], &inputs[d..2 * d]);
        let (c, e) = (&inputs[2 * d..3 * d], &inputs[3 * d..4 * d]);
        let [fa, fb, fc, fe] = *factors;
        for at in 0..d {
            w[at] = fa.mul_add(a[at], fb.mul_add(b[at], fc.mul_add(c[at], fe.mul_add(e[at], w[at]))));
        }
    }
}

dispatch! {
    /// [`add_four`] to two rows, which share the loads of the inputs.
    fn add_four_to_two(v: &mut [f64], w: &mut [f64], factors: &[[f64; INPUTS_PER_PASS]; 2], inputs: &[f64]) {
        let d = v.len();
        let w = &mut w[..d];
        let (a, b) = (&inputs[..d], &inputs[d..2 * d]);
        let (c, e) = (&inputs[2 * d..3 * d], &inputs[3 * d..4 * d]);
        let [[ga, gb, gc, ge], [fa, fb, fc, fe]] = *factors;
        for at in 0..d {
            v[at] = ga.mul_add(a[at], gb.mul_add(b[at], gc.mul_add(c[at], ge.mul_add(e[at], v[at]))));
            w[at] = fa.mul_add(a[at], fb.mul_add(b[at], fc.mul_add(c[at], fe.mul_add(e[at], w[at]))));
        }
    }
}

/// Fields of every row for every sample: `out` is rows x batch, `inputs` batch x d.
pub(crate) fn project(weights: &Mat, inputs: &[f64], batch: usize, out: &mut [f64]) {
    let (rows, d) = (weights.rows(), weights.cols());
    let rows_of_four = if batch < INPUTS_PER_PASS { 0 } else { rows };
    let mut four = vec![[0.0; INPUTS_PER_PASS]; rows_of_four];
    let mut lanes = vec![[[0.0; 4]; INPUTS_PER_PASS]; rows_of_four];
    let mut inputs = inputs.chunks_exact(INPUTS_PER_PASS * d);
    let mut first = 0;
    for xs in &mut inputs {
        products(weights.as_slice(), xs, d, &mut lanes);
        fold_lanes(&lanes, &mut four);
        for (out, h) in out.chunks_exact_mut(batch).zip(&four) {
            out[first..first + INPUTS_PER_PASS].copy_from_slice(h);
        }
        first += INPUTS_PER_PASS;
    }
    for (j, x) in inputs.remainder().chunks_exact(d).enumerate() {
        for i in 0..rows {
            out[i * batch + first + j] = dot(weights.row(i), x);
        }
    }
}

/// Products of four inputs with every row, and with each other (above the diagonal). `room` has a place per row.
pub(crate) fn project_four(
    weights: &Mat,
    inputs: &[f64],
    room: &mut [[Lanes; INPUTS_PER_PASS]],
    fields: &mut [[f64; INPUTS_PER_PASS]],
    gram: &mut [[f64; INPUTS_PER_PASS]; INPUTS_PER_PASS],
) {
    let d = weights.cols();
    let all = weights.rows();
    products(weights.as_slice(), inputs, d, &mut room[..all]);
    fold_lanes(&room[..all], fields);
    let mut mutual = [[[0.0; 4]; 2]; 6];
    mutual_products(inputs, d, &mut mutual);
    for ((r, s), [even, odd]) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)].into_iter().zip(mutual) {
        gram[r][s] = fold([even[0], even[1], even[2], even[3], odd[0], odd[1], odd[2], odd[3]]);
    }
}

/// w_i ← w_i + Σ_j coefficients_ij x_j for the trained rows.
pub(crate) fn add_samples(
    weights: &mut Mat,
    trained: usize,
    coefficients: &[f64],
    inputs: &[f64],
    batch: usize,
) {
    let d = weights.cols();
    let whole = batch / INPUTS_PER_PASS * INPUTS_PER_PASS;
    let coefficients = &coefficients[..trained * batch];
    let rows = weights.as_mut_slice()[..trained * d].chunks_mut(2 * d.max(1));
    for (rows, coefficients) in rows.zip(coefficients.chunks(2 * batch)) {
        let (row, next) = rows.split_at_mut(d);
        let (of_row, of_next) = coefficients.split_at(batch);
        let fours = inputs.chunks_exact(INPUTS_PER_PASS * d).zip(of_row.as_chunks::<INPUTS_PER_PASS>().0);
        if next.is_empty() {
            fours.for_each(|(xs, c)| add_four(row, c, xs));
        } else {
            let both = fours.zip(of_next.as_chunks::<INPUTS_PER_PASS>().0);
            both.for_each(|((xs, c), e)| add_four_to_two(row, next, &[*c, *e], xs));
        }
        for (j, x) in inputs.chunks_exact(d).enumerate().skip(whole) {
            add_scaled(row, of_row[j], x);
            if !next.is_empty() {
                add_scaled(next, of_next[j], x);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_match_plain_loops_at_every_length() {
        for d in [1, 7, 8, 9, 31, 64, 515, 1030] {
            let weights = Mat::from_fn(6, d, |i, j| ((i * 31 + j * 7) % 13) as f64 - 6.0);
            for (rows, batch) in [(6, 2), (5, 4), (3, 9), (1, 1)] {
                let weights = Mat::from_fn(rows, d, |i, j| weights[(i, j)]);
                let inputs: Vec<f64> = (0..batch * d).map(|j| ((j * 5) % 11) as f64 - 5.0).collect();
                let mut fields = vec![0.0; rows * batch];
                project(&weights, &inputs, batch, &mut fields);
                for i in 0..rows {
                    for (j, x) in inputs.chunks_exact(d).enumerate() {
                        // Integers: every order of summation is exact.
                        assert_eq!(fields[i * batch + j], didact_math::linalg::dot(weights.row(i), x));
                    }
                }
                for trained in 1..=rows {
                    let mut moved = weights.clone();
                    let coefficients: Vec<f64> = (0..trained * batch).map(|c| 2.0 - c as f64).collect();
                    add_samples(&mut moved, trained, &coefficients, &inputs, batch);
                    let expected = Mat::from_fn(rows, d, |i, at| {
                        let own = if i < trained { &coefficients[i * batch..][..batch] } else { &[] };
                        let added: f64 = own.iter().enumerate().map(|(j, c)| c * inputs[j * d + at]).sum();
                        weights[(i, at)] + added
                    });
                    assert_eq!(moved, expected);
                }
            }
        }
    }
}
