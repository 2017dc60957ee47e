//! Total derivatives of the kicks along the paths of the samples, backwards in time.

use super::LANES;
use super::lanes::{Four, HALF, PerSample, Rows, add, ask_for_next, half_mut, sums};

/// What is read and written on the way back.
pub(super) struct Backward<'a> {
    /// m.
    pub(super) trained: usize,
    /// Fields whose derivatives are kept, at least m.
    pub(super) columns: usize,
    /// i.
    pub(super) row: usize,
    /// D(s), (j, k), k over the columns.
    pub(super) curvature: Rows<'a>,
    /// Numbers from D of these samples to D of the next.
    pub(super) ahead: usize,
    /// Importance weights.
    pub(super) weights: &'a PerSample,
    /// −(η/δ) R_θ(r,s)_kj, (s, j) x (r, k).
    pub(super) back: &'a [f64],
    /// Room for X_r, (r, k).
    pub(super) chain: &'a mut [PerSample],
    /// Room for g, m.
    pub(super) through: &'a mut [PerSample],
    /// X_s is added here, (s, k).
    pub(super) response: &'a mut [Four],
    /// dφ_i(t)/dv_n is added here, n.
    pub(super) frozen: &'a mut [Four],
}

/// Total derivatives of φ_i(t), backwards in time, times the weights of the samples:
///
///   X_t = D(t),   g_s = −(η/δ) Σ_{r=s+1..t} X_r R_θ(r,s),   X_s = g_s D(s),
///   dφ_i(t)/dW(s) = X_s,   dφ_i(t)/dv = Dv(t) + Σ_s g_s Dv(s).
///
/// Memory grows as t, where propagating all derivatives forward would need t².
/// docs/derivations/gd-phase-transitions.md#eq-13.
#[inline(always)]
pub(super) fn backward(work: &mut Backward) {
    let Backward {
        trained: m,
        columns,
        row,
        curvature,
        ahead,
        weights,
        back,
        chain,
        through,
        response,
        frozen,
    } = work;
    let (m, columns, row, ahead) = (*m, *columns, *row, *ahead);
    let all = chain.len();
    let t = all / m - 1;
    for k in 0..columns {
        let own = &curvature.at(t)[row * columns + k];
        let mut now = [0.0; LANES];
        for lane in 0..LANES {
            now[lane] = own[lane] * weights[lane];
        }
        if k < m {
            add(&mut response[t * m + k], &now);
            chain[t * m + k] = now;
        } else {
            add(&mut frozen[k - m], &now);
        }
    }
    for s in (0..t).rev() {
        let later = (s + 1) * m;
        for from in [0, HALF] {
            let coefficients = |j: usize| &back[(s * m + j) * all..][later..all];
            let mut pairs = through.chunks_exact_mut(2);
            for (pair, through) in pairs.by_ref().enumerate() {
                let both = sums([coefficients(2 * pair), coefficients(2 * pair + 1)], &chain[later..], from);
                through.iter_mut().zip(both).for_each(|(through, sum)| *half_mut(through, from) = sum);
            }
            for through in pairs.into_remainder() {
                [*half_mut(through, from)] = sums([coefficients(m - 1)], &chain[later..], from);
            }
        }
        for k in 0..columns {
            let mut now = [0.0; LANES];
            for (j, through) in through.iter().enumerate() {
                let own = &curvature.at(s)[j * columns + k];
                ask_for_next(own, ahead);
                for lane in 0..LANES {
                    now[lane] = through[lane].mul_add(own[lane], now[lane]);
                }
            }
            if k < m {
                add(&mut response[s * m + k], &now);
                chain[s * m + k] = now;
            } else {
                add(&mut frozen[k - m], &now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dmft::lanes::{fold, tests::numbers};
    use crate::dmft::one_unit::OneUnit;

    /// The recursion written out for one sample at a time.
    #[test]
    fn backward_is_the_recursion_of_every_sample() {
        for (m, columns) in [(1, 1), (1, 2), (2, 2), (2, 3), (3, 3)] {
            for t in [0, 1, 2, 3, 6] {
                check(m, columns, t, false);
            }
        }
        (0..8).for_each(|t| check(1, 1, t, true));
    }

    fn check(m: usize, columns: usize, t: usize, apart: bool) {
        let all = (t + 1) * m;
        let curvature: Vec<PerSample> = (0..all * columns).map(numbers).collect();
        let (weights, back) = (numbers(99), (0..t * m * all).map(|i| (i as f64).cos()).collect::<Vec<_>>());
        for row in 0..m {
            let (mut chain, mut through) = (vec![[0.0; LANES]; all], vec![[0.0; LANES]; m]);
            let (mut response, mut frozen) = (vec![[0.0; 4]; all], vec![[0.0; 4]; columns - m]);
            if apart {
                let past: Vec<[PerSample; 3]> =
                    curvature.iter().map(|d| [numbers(7), numbers(8), *d]).collect();
                let unit = OneUnit { past: &past, ahead: 0 };
                unit.add_derivatives(&weights, &back, &mut chain, &mut response);
            } else {
                let wide = m * columns;
                backward(&mut Backward {
                    trained: m,
                    columns,
                    row,
                    curvature: Rows { values: &curvature, first: 0, width: wide, block: wide },
                    ahead: 0,
                    weights: &weights,
                    back: &back,
                    chain: &mut chain,
                    through: &mut through,
                    response: &mut response,
                    frozen: &mut frozen,
                });
            }
            let (mut slow, mut slow_frozen) = (vec![0.0; all], vec![0.0; columns - m]);
            for lane in 0..LANES {
                let of = |chunk: &PerSample| chunk[lane];
                let d = |s: usize, j: usize, k: usize| of(&curvature[(s * m + j) * columns + k]);
                let mut x = vec![0.0; all];
                (0..m).for_each(|k| x[t * m + k] = of(&weights) * d(t, row, k));
                (m..columns).for_each(|k| slow_frozen[k - m] += of(&weights) * d(t, row, k));
                for s in (0..t).rev() {
                    let g = |j: usize| -> f64 {
                        ((s + 1) * m..all).map(|c| back[(s * m + j) * all + c] * x[c]).sum()
                    };
                    let g: Vec<f64> = (0..m).map(g).collect();
                    (0..m).for_each(|k| x[s * m + k] = (0..m).map(|j| g[j] * d(s, j, k)).sum());
                    (m..columns).for_each(|k| {
                        slow_frozen[k - m] += (0..m).map(|j| g[j] * d(s, j, k)).sum::<f64>();
                    });
                }
                slow.iter_mut().zip(x).for_each(|(sum, x)| *sum += x);
            }
            for (fast, slow) in
                response.iter().chain(&frozen).map(fold).zip(slow.into_iter().chain(slow_frozen))
            {
                assert!((fast - slow).abs() < 1e-12 * (1.0 + slow.abs()), "{fast} {slow}");
            }
        }
    }
}
