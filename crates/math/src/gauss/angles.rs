//! The inner loop of the closed forms of erf units: for every pair (i, j) of the first fields the sum
//!
//!   Σ_kl v_k v_l asin( D_kl / √((1+D_kk)(1+D_ll)) ),   D = C − Bᵀ S⁻¹ B,
//!   S = [[1+C_ii, C_ij], [C_ij, 1+C_jj]],   B = rows i and j of C.
//!
//! Four pairs are summed at a time, one per lane of a vector register: every pair does the same work with other numbers,
//! so nothing has to be gathered or folded, whatever K and M.

use crate::dispatch;
use crate::simd::scalar::{asin, asin_near};

/// Pairs at a time.
const LANES: usize = 4;
type Lanes = [f64; LANES];

/// What the arguments of four pairs need, an entry per field k: rows i and j of C, S⁻¹ B, so that
/// D_kl = C_kl − alpha_k first_l − beta_k second_l, and 1/√(1+D_kk).
struct Fields<'a> {
    first: &'a mut [Lanes],
    second: &'a mut [Lanes],
    alpha: &'a mut [Lanes],
    beta: &'a mut [Lanes],
    root: &'a mut [Lanes],
}

impl<'a> Fields<'a> {
    #[inline(always)]
    fn within(room: &'a mut [Lanes], fields: usize) -> Self {
        let (first, room) = room.split_at_mut(fields);
        let (second, room) = room.split_at_mut(fields);
        let (alpha, room) = room.split_at_mut(fields);
        let (beta, room) = room.split_at_mut(fields);
        Self { first, second, alpha, beta, root: &mut room[..fields] }
    }
}

/// Numbers of scratch room that [`weighted_angles`] needs for so many fields.
pub fn room(fields: usize) -> usize {
    5 * fields * LANES
}

dispatch! {
    /// The sums of all pairs j ≤ i, in the order (0,0), (1,0), (1,1), (2,0), …
    ///
    /// `c` is the covariance, P x P; `residual` are the v_k; the pairs are as many as `out` has places.
    pub fn weighted_angles(c: &[f64], residual: &[f64], room: &mut [f64], out: &mut [f64]) {
        let mut fields = Fields::within(room.as_chunks_mut::<LANES>().0, residual.len());
        let mut next = (0, 0);
        for out in out.chunks_mut(LANES) {
            // Idle lanes of the last block repeat the pair (0, 0).
            let mut pairs = [(0, 0); LANES];
            for pair in &mut pairs[..out.len()] {
                *pair = next;
                next = if next.1 < next.0 { (next.0, next.1 + 1) } else { (next.0 + 1, 0) };
            }
            let largest = condition(c, pairs, &mut fields);
            // |D_kl| ≤ √(D_kk D_ll), so the diagonal bounds every argument: variances up to 5/4 give at most 5/9.
            let sums = if largest <= 1.25 {
                weighted::<true>(c, residual, &fields)
            } else {
                weighted::<false>(c, residual, &fields)
            };
            out.copy_from_slice(&sums[..out.len()]);
        }
    }
}

dispatch! {
    /// The same sum without the condition on a pair: Σ_kl v_k v_l asin( C_kl / √((1+C_kk)(1+C_ll)) ). `room` has two numbers per field.
    pub fn plain_angles(c: &[f64], residual: &[f64], room: &mut [f64]) -> f64 {
        let p = residual.len();
        let (root, angles) = room[..2 * p].split_at_mut(p);
        let mut largest: f64 = 0.0;
        for (k, root) in root.iter_mut().enumerate() {
            let own = c[k * (p + 1)];
            largest = largest.max(own);
            *root = 1.0 / (1.0 + own).sqrt();
        }
        let mut total = 0.0;
        for (k, row) in c.chunks_exact(p).enumerate() {
            let own = root[k];
            if largest <= 1.25 {
                for ((angle, x), root) in angles.iter_mut().zip(row).zip(root.iter()) {
                    *angle = asin_near(x * (own * root));
                }
            } else {
                for ((angle, x), root) in angles.iter_mut().zip(row).zip(root.iter()) {
                    *angle = asin((x * (own * root)).clamp(-1.0, 1.0));
                }
            }
            let sum: f64 = angles.iter().zip(residual).map(|(angle, v)| v * angle).sum();
            total += residual[k] * sum;
        }
        total
    }
}

/// Fills the fields of four pairs; returns the largest D_kk.
#[inline(always)]
fn condition(c: &[f64], pairs: [(usize, usize); LANES], fields: &mut Fields) -> f64 {
    let p = fields.root.len();
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
    for k in 0..p {
        // Put together in registers: four small stores read back as one large load would stall.
        let first = [rows_i[0][k], rows_i[1][k], rows_i[2][k], rows_i[3][k]];
        let second = [rows_j[0][k], rows_j[1][k], rows_j[2][k], rows_j[3][k]];
        let own = c[k * (p + 1)];
        let (mut variance, mut alpha, mut beta) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
        for lane in 0..LANES {
            let (f, s) = (first[lane], second[lane]);
            alpha[lane] = inverse[lane] * (sjj[lane] * f - sij[lane] * s);
            beta[lane] = inverse[lane] * (sii[lane] * s - sij[lane] * f);
            variance[lane] = own - alpha[lane] * f - beta[lane] * s;
        }
        (fields.first[k], fields.second[k]) = (first, second);
        (fields.alpha[k], fields.beta[k], fields.root[k]) = (alpha, beta, variance);
    }
    let mut largest = [0.0; LANES];
    for variance in fields.root.iter() {
        for lane in 0..LANES {
            largest[lane] = if variance[lane] > largest[lane] { variance[lane] } else { largest[lane] };
        }
    }
    fields.root.as_flattened_mut().iter_mut().for_each(|x| *x = 1.0 / (1.0 + *x).sqrt());
    largest.into_iter().fold(0.0, f64::max)
}

/// Σ v_k v_l asin(D_kl / √((1+D_kk)(1+D_ll))), the pairs l ≤ k once and those off the diagonal twice. `NEAR`: no argument is
/// beyond 5/9.
#[inline(always)]
fn weighted<const NEAR: bool>(c: &[f64], residual: &[f64], fields: &Fields) -> Lanes {
    let Fields { first, second, alpha, beta, root } = fields;
    let p = root.len();
    let (first, second, root, residual) = (&first[..p], &second[..p], &root[..p], &residual[..p]);
    let mut total = [0.0; LANES];
    for (k, row) in c.chunks_exact(p).enumerate() {
        let (alpha, beta, own, weight) = (alpha[k], beta[k], root[k], residual[k]);
        // One sum per row: the sums are independent, so that their additions overlap in time.
        let (mut sum, mut angle) = ([0.0; LANES], [0.0; LANES]);
        for l in 0..=k {
            for lane in 0..LANES {
                let part = (-alpha[lane]).mul_add(first[l][lane], row[l]);
                let rest = (-beta[lane]).mul_add(second[l][lane], part);
                let ratio = rest * (own[lane] * root[l][lane]);
                angle[lane] = if NEAR { asin_near(ratio) } else { asin(ratio.clamp(-1.0, 1.0)) };
                sum[lane] = residual[l].mul_add(angle[lane], sum[lane]);
            }
        }
        // The last angle is the one on the diagonal.
        for lane in 0..LANES {
            total[lane] += weight * (2.0 * sum[lane] - weight * angle[lane]);
        }
    }
    total
}
