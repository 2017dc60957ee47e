//! The loops over samples: strips of [`WIDE`] samples, whose numbers at all times lie side by side in memory.

use didact_math::dispatch;
use didact_math::simd::prefetch;

/// Samples of a strip: eight vector registers, enough to hide the latency of an addition.
pub(super) const WIDE: usize = 32;

/// One number per sample.
pub(super) type Strip = [f64; WIDE];

/// A sum over samples in four parts, one per lane of a register.
pub(super) type Four = [f64; 4];

/// The list as strips.
#[inline(always)]
pub(super) fn strips(numbers: &[f64]) -> &[Strip] {
    numbers.as_chunks().0
}

/// The list as strips.
#[inline(always)]
pub(super) fn strips_mut(numbers: &mut [f64]) -> &mut [Strip] {
    numbers.as_chunks_mut().0
}

/// Adds a strip to a sum over samples.
#[inline(always)]
fn add(sum: &mut Four, strip: &Strip) {
    for part in strip.as_chunks::<4>().0 {
        for lane in 0..4 {
            sum[lane] += part[lane];
        }
    }
}

/// The whole sum.
pub(super) fn fold(sum: &Four) -> f64 {
    (sum[0] + sum[2]) + (sum[1] + sum[3])
}

/// Asks for the strip that lies so many numbers behind this one: samples that come next do the same work on other memory,
/// and the pauses for computing are too long for the processor to see a stream.
#[inline(always)]
fn prefetch_strip(strip: &Strip, ahead: usize) {
    for line in (0..WIDE).step_by(8) {
        prefetch(strip.as_ptr().wrapping_add(ahead + line));
    }
}

dispatch! {
    /// Σ_k coefficients[k] strips[k]; those of the next samples lie `ahead` numbers behind.
    pub(super) fn combine(coefficients: &[f64], strips: &[Strip], ahead: usize) -> Strip {
        let mut sum = [0.0; WIDE];
        for (c, strip) in coefficients.iter().zip(strips) {
            prefetch_strip(strip, ahead);
            for lane in 0..WIDE {
                sum[lane] = c.mul_add(strip[lane], sum[lane]);
            }
        }
        sum
    }
}

dispatch! {
    /// sums[k] += Σ a strips[k].
    pub(super) fn add_products(a: &Strip, strips: &[Strip], sums: &mut [Four]) {
        for (strip, sum) in strips.iter().zip(sums) {
            let (mut even, mut odd) = (*sum, [0.0; 4]);
            for at in (0..WIDE).step_by(8) {
                for lane in 0..4 {
                    even[lane] = a[at + lane].mul_add(strip[at + lane], even[lane]);
                    odd[lane] = a[at + 4 + lane].mul_add(strip[at + 4 + lane], odd[lane]);
                }
            }
            for lane in 0..4 {
                sum[lane] = even[lane] + odd[lane];
            }
        }
    }
}

dispatch! {
    /// a weights.
    pub(super) fn weighed(a: &Strip, weights: &Strip) -> Strip {
        let mut out = [0.0; WIDE];
        for lane in 0..WIDE {
            out[lane] = a[lane] * weights[lane];
        }
        out
    }
}

/// What [`backward`] reads and writes.
pub(super) struct Backward<'a> {
    /// m.
    pub(super) trained: usize,
    /// Fields whose derivatives are kept, at least m.
    pub(super) columns: usize,
    /// i.
    pub(super) row: usize,
    /// D(s), (s, j, k) for s = 0..=t, k over the columns.
    pub(super) curvature: &'a [Strip],
    /// Numbers from D of these samples to D of the next.
    pub(super) ahead: usize,
    /// Importance weights.
    pub(super) weights: &'a Strip,
    /// −(η/δ) R_θ(r,s)_kj, (s, j) x (r, k).
    pub(super) back: &'a [f64],
    /// Room for X_r, (r, k).
    pub(super) chain: &'a mut [Strip],
    /// Room for g, m.
    pub(super) through: &'a mut [Strip],
    /// X_s is added here, (s, k).
    pub(super) response: &'a mut [Four],
    /// dφ_i(t)/dv_n is added here, n.
    pub(super) frozen: &'a mut [Four],
}

dispatch! {
    /// Total derivatives of φ_i(t), backwards in time, times the weights of the samples:
    ///
    ///   X_t = D(t),   g_s = −(η/δ) Σ_{r=s+1..t} X_r R_θ(r,s),   X_s = g_s D(s),
    ///   dφ_i(t)/dW(s) = X_s,   dφ_i(t)/dv = Dv(t) + Σ_s g_s Dv(s).
    ///
    /// Memory grows as t, where propagating all derivatives forward would need t².
    pub(super) fn backward(work: Backward) {
        let Backward { trained: m, columns, row, curvature, ahead, weights, back, chain, through, response, frozen } =
            work;
        let all = chain.len();
        let t = all / m - 1;
        for k in 0..columns {
            let own = &curvature[(t * m + row) * columns + k];
            let mut now = [0.0; WIDE];
            for lane in 0..WIDE {
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
            for j in 0..m {
                let coefficients = &back[(s * m + j) * all..][later..all];
                let mut sum = [0.0; WIDE];
                for (c, x) in coefficients.iter().zip(&chain[later..]) {
                    for lane in 0..WIDE {
                        sum[lane] = c.mul_add(x[lane], sum[lane]);
                    }
                }
                through[j] = sum;
            }
            for k in 0..columns {
                let mut now = [0.0; WIDE];
                for (j, through) in through.iter().enumerate() {
                    let own = &curvature[(s * m + j) * columns + k];
                    prefetch_strip(own, ahead);
                    for lane in 0..WIDE {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(seed: usize) -> Strip {
        std::array::from_fn(|lane| ((seed * 37 + lane * 11) as f64 * 0.7).sin())
    }

    /// The recursion written out for one sample at a time.
    #[test]
    fn backward_is_the_recursion_of_every_sample() {
        let (m, columns, t) = (2, 3, 3);
        let all = (t + 1) * m;
        let curvature: Vec<Strip> = (0..all * columns).map(numbers).collect();
        let (weights, back) = (numbers(99), (0..t * m * all).map(|i| (i as f64).cos()).collect::<Vec<_>>());
        for row in 0..m {
            let (mut chain, mut through) = (vec![[0.0; WIDE]; all], vec![[0.0; WIDE]; m]);
            let (mut response, mut frozen) = (vec![[0.0; 4]; all], vec![[0.0; 4]; columns - m]);
            backward(Backward {
                trained: m,
                columns,
                row,
                curvature: &curvature,
                ahead: 0,
                weights: &weights,
                back: &back,
                chain: &mut chain,
                through: &mut through,
                response: &mut response,
                frozen: &mut frozen,
            });
            let (mut slow, mut slow_frozen) = (vec![0.0; all], 0.0);
            for lane in 0..WIDE {
                let d = |s: usize, j: usize, k: usize| curvature[(s * m + j) * columns + k][lane];
                let mut x = vec![0.0; all];
                (0..m).for_each(|k| x[t * m + k] = weights[lane] * d(t, row, k));
                slow_frozen += weights[lane] * d(t, row, m);
                for s in (0..t).rev() {
                    let g = |j: usize| -> f64 {
                        ((s + 1) * m..all).map(|c| back[(s * m + j) * all + c] * x[c]).sum()
                    };
                    let g: Vec<f64> = (0..m).map(g).collect();
                    (0..m).for_each(|k| x[s * m + k] = (0..m).map(|j| g[j] * d(s, j, k)).sum());
                    slow_frozen += (0..m).map(|j| g[j] * d(s, j, m)).sum::<f64>();
                }
                slow.iter_mut().zip(x).for_each(|(sum, x)| *sum += x);
            }
            for (fast, slow) in response.iter().map(fold).zip(slow) {
                assert!((fast - slow).abs() < 1e-12 * (1.0 + slow.abs()), "{fast} {slow}");
            }
            assert!((fold(&frozen[0]) - slow_frozen).abs() < 1e-12 * (1.0 + slow_frozen.abs()));
        }
    }

    #[test]
    fn combinations_and_products_are_plain_sums() {
        let strips: Vec<Strip> = (0..5).map(numbers).collect();
        let coefficients = [0.3, -1.0, 2.0, 0.7, 0.1];
        let sum = combine(&coefficients, &strips, 0);
        for lane in 0..WIDE {
            let slow: f64 = coefficients.iter().zip(&strips).map(|(c, s)| c * s[lane]).sum();
            assert!((sum[lane] - slow).abs() < 1e-14);
        }
        let mut products = vec![[0.0; 4]; 5];
        add_products(&weighed(&sum, &strips[0]), &strips, &mut products);
        for (product, strip) in products.iter().zip(&strips) {
            let slow: f64 = (0..WIDE).map(|lane| sum[lane] * strips[0][lane] * strip[lane]).sum();
            assert!((fold(product) - slow).abs() < 1e-13);
        }
    }
}
