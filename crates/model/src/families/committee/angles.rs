//! The inner loop of the closed forms of erf units: for every pair (i, j) of trained fields the sum
//!
//!   Σ_kl v_k v_l asin( D_kl / √((1+D_kk)(1+D_ll)) ),   D = C − Bᵀ S⁻¹ B,
//!   S = [[1+C_ii, C_ij], [C_ij, 1+C_jj]],   B = rows i and j of C.
//!
//! Four pairs are summed at a time, one per lane of a vector register: every pair does the same work with other numbers,
//! so nothing has to be gathered or folded, whatever K and M.

use didact_math::dispatch;
use didact_math::simd::scalar::{asin, asin_near};

/// Pairs at a time.
const LANES: usize = 4;
type Lanes = [f64; LANES];

/// What the arguments of four pairs need of field k: rows i and j of C, 1/√(1+D_kk), and S⁻¹ B, so that
/// D_kl = C_kl − alpha_k first_l − beta_k second_l.
type Field = [Lanes; 5];

/// Numbers of scratch room that [`weighted_angles`] needs for so many fields.
pub(super) fn room(fields: usize) -> usize {
    (fields * (fields + 1) / 2 + 5 * fields) * LANES
}

dispatch! {
    /// The sums of all pairs j ≤ i < trained, in the order (0,0), (1,0), (1,1), (2,0), …
    ///
    /// `c` is the covariance, P x P; `residual` are the v_k; the pairs are as many as `out` has places.
    pub(super) fn weighted_angles(c: &[f64], residual: &[f64], room: &mut [f64], out: &mut [f64]) {
        let p = residual.len();
        let (angles, rest) = room.as_chunks_mut::<LANES>().0.split_at_mut(p * (p + 1) / 2);
        let fields = &mut rest.as_chunks_mut::<5>().0[..p];
        let mut next = (0, 0);
        for out in out.chunks_mut(LANES) {
            // Idle lanes of the last block repeat the pair (0, 0).
            let mut pairs = [(0, 0); LANES];
            for pair in &mut pairs[..out.len()] {
                *pair = next;
                next = if next.1 < next.0 { (next.0, next.1 + 1) } else { (next.0 + 1, 0) };
            }
            let largest = condition(c, pairs, fields);
            // Three short loops rather than one: what limits them is the latency of dependent operations, and of a
            // short loop the processor overlaps more iterations.
            arguments(c, fields, angles);
            // |D_kl| ≤ √(D_kk D_ll), so the diagonal bounds every argument: variances up to 5/4 give at most 5/9.
            if largest <= 1.25 {
                angles.as_flattened_mut().iter_mut().for_each(|x| *x = asin_near(*x));
            } else {
                angles.as_flattened_mut().iter_mut().for_each(|x| *x = asin(x.clamp(-1.0, 1.0)));
            }
            let sums = weighted(residual, angles);
            out.copy_from_slice(&sums[..out.len()]);
        }
    }
}

/// Fills the fields of four pairs; returns the largest D_kk.
#[inline(always)]
fn condition(c: &[f64], pairs: [(usize, usize); LANES], fields: &mut [Field]) -> f64 {
    let p = fields.len();
    let [(i0, j0), (i1, j1), (i2, j2), (i3, j3)] = pairs;
    let row = |i: usize| &c[i * p..][..p];
    let (rows_i, rows_j) = ([row(i0), row(i1), row(i2), row(i3)], [row(j0), row(j1), row(j2), row(j3)]);
    let diagonal = |i: usize| 1.0 + c[i * (p + 1)];
    let sii = [diagonal(i0), diagonal(i1), diagonal(i2), diagonal(i3)];
    let sjj = [diagonal(j0), diagonal(j1), diagonal(j2), diagonal(j3)];
    let sij = [rows_i[0][j0], rows_i[1][j1], rows_i[2][j2], rows_i[3][j3]];
    let mut inverse = [0.0; LANES];
    for lane in 0..LANES {
        inverse[lane] = 1.0 / (sii[lane] * sjj[lane] - sij[lane] * sij[lane]);
    }
    let mut largest = [0.0; LANES];
    for (k, field) in fields.iter_mut().enumerate() {
        // Put together in registers: four small stores read back as one large load would stall.
        let first = [rows_i[0][k], rows_i[1][k], rows_i[2][k], rows_i[3][k]];
        let second = [rows_j[0][k], rows_j[1][k], rows_j[2][k], rows_j[3][k]];
        let own = c[k * (p + 1)];
        let (mut root, mut alpha, mut beta) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
        for lane in 0..LANES {
            let (f, s) = (first[lane], second[lane]);
            alpha[lane] = inverse[lane] * (sjj[lane] * f - sij[lane] * s);
            beta[lane] = inverse[lane] * (sii[lane] * s - sij[lane] * f);
            let variance = own - alpha[lane] * f - beta[lane] * s;
            root[lane] = 1.0 / (1.0 + variance).sqrt();
            largest[lane] = if variance > largest[lane] { variance } else { largest[lane] };
        }
        *field = [first, second, root, alpha, beta];
    }
    largest.into_iter().fold(0.0, f64::max)
}

/// D_kl / √((1+D_kk)(1+D_ll)) for l ≤ k, row by row.
#[inline(always)]
fn arguments(c: &[f64], fields: &[Field], out: &mut [Lanes]) {
    let mut rest = out;
    for (k, (row, [_, _, r, alpha, beta])) in c.chunks_exact(fields.len()).zip(fields).enumerate() {
        let (here, later) = rest.split_at_mut(k + 1);
        for (out, (x, [f, s, q, _, _])) in here.iter_mut().zip(row.iter().zip(fields)) {
            let mut ratio = [0.0; LANES];
            for lane in 0..LANES {
                let rest = (-beta[lane]).mul_add(s[lane], (-alpha[lane]).mul_add(f[lane], *x));
                ratio[lane] = rest * (r[lane] * q[lane]);
            }
            *out = ratio;
        }
        rest = later;
    }
}

/// Σ v_k v_l angle_kl over l ≤ k, twice off the diagonal.
#[inline(always)]
fn weighted(residual: &[f64], angles: &[Lanes]) -> Lanes {
    let mut total = [0.0; LANES];
    let mut rest = angles;
    for (k, v) in residual.iter().enumerate() {
        let (row, later) = rest.split_at(k + 1);
        // A sum per row: chains of additions that do not wait for each other.
        let mut part = [0.0; LANES];
        for (w, angle) in residual.iter().zip(&row[..k]) {
            for lane in 0..LANES {
                part[lane] = w.mul_add(angle[lane], part[lane]);
            }
        }
        for lane in 0..LANES {
            total[lane] += v * (2.0 * part[lane] + v * row[k][lane]);
        }
        rest = later;
    }
    total
}
