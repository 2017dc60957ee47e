//! The inner loop of the closed forms of erf units: for every pair (i, j) of trained fields the sum
//!
//!   Σ_kl v_k v_l asin( D_kl / √((1+D_kk)(1+D_ll)) ),   D = C − Bᵀ S⁻¹ B,
//!   S = [[1+C_ii, C_ij], [C_ij, 1+C_jj]],   B = rows i and j of C.
//!
//! The pairs run along the lanes of vector registers: every pair does the same work with other numbers, so nothing has
//! to be gathered or folded, whatever K and M.

use didact_math::dispatch;
use didact_math::simd::scalar::{asin, asin_near};

/// Pairs in one vector register.
const LANES: usize = 4;
type Lanes = [f64; LANES];

/// Registers of pairs that are summed together: few enough that their rows stay in the first-level cache.
const TOGETHER: usize = 4;

/// Numbers of scratch room that [`weighted_angles`] needs for so many fields.
pub(super) fn room(fields: usize) -> usize {
    (fields * (fields + 1) / 2 + 5 * fields) * TOGETHER * LANES
}

dispatch! {
    /// The sums of all pairs j ≤ i < trained, in the order (0,0), (1,0), (1,1), (2,0), …
    ///
    /// `c` is the covariance, P x P; `residual` are the v_k; the pairs are as many as `out` has places.
    pub(super) fn weighted_angles(c: &[f64], residual: &[f64], room: &mut [f64], out: &mut [f64]) {
        let p = residual.len();
        let (room, _) = room.as_chunks_mut::<LANES>();
        let (angles, room) = room.split_at_mut(p * (p + 1) / 2 * TOGETHER);
        let mut next = (0, 0);
        for out in out.chunks_mut(TOGETHER * LANES) {
            // Idle lanes of the last register repeat the pair (0, 0).
            let mut pairs = [(0, 0); TOGETHER * LANES];
            for pair in &mut pairs[..out.len()] {
                *pair = next;
                next = if next.1 < next.0 { (next.0, next.1 + 1) } else { (next.0 + 1, 0) };
            }
            let registers = out.len().div_ceil(LANES);
            let block = Block::new(c, p, &pairs[..registers * LANES], room);
            // Three short loops rather than one: what limits them is the latency of dependent operations, and of a
            // short loop the processor overlaps more iterations.
            let angles = &mut angles[..p * (p + 1) / 2 * registers];
            block.arguments(c, registers, angles);
            // |D_kl| ≤ √(D_kk D_ll), so the diagonal bounds every argument: variances up to 5/4 give at most 5/9.
            if block.largest <= 1.25 {
                angles.as_flattened_mut().iter_mut().for_each(|x| *x = asin_near(*x));
            } else {
                angles.as_flattened_mut().iter_mut().for_each(|x| *x = asin(x.clamp(-1.0, 1.0)));
            }
            let mut sums = [[0.0; LANES]; TOGETHER];
            add_weighted(residual, angles, &mut sums[..registers]);
            out.copy_from_slice(&sums.as_flattened()[..out.len()]);
        }
    }
}

/// What the arguments of some pairs are made of: row k is a field, the lanes along it are the pairs.
struct Block<'a> {
    /// Rows i and j of C.
    first: &'a [Lanes],
    second: &'a [Lanes],
    /// S⁻¹ B, so that D_kl = C_kl − alpha_k first_l − beta_k second_l.
    alpha: &'a [Lanes],
    beta: &'a [Lanes],
    /// 1/√(1+D_kk).
    root: &'a [Lanes],
    /// The largest D_kk.
    largest: f64,
}

impl<'a> Block<'a> {
    #[inline(always)]
    fn new(c: &[f64], p: usize, pairs: &[(usize, usize)], room: &'a mut [Lanes]) -> Self {
        let n = pairs.len() / LANES;
        let (first, room) = room.split_at_mut(p * n);
        let (second, room) = room.split_at_mut(p * n);
        let (alpha, room) = room.split_at_mut(p * n);
        let (beta, room) = room.split_at_mut(p * n);
        let (root, _) = room.split_at_mut(p * n);
        let mut largest = [0.0; LANES];
        for (at, pairs) in pairs.chunks_exact(LANES).enumerate() {
            let rows = |of: fn(&(usize, usize)) -> usize| -> [&[f64]; LANES] {
                std::array::from_fn(|lane| &c[of(&pairs[lane]) * p..][..p])
            };
            let (rows_i, rows_j) = (rows(|pair| pair.0), rows(|pair| pair.1));
            let (mut sii, mut sjj, mut sij, mut inverse) = ([0.0; LANES], [0.0; LANES], [0.0; LANES], [0.0; LANES]);
            for (lane, &(i, j)) in pairs.iter().enumerate() {
                (sii[lane], sjj[lane], sij[lane]) = (1.0 + rows_i[lane][i], 1.0 + rows_j[lane][j], rows_i[lane][j]);
                inverse[lane] = 1.0 / (sii[lane] * sjj[lane] - sij[lane] * sij[lane]);
            }
            for k in 0..p {
                // Put together in registers: four small stores read back as one large load would stall.
                let (f, s, own) = (rows_i.map(|row| row[k]), rows_j.map(|row| row[k]), c[k * (p + 1)]);
                let (mut a, mut b, mut r) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
                for lane in 0..LANES {
                    a[lane] = inverse[lane] * (sjj[lane] * f[lane] - sij[lane] * s[lane]);
                    b[lane] = inverse[lane] * (sii[lane] * s[lane] - sij[lane] * f[lane]);
                    let variance = own - a[lane] * f[lane] - b[lane] * s[lane];
                    r[lane] = 1.0 / (1.0 + variance).sqrt();
                    largest[lane] = if variance > largest[lane] { variance } else { largest[lane] };
                }
                (first[k * n + at], second[k * n + at]) = (f, s);
                (alpha[k * n + at], beta[k * n + at], root[k * n + at]) = (a, b, r);
            }
        }
        Self { first, second, alpha, beta, root, largest: largest.into_iter().fold(0.0, f64::max) }
    }

    /// D_kl / √((1+D_kk)(1+D_ll)) for l ≤ k, n registers of pairs each.
    #[inline(always)]
    fn arguments(&self, c: &[f64], n: usize, out: &mut [Lanes]) {
        let p = self.root.len() / n;
        let mut rest = out;
        for k in 0..p {
            let own = k * n..(k + 1) * n;
            let (a, b, r) = (&self.alpha[own.clone()], &self.beta[own.clone()], &self.root[own]);
            for l in 0..=k {
                let x = c[k * p + l];
                let other = l * n..(l + 1) * n;
                let (f, s, q) = (&self.first[other.clone()], &self.second[other.clone()], &self.root[other]);
                let (out, later) = rest.split_at_mut(n);
                for at in 0..n {
                    let (a, b, r, f, s, q) = (a[at], b[at], r[at], f[at], s[at], q[at]);
                    let mut ratio = [0.0; LANES];
                    for lane in 0..LANES {
                        ratio[lane] = (x - a[lane] * f[lane] - b[lane] * s[lane]) * (r[lane] * q[lane]);
                    }
                    out[at] = ratio;
                }
                rest = later;
            }
        }
    }
}

/// Adds v_k v_l angle_kl for l ≤ k, twice off the diagonal.
#[inline(always)]
fn add_weighted(residual: &[f64], angles: &[Lanes], sums: &mut [Lanes]) {
    let n = sums.len();
    for (at, sum) in sums.iter_mut().enumerate() {
        let mut row = 0;
        for (k, v) in residual.iter().enumerate() {
            // A sum per row: chains of additions that do not wait for each other.
            let mut part = [0.0; LANES];
            for (l, w) in residual[..k].iter().enumerate() {
                let angle = angles[(row + l) * n + at];
                for lane in 0..LANES {
                    part[lane] += w * angle[lane];
                }
            }
            let own = angles[(row + k) * n + at];
            for lane in 0..LANES {
                sum[lane] += v * (2.0 * part[lane] + v * own[lane]);
            }
            row += k + 1;
        }
    }
}
